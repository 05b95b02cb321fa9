use std::fmt::Write;

use lpgnn::inference::Inference;
use lpgnn::run::{DataOrigin, RunConfig, Task};
use lpgnn::train::{ModelEvaluation, SolverConfig, SplitMetrics, SplitName, StopReason};

/// How a run ended: `summary.json`.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Summary {
    pub(crate) version: String,
    pub(crate) data: DataOrigin,
    pub(crate) task: Task,
    pub(crate) seed: u64,
    pub(crate) solver: String,
    /// Why it ended.
    #[serde(flatten)]
    pub(crate) reason: Ending,
    /// Epochs that were done.
    pub(crate) epochs: usize,
    /// The epoch that the weights are of.
    pub(crate) epoch: usize,
    pub(crate) seconds: f64,
    /// Of the last epoch; none when none was done.
    pub(crate) residual_mean: Option<f64>,
    pub(crate) residual_max: Option<f64>,
    #[serde(default)]
    pub(crate) state_mean: Option<f64>,
    pub(crate) constraints_met: Option<bool>,
    /// Of the epoch that the weights are of.
    pub(crate) evaluation: Option<ModelEvaluation>,
    /// Share of the most frequent class of the training part in the test part.
    pub(crate) majority: Option<f64>,
}

/// [`StopReason`], as it is read again.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case", tag = "reason")]
pub(crate) enum Ending {
    Epochs,
    NoImprovement,
    Stopped,
    Diverged { diverged_in: usize, variable: String },
}

impl From<StopReason> for Ending {
    fn from(reason: StopReason) -> Self {
        match reason {
            StopReason::Epochs => Self::Epochs,
            StopReason::NoImprovement => Self::NoImprovement,
            StopReason::Diverged { epoch, variable } => {
                Self::Diverged { diverged_in: epoch, variable: variable.to_owned() }
            }
            _ => Self::Stopped,
        }
    }
}

/// A cheating gap above which there is something to say about it.
const WIDE: f64 = 0.03;

impl Summary {
    /// A few lines for people, and what to try where something is not well.
    pub(crate) fn text(&self, config: &RunConfig) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.lines(config, &mut text);
        text
    }

    fn lines(&self, config: &RunConfig, text: &mut String) -> std::fmt::Result {
        let Self { epochs, epoch, seconds, .. } = self;
        let ended = match &self.reason {
            Ending::Epochs => format!("done: {epochs} epochs in {seconds:.1} s"),
            Ending::NoImprovement => {
                format!(
                    "done: no better validation score any more after {epochs} epochs, {seconds:.1} s"
                )
            }
            Ending::Stopped => format!("stopped after {epochs} epochs, {seconds:.1} s"),
            Ending::Diverged { diverged_in, variable } => format!(
                "diverged: the {variable} are no longer numbers in epoch {diverged_in}, {seconds:.1} s"
            ),
        };
        writeln!(text, "{ended}; weights of epoch {epoch}")?;
        if let Some(evaluation) = &self.evaluation {
            let parts: Vec<String> = evaluation
                .parts
                .iter()
                .map(|(part, score)| format!("{} {}", split_name(*part), tell_metrics(score)))
                .collect();
            let of_classes = evaluation.parts.iter().any(|(_, score)| score.accuracy.is_some());
            let name = if of_classes { "accuracy" } else { "loss" };
            let majority = self.majority.map_or(String::new(), |share| {
                format!(" (most frequent class {})", percent(share))
            });
            writeln!(text, "  {name:<13}{}{majority}", parts.join(", "))?;
        }
        if let (Some(mean), Some(max)) = (self.residual_mean, self.residual_max) {
            let met = if self.constraints_met == Some(true) { "met" } else { "NOT met" };
            let size = self.state_mean.map_or(String::new(), |size| {
                if size < 0.1 {
                    format!("; |x| is {size:.1e}")
                } else {
                    format!("; |x| is {size:.1}")
                }
            });
            writeln!(
                text,
                "  constraints  {met}: |x - f_a| is {mean:.1e} on average, {max:.1e} at most{size}"
            )?;
        }
        if let Some(evaluation) = &self.evaluation {
            if let Some(gap) = evaluation.cheating_gap {
                writeln!(text, "  cheating gap {:.1} points of training accuracy", 100.0 * gap)?;
            }
            let converged = match evaluation.not_converged {
                0 => "every graph".to_owned(),
                count => format!("all graphs but {count}"),
            };
            let radius = evaluation.spectral_radius;
            writeln!(text, "  converged      {converged}; spectral radius about {radius:.2}")?;
        }
        for advice in self.advice(config) {
            writeln!(text, "  try          {advice}")?;
        }
        Ok(())
    }

    /// What to try.
    fn advice(&self, config: &RunConfig) -> Vec<String> {
        let training = &config.training;
        let mut advice = vec![];
        if matches!(self.reason, Ending::Diverged { .. }) {
            // However large it was: more than this is hardly ever of use.
            let rate = (training.solver.weights().lr / 10.0).min(0.01);
            advice.push(format!("a smaller rate: --lr {rate}"));
            if training.lipschitz.is_none() {
                advice.push("a bound on f_a: --set training.lipschitz=0.9".into());
            }
            return advice;
        }
        if self.constraints_met == Some(false) {
            advice.push(match &training.solver {
                SolverConfig::OneShot(solver) => format!(
                    "states that follow the weights: --set training.solver.inner-steps={}",
                    2 * solver.inner_steps
                ),
                SolverConfig::Bdmm(solver) => format!(
                    "states that come to rest: --set training.solver.state-lr-half-life={}",
                    (solver.state_lr_half_life.unwrap_or(training.epochs as f64) / 4.0).max(1.0)
                ),
                SolverConfig::Sse(solver) => format!(
                    "states that follow the weights: --set training.solver.state-steps={}",
                    2 * solver.state_steps
                ),
                SolverConfig::AugmentedLagrangian(solver) => format!(
                    "a penalty that may grow further: --set training.solver.max-penalty={}",
                    10.0 * solver.max_penalty
                ),
                SolverConfig::Implicit(_) | SolverConfig::Unrolled(_) => {
                    "more iterations: --set training.solver.max-iter=500".into()
                }
            });
            if training.lipschitz.is_none() {
                advice.push("a bound on f_a: --set training.lipschitz=0.9".into());
            }
        }
        let Some(evaluation) = &self.evaluation else { return advice };
        if evaluation.cheating_gap.is_some_and(|gap| gap > WIDE) {
            advice.push(
                "the states know more than f_a gives, which new graphs will not: \
                 --solver one-shot, --set model.reads.from=f_x or a smaller \
                 training.weighing.loss-weight"
                    .into(),
            );
        }
        if evaluation.not_converged > 0 {
            advice.push(match (training.lipschitz, training.inference) {
                (None, _) => "f_a that contracts: --set training.lipschitz=0.9".into(),
                (_, Inference::FixedPoint(converge)) => {
                    format!(
                        "more steps: --set training.inference.max-iter={}",
                        4 * converge.max_iter
                    )
                }
                (_, Inference::Relax(relax)) => {
                    format!("more steps: --set training.inference.max-iter={}", 4 * relax.max_iter)
                }
            });
        }
        advice
    }
}

pub(crate) fn split_name(part: SplitName) -> &'static str {
    match part {
        SplitName::Train => "train",
        SplitName::Val => "val",
        SplitName::Test => "test",
    }
}

pub(crate) fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// An accuracy, or minus a loss.
pub(crate) fn tell_value(value: f64) -> String {
    // A loss of zero is minus zero here.
    if value.is_sign_negative() { format!("loss {:.4}", -value) } else { percent(value) }
}

/// The accuracy, or the loss where there is none.
pub(crate) fn tell_metrics(score: &SplitMetrics) -> String {
    score.accuracy.map_or_else(|| format!("{:.4}", score.loss), percent)
}
