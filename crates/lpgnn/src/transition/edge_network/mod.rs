mod block;
mod bound;
mod fused;
mod interior;
mod iteration;
mod kernels;
mod local;
mod pass;
mod prepared;
mod tiles;

use super::{
    Degrees, Gradients, Input, Kept, LocalTransition, PackedTransition, Transition, Upstream,
    with_known,
};
use crate::activation::Activation;
use crate::graph::FeaturesView;
use crate::network::{Network, StateWeights};
use crate::numeric::{NormMemory, Scratch};
use crate::parameters::{Parameters, Role};
use crate::{Error, Matrix, Scalar};
use iteration::PackedEdgeNetwork;

/// A network on every pair of neighbours, aggregated over the neighbours of a node.
///
/// ```text
/// f_{a,v}(X | θ_h) = ⊕_{u ∈ ne[v]} h(x_u, l_u, l_(v,u), l_(u,v), x_v, l_v | θ_h)
/// ```
///
/// with `⊕` a sum (the original GNN), a mean, a degree-normalised sum or a maximum (GraphSAGE).
/// Each argument of `h` can be left out. A node without neighbours is its own, along no edge, so that its features
/// reach its state; [`Isolated::Zero`] gives it the paper's sum over nothing.
///
/// The first layer of `h` is linear in its concatenated arguments,
///
/// ```text
/// W [x_u; l_u; l_(v,u); l_(u,v); x_v; l_v] + b = (A x_u + B l_u) + (C x_v + D l_v + b) + E l_(v,u) + F l_(u,v)
/// ```
///
/// so both brackets are computed once per node and only added per pair. Where `h` has no output
/// activation and `⊕` is linear, the last layer too is applied once per node, after the sum.
///
/// Weights: `A: [s, h]`, `B: [m, h]`, `E: [d, h]`, `F: [d, h]`, `C: [s, h]`, `D: [m, h]`, `b: [h]`,
/// then `W: [inputs, outputs]`, `b: [outputs]` of every further layer; row by row.
#[derive(Clone, Debug)]
pub struct EdgeNetwork {
    state_dim: usize,
    feature: usize,
    edge_feature: usize,
    inputs: EdgeInputs,
    aggregation: Aggregation,
    isolated: Isolated,
    /// Width and activation of every layer of `h`.
    layers: Vec<(usize, Activation)>,
    layout: Parameters,
    /// The same in partial gradients without the matrices that read node features.
    narrow: Parameters,
}

/// Which arguments `h` has.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[allow(clippy::struct_excessive_bools, reason = "each argument is there or not")]
pub struct EdgeInputs {
    /// State of the neighbour, `x_u`.
    pub neighbour_state: bool,
    /// Features of the neighbour, `l_u`.
    pub neighbour_features: bool,
    /// Features of the edges between them, `l_(v,u)` and `l_(u,v)`.
    pub edge_features: bool,
    /// State of the node, `x_v`.
    pub own_state: bool,
    /// Features of the node, `l_v`.
    pub own_features: bool,
}

impl Default for EdgeInputs {
    fn default() -> Self {
        Self {
            neighbour_state: true,
            neighbour_features: true,
            edge_features: true,
            own_state: true,
            own_features: true,
        }
    }
}

impl EdgeInputs {
    /// `h(l_v, l_u, x_u)`, as in the code of the method's authors.
    pub fn authors() -> Self {
        Self { own_state: false, edge_features: false, ..Self::default() }
    }
}

/// How the values of `h` over the neighbours become one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Aggregation {
    /// `Σ_u h`
    Sum,
    /// `1 / de[v] Σ_u h`
    #[default]
    Mean,
    /// `Σ_u h / √(de[v] de[u])`: it counts neighbours, yet keeps a bound for any degree.
    NormalizedSum,
    /// `max_u h`, component by component.
    Max,
}

/// What a node without neighbours aggregates.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Isolated {
    /// `h` of the node with itself, without an edge, so that its features reach its state.
    #[default]
    SelfLoop,
    /// Nothing, so that their state is 0, whatever their features: the paper's formula taken literally.
    Zero,
}

/// Numbers of the first layer's parameters, in the order of their declaration.
const A: usize = 0;
const B: usize = 1;
const E: usize = 2;
const F: usize = 3;
const C: usize = 4;
const D: usize = 5;
const BIAS: usize = 6;

impl EdgeNetwork {
    /// A network `h` for states of `state` components, node features of `feature` and edge features of
    /// `edge_feature`.
    pub fn new(
        state: usize,
        feature: usize,
        edge_feature: usize,
        inputs: EdgeInputs,
        h: &Network,
        aggregation: Aggregation,
    ) -> Self {
        let layers = h.layers(state);
        let of = |wanted: bool, length: usize| if wanted { length } else { 0 };
        let (x_u, l_u) =
            (of(inputs.neighbour_state, state), of(inputs.neighbour_features, feature));
        let edge = of(inputs.edge_features, edge_feature);
        let (x_v, l_v) = (of(inputs.own_state, state), of(inputs.own_features, feature));
        let layout = Parameters::new()
            .layer("0", layers[0].0)
            .weight("neighbour_state", Role::NeighbourState, x_u)
            .weight("neighbour_features", Role::Input, l_u)
            .weight("outgoing_edge_features", Role::EdgeFeatures, edge)
            .weight("incoming_edge_features", Role::EdgeFeatures, edge)
            .weight("own_state", Role::OwnState, x_v)
            .weight("own_features", Role::Input, l_v)
            .bias();
        let widths: Vec<usize> = layers.iter().map(|(width, _)| *width).collect();
        let layout = Network::declare_above(layout, &widths);
        Self {
            state_dim: state,
            feature,
            edge_feature,
            inputs,
            aggregation,
            isolated: Isolated::default(),
            layers,
            narrow: layout.without_partials(&[B, D]),
            layout,
        }
    }

    /// The same, with `A` and the matrices above it, which pass on what `h` is given of
    /// neighbours' states, as `state_weights` says.
    #[must_use]
    pub fn with_state_weights(mut self, state_weights: StateWeights) -> Self {
        self.layout = self.layout.with_state_weights(state_weights);
        self
    }

    /// The same, with what a node without neighbours aggregates.
    #[must_use]
    pub fn with_isolated(mut self, isolated: Isolated) -> Self {
        self.isolated = isolated;
        self
    }

    /// Whether the last layer of `h` is applied once per node, after the sum.
    fn last_per_node(&self) -> bool {
        let (_, output) = self.layers[self.layers.len() - 1];
        output == Activation::Identity
            && self.aggregation != Aggregation::Max
            && self.layers.len() > 1
    }

    /// How many layers of `h` are applied per pair of neighbours.
    fn layers_per_pair(&self) -> usize {
        self.layers.len() - usize::from(self.last_per_node())
    }

    /// The matrix of layer `k ≥ 1` in the layout; its bias is the next.
    fn matrix_of_layer(k: usize) -> usize {
        BIAS + 2 * k - 1
    }
}

impl<S: Scalar> Transition<S> for EdgeNetwork {
    fn parameters(&self) -> &Parameters {
        &self.layout
    }

    fn state_dim(&self) -> usize {
        self.state_dim
    }

    fn check(
        &self,
        node_features: FeaturesView<'_, S>,
        edge_features: FeaturesView<'_, S>,
    ) -> Result<(), Error> {
        let reads_nodes = self.inputs.neighbour_features || self.inputs.own_features;
        check_width("node", reads_nodes, self.feature, node_features)?;
        check_width("edge", self.inputs.edge_features, self.edge_feature, edge_features)
    }

    fn forward(
        &self,
        weights: &[S],
        input: Input<'_, S>,
        f_x: &mut Matrix<S>,
        scratch: &Scratch<S>,
    ) {
        self.run_forward(weights, input, f_x, scratch, false);
    }

    fn forward_keeping<'s>(
        &self,
        weights: &[S],
        input: Input<'_, S>,
        f_x: &mut Matrix<S>,
        scratch: &'s Scratch<S>,
    ) -> Kept<'s, S> {
        self.run_forward(weights, input, f_x, scratch, true)
    }

    fn pass_after(
        &self,
        kept: Kept<'_, S>,
        weights: &[S],
        input: Input<'_, S>,
        upstream: &mut [&mut dyn Upstream<S>],
        gradients: Gradients<'_, S>,
        scratch: &Scratch<S>,
    ) {
        self.run_pass(&kept, weights, input, upstream, gradients, scratch);
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
            self.run_pass(&Kept::default(), weights, input, known, gradients, scratch);
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
        self.run_pass(&Kept::default(), weights, input, upstream, gradients, scratch);
    }

    fn packed<'a>(
        &'a self,
        weights: &'a [S],
        node_features: FeaturesView<'_, S>,
    ) -> Option<Box<dyn PackedTransition<S> + 'a>> {
        Some(Box::new(PackedEdgeNetwork::new(self, weights, node_features)))
    }

    fn lipschitz(&self, weights: &[S], degrees: Degrees) -> Option<f64> {
        Some(self.bound(weights, degrees, &mut NormMemory::default()))
    }

    fn local(
        &self,
        weights: &[f64],
        node_features: FeaturesView<'_, f64>,
    ) -> Option<Box<dyn LocalTransition>> {
        Some(Box::new(local::LocalEdgeNetwork::new(self, weights, node_features)))
    }

    fn contract(
        &self,
        weights: &mut [S],
        degrees: Degrees,
        bound: f64,
        memory: &mut NormMemory,
    ) -> bool {
        self.scale_down(weights, degrees, bound, memory);
        true
    }
}

pub(super) fn check_width<S: Scalar>(
    what: &str,
    read: bool,
    expected: usize,
    features: FeaturesView<'_, S>,
) -> Result<(), Error> {
    if read && features.width() != expected && features.rows() > 0 {
        let found = features.width();
        return Err(Error::Mismatch(format!(
            "{what} features have {found} components, the transition function reads {expected}"
        )));
    }
    Ok(())
}
