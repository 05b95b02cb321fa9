use std::collections::BTreeMap;

use super::finite;
use crate::experiment::run::EpochMetrics;

/// The epochs of a run, column by column.
#[derive(Debug, Default, serde::Serialize)]
pub(super) struct History {
    epoch: Vec<usize>,
    loss: Column,
    residual_mean: Column,
    residual_p50: Column,
    residual_p95: Column,
    residual_max: Column,
    state_mean: Column,
    multiplier_mean: Column,
    largest_multiplier: Column,
    gradient_weights: Column,
    gradient_states: Column,
    gradient_multipliers: Column,
    spectral_radius: Column,
    cheating_gap: Column,
    not_converged: Column,
    lr: Column,
    seconds: Column,
    splits: BTreeMap<&'static str, SplitHistory>,
}

/// One number per epoch, where there is one.
type Column = Vec<Option<f64>>;

#[derive(Debug, Default, serde::Serialize)]
struct SplitHistory {
    accuracy: Column,
    loss: Column,
}

/// Epochs at most; of more, every so many-th is shown, and all that were evaluated.
const MOST: usize = 2000;

impl History {
    pub(super) fn new(epochs: &[EpochMetrics]) -> Self {
        let step = epochs.len().div_ceil(MOST).max(1);
        let mut history = Self::default();
        let shown = |(i, epoch): &(usize, &EpochMetrics)| {
            i % step == 0
                || (epoch.report.evaluation.is_some() && step < 10)
                || i + 1 == epochs.len()
        };
        epochs.iter().enumerate().filter(shown).for_each(|(_, epoch)| history.push(epoch));
        history
    }

    fn push(&mut self, metrics: &EpochMetrics) {
        let report = &metrics.report;
        self.epoch.push(report.epoch);
        self.loss.push(finite(report.loss));
        self.residual_mean.push(finite(report.residual_mean));
        self.residual_max.push(finite(report.residual_max));
        let residuals = report.constraints.as_ref().and_then(|of| of.residuals.as_ref());
        self.residual_p50.push(residuals.and_then(|of| finite(of.p50)));
        self.residual_p95.push(residuals.and_then(|of| finite(of.p95)));
        self.state_mean.push(finite(report.state_mean));
        self.multiplier_mean.push(finite(report.multiplier_mean));
        self.largest_multiplier.push(finite(report.largest_multiplier));
        let [weights, states, multipliers] = report.gradient_norms;
        self.gradient_weights.push(finite(weights));
        self.gradient_states.push(finite(states));
        self.gradient_multipliers.push(finite(multipliers));
        self.lr.push(report.lr);
        self.seconds.push(finite(metrics.seconds));
        let evaluation = report.evaluation.as_ref();
        self.spectral_radius.push(evaluation.and_then(|of| of.spectral_radius));
        self.cheating_gap.push(evaluation.and_then(|of| of.cheating_gap));
        self.not_converged.push(evaluation.map(|of| of.not_converged as f64));
        for (name, metrics) in evaluation.map_or(&[][..], |of| &of.parts) {
            let of = self.splits.entry(name.as_str()).or_default();
            // Empty for the epochs before that were not evaluated.
            of.accuracy.resize(self.epoch.len() - 1, None);
            of.loss.resize(self.epoch.len() - 1, None);
            of.accuracy.push(metrics.accuracy);
            of.loss.push(finite(metrics.loss));
        }
    }
}
