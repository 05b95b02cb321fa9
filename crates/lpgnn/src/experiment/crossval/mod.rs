//! Cross-validation: several runs whose mean is the result, over folds of the data or seeds of one split.
//!
//! A [`Division`](crate::experiment::crossval::Division) makes
//! [`Fold`](crate::experiment::crossval::Fold)s, a [`Crossval`](crate::experiment::crossval::Crossval)
//! trains them in parallel in a [`ResultFolder`](crate::experiment::ResultFolder), and the
//! [`CrossvalReport`](crate::experiment::crossval::CrossvalReport) has mean ± std by a named
//! [`Protocol`](crate::evaluate::Protocol). Completed folds are not repeated; an interrupted one
//! resumes bit-identically.

mod fold;
mod report;

pub use fold::{Division, Fold, FoldRecord};
pub use report::CrossvalReport;

use super::ensemble::ensemble;
use super::majority::majority_accuracy;
use super::observer::{ExperimentObserver, TrialName, Watched};
use super::result_folder::ResultFolder;
use super::shared_work::{Item, SharedWork};
use super::stages::Stage;
use super::trial::{Done, Trial, TrialFiles, TrialRecord};
use crate::Error;
use crate::data::Dataset;
use crate::evaluate::{Baseline, Protocol};
use crate::graph::Level;
use crate::registry::Registry;
use crate::run::{RunConfig, Setting, Setup, fingerprint, notes};
use crate::train::{Monitor, SplitName, check_monitor};

/// A cross-validation that is ready to run.
#[derive(Clone, Debug)]
pub struct Crossval<'a> {
    registry: Registry<f32>,
    dataset: &'a Dataset,
    protocol: Protocol,
    folds: Vec<Fold>,
    /// How many models of every fold are trained one after the other.
    stages: usize,
    /// How many trainings of every fold are averaged.
    members: usize,
}

/// The file of the report.
const RESULT: &str = "result.json";

impl<'a> Crossval<'a> {
    /// A cross-validation on these folds.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`] when there is nothing to train, or nothing to test a fold on, and what is wrong with the
    /// first candidate that does not fit the data.
    pub fn new(dataset: &'a Dataset, protocol: Protocol, folds: Vec<Fold>) -> Result<Self, Error> {
        Self::with_registry(&Registry::default(), dataset, protocol, folds)
    }

    /// The same with the functions in `registry`.
    ///
    /// # Errors
    ///
    /// Those of [`new`](Self::new).
    pub fn with_registry(
        registry: &Registry<f32>,
        dataset: &'a Dataset,
        protocol: Protocol,
        folds: Vec<Fold>,
    ) -> Result<Self, Error> {
        let first = folds.first().filter(|_| folds.iter().all(|fold| !fold.candidates.is_empty()));
        let first = first.ok_or_else(|| Error::Mismatch("there is nothing to train".into()))?;
        for candidate in &first.candidates {
            let setup =
                Setup::with_registry(registry, candidate, dataset, Some(first.split.clone()))?;
            let monitor = candidate.training.monitor;
            if monitor.compares_trainings() {
                check_monitor(monitor, &setup.data, SplitName::Test)?;
            }
        }
        let task = Level::of_task(first.candidates[0].data.task, dataset)?;
        for Fold { name, split, .. } in &folds {
            split.check(dataset.nodes(), dataset.graphs())?;
            let targets = task.targets(dataset);
            let known = |&row: &usize| targets.is_some_and(|targets| targets.is_known(row));
            if !split.rows(&split.test, task, dataset).iter().any(known) {
                return Err(Error::Mismatch(format!(
                    "no {} of the test split of {name} has a target",
                    task.as_str()
                )));
            }
        }
        Ok(Self { registry: registry.clone(), dataset, protocol, folds, stages: 1, members: 1 })
    }

    /// The same with a deep network that is trained layer by layer, in so many stages, at least one. In each, a model like the
    /// candidate is trained for all its epochs, where nodes have, behind their features, `f_a(x)` of the stage below, which
    /// does not move any more. The last one counts.
    #[must_use]
    pub fn with_stages(self, stages: usize) -> Self {
        Self { stages: stages.max(1), ..self }
    }

    /// The same with ensembles of so many members, at least one: every candidate is trained with its seed and those that follow it,
    /// and what is compared and reported is what the mean of the members' predictions is worth.
    #[must_use]
    pub fn with_ensemble(self, members: usize) -> Self {
        Self { members: members.max(1), ..self }
    }

    /// Its folds.
    pub fn folds(&self) -> &[Fold] {
        &self.folds
    }

    /// What whoever trains these folds by these settings should know before, as [`notes`] has it: a sentence each.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`] when there are no targets.
    pub fn notes(&self, config: &RunConfig, settings: &[Setting]) -> Result<Vec<String>, Error> {
        let mut found: Vec<(String, usize)> = vec![];
        for fold in &self.folds {
            for note in notes(config, settings, self.dataset, &fold.split)? {
                match found.iter_mut().find(|(known, _)| *known == note) {
                    Some((_, count)) => *count += 1,
                    None => found.push((note, 1)),
                }
            }
        }
        let all = self.folds.len();
        let text = |(note, count): (String, usize)| {
            if count == all { note } else { format!("in {count} of {all} folds, {note}") }
        };
        Ok(found.into_iter().map(text).collect())
    }

    /// What its results depend on: a folder holds the results of one plan.
    pub fn plan(&self) -> serde_json::Value {
        let mut plan = serde_json::json!({
            "data": fingerprint(self.dataset),
            "protocol": self.protocol,
            "candidates": self.folds.first().map(|fold| &fold.candidates),
            "splits": self.folds.iter().map(|fold| fold.split.fingerprint()).collect::<Vec<_>>(),
        });
        if self.stages > 1 {
            plan["stages"] = self.stages.into();
        }
        if self.members > 1 {
            plan["ensemble"] = self.members.into();
        }
        plan
    }

    /// Trains the folds that are left of this process's share, in parallel, and reports on all folds; none when the observer
    /// stopped it, and then it can be run again to continue, or when folds of other shards are missing.
    ///
    /// # Errors
    ///
    /// Those of training; [`Error::Io`] when results cannot be kept.
    pub fn run(
        &self,
        folder: &ResultFolder,
        observer: &dyn ExperimentObserver,
    ) -> Result<Option<CrossvalReport>, Error> {
        let watched = Watched::new(observer);
        let items: Vec<Item> = self.folds.iter().map(Fold::item).collect();
        let work = SharedWork { folder, items: &items, watched: &watched, barrier: false };
        work.complete(
            &|| watched.stopped(),
            |k| self.complete(&self.folds[k], folder, &watched),
            |k| folder.read(&items[k].result).map(|record| observer.fold(&record)),
        )?;
        self.collect(folder)
    }

    /// The folds that nobody has completed yet.
    pub fn missing(&self, folder: &ResultFolder) -> Vec<TrialName> {
        let missing = self.folds.iter().filter(|fold| !folder.has(&fold.file()));
        missing.map(|fold| fold.name).collect()
    }

    /// Reports on all folds without training any; none while one is missing.
    ///
    /// # Errors
    ///
    /// [`Error::Io`], [`Error::Input`] when the file of a fold is damaged.
    pub fn collect(&self, folder: &ResultFolder) -> Result<Option<CrossvalReport>, Error> {
        if !self.missing(folder).is_empty() {
            return Ok(None);
        }
        let _alone = folder.alone()?;
        let records = self.records(folder)?;
        // A process that was killed may have left some behind.
        self.folds.iter().for_each(|fold| self.forget(fold, folder));
        let seed = self.folds[0].candidates[0].training.seed;
        let report = CrossvalReport::new(self.dataset.name(), self.protocol, seed, &records)?;
        folder.save(RESULT, &report)?;
        Ok(Some(report))
    }

    /// The records of all folds, once they are done.
    ///
    /// # Errors
    ///
    /// [`Error::Io`], [`Error::Input`] when a fold is not done or its file is damaged.
    pub fn records(&self, folder: &ResultFolder) -> Result<Vec<FoldRecord>, Error> {
        self.folds.iter().map(|fold| folder.read(&fold.file())).collect()
    }

    /// Does a fold.
    fn complete(
        &self,
        fold: &Fold,
        folder: &ResultFolder,
        watched: &Watched<'_>,
    ) -> Result<(), Error> {
        let Some(record) = self.train(fold, folder, watched)? else { return Ok(()) };
        folder.save(&fold.file(), &record)?;
        watched.observer.fold(&record);
        self.forget(fold, folder);
        Ok(())
    }

    /// The best model, the baseline and the majority class; none when the observer stopped it.
    fn train(
        &self,
        fold: &Fold,
        folder: &ResultFolder,
        watched: &Watched<'_>,
    ) -> Result<Option<FoldRecord>, Error> {
        let mut best: Option<(usize, TrialRecord)> = None;
        for candidate in 0..fold.candidates.len() {
            let Some(record) = self.train_members(fold, candidate, folder, watched)? else {
                return Ok(None);
            };
            let better = |before: &TrialRecord| record.val_value > before.val_value;
            if best.as_ref().is_none_or(|(_, before)| better(before)) {
                best = Some((candidate, record));
            }
        }
        let (candidate, trial) =
            best.ok_or_else(|| Error::Mismatch("there is nothing to train".into()))?;
        let config = &fold.candidates[candidate];
        let setup = self.setup(config, fold)?;
        let (seed, metric) = (config.training.seed, trial.metric);
        let baseline = Baseline { seed, metric, ..Baseline::default() };
        let baseline = baseline.train(&setup.data).unwrap_or_default();
        let majority = match metric {
            Monitor::Auto => majority_accuracy(self.dataset, &setup),
            _ => None,
        };
        Ok(Some(FoldRecord::new(fold.name, candidate, trial, &baseline, majority)))
    }

    /// The members of a candidate as one, or the only one; none when the observer stopped it.
    fn train_members(
        &self,
        fold: &Fold,
        candidate: usize,
        folder: &ResultFolder,
        watched: &Watched<'_>,
    ) -> Result<Option<TrialRecord>, Error> {
        if self.members == 1 {
            let only = Member { fold, candidate, number: 1 };
            return self.train_stages(only, folder, watched);
        }
        let mut records = vec![];
        for number in 1..=self.members {
            let member = Member { fold, candidate, number };
            if !folder.has(&member.file()) {
                // One whose last epoch is done does not tell that it was stopped.
                if watched.stopped() {
                    return Ok(None);
                }
                let Some(record) = self.train_stages(member, folder, watched)? else {
                    return Ok(None);
                };
                folder.save(&member.file(), &record)?;
            }
            records.push(folder.read(&member.file())?);
        }
        ensemble(&self.setup(&fold.candidates[candidate], fold)?, &records).map(Some)
    }

    /// The last stage of a member, on those below; none when the observer stopped it.
    fn train_stages(
        &self,
        member: Member<'_>,
        folder: &ResultFolder,
        watched: &Watched<'_>,
    ) -> Result<Option<TrialRecord>, Error> {
        let (fold, config) = (member.fold, &member.config());
        let train = |setup: &Setup, stage: usize| {
            let (files, keeps_outputs) = (member.files(stage, folder), self.members > 1);
            let trial = Trial { name: fold.name, config, setup, files: &files, keeps_outputs };
            trial.train(config.training.epochs, watched)
        };
        let (mut setup, mut seconds) = (self.setup(config, fold)?, 0.0);
        for number in 1..self.stages {
            let kept = member.stage_file(number);
            if !folder.has(&kept) {
                let Some(done) = train(&setup, number)? else { return Ok(None) };
                folder.save(&kept, &Stage::new(&done.weights, done.record.seconds))?;
            }
            let stage: Stage = folder.read(&kept)?;
            setup = stage.above(setup, &self.registry, config)?;
            seconds += stage.seconds;
        }
        let Some(Done { record, .. }) = train(&setup, self.stages)? else { return Ok(None) };
        Ok(Some(TrialRecord { seconds: seconds + record.seconds, ..record }))
    }

    /// A fold that is done needs neither checkpoints, nor members, nor the stages below the last.
    fn forget(&self, fold: &Fold, folder: &ResultFolder) {
        // A file that cannot be removed does no harm.
        let remove = |file: String| drop(std::fs::remove_file(folder.file(&file)));
        for candidate in 0..fold.candidates.len() {
            for number in 1..=self.members {
                let member = Member { fold, candidate, number };
                for stage in 1..=self.stages {
                    member.files(stage, folder).remove();
                    remove(member.stage_file(stage));
                }
                remove(member.file());
            }
        }
    }

    fn setup(&self, config: &RunConfig, fold: &Fold) -> Result<Setup, Error> {
        Setup::with_registry(&self.registry, config, self.dataset, Some(fold.split.clone()))
    }
}

/// A training of a candidate: the first with its seed, the others with those that follow.
#[derive(Clone, Copy)]
struct Member<'a> {
    fold: &'a Fold,
    candidate: usize,
    /// Counted from 1.
    number: usize,
}

impl Member<'_> {
    fn config(self) -> RunConfig {
        let mut config = self.fold.candidates[self.candidate].clone();
        config.training.seed = config.training.seed.wrapping_add(self.number as u64 - 1);
        config
    }

    /// Where the trial of a stage is kept until it is done.
    fn files(self, stage: usize, folder: &ResultFolder) -> TrialFiles {
        let name = self.name();
        let of_stage = if stage == 1 { name } else { format!("{name}.stage-{stage}") };
        TrialFiles::new(folder.path(), &of_stage)
    }

    /// The file of a stage that is done. Its name has a dot more than that of a fold, as that of a member has.
    fn stage_file(self, stage: usize) -> String {
        format!("{}.stage-{stage}.json", self.name())
    }

    /// The file of a member of several that is done.
    fn file(self) -> String {
        format!("{}.done.json", self.name())
    }

    fn name(self) -> String {
        let Self { fold, candidate, number } = self;
        let name =
            format!("{}-{:02}-{:05}", fold.name.kind.as_str(), fold.name.number, candidate + 1);
        if number == 1 { name } else { format!("{name}.member-{number}") }
    }
}

#[cfg(test)]
mod tests;
