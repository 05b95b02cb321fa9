use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::observer::{TrialName, TrialObserver, Watched};
use crate::inference::distances;
use crate::numeric::Scratch;
use crate::run::{
    Checkpoint, CheckpointFile, RunConfig, SavedModel, Setup, TrainingOrigin, read_text, write_file,
};
use crate::train::{
    EpochReport, ModelEvaluation, Monitor, Observer, SplitMetrics, SplitName, StepProgress,
    StopReason, Trained, Trainer, TrainerState,
};
use crate::{Error, Place};

/// One training without a folder of its own: a fold of a cross-validation, a trial of a search.
///
/// Its values are those of the metric that is [monitored](Monitor), if trainings are compared by it; otherwise accuracies,
/// or negative losses if targets are real. Larger is better.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct TrialRecord {
    /// The metric of its values; `auto` for accuracies and negative losses.
    #[serde(default)]
    pub metric: Monitor,
    /// The epochs at which it was evaluated.
    pub epochs: Vec<usize>,
    /// Its values on the validation split; empty without one.
    #[serde(with = "crate::nan::numbers")]
    pub val: Vec<f64>,
    /// The same on the test split; empty without one.
    #[serde(with = "crate::nan::numbers")]
    pub test: Vec<f64>,
    /// The best epoch by the validation split, or the last one.
    pub best_epoch: usize,
    /// The value on the validation split at that epoch.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::nan::optional")]
    pub val_value: Option<f64>,
    /// The same on the test split.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::nan::optional")]
    pub test_value: Option<f64>,
    /// The cheating gap at that epoch.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::nan::optional")]
    pub cheating_gap: Option<f64>,
    /// Why it stopped; none while there are epochs left.
    pub stop_reason: Option<StopReason>,
    /// Graphs that did not converge at the last evaluation.
    pub not_converged: usize,
    /// The mean residual of the last epoch.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::nan::optional")]
    pub residual: Option<f64>,
    /// How far the states that its value was read from, on the test split or else on the validation split, are from their
    /// fixed point at most, by the [`Certificate`](crate::inference::Certificate) of the weights of its best epoch: the
    /// largest over graphs that have a bound. None where no graph has, and while there are epochs left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distance: Option<f64>,
    /// The graphs that have no such bound.
    #[serde(default)]
    pub unbounded: usize,
    /// How many models made its predictions together; 1 for a model alone.
    #[serde(default = "alone")]
    pub ensemble: usize,
    /// Seconds it took.
    pub seconds: f64,
    /// The outputs at every evaluation, while they are needed for those of an ensemble.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) outputs: Vec<HeldOut>,
}

/// What a record says that was written before there were ensembles.
pub(super) fn alone() -> usize {
    1
}

/// The outputs for what is held out in training, row by row; empty where there is no such split.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub(super) struct HeldOut {
    #[serde(with = "crate::nan::numbers")]
    pub(super) val: Vec<f64>,
    #[serde(with = "crate::nan::numbers")]
    pub(super) test: Vec<f64>,
}

/// A trial that has come as far as it was to.
pub(super) struct Done {
    pub(super) record: TrialRecord,
    /// The weights of its best epoch.
    pub(super) weights: Vec<f32>,
    /// Where to continue, if there are more epochs.
    state: Option<TrainerState>,
}

/// What is trained, and where it is kept on the way.
pub(super) struct Trial<'a> {
    pub(super) name: TrialName,
    pub(super) config: &'a RunConfig,
    pub(super) setup: &'a Setup,
    pub(super) files: &'a TrialFiles,
    /// Whether its record has the outputs of every evaluation.
    pub(super) keeps_outputs: bool,
}

impl Trial<'_> {
    /// Trains up to an epoch, from where its files have it; none when an observer stopped it before.
    ///
    /// Whatever depends on the number of epochs depends on that of the configuration, not on `until`:
    /// a trial that is continued is the same to the last bit as one that was never interrupted.
    pub(super) fn train(&self, until: usize, watched: &Watched<'_>) -> Result<Option<Done>, Error> {
        let Self { name, config, setup, files, .. } = self;
        let mut trainer =
            Trainer::new(setup.plan.clone(), &setup.model, &setup.data)?.evaluating_held_out();
        if self.keeps_outputs {
            trainer = trainer.keeping_outputs();
        }
        let mut record = TrialRecord::of(config.training.monitor);
        if let Some((before, state)) = files.read(config, setup)?.filter(|(_, at)| at.epoch < until)
        {
            record = before;
            trainer = trainer.resume(state)?;
        }
        let (begun, before) = (Instant::now(), record.seconds);
        let mut watch = Watch {
            trial: self,
            until,
            watched,
            observer: watched.observer.trial(*name, trainer.state().epoch, until),
            record,
            before,
            begun,
            kept: begun,
            state: None,
            stopped: false,
            error: None,
        };
        let trained = trainer.run(&mut watch)?;
        let Watch { mut record, state, stopped, error, .. } = watch;
        if let Some(error) = error {
            return Err(error);
        }
        if stopped {
            return Ok(None);
        }
        record.seconds = before + begun.elapsed().as_secs_f64();
        record.finish(&trained, state.is_none());
        if state.is_none() {
            (record.distance, record.unbounded) = distance(setup, &trained.weights)?;
        }
        Ok(Some(Done { record, weights: trained.weights, state }))
    }

    /// Keeps where it can be continued.
    pub(super) fn keep(&self, done: &Done) -> Result<(), Error> {
        match &done.state {
            Some(state) => self.files.write(self.config, self.setup, &done.record, state),
            None => Ok(()),
        }
    }
}

impl TrialRecord {
    /// Whether states or weights became NaN or infinite.
    pub fn diverged(&self) -> bool {
        matches!(self.stop_reason, Some(StopReason::Diverged { .. }))
    }

    fn of(monitor: Monitor) -> Self {
        let metric = if monitor.compares_trainings() { monitor } else { Monitor::Auto };
        Self { metric, ensemble: alone(), ..Self::default() }
    }

    fn finish(&mut self, trained: &Trained<f32>, ended: bool) {
        self.best_epoch = trained.epoch;
        self.stop_reason = ended.then_some(trained.reason);
        let Some(evaluation) = &trained.evaluation else { return };
        let value = |split| evaluation.of(split).map(|metrics| value(self.metric, metrics));
        (self.val_value, self.test_value) = (value(SplitName::Val), value(SplitName::Test));
        self.cheating_gap = evaluation.cheating_gap.or(self.cheating_gap);
        if self.epochs.is_empty() && ended {
            // It diverged before it was evaluated: what it started from counts.
            self.epochs.push(trained.epoch);
            self.val.extend(self.val_value);
            self.test.extend(self.test_value);
        }
    }

    /// What is told of later epochs goes.
    fn cut(&mut self, epoch: usize) {
        let evaluated = self.epochs.partition_point(|&evaluated| evaluated <= epoch);
        self.epochs.truncate(evaluated);
        self.val.truncate(evaluated);
        self.test.truncate(evaluated);
        self.outputs.truncate(evaluated);
    }
}

/// Seconds between checkpoints.
const INTERVAL: Duration = Duration::from_secs(20);

/// Notes how a trial goes, and keeps it from time to time.
struct Watch<'a> {
    trial: &'a Trial<'a>,
    until: usize,
    watched: &'a Watched<'a>,
    observer: Box<dyn TrialObserver + 'a>,
    record: TrialRecord,
    /// How long it took before it was continued.
    before: f64,
    begun: Instant,
    kept: Instant,
    state: Option<TrainerState>,
    stopped: bool,
    error: Option<Error>,
}

impl Observer for Watch<'_> {
    fn step(&mut self, step: &StepProgress) {
        self.observer.step(step);
    }

    fn epoch(&mut self, report: &EpochReport, state: &TrainerState) -> ControlFlow<()> {
        self.note(report);
        if self.observer.epoch(report).is_break() {
            self.watched.stop();
        }
        let Trial { config, setup, files, .. } = self.trial;
        let more = report.epoch < config.training.epochs;
        if more && report.epoch >= self.until {
            self.state = Some(state.clone());
            return ControlFlow::Break(());
        }
        self.stopped = more && self.watched.stopped();
        if more && (self.stopped || self.kept.elapsed() >= INTERVAL) {
            self.record.seconds = self.before + self.begun.elapsed().as_secs_f64();
            self.error = files.write(config, setup, &self.record, state).err();
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
        self.record.residual = Some(report.residual_mean);
        let Some(evaluation) = &report.evaluation else { return };
        self.record.epochs.push(report.epoch);
        let metric = self.record.metric;
        let value = |split| evaluation.of(split).map(|metrics| value(metric, metrics));
        self.record.val.extend(value(SplitName::Val));
        self.record.test.extend(value(SplitName::Test));
        if self.trial.keeps_outputs {
            self.record.outputs.push(HeldOut::of(evaluation));
        }
        self.record.not_converged = evaluation.not_converged;
        self.record.cheating_gap = evaluation.cheating_gap.or(self.record.cheating_gap);
    }
}

impl HeldOut {
    fn of(evaluation: &ModelEvaluation) -> Self {
        let of = |split| {
            let kept = evaluation.outputs.iter().find(|(name, _)| *name == split);
            kept.map_or_else(Vec::new, |(_, y)| {
                y.as_slice().iter().copied().map(f64::from).collect()
            })
        };
        Self { val: of(SplitName::Val), test: of(SplitName::Test) }
    }
}

/// The files that a trial is kept in until it is done.
#[derive(Clone, Debug)]
pub(super) struct TrialFiles {
    record: PathBuf,
    checkpoint: PathBuf,
}

impl TrialFiles {
    /// In a folder, under a name.
    pub(super) fn new(folder: &Path, name: &str) -> Self {
        Self {
            record: folder.join(format!("{name}.part.json")),
            checkpoint: folder.join(format!("{name}.checkpoint.safetensors")),
        }
    }

    fn write(
        &self,
        config: &RunConfig,
        setup: &Setup,
        record: &TrialRecord,
        state: &TrainerState,
    ) -> Result<(), Error> {
        let text = serde_json::to_string(record)
            .map_err(|error| Place::file(&self.record).error(error.to_string()))?;
        // First: what it tells of epochs behind the checkpoint is left out when it is read.
        write_file(&self.record, text.as_bytes())?;
        let origin = TrainingOrigin::new(config.clone(), setup);
        Checkpoint::write(&self.checkpoint, &origin, record.seconds, state)
    }

    fn read(
        &self,
        config: &RunConfig,
        setup: &Setup,
    ) -> Result<Option<(TrialRecord, TrainerState)>, Error> {
        if !self.checkpoint.exists() {
            return Ok(None);
        }
        let file = CheckpointFile::open(&self.checkpoint)?;
        if *file.origin() != TrainingOrigin::new(config.clone(), setup) {
            let problem = "it belongs to other data, another split or other settings";
            return Err(Place::file(&self.checkpoint).error(problem));
        }
        let checkpoint = file.read(&setup.model, setup.data.training_graphs().nodes())?;
        let path = &self.record;
        let text = read_text(path)?;
        let mut record: TrialRecord = serde_json::from_str(&text)
            .map_err(|error| Place::file(path).error(format!("it is not a trial: {error}")))?;
        record.cut(checkpoint.state.epoch);
        Ok(Some((record, checkpoint.state)))
    }

    /// Removes them.
    pub(super) fn remove(&self) {
        for path in [&self.checkpoint, &self.record] {
            // A file that cannot be removed does no harm.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// How far the states of the last split are from their fixed point at most, in graphs for which something bounds that; and
/// how many others there are.
fn distance(setup: &Setup, weights: &[f32]) -> Result<(Option<f64>, usize), Error> {
    let Setup { model, data, plan, .. } = setup;
    let Some((_, _, graphs, _)) = data.splits().last() else { return Ok((None, 0)) };
    let inference = &plan.config().inference;
    let (found, _) = inference.outputs(model, weights, graphs, &Scratch::new(), &mut |_| ());
    let distances = distances(model, weights, graphs, &found.residuals)?;
    let bounded = || distances.iter().copied().filter(|distance| distance.is_finite());
    Ok((bounded().reduce(f64::max), distances.len() - bounded().count()))
}

/// How a saved model does on the test split, which is not there in a search.
pub(super) fn test_value(setup: &Setup, saved: SavedModel) -> Result<Option<f64>, Error> {
    let mut weights = saved.weights;
    if let Some(scale) = &setup.target_scale {
        let readout = setup.model.readout().parameters();
        scale.redo(readout, &mut weights[setup.model.readout_weights()]);
    }
    let trainer =
        Trainer::new(setup.plan.clone(), &setup.model, &setup.data)?.evaluating_held_out();
    let mut state = trainer.state().clone();
    state.variables.weights = weights;
    let evaluation = trainer.resume(state)?.evaluate();
    let metric = TrialRecord::of(setup.plan.config().monitor).metric;
    Ok(evaluation.of(SplitName::Test).map(|metrics| value(metric, metrics)))
}

/// Larger is better. NaN where the metric is not defined, as an AUC of a split with a single class.
pub(super) fn value(metric: Monitor, metrics: &SplitMetrics) -> f64 {
    match metric {
        Monitor::Auto => metrics.accuracy.unwrap_or(-metrics.loss),
        _ => metrics.monitored.unwrap_or(f64::NAN),
    }
}
