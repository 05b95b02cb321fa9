mod config;
mod data;
mod evaluate;
mod model;
mod predict;
mod runs;
mod settings;
mod states;
mod train;

use clap::Subcommand;

use crate::talk::Talk;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Train a model; without arguments, on a generated task.
    Train(train::Arguments),
    /// Print all settings with the values that training would use, as a file for --config.
    Config(config::Arguments),
    /// Predict the classes or values of nodes or graphs.
    Predict(predict::Arguments),
    /// Find the states of all nodes.
    States(states::Arguments),
    /// Tell how well a model predicts what is known.
    Evaluate(evaluate::Arguments),
    /// List and compare runs.
    Runs(runs::Arguments),
    /// List, inspect, generate, convert and fetch data sets.
    #[command(subcommand)]
    Data(data::DataCommand),
}

impl Command {
    pub(crate) fn run(self, talk: &Talk) -> anyhow::Result<()> {
        match self {
            Self::Train(arguments) => train::run(&arguments, talk),
            Self::Config(arguments) => config::run(&arguments),
            Self::Predict(arguments) => predict::run(&arguments, talk),
            Self::States(arguments) => states::run(&arguments, talk),
            Self::Evaluate(arguments) => evaluate::run(&arguments, talk),
            Self::Runs(arguments) => runs::run(&arguments, talk),
            Self::Data(command) => command.run(talk),
        }
    }
}
