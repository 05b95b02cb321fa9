use std::collections::HashSet;
use std::fmt::Write;

use clap::{Args, ValueEnum};
use lpgnn::data::Split;
use lpgnn::data::parts::PartsInfo;
use lpgnn::evaluate::Metrics;
use lpgnn::graph::Level;

use super::at_most;
use super::model::{ModelArguments, Used};
use crate::console::{Console, print, print_json};
use crate::ranks;
use crate::summary::percent;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    model: ModelArguments,

    /// The split to evaluate on: that of the training run if DATA are its data, otherwise that of DATA.
    #[arg(long, value_enum, default_value_t = SplitChoice::All)]
    split: SplitChoice,

    /// Print JSON.
    #[arg(long)]
    json: bool,

    /// Print a bound on the distance of the states from their fixed point; JSON always has it
    #[arg(long)]
    distance: bool,
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
    /// How many of the evaluated nodes or graphs the model was trained on; none if that is not known.
    trained_on: Option<usize>,
    classes: Option<Vec<String>>,
    #[serde(flatten)]
    metrics: Metrics,
    graphs: usize,
    not_converged: usize,
    largest_residual: f64,
    /// How far states are from the fixed point at most; none where `f_a` is not known to contract.
    largest_distance: Option<f64>,
}

pub(super) fn run(arguments: &Arguments, console: &Console) -> anyhow::Result<()> {
    let used = arguments.model.apply(true, console)?;
    ranks::agree(used.predictions.check_finite())?;
    let batch = &used.predictions.batch;
    let targets = used.model.task.targets_of(batch);
    let known = match used.dataset.in_parts() {
        None => used.model.split_of(&used.dataset)?,
        Some(graph) => trained_split(&used, graph.info()),
    };
    let rows = match arguments.split {
        SplitChoice::All => (0..targets.rows()).filter(|&row| targets.is_known(row)).collect(),
        choice => rows(choice, &used, known)?,
    };
    let trained_on = known.map(|split| of_all(&used, trained_on(&rows, &used, split)));
    let count = of_all(&used, rows.len());
    if let Some(note) = note(arguments.split, &used, known, trained_on, count) {
        console.say(format_args!("note: {note}"));
    }
    let targets = targets.select(rows.iter().copied());
    let outputs = used.predictions.outputs.select(rows.iter().copied());
    let (targets, outputs) = match used.dataset.in_parts() {
        None => (targets, outputs),
        Some(graph) => graph.of_all(&targets, &outputs),
    };
    let converged = &used.predictions.fixed_point;
    let report = Report {
        data: used.dataset.name().to_owned(),
        task: used.model.task,
        trained_on,
        classes: used.model.classes().map(<[String]>::to_vec),
        metrics: Metrics::of(&targets, &outputs)?,
        graphs: used.dataset.graphs(),
        not_converged: converged.failures(),
        largest_residual: converged.largest_residual(),
        largest_distance: largest(&used.model.distances(&used.predictions)?),
    };
    if arguments.json { print_json(&report) } else { print(&text(&report, arguments.distance)?) }
}

/// The largest of these bounds, if all of them are some.
fn largest(distances: &[f64]) -> Option<f64> {
    let largest = distances.iter().copied().fold(0.0, f64::max);
    largest.is_finite().then_some(largest)
}

/// The sum of a count over all ranks that share a graph in parts.
fn of_all(used: &Used, own: usize) -> usize {
    let Some(graph) = used.dataset.in_parts() else { return own };
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "they are counts")]
    let sum = graph.communicator().all(own as f64).iter().sum::<f64>() as usize;
    sum
}

/// The split of own nodes, if the model was trained on the same parts.
fn trained_split<'u>(used: &'u Used, info: &PartsInfo) -> Option<&'u Split> {
    let trained = &used.model.data;
    let same = trained.fingerprint == info.fingerprint && trained.split == info.split_fingerprint;
    used.dataset.split().filter(|_| same)
}

/// The nodes or graphs of a split: of the one that the model was trained by, if it is known, or else of the
/// one that comes with the data.
fn rows(choice: SplitChoice, used: &Used, known: Option<&Split>) -> anyhow::Result<Vec<usize>> {
    let Some(split) = known.or(used.dataset.split()) else {
        anyhow::bail!(
            "{} has no split: it comes without one, and the model was not trained on it",
            used.dataset.name()
        );
    };
    let members = match choice {
        SplitChoice::All => [&split.train[..], &split.val, &split.test].concat(),
        SplitChoice::Train => split.train.clone(),
        SplitChoice::Val => split.val.clone(),
        SplitChoice::Test => split.test.clone(),
    };
    if of_all(used, members.len()) == 0 {
        anyhow::bail!("that split of {} is empty", used.dataset.name());
    }
    if (split.level, used.model.task) == (Level::Node, Level::Graph) {
        anyhow::bail!("{} splits nodes, but the model predicts graphs", used.dataset.name())
    }
    Ok(split.rows(&members, used.model.task, &used.dataset))
}

/// How many of these nodes or graphs are in a training split.
fn trained_on(rows: &[usize], used: &Used, split: &Split) -> usize {
    let train = split.rows(&split.train, used.model.task, &used.dataset);
    let train: HashSet<usize> = train.into_iter().collect();
    rows.iter().filter(|row| train.contains(row)).count()
}

/// What whoever reads the metrics has to know about the split.
fn note(
    choice: SplitChoice,
    used: &Used,
    known: Option<&Split>,
    trained: Option<usize>,
    count: usize,
) -> Option<String> {
    let (data, members) = (used.dataset.name(), used.model.task.plural());
    let (Some(split), Some(trained)) = (known, trained) else {
        let note = format!("whether the model was trained on any of these {members} is not known");
        return (choice != SplitChoice::All).then_some(note);
    };
    if choice == SplitChoice::All && trained > 0 {
        let rest = if split.test.is_empty() { "" } else { "; --split test leaves them out" };
        return Some(format!(
            "the model was trained on {trained} of these {count} {members}{rest}"
        ));
    }
    if used.dataset.in_parts().is_some() {
        return None;
    }
    // The split that a run with the same settings would have now.
    let now = used.model.split.divide(&used.dataset, used.model.task).ok()?;
    if choice == SplitChoice::All || now.fingerprint() == split.fingerprint() {
        return None;
    }
    let test = now.rows(&now.test, used.model.task, &used.dataset);
    let seen = trained_on(&test, used, split);
    Some(format!(
        "{data} comes with another split, and the model was trained on {seen} of the {} \
         {members} of its test split; evaluated on the split that the model was trained with",
        test.len()
    ))
}

fn text(report: &Report, with_distance: bool) -> Result<String, std::fmt::Error> {
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
            writeln!(text, "{:<21}{}", "mean squared error", error(*mean_squared_error))?;
            writeln!(text, "{:<21}{}", "mean absolute error", error(*mean_absolute_error))?;
            if let Some(r_squared) = r_squared {
                let short = r_squared.abs() < 1e9;
                let shown =
                    if short { format!("{r_squared:.4}") } else { format!("{r_squared:.4e}") };
                writeln!(text, "{:<21}{shown}", "R²")?;
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
    if with_distance {
        let known = |distance| format!("{} at most", at_most(distance));
        let known = report.largest_distance.map_or("not known".into(), known);
        writeln!(text, "from fixed point     {known}")?;
    }
    Ok(text)
}

/// An error with the digits that matter, however large it is.
fn error(error: f64) -> String {
    if error < 1e9 { format!("{error:.6}") } else { format!("{error:.6e}") }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_has_a_bounded_number_of_digits() {
        assert_eq!(error(0.25), "0.250000");
        assert_eq!(error(4.325e58), "4.325000e58");
        assert_eq!(error(f64::INFINITY), "inf");
    }
}
