//! Run records: everything a report needs, without computing anything again.

mod components;
mod evaluation;
mod findings;
mod items;
mod quantiles;

pub use evaluation::{FinalEvaluation, GraphConvergence, SplitEvaluation};
pub use findings::Finding;
pub use items::Items;
pub use quantiles::Quantiles;

use std::collections::BTreeMap;

use super::majority::majority_accuracy;
use super::run::EpochMetrics;
use super::{Machine, Versions, today};
use crate::data::Dataset;
use crate::evaluate::BaselineReport;
use crate::graph::Level;
use crate::run::{DataOrigin, RunConfig, SavedModel, Setup};
use crate::train::{ConstraintReport, EpochReport, ModelEvaluation, StopReason, Trained};
use crate::{Error, Matrix};

/// The record of a run, `record.json`. Numbers that are not finite are `null` there, and NaN when read.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct RunRecord {
    /// The software that computed it.
    pub versions: Versions,
    /// The machine that computed it.
    pub machine: Machine,
    /// The date on which it finished, in UTC, as in 2024-02-29.
    pub date: String,
    /// The training data.
    pub data: DataOrigin,
    /// Whose targets are predicted.
    pub task: Level,
    /// Names of the classes, where classes are predicted.
    pub classes: Option<Vec<String>>,
    /// Names of the values, where values are predicted.
    pub value_names: Vec<String>,
    /// Every setting, as used.
    pub config: RunConfig,
    /// The settings that differ from the defaults for these data.
    pub changed: Vec<ChangedSetting>,
    /// The random seed.
    pub seed: u64,
    /// Number of weights of the model.
    pub weights: usize,
    /// Why training stopped.
    pub stop_reason: StopReason,
    /// Number of completed epochs.
    pub epochs: usize,
    /// The epoch of the weights.
    pub best_epoch: usize,
    /// How long training took, in seconds.
    #[serde(deserialize_with = "crate::nan::number")]
    pub seconds: f64,
    /// Seconds per epoch; `metrics.jsonl` has those of every epoch.
    pub epoch_seconds: Option<Quantiles>,
    /// The last epoch; none if no epoch was completed.
    pub last_epoch: Option<EpochReport>,
    /// How many training nodes and graphs met the constraints in the last epoch that was evaluated.
    pub constraints: Option<ConstraintReport>,
    /// The evaluation during training at the epoch of the weights.
    pub evaluation: Option<ModelEvaluation>,
    /// The accuracy on the test split of the majority class of the training split.
    pub majority: Option<f64>,
    /// The baseline, an MLP without edges; none if it was switched off or there are too many features for it.
    pub baseline: Option<BaselineReport>,
    /// The distribution of `abs(λ)` when training stopped.
    pub multipliers: Option<Quantiles>,
    /// The evaluation of the saved model on all graphs.
    pub final_evaluation: FinalEvaluation,
}

/// A setting that differs from its default for the data.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ChangedSetting {
    /// As in `training.solver.weights.lr`.
    pub setting: String,
    /// Its value.
    pub value: String,
    /// What it would be by default.
    pub default: String,
}

/// All that a record is made of.
pub(super) struct Outcome<'a> {
    pub(super) config: &'a RunConfig,
    pub(super) dataset: &'a Dataset,
    pub(super) setup: &'a Setup,
    pub(super) saved: SavedModel,
    pub(super) trained: Trained<f32>,
    pub(super) metrics: Vec<EpochMetrics>,
    pub(super) epochs: usize,
    pub(super) seconds: f64,
    pub(super) baseline: Option<BaselineReport>,
}

impl RunRecord {
    pub(super) fn new(outcome: &Outcome<'_>) -> Result<Self, Error> {
        let Outcome { config, dataset, setup, saved, trained, metrics, epochs, seconds, baseline } =
            outcome;
        let multipliers = trained.multipliers.iter().flat_map(Matrix::as_slice);
        Ok(Self {
            versions: Versions::here(),
            machine: Machine::here(),
            date: today(),
            data: saved.data.clone(),
            task: setup.task,
            classes: saved.classes().map(<[String]>::to_vec),
            value_names: saved.value_names.clone(),
            config: (*config).clone(),
            changed: changed(config, dataset),
            seed: config.training.seed,
            weights: saved.weights.len(),
            stop_reason: trained.reason,
            epochs: *epochs,
            best_epoch: trained.epoch,
            seconds: *seconds,
            epoch_seconds: Quantiles::of(metrics.iter().map(|epoch| epoch.seconds)),
            last_epoch: metrics.last().map(|epoch| epoch.report.clone()),
            constraints: constraints(metrics, dataset),
            evaluation: trained.evaluation.clone(),
            majority: majority_accuracy(dataset, setup),
            baseline: baseline.clone(),
            multipliers: Quantiles::of(multipliers.map(|&x| f64::from(x.abs()))),
            final_evaluation: FinalEvaluation::new(saved, dataset, &setup.split)?,
        })
    }

    /// Whether the constraints are [met](ConstraintReport::met); none if no epoch was evaluated.
    pub fn constraints_met(&self) -> Option<bool> {
        self.constraints.as_ref().map(ConstraintReport::met)
    }

    /// The last line of the log.
    pub(super) fn last_line(&self) -> String {
        let Self { stop_reason, epochs, best_epoch, seconds, .. } = self;
        format!("{stop_reason}; {epochs} epochs in {seconds:.1} s, weights of epoch {best_epoch}")
    }
}

/// The settings that differ from the defaults; where the data come from is no setting to compare.
fn changed(config: &RunConfig, dataset: &Dataset) -> Vec<ChangedSetting> {
    let defaults = RunConfig::for_data(&config.data.source, dataset, &[]);
    let before: BTreeMap<String, String> = flattened(&defaults).into_iter().collect();
    let changed = |(setting, value): (String, String)| {
        let default = before.get(&setting).cloned().unwrap_or_else(|| "–".into());
        (default != value).then_some(ChangedSetting { setting, value, default })
    };
    flattened(config).into_iter().filter_map(changed).collect()
}

/// The newest report on the constraints, with the names of graphs.
fn constraints(metrics: &[EpochMetrics], dataset: &Dataset) -> Option<ConstraintReport> {
    let mut report = metrics.iter().rev().find_map(|epoch| epoch.report.constraints.clone())?;
    for of in &mut report.worst {
        of.name = dataset.graph_name(of.graph).map(str::to_owned);
    }
    Some(report)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::generate::CliqueConfig;
    use crate::evaluate::Metrics;
    use crate::experiment::run::Run;
    use crate::train::{NotFinite, SplitName};

    #[test]
    fn a_record_is_read_as_it_was_written_whatever_is_in_it() {
        let dataset = CliqueConfig { graphs: 4, ..CliqueConfig::default() }.generate(1).unwrap();
        let mut config = RunConfig::for_data("clique", &dataset, &[]);
        config.training.epochs = 3;
        let place = tempfile::tempdir().unwrap();
        let run = Run::create(&place.path().join("run"), config, &dataset).unwrap();
        let mut record = run.train(&mut ()).unwrap();
        let again = |record: &RunRecord| -> RunRecord {
            serde_json::from_str(&serde_json::to_string_pretty(record).unwrap()).unwrap()
        };
        assert_eq!(again(&record), record);

        record.stop_reason = StopReason::Diverged { epoch: 2, variable: NotFinite::States };
        record.final_evaluation.graphs.residuals[1] = f64::INFINITY;
        record.final_evaluation.residuals = Quantiles::of([1.0, f64::NAN].into_iter());
        record.multipliers.as_mut().unwrap().max = f64::INFINITY;
        record.last_epoch.as_mut().unwrap().gradient_norms = [f64::INFINITY, 0.0, f64::NAN];
        record.final_evaluation.splits = vec![SplitEvaluation {
            split: SplitName::Test,
            metrics: Metrics::Values {
                count: 1,
                mean_squared_error: f64::INFINITY,
                mean_absolute_error: f64::NAN,
                r_squared: None,
                per_target: vec![],
            },
        }];
        let read = again(&record);
        assert_eq!(read.stop_reason, record.stop_reason);
        assert!(read.final_evaluation.graphs.residuals[1].is_nan());
        assert!(read.multipliers.unwrap().max.is_nan());
        // NaN is not NaN, but the text is the text.
        let text = |record: &RunRecord| serde_json::to_string(record).unwrap();
        assert_eq!(text(&read), text(&record));
    }
}
