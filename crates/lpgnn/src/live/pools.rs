//! What the read-out of graphs reads: sums, means or maxima over nodes, kept up to date node by node.

use super::LiveGraph;
use crate::readout::Pooling;

/// The aggregate of every graph.
#[derive(Clone, Debug)]
pub(super) struct Pools {
    pooling: Pooling,
    /// Components that are read of states, and of features behind them.
    states: usize,
    features: usize,
    width: usize,
    /// Sums, as multiples of 2⁻⁶⁴: whatever comes and goes, no rounding error is left behind.
    sums: Vec<i128>,
    maxima: Vec<f32>,
    /// Graphs of which a largest entry has gone.
    stale: Vec<u32>,
    /// `Σ_v w_v`, likewise.
    weights: Vec<i128>,
    /// No `w_v` was ever larger.
    pub(super) heaviest: f64,
}

const ONE: f64 = 18_446_744_073_709_551_616.0;

#[allow(clippy::cast_possible_truncation, reason = "what is too large is the largest number")]
fn fixed(x: f64) -> i128 {
    (x * ONE).round() as i128
}

impl Pools {
    /// Those of graphs without nodes.
    pub(super) fn new(pooling: Pooling, (states, features): (usize, usize), graphs: usize) -> Self {
        let width = states + features;
        let is_max = pooling == Pooling::Max;
        Self {
            pooling,
            states,
            features,
            width,
            sums: vec![0; if is_max { 0 } else { graphs * width }],
            maxima: vec![f32::NEG_INFINITY; if is_max { graphs * width } else { 0 }],
            stale: vec![],
            weights: vec![0; graphs],
            heaviest: 0.0,
        }
    }

    /// Those of graphs without nodes, in place of what they are.
    pub(super) fn clear(&mut self, heaviest: f64) {
        self.sums.fill(0);
        self.maxima.fill(f32::NEG_INFINITY);
        self.stale.clear();
        self.weights.fill(0);
        self.heaviest = heaviest;
    }

    /// A state of a node becomes another one, from column `at` on; none where the node comes or goes.
    pub(super) fn replace(
        &mut self,
        graph: u32,
        at: usize,
        old: Option<&[f32]>,
        new: Option<&[f32]>,
    ) {
        let start = graph as usize * self.width + at;
        if self.pooling == Pooling::Max {
            let columns = old.or(new).map_or(0, <[f32]>::len);
            for i in 0..columns {
                let (old, new) = (old.map(|x| x[i]), new.map_or(f32::NEG_INFINITY, |x| x[i]));
                let largest = &mut self.maxima[start + i];
                if new >= *largest {
                    *largest = new;
                } else if old.is_some_and(|old| old >= *largest) {
                    self.stale.push(graph);
                }
            }
            return;
        }
        for (rows, sign) in [(old, -1), (new, 1)] {
            let Some(x) = rows else { continue };
            for (sum, &x) in self.sums[start..].iter_mut().zip(x) {
                *sum += sign * fixed(f64::from(x));
            }
        }
    }

    /// A node comes to weigh `new`, and has weighed `old`.
    pub(super) fn weigh(&mut self, graph: u32, old: f64, new: f64) {
        self.weights[graph as usize] += fixed(new) - fixed(old);
        self.heaviest = self.heaviest.max(new);
    }

    /// Appends the aggregate of a graph of so many nodes; returns how often the error of a node of weight 1 counts in it.
    #[allow(clippy::cast_possible_truncation, reason = "the read-out reads single precision")]
    pub(super) fn read(
        &self,
        graph: usize,
        nodes: usize,
        inputs: &mut Vec<f32>,
        features: &mut Vec<f32>,
    ) -> f64 {
        let row = graph * self.width..(graph + 1) * self.width;
        let count = if self.pooling == Pooling::Mean { nodes.max(1) as f64 } else { 1.0 };
        if self.pooling == Pooling::Max {
            let (of_states, of_features) = self.maxima[row].split_at(self.states);
            let largest = |&x: &f32| if nodes == 0 { 0.0 } else { x };
            inputs.extend(of_states.iter().map(largest));
            features.extend(of_features.iter().map(largest));
            // The largest entries may be those of as many nodes.
            return self.heaviest * (self.states as f64).sqrt();
        }
        let (of_states, of_features) = self.sums[row].split_at(self.states);
        let total = |&sum: &i128| (sum as f64 / ONE / count) as f32;
        inputs.extend(of_states.iter().map(total));
        features.extend(of_features.iter().map(total));
        self.weights[graph] as f64 / ONE / count
    }

    pub(super) fn bytes(&self) -> usize {
        size_of::<i128>() * (self.sums.capacity() + self.weights.capacity())
            + size_of::<f32>() * self.maxima.capacity()
    }
}

impl LiveGraph {
    /// The aggregates of the graphs as they are.
    pub(super) fn pool(&mut self) {
        for v in 0..self.graphs.len() {
            if self.contains(v) {
                self.pool_node(v, true);
            }
        }
    }

    /// A node comes into the aggregate of its graph, or goes.
    pub(super) fn pool_node(&mut self, v: usize, comes: bool) {
        let (graph, weight) = (self.graphs[v], self.weight(v));
        let Some(pools) = &mut self.pools else { return };
        let mut at = 0;
        for layer in self.read.clone() {
            let width = self.widths[layer];
            let stored = self.layers[layer].precision.parts() * width;
            let x = Some(&self.states[layer][v * stored..][..width]);
            let (old, new) = if comes { (None, x) } else { (x, None) };
            pools.replace(graph, at, old, new);
            at += width;
        }
        if pools.features > 0 {
            let l = self.node_features.dense(v);
            let (old, new) = if comes { (None, Some(&l[..])) } else { (Some(&l[..]), None) };
            pools.replace(graph, at, old, new);
        }
        let (old, new) = if comes { (0.0, weight) } else { (weight, 0.0) };
        pools.weigh(graph, old, new);
    }

    /// The features of a node become others than these.
    pub(super) fn pool_features(&mut self, v: usize, old: &[f32]) {
        let Some(pools) = self.pools.as_mut().filter(|pools| pools.features > 0) else { return };
        let new = self.node_features.dense(v);
        pools.replace(self.graphs[v], pools.states, Some(old), Some(&new));
    }

    /// The largest entries of graphs from which one has gone.
    pub(super) fn refresh_maxima(&mut self) {
        let Some(pools) = &mut self.pools else { return };
        let mut stale = std::mem::take(&mut pools.stale);
        stale.sort_unstable();
        stale.dedup();
        for &graph in &stale {
            let row = graph as usize * pools.width..(graph as usize + 1) * pools.width;
            pools.maxima[row].fill(f32::NEG_INFINITY);
        }
        for graph in stale {
            let nodes = self.members.as_ref().map_or(vec![], |all| all.of(graph as usize).to_vec());
            let Some(pools) = &mut self.pools else { return };
            for v in nodes {
                let mut at = 0;
                for layer in self.read.clone() {
                    let width = self.widths[layer];
                    let stored = self.layers[layer].precision.parts() * width;
                    let x = &self.states[layer][v as usize * stored..][..width];
                    pools.replace(graph, at, None, Some(x));
                    at += width;
                }
                if pools.features > 0 {
                    pools.replace(graph, at, None, Some(&self.node_features.dense(v as usize)));
                }
            }
        }
    }
}
