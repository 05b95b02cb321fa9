mod config;
mod crossval;
mod data;
mod evaluate;
mod flags;
mod model;
mod predict;
mod reproduce;
mod runs;
mod search;
mod settings;
mod shell;
mod states;
mod train;

use clap::Subcommand;

use crate::console::Console;

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
    /// Train and test on folds of the data.
    Crossval(crossval::Arguments),
    /// Search for settings that do well on the validation part.
    Search(search::Arguments),
    /// Run published experiments again, and compare.
    Reproduce(reproduce::Arguments),
    /// List, inspect, generate, convert and fetch data sets.
    #[command(subcommand)]
    Data(data::DataCommand),
    /// Write completions for a shell.
    Completions(shell::CompletionArguments),
    /// Write the manual page.
    Man(shell::ManArguments),
}

impl Command {
    pub(crate) fn run(self, console: &Console) -> anyhow::Result<()> {
        match self {
            Self::Train(arguments) => train::run(&arguments, console),
            Self::Config(arguments) => config::run(&arguments),
            Self::Predict(arguments) => predict::run(&arguments, console),
            Self::States(arguments) => states::run(&arguments, console),
            Self::Evaluate(arguments) => evaluate::run(&arguments, console),
            Self::Runs(arguments) => runs::run(&arguments, console),
            Self::Crossval(arguments) => crossval::run(&arguments, console),
            Self::Search(arguments) => search::run(&arguments, console),
            Self::Reproduce(arguments) => reproduce::run(&arguments, console),
            Self::Data(command) => command.run(console),
            Self::Completions(arguments) => shell::completions(&arguments),
            Self::Man(arguments) => shell::man(&arguments, console),
        }
    }
}
