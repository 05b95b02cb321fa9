//! Which solver with which steps.

use super::round;
use crate::constraint::ConstraintFunction;
use crate::data::Level;
use crate::lagrangian::Multipliers;
use crate::run::{RunConfig, Setting};
use crate::saddle::{
    AugmentedLagrangian, Bdmm, DualRule, Implicit, LrDecay, OneShot, PrimalRule, Sse, Unrolled,
    WeightDescent,
};
use crate::train::SolverConfig;

/// A solver of this kind with its defaults.
pub(super) fn solver_of(
    kind: &SolverConfig,
    weights: WeightDescent,
    inner_steps: usize,
) -> SolverConfig {
    match kind {
        // The penalty holds states to the constraint.
        SolverConfig::Bdmm(_) => SolverConfig::Bdmm(Bdmm { penalty: 1.0, ..Bdmm::default() }),
        SolverConfig::AugmentedLagrangian(_) => {
            SolverConfig::AugmentedLagrangian(AugmentedLagrangian::default())
        }
        SolverConfig::Sse(_) => SolverConfig::Sse(Sse { weights, ..Sse::default() }),
        SolverConfig::Implicit(_) => {
            SolverConfig::Implicit(Implicit { weights, ..Implicit::default() })
        }
        SolverConfig::Unrolled(_) => {
            SolverConfig::Unrolled(Unrolled { weights, ..Unrolled::default() })
        }
        // With one step the states lag behind the weights and both may swing around the saddle;
        // in batches they are stale by all the weight steps of an epoch, and in a stack every
        // layer has to follow those below.
        SolverConfig::OneShot(_) => {
            SolverConfig::OneShot(OneShot { weights, inner_steps, ..OneShot::default() })
        }
    }
}

/// Fewer large steps than this find nothing.
const LEAST_STEPS: f64 = 35.0;

/// Large steps find the way, small ones let states and weights come to rest. Read-outs of whole graphs learn slowly: they
/// keep the large steps for a quarter of the time, and halve them then.
pub(super) fn weights_of(task: Level, updates: usize) -> WeightDescent {
    let updates = updates as f64;
    let (half_life, lr_decay) = match task {
        Level::Node => ((updates / 3.0).max(1.0), LrDecay::Smooth),
        Level::Graph => ((updates / 4.0).max(LEAST_STEPS), LrDecay::Step),
    };
    let lr_half_life = Some(half_life.round());
    WeightDescent { lr: 0.005, lr_half_life, lr_decay, ..WeightDescent::default() }
}

impl RunConfig {
    /// What keeps states that move freely from memorising classes: a loss that weighs little, and plain steps, where they may
    /// be taken.
    pub(super) fn hold_free_states(&mut self, task: Level, asked: &Self, may_be_plain: bool) {
        let solver = self.training.solver;
        if matches!(solver, SolverConfig::Bdmm(_) | SolverConfig::AugmentedLagrangian(_)) {
            // A loss that weighs little cannot write the classes into the states. A node pulls its
            // own state alone, a graph those of all its nodes in one direction.
            self.training.weighing.loss_weight = if task == Level::Node { 0.01 } else { 0.001 };
        }
        if let SolverConfig::Bdmm(solver) = &mut self.training.solver {
            let plain = may_be_plain && asked.model.constraint == ConstraintFunction::Linear;
            if let (true, Some(bound)) = (plain, asked.training.lipschitz) {
                let steps = match asked.training.solver {
                    SolverConfig::Bdmm(asked) => asked.inner_steps.max(3),
                    _ => 3,
                };
                *solver = plain_steps(*solver, steps, bound);
                self.training.weighing.loss_weight = 0.1;
            } else {
                self.model.constraint = ConstraintFunction::Squared;
                self.model.multipliers = Multipliers::PerNode;
            }
        }
    }
}

/// Descent-ascent whose states cannot be used to cheat: with `G = lin` and plain gradient steps the loss moves a state by as much as
/// it weighs, while Adam makes the smallest pull as large as any other.
///
/// The rate is one at which `X ← X − η ((I − J)ᵀ (Λ + ρ (X − f_a(X))) + ∂loss/∂X)` does not diverge: with `‖J‖ ≤ L` and `ρ = 1`,
/// `η ρ (1 + L)²` is at most 1.2 and has to be below 2. In the steps of an update together multipliers move by at most once the
/// violation: with ten steps of 0.3 they swing, and nothing is learnt.
fn plain_steps(solver: Bdmm, steps: usize, bound: f64) -> Bdmm {
    let rate = round(0.3 * (2.0 / (1.0 + bound.max(1.0))).powi(2));
    Bdmm {
        state_rule: PrimalRule::Sgd,
        state_lr: rate,
        dual_rule: DualRule::Sgd,
        multiplier_lr: rate.min(round(1.0 / steps as f64)),
        inner_steps: steps,
        ..solver
    }
}

/// Whether settings ask for descent-ascent by Adam, as in the paper: by name, or by a rate of states or multipliers without the
/// rule that it is for.
pub(super) fn asks_for_adam(settings: &[Setting]) -> bool {
    let named = |paths: [&str; 2]| {
        let is = |setting: &&Setting| {
            let path = setting.path().strip_prefix("training.solver.");
            path.is_some_and(|path| paths.contains(&path))
        };
        settings.iter().filter(is).map(Setting::value).collect::<Vec<_>>()
    };
    let (rules, rates) = (named(["state-rule", "dual-rule"]), named(["state-lr", "multiplier-lr"]));
    if rules.is_empty() { !rates.is_empty() } else { rules.iter().any(|&rule| rule == "adam") }
}

#[cfg(test)]
mod tests {
    use super::super::tests::datasets;
    use super::*;

    #[test]
    fn descent_ascent_takes_plain_steps_unless_it_is_to_be_as_in_the_paper() {
        let config = |dataset: usize, wishes: &[(&str, &str)]| {
            let kind = Setting::new("test", "training.solver.kind", "bdmm");
            let wish = |(path, value): &(&str, &str)| {
                Setting::parse("test", &format!("{path}={value}")).unwrap()
            };
            let settings: Vec<Setting> =
                std::iter::once(kind).chain(wishes.iter().map(wish)).collect();
            let config = RunConfig::for_data("stars", &datasets()[dataset], &settings);
            let SolverConfig::Bdmm(solver) = config.training.solver else { panic!("asked for") };
            (solver.state_rule, config.model.constraint, config.training.weighing.loss_weight)
        };
        let plain = (PrimalRule::Sgd, ConstraintFunction::Linear, 0.1);
        assert_eq!((config(0, &[]), config(2, &[])), (plain, plain));
        let paper = |weight| (PrimalRule::Adam, ConstraintFunction::Squared, weight);
        let squared = ("model.constraint.g", "squared");
        assert_eq!((config(0, &[squared]), config(2, &[squared])), (paper(0.01), paper(0.001)));
        let [adam, sgd] = ["adam", "sgd"].map(|rule| ("training.solver.dual-rule", rule));
        let rate = ("training.solver.state-lr", "0.02");
        assert_eq!([config(0, &[adam]), config(0, &[rate])], [paper(0.01); 2]);
        assert_eq!(config(0, &[rate, sgd]), plain);
        assert_eq!(
            config(0, &[("training.lipschitz", "none")]),
            paper(0.01),
            "nothing bounds them"
        );
        assert_eq!(config(5, &[]), paper(0.01), "where neighbours are alike, it takes many steps");
        let rates = |(steps, bound)| {
            let solver = plain_steps(Bdmm::default(), steps, bound);
            (solver.state_lr, solver.multiplier_lr)
        };
        let expected = [(0.3, 0.3), (0.3, 0.1), (0.075, 0.075)];
        assert_eq!([(3, 0.9), (10, 0.9), (3, 3.0)].map(rates), expected);
    }
}
