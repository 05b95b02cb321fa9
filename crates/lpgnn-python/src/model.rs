use std::borrow::Cow;
use std::path::{Path, PathBuf};

use lpgnn::evaluate::{Metrics, probabilities};
use lpgnn::experiment::record::ModelNotes;
use lpgnn::experiment::run::RunFolder;
use lpgnn::inference::Score;
use lpgnn::report::Report;
use lpgnn::run::{SavedModel, fingerprint};
use numpy::{PyArray1, PyArray2, PyArrayMethods, ToPyArray};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::dataset::{Dataset, SplitTuple, array, tuple_of};
use crate::error::{Error, exception, json_exception};
use crate::registry::registry;
use crate::threads::pool;

/// A trained model with everything needed to use it.
#[pyclass(frozen, module = "lpgnn")]
pub(crate) struct Model(pub(crate) SavedModel);

/// As a model keeps them.
pub(crate) fn notes_to_json(notes: &ModelNotes) -> serde_json::Value {
    // Reports and metrics are always JSON.
    serde_json::to_value(notes).unwrap_or_default()
}

/// The model of a run, with what the run has recorded.
pub(crate) fn model_of_run(folder: &RunFolder) -> Result<SavedModel, lpgnn::Error> {
    let mut saved = SavedModel::read_with(&registry(), &folder.file(RunFolder::MODEL))?;
    if let Some(record) = folder.record()? {
        let notes = ModelNotes {
            stop_reason: Some(record.stop_reason),
            metrics: folder.metrics()?,
            evaluation: record.evaluation,
            final_evaluation: record.final_evaluation,
        };
        saved.notes = notes_to_json(&notes);
    }
    Ok(saved)
}

/// Outputs, probabilities, whether graphs converged, their residuals, and the states of every layer.
type Predicted<'py> = (
    Bound<'py, PyArray2<f32>>,
    Option<Bound<'py, PyArray2<f64>>>,
    Bound<'py, PyArray1<bool>>,
    Bound<'py, PyArray1<f64>>,
    Vec<Bound<'py, PyArray2<f32>>>,
);

/// The graph, output and score that are explained; the gradient; what nodes contribute; edges, what they do, and
/// whether states converge without them.
type Explained<'py> = (
    (usize, usize, f64),
    Bound<'py, PyArray2<f32>>,
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray2<usize>>,
    (Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<bool>>),
);

#[pymethods]
impl Model {
    #[staticmethod]
    fn load(path: &str) -> PyResult<Self> {
        let path = Path::new(path);
        // A run, or the folder of a search, which has a model too.
        let saved = match RunFolder::open(path) {
            Ok(run) => model_of_run(&run),
            Err(_) if path.is_dir() => {
                SavedModel::read_with(&registry(), &path.join(RunFolder::MODEL))
            }
            Err(_) => SavedModel::read_with(&registry(), path),
        };
        saved.map(Self).map_err(exception)
    }

    #[staticmethod]
    fn from_bytes(bytes: &[u8]) -> PyResult<Self> {
        SavedModel::from_bytes_with(&registry(), bytes).map(Self).map_err(exception)
    }

    #[staticmethod]
    fn ensemble(models: Vec<PyRef<'_, Self>>) -> PyResult<Self> {
        let models = models.into_iter().map(|model| model.0.clone()).collect();
        SavedModel::ensemble(models).map(Self).map_err(exception)
    }

    /// The number of members, 1 if it is no ensemble.
    #[getter]
    fn members(&self) -> usize {
        self.0.members_of_ensemble()
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.0.to_bytes().map_err(exception)?))
    }

    fn save(&self, path: &str) -> PyResult<()> {
        self.0.write(Path::new(path)).map_err(exception)
    }

    /// Writes a page of charts, with a map of the states and pictures of graphs if the data are given.
    #[allow(clippy::needless_pass_by_value, reason = "it is what Python gives")]
    fn report(
        &self,
        py: Python<'_>,
        path: PathBuf,
        data: Option<&Dataset>,
        threads: usize,
    ) -> PyResult<()> {
        let notes = self.0.notes.clone();
        let notes: ModelNotes = serde_json::from_value(notes).map_err(|error| {
            Error::new_err(format!("the model has no record of its training to report on: {error}"))
        })?;
        let data = data.map(|data| &data.0);
        let pool = pool(threads)?;
        let write = || Report::of_model(&self.0, &notes, data)?.write(&path);
        py.detach(|| pool.install(write)).map_err(exception)
    }

    /// What was kept of its training, as JSON.
    #[getter]
    fn notes(&self) -> String {
        self.0.notes.to_string()
    }

    /// The split of the data that it was trained on.
    #[getter]
    fn split(&self) -> Option<SplitTuple> {
        self.0.members.clone().map(tuple_of)
    }

    /// Whether it was trained on these data.
    fn was_trained_on(&self, py: Python<'_>, data: &Dataset) -> bool {
        py.detach(|| fingerprint(&data.0) == self.0.data.fingerprint)
    }

    /// The columns of the data that it does not read.
    fn unread(&self, data: &Dataset) -> Vec<String> {
        self.0.encoding.unread(&data.0)
    }

    #[getter]
    fn task(&self) -> &str {
        self.0.task.as_str()
    }

    #[getter]
    fn epoch(&self) -> usize {
        self.0.epoch
    }

    #[getter]
    fn classes(&self) -> Option<Vec<String>> {
        self.0.classes().map(<[String]>::to_vec)
    }

    #[getter]
    fn value_names(&self) -> Vec<String> {
        self.0.value_names.clone()
    }

    #[getter]
    fn weights<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f32>> {
        self.0.weights.to_pyarray(py)
    }

    /// Model and training settings as JSON.
    #[getter]
    fn settings(&self) -> PyResult<String> {
        let settings = serde_json::json!({ "model": self.0.model, "training": self.0.training });
        serde_json::to_string(&settings).map_err(|error| json_exception(&error))
    }

    fn predict<'py>(
        &self,
        py: Python<'py>,
        data: &Dataset,
        max_iter: Option<usize>,
        threads: usize,
    ) -> PyResult<Predicted<'py>> {
        let pool = pool(threads)?;
        let model = self.with_max_iter(max_iter);
        let predicted = py.detach(|| pool.install(|| model.predict(&data.0, false)));
        // Somebody may have pressed Ctrl-C in the meantime.
        py.check_signals()?;
        let predicted = predicted.map_err(exception)?;
        let outputs = &predicted.outputs;
        let shares = match self.0.classes() {
            Some(_) => {
                let rows = (0..outputs.rows()).map(|row| outputs.row(row));
                let shares: Vec<f64> = rows.flat_map(probabilities).collect();
                Some(shares.to_pyarray(py).reshape([outputs.rows(), outputs.cols()])?)
            }
            None => None,
        };
        let found = &predicted.fixed_point;
        let states =
            found.states.iter().map(|states| array(py, states)).collect::<PyResult<_>>()?;
        let converged = found.converged.to_pyarray(py);
        Ok((array(py, outputs)?, shares, converged, found.residuals.to_pyarray(py), states))
    }

    /// The residual of every node.
    fn residuals<'py>(
        &self,
        py: Python<'py>,
        data: &Dataset,
        threads: usize,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let pool = pool(threads)?;
        let residuals = || Ok(self.0.node_residuals(&self.0.predict(&data.0, false)?));
        let found = py.detach(|| pool.install(residuals));
        py.check_signals()?;
        Ok(found.map_err(exception)?.to_pyarray(py))
    }

    /// The multipliers of every layer.
    fn multipliers<'py>(
        &self,
        py: Python<'py>,
        data: &Dataset,
        threads: usize,
    ) -> PyResult<Vec<Bound<'py, PyArray2<f32>>>> {
        let pool = pool(threads)?;
        let multipliers = || self.0.multipliers(&self.0.predict(&data.0, true)?);
        let found = py.detach(|| pool.install(multipliers));
        py.check_signals()?;
        found.map_err(exception)?.iter().map(|layer| array(py, layer)).collect()
    }

    /// What the prediction of a node or graph rests on.
    fn explain<'py>(
        &self,
        py: Python<'py>,
        data: &Dataset,
        item: (usize, Option<usize>),
        edges: usize,
        threads: usize,
    ) -> PyResult<Explained<'py>> {
        let (pool, (item, output)) = (pool(threads)?, item);
        let found = py.detach(|| pool.install(|| self.0.explain(&data.0, item, output, edges)));
        py.check_signals()?;
        let (graph, found) = found.map_err(exception)?;
        let output = match found.score {
            Score::Class(output) | Score::Value(output) => output,
        };
        let ends = found.edges.iter().flat_map(|edge| [edge.nodes.0, edge.nodes.1]);
        let ends = ends.collect::<Vec<_>>().to_pyarray(py).reshape([found.edges.len(), 2])?;
        let effects: Vec<f64> = found.edges.iter().map(|edge| edge.effect).collect();
        let converged: Vec<bool> = found.edges.iter().map(|edge| edge.converged).collect();
        let effects = (effects.to_pyarray(py), converged.to_pyarray(py));
        let gradient = array(py, &found.gradient)?;
        let nodes = found.nodes.to_pyarray(py);
        Ok(((graph, output, found.value), gradient, nodes, ends, effects))
    }

    /// The metrics over these nodes or graphs, as JSON.
    #[allow(clippy::needless_pass_by_value, reason = "it is what Python gives")]
    fn evaluate(
        &self,
        py: Python<'_>,
        data: &Dataset,
        rows: Vec<usize>,
        max_iter: Option<usize>,
        threads: usize,
    ) -> PyResult<String> {
        let pool = pool(threads)?;
        let model = self.with_max_iter(max_iter);
        let evaluate = || {
            let predicted = model.predict(&data.0, true)?;
            predicted.check_finite()?;
            let targets = self.0.task.targets_of(&predicted.batch);
            let outputs = predicted.outputs.select(rows.iter().copied());
            Metrics::of(&targets.select(rows.iter().copied()), &outputs)
        };
        let metrics = py.detach(|| pool.install(evaluate));
        py.check_signals()?;
        let metrics = metrics.map_err(exception)?;
        serde_json::to_string(&metrics).map_err(|error| json_exception(&error))
    }
}

impl Model {
    /// The model, limited to so many iterations.
    fn with_max_iter(&self, max_iter: Option<usize>) -> Cow<'_, SavedModel> {
        match max_iter {
            Some(max_iter) => Cow::Owned(self.0.clone().with_max_iter(max_iter)),
            None => Cow::Borrowed(&self.0),
        }
    }
}
