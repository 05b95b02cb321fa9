//! A human-readable summary of a run record.

use std::fmt::Write;

use lpgnn::experiment::record::RunRecord;
use lpgnn::train::{ConstraintReport, GraphResidual, Monitor, SplitMetrics, SplitName, StopReason};

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
            count => format!("all but {}", graphs(count)),
        };
        let radius = evaluation.spectral_radius.unwrap_or(f64::NAN);
        writeln!(text, "  converged    {converged}; spectral radius about {radius:.2}")?;
    }
    for finding in record.findings() {
        if finding.advice.is_empty() {
            writeln!(text, "  note         {}", finding.text)?;
        }
        for advice in finding.advice {
            writeln!(text, "  try          {advice}")?;
        }
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

/// The share of nodes and graphs that meet the constraints, and which graphs do not.
fn constraints(record: &RunRecord, text: &mut String) -> std::fmt::Result {
    let Some(last) = &record.last_epoch else { return Ok(()) };
    let (mean, max, size) = (last.residual_mean, last.residual_max, last.state_mean);
    let size = if size < 0.1 { format!("{size:.1e}") } else { format!("{size:.1}") };
    let sizes = format!("|x - f_a| is {mean:.1e} on average, {max:.1e} at most; |x| is {size}");
    let Some(report) = &record.constraints else {
        return writeln!(text, "  constraints  {sizes}");
    };
    let ConstraintReport { nodes, nodes_within, graphs, graphs_within, worst, .. } = report;
    let met = if report.met() { "met" } else { "NOT met" };
    // Rounded down, so that only all of them are 100 %.
    let share = (1000.0 * *nodes_within as f64 / (*nodes).max(1) as f64).floor() / 10.0;
    let sample = report.sampled_from.map_or(String::new(), |all| format!(" (a sample of {all})"));
    writeln!(
        text,
        "  constraints  {met}: {share:.1} % of nodes, {graphs_within} of {graphs} graphs{sample} within \
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

/// `1 graph`, `2 graphs`
pub(crate) fn graphs(count: usize) -> String {
    format!("{count} graph{}", if count == 1 { "" } else { "s" })
}

pub(crate) fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// An accuracy, or minus a loss; or the value of another metric, with its name.
pub(crate) fn tell_value(metric: Monitor, value: f64) -> String {
    match metric {
        _ if !value.is_finite() => "no finite score".into(),
        // A loss of zero is minus zero here.
        Monitor::Auto if value.is_sign_negative() => format!("loss {:.4}", -value),
        Monitor::Auto => percent(value),
        metric => format!("{} {value:.4}", metric.title()),
    }
}

/// The accuracy, or the loss where there is none.
pub(crate) fn tell_metrics(metrics: &SplitMetrics) -> String {
    metrics.accuracy.map_or_else(|| format!("{:.4}", metrics.loss), percent)
}
