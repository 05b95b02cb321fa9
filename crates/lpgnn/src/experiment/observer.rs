use std::fmt;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use super::crossval::FoldRecord;
use super::search::RankedTrial;
use crate::train::{EpochReport, StepProgress};

/// Observes an experiment of many trials that run in parallel. All methods do nothing by default.
pub trait ExperimentObserver: Sync {
    /// A trial begins, or continues behind epoch `at`, to train up to epoch `until`. What is returned
    /// watches it, and is dropped when it ends.
    fn trial(&self, name: TrialName, at: usize, until: usize) -> Box<dyn TrialObserver + '_> {
        let _ = (name, at, until);
        Box::new(())
    }

    /// A fold of a cross-validation is done, by this process or by one that was waited for.
    fn fold(&self, fold: &FoldRecord) {
        let _ = fold;
    }

    /// A trial of a search has come to the end of a round.
    fn ranked(&self, trial: &RankedTrial) {
        let _ = trial;
    }

    /// Called again and again while another process works on what this one waits for.
    /// [`ControlFlow::Break`] stops the experiment.
    fn waiting(&self, name: TrialName) -> ControlFlow<()> {
        let _ = name;
        ControlFlow::Continue(())
    }
}

/// Observes one trial.
pub trait TrialObserver {
    /// Called after every epoch. [`ControlFlow::Break`] stops the whole experiment: every trial that
    /// is in progress is saved after its epoch, so that it can be resumed.
    fn epoch(&mut self, report: &EpochReport) -> ControlFlow<()>;

    /// Called within an epoch. It does nothing by default.
    fn step(&mut self, step: &StepProgress) {
        let _ = step;
    }
}

/// No observer.
impl ExperimentObserver for () {}

/// No observer.
impl TrialObserver for () {
    fn epoch(&mut self, _: &EpochReport) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Two observers, either of which may stop the experiment.
impl<A: ExperimentObserver, B: ExperimentObserver> ExperimentObserver for (A, B) {
    fn trial(&self, name: TrialName, at: usize, until: usize) -> Box<dyn TrialObserver + '_> {
        Box::new((self.0.trial(name, at, until), self.1.trial(name, at, until)))
    }

    fn fold(&self, fold: &FoldRecord) {
        self.0.fold(fold);
        self.1.fold(fold);
    }

    fn ranked(&self, trial: &RankedTrial) {
        self.0.ranked(trial);
        self.1.ranked(trial);
    }

    fn waiting(&self, name: TrialName) -> ControlFlow<()> {
        let answers = (self.0.waiting(name), self.1.waiting(name));
        if answers.0.is_break() { answers.0 } else { answers.1 }
    }
}

/// An observer, if there is one.
impl<A: ExperimentObserver> ExperimentObserver for Option<A> {
    fn trial(&self, name: TrialName, at: usize, until: usize) -> Box<dyn TrialObserver + '_> {
        match self {
            Some(observer) => observer.trial(name, at, until),
            None => Box::new(()),
        }
    }

    fn fold(&self, fold: &FoldRecord) {
        if let Some(observer) = self {
            observer.fold(fold);
        }
    }

    fn ranked(&self, trial: &RankedTrial) {
        if let Some(observer) = self {
            observer.ranked(trial);
        }
    }

    fn waiting(&self, name: TrialName) -> ControlFlow<()> {
        self.as_ref().map_or(ControlFlow::Continue(()), |observer| observer.waiting(name))
    }
}

/// Two observers, either of which may stop the experiment.
impl TrialObserver for (Box<dyn TrialObserver + '_>, Box<dyn TrialObserver + '_>) {
    fn epoch(&mut self, report: &EpochReport) -> ControlFlow<()> {
        let answers = (self.0.epoch(report), self.1.epoch(report));
        if answers.0.is_break() { answers.0 } else { answers.1 }
    }

    fn step(&mut self, step: &StepProgress) {
        self.0.step(step);
        self.1.step(step);
    }
}

/// The name of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct TrialName {
    /// Its kind.
    pub kind: TrialKind,
    /// Its number.
    pub number: u64,
}

/// The kind of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TrialKind {
    /// A fold of a cross-validation.
    Fold,
    /// The same split with another seed.
    Seed,
    /// A configuration of a search.
    Trial,
}

impl TrialKind {
    /// `fold`, `seed` or `trial`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fold => "fold",
            Self::Seed => "seed",
            Self::Trial => "trial",
        }
    }
}

impl fmt::Display for TrialName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.as_str(), self.number)
    }
}

/// An observer, and whether it has asked to stop.
pub(super) struct Watched<'a> {
    pub(super) observer: &'a dyn ExperimentObserver,
    stop: AtomicBool,
}

impl<'a> Watched<'a> {
    pub(super) fn new(observer: &'a dyn ExperimentObserver) -> Self {
        Self { observer, stop: AtomicBool::new(false) }
    }

    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    pub(super) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}
