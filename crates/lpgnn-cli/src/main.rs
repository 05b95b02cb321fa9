//! The program `lpgnn`: results go to stdout, messages to stderr.

mod bars;
mod commands;
mod console;
mod count;
mod http;
mod interrupt;
mod live_page;
mod memory;
mod processor_time;
mod ranks;
mod slow;
mod summary;

use std::io::{self, ErrorKind};
use std::num::NonZeroUsize;
use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;

use commands::Command;
use console::Console;
use count::count;
use interrupt::{STOPPED, Stopped};
use ranks::ElsewhereFailed;

/// Graph neural networks whose states are found by constrained optimisation.
#[derive(Debug, Parser)]
#[command(name = "lpgnn", version = VERSION, propagate_version = true, max_term_width = 100, after_help = CODES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,

    /// Print nothing but errors to stderr.
    #[arg(long, short, global = true)]
    quiet: bool,

    /// Number of threads [default: one per processor].
    #[arg(long, global = true, value_name = "N", env = "LPGNN_THREADS", hide_env_values = true, value_parser = count::<MOST_THREADS>)]
    threads: Option<NonZeroUsize>,

    /// Maximum amount of memory, such as 800M or 4G [default: 80 % of what is available].
    #[arg(long, global = true, value_name = "SIZE", env = "LPGNN_MAX_MEMORY", hide_env_values = true, value_parser = lpgnn::memory::parse_size)]
    max_memory: Option<u64>,
}

const CODES: &str = "Exit codes: 0 success, 1 failure, 2 usage error, 130 interrupted (Ctrl-C; press \
                     it twice to exit immediately)";

/// With the commit and the features of the library.
const VERSION: &str = if cfg!(feature = "mpi") {
    concat!(env!("CARGO_PKG_VERSION"), " (commit ", env!("LPGNN_COMMIT"), "; features: fetch, mpi)")
} else {
    concat!(env!("CARGO_PKG_VERSION"), " (commit ", env!("LPGNN_COMMIT"), "; features: fetch)")
};

/// The exit codes, which clap uses too; and [`STOPPED`].
const DONE: u8 = 0;
const FAILED: u8 = 1;
const USAGE_ERROR: u8 = 2;

fn main() -> ExitCode {
    let met = ranks::meet();
    let Arguments { command, quiet, threads, max_memory } = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(answer) => {
            // Whether it can be printed or not, there is nothing else to do.
            let _ = if ranks::follows() { Ok(()) } else { answer.print() };
            let code = u8::try_from(answer.exit_code()).unwrap_or(USAGE_ERROR);
            return ranks::end(code, false);
        }
    };
    if !command.is_shared() {
        if ranks::follows() {
            return ranks::end(DONE, false);
        }
        ranks::leave();
    }
    let console = Console::new(quiet || ranks::follows());
    let ready = met.and_then(|ranks| {
        // All ranks take part, whether they are told a number or not.
        let share = ranks::threads_of_one(ranks);
        use_threads(threads.or_else(|| share?.try_into().ok()))?;
        Ok(lpgnn::check_instruction_set()?)
    });
    memory::limit_to(max_memory);
    let result = ready.and_then(|()| command.run(&console));
    let failed =
        result.as_ref().is_err_and(|error| !is_broken_pipe(error) && !error.is::<Stopped>());
    if failed {
        ranks::before_error();
    }
    ranks::end(tell(result, &console), failed)
}

/// Tells the user what went wrong, if anything has; returns the exit code.
fn tell(result: anyhow::Result<()>, console: &Console) -> u8 {
    match result {
        Ok(()) => DONE,
        // Whoever has failed says why, and has the exit code.
        Err(error) if error.is::<ElsewhereFailed>() => DONE,
        // The reader of our output, such as `head`, has closed the pipe.
        Err(error) if is_broken_pipe(&error) => DONE,
        // The first of several processes has the exit code.
        Err(error) if error.is::<Stopped>() && ranks::follows() => DONE,
        Err(error) if error.is::<Stopped>() => {
            console.say(error);
            STOPPED
        }
        Err(error) => {
            console::tell_error(&error);
            match error.downcast_ref() {
                Some(lpgnn::Error::Memory { .. }) => {
                    console.say("note: --max-memory sets the limit");
                    FAILED
                }
                Some(lpgnn::Error::Option { .. } | lpgnn::Error::Config { .. }) => USAGE_ERROR,
                _ => FAILED,
            }
        }
    }
}

/// More would take minutes to start, and no machine has that many processors.
const MOST_THREADS: usize = 999;

/// The current thread is one of them: an update of a small problem is faster than waking another.
fn use_threads(threads: Option<NonZeroUsize>) -> anyhow::Result<()> {
    let threads = threads.map_or(0, NonZeroUsize::get);
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .use_current_thread()
        .build_global()
        .context("cannot start threads")
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref().is_some_and(|error: &io::Error| error.kind() == ErrorKind::BrokenPipe)
}
