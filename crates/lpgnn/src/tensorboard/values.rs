use serde_json::Value;

use super::file::seconds;
use super::message::Message;
use crate::evaluate::Histogram;
use crate::run::{RunConfig, Schema};
use crate::train::EpochReport;

/// All numbers of an epoch, as summaries.
pub(super) fn of_epoch(report: &EpochReport, seconds: Option<f64>) -> Vec<Message> {
    let mut values = vec![
        scalar("objective/loss", report.loss),
        scalar("objective/constraint", report.constraint),
        scalar("residual/mean", report.residual_mean),
        scalar("residual/max", report.residual_max),
        scalar("states/mean", report.state_mean),
        scalar("multipliers/mean", report.multiplier_mean),
        scalar("multipliers/largest", report.largest_multiplier),
    ];
    for (name, norm) in ["weights", "states", "multipliers"].iter().zip(report.gradient_norms) {
        values.push(scalar(&format!("gradient_norm/{name}"), norm));
    }
    let mut add = |tag: &str, value: Option<f64>| values.extend(value.map(|x| scalar(tag, x)));
    add("accuracy/training_states", report.trained_accuracy);
    add("lr", report.lr);
    add("seconds", seconds);
    if let Some(residuals) = report.constraints.as_ref().and_then(|of| of.residuals.as_ref()) {
        add("residual/p50", Some(residuals.p50));
        add("residual/p95", Some(residuals.p95));
    }
    if let Some(evaluation) = &report.evaluation {
        for (split, metrics) in &evaluation.parts {
            add(&format!("accuracy/{split}"), metrics.accuracy);
            add(&format!("loss/{split}"), Some(metrics.loss));
        }
        add("cheating_gap", evaluation.cheating_gap);
        add("spectral_radius", evaluation.spectral_radius);
        add("not_converged", Some(evaluation.not_converged as f64));
    }
    let histograms = &report.histograms;
    values.extend(histograms.log_residuals.as_ref().map(|of| histogram("residual/log10", of)));
    values.extend(histograms.multipliers.as_ref().map(|of| histogram("multipliers", of)));
    values
}

fn scalar(tag: &str, value: f64) -> Message {
    #[allow(clippy::cast_possible_truncation, reason = "TensorBoard shows single precision")]
    let value = value as f32;
    Message::default().text(1, tag).float(2, value)
}

fn histogram(tag: &str, of: &Histogram) -> Message {
    let count: u64 = of.counts.iter().sum();
    let bins = Message::default()
        .double(1, of.min)
        .double(2, of.max)
        .double(3, count as f64)
        .double(4, of.sum)
        .double(5, of.sum_of_squares)
        .doubles(6, (0..of.counts.len()).map(|bin| of.upper(bin)))
        .doubles(7, of.counts.iter().map(|&count| count as f64));
    Message::default().text(1, tag).message(5, &bins)
}

/// The settings, as hyperparameters.
pub(super) fn session_start(config: &RunConfig) -> Message {
    let mut info = Message::default();
    for (setting, value) in Schema::of_runs().values(config) {
        let value = match value {
            Value::Bool(yes) => Message::default().integer(4, u64::from(yes)),
            Value::Number(number) => {
                Message::default().double(2, number.as_f64().unwrap_or(f64::NAN))
            }
            Value::String(text) => Message::default().text(3, &text),
            Value::Null => Message::default().text(3, "none"),
            value => Message::default().text(3, &value.to_string()),
        };
        info = info.message(1, &Message::default().text(1, &setting.path).message(2, &value));
    }
    let info = info.double(5, seconds());
    of_hyperparameters("_hparams_/session_start_info", &Message::default().message(3, &info))
}

/// How it ended.
pub(super) fn session_end(success: bool) -> Message {
    let info = Message::default().integer(1, if success { 1 } else { 2 }).double(2, seconds());
    of_hyperparameters("_hparams_/session_end_info", &Message::default().message(4, &info))
}

/// What the plugin of TensorBoard for hyperparameters reads: a message in the description of an empty tensor.
fn of_hyperparameters(tag: &str, content: &Message) -> Message {
    let plugin = Message::default().text(1, "hparams").bytes(2, content.as_bytes());
    let no_columns = Message::default().message(2, &Message::default().integer(1, 0));
    let tensor = Message::default().integer(1, 1).message(2, &no_columns);
    let metadata = Message::default().message(1, &plugin);
    Message::default().text(1, tag).message(8, &tensor).message(9, &metadata)
}
