use std::ops::ControlFlow;
use std::time::Instant;

use super::folder::{LineFile, RunFolder};
use super::{CheckpointInterval, EpochMetrics, Progress, RunObserver};
use crate::Error;
use crate::graph::Share;
use crate::run::{Checkpoint, TrainingOrigin};
use crate::train::{EpochReport, ModelEvaluation, Observer, StepProgress, TrainerState};

/// Writes the files of a run while it trains.
pub(super) struct Watch<'a> {
    folder: &'a RunFolder,
    /// Of a graph in parts: how ranks share it, each of which writes the states of its nodes.
    share: Option<&'a Share>,
    origin: &'a TrainingOrigin,
    interval: CheckpointInterval,
    observer: &'a mut dyn RunObserver,
    metrics: LineFile,
    log: LineFile,
    begun: Instant,
    /// How long training took before it was continued.
    before: f64,
    epoch_begun: Instant,
    /// When the last checkpoint was written, and of which epoch it is.
    kept: (Instant, usize),
    evaluation: Option<ModelEvaluation>,
    epochs: usize,
    /// Where there are several ranks: whether any of them is going to write the state that comes with an epoch.
    agreed: Option<bool>,
    error: Option<Error>,
}

/// Lines of the log, about.
const LINES: usize = 10;

impl<'a> Watch<'a> {
    /// From an epoch on, so many seconds after the run was begun.
    pub(super) fn new(
        (folder, share): (&'a RunFolder, Option<&'a Share>),
        origin: &'a TrainingOrigin,
        interval: CheckpointInterval,
        (epoch, before): (usize, f64),
        observer: &'a mut dyn RunObserver,
    ) -> Result<Self, Error> {
        let now = Instant::now();
        Ok(Self {
            folder,
            share,
            origin,
            interval,
            observer,
            metrics: folder.metrics_from(epoch)?,
            log: folder.log()?,
            begun: now,
            before,
            epoch_begun: now,
            kept: (now, epoch),
            evaluation: None,
            epochs: epoch,
            agreed: None,
            error: None,
        })
    }

    /// How many epochs are done, and the seconds they took; or what went wrong with the files.
    pub(super) fn finish(self) -> Result<(usize, f64), Error> {
        let seconds = self.seconds();
        match self.error {
            Some(error) => Err(error),
            None => Ok((self.epochs, seconds)),
        }
    }

    fn seconds(&self) -> f64 {
        self.before + self.begun.elapsed().as_secs_f64()
    }

    /// Whether the observer asks to stop.
    fn keep(&mut self, metrics: &EpochMetrics, state: &TrainerState) -> Result<bool, Error> {
        let report = &metrics.report;
        self.metrics.json(metrics)?;
        if let Some(evaluation) = &report.evaluation {
            self.evaluation = Some(evaluation.clone());
        }
        let epochs = self.origin.config.training.epochs;
        let progress = Progress { metrics, evaluation: self.evaluation.as_ref(), epochs };
        let stop = self.observer.epoch(&progress).is_break();
        let last = stop || report.epoch == epochs;
        if report.epoch.is_multiple_of(epochs.div_ceil(LINES)) || last {
            let line = format!("epoch {:>5}  {progress}", report.epoch);
            self.log.line(&line)?;
            self.observer.note(&line);
        }
        // If all stop, they write it then.
        if self.agreed.take().unwrap_or_else(|| stop || self.is_due(report)) {
            self.write(state)?;
        }
        Ok(stop)
    }

    /// Whether it is time for a checkpoint.
    fn is_due(&self, report: &EpochReport) -> bool {
        let (when, epoch) = self.kept;
        let by_epochs =
            self.interval.epochs.is_some_and(|interval| report.epoch - epoch >= interval);
        let last = report.epoch == self.origin.config.training.epochs;
        last || by_epochs || when.elapsed().as_secs_f64() >= self.interval.seconds
    }

    /// Writes a checkpoint.
    fn write(&mut self, state: &TrainerState) -> Result<(), Error> {
        // A checkpoint is of epochs whose metrics are there.
        self.metrics.sync()?;
        let (path, seconds) = (self.folder.file(RunFolder::CHECKPOINT), self.seconds());
        match self.share {
            Some(share) => Checkpoint::write_parts(&path, self.origin, seconds, state, share)?,
            None if self.folder.writes() => Checkpoint::write(&path, self.origin, seconds, state)?,
            None => {}
        }
        self.kept = (Instant::now(), state.epoch);
        Ok(())
    }
}

impl Observer for Watch<'_> {
    fn step(&mut self, step: &StepProgress) {
        self.observer.step(step);
    }

    fn reads_state(&mut self, report: &EpochReport) -> bool {
        self.is_due(report)
    }

    fn all_read_state(&mut self, read: bool) {
        self.agreed = Some(read);
    }

    fn stopped(&mut self, state: &TrainerState) {
        let failed = self.error.is_some();
        let failed = self.share.map_or(failed, |share| share.communicator().any(failed));
        if !failed && self.kept.1 != state.epoch {
            self.error = self.write(state).err();
        }
    }

    fn epoch(&mut self, report: &EpochReport, state: &TrainerState) -> ControlFlow<()> {
        let seconds = self.epoch_begun.elapsed().as_secs_f64();
        let metrics = EpochMetrics { report: report.clone(), seconds };
        let kept = self.keep(&metrics, state);
        self.epochs = report.epoch;
        self.epoch_begun = Instant::now();
        match kept {
            Err(error) => {
                self.error = Some(error);
                ControlFlow::Break(())
            }
            Ok(true) => ControlFlow::Break(()),
            Ok(false) => ControlFlow::Continue(()),
        }
    }
}
