use std::fmt::Write;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use anyhow::bail;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use lpgnn::evaluate::{MeanAndStd, Protocol};
use lpgnn::experiment::ResultFolder;
use lpgnn::experiment::crossval::{Crossval, CrossvalReport, Division};
use lpgnn::experiment::search::Space;
use lpgnn::graph::Level;
use lpgnn::report::LiveReport;
use lpgnn::run::refuse;
use lpgnn::tensorboard::TrialEvents;
use lpgnn::train::Monitor;

use super::settings::{Chosen, SettingArguments};
use super::sharing::{Place, ShareArguments, names};
use super::views::ViewArguments;
use super::{at_most, functions};
use crate::bars::Bars;
use crate::console::{Console, print, print_json};
use crate::count::count;
use crate::interrupt::{self, Stopped};
use crate::ranks;
use crate::summary::graphs;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    settings: SettingArguments,

    /// Number of folds.
    #[arg(long, value_name = "K", default_value_t = 10, conflicts_with = "fold_files")]
    folds: usize,

    /// Predefined folds: a folder with train_idx-1.txt, test_idx-1.txt and so on, as written by
    /// `lpgnn data folds`, or a file with the fold of each node or graph.
    #[arg(long, value_name = "DIR|FILE")]
    fold_files: Option<PathBuf>,

    /// Random seed of the folds.
    #[arg(long, value_name = "N", default_value_t = 0)]
    fold_seed: u64,

    /// Evaluation protocol: best-mean-epoch is the paper's, but optimistic; nested is unbiased.
    #[arg(long, value_parser = protocol(), default_value = Protocol::BestMeanEpoch.as_str())]
    protocol: Protocol,

    /// Search space for model selection on the inner split; requires --protocol nested.
    #[arg(long, value_name = "FILE|NAME")]
    space: Option<String>,

    /// Train a deep network layer by layer: N models one after the other, each on the features and states of the one below,
    /// which stays as it is. The last one counts.
    #[arg(long, value_name = "N", default_value = "1", value_parser = count::<MOST_REPETITIONS>)]
    stages: NonZeroUsize,

    /// Train N models per fold, with consecutive seeds, and evaluate the mean of their predictions.
    #[arg(long, value_name = "N", default_value = "1", value_parser = count::<MOST_REPETITIONS>)]
    ensemble: NonZeroUsize,

    /// Output folder; completed folds in it are not repeated [default: the next free folder in
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

/// Far more than helps.
const MOST_REPETITIONS: usize = 1000;

fn protocol() -> impl TypedValueParser<Value = Protocol> {
    PossibleValuesParser::new(Protocol::OF_FOLDS.map(Protocol::as_str))
        .try_map(|name| name.parse::<Protocol>())
}

impl Arguments {
    /// Whether the processes of a job work on it together.
    pub(super) fn is_shared(&self) -> bool {
        !self.share.collect
    }
}

pub(super) fn run(arguments: &Arguments, console: &Console) -> anyhow::Result<()> {
    let chosen = ranks::agree(choose(arguments))?;
    let Chosen { config, dataset, .. } = &chosen;
    let crossval = ranks::agree(prepare(arguments, &chosen))?;
    let Arguments { protocol, share, .. } = arguments;
    let live = |token: &str| LiveReport::new(dataset.name(), token).with_protocol(*protocol);
    let page = ranks::agree(arguments.views.page(console, live))?;
    let (plan, name) = (crossval.plan(), format!("{}-cv", dataset.name()));
    let place = Place { out: arguments.out.as_deref(), name: &name, plan: &plan, config };
    let folder = share.open(&place)?;
    if share.collect {
        return collect(&crossval, &folder, arguments, console);
    }
    console.say(format_args!(
        "{}: {} folds, {} ({})",
        dataset.name(),
        crossval.folds().len(),
        protocol,
        protocol.describe()
    ));
    for note in crossval.notes(config, &chosen.settings)? {
        console.say(format_args!("note: {note}"));
    }
    let shown = folder.path().display();
    let config_of = |name, candidate: usize| {
        let fold = crossval.folds().iter().find(|fold| fold.name == name)?;
        fold.candidates.get(candidate)
    };
    let events = arguments.views.trial_events(folder.path(), config_of);
    let shows = page.as_ref().map(|page| page.trials(config));
    let observers = (Bars::new(console)?, (events, shows));
    let run = crossval.run(&folder, &observers);
    observers.1.0.map_or(Ok(()), TrialEvents::finish)?;
    let report = run?;
    if report.is_none() && interrupt::asked() {
        let again = format!("interrupted; run the same command with --out {shown} to continue");
        return Err(Stopped(again).into());
    }
    if ranks::follows() {
        return Ok(());
    }
    let Some(report) = report else {
        console.say(share.part_done(&crossval.missing(&folder)));
        return Ok(());
    };
    tell(&report, &folder, arguments, console)?;
    if let Some(page) = page {
        page.end(folder.path(), "all folds are done");
    }
    Ok(())
}

/// The folds, each with its candidates.
fn prepare<'a>(arguments: &Arguments, chosen: &'a Chosen) -> anyhow::Result<Crossval<'a>> {
    let Chosen { config, dataset, .. } = chosen;
    let task = Level::of_task(config.data.task, dataset)?;
    let candidates = match &arguments.space {
        None => vec![config.clone()],
        Some(space) => Space::find(space)?.trials(config, None, config.training.seed)?,
    };
    let Arguments { folds, fold_files, fold_seed, protocol, .. } = arguments;
    let division = Division { folds: *folds, files: fold_files.clone(), seed: *fold_seed };
    let folds = division.folds(dataset, task, *protocol, &candidates)?;
    let crossval = Crossval::with_registry(&functions(), dataset, *protocol, folds)?;
    Ok(crossval.with_stages(arguments.stages.get()).with_ensemble(arguments.ensemble.get()))
}

/// Puts together what shards have done.
fn collect(
    crossval: &Crossval<'_>,
    folder: &ResultFolder,
    arguments: &Arguments,
    console: &Console,
) -> anyhow::Result<()> {
    let Some(report) = crossval.collect(folder)? else {
        bail!("{} lacks {}", folder.path().display(), names(&crossval.missing(folder)));
    };
    tell(&report, folder, arguments, console)
}

fn tell(
    report: &CrossvalReport,
    folder: &ResultFolder,
    arguments: &Arguments,
    console: &Console,
) -> anyhow::Result<()> {
    console.say(format_args!("results in {}", folder.path().display()));
    if arguments.report {
        super::report::write(folder.path(), console)?;
    }
    if arguments.json { print_json(report) } else { print(&text(report)?) }
}

/// The settings, none of which is about a split or varied by the space: they would have no effect.
fn choose(arguments: &Arguments) -> anyhow::Result<Chosen> {
    let Arguments { settings, space, protocol, fold_files, fold_seed, .. } = arguments;
    let made = settings.settings()?;
    refuse(&made, &["split"], "cross-validation has folds; --folds and --fold-seed draw them")?;
    if fold_files.is_some() && *fold_seed != 0 && *protocol != Protocol::Nested {
        bail!(lpgnn::Error::Option {
            option: "--fold-seed",
            value: fold_seed.to_string(),
            expected: "the folds of --fold-files are not drawn".into(),
        });
    }
    match space {
        None => settings.choose(),
        Some(space) if *protocol == Protocol::Nested => {
            let space = Space::find(space)?;
            space.check_settings(&made)?;
            settings.choose_with(&space.settings())
        }
        Some(_) => bail!(lpgnn::Error::Option {
            option: "--space",
            value: "given".into(),
            expected: "model selection requires --protocol nested".into(),
        }),
    }
}

fn text(report: &CrossvalReport) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    let CrossvalReport { data, protocol, metric, folds, ensemble, seed, .. } = report;
    let metric = match metric {
        Monitor::Auto => String::new(),
        metric => format!(", {}", metric.title()),
    };
    let seeds = match *ensemble {
        1 => format!("seed {seed}"),
        count => {
            format!("ensembles of {count}, seeds {seed} to {}", seed.wrapping_add(count as u64 - 1))
        }
    };
    writeln!(text, "{data}, {folds} folds, protocol {protocol}{metric}, {seeds}")?;
    let epoch = report.epoch.map(|epoch| format!("  epoch {epoch} of the mean curve"));
    match report.values.iter().filter(|value| !value.is_finite()).count() {
        0 => {
            let test = range(report.metric, report.test);
            writeln!(text, "  LP-GNN                {test}{}", epoch.unwrap_or_default())?;
        }
        1 => writeln!(
            text,
            "  LP-GNN                no mean: 1 of {folds} folds has no finite score"
        )?,
        count => {
            writeln!(
                text,
                "  LP-GNN                no mean: {count} of {folds} folds have no score"
            )?;
        }
    }
    writeln!(text, "  MLP without edges     {}", range(report.metric, report.baseline))?;
    if let Some(majority) = report.majority {
        writeln!(text, "  majority class        {}", range(report.metric, majority))?;
    }
    if let Some(residual) = report.residual {
        writeln!(text, "  residual              {residual:.1e} at the end of training")?;
        let known = |distance| match report.unbounded {
            0 => format!("{} from the fixed point", at_most(distance)),
            count => format!(
                "{} from the fixed point; not known of {} in all folds",
                at_most(distance),
                graphs(count)
            ),
        };
        let distance = report.distance.map_or("not known".into(), known);
        writeln!(text, "  distance, at most     {distance}")?;
    }
    if report.diverged > 0 {
        writeln!(text, "  diverged              {} of {folds} folds", report.diverged)?;
    }
    if report.not_converged > 0 {
        writeln!(text, "  not converged         {} in all folds", graphs(report.not_converged))?;
    }
    Ok(text)
}

fn range(metric: Monitor, values: MeanAndStd) -> String {
    if !values.mean.is_finite() {
        return "no mean: not all folds have a finite score".into();
    }
    if metric != Monitor::Auto {
        return format!("{:.4} ± {:.4}", values.mean, values.std);
    }
    if values.mean < 0.0 {
        // The negative of a loss.
        return format!("loss {:.4} ± {:.4}", -values.mean, values.std);
    }
    format!("{:>5.1} ± {:>4.1} %", 100.0 * values.mean, 100.0 * values.std)
}
