use std::io::{IsTerminal, stderr};
use std::ops::ControlFlow;
use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};
use lpgnn::run::{Checkpoint, RunConfig};
use lpgnn::train::{EpochReport, ModelEvaluation, Observer, SplitName, TrainerState};

use crate::console::{Console, print};
use crate::interrupt;
use crate::run_folder::{CHECKPOINT, LineFile, RunFolder};
use crate::summary::{split_name, tell_metrics};

/// When checkpoints are written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interval {
    pub(super) seconds: f64,
    pub(super) epochs: usize,
}

/// Keeps the files of a run while it trains, and tells how it is going.
pub(super) struct Watch<'a> {
    folder: &'a RunFolder,
    config: &'a RunConfig,
    fingerprint: &'a str,
    interval: Interval,
    json: bool,
    console: &'a Console,
    bar: Option<ProgressBar>,
    metrics: LineFile,
    log: LineFile,
    begun: Instant,
    /// How long training took before it was continued.
    before: f64,
    /// When the last checkpoint was written, and of which epoch it is.
    kept: (Instant, usize),
    evaluation: Option<ModelEvaluation>,
    outcome: Outcome,
    error: Option<anyhow::Error>,
}

/// How it went.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) last: Option<EpochReport>,
    pub(super) epochs: usize,
}

/// Lines on a stderr that is no terminal.
const LINES: usize = 10;

impl<'a> Watch<'a> {
    pub(super) fn new(
        folder: &'a RunFolder,
        config: &'a RunConfig,
        fingerprint: &'a str,
        interval: Interval,
        (epoch, before): (usize, f64),
        json: bool,
        console: &'a Console,
    ) -> anyhow::Result<Self> {
        interrupt::listen()?;
        let bar = (stderr().is_terminal() && !console.is_quiet()).then(|| {
            let style = ProgressStyle::with_template(
                "{wide_bar} epoch {pos} of {len}, {eta} left\n{wide_msg}",
            );
            // The template is ours; were it wrong, the plain bar would still do.
            let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
            let bar = ProgressBar::new(config.training.epochs as u64).with_style(style);
            bar.with_position(epoch as u64)
        });
        Ok(Self {
            folder,
            config,
            fingerprint,
            interval,
            json,
            console,
            bar,
            metrics: folder.metrics_from(epoch)?,
            log: folder.log()?,
            begun: Instant::now(),
            before,
            kept: (Instant::now(), epoch),
            evaluation: None,
            outcome: Outcome { last: None, epochs: epoch },
            error: None,
        })
    }

    /// How it went, or what went wrong with the files.
    pub(super) fn finish(self) -> anyhow::Result<Outcome> {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        match self.error {
            Some(error) => Err(error.context(format!(
                "training stopped, because {} cannot be written; --resume continues it",
                self.folder.path().display()
            ))),
            None => Ok(self.outcome),
        }
    }

    fn note(
        &mut self,
        report: &EpochReport,
        state: &TrainerState,
        stop: bool,
    ) -> anyhow::Result<()> {
        let line = serde_json::to_string(report)?;
        self.metrics.line(&line)?;
        if self.json {
            print(&format!("{line}\n"))?;
        }
        if let Some(evaluation) = &report.evaluation {
            self.evaluation = Some(evaluation.clone());
        }
        let last = stop || report.epoch == self.config.training.epochs;
        let text = tell(report, self.evaluation.as_ref());
        if let Some(bar) = &self.bar {
            bar.set_position(report.epoch as u64);
            bar.set_message(text.clone());
        }
        if report.epoch.is_multiple_of(self.config.training.epochs.div_ceil(LINES)) || last {
            let line = format!("epoch {:>5}  {text}", report.epoch);
            self.log.line(&line)?;
            if self.bar.is_none() {
                self.console.say(line);
            }
        }
        let (when, epoch) = self.kept;
        if last
            || report.epoch - epoch >= self.interval.epochs
            || when.elapsed().as_secs_f64() >= self.interval.seconds
        {
            let seconds = self.before + self.begun.elapsed().as_secs_f64();
            let path = self.folder.file(CHECKPOINT);
            Checkpoint::write(&path, self.config, self.fingerprint, seconds, state)?;
            self.kept = (Instant::now(), report.epoch);
        }
        Ok(())
    }
}

impl Observer for Watch<'_> {
    fn epoch(&mut self, report: &EpochReport, state: &TrainerState) -> ControlFlow<()> {
        let stop = interrupt::asked();
        let noted = self.note(report, state, stop);
        self.outcome = Outcome { last: Some(report.clone()), epochs: report.epoch };
        match noted {
            Err(error) => {
                self.error = Some(error);
                ControlFlow::Break(())
            }
            Ok(()) if stop => ControlFlow::Break(()),
            Ok(()) => ControlFlow::Continue(()),
        }
    }
}

/// `loss 3.1  residual 2.0e-4  train 93.1 %  val 91.2 %`
fn tell(report: &EpochReport, evaluation: Option<&ModelEvaluation>) -> String {
    let mut text = format!("loss {:.4}  residual {:.1e}", report.loss, report.residual_mean);
    let parts = evaluation.map(|evaluation| &evaluation.parts[..]).unwrap_or_default();
    // The test part is looked at when all is done.
    for (part, score) in parts.iter().filter(|(part, _)| *part != SplitName::Test) {
        text.extend(["  ", split_name(*part), " ", &tell_metrics(score)]);
    }
    text
}
