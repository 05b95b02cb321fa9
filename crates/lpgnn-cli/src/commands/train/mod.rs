mod watch;

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, bail};
use clap::Args;
use lpgnn::data::{Dataset, FeatureSource, Split};
use lpgnn::graph::SparseRows;
use lpgnn::run::{Checkpoint, RunConfig, SavedModel, Setup};
use lpgnn::train::{EpochReport, Trained, Trainer, TrainerState};

use super::settings::{Chosen, SettingArguments, load};
use crate::console::{Console, print};
use crate::interrupt::Stopped;
use crate::majority::majority;
use crate::run_folder::{CHECKPOINT, MODEL, RunFolder};
use crate::summary::{Ending, Summary};
use watch::{Interval, Outcome, Watch};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    settings: SettingArguments,

    /// The folder of the run; the next free one in runs/ unless told.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Replace DIR if it is a run.
    #[arg(long, requires = "out")]
    force: bool,

    /// Continue a run where its last checkpoint is; of the settings, only --epochs may be given.
    #[arg(long, value_name = "RUN", conflicts_with_all = ["out", "data", "config", "set"])]
    resume: Option<PathBuf>,

    /// Seconds between checkpoints.
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0)]
    checkpoint_seconds: f64,

    /// Epochs between checkpoints, beside those by time.
    #[arg(long, value_name = "N")]
    checkpoint_epochs: Option<usize>,

    /// Write a line of JSON per epoch and one for the summary, instead of the folder's name.
    #[arg(long)]
    json: bool,
}

/// A run that is ready to go on.
struct Run {
    folder: RunFolder,
    config: RunConfig,
    dataset: Dataset,
    setup: Setup,
    from: Option<(TrainerState, f64)>,
}

pub(super) fn run(arguments: &Arguments, console: &Console) -> anyhow::Result<()> {
    let run = match &arguments.resume {
        Some(path) => match resume(arguments, path, console)? {
            Some(run) => run,
            None => return Ok(()),
        },
        None => begin(arguments, console)?,
    };
    let interval = Interval {
        seconds: arguments.checkpoint_seconds,
        epochs: arguments.checkpoint_epochs.unwrap_or(usize::MAX),
    };
    train(run, interval, arguments.json, console)
}

/// A new run.
fn begin(arguments: &Arguments, console: &Console) -> anyhow::Result<Run> {
    let Chosen { config, dataset } = arguments.settings.choose()?;
    // Whatever does not fit is found out before a folder is made.
    let setup = Setup::new(&config, &dataset)?;
    Trainer::check(&setup.plan, &setup.model, &setup.data)?;
    let folder = RunFolder::create(arguments.out.as_deref(), dataset.name(), arguments.force)?;
    folder.write_config(&config)?;
    console.say(describe(&dataset, &config, &setup));
    if let Some(unread) = unread(&dataset, &config) {
        console.say(unread);
    }
    Ok(Run { folder, config, dataset, setup, from: None })
}

/// What is left unread of nodes that have categories and real values.
fn unread(dataset: &Dataset, config: &RunConfig) -> Option<String> {
    let features = dataset.node_features();
    let count = features.value_names().len() + features.sparse().map_or(0, SparseRows::width);
    let unread = config.features.source == FeatureSource::Auto
        && !features.categories().is_empty()
        && count > 0;
    let what = match features.value_names() {
        [name] => format!("the real value {name} of nodes is"),
        _ => format!("{count} real values of nodes are"),
    };
    unread.then(|| format!("note: {what} not read; --set features.source=all reads them too"))
}

/// A run that was begun before; none when it is done already.
fn resume(arguments: &Arguments, path: &Path, console: &Console) -> anyhow::Result<Option<Run>> {
    let folder = RunFolder::open(path)?;
    if let (Some(summary), config) = (ended(arguments, &folder)?, folder.read_config()?) {
        console.say(format_args!("{} is done; --epochs makes it longer", path.display()));
        console.say(summary.text(&config).trim_end());
        if arguments.json {
            print(&folder.read_metrics()?)?;
        }
        print_end(&folder, &summary, arguments.json)?;
        complain(&folder, &summary)?;
        return Ok(None);
    }
    let folder = folder.lock()?;
    let before = folder.read_config()?;
    let config = longer(arguments, &before)?;
    let (_, dataset) = load(&config.data.source, config.data.format)
        .with_context(|| format!("the data of {} are not there any more", path.display()))?;
    let setup = Setup::new(&config, &dataset)?;
    let from = if folder.file(CHECKPOINT).exists() {
        let nodes = setup.data.training_graphs().nodes();
        let checkpoint = Checkpoint::read(&folder.file(CHECKPOINT), &setup.model, nodes)?;
        if checkpoint.fingerprint != setup.fingerprint {
            bail!("{} has changed since {} was begun", config.data.source, path.display());
        }
        console.say(format_args!(
            "continuing {} after epoch {}",
            path.display(),
            checkpoint.state.epoch
        ));
        Some((checkpoint.state, checkpoint.seconds))
    } else {
        console.say(format_args!("{} has no checkpoint yet: starting again", path.display()));
        None
    };
    if config != before {
        folder.write_config(&config)?;
    }
    Ok(Some(Run { folder, config, dataset, setup, from }))
}

/// How a run ended that is not to be made longer.
fn ended(arguments: &Arguments, folder: &RunFolder) -> anyhow::Result<Option<Summary>> {
    let before = folder.read_config()?;
    let same = longer(arguments, &before)? == before;
    let summary = folder.read_summary()?;
    let whole = same && folder.file(MODEL).exists();
    Ok(summary.filter(|summary| whole && summary.reason != Ending::Stopped))
}

/// The configuration of a run with more epochs, if they were asked for.
fn longer(arguments: &Arguments, before: &RunConfig) -> anyhow::Result<RunConfig> {
    let asked = arguments.settings.settings()?;
    if let Some(other) = asked.iter().find(|setting| setting.path() != "training.epochs") {
        bail!(lpgnn::Error::Config {
            origin: "--resume".into(),
            problem: format!("{} is that of the run and cannot be changed", other.path()),
        });
    }
    let config = before.with(&asked)?;
    if config.training.epochs < before.training.epochs {
        bail!(lpgnn::Error::Option {
            option: "--epochs",
            value: config.training.epochs.to_string(),
            expected: format!("the run has {} already", before.training.epochs),
        });
    }
    Ok(config)
}

fn train(run: Run, interval: Interval, json: bool, console: &Console) -> anyhow::Result<()> {
    let Run { folder, config, dataset, setup, from } = run;
    let mut trainer = Trainer::new(setup.plan.clone(), &setup.model, &setup.data)?;
    let mut seconds = 0.0;
    if let Some((state, before)) = from {
        seconds = before;
        trainer = trainer.resume(state)?;
    }
    let begun = Instant::now();
    let done = trainer.state().epoch;
    let mut watch =
        Watch::new(&folder, &config, &setup.fingerprint, interval, (done, seconds), json, console)?;
    let trained = trainer.run(&mut watch)?;
    let outcome = watch.finish()?;

    let seconds = seconds + begun.elapsed().as_secs_f64();
    let summary = summarize(&config, &dataset, &setup, &trained, &outcome, seconds);
    let model =
        SavedModel::new(&setup, &config, dataset.name(), trained.epoch, trained.weights.clone());
    model.write(&folder.file(MODEL))?;
    folder.write_summary(&summary)?;
    let text = summary.text(&config);
    folder.log()?.line(text.trim_end())?;
    console.say(text.trim_end());
    print_end(&folder, &summary, json)?;
    complain(&folder, &summary)
}

/// Fails unless the run came to its end, so that scripts see it too.
fn complain(folder: &RunFolder, summary: &Summary) -> anyhow::Result<()> {
    let path = folder.path().display();
    match &summary.reason {
        Ending::Epochs | Ending::NoImprovement => Ok(()),
        Ending::Stopped => {
            Err(Stopped(format!("`lpgnn train --resume {path}` continues it")).into())
        }
        Ending::Diverged { diverged_in, .. } => {
            let epoch = summary.epoch;
            bail!(
                "training diverged in epoch {diverged_in}; {path} has the weights of epoch {epoch}"
            )
        }
    }
}

/// The last line of a run.
fn print_end(folder: &RunFolder, summary: &Summary, json: bool) -> anyhow::Result<()> {
    if json {
        print(&format!("{}\n", serde_json::to_string(summary)?))
    } else {
        print(&format!("{}\n", folder.path().display()))
    }
}

fn summarize(
    config: &RunConfig,
    dataset: &Dataset,
    setup: &Setup,
    trained: &Trained<f32>,
    outcome: &Outcome,
    seconds: f64,
) -> Summary {
    let last = outcome.last.as_ref();
    Summary {
        version: env!("CARGO_PKG_VERSION").into(),
        data: lpgnn::run::DataOrigin {
            name: dataset.name().to_owned(),
            fingerprint: setup.fingerprint.clone(),
        },
        task: setup.task,
        seed: config.training.seed,
        solver: config.training.solver.name().into(),
        reason: Ending::from(trained.reason),
        epochs: outcome.epochs,
        epoch: trained.epoch,
        seconds,
        residual_mean: last.map(|report| report.residual_mean),
        residual_max: last.map(|report| report.residual_max),
        state_mean: last.map(|report| report.state_mean),
        constraints_met: last.map(EpochReport::constraints_met),
        evaluation: trained.evaluation.clone(),
        majority: majority(dataset, setup),
    }
}

/// What is about to happen, in a line.
fn describe(dataset: &Dataset, config: &RunConfig, setup: &Setup) -> String {
    let members = setup.split.level.plural();
    let Split { train, val, test, .. } = &setup.split;
    format!(
        "{}: {} to predict; {members} train {}, val {}, test {}; {} with {} weights, solver {}",
        dataset.name(),
        setup.task.plural(),
        train.len(),
        val.len(),
        test.len(),
        config.model.transition,
        setup.model.weights(),
        config.training.solver.name(),
    )
}
