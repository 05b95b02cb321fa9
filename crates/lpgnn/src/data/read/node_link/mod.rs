//! Node-link JSON, as `networkx.node_link_data` and D3 write it.

mod attributes;
mod record;

use std::collections::HashMap;
use std::path::Path;

use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};

use super::text::{self, counted, quote};
use super::unpack::{Guarded, read_error};
use super::{TEST, TRAIN, VAL, name_of};
use crate::data::{Dataset, DatasetParts, Level, Split};
use crate::{Error, Place};
use attributes::{Attributes, Targets};
use record::{Cell, GraphRecord, Record};

/// Reads one graph, a list of graphs, or one after the other:
///
/// ```json
/// {"directed": false, "graph": {"name": "water", "y": 373.1},
///  "nodes": [{"id": "O", "charge": -0.83}, {"id": "H", "charge": 0.415}],
///  "edges": [{"source": "O", "target": "H", "length": 0.96}]}
/// ```
///
/// Edges are also called `links`. Nodes without an `id` are counted from 0. The attribute `y` is the
/// target, `split` is `train`, `val` or `test`; all other attributes of nodes and edges are features.
pub(super) fn read(path: &Path) -> Result<Dataset, Error> {
    let source = std::io::BufReader::new(Guarded::new(path, text::open(path)?));
    let mut json = serde_json::Deserializer::from_reader(source);
    let mut graphs = Graphs::default();
    loop {
        if let Err(error) = (Reader { graphs: &mut graphs }).deserialize(&mut json) {
            return Err(graphs.problem.take().map_or_else(
                || json_error(path, error),
                |problem| Place::file(path).error(problem),
            ));
        }
        match json.end() {
            Ok(()) => break,
            Err(error) if error.is_io() => return Err(json_error(path, error)),
            // Another value.
            Err(_) => {}
        }
    }
    let place = |error: Error| match error {
        Error::Mismatch(problem) => Place::file(path).error(problem),
        error => error,
    };
    graphs.finish(name_of(path)).map_err(place)
}

/// Whether a file that starts like this may have this format.
pub(super) fn is_head(head: &[u8]) -> bool {
    head.iter()
        .find(|byte| !byte.is_ascii_whitespace())
        .is_some_and(|byte| matches!(byte, b'{' | b'['))
}

fn json_error(path: &Path, error: serde_json::Error) -> Error {
    if error.is_io() {
        return read_error(path, error.into());
    }
    let message = error.to_string();
    let (problem, _) = message.rsplit_once(" at line ").unwrap_or((&message, ""));
    // Names are quoted in full, and may be as long as the file.
    let problem: String = problem.replace('\n', " ").chars().take(200).collect();
    Place::line(path, error.line() as u64).error(format!("is not node-link JSON: {problem}"))
}

/// Reads a graph or a list of graphs.
struct Reader<'a> {
    graphs: &'a mut Graphs,
}

impl<'de> DeserializeSeed<'de> for Reader<'_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, source: D) -> Result<(), D::Error> {
        source.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reader<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a graph with nodes and edges, or a list of them")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<(), A::Error> {
        let graph = GraphRecord::read(map)?;
        self.graphs.add(graph).map_err(|problem| {
            self.graphs.problem = Some(problem);
            serde::de::Error::custom("")
        })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(Reader { graphs: self.graphs })?.is_some() {}
        Ok(())
    }
}

/// The graphs so far.
#[derive(Default)]
struct Graphs {
    names: Vec<Option<String>>,
    node_starts: Vec<usize>,
    node_names: Vec<String>,
    nodes: Attributes,
    node_targets: Targets,
    node_split: Members,
    edges: Vec<(u32, u32)>,
    /// The row of attributes of every edge: both directions of an undirected edge have the same.
    row_of: Vec<usize>,
    edge_rows: Attributes,
    graph_targets: Targets,
    graph_split: Members,
    /// Why reading stopped.
    problem: Option<String>,
}

/// What an `id` is: a text and a number may look alike.
type Id = (bool, Box<str>);

impl Graphs {
    /// # Errors
    ///
    /// What is wrong with the graph, as the end of a sentence.
    fn add(&mut self, graph: GraphRecord) -> Result<(), String> {
        let number = self.names.len();
        let here = |problem: String| format!("graph {number} {problem}");
        let Some(nodes) = graph.nodes else {
            return Err(here("has no list “nodes”".into()));
        };
        self.graph_targets.add(&graph.attributes).map_err(here)?;
        self.graph_split.add(&graph.attributes, number).map_err(here)?;
        self.names.push(match graph.attributes.get("name") {
            Some(Cell::Text(name)) if !name.is_empty() => Some(name.to_string()),
            _ => None,
        });
        let start = self.node_names.len();
        self.node_starts.push(start);
        if start + nodes.len() >= u32::MAX as usize {
            return Err(Error::TooLarge.to_string());
        }
        let ids = self.add_nodes(&nodes).map_err(|problem| format!("graph {number}, {problem}"))?;
        for (place, edge) in graph.edges.iter().enumerate() {
            let here = |problem: String| format!("graph {number}, edge {place} {problem}");
            let ends = [("source", "from"), ("target", "to")].map(|(key, other)| {
                end_of(edge, key, other, ids.as_ref(), nodes.len()).map_err(here)
            });
            let [u, v] = ends;
            let (u, v) = (shifted(start, u?), shifted(start, v?));
            let key: &[&str] = if graph.multigraph { &["key"] } else { &[] };
            let own = [&["source", "target"], key].concat();
            self.edge_rows.add(edge, |name| own.contains(&name)).map_err(here)?;
            let row = self.edge_rows.rows() - 1;
            self.edges.push((u, v));
            self.row_of.push(row);
            if !graph.directed && u != v {
                self.edges.push((v, u));
                self.row_of.push(row);
            }
        }
        Ok(())
    }

    /// Adds the nodes of a graph; returns their places by id, if they have ids.
    fn add_nodes(&mut self, nodes: &[Record]) -> Result<Option<HashMap<Id, usize>>, String> {
        let mut ids = HashMap::new();
        let named = nodes.first().is_some_and(|node| node.get("id").is_some());
        for (place, node) in nodes.iter().enumerate() {
            let here = |problem: String| format!("node {place} {problem}");
            let id = match node.get("id") {
                Some(id) if named => Some(id.id().ok_or_else(|| {
                    here(format!("has the id {id}, but a number, a text or a short list of numbers is expected"))
                })?),
                None if !named => None,
                _ => return Err(here("has an id or has none, other than the nodes before it".into())),
            };
            self.node_names.push(match &id {
                Some((_, name)) => name.to_string(),
                None => place.to_string(),
            });
            if let Some(id) = id {
                let name = quote(id.1.as_bytes());
                if ids.insert(id, place).is_some() {
                    return Err(here(format!("has the id {name}, as another node has")));
                }
            }
            self.node_targets.add(node).map_err(here)?;
            self.node_split.add(node, self.node_names.len() - 1).map_err(here)?;
            let own = |name: &str| matches!(name, "id" | "split") || Targets::is_one(name);
            self.nodes.add(node, own).map_err(here)?;
        }
        Ok(named.then_some(ids))
    }

    fn finish(mut self, name: String) -> Result<Dataset, Error> {
        self.node_starts.push(self.node_names.len());
        if self.node_names.is_empty() {
            return Err(Error::Mismatch("has no nodes".into()));
        }
        let split =
            match (self.node_split.finish(Level::Node), self.graph_split.finish(Level::Graph)) {
                (Some(_), Some(_)) => {
                    let problem =
                        "has the attribute split of nodes and of graphs: split one or the other";
                    return Err(Error::Mismatch(problem.into()));
                }
                (by_node, by_graph) => by_node.or(by_graph),
            };
        let graph_names = self.names.iter().any(Option::is_some).then(|| {
            let numbered = self.names.into_iter().enumerate();
            numbered.map(|(number, name)| name.unwrap_or_else(|| number.to_string())).collect()
        });
        Dataset::new(DatasetParts {
            name,
            node_starts: self.node_starts,
            edges: self.edges,
            node_features: self.nodes.finish()?,
            edge_features: self.edge_rows.finish()?.select(&self.row_of),
            node_targets: self.node_targets.finish("node target")?,
            graph_targets: self.graph_targets.finish("graph target")?,
            split,
        })?
        .with_chosen_features()
        .with_names(graph_names, Some(self.node_names))
    }
}

fn shifted(start: usize, place: usize) -> u32 {
    u32::try_from(start + place).expect("there are fewer than 2³² nodes")
}

/// The node at an end of an edge.
fn end_of(
    edge: &Record,
    key: &str,
    other: &str,
    ids: Option<&HashMap<Id, usize>>,
    nodes: usize,
) -> Result<usize, String> {
    let Some(end) = edge.get(key) else {
        let hint = if edge.get(other).is_some() {
            format!(": rename “{other}”")
        } else {
            String::new()
        };
        return Err(format!("has no “{key}”{hint}"));
    };
    let place = match ids {
        Some(ids) => end.id().and_then(|id| ids.get(&id).copied()),
        None => end
            .integer()
            .and_then(|place| usize::try_from(place).ok())
            .filter(|&place| place < nodes),
    };
    place.ok_or_else(|| match ids {
        Some(_) => format!("names {end}, which is not the id of a node"),
        None => {
            format!(
                "names {end}, but without ids the {} are counted from 0",
                counted(nodes, "node")
            )
        }
    })
}

/// The attribute `split` of nodes or graphs.
#[derive(Default)]
struct Members {
    splits: [Vec<usize>; 3],
    found: bool,
}

impl Members {
    fn add(&mut self, record: &Record, number: usize) -> Result<(), String> {
        let name = match record.get("split") {
            None | Some(Cell::Null) => return Ok(()),
            Some(Cell::Text(name)) => &**name,
            Some(other) => return Err(format!("has the split {other}, not train, val or test")),
        };
        self.found = true;
        match [TRAIN, VAL, TEST].iter().position(|names| names.contains(&name)) {
            Some(split) => self.splits[split].push(number),
            None if name.is_empty() => {}
            None => {
                let name = quote(name.as_bytes());
                return Err(format!("has the split {name}, not train, val or test"));
            }
        }
        Ok(())
    }

    fn finish(self, level: Level) -> Option<Split> {
        let [train, val, test] = self.splits;
        self.found.then_some(Split { level, train, val, test })
    }
}
