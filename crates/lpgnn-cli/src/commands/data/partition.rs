use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use lpgnn::data::parts::{PartsInfo, write_parts};
use lpgnn::data::{
    Cache, Dataset, Format, Overwrite, Partition, ReadOptions, WriteFormat, blocks_of, cut, resolve,
};
use lpgnn::run::{RunConfig, Setting};

use super::{read_format, write};
use crate::console::Console;
use crate::count::positive;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// A file or folder, or the name of a built-in or downloaded data set.
    #[arg(value_name = "DATA")]
    input: String,

    /// Number of parts: at least the largest number of processes that will share the graph.
    #[arg(long, value_name = "N", default_value = "64", value_parser = positive)]
    parts: NonZeroUsize,

    /// Output folder.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,

    /// Output format.
    #[arg(long = "as", value_name = "FORMAT", value_enum, default_value_t = OutputFormat::Parts)]
    output: OutputFormat,

    /// How nodes are ordered before they are cut [default: metis in builds with it, otherwise given].
    #[arg(long, value_name = "ORDER", value_enum)]
    order: Option<Order>,

    /// A setting of features or split to store in the parts, such as features.standardize=false; may be repeated.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,

    /// Node features as a single-precision .npy array, a row per node of DATA, replacing its own; it may be larger than
    /// memory, and is not encoded.
    #[arg(long, value_name = "FILE.npy")]
    features: Option<PathBuf>,

    /// Replace DIR if it is already a data set.
    #[arg(long)]
    force: bool,

    /// The format of DATA [default: recognised by content].
    #[arg(long, value_parser = read_format())]
    format: Option<Format>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OutputFormat {
    /// Arrays of which a process reads its own rows.
    Parts,
    /// Tables of all nodes, in the order of parts.
    Tables,
    /// The text files of the TU collection, in the order of parts.
    Tu,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Order {
    /// Neighbours near each other, by METIS.
    Metis,
    /// As in DATA.
    Given,
}

/// Numbers of processes for which it tells what they have to exchange.
const RANKS: [usize; 3] = [2, 4, 16];

pub(super) fn run(arguments: &Arguments, console: &Console) -> anyhow::Result<()> {
    let Arguments { input, parts, out, output, force, format, .. } = arguments;
    let before = resolve(input, &ReadOptions { format: *format }, &Cache::of_user()?)?;
    let order = arguments.order.unwrap_or(if METIS { Order::Metis } else { Order::Given });
    let partition = match order {
        Order::Given => blocks_of(&before, parts.get()),
        Order::Metis => by_metis(&before, parts.get())?,
    };
    match output {
        OutputFormat::Parts => write_graph(arguments, &before, &partition, console)?,
        OutputFormat::Tables | OutputFormat::Tu => {
            let after = before.reordered(&partition.order)?;
            let as_tables = *output == OutputFormat::Tables;
            let format = if as_tables { WriteFormat::Tables } else { WriteFormat::Tu };
            write::run(&after, out, format, *force, console)?;
        }
    }
    tell_cuts(&before, &partition, console)
}

/// Whether nodes can be ordered by METIS.
const METIS: bool = cfg!(feature = "mpi");

#[cfg(feature = "mpi")]
fn by_metis(dataset: &Dataset, parts: usize) -> anyhow::Result<Partition> {
    Ok(lpgnn::data::partition(dataset, parts)?)
}

#[cfg(not(feature = "mpi"))]
fn by_metis(_: &Dataset, _: usize) -> anyhow::Result<Partition> {
    anyhow::bail!(
        "this lpgnn was built without METIS; build it with `--features mpi`, or use --order given"
    )
}

fn write_graph(
    arguments: &Arguments,
    dataset: &Dataset,
    partition: &Partition,
    console: &Console,
) -> anyhow::Result<()> {
    let set = arguments.set.iter();
    let settings: Vec<Setting> =
        set.map(|text| Setting::parse("--set", text)).collect::<Result<_, _>>()?;
    let kept = |path: &str| path.starts_with("features.") || path.starts_with("split.");
    if let Some(other) = settings.iter().find(|setting| !kept(setting.path())) {
        let problem =
            format!("{} is a setting of training, not of features or split", other.path());
        anyhow::bail!(lpgnn::Error::Config { origin: "--set".into(), problem });
    }
    let config = RunConfig::choose(&arguments.input, dataset, &settings)?;
    let overwrite = if arguments.force { Overwrite::Replace } else { Overwrite::Refuse };
    let cut = (&partition.order[..], &partition.starts[..]);
    let features = arguments.features.as_deref();
    let info = write_parts(dataset, cut, (&config, features), &arguments.out, overwrite)?;
    tell(&info, &arguments.out, console);
    Ok(())
}

/// Says what was written.
pub(super) fn tell(info: &PartsInfo, folder: &Path, console: &Console) {
    console.say(format_args!(
        "wrote {}: {} parts, nodes {}, neighbours {}",
        folder.display(),
        info.parts(),
        info.nodes(),
        info.part_neighbours.iter().sum::<usize>()
    ));
}

fn tell_cuts(before: &Dataset, partition: &Partition, console: &Console) -> anyhow::Result<()> {
    let after = before.reordered(&partition.order)?;
    for ranks in RANKS {
        let share = |edges: usize| 100.0 * edges as f64 / before.edges().len().max(1) as f64;
        let (was, is) = (share(cut(before, ranks)), share(cut(&after, ranks)));
        console.say(format_args!(
            "{ranks} processes: {is:.1} % of the edges are cut, {was:.1} % in the given order"
        ));
    }
    Ok(())
}
