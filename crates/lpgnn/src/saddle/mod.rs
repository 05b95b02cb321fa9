//! Solvers of the saddle point: what moves when.
//!
//! All solvers see the same thing, an [`Objective`] with its gradient, and differ in what they make
//! of it:
//!
//! | solver | states | multipliers | weights |
//! |---|---|---|---|
//! | [`Bdmm`] | descend `∂𝓛/∂X` | climb `∂𝓛/∂Λ` | descend `∂𝓛/∂θ` |
//! | [`OneShot`] | `X − β ∂𝓛/∂Λ` | `Λ − β ∂𝓛/∂X` | descend |
//! | [`Implicit`] | the same until it converges | then the same until it converges | descend |
//! | [`Unrolled`] | `T` steps of the same, from zero | carried back through the steps | descend |
//!
//! For `G = lin` and one multiplier per component `X − ∂𝓛/∂Λ = f_a(X)`, so the last three iterate
//! the transition function, and `Λ − ∂𝓛/∂X = Jᵀ Λ − ∂loss/∂X` with `J = ∂f_a/∂X`: the adjoint
//! equation of its fixed point. They never let the loss pull a state.
//!
//! [`Objective`]: crate::lagrangian::Objective
//! [`Bdmm`]: crate::saddle::Bdmm
//! [`OneShot`]: crate::saddle::OneShot
//! [`Implicit`]: crate::saddle::Implicit
//! [`Unrolled`]: crate::saddle::Unrolled

mod bdmm;
mod coordinates;
mod fixed_point;
mod rule;

pub use bdmm::{Bdmm, DualRule, Order};
pub(crate) use coordinates::Coordinates;
pub use fixed_point::{Implicit, OneShot, Unrolled};
pub(crate) use fixed_point::{check_beta, check_count};
pub use rule::{PrimalRule, WeightDescent};

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use crate::lagrangian::{Evaluation, Objective, Variables};
use crate::{Error, Matrix, Scalar};

/// A method that looks for a saddle point.
///
/// Write one of your own with this method alone; put it through
/// [`check::solver`](crate::check::solver) before use.
pub trait SaddleSolver<S: Scalar = f32>: Debug + Send {
    /// Moves `at` by one update and returns the evaluation that the update was taken from.
    /// `memory` is what it left last time at these nodes.
    fn step(
        &mut self,
        objective: &dyn Objective<S>,
        at: &mut Variables<S>,
        memory: &mut OptimizerState<S>,
    ) -> Evaluation;

    /// Whether it needs `G = lin`, one multiplier per component and plain sums without penalty.
    fn needs_linear_constraint(&self) -> bool {
        false
    }
}

/// What a solver remembers of every variable from update to update.
///
/// States and multipliers belong to nodes, and so does what is remembered of them: with batches of
/// some of the graphs it moves along with its nodes.
#[derive(Clone, Debug, Default)]
pub struct OptimizerState<S = f32> {
    /// The gradient of the last update; its storage is used again.
    pub gradient: Variables<S>,
    /// What the rules need: moments of gradients, shaped like the variables.
    pub moments: Vec<Variables<S>>,
    /// How often the weights have moved.
    pub weight_steps: u64,
    /// How often these nodes have moved.
    pub node_steps: u64,
    /// In what first layers descend, where not in their weights.
    pub(crate) coordinates: Arc<[Coordinates]>,
    /// Where the weights are to which weight decay does not apply.
    pub(crate) undecayed: Arc<[Range<usize>]>,
}

impl<S: Scalar> OptimizerState<S> {
    /// Nothing is remembered yet of variables of the shape of `at`.
    pub fn new(at: &Variables<S>) -> Self {
        Self {
            gradient: at.zeros_like(),
            moments: vec![],
            weight_steps: 0,
            node_steps: 0,
            coordinates: Arc::default(),
            undecayed: Arc::default(),
        }
    }

    /// At least `count` moments of all variables, the new ones zero.
    pub fn reserve(&mut self, count: usize, at: &Variables<S>) {
        while self.moments.len() < count {
            self.moments.push(at.zeros_like());
        }
    }

    /// At least `count` moments of the weights alone, the new ones zero.
    pub fn reserve_weights(&mut self, count: usize, at: &Variables<S>) {
        while self.moments.len() < count {
            let weights = vec![S::ZERO; at.weights.len()];
            self.moments.push(Variables { weights, ..Variables::default() });
        }
    }
}

/// The rows of `nodes` of every matrix.
pub(crate) fn gather<S: Scalar>(matrices: &[Matrix<S>], nodes: &[usize]) -> Vec<Matrix<S>> {
    matrices.iter().map(|matrix| matrix.select(nodes.iter().copied())).collect()
}

/// Writes the rows back to where [`gather`] found them.
pub(crate) fn scatter<S: Scalar>(from: &[Matrix<S>], nodes: &[usize], to: &mut [Matrix<S>]) {
    for (from, to) in from.iter().zip(to) {
        for (row, &node) in nodes.iter().enumerate() {
            to.row_mut(node).copy_from_slice(from.row(row));
        }
    }
}

/// # Errors
///
/// [`Error::Option`] unless `value` is positive and finite.
pub(crate) fn check_positive(option: &'static str, value: f64) -> Result<(), Error> {
    if value > 0.0 && value.is_finite() {
        Ok(())
    } else {
        let expected = "a positive and finite number is expected".to_owned();
        Err(Error::Option { option, value: value.to_string(), expected })
    }
}
