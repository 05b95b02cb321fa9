use super::drawing::{Drawing, drawings};
use super::history::History;
use crate::Error;
use crate::data::Dataset;
use crate::experiment::record::{FinalEvaluation, Finding, Items, ModelNotes, RunRecord};
use crate::experiment::run::RunFolder;
use crate::experiment::{Machine, Versions};
use crate::graph::Level;
use crate::inference::Inference;
use crate::registry::Registry;
use crate::run::{DataOrigin, RunConfig, SavedModel, Schema, fingerprint};
use crate::train::StopReason;

/// A run, as the page shows it.
#[derive(Debug, serde::Serialize)]
pub(super) struct RunPage {
    name: String,
    data: DataOrigin,
    level: Level,
    classes: Vec<String>,
    value_names: Vec<String>,
    transition: String,
    solver: String,
    changed: Vec<[String; 3]>,
    settings: Vec<(String, String)>,
    rerun: String,
    versions: Versions,
    machine: Machine,
    date: String,
    seed: u64,
    weights: usize,
    seconds: Option<f64>,
    epochs: usize,
    best_epoch: usize,
    stop: String,
    majority: Option<f64>,
    baseline: Option<f64>,
    tol: f64,
    alerts: Vec<Alert>,
    history: History,
    r#final: FinalEvaluation,
    items: Option<Items>,
    drawings: Vec<Drawing>,
}

/// What stands first on the page.
#[derive(Debug, serde::Serialize)]
struct Alert {
    good: bool,
    title: String,
    text: String,
    advice: Option<String>,
}

impl RunPage {
    pub(super) fn read(folder: &RunFolder) -> Result<Self, Error> {
        let Some(record) = folder.record()? else {
            let problem =
                "is a run without a record: it is under way, or was interrupted and can be resumed";
            return Err(Error::Folder { path: folder.path().into(), problem: problem.into() });
        };
        let name = folder.path().file_name().map_or_else(
            || folder.path().display().to_string(),
            |name| name.to_string_lossy().into_owned(),
        );
        let history = History::new(&folder.metrics()?);
        let items = folder.items()?;
        Ok(Self::new(name, record, history, items))
    }

    pub(super) fn of_model(
        saved: &SavedModel,
        notes: &ModelNotes,
        dataset: Option<&Dataset>,
    ) -> Result<Self, Error> {
        let (record, items) = notes.record(saved, dataset)?;
        let name = saved.data.name.clone();
        let mut page = Self::new(name, record, History::new(&notes.metrics), items);
        if let (Some(items), Some(dataset)) = (&page.items, dataset) {
            page.drawings = drawings(saved, dataset, items, &page.classes)?;
        }
        Ok(page)
    }

    fn new(name: String, record: RunRecord, history: History, items: Option<Items>) -> Self {
        let RunConfig { model, training, .. } = &record.config;
        let layers =
            if model.layers == 1 { String::new() } else { format!("{} layers, ", model.layers) };
        let baseline = record.baseline.as_ref().and_then(|report| report.best());
        let changed = record.not_default.iter();
        Self {
            transition: format!("{}, {layers}states of {}", model.transition, model.state_dim),
            solver: training.custom_solver.clone().unwrap_or_else(|| training.solver.name().into()),
            changed: changed
                .map(|of| [of.path.clone(), text(&of.after), text(&of.before)])
                .collect(),
            settings: Schema::of_runs()
                .values(&record.config)
                .into_iter()
                .map(|(info, value)| (info.path.clone(), text(&value)))
                .collect(),
            rerun: rerun(&record),
            tol: match training.inference {
                Inference::FixedPoint(options) => options.tol,
                Inference::Relax(options) => options.tol,
            },
            stop: stop(&record),
            alerts: alerts(&record),
            majority: record.majority,
            baseline: baseline
                .and_then(|best| best.test.or(best.val))
                .filter(|_| record.classes.is_some()),
            name,
            data: record.data,
            level: record.task,
            classes: record.classes.unwrap_or_default(),
            value_names: record.value_names,
            versions: record.versions,
            machine: record.machine,
            date: record.date,
            seed: record.seed,
            weights: record.weights,
            seconds: super::finite(record.seconds),
            epochs: record.epochs,
            best_epoch: record.best_epoch,
            history,
            r#final: record.final_evaluation,
            items,
            drawings: vec![],
        }
    }

    pub(super) fn title(&self) -> &str {
        &self.data.name
    }

    pub(super) fn draw(
        &mut self,
        registry: &Registry<f32>,
        folder: &std::path::Path,
        dataset: &Dataset,
    ) -> Result<(), Error> {
        if fingerprint(dataset) != self.data.fingerprint {
            let problem = format!("was trained on other data than {}", dataset.name());
            return Err(Error::Folder { path: folder.into(), problem });
        }
        let model = SavedModel::read_with(registry, &folder.join(RunFolder::MODEL))?;
        if let Some(items) = &self.items {
            self.drawings = drawings(&model, dataset, items, &self.classes)?;
        }
        Ok(())
    }
}

fn stop(record: &RunRecord) -> String {
    match record.stop_reason {
        StopReason::Epochs => format!("after all {} epochs", record.epochs),
        reason => format!("after epoch {}: {reason}", record.epochs),
    }
}

/// The findings; or that there are none, so that their absence can be told from an old page.
fn alerts(record: &RunRecord) -> Vec<Alert> {
    let alert = |Finding { title, text, advice }| Alert {
        good: false,
        title,
        text,
        advice: (!advice.is_empty()).then(|| format!("Try {}.", advice.join("; or "))),
    };
    let found: Vec<Alert> = record.findings().into_iter().map(alert).collect();
    if !found.is_empty() {
        return found;
    }
    let gap = record.evaluation.as_ref().and_then(|of| of.cheating_gap);
    let gap =
        gap.map_or(String::new(), |gap| format!("; the cheating gap is {:.1} points", 100.0 * gap));
    let text = format!("All graphs converge, and states follow from the graph alone{gap}.");
    vec![Alert { good: true, title: "The constraints are met".into(), text, advice: None }]
}

/// As in a settings file; a word without quotes.
pub(super) fn text(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::Null => "none".into(),
        serde_json::Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

/// The command that trains the same model again.
fn rerun(record: &RunRecord) -> String {
    let quoted = |text: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:+".contains(c);
        if !text.is_empty() && text.chars().all(plain) {
            text.to_owned()
        } else {
            format!("'{}'", text.replace('\'', r"'\''"))
        }
    };
    let settings = record.not_default.iter().filter(|of| of.path != "data.source");
    let settings = settings
        .map(|of| format!(" \\\n  --set {}", quoted(&format!("{}={}", of.path, text(&of.after)))));
    format!("lpgnn train {}{}", quoted(&record.config.data.source), settings.collect::<String>())
}
