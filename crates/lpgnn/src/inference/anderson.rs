//! Anderson acceleration: the next state from a combination of the last few, chosen so that their
//! residuals cancel as far as they can.

use crate::Scalar;
use crate::graph::{Local, Reduce, Topology};
use crate::numeric::{Arithmetic, Kernel, dispatch, dot};
use crate::transition::for_each_group;

/// The last iterates of one graph, `r = f − x` being the residual of an iterate `x` with `f = f_a(x)`.
#[derive(Clone, Debug)]
pub(super) struct Anderson<S> {
    window: usize,
    /// `R` and `F`: differences of consecutive `r` and of consecutive `f`, newest last.
    d_residuals: Vec<Vec<S>>,
    d_fs: Vec<Vec<S>>,
    /// `Rᵀ R`, up to its diagonal.
    gram: Vec<Vec<f64>>,
    /// `r` and `f` of the last iterate; empty before there is one.
    residual: Vec<S>,
    f_x: Vec<S>,
    best: f64,
    /// The largest component of the last residual, and whether plain steps have turned out slow.
    last: f64,
    slow: bool,
}

/// The share of a residual that plain steps may leave: down to it, they cost less than what a combination saves.
const FAST: f64 = 0.4;
/// How much larger than the best one a residual may grow before the past is forgotten.
const PATIENCE: f64 = 2.0;
/// Components that one thread works on at a time; they stay in cache, and sums over them do not
/// depend on the number of threads.
const PART: usize = 1 << 12;

/// How the components of a graph are cut into chunks, sums over which are added up in their order.
pub(super) struct Chunks<'a, S: Scalar> {
    /// The length of every chunk.
    lengths: Vec<usize>,
    /// How the sums of chunks of all ranks are had.
    reduce: &'a dyn Reduce<S>,
}

impl<'a, S: Scalar> Chunks<'a, S> {
    /// Of the components of a graph that this process has.
    pub(super) fn even(components: usize) -> Self {
        let starts = (0..components).step_by(PART);
        Self { lengths: starts.map(|start| PART.min(components - start)).collect(), reduce: &Local }
    }

    /// Of a graph in parts, whose nodes have `width` components.
    pub(super) fn of_groups(topology: &'a Topology, width: usize) -> Self {
        let lengths = topology.groups().ranges().iter().map(|nodes| nodes.len() * width).collect();
        Self { lengths, reduce: topology.reduce() }
    }

    fn of<'s>(&self, mut all: &'s [S]) -> impl Iterator<Item = &'s [S]> {
        self.lengths.iter().map(move |&length| all.split_off(..length).unwrap_or_default())
    }

    fn of_mut<'s>(&self, mut all: &'s mut [S]) -> impl Iterator<Item = &'s mut [S]> {
        self.lengths.iter().map(move |&length| all.split_off_mut(..length).unwrap_or_default())
    }

    fn starts(&self) -> impl Iterator<Item = usize> {
        self.lengths.iter().scan(0, |end, length| {
            *end += length;
            Some(*end - length)
        })
    }
}

impl<S: Scalar> Anderson<S> {
    /// No iterates yet; at most `window` are combined.
    pub(super) fn new(window: usize) -> Self {
        let (d_residuals, d_fs, gram) = (vec![], vec![], vec![]);
        let (residual, f_x) = (vec![], vec![]);
        let (best, last, slow) = (f64::INFINITY, f64::INFINITY, false);
        Self { window, d_residuals, d_fs, gram, residual, f_x, best, last, slow }
    }

    /// Whether plain steps are fast still, given the largest component of the newest `f − x`: once they are slow, they stay so.
    pub(super) fn is_plain(&mut self, largest: f64) -> bool {
        let fast = self.last.is_infinite() || largest <= FAST * self.last;
        self.slow |= !fast;
        self.last = largest;
        self.window == 0 || !self.slow
    }

    /// Replaces `x` by the next iterate where plain steps are slow, given `f = f_a(x)`; `beta` damps a step without a past.
    ///
    /// `x ← f − F γ`, where `γ` minimises `‖r − R γ‖`.
    pub(super) fn advance(&mut self, x: &mut [S], f: &[S], beta: S, chunks: &Chunks<'_, S>) {
        let gamma = self.combination(x, f, chunks);
        let gamma: Vec<S> = gamma.iter().flatten().map(|&gamma| S::of(gamma)).collect();
        let parts = chunks.of_mut(x).zip(chunks.of(f)).zip(chunks.starts());
        let mut parts: Vec<_> = parts.collect();
        for_each_group(&mut parts, |((x, f), start)| {
            let d_fs = self.d_fs.iter().map(|d| &d[*start..][..f.len()]).collect();
            dispatch(Step { x, f, beta, gamma: &gamma, d_fs });
        });
    }

    /// The `γ` for a newest iterate, which becomes the last; none without a usable past.
    fn combination(&mut self, x: &[S], f: &[S], chunks: &Chunks<'_, S>) -> Option<Vec<f64>> {
        let first = self.residual.is_empty();
        // The newest differences take the room of the oldest.
        let (mut d_residual, mut d_f) = (vec![], vec![]);
        if self.d_residuals.len() == self.window {
            (d_residual, d_f) = (self.d_residuals.remove(0), self.d_fs.remove(0));
            self.gram.remove(0);
            for row in &mut self.gram {
                row.remove(0);
            }
        }
        for room in [&mut self.residual, &mut self.f_x, &mut d_residual, &mut d_f] {
            room.resize(x.len(), S::ZERO);
        }
        let past = &self.d_residuals;
        let mut parts: Vec<Newest<'_, S>> = chunks
            .of(x)
            .zip(chunks.of(f))
            .zip(chunks.of_mut(&mut self.residual).zip(chunks.of_mut(&mut self.f_x)))
            .zip(chunks.of_mut(&mut d_residual).zip(chunks.of_mut(&mut d_f)))
            .zip(chunks.starts())
            .map(|((((x, f), (residual, f_x)), (d_residual, d_f)), start)| {
                let past = past.iter().map(|d| &d[start..][..x.len()]).collect();
                Newest { x, f, residual, f_x, d_residual, d_f, past, sums: vec![] }
            })
            .collect();
        for_each_group(&mut parts, Newest::differ);
        let count = 2 * past.len() + 3;
        let own: Vec<f64> = parts.iter().flat_map(|part| &part.sums).copied().collect();
        let all = chunks.reduce.totals(&own, count);
        let mut sums = vec![0.0; count];
        for part in all.as_deref().unwrap_or(&own).chunks_exact(count) {
            sums.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
        }
        drop(parts);

        let length = sums[0].sqrt();
        let grown = length > PATIENCE * self.best;
        self.best = self.best.min(length);
        if grown {
            self.d_residuals.clear();
            self.d_fs.clear();
            self.gram.clear();
        }
        if grown || first {
            return None;
        }
        let m = self.d_residuals.len() + 1;
        self.d_residuals.push(d_residual);
        self.d_fs.push(d_f);
        self.gram.push(sums[1..=m].to_vec());

        let mut gram = self.gram.clone();
        // Differences become parallel near the end; a little on the diagonal keeps γ small then.
        let ridge = 1e-10 * (0..m).map(|i| gram[i][i]).sum::<f64>();
        gram.iter_mut().enumerate().for_each(|(i, row)| row[i] += ridge);
        solve(gram, sums[1 + m..].to_vec())
    }
}

/// A part of the newest iterate.
struct Newest<'a, S> {
    x: &'a [S],
    f: &'a [S],
    /// Of the last iterate, then of this one.
    residual: &'a mut [S],
    f_x: &'a mut [S],
    d_residual: &'a mut [S],
    d_f: &'a mut [S],
    /// Earlier differences of residuals.
    past: Vec<&'a [S]>,
    /// What this part adds to `‖r‖²`, to the newest row of `Rᵀ R` and to `Rᵀ r`.
    sums: Vec<f64>,
}

impl<S: Scalar> Newest<'_, S> {
    fn differ(&mut self) {
        dispatch(&mut *self);
        let (d, r) = (&*self.d_residual, &*self.residual);
        let with = |y: &[S]| -> Vec<f64> {
            self.past.iter().copied().chain([d]).map(|past| dot(past, y)).collect()
        };
        self.sums = [vec![dot(r, r)], with(d), with(r)].concat();
    }
}

/// The newest `r` and `f`, and their differences from the last.
impl<S: Scalar> Kernel for &mut Newest<'_, S> {
    type Output = ();
    #[inline(always)]
    fn run<A: Arithmetic>(self) {
        let last = self.residual.iter_mut().zip(self.f_x.iter_mut());
        let differences = self.d_residual.iter_mut().zip(self.d_f.iter_mut());
        for (((&x, &f), last), d) in self.x.iter().zip(self.f).zip(last).zip(differences) {
            let r = f - x;
            (*d.0, *d.1) = (r - *last.0, f - *last.1);
            (*last.0, *last.1) = (r, f);
        }
    }
}

/// A part of the next iterate: `x ← f − F γ`, or `x ← x + β (f − x)` without a past.
struct Step<'a, S> {
    x: &'a mut [S],
    f: &'a [S],
    beta: S,
    gamma: &'a [S],
    d_fs: Vec<&'a [S]>,
}

impl<S: Scalar> Kernel for Step<'_, S> {
    type Output = ();
    #[inline(always)]
    fn run<A: Arithmetic>(self) {
        let Self { x, f, beta, gamma, d_fs } = self;
        if gamma.is_empty() {
            return plain_step(x, f, beta);
        }
        x.copy_from_slice(f);
        for (&gamma, d) in gamma.iter().zip(d_fs) {
            x.iter_mut().zip(d).for_each(|(x, &d)| *x -= gamma * d);
        }
    }
}

/// `x ← x + β (f − x)`
#[inline(always)]
pub(super) fn plain_step<S: Scalar>(x: &mut [S], f: &[S], beta: S) {
    if beta >= S::ONE {
        x.copy_from_slice(f);
    } else {
        x.iter_mut().zip(f).for_each(|(x, &f)| *x += beta * (f - *x));
    }
}

/// The solution of a small symmetric positive definite system, by Cholesky's factors; none when the
/// matrix is not.
fn solve(mut a: Vec<Vec<f64>>, mut b: Vec<f64>) -> Option<Vec<f64>> {
    let n = b.len();
    for i in 0..n {
        for j in 0..=i {
            let sum = a[i][j] - (0..j).map(|k| a[i][k] * a[j][k]).sum::<f64>();
            if i == j {
                if sum.is_nan() || sum <= 0.0 {
                    return None;
                }
                a[i][i] = sum.sqrt();
            } else {
                a[i][j] = sum / a[j][j];
            }
        }
    }
    for i in 0..n {
        b[i] = (b[i] - (0..i).map(|k| a[i][k] * b[k]).sum::<f64>()) / a[i][i];
    }
    for i in (0..n).rev() {
        b[i] = (b[i] - (i + 1..n).map(|k| a[k][i] * b[k]).sum::<f64>()) / a[i][i];
    }
    b.iter().all(|x| x.is_finite()).then_some(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(anderson: &mut Anderson<f64>, x: &mut [f64], f: &[f64], largest: f64) {
        if anderson.is_plain(largest) {
            plain_step(x, f, 1.0);
        } else {
            anderson.advance(x, f, 1.0, &Chunks::even(f.len()));
        }
    }

    #[test]
    fn a_linear_iteration_is_solved_in_as_many_steps_as_it_has_dimensions() {
        // f(x) = A x + b, with a spectral radius of 0.99: plain iteration would take a thousand.
        let f = |x: &[f64]| vec![0.99 * x[0] + 0.3 * x[1] + 1.0, -0.5 * x[1] + 2.0];
        let mut x = vec![0.0, 0.0];
        let mut anderson = Anderson::new(5);
        for _ in 0..6 {
            let f_x = f(&x);
            let largest = (f_x[0] - x[0]).abs().max((f_x[1] - x[1]).abs());
            step(&mut anderson, &mut x, &f_x, largest);
        }
        let f_x = f(&x);
        let residual = (f_x[0] - x[0]).abs().max((f_x[1] - x[1]).abs());
        assert!(residual < 1e-6, "{x:?} leaves {residual:e}");
    }

    #[test]
    fn nothing_is_remembered_while_plain_steps_are_fast() {
        let mut x = vec![0.0];
        let mut anderson = Anderson::new(5);
        for _ in 0..20 {
            let f_x = vec![0.3 * x[0] + 1.0];
            let largest = (f_x[0] - x[0]).abs();
            step(&mut anderson, &mut x, &f_x, largest);
        }
        assert!(anderson.residual.is_empty() && (x[0] - 1.0 / 0.7).abs() < 1e-9, "{x:?}");
    }

    #[test]
    fn a_system_that_is_not_positive_definite_has_no_solution() {
        assert!(solve(vec![vec![0.0]], vec![1.0]).is_none());
        assert!(solve(vec![vec![1.0, 2.0], vec![2.0, 1.0]], vec![1.0, 1.0]).is_none());
        let x = solve(vec![vec![4.0, 2.0], vec![2.0, 3.0]], vec![2.0, 1.0]).unwrap();
        assert!((x[0] - 0.5).abs() < 1e-12 && x[1].abs() < 1e-12);
    }
}
