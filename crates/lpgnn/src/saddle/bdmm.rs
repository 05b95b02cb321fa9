use super::{
    OptimizerState, PrimalRule, SaddleSolver, WeightDescent, check_count, check_not_negative,
    check_positive, decayed,
};
use crate::lagrangian::{Evaluation, Objective, Request, Variables};
use crate::{Error, Scalar};

/// The basic differential multiplier method, as in the paper: weights and states descend the
/// Lagrangian, multipliers climb it.
///
/// ```text
/// θ ← θ − η_θ ∂𝓛/∂θ      X ← X − η_X ∂𝓛/∂X      Λ ← Λ + η_Λ ∂𝓛/∂Λ
/// ```
///
/// With `m` inner steps, states and multipliers take `m` steps for one of the weights: the time scales of the saddle point
/// are apart, and states have come closer to the constraint when weights learn from them.
#[derive(
    Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Bdmm {
    /// Optimiser of the weights.
    pub weights: WeightDescent,
    /// Optimiser of the states.
    #[schemars(extend("x-data-default" = "sgd with lin, otherwise adam"))]
    pub state_rule: PrimalRule,
    /// Learning rate of the states.
    #[schemars(extend("exclusiveMinimum" = 0, "x-data-default" = "0.3 with lin, less with a bound above 1; otherwise 0.01"))]
    pub state_lr: f64,
    /// Half-life of the learning rate of the states, in updates; none: constant.
    ///
    /// Adam leaves a residual of about the learning rate.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub state_lr_half_life: Option<f64>,
    /// Optimiser of the multipliers.
    #[schemars(extend("x-data-default" = "sgd with lin, otherwise adam"))]
    pub dual_rule: DualRule,
    /// Learning rate of the multipliers.
    #[schemars(extend("exclusiveMinimum" = 0, "x-data-default" = "0.3 with lin, less with a bound above 1 and with more than 3 inner steps; otherwise 0.01"))]
    pub multiplier_lr: f64,
    /// Order of the updates.
    pub order: Order,
    /// Steps of states and multipliers per step of the weights, `m`; 1 in the paper.
    #[schemars(range(min = 1), extend("x-data-default" = "3 with lin, otherwise 1"))]
    pub inner_steps: usize,
    /// Factor `ρ` of the augmented-Lagrangian term.
    ///
    /// `ρ/2 ‖X − f_a(X)‖²` turns oscillation around the constraint into decay.
    #[schemars(range(min = 0), extend("x-data-default" = "1"))]
    pub penalty: f64,
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
    Sgd,
    /// `λ ← λ + η (e + κ (ξ − ξ'))`, with `e = ∂𝓛/∂λ`, `ξ = ν ξ' + (1 − ν) e`: a proportional term
    /// in addition to the integral term, which is SGD, against oscillation.
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
    /// First the multipliers, then the rest with the new multipliers, which costs one more forward pass.
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
            inner_steps: 1,
            penalty: 0.0,
        }
    }
}

impl Bdmm {
    /// Validates every value.
    ///
    /// # Errors
    ///
    /// [`Error::Option`], naming the first value that is not.
    pub fn check(self) -> Result<Self, Error> {
        self.weights.check()?;
        check_positive("state-lr", self.state_lr)?;
        check_positive("multiplier-lr", self.multiplier_lr)?;
        check_count("inner-steps", self.inner_steps)?;
        check_not_negative("penalty", self.penalty)?;
        if let Some(half_life) = self.state_lr_half_life {
            check_positive("state-lr-half-life", half_life)?;
        }
        if let DualRule::NuPi { nu, kappa } = self.dual_rule
            && !((0.0..1.0).contains(&nu) && kappa >= 0.0 && kappa.is_finite())
        {
            return Err(Error::Option {
                option: "the dual rule nu-pi",
                value: format!("ν = {nu}, κ = {kappa}"),
                expected: "ν in [0, 1) and a non-negative κ are expected".into(),
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
        state: &mut OptimizerState<S>,
    ) -> Evaluation {
        self.update(objective, at, state, Request { loss: false, weights: false, ..Request::ALL })
    }

    fn update<S: Scalar>(
        &self,
        objective: &dyn Objective<S>,
        at: &mut Variables<S>,
        state: &mut OptimizerState<S>,
        request: Request,
    ) -> Evaluation {
        let steps = state.slots.node_counter("nodes.steps");
        *steps += 1;
        let step = *steps;
        let request = Request { penalty: self.penalty, ..request };
        let evaluation = match self.order {
            Order::Simultaneous => {
                let evaluation = objective.evaluate(at, request, &mut state.gradient);
                self.move_multipliers(step, at, state);
                evaluation
            }
            Order::Alternating => {
                objective.evaluate(at, Request::RESIDUAL, &mut state.gradient);
                self.move_multipliers(step, at, state);
                objective.evaluate(at, request, &mut state.gradient)
            }
        };
        let lr = decayed(self.state_lr, self.state_lr_half_life, step);
        let OptimizerState { gradient, slots, .. } = state;
        self.state_rule.descend_states((lr, step), &mut at.states, &gradient.states, slots);
        if request.weights {
            self.weights.step(&mut at.weights, state);
        }
        evaluation
    }

    fn move_multipliers<S: Scalar>(
        &self,
        step: u64,
        at: &mut Variables<S>,
        state: &mut OptimizerState<S>,
    ) {
        let OptimizerState { gradient, slots, .. } = state;
        let (lr, multipliers, gradient) =
            (self.multiplier_lr, &mut at.multipliers[..], &gradient.multipliers[..]);
        let mut ascend = |rule: PrimalRule| {
            rule.ascend_multipliers((lr, step), multipliers, gradient, slots);
        };
        match self.dual_rule {
            DualRule::Adam => ascend(PrimalRule::Adam),
            DualRule::Sgd => ascend(PrimalRule::Sgd),
            DualRule::NuPi { nu, kappa } => {
                let [xi] = slots.multipliers(["multipliers.nu-pi"], multipliers);
                for ((multipliers, gradient), xi) in multipliers.iter_mut().zip(gradient).zip(xi) {
                    let errors = gradient.as_slice().iter().zip(xi.as_mut_slice());
                    for (lambda, (&e, xi)) in multipliers.as_mut_slice().iter_mut().zip(errors) {
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
        &self,
        objective: &dyn Objective<S>,
        at: &mut Variables<S>,
        state: &mut OptimizerState<S>,
    ) -> Evaluation {
        for _ in 1..self.inner_steps {
            self.update(objective, at, state, Request { weights: false, ..Request::ALL });
        }
        self.update(objective, at, state, Request::ALL)
    }
}
