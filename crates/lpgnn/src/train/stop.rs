//! When training stops, and what it returns.

use std::fmt;

use super::trainer::tell_observer;
use super::{
    EpochReport, ModelEvaluation, Observer, SplitMetrics, SplitName, Trainer, TrainerState,
};
use crate::lagrangian::Variables;
use crate::{Matrix, Scalar};

/// The weights of the best epoch.
#[derive(Clone, Debug)]
pub struct Best<S = f32> {
    /// The epoch, counted from 1.
    pub epoch: usize,
    /// Its metrics on the validation split.
    pub score: SplitMetrics,
    /// Its evaluation.
    pub evaluation: ModelEvaluation,
    /// Its weights.
    pub weights: Vec<S>,
}

/// Why training stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case", tag = "reason")]
#[non_exhaustive]
pub enum StopReason {
    /// All epochs are done.
    Epochs,
    /// Early stopping: no improvement on validation data for as long as the patience allows.
    NoImprovement,
    /// An observer stopped it.
    Stopped,
    /// A variable became NaN or infinite. The weights are those before it happened.
    Diverged {
        /// The epoch in which it happened, counted from 1.
        epoch: usize,
        /// What is not finite.
        variable: NotFinite,
    },
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Epochs => f.write_str("all epochs are done"),
            Self::NoImprovement => {
                f.write_str("stopped early, without further improvement on validation data")
            }
            Self::Stopped => f.write_str("stopped on request"),
            Self::Diverged { epoch, variable } => {
                write!(f, "diverged in epoch {epoch}: the {variable} are not finite")
            }
        }
    }
}

/// What is not finite when training diverges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NotFinite {
    /// `θ`
    Weights,
    /// `X`
    States,
    /// `Λ`
    Multipliers,
    /// Only the loss.
    Loss,
}

impl NotFinite {
    pub(super) fn of<S: Scalar>(variables: &Variables<S>) -> Option<Self> {
        variables.not_finite().map(|name| match name {
            "weights" => Self::Weights,
            "states" => Self::States,
            _ => Self::Multipliers,
        })
    }

    /// `weights`, `states`, `multipliers` or `loss`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Weights => "weights",
            Self::States => "states",
            Self::Multipliers => "multipliers",
            Self::Loss => "loss",
        }
    }
}

impl fmt::Display for NotFinite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The result of training.
#[derive(Clone, Debug)]
pub struct Trained<S = f32> {
    /// The weights of the best epoch, or the last ones without a validation split.
    pub weights: Vec<S>,
    /// The epoch they are of, counted from 1.
    pub epoch: usize,
    /// Their evaluation, if that epoch was evaluated.
    pub evaluation: Option<ModelEvaluation>,
    /// Why it stopped.
    pub reason: StopReason,
    /// `Λ` of every layer when it ended, whichever epoch was the best.
    pub multipliers: Vec<Matrix<S>>,
}

impl<S: Scalar> Trainer<'_, S> {
    /// Whether validation metrics have not improved for as long as the patience allows.
    pub(super) fn out_of_patience(&self) -> bool {
        self.plan.config().patience.is_some_and(|patience| self.state.since_best >= patience)
    }

    /// The reason to stop if something is not finite; the weights are then those of `before`.
    pub(super) fn diverged(&mut self, report: &EpochReport, before: Vec<S>) -> Option<StopReason> {
        let not_finite = self.not_finite();
        let told = report.loss + report.constraint + report.residual_max;
        if told.is_finite() && not_finite.is_none() {
            return None;
        }
        let variable = not_finite.unwrap_or(NotFinite::Loss);
        let TrainerState { variables, epoch, .. } = &mut self.state;
        variables.weights = before;
        *epoch -= 1;
        Some(StopReason::Diverged { epoch: *epoch + 1, variable })
    }

    /// Whether no evaluation before was better, or none can be.
    pub(super) fn is_best(&self, evaluation: &ModelEvaluation) -> bool {
        match (evaluation.of(SplitName::Val), &self.state.best) {
            (Some(score), Some(best)) => score.beats(&best.score),
            _ => true,
        }
    }

    /// Remembers the weights if no evaluation before was better.
    pub(super) fn keep_best(&mut self, evaluation: &ModelEvaluation) {
        let Some(score) = evaluation.of(SplitName::Val) else { return };
        self.state.since_best += 1;
        if self.is_best(evaluation) {
            self.state.since_best = 0;
            self.state.best = Some(Best {
                epoch: self.state.epoch,
                score: *score,
                evaluation: evaluation.clone(),
                weights: self.kept_weights().into_owned(),
            });
        }
    }

    /// The result when training stops for this reason; `last` is the last evaluation and its epoch.
    pub(super) fn finish(
        mut self,
        reason: StopReason,
        last: Option<(usize, ModelEvaluation)>,
        observer: &mut dyn Observer<S>,
    ) -> Trained<S> {
        let own = std::mem::take(&mut self.state.variables.multipliers);
        let multipliers = match self.share() {
            None => own,
            Some(share) => own.iter().map(|rows| share.all_rows(rows)).collect(),
        };
        let mut tell = tell_observer(self.state.epoch, observer);
        let evaluation = self.state.best.as_ref().map(|best| self.evaluate_best(best, &mut tell));
        match self.state.best {
            Some(best) => Trained {
                weights: best.weights,
                epoch: best.epoch,
                evaluation,
                reason,
                multipliers,
            },
            None => Trained {
                evaluation: match last {
                    Some((epoch, evaluation))
                        if epoch == self.state.epoch
                            && (self.held_out_only || evaluation.is_complete()) =>
                    {
                        Some(evaluation)
                    }
                    _ => Some(self.evaluate_observed(&mut tell)),
                },
                weights: self.kept_weights().into_owned(),
                epoch: self.state.epoch,
                reason,
                multipliers,
            },
        }
    }
}
