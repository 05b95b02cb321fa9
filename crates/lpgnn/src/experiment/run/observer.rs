use std::fmt;
use std::ops::ControlFlow;

use super::EpochMetrics;
use crate::train::{ModelEvaluation, SplitName, StepProgress};

/// Observes a run, and may stop it.
pub trait RunObserver {
    /// Called after every epoch. [`ControlFlow::Break`] stops the run with a checkpoint, a model and a
    /// record, so that it can be resumed.
    fn epoch(&mut self, progress: &Progress<'_>) -> ControlFlow<()>;

    /// Called within an epoch, and for what is done after the last one. It does nothing by default.
    fn step(&mut self, step: &StepProgress) {
        let _ = step;
    }

    /// Called with every line that is written to the log.
    fn note(&mut self, line: &str) {
        let _ = line;
    }
}

/// No observer.
impl RunObserver for () {
    fn epoch(&mut self, _: &Progress<'_>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Two observers, either of which may stop the run.
impl<A: RunObserver, B: RunObserver> RunObserver for (A, B) {
    fn epoch(&mut self, progress: &Progress<'_>) -> ControlFlow<()> {
        let answers = (self.0.epoch(progress), self.1.epoch(progress));
        if answers.0.is_break() { answers.0 } else { answers.1 }
    }

    fn step(&mut self, step: &StepProgress) {
        self.0.step(step);
        self.1.step(step);
    }

    fn note(&mut self, line: &str) {
        self.0.note(line);
        self.1.note(line);
    }
}

/// An observer, if there is one.
impl<A: RunObserver> RunObserver for Option<A> {
    fn epoch(&mut self, progress: &Progress<'_>) -> ControlFlow<()> {
        self.as_mut().map_or(ControlFlow::Continue(()), |observer| observer.epoch(progress))
    }

    fn step(&mut self, step: &StepProgress) {
        if let Some(observer) = self {
            observer.step(step);
        }
    }

    fn note(&mut self, line: &str) {
        if let Some(observer) = self {
            observer.note(line);
        }
    }
}

/// A function as an observer.
impl<F: FnMut(&Progress<'_>) -> ControlFlow<()>> RunObserver for F {
    fn epoch(&mut self, progress: &Progress<'_>) -> ControlFlow<()> {
        self(progress)
    }
}

/// The progress of a run after an epoch.
///
/// In text: `loss 3.1000  residual 2.0e-4  train 93.1 %  val 91.2 %`.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// The epoch, as `metrics.jsonl` has it.
    pub metrics: &'a EpochMetrics,
    /// The newest evaluation, of this epoch or of an earlier one.
    pub evaluation: Option<&'a ModelEvaluation>,
    /// Total number of epochs.
    pub epochs: usize,
}

impl fmt::Display for Progress<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let report = &self.metrics.report;
        write!(f, "loss {:.4}  residual {:.1e}", report.loss, report.residual_mean)?;
        let splits = self.evaluation.map(|evaluation| &evaluation.parts[..]).unwrap_or_default();
        // The test split is evaluated only at the end.
        for (split, metrics) in splits.iter().filter(|(split, _)| *split != SplitName::Test) {
            write!(f, "  {split} ")?;
            match metrics.accuracy {
                Some(accuracy) => write!(f, "{:.1} %", 100.0 * accuracy)?,
                None => write!(f, "{:.4}", metrics.loss)?,
            }
        }
        Ok(())
    }
}
