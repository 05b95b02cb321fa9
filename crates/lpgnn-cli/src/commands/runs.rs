use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use lpgnn::experiment::record::RunRecord;
use lpgnn::experiment::run::RunFolder;
use lpgnn::train::{SplitName, StopReason};

use crate::console::{Console, print, print_json};
use crate::summary::tell_metrics;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The folder of the runs.
    #[arg(value_name = "DIR", default_value = "runs")]
    folder: PathBuf,

    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// A run and its record, if it has finished.
#[derive(serde::Serialize)]
struct Listed {
    run: String,
    /// Settings that differ between runs.
    settings: Vec<(String, String)>,
    record: Option<RunRecord>,
}

pub(super) fn run(arguments: &Arguments, console: &Console) -> anyhow::Result<()> {
    if !arguments.folder.is_dir() {
        bail!("there is no folder {}; `lpgnn train` creates runs", arguments.folder.display());
    }
    let mut paths = vec![];
    find(&arguments.folder, 0, &mut paths)?;
    paths.sort_by_key(|path| natural(path));
    let mut runs = vec![];
    for path in &paths {
        match listed(path) {
            Ok(run) => runs.push(run),
            // One broken run must not hide the others.
            Err(error) => console.say(format_args!("note: {}: {error:#}", path.display())),
        }
    }
    if runs.is_empty() {
        bail!("there are no runs in {}", arguments.folder.display());
    }
    keep_differences(&mut runs);
    if arguments.json { print_json(&runs) } else { print(&text(&runs)?) }
}

/// Runs in a folder and its subfolders.
fn find(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    if folder.join(RunFolder::CONFIG).exists() {
        found.push(folder.to_owned());
    } else if depth < 3 {
        let entries = std::fs::read_dir(folder)
            .with_context(|| format!("cannot list {}", folder.display()))?;
        for entry in entries {
            let path = entry?.path();
            if path.is_dir() {
                find(&path, depth + 1, found)?;
            }
        }
    }
    Ok(())
}

/// Natural order: run 10 comes after run 9.
fn natural(path: &Path) -> (String, u64) {
    let name = path.display().to_string();
    let digits = name.len() - name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let (stem, number) = name.split_at(name.len() - digits);
    (stem.to_owned(), number.parse().unwrap_or(0))
}

fn listed(path: &Path) -> anyhow::Result<Listed> {
    let folder = RunFolder::open(path)?;
    let config = serde_json::to_value(folder.config()?)?;
    let mut settings = vec![];
    flatten("", &config, &mut settings);
    Ok(Listed { run: path.display().to_string(), settings, record: folder.record()? })
}

fn flatten(path: &str, value: &serde_json::Value, settings: &mut Vec<(String, String)>) {
    match value {
        serde_json::Value::Object(entries) => {
            for (key, value) in entries {
                let dot = if path.is_empty() { "" } else { "." };
                flatten(&format!("{path}{dot}{key}"), value, settings);
            }
        }
        serde_json::Value::String(text) => settings.push((path.to_owned(), text.clone())),
        serde_json::Value::Null => settings.push((path.to_owned(), "none".to_owned())),
        value => settings.push((path.to_owned(), value.to_string())),
    }
}

/// Drops settings that all runs share.
fn keep_differences(runs: &mut [Listed]) {
    let shared = |setting: &(String, String), runs: &[Listed]| {
        runs.iter().all(|run| run.settings.contains(setting))
    };
    let differing: Vec<Vec<(String, String)>> = runs
        .iter()
        .map(|run| run.settings.iter().filter(|s| !shared(s, runs)).cloned().collect())
        .collect();
    for (run, settings) in runs.iter_mut().zip(differing) {
        run.settings = settings;
    }
}

/// The shortest suffix of a path that is unique among all paths.
fn short<'a>(path: &'a str, all: &BTreeSet<&str>) -> &'a str {
    let ends = path.rmatch_indices('.').map(|(dot, _)| &path[dot + 1..]);
    let is_of_one = |end: &&str| {
        let same = |other: &&&str| {
            other.strip_suffix(end).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        all.iter().filter(same).count() == 1
    };
    ends.into_iter().find(is_of_one).unwrap_or(path)
}

fn text(runs: &[Listed]) -> Result<String, std::fmt::Error> {
    let width = runs.iter().map(|run| run.run.chars().count()).max().unwrap_or(0).max(4);
    let mut text = String::new();
    writeln!(
        text,
        "{:<width$}  {:>6}  {:>8}  {:>8}  {:>8}  {:>8}  {:<10}  differs in",
        "run", "epochs", "train", "val", "test", "residual", "status"
    )?;
    let paths: BTreeSet<&str> =
        runs.iter().flat_map(|run| &run.settings).map(|(path, _)| path.as_str()).collect();
    for Listed { run, settings, record } in runs {
        let score = |part| {
            let evaluation = record.as_ref().and_then(|record| record.evaluation.as_ref());
            evaluation
                .and_then(|evaluation| evaluation.of(part))
                .map_or_else(|| "-".into(), tell_metrics)
        };
        let epochs = record.as_ref().map_or_else(|| "-".into(), |r| r.epochs.to_string());
        let residual = record
            .as_ref()
            .and_then(|record| record.last_epoch.as_ref())
            .map_or_else(|| "-".into(), |last| format!("{:.1e}", last.residual_mean));
        let ended = match record.as_ref().map(|record| record.stop_reason) {
            None => "unfinished",
            Some(StopReason::Epochs) => "done",
            Some(StopReason::NoImprovement) => "early stop",
            Some(StopReason::Diverged { .. }) => "diverged",
            Some(_) => "stopped",
        };
        let differs: Vec<String> = settings
            .iter()
            .filter(|(path, _)| path != "data.source" || settings.len() == 1)
            .map(|(path, value)| format!("{}={value}", short(path, &paths)))
            .collect();
        let line = format!(
            "{run:<width$}  {epochs:>6}  {:>8}  {:>8}  {:>8}  {residual:>8}  {ended:<10}  {}",
            score(SplitName::Train),
            score(SplitName::Val),
            score(SplitName::Test),
            differs.join(" ")
        );
        writeln!(text, "{}", line.trim_end())?;
    }
    Ok(text)
}
