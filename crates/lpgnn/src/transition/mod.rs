//! State transition functions `f_a`.
//!
//! A transition maps the states of all nodes to new ones, each from a node and its neighbours.
//! It is nothing but its shape: the weights `θ_a` come from outside as one flat slice, so that
//! optimisers, checkpoints and gradient checks need no knowledge of layers.

mod columns;
mod edge_network;
mod features;
mod node_network;
mod rows;

use edge_network::check_feature;
pub use edge_network::{Aggregation, EdgeInputs, EdgeNetwork};
pub(crate) use features::FeatureWeights;
pub use node_network::{NeighbourSum, NodeNetwork};
pub(crate) use rows::{for_each_group, split_rows};

use std::fmt::Debug;
use std::ops::Range;

use crate::graph::{FeaturesView, GraphBatch};
use crate::numeric::{NormMemory, Scratch, worse};
use crate::parameters::{Parameters, Role};
use crate::{Error, Matrix, Scalar};

/// A state transition function `f_a`, with its derivatives.
///
/// [`forward`](Self::forward) and [`backward`](Self::backward) are enough. Put a new one through
/// [`check::transition`](crate::check::transition) before use.
pub trait Transition<S: Scalar = f32>: Debug + Send + Sync {
    /// Its parameters: their names, shapes and roles, and how they start.
    fn parameters(&self) -> &Parameters;

    /// Components of a state.
    fn state_dim(&self) -> usize;

    /// Whether it can read these graphs, with these node features.
    ///
    /// This one compares their lengths with the rows of what is declared to multiply them.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`] when features have other lengths than the function reads.
    fn check(&self, batch: &GraphBatch<S>, features: FeaturesView<'_, S>) -> Result<(), Error> {
        let of_edges = batch.edge_features().view();
        for (what, role, features) in
            [("node", Role::Input, features), ("edge", Role::EdgeFeatures, of_edges)]
        {
            for number in self.parameters().of_role(role) {
                check_feature(what, true, self.parameters().rows(number), features)?;
            }
        }
        Ok(())
    }

    /// `f_x ← f_a(X | θ_a)`
    fn forward(
        &self,
        weights: &[S],
        input: Input<'_, S>,
        f_x: &mut Matrix<S>,
        scratch: &Scratch<S>,
    );

    /// The vector–Jacobian product: adds to the gradients what `∂𝓛/∂f_a` contributes to them.
    fn backward(
        &self,
        weights: &[S],
        input: Input<'_, S>,
        d_f: &Matrix<S>,
        gradients: Gradients<'_, S>,
        scratch: &Scratch<S>,
    );

    /// Both at once: asks `upstream` for `∂𝓛/∂f_a` as soon as `f_a` of some nodes is known.
    ///
    /// Functions that can do so while those nodes are in cache write it themselves; this one calls
    /// forward, upstream and backward.
    fn pass(
        &self,
        weights: &[S],
        input: Input<'_, S>,
        upstream: &dyn Upstream<S>,
        d_multipliers: &mut Matrix<S>,
        gradients: Gradients<'_, S>,
        scratch: &Scratch<S>,
    ) -> Tally {
        let nodes = input.batch.nodes();
        let mut f_x = Matrix::zeros(nodes, self.state_dim());
        self.forward(weights, input, &mut f_x, scratch);
        let mut d_f = Matrix::zeros(nodes, self.state_dim());
        let tally = upstream.upstream(
            0..nodes,
            f_x.as_slice(),
            NodeRows {
                d_f: d_f.as_mut_slice(),
                d_states: gradients.states.as_mut_slice(),
                d_multipliers: d_multipliers.as_mut_slice(),
            },
        );
        self.backward(weights, input, &d_f, gradients, scratch);
        tally
    }

    /// A number `L` with `‖f_a(X) − f_a(Y)‖ ≤ L ‖X − Y‖` on graphs of these degrees, in some norm
    /// that the implementation names; none when it knows none.
    fn lipschitz(&self, weights: &[S], degrees: Degrees) -> Option<f64> {
        let _ = (weights, degrees);
        None
    }

    /// Changes the weights so that [`lipschitz`](Self::lipschitz) is at most `bound`, up to rounding;
    /// false when it cannot. `memory` is what the last call left, for a quick start.
    ///
    /// This one scales the matrices that are declared to multiply states until the bound holds.
    fn contract(
        &self,
        weights: &mut [S],
        degrees: Degrees,
        bound: f64,
        memory: &mut NormMemory,
    ) -> bool {
        let _ = memory;
        // Once is enough for a bound that is proportional to those matrices.
        for _ in 0..SCALINGS {
            match self.lipschitz(weights, degrees) {
                None => return false,
                Some(now) if now <= bound * (1.0 + 1e-6) => return true,
                Some(now) => self.parameters().scale_states(weights, bound / now),
            }
        }
        false
    }
}

/// How often weights are scaled down before a bound counts as out of reach.
const SCALINGS: usize = 100;

/// What a transition reads.
#[derive(Debug)]
pub struct Input<'a, S = f32> {
    /// The graphs.
    pub batch: &'a GraphBatch<S>,
    /// The features of the nodes: those of the graphs, or the states of the layer below.
    pub features: FeaturesView<'a, S>,
    /// `X`, one state per node.
    pub states: &'a Matrix<S>,
}

impl<S> Clone for Input<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<S> Copy for Input<'_, S> {}

/// Where a transition adds its gradients.
#[derive(Debug)]
pub struct Gradients<'a, S = f32> {
    /// `∂𝓛/∂θ_a`, if wanted.
    pub weights: Option<&'a mut [S]>,
    /// `∂𝓛/∂X`
    pub states: &'a mut Matrix<S>,
    /// `∂𝓛/∂` features, if wanted.
    pub features: Option<&'a mut Matrix<S>>,
}

/// The part of the Lagrangian behind `f_a`: what is made of its value at each node.
pub trait Upstream<S: Scalar = f32>: Sync {
    /// Given `f_a` at `nodes`, sets `∂𝓛/∂f_a` and `∂𝓛/∂Λ` at these nodes, and `∂𝓛/∂X` as far as it
    /// does not go through `f_a`. Called once for every node, from any thread.
    fn upstream(&self, nodes: Range<usize>, f_x: &[S], rows: NodeRows<'_, S>) -> Tally;
}

/// Rows of some nodes, one after the other.
#[derive(Debug)]
pub struct NodeRows<'a, S = f32> {
    /// `∂𝓛/∂f_a`, to be set.
    pub d_f: &'a mut [S],
    /// `∂𝓛/∂X` but for what goes through `f_a`, to be set.
    pub d_states: &'a mut [S],
    /// `∂𝓛/∂Λ`, to be set.
    pub d_multipliers: &'a mut [S],
}

/// Sums over nodes that come out on the way.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tally {
    /// `Σ λ · G(x − f_a)`, and the penalty term if there is one.
    pub constraint: f64,
    /// `Σ abs(x − f_a)` over nodes and components.
    pub residual_sum: f64,
    /// `max abs(x − f_a)` over nodes and components.
    pub residual_max: f64,
    /// `Σ abs(x)` over nodes and components.
    pub state_sum: f64,
}

impl Tally {
    /// The tally of two sets of nodes together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            constraint: self.constraint + other.constraint,
            residual_sum: self.residual_sum + other.residual_sum,
            residual_max: worse(self.residual_max, other.residual_max),
            state_sum: self.state_sum + other.state_sum,
        }
    }
}

/// The degrees a Lipschitz bound has to cover.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Degrees {
    /// The largest `de[v]`.
    pub largest: usize,
    /// The largest `Σ_{u ∈ ne[v]} 1 / √(de[v] de[u])`.
    pub largest_normalized: f64,
}

impl Degrees {
    /// The degrees of a batch.
    pub fn of<S: Scalar>(batch: &GraphBatch<S>) -> Self {
        let neighbours = batch.neighbours();
        let root = |v: usize| 1.0 / (neighbours.degree(v) as f64).sqrt();
        let normalized = (0..batch.nodes())
            .map(|v| neighbours.of(v).iter().map(|&u| root(u as usize)).sum::<f64>() * root(v));
        Self {
            largest: neighbours.largest_degree(),
            largest_normalized: normalized.filter(|x| x.is_finite()).fold(0.0, f64::max),
        }
    }

    /// Degrees that cover both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            largest: self.largest.max(other.largest),
            largest_normalized: self.largest_normalized.max(other.largest_normalized),
        }
    }
}
