//! The authors' MATLAB files, in their two layouts.

use std::path::{Path, PathBuf};

use super::column::{COLUMNS, IntegerColumn, numbered};
use super::mat5::{Entries, MatFile, Numbers, Value};
use super::{join_parts, list, name_of};
use crate::data::{ColumnNames, Dataset, DatasetParts, FeatureColumns, TargetColumn};
use crate::{Error, Matrix, Place, memory};

/// Either a folder, or one of the files in it, with `conmattrain.mat` (the connectivity),
/// `nodelabtrain.mat` and `tartrain.mat`, and the same with `valid` and `test`; or a file with a
/// struct `dataSet` that has the fields `config`, `trainSet`, `validationSet` and `testSet`, and
/// these the fields `connMatrix`, `nodeLabels`, `targets` and, if not all targets are known,
/// `maskMatrix`.
///
/// `C(i, j) ≠ 0` is the edge `i → j`; its value is a feature of the edge unless all are 1. Features
/// and targets have one column per node.
pub(super) fn read(path: &Path) -> Result<Dataset, Error> {
    if path.is_dir() {
        return read_folder(path);
    }
    let file = MatFile::open(path)?;
    let variables = file.variables()?;
    if let Some((_, value)) = variables.iter().find(|(name, _)| name == "dataSet") {
        return read_struct(path, value);
    }
    match path.parent() {
        Some(folder) if path.file_name().is_some_and(|name| is_ours(&name.to_string_lossy())) => {
            read_folder(folder)
        }
        _ => Err(Place::file(path).error(
            "has no struct dataSet, and is not called like conmattrain.mat, nodelabtrain.mat or \
             tartrain.mat",
        )),
    }
}

const CONNECTIVITY: &str = "conmat";
const LABELS: &str = "nodelab";
const TARGETS: &str = "tar";
/// The endings of the file names.
const SPLITS: [&str; 3] = ["train", "valid", "test"];

/// Whether a folder holds the files of the first layout.
pub(super) fn is_folder(files: &[String]) -> bool {
    files.iter().any(|file| file.starts_with(CONNECTIVITY) && is_ours(file))
}

fn is_ours(file: &str) -> bool {
    [CONNECTIVITY, LABELS, TARGETS]
        .iter()
        .any(|what| SPLITS.iter().any(|split| file == format!("{what}{split}.mat")))
}

fn read_folder(folder: &Path) -> Result<Dataset, Error> {
    let files = list(folder)?;
    let mut parts = [None, None, None];
    for (part, split) in parts.iter_mut().zip(SPLITS) {
        let file = |what: &str| format!("{what}{split}.mat");
        if files.contains(&file(CONNECTIVITY)) {
            let path = |what| folder.join(file(what));
            *part = Some(read_files(&path(CONNECTIVITY), &path(LABELS), &path(TARGETS))?);
        }
    }
    if parts.iter().all(Option::is_none) {
        return Err(Place::file(folder)
            .error("has none of conmattrain.mat, conmatvalid.mat and conmattest.mat"));
    }
    // No file says where a graph ends.
    let size = block_size(&parts);
    finish(&name_of(folder), parts, size)
}

fn read_files(connectivity: &Path, features: &Path, targets: &Path) -> Result<Part, Error> {
    let mut part = with_only(connectivity, Part::new)?;
    with_only(features, |matrix| part.set_features(matrix))?;
    with_only(targets, |matrix| part.set_targets(matrix, None))?;
    Ok(part)
}

/// Looks at the matrix of a file that has one variable.
fn with_only<T>(
    path: &Path,
    look: impl FnOnce(&Named<'_>) -> Result<T, Error>,
) -> Result<T, Error> {
    let file = MatFile::open(path)?;
    match &file.variables()?[..] {
        [(name, value)] => look(&Named { path, name: name.clone(), value }),
        variables => Err(Place::file(path)
            .error(format!("has {} variables, but one matrix is expected", variables.len()))),
    }
}

fn read_struct(path: &Path, data: &Value<'_>) -> Result<Dataset, Error> {
    let mut parts = [None, None, None];
    for (part, set) in parts.iter_mut().zip(["trainSet", "validationSet", "testSet"]) {
        let Some(fields) = data.field(set) else { continue };
        let field = |name: &str| {
            let value = fields.field(name)?;
            Some(Named { path, name: format!("{set}.{name}"), value })
        };
        let require = |name: &str| {
            field(name).ok_or_else(|| Place::file(path).error(format!("has no {set}.{name}")))
        };
        let mut found = Part::new(&require("connMatrix")?)?;
        found.set_features(&require("nodeLabels")?)?;
        found.set_targets(&require("targets")?, field("maskMatrix").as_ref())?;
        *part = Some(found);
    }
    if parts.iter().all(Option::is_none) {
        return Err(Place::file(path)
            .error("has a dataSet with none of trainSet, validationSet and testSet"));
    }
    // `graphNum` is the number of graphs, but in one byte.
    let size = match data.field("config").and_then(|config| config.field("graphDim")) {
        None => Some(block_size(&parts)),
        Some(Value::Dense { numbers, .. }) => numbers.iter().next().and_then(positive),
        Some(_) => None,
    };
    let size = size.ok_or_else(|| {
        Place::file(path).error("has a config.graphDim that is not a number of nodes")
    })?;
    finish(&name_of(path), parts, size)
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked before")]
fn positive(x: f64) -> Option<usize> {
    (x >= 1.0 && x <= f64::from(u32::MAX) && x.fract() == 0.0).then_some(x as usize)
}

/// A value, and what messages call it.
struct Named<'a> {
    path: &'a Path,
    name: String,
    value: &'a Value<'a>,
}

impl<'a> Named<'a> {
    fn error(&self, problem: impl std::fmt::Display) -> Error {
        Place::file(self.path).error(format!("has a {} that {problem}", self.name))
    }

    /// Rows, columns and the non-zero entries of a full or a sparse matrix.
    fn entries(&self) -> Result<(usize, usize, Entries), Error> {
        match self.value {
            Value::Sparse(sparse) => {
                let mut entries = sparse
                    .entries()
                    .ok_or_else(|| self.error("has row or column indices that are out of range"))?;
                entries.retain(|&(_, _, x)| x != 0.0);
                Ok((sparse.rows, sparse.cols, entries))
            }
            Value::Dense { rows, cols, numbers } => {
                let stored = numbers.iter().filter(|&x| x != 0.0).count();
                let what = format_args!("{}, a matrix with {stored} entries,", self.name);
                memory::require(memory::bytes_of::<(usize, usize, f64)>(&[stored, 2]), what)?;
                let entries = numbers.iter().enumerate().filter(|&(_, x)| x != 0.0);
                Ok((*rows, *cols, entries.map(|(i, x)| (i % rows, i / rows, x)).collect()))
            }
            _ => Err(self.error("is not a matrix of numbers")),
        }
    }

    /// A full matrix with one column per node: its height and its entries, node by node.
    fn per_node(&self, nodes: usize) -> Result<(usize, Numbers<'a>), Error> {
        match *self.value {
            Value::Dense { rows, cols, numbers } if cols == nodes => Ok((rows, numbers)),
            Value::Dense { rows, cols, .. } => Err(self.error(format!(
                "is {rows} × {cols}, but one column for each of the {nodes} nodes is expected"
            ))),
            _ => Err(self.error("is not a full matrix of numbers")),
        }
    }
}

/// The graphs of one split, before it is known where each of them ends.
struct Part {
    path: PathBuf,
    /// What messages call the connectivity.
    name: String,
    nodes: usize,
    edges: Vec<(u32, u32)>,
    /// The entries of the connectivity; empty when all are 1.
    weights: Vec<f32>,
    features: Matrix<f32>,
    targets: Option<TargetColumn>,
}

impl Part {
    fn new(connectivity: &Named<'_>) -> Result<Self, Error> {
        let (rows, cols, entries) = connectivity.entries()?;
        if rows != cols {
            let problem = format!("is {rows} × {cols}, but a square matrix is expected");
            return Err(connectivity.error(problem));
        }
        if rows == 0 {
            return Err(connectivity.error("has no nodes"));
        }
        // Of what is kept for a node, the file has one number or none.
        let what = format_args!("a {} of {rows} nodes", connectivity.name);
        memory::require(memory::bytes_of::<[usize; 4]>(&[rows]), what)?;
        let node = |i: usize| u32::try_from(i).map_err(|_| Error::TooLarge);
        let edges = entries
            .iter()
            .map(|&(row, col, _)| Ok((node(row)?, node(col)?)))
            .collect::<Result<_, Error>>()?;
        let weights = if entries.iter().all(|&(_, _, x)| (x - 1.0).abs() == 0.0) {
            vec![]
        } else {
            entries.iter().map(|&(_, _, x)| finite(connectivity, x)).collect::<Result<_, _>>()?
        };
        let Named { path, name, .. } = connectivity;
        Ok(Self {
            path: path.to_path_buf(),
            name: name.clone(),
            nodes: rows,
            edges,
            weights,
            features: Matrix::zeros(rows, 0),
            targets: None,
        })
    }

    fn set_features(&mut self, features: &Named<'_>) -> Result<(), Error> {
        let (width, numbers) = features.per_node(self.nodes)?;
        let entries = numbers.iter().map(|x| finite(features, x)).collect::<Result<_, _>>()?;
        self.features = Matrix::from_entries(self.nodes, width, entries)?;
        Ok(())
    }

    /// One row of integers is classes, anything else real values. The diagonal of `mask` is 0 if
    /// the target of a node is unknown.
    fn set_targets(&mut self, targets: &Named<'_>, mask: Option<&Named<'_>>) -> Result<(), Error> {
        let (width, numbers) = targets.per_node(self.nodes)?;
        let supervised = mask.map(|mask| self.supervised(mask)).transpose()?;
        let known = |node: usize| supervised.as_ref().is_none_or(|known| known[node]);
        if width == 1 && numbers.iter().all(|x| x.fract() == 0.0 && x.abs() < 9e15) {
            let mut classes = IntegerColumn::new();
            for (node, x) in numbers.iter().enumerate() {
                #[allow(clippy::cast_possible_truncation, reason = "checked above")]
                if known(node) { classes.push(x as i64)? } else { classes.push_unknown() }
            }
            self.targets = Some(TargetColumn::Classes(classes.finish("node target")?));
            return Ok(());
        }
        if width > COLUMNS {
            return Err(targets.error(format!("has more than {COLUMNS} rows of targets")));
        }
        let entries = numbers
            .iter()
            .enumerate()
            .map(|(i, x)| if known(i / width) { finite(targets, x) } else { Ok(f32::NAN) })
            .collect::<Result<_, _>>()?;
        self.targets = Some(TargetColumn::Values {
            names: numbered("node target", width),
            values: Matrix::from_entries(self.nodes, width, entries)?,
        });
        Ok(())
    }

    fn supervised(&self, mask: &Named<'_>) -> Result<Vec<bool>, Error> {
        let (rows, cols, entries) = mask.entries()?;
        if (rows, cols) != (self.nodes, self.nodes) {
            let nodes = self.nodes;
            let problem = format!("is {rows} × {cols}, but {nodes} × {nodes} is expected");
            return Err(mask.error(problem));
        }
        let mut supervised = vec![false; self.nodes];
        for (row, col, _) in entries {
            supervised[row] |= row == col;
        }
        Ok(supervised)
    }

    /// The data set of graphs with `size` nodes each.
    fn finish(self, name: &str, size: usize) -> Result<Dataset, Error> {
        let Self { path, name: connectivity, nodes, edges, weights, features, targets } = self;
        if nodes % size != 0 {
            return Err(Place::file(&path).error(format!(
                "has a {connectivity} of {nodes} nodes, which cannot be graphs of {size} nodes each"
            )));
        }
        let mut edge_features = FeatureColumns::none(edges.len());
        if !weights.is_empty() {
            let weights = Matrix::from_entries(edges.len(), 1, weights)?;
            edge_features =
                edge_features.with_values(vec!["edge attribute".to_owned()], weights)?;
        }
        let width = features.cols();
        Dataset::new(DatasetParts {
            name: name.to_owned(),
            node_starts: (0..=nodes / size).map(|graph| graph * size).collect(),
            edges,
            node_features: FeatureColumns::none(nodes).with_values(
                ColumnNames::default().and_numbered("node attribute", width),
                features,
            )?,
            edge_features,
            node_targets: targets,
            graph_targets: None,
            split: None,
        })
        .map_err(|error| match error {
            Error::EdgeBetweenGraphs { source_graph, target_graph, .. } => Place::file(&path)
                .error(format!(
                    "has a {connectivity} that joins a node of graph {} to a node of graph {}, \
                     where graphs have {size} nodes each",
                    source_graph + 1,
                    target_graph + 1
                )),
            other => other,
        })
    }
}

#[allow(clippy::cast_possible_truncation, reason = "features are kept in single precision")]
fn finite(of: &Named<'_>, x: f64) -> Result<f32, Error> {
    let single = x as f32;
    if single.is_finite() {
        Ok(single)
    } else {
        Err(of.error(format!("has the entry {x}, but finite numbers are expected")))
    }
}

/// The size of the graphs, all of the same size, if no file says so: the smallest number of nodes for
/// which the connectivity of every split consists of blocks with no edge between them.
///
/// It is too small only if every graph of every split is disconnected at the same place.
fn block_size(parts: &[Option<Part>; 3]) -> usize {
    let parts = || parts.iter().flatten();
    let common = parts().map(|part| part.nodes).fold(0, greatest_common_divisor);
    let fits = |size: usize| {
        let inside = |&(u, v): &(u32, u32)| u as usize / size == v as usize / size;
        parts().all(|part| part.edges.iter().all(inside))
    };
    (1..=common).find(|&size| common % size == 0 && fits(size)).unwrap_or(common.max(1))
}

fn greatest_common_divisor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

fn finish(name: &str, parts: [Option<Part>; 3], size: usize) -> Result<Dataset, Error> {
    let mut sets = [None, None, None];
    for (set, part) in sets.iter_mut().zip(parts) {
        if let Some(part) = part {
            *set = Some((part.path.clone(), part.finish(name, size)?));
        }
    }
    join_parts(sets)
}
