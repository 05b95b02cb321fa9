use lpgnn::experiment::record::{FinalEvaluation, ModelNotes};
use lpgnn::run::{SavedModel, Setup};
use lpgnn::train::{Trained, Trainer};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::dataset::Dataset;
use crate::error::exception;
use crate::events::{Reporter, work};
use crate::model::{Model, notes_to_json};
use crate::registry::registry;
use crate::settings::{Request, Task};
use crate::threads::pool;
use crate::training::Watch;

/// What training goes on from.
#[pyclass(frozen, module = "lpgnn")]
pub(crate) struct WarmStart(lpgnn::run::WarmStart);

#[pymethods]
impl WarmStart {
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.0.to_bytes().map_err(exception)?))
    }

    #[staticmethod]
    fn from_bytes(bytes: &[u8], model: &Model) -> PyResult<Self> {
        let read = lpgnn::run::WarmStart::from_bytes(bytes, model.0.functions());
        read.map(Self).map_err(exception)
    }

    #[getter]
    fn epoch(&self) -> usize {
        self.0.epoch()
    }
}

/// The model of an earlier training, and what is left of that.
type Before<'py> = (PyRef<'py, Model>, PyRef<'py, WarmStart>);
/// A model, what training goes on from, and the exception that ended it early.
type Continued = (Model, WarmStart, Option<Py<PyAny>>);

/// Trains in memory, so many epochs if that is said, and keeps what another training can go on from.
#[pyfunction]
#[allow(clippy::needless_pass_by_value, reason = "it is what Python gives")]
pub(crate) fn train_from(
    py: Python<'_>,
    data: &Dataset,
    request: Request,
    before: Option<Before<'_>>,
    epochs: Option<usize>,
    threads: usize,
    on_event: Option<Py<PyAny>>,
) -> PyResult<Continued> {
    let before = before.as_ref().map(|(model, start)| (&model.0, &start.0));
    let mut task = match (before, epochs) {
        (Some((_, start)), Some(epochs)) => request.task_after(data, start, epochs)?,
        _ => request.task(data, vec![])?,
    };
    if let Some(epochs) = epochs.filter(|_| before.is_none()) {
        // Settings whose defaults depend on the number of epochs are for all that are to come.
        task.config.training.epochs = epochs;
    }
    let outcome = work(py, &pool(threads)?, on_event, |reporter| train(&task, before, reporter))?;
    let ((model, start), interrupt) = outcome;
    Ok((Model(model), WarmStart(start), interrupt.map(|error| error.into_value(py).into_any())))
}

fn train(
    Task { config, dataset, .. }: &Task<'_>,
    before: Option<(&SavedModel, &lpgnn::run::WarmStart)>,
    reporter: &Reporter<'_>,
) -> Result<(SavedModel, lpgnn::run::WarmStart), lpgnn::Error> {
    let setup = match before {
        Some((_, start)) => start.setup_with(&registry(), config, dataset)?,
        None => Setup::with_registry(&registry(), config, dataset, None)?,
    };
    let trainer = match before {
        Some((_, start)) => start.trainer(&setup, dataset)?,
        None => Trainer::new(setup.plan.clone(), &setup.model, &setup.data)?,
    };
    let mut watch = Watch::new(reporter, None, 0, config)?;
    let (trained, state) = trainer.run_keeping_state(&mut watch)?;
    let Trained { weights, epoch, evaluation, reason, .. } = trained;
    let mut saved = SavedModel::new(&setup, config, dataset.name(), epoch, weights);
    let notes = ModelNotes {
        stop_reason: Some(reason),
        metrics: watch.finish(Some(reason))?,
        evaluation,
        final_evaluation: FinalEvaluation::new(&saved, dataset, &setup.split)?,
    };
    let mut notes = notes_to_json(&notes);
    let earlier = before.and_then(|(model, _)| model.notes["metrics"].as_array());
    if let (Some(earlier), Some(metrics)) = (earlier, notes["metrics"].as_array_mut()) {
        metrics.splice(..0, earlier.iter().cloned());
    }
    saved.notes = notes;
    let start = lpgnn::run::WarmStart::new(config, dataset, &setup, state)?;
    Ok((saved, start))
}
