use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use lpgnn::data::Split;
use lpgnn::evaluate::Protocol;
use lpgnn::experiment::crossval::{Crossval, Division, Fold, FoldRecord};
use lpgnn::experiment::record::{FinalEvaluation, ModelNotes};
use lpgnn::experiment::run::RunFolder;
use lpgnn::experiment::search::{RankedTrial, Search, SearchOptions, Space};
use lpgnn::experiment::{ExperimentObserver, ResultFolder, TrialKind, TrialName, TrialObserver};
use lpgnn::graph::Level;
use lpgnn::run::{SavedModel, Setup, refuse};
use lpgnn::train::EpochReport;
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::dataset::{Dataset, SplitTuple, split_of};
use crate::error::{Error, exception, json_exception};
use crate::events::{Reporter, work};
use crate::model::{Model, notes_to_json};
use crate::registry::registry;
use crate::settings::{Request, Task, warn};
use crate::threads::pool;

/// A search space: the name of a built-in one or of a file, or its description as JSON.
#[derive(FromPyObject)]
pub(crate) struct SpaceRequest(Option<String>, Option<String>);

impl SpaceRequest {
    fn space(&self) -> PyResult<Space> {
        match self {
            Self(Some(name), _) => Space::find(name).map_err(exception),
            Self(None, json) => {
                let json = json.as_deref().unwrap_or_default();
                let value = serde_json::from_str(json).map_err(|error| json_exception(&error))?;
                Space::from_json("space", value).map_err(exception)
            }
        }
    }
}

/// What is averaged over.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct CrossvalRequest {
    protocol: String,
    folds: usize,
    fold_seed: u64,
    fold_files: Option<PathBuf>,
    /// Folds that were made elsewhere.
    splits: Option<Vec<SplitTuple>>,
    /// Seeds of one split, instead of folds.
    seeds: Option<Vec<u64>>,
    space: Option<SpaceRequest>,
    /// Models of every fold that are trained one after the other.
    stages: usize,
    /// Models of every fold whose predictions are averaged.
    ensemble: usize,
}

/// The report on a cross-validation and the records of its folds, as JSON; none if a callback stopped it.
type Reported = (Option<(String, Vec<String>)>, Option<Py<PyAny>>);

/// Cross-validates in a folder; what is complete there is not repeated.
#[pyfunction]
pub(crate) fn crossval(
    py: Python<'_>,
    data: &Dataset,
    request: Request,
    how: CrossvalRequest,
    out: &str,
    threads: usize,
    on_event: Option<Py<PyAny>>,
) -> PyResult<Reported> {
    let space = how.space.as_ref().map(SpaceRequest::space).transpose()?;
    let made = request.settings()?;
    if let Some(space) = &space {
        space.check_settings(&made).map_err(exception)?;
    }
    if how.seeds.is_none() {
        let why = "cross-validation has folds; folds and fold_seed draw them";
        refuse(&made, &["split"], why).map_err(exception)?;
    }
    let task = request.task(data, space.as_ref().map(Space::settings).unwrap_or_default())?;
    let (stages, ensemble) = (how.stages, how.ensemble);
    let (protocol, folds) = how.folds(&task)?;
    let crossval = Crossval::with_registry(&registry(), &task.dataset, protocol, folds);
    let crossval = crossval.map_err(exception)?.with_stages(stages).with_ensemble(ensemble);
    warn(py, &crossval.notes(&task.config, &task.settings).map_err(exception)?)?;
    let folder = ResultFolder::open(Path::new(out), &crossval.plan(), &task.config);
    let folder = folder.map_err(exception)?;
    let (report, interrupt) = work(py, &pool(threads)?, on_event, |reporter| {
        let report = crossval.run(&folder, &Watch(reporter))?;
        let records = if report.is_some() { crossval.records(&folder)? } else { vec![] };
        Ok(report.map(|report| (report, records)))
    })?;
    let report = match report {
        Some((report, records)) => {
            Some((text(&report)?, records.iter().map(text).collect::<PyResult<_>>()?))
        }
        None => None,
    };
    Ok((report, interrupt.map(|error| error.into_value(py).into_any())))
}

impl CrossvalRequest {
    fn folds(self, task: &Task<'_>) -> PyResult<(Protocol, Vec<Fold>)> {
        let protocol: Protocol = self.protocol.parse().map_err(exception)?;
        let Task { config, dataset, .. } = task;
        if let Some(seeds) = self.seeds {
            let split =
                Setup::with_registry(&registry(), config, dataset, None).map_err(exception)?.split;
            let fold = |seed| Fold::with_seed(config, split.clone(), seed);
            return Ok((protocol, seeds.into_iter().map(fold).collect()));
        }
        let candidates = match &self.space {
            Some(space) => {
                let trials = space.space()?.trials(config, None, config.training.seed);
                trials.map_err(exception)?
            }
            None => vec![config.clone()],
        };
        let Self { folds, fold_files: files, fold_seed: seed, .. } = self;
        let folds = if let Some(splits) = self.splits {
            let splits = splits.into_iter().map(split_of).collect::<PyResult<Vec<Split>>>()?;
            let name = |number| TrialName { kind: TrialKind::Fold, number };
            let folds = (1..).zip(splits).map(|(number, split)| Fold {
                name: name(number),
                split,
                candidates: candidates.clone(),
            });
            folds.collect()
        } else {
            let level = Level::of_task(config.data.task, dataset).map_err(exception)?;
            let division = Division { folds, files, seed };
            division.folds(dataset, level, protocol, &candidates).map_err(exception)?
        };
        Ok((protocol, folds))
    }
}

/// How much is tried, and how.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct SearchRequest {
    space: SpaceRequest,
    budget: Option<String>,
    halving: usize,
    min_epochs: usize,
}

/// The record of a search as JSON, the settings of the winner as TOML, and its model; none if a callback
/// stopped it.
type Found = (Option<(String, String, Model)>, Option<Py<PyAny>>);

/// Searches in a folder; what is complete there is not repeated.
#[pyfunction]
pub(crate) fn search(
    py: Python<'_>,
    data: &Dataset,
    request: Request,
    how: SearchRequest,
    out: &str,
    threads: usize,
    on_event: Option<Py<PyAny>>,
) -> PyResult<Found> {
    let space = how.space.space()?;
    space.check_settings(&request.settings()?).map_err(exception)?;
    let task = request.task(data, space.settings())?;
    let Task { config, dataset, .. } = &task;
    let budget = how.budget.map(|budget| budget.parse()).transpose().map_err(exception)?;
    let options = SearchOptions { budget, halving: how.halving, min_epochs: how.min_epochs };
    let search = Search::with_registry(&registry(), dataset, config.clone(), &space, options)
        .map_err(exception)?;
    task.warn(py, search.split())?;
    if search.exhausts_space() {
        let note = "the search space has fewer trials than the budget: all are tried";
        warn(py, &[note.into()])?;
    }
    let folder = ResultFolder::open(Path::new(out), &search.plan(), config).map_err(exception)?;
    let (found, interrupt) = work(py, &pool(threads)?, on_event, |reporter| {
        let Some(record) = search.run(&folder, &Watch(reporter))? else { return Ok(None) };
        let mut saved = SavedModel::read_with(&registry(), &folder.file(RunFolder::MODEL))?;
        if let Some(split) = &saved.members {
            let final_evaluation = FinalEvaluation::new(&saved, dataset, split)?;
            let stop_reason = record.ranked.first().and_then(|best| best.result.stop_reason);
            let (metrics, evaluation) = (vec![], None);
            let notes = ModelNotes { stop_reason, metrics, evaluation, final_evaluation };
            saved.notes = notes_to_json(&notes);
        }
        let best = search.trials()[record.trial - 1].to_toml();
        Ok(Some((record, best, Model(saved))))
    })?;
    let found = match found {
        Some((record, best, model)) => Some((text(&record)?, best, model)),
        None => None,
    };
    Ok((found, interrupt.map(|error| error.into_value(py).into_any())))
}

fn text(value: &impl serde::Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| Error::new_err(error.to_string()))
}

/// Reports epochs, folds and trials.
struct Watch<'a>(&'a Reporter<'a>);

struct WatchTrial<'a> {
    reporter: &'a Reporter<'a>,
    name: TrialName,
    until: usize,
}

impl ExperimentObserver for Watch<'_> {
    fn trial(&self, name: TrialName, _: usize, until: usize) -> Box<dyn TrialObserver + '_> {
        Box::new(WatchTrial { reporter: self.0, name, until })
    }

    // Neither stops an experiment.
    fn fold(&self, fold: &FoldRecord) {
        let _ = self.0.tell(&json!({ "event": "fold", "record": fold }));
    }

    fn ranked(&self, trial: &RankedTrial) {
        let _ = self.0.tell(&json!({ "event": "trial", "record": trial }));
    }

    fn waiting(&self, _: TrialName) -> ControlFlow<()> {
        self.0.stops()
    }
}

impl TrialObserver for WatchTrial<'_> {
    fn epoch(&mut self, report: &EpochReport) -> ControlFlow<()> {
        let mut event = serde_json::to_value(report).unwrap_or_default();
        if let Value::Object(event) = &mut event {
            let TrialName { kind, number } = self.name;
            event.insert("kind".into(), kind.as_str().into());
            event.insert("number".into(), number.into());
            event.insert("epochs".into(), self.until.into());
        }
        self.reporter.tell(&event)
    }
}
