//! Predictions on a graph that changes, with a bound on their error.
//!
//! A state depends on the states of neighbours alone, and a transition that contracts forgets where it came from. So when
//! an edge or a feature changes, only nodes whose residual moves have to be computed again, however far that is, and the
//! residuals say how far every prediction is from what full convergence would give.
//!
//! A [`LiveGraph`](crate::live::LiveGraph) keeps, for every node `v` and layer, a state `x_v` and a number `ρ_v ≥ ‖x_v − f_v(X)‖`:
//!
//! ```text
//! event at v          ρ_v ← ∞, and ρ_u ← ρ_u + what the event can change at a neighbour u
//! largest ρ_v first   x_v ← f_v(X), δ its last step;  ρ_v ← rounding + c t_v δ;  p_v ← A x_v + B l_v, which moves by ε;
//!                     ρ_u ← ρ_u + n_uv ‖W_K ⋯ W_2‖ ε  for u ∈ ne[v]
//! until               max_v ρ_v / w_v ≤ R,  where  R / (1 − L) ≤ tol
//! ```
//!
//! `ρ` is a bound and not the residual itself: so `f_v` is computed where a state may have to move, and not at every
//! neighbour of one that has moved. The message `p_v` is all that neighbours read of a node: it is kept, and nobody
//! computes it again. States and messages are kept in single precision, those of lower layers in two such numbers; `f_v` is
//! computed in double precision. A reading of
//! `f_a(x)` in place of `x` is the same thing here, for the last value of `f_v` *is* `x_v`.
//!
//! ```
//! use lpgnn::graph::{GraphBatch, Level};
//! use lpgnn::live::{Event, LiveGraph, LiveOptions};
//! use lpgnn::train::{ModelConfig, ModelDims};
//! use lpgnn::uniform;
//!
//! // A path of three nodes, and a model whose transition contracts.
//! let edges = [(0, 1), (1, 2)];
//! let path = GraphBatch::graph(&[vec![1.0_f32], vec![0.0], vec![0.0]], &edges)?;
//! let dims = ModelDims { features: 1, edge_features: 0, outputs: 2, level: Level::Node };
//! let model = ModelConfig { state_dim: 4, ..ModelConfig::default() }.build::<f32>(dims)?;
//! let mut weights = model.start(3, &mut uniform(1)).weights;
//! weights.iter_mut().for_each(|w| *w *= 0.2);
//!
//! let mut live = LiveGraph::new(&model, &weights, &path, &edges, &LiveOptions::default())?;
//! let before = live.predict(2)?;
//! let report = live.apply(&[Event::add_edge(0, 2), Event::add_edge(0, 9)]);
//! assert!(report.results[0].is_ok() && report.results[1].is_err()); // there is no node 9
//! assert!(live.bound() <= 1e-3 && live.predict(2)?.outputs != before.outputs);
//! # Ok::<(), lpgnn::Error>(())
//! ```

mod adjacency;
mod bound;
mod change;
mod columns;
mod event;
mod features;
mod levels;
mod named;
mod named_event;
mod outputs;
mod pools;
mod precision;
mod push;
mod queue;
mod save;
mod slots;
mod snapshot;
mod start;
mod undo;

pub use columns::{Cell, Columns};
pub use event::{Event, EventError};
pub use named::{LiveData, NamedPrediction, NamedReport};
pub use named_event::{Name, NamedEvent};
pub use outputs::{Explanation, Prediction};

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Mutex;

use adjacency::Adjacency;
use bound::{Layer, errors, together};
use features::FeatureTable;
use levels::Levels;
use outputs::Outputs;
use pools::Pools;
use push::{Found, Workspace};
use queue::Queue;
use save::{Sink, Source};
use slots::Slots;
use undo::Undo;

use crate::graph::{Features, GraphBatch, Level, SparseRows};
use crate::inference::{FixedPointOptions, converge};
use crate::lagrangian::Model;
use crate::{Error, Scratch};

/// How a [`LiveGraph`] is kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LiveOptions {
    /// How far what the read-out reads of a node may be from the fixed point, in the norm in which `f_a` contracts: see
    /// [`Weighing`](crate::transition::Weighing).
    pub tol: f64,
    /// A smaller tolerance for every node or graph whose class could be another one at the fixed point, by as much as its
    /// decision margin needs: a class that cannot change any more is [final](Prediction::is_final), and there `tol` is
    /// enough. Between them tolerances shrink hop by hop. None: all nodes have the same one.
    pub final_tol: Option<f64>,
    /// The largest Lipschitz bound that events may bring about; an event that exceeds it is refused [default: half-way
    /// from that of the graph at first to 1, 0.95 at least].
    pub lipschitz: Option<f64>,
    /// Whether outputs are logits of classes, and not real values.
    pub classes: bool,
}

impl Default for LiveOptions {
    fn default() -> Self {
        Self { tol: 1e-3, final_tol: None, lipschitz: None, classes: true }
    }
}

/// A trained model on a graph that changes: see the [module](self).
#[derive(Debug)]
pub struct LiveGraph {
    layers: Vec<Layer>,
    /// The layers that the read-out reads.
    read: Range<usize>,
    adjacency: Adjacency,
    node_features: FeatureTable,
    edge_features: FeatureTable,
    /// Edges with features are numbered; those of removed ones are given to others.
    free_edges: BTreeSet<u32>,
    edge_rows: usize,
    edges: usize,
    /// The graph of every node, or [`GONE`].
    graphs: Vec<u32>,
    graph_count: usize,
    free_nodes: BTreeSet<u32>,
    /// The nodes of every graph, in order, where graphs are predicted.
    members: Option<Slots<u32>>,
    /// What the read-out reads of graphs.
    pools: Option<Pools>,
    /// Components of a state, for every layer.
    widths: Vec<usize>,
    /// `x`, row by row, for every layer, as [precisely](precision) as it is kept.
    states: Vec<Vec<f32>>,
    /// Components of a message, for every layer; 0 where it is the state.
    message_dims: Vec<usize>,
    /// `p`, likewise.
    messages: Vec<Vec<f32>>,
    /// `ρ`, for every layer.
    residuals: Vec<Vec<f32>>,
    queues: Vec<Queue>,
    outputs: Outputs,
    options: LiveOptions,
    limit: f64,
    levels: Levels,
    undo: Undo,
    /// How far ahead of what was seen sizes are.
    ahead: f64,
    /// Nodes that were computed since the last report; some of them more than once.
    touched: Vec<u32>,
    found: Found,
    /// Buffers of the read-out, and of the transition.
    readout_scratch: Scratch<f32>,
    scratch: Scratch<f64>,
    workspaces: Mutex<Vec<Workspace>>,
}

/// The graph of a node that was removed.
const GONE: u32 = u32::MAX;

/// What became of some events.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// For every event, the number of the node that was added, if any; or why it was refused.
    pub results: Vec<Result<Option<usize>, EventError>>,
    /// How often `f_a` of a node was computed, over all layers.
    pub evaluated: usize,
    /// How many nodes that were.
    pub touched: usize,
    /// How far what is read of any node is from the fixed point, at most, in the norm in which `f_a` contracts.
    pub bound: f64,
}

impl LiveGraph {
    /// The graphs of `batch` along `edges`, those that it was made of, in order. All states converge first.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`] when the model cannot read the graphs, or when nothing bounds its error: a transition or a
    /// read-out of your own that does not say how far a change reaches, or one that does not contract on these graphs.
    /// [`Error::Option`] for a tolerance that single precision cannot guarantee.
    pub fn new(
        model: &Model<f32>,
        weights: &[f32],
        batch: &GraphBatch<f32>,
        edges: &[(u32, u32)],
        options: &LiveOptions,
    ) -> Result<Self, Error> {
        if edges.len() != batch.edges() || !edges.is_sorted_by(|a, b| a < b) {
            return Err(Error::Mismatch(format!(
                "{} edges in order are expected, those of the graphs",
                batch.edges()
            )));
        }
        if batch.nodes() >= adjacency::MOST_NODES {
            return Err(Error::TooLarge);
        }
        let mut live = Self::empty(model, weights, batch, edges, options)?;
        live.measure()?;
        let tol = live.layers.iter().map(|layer| layer.threshold).fold(f64::INFINITY, f64::min);
        let iteration = FixedPointOptions {
            tol: (0.25 * tol).max(1e-6),
            max_iter: 500,
            fall_back: None,
            ..FixedPointOptions::default()
        };
        let start = converge(model, weights, batch, &iteration, &Scratch::new());
        for (number, states) in start.states.iter().enumerate() {
            live.start_from(number, states);
        }
        live.start()?;
        Ok(live)
    }

    /// Applies some events, in their order, and then brings all predictions within the tolerance.
    ///
    /// An event that cannot be is refused and the others are not. The same events in the same batches give the same bits,
    /// for any number of threads.
    pub fn apply(&mut self, events: &[Event]) -> Report {
        self.begin();
        let mut results: Vec<_> = events.iter().map(|event| self.change(event)).collect();
        let mut evaluated = self.converge();
        if self.is_within().is_err() {
            // One of them, or all together, are too much: one by one they show which.
            self.roll_back();
            results = vec![];
            for event in events {
                self.begin();
                let result = self.change(event);
                evaluated += self.converge();
                results.push(self.keep_if_within().and(result));
            }
        }
        self.keep_changes();
        let report = self.catch_up();
        Report { results, evaluated: evaluated + report.evaluated, ..report }
    }

    /// Keeps what an event has changed, once states have converged; or rolls it back.
    pub(super) fn keep_if_within(&mut self) -> Result<(), EventError> {
        match self.is_within() {
            Ok(()) => self.keep_changes(),
            Err(bound) => {
                self.roll_back();
                return Err(EventError::Rounding { what: "a state that follows from it", bound });
            }
        }
        Ok(())
    }

    /// Whether predictions are within the tolerance, whatever rounding does; or within what they are.
    pub(super) fn is_within(&self) -> Result<(), f64> {
        let room = if self.levels.most > 0 { bound::ROOM } else { 1.0 };
        let residuals =
            self.layers.iter().map(|layer| layer.residual(1.0).max(room * layer.residual(0.0)));
        let bound = together(&errors(&self.layers, residuals)[self.read.clone()]);
        if bound <= self.options.tol { Ok(()) } else { Err(bound) }
    }

    /// Predictions of what was touched, and what decisions need beyond the tolerance.
    fn catch_up(&mut self) -> Report {
        self.touched.sort_unstable();
        self.touched.dedup();
        let mut touched = std::mem::take(&mut self.touched);
        let evaluated = self.refine(self.rows_of(&touched));
        touched.append(&mut self.touched);
        touched.sort_unstable();
        touched.dedup();
        let count = touched.len();
        touched.clear();
        self.touched = touched;
        Report { results: vec![], evaluated, touched: count, bound: self.bound() }
    }

    /// Outputs of what was touched; where a class is not final, tolerances are made smaller.
    fn refine(&mut self, mut rows: Vec<u32>) -> usize {
        let mut evaluated = 0;
        let mut first = true;
        // States hardly move any more, and what is accepted stays so.
        self.ahead = 1.0;
        loop {
            let mut needs = self.update_outputs(&rows);
            let rises = |&(row, need): &(u32, u8)| need > self.levels.needs[row as usize];
            let open = needs.iter().any(rises);
            if !first {
                // What has sunk once would only rise again.
                needs.retain(rises);
            }
            first = false;
            for &(row, need) in &needs {
                self.set_need(row as usize, need);
            }
            if !open {
                self.ahead = bound::AHEAD;
                return evaluated;
            }
            let before = self.touched.len();
            evaluated += self.converge();
            rows = self.rows_of(&self.touched[before..]);
            rows.extend(needs.iter().map(|(row, _)| row));
            rows.sort_unstable();
            rows.dedup();
        }
    }

    /// How far what is read of any node is from the fixed point, at most, in the norm in which `f_a` contracts; at most
    /// [`tol`](LiveOptions::tol).
    pub fn bound(&self) -> f64 {
        together(&self.errors()[self.read.clone()])
    }

    /// The same of the states of every layer, as they are kept: [`state`](Self::state) rounds those of lower layers.
    pub fn errors(&self) -> Vec<f64> {
        errors(&self.layers, self.layers.iter().map(|layer| layer.residual(1.0)))
    }

    /// `L`, by which the transition contracts at least; the largest of all layers.
    pub fn lipschitz(&self) -> f64 {
        self.layers.iter().map(|layer| layer.contraction.states).fold(0.0, f64::max)
    }

    /// The prediction of a node, or of a graph where graphs are predicted.
    ///
    /// # Errors
    ///
    /// [`EventError::UnknownNode`] or [`EventError::UnknownGraph`]
    pub fn predict(&self, row: usize) -> Result<Prediction, EventError> {
        if self.members.is_none() && !self.contains(row) {
            return Err(EventError::UnknownNode { node: row });
        }
        if self.members.is_some() && row >= self.graph_count {
            return Err(EventError::UnknownGraph { graph: row, graphs: self.graph_count });
        }
        #[allow(clippy::cast_possible_truncation, reason = "nodes have 30 bits")]
        let mut found = self.predictions(&[row as u32]);
        Ok(found.swap_remove(0))
    }

    /// The nodes or graphs whose prediction has changed since this was last asked, in order: whose class is another, or
    /// whose values have moved by more than their bound. New nodes are among them, removed ones are not.
    pub fn changed(&mut self) -> Vec<usize> {
        let changed = std::mem::take(&mut self.outputs.changed);
        let is_there = |row: &usize| self.members.is_some() || self.contains(*row);
        changed.into_iter().map(|row| row as usize).filter(is_there).collect()
    }

    /// Whether nodes are predicted, or graphs.
    pub fn level(&self) -> Level {
        if self.members.is_some() { Level::Graph } else { Level::Node }
    }

    /// Whether there is a node of this number.
    pub fn contains(&self, node: usize) -> bool {
        self.graphs.get(node).is_some_and(|&graph| graph != GONE)
    }

    /// Number of nodes.
    pub fn nodes(&self) -> usize {
        self.graphs.len() - self.free_nodes.len()
    }

    /// All numbers of nodes are below.
    pub fn node_numbers(&self) -> usize {
        self.graphs.len()
    }

    /// Number of edges.
    pub fn edges(&self) -> usize {
        self.edges
    }

    /// Number of graphs.
    pub fn graphs(&self) -> usize {
        self.graph_count
    }

    /// The graph of a node; none if there is no such node.
    pub fn graph_of(&self, node: usize) -> Option<usize> {
        self.contains(node).then(|| self.graphs[node] as usize)
    }

    /// `ne[v]`: parents and children, each once and in order. Empty if there is no such node.
    pub fn neighbours(&self, node: usize) -> impl Iterator<Item = usize> + '_ {
        let links = if self.contains(node) { self.adjacency.of(node) } else { &[] };
        links.iter().map(|link| link.node())
    }

    /// Whether there is an edge.
    pub fn contains_edge(&self, source: usize, target: usize) -> bool {
        self.contains(source) && self.adjacency.edge(source, target).is_some()
    }

    /// The features of an edge, one row; none if there is no such edge.
    pub fn edge_features(&self, source: usize, target: usize) -> Option<Features<f32>> {
        let edge = self.contains(source).then(|| self.adjacency.edge(source, target))??;
        let width = self.edge_features.width();
        if width == 0 {
            return Some(Features::none(1));
        }
        let (columns, values): (Vec<u32>, Vec<f32>) =
            self.edge_features.entries(edge as usize).into_iter().unzip();
        SparseRows::new(width, vec![0, columns.len()], columns, values).ok().map(Features::Sparse)
    }

    /// The state of a node in a layer.
    ///
    /// # Panics
    ///
    /// When there is no such layer or node.
    pub fn state(&self, layer: usize, node: usize) -> &[f32] {
        &self.row(layer, node)[..self.widths[layer]]
    }

    /// The state of a node as it is kept.
    fn row(&self, layer: usize, node: usize) -> &[f32] {
        let width = self.state_width(layer);
        &self.states[layer][node * width..][..width]
    }

    /// Numbers that a state is kept in.
    #[inline]
    fn state_width(&self, layer: usize) -> usize {
        self.layers[layer].precision.parts() * self.widths[layer]
    }

    /// The same of a message.
    #[inline]
    fn message_width(&self, layer: usize) -> usize {
        self.layers[layer].precision.parts() * self.message_dims[layer]
    }

    /// What the error of a node is divided by in the norm in which `f_a` contracts: 1, or the root of its degree.
    pub fn weight(&self, node: usize) -> f64 {
        self.layers[0].sensitivity.weighing.weight(self.adjacency.degree(node))
    }

    /// Bytes that the graph takes: neighbours, features, states and what is known of them.
    pub fn bytes(&self) -> usize {
        let rows = self.states.iter().chain(&self.messages).chain(&self.residuals);
        let states: usize = rows.map(Vec::capacity).sum();
        let queues: usize = self.queues.iter().map(Queue::bytes).sum();
        self.adjacency.bytes()
            + self.node_features.bytes()
            + self.edge_features.bytes()
            + (states + self.graphs.capacity()) * size_of::<u32>()
            + queues
            + self.members.as_ref().map_or(0, Slots::bytes)
            + self.pools.as_ref().map_or(0, Pools::bytes)
            + self.levels.bytes()
            + self.outputs.bytes()
            + self.undo.bytes()
    }
}
