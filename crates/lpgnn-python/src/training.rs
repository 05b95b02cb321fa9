use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use lpgnn::experiment::record::FinalEvaluation;
use lpgnn::experiment::run::{EpochMetrics, Progress, Run, RunFolder, RunObserver};
use lpgnn::run::{SavedModel, Setup};
use lpgnn::train::{EpochReport, Observer, Trained, Trainer, TrainerState};
use pyo3::prelude::*;

use crate::dataset::Dataset;
use crate::error::exception;
use crate::events::{Outcome, Reporter, work};
use crate::model::{Model, Notes, model_of_run};
use crate::settings::{Request, Task};
use crate::threads::pool;

/// A model, and the exception that ended its training early.
type TrainedModel = (Model, Option<Py<PyAny>>);

fn trained(py: Python<'_>, (saved, interrupt): Outcome<SavedModel>) -> TrainedModel {
    (Model(saved), interrupt.map(|error| error.into_value(py).into_any()))
}

/// Trains in memory or, with `out`, in a run folder, in place of the run that is there if `force`.
#[pyfunction]
pub(crate) fn train(
    py: Python<'_>,
    data: &Dataset,
    request: Request,
    out: Option<&str>,
    force: bool,
    threads: usize,
    on_event: Option<Py<PyAny>>,
) -> PyResult<TrainedModel> {
    let task = request.task(data, vec![])?;
    task.warn_of_split(py)?;
    let outcome = work(py, &pool(threads)?, on_event, |reporter| match out {
        None => in_memory(&task, reporter),
        Some(out) => {
            let (folder, Task { config, dataset, .. }) = (Path::new(out), &task);
            let run = if force {
                Run::replace(folder, config.clone(), dataset)?
            } else {
                Run::create(folder, config.clone(), dataset)?
            };
            in_folder(run, reporter)
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
    epochs: Option<usize>,
    threads: usize,
    on_event: Option<Py<PyAny>>,
) -> PyResult<TrainedModel> {
    let folder = RunFolder::open(Path::new(folder)).map_err(exception)?;
    let outcome = work(py, &pool(threads)?, on_event, |reporter| {
        let more = epochs.is_some_and(|epochs| {
            folder.config().is_ok_and(|config| epochs != config.training.epochs)
        });
        if !more && folder.finished()?.is_some() {
            return model_of_run(&folder);
        }
        in_folder(Run::resume(folder, &data.0, epochs)?, reporter)
    })?;
    Ok(trained(py, outcome))
}

fn in_folder(run: Run<'_>, reporter: &Reporter<'_>) -> Result<SavedModel, lpgnn::Error> {
    let path = run.folder().path().to_owned();
    run.train(&mut Watch { reporter, metrics: vec![], begun: Instant::now() })?;
    model_of_run(&RunFolder::open(&path)?)
}

fn in_memory(task: &Task<'_>, reporter: &Reporter<'_>) -> Result<SavedModel, lpgnn::Error> {
    let Task { config, dataset, .. } = task;
    let setup = Setup::new(config, dataset)?;
    let trainer = Trainer::new(setup.plan.clone(), &setup.model, &setup.data)?;
    let mut watch = Watch { reporter, metrics: vec![], begun: Instant::now() };
    let Trained { weights, epoch, evaluation, reason, .. } = trainer.run(&mut watch)?;
    let mut saved = SavedModel::new(&setup, config, dataset.name(), epoch, weights);
    let notes = Notes {
        stop_reason: Some(reason),
        metrics: watch.metrics,
        evaluation,
        final_evaluation: FinalEvaluation::new(&saved, dataset, &setup.split)?,
    };
    saved.notes = notes.to_json();
    Ok(saved)
}

/// Reports every epoch.
struct Watch<'a> {
    reporter: &'a Reporter<'a>,
    /// Those of training in memory.
    metrics: Vec<EpochMetrics>,
    begun: Instant,
}

impl Observer for Watch<'_> {
    fn epoch(&mut self, report: &EpochReport, _: &TrainerState) -> ControlFlow<()> {
        let seconds = self.begun.elapsed().as_secs_f64();
        let metrics = EpochMetrics { report: report.clone(), seconds };
        let answer = self.reporter.tell(&metrics);
        self.metrics.push(metrics);
        self.begun = Instant::now();
        answer
    }
}

impl RunObserver for Watch<'_> {
    fn epoch(&mut self, progress: &Progress<'_>) -> ControlFlow<()> {
        self.reporter.tell(progress.metrics)
    }
}
