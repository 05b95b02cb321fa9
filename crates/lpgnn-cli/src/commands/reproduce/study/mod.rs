//! Studies: how something depends on something else, with a plot and what was found.

mod file;
mod measure;
mod plot;
mod point;
mod record;
pub(super) mod report;

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use lpgnn::experiment::{FolderLock, Share, parallel};
use lpgnn::run::{RunConfig, Setting, fingerprint};

use super::data::Wanted;
use super::{Arguments, RESULTS, all_epochs};
use crate::commands::settings::config_for;
use crate::console::Console;
use crate::interrupt::{self, Stopped};
use crate::ranks;
pub(super) use file::{PlannedPoint, STUDIES, Study};
use record::StudyRecord;

/// Maximum epochs of a smoke test, which takes only the first values and the first seed.
const QUICK_EPOCHS: u64 = 10;
const QUICK_VALUES: usize = 2;

/// How long to wait before looking again at what other processes do.
const INTERVAL: Duration = Duration::from_millis(200);

/// A study to run.
pub(super) struct Work<'a> {
    pub(super) study: &'a Study,
    pub(super) arguments: &'a Arguments,
    /// Where its locks are.
    pub(super) folder: &'a Path,
    /// What this process does of it.
    pub(super) share: Share,
}

impl Work<'_> {
    /// Runs the points that have no result, or all of them if again, and summarises the study.
    pub(super) fn run(&self, console: &Console) -> anyhow::Result<String> {
        let Self { study, arguments, folder, share } = self;
        let silent = console.is_quiet();
        interrupt::listen(move |line| Console::new(silent).say(line))?;
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        let quick = arguments.quick;
        let plan = if quick { shorten(study) } else { study.plan.clone() };
        let _lock = if arguments.share.collect { None } else { share.lock(folder)? };
        let results = Results::open(self)?;
        let missing = results.missing(&plan)?;
        let (count, all) = (missing.len(), plan.len());
        let title = &study.about.title;
        if arguments.share.collect && count > 0 {
            bail!("{} lacks {count} of {all} points", study.name);
        }
        console.say(format_args!("{}: {title}; {count} of {all} points to run", study.name));
        self.complete(&plan, &results, console)?;
        if interrupt::asked() && !results.missing(&plan)?.is_empty() {
            return Err(Stopped("interrupted; run the same command to continue".into()).into());
        }
        let left = results.missing(&plan)?.len();
        if left > 0 {
            console.say(format_args!(
                "{}: {left} of {all} points are left to other shards",
                study.name
            ));
        }
        self.summary(&*results.record()?)
    }

    /// Runs what this process does of the points, and waits for others if it has to.
    fn complete(
        &self,
        plan: &[PlannedPoint],
        results: &Results<'_>,
        console: &Console,
    ) -> anyhow::Result<()> {
        let missing = results.missing(plan)?;
        let mut order = self.share.order(plan.len(), false);
        order.retain(|place| missing.contains(place));
        let (count, ran) = (order.len(), AtomicUsize::new(0));
        while !order.is_empty() && !interrupt::asked() {
            let before = ran.load(Ordering::Relaxed);
            parallel::each::<anyhow::Error>(order.len(), &interrupt::asked, |i| {
                let planned = &plan[order[i]];
                if !self.point(planned, self.share.owns(order[i]), results)? {
                    return Ok(());
                }
                let ran = ran.fetch_add(1, Ordering::Relaxed) + 1;
                let name = planned.name();
                console.say(format_args!("{} ({ran} of {count}): {name}", self.study.name));
                Ok(())
            })?;
            let missing = results.missing(plan)?;
            order.retain(|place| missing.contains(place));
            if !self.share.waits() {
                break;
            }
            if !order.is_empty() && ran.load(Ordering::Relaxed) == before {
                std::thread::sleep(INTERVAL);
            }
        }
        Ok(())
    }

    /// Runs a point, unless another process does; whether it was run.
    fn point(
        &self,
        planned: &PlannedPoint,
        own: bool,
        results: &Results<'_>,
    ) -> anyhow::Result<bool> {
        let lock = FolderLock::try_item(self.folder, &format!("point-{}", planned.key))?;
        // Where there are no locks, nobody knows whether the others are at work.
        let Some(_lock) = lock.filter(|lock| lock.is_held() || own) else { return Ok(false) };
        if results.refresh()?.has(&planned.key) {
            return Ok(false);
        }
        let wrong = || format!("cannot run {} of {}", planned.name(), self.study.name);
        let measured = planned.run(self.study, self.arguments.quick).with_context(wrong)?;
        let Some((data, measured)) = measured else { return Ok(false) };
        results.add(planned, data, measured)?;
        Ok(true)
    }

    fn summary(&self, record: &StudyRecord) -> anyhow::Result<String> {
        let study = self.study;
        let mut text = format!("{}: {}\n", study.name, study.about.title);
        for series in study.series() {
            for y in &study.about.panels {
                let line = record.line(study, series, y);
                let values: Vec<String> =
                    line.iter().map(|spot| format!("{:.4}", spot.y)).collect();
                writeln!(text, "  {series}, {}: {}", y.label(), values.join(" "))?;
            }
        }
        if self.arguments.quick {
            writeln!(text, "smoke test: these numbers are not results and are not recorded")?;
        }
        Ok(text)
    }
}

/// The results of a study, to which other processes may add as well.
struct Results<'a> {
    study: &'a Study,
    folder: &'a Path,
    /// None in a smoke test, which records nothing.
    file: Option<PathBuf>,
    record: Mutex<StudyRecord>,
}

impl<'a> Results<'a> {
    fn open(work: &Work<'a>) -> anyhow::Result<Self> {
        let Work { study, arguments, folder, .. } = *work;
        let file = (!arguments.quick).then(|| arguments.dir.join(RESULTS));
        let record = Mutex::new(StudyRecord::new(study));
        let results = Self { study, folder, file, record };
        if arguments.again
            && let Some(file) = &results.file
            && !ranks::follows()
        {
            let _alone = results.alone()?;
            results.record()?.write(file)?;
        }
        if arguments.again {
            // The other ranks begin when nothing is left of what was there before.
            ranks::agree(anyhow::Ok(()))?;
        }
        Ok(results)
    }

    fn alone(&self) -> Result<FolderLock, lpgnn::Error> {
        FolderLock::wait_for_item(self.folder, "result")
    }

    fn record(&self) -> anyhow::Result<MutexGuard<'_, StudyRecord>> {
        self.record.lock().map_err(|_| anyhow!("a thread panicked while holding the results"))
    }

    /// The record as it is now, without points that are not planned.
    fn refresh(&self) -> anyhow::Result<MutexGuard<'_, StudyRecord>> {
        let mut record = self.record()?;
        if let Some(file) = &self.file {
            let before = StudyRecord::read(file, &self.study.name)?;
            *record = before.unwrap_or_else(|| StudyRecord::new(self.study));
            record.keep(self.study);
        }
        Ok(record)
    }

    /// Which of the planned points have no result.
    fn missing(&self, plan: &[PlannedPoint]) -> anyhow::Result<Vec<usize>> {
        let record = self.refresh()?;
        Ok((0..plan.len()).filter(|&place| !record.has(&plan[place].key)).collect())
    }

    fn add(
        &self,
        planned: &PlannedPoint,
        data: String,
        measured: Vec<measure::Measured>,
    ) -> anyhow::Result<()> {
        let _alone = self.alone()?;
        let mut record = self.refresh()?;
        record.add(planned, data, measured);
        self.file.as_ref().map_or(Ok(()), |file| record.write(file))
    }
}

/// The first values of every series, with the first seed.
fn shorten(study: &Study) -> Vec<PlannedPoint> {
    let mut plan: Vec<PlannedPoint> = vec![];
    let first = study.about.seeds[0];
    for point in study.plan.iter().filter(|point| point.seed == first) {
        let of_series = plan.iter().filter(|other| other.series == point.series).count();
        if of_series < QUICK_VALUES {
            plan.push(point.clone());
        }
    }
    plan
}

impl PlannedPoint {
    fn name(&self) -> String {
        match &self.value {
            serde_json::Value::Null => format!("{}, seed {}", self.series, self.seed),
            value => format!("{}, {value}, seed {}", self.series, self.seed),
        }
    }

    /// The fingerprint of its data, and what was measured; none if interrupted.
    fn run(
        &self,
        study: &Study,
        quick: bool,
    ) -> anyhow::Result<Option<(String, Vec<measure::Measured>)>> {
        let wanted = Wanted {
            by: &study.name,
            source: &self.source,
            seed: self.seed,
            generate: self.generate.as_ref(),
        };
        let dataset = wanted.load(None)?;
        let settings = all_epochs(&self.settings);
        let mut config = config_for(&self.source, &dataset, &settings)?;
        if quick {
            config = shortened(&config, &self.source, &dataset, &settings)?;
        }
        let about = &study.about;
        let found = point::run(about.protocol, about.tol, &config, &dataset)?;
        Ok(found.map(|measured| (fingerprint(&dataset), measured)))
    }
}

fn shortened(
    config: &RunConfig,
    source: &str,
    dataset: &lpgnn::data::Dataset,
    settings: &[Setting],
) -> anyhow::Result<RunConfig> {
    if config.training.epochs as u64 <= QUICK_EPOCHS {
        return Ok(config.clone());
    }
    let mut settings = settings.to_vec();
    settings.push(Setting::new("--quick", "training.epochs", QUICK_EPOCHS));
    config_for(source, dataset, &settings)
}
