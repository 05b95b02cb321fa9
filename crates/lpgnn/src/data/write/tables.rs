//! Tables: `nodes.csv`, `edges.csv`, `graphs.csv` and `dataset.toml`, as the reader of tables
//! describes them.
//!
//! They hold everything but the names of the targets, the order within a split, and values of a
//! category that no row has. Nodes without ids are counted from 0 in each graph. If every edge has a
//! reverse with the same features, each pair is one row, and `directed` is false. Sparse rows are
//! written as dense arrays to `nodes.npy` and `edges.npy`.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use super::{Output, check_written_out, io_error};
use crate::Error;
use crate::data::names::name_or;
use crate::data::read::COLUMNS;
use crate::data::{Dataset, FeatureColumns, Level, Split, TargetColumn};
use crate::graph::SparseRows;

/// Names that say what a column is for, in upper or lower case, so no feature can have them.
const RESERVED: [&str; 6] = ["graph", "id", "source", "target", "y", "split"];

/// Whether a folder of tables may have a file of this name.
pub(super) fn is_file(name: &str) -> bool {
    let plain = name.strip_suffix(".gz").unwrap_or(name);
    ["nodes.csv", "edges.csv", "graphs.csv", "nodes.npy", "edges.npy", "dataset.toml"]
        .contains(&plain)
}

pub(super) fn write(dataset: &Dataset, folder: &Path) -> Result<Vec<String>, Error> {
    for (what, targets) in [("node", dataset.node_targets()), ("graph", dataset.graph_targets())] {
        if let Some(TargetColumn::Values { names, .. }) = targets
            && names.len() != 1
        {
            return Err(Error::Mismatch(format!(
                "every {what} of {} has {} target values, but a table holds one",
                dataset.name(),
                names.len()
            )));
        }
    }
    for (what, features) in [("node", dataset.node_features()), ("edge", dataset.edge_features())] {
        let count = features.categories().len() + features.value_names().len();
        if count > COLUMNS {
            return Err(Error::Mismatch(format!(
                "every {what} of {} has {count} features, but a table has at most {COLUMNS} columns",
                dataset.name()
            )));
        }
    }
    let mut losses = vec![];
    write_graphs(dataset, folder)?;
    write_nodes(dataset, folder, &mut losses)?;
    let undirected = undirected(dataset);
    write_description(dataset, folder, undirected.is_none())?;
    let rows = undirected.unwrap_or_else(|| (0..dataset.edges().len()).collect());
    write_edges(dataset, &rows, folder, &mut losses)?;
    Ok(losses)
}

fn write_description(dataset: &Dataset, folder: &Path, directed: bool) -> Result<(), Error> {
    let mut file = Output::create(folder.join("dataset.toml"))?;
    file.line(format_args!("name = {}", toml::Value::from(dataset.name())))?;
    file.line(format_args!("directed = {directed}"))?;
    file.finish()
}

/// The edges `u → v` with `u ≤ v`, if every edge has a reverse with the same features.
fn undirected(dataset: &Dataset) -> Option<Vec<usize>> {
    let (edges, features) = (dataset.edges(), dataset.edge_features());
    let mut rows = vec![];
    for (edge, &(u, v)) in edges.iter().enumerate() {
        // Edges are sorted.
        let reverse = edges.binary_search(&(v, u)).ok()?;
        if u <= v {
            rows.push(edge);
            if !features.same_rows(edge, reverse) {
                return None;
            }
        }
    }
    Some(rows)
}

fn write_graphs(dataset: &Dataset, folder: &Path) -> Result<(), Error> {
    let targets = dataset.graph_targets();
    let splits = splits(dataset, Level::Graph);
    let mut header = vec!["graph".to_owned()];
    header.extend(targets.map(target_header));
    header.extend(splits.as_ref().map(|_| "split".to_owned()));
    let mut table = Table::create(folder, "graphs", header)?;
    for graph in 0..dataset.graphs() {
        table.cell(&name_or(dataset.graph_name(graph), graph))?;
        if let Some(targets) = targets {
            table.target(targets, graph)?;
        }
        if let Some(splits) = &splits {
            table.cell(splits[graph])?;
        }
        table.end_row()?;
    }
    table.finish()
}

fn write_nodes(dataset: &Dataset, folder: &Path, losses: &mut Vec<String>) -> Result<(), Error> {
    let (features, targets) = (dataset.node_features(), dataset.node_targets());
    let splits = splits(dataset, Level::Node);
    let mut header = vec!["graph".to_owned()];
    let named = (0..dataset.nodes()).any(|node| dataset.node_name(node).is_some());
    header.extend(named.then(|| "id".to_owned()));
    header.extend(feature_headers("node", features, losses));
    header.extend(targets.map(target_header));
    header.extend(splits.as_ref().map(|_| "split".to_owned()));
    let mut table = Table::create(folder, "nodes", header)?;
    for graph in 0..dataset.graphs() {
        let name = name_or(dataset.graph_name(graph), graph);
        for node in dataset.node_starts()[graph]..dataset.node_starts()[graph + 1] {
            table.cell(&name)?;
            if let Some(id) = dataset.node_name(node) {
                table.cell(id)?;
            }
            table.features(features, node)?;
            if let Some(targets) = targets {
                table.target(targets, node)?;
            }
            if let Some(splits) = &splits {
                table.cell(splits[node])?;
            }
            table.end_row()?;
        }
    }
    table.finish()?;
    write_sparse("node", features, &folder.join("nodes.npy"), losses)
}

/// Writes the edges in `rows`, which are in order.
fn write_edges(
    dataset: &Dataset,
    rows: &[usize],
    folder: &Path,
    losses: &mut Vec<String>,
) -> Result<(), Error> {
    let features = dataset.edge_features();
    let mut header = vec!["graph".to_owned(), "source".to_owned(), "target".to_owned()];
    header.extend(feature_headers("edge", features, losses));
    let mut table = Table::create(folder, "edges", header)?;
    let starts = dataset.node_starts();
    let mut graph = 0;
    for &edge in rows {
        let (u, v) = dataset.edges()[edge];
        // Edges are sorted by source.
        while starts[graph + 1] <= u as usize {
            graph += 1;
        }
        table.cell(&name_or(dataset.graph_name(graph), graph))?;
        for node in [u as usize, v as usize] {
            table.cell(&name_or(dataset.node_name(node), node - starts[graph]))?;
        }
        table.features(features, edge)?;
        table.end_row()?;
    }
    table.finish()?;
    write_sparse("edge", &features.select(rows), &folder.join("edges.npy"), losses)
}

/// For every node or graph its split, or nothing; none if the data set is not split at this level.
fn splits(dataset: &Dataset, level: Level) -> Option<Vec<&'static str>> {
    let split = dataset.split().filter(|split| split.level == level)?;
    let Split { train, val, test, .. } = split;
    let count = match level {
        Level::Node => dataset.nodes(),
        Level::Graph => dataset.graphs(),
    };
    let mut splits = vec![""; count];
    for (name, members) in [("train", train), ("val", val), ("test", test)] {
        for &member in members {
            splits[member] = name;
        }
    }
    Some(splits)
}

fn target_header(targets: &TargetColumn) -> String {
    match targets {
        TargetColumn::Classes(_) => "y:class".to_owned(),
        TargetColumn::Values { .. } => "y:value".to_owned(),
    }
}

/// One header per feature, of which no two are the same.
fn feature_headers(what: &str, features: &FeatureColumns, losses: &mut Vec<String>) -> Vec<String> {
    let categories =
        features.categories().iter().map(|column| (Cow::Borrowed(column.name()), "category"));
    let values = features.value_names().iter().map(|name| (name, "value"));
    let mut names = HashSet::new();
    let mut headers = vec![];
    for (number, (name, kind)) in (1..).zip(categories.chain(values)) {
        let mut own = name.trim().to_owned();
        let reserved = |name: &str| RESERVED.iter().any(|word| word.eq_ignore_ascii_case(name));
        while own.is_empty() || reserved(&own) || names.contains(&own) {
            own = format!("{what} {own} {number}");
        }
        if own != name {
            losses.push(format!("the {what} feature “{name}” becomes “{own}”"));
        }
        headers.push(format!("{own}:{kind}"));
        names.insert(own);
    }
    headers
}

fn write_sparse(
    what: &str,
    features: &FeatureColumns,
    path: &Path,
    losses: &mut Vec<String>,
) -> Result<(), Error> {
    let Some(sparse) = features.sparse() else { return Ok(()) };
    check_written_out(sparse)?;
    write_array(sparse, path).map_err(io_error("write", path))?;
    losses.push(format!("sparse {what} features become a dense array"));
    Ok(())
}

/// The format `.npy`, version 1.0: a magic word, a header that is a multiple of 64 bytes, the entries.
fn write_array(sparse: &SparseRows<f32>, path: &Path) -> io::Result<()> {
    const BEFORE: usize = 10;
    let mut file = BufWriter::new(File::create(path)?);
    let (rows, width) = (sparse.rows(), sparse.width());
    let mut header =
        format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({rows}, {width}), }}");
    let total = (BEFORE + header.len() + 1).next_multiple_of(64);
    header.extend(std::iter::repeat_n(' ', total - BEFORE - header.len() - 1));
    header.push('\n');
    let length = u16::try_from(header.len()).map_err(io::Error::other)?;
    file.write_all(b"\x93NUMPY\x01\x00")?;
    file.write_all(&length.to_le_bytes())?;
    file.write_all(header.as_bytes())?;
    let mut line = vec![0.0_f32; width];
    for row in 0..rows {
        line.fill(0.0);
        let (columns, values) = sparse.row(row);
        for (&column, &value) in columns.iter().zip(values) {
            line[column as usize] = value;
        }
        for entry in &line {
            file.write_all(&entry.to_le_bytes())?;
        }
    }
    file.flush()
}

/// A CSV file that is written cell by cell.
struct Table {
    path: PathBuf,
    writer: csv::Writer<File>,
}

impl Table {
    fn create(folder: &Path, stem: &str, header: Vec<String>) -> Result<Self, Error> {
        let path = folder.join(format!("{stem}.csv"));
        let file = File::create(&path).map_err(io_error("write", &path))?;
        let mut table = Self { writer: csv::Writer::from_writer(file), path };
        for name in header {
            table.cell(&name)?;
        }
        table.end_row()?;
        Ok(table)
    }

    fn cell(&mut self, text: &str) -> Result<(), Error> {
        self.writer.write_field(text).map_err(|error| csv_error(&self.path, error))
    }

    fn features(&mut self, features: &FeatureColumns, row: usize) -> Result<(), Error> {
        for column in features.categories() {
            self.cell(column.value(row).unwrap_or_default())?;
        }
        for value in features.values().row(row) {
            self.cell(&value.to_string())?;
        }
        Ok(())
    }

    /// The target of a row, or an empty cell.
    fn target(&mut self, targets: &TargetColumn, row: usize) -> Result<(), Error> {
        match targets {
            TargetColumn::Classes(classes) => self.cell(classes.value(row).unwrap_or_default()),
            TargetColumn::Values { values, .. } if targets.is_known(row) => {
                self.cell(&values.row(row)[0].to_string())
            }
            TargetColumn::Values { .. } => self.cell(""),
        }
    }

    fn end_row(&mut self) -> Result<(), Error> {
        self.writer.write_record(None::<&[u8]>).map_err(|error| csv_error(&self.path, error))
    }

    fn finish(mut self) -> Result<(), Error> {
        self.writer.flush().map_err(io_error("write", &self.path))
    }
}

fn csv_error(path: &Path, error: csv::Error) -> Error {
    io_error("write", path)(error.into())
}
