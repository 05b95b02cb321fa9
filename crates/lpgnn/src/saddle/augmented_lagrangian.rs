use super::fixed_point::check_in_unit;
use super::{
    OptimizerState, PrimalRule, SaddleSolver, Slots, WeightDescent, check_count, check_positive,
    decayed,
};
use crate::lagrangian::{Evaluation, Objective, Request, Variables};
use crate::numeric::worse;
use crate::optim::axpy;
use crate::{Error, Scalar};

/// The method of multipliers: states and weights descend the augmented Lagrangian for some steps,
/// then the multipliers take over the force of the penalty.
///
/// ```text
/// m times     X ← X − η_X ∂𝓛_ρ/∂X      θ ← θ − η_θ ∂𝓛_ρ/∂θ          𝓛_ρ = 𝓛 + ρ/2 ‖X − f_a(X)‖²
/// then        Λ ← Λ + ρ ∂𝓛/∂Λ
/// ```
///
/// and `ρ ← min(γ ρ, ρ_max)` whenever the largest violation has not fallen to `τ` of what it was:
/// from update to update, or from epoch to epoch where graphs take turns in batches. For `G = lin`
/// the step of `Λ` is exact; for the others it is ascent with the rate `ρ`.
#[derive(
    Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct AugmentedLagrangian {
    /// Optimiser of the weights.
    pub weights: WeightDescent,
    /// Optimiser of the states.
    pub state_rule: PrimalRule,
    /// Learning rate of the states.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub state_lr: f64,
    /// Half-life of the learning rate of the states, in inner steps; none: constant.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub state_lr_half_life: Option<f64>,
    /// Steps of states and weights per step of the multipliers.
    #[schemars(range(min = 1))]
    pub inner_steps: usize,
    /// Initial factor `ρ` of the augmented-Lagrangian term.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub penalty: f64,
    /// Growth factor of `ρ` while the violation does not decrease.
    #[schemars(range(min = 1))]
    pub penalty_growth: f64,
    /// Largest `ρ`.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub max_penalty: f64,
    /// Share of the previous violation below which it counts as decreased.
    #[schemars(range(max = 1), extend("exclusiveMinimum" = 0))]
    pub violation_share: f64,
}

impl Default for AugmentedLagrangian {
    fn default() -> Self {
        Self {
            weights: WeightDescent::default(),
            state_rule: PrimalRule::Adam,
            state_lr: 0.01,
            state_lr_half_life: None,
            inner_steps: 20,
            penalty: 1.0,
            penalty_growth: 2.0,
            max_penalty: 100.0,
            violation_share: 0.9,
        }
    }
}

impl AugmentedLagrangian {
    /// Validates every value.
    ///
    /// # Errors
    ///
    /// [`Error::Option`], naming the first value that is not.
    pub fn check(self) -> Result<Self, Error> {
        self.weights.check()?;
        check_positive("state-lr", self.state_lr)?;
        if let Some(half_life) = self.state_lr_half_life {
            check_positive("state-lr-half-life", half_life)?;
        }
        check_count("inner-steps", self.inner_steps)?;
        check_positive("penalty", self.penalty)?;
        check_in_unit("violation-share", self.violation_share)?;
        for (option, value, least) in [
            ("penalty-growth", self.penalty_growth, 1.0),
            ("max-penalty", self.max_penalty, self.penalty),
        ] {
            if !(value >= least && value.is_finite()) {
                let expected = format!("a finite number of at least {least} is expected");
                return Err(Error::Option { option, value: value.to_string(), expected });
            }
        }
        Ok(self)
    }

    /// `ρ` of this update, grown at the first one of a round if the round before did not bring the
    /// violation down. In a round all nodes are updated once.
    fn penalty_now<S: Scalar>(&self, slots: &mut Slots<S>) -> f64 {
        let turns = slots.node_counter("augmented-lagrangian.turns");
        *turns += 1;
        let (turn, round) = (*turns, slots.counter("augmented-lagrangian.rounds"));
        if *round < turn {
            *round = turn;
            let violation = std::mem::take(slots.number("augmented-lagrangian.violation", 0.0));
            let before = slots.number("augmented-lagrangian.violation-before", f64::INFINITY);
            let stuck = turn > 1 && violation > self.violation_share * *before;
            *before = if turn > 1 { violation } else { f64::INFINITY };
            if stuck {
                let penalty = slots.number("augmented-lagrangian.penalty", self.penalty);
                *penalty = (*penalty * self.penalty_growth).min(self.max_penalty);
            }
        }
        *slots.number("augmented-lagrangian.penalty", self.penalty)
    }
}

impl<S: Scalar> SaddleSolver<S> for AugmentedLagrangian {
    fn step(
        &self,
        objective: &dyn Objective<S>,
        at: &mut Variables<S>,
        state: &mut OptimizerState<S>,
    ) -> Evaluation {
        let penalty = self.penalty_now(&mut state.slots);
        let mut first = None;
        for _ in 0..self.inner_steps {
            let request = Request { penalty, ..Request::ALL };
            let evaluation = objective.evaluate(at, request, &mut state.gradient);
            first.get_or_insert(evaluation);
            let OptimizerState { gradient, slots, .. } = state;
            let steps = slots.node_counter("nodes.steps");
            *steps += 1;
            let step = *steps;
            let lr = decayed(self.state_lr, self.state_lr_half_life, step);
            self.state_rule.descend_states((lr, step), &mut at.states, &gradient.states, slots);
            self.weights.step(&mut at.weights, state);
        }
        // Λ + ρ ∂𝓛/∂Λ, where the inner steps have led
        let there = objective.evaluate(at, Request::RESIDUAL, &mut state.gradient);
        for (multipliers, d) in at.multipliers.iter_mut().zip(&state.gradient.multipliers) {
            axpy(S::of(penalty), d.as_slice(), multipliers.as_mut_slice());
        }
        let violation = state.slots.number("augmented-lagrangian.violation", 0.0);
        *violation = worse(*violation, there.residual_max);
        first.unwrap_or(there)
    }
}
