//! Solvers that iterate the transition function: one step, many steps, or a fixed number.

use super::{OptimizerState, Requirements, SaddleSolver, WeightDescent, check_positive};
use crate::lagrangian::{Evaluation, Objective, Request, Variables};
use crate::numeric::worse;
use crate::optim::axpy;
use crate::{Error, Matrix, Scalar};

/// One fixed-point step of the states and of their adjoints per update, instead of gradients.
///
/// ```text
/// x ← (1−β) x + β f_a(x)          λ ← (1−β) λ + β (Jᵀλ − ∂loss/∂x)          θ ← θ − η ∂𝓛/∂θ
/// ```
///
/// which for `G = lin` is `x − β ∂𝓛/∂λ` and `λ − β ∂𝓛/∂x`. The loss never pulls `x`. Where `f_a`
/// contracts, both converge while the weights move, and at rest the weight gradient is exact.
#[derive(
    Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct OneShot {
    /// Optimiser of the weights.
    pub weights: WeightDescent,
    /// Step size `β` of the fixed-point iteration; 1: undamped.
    #[schemars(range(max = 1), extend("exclusiveMinimum" = 0))]
    pub beta: f64,
    /// Steps of states and adjoints per step of the weights.
    #[schemars(
        range(min = 1),
        extend("x-data-default" = "2 for nodes, 3 for graphs; 20 for homophilous graphs, 4 with 3000 or more labelled nodes")
    )]
    pub inner_steps: usize,
}

impl Default for OneShot {
    fn default() -> Self {
        Self { weights: WeightDescent::default(), beta: 1.0, inner_steps: 1 }
    }
}

impl OneShot {
    /// Validates every value.
    ///
    /// # Errors
    ///
    /// [`Error::Option`], naming the first value that is not.
    pub fn check(self) -> Result<Self, Error> {
        self.weights.check()?;
        check_beta(self.beta)?;
        check_count("inner steps", self.inner_steps)?;
        Ok(self)
    }
}

impl<S: Scalar> SaddleSolver<S> for OneShot {
    fn step(
        &self,
        objective: &dyn Objective<S>,
        at: &mut Variables<S>,
        state: &mut OptimizerState<S>,
    ) -> Evaluation {
        let beta = S::of(self.beta);
        for _ in 1..self.inner_steps {
            let request = Request { weights: false, ..Request::ALL };
            objective.evaluate(at, request, &mut state.gradient);
            exchange(beta, at, &state.gradient);
        }
        let evaluation = objective.evaluate(at, Request::ALL, &mut state.gradient);
        exchange(beta, at, &state.gradient);
        self.weights.step(&mut at.weights, state);
        evaluation
    }

    fn requirements(&self) -> Requirements {
        Requirements { linear_constraint: true, ..Requirements::default() }
    }
}

/// `X ← X − β ∂𝓛/∂Λ` and `Λ ← Λ − β ∂𝓛/∂X`, both from the same point.
fn exchange<S: Scalar>(beta: S, at: &mut Variables<S>, gradient: &Variables<S>) {
    subtract(beta, &gradient.multipliers, &mut at.states);
    subtract(beta, &gradient.states, &mut at.multipliers);
}

pub(super) fn subtract<S: Scalar>(beta: S, d: &[Matrix<S>], from: &mut [Matrix<S>]) {
    for (x, d) in from.iter_mut().zip(d) {
        axpy(-beta, d.as_slice(), x.as_mut_slice());
    }
}

/// The fixed point and its adjoint solved for at every update: the original GNN with the implicit
/// function theorem in place of back-propagation through the iterations.
#[derive(
    Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Implicit {
    /// Optimiser of the weights.
    pub weights: WeightDescent,
    /// Step size `β` of both fixed-point iterations; 1: undamped.
    #[schemars(range(max = 1), extend("exclusiveMinimum" = 0))]
    pub beta: f64,
    /// Largest change of a component at which an iteration has converged.
    ///
    /// For multipliers, it is relative to the largest one.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub tol: f64,
    /// Maximum number of steps of each iteration.
    #[schemars(range(min = 1))]
    pub max_iter: usize,
}

impl Default for Implicit {
    fn default() -> Self {
        Self { weights: WeightDescent::default(), beta: 1.0, tol: 1e-5, max_iter: 200 }
    }
}

impl Implicit {
    /// Validates every value.
    ///
    /// # Errors
    ///
    /// [`Error::Option`], naming the first value that is not.
    pub fn check(self) -> Result<Self, Error> {
        self.weights.check()?;
        check_beta(self.beta)?;
        check_positive("tol", self.tol)?;
        check_count("max-iter", self.max_iter)?;
        Ok(self)
    }
}

impl<S: Scalar> SaddleSolver<S> for Implicit {
    fn step(
        &self,
        objective: &dyn Objective<S>,
        at: &mut Variables<S>,
        state: &mut OptimizerState<S>,
    ) -> Evaluation {
        let beta = S::of(self.beta);
        // x = f_a(x), from the states of the last update
        for _ in 0..self.max_iter {
            let evaluation = objective.evaluate(at, Request::RESIDUAL, &mut state.gradient);
            if evaluation.residual_max <= self.tol || !evaluation.residual_max.is_finite() {
                break;
            }
            subtract(beta, &state.gradient.multipliers, &mut at.states);
        }
        // λ = Jᵀ λ − ∂loss/∂x
        for _ in 0..self.max_iter {
            let request = Request { weights: false, ..Request::ALL };
            objective.evaluate(at, request, &mut state.gradient);
            // Relative to the multipliers, whose size is that of the loss, whatever its weight.
            let of_all = |own: f64| objective.share().map_or(own, |share| share.largest(own));
            let change = of_all(largest(&state.gradient.states));
            let size = of_all(largest(&at.multipliers));
            if change <= self.tol * size || !(change + size).is_finite() {
                break;
            }
            subtract(beta, &state.gradient.states, &mut at.multipliers);
        }
        let evaluation = objective.evaluate(at, Request::ALL, &mut state.gradient);
        self.weights.step(&mut at.weights, state);
        evaluation
    }

    fn requirements(&self) -> Requirements {
        Requirements { linear_constraint: true, ..Requirements::default() }
    }
}

/// The original GNN: `f_a` iterated from zero until it converges or `max_iter` times, and the loss
/// propagated back through all iterations. Memory grows with their number.
#[derive(
    Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Unrolled {
    /// Optimiser of the weights.
    pub weights: WeightDescent,
    /// Largest change of a component at which the iteration has converged.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub tol: f64,
    /// Maximum number of iterations, `T`.
    #[schemars(range(min = 1))]
    pub max_iter: usize,
}

impl Default for Unrolled {
    fn default() -> Self {
        Self { weights: WeightDescent::default(), tol: 1e-3, max_iter: 50 }
    }
}

impl Unrolled {
    /// Validates every value.
    ///
    /// # Errors
    ///
    /// [`Error::Option`], naming the first value that is not.
    pub fn check(self) -> Result<Self, Error> {
        self.weights.check()?;
        check_positive("tol", self.tol)?;
        check_count("max-iter", self.max_iter)?;
        Ok(self)
    }
}

impl<S: Scalar> SaddleSolver<S> for Unrolled {
    fn step(
        &self,
        objective: &dyn Objective<S>,
        at: &mut Variables<S>,
        state: &mut OptimizerState<S>,
    ) -> Evaluation {
        let gradient = &mut state.gradient;
        clear(&mut at.states);
        clear(&mut at.multipliers);

        // x(t+1) = f_a(x(t)) = x(t) − ∂𝓛/∂Λ
        let mut path: Vec<Vec<Matrix<S>>> = vec![];
        for _ in 0..self.max_iter {
            path.push(at.states.clone());
            let evaluation = objective.evaluate(at, Request::RESIDUAL, gradient);
            subtract(S::ONE, &gradient.multipliers, &mut at.states);
            if evaluation.residual_max <= self.tol || !evaluation.residual_max.is_finite() {
                break;
            }
        }

        // a(T) = ∂loss/∂x(T); Λ is zero, so the constraint term adds nothing
        let evaluation = objective.evaluate(at, Request::ALL, gradient);
        let end = std::mem::take(&mut at.states);
        let mut d_weights = gradient.weights.clone();
        // a(t) = Jᵀ a(t+1): at Λ = −a, ∂𝓛/∂X is Jᵀa − a, and ∂𝓛/∂θ is what step t adds
        for (multipliers, d) in at.multipliers.iter_mut().zip(&gradient.states) {
            axpy(-S::ONE, d.as_slice(), multipliers.as_mut_slice());
        }
        for states in path.into_iter().rev() {
            at.states = states;
            let request = Request { loss: false, ..Request::ALL };
            objective.evaluate(at, request, gradient);
            axpy(S::ONE, &gradient.weights, &mut d_weights);
            subtract(S::ONE, &gradient.states, &mut at.multipliers);
        }
        at.states = end;
        clear(&mut at.multipliers);
        state.gradient.weights = d_weights;
        self.weights.step(&mut at.weights, state);
        evaluation
    }

    fn requirements(&self) -> Requirements {
        Requirements { linear_constraint: true, ..Requirements::default() }
    }
}

pub(super) fn clear<S: Scalar>(matrices: &mut [Matrix<S>]) {
    matrices.iter_mut().for_each(|matrix| matrix.as_mut_slice().fill(S::ZERO));
}

fn largest<S: Scalar>(matrices: &[Matrix<S>]) -> f64 {
    let all = matrices.iter().flat_map(Matrix::as_slice);
    all.fold(S::ZERO, |max, x| worse(max, x.abs())).f64()
}

pub(crate) fn check_beta(beta: f64) -> Result<(), Error> {
    check_in_unit("beta", beta)
}

/// # Errors
///
/// [`Error::Option`] unless `value` is in `(0, 1]`.
pub(super) fn check_in_unit(option: &'static str, value: f64) -> Result<(), Error> {
    if value > 0.0 && value <= 1.0 {
        Ok(())
    } else {
        let expected = "a number in (0, 1] is expected".into();
        Err(Error::Option { option, value: value.to_string(), expected })
    }
}

pub(crate) fn check_count(option: &'static str, count: usize) -> Result<(), Error> {
    if count > 0 {
        Ok(())
    } else {
        let expected = "at least one is expected".into();
        Err(Error::Option { option, value: count.to_string(), expected })
    }
}
