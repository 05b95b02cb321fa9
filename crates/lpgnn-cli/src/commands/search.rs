use std::fmt::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use lpgnn::experiment::search::{Budget, Search, SearchOptions, SearchRecord, Space};
use lpgnn::experiment::{ResultFolder, TrialName};
use lpgnn::report::LiveReport;
use lpgnn::tensorboard::TrialEvents;

use super::settings::{Chosen, SettingArguments};
use super::views::ViewArguments;
use crate::bars::Bars;
use crate::console::{Console, print, print_json};
use crate::interrupt::Stopped;
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

    /// Write report.html to the folder: charts of what was done.
    #[arg(long)]
    report: bool,

    #[command(flatten)]
    views: ViewArguments,

    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments, console: &Console) -> anyhow::Result<()> {
    let space = Space::find(&arguments.space)?;
    space.check_settings(&arguments.settings.settings()?)?;
    let chosen = arguments.settings.choose_with(&space.settings())?;
    let Chosen { config, dataset, .. } = &chosen;
    let Arguments { budget, halving, min_epochs, .. } = *arguments;
    let options = SearchOptions { budget, halving, min_epochs };
    let search = Search::new(dataset, config.clone(), &space, options)?;
    let page = arguments.views.page(console, |token| LiveReport::new(dataset.name(), token))?;
    let (plan, name) = (search.plan(), format!("{}-search", dataset.name()));
    let folder = match &arguments.out {
        Some(path) => ResultFolder::open(path, &plan, config)?,
        None => ResultFolder::create_in(Path::new("runs"), &name, &plan, config)?,
    };
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
    if let Some(page) = page {
        page.end(folder.path(), "all trials are done");
    }
    if arguments.json { print_json(&found) } else { print(&text(&found)?) }
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
            number(done.result.val_value),
            settings.join(" ")
        );
        writeln!(text, "{}", line.trim_end())?;
    }
    let SearchRecord { trial, val, test_of_the_winner: test, .. } = found;
    write!(text, "winner: trial {trial}, val {}", number(*val))?;
    if let Some(test) = test {
        write!(text, "; evaluated once on the test split: {}", tell_value(*test))?;
    }
    writeln!(text)?;
    Ok(text)
}

fn number(value: Option<f64>) -> String {
    value.map_or_else(|| "-".into(), tell_value)
}

/// As in `lr=0.01`; a sampled number is rounded to a few digits.
fn short((path, value): &(String, String)) -> String {
    let key = path.rsplit('.').next().unwrap_or(path);
    match value.parse::<f64>() {
        Ok(number) if value.len() > 8 => format!("{key}={number:.2e}"),
        _ => format!("{key}={value}"),
    }
}
