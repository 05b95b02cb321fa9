use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use serde_json::Value;

use super::run::text;
use super::scale::ValueScale;
use super::{finite, typed};
use crate::Error;
use crate::experiment::ResultFolder;
use crate::experiment::search::{RankedTrial, SearchRecord};
use crate::run::{RunConfig, Schema};

/// A search, as the page shows it.
#[derive(Debug, serde::Serialize)]
pub(super) struct SearchPage {
    #[serde(skip)]
    data: String,
    metric: String,
    /// Whether values are shares, as accuracies are.
    share: bool,
    settings: Vec<String>,
    trials: Vec<Trial>,
    best: String,
    about: String,
}

#[derive(Debug, serde::Serialize)]
struct Trial {
    name: String,
    epochs: usize,
    value: Option<f64>,
    /// Of every setting: a number, or text.
    values: Vec<Value>,
}

impl SearchPage {
    pub(super) fn read(path: &Path, result: Value) -> Result<Self, Error> {
        let config = ResultFolder::settings(path)?;
        Ok(Self::new(&config, &typed(path, result)?))
    }

    /// Of trials that have settings in common.
    pub(super) fn new(config: &RunConfig, record: &SearchRecord) -> Self {
        let common: HashMap<String, String> = Schema::of_runs()
            .values(config)
            .into_iter()
            .map(|(info, value)| (info.path.clone(), text(&value)))
            .collect();
        let source = Path::new(&config.data.source);
        let name = source.file_stem().unwrap_or(source.as_os_str()).to_string_lossy().into_owned();
        let varied: BTreeSet<String> = record
            .ranked
            .iter()
            .flat_map(|trial| &trial.settings)
            .map(|(setting, _)| setting.clone())
            .collect();
        let settings: Vec<String> = varied.into_iter().collect();
        let values = record.ranked.iter().map(RankedTrial::value);
        let scale = ValueScale::of(record.metric, values);
        Self {
            data: name,
            metric: format!("val {}", scale.name),
            share: scale.share,
            trials: record
                .ranked
                .iter()
                .map(|trial| Trial::new(trial, &settings, &common))
                .collect(),
            settings: settings.iter().map(|setting| short(setting, &settings)).collect(),
            best: format!("trial {}", record.trial),
            about: about(record, scale.share),
        }
    }

    pub(super) fn title(&self) -> String {
        format!("{}, search", self.data)
    }
}

impl Trial {
    fn new(trial: &RankedTrial, settings: &[String], common: &HashMap<String, String>) -> Self {
        let value = |setting: &String| {
            let own = trial.settings.iter().find(|(name, _)| name == setting);
            // What a trial does not change is as for all.
            own.map(|(_, text)| text).or_else(|| common.get(setting)).map_or_else(
                || "default".into(),
                |text| text.parse::<f64>().map_or_else(|_| text.as_str().into(), Value::from),
            )
        };
        Self {
            name: format!("trial {}", trial.trial),
            epochs: trial.epochs,
            value: finite(trial.value()),
            values: settings.iter().map(value).collect(),
        }
    }
}

/// The last part of a path, if no other setting ends in it.
fn short(setting: &str, all: &[String]) -> String {
    let last = |path: &str| path.rsplit('.').next().unwrap_or(path).to_owned();
    let own = last(setting);
    if all.iter().filter(|other| last(other) == own).count() == 1 {
        own
    } else {
        setting.to_owned()
    }
}

fn about(record: &SearchRecord, share: bool) -> String {
    let trials = record.ranked.len();
    let tell =
        |value: f64| if share { format!("{:.1} %", 100.0 * value) } else { format!("{value:.4}") };
    let test = record.test_of_the_winner.map_or(String::new(), |test| {
        format!(
            " The winner, trial {}, was evaluated once on the test split: {}.",
            record.trial,
            tell(test)
        )
    });
    let complete =
        if record.complete { "" } else { " The budget ended before all rounds were done." };
    format!("{trials} trials, ranked by the validation split alone.{test}{complete}")
}
