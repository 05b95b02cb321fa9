pub(crate) mod space;

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::Args;
use lpgnn::run::{RunConfig, Setup, fingerprint, write_file};

use super::settings::{Chosen, SettingArguments};
use crate::bars::Bars;
use crate::interrupt;
use crate::parallel;
use crate::result_folder::ResultFolder;
use crate::talk::{Talk, print, print_json};
use crate::trial::{self, Trial};
use space::Space;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    settings: SettingArguments,

    /// What to choose from: a file, paper-nodes or paper-graphs.
    #[arg(long, value_name = "FILE|NAME")]
    space: String,

    /// How much to try: a number of trials, or a time as in 30s, 10m or 2h.
    #[arg(long, value_name = "N|TIME")]
    budget: Option<Budget>,

    /// Of so many trials, one goes on with so many times the epochs; 1 gives all of them all.
    #[arg(long, value_name = "N", default_value_t = 3)]
    halving: usize,

    /// Epochs of the first round, at least.
    #[arg(long, value_name = "N", default_value_t = 20)]
    min_epochs: usize,

    /// The folder of the results; the next free one in runs/ unless told. Trials that are done
    /// there are not done again.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Write JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Budget {
    Trials(usize),
    Time(Duration),
}

impl FromStr for Budget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("{text} is neither a number of trials nor a time as in 30s, 10m, 2h");
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let number: u64 = digits.parse().map_err(|_| wrong())?;
        let seconds = match &text[digits.len()..] {
            "" if number > 0 => {
                return Ok(Self::Trials(usize::try_from(number).map_err(|_| wrong())?));
            }
            "s" => 1,
            "m" => 60,
            "h" => 3600,
            _ => return Err(wrong()),
        };
        Ok(Self::Time(Duration::from_secs(number.saturating_mul(seconds))))
    }
}

/// A finished trial of a round.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
struct Done {
    trial: usize,
    epochs: usize,
    settings: Vec<(String, String)>,
    result: Trial,
}

pub(super) fn run(arguments: &Arguments, talk: &Talk) -> anyhow::Result<()> {
    let begun = Instant::now();
    let space = Space::find(&arguments.space)?;
    let Chosen { config, dataset } = arguments.settings.choose_with(&space.settings())?;
    let most = match arguments.budget {
        Some(Budget::Trials(trials)) => Some(trials),
        _ => None,
    };
    let trials = space.trials(&config, most, config.training.seed)?;
    let Some(first) = trials.first() else { bail!("{} is empty", arguments.space) };
    let setup = Setup::new(first, &dataset)?;
    if setup.split.valid.is_empty() {
        bail!("the split of {} has no validation part to choose by", dataset.name());
    }
    let plan = serde_json::json!({
        "data": fingerprint(&dataset),
        "trials": trials,
        "halving": arguments.halving,
        "min-epochs": arguments.min_epochs,
    });
    let name = format!("{}-search", dataset.name());
    let folder = ResultFolder::open(arguments.out.as_deref(), &name, &plan, &config)?;
    interrupt::listen()?;
    let rounds = rounds(trials.len(), config.training.epochs, arguments);
    talk.say(format_args!(
        "{}: {} trials, epochs {}",
        dataset.name(),
        trials.len(),
        rounds.iter().map(|(epochs, _)| epochs.to_string()).collect::<Vec<_>>().join(", then ")
    ));
    let bars = Bars::new(talk);
    let late = || match arguments.budget {
        Some(Budget::Time(time)) => begun.elapsed() >= time,
        _ => false,
    };
    let mut alive: Vec<usize> = (0..trials.len()).collect();
    let mut ranked = vec![];
    for &(epochs, keep) in &rounds {
        alive.truncate(keep);
        let file = |trial: usize| folder.file(&format!("trial-{:05}-{epochs}.json", trial + 1));
        let work = |place: usize| {
            let trial = alive[place];
            if file(trial).exists() || late() {
                return Ok(());
            }
            let mut shorter = trials[trial].clone();
            shorter.training.epochs = epochs;
            shorter.training.score_every = shorter.training.score_every.min(epochs);
            let bar = bars.add(&format!("trial {}", trial + 1), epochs);
            let result = trial::train(&shorter, &dataset, setup.split.clone(), &bar)?;
            bar.finish_and_clear();
            let Some(result) = result else { return Ok(()) };
            let settings = differences(&config, &trials[trial])?;
            let done = Done { trial: trial + 1, epochs, settings, result };
            bars.say(&line(&done));
            save(&file(trial), &done)
        };
        let all = parallel::each(alive.len(), work)?;
        if !all {
            let again = folder.path().display();
            bail!("stopped; the same command with --out {again} continues it");
        }
        let mut round: Vec<Done> = alive
            .iter()
            .filter(|&&trial| file(trial).exists())
            .map(|&trial| read(&file(trial)))
            .collect::<anyhow::Result<_>>()?;
        // The sort is stable: of equals, the first goes on, whatever the number of threads.
        round.sort_by(|a, b| value(b).total_cmp(&value(a)));
        if !round.is_empty() {
            alive = round.iter().map(|done| done.trial - 1).collect();
            ranked = round;
        }
        if late() {
            talk.say("the time is up");
            break;
        }
    }
    finish(&folder, &trials, &ranked, arguments.json, talk)
}

fn finish(
    folder: &ResultFolder,
    trials: &[RunConfig],
    ranked: &[Done],
    json: bool,
    talk: &Talk,
) -> anyhow::Result<()> {
    let best = ranked.first().context("the time was up before a trial was done")?;
    let file = folder.file("best.toml");
    write_file(&file, trials[best.trial - 1].to_toml().as_bytes())?;
    save(&folder.file("result.json"), &ranked)?;
    talk.say(format_args!("the best is {0}: lpgnn train --config {0}", file.display()));
    if json { print_json(&ranked) } else { print(&table(ranked)?) }
}

/// The epochs of every round, and how many trials are in it.
fn rounds(trials: usize, epochs: usize, arguments: &Arguments) -> Vec<(usize, usize)> {
    let mut rounds = vec![];
    let (mut left, mut length) = (1, epochs);
    loop {
        rounds.push((length.max(1), left));
        if arguments.halving < 2
            || left >= trials
            || length / arguments.halving < arguments.min_epochs
        {
            break;
        }
        left = left.saturating_mul(arguments.halving);
        length /= arguments.halving;
    }
    rounds.reverse();
    // The first round has all of them, and every other a share of those.
    let mut keep = trials;
    for round in &mut rounds {
        round.1 = keep;
        keep = keep.div_ceil(arguments.halving.max(1));
    }
    rounds
}

fn value(done: &Done) -> f64 {
    done.result.valid_value.filter(|value| !value.is_nan()).unwrap_or(f64::NEG_INFINITY)
}

/// What a trial has changed.
fn differences(base: &RunConfig, trial: &RunConfig) -> anyhow::Result<Vec<(String, String)>> {
    fn compare(
        path: &str,
        a: &serde_json::Value,
        b: &serde_json::Value,
        found: &mut Vec<(String, String)>,
    ) {
        match b {
            serde_json::Value::Object(entries) => {
                for (key, value) in entries {
                    let dot = if path.is_empty() { "" } else { "." };
                    compare(&format!("{path}{dot}{key}"), &a[key], value, found);
                }
            }
            _ if a == b => {}
            serde_json::Value::String(text) => found.push((path.to_owned(), text.clone())),
            value => found.push((path.to_owned(), value.to_string())),
        }
    }
    let mut found = vec![];
    compare("", &serde_json::to_value(base)?, &serde_json::to_value(trial)?, &mut found);
    Ok(found)
}

fn line(done: &Done) -> String {
    let value = done.result.valid_value.map_or_else(|| "-".into(), |value| format!("{value:.4}"));
    format!("trial {:>4}: valid {value} in {} epochs", done.trial, done.epochs)
}

fn table(ranked: &[Done]) -> Result<String, std::fmt::Error> {
    let mut text =
        format!("{:>5}  {:>6}  {:>7}  {:>7}  settings\n", "trial", "epochs", "valid", "test");
    for done in ranked.iter().take(10) {
        let number = |value: Option<f64>| value.map_or_else(|| "-".into(), |x| format!("{x:.4}"));
        let settings: Vec<String> = done
            .settings
            .iter()
            .map(|(path, value)| format!("{}={value}", path.rsplit('.').next().unwrap_or(path)))
            .collect();
        let line = format!(
            "{:>5}  {:>6}  {:>7}  {:>7}  {}",
            done.trial,
            done.epochs,
            number(done.result.valid_value),
            number(done.result.test_value),
            settings.join(" ")
        );
        writeln!(text, "{}", line.trim_end())?;
    }
    Ok(text)
}

fn save(path: &Path, value: &impl serde::Serialize) -> anyhow::Result<()> {
    let text = serde_json::to_string(value)? + "\n";
    Ok(write_file(path, text.as_bytes())?)
}

fn read(path: &Path) -> anyhow::Result<Done> {
    let text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{} is no result", path.display()))
}
