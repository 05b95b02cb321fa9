//! One graph whose nodes are classified, as the arrays of `numpy.savez`: either a list of edges, a
//! table of features and masks, or sparse matrices and lists of indices.

use std::path::{Path, PathBuf};

use super::archive::Archive;
use super::citation::WIDTH;
use super::column::IntegerColumn;
use super::name_of;
use super::npy::Array;
use super::text::counted;
use crate::data::{ColumnNames, Dataset, DatasetParts, FeatureColumns, Level, Split, TargetColumn};
use crate::graph::SparseRows;
use crate::{Error, Matrix, Place};

/// Reads a graph of either kind.
///
/// The first has `edges` (each undirected edge once), `node_labels`, `node_features` and
/// `train_masks`, `val_masks` and `test_masks`, a row for each split; the first split is the one of
/// the data set, and [`splits`] reads all of them. The second has `labels`, `train_idx`, `val_idx`,
/// `test_idx`, and the matrices `adj` and `attr` as their `data`, `indices`, `indptr` and `shape`.
pub(super) fn read(path: &Path) -> Result<Dataset, Error> {
    let mut arrays = Arrays(Archive::open(path)?);
    let dense = arrays.has("edges");
    if !dense && !arrays.has("adj_indptr") {
        return Err(Place::file(path).error(
            "has neither the array edges, of a graph with node_labels and node_features, nor \
             adj_indptr, of one with labels and the matrices adj and attr",
        ));
    }
    let targets = arrays.targets(if dense { "node_labels" } else { "labels" })?;
    let nodes =
        Nodes { count: targets.rows(), array: if dense { "node_labels" } else { "labels" } };
    if nodes.count == 0 {
        return Err(Place::file(&arrays.path(nodes.array)).error("has no nodes"));
    }
    if nodes.count >= u32::MAX as usize {
        return Err(Error::TooLarge);
    }
    let (edges, edge_features) =
        if dense { arrays.edges(&nodes)? } else { arrays.adjacency(&nodes)? };
    let node_features =
        if dense { arrays.dense_features(&nodes)? } else { arrays.sparse_features(&nodes)? };
    let split = arrays.splits(&nodes)?.into_iter().next();
    let dataset = Dataset::new(DatasetParts {
        name: name_of(path),
        node_starts: vec![0, nodes.count],
        edges,
        node_features,
        edge_features,
        node_targets: Some(targets),
        graph_targets: None,
        split: None,
    })?;
    dataset.with_split(split).map_err(|error| Place::file(path).error(error.to_string()))
}

/// All splits of a graph with `members` nodes.
///
/// # Errors
///
/// [`Error::Input`] if there are none, or if they are not of so many nodes.
pub(in crate::data) fn splits(path: &Path, members: usize) -> Result<Vec<Split>, Error> {
    let mut arrays = Arrays(Archive::open(path)?);
    let array = if arrays.has("node_labels") { "node_labels" } else { "labels" };
    let splits = arrays.splits(&Nodes { count: members, array })?;
    if splits.is_empty() {
        return Err(Place::file(path).error("has no splits: train_masks or train_idx is expected"));
    }
    Ok(splits)
}

/// How many nodes there are, and the array that says so.
struct Nodes {
    count: usize,
    array: &'static str,
}

impl Nodes {
    /// # Errors
    ///
    /// [`Error::Input`] if an array has another number of rows.
    fn check(&self, found: usize, path: &Path) -> Result<(), Error> {
        if found == self.count {
            return Ok(());
        }
        let problem = format!("has {}, but {self}", counted(found, "row"));
        Err(Place::file(path).error(problem))
    }

    /// The node that `place`, an entry of the array at `path`, names.
    fn node(&self, place: i64, path: &Path) -> Result<u32, Error> {
        let node = u32::try_from(place).ok().filter(|&node| (node as usize) < self.count);
        node.ok_or_else(|| {
            let problem = format!("names node {place}, but {self}, counted from 0");
            Place::file(path).error(problem)
        })
    }
}

impl std::fmt::Display for Nodes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} has {}", self.array, counted(self.count, "node"))
    }
}

/// The arrays of a file, by name.
struct Arrays(Archive);

/// Compressed sparse rows.
struct Csr {
    starts: Vec<usize>,
    columns: Vec<u32>,
    values: Vec<f32>,
    /// In either order: some files have the shape of the transposed matrix.
    shape: [usize; 2],
}

/// From this width on, a table with fewer than one in `FEW` entries other than zero is kept sparse.
const WIDE: usize = 256;
const FEW: usize = 20;

impl Arrays {
    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(format!("{name}.npy"))
    }

    fn has(&self, name: &str) -> bool {
        self.0.has(&format!("{name}.npy"))
    }

    fn find<'a>(
        &'a mut self,
        name: &str,
    ) -> Result<Option<Array<impl std::io::Read + use<'a>>>, Error> {
        let path = self.path(name);
        let entry = self.0.entry(&format!("{name}.npy"))?;
        entry.map(|(source, size)| Array::open(&path, source, size)).transpose()
    }

    fn require<'a>(&'a mut self, name: &str) -> Result<Array<impl std::io::Read + use<'a>>, Error> {
        let path = self.path(name);
        self.find(name)?.ok_or_else(|| Place::file(&path).error("does not exist"))
    }

    /// Integers are classes, negative if unknown; real numbers are values, NaN if unknown.
    fn targets(&mut self, name: &str) -> Result<TargetColumn, Error> {
        let array = self.require(name)?;
        let [_, cols] = array.shape();
        if !array.is_whole() {
            let path = array.path().to_owned();
            let values = array.matrix()?;
            if values.as_slice().iter().any(|x| x.is_infinite()) {
                return Err(Place::file(&path).error("has an infinite target"));
            }
            let names = super::column::numbered("node target", cols);
            return Ok(TargetColumn::Values { names, values });
        }
        if cols != 1 {
            let problem = format!("has {cols} columns where one class per node is expected");
            return Err(Place::file(array.path()).error(problem));
        }
        let mut classes = IntegerColumn::new();
        for class in array.integers()? {
            if class < 0 {
                classes.push_unknown();
            } else {
                classes.push(class)?;
            }
        }
        Ok(TargetColumn::Classes(classes.finish("node label")?))
    }

    /// `edges`: both directions of each.
    fn edges(&mut self, nodes: &Nodes) -> Result<(Vec<(u32, u32)>, FeatureColumns), Error> {
        let array = self.require("edges")?;
        let path = array.path().to_owned();
        let [rows, cols] = array.shape();
        if cols != 2 {
            let problem =
                format!("is {rows} × {cols}, but a row for each edge, of two nodes, is expected");
            return Err(Place::file(&path).error(problem));
        }
        let mut edges = vec![];
        for ends in array.integers()?.chunks_exact(2) {
            let (u, v) = (nodes.node(ends[0], &path)?, nodes.node(ends[1], &path)?);
            edges.push((u, v));
            if u != v {
                edges.push((v, u));
            }
        }
        let features = FeatureColumns::none(edges.len());
        Ok((edges, features))
    }

    /// `adj`: an edge for every entry that is not zero, with the entry as its weight unless all are 1.
    #[allow(clippy::float_cmp, reason = "what is written as 0 or 1 is meant")]
    fn adjacency(&mut self, nodes: &Nodes) -> Result<(Vec<(u32, u32)>, FeatureColumns), Error> {
        let matrix = self.csr("adj")?;
        let path = self.path("adj_shape");
        if matrix.shape != [nodes.count; 2] {
            let [rows, cols] = matrix.shape;
            return Err(Place::file(&path).error(format!("is {rows} × {cols}, but {nodes}")));
        }
        let (mut edges, mut weights) = (vec![], vec![]);
        for (source, range) in (0_u32..).zip(matrix.starts.windows(2).map(|w| w[0]..w[1])) {
            for entry in range.filter(|&entry| matrix.values[entry] != 0.0) {
                edges.push((source, matrix.columns[entry]));
                weights.push(matrix.values[entry]);
            }
        }
        let features = FeatureColumns::none(edges.len());
        if weights.iter().all(|&weight| weight == 1.0) {
            return Ok((edges, features));
        }
        let weights = Matrix::from_entries(edges.len(), 1, weights)?;
        Ok((edges, features.with_values(vec!["weight".to_owned()], weights)?))
    }

    fn dense_features(&mut self, nodes: &Nodes) -> Result<FeatureColumns, Error> {
        let features = FeatureColumns::none(nodes.count);
        let Some(array) = self.find("node_features")? else { return Ok(features) };
        nodes.check(array.shape()[0], array.path())?;
        let values = array.finite_matrix()?;
        let known = values.as_slice().iter().filter(|&&x| x != 0.0).count();
        if values.cols() >= WIDE && known < values.as_slice().len() / FEW {
            return features.with_sparse(SparseRows::of_dense(&values)?);
        }
        let names = ColumnNames::default().and_numbered("node feature", values.cols());
        features.with_values(names, values)
    }

    fn sparse_features(&mut self, nodes: &Nodes) -> Result<FeatureColumns, Error> {
        let features = FeatureColumns::none(nodes.count);
        if !self.has("attr_indptr") {
            return Ok(features);
        }
        let matrix = self.csr("attr")?;
        nodes.check(matrix.starts.len() - 1, &self.path("attr_indptr"))?;
        let [rows, cols] = matrix.shape;
        let width = if rows == nodes.count { cols } else { rows };
        if width > WIDTH as usize {
            let problem = format!("has {width} columns, but at most {WIDTH} are expected");
            return Err(Place::file(&self.path("attr_shape")).error(problem));
        }
        let (starts, columns, values) = (matrix.starts, matrix.columns, matrix.values);
        let sparse = SparseRows::new(width, starts, columns, values);
        let sparse = sparse
            .map_err(|error| Place::file(&self.path("attr_indices")).error(error.to_string()))?;
        features.with_sparse(sparse)
    }

    /// The matrix of this name, with its shape and its starts checked and the rows sorted.
    fn csr(&mut self, name: &str) -> Result<Csr, Error> {
        let part = |part: &str| format!("{name}_{part}");
        let shape = self.require(&part("shape"))?.integers()?;
        let shape: Vec<usize> = shape.iter().filter_map(|&dim| usize::try_from(dim).ok()).collect();
        let &[rows, cols] = &shape[..] else {
            let problem = "is not the shape of a matrix: two numbers are expected";
            return Err(Place::file(&self.path(&part("shape"))).error(problem));
        };
        let starts = self.require(&part("indptr"))?.integers()?;
        let columns = self.require(&part("indices"))?.integers()?;
        let values = self.require(&part("data"))?.finite_matrix()?.into_entries();
        let starts: Vec<usize> =
            starts.iter().map(|&start| usize::try_from(start).unwrap_or(usize::MAX)).collect();
        let sound = starts.first() == Some(&0)
            && starts.last() == Some(&columns.len())
            && starts.is_sorted()
            && (starts.len() - 1 == rows || starts.len() - 1 == cols);
        if !sound || values.len() != columns.len() {
            return Err(Place::file(&self.path(&part("indptr"))).error(format!(
                "does not lead from 0 to the {} entries of {name}_indices, in as many steps as {name}_shape \
                 has rows and with as many entries in {name}_data",
                columns.len()
            )));
        }
        let width = if starts.len() - 1 == rows { cols } else { rows };
        let column = |&column: &i64| {
            u32::try_from(column).ok().filter(|&place| (place as usize) < width).ok_or_else(|| {
                let problem =
                    format!("names column {column}, but {name}_shape has {width} of them");
                Place::file(&self.path(&part("indices"))).error(problem)
            })
        };
        let columns = columns.iter().map(column).collect::<Result<Vec<u32>, Error>>()?;
        let matrix = Csr { starts, columns, values, shape: [rows, cols] };
        let path = self.path(&part("indices"));
        matrix.sorted().map_err(|row| {
            Place::file(&path).error(format!("has the same column twice in row {row}"))
        })
    }

    /// The splits: a row of the masks each, or one as lists of indices; none if there are neither.
    fn splits(&mut self, nodes: &Nodes) -> Result<Vec<Split>, Error> {
        let kind = ["masks", "idx"].into_iter().find(|kind| self.has(&format!("train_{kind}")));
        let Some(kind) = kind else {
            return self.check_no_other_split().map(|()| vec![]);
        };
        let mut members = vec![];
        for part in ["train", "val", "test"] {
            let name = format!("{part}_{kind}");
            let own = if kind == "masks" {
                self.masks(&name, nodes)?
            } else {
                vec![self.indices(&name, nodes)?]
            };
            members.push(own);
        }
        let path = self.path(&format!("train_{kind}"));
        let counts: Vec<usize> = members.iter().map(Vec::len).collect();
        let [train, val, test] = <[_; 3]>::try_from(members).unwrap_or_default();
        if counts.iter().any(|&count| count != counts[0]) {
            let problem = format!(
                "has {} splits, but val_masks has {} and test_masks {}",
                counts[0], counts[1], counts[2]
            );
            return Err(Place::file(&path).error(problem));
        }
        let parts = train.into_iter().zip(val).zip(test);
        Ok(parts
            .map(|((train, val), test)| Split { level: Level::Node, train, val, test })
            .collect())
    }

    /// That no split is left out, and another one drawn, because its arrays have other names.
    fn check_no_other_split(&self) -> Result<(), Error> {
        let is_split = |name: &String| {
            let name = name.trim_end_matches(".npy").to_ascii_lowercase();
            let has = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
            has(&["train"]) && has(&["mask", "idx", "ind", "split"])
        };
        let Some(name) = self.0.names().into_iter().find(is_split) else { return Ok(()) };
        Err(Place::file(&self.0.path().join(name)).error(
            "would be left out: a split is called train_masks, val_masks and test_masks, or train_idx, val_idx and test_idx",
        ))
    }

    /// The nodes of every row of a table of booleans.
    fn masks(&mut self, name: &str, nodes: &Nodes) -> Result<Vec<Vec<usize>>, Error> {
        let array = self.require(name)?;
        let path = array.path().to_owned();
        // A single mask is a column here.
        let width = match array.shape() {
            [rows, 1] => rows,
            [_, cols] => cols,
        };
        if width != nodes.count {
            let problem = format!("has {width} entries per split, but {nodes}");
            return Err(Place::file(&path).error(problem));
        }
        let of_row = |row: &[i64]| (0..width).filter(|&node| row[node] != 0).collect();
        Ok(array.integers()?.chunks_exact(width).map(of_row).collect())
    }

    fn indices(&mut self, name: &str, nodes: &Nodes) -> Result<Vec<usize>, Error> {
        let array = self.require(name)?;
        let path = array.path().to_owned();
        array.integers()?.iter().map(|&place| Ok(nodes.node(place, &path)? as usize)).collect()
    }
}

impl Csr {
    /// The same with the columns of every row in ascending order.
    ///
    /// # Errors
    ///
    /// The first row that has a column twice.
    fn sorted(mut self) -> Result<Self, usize> {
        let mut row: Vec<(u32, f32)> = vec![];
        for (number, range) in self.starts.windows(2).map(|w| w[0]..w[1]).enumerate() {
            let (columns, values) = (&mut self.columns[range.clone()], &mut self.values[range]);
            if columns.is_sorted_by(|a, b| a < b) {
                continue;
            }
            row.clear();
            row.extend(columns.iter().copied().zip(values.iter().copied()));
            row.sort_unstable_by_key(|&(column, _)| column);
            if row.windows(2).any(|pair| pair[0].0 == pair[1].0) {
                return Err(number);
            }
            for (place, &(column, value)) in row.iter().enumerate() {
                (columns[place], values[place]) = (column, value);
            }
        }
        Ok(self)
    }
}
