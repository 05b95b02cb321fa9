use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::EventWriter;
use crate::Error;
use crate::experiment::{ExperimentObserver, TrialKind, TrialName, TrialObserver};
use crate::run::RunConfig;
use crate::train::EpochReport;

type ConfigOf<'a> = Box<dyn Fn(TrialName, usize) -> Option<&'a RunConfig> + Sync + 'a>;

/// Writes event files of all trials of a cross-validation or a search: `fold-01`, `trial-00001` and so on. Of several
/// candidates of one fold, the second is `fold-01-2`.
pub struct TrialEvents<'a> {
    folder: PathBuf,
    config_of: ConfigOf<'a>,
    begun: Mutex<HashMap<(&'static str, u64), usize>>,
    error: Mutex<Option<Error>>,
}

impl<'a> TrialEvents<'a> {
    /// Files in folders of a folder; `config_of` has the settings of a trial, or of a candidate of a fold, counted from 0.
    pub fn new(
        folder: &Path,
        config_of: impl Fn(TrialName, usize) -> Option<&'a RunConfig> + Sync + 'a,
    ) -> Self {
        Self {
            folder: folder.to_owned(),
            config_of: Box::new(config_of),
            begun: Mutex::default(),
            error: Mutex::default(),
        }
    }

    /// Whether all files could be written.
    ///
    /// # Errors
    ///
    /// [`Error::Io`]
    pub fn finish(self) -> Result<(), Error> {
        let error = self.error.into_inner().unwrap_or_else(PoisonError::into_inner);
        error.map_or(Ok(()), Err)
    }

    fn writer(&self, name: TrialName, at: usize) -> Result<EventWriter, Error> {
        // A fold that begins again is that of another candidate; a trial goes on in another round.
        let candidate = {
            let mut begun = locked(&self.begun);
            let count = begun.entry((name.kind.as_str(), name.number)).or_default();
            *count += 1;
            if name.kind == TrialKind::Trial { 0 } else { *count - 1 }
        };
        let width = if name.kind == TrialKind::Trial { 5 } else { 2 };
        let mut folder = format!("{}-{:0width$}", name.kind.as_str(), name.number);
        if candidate > 0 {
            folder = format!("{folder}-{}", candidate + 1);
        }
        let default = RunConfig::default();
        let config = (self.config_of)(name, candidate).unwrap_or(&default);
        EventWriter::create(&self.folder.join(folder), at, config)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ExperimentObserver for TrialEvents<'_> {
    fn trial(&self, name: TrialName, at: usize, _: usize) -> Box<dyn TrialObserver + '_> {
        let fail = |error| _ = locked(&self.error).get_or_insert(error);
        Box::new(Trial { writer: self.writer(name, at).map_err(fail).ok(), error: &self.error })
    }
}

struct Trial<'a> {
    /// None when it cannot be written.
    writer: Option<EventWriter>,
    /// The first of all trials.
    error: &'a Mutex<Option<Error>>,
}

impl TrialObserver for Trial<'_> {
    fn epoch(&mut self, report: &EpochReport) -> ControlFlow<()> {
        match self.writer.as_mut().map(|writer| writer.add(report, None)) {
            Some(Ok(())) => ControlFlow::Continue(()),
            Some(Err(error)) => {
                locked(self.error).get_or_insert(error);
                ControlFlow::Break(())
            }
            None => ControlFlow::Break(()),
        }
    }
}
