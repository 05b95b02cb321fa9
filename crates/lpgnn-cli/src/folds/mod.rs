//! Several trainings whose mean is a result: folds of the data, or seeds of one split.

mod report;

use std::path::PathBuf;

use anyhow::Context;
use lpgnn::data::{Dataset, Encoding, Split};
use lpgnn::evaluate::{Baseline, Protocol};
use lpgnn::graph::Level;
use lpgnn::run::{RunConfig, Setup};

use crate::bars::Bars;
use crate::console::Console;
use crate::interrupt::{self, Stopped};
use crate::majority::majority;
use crate::parallel;
use crate::result_folder::ResultFolder;
use crate::trial::{self, Done, Place, Trial};
pub(crate) use report::{Fold, Report};

/// One of them.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    /// As in fold 3 or seed 7.
    pub(crate) kind: &'static str,
    pub(crate) number: u64,
    /// What is trained, validated and tested on.
    pub(crate) split: Split,
    /// The configurations to choose from, by the validation part.
    pub(crate) candidates: Vec<RunConfig>,
}

/// How data are divided into folds.
#[derive(Clone, Debug)]
pub(crate) struct Division {
    pub(crate) folds: usize,
    /// A folder of given folds, instead.
    pub(crate) files: Option<PathBuf>,
    pub(crate) seed: u64,
}

/// One in so many of the training members of a fold chooses the epoch, where the protocol wants it.
const INNER: usize = 9;

impl Division {
    /// The folds, each with all candidates.
    pub(crate) fn parts(
        &self,
        dataset: &Dataset,
        task: Level,
        protocol: Protocol,
        candidates: &[RunConfig],
    ) -> anyhow::Result<Vec<Part>> {
        let level = task.of_split(dataset);
        let splits = match &self.files {
            Some(folder) => Split::read_folds(folder, level, level.count(dataset))?,
            None => Split::k_fold(dataset, level, self.folds, self.seed)?,
        };
        let parts = (1..).zip(splits).map(|(number, split)| {
            let split = match protocol {
                Protocol::Nested => split.with_validation(dataset, INNER, self.seed)?,
                Protocol::BestMeanEpoch | Protocol::Split => split,
            };
            Ok(Part { kind: "fold", number, split, candidates: candidates.to_vec() })
        });
        parts.collect()
    }
}

impl Part {
    fn file(&self) -> String {
        format!("{}-{:02}.json", self.kind, self.number)
    }
}

/// Does all of them that are not done, side by side.
///
/// # Errors
///
/// [`Stopped`] when somebody wanted it to end; `again` tells how to continue it.
pub(crate) fn work(
    parts: &[Part],
    dataset: &Dataset,
    folder: &ResultFolder,
    again: &str,
    console: &Console,
) -> anyhow::Result<Vec<Fold>> {
    interrupt::listen()?;
    let bars = Bars::new(console);
    let all = parallel::each(parts.len(), |k| {
        let part = &parts[k];
        if folder.has(&part.file()) {
            return Ok(());
        }
        let Some(fold) = train(part, dataset, folder, &bars)? else { return Ok(()) };
        folder.save(&part.file(), &fold)?;
        bars.say(&fold.line());
        for candidate in 0..part.candidates.len() {
            place(part, candidate, folder).remove();
        }
        Ok(())
    })?;
    if !all {
        return Err(Stopped(format!("stopped; {again} continues it")).into());
    }
    parts.iter().map(|part| folder.read(&part.file())).collect()
}

/// The best model, the baseline and the most frequent class; none when somebody wants it to end.
fn train(
    part: &Part,
    dataset: &Dataset,
    folder: &ResultFolder,
    bars: &Bars<'_>,
) -> anyhow::Result<Option<Fold>> {
    let mut best: Option<(usize, Trial)> = None;
    for (i, config) in part.candidates.iter().enumerate() {
        let setup = Setup::with_split(config, dataset, part.split.clone())?;
        let bar = bars.add(&format!("{} {}", part.kind, part.number), config.training.epochs);
        let place = place(part, i, folder);
        let done = trial::train(config, &setup, config.training.epochs, &place, &bar)?;
        bar.finish_and_clear();
        let Some(Done { trial, .. }) = done else { return Ok(None) };
        let better = |before: &Trial| trial.val_value > before.val_value;
        if best.as_ref().is_none_or(|(_, before)| better(before)) {
            best = Some((i, trial));
        }
    }
    let (candidate, trial) = best.context("there is nothing to train")?;
    let config = &part.candidates[candidate];
    let setup = Setup::with_split(config, dataset, part.split.clone())?;
    let batch =
        Encoding::for_split(dataset, &config.features, &part.split)?.batch::<f32>(dataset)?;
    let baseline = Baseline { seed: config.training.seed, ..Baseline::default() };
    let baseline = baseline.train(&batch, &part.split, setup.task)?;
    let name = (part.kind, part.number);
    Ok(Some(Fold::new(name, candidate, trial, &baseline, majority(dataset, &setup))))
}

fn place(part: &Part, candidate: usize, folder: &ResultFolder) -> Place {
    let Part { kind, number, .. } = part;
    Place::new(folder.path(), &format!("{kind}-{number:02}-{:05}", candidate + 1))
}
