use super::{FinalEvaluation, Items, RunRecord, constraints, not_default};
use crate::Error;
use crate::data::Dataset;
use crate::evaluate::Quantiles;
use crate::experiment::run::EpochMetrics;
use crate::experiment::{Machine, Versions, today};
use crate::run::{RunConfig, SavedModel, fingerprint};
use crate::train::{ModelEvaluation, StopReason};

/// What is kept with a model of a training that has no folder.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct ModelNotes {
    /// Why it stopped; none if that is not known.
    pub stop_reason: Option<StopReason>,
    /// All epochs.
    pub metrics: Vec<EpochMetrics>,
    /// The evaluation during training at the epoch of the weights.
    pub evaluation: Option<ModelEvaluation>,
    /// The evaluation of the model on all graphs.
    pub final_evaluation: FinalEvaluation,
}

impl ModelNotes {
    /// The record of the training, and of its data, if they are given, single nodes or graphs.
    pub(crate) fn record(
        &self,
        saved: &SavedModel,
        dataset: Option<&Dataset>,
    ) -> Result<(RunRecord, Option<Items>), Error> {
        if let Some(other) = dataset.filter(|data| fingerprint(data) != saved.data.fingerprint) {
            return Err(Error::Mismatch(format!(
                "the model was trained on other data than {}",
                other.name()
            )));
        }
        let mut config = RunConfig {
            model: saved.model.clone(),
            training: saved.training.clone(),
            split: saved.split,
            ..RunConfig::default()
        };
        config.data.source.clone_from(&saved.data.name);
        let metrics = &self.metrics;
        let items = match (dataset, &saved.members) {
            (Some(dataset), Some(split)) => {
                let predictions = saved.predict(dataset, true)?;
                Some(Items::new(&predictions, dataset, (split, saved.task), &[]))
            }
            _ => None,
        };
        let record = RunRecord {
            versions: Versions { library: saved.version.clone(), ..Versions::here() },
            machine: Machine::here(),
            date: today(),
            data: saved.data.clone(),
            task: saved.task,
            classes: saved.classes().map(<[String]>::to_vec),
            value_names: saved.value_names.clone(),
            changes: vec![],
            not_default: match dataset {
                Some(dataset) => not_default(&config, dataset),
                None => RunConfig::default().changes(&config),
            },
            seed: config.training.seed,
            weights: saved.weights.len(),
            stop_reason: self.stop_reason.unwrap_or(StopReason::Epochs),
            epochs: metrics.last().map_or(saved.epoch, |epoch| epoch.report.epoch),
            best_epoch: saved.epoch,
            seconds: metrics.iter().map(|epoch| epoch.seconds).sum(),
            epoch_seconds: Quantiles::of(metrics.iter().map(|epoch| epoch.seconds)),
            last_epoch: metrics.last().map(|epoch| epoch.report.clone()),
            constraints: constraints(metrics, dataset),
            evaluation: self.evaluation.clone(),
            majority: None,
            baseline: None,
            multipliers: None,
            final_evaluation: self.final_evaluation.clone(),
            config,
        };
        Ok((record, items))
    }
}
