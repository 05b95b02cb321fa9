use std::ops::ControlFlow;

use lpgnn::Scratch;
use lpgnn::data::Dataset;
use lpgnn::lagrangian::CountEvaluations;
use lpgnn::run::{RunConfig, Setup};
use lpgnn::train::{
    EpochReport, ModelEvaluation, SplitName, Trainer, TrainerState, TrainingConfig,
};

use super::super::super::functions;
use super::file::Action;
use super::measure::{Measure, Measured, of_data};
use crate::interrupt;
use crate::processor_time::processor_seconds;

/// Number of timed updates, after as many warm-up updates.
const TIMED: usize = 20;

/// What is measured at a point; none if interrupted.
///
/// Single-threaded, in CPU time of its thread, so that background load does not matter.
pub(super) fn run(
    action: Action,
    tol: f64,
    config: &RunConfig,
    dataset: &Dataset,
) -> anyhow::Result<Option<Vec<Measured>>> {
    let setup = Setup::with_registry(&functions(), config, dataset, None)?;
    let mut found = match action {
        Action::Converge => vec![converge(config, &setup)?],
        Action::Update => vec![update(config, &setup)?],
        Action::Train | Action::Curve => match train(action, tol, config, &setup)? {
            Some(found) => found,
            None => return Ok(None),
        },
    };
    for measured in &mut found {
        measured.extend(of_data(dataset));
        measured.retain(|_, value| value.is_finite());
    }
    Ok(Some(found))
}

fn train(
    action: Action,
    tol: f64,
    config: &RunConfig,
    setup: &Setup,
) -> anyhow::Result<Option<Vec<Measured>>> {
    let passes = CountEvaluations::default();
    // A curve measures everything at every point.
    let plan = TrainingConfig { eval_sample: None, ..setup.plan.config().clone() }.check()?;
    let trainer = Trainer::new(plan, &setup.model, &setup.data)?;
    let trainer = trainer.with_layer(Box::new(passes.clone()));
    let begun = processor_seconds();
    let (mut curve, mut above, mut last, mut stopped) = (vec![], 0, None, false);
    let trained = trainer.run(&mut |report: &EpochReport, _: &TrainerState| {
        if report.residual_mean > tol {
            above = report.epoch;
        }
        last = Some(report.residual_mean);
        if let Some(evaluation) = &report.evaluation {
            let mut measured = of_evaluations(evaluation);
            measured.insert(Measure::Residual, report.residual_mean);
            measured.insert(Measure::Updates, report.epoch as f64);
            measured.insert(Measure::Passes, passes.get() as f64);
            curve.push(measured);
        }
        stopped = interrupt::asked();
        if stopped { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    if stopped {
        return Ok(None);
    }
    if action == Action::Curve {
        return Ok(Some(curve));
    }
    let mut measured = trained.evaluation.as_ref().map(of_evaluations).unwrap_or_default();
    measured.insert(Measure::Residual, last.unwrap_or(f64::NAN));
    measured.insert(Measure::Updates, config.training.epochs as f64);
    measured.insert(Measure::Passes, passes.get() as f64);
    measured.insert(Measure::Seconds, processor_seconds() - begun);
    if above < config.training.epochs {
        measured.insert(Measure::UpdatesToResidual, (above + 1) as f64);
    }
    let options = &config.training.inference;
    let graphs = setup.data.training_graphs();
    let converged = options.states(&setup.model, &trained.weights, graphs, &Scratch::new());
    measured.insert(Measure::Iterations, converged.iterations as f64);
    Ok(Some(vec![measured]))
}

fn of_evaluations(evaluation: &ModelEvaluation) -> Measured {
    let accuracy = |part| evaluation.of(part).and_then(|score| score.accuracy);
    let shares = [
        (Measure::Accuracy, accuracy(SplitName::Test)),
        (Measure::TrainAccuracy, accuracy(SplitName::Train)),
        (Measure::CheatingGap, evaluation.cheating_gap),
    ];
    let mut measured: Measured =
        shares.into_iter().filter_map(|(measure, share)| Some((measure, 100.0 * share?))).collect();
    if let Some(radius) = evaluation.spectral_radius {
        measured.insert(Measure::SpectralRadius, radius);
    }
    measured
}

/// From zero states to the fixed point, with initial weights.
fn converge(config: &RunConfig, setup: &Setup) -> anyhow::Result<Measured> {
    let trainer = Trainer::new(setup.plan.clone(), &setup.model, &setup.data)?;
    let weights = &trainer.state().variables.weights;
    let (graphs, scratch) = (setup.data.training_graphs(), Scratch::new());
    let begun = processor_seconds();
    let converged = config.training.inference.states(&setup.model, weights, graphs, &scratch);
    let seconds = processor_seconds() - begun;
    let count = converged.converged.len().max(1) as f64;
    let worst = converged.largest_residual();
    Ok([
        (Measure::Iterations, converged.iterations as f64),
        (Measure::Seconds, seconds),
        (Measure::ConvergedResidual, worst),
        (Measure::Converged, 100.0 * (1.0 - converged.failures() as f64 / count)),
    ]
    .into())
}

/// The time of an update.
fn update(config: &RunConfig, setup: &Setup) -> anyhow::Result<Measured> {
    let trainer = Trainer::new(setup.plan.clone(), &setup.model, &setup.data)?;
    let (mut begun, mut seconds) = (f64::NAN, f64::NAN);
    let ends = [TIMED.min(config.training.epochs / 2), (2 * TIMED).min(config.training.epochs)];
    trainer.run(&mut |report: &EpochReport, _: &TrainerState| {
        if report.epoch == ends[0] {
            begun = processor_seconds();
        }
        if report.epoch < ends[1] {
            return ControlFlow::Continue(());
        }
        seconds = (processor_seconds() - begun) / (ends[1] - ends[0]).max(1) as f64;
        ControlFlow::Break(())
    })?;
    let graphs = setup.data.training_graphs();
    let items = (graphs.nodes() + graphs.edges()).max(1) as f64;
    Ok([(Measure::Seconds, seconds), (Measure::NanosecondsPerItem, 1e9 * seconds / items)].into())
}
