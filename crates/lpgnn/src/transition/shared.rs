//! `f_a` of whole batches, whoever computes it.

use super::{Gradients, Input, Transition};
use crate::graph::{FeaturesView, GraphBatch};
use crate::numeric::Scratch;
use crate::{Matrix, Scalar};

/// `f_x ← f_a(X | θ_a)` of all nodes, given what is read of the layer `below` in place of their features, if there is one.
///
/// Where ranks share the batch, each computes the nodes that it owns, and all have the rows of all.
pub(crate) fn forward_all<S: Scalar>(
    transition: &dyn Transition<S>,
    weights: &[S],
    (batch, below): (&GraphBatch<S>, Option<&Matrix<S>>),
    states: &Matrix<S>,
    f_x: &mut Matrix<S>,
    scratch: &Scratch<S>,
) {
    let Some(share) = batch.share() else {
        return transition.forward(weights, input(batch, below, states), f_x, scratch);
    };
    let (own, below) = (share.own_rows(states), below.map(|below| share.own_rows(below)));
    let mut f_own = scratch.matrix(own.rows(), own.cols());
    let input = input(batch.own(), below.as_ref(), &own);
    transition.forward(weights, input, &mut f_own, scratch);
    share.fill_rows(f_own.as_slice(), own.cols(), f_x.as_mut_slice());
}

/// `∂f_a/∂Xᵀ V` of all nodes, likewise.
pub(crate) fn backward_all<S: Scalar>(
    transition: &dyn Transition<S>,
    weights: &[S],
    (batch, below): (&GraphBatch<S>, Option<&Matrix<S>>),
    states: &Matrix<S>,
    v: &Matrix<S>,
    scratch: &Scratch<S>,
) -> Matrix<S> {
    let back = |batch, below, states: &Matrix<S>, v: &Matrix<S>| {
        let mut d_states = Matrix::zeros(states.rows(), states.cols());
        let gradients = Gradients::new(None, &mut d_states, None);
        transition.backward(weights, input(batch, below, states), v, gradients, scratch);
        d_states
    };
    let Some(share) = batch.share() else { return back(batch, below, states, v) };
    let (own, below) = (share.own_rows(states), below.map(|below| share.own_rows(below)));
    share.all_rows(&back(batch.own(), below.as_ref(), &own, &share.own_rows(v)))
}

fn input<'a, S: Scalar>(
    batch: &'a GraphBatch<S>,
    below: Option<&'a Matrix<S>>,
    states: &'a Matrix<S>,
) -> Input<'a, S> {
    let node_features = below.map_or(batch.node_features().view(), FeaturesView::Dense);
    Input { node_features, ..Input::of(batch, states) }
}
