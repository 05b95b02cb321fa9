//! A live graph as bytes, and back to the same bits.

use std::collections::BTreeSet;

use super::bound::Contraction;
use super::start::{check, layers};
use super::{
    Adjacency, FeatureTable, Found, GONE, Levels, LiveGraph, LiveOptions, Outputs, Queue, Sink,
    Slots, Source, Undo, bound,
};
use crate::graph::Level;
use crate::lagrangian::Model;
use crate::transition::{Sizes, Transition};
use crate::{Error, Scratch};

/// What a saved graph starts with.
const MAGIC: u64 = u64::from_le_bytes(*b"lpgnn-l3");

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
            let Sizes { state, feature, edge_feature, message, terms, unit: _ } = layer.sizes;
            let Contraction { states, features } = layer.contraction;
            for x in [state, feature, edge_feature, message, states, features] {
                to.real(x);
            }
            to.real(layer.floor);
            to.real(layer.threshold);
            to.number(terms as u64);
            to.reals(&self.states[number]);
            to.reals(&self.messages[number]);
            to.reals(&self.residuals[number]);
        }
        to.real(self.limit);
        to.real(self.pools.as_ref().map_or(0.0, |pools| pools.heaviest));
        to.real(self.levels.ratio);
        to.number(u64::from(self.levels.most));
        to.0.extend(&self.levels.of);
        to.0.extend(&self.levels.needs);
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
        let layers = layers(model, weights, node_features.empty().view())?;
        let message_dims = layers.iter().map(|layer| layer.f.message_dim()).collect();
        let outputs = Outputs::new(model, weights, &node_features, options.classes)?;
        let mut live = Self {
            layers,
            read: model.read_layers(),
            members: members(model, &graphs, graph_count),
            free_nodes: free_nodes.map(|(_, v)| v).collect(),
            queues: widths.iter().map(|_| Queue::new(nodes)).collect(),
            pools: outputs.pools(graph_count),
            outputs,
            options: check(*options)?,
            limit: 1.0,
            levels: Levels::none(),
            undo: Undo::default(),
            ahead: bound::AHEAD,
            states: vec![],
            message_dims,
            messages: vec![],
            residuals: vec![],
            touched: vec![],
            found: Found::default(),
            readout_scratch: Scratch::new(),
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
        live.pool();
        live.queue_again();
        Ok(live)
    }

    fn load_states(&mut self, from: &mut Source<'_>) -> Result<(), Error> {
        let nodes = self.graphs.len();
        let widths = self.widths.iter().zip(&self.message_dims);
        for (layer, (width, message_dim)) in self.layers.iter_mut().zip(widths) {
            let mut reals = [0.0; 8];
            for x in &mut reals {
                *x = from.real()?;
            }
            let [state, feature, edge_feature, message, states, features, floor, threshold] = reals;
            let terms = from.length()?;
            let unit = layer.precision.unit();
            layer.set_sizes(Sizes { state, feature, edge_feature, message, terms, unit });
            layer.contraction = Contraction { states, features };
            (layer.floor, layer.threshold) = (floor, threshold);
            let rows = nodes.saturating_mul(layer.precision.parts());
            self.states.push(from.reals(rows.saturating_mul(*width))?);
            self.messages.push(from.reals(rows.saturating_mul(*message_dim))?);
            self.residuals.push(from.reals(nodes)?);
        }
        self.limit = from.real()?;
        let heaviest = from.real()?;
        if let Some(pools) = &mut self.pools {
            pools.heaviest = heaviest;
        }
        let rows = if self.members.is_some() { self.graph_count } else { nodes };
        self.load_levels(nodes, rows, from)?;
        let told = from.integers(self.outputs.told_numbers(rows))?;
        self.outputs.set_told(told);
        let changed = from.length()?;
        self.outputs.changed = from.integers(changed)?.into_iter().collect();
        if from.0.is_empty() { Ok(()) } else { Err(Source::damaged()) }
    }
}

impl LiveGraph {
    fn load_levels(
        &mut self,
        nodes: usize,
        rows: usize,
        from: &mut Source<'_>,
    ) -> Result<(), Error> {
        let (ratio, most) = (from.real()?, from.number()?);
        let most = u8::try_from(most).map_err(|_| Source::damaged())?;
        self.levels = Levels::of_ratio(ratio, most, nodes, rows);
        for levels in [&mut self.levels.of, &mut self.levels.needs] {
            let (read, rest) = from.0.split_at_checked(levels.len()).ok_or_else(Source::damaged)?;
            if read.iter().any(|&level| level > most) {
                return Err(Source::damaged());
            }
            levels.copy_from_slice(read);
            from.0 = rest;
        }
        Ok(())
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
