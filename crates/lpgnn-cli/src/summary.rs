//! A human-readable summary of a run record.

use std::fmt::Write;

use lpgnn::experiment::record::RunRecord;
use lpgnn::inference::Inference;
use lpgnn::train::{
    ConstraintReport, GraphResidual, Monitor, SolverConfig, SplitMetrics, SplitName, StopReason,
};

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
        StopReason::NoImprovement => format!(
            "done: stopped after epoch {epochs}: no improvement on validation for {} evaluations, \
             {seconds:.1} s",
            record.config.training.patience.unwrap_or_default()
        ),
        StopReason::Diverged { epoch, variable } => format!(
            "diverged: the {variable} became NaN or infinite in epoch {epoch}, {seconds:.1} s"
        ),
        _ => format!("stopped after {epochs} epochs, {seconds:.1} s"),
    };
    writeln!(text, "{ended}; weights of epoch {epoch}{}", monitored(record))?;
    if let Some(evaluation) = &record.evaluation {
        let parts: Vec<String> = evaluation
            .parts
            .iter()
            .map(|(split, metrics)| format!("{split} {}", tell_metrics(metrics)))
            .collect();
        let of_classes = evaluation.parts.iter().any(|(_, metrics)| metrics.accuracy.is_some());
        let name = if of_classes { "accuracy" } else { "loss" };
        writeln!(text, "  {name:<13}{}{}", parts.join(", "), baselines(record))?;
    }
    constraints(record, text)?;
    if let Some(evaluation) = &record.evaluation {
        if let Some(gap) = evaluation.cheating_gap {
            writeln!(text, "  cheating gap {:.1} points of training accuracy", 100.0 * gap)?;
        }
        let converged = match evaluation.not_converged {
            0 => "all graphs".to_owned(),
            count => format!("all but {count} graphs"),
        };
        let radius = evaluation.spectral_radius;
        writeln!(text, "  converged    {converged}; spectral radius about {radius:.2}")?;
    }
    if baseline_is_as_good(record) {
        writeln!(text, "  note         the MLP without edges is as good: edges add nothing here")?;
    }
    for advice in advice(record) {
        writeln!(text, "  try          {advice}")?;
    }
    Ok(())
}

/// The metric that selected the epoch, if it is not the default.
fn monitored(record: &RunRecord) -> String {
    let monitor = record.config.training.monitor;
    let evaluation = record.evaluation.as_ref();
    let value = evaluation.and_then(|of| of.of(SplitName::Val)).and_then(|val| val.monitored);
    match (monitor, value) {
        (Monitor::Auto, _) | (_, None) => String::new(),
        // The negative is kept, so that larger is better.
        (Monitor::Loss, Some(value)) => format!(", validation loss {:.4}", -value),
        (_, Some(value)) => format!(", validation {} {value:.3}", monitor.as_str()),
    }
}

/// What models that see no edges reach on the test split, or else on the validation split.
fn baselines(record: &RunRecord) -> String {
    let mut known = vec![];
    known.extend(record.majority.map(|share| format!("majority class {}", percent(share))));
    if let Some((report, score)) = record.baseline.as_ref().and_then(|of| Some((of, of.best()?))) {
        let value = score.test.or(score.val).map(|value| match record.classes {
            Some(_) => percent(value),
            None => format!("{:.4}", -value),
        });
        let sample = if report.trained_on < report.of { " on a sample" } else { "" };
        let split = if score.test.is_none() { " on val" } else { "" };
        known.extend(value.map(|value| format!("MLP without edges {value}{split}{sample}")));
    }
    if known.is_empty() { String::new() } else { format!(" ({})", known.join(", ")) }
}

/// Whether the MLP without edges does at least as well on the test split.
fn baseline_is_as_good(record: &RunRecord) -> bool {
    let evaluation = record.evaluation.as_ref();
    let test = evaluation.and_then(|evaluation| evaluation.of(SplitName::Test));
    let ours = test.map(|metrics| metrics.accuracy.unwrap_or(-metrics.loss));
    let baseline = record.baseline.as_ref().and_then(|report| report.best()?.test);
    baseline.is_some_and(|baseline| ours.is_some_and(|ours| baseline >= ours))
}

/// The share of nodes and graphs that meet the constraints, and which graphs do not.
fn constraints(record: &RunRecord, text: &mut String) -> std::fmt::Result {
    let Some(last) = &record.last_epoch else { return Ok(()) };
    let (mean, max, size) = (last.residual_mean, last.residual_max, last.state_mean);
    let size = if size < 0.1 { format!("{size:.1e}") } else { format!("{size:.1}") };
    let sizes = format!("|x - f_a| is {mean:.1e} on average, {max:.1e} at most; |x| is {size}");
    let Some(report) = &record.constraints else {
        return writeln!(text, "  constraints  {sizes}");
    };
    let ConstraintReport { nodes, nodes_within, graphs, graphs_within, worst } = report;
    let met = if report.met() { "met" } else { "NOT met" };
    // Rounded down, so that only all of them are 100 %.
    let share = (1000.0 * *nodes_within as f64 / (*nodes).max(1) as f64).floor() / 10.0;
    writeln!(
        text,
        "  constraints  {met}: {share:.1} % of nodes, {graphs_within} of {graphs} graphs within \
         tolerance; {sizes}"
    )?;
    if !worst.is_empty() {
        let outside = graphs - graphs_within;
        let named = worst.iter().map(|GraphResidual { graph, name, residual, .. }| {
            let name =
                name.as_ref().map_or(graph.to_string(), |name| name.escape_debug().to_string());
            format!("{name} ({residual:.1e})")
        });
        let named: Vec<String> = named.collect();
        let more = outside.saturating_sub(worst.len());
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let graphs = if outside == 1 { "graph" } else { "graphs" };
        writeln!(text, "  not met by   {graphs} {}{more}", named.join(", "))?;
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
