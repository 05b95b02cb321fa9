//! What events have changed since they began, so that it can be rolled back to the same bits.
//!
//! Whether rounding alone exceeds the tolerance is known once states have converged, and not before: they may have become larger
//! than anything that was there. Then the events are rolled back. What is kept for that is what the states, messages and
//! residuals of the nodes that moved have been: as little as was computed, however large the graph is.

use super::bound::{Known, Layer};
use super::features::Row;
use super::outputs::ToldRow;
use super::{GONE, LiveGraph};

/// What was there before.
#[derive(Debug, Default)]
pub(super) struct Undo {
    is_on: bool,
    /// Of every layer.
    known: Vec<Known>,
    heaviest: f64,
    /// How many nodes had been computed.
    touched: usize,
    states: Vec<Rows>,
    messages: Vec<Rows>,
    residuals: Vec<Rows>,
    /// Levels of nodes, and what decisions of rows needed, in the order in which they have changed.
    levels: Vec<(usize, u8)>,
    needs: Vec<(usize, u8)>,
    changes: Vec<Change>,
}

/// A change of the graph.
#[derive(Debug)]
pub(super) enum Change {
    EdgeAdded { source: usize, target: usize, edge: u32 },
    EdgeRemoved { source: usize, target: usize, edge: u32 },
    NodeAdded { node: usize, told: ToldRow },
    NodeRemoved { node: usize, graph: u32 },
    NodeFeatures { node: usize, before: Row },
    EdgeFeatures { edge: usize, before: Row },
}

/// Rows as they were, each of them once.
#[derive(Debug, Default)]
struct Rows {
    /// A bit for every node that is among them.
    are_kept: Vec<u64>,
    nodes: Vec<u32>,
    values: Vec<f32>,
}

/// Room that is kept for the next events.
const ROOM: usize = 1 << 12;

impl Rows {
    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "nodes have 30 bits")]
    fn keep(&mut self, v: usize, row: &[f32]) {
        if self.are_kept.len() <= v / 64 {
            self.are_kept.resize(v / 64 + 1, 0);
        }
        let (bits, bit) = (&mut self.are_kept[v / 64], 1 << (v % 64));
        if *bits & bit == 0 {
            *bits |= bit;
            self.nodes.push(v as u32);
            self.values.extend_from_slice(row);
        }
    }

    fn put_back(&self, width: usize, rows: &mut [f32]) {
        for (&v, row) in self.nodes.iter().zip(self.values.chunks_exact(width.max(1))) {
            rows[v as usize * width..][..width].copy_from_slice(row);
        }
    }

    fn clear(&mut self) {
        self.nodes.iter().for_each(|&v| self.are_kept[v as usize / 64] = 0);
        self.nodes.clear();
        self.values.clear();
        self.nodes.shrink_to(ROOM);
        self.values.shrink_to(16 * ROOM);
    }

    fn bytes(&self) -> usize {
        let numbers = self.nodes.capacity() + self.values.capacity();
        numbers * size_of::<u32>() + self.are_kept.capacity() * size_of::<u64>()
    }
}

impl Undo {
    /// Bytes that it takes.
    pub(super) fn bytes(&self) -> usize {
        let rows = self.states.iter().chain(&self.messages).chain(&self.residuals);
        rows.map(Rows::bytes).sum()
    }
}

impl LiveGraph {
    /// Whatever changes from now on can be [rolled back](Self::roll_back).
    pub(super) fn begin(&mut self) {
        let undo = &mut self.undo;
        undo.is_on = true;
        undo.known.clear();
        undo.known.extend(self.layers.iter().map(Layer::known));
        undo.touched = self.touched.len();
        undo.heaviest = self.pools.as_ref().map_or(0.0, |pools| pools.heaviest);
        for rows in [&mut undo.states, &mut undo.messages, &mut undo.residuals] {
            rows.resize_with(self.layers.len(), Rows::default);
        }
    }

    /// Whether changes can be rolled back now.
    pub(super) fn can_roll_back(&self) -> bool {
        self.undo.is_on
    }

    /// What has changed is there to stay.
    pub(super) fn keep_changes(&mut self) {
        let undo = &mut self.undo;
        undo.is_on = false;
        undo.changes.clear();
        undo.levels.clear();
        undo.needs.clear();
        let rows = undo.states.iter_mut().chain(&mut undo.messages).chain(&mut undo.residuals);
        rows.for_each(Rows::clear);
    }

    /// How many changes of the graph can be rolled back.
    pub(super) fn changes(&self) -> usize {
        self.undo.changes.len()
    }

    pub(super) fn note(&mut self, change: Change) {
        if self.undo.is_on {
            self.undo.changes.push(change);
        }
    }

    /// Before the state of a node changes.
    pub(super) fn keep_state(&mut self, layer: usize, v: usize) {
        if self.undo.is_on {
            let width = self.state_width(layer);
            self.undo.states[layer].keep(v, &self.states[layer][v * width..][..width]);
        }
    }

    /// Before its message does.
    pub(super) fn keep_message(&mut self, layer: usize, v: usize) {
        if self.undo.is_on {
            let width = self.message_width(layer);
            self.undo.messages[layer].keep(v, &self.messages[layer][v * width..][..width]);
        }
    }

    /// Before its residual does.
    #[inline]
    pub(super) fn keep_residual(&mut self, layer: usize, v: usize) {
        if self.undo.is_on {
            self.undo.residuals[layer].keep(v, &self.residuals[layer][v..=v]);
        }
    }

    /// A node is at another level from now on.
    pub(super) fn move_to_level(&mut self, v: usize, level: u8) {
        let before = std::mem::replace(&mut self.levels.of[v], level);
        if self.undo.is_on {
            self.undo.levels.push((v, before));
        }
    }

    /// The decision of a node or graph needs another level from now on.
    pub(super) fn note_need(&mut self, row: usize, level: u8) {
        let before = std::mem::replace(&mut self.levels.needs[row], level);
        if self.undo.is_on {
            self.undo.needs.push((row, before));
        }
    }

    /// The graph as it was at [`begin`](Self::begin).
    pub(super) fn roll_back(&mut self) {
        let mut undo = std::mem::take(&mut self.undo);
        undo.changes.drain(..).rev().for_each(|change| self.reverse(change));
        for &(v, level) in undo.levels.iter().rev() {
            self.levels.of[v] = level;
        }
        for &(row, need) in undo.needs.iter().rev() {
            self.levels.needs[row] = need;
        }
        for layer in 0..self.layers.len() {
            let (width, message) = (self.state_width(layer), self.message_width(layer));
            undo.states[layer].put_back(width, &mut self.states[layer]);
            undo.messages[layer].put_back(message, &mut self.messages[layer]);
            undo.residuals[layer].put_back(1, &mut self.residuals[layer]);
            self.layers[layer].set_known(undo.known[layer]);
        }
        if let Some(pools) = &mut self.pools {
            pools.clear(undo.heaviest);
            self.pool();
        }
        // Other events of the same batch may have been kept.
        self.touched.truncate(undo.touched);
        self.undo = undo;
        self.keep_changes();
        self.queue_again();
    }

    fn reverse(&mut self, change: Change) {
        match change {
            Change::EdgeAdded { source, target, edge } => {
                self.adjacency.remove(source, target);
                self.drop_edge(edge);
            }
            Change::EdgeRemoved { source, target, edge } => {
                self.adjacency.add(source, target, edge);
                self.edges += 1;
                self.free_edges.remove(&edge);
            }
            Change::NodeAdded { node, told } => {
                self.leave(node);
                self.outputs.set_told_row(node, told);
            }
            Change::NodeRemoved { node, graph } => self.enter(node, graph),
            Change::NodeFeatures { node, before } => self.node_features.set(node, &before),
            Change::EdgeFeatures { edge, before } => self.edge_features.set(edge, &before),
        }
    }

    /// A node becomes one of a graph.
    #[allow(clippy::cast_possible_truncation, reason = "nodes have 30 bits")]
    pub(super) fn enter(&mut self, node: usize, graph: u32) {
        let number = node as u32;
        self.graphs[node] = graph;
        self.free_nodes.remove(&number);
        if let Some(members) = &mut self.members {
            let at = members.of(graph as usize).partition_point(|&v| v < number);
            members.insert(graph as usize, at, number);
        }
    }

    /// A node is one of no graph.
    #[allow(clippy::cast_possible_truncation, reason = "nodes have 30 bits")]
    pub(super) fn leave(&mut self, node: usize) {
        let number = node as u32;
        let graph = std::mem::replace(&mut self.graphs[node], GONE);
        self.free_nodes.insert(number);
        if let Some(members) = &mut self.members
            && let Ok(at) = members.of(graph as usize).binary_search(&number)
        {
            members.remove(graph as usize, at);
        }
        for layer in 0..self.layers.len() {
            self.queues[layer].put(node, 0.0);
        }
    }
}
