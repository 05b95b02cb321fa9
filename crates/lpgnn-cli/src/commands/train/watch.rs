use std::io::{IsTerminal, stderr};
use std::ops::ControlFlow;

use indicatif::{ProgressBar, ProgressStyle};
use lpgnn::experiment::run::{Progress, RunObserver};

use crate::console::{Console, print};
use crate::interrupt;

/// Reports the progress of a run.
pub(super) struct Watch<'a> {
    json: bool,
    console: &'a Console,
    bar: Option<ProgressBar>,
    error: Option<anyhow::Error>,
}

impl<'a> Watch<'a> {
    /// From now on, Ctrl-C stops the run after the current epoch.
    pub(super) fn new(
        epochs: usize,
        epoch: usize,
        json: bool,
        console: &'a Console,
    ) -> anyhow::Result<Self> {
        interrupt::listen()?;
        let bar = (stderr().is_terminal() && !console.is_quiet()).then(|| {
            let style = ProgressStyle::with_template(
                "{wide_bar} epoch {pos} of {len}, {eta} left\n{wide_msg}",
            );
            // If the template were invalid, the default bar would still do.
            let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
            ProgressBar::new(epochs as u64).with_style(style).with_position(epoch as u64)
        });
        Ok(Self { json, console, bar, error: None })
    }

    /// Whether all output could be written.
    pub(super) fn finish(self) -> anyhow::Result<()> {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        self.error.map_or(Ok(()), Err)
    }
}

impl RunObserver for Watch<'_> {
    fn epoch(&mut self, progress: &Progress<'_>) -> ControlFlow<()> {
        if self.json {
            let line = serde_json::to_string(progress.metrics).map_err(anyhow::Error::from);
            self.error = line.and_then(|line| print(&format!("{line}\n"))).err();
        }
        if let Some(bar) = &self.bar {
            bar.set_position(progress.metrics.report.epoch as u64);
            bar.set_message(progress.to_string());
        }
        if self.error.is_some() || interrupt::asked() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    fn note(&mut self, line: &str) {
        if self.bar.is_none() {
            self.console.say(line);
        }
    }
}
