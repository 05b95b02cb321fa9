//! State transition functions `f_a`.
//!
//! A transition maps the states of all nodes to new ones, each from a node and its neighbours.
//! It is nothing but its shape: the weights `θ_a` come from outside as one flat slice, so that
//! optimisers, checkpoints and gradient checks need no knowledge of layers.

mod columns;
mod edge_network;
mod features;
mod local;
mod node_network;
mod rows;
mod shared;

use edge_network::check_width;
pub use edge_network::{Aggregation, EdgeInputs, EdgeNetwork, Isolated};
pub(crate) use features::FeatureWeights;
pub(crate) use local::SINGLE;
pub use local::{LocalTransition, Rounding, Sensitivity, Sizes, Weighing};
pub(crate) use local::{NetworkSizes, reach};
pub use node_network::{NeighbourSum, NodeNetwork};
pub(crate) use rows::{for_each_group, for_each_group_until, split_rows};
pub(crate) use shared::{backward_all, forward_all};

use std::fmt::Debug;
use std::ops::Range;

use crate::graph::{Exchange, FeaturesView, GraphBatch, Local, Reduce, Topology};
use crate::numeric::{NormMemory, Scratch, Spare};
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
    fn check(
        &self,
        node_features: FeaturesView<'_, S>,
        edge_features: FeaturesView<'_, S>,
    ) -> Result<(), Error> {
        for (what, role, features) in
            [("node", Role::Input, node_features), ("edge", Role::EdgeFeatures, edge_features)]
        {
            for number in self.parameters().of_role(role) {
                check_width(what, true, self.parameters().rows(number), features)?;
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

    /// Both at once: asks for `∂𝓛/∂f_a` as soon as `f_a` of some nodes is known. There is one of `upstream` for
    /// every group of the topology.
    ///
    /// Functions that can go back while those nodes are in cache write it themselves; this one calls forward,
    /// upstream and backward. It sets `∂𝓛/∂X` and adds to the other gradients.
    fn pass(
        &self,
        weights: &[S],
        input: Input<'_, S>,
        upstream: &mut [&mut dyn Upstream<S>],
        gradients: Gradients<'_, S>,
        scratch: &Scratch<S>,
    ) {
        let (nodes, width) = (input.topology.nodes(), self.state_dim());
        let mut f_x = Matrix::zeros(nodes, width);
        self.forward(weights, input, &mut f_x, scratch);
        let mut d_f = Matrix::zeros(nodes, width);
        for (group, upstream) in input.topology.groups().ranges().iter().zip(upstream) {
            let rows = group.start * width..group.end * width;
            upstream.derive(
                group.clone(),
                &f_x.as_slice()[rows.clone()],
                &mut d_f.as_mut_slice()[rows.clone()],
                &mut gradients.states.as_mut_slice()[rows],
            );
        }
        self.backward(weights, input, &d_f, gradients, scratch);
    }

    /// [`forward`](Self::forward) before a [`pass_after`](Self::pass_after) at the same point: what both compute may be
    /// kept between them. This one keeps nothing.
    fn forward_keeping<'s>(
        &self,
        weights: &[S],
        input: Input<'_, S>,
        f_x: &mut Matrix<S>,
        scratch: &'s Scratch<S>,
    ) -> Kept<'s, S> {
        self.forward(weights, input, f_x, scratch);
        Kept::default()
    }

    /// [`pass`](Self::pass) with what was kept; the results are the same bits.
    fn pass_after(
        &self,
        kept: Kept<'_, S>,
        weights: &[S],
        input: Input<'_, S>,
        upstream: &mut [&mut dyn Upstream<S>],
        gradients: Gradients<'_, S>,
        scratch: &Scratch<S>,
    ) {
        drop(kept);
        self.pass(weights, input, upstream, gradients, scratch);
    }

    /// The same function with these weights, packed for one batch after another whose node features have the form of
    /// `node_features`. None, as here, if nothing is saved by it.
    fn packed<'a>(
        &'a self,
        weights: &'a [S],
        node_features: FeaturesView<'_, S>,
    ) -> Option<Box<dyn PackedTransition<S> + 'a>> {
        let _ = (weights, node_features);
        None
    }

    /// A number `L` with `‖f_a(X) − f_a(Y)‖ ≤ L ‖X − Y‖` on graphs of these degrees, in some norm
    /// that the implementation names; none when it knows none.
    fn lipschitz(&self, weights: &[S], degrees: Degrees) -> Option<f64> {
        let _ = (weights, degrees);
        None
    }

    /// The same function with these weights, for a few nodes at a time, and with bounds on how far a change at one
    /// node reaches; none when it knows none. Node features have the form of `node_features`.
    ///
    /// A graph that changes needs it: see [`live`](crate::live).
    fn local(
        &self,
        weights: &[f64],
        node_features: FeaturesView<'_, f64>,
    ) -> Option<Box<dyn LocalTransition>> {
        let _ = (weights, node_features);
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

/// A transition whose weights stay the same.
pub trait PackedTransition<S: Scalar = f32>: Send + Sync {
    /// The same function of these inputs, for one `X` after another: what does not depend on `X` is computed once. The
    /// states of `input` are not read. None where nothing is saved by it.
    fn iteration<'a>(
        &'a self,
        input: Input<'a, S>,
        scratch: &'a Scratch<S>,
    ) -> Option<Box<dyn Iteration<S> + 'a>>;
}

/// A transition whose weights and inputs stay the same while it is iterated.
pub trait Iteration<S: Scalar = f32>: Sync {
    /// All nodes in runs of whole graphs, in order, each of which is best iterated to its end before the next: then its rows
    /// stay in cache.
    fn tiles(&self) -> Vec<Range<usize>>;

    /// How many numbers of room [`apply`](Self::apply) needs for so many nodes, or fewer.
    fn room(&self, nodes: usize) -> usize;

    /// `f_x ← f_a(X)` at `nodes`, a part of a tile that consists of whole graphs: `states` and `f_x` have rows of no others.
    /// `room` holds whatever numbers, before and after.
    fn apply(&self, nodes: Range<usize>, states: &[S], f_x: &mut [S], room: &mut [S]);
}

/// What a transition reads.
#[derive(Debug)]
pub struct Input<'a, S = f32> {
    /// Who is whose neighbour.
    pub topology: &'a Topology,
    /// The features of the nodes: those of the graphs, or what is read of the layer below.
    pub node_features: FeaturesView<'a, S>,
    /// The features of the edges.
    pub edge_features: FeaturesView<'a, S>,
    /// `X`, one state per node.
    pub states: &'a Matrix<S>,
    /// How rows of nodes that other processes own are had.
    pub exchange: &'a dyn Exchange<S>,
}

impl<'a, S: Scalar> Input<'a, S> {
    /// What the first layer reads of what a process owns of a batch.
    pub fn of(batch: &'a GraphBatch<S>, states: &'a Matrix<S>) -> Self {
        Self {
            topology: batch.topology(),
            node_features: batch.node_features().view(),
            edge_features: batch.edge_features().view(),
            states,
            exchange: batch.topology().exchange(),
        }
    }
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
    /// `∂𝓛/∂` node features, if wanted.
    pub features: Option<&'a mut Matrix<S>>,
    /// How the sums of groups are added up over all processes.
    pub reduce: &'a dyn Reduce<S>,
}

impl<'a, S: Scalar> Gradients<'a, S> {
    /// Those of one process that owns all nodes.
    pub fn new(
        weights: Option<&'a mut [S]>,
        states: &'a mut Matrix<S>,
        features: Option<&'a mut Matrix<S>>,
    ) -> Self {
        Self { weights, states, features, reduce: &Local }
    }
}

/// What a forward pass leaves for the pass that follows at the same point.
pub struct Kept<'s, S: Scalar = f32> {
    /// The projections `p` and `q` of all nodes.
    pub(crate) projections: Option<[Spare<'s, S>; 2]>,
    /// `f_a` of all nodes.
    pub(crate) f_x: Option<&'s Matrix<S>>,
}

impl<S: Scalar> Default for Kept<'_, S> {
    fn default() -> Self {
        Self { projections: None, f_x: None }
    }
}

impl<S: Scalar> Debug for Kept<'_, S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (projections, f_x) = (self.projections.is_some(), self.f_x.is_some());
        f.debug_struct("Kept").field("projections", &projections).field("f_x", &f_x).finish()
    }
}

/// What follows `f_a` in the function that is differentiated, for one group of nodes.
///
/// A transition knows no more of it than this: neither what is made of its value nor why.
pub trait Upstream<S: Scalar = f32>: Send {
    /// Given `f_a` at `nodes`, sets `∂𝓛/∂f_a` there, and `∂𝓛/∂X` as far as it does not go through `f_a`.
    ///
    /// Called once for every node of the group, for some of them at a time.
    fn derive(&mut self, nodes: Range<usize>, f_x: &[S], d_f: &mut [S], d_states: &mut [S]);
}

/// Derivatives that are known beforehand: an upstream for a backward pass of its own, which leaves `∂𝓛/∂X` as it is.
pub(crate) struct Known<'a, S>(pub(crate) &'a Matrix<S>);

impl<S: Scalar> Upstream<S> for Known<'_, S> {
    fn derive(&mut self, nodes: Range<usize>, _: &[S], d_f: &mut [S], _: &mut [S]) {
        let width = self.0.cols();
        d_f.copy_from_slice(&self.0.as_slice()[nodes.start * width..nodes.end * width]);
    }
}

/// Calls `pass` with [`Known`] derivatives, one per group.
pub(crate) fn with_known<S: Scalar, R>(
    d_f: &Matrix<S>,
    topology: &Topology,
    pass: impl FnOnce(&mut [&mut dyn Upstream<S>]) -> R,
) -> R {
    let mut known: Vec<_> = topology.groups().ranges().iter().map(|_| Known(d_f)).collect();
    let mut upstream: Vec<&mut dyn Upstream<S>> =
        known.iter_mut().map(|known| known as &mut dyn Upstream<S>).collect();
    pass(&mut upstream)
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
    /// The degrees of a topology.
    pub fn of(topology: &Topology) -> Self {
        let neighbours = topology.neighbours();
        let root = |v: usize| 1.0 / (topology.degree(v) as f64).sqrt();
        let normalized = (0..topology.nodes())
            .map(|v| neighbours.of(v).iter().map(|&u| root(u as usize)).sum::<f64>() * root(v));
        let own = Self {
            largest: neighbours.largest_degree(),
            largest_normalized: normalized.filter(|x| x.is_finite()).fold(0.0, f64::max),
        };
        let Some(share) = topology.share().filter(|share| share.is_in_parts()) else { return own };
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is a count")]
        let largest = share.largest(own.largest as f64) as usize;
        Self { largest, largest_normalized: share.largest(own.largest_normalized) }
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
