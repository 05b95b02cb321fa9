use std::path::PathBuf;

use clap::Args;
use lpgnn::data::{Cache, Format, ReadOptions, WriteFormat, resolve};

use super::{read_format, write, write_format};
use crate::console::Console;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// A file or folder, or the name of a built-in or downloaded data set.
    #[arg(value_name = "IN")]
    input: String,

    /// Output folder.
    #[arg(value_name = "OUT")]
    output: PathBuf,

    /// Output format.
    #[arg(long, value_parser = write_format())]
    to: WriteFormat,

    /// The format of IN [default: recognised by content].
    #[arg(long, value_parser = read_format())]
    format: Option<Format>,

    /// Replace OUT if it is already a data set.
    #[arg(long)]
    force: bool,
}

pub(super) fn run(arguments: &Arguments, console: &Console) -> anyhow::Result<()> {
    let options = ReadOptions { format: arguments.format };
    let dataset = resolve(&arguments.input, &options, &Cache::of_user()?)?;
    write::run(&dataset, &arguments.output, arguments.to, arguments.force, console)
}
