//! `f_a` of single nodes, and how far a change at one node reaches: what a graph that changes needs of a transition.

use std::fmt::Debug;

use super::{Aggregation, Input, NeighbourSum};
use crate::activation::Activation;
use crate::graph::FeaturesView;
use crate::numeric::{Scratch, largest_column_sum, spectral_norm_bound};
use crate::parameters::{Parameters, Role};
use crate::{Matrix, Scalar};

/// A transition function with its weights packed once, for a few nodes at a time, in double precision.
///
/// What neighbours read of a node is its message. That is kept beside its state, so that a node is computed from one row
/// per neighbour, whatever features they have; or it is the state itself.
pub trait LocalTransition: Debug + Send + Sync {
    /// Components of a message; 0 where it is the state.
    fn message_dim(&self) -> usize {
        0
    }

    /// The messages of some nodes, row by row.
    fn messages(
        &self,
        states: &Matrix<f64>,
        node_features: FeaturesView<'_, f64>,
        messages: &mut Matrix<f64>,
    ) {
        let _ = (states, node_features, messages);
    }

    /// `f_x ← f_{a,v}(X)` of the owned nodes of a topology. Features and states have a row for every owned node.
    /// Messages have one for every owned node and behind them one for every ghost, and so have states where they are the
    /// messages.
    fn forward(
        &self,
        input: Input<'_, f64>,
        messages: &Matrix<f64>,
        f_x: &mut Matrix<f64>,
        scratch: &Scratch<f64>,
    );

    /// How far a change at one node reaches.
    fn sensitivity(&self) -> Sensitivity;

    /// What [`forward`](Self::forward) can be wrong by for a node of this degree.
    fn rounding(&self, sizes: Sizes, degree: usize) -> Rounding;
}

/// How much `f_{a,v}` can move when states and features of the node and of its neighbours do.
///
/// ```text
/// ‖f_v(X, L) − f_v(Y, M)‖ ≤ Σ_{u ∈ ne[v]} n_vu (a ‖x_u − y_u‖ + b ‖l_u − m_u‖) + c t_v ‖x_v − y_v‖ + d s_v ‖l_v − m_v‖
/// ```
///
/// where `n_vu`, `t_v` and `s_v` are how often a pair and the node itself count, see [`Weighing`]. The norm is
/// `‖·‖₂`, but `‖·‖_∞` for a maximum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sensitivity {
    /// In the message of a neighbour; `a` where that is its state.
    pub message: f64,
    /// `a`, in the state of a neighbour.
    pub neighbour: f64,
    /// `c`, in the node's own state.
    pub own: f64,
    /// `b`, in the features of a neighbour.
    pub neighbour_features: f64,
    /// `d`, in the node's own features.
    pub own_features: f64,
    /// In both states of a pair at once, when each moves by 1 at most; `a + c` at most.
    pub both: f64,
    /// In both features of a pair at once; `b + d` at most.
    pub both_features: f64,
    /// How often neighbours count.
    pub weighing: Weighing,
}

/// How often a neighbour counts.
///
/// | | `n_vu` | `t_v` | `s_v` | norm in which `f_a` contracts |
/// |---|---|---|---|---|
/// | `Pairs(Sum)` | `1` | `de[v]` | `de[v]` | `max_v ‖x_v‖₂` |
/// | `Pairs(Mean)` | `1/de[v]` | `1` | `1` | `max_v ‖x_v‖₂` |
/// | `Pairs(NormalizedSum)` | `1/√(de[v] de[u])` | `Σ_u n_vu` | `Σ_u n_vu` | `max_v ‖x_v‖₂ / √de[v]` |
/// | `Pairs(Max)` | `1`, the largest instead of the sum | `1` | `1` | `max_v ‖x_v‖_∞` |
/// | `Nodes(Plain)` | `1` | `1` | `1` | `max_v ‖x_v‖₂` |
/// | `Nodes(Mean)` | `1/(de[v] + 1)` | the same | `1` | `max_v ‖x_v‖₂` |
/// | `Nodes(Normalized)` | `1/√((de[v] + 1)(de[u] + 1))` | `1/(de[v] + 1)` | `1` | `max_v ‖x_v‖₂ / √(de[v] + 1)` |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weighing {
    /// A network of every pair of neighbours.
    Pairs(Aggregation),
    /// A network of every node, of a sum over the node and its neighbours.
    Nodes(NeighbourSum),
}

impl Weighing {
    /// `n_vu`, for a node and a neighbour of these degrees.
    #[inline]
    pub fn pair(self, target: usize, source: usize) -> f64 {
        let (v, u) = (target as f64, source as f64);
        match self {
            Self::Pairs(Aggregation::Sum | Aggregation::Max) | Self::Nodes(NeighbourSum::Plain) => {
                1.0
            }
            Self::Pairs(Aggregation::Mean) => 1.0 / v.max(1.0),
            Self::Pairs(Aggregation::NormalizedSum) => 1.0 / (v.max(1.0) * u.max(1.0)).sqrt(),
            Self::Nodes(NeighbourSum::Mean) => 1.0 / (v + 1.0),
            Self::Nodes(NeighbourSum::Normalized) => 1.0 / ((v + 1.0) * (u + 1.0)).sqrt(),
        }
    }

    /// `t_v`, for a node of this degree; `normalized` is its `Σ_u 1/√(de[v] de[u])`.
    pub fn own_states(self, degree: usize, normalized: f64) -> f64 {
        match self {
            Self::Pairs(_) => self.own_features(degree, normalized),
            Self::Nodes(NeighbourSum::Plain) => 1.0,
            Self::Nodes(_) => 1.0 / (degree as f64 + 1.0),
        }
    }

    /// `s_v`, likewise.
    pub fn own_features(self, degree: usize, normalized: f64) -> f64 {
        match self {
            Self::Pairs(Aggregation::Sum) => degree.max(1) as f64,
            Self::Pairs(Aggregation::NormalizedSum) => normalized,
            Self::Pairs(_) | Self::Nodes(_) => 1.0,
        }
    }

    /// What the error of a node is divided by in the norm in which `f_a` contracts.
    pub fn weight(self, degree: usize) -> f64 {
        match self {
            Self::Pairs(Aggregation::NormalizedSum) => (degree.max(1) as f64).sqrt(),
            Self::Nodes(NeighbourSum::Normalized) => (degree as f64 + 1.0).sqrt(),
            Self::Pairs(_) | Self::Nodes(_) => 1.0,
        }
    }

    /// Whether how often a pair counts depends on the degree of the neighbour.
    pub fn reads_source_degree(self) -> bool {
        matches!(
            self,
            Self::Pairs(Aggregation::NormalizedSum) | Self::Nodes(NeighbourSum::Normalized)
        )
    }

    /// Whether `Σ_u 1/√(de[v] de[u])` counts.
    pub fn reads_normalized(self) -> bool {
        self == Self::Pairs(Aggregation::NormalizedSum)
    }

    /// Whether the norm of a state is its largest entry.
    pub fn is_largest_entry(self) -> bool {
        self == Self::Pairs(Aggregation::Max)
    }
}

impl Sensitivity {
    /// `L_v`: by how much the error of a node of this degree can exceed, in the norm in which `f_a` contracts, the
    /// largest error of all nodes; and that of its neighbours may be `more` times as large.
    pub fn states(&self, degree: usize, normalized: f64, more: f64) -> f64 {
        let neighbours = self.neighbour * self.all_neighbours(degree);
        let each = more * neighbours + self.own * self.weighing.own_states(degree, normalized);
        each.min(more * self.pairs(self.both, degree))
    }

    /// `Φ_v`, the same for errors of the features.
    pub fn features(&self, degree: usize, normalized: f64, more: f64) -> f64 {
        let neighbours = self.neighbour_features * self.all_neighbours(degree);
        let own = self.own_features * self.weighing.own_features(degree, normalized);
        (more * neighbours + own).min(more * self.pairs(self.both_features, degree))
    }

    /// The same where both sides of every pair are as wrong as each other; nothing is known where they weigh
    /// differently.
    fn pairs(&self, both: f64, degree: usize) -> f64 {
        match self.weighing {
            Weighing::Pairs(Aggregation::Sum) => both * degree.max(1) as f64,
            Weighing::Pairs(Aggregation::Mean | Aggregation::Max) => both,
            Weighing::Pairs(Aggregation::NormalizedSum) | Weighing::Nodes(_) => f64::INFINITY,
        }
    }

    /// `Σ_u n_vu w_u / w_v`; the largest for a maximum.
    fn all_neighbours(&self, degree: usize) -> f64 {
        let degree = degree as f64;
        match self.weighing {
            Weighing::Pairs(Aggregation::Sum) => degree.max(1.0),
            Weighing::Pairs(_) => 1.0,
            Weighing::Nodes(NeighbourSum::Plain) => degree,
            Weighing::Nodes(_) => degree / (degree + 1.0),
        }
    }
}

/// The largest `‖·‖₂` of what a transition reads, and how many entries of a feature are not zero at most.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sizes {
    /// Of a state.
    pub state: f64,
    /// Of a node's features.
    pub feature: f64,
    /// Of an edge's features.
    pub edge_feature: f64,
    /// Of a message.
    pub message: f64,
    /// Entries of a node's or an edge's features.
    pub terms: usize,
    /// What a kept state or message is wrong by, relative to its size.
    pub unit: f64,
}

/// What rounding can do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rounding {
    /// `‖f̂_v − f_v‖₂` at most, `f̂` being computed.
    pub error: f64,
    /// `‖h‖₂` at most, of one pair or of the node.
    pub size: f64,
}

/// Half the distance from 1 to the next number of single precision.
pub(crate) const SINGLE: f64 = f32::EPSILON as f64 / 2.0;
/// The same of double precision.
pub(super) const DOUBLE: f64 = f64::EPSILON / 2.0;
/// What a computed tanh can be wrong by, in these units.
const TANH: f64 = 14.0;

/// `γ_n = n u / (1 − n u)`: what a sum of `n` products can be wrong by, relative to the sum of their sizes.
pub(super) fn gamma(unit: f64, terms: f64) -> f64 {
    let x = terms * unit;
    if x < 0.5 { x / (1.0 - x) } else { f64::INFINITY }
}

/// The sizes of the weights of a network `h`, for bounds on what it does to its inputs.
#[derive(Clone, Debug)]
pub(crate) struct NetworkSizes {
    /// Half the distance from 1 to the next number, of the precision that it is computed in.
    unit: f64,
    /// `‖W‖_F` of every block of the first layer, by role: neighbour's state, own state, node features, edge features.
    blocks: [f64; 4],
    /// `‖W‖₂` of the same.
    spectral: [f64; 4],
    /// `‖b‖₂` of the first layer.
    bias: f64,
    /// Components of a state that it reads.
    states: usize,
    first: (usize, Activation),
    above: Vec<LayerSizes>,
}

#[derive(Clone, Copy, Debug)]
struct LayerSizes {
    frobenius: f64,
    spectral: f64,
    bias: f64,
    inputs: usize,
    outputs: usize,
    activation: Activation,
}

impl NetworkSizes {
    pub(crate) fn new<S: Scalar>(
        layout: &Parameters,
        layers: &[(usize, Activation)],
        weights: &[S],
    ) -> Self {
        let frobenius = |number: usize| {
            layout.of(number, weights).iter().map(|w| w.f64() * w.f64()).sum::<f64>().sqrt()
        };
        let hidden: Vec<usize> = layout.of_role(Role::Hidden).collect();
        let above = hidden.iter().zip(&layers[1..]).map(|(&w, &(outputs, activation))| {
            let (inputs, columns) = (layout.rows(w), layout.columns(w));
            let spectral = spectral_norm_bound(layout.of(w, weights), inputs, columns);
            let (frobenius, bias) = (frobenius(w), frobenius(w + 1));
            LayerSizes { frobenius, spectral, bias, inputs, outputs, activation }
        });
        // A transition reads features of edges, a read-out those of nodes beside what is read of states.
        let roles: [&[Role]; 4] = [
            &[Role::NeighbourState],
            &[Role::OwnState],
            &[Role::Input],
            &[Role::EdgeFeatures, Role::Features],
        ];
        let total = |roles: &[Role], norm: &dyn Fn(usize) -> f64| -> f64 {
            roles.iter().flat_map(|&role| layout.of_role(role)).map(norm).sum()
        };
        let spectral = |number: usize| {
            spectral_norm_bound(
                layout.of(number, weights),
                layout.rows(number),
                layout.columns(number),
            )
        };
        let first_bias = hidden.first().map_or(layout.iter().len() - 1, |w| w - 1);
        let states = [Role::NeighbourState, Role::OwnState]
            .map(|role| layout.of_role(role).map(|number| layout.rows(number)).sum());
        Self {
            unit: if size_of::<S>() == size_of::<f32>() { SINGLE } else { DOUBLE },
            blocks: roles.map(|roles| total(roles, &frobenius)),
            spectral: roles.map(|roles| total(roles, &spectral)),
            bias: frobenius(first_bias),
            states: states.into_iter().max().unwrap_or(0),
            first: layers[0],
            above: above.collect(),
        }
    }

    /// Bounds on the size of `h` and on what rounding makes of it; its inputs may be `count` times as large as one
    /// state, and wrong by `input_error` of that. Behind a layer, by its number, so many values are added up.
    pub(crate) fn rounding(
        &self,
        sizes: Sizes,
        (count, input_error): (f64, f64),
        summed: Option<(usize, usize)>,
    ) -> Rounding {
        let [neighbour, own, _, edges] = self.blocks;
        let state = count * sizes.state;
        // Rounding is relative to the sums of sizes, `‖abs(W) abs(x)‖ ≤ ‖W‖_F ‖x‖`; values are at most `‖W‖₂ ‖x‖`.
        let inputs = [state, state, sizes.feature, sizes.edge_feature];
        let total = |norms: &[f64; 4]| -> f64 {
            norms.iter().zip(inputs).map(|(norm, size)| norm * size).sum::<f64>() + self.bias
        };
        // Each side of a pair is a sum over a state and a feature; both, the bias and two edges are then added.
        let edge_terms = if edges > 0.0 { 2 * sizes.terms } else { 0 };
        let terms = (self.states + sizes.terms + edge_terms) as f64 + 4.0;
        let mut error = gamma(self.unit, terms) * total(&self.blocks);
        error += (neighbour + own) * input_error * state;
        let mut size = activated(self.first, total(&self.spectral));
        error += self.unit * activation_error(self.first.1, size) + self.sum_error(summed, 0, size);
        for (number, layer) in (1..).zip(&self.above) {
            let sum = layer.frobenius * (size + error) + layer.bias;
            let added = gamma(self.unit, layer.inputs as f64 + 4.0) * sum;
            let unit = (layer.outputs, layer.activation);
            size = activated(unit, layer.spectral * size + layer.bias);
            error = layer.spectral * error + added;
            error += self.unit * activation_error(layer.activation, size);
            error += self.sum_error(summed, number, size);
        }
        Rounding { error, size: size + error }
    }

    /// What the sum over neighbours is wrong by, per neighbour, where it stands behind this layer.
    fn sum_error(&self, summed: Option<(usize, usize)>, layer: usize, size: f64) -> f64 {
        match summed {
            Some((behind, terms)) if behind == layer => gamma(self.unit, terms as f64 + 4.0) * size,
            _ => 0.0,
        }
    }
}

/// What a layer's computed activations of this size can be wrong by, in units of their precision.
fn activation_error(activation: Activation, size: f64) -> f64 {
    match activation {
        Activation::Tanh => TANH * size,
        Activation::LeakyRelu => size,
        Activation::Relu | Activation::Identity => 0.0,
    }
}

/// The largest `‖σ(a)‖₂` of a layer, for sums of this size.
fn activated((width, activation): (usize, Activation), sum: f64) -> f64 {
    match activation {
        Activation::Tanh => sum.min((width as f64).sqrt()),
        Activation::Relu | Activation::LeakyRelu | Activation::Identity => sum,
    }
}

/// `‖W‖ Π_{k ≥ 2} ‖W_k‖` of every block of a first layer, rounded up; `‖·‖_∞` with `largest_entry`, else `‖·‖₂`.
pub(crate) fn reach<S: Scalar>(
    layout: &Parameters,
    weights: &[S],
    largest_entry: bool,
) -> impl Fn(Role) -> Vec<f64> {
    let norm = move |number: usize| {
        let (w, rows, columns) =
            (layout.of(number, weights), layout.rows(number), layout.columns(number));
        if largest_entry {
            largest_column_sum(w, columns) * (1.0 + 1e-12)
        } else {
            spectral_norm_bound(w, rows, columns)
        }
    };
    let above: f64 = layout.of_role(Role::Hidden).map(norm).product();
    move |role| {
        let above = if role == Role::Hidden { 1.0 } else { above };
        layout.of_role(role).map(|number| norm(number) * above).collect()
    }
}

/// `max ‖x A + y C‖` over `‖x‖, ‖y‖ ≤ 1`, rounded up, for the blocks `A` and `C` of a first layer.
///
/// `‖x A + y C‖₂ ≤ ‖[A; C / t]‖₂ √(1 + t²)` for every `t`.
pub(crate) fn both(
    layout: &Parameters,
    weights: &[f64],
    (a, c): (usize, usize),
    largest_entry: bool,
) -> f64 {
    let (rows, columns) = (layout.rows(a) + layout.rows(c), layout.columns(a));
    let stacked = |t: f64| -> Vec<f64> {
        let below = layout.of(c, weights).iter().map(|w| w / t);
        layout.of(a, weights).iter().copied().chain(below).collect()
    };
    if largest_entry {
        return largest_column_sum(&stacked(1.0), columns) * (1.0 + 1e-12);
    }
    // That of a great many features is not worth the time.
    if rows > 1 << 12 {
        return f64::INFINITY;
    }
    [0.25_f64, 0.5, 0.7, 1.0, 1.4, 2.0, 4.0]
        .map(|t| spectral_norm_bound(&stacked(t), rows, columns) * (1.0 + t * t).sqrt())
        .into_iter()
        .fold(f64::INFINITY, f64::min)
        * (1.0 + 1e-12)
}
