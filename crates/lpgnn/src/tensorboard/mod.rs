//! Event files, which TensorBoard shows: scalars of every epoch, histograms, and settings as hyperparameters.
//!
//! An [`EventWriter`](crate::tensorboard::EventWriter) observes a run or a training,
//! [`TrialEvents`](crate::tensorboard::TrialEvents) all trials of a cross-validation or a search. Every run has a folder;
//! one that is resumed adds a file, and what older files tell of later epochs is not shown any more.
//!
//! ```
//! use lpgnn::data::generate::CliqueConfig;
//! use lpgnn::experiment::run::Run;
//! use lpgnn::run::RunConfig;
//! use lpgnn::tensorboard::EventWriter;
//!
//! let dataset = CliqueConfig { graphs: 10, ..CliqueConfig::default() }.generate(0)?;
//! let mut config = RunConfig::for_data("clique", &dataset, &[]);
//! config.training.epochs = 10;
//! # let place = tempfile::tempdir().unwrap();
//! # let (folder, events) = (place.path().join("first"), place.path().join("events"));
//! let run = Run::create(&folder, config, &dataset)?;
//! let mut writer = EventWriter::create(&events, run.epoch(), run.config())?;
//! let record = run.train(&mut writer)?;
//! writer.finish(Some(record.stop_reason))?;
//! # Ok::<(), lpgnn::Error>(())
//! ```

mod file;
mod message;
mod trials;
mod values;

pub use trials::TrialEvents;

use std::ops::ControlFlow;
use std::path::Path;

use crate::Error;
use crate::experiment::TrialObserver;
use crate::experiment::run::{Progress, RunObserver};
use crate::run::RunConfig;
use crate::train::{EpochReport, Observer, StopReason, TrainerState};
use file::EventFile;

/// Writes the event file of one training. A file that cannot be written stops the training.
#[derive(Debug)]
pub struct EventWriter {
    file: EventFile,
    error: Option<Error>,
}

impl EventWriter {
    /// A new file in a folder, for a training that has completed so many epochs.
    ///
    /// # Errors
    ///
    /// [`Error::Io`]
    pub fn create(folder: &Path, epochs: usize, config: &RunConfig) -> Result<Self, Error> {
        let mut file = EventFile::create(folder, epochs + 1)?;
        file.add(0, &[values::session_start(config)])?;
        Ok(Self { file, error: None })
    }

    /// Adds an epoch, and the seconds it took if they are known.
    ///
    /// # Errors
    ///
    /// [`Error::Io`]
    pub fn add(&mut self, report: &EpochReport, seconds: Option<f64>) -> Result<(), Error> {
        self.file.add(report.epoch, &values::of_epoch(report, seconds))
    }

    /// Ends the file, unless training was stopped and may be resumed.
    ///
    /// # Errors
    ///
    /// [`Error::Io`], also of an epoch that could not be written.
    pub fn finish(mut self, reason: Option<StopReason>) -> Result<(), Error> {
        if let Some(error) = self.error {
            return Err(error);
        }
        match reason {
            None | Some(StopReason::Stopped) => Ok(()),
            Some(reason) => {
                let success = !matches!(reason, StopReason::Diverged { .. });
                self.file.add(0, &[values::session_end(success)])
            }
        }
    }

    fn observe(&mut self, report: &EpochReport, seconds: Option<f64>) -> ControlFlow<()> {
        match self.add(report, seconds) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                self.error = Some(error);
                ControlFlow::Break(())
            }
        }
    }
}

impl RunObserver for EventWriter {
    fn epoch(&mut self, progress: &Progress<'_>) -> ControlFlow<()> {
        self.observe(&progress.metrics.report, Some(progress.metrics.seconds))
    }
}

impl Observer for EventWriter {
    fn epoch(&mut self, report: &EpochReport, _: &TrainerState) -> ControlFlow<()> {
        self.observe(report, None)
    }
}

impl TrialObserver for EventWriter {
    fn epoch(&mut self, report: &EpochReport) -> ControlFlow<()> {
        self.observe(report, None)
    }
}
