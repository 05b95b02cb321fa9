//! The text format of the TU collection.
//!
//! It can represent graphs, integer labels, real attributes and classes. Other data are kept as far
//! as possible: words become numbers, in sorted order; columns lose their names; sparse rows become
//! dense; a split of nodes is lost. A split of all graphs becomes folders `train`, `val` and
//! `test`, in the order of the split.

use std::ops::Range;
use std::path::Path;

use super::{Output, check_written_out};
use crate::Error;
use crate::data::{Categories, Dataset, FeatureColumns, Level, Split, TargetColumn};
use crate::graph::{NO_TARGET, SparseRows};

/// The folders of a split.
pub(super) const PARTS: [&str; 3] = ["train", "val", "test"];

const FILES: [&str; 9] = [
    "_A.txt",
    "_graph_indicator.txt",
    "_graph_labels.txt",
    "_graph_attributes.txt",
    "_node_labels.txt",
    "_node_attributes.txt",
    "_node_targets.txt",
    "_edge_labels.txt",
    "_edge_attributes.txt",
];

/// Whether a TU folder may have a file of this name.
pub(super) fn is_file(name: &str) -> bool {
    FILES.iter().any(|suffix| name.ends_with(suffix))
}

pub(super) fn write(dataset: &Dataset, folder: &Path) -> Result<Vec<String>, Error> {
    check(dataset)?;
    let mut losses = losses(dataset);
    match dataset.split().map(|split| (split, unkept(split, dataset))) {
        Some((split, None)) => {
            for (part, graphs) in parts(split).filter(|(_, graphs)| !graphs.is_empty()) {
                let folder = folder.join(part);
                std::fs::create_dir(&folder).map_err(super::io_error("create", &folder))?;
                write_graphs(dataset, graphs, &folder)?;
            }
        }
        split => {
            let why = split.and_then(|(_, why)| why);
            losses.extend(why.map(|why| format!("the split is not kept, because {why}")));
            write_graphs(dataset, &(0..dataset.graphs()).collect::<Vec<_>>(), folder)?;
        }
    }
    Ok(losses)
}

fn parts(split: &Split) -> impl Iterator<Item = (&'static str, &Vec<usize>)> {
    PARTS.into_iter().zip([&split.train, &split.val, &split.test])
}

/// Why a split cannot be written as folders, if it cannot.
fn unkept(split: &Split, dataset: &Dataset) -> Option<String> {
    if split.level == Level::Node {
        return Some("it is one of nodes".to_owned());
    }
    if parts(split).map(|(_, graphs)| graphs.len()).sum::<usize>() < dataset.graphs() {
        return Some("it leaves out graphs".to_owned());
    }
    parts(split).filter(|(_, graphs)| !graphs.is_empty()).find_map(|(part, graphs)| {
        if graphs.iter().all(|&graph| nodes_of(dataset, graph).is_empty()) {
            return Some(format!("the graphs for {part} have no nodes"));
        }
        // A file without rows does not tell its columns.
        let bare = graphs.iter().all(|&graph| edges_of(dataset, graph).is_empty());
        let featured = !dataset.edge_features().is_empty();
        (bare && featured).then(|| format!("the graphs for {part} have no edges"))
    })
}

fn nodes_of(dataset: &Dataset, graph: usize) -> Range<usize> {
    dataset.node_starts()[graph]..dataset.node_starts()[graph + 1]
}

/// Edges are sorted by source, so those of a graph are contiguous.
fn edges_of(dataset: &Dataset, graph: usize) -> Range<usize> {
    let before = |node: usize| dataset.edges().partition_point(|&(u, _)| (u as usize) < node);
    let nodes = nodes_of(dataset, graph);
    before(nodes.start)..before(nodes.end)
}

/// # Errors
///
/// [`Error::Mismatch`] if something essential cannot be represented.
fn check(dataset: &Dataset) -> Result<(), Error> {
    let impossible = |what: String| {
        Err(Error::Mismatch(format!("{what}, which TU files cannot represent, but tables can")))
    };
    for (what, targets) in [("node", dataset.node_targets()), ("graph", dataset.graph_targets())] {
        let Some(targets) = targets else { continue };
        if let Some(row) = (0..targets.rows()).find(|&row| !targets.is_known(row)) {
            return impossible(format!("{what} {row} of {} has no target", dataset.name()));
        }
    }
    if let Some(TargetColumn::Values { .. }) = dataset.node_targets() {
        return impossible(format!("the node targets of {} are real values", dataset.name()));
    }
    for features in [dataset.node_features(), dataset.edge_features()] {
        features.sparse().map_or(Ok(()), check_written_out)?;
    }
    let starts = dataset.node_starts();
    let empty = starts.windows(2).position(|nodes| nodes[0] == nodes[1]);
    match (empty, dataset.graph_targets()) {
        (Some(graph), None) => impossible(format!(
            "graph {graph} of {} has neither nodes nor a target",
            dataset.name()
        )),
        _ => Ok(()),
    }
}

fn losses(dataset: &Dataset) -> Vec<String> {
    let mut losses = vec![];
    if dataset.has_names() {
        losses.push("names of graphs and nodes become numbers".to_owned());
    }
    let targets = [dataset.node_targets(), dataset.graph_targets()].into_iter().flatten();
    let classes = targets.filter_map(|targets| match targets {
        TargetColumn::Classes(classes) => Some(classes),
        TargetColumn::Values { .. } => None,
    });
    let columns = dataset.node_features().categories().iter();
    for column in columns.chain(dataset.edge_features().categories()).chain(classes) {
        if integers(column).is_none() {
            losses.push(format!(
                "the values of {} become numbers, from 0 for {} to {} for {}",
                column.name(),
                column.values().first().map_or("", String::as_str),
                column.values().len() - 1,
                column.values().last().map_or("", String::as_str),
            ));
        }
    }
    if dataset.node_features().sparse().is_some() || dataset.edge_features().sparse().is_some() {
        losses.push("sparse features are written out, zeros and all".to_owned());
    }
    losses
}

fn write_graphs(dataset: &Dataset, graphs: &[usize], folder: &Path) -> Result<(), Error> {
    let name: String = dataset
        .name()
        .chars()
        .map(|c| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '_' })
        .collect();
    let create = |suffix: &str| Output::create(folder.join(format!("{name}{suffix}")));

    let (mut indicator, mut edges) = (create("_graph_indicator.txt")?, create("_A.txt")?);
    let mut before = 0;
    for (number, &graph) in (1..).zip(graphs) {
        let nodes = nodes_of(dataset, graph);
        for _ in nodes.clone() {
            indicator.line(format_args!("{number}"))?;
        }
        for &(u, v) in &dataset.edges()[edges_of(dataset, graph)] {
            let number = |node: u32| node as usize - nodes.start + before + 1;
            edges.line(format_args!("{}, {}", number(u), number(v)))?;
        }
        before += nodes.len();
    }
    indicator.finish()?;
    edges.finish()?;

    let nodes = || graphs.iter().flat_map(|&graph| nodes_of(dataset, graph));
    let all_edges = || graphs.iter().flat_map(|&graph| edges_of(dataset, graph));
    let (of_nodes, of_edges) = (dataset.node_features(), dataset.edge_features());
    if !of_nodes.categories().is_empty() {
        write_categories(create("_node_labels.txt")?, of_nodes.categories(), nodes())?;
    }
    if attributes(of_nodes) > 0 {
        write_values(create("_node_attributes.txt")?, of_nodes, nodes())?;
    }
    if !of_edges.categories().is_empty() {
        write_categories(create("_edge_labels.txt")?, of_edges.categories(), all_edges())?;
    }
    if attributes(of_edges) > 0 {
        write_values(create("_edge_attributes.txt")?, of_edges, all_edges())?;
    }
    if let Some(TargetColumn::Classes(classes)) = dataset.node_targets() {
        write_categories(create("_node_targets.txt")?, std::slice::from_ref(classes), nodes())?;
    }
    match dataset.graph_targets() {
        Some(TargetColumn::Classes(classes)) => write_categories(
            create("_graph_labels.txt")?,
            std::slice::from_ref(classes),
            graphs.iter().copied(),
        ),
        Some(TargetColumn::Values { values, .. }) => {
            let mut output = create("_graph_attributes.txt")?;
            for &graph in graphs {
                output.line(format_args!("{}", Joined(values.row(graph))))?;
            }
            output.finish()
        }
        None => Ok(()),
    }
}

/// The values of a column as integers, if all are.
fn integers(column: &Categories) -> Option<Vec<i64>> {
    // `+1` and `01` are integers too, but would be read back as `1`.
    let integer = |value: &String| value.parse::<i64>().ok().filter(|x| x.to_string() == *value);
    column.values().iter().map(integer).collect()
}

fn write_categories(
    mut output: Output,
    columns: &[Categories],
    rows: impl Iterator<Item = usize>,
) -> Result<(), Error> {
    let numbers: Vec<Vec<i64>> = columns
        .iter()
        .map(|column| {
            integers(column).unwrap_or_else(|| (0..).take(column.values().len()).collect())
        })
        .collect();
    let mut line = vec![];
    for row in rows {
        line.clear();
        for (column, numbers) in columns.iter().zip(&numbers) {
            let code = column.codes()[row];
            debug_assert_ne!(code, NO_TARGET, "checked before");
            line.push(numbers[code as usize]);
        }
        output.line(format_args!("{}", Joined(&line)))?;
    }
    output.finish()
}

/// The number of real values of a row, with sparse ones as dense.
fn attributes(features: &FeatureColumns) -> usize {
    features.values().cols() + features.sparse().map_or(0, SparseRows::width)
}

fn write_values(
    mut output: Output,
    features: &FeatureColumns,
    rows: impl Iterator<Item = usize>,
) -> Result<(), Error> {
    let mut line = vec![0.0; attributes(features)];
    let dense = features.values().cols();
    for row in rows {
        line[..dense].copy_from_slice(features.values().row(row));
        if let Some(sparse) = features.sparse() {
            line[dense..].fill(0.0);
            let (columns, values) = sparse.row(row);
            for (&column, &value) in columns.iter().zip(values) {
                line[dense + column as usize] = value;
            }
        }
        output.line(format_args!("{}", Joined(&line)))?;
    }
    output.finish()
}

/// Comma-separated entries.
struct Joined<'a, T>(&'a [T]);

impl<T: std::fmt::Display> std::fmt::Display for Joined<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (i, entry) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str(", ")?;
            }
            write!(f, "{entry}")?;
        }
        Ok(())
    }
}
