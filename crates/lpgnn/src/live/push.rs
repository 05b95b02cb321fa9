//! States are computed again where residuals are large, and what that does to other residuals is kept.

use std::sync::PoisonError;

use super::LiveGraph;
use super::bound::UP;
use crate::Matrix;
use crate::graph::{Features, FeaturesView, Local, NO_EDGE, Patch};
use crate::transition::{Input, for_each_group};

/// Nodes that are computed before any of them is changed.
const CHUNK: usize = 1 << 12;
/// Nodes that one thread computes at a time.
const GROUP: usize = 64;

/// Rows of a few nodes and of their neighbours, filled again and again.
#[derive(Debug)]
pub(super) struct Workspace {
    patch: Patch,
    /// The nodes, then the neighbours of each of them.
    rows: Vec<u32>,
    /// Edges with features, two per pair or fewer.
    edges: Vec<u32>,
    states: Matrix<f32>,
    features: Features<f32>,
    below: Matrix<f32>,
    edge_features: Features<f32>,
    f: Matrix<f32>,
}

impl LiveGraph {
    /// Computes states until all residuals are within what is allowed; returns how many times one was.
    ///
    /// A layer reads those below and none above, so that they settle one after the other.
    pub(super) fn settle(&mut self) -> usize {
        let (mut nodes, mut f, mut moved) = (vec![], vec![], vec![]);
        let mut evaluated = 0;
        for layer in 0..self.layers.len() {
            while self.queues[layer].pop(self.slack, &mut nodes) {
                for chunk in nodes.chunks(CHUNK) {
                    self.evaluate(layer, chunk, &mut f);
                    self.replace(layer, chunk, &f, &mut moved);
                    for &(v, distance) in &moved {
                        self.spread(layer, v, distance);
                    }
                    evaluated += chunk.len();
                }
                self.touched.extend_from_slice(&nodes);
            }
        }
        evaluated
    }

    /// `x_v ← f_v` for some nodes, and by how much each has moved.
    fn replace(&mut self, number: usize, nodes: &[u32], f: &[f32], moved: &mut Vec<(usize, f64)>) {
        moved.clear();
        let width = self.widths[number];
        let layer = &mut self.layers[number];
        for (i, &v) in nodes.iter().enumerate() {
            let v = v as usize;
            let (x, f) = (&mut self.states[number][v * width..][..width], &f[i * width..][..width]);
            moved.push((v, layer.norm(x, f)));
            x.copy_from_slice(f);
            let degree = self.adjacency.degree(v);
            let weight = layer.sensitivity.weighing.weight(degree);
            let rounding = layer.rounding(degree).error;
            layer.floor = layer.floor.max(rounding / weight);
            layer.sizes.state = layer.sizes.state.max(super::size(x));
            self.residuals[number][v] = above(rounding);
            self.queues[number].put(v, rounding / (weight * layer.residual()));
        }
        let largest = self.layers[number].sizes.state;
        if let Some(upper) = self.layers.get_mut(number + 1) {
            upper.sizes.feature = upper.sizes.feature.max(largest);
        }
    }

    /// What a state that has moved can do to the residuals of its layer and of the next.
    ///
    /// ```text
    /// ρ_u ← ρ_u + n_uv a δ  for u ∈ ne[v]        ρ_v ← ρ_v + c t_v δ
    /// ```
    fn spread(&mut self, layer: usize, v: usize, distance: f64) {
        if distance == 0.0 {
            return;
        }
        let (degree, normalized) = (self.adjacency.degree(v), self.normalized(v));
        let s = self.layers[layer].sensitivity;
        let own = s.own * s.weighing.own_states(degree, normalized);
        self.spread_to(layer, v, s.neighbour * distance, own * distance);
        if let Some(above) = self.layers.get(layer + 1) {
            let s = above.sensitivity;
            let own = s.own_features * s.weighing.own_features(degree, normalized);
            self.spread_to(layer + 1, v, s.neighbour_features * distance, own * distance);
        }
    }

    /// Adds to the residual of a node, and of every neighbour as often as it counts there.
    pub(super) fn spread_to(&mut self, layer: usize, v: usize, neighbour: f64, own: f64) {
        let degree = self.adjacency.degree(v);
        let weighing = self.layers[layer].sensitivity.weighing;
        let mut own = own;
        if degree == 0 {
            // It is its own neighbour.
            own += neighbour;
        }
        if neighbour > 0.0 {
            for at in 0..degree {
                let u = self.adjacency.of(v)[at].node();
                let count = weighing.pair(self.adjacency.degree(u), degree);
                self.raise(layer, u, count * neighbour);
            }
        }
        self.raise(layer, v, own);
    }

    /// `ρ_v ← ρ_v + more`
    #[inline]
    pub(super) fn raise(&mut self, layer: usize, v: usize, more: f64) {
        if more > 0.0 {
            let residual = &mut self.residuals[layer][v];
            *residual = above(f64::from(*residual) + more * UP);
            let (layer_, degree) = (&self.layers[layer], self.adjacency.degree(v));
            let weight = layer_.sensitivity.weighing.weight(degree);
            self.queues[layer].put(v, f64::from(*residual) / (weight * layer_.residual()));
        }
    }

    /// Nothing is known of the residual of a node; that of one that is gone does not matter.
    pub(super) fn forget(&mut self, layer: usize, v: usize) {
        if self.contains(v) {
            self.residuals[layer][v] = f32::INFINITY;
            self.queues[layer].put(v, f64::INFINITY);
        }
    }

    /// The same residuals against another threshold.
    pub(super) fn queue_again(&mut self) {
        for (number, layer) in self.layers.iter().enumerate() {
            for (v, &residual) in self.residuals[number].iter().enumerate() {
                let weight = layer.sensitivity.weighing.weight(self.adjacency.degree(v));
                self.queues[number].put(v, f64::from(residual) / (weight * layer.residual()));
            }
        }
    }

    /// `f_v` of some nodes, row by row.
    pub(super) fn evaluate(&self, layer: usize, nodes: &[u32], f: &mut Vec<f32>) {
        let width = self.widths[layer];
        f.resize(nodes.len() * width, 0.0);
        let rows = f.chunks_mut((GROUP * width).max(1));
        let mut groups: Vec<_> = nodes.chunks(GROUP).zip(rows).collect();
        for_each_group(&mut groups, |(nodes, f)| {
            self.with_workspace(|work| {
                self.fill(layer, nodes, None, work);
                self.compute(layer, work);
                f.copy_from_slice(work.f.as_slice());
            });
        });
    }

    /// `f_v` of one node as if `without` were not its neighbour.
    pub(super) fn evaluate_without(&self, layer: usize, v: usize, without: usize) -> Vec<f32> {
        self.with_workspace(|work| {
            #[allow(clippy::cast_possible_truncation, reason = "nodes have 30 bits")]
            self.fill(layer, &[v as u32], Some(without), work);
            self.compute(layer, work);
            work.f.as_slice().to_vec()
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
        let missing = usize::from(without.is_some());
        for &v in nodes {
            let links = self.adjacency.of(v as usize);
            let link_edges = self.adjacency.edges_of(v as usize);
            for (at, link) in links.iter().enumerate() {
                if without == Some(link.node()) {
                    continue;
                }
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
                // A loop is as long as the list it is in.
                let own = if link.node() == v as usize { missing } else { 0 };
                patch.push_neighbour(self.adjacency.degree(link.node()) - own, joined);
                #[allow(clippy::cast_possible_truncation, reason = "nodes have 30 bits")]
                rows.push(link.node() as u32);
            }
            patch.end_node(link_edges.is_some());
        }
        let gather = |from: &[f32], width: usize, rows: &[u32], to: &mut Matrix<f32>| {
            to.reshape(rows.len(), width);
            for (to, &row) in to.as_mut_slice().chunks_exact_mut(width.max(1)).zip(rows) {
                to.copy_from_slice(&from[row as usize * width..][..width]);
            }
        };
        gather(&self.states[layer], self.widths[layer], rows, &mut work.states);
        match layer.checked_sub(1) {
            None => self.node_features.gather(rows, &mut work.features),
            Some(below) => gather(&self.states[below], self.widths[below], rows, &mut work.below),
        }
        self.edge_features.gather(edges, &mut work.edge_features);
        work.f.reshape(nodes.len(), self.widths[layer]);
    }

    fn compute(&self, layer: usize, work: &mut Workspace) {
        let node_features =
            if layer == 0 { work.features.view() } else { FeaturesView::Dense(&work.below) };
        let input = Input {
            topology: work.patch.topology(),
            node_features,
            edge_features: work.edge_features.view(),
            states: &work.states,
            exchange: &Local,
        };
        self.layers[layer].f.forward(input, &mut work.f, &self.scratch);
    }
}

/// The next number of single precision above a sum in double precision.
#[allow(clippy::cast_possible_truncation, reason = "rounded up right after")]
pub(super) fn above(x: f64) -> f32 {
    (x as f32).next_up()
}
