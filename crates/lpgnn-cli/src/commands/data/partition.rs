use std::path::PathBuf;

use clap::Args;
use lpgnn::data::{Cache, Format, ReadOptions, WriteFormat, cut, partition, resolve};

use super::{read_format, write, write_format};
use crate::console::Console;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// A file or folder, or the name of a built-in or downloaded data set.
    #[arg(value_name = "DATA")]
    input: String,

    /// Number of parts of a large graph; more than processes will ever share it.
    #[arg(long, value_name = "N", default_value_t = 256)]
    parts: usize,

    /// Output folder.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,

    /// Output format.
    #[arg(long = "as", value_name = "FORMAT", value_parser = write_format(), default_value = "tables")]
    output: WriteFormat,

    /// Replace DIR if it is already a data set.
    #[arg(long)]
    force: bool,

    /// The format of DATA [default: recognised by content].
    #[arg(long, value_parser = read_format())]
    format: Option<Format>,
}

/// Numbers of processes for which it tells what they have to exchange.
const RANKS: [usize; 3] = [2, 4, 16];

pub(super) fn run(arguments: &Arguments, console: &Console) -> anyhow::Result<()> {
    let Arguments { input, parts, out, output, force, format } = arguments;
    let before = resolve(input, &ReadOptions { format: *format }, &Cache::of_user()?)?;
    let after = before.reordered(&partition(&before, *parts)?)?;
    write::run(&after, out, *output, *force, console)?;
    for ranks in RANKS {
        let share = |edges: usize| 100.0 * edges as f64 / before.edges().len().max(1) as f64;
        let (was, is) = (share(cut(&before, ranks)), share(cut(&after, ranks)));
        console.say(format_args!(
            "{ranks} processes: {is:.1} % of the edges are cut, {was:.1} % in the order that was given"
        ));
    }
    Ok(())
}
