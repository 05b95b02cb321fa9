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
//! | [`Sse`] | some steps of the same, of a sample of nodes | `k` steps from zero | descend, some steps |
//! | [`AugmentedLagrangian`] | descend `∂𝓛_ρ/∂X`, some steps | then `Λ + ρ ∂𝓛/∂Λ` | descend along with the states |
//!
//! For `G = lin` and one multiplier per component `X − ∂𝓛/∂Λ = f_a(X)`, so all but the first and the
//! last iterate the transition function, and `Λ − ∂𝓛/∂X = Jᵀ Λ − ∂loss/∂X` with `J = ∂f_a/∂X`: the
//! adjoint equation of its fixed point. They never let the loss pull a state.
//!
//! What a solver keeps from update to update is in an [`OptimizerState`], in [`Slots`] with names of
//! its choice; a checkpoint stores all of them, so that any solver resumes bit-identically.
//!
//! [`Objective`]: crate::lagrangian::Objective
//! [`Bdmm`]: crate::saddle::Bdmm
//! [`OneShot`]: crate::saddle::OneShot
//! [`Implicit`]: crate::saddle::Implicit
//! [`Unrolled`]: crate::saddle::Unrolled
//! [`Sse`]: crate::saddle::Sse
//! [`AugmentedLagrangian`]: crate::saddle::AugmentedLagrangian
//! [`OptimizerState`]: crate::saddle::OptimizerState
//! [`Slots`]: crate::saddle::Slots

mod augmented_lagrangian;
mod bdmm;
mod coordinates;
mod fixed_point;
mod rule;
mod slots;
mod sse;

pub use augmented_lagrangian::AugmentedLagrangian;
pub use bdmm::{Bdmm, DualRule, Order};
pub(crate) use coordinates::Coordinates;
pub use fixed_point::{Implicit, OneShot, Unrolled};
pub(crate) use fixed_point::{check_beta, check_count};
pub use rule::{LrDecay, PrimalRule, WeightDescent, decayed};
pub(crate) use slots::{NodeCounts, gather, gather_into, scatter};
pub use slots::{Slot, Slots};
pub use sse::Sse;

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use crate::graph::Share;
use crate::lagrangian::{Evaluation, Objective, Variables};
use crate::{Error, Scalar};

/// A method that finds a saddle point.
///
/// To write a custom solver, implement [`step`](Self::step), and test it with
/// [`check::solver`](crate::check::solver).
pub trait SaddleSolver<S: Scalar = f32>: Debug + Send {
    /// Moves `at` by one update and returns the evaluation that the update was taken from.
    /// `state` is what the last update left for these nodes. A solver must keep everything there, so
    /// that resumed training continues bit-identically.
    fn step(
        &self,
        objective: &dyn Objective<S>,
        at: &mut Variables<S>,
        state: &mut OptimizerState<S>,
    ) -> Evaluation;

    /// What it expects of the objective.
    fn requirements(&self) -> Requirements {
        Requirements::default()
    }
}

/// What a solver requires of the Lagrangian; nothing by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requirements {
    /// `G = lin`, one multiplier per component and plain sums: `∂𝓛/∂Λ` is `X − f_a(X)`.
    pub linear_constraint: bool,
    /// An output that reads `f_a(X)`, so that one application of `f_a` lies between states and loss.
    pub reads_transition: bool,
}

/// What a solver keeps from update to update.
///
/// States and multipliers belong to nodes, and so does what is remembered of them: with batches of
/// some of the graphs it moves along with its nodes.
#[derive(Clone, Debug, Default)]
pub struct OptimizerState<S = f32> {
    /// The gradient of the last update. Its storage is used again; what is in it is not kept.
    pub gradient: Variables<S>,
    /// What is remembered.
    pub slots: Slots<S>,
    /// In what first layers descend, where not in their weights.
    pub(crate) coordinates: Arc<[Coordinates]>,
    /// Where the weights are to which weight decay does not apply.
    pub(crate) undecayed: Arc<[Range<usize>]>,
}

impl<S: Scalar> OptimizerState<S> {
    /// Nothing is remembered yet of variables of the shape of `at`.
    pub fn new(at: &Variables<S>) -> Self {
        Self::with_slots(at, Slots::default())
    }

    /// This is remembered of variables of the shape of `at`.
    pub fn with_slots(at: &Variables<S>, slots: Slots<S>) -> Self {
        Self {
            gradient: at.zeros_like(),
            slots,
            coordinates: Arc::default(),
            undecayed: Arc::default(),
        }
    }
}

/// # Errors
///
/// [`Error::Option`] unless `value` is positive and finite.
impl<S: Scalar> OptimizerState<S> {
    /// The rows of the nodes that this rank owns; what is left behind is nothing.
    pub(crate) fn take_own_rows(&mut self, share: &Share) -> Self {
        let Self { gradient, slots, coordinates, undecayed } = std::mem::take(self);
        let gradient = gradient.own_rows(share);
        let slots = slots.with_rows(|rows| share.own_rows(rows));
        Self { gradient, slots, coordinates, undecayed }
    }

    /// The way back, on all ranks.
    pub(crate) fn all_rows(self, share: &Share) -> Self {
        let Self { gradient, slots, coordinates, undecayed } = self;
        let gradient = gradient.all_rows(share);
        let slots = slots.with_rows(|rows| share.all_rows(rows));
        Self { gradient, slots, coordinates, undecayed }
    }
}

pub(crate) fn check_positive(option: &'static str, value: f64) -> Result<(), Error> {
    if value > 0.0 && value.is_finite() {
        Ok(())
    } else {
        let expected = "a positive, finite number is expected".to_owned();
        Err(Error::Option { option, value: value.to_string(), expected })
    }
}

/// # Errors
///
/// [`Error::Option`] unless `value` is finite and non-negative.
pub(crate) fn check_not_negative(option: &'static str, value: f64) -> Result<(), Error> {
    if value >= 0.0 && value.is_finite() {
        Ok(())
    } else {
        let expected = "a non-negative number is expected".to_owned();
        Err(Error::Option { option, value: value.to_string(), expected })
    }
}
