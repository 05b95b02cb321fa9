use std::path::Path;

use lpgnn::evaluate::{Metrics, probabilities};
use lpgnn::run::SavedModel;
use numpy::{PyArray1, PyArray2, PyArrayMethods, ToPyArray};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::dataset::{Dataset, array};
use crate::error::{exception, json_exception};
use crate::threads::pool;

/// A trained model with everything needed to use it.
#[pyclass(frozen, module = "lpgnn")]
pub(crate) struct Model(pub(crate) SavedModel);

/// Outputs, probabilities, whether graphs converged, their residuals, and the states of every layer.
type Predicted<'py> = (
    Bound<'py, PyArray2<f32>>,
    Option<Bound<'py, PyArray2<f64>>>,
    Bound<'py, PyArray1<bool>>,
    Bound<'py, PyArray1<f64>>,
    Vec<Bound<'py, PyArray2<f32>>>,
);

#[pymethods]
impl Model {
    #[staticmethod]
    fn load(path: &str) -> PyResult<Self> {
        SavedModel::read(Path::new(path)).map(Self).map_err(exception)
    }

    #[staticmethod]
    fn from_bytes(bytes: &[u8]) -> PyResult<Self> {
        SavedModel::from_bytes(bytes).map(Self).map_err(exception)
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.0.to_bytes().map_err(exception)?))
    }

    fn save(&self, path: &str) -> PyResult<()> {
        self.0.write(Path::new(path)).map_err(exception)
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
        threads: usize,
    ) -> PyResult<Predicted<'py>> {
        let pool = pool(threads)?;
        let predicted = py.detach(|| pool.install(|| self.0.predict(&data.0, false)));
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

    /// The metrics over these nodes or graphs, as JSON.
    #[allow(clippy::needless_pass_by_value, reason = "it is what Python gives")]
    fn evaluate(
        &self,
        py: Python<'_>,
        data: &Dataset,
        rows: Vec<usize>,
        threads: usize,
    ) -> PyResult<String> {
        let pool = pool(threads)?;
        let evaluate = || {
            let predicted = self.0.predict(&data.0, true)?;
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
