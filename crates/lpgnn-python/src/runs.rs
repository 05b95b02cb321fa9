use std::path::{Path, PathBuf};

use lpgnn::experiment::run::RunFolder;
use lpgnn::report::Report;
use pyo3::prelude::*;

use crate::dataset::{Dataset, SplitTuple, tuple_of};
use crate::error::{exception, json_exception};
use crate::model::{Model, model_of_run};
use crate::threads::pool;

/// The folder of a run, to be read.
#[pyclass(frozen, module = "lpgnn")]
pub(crate) struct Run(RunFolder);

#[pymethods]
impl Run {
    #[new]
    fn open(path: &str) -> PyResult<Self> {
        RunFolder::open(Path::new(path)).map(Self).map_err(exception)
    }

    /// The configuration, as JSON.
    fn settings(&self) -> PyResult<String> {
        json(&self.0.config().map_err(exception)?)
    }

    /// The name or path of the data.
    fn source(&self) -> PyResult<(String, Option<String>)> {
        let data = self.0.config().map_err(exception)?.data;
        Ok((data.source, data.format.map(|format| format.to_string())))
    }

    /// The record as JSON; none until it has finished or was stopped.
    fn record(&self) -> PyResult<Option<String>> {
        self.0.record().map_err(exception)?.as_ref().map(json).transpose()
    }

    fn finished(&self) -> PyResult<bool> {
        Ok(self.0.finished().map_err(exception)?.is_some())
    }

    /// All epochs so far, as JSON.
    fn metrics(&self) -> PyResult<String> {
        json(&self.0.metrics().map_err(exception)?)
    }

    fn split(&self) -> PyResult<Option<SplitTuple>> {
        Ok(self.0.split().map_err(exception)?.map(tuple_of))
    }

    /// Writes a page of charts, with pictures of graphs if the data are given.
    #[allow(clippy::needless_pass_by_value, reason = "it is what Python gives")]
    fn report(
        &self,
        py: Python<'_>,
        path: PathBuf,
        data: Option<&Dataset>,
        threads: usize,
    ) -> PyResult<()> {
        let (folder, pool) = (self.0.path(), pool(threads)?);
        let write = || {
            let report = Report::of(&[folder])?;
            let report = match data {
                Some(data) => report.with_drawings(folder, &data.0)?,
                None => report,
            };
            report.write(&path)
        };
        py.detach(|| pool.install(write)).map_err(exception)
    }

    fn model(&self) -> PyResult<Model> {
        model_of_run(&self.0).map(Model).map_err(exception)
    }
}

fn json(value: &impl serde::Serialize) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| json_exception(&error))
}

/// Writes a page of charts that compares runs, or shows one cross-validation or search.
#[pyfunction]
#[allow(clippy::needless_pass_by_value, reason = "it is what Python gives")]
pub(crate) fn report(folders: Vec<PathBuf>, path: PathBuf) -> PyResult<()> {
    Report::of(&folders).and_then(|report| report.write(&path)).map_err(exception)
}
