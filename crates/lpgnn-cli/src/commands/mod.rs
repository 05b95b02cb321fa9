mod config;
mod crossval;
mod data;
mod ensemble;
mod evaluate;
mod flags;
mod live;
mod model;
mod parts;
mod predict;
mod report;
mod reproduce;
mod runs;
mod search;
mod settings;
mod sharing;
mod shell;
mod states;
mod train;
mod views;

use clap::Subcommand;
use lpgnn::registry::Registry;

use crate::console::Console;

/// All functions that a model can name: those of the library, and the systems it is compared with.
fn functions() -> Registry<f32> {
    lpgnn_baselines::registry()
}

/// A bound in two digits, to which it is not rounded down: it would be none.
fn at_most(bound: f64) -> String {
    format!("{:.1e}", 1.05 * bound)
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Train a model, on generated data by default.
    Train(train::Arguments),
    /// Print all settings with the values that training would use, as a file for --config.
    Config(config::Arguments),
    /// Predict classes or values of nodes or graphs.
    Predict(predict::Arguments),
    /// Combine models that were trained with different seeds into one that averages their predictions.
    Ensemble(ensemble::Arguments),
    /// Compute the states of all nodes.
    States(states::Arguments),
    /// Keep predictions current on a graph that changes.
    Live(live::Arguments),
    /// Evaluate a model on labelled data.
    Evaluate(evaluate::Arguments),
    /// List and compare runs.
    Runs(runs::Arguments),
    /// Write a page of charts on runs, a cross-validation or a search.
    Report(report::Arguments),
    /// Cross-validate: train and test on every fold.
    Crossval(crossval::Arguments),
    /// Search for the settings that do best on validation data.
    Search(search::Arguments),
    /// Reproduce the published experiments and compare results.
    Reproduce(reproduce::Arguments),
    /// List, inspect, generate, convert and download data sets.
    #[command(subcommand)]
    Data(data::DataCommand),
    /// Generate shell completions.
    Completions(shell::CompletionArguments),
    /// Generate the manual pages.
    Man(shell::ManArguments),
}

impl Command {
    /// Whether the processes of a job work on it together; otherwise the first one does it alone.
    pub(crate) fn is_shared(&self) -> bool {
        match self {
            Self::Train(_) | Self::Predict(_) | Self::States(_) | Self::Evaluate(_) => true,
            Self::Crossval(arguments) => arguments.is_shared(),
            Self::Search(arguments) => arguments.is_shared(),
            Self::Reproduce(arguments) => arguments.is_shared(),
            _ => false,
        }
    }

    pub(crate) fn run(self, console: &Console) -> anyhow::Result<()> {
        match self {
            Self::Train(arguments) => train::run(&arguments, console),
            Self::Config(arguments) => config::run(&arguments),
            Self::Predict(arguments) => predict::run(&arguments, console),
            Self::Ensemble(arguments) => ensemble::run(&arguments, console),
            Self::States(arguments) => states::run(&arguments, console),
            Self::Live(arguments) => live::run(&arguments, console),
            Self::Evaluate(arguments) => evaluate::run(&arguments, console),
            Self::Runs(arguments) => runs::run(&arguments, console),
            Self::Report(arguments) => report::run(&arguments, console),
            Self::Crossval(arguments) => crossval::run(&arguments, console),
            Self::Search(arguments) => search::run(&arguments, console),
            Self::Reproduce(arguments) => reproduce::run(&arguments, console),
            Self::Data(command) => command.run(console),
            Self::Completions(arguments) => shell::completions(&arguments),
            Self::Man(arguments) => shell::man(&arguments, console),
        }
    }
}
