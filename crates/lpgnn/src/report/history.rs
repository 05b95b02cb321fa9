use std::collections::BTreeMap;

use super::finite;
use crate::experiment::run::EpochMetrics;

/// The epochs of a run, column by column.
#[derive(Clone, Debug, Default, serde::Serialize)]
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

#[derive(Clone, Debug, Default, serde::Serialize)]
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

    /// Number of epochs.
    pub(super) fn len(&self) -> usize {
        self.epoch.len()
    }

    /// Without the first ones.
    pub(super) fn tail(&self, from: usize) -> Self {
        let mut tail = self.clone();
        tail.retain(|row| row >= from);
        tail
    }

    /// Leaves out every other epoch if there are twice as many as are shown, but none that was evaluated; whether it did.
    pub(super) fn thin(&mut self) -> bool {
        let full = self.len() >= 2 * MOST;
        if full {
            let evaluated: Vec<bool> = self.not_converged.iter().map(Option::is_some).collect();
            // Unless all were: then there is no end to them.
            let all = evaluated.iter().filter(|&&yes| yes).count() > MOST / 2;
            self.retain(|row| row % 2 == 1 || (evaluated[row] && !all));
        }
        full
    }

    /// Keeps some rows.
    fn retain(&mut self, keep: impl Fn(usize) -> bool) {
        fn filter<T>(column: &mut Vec<T>, keep: &impl Fn(usize) -> bool) {
            let mut row = 0..;
            column.retain(|_| row.next().is_some_and(keep));
        }
        filter(&mut self.epoch, &keep);
        self.columns().into_iter().for_each(|column| filter(column, &keep));
    }

    fn columns(&mut self) -> Vec<&mut Column> {
        let mut all = vec![
            &mut self.loss,
            &mut self.residual_mean,
            &mut self.residual_p50,
            &mut self.residual_p95,
            &mut self.residual_max,
            &mut self.state_mean,
            &mut self.multiplier_mean,
            &mut self.largest_multiplier,
            &mut self.gradient_weights,
            &mut self.gradient_states,
            &mut self.gradient_multipliers,
            &mut self.spectral_radius,
            &mut self.cheating_gap,
            &mut self.not_converged,
            &mut self.lr,
            &mut self.seconds,
        ];
        let splits = self.splits.values_mut();
        all.extend(splits.flat_map(|split| [&mut split.accuracy, &mut split.loss]));
        all
    }

    pub(super) fn push(&mut self, metrics: &EpochMetrics) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_history_is_thinned_and_keeps_what_was_evaluated() {
        let mut history = History::default();
        for epoch in 1..=2 * MOST {
            history.epoch.push(epoch);
            let evaluated = (epoch % 100 == 1).then_some(0.0);
            for column in history.columns() {
                column.push(evaluated);
            }
        }
        assert!(history.thin() && !history.thin());
        assert!(history.len() < MOST + 50);
        assert!([1, 101, 3901, 4000].iter().all(|epoch| history.epoch.contains(epoch)));
        let rows = history.len();
        assert!(history.columns().iter().all(|column| column.len() == rows));
        assert_eq!(history.tail(rows - 2).epoch, history.epoch[rows - 2..]);
    }
}
