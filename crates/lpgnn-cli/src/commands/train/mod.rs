mod watch;

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use lpgnn::data::{Dataset, FeatureSource};
use lpgnn::experiment::record::RunRecord;
use lpgnn::experiment::run::{CheckpointInterval, Run, RunFolder, Runs};
use lpgnn::graph::SparseRows;
use lpgnn::report::LiveReport;
use lpgnn::run::{RunConfig, Setup};
use lpgnn::tensorboard::EventWriter;
use lpgnn::train::StopReason;

use super::functions;
use super::settings::{Loading, SettingArguments};
use super::views::ViewArguments;
use crate::console::{Console, print};
use crate::interrupt::Stopped;
use crate::live_page::{LivePage, Shown};
use crate::ranks;
use crate::summary;
use watch::Watch;

#[derive(Debug, Args)]
#[allow(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct Arguments {
    #[command(flatten)]
    settings: SettingArguments,

    /// Run folder [default: the next free folder in runs/].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Replace DIR if it is already a run.
    #[arg(long, requires = "out")]
    force: bool,

    /// Resume a run from its last checkpoint; of the settings, only --epochs may be changed.
    #[arg(long, value_name = "RUN", conflicts_with_all = ["out", "data", "config", "set"])]
    resume: Option<PathBuf>,

    /// Resume even if RUN/config.toml was edited after the last checkpoint; record.json lists the changes.
    #[arg(long, requires = "resume", conflicts_with_all = ["out", "data", "config", "set"])]
    accept_changes: bool,

    /// Seconds between checkpoints.
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0)]
    checkpoint_seconds: f64,

    /// Epochs between checkpoints, in addition to --checkpoint-seconds.
    #[arg(long, value_name = "N")]
    checkpoint_epochs: Option<usize>,

    /// Do not train an MLP without edges for comparison.
    #[arg(long)]
    no_baseline: bool,

    /// Also write report.html, a page of charts.
    #[arg(long)]
    report: bool,

    #[command(flatten)]
    views: ViewArguments,

    /// Print a line of JSON per epoch and one for the summary, instead of the run folder.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &Arguments, console: &Console) -> anyhow::Result<()> {
    ranks::refuse_strangers()?;
    match &arguments.resume {
        Some(path) => resume(arguments, path, console),
        None => begin(arguments, console),
    }
}

/// Trains a new run.
fn begin(arguments: &Arguments, console: &Console) -> anyhow::Result<()> {
    let chosen = arguments.settings.choose_shared()?;
    let (config, dataset) = (chosen.config.clone(), &chosen.dataset);
    // First, since it fails without leaving anything.
    let page = ranks::agree(arguments.page(dataset, console))?;
    let functions = Runs::new(functions());
    let run = match &arguments.out {
        _ if ranks::follows() => {
            functions.follow(Path::new("runs"), config, dataset).map_err(anyhow::Error::from)
        }
        Some(path) if arguments.force => {
            functions.replace(path, config, dataset).map_err(anyhow::Error::from)
        }
        Some(path) => functions.create(path, config, dataset).map_err(|error| in_use(error, path)),
        None => {
            functions.create_in(Path::new("runs"), config, dataset).map_err(anyhow::Error::from)
        }
    };
    let run = ranks::agree(run)?;
    let folder = ranks::path_of_first(run.folder().path());
    let run = run.in_folder(&folder);
    console.say(describe(dataset, run.config(), run.setup()));
    if let Some(unread) = unread(dataset, run.config()) {
        console.say(unread);
    }
    chosen.tell_notes(&run.setup().split, console)?;
    train(run, page, arguments, console)
}

/// Names the options that apply to a folder that is already a run.
fn in_use(error: lpgnn::Error, path: &Path) -> anyhow::Error {
    match error {
        lpgnn::Error::Folder { .. } if RunFolder::open(path).is_ok() => anyhow::anyhow!(
            "{} is already a run; --resume continues it, --force replaces it",
            path.display()
        ),
        error => error.into(),
    }
}

/// A note if nodes have both categories and real values, of which the latter are not used.
fn unread(dataset: &Dataset, config: &RunConfig) -> Option<String> {
    let features = dataset.node_features();
    let count = features.value_names().len() + features.sparse().map_or(0, SparseRows::width);
    let unread = config.features.source == FeatureSource::Auto
        && !features.categories().is_empty()
        && count > 0;
    let names = features.value_names();
    let what = match names.iter().next() {
        Some(name) if names.len() == 1 => format!("the real-valued node feature {name} is"),
        _ => format!("{count} real-valued node features are"),
    };
    unread.then(|| format!("note: {what} not used; --set features.source=all uses all features"))
}

/// Resumes a run, unless it has finished.
fn resume(arguments: &Arguments, path: &Path, console: &Console) -> anyhow::Result<()> {
    let opened = || {
        let folder = RunFolder::open(path)?;
        let config = longer(arguments, &folder.config()?)?;
        let finished = folder.finished()?.filter(|record| record.config == config);
        let folder = if ranks::follows() { folder.following() } else { folder };
        anyhow::Ok((folder, config, finished))
    };
    let (folder, config, finished) = ranks::agree(opened())?;
    if let Some(record) = finished {
        if ranks::follows() {
            return end(path, &record, false);
        }
        console.say(format_args!("{} has finished; --epochs extends it", path.display()));
        console.say(summary::text(&record).trim_end());
        if arguments.json {
            for epoch in folder.metrics()? {
                print(&format!("{}\n", serde_json::to_string(&epoch)?))?;
            }
        }
        if arguments.report {
            super::report::write(path, console)?;
        }
        return end(path, &record, arguments.json);
    }
    let read = Loading::start(&config.data.source, config.data.format)
        .with_context(|| format!("the data of {} no longer exist", path.display()));
    let (_, dataset) = ranks::agree(ranks::agree(read)?.finish())?;
    let page = ranks::agree(arguments.page(&dataset, console))?;
    let (epochs, functions) = (Some(config.training.epochs), Runs::new(functions()));
    let run = ranks::agree(if arguments.accept_changes {
        functions.resume_with_changes(folder, &dataset, epochs).map_err(anyhow::Error::from)
    } else {
        functions.resume(folder, &dataset, epochs).map_err(hint_at_acceptance)
    })?;
    if run.epoch() > 0 {
        console.say(format_args!("resuming {} after epoch {}", path.display(), run.epoch()));
    } else {
        console.say(format_args!("{} has no checkpoint yet: starting over", path.display()));
    }
    train(run, page, arguments, console)
}

/// Names the option that applies to edited settings.
fn hint_at_acceptance(error: lpgnn::Error) -> anyhow::Error {
    match error {
        lpgnn::Error::EditedConfig { .. } => {
            anyhow::anyhow!("{error}; --accept-changes resumes with the new values")
        }
        error => error.into(),
    }
}

/// The configuration of a run, extended by `--epochs` if given.
fn longer(arguments: &Arguments, before: &RunConfig) -> anyhow::Result<RunConfig> {
    let asked = arguments.settings.settings()?;
    if let Some(other) = asked.iter().find(|setting| setting.path() != "training.epochs") {
        bail!(lpgnn::Error::Config {
            origin: "--resume".into(),
            problem: format!("{} cannot be changed; only --epochs can", other.path()),
        });
    }
    let config = before.with(&asked)?;
    if config.training.epochs < before.training.epochs {
        bail!(lpgnn::Error::Option {
            option: "--epochs",
            value: config.training.epochs.to_string(),
            expected: format!("the run already has {}", before.training.epochs),
        });
    }
    Ok(config)
}

impl Arguments {
    fn page(&self, dataset: &Dataset, console: &Console) -> anyhow::Result<Option<LivePage>> {
        if ranks::follows() {
            return Ok(None);
        }
        self.views.check()?;
        self.views.page(console, |token| LiveReport::new(dataset.name(), token))
    }
}

fn train(
    run: Run<'_>,
    page: Option<LivePage>,
    arguments: &Arguments,
    console: &Console,
) -> anyhow::Result<()> {
    let Arguments { checkpoint_seconds: seconds, checkpoint_epochs: epochs, json, .. } = *arguments;
    let path = run.folder().path().to_owned();
    let views = &arguments.views;
    let watch = Watch::new(run.config().training.epochs, run.epoch(), json, console)?;
    let follows = ranks::follows();
    let events = if follows { None } else { views.events(&path, run.epoch(), run.config())? };
    let shown = page.as_ref().map(|page| page.run(&run)).transpose()?;
    let run = if arguments.no_baseline || follows { run.without_baseline() } else { run };
    let run = match ranks::communicator() {
        Some(job) => run.shared_by(&job),
        None => run,
    };
    let run = run
        .checkpoint_every(CheckpointInterval { seconds, epochs })
        .with_commit(env!("LPGNN_COMMIT"));
    let record = observed(run, (watch, (events, shown))).map_err(|error| {
        let stopped = format!(
            "training stopped because {} cannot be written; --resume continues it",
            path.display()
        );
        match error.downcast_ref() {
            Some(lpgnn::Error::Io { .. }) => error.context(stopped),
            _ => error,
        }
    })?;
    console.say(summary::text(&record).trim_end());
    if arguments.report && !follows {
        super::report::write(&path, console)?;
    }
    if let Some(page) = page {
        page.end(&path, &record.stop_reason.to_string());
    }
    ranks::agree(end(&path, &record, json))
}

/// Trains while a watch, an event file and a page in the browser look on.
fn observed(
    run: Run<'_>,
    mut observers: (Watch<'_>, (Option<EventWriter>, Option<Shown<'_>>)),
) -> anyhow::Result<RunRecord> {
    let trained = run.train(&mut observers);
    let (watch, (events, _)) = observers;
    watch.finish()?;
    if let Some(events) = events {
        events.finish(trained.as_ref().ok().map(|record| record.stop_reason))?;
    }
    Ok(trained?)
}

/// The last line of output. Fails unless training finished, so that scripts notice.
fn end(path: &Path, record: &RunRecord, json: bool) -> anyhow::Result<()> {
    let path = path.display();
    if json {
        print(&format!("{}\n", serde_json::to_string(record)?))?;
    } else {
        print(&format!("{path}\n"))?;
    }
    match record.stop_reason {
        StopReason::Epochs | StopReason::NoImprovement => Ok(()),
        StopReason::Diverged { epoch, .. } => {
            let best = record.best_epoch;
            bail!("training diverged in epoch {epoch}; {path} holds the weights of epoch {best}")
        }
        _ => {
            let (best, model) = (record.best_epoch, RunFolder::MODEL);
            Err(Stopped(format!(
                "{path}/{model} has the best model so far, of epoch {best}; run `lpgnn train --resume \
                 {path}` to continue"
            ))
            .into())
        }
    }
}

/// What is about to be trained, in one line.
fn describe(dataset: &Dataset, config: &RunConfig, setup: &Setup) -> String {
    let members = setup.split.level.plural();
    let [train, val, test] = setup.split_sizes;
    format!(
        "{}: predicting {}; {members}: train {}, val {}, test {}; {} with {} weights, solver {}",
        dataset.name(),
        setup.task.plural(),
        train,
        val,
        test,
        config.model.transition,
        setup.model.weights(),
        config.training.solver.name(),
    )
}
