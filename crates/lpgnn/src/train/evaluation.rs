//! Evaluation on converged states.

use super::{ModelEvaluation, SplitMetrics, SplitName, Trainer};
use crate::Scalar;
use crate::inference::{FixedPoint, predict, spectral_radius};
use crate::lagrangian::Variables;

/// Power iterations for the reported spectral radius.
const RADIUS_ITERATIONS: usize = 20;

impl<S: Scalar> Trainer<'_, S> {
    /// Evaluates the current weights on states converged from zero.
    pub fn evaluate(&self) -> ModelEvaluation {
        self.evaluate_observed(&mut |_, _| ())
    }

    /// The same; `tell` is called when a part begins, with its number and that of the last.
    pub(super) fn evaluate_observed(&self, tell: &mut dyn FnMut(usize, usize)) -> ModelEvaluation {
        let Variables { weights, states: trained, .. } = &self.state.variables;
        let (parts, converged) = self.evaluate_from(0, tell);
        // The same weights on the trained states, without dropout.
        let graphs = self.data.training_graphs();
        let along = predict(self.model, weights, graphs, trained, &self.scratch);
        let (right, all) = self.data.scored[0].2.correct(&along);
        let fresh = parts[0].1.accuracy;
        ModelEvaluation {
            cheating_gap: fresh.filter(|_| all > 0).map(|fresh| right as f64 / all as f64 - fresh),
            parts,
            not_converged: converged.iter().map(FixedPoint::failures).sum(),
            spectral_radius: spectral_radius(
                self.model,
                weights,
                graphs,
                &converged[0].states,
                RADIUS_ITERATIONS,
                &self.scratch,
            ),
        }
    }

    /// Evaluates only the splits that are not trained on.
    pub(super) fn evaluate_held_out(&self, tell: &mut dyn FnMut(usize, usize)) -> ModelEvaluation {
        let (parts, converged) = self.evaluate_from(1, tell);
        ModelEvaluation {
            parts,
            not_converged: converged.iter().map(FixedPoint::failures).sum(),
            spectral_radius: f64::NAN,
            cheating_gap: None,
        }
    }

    /// Evaluates the splits whose graphs come at `first` or later, and returns their states too.
    fn evaluate_from(
        &self,
        first: usize,
        tell: &mut dyn FnMut(usize, usize),
    ) -> (Vec<(SplitName, SplitMetrics)>, Vec<FixedPoint<S>>) {
        let (weights, inference) = (&self.state.variables.weights, &self.plan.config().inference);
        let batches = &self.data.batches[first..];
        let (converged, outputs): (Vec<_>, Vec<_>) = (1..)
            .zip(batches)
            .map(|(number, batch)| {
                tell(number, batches.len());
                let converged = inference.states(self.model, weights, batch, &self.scratch);
                let outputs = predict(self.model, weights, batch, &converged.states, &self.scratch);
                (converged, outputs)
            })
            .unzip();
        let scored = self.data.scored.iter().filter(|(_, batch, _)| *batch >= first);
        let parts = scored.map(|(name, batch, supervision)| {
            let outputs = &outputs[batch - first];
            let (right, all) = supervision.correct(outputs);
            let accuracy = (all > 0).then(|| right as f64 / all as f64);
            let monitor = Some(self.plan.config().monitor).filter(|_| *name == SplitName::Val);
            let monitored = monitor.and_then(|monitor| monitor.of(supervision, outputs));
            (*name, SplitMetrics { loss: supervision.mean_loss(outputs), accuracy, monitored })
        });
        (parts.collect(), converged)
    }
}
