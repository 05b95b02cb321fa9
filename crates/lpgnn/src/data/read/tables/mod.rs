//! Tables: `nodes.csv` and `edges.csv` or `ties.csv`, and `graphs.csv`, each plain or gzipped, with
//! features in columns or in `nodes.npy` and `edges.npy` beside them.

mod cells;
mod table;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::column::WordColumn;
use super::name_of;
use super::text::{self, quote};
use crate::data::{Dataset, DatasetParts, FeatureColumns, Level, Split, TargetColumn};
use crate::{Error, Place};
use cells::{Collected, Splits, Targets};
use table::{Role, Row, Table, place_of};

/// The tables of a folder.
///
/// `nodes.csv` has one row per node. All its columns are optional: `graph` (without it, all nodes
/// are of one graph), `id` (unique within its graph; without it, nodes are counted from 0 in each
/// graph), `target`, `split`, and any others, which are features.
///
/// `edges.csv` has the columns `from` and `to`, which name nodes by their `id`, `graph` unless ids
/// are unique over all graphs, and any others, which are features. `ties.csv` is the same for
/// undirected ties: a row is two edges.
///
/// `graphs.csv`, which is optional, has the columns `graph`, `target` and `split`.
pub(super) fn read(folder: &Path) -> Result<Dataset, Error> {
    let graphs = Table::open(folder, "graphs")?.map(read_graphs).transpose()?;
    let nodes = Table::require(folder, "nodes")?;
    let nodes = read_nodes(nodes, graphs.as_ref())?;
    let (edges, edge_features) = match (Table::open(folder, "edges")?, Table::open(folder, "ties")?)
    {
        (Some(edges), None) => read_edges(edges, &nodes, false)?,
        (None, Some(ties)) => read_edges(ties, &nodes, true)?,
        (Some(_), Some(ties)) => {
            return Err(Place::file(&ties.path).error("stands beside edges.csv: only one is read"));
        }
        (None, None) => {
            return Err(Place::file(&folder.join("edges.csv"))
                .error("does not exist, and no edges.csv.gz, ties.csv or ties.csv.gz either"));
        }
    };
    let Nodes { order, node_starts, features, targets, split, path, names, graphs: places, .. } =
        nodes;
    let graph_names = places.map(|places| {
        let mut names = vec![String::new(); places.len()];
        places.into_iter().for_each(|(name, place)| names[place as usize] = name.into());
        names
    });
    let split = match (split, graphs.as_ref().and_then(|graphs| graphs.split.clone())) {
        (Some(_), Some(_)) => {
            return Err(Place::file(&path)
                .error("has a column split, and so has graphs.csv: only one may be divided"));
        }
        (by_node, by_graph) => by_node.or(by_graph),
    };
    Dataset::new(DatasetParts {
        name: name_of(folder),
        node_starts,
        edges,
        node_features: features.select(&order),
        edge_features,
        node_targets: targets.map(|targets| targets.select(&order)),
        graph_targets: graphs.and_then(|graphs| graphs.targets),
        split,
    })?
    .with_chosen_features()
    .with_names(graph_names, names)
}

/// What `graphs.csv` tells.
struct Graphs {
    places: HashMap<Box<str>, u32>,
    count: usize,
    targets: Option<TargetColumn>,
    split: Option<Split>,
}

fn read_graphs(mut table: Table) -> Result<Graphs, Error> {
    let columns = table.roles(&[Role::Graph, Role::Target, Role::Split])?;
    let Some(graph) = place_of(&columns, Role::Graph) else {
        return Err(Place::line(&table.path, 1).error("has no column graph"));
    };
    let mut places = HashMap::new();
    let mut targets = Targets::new(&columns);
    let mut splits = Splits::new(&columns);
    let count = table.for_each(|number, row| {
        let place = u32::try_from(number).map_err(|_| Error::TooLarge)?;
        if places.insert(row.name(graph)?.into(), place).is_some() {
            let problem = format!("names {} for the second time", quote(row.bytes(graph)));
            return Err(row.column_error(graph, problem));
        }
        targets.push(row)?;
        splits.push(row, number)
    })?;
    Ok(Graphs {
        places,
        count,
        targets: targets.finish("graph target")?,
        split: splits.finish(Level::Graph, None),
    })
}

/// What `nodes.csv` tells. Rows are those of the file; nodes are numbered graph by graph.
struct Nodes {
    path: PathBuf,
    features: FeatureColumns,
    targets: Option<TargetColumn>,
    split: Option<Split>,
    /// The row of every node.
    order: Vec<usize>,
    node_starts: Vec<usize>,
    /// Graphs by name; none when there is no column `graph`.
    graphs: Option<HashMap<Box<str>, u32>>,
    /// Nodes by id; none when there is no column `id`.
    ids: Option<Ids>,
    /// The id of every node.
    names: Option<Vec<String>>,
}

/// Nodes by their id.
struct Ids {
    codes: HashMap<Box<str>, u32>,
    /// The node with an id, by graph and code of the id.
    nodes: HashMap<(u32, u32), u32>,
    /// By code, a node with that id, and whether it is the only one.
    somewhere: Vec<(u32, bool)>,
}

fn read_nodes(mut table: Table, given: Option<&Graphs>) -> Result<Nodes, Error> {
    let columns =
        table.roles(&[Role::Graph, Role::Id, Role::Target, Role::Split, Role::Feature])?;
    let (graph, id) = (place_of(&columns, Role::Graph), place_of(&columns, Role::Id));
    if graph.is_none() && given.is_some_and(|graphs| graphs.count != 1) {
        let problem = "has no column graph, but graphs.csv has not one graph";
        return Err(Place::line(&table.path, 1).error(problem));
    }
    let mut graphs: HashMap<Box<str>, u32> =
        given.map_or_else(HashMap::new, |given| given.places.clone());
    let mut features = Collected::new(&columns);
    let mut targets = Targets::new(&columns);
    let mut splits = Splits::new(&columns);
    let (mut graph_of, mut id_of) = (vec![], WordColumn::default());
    let mut lines = vec![];
    let rows = table.for_each(|number, row| {
        if number + 1 >= u32::MAX as usize {
            return Err(Error::TooLarge);
        }
        if let Some(column) = graph {
            let name = row.name(column)?;
            let place = match graphs.get(name) {
                Some(&place) => place,
                None if given.is_some() => {
                    let problem =
                        format!("names {}, which is not in graphs.csv", quote(name.as_bytes()));
                    return Err(row.column_error(column, problem));
                }
                None => {
                    let place = u32::try_from(graphs.len()).map_err(|_| Error::TooLarge)?;
                    graphs.insert(name.into(), place);
                    place
                }
            };
            graph_of.push(place);
        } else {
            graph_of.push(0);
        }
        if let Some(column) = id {
            id_of.push(row.name(column)?)?;
            lines.push(row.line);
        }
        features.push(row)?;
        targets.push(row)?;
        splits.push(row, number)
    })?;
    if rows == 0 {
        return Err(Place::file(&table.path).error("has no nodes"));
    }
    let count = if graph.is_some() { graphs.len() } else { 1 };
    let (order, node_starts) = group(&graph_of, count);
    let mut node_of = vec![0; rows];
    for (node, &row) in order.iter().enumerate() {
        node_of[row] = node;
    }
    let name = |row: &usize| id_of.values()[id_of.codes()[*row] as usize].clone().into();
    let names = id.map(|_| order.iter().map(name).collect());
    let ids = match id {
        Some(_) => Some(Ids::new(&table.path, id_of, &graph_of, &node_of, &lines)?),
        None => None,
    };
    Ok(Nodes {
        features: features.finish("node feature", table.array(rows)?)?,
        targets: targets.finish("node target")?,
        split: splits.finish(Level::Node, Some(&node_of)),
        order,
        node_starts,
        graphs: graph.map(|_| graphs),
        ids,
        names,
        path: table.path,
    })
}

/// The rows graph by graph, in the order of the file within each, and where each graph starts.
fn group(graph_of: &[u32], graphs: usize) -> (Vec<usize>, Vec<usize>) {
    let mut starts = vec![0; graphs + 1];
    for &graph in graph_of {
        starts[graph as usize + 1] += 1;
    }
    for graph in 0..graphs {
        starts[graph + 1] += starts[graph];
    }
    let mut order: Vec<usize> = (0..graph_of.len()).collect();
    order.sort_by_key(|&row| graph_of[row]);
    (order, starts)
}

impl Ids {
    fn new(
        path: &Path,
        id_of: WordColumn,
        graph_of: &[u32],
        node_of: &[usize],
        lines: &[u64],
    ) -> Result<Self, Error> {
        let mut nodes = HashMap::new();
        let mut somewhere = vec![(0, false); id_of.values().len()];
        let mut met = vec![false; somewhere.len()];
        for (row, (&code, &graph)) in id_of.codes().iter().zip(graph_of).enumerate() {
            let node = u32::try_from(node_of[row]).map_err(|_| Error::TooLarge)?;
            if nodes.insert((graph, code), node).is_some() {
                let id = quote(id_of.values()[code as usize].as_bytes());
                let problem = format!("gives the id {id} to a second node of its graph");
                return Err(Place::line(path, lines[row]).error(problem));
            }
            somewhere[code as usize] = (node, !met[code as usize]);
            met[code as usize] = true;
        }
        Ok(Self { codes: id_of.into_known(), nodes, somewhere })
    }
}

impl Nodes {
    /// The node that a cell of a table of edges names, in `graph` or, without one, in any.
    fn find(&self, row: &Row<'_>, column: usize, graph: Option<u32>) -> Result<u32, Error> {
        let id = row.name(column)?;
        let unknown = || {
            row.column_error(
                column,
                format!("names {}, which is no node of nodes.csv", quote(id.as_bytes())),
            )
        };
        let Some(ids) = &self.ids else {
            let graph = graph.unwrap_or(0) as usize;
            let range = self.node_starts[graph]..self.node_starts[graph + 1];
            let place = text::integer(id.as_bytes()).and_then(|place| usize::try_from(place).ok());
            return place
                .filter(|&place| place < range.len())
                .and_then(|place| u32::try_from(range.start + place).ok())
                .ok_or_else(|| {
                    row.column_error(
                        column,
                        format!(
                            "names {}: without a column id the {} nodes of the graph are \
                             counted from 0",
                            quote(id.as_bytes()),
                            range.len()
                        ),
                    )
                });
        };
        let code = *ids.codes.get(id).ok_or_else(unknown)?;
        match graph {
            Some(graph) => ids.nodes.get(&(graph, code)).copied().ok_or_else(|| {
                let problem = format!("names {}, a node of another graph", quote(id.as_bytes()));
                row.column_error(column, problem)
            }),
            None => match ids.somewhere[code as usize] {
                (node, true) => Ok(node),
                (_, false) => Err(row.column_error(
                    column,
                    format!(
                        "names {}, a node of several graphs: a column graph is needed",
                        quote(id.as_bytes())
                    ),
                )),
            },
        }
    }

    fn graph_of(&self, node: u32) -> usize {
        self.node_starts.partition_point(|&start| start <= node as usize) - 1
    }
}

fn read_edges(
    mut table: Table,
    nodes: &Nodes,
    both_ways: bool,
) -> Result<(Vec<(u32, u32)>, FeatureColumns), Error> {
    let columns = table.roles(&[Role::Graph, Role::From, Role::To, Role::Feature])?;
    let header = |problem: &str| Place::line(&table.path, 1).error(problem);
    let (Some(from), Some(to)) = (place_of(&columns, Role::From), place_of(&columns, Role::To))
    else {
        return Err(header("has no columns from and to, but an edge goes from a node to a node"));
    };
    let graph = place_of(&columns, Role::Graph);
    if graph.is_some() && nodes.graphs.is_none() {
        return Err(header("has a column graph, but nodes.csv has none"));
    }
    if graph.is_none() && nodes.ids.is_none() && nodes.node_starts.len() > 2 {
        return Err(header("has no column graph, and the nodes have neither an id to tell theirs"));
    }
    let mut features = Collected::new(&columns);
    let mut edges = vec![];
    let rows = table.for_each(|_, row| {
        let inside = match (graph, &nodes.graphs) {
            (Some(column), Some(graphs)) => {
                let name = row.name(column)?;
                let unknown = || {
                    let problem =
                        format!("names {}, which is no graph of nodes.csv", quote(name.as_bytes()));
                    row.column_error(column, problem)
                };
                Some(*graphs.get(name).ok_or_else(unknown)?)
            }
            _ => None,
        };
        let edge = (nodes.find(row, from, inside)?, nodes.find(row, to, inside)?);
        if inside.is_none() && nodes.graph_of(edge.0) != nodes.graph_of(edge.1) {
            return Err(row.error("joins nodes of two graphs"));
        }
        edges.push(edge);
        features.push(row)
    })?;
    let features = features.finish("edge feature", table.array(rows)?)?;
    if !both_ways {
        return Ok((edges, features));
    }
    // A tie is an edge there and, unless it is a loop, an edge back with the same features.
    let mut there_and_back = vec![];
    let mut row_of = vec![];
    for (row, &(u, v)) in edges.iter().enumerate() {
        there_and_back.push((u, v));
        row_of.push(row);
        if u != v {
            there_and_back.push((v, u));
            row_of.push(row);
        }
    }
    Ok((there_and_back, features.select(&row_of)))
}
