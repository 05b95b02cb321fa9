//! States are computed again where residuals are large, and what that does to other residuals is kept.

use std::sync::PoisonError;

use super::LiveGraph;
use super::bound::{ABOVE_FLOOR, UP};
use super::precision::Precision;
use crate::Matrix;
use crate::graph::{Features, FeaturesView, Local, NO_EDGE, Patch};
use crate::numeric::prefetch;
use crate::transition::{Input, for_each_group};

/// Nodes that are computed before any of them is changed.
const CHUNK: usize = 1 << 12;
/// Nodes that one thread computes at a time.
const GROUP: usize = 64;
/// After so many rounds per `1 / (1 − L)`, nothing but rounding moves states.
const PATIENCE: f64 = 2000.0;
/// How often `f_v` is computed in a row, of its own last value and the same messages.
const ROUNDS: usize = 4;

/// Rows of a few nodes and of their neighbours, filled again and again.
#[derive(Debug)]
pub(super) struct Workspace {
    patch: Patch,
    /// The nodes, then the neighbours of each of them.
    rows: Vec<u32>,
    /// Edges with features, two per pair or fewer.
    edges: Vec<u32>,
    states: Matrix<f64>,
    messages: Matrix<f64>,
    features: Features<f64>,
    below: Matrix<f64>,
    edge_features: Features<f64>,
    f: Matrix<f64>,
}

/// What was computed of some nodes, row by row.
#[derive(Debug, Default)]
pub(super) struct Found {
    states: Vec<f32>,
    /// By how much the last round has moved each, which is all that its own residual depends on.
    steps: Vec<f64>,
    messages: Vec<f32>,
}

impl LiveGraph {
    /// Computes states until all residuals are within what is allowed; returns how many times one was.
    ///
    /// A layer reads those below and none above, so that they converge one after the other. Events that can be rolled back are
    /// left as they are once rounding alone exceeds the tolerance.
    pub(super) fn converge(&mut self) -> usize {
        let (mut nodes, mut found) = (vec![], std::mem::take(&mut self.found));
        let (mut evaluated, mut floors) = (0, self.floors());
        'layers: for layer in 0..self.layers.len() {
            let patience = PATIENCE / (1.0 - self.layers[layer].contraction.states);
            let mut rounds = 0.0;
            while self.queues[layer].pop(&mut nodes) {
                rounds += 1.0;
                for chunk in nodes.chunks(CHUNK) {
                    self.evaluate(layer, chunk, &mut found);
                    self.replace(layer, chunk, &found);
                    self.send(layer, chunk, &mut found);
                    if layer + 1 < self.layers.len() {
                        self.send(layer + 1, chunk, &mut found);
                    }
                    evaluated += chunk.len();
                }
                self.touched.extend_from_slice(&nodes);
                if self.floors() > floors {
                    floors = self.floors();
                    if self.can_roll_back() && self.is_within().is_err() {
                        break 'layers;
                    }
                }
                if rounds > patience {
                    // States that step to and fro between neighbouring numbers can keep each other moving for ever.
                    rounds = 0.0;
                    self.layers[layer].floor *= ABOVE_FLOOR;
                    (0..self.graphs.len()).for_each(|v| self.queue(layer, v));
                }
            }
        }
        self.found = found;
        evaluated
    }

    fn floors(&self) -> f64 {
        self.layers.iter().map(|layer| layer.floor).sum()
    }

    /// `x_v ← f_v` for some nodes, and what that does to residuals but by messages.
    ///
    /// ```text
    /// ρ_v ← rounding + c t_v δ        and in the next layer, ρ_v ← ρ_v + d s_v δ
    /// ```
    fn replace(&mut self, number: usize, nodes: &[u32], found: &Found) {
        let (width, precision) = (self.state_width(number), self.layers[number].precision);
        let reads_states = self.message_dims[number] == 0;
        let mut largest = 0.0_f64;
        let moved: Vec<f64> = (nodes.iter().enumerate())
            .map(|(i, &v)| {
                let (v, f) = (v as usize, &found.states[i * width..][..width]);
                let distance = self.layers[number].distance(self.row(number, v), f);
                largest = largest.max(precision.size(f));
                self.set_state(number, v, f);
                let own = self.own(number, v) * found.steps[i];
                let degree = self.adjacency.degree(v);
                let layer = &mut self.layers[number];
                let rounding = layer.rounding_error(degree);
                layer.floor = layer.floor.max(rounding / layer.sensitivity.weighing.weight(degree));
                self.keep_residual(number, v);
                self.residuals[number][v] = above((rounding + own) * UP);
                self.queue(number, v);
                distance
            })
            .collect();
        self.layers[number].enlarge_states(largest, self.ahead);
        if let Some(upper) = self.layers.get_mut(number + 1) {
            upper.enlarge_features(largest, self.ahead);
        }
        for (&v, distance) in nodes.iter().zip(moved) {
            let v = v as usize;
            if reads_states {
                let neighbour = self.layers[number].sensitivity.message * distance;
                self.spread(number, v, neighbour);
            }
            if let Some(upper) = self.layers.get(number + 1) {
                let s = upper.sensitivity;
                let (degree, normalized) = (self.adjacency.degree(v), self.normalized(v));
                let own = s.own_features * s.weighing.own_features(degree, normalized);
                self.raise(number + 1, v, own * distance);
            }
        }
    }

    fn set_state(&mut self, layer: usize, v: usize, new: &[f32]) {
        self.keep_state(layer, v);
        let (width, entries) = (self.state_width(layer), self.widths[layer]);
        let x = &mut self.states[layer][v * width..][..width];
        if let Some(pools) = &mut self.pools
            && self.read.contains(&layer)
        {
            let at = self.widths[self.read.start..layer].iter().sum();
            pools.replace(self.graphs[v], at, Some(&x[..entries]), Some(&new[..entries]));
        }
        x.copy_from_slice(new);
    }

    /// `c t_v`
    fn own(&self, layer: usize, v: usize) -> f64 {
        let s = &self.layers[layer].sensitivity;
        if s.own > 0.0 {
            s.own * s.weighing.own_states(self.adjacency.degree(v), self.normalized(v))
        } else {
            0.0
        }
    }

    /// The messages of some nodes as they are now, and what that does to the residuals of those who read them.
    ///
    /// ```text
    /// ρ_u ← ρ_u + n_uv ‖W_K ⋯ W_2‖ ‖p_v − p'_v‖        for u ∈ ne[v]
    /// ```
    pub(super) fn send(&mut self, layer: usize, nodes: &[u32], found: &mut Found) {
        let (width, precision) = (self.message_width(layer), self.layers[layer].precision);
        if width == 0 {
            return;
        }
        self.call_for_readers(layer, nodes);
        self.compute_messages(layer, nodes, &mut found.messages);
        let rows = found.messages.chunks_exact(width);
        let largest = rows.map(|row| precision.size(row)).fold(0.0, f64::max);
        self.enlarge_messages(layer, largest);
        for (&v, new) in nodes.iter().zip(found.messages.chunks_exact(width)) {
            self.keep_message(layer, v as usize);
            let old = &mut self.messages[layer][v as usize * width..][..width];
            let distance = self.layers[layer].distance(old, new);
            old.copy_from_slice(new);
            self.spread(layer, v as usize, self.layers[layer].sensitivity.message * distance);
        }
    }

    /// What is kept of the neighbours of these nodes is on its way while their messages are computed.
    fn call_for_readers(&self, layer: usize, nodes: &[u32]) {
        for &v in &nodes[..nodes.len().min(GROUP)] {
            for link in self.adjacency.of(v as usize) {
                prefetch(&self.residuals[layer], link.node());
                self.queues[layer].call_for(link.node());
                self.adjacency.call_for(link.node());
            }
        }
    }

    /// Messages of this size are rounded by more than those before, whoever has read them.
    fn enlarge_messages(&mut self, layer: usize, size: f64) {
        let Some(before) = self.layers[layer].enlarge_messages(size, self.ahead) else { return };
        for v in 0..self.graphs.len() {
            if self.contains(v) && self.residuals[layer][v].is_finite() {
                let degree = self.adjacency.degree(v);
                let l = &mut self.layers[layer];
                let more = l.rounding_error(degree) - l.f.rounding(before, degree).error;
                self.raise(layer, v, more.max(0.0));
            }
        }
    }

    /// Adds to the residual of every neighbour, as often as the node counts there.
    pub(super) fn spread(&mut self, layer: usize, v: usize, neighbour: f64) {
        if neighbour <= 0.0 {
            return;
        }
        let degree = self.adjacency.degree(v);
        let weighing = self.layers[layer].sensitivity.weighing;
        if degree == 0 {
            // It is its own neighbour.
            self.raise(layer, v, neighbour);
        }
        for at in 0..degree {
            let u = self.adjacency.of(v)[at].node();
            let count = weighing.pair(self.adjacency.degree(u), degree);
            self.raise(layer, u, count * neighbour);
        }
    }

    /// `ρ_v ← ρ_v + more`
    #[inline]
    pub(super) fn raise(&mut self, layer: usize, v: usize, more: f64) {
        if more > 0.0 {
            self.keep_residual(layer, v);
            let residual = &mut self.residuals[layer][v];
            *residual = above(f64::from(*residual) + more * UP);
            self.queue(layer, v);
        }
    }

    /// What the residual of a node may be.
    #[inline]
    fn allowed(&self, layer: usize, v: usize) -> f64 {
        let layer = &self.layers[layer];
        let weight = layer.sensitivity.weighing.weight(self.adjacency.degree(v));
        weight * layer.residual(self.levels.share(v))
    }

    /// Puts a node where its residual belongs.
    #[inline]
    pub(super) fn queue(&mut self, layer: usize, v: usize) {
        let ratio = f64::from(self.residuals[layer][v]) / self.allowed(layer, v);
        self.queues[layer].put(v, ratio);
    }

    /// Nothing is known of the residual of a node; that of one that is gone does not matter.
    pub(super) fn forget(&mut self, layer: usize, v: usize) {
        if self.contains(v) {
            self.keep_residual(layer, v);
            self.residuals[layer][v] = f32::INFINITY;
            self.queues[layer].put(v, f64::INFINITY);
        }
    }

    /// The same residuals against another threshold.
    pub(super) fn queue_again(&mut self) {
        for layer in 0..self.layers.len() {
            (0..self.graphs.len()).for_each(|v| self.queue(layer, v));
        }
    }

    /// `f_v` of some nodes, row by row.
    fn evaluate(&self, layer: usize, nodes: &[u32], found: &mut Found) {
        let width = self.state_width(layer);
        found.states.resize(nodes.len() * width, 0.0);
        found.steps.resize(nodes.len(), 0.0);
        let rows = found.states.chunks_mut((GROUP * width).max(1));
        let steps = found.steps.chunks_mut(GROUP);
        let mut groups: Vec<_> = nodes.chunks(GROUP).zip(rows).zip(steps).collect();
        for_each_group(&mut groups, |((nodes, states), steps)| {
            self.with_workspace(|work| {
                self.fill(layer, nodes, None, work);
                for _ in 0..ROUNDS {
                    self.compute(layer, work);
                    if self.step(layer, nodes, work, steps) {
                        break;
                    }
                }
                let entries = self.widths[layer].max(1);
                let rows = work.states.as_slice().chunks_exact(entries);
                for (to, x) in states.chunks_exact_mut(width.max(1)).zip(rows) {
                    Precision::write(x, to);
                }
            });
        });
    }

    /// The own states of nodes become `f_v`, as it is kept; returns whether their residuals need no other round.
    fn step(&self, layer: usize, nodes: &[u32], work: &mut Workspace, steps: &mut [f64]) -> bool {
        let (width, mut done) = (self.widths[layer], true);
        let precision = self.layers[layer].precision;
        let rows = work.states.as_mut_slice().chunks_exact_mut(width.max(1));
        let f = work.f.as_slice().chunks_exact(width.max(1));
        for (((x, f), &v), step) in rows.zip(f).zip(nodes).zip(steps) {
            let differences = x.iter_mut().zip(f).map(|(x, &f)| {
                let new = precision.round(f);
                new - std::mem::replace(x, new)
            });
            *step = self.layers[layer].norm(differences);
            let v = v as usize;
            done &= self.own(layer, v) * *step <= 0.5 * self.allowed(layer, v);
        }
        done
    }

    /// The messages of some nodes, row by row.
    fn compute_messages(&self, layer: usize, nodes: &[u32], messages: &mut Vec<f32>) {
        let (width, entries) = (self.message_width(layer), self.message_dims[layer]);
        messages.resize(nodes.len() * width, 0.0);
        let rows = messages.chunks_mut(GROUP * width);
        let mut groups: Vec<_> = nodes.chunks(GROUP).zip(rows).collect();
        for_each_group(&mut groups, |(nodes, messages)| {
            self.with_workspace(|work| {
                self.gather_states(layer, nodes, &mut work.states);
                self.gather_features(layer, nodes, work);
                work.messages.reshape(nodes.len(), entries);
                let features = node_features(layer, &work.features, &work.below);
                self.layers[layer].f.messages(&work.states, features, &mut work.messages);
                let rows = work.messages.as_slice().chunks_exact(entries);
                for (to, x) in messages.chunks_exact_mut(width).zip(rows) {
                    Precision::write(x, to);
                }
            });
        });
    }

    /// `f_v` of one node as if `without` were not its neighbour.
    pub(super) fn evaluate_without(&self, layer: usize, v: usize, without: usize) -> Vec<f32> {
        self.with_workspace(|work| {
            #[allow(clippy::cast_possible_truncation, reason = "nodes have 30 bits")]
            self.fill(layer, &[v as u32], Some(without), work);
            self.compute(layer, work);
            #[allow(clippy::cast_possible_truncation, reason = "states are kept in this precision")]
            work.f.as_slice().iter().map(|&x| x as f32).collect()
        })
    }

    fn with_workspace<R>(&self, work: impl FnOnce(&mut Workspace) -> R) -> R {
        let pool = || self.workspaces.lock().unwrap_or_else(PoisonError::into_inner);
        let free = pool().pop();
        let mut workspace = free.unwrap_or_else(|| Workspace {
            patch: Patch::default(),
            rows: vec![],
            edges: vec![],
            states: Matrix::default(),
            messages: Matrix::default(),
            features: self.node_features.empty(),
            below: Matrix::default(),
            edge_features: self.edge_features.empty(),
            f: Matrix::default(),
        });
        let result = work(&mut workspace);
        pool().push(workspace);
        result
    }

    /// Gathers all that `f_v` of these nodes reads.
    fn fill(&self, layer: usize, nodes: &[u32], without: Option<usize>, work: &mut Workspace) {
        let Workspace { patch, rows, edges, .. } = work;
        patch.start(nodes.len());
        rows.clear();
        rows.extend_from_slice(nodes);
        edges.clear();
        self.call_for_nodes(layer, nodes);
        let (width, messages) = (self.message_width(layer), &self.messages[layer]);
        let missing = usize::from(without.is_some());
        let counts_degrees = self.layers[layer].sensitivity.weighing.reads_source_degree();
        for &v in nodes {
            let links = self.adjacency.of(v as usize);
            let link_edges = self.adjacency.edges_of(v as usize);
            for (at, link) in links.iter().enumerate() {
                if without == Some(link.node()) {
                    continue;
                }
                prefetch(messages, link.node() * width);
                let joined = link_edges.map(|link_edges| {
                    link_edges[at].map(|edge| {
                        if edge == NO_EDGE {
                            return NO_EDGE;
                        }
                        edges.push(edge);
                        #[allow(clippy::cast_possible_truncation, reason = "a patch is small")]
                        let place = edges.len() as u32 - 1;
                        place
                    })
                });
                // A loop is as long as the list it is in. Degrees that nobody reads are not worth a look.
                let own = if link.node() == v as usize { missing } else { 0 };
                let degree =
                    if counts_degrees { self.adjacency.degree(link.node()) - own } else { 1 };
                patch.push_neighbour(degree, joined);
                #[allow(clippy::cast_possible_truncation, reason = "nodes have 30 bits")]
                rows.push(link.node() as u32);
            }
            patch.end_node(link_edges.is_some());
        }
        let messages = self.message_dims[layer];
        let states = if messages == 0 { &rows[..] } else { nodes };
        self.gather_states(layer, states, &mut work.states);
        let precision = self.layers[layer].precision;
        let messages =
            if messages == 0 { (&[][..], 0) } else { (&self.messages[layer][..], messages) };
        gather(messages.0, (messages.1, precision), rows, &mut work.messages);
        self.edge_features.gather(edges, &mut work.edge_features);
        self.gather_features(layer, nodes, work);
        work.f.reshape(nodes.len(), self.widths[layer]);
    }

    /// All that is kept of these nodes is on its way before the first of them is looked at.
    fn call_for_nodes(&self, layer: usize, nodes: &[u32]) {
        let width = self.state_width(layer);
        for &v in nodes {
            self.adjacency.call_for(v as usize);
            prefetch(&self.states[layer], v as usize * width);
            if layer == 0 {
                self.node_features.call_for(v as usize);
            }
        }
        nodes.iter().for_each(|&v| self.adjacency.call_for_neighbours(v as usize));
    }

    fn gather_states(&self, layer: usize, nodes: &[u32], to: &mut Matrix<f64>) {
        let row = (self.widths[layer], self.layers[layer].precision);
        gather(&self.states[layer], row, nodes, to);
    }

    fn gather_features(&self, layer: usize, nodes: &[u32], work: &mut Workspace) {
        match layer.checked_sub(1) {
            None => self.node_features.gather(nodes, &mut work.features),
            Some(below) => self.gather_states(below, nodes, &mut work.below),
        }
    }

    fn compute(&self, layer: usize, work: &mut Workspace) {
        let Workspace { patch, states, messages, features, below, edge_features, f, .. } = work;
        let input = Input {
            topology: patch.topology(),
            node_features: node_features(layer, features, below),
            edge_features: edge_features.view(),
            states,
            exchange: &Local,
        };
        self.layers[layer].f.forward(input, messages, f, &self.scratch);
    }
}

fn node_features<'a>(
    layer: usize,
    features: &'a Features<f64>,
    below: &'a Matrix<f64>,
) -> FeaturesView<'a, f64> {
    if layer == 0 { features.view() } else { FeaturesView::Dense(below) }
}

/// Some rows in double precision.
fn gather(
    from: &[f32],
    (width, precision): (usize, Precision),
    rows: &[u32],
    to: &mut Matrix<f64>,
) {
    to.reshape(rows.len(), width);
    let stored = precision.parts() * width;
    for (to, &row) in to.as_mut_slice().chunks_exact_mut(width.max(1)).zip(rows) {
        Precision::read(&from[row as usize * stored..][..stored], to);
    }
}

/// The next number of single precision above a sum in double precision.
#[allow(clippy::cast_possible_truncation, reason = "rounded up right after")]
pub(super) fn above(x: f64) -> f32 {
    (x as f32).next_up()
}
