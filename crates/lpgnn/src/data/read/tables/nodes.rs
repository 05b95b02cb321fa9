//! `nodes.csv`, and how the other tables refer to its rows.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::super::column::WordColumn;
use super::super::text::{self, quote};
use super::Graphs;
use super::cells::{Collected, Splits, Targets};
use super::table::{Role, Row, Table, place_of};
use crate::data::{FeatureColumns, Level, Split, TargetColumn};
use crate::{Error, Place};

/// The contents of `nodes.csv`. Rows are in the order of the file; nodes are numbered graph by graph.
pub(super) struct Nodes {
    pub(super) path: PathBuf,
    pub(super) features: FeatureColumns,
    pub(super) targets: Option<TargetColumn>,
    pub(super) split: Option<Split>,
    /// The row of every node.
    pub(super) order: Vec<usize>,
    pub(super) node_starts: Vec<usize>,
    /// Graphs by name; none if there is no column `graph`.
    pub(super) graphs: Option<HashMap<Box<str>, u32>>,
    /// Nodes by id; none if there is no column `id`.
    pub(super) ids: Option<Ids>,
    /// The id of every node.
    pub(super) names: Option<Vec<String>>,
}

/// Nodes by id.
pub(super) struct Ids {
    codes: HashMap<Box<str>, u32>,
    /// The node with an id, by graph and code of the id.
    nodes: HashMap<(u32, u32), u32>,
    /// By code, a node with that id, and whether it is the only one.
    somewhere: Vec<(u32, bool)>,
}

pub(super) fn read(mut table: Table, given: Option<&Graphs>) -> Result<Nodes, Error> {
    let columns = table.roles(&[Role::Graph, Role::Id, Role::Y, Role::Split, Role::Feature])?;
    let (graph, id) = (place_of(&columns, Role::Graph), place_of(&columns, Role::Id));
    if graph.is_none() && given.is_some_and(|graphs| graphs.count != 1) {
        let problem = "has no column graph, but graphs.csv does not have exactly one graph";
        return Err(Place::line(&table.path, 1).error(problem));
    }
    let mut graphs = GraphColumn::new(graph, given);
    let mut features = Collected::new(&columns);
    let mut targets = Targets::new(&columns);
    let mut splits = Splits::new(&columns);
    let mut id_of = WordColumn::default();
    let mut lines = vec![];
    let rows = table.for_each(|number, row| {
        if number + 1 >= u32::MAX as usize {
            return Err(Error::TooLarge);
        }
        graphs.push(row)?;
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
    let (order, node_starts) = graphs.group();
    let mut node_of = vec![0; rows];
    for (node, &row) in order.iter().enumerate() {
        node_of[row] = node;
    }
    let name = |row: &usize| id_of.values()[id_of.codes()[*row] as usize].clone().into();
    let names = id.map(|_| order.iter().map(name).collect());
    let ids = match id {
        Some(_) => Some(Ids::new(&table.path, id_of, &graphs.of_row, &node_of, &lines)?),
        None => None,
    };
    Ok(Nodes {
        features: features.finish(&table.path, "node feature", table.array(rows)?)?,
        targets: targets.finish(&table.path, "node target")?,
        split: splits.finish(Level::Node, Some(&node_of)),
        order,
        node_starts,
        graphs: graph.map(|_| graphs.places),
        ids,
        names,
        path: table.path,
    })
}

/// The column `graph`: every row's graph. Graphs are numbered as in `graphs.csv`, or else in order of
/// appearance.
struct GraphColumn {
    column: Option<usize>,
    places: HashMap<Box<str>, u32>,
    given: bool,
    of_row: Vec<u32>,
}

impl GraphColumn {
    fn new(column: Option<usize>, given: Option<&Graphs>) -> Self {
        let places = given.map_or_else(HashMap::new, |given| given.places.clone());
        Self { column, places, given: given.is_some(), of_row: vec![] }
    }

    fn push(&mut self, row: &Row<'_>) -> Result<(), Error> {
        let Some(column) = self.column else {
            self.of_row.push(0);
            return Ok(());
        };
        let name = row.name(column)?;
        let place = match self.places.get(name) {
            Some(&place) => place,
            None if self.given => {
                let problem =
                    format!("names {}, which is not in graphs.csv", quote(name.as_bytes()));
                return Err(row.column_error(column, problem));
            }
            None => {
                let place = u32::try_from(self.places.len()).map_err(|_| Error::TooLarge)?;
                self.places.insert(name.into(), place);
                place
            }
        };
        self.of_row.push(place);
        Ok(())
    }

    /// The rows graph by graph, in the order of the file within each, and where each graph starts.
    fn group(&self) -> (Vec<usize>, Vec<usize>) {
        let graphs = if self.column.is_some() { self.places.len() } else { 1 };
        let mut starts = vec![0; graphs + 1];
        for &graph in &self.of_row {
            starts[graph as usize + 1] += 1;
        }
        for graph in 0..graphs {
            starts[graph + 1] += starts[graph];
        }
        let mut order: Vec<usize> = (0..self.of_row.len()).collect();
        order.sort_by_key(|&row| self.of_row[row]);
        (order, starts)
    }
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

    /// The node with this id in `graph` or, without one, anywhere.
    ///
    /// # Errors
    ///
    /// What is wrong with the id, as the end of a sentence.
    fn find(&self, id: &str, graph: Option<u32>) -> Result<u32, &'static str> {
        let code = *self.codes.get(id).ok_or(", which is not a node of nodes.csv")?;
        match graph {
            Some(graph) => {
                self.nodes.get(&(graph, code)).copied().ok_or(", a node of another graph")
            }
            None => match self.somewhere[code as usize] {
                (node, true) => Ok(node),
                (_, false) => Err(", a node of several graphs: add a column graph"),
            },
        }
    }
}

impl Nodes {
    /// The node that a cell refers to, in `graph` or, without one, in any.
    pub(super) fn find(
        &self,
        row: &Row<'_>,
        column: usize,
        graph: Option<u32>,
    ) -> Result<u32, Error> {
        let id = row.name(column)?;
        let wrong =
            |what: &str| row.column_error(column, format!("names {}{what}", quote(id.as_bytes())));
        if let Some(ids) = &self.ids {
            return ids.find(id, graph).map_err(wrong);
        }
        let graph = graph.unwrap_or(0) as usize;
        let range = self.node_starts[graph]..self.node_starts[graph + 1];
        text::integer(id.as_bytes())
            .and_then(|place| usize::try_from(place).ok())
            .filter(|&place| place < range.len())
            .and_then(|place| u32::try_from(range.start + place).ok())
            .ok_or_else(|| {
                wrong(&format!(
                    ", but without a column id the {} nodes of the graph are counted from 0",
                    range.len()
                ))
            })
    }

    /// The graph of a node.
    pub(super) fn graph_of(&self, node: u32) -> usize {
        self.node_starts.partition_point(|&start| start <= node as usize) - 1
    }
}
