use std::ops::ControlFlow;

use indicatif::ProgressBar;
use lpgnn::data::{Dataset, Split};
use lpgnn::run::{RunConfig, Setup};
use lpgnn::train::{EpochReport, PartName, Score, StopReason, Trainer, TrainerState};

use crate::interrupt;

/// One training, without files of its own: a fold of a cross-validation, a trial of a search.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Trial {
    /// The epochs at which it was scored.
    pub(crate) epochs: Vec<usize>,
    /// The accuracy, or minus the loss, on the validation part; empty without one.
    pub(crate) valid: Vec<f64>,
    /// The same on the test part; empty without one.
    pub(crate) test: Vec<f64>,
    /// The best epoch by the validation part, or the last one.
    pub(crate) epoch: usize,
    /// The values at that epoch.
    pub(crate) valid_value: Option<f64>,
    pub(crate) test_value: Option<f64>,
    /// Whether states or weights stopped being numbers.
    pub(crate) diverged: bool,
    /// Graphs that did not settle, and the residual at the end.
    pub(crate) unsettled: usize,
    pub(crate) residual: Option<f64>,
}

/// Trains; none when somebody wanted it to end before its time.
pub(crate) fn train(
    config: &RunConfig,
    dataset: &Dataset,
    split: Split,
    bar: &ProgressBar,
) -> anyhow::Result<Option<Trial>> {
    let setup = Setup::with_split(config, dataset, split)?;
    let trainer = Trainer::new(setup.plan.clone(), &setup.model, &setup.data)?.scoring_held_out();
    let mut trial = Trial {
        epochs: vec![],
        valid: vec![],
        test: vec![],
        epoch: 0,
        valid_value: None,
        test_value: None,
        diverged: false,
        unsettled: 0,
        residual: None,
    };
    let mut stopped = false;
    let trained = trainer.run(&mut |report: &EpochReport, _: &TrainerState| {
        bar.set_position(report.epoch as u64);
        trial.residual = Some(report.residual_mean);
        if let Some(scores) = &report.scores {
            trial.epochs.push(report.epoch);
            trial.valid.extend(scores.of(PartName::Valid).map(value));
            trial.test.extend(scores.of(PartName::Test).map(value));
            trial.unsettled = scores.unsettled;
            bar.set_message(format!("epoch {}", report.epoch));
        }
        stopped = interrupt::asked();
        if stopped { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    if stopped {
        return Ok(None);
    }
    trial.epoch = trained.epoch;
    trial.diverged = matches!(trained.reason, StopReason::Diverged { .. });
    if let Some(scores) = &trained.scores {
        trial.valid_value = scores.of(PartName::Valid).map(value);
        trial.test_value = scores.of(PartName::Test).map(value);
        if trial.epochs.is_empty() {
            // It diverged before it was scored: what it started from counts.
            trial.epochs.push(trained.epoch);
            trial.valid.extend(trial.valid_value);
            trial.test.extend(trial.test_value);
        }
    }
    Ok(Some(trial))
}

/// Larger is better.
pub(crate) fn value(score: &Score) -> f64 {
    score.accuracy.unwrap_or(-score.loss)
}
