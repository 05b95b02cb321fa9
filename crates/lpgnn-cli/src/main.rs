//! The program `lpgnn`: data is written to stdout, talk to stderr.

mod commands;
mod talk;

use std::io::{self, ErrorKind};
use std::process::ExitCode;

use clap::Parser;

use commands::Command;
use talk::Talk;

/// Graph neural networks whose states are found by constrained optimisation.
#[derive(Debug, Parser)]
#[command(version, propagate_version = true, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,

    /// Say nothing but errors on stderr.
    #[arg(long, short, global = true)]
    quiet: bool,
}

/// The exit codes, which clap uses too.
const DONE: u8 = 0;
const FAILED: u8 = 1;
const MISUSED: u8 = 2;

fn main() -> ExitCode {
    let Arguments { command, quiet } = Arguments::parse();
    let talk = Talk::new(quiet);
    let code = match command.run(&talk) {
        Ok(()) => DONE,
        // Whoever read our output has seen enough, as `head` has.
        Err(error) if is_broken_pipe(&error) => DONE,
        Err(error) => {
            talk::tell_error(&error);
            match error.downcast_ref() {
                Some(lpgnn::Error::Option { .. }) => MISUSED,
                _ => FAILED,
            }
        }
    };
    ExitCode::from(code)
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref().is_some_and(|error: &io::Error| error.kind() == ErrorKind::BrokenPipe)
}
