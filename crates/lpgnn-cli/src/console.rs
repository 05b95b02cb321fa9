use std::fmt::Display;
use std::io::{self, Write};

use anyhow::Context;

/// Messages to the user, on stderr.
pub(crate) struct Console {
    quiet: bool,
}

impl Console {
    pub(crate) fn new(quiet: bool) -> Self {
        Self { quiet }
    }

    pub(crate) fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// Prints a line, unless `--quiet` is given.
    pub(crate) fn say(&self, line: impl Display) {
        if !self.quiet {
            // If stderr cannot be written to, there is nowhere left to report it.
            let _ = writeln!(io::stderr(), "{line}");
        }
    }
}

/// Prints an error to stderr, with its causes below it.
pub(crate) fn tell_error(error: &anyhow::Error) {
    let causes = error.chain().skip(1).map(|cause| format!("  cause: {cause}\n"));
    let text: String = std::iter::once(format!("error: {error}\n")).chain(causes).collect();
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Writes data to stdout.
///
/// # Errors
///
/// Those of the operating system.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
        .context("cannot write to stdout")
}

/// Writes a value to stdout, as JSON.
pub(crate) fn print_json(value: &impl serde::Serialize) -> anyhow::Result<()> {
    print(&format!("{}\n", serde_json::to_string_pretty(value)?))
}
