use std::path::PathBuf;

use crate::Error;
use crate::data::{Dataset, Split};
use crate::evaluate::{BaselineReport, Protocol};
use crate::experiment::shared_work::Item;
use crate::experiment::{TrialKind, TrialName, TrialRecord};
use crate::graph::Level;
use crate::run::RunConfig;

/// One of the runs that a mean is taken over: a fold of the data, or a seed of one split.
#[derive(Clone, Debug)]
pub struct Fold {
    /// As in fold 3 or seed 7.
    pub name: TrialName,
    /// The training, validation and test data.
    pub split: Split,
    /// The candidate configurations, selected by the validation split.
    pub candidates: Vec<RunConfig>,
}

/// How data are split into folds.
#[derive(Clone, Debug)]
pub struct Division {
    /// Number of folds.
    pub folds: usize,
    /// Predefined folds instead: a folder, or a file with the fold of each node or graph.
    pub files: Option<PathBuf>,
    /// Random seed of the folds.
    pub seed: u64,
}

/// One in this many training members of a fold is used for validation, if the protocol requires it.
const INNER: usize = 9;

impl Division {
    /// The folds, each with all candidates.
    ///
    /// # Errors
    ///
    /// [`Error::Option`] for a number of folds that cannot be made, and what reading given ones leads to.
    pub fn folds(
        &self,
        dataset: &Dataset,
        task: Level,
        protocol: Protocol,
        candidates: &[RunConfig],
    ) -> Result<Vec<Fold>, Error> {
        let level = task.of_split(dataset);
        let splits = match &self.files {
            Some(folder) => Split::read_folds(folder, level, level.count(dataset))?,
            None => Split::k_fold(dataset, level, self.folds, self.seed)?,
        };
        let folds = (1..).zip(splits).map(|(number, split)| {
            let split = match protocol {
                // Some published splits have their own validation data.
                Protocol::Nested if split.val.is_empty() => {
                    split.with_validation(dataset, INNER, self.seed)?
                }
                Protocol::Nested | Protocol::BestMeanEpoch | Protocol::Split => split,
            };
            let name = TrialName { kind: TrialKind::Fold, number };
            Ok(Fold { name, split, candidates: candidates.to_vec() })
        });
        folds.collect()
    }
}

impl Fold {
    /// The same split with another random seed.
    pub fn with_seed(config: &RunConfig, split: Split, seed: u64) -> Self {
        let mut config = config.clone();
        config.training.seed = seed;
        let name = TrialName { kind: TrialKind::Seed, number: seed };
        Self { name, split, candidates: vec![config] }
    }

    pub(super) fn file(&self) -> String {
        self.item().result
    }

    pub(super) fn item(&self) -> Item {
        let lock = format!("{}-{:02}", self.name.kind.as_str(), self.name.number);
        Item { name: self.name, result: format!("{lock}.json"), lock }
    }
}

/// The result of a fold.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct FoldRecord {
    /// As in fold 3 or seed 7.
    #[serde(flatten)]
    pub name: TrialName,
    /// Index of the selected configuration.
    pub candidate: usize,
    /// The result of training.
    pub trial: TrialRecord,
    /// The epochs at which the baseline, a network without edges, was evaluated.
    pub baseline_epochs: Vec<usize>,
    /// Its values on the test split at these.
    #[serde(with = "crate::nan::numbers")]
    pub baseline_test: Vec<f64>,
    /// The same at its best epoch on the inner split, or at its last one where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::nan::optional")]
    pub baseline_value: Option<f64>,
    /// The accuracy of the majority class, if trainings are compared by accuracy.
    pub majority: Option<f64>,
}

impl FoldRecord {
    pub(super) fn new(
        name: TrialName,
        candidate: usize,
        trial: TrialRecord,
        baseline: &BaselineReport,
        majority: Option<f64>,
    ) -> Self {
        Self {
            name,
            candidate,
            trial,
            baseline_epochs: baseline.scores.iter().map(|score| score.epoch).collect(),
            baseline_test: baseline.scores.iter().filter_map(|score| score.test).collect(),
            baseline_value: baseline.best().and_then(|best| best.test),
            majority,
        }
    }
}
