use std::ops::Range;

use crate::constraint::Constraint;
use crate::numeric::{Arithmetic, Kernel, LANES, Lanes, Scratch, dispatch, worse};
use crate::transition::{NodeRows, Tally, Upstream, for_each_group, split_rows};
use crate::{Matrix, Scalar};

/// The constraint term of one layer, and what reaches the layer from the output.
///
/// ```text
/// T = c Σ_v (λ_v · G(a_v) + ρ/2 ‖a_v‖²)        a = x − f_a
/// ∂T/∂x = c (λ G'(a) + ρ a) = −∂T/∂f_a          ∂T/∂λ = c G(a)
/// ```
pub(super) struct ConstraintTerm<'a, S: Scalar> {
    pub(super) states: &'a Matrix<S>,
    pub(super) multipliers: &'a Matrix<S>,
    pub(super) constraint: &'a dyn Constraint<S>,
    /// `c`: one for a sum, less for a mean.
    pub(super) factor: S,
    /// `ρ`
    pub(super) damping: S,
    /// `∂ loss/∂x`, where the output reads states.
    pub(super) d_state: Option<&'a Matrix<S>>,
    /// `∂ loss/∂f_a`, where it reads their image.
    pub(super) d_image: Option<&'a Matrix<S>>,
    pub(super) scratch: &'a Scratch<S>,
}

impl<S: Scalar> ConstraintTerm<'_, S> {
    /// The tally and `∂T/∂Λ` alone; `spare` is overwritten.
    pub(super) fn residual(
        &self,
        groups: &[Range<usize>],
        image: &Matrix<S>,
        spare: &mut Matrix<S>,
        d_multipliers: &mut Matrix<S>,
    ) -> Tally {
        let (width, multiplier) = (image.cols(), d_multipliers.cols());
        let mut d_image = self.scratch.take(image.as_slice().len());
        let rows = split_rows(&mut d_image, width, groups)
            .into_iter()
            .zip(split_rows(spare.as_mut_slice(), width, groups))
            .zip(split_rows(d_multipliers.as_mut_slice(), multiplier, groups));
        let mut work: Vec<_> =
            groups.iter().zip(rows).map(|work| (work, Tally::default())).collect();
        for_each_group(&mut work, |((nodes, ((d_image, d_states), d_multipliers)), tally)| {
            let rows = NodeRows { d_image, d_states, d_multipliers };
            *tally = self.upstream((*nodes).clone(), Self::rows(image, nodes), rows);
        });
        work.iter().fold(Tally::default(), |all, (_, tally)| all.and(*tally))
    }

    fn rows<'m>(matrix: &'m Matrix<S>, nodes: &Range<usize>) -> &'m [S] {
        &matrix.as_slice()[nodes.start * matrix.cols()..nodes.end * matrix.cols()]
    }
}

impl<S: Scalar> Upstream<S> for ConstraintTerm<'_, S> {
    fn upstream(&self, nodes: Range<usize>, image: &[S], rows: NodeRows<'_, S>) -> Tally {
        let width = self.states.cols();
        if width == 0 {
            return Tally::default();
        }
        let NodeRows { d_image, d_states, d_multipliers } = rows;
        // d_image holds a, d_states holds G'(a), until they get their own values.
        for ((a, &x), &f) in d_image.iter_mut().zip(Self::rows(self.states, &nodes)).zip(image) {
            *a = x - f;
        }
        // G(a) becomes ∂T/∂λ where every component has a multiplier.
        let per_component = self.multipliers.cols() == width;
        let mut values = self.scratch.take(if per_component { 0 } else { d_image.len() });
        let g: &mut [S] = if per_component { &mut *d_multipliers } else { &mut values };
        self.constraint.evaluate(d_image, g, d_states);
        let g = if per_component { None } else { Some(&values[..]) };
        dispatch(Derive {
            width,
            factor: self.factor,
            damping: self.damping,
            lambda: Self::rows(self.multipliers, &nodes),
            d_image,
            d_states,
            d_multipliers,
            g,
            loss_states: self.d_state.map_or(&[], |d| Self::rows(d, &nodes)),
            loss_image: self.d_image.map_or(&[], |d| Self::rows(d, &nodes)),
        })
    }
}

/// From `a`, `G(a)` and `G'(a)` of some nodes to the derivatives of `T` and of the loss.
struct Derive<'a, S> {
    width: usize,
    factor: S,
    damping: S,
    lambda: &'a [S],
    /// `a`, then the derivative in `f_a`.
    d_image: &'a mut [S],
    /// `G'(a)`, then the derivative in `x`.
    d_states: &'a mut [S],
    /// `G(a)` where every component has a multiplier, then the derivative in `λ`.
    d_multipliers: &'a mut [S],
    /// `G(a)` where a node has one multiplier.
    g: Option<&'a [S]>,
    /// `∂ loss/∂x` and `∂ loss/∂f_a`, empty where the output does not read them.
    loss_states: &'a [S],
    loss_image: &'a [S],
}

impl<S: Scalar> Kernel for Derive<'_, S> {
    type Output = Tally;

    #[inline(always)]
    fn run<A: Arithmetic>(self) -> Tally {
        let splat = A::Lanes::<S>::splat;
        let (zero, c, rho) = (splat(S::ZERO), splat(self.factor), splat(self.damping));
        let half_rho = splat(S::of(0.5)).mul(rho);
        let (mut tally, mut max) = (Tally::default(), zero);
        let rows = self.d_image.chunks_exact_mut(self.width);
        for (v, (a, slope)) in rows.zip(self.d_states.chunks_exact_mut(self.width)).enumerate() {
            let (mut value, mut sizes, mut gs) = (zero, zero, zero);
            for i in (0..self.width).step_by(LANES) {
                let at = v * self.width + i;
                let end = (v + 1) * self.width;
                let residual: A::Lanes<S> = load(&a[i..]);
                let (lambda, g) = if let Some(g) = self.g {
                    (splat(self.lambda[v]), load(&g[at..end]))
                } else {
                    (load(&self.lambda[at..end]), load(&self.d_multipliers[at..end]))
                };
                value = value.add(lambda.mul(g)).add(half_rho.mul(residual).mul(residual));
                let size = residual.max(zero.sub(residual));
                sizes = sizes.add(size);
                max = max.max(size);
                gs = gs.add(g);
                if self.g.is_none() {
                    store(c.mul(g), &mut self.d_multipliers[at..end]);
                }
                let d = lambda.mul_add(load(&slope[i..]), rho.mul(residual)).mul(c);
                store(plus(d, self.loss_states, at, end), &mut slope[i..]);
                store(plus(zero.sub(d), self.loss_image, at, end), &mut a[i..]);
            }
            if self.g.is_some() {
                self.d_multipliers[v] = self.factor * total(gs);
            }
            tally.constraint += (self.factor * total(value)).f64();
            tally.residual_sum += total(sizes).f64();
        }
        // A maximum forgets what is not a number, a sum does not.
        let max = each(max).into_iter().fold(S::ZERO, worse).f64();
        tally.residual_max = if tally.residual_sum.is_nan() { f64::NAN } else { max };
        tally
    }
}

/// The first eight of some numbers, or all of them and zeros.
#[inline(always)]
fn load<S: Scalar, L: Lanes<S>>(x: &[S]) -> L {
    x.first_chunk().map_or_else(|| L::load_some(x), L::load)
}

/// The opposite.
#[inline(always)]
fn store<S: Scalar, L: Lanes<S>>(x: L, to: &mut [S]) {
    if let Some(eight) = to.first_chunk_mut() {
        x.store(eight);
    } else {
        x.store_some(to);
    }
}

/// `d + loss[at..end]`, where no loss is zero.
#[inline(always)]
fn plus<S: Scalar, L: Lanes<S>>(d: L, loss: &[S], at: usize, end: usize) -> L {
    if loss.is_empty() { d } else { d.add(load(&loss[at..end])) }
}

#[inline(always)]
fn each<S: Scalar, L: Lanes<S>>(x: L) -> [S; LANES] {
    let mut each = [S::ZERO; LANES];
    x.store(&mut each);
    each
}

#[inline(always)]
fn total<S: Scalar, L: Lanes<S>>(x: L) -> S {
    let [a, b, c, d, e, f, g, h] = each(x);
    ((a + e) + (b + f)) + ((c + g) + (d + h))
}
