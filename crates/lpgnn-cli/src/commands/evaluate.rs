use std::fmt::Write;

use clap::{Args, ValueEnum};
use lpgnn::data::{Level, Split};
use lpgnn::evaluate::Metrics;
use lpgnn::graph::Targets;
use lpgnn::run::Task;

use super::model::{ModelArguments, Used};
use crate::summary::percent;
use crate::talk::{Talk, print, print_json};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    model: ModelArguments,

    /// Which part of the data's own split to look at.
    #[arg(long, value_enum, default_value_t = Part::All)]
    part: Part,

    /// Write JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    All,
    Train,
    Valid,
    Test,
}

#[derive(serde::Serialize)]
struct Report {
    data: String,
    task: Task,
    seen_in_training: bool,
    classes: Option<Vec<String>>,
    #[serde(flatten)]
    metrics: Metrics,
    graphs: usize,
    unsettled: usize,
    largest_residual: f64,
}

pub(super) fn run(arguments: &Arguments, talk: &Talk) -> anyhow::Result<()> {
    let used = arguments.model.apply(true, talk)?;
    let batch = &used.predictions.batch;
    let targets = match used.model.task {
        Task::Nodes => batch.node_targets(),
        Task::Graphs => batch.graph_targets(),
    };
    let rows = rows(arguments.part, &used, targets)?;
    let targets = targets.select(rows.iter().copied());
    let outputs = used.predictions.outputs.select(rows.iter().copied());
    let seen = lpgnn::run::fingerprint(&used.dataset) == used.model.data.fingerprint;
    if seen && arguments.part == Part::All {
        talk.say("note: the model was trained on these data; --part test leaves that part out");
    }
    let settled = &used.predictions.settled;
    let report = Report {
        data: used.dataset.name().to_owned(),
        task: used.model.task,
        seen_in_training: seen,
        classes: used.model.classes().map(<[String]>::to_vec),
        metrics: Metrics::of(&targets, &outputs)?,
        graphs: used.dataset.graphs(),
        unsettled: settled.failures(),
        largest_residual: settled.residuals.iter().copied().fold(0.0, f64::max),
    };
    if arguments.json { print_json(&report) } else { print(&text(&report)?) }
}

/// The nodes or graphs of a part.
fn rows(part: Part, used: &Used, targets: &Targets<f32>) -> anyhow::Result<Vec<usize>> {
    let members = |split: &Split| match part {
        Part::All => (0..targets.rows()).collect(),
        Part::Train => split.train.clone(),
        Part::Valid => split.valid.clone(),
        Part::Test => split.test.clone(),
    };
    if part == Part::All {
        return Ok((0..targets.rows()).collect());
    }
    let Some(split) = used.dataset.split() else {
        anyhow::bail!("{} comes without a split, so it has no such part", used.dataset.name());
    };
    let members: Vec<usize> = members(split);
    let starts = used.dataset.node_starts();
    Ok(match (split.level, used.model.task) {
        (Level::Graph, Task::Nodes) => {
            members.iter().flat_map(|&graph| starts[graph]..starts[graph + 1]).collect()
        }
        (Level::Node, Task::Graphs) => {
            anyhow::bail!("{} divides nodes, but the model predicts graphs", used.dataset.name())
        }
        _ => members,
    })
}

fn text(report: &Report) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    match &report.metrics {
        Metrics::Classes { count, accuracy, balanced_accuracy, macro_f1, auc, loss, confusion } => {
            writeln!(text, "{:<19}{count}", report.task.as_str())?;
            writeln!(text, "{:<19}{}", "accuracy", percent(*accuracy))?;
            writeln!(text, "{:<19}{}", "balanced accuracy", percent(*balanced_accuracy))?;
            writeln!(text, "{:<19}{macro_f1:.4}", "macro F1")?;
            if let Some(auc) = auc {
                writeln!(text, "{:<19}{auc:.4}", "AUC")?;
            }
            writeln!(text, "{:<19}{loss:.4}", "cross-entropy")?;
            let classes = report.classes.as_deref().unwrap_or_default();
            writeln!(text, "\ntrue class, and how often it was taken for which")?;
            confusion_table(&mut text, classes, confusion)?;
        }
        Metrics::Values { count, mean_squared_error, mean_absolute_error, r_squared } => {
            writeln!(text, "{:<19}{count}", report.task.as_str())?;
            writeln!(text, "{:<19}{mean_squared_error:.6}", "mean squared error")?;
            writeln!(text, "{:<19}{mean_absolute_error:.6}", "mean absolute error")?;
            if let Some(r_squared) = r_squared {
                writeln!(text, "{:<19}{r_squared:.4}", "R²")?;
            }
        }
        _ => {}
    }
    let settled = report.graphs - report.unsettled;
    writeln!(
        text,
        "\nsettled            {settled} of {} graphs, largest residual {:.1e}",
        report.graphs, report.largest_residual
    )?;
    Ok(text)
}

fn confusion_table(
    text: &mut String,
    classes: &[String],
    confusion: &[Vec<usize>],
) -> std::fmt::Result {
    let counts = confusion.iter().flatten().map(|count| count.to_string().len());
    let names = classes.iter().map(|class| class.chars().count());
    let width = counts.chain(names).max().unwrap_or(1);
    let header: Vec<String> = classes.iter().map(|class| format!("{class:>width$}")).collect();
    writeln!(text, "  {:width$}  {}", "", header.join("  "))?;
    for (class, row) in classes.iter().zip(confusion) {
        let row: Vec<String> = row.iter().map(|count| format!("{count:>width$}")).collect();
        writeln!(text, "  {class:<width$}  {}", row.join("  "))?;
    }
    Ok(())
}
