//! `edges.csv`.

use super::super::text::quote;
use super::cells::Collected;
use super::nodes::Nodes;
use super::table::{Column, Role, Row, Table, place_of};
use crate::data::FeatureColumns;
use crate::{Error, Place};

/// What others call the columns `source` and `target`.
const OTHER_NAMES: [[&str; 2]; 4] =
    [["from", "to"], ["src", "dst"], ["u", "v"], ["node1", "node2"]];

/// The edges, and one row of features for each.
pub(super) fn read(
    mut table: Table,
    nodes: &Nodes,
    directed: bool,
) -> Result<(Vec<(u32, u32)>, FeatureColumns), Error> {
    let columns = table.roles(&[Role::Graph, Role::Source, Role::Target, Role::Feature])?;
    let header = |problem: &str| Place::line(&table.path, 1).error(problem);
    let (Some(source), Some(target)) =
        (place_of(&columns, Role::Source), place_of(&columns, Role::Target))
    else {
        return Err(header(&without_ends(&columns)));
    };
    let graph = place_of(&columns, Role::Graph);
    if graph.is_some() && nodes.graphs.is_none() {
        return Err(header("has a column graph, but nodes.csv has none"));
    }
    if graph.is_none() && nodes.ids.is_none() && nodes.node_starts.len() > 2 {
        return Err(header(
            "has no column graph, and nodes.csv has no column id that would identify the graph",
        ));
    }
    let mut features = Collected::new(&columns);
    let mut edges = vec![];
    let rows = table.for_each(|_, row| {
        let inside = graph.map(|column| graph_of(row, column, nodes)).transpose()?;
        let edge = (nodes.find(row, source, inside)?, nodes.find(row, target, inside)?);
        if inside.is_none() && nodes.graph_of(edge.0) != nodes.graph_of(edge.1) {
            return Err(row.error("joins nodes of two graphs"));
        }
        edges.push(edge);
        features.push(row)
    })?;
    let features = features.finish(&table.path, "edge feature", table.array(rows)?)?;
    Ok(if directed { (edges, features) } else { both_directions(&edges, &features) })
}

/// What is wrong with a header without `source` or `target`.
fn without_ends(columns: &[Column]) -> String {
    let has = |name: &str| columns.iter().any(|column| column.name.eq_ignore_ascii_case(name));
    let advice = match OTHER_NAMES.iter().find(|names| names.iter().any(|name| has(name))) {
        Some([source, target]) => format!(": rename {source} to source and {target} to target"),
        None => String::new(),
    };
    format!("needs the columns source and target, the nodes that an edge joins{advice}")
}

fn graph_of(row: &Row<'_>, column: usize, nodes: &Nodes) -> Result<u32, Error> {
    let name = row.name(column)?;
    nodes.graphs.as_ref().and_then(|graphs| graphs.get(name)).copied().ok_or_else(|| {
        let problem =
            format!("names {}, which is not a graph of nodes.csv", quote(name.as_bytes()));
        row.column_error(column, problem)
    })
}

/// Every edge `u → v`, and `v → u` with the same features unless it is a self-loop.
pub(in crate::data::read) fn both_directions(
    edges: &[(u32, u32)],
    features: &FeatureColumns,
) -> (Vec<(u32, u32)>, FeatureColumns) {
    let (mut both, mut row_of) = (vec![], vec![]);
    for (row, &(u, v)) in edges.iter().enumerate() {
        both.push((u, v));
        row_of.push(row);
        if u != v {
            both.push((v, u));
            row_of.push(row);
        }
    }
    (both, features.select(&row_of))
}
