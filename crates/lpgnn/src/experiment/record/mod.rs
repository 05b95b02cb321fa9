//! Run records: everything a report needs, without computing anything again.

mod components;
mod evaluation;
mod findings;
mod items;
mod notes;

pub use evaluation::{FinalEvaluation, GraphConvergence, SplitEvaluation};
pub use findings::Finding;
pub use items::Items;
pub use notes::ModelNotes;

use std::borrow::Cow;

use super::majority::majority_accuracy;
use super::run::EpochMetrics;
use super::{Machine, Versions, today};
use crate::data::Dataset;
use crate::evaluate::{BaselineReport, Quantiles};
use crate::graph::{Level, Share};
use crate::inference::Tell;
use crate::run::{
    DataOrigin, EpochChange, RunConfig, SavedModel, Setting, SettingChange, Setup, TrainingOrigin,
};
use crate::train::{ConstraintReport, EpochReport, ModelEvaluation, StopReason, Trained};
use crate::{Error, Matrix};

/// The record of a run, `record.json`. Numbers that are not finite are `"NaN"`, `"Infinity"` and
/// `"-Infinity"` there.
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
    /// Settings that were changed when the run was resumed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<EpochChange>,
    /// Settings that differ from the defaults for the data, which are `before`.
    pub not_default: Vec<SettingChange>,
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
    #[serde(with = "crate::nan::number")]
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

/// All that a record is made of.
pub(super) struct Outcome<'a> {
    pub(super) origin: &'a TrainingOrigin,
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
    /// The record, and single nodes or graphs; `tell` is called while the model is evaluated.
    pub(super) fn new(outcome: &Outcome<'_>, tell: Tell<'_>) -> Result<(Self, Items), Error> {
        let Outcome { origin, dataset, setup, saved, trained, metrics, epochs, seconds, baseline } =
            outcome;
        let share = setup.data.training_graphs().across();
        let multipliers = shown(&trained.multipliers, share);
        let multipliers = multipliers.iter().flat_map(Matrix::as_slice);
        let communicator = setup.data.training_graphs().share().map(Share::communicator);
        let predictions = saved.predict_shared(dataset, true, communicator, tell)?;
        let whose = (&setup.split, setup.task);
        let items = match share {
            None => Items::new(&predictions, dataset, whose, &trained.multipliers),
            Some(share) => Items::of_parts(&predictions, whose, &trained.multipliers, share),
        };
        let record = Self {
            versions: Versions::here(),
            machine: Machine::here(),
            date: today(),
            data: saved.data.clone(),
            task: setup.task,
            classes: saved.classes().map(<[String]>::to_vec),
            value_names: saved.value_names.clone(),
            config: origin.config.clone(),
            changes: origin.changes.clone(),
            not_default: not_default(&origin.config, dataset),
            seed: origin.config.training.seed,
            weights: saved.weights.len(),
            stop_reason: trained.reason,
            epochs: *epochs,
            best_epoch: trained.epoch,
            seconds: *seconds,
            epoch_seconds: Quantiles::of(metrics.iter().map(|epoch| epoch.seconds)),
            last_epoch: metrics.last().map(|epoch| epoch.report.clone()),
            constraints: constraints(metrics, Some(dataset)),
            evaluation: trained.evaluation.clone(),
            majority: majority_accuracy(dataset, setup),
            baseline: baseline.clone(),
            multipliers: Quantiles::of(multipliers.map(|&x| f64::from(x.abs()))),
            final_evaluation: FinalEvaluation::of_predictions(
                saved,
                &predictions,
                dataset,
                &setup.split,
            )?,
        };
        Ok((record, items))
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

/// Multipliers of how many nodes of a graph in parts a record tells the distribution, at most.
const SHOWN: usize = 1 << 16;

/// All multipliers; of a graph in parts, those of some nodes that are evenly spread.
fn shown<'m>(multipliers: &'m [Matrix<f32>], share: Option<&Share>) -> Cow<'m, [Matrix<f32>]> {
    let Some(share) = share else { return Cow::Borrowed(multipliers) };
    let some = |own: &Matrix<f32>| share.concatenate_rows(&own.select(share.sample(SHOWN)));
    multipliers.iter().map(some).collect()
}

/// The settings that differ from the defaults. Those of another solver are all that solver's own.
fn not_default(config: &RunConfig, dataset: &Dataset) -> Vec<SettingChange> {
    let solver = Setting::new("run", "training.solver.kind", config.training.solver.name());
    let defaults = RunConfig::for_data(&config.data.source, dataset, &[]);
    let same_solver = RunConfig::for_data(&config.data.source, dataset, &[solver]);
    let mut changes = defaults.changes(config);
    let only_by_solver = |path: &str| {
        path.starts_with("training.solver.")
            && same_solver.changes(config).iter().all(|change| change.path != path)
    };
    changes.retain(|change| change.path == "training.solver.kind" || !only_by_solver(&change.path));
    changes
}

/// The newest report on the constraints, with the names of graphs.
fn constraints(metrics: &[EpochMetrics], dataset: Option<&Dataset>) -> Option<ConstraintReport> {
    let mut report = metrics.iter().rev().find_map(|epoch| epoch.report.constraints.clone())?;
    for of in &mut report.worst {
        of.name = dataset.and_then(|data| data.graph_name(of.graph)).map(str::to_owned);
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
        assert_eq!(
            read.final_evaluation.graphs.residuals,
            record.final_evaluation.graphs.residuals
        );
        assert_eq!(read.multipliers, record.multipliers);
        // NaN is not NaN, but the text is the text.
        let text = |record: &RunRecord| serde_json::to_string(record).unwrap();
        assert_eq!(text(&read), text(&record));
    }
}
