use std::ops::Range;

use crate::Scalar;
use crate::lagrangian::{Evaluation, Objective, Request, Variables};
use crate::parameters::others;

/// An objective with `ρ_θ/2 Σ θ²` added to its loss.
pub(super) struct WithL2<'a, S: Scalar> {
    pub(super) of: &'a dyn Objective<S>,
    pub(super) l2: f64,
    /// Where the weights are that do not count.
    pub(super) except: &'a [Range<usize>],
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
            let counted = || others(at.weights.len(), self.except);
            let weights = counted().flat_map(|range| &at.weights[range]);
            let squares: f64 = weights.map(|w| w.f64() * w.f64()).sum();
            evaluation.loss += 0.5 * self.l2 * squares;
            if request.weights {
                let l2 = S::of(self.l2);
                for range in counted() {
                    let d = &mut gradient.weights[range.clone()];
                    d.iter_mut().zip(&at.weights[range]).for_each(|(d, &w)| *d += l2 * w);
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
        for (l2, except) in [(0.0, vec![]), (0.3, vec![]), (0.3, std::iter::once(1..2).collect())] {
            let penalized = WithL2 { of: &objective, l2, except: &except };
            let worst = check::gradients(&penalized, &at);
            assert!(worst < 1e-8, "{l2} {except:?}: {worst:e}");
        }
    }
}
