use std::io::{IsTerminal, stderr};
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use lpgnn::experiment::crossval::FoldRecord;
use lpgnn::experiment::search::RankedTrial;
use lpgnn::experiment::{ExperimentObserver, TrialName, TrialObserver, TrialRecord};
use lpgnn::train::{EpochReport, StepProgress};

use crate::console::Console;
use crate::interrupt;
use crate::slow::Slow;
use crate::summary::tell_value;

/// A progress bar for each running trial; plain lines if stderr is not a terminal.
pub(crate) struct Bars<'a> {
    all: Option<MultiProgress>,
    console: &'a Console,
    /// When the last line was printed.
    printed: Mutex<Instant>,
    /// When the experiment stops by itself.
    deadline: Option<Instant>,
    /// Whether it was told that other processes are waited for.
    waiting: AtomicBool,
}

/// Without a terminal, a line tells how far a trial is after so long without any other.
const SILENCE: Duration = Duration::from_secs(30);

impl<'a> Bars<'a> {
    /// From now on, Ctrl-C stops the experiment.
    pub(crate) fn new(console: &'a Console) -> anyhow::Result<Self> {
        let all = (stderr().is_terminal() && !console.is_quiet()).then(MultiProgress::new);
        let (quiet, above) = (console.is_quiet(), all.clone());
        interrupt::listen(move |line| match &above {
            // A message that cannot be written is no reason to stop.
            Some(all) => drop(all.println(line)),
            None => Console::new(quiet).say(line),
        })?;
        let (printed, waiting) = (Mutex::new(Instant::now()), AtomicBool::new(false));
        Ok(Self { all, console, printed, deadline: None, waiting })
    }

    /// The same for an experiment that stops at this time as if Ctrl-C was pressed.
    pub(crate) fn until(mut self, deadline: Option<Instant>) -> Self {
        self.deadline = deadline;
        self
    }

    /// A line, above the bars if there are any.
    fn say(&self, line: &str) {
        if let Some(all) = &self.all {
            // A message that cannot be written is no reason to stop.
            drop(all.println(line));
            return;
        }
        self.console.say(line);
        if let Ok(mut printed) = self.printed.lock() {
            *printed = Instant::now();
        }
    }

    /// A line, unless there was one a short while ago.
    fn say_rarely(&self, line: impl FnOnce() -> String) {
        let silent = self.printed.lock().is_ok_and(|printed| printed.elapsed() >= SILENCE);
        if silent && self.all.is_none() {
            self.say(&line());
        }
    }

    fn stops(&self) -> bool {
        interrupt::asked() || self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }
}

impl ExperimentObserver for Bars<'_> {
    fn trial(&self, name: TrialName, at: usize, until: usize) -> Box<dyn TrialObserver + '_> {
        let slow = Slow::new(Instant::now());
        let Some(all) = &self.all else {
            let bar = ProgressBar::hidden();
            return Box::new(Bar { shown: bar, bars: self, name, until, slow });
        };
        let style = ProgressStyle::with_template("{prefix:>10} {wide_bar} {msg}, {eta} left");
        // If the template were invalid, the default bar would still do.
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = ProgressBar::new(until as u64).with_style(style).with_prefix(name.to_string());
        let bar = all.add(bar.with_position(at as u64));
        Box::new(Bar { shown: bar, bars: self, name, until, slow })
    }

    fn fold(&self, fold: &FoldRecord) {
        let test = tell(&fold.trial, fold.trial.test_value);
        let diverged = if fold.trial.diverged() { "; diverged" } else { "" };
        let (kind, number) = (fold.name.kind.as_str(), fold.name.number);
        let epoch = fold.trial.best_epoch;
        self.say(&format!("{kind} {number:>2}: test {test} after epoch {epoch}{diverged}"));
    }

    fn ranked(&self, trial: &RankedTrial) {
        let val = tell(&trial.result, trial.result.val_value);
        self.say(&format!("trial {:>4}: val {val} after {} epochs", trial.trial, trial.epochs));
    }

    fn waiting(&self, name: TrialName) -> ControlFlow<()> {
        let message = || format!("waiting for {name}, which another process is working on");
        if self.waiting.swap(true, Ordering::Relaxed) {
            self.say_rarely(message);
        } else {
            self.say(&message());
        }
        if self.stops() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

fn tell(trial: &TrialRecord, value: Option<f64>) -> String {
    value.map_or_else(|| "-".into(), |value| tell_value(trial.metric, value))
}

/// The progress bar of a trial; dropping it removes the bar.
struct Bar<'a> {
    shown: ProgressBar,
    bars: &'a Bars<'a>,
    name: TrialName,
    until: usize,
    slow: Slow,
}

impl TrialObserver for Bar<'_> {
    fn epoch(&mut self, report: &EpochReport) -> ControlFlow<()> {
        self.slow.epoch(Instant::now());
        self.shown.set_position(report.epoch as u64);
        let Self { name, until, .. } = self;
        self.bars.say_rarely(|| format!("{name}: epoch {} of {until}", report.epoch));
        if report.evaluation.is_some() {
            let share = |share: f64| format!(", train {:.1} %", 100.0 * share);
            let train = report.trained_accuracy.map(share).unwrap_or_default();
            self.shown.set_message(format!("epoch {}{train}", report.epoch));
        }
        if self.bars.stops() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn step(&mut self, step: &StepProgress) {
        if let Some(message) = self.slow.message(step, Instant::now()) {
            self.bars.say_rarely(|| format!("{}: {message}", self.name));
            self.shown.set_message(message);
        }
    }
}

impl Drop for Bar<'_> {
    fn drop(&mut self) {
        self.shown.finish_and_clear();
    }
}
