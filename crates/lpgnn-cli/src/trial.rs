use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use indicatif::ProgressBar;
use lpgnn::run::{Checkpoint, RunConfig, Setup, write_file};
use lpgnn::train::{
    EpochReport, Observer, SplitMetrics, SplitName, StopReason, Trained, Trainer, TrainerState,
};

use crate::interrupt;

/// One training without a folder of its own: a fold of a cross-validation, a trial of a search.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Trial {
    /// The epochs at which it was scored.
    pub(crate) epochs: Vec<usize>,
    /// The accuracy, or minus the loss, on the validation part; empty without one.
    pub(crate) val: Vec<f64>,
    /// The same on the test part; empty without one.
    pub(crate) test: Vec<f64>,
    /// The best epoch by the validation part, or the last one.
    pub(crate) epoch: usize,
    /// The values at that epoch.
    pub(crate) val_value: Option<f64>,
    pub(crate) test_value: Option<f64>,
    /// Training accuracy that the states know by heart, at that epoch.
    pub(crate) cheating_gap: Option<f64>,
    /// Whether states or weights stopped being numbers.
    pub(crate) diverged: bool,
    /// Whether there is nothing more to do.
    pub(crate) ended: bool,
    /// Graphs that did not converge, and the residual at the end.
    pub(crate) not_converged: usize,
    pub(crate) residual: Option<f64>,
    /// How long it took.
    pub(crate) seconds: f64,
}

/// A [`Trial`] that has come as far as it was to.
pub(crate) struct Done {
    pub(crate) trial: Trial,
    /// The weights of its best epoch.
    pub(crate) weights: Vec<f32>,
    /// Where to continue, if there are more epochs.
    state: Option<TrainerState>,
}

/// Trains up to an epoch, from where `place` has it; none when somebody wanted it to end before.
///
/// Whatever depends on the number of epochs depends on that of `config`, not on `until`: a trial that
/// is continued is the same to the last bit as one that was never interrupted.
pub(crate) fn train(
    config: &RunConfig,
    setup: &Setup,
    until: usize,
    place: &Place,
    bar: &ProgressBar,
) -> anyhow::Result<Option<Done>> {
    let mut trainer =
        Trainer::new(setup.plan.clone(), &setup.model, &setup.data)?.evaluating_held_out();
    let mut trial = Trial::default();
    if let Some((before, state)) = place.read(config, setup)?.filter(|(_, at)| at.epoch < until) {
        bar.set_position(state.epoch as u64);
        trial = before;
        trainer = trainer.resume(state)?;
    }
    let (begun, before) = (Instant::now(), trial.seconds);
    let mut watch = Watch {
        config,
        setup,
        until,
        place,
        bar,
        trial,
        before,
        begun,
        kept: begun,
        state: None,
        stopped: false,
        error: None,
    };
    let trained = trainer.run(&mut watch)?;
    let Watch { mut trial, state, stopped, error, .. } = watch;
    if let Some(error) = error {
        return Err(error);
    }
    if stopped {
        return Ok(None);
    }
    trial.seconds = before + begun.elapsed().as_secs_f64();
    trial.finish(&trained, state.is_none());
    Ok(Some(Done { trial, weights: trained.weights, state }))
}

impl Trial {
    fn finish(&mut self, trained: &Trained<f32>, ended: bool) {
        self.epoch = trained.epoch;
        self.diverged = matches!(trained.reason, StopReason::Diverged { .. });
        self.ended = ended;
        let Some(evaluation) = &trained.evaluation else { return };
        self.val_value = evaluation.of(SplitName::Val).map(value);
        self.test_value = evaluation.of(SplitName::Test).map(value);
        self.cheating_gap = evaluation.cheating_gap.or(self.cheating_gap);
        if self.epochs.is_empty() && ended {
            // It diverged before it was scored: what it started from counts.
            self.epochs.push(trained.epoch);
            self.val.extend(self.val_value);
            self.test.extend(self.test_value);
        }
    }

    /// What is told of later epochs goes.
    fn cut(&mut self, epoch: usize) {
        let scored = self.epochs.partition_point(|&scored| scored <= epoch);
        self.epochs.truncate(scored);
        self.val.truncate(scored);
        self.test.truncate(scored);
    }
}

/// Seconds between checkpoints.
const INTERVAL: Duration = Duration::from_secs(20);

/// Notes how a trial goes, and keeps it from time to time.
struct Watch<'a> {
    config: &'a RunConfig,
    setup: &'a Setup,
    until: usize,
    place: &'a Place,
    bar: &'a ProgressBar,
    trial: Trial,
    /// How long it took before it was continued.
    before: f64,
    begun: Instant,
    kept: Instant,
    state: Option<TrainerState>,
    stopped: bool,
    error: Option<anyhow::Error>,
}

impl Observer for Watch<'_> {
    fn epoch(&mut self, report: &EpochReport, state: &TrainerState) -> ControlFlow<()> {
        self.note(report);
        let more = report.epoch < self.config.training.epochs;
        if more && report.epoch >= self.until {
            self.state = Some(state.clone());
            return ControlFlow::Break(());
        }
        self.stopped = more && interrupt::asked();
        if more && (self.stopped || self.kept.elapsed() >= INTERVAL) {
            self.trial.seconds = self.before + self.begun.elapsed().as_secs_f64();
            self.error = self.place.write(self.config, self.setup, &self.trial, state).err();
            self.kept = Instant::now();
        }
        if self.stopped || self.error.is_some() {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}

impl Watch<'_> {
    fn note(&mut self, report: &EpochReport) {
        self.bar.set_position(report.epoch as u64);
        self.trial.residual = Some(report.residual_mean);
        let Some(evaluation) = &report.evaluation else { return };
        self.trial.epochs.push(report.epoch);
        self.trial.val.extend(evaluation.of(SplitName::Val).map(value));
        self.trial.test.extend(evaluation.of(SplitName::Test).map(value));
        self.trial.not_converged = evaluation.not_converged;
        self.trial.cheating_gap = evaluation.cheating_gap.or(self.trial.cheating_gap);
        let share = |share: f64| format!(", train {:.1} %", 100.0 * share);
        let train = report.trained_accuracy.map(share).unwrap_or_default();
        self.bar.set_message(format!("epoch {}{train}", report.epoch));
    }
}

/// The files that a trial is kept in until it is done.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    trial: PathBuf,
    checkpoint: PathBuf,
}

impl Place {
    /// In a folder, under a name.
    pub(crate) fn new(folder: &Path, name: &str) -> Self {
        Self {
            trial: folder.join(format!("{name}.part.json")),
            checkpoint: folder.join(format!("{name}.checkpoint.safetensors")),
        }
    }

    /// Keeps where a trial can be continued.
    pub(crate) fn keep(
        &self,
        config: &RunConfig,
        setup: &Setup,
        done: &Done,
    ) -> anyhow::Result<()> {
        match &done.state {
            Some(state) => self.write(config, setup, &done.trial, state),
            None => Ok(()),
        }
    }

    fn write(
        &self,
        config: &RunConfig,
        setup: &Setup,
        trial: &Trial,
        state: &TrainerState,
    ) -> anyhow::Result<()> {
        // First: what it tells of epochs behind the checkpoint is left out when it is read.
        write_file(&self.trial, serde_json::to_string(trial)?.as_bytes())?;
        Checkpoint::write(&self.checkpoint, config, &setup.fingerprint, trial.seconds, state)?;
        Ok(())
    }

    fn read(
        &self,
        config: &RunConfig,
        setup: &Setup,
    ) -> anyhow::Result<Option<(Trial, TrainerState)>> {
        if !self.checkpoint.exists() {
            return Ok(None);
        }
        let nodes = setup.data.training_graphs().nodes();
        let checkpoint = Checkpoint::read(&self.checkpoint, &setup.model, nodes)?;
        if checkpoint.config != *config || checkpoint.fingerprint != setup.fingerprint {
            bail!("{} is of other data or settings", self.checkpoint.display());
        }
        let broken = || format!("{} cannot be read", self.trial.display());
        let text = std::fs::read_to_string(&self.trial).with_context(broken)?;
        let mut trial: Trial = serde_json::from_str(&text).with_context(broken)?;
        trial.cut(checkpoint.state.epoch);
        Ok(Some((trial, checkpoint.state)))
    }

    /// Nobody needs them any more.
    pub(crate) fn remove(&self) {
        for path in [&self.checkpoint, &self.trial] {
            // What cannot be removed is only in the way of nobody.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// How weights do on the test part, which is not there in a search.
pub(crate) fn test(setup: &Setup, weights: Vec<f32>) -> anyhow::Result<Option<f64>> {
    let trainer =
        Trainer::new(setup.plan.clone(), &setup.model, &setup.data)?.evaluating_held_out();
    let mut state = trainer.state().clone();
    state.variables.weights = weights;
    let evaluation = trainer.resume(state)?.evaluate();
    Ok(evaluation.of(SplitName::Test).map(value))
}

/// Larger is better.
pub(crate) fn value(score: &SplitMetrics) -> f64 {
    score.accuracy.unwrap_or(-score.loss)
}
