//! The weights of a network, ready for all rows, and what happens per node: projections before the
//! pairs of neighbours, and the layer behind their sum.

use std::ops::{Deref, Range};

use super::kernels::{Counts, Table};
use super::pass::Group;
use super::{A, Aggregation, B, BIAS, C, D, E, EdgeNetwork, F, Isolated};
use crate::Scalar;
use crate::activation::Activation;
use crate::graph::{FeaturesView, Neighbours, Topology};
use crate::network::{Layer, Stack, sum_rows};
use crate::numeric::{
    Factors, Finish, Packed, Scratch, Spare, narrow_rows, padded, product, transposed_product,
    widen_rows,
};
use crate::parameters::Parameters;
use crate::transition::{FeatureWeights, Input};

/// Node features of more components may be [wide](Prepared::is_wide).
const WIDE: usize = 1 << 12;

/// The weights of `h`, packed once for all rows.
#[derive(Debug)]
pub(super) struct PackedWeights<'w, S: Scalar> {
    pub(super) a: StateMatrix<S>,
    pub(super) c: StateMatrix<S>,
    pub(super) b: Option<FeatureWeights<'w, S>>,
    pub(super) d: Option<FeatureWeights<'w, S>>,
    /// `E` and `F`.
    pub(super) edge: Option<[FeatureWeights<'w, S>; 2]>,
    pub(super) bias: Vec<S>,
    /// The layers after the first that are applied per pair.
    pub(super) stack: Stack<S>,
    /// The last layer, when it is applied per node.
    pub(super) last: Option<Layer<S>>,
    /// Its bias, as a matrix of one row.
    pub(super) last_bias: Packed<S>,
}

/// Packed weights, and what is known of the nodes before any of them is worked on.
pub(super) struct Prepared<'w, S: Scalar> {
    weights: Weights<'w, S>,
    pub(super) roots: Spare<'w, S>,
    /// How often a bias behind the sum counts, per node; empty where there is none.
    totals: Spare<'w, S>,
    pub(super) network: &'w EdgeNetwork,
    pub(super) input: Input<'w, S>,
    pub(super) scratch: &'w Scratch<S>,
}

/// Weights that are packed for one pass, or for as many as come.
#[allow(clippy::large_enum_variant, reason = "there is one of them per pass")]
enum Weights<'w, S: Scalar> {
    Own(PackedWeights<'w, S>),
    Lent(&'w PackedWeights<'w, S>),
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

/// The rows of the first layer that multiply a state, for both directions; none where `h` does not
/// read it, so that its products are zero.
#[derive(Debug)]
pub(super) struct StateMatrix<S> {
    pub(super) block: usize,
    pub(super) forward: Packed<S>,
    pub(super) backward: Packed<S>,
}

impl<'w, S: Scalar> PackedWeights<'w, S> {
    /// Packed for node features of the form of `node_features`.
    pub(super) fn new(
        network: &EdgeNetwork,
        weights: &'w [S],
        node_features: FeaturesView<'_, S>,
    ) -> Self {
        let layout = &network.layout;
        let width = network.layers[0].0;
        let state = |block| {
            let (matrix, rows) = (layout.of(block, weights), layout.rows(block));
            let backward = if rows > 0 {
                Packed::transposed(matrix, width, rows)
            } else {
                Packed::new(&[], 0, network.state_dim)
            };
            StateMatrix { block, forward: Packed::new(matrix, rows, width), backward }
        };
        let feature = |block| {
            (layout.rows(block) > 0)
                .then(|| FeatureWeights::new(layout, block, weights, node_features))
        };
        let behind = Self::behind_projections(network, weights);
        Self { a: state(A), c: state(C), b: feature(B), d: feature(D), ..behind }
    }

    /// Without those that multiply states and features of nodes.
    pub(super) fn behind_projections(network: &EdgeNetwork, weights: &'w [S]) -> Self {
        let layout = &network.layout;
        let none = |block| {
            let (forward, backward) = (Packed::default(), Packed::default());
            StateMatrix { block, forward, backward }
        };
        let edge = |block| FeatureWeights::for_edges(layout, block, weights);
        let layer = |k: usize| {
            Layer::new(layout, EdgeNetwork::matrix_of_layer(k), network.layers[k].1, weights)
        };
        let per_pair = network.layers_per_pair();
        let last = network.last_per_node().then(|| layer(per_pair));
        let last_bias = last.as_ref().map(|last| &last.bias[..network.state_dim]);
        let last_bias = last_bias.map(|bias| Packed::new(bias, 1, network.state_dim));
        Self {
            a: none(A),
            c: none(C),
            b: None,
            d: None,
            edge: (layout.rows(E) > 0).then(|| [edge(E), edge(F)]),
            bias: layout.padded_copy(BIAS, weights),
            stack: Stack { layers: (1..per_pair).map(layer).collect() },
            last,
            last_bias: last_bias.unwrap_or_default(),
        }
    }

    /// `p_u = A x_u + B l_u` of nodes with these states and features.
    pub(super) fn project_sources(&self, x: &[S], features: FeaturesView<'_, S>, p: &mut [S]) {
        let rows = (0..features.rows(), x, features);
        project_rows(&rows, p, &self.a, self.b.as_ref(), Finish::Set);
    }

    /// The same, with nothing borrowed.
    pub(super) fn into_owned(self) -> PackedWeights<'static, S> {
        let Self { a, c, b, d, edge, bias, stack, last, last_bias } = self;
        PackedWeights {
            b: b.map(FeatureWeights::into_owned),
            d: d.map(FeatureWeights::into_owned),
            edge: edge.map(|edge| edge.map(FeatureWeights::into_owned)),
            a,
            c,
            bias,
            stack,
            last,
            last_bias,
        }
    }
}

impl<'w, S: Scalar> Prepared<'w, S> {
    pub(super) fn new(
        network: &'w EdgeNetwork,
        weights: &'w [S],
        input: Input<'w, S>,
        scratch: &'w Scratch<S>,
    ) -> Self {
        let weights = PackedWeights::new(network, weights, input.node_features);
        Self::own(network, weights, input, scratch)
    }

    /// The same with weights that have been packed for it.
    pub(super) fn own(
        network: &'w EdgeNetwork,
        weights: PackedWeights<'w, S>,
        input: Input<'w, S>,
        scratch: &'w Scratch<S>,
    ) -> Self {
        Self::of(network, Weights::Own(weights), input, scratch)
    }

    /// The same with weights that were packed before.
    pub(super) fn lent(
        network: &'w EdgeNetwork,
        weights: &'w PackedWeights<'w, S>,
        input: Input<'w, S>,
        scratch: &'w Scratch<S>,
    ) -> Self {
        Self::of(network, Weights::Lent(weights), input, scratch)
    }

    fn of(
        network: &'w EdgeNetwork,
        weights: Weights<'w, S>,
        input: Input<'w, S>,
        scratch: &'w Scratch<S>,
    ) -> Self {
        let topology = input.topology;
        let roots = roots(network, topology, scratch);
        let last_per_node = network.last_per_node();
        let mut totals = scratch.take(if last_per_node { topology.nodes() } else { 0 });
        let counts = Counts { mean: network.aggregation == Aggregation::Mean, roots: &roots };
        for (v, total) in totals.iter_mut().enumerate() {
            *total = counts.total(topology.neighbours(), v);
        }
        Self { weights, roots, totals, network, input, scratch }
    }

    /// Whether a batch reads so few rows of the matrices of node features that no group has a partial gradient of all
    /// of them: what goes there is kept, and added up node by node at the end.
    pub(super) fn is_wide(&self) -> bool {
        let Input { topology, node_features, .. } = self.input;
        let sparse = !matches!(node_features, FeaturesView::Dense(_));
        let width = node_features.width();
        sparse && topology.groups().whole_graphs() && width > WIDE && width > topology.whole_nodes()
    }

    /// Where everything lies in a partial gradient.
    pub(super) fn partial_layout(&self) -> &'w Parameters {
        if self.is_wide() { &self.network.narrow } else { &self.network.layout }
    }

    /// The gradients of what reads node features, from what the groups have kept.
    pub(super) fn kept_gradients(&self, groups: &[Group<'_, S>], d_weights: &mut [S]) {
        let (layout, features) = (&self.network.layout, self.input.node_features);
        for group in groups {
            let kept = group.kept.iter().flatten();
            for (weights, d) in [&self.b, &self.d].into_iter().zip(kept) {
                if let Some(w) = weights {
                    w.gradient_of_rows(layout, features, group.nodes.clone(), d, d_weights);
                }
            }
        }
    }

    pub(super) fn neighbours(&self) -> &'w Neighbours {
        self.input.topology.neighbours()
    }

    pub(super) fn counts(&self) -> Counts<'_, S> {
        Counts { mean: self.network.aggregation == Aggregation::Mean, roots: &self.roots }
    }

    /// Padded width of the first layer.
    pub(super) fn first(&self) -> usize {
        padded(self.network.layers[0].0)
    }

    /// Padded width of what is aggregated.
    pub(super) fn aggregated(&self) -> usize {
        padded(self.network.layers[self.network.layers_per_pair() - 1].0)
    }

    pub(super) fn activation(&self, layer: usize) -> Activation {
        self.network.layers[layer].1
    }

    pub(super) fn states(&self, nodes: &Range<usize>) -> &'w [S] {
        let width = self.network.state_dim;
        &self.input.states.as_slice()[nodes.start * width..nodes.end * width]
    }

    pub(super) fn table<'t>(&self, rows: &'t [S], base: usize) -> Table<'t, S> {
        Table { rows, base, width: self.first(), stride: self.first() }
    }

    /// Whether the values of pairs need not be stored, see [`fused`].
    pub(super) fn is_fused(&self) -> bool {
        self.stack.layers.is_empty()
            && self.edge.is_none()
            && self.network.aggregation != Aggregation::Max
    }

    /// `p_u = A x_u + B l_u` and `q_v = C x_v + D l_v + b` of some nodes.
    pub(super) fn project(&self, nodes: Range<usize>) -> (Spare<'w, S>, Spare<'w, S>) {
        let mut p = self.scratch.take(nodes.len() * self.first());
        let mut q = self.scratch.take(nodes.len() * self.first());
        self.project_into(nodes, &mut p, &mut q);
        (p, q)
    }

    pub(super) fn project_into(&self, nodes: Range<usize>, p: &mut [S], q: &mut [S]) {
        self.project_sources(nodes.clone(), p);
        self.project_targets(nodes, q);
    }

    /// `p_u` of some nodes.
    pub(super) fn project_sources(&self, nodes: Range<usize>, p: &mut [S]) {
        self.project_rows(nodes, p, &self.a, self.b.as_ref(), Finish::Set);
    }

    /// `q_v` of some nodes.
    pub(super) fn project_targets(&self, nodes: Range<usize>, q: &mut [S]) {
        let start = Finish::Activate(Activation::Identity, &self.bias);
        self.project_rows(nodes, q, &self.c, self.d.as_ref(), start);
    }

    fn project_rows(
        &self,
        nodes: Range<usize>,
        y: &mut [S],
        x_weights: &StateMatrix<S>,
        l_weights: Option<&FeatureWeights<'_, S>>,
        finish: Finish<'_, S>,
    ) {
        let (x, features) = (self.states(&nodes), self.input.node_features);
        project_rows(&(nodes, x, features), y, x_weights, l_weights, finish);
    }

    /// The gradients behind the projections: of the first layer's weights, of states, of features.
    pub(super) fn project_back(
        &self,
        nodes: &Range<usize>,
        d_p: &[S],
        d_q: &[S],
        group: &mut Group<'_, S>,
    ) {
        let (layout, state, width) = (self.partial_layout(), self.network.state_dim, self.first());
        let rows = group.rows(nodes, state);
        let d_states = &mut group.d_states[rows];
        let factors = [(&self.a, d_p), (&self.c, d_q)].map(|(w, d)| Factors {
            a: d,
            stride: width,
            b: &w.backward,
        });
        product(nodes.len(), &factors, d_states, state, Finish::Add);
        let rows = group.rows(nodes, self.network.feature);
        if let Some(d_features) = &mut group.d_features {
            for (weights, d) in [(&self.b, d_p), (&self.d, d_q)] {
                if let Some(w) = weights {
                    w.back(d, &mut d_features[rows.clone()]);
                }
            }
        }
        if !group.partial.is_empty() {
            for (w, d) in [(&self.a, d_p), (&self.c, d_q)] {
                let d_w = layout.partial(w.block, &mut group.partial);
                let (rows, columns) = (layout.rows(w.block), layout.columns(w.block));
                transposed_product(nodes.len(), self.states(nodes), state, rows, d, columns, d_w);
            }
            let rows = group.rows(nodes, width);
            for (kept, d) in group.kept.iter_mut().flatten().zip([d_p, d_q]) {
                kept[rows.clone()].copy_from_slice(d);
            }
            for (weights, d) in [(&self.b, d_p), (&self.d, d_q)] {
                if let (Some(w), None) = (weights, &group.kept) {
                    w.gradient(
                        layout,
                        self.input.node_features,
                        nodes.clone(),
                        d,
                        &mut group.partial,
                    );
                }
            }
            sum_rows(d_q, layout.partial(BIAS, &mut group.partial));
        }
    }

    /// `f_v = W s_v + (Σ count) b`, or the aggregate itself where no layer is left.
    pub(super) fn after_sum(&self, nodes: Range<usize>, sums: &[S], f_x: &mut [S]) {
        let (aggregated, state) = (self.aggregated(), self.network.state_dim);
        let Some(layer) = &self.last else {
            return narrow_rows(sums, aggregated, f_x, state);
        };
        let totals = self.totals(nodes.clone());
        let bias = Factors { a: totals, stride: 1, b: &self.last_bias };
        let factors = [layer.forward(sums, aggregated), bias];
        product(nodes.len(), &factors, f_x, state, Finish::Set);
    }

    /// How often a bias behind the sum counts, of some nodes.
    fn totals(&self, nodes: Range<usize>) -> &[S] {
        &self.totals[nodes]
    }

    /// The way back, from `∂𝓛/∂f` to `∂𝓛/∂s`.
    pub(super) fn before_sum(
        &self,
        nodes: Range<usize>,
        sums: &[S],
        d_f: &[S],
        partial: Option<&mut [S]>,
        d_sums: &mut [S],
    ) {
        let (aggregated, state) = (self.aggregated(), self.network.state_dim);
        let Some(layer) = &self.last else {
            return widen_rows(d_f, state, d_sums, aggregated);
        };
        let factors = layer.backward(d_f, state);
        product(nodes.len(), &[factors], d_sums, aggregated, Finish::Set);
        if let Some(partial) = partial {
            let layout = self.partial_layout();
            let mut d_padded = self.scratch.take(nodes.len() * padded(state));
            widen_rows(d_f, state, &mut d_padded, padded(state));
            let d_w = layout.partial(layer.matrix_block(), partial);
            transposed_product(nodes.len(), sums, aggregated, layer.inputs, &d_padded, state, d_w);
            let d_b = layout.partial(layer.bias_block(), partial);
            let totals = self.totals(nodes.clone());
            transposed_product(nodes.len(), totals, 1, 1, &d_padded, state, d_b);
        }
    }
}

/// `x_v X + l_v L`, on top of what `finish` says, for nodes with these states and features.
fn project_rows<S: Scalar>(
    (nodes, x, features): &(Range<usize>, &[S], FeaturesView<'_, S>),
    y: &mut [S],
    x_weights: &StateMatrix<S>,
    l_weights: Option<&FeatureWeights<'_, S>>,
    finish: Finish<'_, S>,
) {
    let rows = nodes.len().max(1);
    let (state, width) = (x.len() / rows, y.len() / rows);
    let x = Factors { a: x, stride: state, b: &x_weights.forward };
    let l = l_weights.and_then(|l| l.factors(*features, nodes.start));
    if let Some(l) = l {
        product(nodes.len(), &[x, l], y, width, finish);
    } else {
        product(nodes.len(), &[x], y, width, finish);
        if let Some(l_weights) = l_weights {
            l_weights.add(*features, nodes.clone(), y);
        }
    }
}

/// What the pairs of every node are weighed with, `1/√degree` or 1, where they do not all count alike; otherwise empty.
fn roots<'w, S: Scalar>(
    network: &EdgeNetwork,
    topology: &Topology,
    scratch: &'w Scratch<S>,
) -> Spare<'w, S> {
    let normalized = network.aggregation == Aggregation::NormalizedSum;
    let isolated = match network.isolated {
        Isolated::SelfLoop => &[],
        Isolated::Zero => topology.neighbours().isolated(),
    };
    if !normalized && isolated.is_empty() {
        return scratch.take(0);
    }
    let mut roots = scratch.take(topology.rows());
    for (v, root) in roots.iter_mut().enumerate() {
        let degree = if normalized { topology.degree(v).max(1) } else { 1 };
        *root = S::ONE / S::of(degree as f64).sqrt();
    }
    // Their one pair counts nothing.
    isolated.iter().for_each(|&v| roots[v as usize] = S::ZERO);
    roots
}
