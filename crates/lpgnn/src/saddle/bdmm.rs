use super::rule::{PrimalRule, WeightDescent, axpy, decayed};
use super::{OptimizerState, SaddleSolver, check_positive};
use crate::lagrangian::{Evaluation, Objective, Request, Variables};
use crate::{Error, Matrix, Scalar};

/// The basic differential multiplier method, as in the paper: weights and states descend the
/// Lagrangian, multipliers climb it.
///
/// ```text
/// θ ← θ − η_θ ∂𝓛/∂θ      X ← X − η_X ∂𝓛/∂X      Λ ← Λ + η_Λ ∂𝓛/∂Λ
/// ```
#[derive(
    Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Bdmm {
    /// Optimiser of the weights.
    pub weights: WeightDescent,
    /// Optimiser of the states.
    pub state_rule: PrimalRule,
    /// Learning rate of the states.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub state_lr: f64,
    /// Updates after which the learning rate of the states has halved; none: constant.
    ///
    /// Adam leaves a residual of about the learning rate.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub state_lr_half_life: Option<f64>,
    /// Optimiser of the multipliers.
    pub dual_rule: DualRule,
    /// Learning rate of the multipliers.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub multiplier_lr: f64,
    /// Order of the updates.
    pub order: Order,
}

/// How the multipliers climb.
#[derive(
    Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum DualRule {
    /// Adam, as in the paper.
    ///
    /// For a `G` that is never negative, `λ` grows by about its learning rate per update, however
    /// small the violation.
    Adam,
    /// `λ ← λ + η ∂𝓛/∂λ`
    Plain,
    /// `λ ← λ + η (e + κ (ξ − ξ'))`, with `e = ∂𝓛/∂λ`, `ξ = ν ξ' + (1 − ν) e`: a proportional term
    /// beside the integral that plain ascent is, against oscillation.
    NuPi {
        /// Smoothing `ν` of the proportional term.
        #[schemars(range(min = 0), extend("exclusiveMaximum" = 1))]
        nu: f64,
        /// Factor `κ` of the proportional term.
        #[schemars(range(min = 0))]
        kappa: f64,
    },
}

/// What moves first.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// All at once, from one evaluation.
    #[default]
    Simultaneous,
    /// The multipliers, then the rest with the new ones, for one more forward pass.
    Alternating,
}

impl Default for Bdmm {
    fn default() -> Self {
        Self {
            weights: WeightDescent::default(),
            state_rule: PrimalRule::Adam,
            state_lr: 0.01,
            state_lr_half_life: None,
            dual_rule: DualRule::Adam,
            multiplier_lr: 0.01,
            order: Order::Simultaneous,
        }
    }
}

impl Bdmm {
    /// The same, known to be usable.
    ///
    /// # Errors
    ///
    /// [`Error::Option`], naming the first value that is not.
    pub fn check(self) -> Result<Self, Error> {
        self.weights.check()?;
        check_positive("state-lr", self.state_lr)?;
        check_positive("multiplier-lr", self.multiplier_lr)?;
        if let Some(half_life) = self.state_lr_half_life {
            check_positive("state-lr-half-life", half_life)?;
        }
        if let DualRule::NuPi { nu, kappa } = self.dual_rule
            && !((0.0..1.0).contains(&nu) && kappa >= 0.0 && kappa.is_finite())
        {
            return Err(Error::Option {
                option: "the dual rule nu-pi",
                value: format!("ν = {nu}, κ = {kappa}"),
                expected: "ν is in [0, 1) and κ is not negative".into(),
            });
        }
        Ok(self)
    }

    /// One update of states and multipliers alone, with the weights and the loss left out: what the
    /// paper does at test time.
    pub(crate) fn relax<S: Scalar>(
        &self,
        objective: &dyn Objective<S>,
        at: &mut Variables<S>,
        memory: &mut OptimizerState<S>,
    ) -> Evaluation {
        self.update(objective, at, memory, Request { loss: false, weights: false, states: true })
    }

    fn update<S: Scalar>(
        &self,
        objective: &dyn Objective<S>,
        at: &mut Variables<S>,
        memory: &mut OptimizerState<S>,
        request: Request,
    ) -> Evaluation {
        memory.reserve(2, at);
        memory.node_steps += 1;
        let evaluation = match self.order {
            Order::Simultaneous => {
                let evaluation = objective.evaluate(at, request, &mut memory.gradient);
                self.move_multipliers(at, memory);
                evaluation
            }
            Order::Alternating => {
                objective.evaluate(at, Request::RESIDUAL, &mut memory.gradient);
                self.move_multipliers(at, memory);
                objective.evaluate(at, request, &mut memory.gradient)
            }
        };
        self.move_states(at, memory);
        if request.weights {
            self.weights.step(&mut at.weights, memory);
        }
        evaluation
    }

    fn move_states<S: Scalar>(&self, at: &mut Variables<S>, memory: &mut OptimizerState<S>) {
        let lr = decayed(self.state_lr, self.state_lr_half_life, memory.node_steps);
        let (first, second) = memory.moments.split_at_mut(1);
        for (k, states) in at.states.iter_mut().enumerate() {
            let moments = [first[0].states[k].as_mut_slice(), second[0].states[k].as_mut_slice()];
            let gradient = memory.gradient.states[k].as_slice();
            self.state_rule.descend(
                lr,
                memory.node_steps,
                states.as_mut_slice(),
                gradient,
                moments,
            );
        }
    }

    fn move_multipliers<S: Scalar>(&self, at: &mut Variables<S>, memory: &mut OptimizerState<S>) {
        let lr = self.multiplier_lr;
        let (first, second) = memory.moments.split_at_mut(1);
        for (k, multipliers) in at.multipliers.iter_mut().enumerate() {
            let multipliers = multipliers.as_mut_slice();
            let gradient = memory.gradient.multipliers[k].as_slice();
            let moments = [&mut first[0].multipliers[k], &mut second[0].multipliers[k]]
                .map(Matrix::as_mut_slice);
            match self.dual_rule {
                DualRule::Adam => {
                    PrimalRule::Adam.ascend(lr, memory.node_steps, multipliers, gradient, moments);
                }
                DualRule::Plain => axpy(S::of(lr), gradient, multipliers),
                DualRule::NuPi { nu, kappa } => {
                    let [xi, _] = moments;
                    for ((lambda, &e), xi) in multipliers.iter_mut().zip(gradient).zip(xi) {
                        let before = *xi;
                        *xi = S::of(nu) * before + S::of(1.0 - nu) * e;
                        *lambda += S::of(lr) * (e + S::of(kappa) * (*xi - before));
                    }
                }
            }
        }
    }
}

impl<S: Scalar> SaddleSolver<S> for Bdmm {
    fn step(
        &mut self,
        objective: &dyn Objective<S>,
        at: &mut Variables<S>,
        memory: &mut OptimizerState<S>,
    ) -> Evaluation {
        self.update(objective, at, memory, Request::ALL)
    }
}
