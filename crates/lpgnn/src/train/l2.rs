use crate::Scalar;
use crate::lagrangian::{Evaluation, Objective, Request, Variables};

/// An objective with `ρ_θ/2 Σ θ²` added to its loss.
pub(super) struct WithL2<'a, S: Scalar> {
    pub(super) of: &'a dyn Objective<S>,
    pub(super) l2: f64,
}

impl<S: Scalar> Objective<S> for WithL2<'_, S> {
    fn evaluate(
        &self,
        at: &Variables<S>,
        request: Request,
        gradient: &mut Variables<S>,
    ) -> Evaluation {
        let mut evaluation = self.of.evaluate(at, request, gradient);
        if self.l2 > 0.0 && request.loss {
            let squares: f64 = at.weights.iter().map(|w| w.f64() * w.f64()).sum();
            evaluation.loss += 0.5 * self.l2 * squares;
            if request.weights {
                let l2 = S::of(self.l2);
                for (d, &w) in gradient.weights.iter_mut().zip(&at.weights) {
                    *d += l2 * w;
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
        for l2 in [0.0, 0.3] {
            let penalized = WithL2 { of: &objective, l2 };
            let worst = check::gradients(&penalized, &at);
            assert!(worst < 1e-8, "{l2}: {worst:e}");
        }
    }
}
