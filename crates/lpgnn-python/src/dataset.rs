use std::path::Path;

use lpgnn::Matrix;
use lpgnn::data::{
    Cache, Categories, DatasetParts, FeatureColumns, Level, Overwrite, ReadOptions, SampleWeights,
    Split, Statistics, TargetColumn, WriteOptions, resolve, write,
};
use lpgnn::graph::SparseRows;
use numpy::{
    IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, ToPyArray,
};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::columns::{Description, describe};
use crate::error::{Error, exception, json_exception};
use crate::selection;

/// Graphs with features of their nodes and edges, and targets; and where they can be read again.
#[pyclass(frozen, module = "lpgnn")]
pub(crate) struct Dataset(pub(crate) lpgnn::data::Dataset, pub(crate) Option<String>);

/// A categorical column: its name, its distinct values, and the index of every row's value.
type CategoryColumn<'py> = (String, Vec<String>, PyReadonlyArray1<'py, u32>);
/// Real-valued columns.
type ValueColumns<'py> = (Vec<String>, PyReadonlyArray2<'py, f32>);
/// Sparse rows: where every row starts, columns, values, and the number of columns.
type Sparse<'py> =
    (PyReadonlyArray1<'py, u64>, PyReadonlyArray1<'py, u32>, PyReadonlyArray1<'py, f32>, usize);
/// `node` or `graph`, and the indices of the train, val and test splits.
pub(crate) type SplitTuple = (String, Vec<usize>, Vec<usize>, Vec<usize>);

/// `node` or `graph`, and the weight of each.
type Weights<'py> = (String, PyReadonlyArray1<'py, f32>);

/// Features of nodes or edges.
#[derive(FromPyObject)]
struct Columns<'py> {
    #[pyo3(item)]
    categories: Vec<CategoryColumn<'py>>,
    #[pyo3(item)]
    values: Option<ValueColumns<'py>>,
    #[pyo3(item)]
    sparse: Option<Sparse<'py>>,
}

/// Targets.
#[derive(FromPyObject)]
enum Target<'py> {
    Classes(CategoryColumn<'py>),
    Values(ValueColumns<'py>),
}

#[pymethods]
impl Dataset {
    #[staticmethod]
    #[pyo3(signature = (data, format=None))]
    fn read(py: Python<'_>, data: &str, format: Option<&str>) -> PyResult<Self> {
        let format = format.map(str::parse).transpose().map_err(exception)?;
        let cache = Cache::of_user().map_err(exception)?;
        let read = || resolve(data, &ReadOptions { format }, &cache);
        let source = format.is_none().then(|| data.to_owned());
        py.detach(read).map(|read| Self(read, source)).map_err(exception)
    }

    #[staticmethod]
    #[allow(clippy::needless_pass_by_value, reason = "it is what Python gives")]
    #[allow(clippy::too_many_arguments, reason = "Python passes the arrays one by one")]
    fn of_parts(
        name: String,
        node_starts: Vec<usize>,
        edge_index: PyReadonlyArray2<'_, u32>,
        node_columns: Columns<'_>,
        edge_columns: Columns<'_>,
        node_target: Option<Target<'_>>,
        graph_target: Option<Target<'_>>,
        split: Option<SplitTuple>,
        names: (Option<Vec<String>>, Option<Vec<String>>),
        chosen: bool,
        weights: Option<Weights<'_>>,
    ) -> PyResult<Self> {
        let edges: Vec<(u32, u32)> =
            edge_index.as_array().columns().into_iter().map(|edge| (edge[0], edge[1])).collect();
        let parts = DatasetParts {
            name,
            node_features: features(node_starts.last().copied().unwrap_or(0), node_columns)?,
            edge_features: features(edges.len(), edge_columns)?,
            node_starts,
            edges,
            node_targets: node_target.map(target).transpose()?,
            graph_targets: graph_target.map(target).transpose()?,
            split: split.map(split_of).transpose()?,
        };
        let named = |data: lpgnn::data::Dataset| data.with_names(names.0, names.1);
        let data = lpgnn::data::Dataset::new(parts).and_then(named).map_err(exception)?;
        let weights = weights.map(weights_of).transpose()?;
        let data = data.with_weights(weights).map_err(exception)?;
        Ok(Self(if chosen { data.with_chosen_features() } else { data }, None))
    }

    /// The arguments for which [`of_parts`](Self::of_parts) returns the same data set.
    fn parts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let data = &self.0;
        let edges: Vec<u32> = data.edges().iter().map(|edge| edge.0).collect();
        let edges = [edges, data.edges().iter().map(|edge| edge.1).collect()].concat();
        let edges = edges.to_pyarray(py).reshape([2, data.edges().len()])?;
        (
            data.name(),
            data.node_starts().to_vec(),
            edges,
            columns_of(py, data.node_features())?,
            columns_of(py, data.edge_features())?,
            data.node_targets().map(|column| target_column(py, column)).transpose()?,
            data.graph_targets().map(|column| target_column(py, column)).transpose()?,
            data.split().cloned().map(tuple_of),
            (self.graph_names(), self.node_names()),
            data.reads_all(),
            self.weights(py),
        )
            .into_pyobject(py)
    }

    /// Some of the graphs, in this order.
    #[allow(clippy::needless_pass_by_value, reason = "it is what Python gives")]
    fn select(&self, py: Python<'_>, graphs: Vec<usize>) -> PyResult<Self> {
        let selected = py.detach(|| selection::select(&self.0, &graphs));
        selected.map(|selected| Self(selected, None)).map_err(exception)
    }

    /// All graphs of all data sets.
    #[staticmethod]
    #[allow(clippy::needless_pass_by_value, reason = "it is what Python gives")]
    fn concat(all: Vec<PyRef<'_, Self>>) -> PyResult<Self> {
        let all: Vec<&lpgnn::data::Dataset> = all.iter().map(|data| &data.0).collect();
        selection::concat(&all).map(|all| Self(all, None)).map_err(exception)
    }

    /// The same graphs with this split, or none.
    fn with_split(&self, split: Option<SplitTuple>) -> PyResult<Self> {
        let split = split.map(split_of).transpose()?;
        let data = self.0.clone().with_split(split).map_err(exception)?;
        Ok(Self(data, self.1.clone()))
    }

    /// The same graphs with these targets alone.
    #[allow(clippy::needless_pass_by_value, reason = "it is what Python gives")]
    fn with_targets(
        &self,
        node_target: Option<Target<'_>>,
        graph_target: Option<Target<'_>>,
    ) -> PyResult<Self> {
        let node_target = node_target.map(target).transpose()?;
        let graph_target = graph_target.map(target).transpose()?;
        let data = self.0.clone().with_targets(node_target, graph_target).map_err(exception)?;
        Ok(Self(data, None))
    }

    /// The same graphs with weights of nodes or graphs, or none.
    #[allow(clippy::needless_pass_by_value, reason = "it is what Python gives")]
    fn with_weights(&self, weights: Option<Weights<'_>>) -> PyResult<Self> {
        let weights = weights.map(weights_of).transpose()?;
        Ok(Self(self.0.clone().with_weights(weights).map_err(exception)?, None))
    }

    /// `node` or `graph`, and the weight of each.
    #[getter]
    fn weights<'py>(&self, py: Python<'py>) -> Option<(&str, Bound<'py, PyArray1<f32>>)> {
        let weights = self.0.weights()?;
        Some((weights.level().as_str(), weights.as_slice().to_pyarray(py)))
    }

    /// What every column and target is understood as.
    fn columns(&self) -> Vec<Description> {
        describe(&self.0)
    }

    /// Statistics and warnings, as JSON.
    fn info(&self, py: Python<'_>) -> PyResult<String> {
        let statistics = py.detach(|| Statistics::of(&self.0));
        serde_json::to_string(&statistics).map_err(|error| json_exception(&error))
    }

    /// How many edges were given more than once, and how many of these with different features.
    #[getter]
    fn duplicates(&self) -> (usize, usize) {
        (self.0.duplicates(), self.0.conflicts())
    }

    #[getter]
    fn has_node_targets(&self) -> bool {
        self.0.node_targets().is_some()
    }

    #[getter]
    fn has_graph_targets(&self) -> bool {
        self.0.graph_targets().is_some()
    }

    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }

    #[getter]
    fn graphs(&self) -> usize {
        self.0.graphs()
    }

    #[getter]
    fn nodes(&self) -> usize {
        self.0.nodes()
    }

    #[getter]
    fn edges(&self) -> usize {
        self.0.edges().len()
    }

    #[getter]
    fn node_starts<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<usize>> {
        self.0.node_starts().to_pyarray(py)
    }

    #[getter]
    fn edge_index<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<i64>>> {
        let (sources, targets): (Vec<i64>, Vec<i64>) =
            self.0.edges().iter().map(|&(u, v)| (i64::from(u), i64::from(v))).unzip();
        let count = sources.len();
        [sources, targets].concat().into_pyarray(py).reshape([2, count])
    }

    #[getter]
    fn split(&self) -> Option<SplitTuple> {
        self.0.split().cloned().map(tuple_of)
    }

    #[getter]
    fn graph_names(&self) -> Option<Vec<&str>> {
        (0..self.0.graphs()).map(|graph| self.0.graph_name(graph)).collect()
    }

    #[getter]
    fn node_names(&self) -> Option<Vec<&str>> {
        (0..self.0.nodes()).map(|node| self.0.node_name(node)).collect()
    }

    #[getter]
    fn node_classes(&self) -> Option<Vec<String>> {
        classes(self.0.node_targets())
    }

    #[getter]
    fn graph_classes(&self) -> Option<Vec<String>> {
        classes(self.0.graph_targets())
    }

    fn folds(
        &self,
        level: &str,
        count: usize,
        seed: u64,
        val: Option<usize>,
    ) -> PyResult<Vec<SplitTuple>> {
        let folds = Split::k_fold(&self.0, level_of(level)?, count, seed).map_err(exception)?;
        folds
            .into_iter()
            .map(|fold| match val {
                Some(every) => fold.with_validation(&self.0, every, seed).map_err(exception),
                None => Ok(fold),
            })
            .map(|fold| fold.map(tuple_of))
            .collect()
    }

    /// Returns what the format cannot represent, a sentence each.
    fn write(
        &self,
        py: Python<'_>,
        folder: &str,
        format: &str,
        force: bool,
    ) -> PyResult<Vec<String>> {
        let format = format.parse().map_err(exception)?;
        let overwrite = if force { Overwrite::Replace } else { Overwrite::Refuse };
        let options = WriteOptions { format, overwrite };
        py.detach(|| write(&self.0, Path::new(folder), &options)).map_err(exception)
    }
}

fn features(rows: usize, columns: Columns<'_>) -> PyResult<FeatureColumns> {
    let mut features = FeatureColumns::none(rows);
    for column in columns.categories {
        features = features.with_categories(categories(column)?).map_err(exception)?;
    }
    if let Some((names, values)) = columns.values {
        features = features.with_values(names, matrix(&values)?).map_err(exception)?;
    }
    if let Some((starts, columns, values, width)) = columns.sparse {
        let starts = starts.as_array();
        let starts = starts.iter().map(|&at| usize::try_from(at).unwrap_or(usize::MAX));
        let (columns, values) = (columns.as_array().to_vec(), values.as_array().to_vec());
        let sparse =
            SparseRows::new(width, starts.collect(), columns, values).map_err(exception)?;
        features = features.with_sparse(sparse).map_err(exception)?;
    }
    Ok(features)
}

fn categories((name, values, codes): CategoryColumn<'_>) -> PyResult<Categories> {
    Categories::from_codes(name, values, codes.as_array().to_vec()).map_err(exception)
}

fn matrix(values: &PyReadonlyArray2<'_, f32>) -> PyResult<Matrix<f32>> {
    let values = values.as_array();
    let entries = values.iter().copied().collect();
    Matrix::from_entries(values.nrows(), values.ncols(), entries).map_err(exception)
}

fn target(target: Target<'_>) -> PyResult<TargetColumn> {
    Ok(match target {
        Target::Classes(column) => TargetColumn::Classes(categories(column)?),
        Target::Values((names, values)) => TargetColumn::Values { names, values: matrix(&values)? },
    })
}

fn weights_of((level, weights): Weights<'_>) -> PyResult<SampleWeights> {
    SampleWeights::new(level_of(&level)?, weights.as_array().to_vec()).map_err(exception)
}

/// The inverse of [`features`].
fn columns_of<'py>(py: Python<'py>, features: &FeatureColumns) -> PyResult<Bound<'py, PyDict>> {
    let columns = PyDict::new(py);
    let categories: Vec<_> =
        features.categories().iter().map(|column| category_column(py, column)).collect();
    columns.set_item("categories", categories)?;
    let values = features.values();
    let values = (values.cols() > 0)
        .then(|| array(py, values).map(|values| (features.value_names().to_vec(), values)));
    columns.set_item("values", values.transpose()?)?;
    let sparse = features.sparse().map(|sparse| {
        let rows = || (0..sparse.rows()).map(|row| sparse.row(row));
        let mut starts = vec![0_u64];
        starts.extend(rows().scan(0, |end, (columns, _)| {
            *end += columns.len() as u64;
            Some(*end)
        }));
        let columns: Vec<u32> = rows().flat_map(|(columns, _)| columns.iter().copied()).collect();
        let values: Vec<f32> = rows().flat_map(|(_, values)| values.iter().copied()).collect();
        (starts.to_pyarray(py), columns.to_pyarray(py), values.to_pyarray(py), sparse.width())
    });
    columns.set_item("sparse", sparse)?;
    Ok(columns)
}

fn category_column<'py>(
    py: Python<'py>,
    column: &Categories,
) -> (String, Vec<String>, Bound<'py, PyArray1<u32>>) {
    (column.name().to_owned(), column.values().to_vec(), column.codes().to_pyarray(py))
}

/// The inverse of [`target`].
fn target_column<'py>(py: Python<'py>, column: &TargetColumn) -> PyResult<Bound<'py, PyTuple>> {
    match column {
        TargetColumn::Classes(categories) => category_column(py, categories).into_pyobject(py),
        TargetColumn::Values { names, values } => {
            (names.clone(), array(py, values)?).into_pyobject(py)
        }
    }
}

/// A matrix as an array.
pub(crate) fn array<'py>(
    py: Python<'py>,
    matrix: &Matrix<f32>,
) -> PyResult<Bound<'py, PyArray2<f32>>> {
    matrix.as_slice().to_pyarray(py).reshape([matrix.rows(), matrix.cols()])
}

fn classes(target: Option<&TargetColumn>) -> Option<Vec<String>> {
    match target {
        Some(TargetColumn::Classes(categories)) => Some(categories.values().to_vec()),
        _ => None,
    }
}

fn level_of(level: &str) -> PyResult<Level> {
    match level {
        "node" => Ok(Level::Node),
        "graph" => Ok(Level::Graph),
        other => Err(Error::new_err(format!("level is {other}, but node or graph is expected"))),
    }
}

pub(crate) fn split_of((level, train, val, test): SplitTuple) -> PyResult<Split> {
    Ok(Split { level: level_of(&level)?, train, val, test })
}

pub(crate) fn tuple_of(split: Split) -> SplitTuple {
    (split.level.as_str().into(), split.train, split.val, split.test)
}
