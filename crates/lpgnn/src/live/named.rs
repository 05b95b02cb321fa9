//! Live graphs whose nodes have the names of a data set, and features as they are in files.

use std::collections::HashMap;

use super::{
    Columns, Event, EventError, Explanation, LiveGraph, LiveOptions, Name, NamedEvent, Prediction,
    Sink, Source,
};
use crate::Error;
use crate::data::{Dataset, Encoding};
use crate::graph::{Features, Level};
use crate::run::SavedModel;

/// A saved model on a data set that changes.
///
/// ```
/// # use lpgnn::live::NamedEvent;
/// let line = r#"{"op": "add-edge", "source": 3, "target": "alice", "undirected": true}"#;
/// let event: NamedEvent = serde_json::from_str(line).unwrap();
/// assert!(matches!(event, NamedEvent::AddEdge { undirected: true, .. }));
/// ```
#[derive(Debug)]
pub struct LiveData {
    live: LiveGraph,
    encoding: Encoding,
    /// The name of every node; none of those that were removed.
    names: Vec<Option<Name>>,
    nodes: HashMap<(u32, Name), u32>,
    graphs: Vec<Name>,
    /// The number of every graph.
    numbers: HashMap<Name, usize>,
    events: u64,
    /// Nodes that came or went since the live graph began.
    renamed: Vec<Renamed>,
}

/// A name that a node has got, or has given up.
#[derive(Debug)]
struct Renamed {
    node: u32,
    graph: u32,
    name: Name,
    is_new: bool,
}

/// What became of some events.
#[derive(Debug)]
pub struct NamedReport {
    /// Why an event was refused, for every event that was.
    pub errors: Vec<(usize, Error)>,
    /// How often `f_a` of a node was computed, over all layers.
    pub evaluated: usize,
    /// How many nodes that were.
    pub touched: usize,
    /// See [`Report::bound`](super::Report::bound).
    pub bound: f64,
    /// The predictions that have changed.
    pub changed: Vec<NamedPrediction>,
}

/// The prediction of a node or a graph.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedPrediction {
    /// The graph.
    pub graph: Name,
    /// The node; none where graphs are predicted.
    pub node: Option<Name>,
    /// The prediction.
    pub prediction: Prediction,
}

impl LiveData {
    /// The graphs of a data set; all states converge first.
    ///
    /// # Errors
    ///
    /// Those of [`LiveGraph::new`], and [`Error::Mismatch`] if the model cannot read the data.
    pub fn new(model: &SavedModel, data: &Dataset, options: &LiveOptions) -> Result<Self, Error> {
        model.check_single("a live graph")?;
        if model.encoding.reads_structure() {
            return Err(Error::Mismatch(
                "the model reads rings, cliques or random walks, which an edge changes far around it: a live graph \
                 cannot keep them current"
                    .into(),
            ));
        }
        let batch = model.encoding.batch_without_targets::<f32>(data)?;
        let options = LiveOptions { classes: model.classes().is_some(), ..*options };
        let live =
            LiveGraph::new(model.functions(), &model.weights, &batch, data.edges(), &options)?;
        let name =
            |name: Option<&str>, number: usize| name.map_or_else(|| Name::from(number), Name::from);
        let graphs = (0..data.graphs()).map(|graph| name(data.graph_name(graph), graph)).collect();
        let mut names = vec![];
        for ends in data.node_starts().windows(2) {
            names.extend((ends[0]..ends[1]).map(|v| Some(name(data.node_name(v), v - ends[0]))));
        }
        Self::with_names(live, model.encoding.clone(), names, graphs, 0)
    }

    fn with_names(
        live: LiveGraph,
        encoding: Encoding,
        names: Vec<Option<Name>>,
        graphs: Vec<Name>,
        events: u64,
    ) -> Result<Self, Error> {
        let mut nodes = HashMap::with_capacity(names.len());
        for (v, name) in names.iter().enumerate() {
            if let (Some(name), Some(graph)) = (name, live.graph_of(v)) {
                #[allow(clippy::cast_possible_truncation, reason = "nodes have 30 bits")]
                let (v, graph) = (v as u32, graph as u32);
                if nodes.insert((graph, name.clone()), v).is_some() {
                    return Err(Error::Mismatch(format!("two nodes of a graph are named {name}")));
                }
            }
        }
        let mut numbers = HashMap::with_capacity(graphs.len());
        for (graph, name) in graphs.iter().enumerate() {
            if numbers.insert(name.clone(), graph).is_some() {
                return Err(Error::Mismatch(format!("two graphs are named {name}")));
            }
        }
        Ok(Self { live, encoding, names, nodes, graphs, numbers, events, renamed: vec![] })
    }

    /// The live graph, by numbers.
    pub fn graph(&self) -> &LiveGraph {
        &self.live
    }

    /// Number of events so far, refused ones among them.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Applies some events, in their order, and then brings all predictions within the tolerance; those that cannot be are
    /// refused, and the others are not.
    pub fn apply(&mut self, events: &[NamedEvent]) -> NamedReport {
        self.live.begin();
        let (mut errors, mut is_whole) = (vec![], true);
        for (i, event) in events.iter().enumerate() {
            let changes = self.live.changes();
            if let Err(error) = self.change(event) {
                errors.push((i, self.with_name(error)));
                is_whole &= self.live.changes() == changes;
            }
        }
        let mut evaluated = if is_whole { self.live.converge() } else { 0 };
        // Events that cannot be kept together are tried one by one.
        if !is_whole || self.live.is_within().is_err() {
            self.roll_back();
            errors.clear();
            for (i, event) in events.iter().enumerate() {
                let (more, result) = self.apply_alone(event);
                evaluated += more;
                errors.extend(result.err().map(|error| (i, self.with_name(error))));
            }
        }
        self.live.keep_changes();
        self.renamed.clear();
        self.finish(errors, evaluated, events.len())
    }

    /// One event, all of it or nothing; and how many states were computed.
    fn apply_alone(&mut self, event: &NamedEvent) -> (usize, Result<(), Error>) {
        self.live.begin();
        if let Err(error) = self.change(event) {
            self.roll_back();
            return (0, Err(error));
        }
        let evaluated = self.live.converge();
        let result = self.live.keep_if_within();
        if result.is_err() {
            self.roll_back_names();
        }
        self.renamed.clear();
        (evaluated, result.map_err(Into::into))
    }

    /// Everything as it was when the live graph began.
    fn roll_back(&mut self) {
        self.live.roll_back();
        self.roll_back_names();
    }

    fn roll_back_names(&mut self) {
        for Renamed { node, graph, name, is_new } in
            std::mem::take(&mut self.renamed).into_iter().rev()
        {
            if is_new {
                self.nodes.remove(&(graph, name));
                self.names[node as usize] = None;
            } else {
                self.names[node as usize] = Some(name.clone());
                self.nodes.insert((graph, name), node);
            }
        }
    }

    /// Counts an event that is no event at all, such as a line that cannot be read.
    pub fn skip(&mut self) {
        self.events += 1;
    }

    fn finish(
        &mut self,
        errors: Vec<(usize, Error)>,
        evaluated: usize,
        events: usize,
    ) -> NamedReport {
        self.events += events as u64;
        let report = self.live.catch_up();
        let changed = self.live.changed();
        let predicted = changed.into_iter().filter_map(|row| {
            let prediction = self.live.predict(row).ok()?;
            let (graph, node) = match self.live.level() {
                Level::Graph => (row, None),
                Level::Node => (self.live.graph_of(row)?, self.names[row].clone()),
            };
            Some(NamedPrediction { graph: self.graphs[graph].clone(), node, prediction })
        });
        NamedReport {
            errors,
            evaluated: evaluated + report.evaluated,
            touched: report.touched,
            bound: report.bound,
            changed: predicted.collect(),
        }
    }

    /// The prediction of a node, or of a graph where graphs are predicted.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`] if there is no such node or graph.
    pub fn predict(
        &self,
        graph: Option<&Name>,
        node: Option<&Name>,
    ) -> Result<NamedPrediction, Error> {
        let number = self.graph_number(graph)?;
        let row = match (self.live.level(), node) {
            (Level::Node, Some(node)) => self.node_number(number, node)?,
            (Level::Graph, None) => number,
            (Level::Node, None) => {
                return Err(Error::Mismatch("the model predicts nodes: name one".into()));
            }
            (Level::Graph, Some(_)) => {
                return Err(Error::Mismatch("the model predicts graphs, not nodes".into()));
            }
        };
        let (graph, prediction) = (self.graphs[number].clone(), self.live.predict(row)?);
        Ok(NamedPrediction { graph, node: node.cloned(), prediction })
    }

    /// What the prediction of a node rests on, with the names of its neighbours.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`] if there is no such node.
    pub fn explain(
        &self,
        graph: Option<&Name>,
        node: &Name,
    ) -> Result<(Explanation, Vec<(Name, f64)>), Error> {
        let number = self.graph_number(graph)?;
        let explanation = self.live.explain(self.node_number(number, node)?)?;
        let named =
            explanation.neighbours.iter().map(|&(u, moved)| (self.name(u), moved)).collect();
        Ok((explanation, named))
    }

    /// Everything that events have made of the data, as bytes.
    pub fn save(&self) -> Vec<u8> {
        let about = About { names: &self.names, graphs: &self.graphs, events: self.events };
        // Names are text, and always JSON.
        let about = serde_json::to_vec(&about).unwrap_or_default();
        let mut to = Sink::default();
        to.number(about.len() as u64);
        to.0.extend(about);
        to.0.extend(self.live.save());
        to.0
    }

    /// What was [saved](Self::save), with the same model and options.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`] when the bytes are not that.
    pub fn load(model: &SavedModel, bytes: &[u8], options: &LiveOptions) -> Result<Self, Error> {
        let mut from = Source(bytes);
        let length = from.length()?;
        model.check_single("a live graph")?;
        let (about, rest) = from.0.split_at_checked(length).ok_or_else(Source::damaged)?;
        let about: Saved = serde_json::from_slice(about).map_err(|_| Source::damaged())?;
        let options = LiveOptions { classes: model.classes().is_some(), ..*options };
        let live = LiveGraph::load(model.functions(), &model.weights, rest, &options)?;
        if about.names.len() != live.node_numbers() || about.graphs.len() != live.graphs() {
            return Err(Source::damaged());
        }
        let encoding = model.encoding.clone();
        Self::with_names(live, encoding, about.names, about.graphs, about.events)
    }

    fn graph_number(&self, graph: Option<&Name>) -> Result<usize, Error> {
        match graph {
            None if self.graphs.len() == 1 => Ok(0),
            None => Err(Error::Mismatch(format!(
                "there are {} graphs: name one of them",
                self.graphs.len()
            ))),
            Some(name) => {
                let found = self.numbers.get(name).copied();
                found.ok_or_else(|| Error::Mismatch(format!("there is no graph {name}")))
            }
        }
    }

    fn node_number(&self, graph: usize, node: &Name) -> Result<usize, Error> {
        #[allow(clippy::cast_possible_truncation, reason = "graphs have 32 bits")]
        let found = self.nodes.get(&(graph as u32, node.clone()));
        let found = found.map(|&v| v as usize);
        found.ok_or_else(|| Error::Mismatch(format!("there is no node {node}")))
    }

    fn name(&self, node: usize) -> Name {
        self.names.get(node).cloned().flatten().unwrap_or_else(|| Name::from(node))
    }

    /// The same with the name of a node in place of its number.
    fn with_name(&self, error: Error) -> Error {
        match error {
            Error::Event(EventError::Lipschitz { node, degree, lipschitz, limit }) => {
                Error::Mismatch(format!(
                    "node {} would have {degree} neighbours and f_a a Lipschitz bound of {lipschitz:.3} there, but at \
                     most {limit:.3} is expected",
                    self.name(node)
                ))
            }
            error => error,
        }
    }

    fn change(&mut self, event: &NamedEvent) -> Result<(), Error> {
        match event {
            NamedEvent::AddEdge { source, target, graph, undirected, features } => {
                let ends = self.ends(graph.as_ref(), source, target, *undirected)?;
                if ends.iter().any(|&(u, v)| self.live.contains_edge(u, v)) {
                    return Err(Error::Mismatch(format!(
                        "there is an edge from node {source} to node {target} already"
                    )));
                }
                let features = self.edge_features(features)?;
                let add = |(source, target)| Event::AddEdge {
                    source,
                    target,
                    features: features.clone(),
                };
                self.change_edges(&ends, add)
            }
            NamedEvent::RemoveEdge { source, target, graph, undirected } => {
                let ends = self.existing(graph.as_ref(), source, target, *undirected)?;
                self.change_edges(&ends, |(source, target)| Event::RemoveEdge { source, target })
            }
            NamedEvent::UpdateEdge { source, target, graph, undirected, features } => {
                let ends = self.existing(graph.as_ref(), source, target, *undirected)?;
                let features = self.edge_features(features)?;
                let update = |(source, target)| Event::UpdateEdge {
                    source,
                    target,
                    features: features.clone(),
                };
                self.change_edges(&ends, update)
            }
            NamedEvent::AddNode { node, graph, features } => {
                self.add_node(node, graph.as_ref(), features)
            }
            NamedEvent::RemoveNode { node, graph } => self.remove_node(node, graph.as_ref()),
            NamedEvent::UpdateNode { node, graph, features } => {
                let number = self.node_number(self.graph_number(graph.as_ref())?, node)?;
                let features = self.node_features(features, number)?;
                self.live.change(&Event::UpdateNode { node: number, features })?;
                Ok(())
            }
        }
    }

    fn ends(
        &self,
        graph: Option<&Name>,
        source: &Name,
        target: &Name,
        undirected: bool,
    ) -> Result<Vec<(usize, usize)>, Error> {
        let graph = self.graph_number(graph)?;
        let (u, v) = (self.node_number(graph, source)?, self.node_number(graph, target)?);
        Ok(if undirected && u != v { vec![(u, v), (v, u)] } else { vec![(u, v)] })
    }

    /// The same of edges that are there.
    fn existing(
        &self,
        graph: Option<&Name>,
        source: &Name,
        target: &Name,
        undirected: bool,
    ) -> Result<Vec<(usize, usize)>, Error> {
        let ends = self.ends(graph, source, target, undirected)?;
        match ends.iter().find(|&&(u, v)| !self.live.contains_edge(u, v)) {
            None => Ok(ends),
            Some(&(u, v)) => Err(Error::Mismatch(format!(
                "there is no edge from node {} to node {}",
                self.name(u),
                self.name(v)
            ))),
        }
    }

    /// One edge, or both directions.
    fn change_edges(
        &mut self,
        ends: &[(usize, usize)],
        event: impl Fn((usize, usize)) -> Event,
    ) -> Result<(), Error> {
        for &both in ends {
            self.live.change(&event(both))?;
        }
        self.degrees_changed(&[ends[0].0, ends[0].1])
    }

    /// Where degrees are features, they change with the edges.
    fn degrees_changed(&mut self, nodes: &[usize]) -> Result<(), Error> {
        if self.encoding.reads_degree() {
            for &node in nodes {
                let features = self.node_features(&Columns::default(), node)?;
                self.live.change(&Event::UpdateNode { node, features })?;
            }
        }
        Ok(())
    }

    #[allow(clippy::cast_possible_truncation, reason = "nodes have 30 bits")]
    fn node_features(&self, columns: &Columns, node: usize) -> Result<Features<f32>, Error> {
        let table = columns.table(self.encoding.node_width())?;
        let degree = self.live.neighbours(node).count() as u32;
        self.encoding.node(&table, degree).map_err(in_event)
    }

    fn edge_features(&self, columns: &Columns) -> Result<Features<f32>, Error> {
        self.encoding.edge(&columns.table(self.encoding.edge_width())?).map_err(in_event)
    }

    #[allow(clippy::cast_possible_truncation, reason = "nodes have 30 bits, graphs 32")]
    fn add_node(
        &mut self,
        node: &Name,
        graph: Option<&Name>,
        features: &Columns,
    ) -> Result<(), Error> {
        let graph = self.graph_number(graph)?;
        let key = (graph as u32, node.clone());
        if self.nodes.contains_key(&key) {
            return Err(Error::Mismatch(format!("there is a node {node} already")));
        }
        // A number that no node has yet has no neighbours.
        let features = self.node_features(features, usize::MAX)?;
        let added = self.live.change(&Event::AddNode { graph, features })?;
        let number = added.expect("a node was added");
        if self.names.len() <= number {
            self.names.resize(number + 1, None);
        }
        self.names[number] = Some(node.clone());
        let (node, name, number) = (number as u32, node.clone(), number as u32);
        self.renamed.push(Renamed { node, graph: key.0, name, is_new: true });
        self.nodes.insert(key, number);
        Ok(())
    }

    #[allow(clippy::cast_possible_truncation, reason = "nodes have 30 bits, graphs 32")]
    fn remove_node(&mut self, node: &Name, graph: Option<&Name>) -> Result<(), Error> {
        let graph = self.graph_number(graph)?;
        let number = self.node_number(graph, node)?;
        let neighbours: Vec<usize> =
            self.live.neighbours(number).filter(|&u| u != number).collect();
        self.live.change(&Event::RemoveNode { node: number })?;
        self.names[number] = None;
        let graph = graph as u32;
        self.nodes.remove(&(graph, node.clone()));
        let name = node.clone();
        self.renamed.push(Renamed { node: number as u32, graph, name, is_new: false });
        self.degrees_changed(&neighbours)
    }
}

/// The same without the place of a row in data, of which an event is not.
fn in_event(error: Error) -> Error {
    match error {
        Error::UnknownCategory { what, column, value, known, .. } => Error::Mismatch(format!(
            "the {what} has {column} “{value}”, which is none of the known values: {known}"
        )),
        error => error,
    }
}

/// What is saved beside the graph.
#[derive(serde::Serialize)]
struct About<'a> {
    names: &'a [Option<Name>],
    graphs: &'a [Name],
    events: u64,
}

#[derive(serde::Deserialize)]
struct Saved {
    names: Vec<Option<Name>>,
    graphs: Vec<Name>,
    events: u64,
}
