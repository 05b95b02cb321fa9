use crate::Scalar;
use crate::lagrangian::{Evaluation, Objective, Variables, Want};

/// An objective with `ρ_θ/2 Σ θ²` added to its loss.
pub(super) struct Penalized<'a, S: Scalar> {
    pub(super) of: &'a dyn Objective<S>,
    pub(super) penalty: f64,
}

impl<S: Scalar> Objective<S> for Penalized<'_, S> {
    fn evaluate(&self, at: &Variables<S>, want: Want, gradient: &mut Variables<S>) -> Evaluation {
        let mut evaluation = self.of.evaluate(at, want, gradient);
        if self.penalty > 0.0 && want.loss {
            let squares: f64 = at.weights.iter().map(|w| w.f64() * w.f64()).sum();
            evaluation.loss += 0.5 * self.penalty * squares;
            if want.weights {
                let penalty = S::of(self.penalty);
                for (d, &w) in gradient.weights.iter_mut().zip(&at.weights) {
                    *d += penalty * w;
                }
            }
        }
        evaluation
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{self, Quadratic};

    #[test]
    fn its_gradient_is_its_slope() {
        let objective = Quadratic::random(4, 7);
        let at = objective.start();
        for penalty in [0.0, 0.3] {
            let penalized = Penalized { of: &objective, penalty };
            let worst = check::gradients(&penalized, &at);
            assert!(worst < 1e-8, "{penalty}: {worst:e}");
        }
    }
}
