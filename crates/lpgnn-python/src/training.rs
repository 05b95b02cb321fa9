use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Instant;

use lpgnn::experiment::record::{FinalEvaluation, ModelNotes};
use lpgnn::experiment::run::{EpochMetrics, Progress, Run, RunFolder, RunObserver, Runs};
use lpgnn::run::{RunConfig, SavedModel, Setup};
use lpgnn::tensorboard::EventWriter;
use lpgnn::train::{EpochReport, Observer, StopReason, Trained, Trainer, TrainerState};
use pyo3::prelude::*;

use crate::dataset::Dataset;
use crate::error::exception;
use crate::events::{Outcome, Reporter, work};
use crate::model::{Model, model_of_run, notes_to_json};
use crate::registry::registry;
use crate::settings::{Request, Task};
use crate::threads::pool;

/// A model, and the exception that ended its training early.
type TrainedModel = (Model, Option<Py<PyAny>>);

fn trained(py: Python<'_>, (saved, interrupt): Outcome<SavedModel>) -> TrainedModel {
    (Model(saved), interrupt.map(|error| error.into_value(py).into_any()))
}

/// Where training leaves its files.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Places {
    /// The run folder; none: memory.
    out: Option<PathBuf>,
    /// In place of the run that is there.
    force: bool,
    /// The folder of event files.
    tensorboard: Option<PathBuf>,
}

/// Trains in memory or in a run folder.
#[pyfunction]
pub(crate) fn train(
    py: Python<'_>,
    data: &Dataset,
    request: Request,
    places: Places,
    threads: usize,
    on_event: Option<Py<PyAny>>,
) -> PyResult<TrainedModel> {
    let task = request.task(data, vec![])?;
    task.warn_of_split(py)?;
    let Places { out, force, tensorboard } = places;
    let outcome = work(py, &pool(threads)?, on_event, |reporter| {
        let (Task { config, dataset, .. }, events) = (&task, tensorboard.as_deref());
        match &out {
            None => in_memory(&task, Watch::new(reporter, events, 0, config)?),
            Some(folder) if force => in_folder(
                Runs::new(registry()).replace(folder, config.clone(), dataset)?,
                reporter,
                events,
            ),
            Some(folder) => in_folder(
                Runs::new(registry()).create(folder, config.clone(), dataset)?,
                reporter,
                events,
            ),
        }
    })?;
    Ok(trained(py, outcome))
}

/// Resumes a run.
#[pyfunction]
pub(crate) fn resume(
    py: Python<'_>,
    folder: &str,
    data: &Dataset,
    how: (Option<usize>, Option<PathBuf>),
    threads: usize,
    on_event: Option<Py<PyAny>>,
) -> PyResult<TrainedModel> {
    let (epochs, tensorboard) = how;
    let folder = RunFolder::open(Path::new(folder)).map_err(exception)?;
    let outcome = work(py, &pool(threads)?, on_event, |reporter| {
        let more = epochs.is_some_and(|epochs| {
            folder.config().is_ok_and(|config| epochs != config.training.epochs)
        });
        if !more && folder.finished()?.is_some() {
            return model_of_run(&folder);
        }
        in_folder(
            Runs::new(registry()).resume(folder, &data.0, epochs)?,
            reporter,
            tensorboard.as_deref(),
        )
    })?;
    Ok(trained(py, outcome))
}

fn in_folder(
    run: Run<'_>,
    reporter: &Reporter<'_>,
    events: Option<&Path>,
) -> Result<SavedModel, lpgnn::Error> {
    let path = run.folder().path().to_owned();
    let mut watch = Watch::new(reporter, events, run.epoch(), run.config())?;
    let record = run.train(&mut watch);
    watch.finish(record.as_ref().ok().map(|record| record.stop_reason))?;
    record?;
    model_of_run(&RunFolder::open(&path)?)
}

fn in_memory(task: &Task<'_>, mut watch: Watch<'_>) -> Result<SavedModel, lpgnn::Error> {
    let Task { config, dataset, .. } = task;
    let setup = Setup::with_registry(&registry(), config, dataset, None)?;
    let trainer = Trainer::new(setup.plan.clone(), &setup.model, &setup.data)?;
    let Trained { weights, epoch, evaluation, reason, .. } = trainer.run(&mut watch)?;
    let mut saved = SavedModel::new(&setup, config, dataset.name(), epoch, weights);
    let notes = ModelNotes {
        stop_reason: Some(reason),
        metrics: watch.finish(Some(reason))?,
        evaluation,
        final_evaluation: FinalEvaluation::new(&saved, dataset, &setup.split)?,
    };
    saved.notes = notes_to_json(&notes);
    Ok(saved)
}

/// Reports every epoch, and writes event files if they are asked for.
pub(crate) struct Watch<'a> {
    reporter: &'a Reporter<'a>,
    events: Option<EventWriter>,
    /// Those of training in memory.
    metrics: Vec<EpochMetrics>,
    begun: Instant,
}

impl<'a> Watch<'a> {
    pub(crate) fn new(
        reporter: &'a Reporter<'a>,
        events: Option<&Path>,
        epochs: usize,
        config: &RunConfig,
    ) -> Result<Self, lpgnn::Error> {
        let events =
            events.map(|folder| EventWriter::create(folder, epochs, config)).transpose()?;
        Ok(Self { reporter, events, metrics: vec![], begun: Instant::now() })
    }

    /// The epochs of training in memory.
    pub(crate) fn finish(
        self,
        reason: Option<StopReason>,
    ) -> Result<Vec<EpochMetrics>, lpgnn::Error> {
        self.events.map_or(Ok(()), |events| events.finish(reason))?;
        Ok(self.metrics)
    }
}

impl Observer for Watch<'_> {
    fn epoch(&mut self, report: &EpochReport, state: &TrainerState) -> ControlFlow<()> {
        let seconds = self.begun.elapsed().as_secs_f64();
        let metrics = EpochMetrics { report: report.clone(), seconds };
        let written = match &mut self.events {
            Some(events) => Observer::epoch(events, report, state),
            None => ControlFlow::Continue(()),
        };
        let answer = self.reporter.tell(&metrics);
        self.metrics.push(metrics);
        self.begun = Instant::now();
        if written.is_break() { written } else { answer }
    }
}

impl RunObserver for Watch<'_> {
    fn epoch(&mut self, progress: &Progress<'_>) -> ControlFlow<()> {
        let written = self.events.epoch(progress);
        let answer = self.reporter.tell(progress.metrics);
        if written.is_break() { written } else { answer }
    }
}
