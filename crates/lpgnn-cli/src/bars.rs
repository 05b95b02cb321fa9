use std::io::{IsTerminal, stderr};
use std::ops::ControlFlow;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use lpgnn::experiment::crossval::FoldRecord;
use lpgnn::experiment::search::RankedTrial;
use lpgnn::experiment::{ExperimentObserver, TrialName, TrialObserver};
use lpgnn::train::EpochReport;

use crate::console::Console;
use crate::interrupt;
use crate::summary::tell_value;

/// A progress bar for each running trial; plain lines if stderr is not a terminal.
pub(crate) struct Bars<'a> {
    all: Option<MultiProgress>,
    console: &'a Console,
}

impl<'a> Bars<'a> {
    /// From now on, Ctrl-C stops the experiment.
    pub(crate) fn new(console: &'a Console) -> anyhow::Result<Self> {
        interrupt::listen()?;
        let all = (stderr().is_terminal() && !console.is_quiet()).then(MultiProgress::new);
        Ok(Self { all, console })
    }

    /// A line, above the bars if there are any.
    fn say(&self, line: &str) {
        match &self.all {
            // A message that cannot be written is no reason to stop.
            Some(all) => drop(all.println(line)),
            None => self.console.say(line),
        }
    }
}

impl ExperimentObserver for Bars<'_> {
    fn trial(&self, name: TrialName, at: usize, until: usize) -> Box<dyn TrialObserver + '_> {
        let Some(all) = &self.all else { return Box::new(Bar(ProgressBar::hidden())) };
        let style = ProgressStyle::with_template("{prefix:>10} {wide_bar} {msg}, {eta} left");
        // If the template were invalid, the default bar would still do.
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
        let bar = ProgressBar::new(until as u64).with_style(style).with_prefix(name.to_string());
        Box::new(Bar(all.add(bar.with_position(at as u64))))
    }

    fn fold(&self, fold: &FoldRecord) {
        let test = fold.trial.test_value.map_or_else(|| "-".into(), tell_value);
        let diverged = if fold.trial.diverged() { "; diverged" } else { "" };
        let (kind, number) = (fold.name.kind.as_str(), fold.name.number);
        let epoch = fold.trial.best_epoch;
        self.say(&format!("{kind} {number:>2}: test {test} after epoch {epoch}{diverged}"));
    }

    fn ranked(&self, trial: &RankedTrial) {
        let val = trial.result.val_value.map_or_else(|| "-".into(), tell_value);
        self.say(&format!("trial {:>4}: val {val} after {} epochs", trial.trial, trial.epochs));
    }
}

/// The progress bar of a trial; dropping it removes the bar.
struct Bar(ProgressBar);

impl TrialObserver for Bar {
    fn epoch(&mut self, report: &EpochReport) -> ControlFlow<()> {
        self.0.set_position(report.epoch as u64);
        if report.evaluation.is_some() {
            let share = |share: f64| format!(", train {:.1} %", 100.0 * share);
            let train = report.trained_accuracy.map(share).unwrap_or_default();
            self.0.set_message(format!("epoch {}{train}", report.epoch));
        }
        if interrupt::asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
