//! A human-readable summary of a run record.

use std::fmt::Write;

use lpgnn::experiment::record::RunRecord;
use lpgnn::inference::Inference;
use lpgnn::train::{SolverConfig, SplitMetrics, StopReason};

/// Cheating gap above which the summary suggests a remedy.
const WIDE: f64 = 0.03;

/// How a run went, and what to try if something went wrong.
pub(crate) fn text(record: &RunRecord) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = lines(record, &mut text);
    text
}

fn lines(record: &RunRecord, text: &mut String) -> std::fmt::Result {
    let RunRecord { epochs, best_epoch: epoch, seconds, .. } = record;
    let ended = match &record.stop_reason {
        StopReason::Epochs => format!("done: {epochs} epochs in {seconds:.1} s"),
        StopReason::NoImprovement => {
            format!(
                "done: stopped early after {epochs} epochs without further improvement on \
                 validation data, {seconds:.1} s"
            )
        }
        StopReason::Diverged { epoch, variable } => format!(
            "diverged: the {variable} became NaN or infinite in epoch {epoch}, {seconds:.1} s"
        ),
        _ => format!("stopped after {epochs} epochs, {seconds:.1} s"),
    };
    writeln!(text, "{ended}; weights of epoch {epoch}")?;
    if let Some(evaluation) = &record.evaluation {
        let parts: Vec<String> = evaluation
            .parts
            .iter()
            .map(|(split, metrics)| format!("{split} {}", tell_metrics(metrics)))
            .collect();
        let of_classes = evaluation.parts.iter().any(|(_, metrics)| metrics.accuracy.is_some());
        let name = if of_classes { "accuracy" } else { "loss" };
        let majority = record
            .majority
            .map_or(String::new(), |share| format!(" (majority class {})", percent(share)));
        writeln!(text, "  {name:<13}{}{majority}", parts.join(", "))?;
    }
    if let Some(last) = &record.last_epoch {
        let (mean, max, size) = (last.residual_mean, last.residual_max, last.state_mean);
        let met = if last.constraints_met() { "met" } else { "NOT met" };
        let size = if size < 0.1 { format!("{size:.1e}") } else { format!("{size:.1}") };
        writeln!(
            text,
            "  constraints  {met}: |x - f_a| is {mean:.1e} on average, {max:.1e} at most; |x| is {size}"
        )?;
    }
    if let Some(evaluation) = &record.evaluation {
        if let Some(gap) = evaluation.cheating_gap {
            let sample = evaluation.sample;
            let sample = sample.map_or(String::new(), |graphs| format!(" ({graphs} graphs)"));
            writeln!(
                text,
                "  cheating gap {:.1} points of training accuracy{sample}",
                100.0 * gap
            )?;
        }
        let converged = match evaluation.not_converged {
            0 => "all graphs".to_owned(),
            count => format!("all but {count} graphs"),
        };
        let radius = evaluation.spectral_radius.unwrap_or(f64::NAN);
        writeln!(text, "  converged    {converged}; spectral radius about {radius:.2}")?;
    }
    for advice in advice(record) {
        writeln!(text, "  try          {advice}")?;
    }
    Ok(())
}

/// What to try.
fn advice(record: &RunRecord) -> Vec<String> {
    let training = &record.config.training;
    let mut advice = vec![];
    if matches!(record.stop_reason, StopReason::Diverged { .. }) {
        // However large it was: a larger one than this is hardly ever useful.
        let rate = (training.solver.weights().lr / 10.0).min(0.01);
        advice.push(format!("a smaller learning rate: --lr {rate}"));
        if training.lipschitz.is_none() {
            advice.push(
                "a bound on the Lipschitz constant of f_a: --set training.lipschitz=0.9".into(),
            );
        }
        return advice;
    }
    if record.constraints_met() == Some(false) {
        advice.push(match &training.solver {
            SolverConfig::OneShot(solver) => format!(
                "more state steps per update: --set training.solver.inner-steps={}",
                2 * solver.inner_steps
            ),
            SolverConfig::Bdmm(solver) => format!(
                "a faster decay of the state learning rate: --set \
                 training.solver.state-lr-half-life={}",
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
        });
        if training.lipschitz.is_none() {
            advice.push(
                "a bound on the Lipschitz constant of f_a: --set training.lipschitz=0.9".into(),
            );
        }
    }
    let Some(evaluation) = &record.evaluation else { return advice };
    if evaluation.cheating_gap.is_some_and(|gap| gap > WIDE) {
        advice.push(
            "the trained states encode more than f_a can compute on new graphs; use \
             --solver one-shot, --set model.reads.from=transition or a smaller \
             training.weighing.loss-weight"
                .into(),
        );
    }
    if evaluation.not_converged > 0 {
        advice.push(match (training.lipschitz, training.inference) {
            (None, _) => "a contractive f_a: --set training.lipschitz=0.9".into(),
            (_, Inference::FixedPoint(converge)) => {
                format!(
                    "more iterations: --set training.inference.max-iter={}",
                    4 * converge.max_iter
                )
            }
            (_, Inference::Relax(relax)) => {
                format!("more iterations: --set training.inference.max-iter={}", 4 * relax.max_iter)
            }
        });
    }
    advice
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
pub(crate) fn tell_metrics(metrics: &SplitMetrics) -> String {
    metrics.accuracy.map_or_else(|| format!("{:.4}", metrics.loss), percent)
}
