use std::path::PathBuf;

use clap::Args;
use lpgnn::data::{Cache, Format, ReadOptions, Split, resolve};
use lpgnn::graph::Level;

use super::read_format;
use crate::console::Console;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// A file or folder, or the name of a built-in or downloaded data set.
    #[arg(value_name = "DATA")]
    input: String,

    /// Number of folds.
    #[arg(long, value_name = "K", default_value_t = 10)]
    k: usize,

    /// Random seed: the same seed gives the same folds.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// Output folder, for train_idx-1.txt, test_idx-1.txt, and so on.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,

    /// The format of DATA [default: recognised by content].
    #[arg(long, value_parser = read_format())]
    format: Option<Format>,
}

pub(super) fn run(arguments: &Arguments, console: &Console) -> anyhow::Result<()> {
    let Arguments { input, k, seed, out, format } = arguments;
    let dataset = resolve(input, &ReadOptions { format: *format }, &Cache::of_user()?)?;
    let level = Level::of_task(None, &dataset)?.of_split(&dataset);
    let folds = Split::k_fold(&dataset, level, *k, *seed)?;
    Split::write_folds(out, &folds)?;
    let members: usize = folds.iter().map(|fold| fold.test.len()).sum();
    console.say(format_args!(
        "wrote {k} folds of {members} {} to {}",
        level.plural(),
        out.display()
    ));
    Ok(())
}
