mod config;
mod data;
mod settings;
mod train;

use clap::Subcommand;

use crate::talk::Talk;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Train a model; without arguments, on a generated task.
    Train(train::Arguments),
    /// Print all settings with the values that training would use, as a file for --config.
    Config(config::Arguments),
    /// List, inspect, generate, convert and fetch data sets.
    #[command(subcommand)]
    Data(data::DataCommand),
}

impl Command {
    pub(crate) fn run(self, talk: &Talk) -> anyhow::Result<()> {
        match self {
            Self::Train(arguments) => train::run(&arguments, talk),
            Self::Config(arguments) => config::run(&arguments),
            Self::Data(command) => command.run(talk),
        }
    }
}
