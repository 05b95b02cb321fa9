use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, bail};
use lpgnn::data::Dataset;
use lpgnn::evaluate::Protocol;
use lpgnn::experiment::crossval::{Crossval, Division, Fold};
use lpgnn::experiment::{ResultFolder, Share, TrialName};
use lpgnn::graph::Level;
use lpgnn::run::{RunConfig, Setting, Setup, fingerprint};

use super::super::functions;
use super::super::settings::config_for;
use super::data::Wanted;
use super::record::{COMMIT, Record};
use super::row::Row;
use super::{Arguments, QUICK_EPOCHS, QUICK_PARTS, RESULTS, all_epochs};
use crate::bars::Bars;
use crate::console::Console;
use crate::interrupt::{self, Stopped};
use crate::ranks;

/// A row to run.
pub(super) struct Work<'a> {
    pub(super) row: &'a Row,
    pub(super) arguments: &'a Arguments,
    pub(super) out: &'a Path,
    pub(super) console: &'a Console,
    /// Which one of how many.
    pub(super) place: (usize, usize),
    /// When a smoke test stops.
    pub(super) deadline: Option<Instant>,
    /// What this process does of it.
    pub(super) share: Share,
}

/// What came of a row.
pub(super) enum Outcome {
    /// A result, new or recorded.
    Done(Box<Record>),
    /// These are left to other processes.
    Left(Vec<TrialName>),
    /// Its data cannot be found.
    NoData,
    /// A smoke test has no time left for it.
    OutOfTime,
}

impl Work<'_> {
    /// The result of the row, new or recorded.
    pub(super) fn run(&self) -> anyhow::Result<Outcome> {
        let Self { row, arguments, console, .. } = self;
        let about = &row.about;
        let results = arguments.dir.join(RESULTS);
        let before = Record::read(&results, &row.name)?;
        let before = before.filter(|_| !arguments.quick && !arguments.again);
        let wanted = Wanted {
            by: &row.name,
            source: row.source(),
            seed: about.data_seed,
            generate: about.generate.as_ref(),
        };
        let dataset = match wanted.load(arguments.data.as_deref()) {
            Ok(dataset) => dataset,
            Err(error @ lpgnn::Error::UnknownSet { .. }) => {
                console.say(format_args!("{}: not run, because {error}, or use --data", row.name));
                let before = before.filter(|record| record.is_of(row));
                return Ok(before.map_or(Outcome::NoData, |record| Outcome::Done(Box::new(record))));
            }
            Err(error) => return Err(error).with_context(|| format!("cannot run {}", row.name)),
        };
        let config = self.config(&dataset)?;
        let print = fingerprint(&dataset);
        if let Some(record) = before {
            if record.is_of(row) && record.has_same(&config, &print)? {
                console.say(format_args!("{}: already has a result; --again repeats it", row.name));
                return Ok(Outcome::Done(Box::new(record)));
            }
            console
                .say(format_args!("{}: settings or data have changed since its result", row.name));
        }
        self.train(&dataset, &config, print)
    }

    /// Trains on all folds or seeds, and records the result.
    fn train(
        &self,
        dataset: &Dataset,
        config: &RunConfig,
        print: String,
    ) -> anyhow::Result<Outcome> {
        let Self { row, arguments, console, .. } = self;
        let about = &row.about;
        let crossval = Crossval::with_registry(
            &functions(),
            dataset,
            about.protocol,
            self.folds(dataset, config)?,
        )?
        .with_stages(about.stages.map_or(1, NonZeroUsize::get))
        .with_ensemble(about.ensemble.map_or(1, NonZeroUsize::get));
        let folds = crossval.folds();
        let place = match self.place {
            (_, 1) => String::new(),
            (place, count) => format!(" ({place} of {count})"),
        };
        console.say(format_args!(
            "{}{place}: {}; {} {}s, {} ({})",
            row.name,
            about.title,
            folds.len(),
            folds[0].name.kind.as_str(),
            about.protocol,
            about.protocol.describe()
        ));
        let path = self.out.join(folder_name(row, arguments.quick));
        if arguments.share.collect && !path.exists() {
            return Ok(Outcome::Left(folds.iter().map(|fold| fold.name).collect()));
        }
        let folder = self.open(&path, config, &print, folds)?;
        let report = if arguments.share.collect {
            crossval.collect(&folder)?
        } else {
            crossval.run(&folder, &Bars::new(console)?.until(self.deadline))?
        };
        match report {
            Some(_) if ranks::follows() => Ok(Outcome::Left(vec![])),
            Some(report) => {
                let record = Record::new(row, report, config, print, arguments.quick)?;
                self.keep(&folder, &record)?;
                Ok(Outcome::Done(Box::new(record)))
            }
            None if interrupt::asked() => {
                Err(Stopped("interrupted; run the same command to continue".into()).into())
            }
            None if self.deadline.is_some() => Ok(Outcome::OutOfTime),
            None => Ok(Outcome::Left(crossval.missing(&folder))),
        }
    }

    /// Records a result, which another process may be doing as well.
    fn keep(&self, folder: &ResultFolder, record: &Record) -> anyhow::Result<()> {
        let _alone = folder.alone()?;
        folder.save("result.json", record)?;
        if !self.arguments.quick {
            record.write(&self.arguments.dir.join(RESULTS))?;
        }
        Ok(())
    }

    fn fold_files(&self) -> Option<PathBuf> {
        self.row.about.fold_files.as_ref().map(|files| self.arguments.dir.join(files))
    }

    fn config(&self, dataset: &Dataset) -> anyhow::Result<RunConfig> {
        let source = self.row.source();
        let mut settings = all_epochs(&self.row.settings);
        let config = config_for(source, dataset, &settings)?;
        if self.arguments.quick && config.training.epochs > QUICK_EPOCHS {
            settings.push(Setting::new("--quick", "training.epochs", QUICK_EPOCHS));
            return config_for(source, dataset, &settings);
        }
        Ok(config)
    }

    fn folds(&self, dataset: &Dataset, config: &RunConfig) -> anyhow::Result<Vec<Fold>> {
        let about = &self.row.about;
        let task = Level::of_task(config.data.task, dataset)?;
        let seeds = about.seeds.as_deref().unwrap_or_default();
        let mut folds = if about.protocol == Protocol::Split {
            let split = Setup::with_registry(&functions(), config, dataset, None)?.split;
            // Without a validation split, the last epoch counts.
            if split.test.is_empty() {
                bail!("the test split of {} is empty", self.row.name);
            }
            seeds.iter().map(|&seed| Fold::with_seed(config, split.clone(), seed)).collect()
        } else {
            let folds = about.folds.unwrap_or_default();
            let division = Division { folds, files: self.fold_files(), seed: about.fold_seed };
            let once = std::slice::from_ref(&config.training.seed);
            let seeds = if seeds.is_empty() { once } else { seeds };
            let mut all = vec![];
            for &seed in seeds {
                let mut config = config.clone();
                config.training.seed = seed;
                all.extend(division.folds(dataset, task, about.protocol, &[config])?);
            }
            // The folds of the second seed follow those of the first: 11, 12, … after 10.
            (1..).zip(&mut all).for_each(|(number, fold)| fold.name.number = number);
            all
        };
        if self.arguments.quick {
            folds.truncate(QUICK_PARTS);
        }
        Ok(folds)
    }

    /// Opens the folder of its intermediate results.
    fn open(
        &self,
        path: &Path,
        config: &RunConfig,
        data: &str,
        folds: &[Fold],
    ) -> anyhow::Result<ResultFolder> {
        let plan = serde_json::json!({
            "data": data,
            "commit": COMMIT,
            "candidates": config,
            "splits": folds.iter().map(|fold| (fold.name.number, fold.split.fingerprint())).collect::<Vec<_>>(),
        });
        if self.arguments.share.collect {
            return Ok(ResultFolder::open_existing(path, &plan)?);
        }
        Ok(ResultFolder::open_share(path, &plan, config, self.share)?)
    }
}

/// The name of the folder of its intermediate results, specific to the settings and the program's commit.
pub(super) fn folder_name(row: &Row, quick: bool) -> String {
    let quick = if quick { "-quick" } else { "" };
    format!("{}-{}-{COMMIT}{quick}", row.name, &row.hash[..8])
}
