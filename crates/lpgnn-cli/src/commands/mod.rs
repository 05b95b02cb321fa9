mod data;

use clap::Subcommand;

use crate::talk::Talk;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List, inspect, generate, convert and fetch data sets.
    #[command(subcommand)]
    Data(data::DataCommand),
}

impl Command {
    pub(crate) fn run(self, talk: &Talk) -> anyhow::Result<()> {
        match self {
            Self::Data(command) => command.run(talk),
        }
    }
}
