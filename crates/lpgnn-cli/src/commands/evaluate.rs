use std::fmt::Write;

use clap::{Args, ValueEnum};
use lpgnn::data::Split;
use lpgnn::evaluate::Metrics;
use lpgnn::graph::Level;

use super::model::{ModelArguments, Used};
use crate::console::{Console, print, print_json};
use crate::summary::percent;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    model: ModelArguments,

    /// The split to evaluate on, from the model's training run or from the data.
    #[arg(long, value_enum, default_value_t = SplitChoice::All)]
    split: SplitChoice,

    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SplitChoice {
    All,
    Train,
    Val,
    Test,
}

#[derive(serde::Serialize)]
struct Report {
    data: String,
    task: Level,
    seen_in_training: bool,
    classes: Option<Vec<String>>,
    #[serde(flatten)]
    metrics: Metrics,
    graphs: usize,
    not_converged: usize,
    largest_residual: f64,
}

pub(super) fn run(arguments: &Arguments, console: &Console) -> anyhow::Result<()> {
    let used = arguments.model.apply(true, console)?;
    used.predictions.check_finite()?;
    let batch = &used.predictions.batch;
    let targets = used.model.task.targets_of(batch);
    let rows = match arguments.split {
        SplitChoice::All => (0..targets.rows()).collect(),
        choice => rows(choice, &used)?,
    };
    let targets = targets.select(rows.iter().copied());
    let outputs = used.predictions.outputs.select(rows.iter().copied());
    let seen = used.was_trained_on();
    if seen && arguments.split == SplitChoice::All {
        console.say(
            "note: the model was trained on these data; use --split test for data it has not seen",
        );
    }
    let converged = &used.predictions.fixed_point;
    let report = Report {
        data: used.dataset.name().to_owned(),
        task: used.model.task,
        seen_in_training: seen,
        classes: used.model.classes().map(<[String]>::to_vec),
        metrics: Metrics::of(&targets, &outputs)?,
        graphs: used.dataset.graphs(),
        not_converged: converged.failures(),
        largest_residual: converged.largest_residual(),
    };
    if arguments.json { print_json(&report) } else { print(&text(&report)?) }
}

/// The nodes or graphs of a split.
fn rows(choice: SplitChoice, used: &Used) -> anyhow::Result<Vec<usize>> {
    let Some(split) = split_of(used)? else {
        anyhow::bail!(
            "{} has no splits: it comes without any, and the model was not trained on it",
            used.dataset.name()
        );
    };
    let members = match choice {
        SplitChoice::All => [split.train, split.val, split.test].concat(),
        SplitChoice::Train => split.train,
        SplitChoice::Val => split.val,
        SplitChoice::Test => split.test,
    };
    if members.is_empty() {
        anyhow::bail!("that split of {} is empty", used.dataset.name());
    }
    let starts = used.dataset.node_starts();
    Ok(match (split.level, used.model.task) {
        (Level::Graph, Level::Node) => {
            members.iter().flat_map(|&graph| starts[graph]..starts[graph + 1]).collect()
        }
        (Level::Node, Level::Graph) => {
            anyhow::bail!("{} splits nodes, but the model predicts graphs", used.dataset.name())
        }
        _ => members,
    })
}

/// The splits of the training run, or else those of the data.
fn split_of(used: &Used) -> anyhow::Result<Option<Split>> {
    if used.was_trained_on() {
        return Ok(Some(used.model.split.divide(&used.dataset, used.model.task)?));
    }
    Ok(used.dataset.split().cloned())
}

fn text(report: &Report) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    match &report.metrics {
        Metrics::Classes {
            count,
            accuracy,
            balanced_accuracy,
            macro_f1,
            auc,
            loss,
            confusion,
            ..
        } => {
            writeln!(text, "{:<21}{count}", report.task.plural())?;
            writeln!(text, "{:<21}{}", "accuracy", percent(*accuracy))?;
            writeln!(text, "{:<21}{}", "balanced accuracy", percent(*balanced_accuracy))?;
            writeln!(text, "{:<21}{macro_f1:.4}", "macro F1")?;
            if let Some(auc) = auc {
                writeln!(text, "{:<21}{auc:.4}", "AUC")?;
            }
            writeln!(text, "{:<21}{loss:.4}", "cross-entropy")?;
            let classes = report.classes.as_deref().unwrap_or_default();
            writeln!(text, "\nconfusion matrix (rows: true class, columns: predicted class)")?;
            confusion_table(&mut text, classes, confusion)?;
        }
        Metrics::Values { count, mean_squared_error, mean_absolute_error, r_squared, .. } => {
            writeln!(text, "{:<21}{count}", report.task.plural())?;
            writeln!(text, "{:<21}{mean_squared_error:.6}", "mean squared error")?;
            writeln!(text, "{:<21}{mean_absolute_error:.6}", "mean absolute error")?;
            if let Some(r_squared) = r_squared {
                writeln!(text, "{:<21}{r_squared:.4}", "R²")?;
            }
        }
        _ => {}
    }
    let converged = report.graphs - report.not_converged;
    writeln!(
        text,
        "\nconverged            {converged} of {} graphs, largest residual {:.1e}",
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
