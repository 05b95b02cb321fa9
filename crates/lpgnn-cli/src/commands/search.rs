use std::fmt::Write;
use std::path::PathBuf;

use anyhow::bail;
use clap::Args;
use lpgnn::experiment::search::{Budget, Search, SearchOptions, SearchRecord, Space};
use lpgnn::experiment::{ResultFolder, TrialName};
use lpgnn::report::LiveReport;
use lpgnn::tensorboard::TrialEvents;
use lpgnn::train::Monitor;

use super::functions;
use super::settings::{Chosen, SettingArguments};
use super::sharing::{Place, ShareArguments, names};
use super::views::ViewArguments;
use crate::bars::Bars;
use crate::console::{Console, print, print_json};
use crate::interrupt::Stopped;
use crate::ranks;
use crate::summary::tell_value;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    settings: SettingArguments,

    /// The search space: a file, paper-nodes or paper-graphs.
    #[arg(long, value_name = "FILE|NAME")]
    space: String,

    /// The budget: a number of trials, or a duration such as 30s, 10m or 2h.
    #[arg(long, value_name = "N|TIME")]
    budget: Option<Budget>,

    /// Successive halving: keep 1 in N trials and train it N times as long; 1 disables it.
    #[arg(long, value_name = "N", default_value_t = 3)]
    halving: usize,

    /// Minimum number of epochs of the first round.
    #[arg(long, value_name = "N", default_value_t = 20)]
    min_epochs: usize,

    /// Output folder; completed trials in it are not repeated [default: the next free folder in
    /// runs/].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    #[command(flatten)]
    share: ShareArguments,

    /// Also write report.html, a page of charts.
    #[arg(long)]
    report: bool,

    #[command(flatten)]
    views: ViewArguments,

    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl Arguments {
    /// Whether the processes of a job work on it together.
    pub(super) fn is_shared(&self) -> bool {
        !self.share.collect
    }
}

pub(super) fn run(arguments: &Arguments, console: &Console) -> anyhow::Result<()> {
    let (space, chosen) = ranks::agree(choose(arguments))?;
    let Chosen { config, dataset, .. } = &chosen;
    let Arguments { budget, halving, min_epochs, .. } = *arguments;
    let options = SearchOptions { budget, halving, min_epochs };
    let search = ranks::agree(Search::with_registry(
        &functions(),
        dataset,
        config.clone(),
        &space,
        options,
    ))?;
    let live = |token: &str| LiveReport::new(dataset.name(), token);
    let page = ranks::agree(arguments.views.page(console, live))?;
    let (plan, name) = (search.plan(), format!("{}-search", dataset.name()));
    let place = Place { out: arguments.out.as_deref(), name: &name, plan: &plan, config };
    let folder = arguments.share.open(&place)?;
    if arguments.share.collect {
        return collect(&search, &folder, arguments, console);
    }
    announce(&search, &chosen, console)?;
    let shown = folder.path().display();
    let config_of =
        |name: TrialName, _| search.trials().get(usize::try_from(name.number - 1).ok()?);
    let events = arguments.views.trial_events(folder.path(), config_of);
    let shows = page.as_ref().map(|page| page.trials(config));
    let observers = (Bars::new(console)?, (events, shows));
    let run = search.run(&folder, &observers);
    observers.1.0.map_or(Ok(()), TrialEvents::finish)?;
    let Some(found) = run? else {
        let again = format!("interrupted; run the same command with --out {shown} to continue");
        return Err(Stopped(again).into());
    };
    if ranks::follows() {
        return Ok(());
    }
    tell(&found, &folder, arguments, console)?;
    if let Some(page) = page {
        page.end(folder.path(), "all trials are done");
    }
    Ok(())
}

/// The space, and the settings that its trials have in common.
fn choose(arguments: &Arguments) -> anyhow::Result<(Space, Chosen)> {
    let space = Space::find(&arguments.space)?;
    space.check_settings(&arguments.settings.settings()?)?;
    let chosen = arguments.settings.choose_with(&space.settings())?;
    Ok((space, chosen))
}

/// What is about to be tried.
fn announce(search: &Search<'_>, chosen: &Chosen, console: &Console) -> anyhow::Result<()> {
    let Chosen { config, dataset, .. } = chosen;
    let epochs = |share: usize| config.training.epochs.div_ceil(share).to_string();
    let rounds: Vec<String> = search.rounds().iter().map(|round| epochs(round.share)).collect();
    console.say(format_args!(
        "{}: {} trials, epochs {}",
        dataset.name(),
        search.trials().len(),
        rounds.join(", then ")
    ));
    chosen.tell_notes(search.split(), console)?;
    if search.exhausts_space() {
        console.say("note: these are all trials of the search space, fewer than the budget");
    }
    Ok(())
}

/// Puts together what shards have done.
fn collect(
    search: &Search<'_>,
    folder: &ResultFolder,
    arguments: &Arguments,
    console: &Console,
) -> anyhow::Result<()> {
    let Some(found) = search.collect(folder)? else {
        let ((missing, round), path) = (search.missing(folder)?, folder.path().display());
        let rounds = search.rounds().len();
        bail!("{path} lacks {} of round {round} of {rounds}", names(&missing));
    };
    tell(&found, folder, arguments, console)
}

fn tell(
    found: &SearchRecord,
    folder: &ResultFolder,
    arguments: &Arguments,
    console: &Console,
) -> anyhow::Result<()> {
    let shown = folder.path().display();
    if !found.complete {
        console.say(format_args!(
            "the time budget is used up; run the same command with --out {shown} to continue"
        ));
    }
    let file = folder.file(Search::BEST);
    console.say(format_args!(
        "best settings in {0}; train with `lpgnn train --config {0}`",
        file.display()
    ));
    if arguments.report {
        super::report::write(folder.path(), console)?;
    }
    if arguments.json { print_json(found) } else { print(&text(found)?) }
}

/// The ten best trials, and the winner.
fn text(found: &SearchRecord) -> Result<String, std::fmt::Error> {
    let mut text = format!("{:>5}  {:>6}  {:>7}  settings\n", "trial", "epochs", "val");
    for done in found.ranked.iter().take(10) {
        let settings: Vec<String> = done.settings.iter().map(short).collect();
        let line = format!(
            "{:>5}  {:>6}  {:>7}  {}",
            done.trial,
            done.epochs,
            number(found.metric, done.result.val_value),
            settings.join(" ")
        );
        writeln!(text, "{}", line.trim_end())?;
    }
    let SearchRecord { trial, val, test_of_the_winner: test, .. } = found;
    write!(text, "winner: trial {trial}, val {}", number(found.metric, *val))?;
    if let Some(test) = test {
        write!(text, "; evaluated once on the test split: {}", tell_value(found.metric, *test))?;
    }
    writeln!(text)?;
    Ok(text)
}

fn number(metric: Monitor, value: Option<f64>) -> String {
    value.map_or_else(|| "-".into(), |value| tell_value(metric, value))
}

/// As in `lr=0.01`; a sampled number is rounded to a few digits.
fn short((path, value): &(String, String)) -> String {
    let key = path.rsplit('.').next().unwrap_or(path);
    match value.parse::<f64>() {
        Ok(number) if value.len() > 8 => format!("{key}={number:.2e}"),
        _ => format!("{key}={value}"),
    }
}
