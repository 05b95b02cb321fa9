use std::io::{IsTerminal, stderr};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use crate::console::Console;

/// A bar for each of several things that are under way; lines where there is no terminal.
pub(crate) struct Bars<'a> {
    all: Option<MultiProgress>,
    console: &'a Console,
}

impl<'a> Bars<'a> {
    pub(crate) fn new(console: &'a Console) -> Self {
        let all = (stderr().is_terminal() && !console.is_quiet()).then(MultiProgress::new);
        Self { all, console }
    }

    /// A bar for something that takes so many epochs.
    pub(crate) fn add(&self, name: &str, epochs: usize) -> ProgressBar {
        let Some(all) = &self.all else { return ProgressBar::hidden() };
        let style = ProgressStyle::with_template("{prefix:>10} {wide_bar} {msg}, {eta} left");
        // The template is ours; were it wrong, the plain bar would still do.
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = ProgressBar::new(epochs as u64).with_style(style).with_prefix(name.to_owned());
        all.add(bar)
    }

    /// A line, above the bars if there are any.
    pub(crate) fn say(&self, line: &str) {
        match &self.all {
            // A line that cannot be written is no reason to stop.
            Some(all) => drop(all.println(line)),
            None => self.console.say(line),
        }
    }
}
