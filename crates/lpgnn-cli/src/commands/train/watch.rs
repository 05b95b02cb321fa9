use std::io::{IsTerminal, stderr};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use lpgnn::experiment::run::{Progress, RunObserver};
use lpgnn::train::StepProgress;

use crate::console::{Console, print};
use crate::interrupt;
use crate::slow::Slow;

/// How often the bar is drawn at least.
const TICK: Duration = Duration::from_millis(200);

/// Reports the progress of a run.
pub(super) struct Watch<'a> {
    json: bool,
    console: &'a Console,
    bar: Option<ProgressBar>,
    slow: Slow,
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
        let bar = (stderr().is_terminal() && !console.is_quiet()).then(|| {
            let style = ProgressStyle::with_template(
                "{spinner} {wide_bar} epoch {pos} of {len}, {eta} left\n{wide_msg}",
            );
            // If the template were invalid, the default bar would still do.
            let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
            let bar = ProgressBar::new(epochs as u64).with_style(style);
            // It moves even while one pass over a large graph takes seconds.
            bar.enable_steady_tick(TICK);
            bar.with_position(epoch as u64)
        });
        let (quiet, above) = (console.is_quiet(), bar.clone());
        interrupt::listen(move |line| match &above {
            Some(bar) => bar.println(line),
            None => Console::new(quiet).say(line),
        })?;
        Ok(Self { json, console, bar, slow: Slow::new(Instant::now()), error: None })
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
        self.slow.epoch(Instant::now());
        if self.error.is_some() || interrupt::asked() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    fn step(&mut self, step: &StepProgress) {
        let now = Instant::now();
        match &self.bar {
            Some(bar) => {
                if let Some(message) = self.slow.message(step, now) {
                    bar.set_message(message);
                }
            }
            None => {
                if let Some(line) = self.slow.plain(step, now) {
                    self.console.say(line);
                }
            }
        }
    }

    fn note(&mut self, line: &str) {
        if self.bar.is_none() {
            self.console.say(line);
            self.slow.line(Instant::now());
        }
    }
}
