use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::fixed_point::{check_in_unit, clear, subtract};
use super::{OptimizerState, Requirements, SaddleSolver, WeightDescent, check_beta, check_count};
use crate::graph::Share;
use crate::lagrangian::{Evaluation, Objective, Request, Variables};
use crate::numeric::length;
use crate::optim::axpy;
use crate::{Error, Matrix, Scalar};

/// Stochastic steady-state embedding: some steps of the states with the weights fixed, then some
/// steps of the weights with the states fixed, through one application of `f_a`.
///
/// ```text
/// some times      x_v ← (1−β) x_v + β f_{a,v}(X)        for a sample of the nodes
/// some times      Λ = 0;   k times  Λ ← (1−β) Λ + β (JᵀΛ − ∂loss/∂X);   θ ← θ − η ∂𝓛/∂θ
/// ```
///
/// The output reads `f_a(X)`, so that with `Λ = 0`, that is `k = 0`, `∂𝓛/∂θ` is the derivative of the
/// loss through one application of `f_a`: Jacobian-free backpropagation. `k` terms of the damped
/// Neumann series of the adjoint make it the phantom gradient, and `k → ∞` that of
/// [`Implicit`](super::Implicit). Unlike in [`OneShot`](super::OneShot), the adjoint is not kept.
///
/// # Differences
///
/// A step computes `f_a` of all nodes and moves the sample, where the published method computes the
/// sample alone: what is stochastic here is the path, not the cost.
#[derive(
    Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Sse {
    /// Optimiser of the weights.
    pub weights: WeightDescent,
    /// Step size `β` of the fixed-point iteration.
    #[schemars(range(max = 1), extend("exclusiveMinimum" = 0))]
    pub beta: f64,
    /// Steps of the states per update.
    #[schemars(range(min = 1))]
    pub state_steps: usize,
    /// Steps of the weights per update.
    #[schemars(range(min = 1))]
    pub weight_steps: usize,
    /// Terms `k` of the adjoint's Neumann series; 0 is Jacobian-free backpropagation.
    pub adjoint_terms: usize,
    /// Fraction of the nodes that a step of the states updates.
    #[schemars(range(max = 1), extend("exclusiveMinimum" = 0))]
    pub sample: f64,
    /// Seed of the sample of nodes.
    pub seed: u64,
    /// Whether states are scaled to length 1 after their steps, as published.
    ///
    /// Inference does not do so, and its fixed point of `f_a` differs.
    pub normalize: bool,
}

impl Default for Sse {
    fn default() -> Self {
        Self {
            weights: WeightDescent::default(),
            beta: 0.9,
            state_steps: 3,
            weight_steps: 1,
            adjoint_terms: 0,
            sample: 1.0,
            seed: 0,
            normalize: false,
        }
    }
}

impl Sse {
    /// Validates every value.
    ///
    /// # Errors
    ///
    /// [`Error::Option`], naming the first value that is not.
    pub fn check(self) -> Result<Self, Error> {
        self.weights.check()?;
        check_beta(self.beta)?;
        check_count("state-steps", self.state_steps)?;
        check_count("weight-steps", self.weight_steps)?;
        check_in_unit("sample", self.sample)?;
        Ok(self)
    }

    /// `X − β ∂𝓛/∂Λ = (1−β) X + β f_a(X)`, for the nodes of this step.
    fn move_states<S: Scalar>(
        &self,
        at: &mut Variables<S>,
        state: &mut OptimizerState<S>,
        share: Option<&Share>,
    ) {
        let OptimizerState { gradient, slots, .. } = state;
        if self.sample >= 1.0 {
            subtract(S::of(self.beta), &gradient.multipliers, &mut at.states);
            return;
        }
        let steps = slots.counter("sse.state-steps");
        *steps += 1;
        let mut random = ChaCha8Rng::seed_from_u64(self.seed);
        random.set_stream(*steps);
        let mut draw = || (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        let nodes = share.map_or(0..at.states.first().map_or(0, Matrix::rows), Share::nodes);
        // The same nodes are drawn whoever owns them.
        for node in (0..nodes.end).filter(|_| draw() < self.sample) {
            let Some(node) = node.checked_sub(nodes.start) else { continue };
            for (states, d) in at.states.iter_mut().zip(&gradient.multipliers) {
                axpy(S::of(-self.beta), d.row(node), states.row_mut(node));
            }
        }
    }
}

/// `x_v ← x_v / ‖x_v‖`, where it has a length.
fn normalize_rows<S: Scalar>(states: &mut Matrix<S>) {
    for node in 0..states.rows() {
        let length = length(states.row(node));
        if length > 0.0 {
            states.row_mut(node).iter_mut().for_each(|x| *x = S::of(x.f64() / length));
        }
    }
}

impl<S: Scalar> SaddleSolver<S> for Sse {
    fn step(
        &self,
        objective: &dyn Objective<S>,
        at: &mut Variables<S>,
        state: &mut OptimizerState<S>,
    ) -> Evaluation {
        for _ in 0..self.state_steps {
            objective.evaluate(at, Request::RESIDUAL, &mut state.gradient);
            self.move_states(at, state, objective.share());
        }
        if self.normalize {
            at.states.iter_mut().for_each(normalize_rows);
        }
        let mut first = None;
        for _ in 0..self.weight_steps {
            clear(&mut at.multipliers);
            for _ in 0..self.adjoint_terms {
                let request = Request { weights: false, ..Request::ALL };
                objective.evaluate(at, request, &mut state.gradient);
                subtract(S::of(self.beta), &state.gradient.states, &mut at.multipliers);
            }
            let evaluation = objective.evaluate(at, Request::ALL, &mut state.gradient);
            self.weights.step(&mut at.weights, state);
            first.get_or_insert(evaluation);
        }
        first.unwrap_or_default()
    }

    fn requirements(&self) -> Requirements {
        Requirements { linear_constraint: true, reads_transition: true }
    }
}
