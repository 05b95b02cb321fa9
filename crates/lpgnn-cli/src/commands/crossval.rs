use std::path::PathBuf;

use anyhow::bail;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use lpgnn::evaluate::Protocol;
use lpgnn::run::{RunConfig, Setup, Task, fingerprint};

use super::search::space::Space;
use super::settings::{Chosen, SettingArguments};
use crate::console::{Console, print, print_json};
use crate::folds::{self, Division, Report};
use crate::result_folder::ResultFolder;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    settings: SettingArguments,

    /// Folds to make.
    #[arg(long, value_name = "K", default_value_t = 10, conflicts_with = "fold_files")]
    folds: usize,

    /// Given folds: a folder with train_idx-1.txt, test_idx-1.txt and so on, as `lpgnn data folds`
    /// writes it, or a file with the fold of every node or graph.
    #[arg(long, value_name = "DIR|FILE")]
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
    PossibleValuesParser::new(Protocol::OF_FOLDS.map(Protocol::as_str))
        .try_map(|name| name.parse::<Protocol>())
}

pub(super) fn run(arguments: &Arguments, console: &Console) -> anyhow::Result<()> {
    let Chosen { config, dataset } = arguments.settings.choose()?;
    let task = Task::of(config.data.task, &dataset)?;
    let candidates = candidates(arguments, &config)?;
    let Arguments { folds, fold_files, fold_seed, protocol, .. } = arguments;
    let division = Division { folds: *folds, files: fold_files.clone(), seed: *fold_seed };
    let parts = division.parts(&dataset, task, *protocol, &candidates)?;
    for candidate in &candidates {
        Setup::with_split(candidate, &dataset, parts[0].split.clone())?;
    }
    let plan = serde_json::json!({
        "data": fingerprint(&dataset),
        "protocol": protocol,
        "candidates": candidates,
        "folds": parts.iter().map(|part| &part.split.test).collect::<Vec<_>>(),
    });
    let name = format!("{}-cv", dataset.name());
    let folder = ResultFolder::open(arguments.out.as_deref(), &name, &plan, &config)?;
    console.say(format_args!(
        "{}: {} folds, {} ({})",
        dataset.name(),
        parts.len(),
        protocol,
        protocol.describe()
    ));
    let again = format!("the same command with --out {}", folder.path().display());
    let folds = folds::work(&parts, &dataset, &folder, &again, console)?;
    let report = Report::new(dataset.name(), *protocol, config.training.seed, &folds)?;
    folder.save("result.json", &report)?;
    console.say(format_args!("results in {}", folder.path().display()));
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
