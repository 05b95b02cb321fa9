use super::FoldRecord;
use crate::Error;
use crate::evaluate::{MeanAndStd, Protocol, best_mean_epoch};
use crate::experiment::trial::alone;
use crate::train::Monitor;

/// The result of a cross-validation.
///
/// Values are those of the metric: accuracies, or negative losses if targets are real, unless training monitors another one.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct CrossvalReport {
    /// The name of the data.
    pub data: String,
    /// The evaluation protocol.
    pub protocol: Protocol,
    /// The metric of all values; `auto` for accuracies and negative losses.
    #[serde(default)]
    pub metric: Monitor,
    /// Number of folds.
    pub folds: usize,
    /// How many models made the predictions of a fold together; 1 if there are no ensembles.
    #[serde(default = "alone")]
    pub ensemble: usize,
    /// The random seed.
    pub seed: u64,
    /// The epoch selected for all folds, if the protocol does so.
    pub epoch: Option<usize>,
    /// Mean and standard deviation on the test splits.
    pub test: MeanAndStd,
    /// The values of the folds, in order.
    #[serde(with = "crate::nan::numbers")]
    pub values: Vec<f64>,
    /// The baseline, a network without edges.
    pub baseline: MeanAndStd,
    /// The majority class, where values are accuracies.
    pub majority: Option<MeanAndStd>,
    /// Folds that diverged.
    pub diverged: usize,
    /// Graphs that did not converge, over all folds.
    pub not_converged: usize,
    /// The mean residual of the last epoch, over folds.
    #[serde(default, with = "crate::nan::optional")]
    pub residual: Option<f64>,
    /// How far the states that the values were read from are from their fixed point at most, in any fold: the largest over
    /// graphs that have a bound; none where no graph has.
    #[serde(default)]
    pub distance: Option<f64>,
    /// The graphs that have no such bound, over all folds.
    #[serde(default)]
    pub unbounded: usize,
    /// The mean cheating gap over folds.
    #[serde(default, with = "crate::nan::optional")]
    pub cheating_gap: Option<f64>,
    /// Seconds that all folds took together.
    pub seconds: f64,
}

impl CrossvalReport {
    /// The report on these folds.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`] when none of them was evaluated.
    pub fn new(
        data: &str,
        protocol: Protocol,
        seed: u64,
        folds: &[FoldRecord],
    ) -> Result<Self, Error> {
        let nothing = || Error::Mismatch("no fold was evaluated".into());
        let (epoch, values, baseline) = match protocol {
            Protocol::BestMeanEpoch => {
                let curves: Vec<Vec<f64>> = folds.iter().map(|f| f.trial.test.clone()).collect();
                let (place, values) = best_mean_epoch(&curves).ok_or_else(nothing)?;
                let longest = folds.iter().max_by_key(|fold| fold.trial.epochs.len());
                let epoch = longest.and_then(|fold| fold.trial.epochs.get(place).copied());
                let curves: Vec<Vec<f64>> =
                    folds.iter().map(|fold| fold.baseline_test.clone()).collect();
                (epoch, values, best_mean_epoch(&curves).ok_or_else(nothing)?.1)
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
            metric: folds.first().map_or(Monitor::Auto, |fold| fold.trial.metric),
            folds: folds.len(),
            ensemble: folds.first().map_or(1, |fold| fold.trial.ensemble),
            seed,
            epoch,
            test: MeanAndStd::of(&values).ok_or_else(nothing)?,
            values,
            baseline: MeanAndStd::of(&baseline).ok_or_else(nothing)?,
            majority: MeanAndStd::of(&majority),
            diverged: folds.iter().filter(|fold| fold.trial.diverged()).count(),
            not_converged: folds.iter().map(|fold| fold.trial.not_converged).sum(),
            residual: mean(folds.iter().filter_map(|fold| fold.trial.residual)),
            distance: folds.iter().filter_map(|fold| fold.trial.distance).reduce(f64::max),
            unbounded: folds.iter().map(|fold| fold.trial.unbounded).sum(),
            cheating_gap: mean(folds.iter().filter_map(|fold| fold.trial.cheating_gap)),
            seconds: folds.iter().map(|fold| fold.trial.seconds).sum(),
        })
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    MeanAndStd::of(&values.collect::<Vec<_>>()).map(|values| values.mean)
}
