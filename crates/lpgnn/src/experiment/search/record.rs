use serde_json::Value;

use crate::experiment::TrialRecord;
use crate::run::RunConfig;
use crate::train::Monitor;

/// A trial that has come to the end of a round.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct RankedTrial {
    /// Its number, counted from 1.
    pub trial: usize,
    /// How many epochs it has trained.
    pub epochs: usize,
    /// The settings that it changed, with their values.
    pub settings: Vec<(String, String)>,
    /// Its result.
    pub result: TrialRecord,
}

/// The result of a search, selected on the validation split alone.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct SearchRecord {
    /// The metric of all values; `auto` for accuracies and negative losses.
    #[serde(default)]
    pub metric: Monitor,
    /// The number of the winner, from 1.
    pub trial: usize,
    /// Its value on the validation split.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::nan::optional")]
    pub val: Option<f64>,
    /// The winner on the test split, which is evaluated only once.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::nan::optional")]
    pub test_of_the_winner: Option<f64>,
    /// Whether all rounds were completed within the time budget.
    pub complete: bool,
    /// All trials, the best first; behind those that went on come those that did not.
    pub ranked: Vec<RankedTrial>,
}

impl RankedTrial {
    /// The value that trials are ranked by; NaN comes last.
    pub fn value(&self) -> f64 {
        self.result.val_value.filter(|value| !value.is_nan()).unwrap_or(f64::NEG_INFINITY)
    }
}

/// The settings in which a trial differs, with its values.
pub(super) fn differences(base: &RunConfig, trial: &RunConfig) -> Vec<(String, String)> {
    let text = |value: Value| match value {
        Value::String(text) => text,
        value => value.to_string(),
    };
    base.changes(trial).into_iter().map(|change| (change.path, text(change.after))).collect()
}
