//! What training tells while it runs.

use std::cell::RefCell;
use std::fmt;
use std::ops::ControlFlow;

use super::{EpochReport, TrainerState};
use crate::Scalar;
use crate::graph::Share;
use crate::inference::InferenceProgress;
use crate::lagrangian::{Evaluation, Objective, Request, Variables};

/// Observes training, and may stop it.
pub trait Observer<S: Scalar = f32> {
    /// Called after every epoch.
    fn epoch(&mut self, report: &EpochReport, state: &TrainerState<S>) -> ControlFlow<()>;

    /// Whether `epoch` is going to read the state that comes with this report. If it is not, and ranks share the training graphs, the
    /// state has rows of the nodes that this rank owns only. Not asked where there is one rank and no graph in parts.
    fn reads_state(&mut self, report: &EpochReport) -> bool {
        let _ = report;
        true
    }

    /// Called where there are several ranks, or a graph in parts: whether the observer of any of them is going to read this state.
    fn all_read_state(&mut self, read: bool) {
        let _ = read;
    }

    /// Called when training stops before its last epoch, because an observer of any rank asks for it or out of patience, with the
    /// state of all nodes, or of own ones of a graph in parts.
    fn stopped(&mut self, state: &TrainerState<S>) {
        let _ = state;
    }

    /// Called within an epoch: after every pass over a batch, and within every part of an evaluation. It
    /// does nothing by default.
    fn step(&mut self, step: &StepProgress) {
        let _ = step;
    }
}

/// A function as an observer.
impl<S: Scalar, F: FnMut(&EpochReport, &TrainerState<S>) -> ControlFlow<()>> Observer<S> for F {
    fn epoch(&mut self, report: &EpochReport, state: &TrainerState<S>) -> ControlFlow<()> {
        self(report, state)
    }
}

/// No observer.
impl<S: Scalar> Observer<S> for () {
    fn epoch(&mut self, _: &EpochReport, _: &TrainerState<S>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// How far an epoch has come.
///
/// In text: `update 3 of 40, pass 2`, or `evaluating, part 2 of 3, iteration 57`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepProgress {
    /// The epoch, counted from 1.
    pub epoch: usize,
    /// What is being done.
    pub stage: Stage,
    /// Which one of `total`, counted from 1: an update, or a part of an evaluation.
    pub number: usize,
    /// How many there are.
    pub total: usize,
    /// Number of passes of the current update over its batch so far; solvers differ in how many they make.
    pub passes: usize,
    /// How far the states of an evaluation are, once they are being searched.
    pub inference: Option<InferenceProgress>,
}

/// The stages of a training run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stage {
    /// Weights, states and multipliers are updated.
    Update,
    /// The weights are evaluated on converged states.
    Evaluation,
    /// The baseline, an MLP without edges, is trained.
    Baseline,
    /// The model of the best epoch is evaluated on all graphs.
    FinalEvaluation,
}

impl StepProgress {
    /// A stage after the last epoch, which has no parts.
    pub(crate) fn after(epoch: usize, stage: Stage) -> Self {
        Self { epoch, stage, number: 1, total: 1, passes: 0, inference: None }
    }

    /// The same, with how far the states are.
    pub(crate) fn with_inference(self, inference: InferenceProgress) -> Self {
        Self { inference: Some(inference), ..self }
    }
}

impl fmt::Display for StepProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, total, passes, .. } = self;
        match self.stage {
            Stage::Update if *total == 1 => write!(f, "pass {passes}"),
            Stage::Update => write!(f, "update {number} of {total}, pass {passes}"),
            Stage::Evaluation if *total == 1 => f.write_str("evaluating"),
            Stage::Evaluation => write!(f, "evaluating, part {number} of {total}"),
            Stage::Baseline => f.write_str("training the MLP without edges"),
            Stage::FinalEvaluation => f.write_str("evaluating the best model on all graphs"),
        }?;
        self.inference.map_or(Ok(()), |inference| write!(f, ", {inference}"))
    }
}

/// An objective that tells an observer of every evaluation.
pub(super) struct Observed<'a, S: Scalar> {
    inner: &'a dyn Objective<S>,
    /// What the observer is told next.
    next: RefCell<(StepProgress, &'a mut dyn Observer<S>)>,
}

impl<'a, S: Scalar> Observed<'a, S> {
    pub(super) fn new(
        inner: &'a dyn Objective<S>,
        step: StepProgress,
        observer: &'a mut dyn Observer<S>,
    ) -> Self {
        Self { inner, next: RefCell::new((step, observer)) }
    }
}

impl<S: Scalar> Objective<S> for Observed<'_, S> {
    fn share(&self) -> Option<&Share> {
        self.inner.share()
    }

    fn evaluate(
        &self,
        at: &Variables<S>,
        request: Request,
        gradient: &mut Variables<S>,
    ) -> Evaluation {
        let evaluation = self.inner.evaluate(at, request, gradient);
        let (step, observer) = &mut *self.next.borrow_mut();
        step.passes += 1;
        observer.step(step);
        evaluation
    }
}
