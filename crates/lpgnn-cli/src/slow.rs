use std::fmt::Display;
use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use lpgnn::inference::InferenceProgress;
use lpgnn::train::StepProgress;

use crate::console::Console;

/// Decides when the progress within an epoch is worth telling.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slow {
    /// When the epoch began.
    begun: Instant,
    /// When the last line was printed.
    printed: Instant,
}

/// An epoch or evaluation that takes longer shows its progress.
const LONG: Duration = Duration::from_secs(2);
/// Without a terminal, progress within epochs is printed only after so long without a line.
const SILENCE: Duration = Duration::from_secs(10);

impl Slow {
    pub(crate) fn new(now: Instant) -> Self {
        Self { begun: now, printed: now }
    }

    /// An epoch is over.
    pub(crate) fn epoch(&mut self, now: Instant) {
        self.begun = now;
    }

    /// A line was printed.
    pub(crate) fn line(&mut self, now: Instant) {
        self.printed = now;
    }

    /// The text for a progress bar, if the epoch takes long.
    pub(crate) fn message(&self, step: &StepProgress, now: Instant) -> Option<String> {
        self.text(format_args!("epoch {}: {step}", step.epoch), now)
    }

    /// The same to be printed as a line: not more often than a log can bear.
    pub(crate) fn plain(&mut self, step: &StepProgress, now: Instant) -> Option<String> {
        let message = self.message(step, now);
        self.seldom(message, now)
    }

    fn text(&self, what: impl Display, now: Instant) -> Option<String> {
        let long = now - self.begun;
        (long >= LONG).then(|| format!("{what}, {} s", long.as_secs()))
    }

    fn seldom(&mut self, message: Option<String>, now: Instant) -> Option<String> {
        let message = message.filter(|_| now - self.printed >= SILENCE)?;
        self.printed = now;
        Some(message)
    }
}

/// Shows how far the states of a prediction are, if they take long.
pub(crate) struct Waiting<'a> {
    slow: Slow,
    console: &'a Console,
    bar: Option<ProgressBar>,
}

impl<'a> Waiting<'a> {
    pub(crate) fn new(console: &'a Console) -> Self {
        let bar = (stderr().is_terminal() && !console.is_quiet()).then(|| {
            let style = ProgressStyle::with_template("{spinner} {wide_msg}");
            // If the template were invalid, the default would still do.
            ProgressBar::new_spinner()
                .with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()))
        });
        Self { slow: Slow::new(Instant::now()), console, bar }
    }

    pub(crate) fn tell(&mut self, progress: InferenceProgress) {
        let now = Instant::now();
        let message = self.slow.text(format_args!("computing states: {progress}"), now);
        match (&self.bar, message) {
            (Some(bar), Some(message)) => {
                bar.set_message(message);
                bar.tick();
            }
            (None, message) => {
                if let Some(line) = self.slow.seldom(message, now) {
                    self.console.say(line);
                }
            }
            (Some(_), None) => {}
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use lpgnn::train::Stage;

    use super::*;

    #[test]
    fn a_slow_epoch_is_told_at_once_on_a_terminal_and_rarely_in_a_log() {
        let start = Instant::now();
        let after = |seconds: u64| start + Duration::from_secs(seconds);
        let mut slow = Slow::new(start);
        let (stage, inference) = (Stage::Update, None);
        let step = StepProgress { epoch: 3, stage, number: 7, total: 9, passes: 2, inference };
        assert_eq!(slow.message(&step, after(1)), None);
        let said = slow.message(&step, after(2));
        assert_eq!(said.as_deref(), Some("epoch 3: update 7 of 9, pass 2, 2 s"));
        let plain: Vec<u64> =
            (0..60).filter(|&second| slow.plain(&step, after(second)).is_some()).collect();
        assert_eq!(plain, [10, 20, 30, 40, 50]);
        slow.epoch(after(60));
        assert_eq!(slow.plain(&step, after(61)), None);
        slow.line(after(62));
        assert_eq!(slow.plain(&step, after(71)), None);
        assert!(slow.plain(&step, after(72)).is_some());
    }
}
