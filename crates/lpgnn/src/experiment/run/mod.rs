//! A run: one training run in a folder of its own, with checkpoints, metrics, a log and a record.
//!
//! It ends with the same bits however often it was interrupted and resumed. The files of its folder
//! are listed in [`experiment`](crate::experiment).

mod folder;
mod metrics;
mod observer;
mod watch;

pub use folder::RunFolder;
pub use metrics::EpochMetrics;
pub use observer::{Progress, RunObserver};

use std::path::Path;

use super::record::{Outcome, RunRecord};
use super::work_folder::create_next;
use crate::Error;
use crate::data::Dataset;
use crate::evaluate::Baseline;
use crate::run::{Checkpoint, RunConfig, SavedModel, Setup};
use crate::train::{Stage, StepProgress, Trainer, TrainerState};
use watch::Watch;

/// A run that is ready to train. It holds the lock of its folder.
#[derive(Debug)]
pub struct Run<'a> {
    folder: RunFolder,
    config: RunConfig,
    dataset: &'a Dataset,
    setup: Setup,
    /// Where it goes on, and how long it has taken so far.
    from: Option<(TrainerState, f64)>,
    interval: CheckpointInterval,
    commit: Option<String>,
    baseline: bool,
}

/// When checkpoints are written, besides after the last epoch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CheckpointInterval {
    /// Seconds between checkpoints.
    pub seconds: f64,
    /// Epochs between checkpoints, in addition.
    pub epochs: Option<usize>,
}

impl Default for CheckpointInterval {
    fn default() -> Self {
        Self { seconds: 10.0, epochs: None }
    }
}

impl<'a> Run<'a> {
    /// A new run in a folder that is empty or does not exist.
    ///
    /// # Errors
    ///
    /// [`Error::Folder`] when the folder is in use; what does not fit in configuration and data, and
    /// then there is no folder.
    pub fn create(folder: &Path, config: RunConfig, dataset: &'a Dataset) -> Result<Self, Error> {
        Self::begin(config, dataset, || RunFolder::create(folder))
    }

    /// A new run in place of the one in the folder, if there is one.
    ///
    /// # Errors
    ///
    /// As [`create`](Self::create), for a folder that is something else than a run.
    pub fn replace(folder: &Path, config: RunConfig, dataset: &'a Dataset) -> Result<Self, Error> {
        Self::begin(config, dataset, || RunFolder::replace(folder))
    }

    /// A new run in the next free folder of `parent`, called after the data.
    ///
    /// # Errors
    ///
    /// As [`create`](Self::create).
    pub fn create_in(
        parent: &Path,
        config: RunConfig,
        dataset: &'a Dataset,
    ) -> Result<Self, Error> {
        Self::begin(config, dataset, || RunFolder::create(&create_next(parent, dataset.name())?))
    }

    fn begin(
        config: RunConfig,
        dataset: &'a Dataset,
        folder: impl FnOnce() -> Result<RunFolder, Error>,
    ) -> Result<Self, Error> {
        // Errors are found before a folder is created.
        let setup = Setup::new(&config, dataset)?;
        Trainer::check(&setup.plan, &setup.model, &setup.data)?;
        let folder = folder()?;
        folder.write_config(&config)?;
        Ok(Self::ready(folder, config, dataset, setup))
    }

    fn ready(folder: RunFolder, config: RunConfig, dataset: &'a Dataset, setup: Setup) -> Self {
        let interval = CheckpointInterval::default();
        Self { folder, config, dataset, setup, from: None, interval, commit: None, baseline: true }
    }

    /// Resumes a run from its last checkpoint, or from the start without one. More epochs than it had
    /// extend it.
    ///
    /// # Errors
    ///
    /// [`Error::Folder`] when the data have changed since; [`Error::Option`] for fewer epochs;
    /// [`Error::Locked`], [`Error::Io`], [`Error::Input`] when files cannot be used.
    pub fn resume(
        folder: RunFolder,
        dataset: &'a Dataset,
        epochs: Option<usize>,
    ) -> Result<Self, Error> {
        let folder = folder.lock()?;
        let before = folder.config()?;
        let mut config = before.clone();
        if let Some(epochs) = epochs {
            config.training.epochs = epochs;
        }
        if config.training.epochs < before.training.epochs {
            return Err(Error::Option {
                option: "epochs",
                value: config.training.epochs.to_string(),
                expected: format!("the run already has {}", before.training.epochs),
            });
        }
        let setup = Setup::new(&config, dataset)?;
        let mut run = Self::ready(folder, config, dataset, setup);
        run.from = run.checkpoint()?;
        if run.config != before {
            run.folder.write_config(&run.config)?;
        }
        Ok(run)
    }

    fn checkpoint(&self) -> Result<Option<(TrainerState, f64)>, Error> {
        let path = self.folder.file(RunFolder::CHECKPOINT);
        if !path.exists() {
            return Ok(None);
        }
        let nodes = self.setup.data.training_graphs().nodes();
        let checkpoint = Checkpoint::read(&path, &self.setup.model, nodes)?;
        if checkpoint.fingerprint != self.setup.fingerprint {
            let source = &self.config.data.source;
            return Err(Error::Folder {
                path: self.folder.path().to_owned(),
                problem: format!("was started with other data than {source}"),
            });
        }
        Ok(Some((checkpoint.state, checkpoint.seconds)))
    }

    /// The same with another interval between checkpoints.
    #[must_use]
    pub fn checkpoint_every(mut self, interval: CheckpointInterval) -> Self {
        self.interval = interval;
        self
    }

    /// The same, whose record names the commit that the program was built from.
    #[must_use]
    pub fn with_commit(mut self, commit: impl Into<String>) -> Self {
        self.commit = Some(commit.into());
        self
    }

    /// The same without the baseline, an MLP without edges that is trained for comparison.
    #[must_use]
    pub fn without_baseline(mut self) -> Self {
        self.baseline = false;
        self
    }

    /// Its folder.
    pub fn folder(&self) -> &RunFolder {
        &self.folder
    }

    /// Every setting, as used.
    pub fn config(&self) -> &RunConfig {
        &self.config
    }

    /// The model, data and plan of its configuration.
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// Number of completed epochs.
    pub fn epoch(&self) -> usize {
        self.from.as_ref().map_or(0, |(state, _)| state.epoch)
    }

    /// Trains to the end, or until the observer stops it, and writes model and record to the folder.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] when a file cannot be written; the run can be resumed from its last checkpoint.
    pub fn train(mut self, observer: &mut dyn RunObserver) -> Result<RunRecord, Error> {
        let (epoch, from) = (self.epoch(), self.from.take());
        let Self { folder, config, dataset, setup, interval, .. } = &self;
        let mut trainer = Trainer::new(setup.plan.clone(), &setup.model, &setup.data)?;
        let mut seconds = 0.0;
        if let Some((state, before)) = from {
            seconds = before;
            trainer = trainer.resume(state)?;
        }
        let at = (epoch, seconds);
        let mut watch = Watch::new(folder, config, &setup.fingerprint, *interval, at, observer)?;
        let trained = trainer.run(&mut watch)?;
        let (epochs, seconds) = watch.finish()?;

        let weights = trained.weights.clone();
        let saved = SavedModel::new(setup, config, dataset.name(), trained.epoch, weights);
        saved.write(&folder.file(RunFolder::MODEL))?;
        let metrics = folder.metrics()?;
        let mut tell = |stage| observer.step(&StepProgress::after(trained.epoch, stage));
        let baseline = self.baseline.then(|| {
            tell(Stage::Baseline);
            let (seed, budget) = (config.training.seed, Some(Baseline::SMALL_BUDGET));
            Baseline { seed, budget, ..Baseline::default() }.train(&setup.data)
        });
        tell(Stage::FinalEvaluation);
        let baseline = baseline.flatten();
        let outcome =
            Outcome { config, dataset, setup, saved, trained, metrics, epochs, seconds, baseline };
        let mut record = RunRecord::new(&outcome)?;
        record.versions.commit = self.commit.clone().or(record.versions.commit);
        folder.write_record(&record)?;
        folder.log()?.line(&record.last_line())?;
        Ok(record)
    }
}

#[cfg(test)]
mod tests;
