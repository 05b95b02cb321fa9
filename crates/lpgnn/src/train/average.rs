//! The running average of the weights, which is evaluated and saved in their place.

use std::borrow::Cow;

use super::Trainer;
use super::update::contract;
use crate::Scalar;
use crate::saddle::Slots;

/// What the slots are called.
const AVERAGE: &str = "weights.average";
const UPDATES: &str = "weights.average.updates";

impl<S: Scalar> Trainer<'_, S> {
    /// After update `t`, with a half-life of `h`:
    ///
    /// ```text
    /// θ̄ ← θ̄ + ρ (θ − θ̄)        ρ = max(1/t, 1 − 2^(−1/h))
    /// ```
    ///
    /// the mean of all weights at first (Polyak and Ruppert), an exponential average later.
    pub(super) fn average_weights(&mut self) {
        let Some(half_life) = self.plan.config().average_half_life else { return };
        let weights = &self.state.variables.weights;
        let slots: &mut Slots<S> = &mut self.state.optimizer.slots;
        let updates = slots.counter(UPDATES);
        *updates += 1;
        let rate = (1.0 / *updates as f64).max(1.0 - (-1.0 / half_life).exp2());
        let [average] = slots.weights([AVERAGE], weights.len());
        for (average, &weight) in average.iter_mut().zip(weights) {
            *average += S::of(rate) * (weight - *average);
        }
    }

    /// The weights that are evaluated and saved.
    ///
    /// An average of weights within a Lipschitz bound need not be within it, where the bound is a product of norms: it is
    /// scaled down as they are.
    pub(super) fn kept_weights(&self) -> Cow<'_, [S]> {
        let weights = &self.state.variables.weights;
        let Some(average) = self.state.optimizer.slots.find_weights(AVERAGE) else {
            return Cow::Borrowed(weights);
        };
        if average.iter().any(|w| !w.f64().is_finite()) {
            // It was diverging; these are those before.
            return Cow::Borrowed(weights);
        }
        let mut kept = average.to_vec();
        if let Some(bound) = self.plan.config().lipschitz {
            let mut norms = self.state.norms.clone();
            contract(self.model, &mut kept, self.degrees, bound, &mut norms)
                .expect("the transitions kept a bound when training started");
        }
        Cow::Owned(kept)
    }
}
