use std::ops::{Deref, Range};

use super::edge_network::check_width;
use super::local::{DOUBLE, NetworkSizes, gamma, reach};
use super::{
    Degrees, FeatureWeights, Gradients, Input, LocalTransition, Rounding, Sensitivity, Sizes,
    Transition, Upstream, Weighing, for_each_group, for_each_group_until, split_rows, with_known,
};
use crate::activation::{Activation, activate, differentiate};
use crate::graph::FeaturesView;
use crate::network::{Activations, Layer, Network, Passed, Stack, StateWeights, sum_rows};
use crate::numeric::{
    Factors, Finish, NormMemory, Packed, Scratch, Spare, padded, product, transposed_product,
    widen_rows,
};
use crate::parameters::{Parameters, Role};
use crate::{Error, Matrix, Scalar};

/// A network on every node, of a sum over the node and its neighbours.
///
/// ```text
/// z_v = c_vv x_v + Σ_{u ∈ ne[v]} c_vu x_u        f_{a,v}(X | θ_h) = h(z_v, l_v | θ_h)
/// ```
///
/// | sum | `c_vu` | `c_vv` | known as |
/// |---|---|---|---|
/// | [`Plain`](NeighbourSum::Plain) | `1` | `1` | GIN |
/// | [`Mean`](NeighbourSum::Mean) | `1 / (de[v] + 1)` | the same | GCN, as in the paper's table |
/// | [`Normalized`](NeighbourSum::Normalized) | `1 / √((de[v] + 1)(de[u] + 1))` | `1 / (de[v] + 1)` | GCN, as published |
///
/// # Differences
///
/// The paper's table writes `h(z_v)`; the feature is an argument of its own here, since without it a
/// fixed point would not depend on features at all.
///
/// Weights: `A: [s, h]`, `D: [m, h]`, `b: [h]`, then `W`, `b` of every further layer; row by row.
#[derive(Clone, Debug)]
pub struct NodeNetwork {
    state_dim: usize,
    feature: usize,
    sum: NeighbourSum,
    layers: Vec<(usize, Activation)>,
    layout: Parameters,
}

/// How a node and its neighbours count in their sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NeighbourSum {
    /// All alike, as in GIN.
    #[default]
    Plain,
    /// As a mean.
    Mean,
    /// By the normalised adjacency matrix, as in GCN.
    Normalized,
}

const A: usize = 0;
const D: usize = 1;
const BIAS: usize = 2;

/// Rows that go through the network together.
const TILE: usize = 256;

impl NodeNetwork {
    /// A network `h` for states of `state` components and node features of `feature`.
    pub fn new(state: usize, feature: usize, h: &Network, sum: NeighbourSum) -> Self {
        let layers = h.layers(state);
        let layout = Parameters::new()
            .layer("0", layers[0].0)
            .weight("states", Role::NeighbourState, state)
            .weight("features", Role::Input, feature)
            .bias();
        let widths: Vec<usize> = layers.iter().map(|(width, _)| *width).collect();
        let layout = Network::declare_above(layout, &widths);
        Self { state_dim: state, feature, sum, layers, layout }
    }

    /// The same, with `A` and the matrices above it, which pass on what `h` is given of
    /// states, as `state_weights` says.
    #[must_use]
    pub fn with_state_weights(mut self, state_weights: StateWeights) -> Self {
        self.layout = self.layout.with_state_weights(state_weights);
        self
    }

    /// `‖A‖ Π_{k ≥ 2} ‖W_k‖` times the norm of the sum: `1 + max_v de[v]` for a plain one, in
    /// `max_v ‖x_v‖₂`; 1 for a mean, in the same norm; 1 for a normalised one, in `‖X‖₂`.
    fn bound<S: Scalar>(&self, weights: &[S], degrees: Degrees, memory: &mut NormMemory) -> f64 {
        let matrices = std::iter::once(A).chain(self.layout.of_role(Role::Hidden));
        let norms: f64 = matrices
            .map(|block| {
                let w = self.layout.of(block, weights);
                memory.spectral_norm(block, w, self.layout.rows(block), self.layout.columns(block))
            })
            .product();
        match self.sum {
            NeighbourSum::Plain => norms * (1 + degrees.largest) as f64,
            NeighbourSum::Mean | NeighbourSum::Normalized => norms,
        }
    }
}

impl<S: Scalar> Transition<S> for NodeNetwork {
    fn parameters(&self) -> &Parameters {
        &self.layout
    }

    fn state_dim(&self) -> usize {
        self.state_dim
    }

    fn check(
        &self,
        node_features: FeaturesView<'_, S>,
        _: FeaturesView<'_, S>,
    ) -> Result<(), Error> {
        check_width("node", true, self.feature, node_features)
    }

    fn forward(
        &self,
        weights: &[S],
        input: Input<'_, S>,
        f_x: &mut Matrix<S>,
        scratch: &Scratch<S>,
    ) {
        let prepared = Prepared::new(self, weights, input, scratch);
        let ranges = input.topology.groups().ranges();
        let rows = split_rows(f_x.as_mut_slice(), self.state_dim, ranges);
        let mut groups: Vec<_> = ranges.iter().cloned().zip(rows).collect();
        for_each_group(&mut groups, |(range, f_x)| {
            for tile in tiles(range.clone()) {
                let trace = prepared.forward(tile.clone());
                let rows = &mut f_x[(tile.start - range.start) * self.state_dim..];
                prepared.copy_f(&trace, &mut rows[..tile.len() * self.state_dim]);
            }
        });
    }

    fn backward(
        &self,
        weights: &[S],
        input: Input<'_, S>,
        d_f: &Matrix<S>,
        gradients: Gradients<'_, S>,
        scratch: &Scratch<S>,
    ) {
        with_known(d_f, input.topology, |known| {
            self.pass(weights, input, known, gradients, scratch);
        });
    }

    fn pass(
        &self,
        weights: &[S],
        input: Input<'_, S>,
        upstream: &mut [&mut dyn Upstream<S>],
        gradients: Gradients<'_, S>,
        scratch: &Scratch<S>,
    ) {
        let prepared = Prepared::new(self, weights, input, scratch);
        let ranges = input.topology.groups().ranges();
        let partial = if gradients.weights.is_some() { self.layout.padded_len() } else { 0 };
        let mut d_z = scratch.take(input.topology.rows() * self.state_dim);

        let mut states =
            split_rows(gradients.states.as_mut_slice(), self.state_dim, ranges).into_iter();
        let mut sums = split_rows(&mut d_z, self.state_dim, ranges).into_iter();
        let mut features = gradients
            .features
            .map(|features| split_rows(features.as_mut_slice(), self.feature, ranges).into_iter());
        let mut groups: Vec<Group<'_, S>> = ranges
            .iter()
            .zip(upstream)
            .map(|(range, upstream)| Group {
                nodes: range.clone(),
                d_states: states.next().unwrap_or_default(),
                d_features: features.as_mut().and_then(Iterator::next),
                d_z: sums.next().unwrap_or_default(),
                partial: scratch.zeros(partial),
                upstream: &mut **upstream,
            })
            .collect();
        for_each_group(&mut groups, |group| {
            for tile in tiles(group.nodes.clone()) {
                prepared.tile(tile, group);
            }
        });
        if let Some(d_weights) = gradients.weights {
            let partials: Vec<&[S]> = groups.iter().map(|group| &group.partial[..]).collect();
            self.layout.reduce(gradients.reduce, &partials, d_weights);
        }
        drop(groups);

        // Of nodes without ghosts among their neighbours while those of ghosts are on their way:
        // ∂𝓛/∂x_u = c_uu ∂𝓛/∂z_u + Σ_{v: u ∈ ne[v]} c_vu ∂𝓛/∂z_v
        let (topology, state) = (input.topology, self.state_dim);
        let states = split_rows(gradients.states.as_mut_slice(), state, ranges);
        let mut groups: Vec<_> = ranges.iter().cloned().zip(states).collect();
        let some = |interior: bool, d_z: &[S], (range, d): &mut (Range<usize>, &mut [S])| {
            for nodes in topology.pieces_that(interior, range.clone()) {
                let rows = (nodes.start - range.start) * state..(nodes.end - range.start) * state;
                prepared.sum_into(Direction::ToSources, nodes, d_z, &mut d[rows]);
            }
        };
        let (own, ghosts) = d_z.split_at_mut(topology.nodes() * state);
        input.exchange.gather_nodes_while(topology, state, own, ghosts, &mut |poll| {
            for_each_group_until(poll, &mut groups, |group| some(true, own, group));
        });
        for_each_group(&mut groups, |group| some(false, &d_z, group));
    }

    fn lipschitz(&self, weights: &[S], degrees: Degrees) -> Option<f64> {
        Some(self.bound(weights, degrees, &mut NormMemory::default()))
    }

    fn local(
        &self,
        weights: &[f64],
        node_features: FeaturesView<'_, f64>,
    ) -> Option<Box<dyn LocalTransition>> {
        Some(Box::new(LocalNodeNetwork::new(self, weights, node_features)))
    }

    fn contract(
        &self,
        weights: &mut [S],
        degrees: Degrees,
        bound: f64,
        memory: &mut NormMemory,
    ) -> bool {
        let now = self.bound(weights, degrees, memory);
        if now > bound {
            self.layout.scale_states(weights, bound / now);
        }
        true
    }
}

struct Group<'a, S: Scalar> {
    nodes: Range<usize>,
    d_states: &'a mut [S],
    d_features: Option<&'a mut [S]>,
    d_z: &'a mut [S],
    partial: Spare<'a, S>,
    upstream: &'a mut dyn Upstream<S>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    /// Sets `z_v` from the states of `v` and its neighbours.
    ToTargets,
    /// Adds to `∂𝓛/∂x_u` from the nodes of which `u` is a neighbour.
    ToSources,
}

/// The weights of `h`, packed once for all rows.
#[derive(Debug)]
struct PackedWeights<'w, S: Scalar> {
    a: (Packed<S>, Packed<S>),
    d: FeatureWeights<'w, S>,
    bias: Vec<S>,
    stack: Stack<S>,
}

impl<'w, S: Scalar> PackedWeights<'w, S> {
    fn new(network: &NodeNetwork, weights: &'w [S], node_features: FeaturesView<'_, S>) -> Self {
        let (layout, width) = (&network.layout, network.layers[0].0);
        let a = layout.of(A, weights);
        let layer = |k: usize| Layer::new(layout, BIAS + 2 * k - 1, network.layers[k].1, weights);
        Self {
            a: (
                Packed::new(a, network.state_dim, width),
                Packed::transposed(a, width, network.state_dim),
            ),
            d: FeatureWeights::new(layout, D, weights, node_features),
            bias: layout.padded_copy(BIAS, weights),
            stack: Stack { layers: (1..network.layers.len()).map(layer).collect() },
        }
    }
}

/// Weights that are packed for one pass, or for as many as come.
#[allow(clippy::large_enum_variant, reason = "there is one of them per pass")]
enum Weights<'w, S: Scalar> {
    Own(PackedWeights<'w, S>),
    Lent(&'w PackedWeights<'w, S>),
}

struct Prepared<'w, S: Scalar> {
    weights: Weights<'w, S>,
    /// Rows of states: owned ones, then ghosts.
    states: StateRows<'w, S>,
    network: &'w NodeNetwork,
    input: Input<'w, S>,
    scratch: &'w Scratch<S>,
}

/// The states of all rows: as they are where this process owns all nodes, else with those of ghosts.
enum StateRows<'w, S: Scalar> {
    Own(&'w [S]),
    WithGhosts(Spare<'w, S>),
}

impl<'w, S: Scalar> StateRows<'w, S> {
    fn new(input: Input<'w, S>, scratch: &'w Scratch<S>) -> Self {
        let (topology, own) = (input.topology, input.states.as_slice());
        if topology.rows() == topology.nodes() {
            return Self::Own(own);
        }
        let mut rows = scratch.take(topology.rows() * input.states.cols());
        let (to, ghosts) = rows.split_at_mut(own.len());
        to.copy_from_slice(own);
        input.exchange.gather_nodes(topology, input.states.cols(), own, ghosts);
        Self::WithGhosts(rows)
    }

    fn as_slice(&self) -> &[S] {
        match self {
            Self::Own(rows) => rows,
            Self::WithGhosts(rows) => rows,
        }
    }
}

impl<'w, S: Scalar> Deref for Prepared<'w, S> {
    type Target = PackedWeights<'w, S>;
    fn deref(&self) -> &PackedWeights<'w, S> {
        match &self.weights {
            Weights::Own(weights) => weights,
            Weights::Lent(weights) => weights,
        }
    }
}

/// What the derivative of a tile needs.
struct Trace<'a, S: Scalar> {
    z: Spare<'a, S>,
    first: Spare<'a, S>,
    above: Vec<Activations<'a, S>>,
}

impl<'w, S: Scalar> Prepared<'w, S> {
    fn new(
        network: &'w NodeNetwork,
        weights: &'w [S],
        input: Input<'w, S>,
        scratch: &'w Scratch<S>,
    ) -> Self {
        let weights = PackedWeights::new(network, weights, input.node_features);
        Self::of(network, Weights::Own(weights), input, scratch)
    }

    fn of(
        network: &'w NodeNetwork,
        weights: Weights<'w, S>,
        input: Input<'w, S>,
        scratch: &'w Scratch<S>,
    ) -> Self {
        Self { weights, states: StateRows::new(input, scratch), network, input, scratch }
    }

    fn width(&self) -> usize {
        padded(self.network.layers[0].0)
    }

    fn forward(&self, nodes: Range<usize>) -> Trace<'w, S> {
        let (rows, state, width) = (nodes.len(), self.network.state_dim, self.width());
        let mut z = self.scratch.take(rows * state);
        let states = self.states.as_slice();
        self.sum_into(Direction::ToTargets, nodes.clone(), states, &mut z);
        let mut first = self.scratch.take(rows * width);
        let factors = Factors { a: &z, stride: state, b: &self.a.0 };
        let finish = Finish::Activate(Activation::Identity, &self.bias);
        product(rows, &[factors], &mut first, width, finish);
        self.d.add(self.input.node_features, nodes, &mut first);
        activate(self.network.layers[0].1, &mut first);
        let above = self.stack.forward(rows, &first, width, None, self.scratch);
        Trace { z, first, above }
    }

    fn copy_f(&self, trace: &Trace<'_, S>, f_x: &mut [S]) {
        let state = self.network.state_dim;
        let last = trace.above.last().map_or(&trace.first[..], |y| &y.value[..]);
        if state > 0 {
            for (to, from) in f_x.chunks_exact_mut(state).zip(last.chunks_exact(padded(state))) {
                to.copy_from_slice(&from[..state]);
            }
        }
    }

    fn tile(&self, tile: Range<usize>, group: &mut Group<'_, S>) {
        let (rows, state, width) = (tile.len(), self.network.state_dim, self.width());
        let layout = &self.network.layout;
        let trace = self.forward(tile.clone());
        let mut f_x = self.scratch.take(rows * state);
        self.copy_f(&trace, &mut f_x);

        let offset = tile.start - group.nodes.start;
        let mut d_f = self.scratch.take(rows * state);
        let d_states = &mut group.d_states[offset * state..][..rows * state];
        group.upstream.derive(tile.clone(), &f_x, &mut d_f, d_states);

        let mut d = self.scratch.take(rows * padded(state));
        widen_rows(&d_f, state, &mut d, padded(state));
        let mut partial = (!group.partial.is_empty()).then_some(&mut group.partial[..]);
        let (last, output) =
            (trace.above.last(), self.network.layers[self.network.layers.len() - 1].1);
        differentiate(output, last.map_or(&trace.first[..], |y| &y.value[..]), &mut d);
        if !self.stack.layers.is_empty() {
            let mut d_first = self.scratch.take(rows * width);
            let slope = Finish::Slope(self.network.layers[0].1, &trace.first);
            let to = Some((&mut d_first[..], slope));
            self.stack.backward(
                layout,
                &Passed {
                    rows,
                    z: &trace.first,
                    z_stride: width,
                    outputs: &trace.above,
                    dropout: None,
                },
                d,
                partial.as_deref_mut(),
                to,
                self.scratch,
            );
            d = d_first;
        }
        if let Some(partial) = partial {
            let d_a = layout.partial(A, partial);
            transposed_product(rows, &trace.z, state, state, &d, layout.columns(A), d_a);
            self.d.gradient(layout, self.input.node_features, tile, &d, partial);
            sum_rows(&d, layout.partial(BIAS, partial));
        }
        if let Some(d_features) = &mut group.d_features {
            let feature = self.network.feature;
            self.d.back(&d, &mut d_features[offset * feature..][..rows * feature]);
        }
        let d_z = &mut group.d_z[offset * state..][..rows * state];
        let factors = Factors { a: &d, stride: width, b: &self.a.1 };
        product(rows, &[factors], d_z, state, Finish::Set);
    }

    /// The weighted sums over nodes and their neighbours, in either direction.
    fn sum_into(&self, direction: Direction, nodes: Range<usize>, from: &[S], to: &mut [S]) {
        let (topology, width) = (self.input.topology, self.network.state_dim);
        let neighbours = topology.neighbours();
        if width == 0 {
            return;
        }
        // An isolated node is counted once, as itself.
        let others = |v: usize| if neighbours.is_isolated(v) { &[] } else { neighbours.of(v) };
        let degree =
            |v: usize| if v < topology.nodes() { others(v).len() } else { topology.degree(v) };
        let size = |v: usize| S::of((degree(v) + 1) as f64);
        // c_{target, source}
        let count = |target: usize, source: usize| match self.network.sum {
            NeighbourSum::Plain => S::ONE,
            NeighbourSum::Mean => S::ONE / size(target),
            NeighbourSum::Normalized => S::ONE / (size(target) * size(source)).sqrt(),
        };
        for (v, to) in nodes.zip(to.chunks_exact_mut(width)) {
            if direction == Direction::ToTargets {
                to.fill(S::ZERO);
            }
            let others = others(v).iter().map(|&u| u as usize);
            for u in std::iter::once(v).chain(others) {
                let c = match direction {
                    Direction::ToTargets => count(v, u),
                    Direction::ToSources => count(u, v),
                };
                for (to, &from) in to.iter_mut().zip(&from[u * width..][..width]) {
                    *to += c * from;
                }
            }
        }
    }
}

/// A node network with its weights, for a few nodes at a time.
#[derive(Debug)]
struct LocalNodeNetwork {
    network: NodeNetwork,
    packed: PackedWeights<'static, f64>,
    sensitivity: Sensitivity,
    sizes: NetworkSizes,
}

impl LocalNodeNetwork {
    fn new(network: &NodeNetwork, weights: &[f64], node_features: FeaturesView<'_, f64>) -> Self {
        let layout = &network.layout;
        let of = reach(layout, weights, false);
        let PackedWeights { a, d, bias, stack } =
            PackedWeights::new(network, weights, node_features);
        let (states, features) = (of(Role::NeighbourState)[0], of(Role::Input)[0]);
        Self {
            packed: PackedWeights { a, d: d.into_owned(), bias, stack },
            sensitivity: Sensitivity {
                message: states,
                neighbour: states,
                own: states,
                neighbour_features: 0.0,
                own_features: features,
                both: 2.0 * states,
                both_features: features,
                weighing: Weighing::Nodes(network.sum),
            },
            sizes: NetworkSizes::new(layout, &network.layers, weights),
            network: network.clone(),
        }
    }
}

impl LocalTransition for LocalNodeNetwork {
    fn forward(
        &self,
        input: Input<'_, f64>,
        _: &Matrix<f64>,
        f_x: &mut Matrix<f64>,
        scratch: &Scratch<f64>,
    ) {
        let weights = Weights::Lent(&self.packed);
        let prepared = Prepared::of(&self.network, weights, input, scratch);
        let state = self.network.state_dim;
        for tile in tiles(0..input.topology.nodes()) {
            let trace = prepared.forward(tile.clone());
            let rows = tile.start * state..tile.end * state;
            prepared.copy_f(&trace, &mut f_x.as_mut_slice()[rows]);
        }
    }

    fn sensitivity(&self) -> Sensitivity {
        self.sensitivity
    }

    fn rounding(&self, sizes: Sizes, degree: usize) -> Rounding {
        let summed = degree as f64 + 1.0;
        let count = match self.network.sum {
            NeighbourSum::Plain => summed,
            NeighbourSum::Mean => 1.0,
            // Σ_u 1/√((de[v] + 1)(de[u] + 1)) ≤ √(de[v] + 1)
            NeighbourSum::Normalized => summed.sqrt(),
        };
        self.sizes.rounding(sizes, (count, gamma(DOUBLE, summed + 4.0)), None)
    }
}

fn tiles(nodes: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let end = nodes.end;
    nodes.step_by(TILE).map(move |start| start..(start + TILE).min(end))
}
