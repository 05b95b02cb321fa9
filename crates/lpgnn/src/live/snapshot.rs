//! A live graph as bytes, and back to the same bits.

use std::collections::BTreeSet;

use super::bound::Contraction;
use super::{
    Adjacency, FeatureTable, GONE, LiveGraph, LiveOptions, Outputs, Queue, Sink, Slots, Source,
    check, layers,
};
use crate::graph::Level;
use crate::lagrangian::Model;
use crate::transition::{Sizes, Transition};
use crate::{Error, Scratch};

/// What a saved graph starts with.
const MAGIC: u64 = u64::from_le_bytes(*b"lpgnn-l1");

impl LiveGraph {
    /// Everything that events have made of the graph, as bytes. What was not asked for by [`changed`](Self::changed) is
    /// among it.
    pub fn save(&self) -> Vec<u8> {
        let mut to = Sink::default();
        to.number(MAGIC);
        to.number(self.graph_count as u64);
        to.number(self.graphs.len() as u64);
        to.integers(&self.graphs);
        self.node_features.save(self.graphs.len(), &mut to);
        self.edge_features.save(self.edge_rows, &mut to);
        to.number(self.edges as u64);
        for (source, target, edge) in self.adjacency.edges() {
            to.integers(&[source, target, edge]);
        }
        for (number, layer) in self.layers.iter().enumerate() {
            let Sizes { state, feature, edge_feature, terms } = layer.sizes;
            let Contraction { states, features } = layer.contraction;
            for x in [state, feature, edge_feature, states, features, layer.floor] {
                to.real(x);
            }
            to.number(terms as u64);
            to.reals(&self.states[number]);
            to.reals(&self.residuals[number]);
        }
        to.real(self.limit);
        to.integers(&self.outputs.told());
        to.number(self.outputs.changed.len() as u64);
        self.outputs.changed.iter().for_each(|&row| to.integers(&[row]));
        to.0
    }

    /// A graph that was [saved](Self::save), with the same model and options.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`] when the bytes are not such a graph.
    pub fn load(
        model: &Model<f32>,
        weights: &[f32],
        bytes: &[u8],
        options: &LiveOptions,
    ) -> Result<Self, Error> {
        let from = &mut Source(bytes);
        if from.number()? != MAGIC {
            return Err(Source::damaged());
        }
        let (graph_count, nodes) = (from.length()?, from.length()?);
        let graphs = from.integers(nodes)?;
        if graphs.iter().any(|&graph| graph != GONE && graph as usize >= graph_count) {
            return Err(Source::damaged());
        }
        let node_features = FeatureTable::load(from)?;
        let edge_features = FeatureTable::load(from)?;
        let (adjacency, used) = load_edges(from, &graphs, edge_features.width() > 0)?;
        let edges = adjacency.edges().count();
        let edge_rows = edge_features.rows();
        if edge_features.width() > 0 && used.iter().any(|&edge| edge as usize >= edge_rows) {
            return Err(Source::damaged());
        }
        #[allow(clippy::cast_possible_truncation, reason = "edges have 30 bits")]
        let free_edges = if edge_features.width() > 0 {
            (0..edge_rows as u32).filter(|edge| !used.contains(edge)).collect()
        } else {
            BTreeSet::new()
        };
        let free_nodes = graphs.iter().zip(0..).filter(|(graph, _)| **graph == GONE);
        let widths: Vec<usize> = model.transitions().map(Transition::state_dim).collect();
        let features = node_features.empty();
        let mut live = Self {
            layers: layers(model, weights, features.view())?,
            read: model.read_layers(),
            members: members(model, &graphs, graph_count),
            free_nodes: free_nodes.map(|(_, v)| v).collect(),
            queues: widths.iter().map(|_| Queue::new(nodes)).collect(),
            outputs: Outputs::new(model, weights, options.classes)?,
            options: check(*options)?,
            slack: options.final_tol.map_or(1.0, |tol| options.tol / tol),
            limit: 1.0,
            states: vec![],
            residuals: vec![],
            touched: vec![],
            scratch: Scratch::new(),
            workspaces: std::sync::Mutex::default(),
            adjacency,
            node_features,
            edge_features,
            free_edges,
            edge_rows,
            edges,
            graphs,
            graph_count,
            widths,
        };
        live.load_states(from)?;
        live.set_thresholds();
        live.queue_again();
        Ok(live)
    }

    fn load_states(&mut self, from: &mut Source<'_>) -> Result<(), Error> {
        let nodes = self.graphs.len();
        for (layer, width) in self.layers.iter_mut().zip(&self.widths) {
            let mut reals = [0.0; 6];
            for x in &mut reals {
                *x = from.real()?;
            }
            let [state, feature, edge_feature, states, features, floor] = reals;
            layer.sizes = Sizes { state, feature, edge_feature, terms: from.length()? };
            layer.contraction = Contraction { states, features };
            layer.floor = floor;
            self.states.push(from.reals(nodes.saturating_mul(*width))?);
            self.residuals.push(from.reals(nodes)?);
        }
        self.limit = from.real()?;
        let rows = if self.members.is_some() { self.graph_count } else { nodes };
        let told = from.integers(self.outputs.told_numbers(rows))?;
        self.outputs.set_told(told);
        let changed = from.length()?;
        self.outputs.changed = from.integers(changed)?.into_iter().collect();
        if from.0.is_empty() { Ok(()) } else { Err(Source::damaged()) }
    }
}

/// The edges, and the numbers that they have.
fn load_edges(
    from: &mut Source<'_>,
    graphs: &[u32],
    with_edges: bool,
) -> Result<(Adjacency, BTreeSet<u32>), Error> {
    let count = from.length()?;
    let numbers = from.integers(count.checked_mul(3).ok_or_else(Source::damaged)?)?;
    let mut adjacency = Adjacency::without_edges(graphs.len(), with_edges);
    let mut used = BTreeSet::new();
    for edge in numbers.as_chunks::<3>().0 {
        let [source, target, number] = *edge;
        let [u, v] = [source, target].map(|node| graphs.get(node as usize).copied());
        let is_new = adjacency_is_new(&adjacency, u, v, (source, target));
        if !is_new || (with_edges && !used.insert(number)) {
            return Err(Source::damaged());
        }
        adjacency.add(source as usize, target as usize, number);
    }
    Ok((adjacency, used))
}

/// Whether an edge joins two nodes of one graph that it did not join before.
fn adjacency_is_new(
    adjacency: &Adjacency,
    u: Option<u32>,
    v: Option<u32>,
    (source, target): (u32, u32),
) -> bool {
    u.is_some_and(|graph| graph != GONE)
        && u == v
        && adjacency.edge(source as usize, target as usize).is_none()
}

/// The nodes of every graph, where graphs are predicted.
fn members(model: &Model<f32>, graphs: &[u32], graph_count: usize) -> Option<Slots<u32>> {
    (model.readout().level() == Level::Graph).then(|| {
        let mut of: Vec<Vec<u32>> = vec![vec![]; graph_count];
        for (v, &graph) in (0..).zip(graphs) {
            if graph != GONE {
                of[graph as usize].push(v);
            }
        }
        let mut members = Slots::default();
        of.into_iter().for_each(|nodes| members.push(nodes.into_iter()));
        members
    })
}
