use std::fmt::Write;

use anyhow::Context;
use lpgnn::evaluate::{BaselineScore, MeanAndStd, Protocol, best_mean_epoch};

use crate::summary::tell_value;
use crate::trial::Trial;

/// What became of a fold.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Fold {
    /// Of what kind it is, as in fold 3 or seed 7.
    kind: String,
    number: u64,
    /// Which of the configurations was chosen.
    candidate: usize,
    trial: Trial,
    baseline_epochs: Vec<usize>,
    baseline_test: Vec<f64>,
    /// The baseline at its best epoch on the inner split, or at its last one where there is none.
    baseline_value: Option<f64>,
    majority: Option<f64>,
}

impl Fold {
    pub(crate) fn new(
        (kind, number): (&str, u64),
        candidate: usize,
        trial: Trial,
        baseline: &[BaselineScore],
        majority: Option<f64>,
    ) -> Self {
        let mut chosen = baseline.last().filter(|score| score.val.is_none());
        for score in baseline {
            if score.val > chosen.and_then(|chosen| chosen.val) {
                chosen = Some(score);
            }
        }
        Self {
            kind: kind.to_owned(),
            number,
            candidate,
            trial,
            baseline_epochs: baseline.iter().map(|score| score.epoch).collect(),
            baseline_test: baseline.iter().map(|score| score.test).collect(),
            baseline_value: chosen.map(|chosen| chosen.test),
            majority,
        }
    }

    pub(crate) fn line(&self) -> String {
        let test = self.trial.test_value.map_or_else(|| "-".into(), tell_value);
        let diverged = if self.trial.diverged { "; it diverged" } else { "" };
        let Self { kind, number, .. } = self;
        format!("{kind} {number:>2}: test {test} after epoch {}{diverged}", self.trial.epoch)
    }
}

/// What became of all folds.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Report {
    data: String,
    pub(crate) protocol: Protocol,
    pub(crate) folds: usize,
    seed: u64,
    /// The epoch of all folds, where there is one.
    pub(crate) epoch: Option<usize>,
    pub(crate) test: MeanAndStd,
    values: Vec<f64>,
    pub(crate) baseline: MeanAndStd,
    pub(crate) majority: Option<MeanAndStd>,
    /// Folds that diverged, and graphs that did not converge over all folds.
    pub(crate) diverged: usize,
    pub(crate) not_converged: usize,
    /// Means over folds.
    pub(crate) residual: Option<f64>,
    pub(crate) cheating_gap: Option<f64>,
    /// Of all folds, one after the other.
    pub(crate) seconds: f64,
}

impl Report {
    pub(crate) fn new(
        data: &str,
        protocol: Protocol,
        seed: u64,
        folds: &[Fold],
    ) -> anyhow::Result<Self> {
        let nothing = "no fold was scored";
        let (epoch, values, baseline) = match protocol {
            Protocol::BestMeanEpoch => {
                let curves: Vec<Vec<f64>> = folds.iter().map(|f| f.trial.test.clone()).collect();
                let (place, values) = best_mean_epoch(&curves).context(nothing)?;
                let longest = folds.iter().max_by_key(|fold| fold.trial.epochs.len());
                let epoch = longest.and_then(|fold| fold.trial.epochs.get(place).copied());
                let curves: Vec<Vec<f64>> =
                    folds.iter().map(|fold| fold.baseline_test.clone()).collect();
                (epoch, values, best_mean_epoch(&curves).context(nothing)?.1)
            }
            Protocol::Nested | Protocol::Split => {
                let values = folds.iter().filter_map(|fold| fold.trial.test_value).collect();
                let baseline = folds.iter().filter_map(|fold| fold.baseline_value).collect();
                (None, values, baseline)
            }
        };
        let majority: Vec<f64> = folds.iter().filter_map(|fold| fold.majority).collect();
        Ok(Self {
            data: data.to_owned(),
            protocol,
            folds: folds.len(),
            seed,
            epoch,
            test: MeanAndStd::of(&values).context(nothing)?,
            values,
            baseline: MeanAndStd::of(&baseline).context(nothing)?,
            majority: MeanAndStd::of(&majority),
            diverged: folds.iter().filter(|fold| fold.trial.diverged).count(),
            not_converged: folds.iter().map(|fold| fold.trial.not_converged).sum(),
            residual: mean(folds.iter().filter_map(|fold| fold.trial.residual)),
            cheating_gap: mean(folds.iter().filter_map(|fold| fold.trial.cheating_gap)),
            seconds: folds.iter().map(|fold| fold.trial.seconds).sum(),
        })
    }

    pub(crate) fn text(&self) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        let Self { data, protocol, folds, seed, .. } = self;
        writeln!(text, "{data}, {folds} folds, protocol {protocol}, seed {seed}")?;
        let epoch =
            self.epoch.map_or(String::new(), |epoch| format!("  epoch {epoch} of the mean curve"));
        writeln!(text, "  LP-GNN                {}{epoch}", range(self.test))?;
        writeln!(text, "  without structure     {}", range(self.baseline))?;
        if let Some(majority) = self.majority {
            writeln!(text, "  most frequent class   {}", range(majority))?;
        }
        if self.diverged > 0 {
            writeln!(text, "  diverged              {} folds", self.diverged)?;
        }
        if self.not_converged > 0 {
            writeln!(
                text,
                "  not converged           {} graphs over all folds",
                self.not_converged
            )?;
        }
        Ok(text)
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    MeanAndStd::of(&values.collect::<Vec<_>>()).map(|values| values.mean)
}

fn range(values: MeanAndStd) -> String {
    if values.mean < 0.0 {
        // Minus a loss.
        return format!("loss {:.4} ± {:.4}", -values.mean, values.std);
    }
    format!("{:>5.1} ± {:>4.1} %", 100.0 * values.mean, 100.0 * values.std)
}
