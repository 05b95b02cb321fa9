//! A custom solver: checked, found by its name, used to train, stopped, resumed, and its model saved and loaded.

use std::ops::ControlFlow;

use lpgnn::data::generate::CliqueConfig;
use lpgnn::lagrangian::{Evaluation, Objective, Request, Variables};
use lpgnn::registry::Registry;
use lpgnn::run::{Checkpoint, RunConfig, SavedModel, Setting, Setup, TrainingOrigin};
use lpgnn::saddle::{OptimizerState, PrimalRule, SaddleSolver, WeightDescent};
use lpgnn::train::{EpochReport, SplitName, Trained, Trainer, TrainerState};
use lpgnn::{Error, Scalar, check};

/// Optimistic gradients: every step adds by how much the gradient has just changed, which calms the
/// circling of states and multipliers around a saddle point.
///
/// ```text
/// X ← X − η (2 d_t − d_{t−1})        Λ ← Λ + η (2 d_t − d_{t−1})        θ by any rule
/// ```
#[derive(Debug, Clone, Copy)]
struct Optimistic {
    weights: WeightDescent,
    lr: f64,
    penalty: f64,
}

impl<S: Scalar> SaddleSolver<S> for Optimistic {
    fn step(
        &self,
        objective: &dyn Objective<S>,
        at: &mut Variables<S>,
        state: &mut OptimizerState<S>,
    ) -> Evaluation {
        let request = Request { penalty: self.penalty, ..Request::ALL };
        let evaluation = objective.evaluate(at, request, &mut state.gradient);
        // The gradients before lie in slots: zero at first, one row per node, and in the checkpoint.
        let OptimizerState { gradient, slots, .. } = state;
        let [before] = slots.states(["optimistic.states"], &at.states);
        for ((x, d), before) in at.states.iter_mut().zip(&gradient.states).zip(before) {
            follow(-self.lr, x.as_mut_slice(), d.as_slice(), before.as_mut_slice());
        }
        let [before] = slots.multipliers(["optimistic.multipliers"], &at.multipliers);
        for ((l, d), before) in at.multipliers.iter_mut().zip(&gradient.multipliers).zip(before) {
            follow(self.lr, l.as_mut_slice(), d.as_slice(), before.as_mut_slice());
        }
        self.weights.step(&mut at.weights, state);
        evaluation
    }
}

fn follow<S: Scalar>(lr: f64, x: &mut [S], gradient: &[S], before: &mut [S]) {
    for ((x, &d), before) in x.iter_mut().zip(gradient).zip(before) {
        *x += S::of(lr) * (d + d - std::mem::replace(before, d));
    }
}

/// Trains with it from the start or from a checkpoint, up to some epoch.
fn train(
    setup: &Setup,
    from: Option<TrainerState>,
    epochs: usize,
) -> Result<(Trained, TrainerState), Error> {
    // Found by its name, with the options of the configuration.
    let registry = Registry::default().with_solver("optimistic", |options| {
        let lr = options.get("lr")?.unwrap_or(0.05);
        Ok(Box::new(Optimistic { weights: WeightDescent::default(), lr, penalty: 1.0 }))
    });
    let (plan, model) = (setup.plan.clone(), &setup.model);
    let mut trainer = Trainer::new_with(&registry, plan, model, &setup.data)?;
    if let Some(state) = from {
        trainer = trainer.resume(state)?;
    }
    let mut last = trainer.state().clone();
    let trained = trainer.run(&mut |report: &EpochReport, state: &TrainerState| {
        last.clone_from(state);
        if report.epoch < epochs { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    Ok((trained, last))
}

#[allow(clippy::print_stdout, reason = "an example shows what it does")]
fn main() -> Result<(), Error> {
    // The check that the library's own solvers pass, in double precision.
    let sgd = WeightDescent { rule: PrimalRule::Sgd, lr: 0.1, ..WeightDescent::default() };
    let solver = Optimistic { weights: sgd, lr: 0.1, penalty: 0.0 };
    check::solver(|| Box::new(solver), 4000, 1e-8)?;

    // Which nodes belong to a clique? Settings that suit the paper's solver suit this one, in batches.
    let dataset = CliqueConfig { graphs: 40, ..CliqueConfig::default() }.generate(1)?;
    let settings = ["training.solver.kind=bdmm", "training.epochs=120", "training.batch-size=20"];
    let settings = settings.map(|text| Setting::parse("this example", text));
    let settings = settings.into_iter().collect::<Result<Vec<_>, _>>()?;
    let mut config = RunConfig::for_data("clique", &dataset, &settings).with(&settings)?;
    config.training.custom_solver = Some("optimistic".into());
    let setup = Setup::new(&config, &dataset)?;
    let (whole, _) = train(&setup, None, usize::MAX)?;

    // The same again, interrupted. What the solver remembers is in the file.
    let (_, state) = train(&setup, None, 50)?;
    let path = std::env::temp_dir().join(format!("own-solver-{}.safetensors", std::process::id()));
    Checkpoint::write(&path, &TrainingOrigin::new(config.clone(), &setup), 0.0, &state)?;
    let nodes = setup.data.training_graphs().nodes();
    let checkpoint = Checkpoint::read(&path, &setup.model, nodes);
    std::fs::remove_file(&path).ok();
    let (resumed, _) = train(&setup, Some(checkpoint?.state), usize::MAX)?;
    assert_eq!(resumed.weights, whole.weights, "a resumed training ends with the same bits");

    // A model needs no solver to be used.
    let model = SavedModel::new(&setup, &config, "clique", whole.epoch, whole.weights);
    let loaded = SavedModel::from_bytes(&model.to_bytes()?)?;
    assert_eq!(loaded.predict(&dataset, false)?.outputs, model.predict(&dataset, false)?.outputs);

    let evaluation = whole.evaluation.expect("the last epoch is evaluated");
    let accuracy = evaluation.of(SplitName::Test).and_then(|test| test.accuracy).unwrap_or(0.0);
    println!("test accuracy {:.1} %, resumed with the same bits", 100.0 * accuracy);
    assert!(accuracy > 0.7, "{evaluation:?}");
    Ok(())
}
