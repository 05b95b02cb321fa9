//! Anderson acceleration: the next state from a combination of the last few, chosen so that their
//! residuals cancel as far as they can.

use crate::Scalar;

/// The last iterates of one graph.
#[derive(Clone, Debug)]
pub(super) struct Anderson<S> {
    window: usize,
    /// Differences of consecutive residuals `r = f − x` and of images `f`, newest last.
    d_residuals: Vec<Vec<S>>,
    d_images: Vec<Vec<S>>,
    last: Option<(Vec<S>, Vec<S>)>,
    best: f64,
}

/// How much larger than the best one a residual may grow before the past is forgotten.
const PATIENCE: f64 = 2.0;

impl<S: Scalar> Anderson<S> {
    /// No iterates yet; at most `window` are combined.
    pub(super) fn new(window: usize) -> Self {
        let (d_residuals, d_images) = (vec![], vec![]);
        Self { window, d_residuals, d_images, last: None, best: f64::INFINITY }
    }

    /// Replaces `x` by the next iterate, given `f = f_a(x)`; `beta` damps a step without a past.
    ///
    /// With `R` and `F` the differences in the window and `r = f − x`:
    /// `x ← f − F γ`, where `γ` minimises `‖r − R γ‖`.
    pub(super) fn advance(&mut self, x: &mut [S], f: &[S], beta: S) {
        let residual: Vec<S> = f.iter().zip(x.iter()).map(|(&f, &x)| f - x).collect();
        let length = crate::lagrangian::length(&residual);
        if length > PATIENCE * self.best {
            self.d_residuals.clear();
            self.d_images.clear();
            self.last = None;
        }
        self.best = self.best.min(length);
        if let Some((last_residual, last_image)) = self.last.take() {
            self.d_residuals.push(difference(&residual, &last_residual));
            self.d_images.push(difference(f, &last_image));
            if self.d_residuals.len() > self.window {
                self.d_residuals.remove(0);
                self.d_images.remove(0);
            }
        }
        match self.combination(&residual) {
            Some(gamma) => {
                x.copy_from_slice(f);
                for (gamma, d_image) in gamma.iter().zip(&self.d_images) {
                    let gamma = S::of(*gamma);
                    for (x, &d) in x.iter_mut().zip(d_image) {
                        *x -= gamma * d;
                    }
                }
            }
            None => {
                for (x, &r) in x.iter_mut().zip(&residual) {
                    *x += beta * r;
                }
            }
        }
        if self.window > 0 {
            self.last = Some((residual, f.to_vec()));
        }
    }

    /// The `γ` that minimises `‖r − R γ‖`, by the normal equations; none without a usable past.
    fn combination(&self, residual: &[S]) -> Option<Vec<f64>> {
        let m = self.d_residuals.len();
        if m == 0 {
            return None;
        }
        let dot = |a: &[S], b: &[S]| a.iter().zip(b).map(|(a, b)| a.f64() * b.f64()).sum::<f64>();
        let mut gram = vec![vec![0.0; m]; m];
        for i in 0..m {
            for j in 0..=i {
                gram[i][j] = dot(&self.d_residuals[i], &self.d_residuals[j]);
                gram[j][i] = gram[i][j];
            }
        }
        // Differences become parallel near the end; a little on the diagonal keeps γ small then.
        let ridge = 1e-10 * (0..m).map(|i| gram[i][i]).sum::<f64>();
        for (i, row) in gram.iter_mut().enumerate() {
            row[i] += ridge;
        }
        let right = self.d_residuals.iter().map(|d| dot(d, residual)).collect();
        solve(gram, right)
    }
}

fn difference<S: Scalar>(a: &[S], b: &[S]) -> Vec<S> {
    a.iter().zip(b).map(|(&a, &b)| a - b).collect()
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

    #[test]
    fn a_linear_iteration_is_solved_in_as_many_steps_as_it_has_dimensions() {
        // f(x) = A x + b, with a spectral radius of 0.99: plain iteration would take a thousand.
        let f = |x: &[f64]| vec![0.99 * x[0] + 0.3 * x[1] + 1.0, -0.5 * x[1] + 2.0];
        let mut x = vec![0.0, 0.0];
        let mut anderson = Anderson::new(5);
        for _ in 0..6 {
            let image = f(&x);
            anderson.advance(&mut x, &image, 1.0);
        }
        let image = f(&x);
        let residual = (image[0] - x[0]).abs().max((image[1] - x[1]).abs());
        assert!(residual < 1e-6, "{x:?} leaves {residual:e}");
    }

    #[test]
    fn a_system_that_is_not_positive_definite_has_no_solution() {
        assert!(solve(vec![vec![0.0]], vec![1.0]).is_none());
        assert!(solve(vec![vec![1.0, 2.0], vec![2.0, 1.0]], vec![1.0, 1.0]).is_none());
        let x = solve(vec![vec![4.0, 2.0], vec![2.0, 3.0]], vec![2.0, 1.0]).unwrap();
        assert!((x[0] - 0.5).abs() < 1e-12 && x[1].abs() < 1e-12);
    }
}
