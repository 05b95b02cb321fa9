mod block;
mod bound;
mod edges;
mod fused;
mod pass;
mod prepared;
mod tiles;

use std::ops::Range;

use super::{Degrees, FirstLayer, Gradients, Input, NodeRows, Tally, Transition, Upstream};
use crate::activation::Activation;
use crate::graph::{GraphBatch, LabelsView};
use crate::network::{Carry, Layout, Network};
use crate::numeric::{NormMemory, Scratch};
use crate::{Error, Matrix, Scalar};

/// A network on every pair of neighbours, aggregated over the neighbours of a node.
///
/// ```text
/// f_{a,v}(X | θ_h) = ⊕_{u ∈ ne[v]} h(x_u, l_u, l_(v,u), l_(u,v), x_v, l_v | θ_h)
/// ```
///
/// with `⊕` a sum (the original GNN), a mean, a degree-normalised sum or a maximum (GraphSAGE).
/// Each argument of `h` can be left out. A node without neighbours has the state 0.
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
pub struct ArcNetwork {
    state: usize,
    label: usize,
    arc_label: usize,
    inputs: ArcInputs,
    aggregation: Aggregation,
    /// Width and activation of every layer of `h`.
    layers: Vec<(usize, Activation)>,
    layout: Layout,
}

/// Which arguments `h` has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
#[allow(clippy::struct_excessive_bools, reason = "each argument is there or not")]
pub struct ArcInputs {
    /// `x_u`
    pub neighbour_state: bool,
    /// `l_u`
    pub neighbour_label: bool,
    /// `l_(v,u)` and `l_(u,v)`
    pub arc_labels: bool,
    /// `x_v`
    pub own_state: bool,
    /// `l_v`
    pub own_label: bool,
}

impl Default for ArcInputs {
    fn default() -> Self {
        Self {
            neighbour_state: true,
            neighbour_label: true,
            arc_labels: true,
            own_state: true,
            own_label: true,
        }
    }
}

impl ArcInputs {
    /// `h(l_v, l_u, x_u)`, as in the code of the method's authors.
    pub fn authors() -> Self {
        Self { own_state: false, arc_labels: false, ..Self::default() }
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

/// Numbers of the first layer's matrices in the layout.
const A: usize = 0;
const B: usize = 1;
const E: usize = 2;
const F: usize = 3;
const C: usize = 4;
const D: usize = 5;
const BIAS: usize = 6;

impl ArcNetwork {
    /// A network `h` for states of `state` components, node labels of `label` and arc labels of
    /// `arc_label`.
    pub fn new(
        state: usize,
        label: usize,
        arc_label: usize,
        inputs: ArcInputs,
        h: &Network,
        aggregation: Aggregation,
    ) -> Self {
        let layers = h.layers(state);
        let of = |wanted: bool, length: usize| if wanted { length } else { 0 };
        let (x_u, l_u) = (of(inputs.neighbour_state, state), of(inputs.neighbour_label, label));
        let arc = of(inputs.arc_labels, arc_label);
        let (x_v, l_v) = (of(inputs.own_state, state), of(inputs.own_label, label));
        let total = x_u + l_u + 2 * arc + x_v + l_v;
        let mut layout = Layout::default();
        for rows in [x_u, l_u, arc, arc, x_v, l_v] {
            layout.push(rows, layers[0].0, total);
        }
        layout.push(1, layers[0].0, 0);
        for pair in layers.windows(2) {
            layout.push(pair[0].0, pair[1].0, pair[0].0);
            layout.push(1, pair[1].0, 0);
        }
        Self { state, label, arc_label, inputs, aggregation, layers, layout }
    }

    /// The same, with `A` and the matrices above it, which pass on what `h` is given of
    /// neighbours' states, as `carry` says.
    #[must_use]
    pub fn with_carry(mut self, carry: Carry) -> Self {
        let above = (1..self.layers.len()).map(|k| BIAS + 2 * k - 1);
        self.layout.carry(carry, std::iter::once(A).chain(above));
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

impl<S: Scalar> Transition<S> for ArcNetwork {
    fn weights(&self) -> usize {
        self.layout.len()
    }

    fn state(&self) -> usize {
        self.state
    }

    fn check(&self, batch: &GraphBatch<S>, labels: LabelsView<'_, S>) -> Result<(), Error> {
        check_label(
            "node",
            self.inputs.neighbour_label || self.inputs.own_label,
            self.label,
            labels,
        )?;
        check_label("arc", self.inputs.arc_labels, self.arc_label, batch.arc_labels().view())
    }

    fn initialize(&self, draw: &mut dyn FnMut() -> f64, weights: &mut [S]) {
        self.layout.initialize(draw, weights);
    }

    fn held(&self) -> Vec<Range<usize>> {
        self.layout.held()
    }

    fn forward(
        &self,
        weights: &[S],
        input: Input<'_, S>,
        image: &mut Matrix<S>,
        scratch: &Scratch<S>,
    ) {
        self.run_forward(weights, input, image, scratch);
    }

    fn backward(
        &self,
        weights: &[S],
        input: Input<'_, S>,
        d_image: &Matrix<S>,
        gradients: Gradients<'_, S>,
        scratch: &Scratch<S>,
    ) {
        let mut none = Matrix::zeros(input.batch.nodes(), 0);
        self.run_pass(weights, input, &Given(d_image), &mut none, gradients, scratch);
    }

    fn pass(
        &self,
        weights: &[S],
        input: Input<'_, S>,
        upstream: &dyn Upstream<S>,
        d_multipliers: &mut Matrix<S>,
        gradients: Gradients<'_, S>,
        scratch: &Scratch<S>,
    ) -> Tally {
        self.run_pass(weights, input, upstream, d_multipliers, gradients, scratch)
    }

    fn label_layer(&self) -> Option<FirstLayer> {
        let read = [B, D].into_iter().filter(|&block| self.layout.rows(block) > 0);
        Some(FirstLayer {
            matrices: read.map(|block| self.layout.start(block)).collect(),
            bias: self.layout.start(BIAS),
            units: self.layout.columns(BIAS),
        })
    }

    fn lipschitz(&self, weights: &[S], degrees: Degrees) -> Option<f64> {
        Some(self.bound(weights, degrees, &mut NormMemory::default()))
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

pub(super) fn check_label<S: Scalar>(
    what: &str,
    read: bool,
    expected: usize,
    labels: LabelsView<'_, S>,
) -> Result<(), Error> {
    if read && labels.width() != expected && labels.rows() > 0 {
        let found = labels.width();
        return Err(Error::Mismatch(format!(
            "{what} labels have {found} components, the transition function reads {expected}"
        )));
    }
    Ok(())
}

/// An upstream that is known beforehand, for a backward pass of its own.
pub(super) struct Given<'a, S>(pub(super) &'a Matrix<S>);

impl<S: Scalar> Upstream<S> for Given<'_, S> {
    fn upstream(&self, nodes: std::ops::Range<usize>, _: &[S], rows: NodeRows<'_, S>) -> Tally {
        let width = self.0.cols();
        rows.d_image.copy_from_slice(&self.0.as_slice()[nodes.start * width..nodes.end * width]);
        Tally::default()
    }
}
