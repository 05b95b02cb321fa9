mod convert;
mod fetch;
mod folds;
mod generate;
mod info;
mod list;
mod partition;
mod write;

use std::str::FromStr;

use clap::Subcommand;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use lpgnn::data::{Format, WriteFormat};

use crate::console::Console;

#[derive(Debug, Subcommand)]
pub(crate) enum DataCommand {
    /// List built-in, downloadable and downloaded data sets.
    List(list::Arguments),
    /// Show statistics of a data set, and warnings about it.
    Info(info::Arguments),
    /// Generate a synthetic data set.
    #[command(subcommand)]
    Generate(generate::Task),
    /// Convert a data set to tables or TU files.
    Convert(convert::Arguments),
    /// Download data sets of the TU collection to the cache.
    Fetch(fetch::Arguments),
    /// Partition a large graph into parts, for training on several processes.
    Partition(partition::Arguments),
    /// Draw stratified folds for cross-validation and write them to index files.
    Folds(folds::Arguments),
}

impl DataCommand {
    pub(crate) fn run(self, console: &Console) -> anyhow::Result<()> {
        match self {
            Self::List(arguments) => list::run(&arguments),
            Self::Info(arguments) => info::run(&arguments),
            Self::Generate(task) => generate::run(task, console),
            Self::Convert(arguments) => convert::run(&arguments, console),
            Self::Fetch(arguments) => fetch::run(&arguments, console),
            Self::Partition(arguments) => partition::run(&arguments, console),
            Self::Folds(arguments) => folds::run(&arguments, console),
        }
    }
}

pub(super) fn read_format() -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(Format::ALL.map(Format::as_str))
        .try_map(|name| Format::from_str(&name))
}

fn write_format() -> impl TypedValueParser<Value = WriteFormat> {
    PossibleValuesParser::new(WriteFormat::ALL.map(WriteFormat::as_str))
        .try_map(|name| WriteFormat::from_str(&name))
}
