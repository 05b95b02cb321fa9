use super::RunRecord;
use crate::inference::Inference;
use crate::train::{SolverConfig, SplitName, StopReason, TrainingConfig};

/// Something that a user should know of a run before its scores are believed, and what to try.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Finding {
    /// In a few words.
    pub title: String,
    /// In a sentence.
    pub text: String,
    /// What to try, most promising first, in words that end in flags of the program.
    pub advice: Vec<String>,
}

/// Cheating gap above which a remedy is suggested.
const WIDE: f64 = 0.03;

impl RunRecord {
    /// What is wrong with the run; empty if nothing is.
    pub fn findings(&self) -> Vec<Finding> {
        if let StopReason::Diverged { epoch, variable } = self.stop_reason {
            let text = format!("The {variable} became NaN or infinite in epoch {epoch}.");
            return vec![finding("Training diverged", text, diverged(&self.config.training))];
        }
        [self.unmet(), self.cheating(), self.not_converged(), self.useless_edges()]
            .into_iter()
            .flatten()
            .collect()
    }

    fn unmet(&self) -> Option<Finding> {
        let report = self.constraints.as_ref().filter(|report| !report.met())?;
        let sample =
            report.sampled_from.map_or(String::new(), |all| format!(", a sample of {all},"));
        let text = format!(
            "{} of {} nodes and {} of {} graphs{sample} are farther from f(x) than the tolerance.",
            report.nodes - report.nodes_within,
            report.nodes,
            report.graphs - report.graphs_within,
            report.graphs
        );
        Some(finding("The constraints are not met", text, closer(&self.config.training)))
    }

    fn cheating(&self) -> Option<Finding> {
        let gap = self.evaluation.as_ref()?.cheating_gap.filter(|&gap| gap > WIDE)?;
        let text = format!(
            "Training accuracy is {:.1} points higher on the states of training than on states that follow \
             from the graph alone, so that much of it is not there on new graphs.",
            100.0 * gap
        );
        let advice = "the trained states encode more than f_a can compute on new graphs; use \
                      --solver one-shot, --set model.reads.from=transition or a smaller \
                      training.weighing.loss-weight";
        Some(finding("The states cheat", text, vec![advice.into()]))
    }

    fn not_converged(&self) -> Option<Finding> {
        let count = self.evaluation.as_ref()?.not_converged;
        if count == 0 {
            return None;
        }
        let training = &self.config.training;
        let max_iter = match training.inference {
            Inference::FixedPoint(converge) => converge.max_iter,
            Inference::Relax(relax) => relax.max_iter,
        };
        let advice = match training.lipschitz {
            None => "a contractive f_a: --set training.lipschitz=0.9".into(),
            Some(_) => {
                format!("more iterations: --set training.inference.max-iter={}", 4 * max_iter)
            }
        };
        let text = match count {
            1 => "1 graph did not converge; its prediction is not to be trusted.".into(),
            _ => {
                format!("{count} graphs did not converge; their predictions are not to be trusted.")
            }
        };
        Some(finding("Not all graphs converge", text, vec![advice]))
    }

    /// The MLP without edges does at least as well on the test split.
    fn useless_edges(&self) -> Option<Finding> {
        let test = self.evaluation.as_ref()?.of(SplitName::Test)?;
        let baseline = self.baseline.as_ref()?.best()?.test?;
        let text =
            "An MLP that sees no edges is as good on the test split: edges add nothing here."
                .to_owned();
        (baseline >= test.accuracy.unwrap_or(-test.loss))
            .then(|| finding("No better than without edges", text, vec![]))
    }
}

fn finding(title: &str, text: String, advice: Vec<String>) -> Finding {
    Finding { title: title.into(), text, advice }
}

fn diverged(training: &TrainingConfig) -> Vec<String> {
    // However large it was: a larger one than this is hardly ever useful.
    let rate = (training.solver.weights().lr / 10.0).min(0.01);
    // Without the digits that a division leaves.
    let rate = format!("{rate:.2e}").parse().unwrap_or(rate);
    let mut advice = vec![format!("a smaller learning rate: --lr {rate}")];
    advice.extend(bound(training));
    advice
}

/// How states come closer to `f(x)`.
fn closer(training: &TrainingConfig) -> Vec<String> {
    let first = match &training.solver {
        SolverConfig::OneShot(solver) => format!(
            "more state steps per update: --set training.solver.inner-steps={}",
            2 * solver.inner_steps
        ),
        SolverConfig::Bdmm(solver) => format!(
            "a faster decay of the state learning rate: --set training.solver.state-lr-half-life={}",
            (solver.state_lr_half_life.unwrap_or(training.epochs as f64) / 4.0).max(1.0)
        ),
        SolverConfig::Sse(solver) => format!(
            "more state steps per update: --set training.solver.state-steps={}",
            2 * solver.state_steps
        ),
        SolverConfig::AugmentedLagrangian(solver) => format!(
            "a larger maximum penalty: --set training.solver.max-penalty={}",
            10.0 * solver.max_penalty
        ),
        SolverConfig::Implicit(_) | SolverConfig::Unrolled(_) => {
            "more iterations: --set training.solver.max-iter=500".into()
        }
    };
    [Some(first), bound(training)].into_iter().flatten().collect()
}

fn bound(training: &TrainingConfig) -> Option<String> {
    let advice = "a bound on the Lipschitz constant of f_a: --set training.lipschitz=0.9";
    training.lipschitz.is_none().then(|| advice.into())
}
