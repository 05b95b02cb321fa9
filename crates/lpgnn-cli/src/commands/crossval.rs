mod report;

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use lpgnn::data::{Dataset, Encoding, Level, Split};
use lpgnn::evaluate::{Baseline, Protocol};
use lpgnn::run::{RunConfig, Setup, Task, fingerprint, write_file};

use super::search::space::Space;
use super::settings::{Chosen, SettingArguments};
use super::train::majority;
use crate::bars::Bars;
use crate::interrupt;
use crate::parallel;
use crate::result_folder::ResultFolder;
use crate::talk::{Talk, print, print_json};
use crate::trial::{self, Trial};
use report::{Fold, Report};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    settings: SettingArguments,

    /// Folds to make.
    #[arg(long, value_name = "K", default_value_t = 10, conflicts_with = "fold_files")]
    folds: usize,

    /// A folder of given folds: train_idx-1.txt, test_idx-1.txt, and so on.
    #[arg(long, value_name = "DIR")]
    fold_files: Option<PathBuf>,

    /// Where random numbers of the folds start.
    #[arg(long, value_name = "N", default_value_t = 0)]
    fold_seed: u64,

    /// best-mean-epoch is the paper's, and optimistic; nested is fair.
    #[arg(long, value_parser = protocol(), default_value = Protocol::BestMeanEpoch.as_str())]
    protocol: Protocol,

    /// Choose among the models of a space, too, on the inner split; for nested.
    #[arg(long, value_name = "FILE|NAME")]
    space: Option<String>,

    /// The folder of the results; the next free one in runs/ unless told. Folds that are done
    /// there are not done again.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Write JSON.
    #[arg(long)]
    json: bool,
}

fn protocol() -> impl TypedValueParser<Value = Protocol> {
    PossibleValuesParser::new(Protocol::ALL.map(Protocol::as_str))
        .try_map(|name| name.parse::<Protocol>())
}

/// One in so many of the training members of a fold chooses the epoch.
const INNER: usize = 9;

pub(super) fn run(arguments: &Arguments, talk: &Talk) -> anyhow::Result<()> {
    let Chosen { config, dataset } = arguments.settings.choose()?;
    let task = Task::of(config.data.task, &dataset)?;
    let splits = splits(arguments, &dataset, task)?;
    let candidates = candidates(arguments, &config)?;
    for candidate in &candidates {
        Setup::with_split(candidate, &dataset, splits[0].clone())?;
    }
    let plan = serde_json::json!({
        "data": fingerprint(&dataset),
        "protocol": arguments.protocol,
        "candidates": candidates,
        "folds": splits.iter().map(|split| &split.test).collect::<Vec<_>>(),
    });
    let name = format!("{}-cv", dataset.name());
    let folder = ResultFolder::open(arguments.out.as_deref(), &name, &plan, &config)?;
    interrupt::listen()?;
    talk.say(format_args!(
        "{}: {} folds, {} ({})",
        dataset.name(),
        splits.len(),
        arguments.protocol,
        arguments.protocol.describe()
    ));
    let bars = Bars::new(talk);
    let work = |k: usize| {
        let file = folder.file(&format!("fold-{:02}.json", k + 1));
        if file.exists() {
            return Ok(());
        }
        let done = fold(&candidates, &dataset, &splits[k], k, arguments, &bars)?;
        match done {
            Some(fold) => save(&file, &fold),
            None => Ok(()),
        }
    };
    let all = parallel::each(splits.len(), work)?;
    if !all {
        let again = folder.path().display();
        bail!("stopped; the same command with --out {again} continues it");
    }
    let folds: Vec<Fold> = (1..=splits.len())
        .map(|k| read(&folder.file(&format!("fold-{k:02}.json"))))
        .collect::<anyhow::Result<_>>()?;
    let report = Report::new(dataset.name(), arguments.protocol, config.training.seed, &folds)?;
    save(&folder.file("result.json"), &report)?;
    talk.say(format_args!("results in {}", folder.path().display()));
    if arguments.json { print_json(&report) } else { print(&report.text()?) }
}

/// The configurations to choose from: the one that was asked for, or those of a space.
fn candidates(arguments: &Arguments, config: &RunConfig) -> anyhow::Result<Vec<RunConfig>> {
    match (&arguments.space, arguments.protocol) {
        (None, _) => Ok(vec![config.clone()]),
        (Some(space), Protocol::Nested) => {
            let space = Space::find(space)?;
            space.trials(config, None, config.training.seed)
        }
        (Some(_), _) => bail!(lpgnn::Error::Option {
            option: "--space",
            value: "given".into(),
            expected: "only --protocol nested chooses among models".into(),
        }),
    }
}

fn splits(arguments: &Arguments, dataset: &Dataset, task: Task) -> anyhow::Result<Vec<Split>> {
    let (level, members) = match task {
        Task::Graphs => (Level::Graph, dataset.graphs()),
        Task::Nodes => (Level::Node, dataset.nodes()),
    };
    match &arguments.fold_files {
        Some(folder) => Ok(Split::read_folds(folder, level, members)?),
        None => Ok(Split::k_fold(dataset, level, arguments.folds, arguments.fold_seed)?),
    }
}

/// One fold: the model, the baseline and the most frequent class.
fn fold(
    candidates: &[RunConfig],
    dataset: &Dataset,
    split: &Split,
    k: usize,
    arguments: &Arguments,
    bars: &Bars<'_>,
) -> anyhow::Result<Option<Fold>> {
    let split = match arguments.protocol {
        Protocol::BestMeanEpoch => split.clone(),
        Protocol::Nested => split.with_validation(dataset, INNER, arguments.fold_seed)?,
    };
    let mut best: Option<(usize, Trial)> = None;
    for (i, config) in candidates.iter().enumerate() {
        let bar = bars.add(&format!("fold {}", k + 1), config.training.epochs);
        let trial = trial::train(config, dataset, split.clone(), &bar)?;
        bar.finish_and_clear();
        let Some(trial) = trial else { return Ok(None) };
        let better = |before: &Trial| trial.valid_value > before.valid_value;
        if best.as_ref().is_none_or(|(_, before)| better(before)) {
            best = Some((i, trial));
        }
    }
    let (candidate, trial) = best.context("there is nothing to train")?;
    let config = &candidates[candidate];
    let setup = Setup::with_split(config, dataset, split.clone())?;
    let baseline = Baseline { seed: config.training.seed, ..Baseline::default() };
    let batch = Encoding::new(dataset, &config.labels)?.batch::<f32>(dataset)?;
    let baseline = baseline.train(&batch, &split, setup.task.per_graph())?;
    let fold = Fold::new(k + 1, candidate, trial, &baseline, majority(dataset, &setup));
    bars.say(&fold.line());
    Ok(Some(fold))
}

fn save(path: &Path, value: &impl serde::Serialize) -> anyhow::Result<()> {
    let text = serde_json::to_string(value)? + "\n";
    Ok(write_file(path, text.as_bytes())?)
}

fn read(path: &Path) -> anyhow::Result<Fold> {
    let text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{} is no result", path.display()))
}
