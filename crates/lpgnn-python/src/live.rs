use lpgnn::evaluate::probabilities;
use lpgnn::live::{LiveData, LiveOptions, Name, NamedEvent, NamedPrediction};
use pyo3::prelude::*;

use crate::dataset::Dataset;
use crate::error::{exception, json_exception};
use crate::model::Model;
use crate::threads::KeptPool;

/// A model on data that change.
#[pyclass(module = "lpgnn")]
pub(crate) struct LiveGraph {
    data: LiveData,
    pool: KeptPool,
}

/// Graph, node, outputs, probabilities, class, bound, and whether the class is final.
type Row = (String, Option<String>, Vec<f32>, Option<Vec<f64>>, Option<usize>, f64, bool);

/// Errors by the number of their event, nodes touched, how often one was computed, the bound, and what has changed.
type Applied = (Vec<(usize, String)>, usize, usize, f64, Vec<Row>);

fn row(found: NamedPrediction) -> Row {
    let NamedPrediction { graph, node, prediction } = found;
    let shares = prediction.class.map(|_| probabilities(&prediction.outputs));
    let node = node.map(|node| node.to_string());
    let (class, bound, is_final) = (prediction.class, prediction.bound, prediction.is_final);
    (graph.to_string(), node, prediction.outputs, shares, class, bound, is_final)
}

#[pymethods]
impl LiveGraph {
    #[new]
    fn new(
        py: Python<'_>,
        model: &Model,
        data: &Dataset,
        tol: f64,
        final_tol: Option<f64>,
        lipschitz: Option<f64>,
        threads: usize,
    ) -> PyResult<Self> {
        let options = LiveOptions { tol, final_tol, lipschitz, ..LiveOptions::default() };
        let mut kept = KeptPool::new(threads);
        let pool = kept.get()?;
        let live = py.detach(|| pool.install(|| LiveData::new(&model.0, &data.0, &options)));
        Ok(Self { data: live.map_err(exception)?, pool: kept })
    }

    /// Applies events, as a JSON array.
    fn apply(&mut self, py: Python<'_>, events: &str) -> PyResult<Applied> {
        let events: Vec<NamedEvent> =
            serde_json::from_str(events).map_err(|error| json_exception(&error))?;
        let Self { data, pool } = self;
        let pool = pool.get()?;
        let report = py.detach(|| pool.install(|| data.apply(&events)));
        let errors = report.errors.iter().map(|(event, error)| (*event, error.to_string()));
        let changed = report.changed.into_iter().map(row).collect();
        Ok((errors.collect(), report.touched, report.evaluated, report.bound, changed))
    }

    fn predict(&self, graph: Option<&str>, node: Option<&str>) -> PyResult<Row> {
        let (graph, node) = (graph.map(Name::from), node.map(Name::from));
        self.data.predict(graph.as_ref(), node.as_ref()).map(row).map_err(exception)
    }

    /// Numbers of nodes, edges, graphs and events, the bound, and bytes.
    fn stats(&self) -> (usize, usize, usize, u64, f64, usize) {
        let graph = self.data.graph();
        (
            graph.nodes(),
            graph.edges(),
            graph.graphs(),
            self.data.events(),
            graph.bound(),
            graph.bytes(),
        )
    }
}
