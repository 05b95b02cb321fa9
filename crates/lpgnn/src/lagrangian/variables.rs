use std::ops::Range;

use crate::graph::Share;
use crate::numeric::sizes;
use crate::{Matrix, Scalar};

/// A point of the space in which the saddle point lies, or a gradient at such a point.
///
/// A gradient is `∂𝓛/∂z` for every variable `z` and nothing else: only a solver knows who descends
/// and who climbs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Variables<S = f32> {
    /// `θ`: the weights `θ_a` of every layer's transition, then `θ_r` of the output.
    pub weights: Vec<S>,
    /// `X`, one row per node, for every layer.
    pub states: Vec<Matrix<S>>,
    /// `Λ`, one row per node, for every layer: one multiplier, or one per component of a state.
    pub multipliers: Vec<Matrix<S>>,
}

impl<S: Scalar> Variables<S> {
    /// A point of the same shape, all zero.
    #[must_use]
    pub fn zeros_like(&self) -> Self {
        let zeros = |matrices: &[Matrix<S>]| {
            matrices.iter().map(|matrix| Matrix::zeros(matrix.rows(), matrix.cols())).collect()
        };
        Self {
            weights: vec![S::ZERO; self.weights.len()],
            states: zeros(&self.states),
            multipliers: zeros(&self.multipliers),
        }
    }

    /// The same weights, and the rows of some nodes.
    pub(crate) fn of_nodes(&self, nodes: Range<usize>) -> Self {
        let rows = |all: &[Matrix<S>]| all.iter().map(|rows| rows.select(nodes.clone())).collect();
        let (states, multipliers) = (rows(&self.states), rows(&self.multipliers));
        Self { weights: self.weights.clone(), states, multipliers }
    }

    /// The rows of the nodes that this rank owns.
    pub(crate) fn own_rows(self, share: &Share) -> Self {
        let own = |all: Vec<Matrix<S>>| all.iter().map(|rows| share.own_rows(rows)).collect();
        let Self { weights, states, multipliers } = self;
        Self { weights, states: own(states), multipliers: own(multipliers) }
    }

    /// The way back, on all ranks.
    pub(crate) fn all_rows(self, share: &Share) -> Self {
        let all = |own: Vec<Matrix<S>>| own.iter().map(|rows| share.all_rows(rows)).collect();
        let Self { weights, states, multipliers } = self;
        Self { weights, states: all(states), multipliers: all(multipliers) }
    }

    /// All its parts with their names: weights, then states and multipliers layer by layer.
    pub fn parts(&self) -> impl Iterator<Item = (&'static str, &[S])> {
        let states = self.states.iter().map(|matrix| ("states", matrix.as_slice()));
        let multipliers = self.multipliers.iter().map(|matrix| ("multipliers", matrix.as_slice()));
        std::iter::once(("weights", &self.weights[..])).chain(states).chain(multipliers)
    }

    /// The same, to be changed.
    pub fn parts_mut(&mut self) -> impl Iterator<Item = (&'static str, &mut [S])> {
        let states = self.states.iter_mut().map(|matrix| ("states", matrix.as_mut_slice()));
        let multipliers =
            self.multipliers.iter_mut().map(|matrix| ("multipliers", matrix.as_mut_slice()));
        std::iter::once(("weights", &mut self.weights[..])).chain(states).chain(multipliers)
    }

    /// The first part that holds an infinite number or NaN.
    pub fn not_finite(&self) -> Option<&'static str> {
        // A finite sum says that all are, and is quick; one that is not may have grown too large.
        let finite = |part: &[S]| sizes(part).0.is_finite() || part.iter().all(|x| x.is_finite());
        self.parts().find(|(_, part)| !finite(part)).map(|(name, _)| name)
    }
}
