//! Hyperparameter search by successive halving: all trials train for a fraction of their epochs, and
//! the better ones continue.
//!
//! A [`Space`](crate::experiment::search::Space) says what to choose from, a
//! [`Search`](crate::experiment::search::Search) trains the trials side by side in a
//! [`ResultFolder`](crate::experiment::ResultFolder), and the
//! [`SearchRecord`](crate::experiment::search::SearchRecord) ranks them by the validation split. The
//! test split is not used; only the winner is evaluated on it, at the end. A trial that continues, or
//! was interrupted, has the same bits as a run from scratch.

mod budget;
mod record;
mod rounds;
mod space;

pub use budget::Budget;
pub use record::{RankedTrial, SearchRecord};
pub use rounds::Round;
pub use space::Space;

use std::path::PathBuf;
use std::time::Instant;

use super::observer::{ExperimentObserver, TrialKind, TrialName, Watched};
use super::result_folder::ResultFolder;
use super::run::RunFolder;
use super::shared_work::{Item, SharedWork};
use super::trial::{Trial, TrialFiles, TrialRecord, test_value};
use crate::data::{Dataset, Split};
use crate::registry::Registry;
use crate::run::{RunConfig, SavedModel, Setup, fingerprint, read_file, write_file};
use crate::train::SplitName;
use crate::{Error, Place};
use record::differences;
use rounds::rounds;

/// The budget and the schedule of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchOptions {
    /// Number of trials or time budget; none: the whole grid.
    pub budget: Option<Budget>,
    /// Successive halving: 1 in this many trials continues to this many times the epochs; 1 disables it.
    pub halving: usize,
    /// Minimum number of epochs of the first round.
    pub min_epochs: usize,
}

impl Default for SearchOptions {
    fn default() -> Self {
        Self { budget: None, halving: 3, min_epochs: 20 }
    }
}

/// A search that is ready to run.
#[derive(Clone, Debug)]
pub struct Search<'a> {
    /// What the trials have in common.
    config: RunConfig,
    trials: Vec<RunConfig>,
    dataset: &'a Dataset,
    split: Split,
    options: SearchOptions,
    rounds: Vec<Round>,
    registry: Registry<f32>,
}

/// The file of the record.
const RESULT: &str = "result.json";

impl<'a> Search<'a> {
    /// The settings of the winner, in the folder.
    pub const BEST: &'static str = "best.toml";

    /// A search of a space; `config` is what its trials have in common, which includes the
    /// [settings of the space](Space::settings), and its seed draws them.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] when a trial has no usable settings; [`Error::Mismatch`] when there is none, or
    /// no validation split to choose by.
    pub fn new(
        dataset: &'a Dataset,
        config: RunConfig,
        space: &Space,
        options: SearchOptions,
    ) -> Result<Self, Error> {
        Self::with_registry(&Registry::default(), dataset, config, space, options)
    }

    /// The same with the functions in `registry`.
    ///
    /// # Errors
    ///
    /// Those of [`new`](Self::new).
    pub fn with_registry(
        registry: &Registry<f32>,
        dataset: &'a Dataset,
        config: RunConfig,
        space: &Space,
        options: SearchOptions,
    ) -> Result<Self, Error> {
        let most = match options.budget {
            Some(Budget::Trials(trials)) => Some(trials),
            _ => None,
        };
        let trials = space.trials(&config, most, config.training.seed)?;
        let first =
            trials.first().ok_or_else(|| Error::Mismatch("the search space is empty".into()))?;
        let Setup { split, data, .. } = Setup::with_registry(registry, first, dataset, None)?;
        if !data.has(SplitName::Val) {
            return Err(Error::Mismatch(format!(
                "{} has no validation split with targets, which a search requires",
                dataset.name()
            )));
        }
        let SearchOptions { halving, min_epochs, .. } = options;
        let rounds = rounds(trials.len(), config.training.epochs, halving, min_epochs);
        let registry = registry.clone();
        Ok(Self { config, trials, dataset, split, options, rounds, registry })
    }

    /// The configurations that are tried.
    pub fn trials(&self) -> &[RunConfig] {
        &self.trials
    }

    /// Whether they are all that the space has, although the budget is for more.
    pub fn exhausts_space(&self) -> bool {
        matches!(self.options.budget, Some(Budget::Trials(most)) if self.trials.len() < most)
    }

    /// The split that they are compared on.
    pub fn split(&self) -> &Split {
        &self.split
    }

    /// How far how many of them go.
    pub fn rounds(&self) -> &[Round] {
        &self.rounds
    }

    /// What its results depend on: a folder holds the results of one plan.
    pub fn plan(&self) -> serde_json::Value {
        serde_json::json!({
            "data": fingerprint(self.dataset),
            "splits": [self.split.fingerprint()],
            "trials": self.trials,
            "halving": self.options.halving,
            "min-epochs": self.options.min_epochs,
        })
    }

    /// Trains all trials, round by round, and saves the winner; none when the observer stopped it.
    /// Trials already completed in the folder are not repeated.
    ///
    /// A process with a shard of the work begins a round with its own trials. The next round needs all of them: it does those
    /// that nobody works on, and waits for the others.
    ///
    /// # Errors
    ///
    /// Those of training; [`Error::Io`] when results cannot be kept; [`Error::Mismatch`] when the time
    /// was up before a trial was done.
    pub fn run(
        &self,
        folder: &ResultFolder,
        observer: &dyn ExperimentObserver,
    ) -> Result<Option<SearchRecord>, Error> {
        let watched = Watched::new(observer);
        let work = Work { search: self, folder, watched: &watched, begun: Instant::now() };
        let progress = work.rounds(true)?;
        if !progress.missing.is_empty() && watched.stopped() {
            return Ok(None);
        }
        self.collect(folder)
    }

    /// The trials that the first incomplete round lacks, and the number of the round, from 1.
    ///
    /// # Errors
    ///
    /// [`Error::Io`], [`Error::Input`] when the file of a trial is damaged.
    pub fn missing(&self, folder: &ResultFolder) -> Result<(Vec<TrialName>, usize), Error> {
        let work =
            Work { search: self, folder, watched: &Watched::new(&()), begun: Instant::now() };
        let Progress { missing, round, .. } = work.rounds(false)?;
        Ok((missing.into_iter().map(name).collect(), round))
    }

    /// Ranks the trials and saves the winner without training any; none while one is missing, unless the budget is a time.
    ///
    /// # Errors
    ///
    /// [`Error::Io`], [`Error::Input`] when the file of a trial is damaged; [`Error::Mismatch`] when the time was up
    /// before a trial was done.
    pub fn collect(&self, folder: &ResultFolder) -> Result<Option<SearchRecord>, Error> {
        let _alone = folder.alone()?;
        let work =
            Work { search: self, folder, watched: &Watched::new(&()), begun: Instant::now() };
        let Progress { ranked, missing, .. } = work.rounds(false)?;
        let complete = missing.is_empty();
        if !complete && !matches!(self.options.budget, Some(Budget::Time(_))) {
            return Ok(None);
        }
        let record = work.finish(ranked, complete)?;
        if complete {
            (0..self.trials.len()).for_each(|trial| work.forget(trial));
        }
        Ok(Some(record))
    }
}

/// How far a search has come.
struct Progress {
    /// All trials, the best of the last round first.
    ranked: Vec<RankedTrial>,
    /// What the first incomplete round lacks.
    missing: Vec<usize>,
    /// The number of the last round that was looked at, from 1.
    round: usize,
}

/// A search that is running.
struct Work<'a> {
    search: &'a Search<'a>,
    folder: &'a ResultFolder,
    watched: &'a Watched<'a>,
    begun: Instant,
}

impl Work<'_> {
    fn late(&self) -> bool {
        match self.search.options.budget {
            Some(Budget::Time(time)) => self.begun.elapsed() >= time,
            _ => false,
        }
    }

    /// Goes through the rounds, up to the first one that is not complete: when `train`ing, because it was stopped or the time
    /// is up.
    fn rounds(&self, train: bool) -> Result<Progress, Error> {
        let mut alive: Vec<usize> = (0..self.search.trials.len()).collect();
        let mut ranked: Vec<RankedTrial> = vec![];
        for (number, round) in (1..).zip(&self.search.rounds) {
            alive.split_off(round.trials.min(alive.len())).into_iter().for_each(|trial| {
                self.forget(trial);
            });
            if train {
                self.complete(&alive, round.share, &ranked)?;
            }
            let (done, missing): (Vec<usize>, Vec<usize>) =
                alive.iter().partition(|&&trial| self.folder.has(&file(trial, round.share)));
            let mut now: Vec<RankedTrial> = done
                .into_iter()
                .map(|trial| self.read(trial, round.share))
                .collect::<Result<_, Error>>()?;
            // The sort is stable: of equals, the first goes on, whatever the number of threads.
            now.sort_by(|a, b| b.value().total_cmp(&a.value()));
            if !now.is_empty() {
                alive = now.iter().map(|done| done.trial - 1).collect();
                // Behind those that went on come those that did not.
                ranked.retain(|before| !now.iter().any(|now| now.trial == before.trial));
                now.append(&mut ranked);
                ranked = now;
            }
            if !missing.is_empty() {
                return Ok(Progress { ranked, missing, round: number });
            }
        }
        Ok(Progress { ranked, missing: vec![], round: self.search.rounds.len() })
    }

    /// A round: no process can begin the next one before all of its trials are done.
    fn complete(&self, alive: &[usize], share: usize, before: &[RankedTrial]) -> Result<(), Error> {
        let item = |&trial: &usize| Item {
            name: name(trial),
            lock: format!("trial-{:05}", trial + 1),
            result: file(trial, share),
        };
        let items: Vec<Item> = alive.iter().map(item).collect();
        let Self { folder, watched, .. } = self;
        let work = SharedWork { folder, items: &items, watched, barrier: true };
        work.complete(
            &|| watched.stopped() || self.late(),
            |place| self.train(alive[place], share, before),
            |place| self.read(alive[place], share).map(|ranked| watched.observer.ranked(&ranked)),
        )
    }

    /// A trial, from where the round before has left it.
    fn train(&self, trial: usize, share: usize, before: &[RankedTrial]) -> Result<(), Error> {
        let Search { trials, dataset, split, registry, .. } = self.search;
        let config = &trials[trial];
        let epochs = config.training.epochs.div_ceil(share);
        let before = before.iter().find(|before| before.trial == trial + 1);
        if let Some(ended) = before.filter(|before| before.result.stop_reason.is_some()) {
            return self.save(trial, share, epochs, &ended.result);
        }
        let split = Split { test: vec![], ..split.clone() };
        let setup = Setup::with_registry(registry, config, dataset, Some(split))?;
        let files = &self.files(trial);
        let (name, keeps_outputs) = (name(trial), false);
        let job = Trial { name, config, setup: &setup, files, keeps_outputs };
        let Some(done) = job.train(epochs, self.watched)? else { return Ok(()) };
        let (epoch, weights) = (done.record.best_epoch, done.weights.clone());
        let model = SavedModel::new(&setup, config, dataset.name(), epoch, weights)
            .with_split(self.search.split.clone());
        model.write(&self.model(trial))?;
        self.save(trial, share, epochs, &done.record)?;
        job.keep(&done)
    }

    fn save(
        &self,
        trial: usize,
        share: usize,
        epochs: usize,
        result: &TrialRecord,
    ) -> Result<(), Error> {
        let settings = differences(&self.search.config, &self.search.trials[trial]);
        let ranked = RankedTrial { trial: trial + 1, epochs, settings, result: result.clone() };
        self.folder.save(&file(trial, share), &ranked)?;
        self.watched.observer.ranked(&ranked);
        Ok(())
    }

    /// The result of a trial that is done.
    fn read(&self, trial: usize, share: usize) -> Result<RankedTrial, Error> {
        let name = file(trial, share);
        let ranked: RankedTrial = self.folder.read(&name)?;
        if ranked.trial == trial + 1 {
            return Ok(ranked);
        }
        let problem = format!("it is the result of trial {}, not of this one", ranked.trial);
        Err(Place::file(&self.folder.file(&name)).error(problem))
    }

    fn files(&self, trial: usize) -> TrialFiles {
        TrialFiles::new(self.folder.path(), &format!("trial-{:05}", trial + 1))
    }

    fn model(&self, trial: usize) -> PathBuf {
        self.folder.file(&format!("trial-{:05}.model.safetensors", trial + 1))
    }

    /// A trial that is not going on needs no checkpoint and no model.
    fn forget(&self, trial: usize) {
        self.files(trial).remove();
        // A file that cannot be removed does no harm.
        let _ = std::fs::remove_file(self.model(trial));
    }

    /// Saves the winner, and evaluates it on the test split, once.
    fn finish(&self, ranked: Vec<RankedTrial>, complete: bool) -> Result<SearchRecord, Error> {
        let best = ranked.first().ok_or_else(|| {
            Error::Mismatch("the time budget was used up before a trial finished".into())
        })?;
        let trial = best.trial - 1;
        let config = &self.search.trials[trial];
        write_file(&self.folder.file(Search::BEST), config.to_toml().as_bytes())?;
        let path = self.model(trial);
        let kept = self.folder.file(RunFolder::MODEL);
        if path.exists() {
            write_file(&kept, &read_file(&path)?)?;
        }
        let mut saved = SavedModel::read_with(&self.search.registry, &kept)?;
        // Its trial did not see the test split.
        saved.members = Some(self.search.split.clone());
        saved.write(&kept)?;
        let test = if self.search.split.test.is_empty() {
            None
        } else {
            let Search { registry, dataset, split, .. } = self.search;
            let setup = Setup::with_registry(registry, config, dataset, Some(split.clone()))?;
            test_value(&setup, saved)?
        };
        let record = SearchRecord {
            metric: best.result.metric,
            trial: best.trial,
            val: best.result.val_value,
            test_of_the_winner: test,
            complete,
            ranked,
        };
        self.folder.save(RESULT, &record)?;
        Ok(record)
    }
}

fn name(trial: usize) -> TrialName {
    TrialName { kind: TrialKind::Trial, number: trial as u64 + 1 }
}

fn file(trial: usize, share: usize) -> String {
    format!("trial-{:05}-of-{share}.json", trial + 1)
}

#[cfg(test)]
mod tests;
