use rayon::prelude::*;

use super::{Coordinates, OptimizerState, Slots, check_positive};
use crate::optim::{Adam, CHUNK, Sgd};
use crate::parameters::others;
use crate::{Error, Matrix, Scalar};

/// How a variable that descends follows its gradient.
#[derive(
    Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum PrimalRule {
    /// [`Adam`], with the usual `β₁ = 0.9`, `β₂ = 0.999`, `ε = 10⁻⁸`.
    Adam,
    /// [`Sgd`]: `z ← z − η ∂𝓛/∂z`.
    Sgd,
}

impl PrimalRule {
    /// One step of the states down, with what Adam remembers of them in `slots`; `step` counts
    /// from 1.
    pub fn descend_states<S: Scalar>(
        self,
        (lr, step): (f64, u64),
        states: &mut [Matrix<S>],
        gradient: &[Matrix<S>],
        slots: &mut Slots<S>,
    ) {
        match self {
            Self::Sgd => for_each(states, gradient, |x, d| Sgd::new(lr).descend(x, d)),
            Self::Adam => {
                let moments = slots.states(["states.adam.first", "states.adam.second"], states);
                for_each_with(states, gradient, moments, |x, d, moments| {
                    Adam::new(lr).descend(step, x, d, moments);
                });
            }
        }
    }

    /// One step of the multipliers up, with what Adam remembers of them in `slots`; `step` counts
    /// from 1.
    pub fn ascend_multipliers<S: Scalar>(
        self,
        (lr, step): (f64, u64),
        multipliers: &mut [Matrix<S>],
        gradient: &[Matrix<S>],
        slots: &mut Slots<S>,
    ) {
        match self {
            Self::Sgd => for_each(multipliers, gradient, |x, d| Sgd::new(lr).ascend(x, d)),
            Self::Adam => {
                let names = ["multipliers.adam.first", "multipliers.adam.second"];
                let moments = slots.multipliers(names, multipliers);
                for_each_with(multipliers, gradient, moments, |x, d, moments| {
                    Adam::new(lr).ascend(step, x, d, moments);
                });
            }
        }
    }
}

fn for_each<S: Scalar>(
    variables: &mut [Matrix<S>],
    gradient: &[Matrix<S>],
    step: impl Fn(&mut [S], &[S]),
) {
    for (x, d) in variables.iter_mut().zip(gradient) {
        step(x.as_mut_slice(), d.as_slice());
    }
}

fn for_each_with<S: Scalar>(
    variables: &mut [Matrix<S>],
    gradient: &[Matrix<S>],
    [first, second]: [&mut [Matrix<S>]; 2],
    step: impl Fn(&mut [S], &[S], [&mut [S]; 2]),
) {
    let moments = first.iter_mut().zip(second);
    for ((x, d), (m, v)) in variables.iter_mut().zip(gradient).zip(moments) {
        step(x.as_mut_slice(), d.as_slice(), [m.as_mut_slice(), v.as_mut_slice()]);
    }
}

/// How the weights descend, in every solver.
#[derive(
    Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct WeightDescent {
    /// Optimiser.
    pub rule: PrimalRule,
    /// Learning rate of the weights.
    #[schemars(extend(
        "exclusiveMinimum" = 0,
        "x-flag" = "lr",
        "x-data-default" = "0.005; 0.01 with bdmm and for homophilous and large heterophilous graphs, 0.02 for homophilous graphs with 3000 or more labelled nodes"
    ))]
    pub lr: f64,
    /// Half-life of the learning rate, in updates; none: constant.
    #[schemars(extend(
        "exclusiveMinimum" = 0,
        "x-data-default" = "a third of all updates for nodes, a quarter but at least 35 for graphs; none with bdmm and for \
                            homophilous graphs"
    ))]
    pub lr_half_life: Option<f64>,
    /// How the learning rate halves.
    #[schemars(extend("x-data-default" = "step for graphs, but with bdmm, otherwise smooth"))]
    pub lr_decay: LrDecay,
    /// Weight decay per update, relative to the learning rate.
    #[schemars(
        range(min = 0),
        extend("x-data-default" = "0.03 for graphs with one-shot, otherwise 0")
    )]
    pub weight_decay: f64,
}

/// How a learning rate halves within its half-life.
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
pub enum LrDecay {
    /// Gradually, at every update.
    #[default]
    Smooth,
    /// In steps, after every half-life, like `StepLR` in PyTorch.
    Step,
}

impl Default for WeightDescent {
    fn default() -> Self {
        Self {
            rule: PrimalRule::Adam,
            lr: 0.01,
            lr_half_life: None,
            lr_decay: LrDecay::Smooth,
            weight_decay: 0.0,
        }
    }
}

impl WeightDescent {
    /// # Errors
    ///
    /// [`Error::Option`], naming the first value that is not usable.
    pub fn check(&self) -> Result<(), Error> {
        check_positive("weight lr", self.lr)?;
        if let Some(lr_half_life) = self.lr_half_life {
            check_positive("lr-half-life", lr_half_life)?;
        }
        if self.weight_decay < 0.0 || !self.weight_decay.is_finite() {
            return Err(Error::Option {
                option: "weight-decay",
                value: self.weight_decay.to_string(),
                expected: "a non-negative number is expected".into(),
            });
        }
        Ok(())
    }

    /// The learning rate of the step with this number, counted from 1.
    pub fn lr_at(&self, step: u64) -> f64 {
        let half_life = self.lr_half_life.filter(|_| self.lr_decay == LrDecay::Step);
        half_life.map_or_else(
            || decayed(self.lr, self.lr_half_life, step),
            |half_life| self.lr * (-(step.saturating_sub(1) as f64 / half_life).floor()).exp2(),
        )
    }

    /// One step of the weights along the gradient in `state`, which also keeps what the rule
    /// remembers.
    pub fn step<S: Scalar>(&self, weights: &mut [S], state: &mut OptimizerState<S>) {
        let OptimizerState { gradient, slots, coordinates, undecayed } = state;
        let steps = slots.counter("weights.steps");
        *steps += 1;
        let step = *steps;
        let lr = self.lr_at(step);
        if self.weight_decay > 0.0 {
            let keep = S::of(1.0 - lr * self.weight_decay);
            for range in others(weights.len(), undecayed) {
                let decay = |weights: &mut [S]| weights.iter_mut().for_each(|w| *w *= keep);
                weights[range].par_chunks_mut(CHUNK).for_each(decay);
            }
        }
        let count = weights.len();
        let moments = match self.rule {
            PrimalRule::Sgd => [&mut [][..], &mut []],
            PrimalRule::Adam => slots.weights(["weights.adam.first", "weights.adam.second"], count),
        };
        let descend = |weights: &mut [S], gradient: &[S], moments: [&mut [S]; 2]| match self.rule {
            PrimalRule::Sgd => Sgd::new(lr).descend(weights, gradient),
            PrimalRule::Adam => Adam::new(lr).descend(step, weights, gradient, moments),
        };
        if coordinates.is_empty() {
            descend(weights, &gradient.weights, moments);
        } else {
            Coordinates::step(coordinates, weights, &mut gradient.weights, moments, descend);
        }
    }
}

/// A learning rate after `step − 1` steps.
pub fn decayed(lr: f64, half_life: Option<f64>, step: u64) -> f64 {
    let passed = step.saturating_sub(1) as f64;
    half_life.map_or(lr, |half_life| lr * (-passed / half_life).exp2())
}

#[cfg(test)]
mod tests {
    use super::super::OptimizerState;
    use super::*;
    use crate::lagrangian::Variables;

    #[test]
    fn a_learning_rate_halves_smoothly_or_in_steps() {
        let smooth =
            WeightDescent { lr: 0.8, lr_half_life: Some(50.0), ..WeightDescent::default() };
        let step = WeightDescent { lr_decay: LrDecay::Step, ..smooth };
        for (number, expected) in [(1, 0.8), (50, 0.8), (51, 0.4), (100, 0.4), (101, 0.2)] {
            assert!((step.lr_at(number) - expected).abs() < 1e-15, "{number}");
        }
        assert!((smooth.lr_at(26) - 0.8 / 2.0_f64.sqrt()).abs() < 1e-15);
        let constant = WeightDescent { lr_half_life: None, ..step };
        assert!((constant.lr_at(1000) - 0.8).abs() < 1e-15);
    }

    #[test]
    fn what_is_exempt_does_not_decay() {
        let mut at = Variables { weights: vec![1.0_f64; 3], ..Variables::default() };
        let mut memory = OptimizerState::new(&at);
        memory.undecayed = std::iter::once(1..2).collect();
        let weight_decay = 0.5;
        let descent = WeightDescent {
            rule: PrimalRule::Sgd,
            lr: 0.1,
            weight_decay,
            ..WeightDescent::default()
        };
        descent.step(&mut at.weights, &mut memory);
        assert_eq!(at.weights, [0.95, 1.0, 0.95]);
    }
}
