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
use std::sync::Arc;

use super::record::{Outcome, RunRecord};
use super::work_folder::create_next;
use crate::Error;
use crate::data::Dataset;
use crate::evaluate::Baseline;
use crate::graph::{Communicator, agree};
use crate::registry::Registry;
use crate::run::{
    CheckpointFile, EpochChange, RunConfig, SavedModel, Setup, SplitSource, TrainingOrigin,
};
use crate::train::{Stage, StepProgress, StopReason, Trainer, TrainerState};
use watch::Watch;

/// A run that is ready to train. It holds the lock of its folder.
#[derive(Debug)]
pub struct Run<'a> {
    folder: RunFolder,
    origin: TrainingOrigin,
    dataset: &'a Dataset,
    setup: Setup,
    /// Where it goes on, and how long it has taken so far.
    from: Option<(TrainerState, f64)>,
    interval: CheckpointInterval,
    commit: Option<String>,
    baseline: bool,
}

/// Begins and resumes runs whose functions are those of a registry; the constructors of [`Run`] do so with
/// those that are built in.
#[derive(Clone, Debug, Default)]
pub struct Runs {
    registry: Registry<f32>,
}

impl Runs {
    /// With these functions.
    pub fn new(registry: Registry<f32>) -> Self {
        Self { registry }
    }

    /// See [`Run::create`].
    ///
    /// # Errors
    ///
    /// Those of [`Run::create`].
    pub fn create<'a>(
        &self,
        folder: &Path,
        config: RunConfig,
        dataset: &'a Dataset,
    ) -> Result<Run<'a>, Error> {
        Run::begin(&self.registry, config, dataset, || RunFolder::create(folder))
    }

    /// See [`Run::replace`].
    ///
    /// # Errors
    ///
    /// Those of [`Run::replace`].
    pub fn replace<'a>(
        &self,
        folder: &Path,
        config: RunConfig,
        dataset: &'a Dataset,
    ) -> Result<Run<'a>, Error> {
        Run::begin(&self.registry, config, dataset, || RunFolder::replace(folder))
    }

    /// See [`Run::create_in`].
    ///
    /// # Errors
    ///
    /// Those of [`Run::create_in`].
    pub fn create_in<'a>(
        &self,
        parent: &Path,
        config: RunConfig,
        dataset: &'a Dataset,
    ) -> Result<Run<'a>, Error> {
        let create = || RunFolder::create(&create_next(parent, dataset.name())?);
        Run::begin(&self.registry, config, dataset, create)
    }

    /// See [`Run::follow`].
    ///
    /// # Errors
    ///
    /// Those of [`Run::follow`].
    pub fn follow<'a>(
        &self,
        folder: &Path,
        config: RunConfig,
        dataset: &'a Dataset,
    ) -> Result<Run<'a>, Error> {
        Run::begin(&self.registry, config, dataset, || Ok(RunFolder::followed(folder)))
    }

    /// See [`Run::resume`].
    ///
    /// # Errors
    ///
    /// Those of [`Run::resume`].
    pub fn resume<'a>(
        &self,
        folder: RunFolder,
        dataset: &'a Dataset,
        epochs: Option<usize>,
    ) -> Result<Run<'a>, Error> {
        Run::go_on(&self.registry, folder, dataset, epochs, false)
    }

    /// See [`Run::resume_with_changes`].
    ///
    /// # Errors
    ///
    /// Those of [`Run::resume_with_changes`].
    pub fn resume_with_changes<'a>(
        &self,
        folder: RunFolder,
        dataset: &'a Dataset,
        epochs: Option<usize>,
    ) -> Result<Run<'a>, Error> {
        Run::go_on(&self.registry, folder, dataset, epochs, true)
    }
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
    /// A split that is [given](SplitSource::Given) is that of `dataset`; it is kept with the run.
    ///
    /// # Errors
    ///
    /// [`Error::Folder`] when the folder is in use; what does not fit in configuration and data, and
    /// then there is no folder.
    pub fn create(folder: &Path, config: RunConfig, dataset: &'a Dataset) -> Result<Self, Error> {
        Runs::default().create(folder, config, dataset)
    }

    /// A new run in place of the one in the folder, if there is one.
    ///
    /// # Errors
    ///
    /// As [`create`](Self::create), for a folder that is something else than a run.
    pub fn replace(folder: &Path, config: RunConfig, dataset: &'a Dataset) -> Result<Self, Error> {
        Runs::default().replace(folder, config, dataset)
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
        Runs::default().create_in(parent, config, dataset)
    }

    /// A new run that another rank, the first one, creates and writes to `folder`.
    ///
    /// # Errors
    ///
    /// What does not fit in configuration and data.
    pub fn follow(folder: &Path, config: RunConfig, dataset: &'a Dataset) -> Result<Self, Error> {
        Runs::default().follow(folder, config, dataset)
    }

    fn begin(
        registry: &Registry<f32>,
        config: RunConfig,
        dataset: &'a Dataset,
        folder: impl FnOnce() -> Result<RunFolder, Error>,
    ) -> Result<Self, Error> {
        // Errors are found before a folder is created.
        let setup = Setup::with_registry(registry, &config, dataset, None)?;
        Trainer::check(&setup.plan, &setup.model, &setup.data)?;
        let folder = folder()?;
        folder.write_split(&setup.split_to_keep())?;
        // Last, since with it the folder is that of a run.
        folder.write_config(&config)?;
        Ok(Self::ready(folder, config, dataset, setup))
    }

    fn ready(folder: RunFolder, config: RunConfig, dataset: &'a Dataset, setup: Setup) -> Self {
        let (origin, interval) =
            (TrainingOrigin::new(config, &setup), CheckpointInterval::default());
        Self { folder, origin, dataset, setup, from: None, interval, commit: None, baseline: true }
    }

    /// Resumes a run from its last checkpoint, or from the start without one. More epochs than it had
    /// extend it.
    ///
    /// # Errors
    ///
    /// [`Error::Folder`] when the data or their split have changed since; [`Error::EditedConfig`] when
    /// other settings than its epochs have; [`Error::Option`] for fewer epochs; [`Error::Locked`],
    /// [`Error::Io`], [`Error::Input`] when files cannot be used.
    pub fn resume(
        folder: RunFolder,
        dataset: &'a Dataset,
        epochs: Option<usize>,
    ) -> Result<Self, Error> {
        Runs::default().resume(folder, dataset, epochs)
    }

    /// The same with the settings that `config.toml` has now; the record tells which were changed.
    ///
    /// # Errors
    ///
    /// Those of [`resume`](Self::resume), but for changed settings.
    pub fn resume_with_changes(
        folder: RunFolder,
        dataset: &'a Dataset,
        epochs: Option<usize>,
    ) -> Result<Self, Error> {
        Runs::default().resume_with_changes(folder, dataset, epochs)
    }

    fn go_on(
        registry: &Registry<f32>,
        folder: RunFolder,
        dataset: &'a Dataset,
        epochs: Option<usize>,
        accept: bool,
    ) -> Result<Self, Error> {
        let opened =
            folder.lock().and_then(|folder| Ok((folder.config()?, folder.split()?, folder)));
        // What one process of several cannot open, none goes on with.
        let (before, kept_split, folder) = match dataset.in_parts() {
            None => opened?,
            Some(graph) => agree(&**graph.communicator(), opened)?,
        };
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
        let given = kept_split.filter(|_| config.split.source == SplitSource::Given);
        let setup = Setup::with_registry(registry, &config, dataset, given)?;
        let mut run = Self::ready(folder, config, dataset, setup);
        let checkpoint = run.folder.file(RunFolder::CHECKPOINT);
        if checkpoint.exists() {
            run.go_on_from(CheckpointFile::open(&checkpoint)?, accept)?;
        }
        // The file says what is trained on, whatever has become of it.
        run.folder.write_split(&run.setup.split_to_keep())?;
        if *run.config() != before {
            run.folder.write_config(run.config())?;
        }
        Ok(run)
    }

    /// Takes the state of a checkpoint, if it is of the same training.
    fn go_on_from(&mut self, checkpoint: CheckpointFile, accept: bool) -> Result<(), Error> {
        let (began, epoch) = (checkpoint.origin().clone(), checkpoint.epoch());
        let source = &self.origin.config.data.source;
        if began.fingerprint != self.origin.fingerprint {
            let problem = format!("was started with {source}, and these are other data");
            return Err(self.folder.problem(&problem));
        }
        let mut before = began.config;
        // To go on for longer is no change to what was done.
        let epochs = &mut before.training.epochs;
        *epochs = self.origin.config.training.epochs.max(*epochs);
        let changes = before.changes(&self.origin.config);
        if !accept && !changes.is_empty() {
            let changes: Vec<String> = changes.iter().map(ToString::to_string).collect();
            let path = self.folder.file(RunFolder::CONFIG);
            return Err(Error::EditedConfig { path, changes: changes.join(", ") });
        }
        if began.split != self.origin.split {
            let now = &self.setup.split;
            let moved = self.folder.split()?.map_or(0, |before| now.moved(&before));
            return Err(self.folder.problem(&format!(
                "was started with another split of {source}: {moved} {} are in another split now",
                now.level.plural()
            )));
        }
        let keeps_best = changes.iter().all(|change| keeps_scores(&change.path));
        self.origin.changes = began.changes;
        let changed = changes.into_iter().map(|change| EpochChange { epoch, change });
        self.origin.changes.extend(changed);
        let (model, graphs) = (&self.setup.model, self.setup.data.training_graphs());
        let checkpoint = match graphs.across() {
            None => checkpoint.read(model, graphs.nodes())?,
            Some(share) => checkpoint.read_parts(model, share)?,
        };
        let mut state = checkpoint.state;
        if !keeps_best {
            (state.best, state.since_best) = (None, 0);
        }
        self.from = Some((state, checkpoint.seconds));
        Ok(())
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

    /// The same, on which all ranks work together; it ends with the same bits as on one. Ranks other than the first
    /// [follow](Self::follow) it, or resume a folder that they [follow](RunFolder::following).
    #[must_use]
    pub fn shared_by(mut self, communicator: &Arc<dyn Communicator>) -> Self {
        self.setup.data = self.setup.data.shared_by(communicator);
        self
    }

    /// The same, where another rank has created the folder, of a graph in parts to whose checkpoints this one adds.
    #[must_use]
    pub fn in_folder(mut self, folder: &Path) -> Self {
        if !self.folder.writes() {
            self.folder = RunFolder::followed(folder);
        }
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
        &self.origin.config
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
        let Self { folder, origin, dataset, setup, interval, .. } = &self;
        let mut trainer = Trainer::new(setup.plan.clone(), &setup.model, &setup.data)?;
        let mut seconds = 0.0;
        if let Some((state, before)) = from {
            seconds = before;
            trainer = trainer.resume(state)?;
        }
        let at = (epoch, seconds);
        let share = setup.data.training_graphs().across();
        let mut watch = Watch::new((folder, share), origin, *interval, at, observer)?;
        let trained = trainer.run(&mut watch)?;
        let (epochs, seconds) = watch.finish()?;

        let weights = trained.weights.clone();
        let saved = SavedModel::new(setup, &origin.config, dataset.name(), trained.epoch, weights);
        if folder.writes() {
            saved.write(&folder.file(RunFolder::MODEL))?;
        }
        let metrics = folder.metrics()?;
        let mut tell = |stage| observer.step(&StepProgress::after(trained.epoch, stage));
        // Whoever interrupts a run does not want to wait for more.
        let baseline = (self.baseline && share.is_none() && trained.reason != StopReason::Stopped)
            .then(|| {
                tell(Stage::Baseline);
                let (seed, budget) = (origin.config.training.seed, Some(Baseline::SMALL_BUDGET));
                Baseline { seed, budget, ..Baseline::default() }.train(&setup.data)
            });
        tell(Stage::FinalEvaluation);
        let step = StepProgress::after(trained.epoch, Stage::FinalEvaluation);
        let baseline = baseline.flatten();
        let outcome =
            Outcome { origin, dataset, setup, saved, trained, metrics, epochs, seconds, baseline };
        let mut tell = |progress| observer.step(&step.with_inference(progress));
        let (mut record, items) = RunRecord::new(&outcome, &mut tell)?;
        record.versions.commit = self.commit.clone().or(record.versions.commit);
        folder.write_items(&items)?;
        folder.write_record(&record)?;
        folder.log()?.line(&record.last_line())?;
        Ok(record)
    }
}

/// Whether weights have the scores that they had before this setting changed, so that later ones can be compared with them.
fn keeps_scores(path: &str) -> bool {
    let scores = ["inference", "monitor", "class-weights", "weighing", "standardize"];
    let of_training = path.strip_prefix("training.").and_then(|path| path.split('.').next());
    of_training.is_some_and(|name| !scores.contains(&name))
}

#[cfg(test)]
mod tests;
