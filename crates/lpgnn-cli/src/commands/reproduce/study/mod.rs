//! Studies: how something depends on something else, with a plot and what was found.

mod file;
mod measure;
mod plot;
mod point;
mod record;
pub(super) mod report;

use std::fmt::Write;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, anyhow};
use lpgnn::experiment::parallel;
use lpgnn::run::{RunConfig, Setting, fingerprint};

use super::data::Wanted;
use super::{RESULTS, all_epochs};
use crate::commands::settings::config_for;
use crate::console::Console;
use crate::interrupt::{self, Stopped};
pub(super) use file::{PlannedPoint, STUDIES, Study};
use record::StudyRecord;

/// Maximum epochs of a smoke test, which takes only the first values and the first seed.
const QUICK_EPOCHS: u64 = 10;
const QUICK_VALUES: usize = 2;

/// Runs the points of a study that have no result, or all of them if `again`, and summarises it.
pub(super) fn run(
    study: &Study,
    dir: &Path,
    quick: bool,
    again: bool,
    console: &Console,
) -> anyhow::Result<String> {
    let silent = console.is_quiet();
    interrupt::listen(move |line| Console::new(silent).say(line))?;
    let results = dir.join(RESULTS);
    let before = StudyRecord::read(&results, &study.name)?.filter(|_| !quick && !again);
    let mut record = before.unwrap_or_else(|| StudyRecord::new(study));
    record.keep(study);
    let plan = if quick { shorten(study) } else { study.plan.clone() };
    let missing: Vec<&PlannedPoint> =
        plan.iter().filter(|planned| !record.has(&planned.key)).collect();
    let (count, all) = (missing.len(), plan.len());
    console
        .say(format_args!("{}: {}; {count} of {all} points to run", study.name, study.about.title));
    let (record, ran) = (Mutex::new(record), AtomicUsize::new(0));
    let broken = || anyhow!("a thread panicked while holding the results");
    let done = parallel::each::<anyhow::Error>(missing.len(), &interrupt::asked, |i| {
        let planned = missing[i];
        let wrong = || format!("cannot run {} of {}", planned.name(), study.name);
        let Some((data, measured)) = planned.run(study, quick).with_context(wrong)? else {
            return Ok(());
        };
        let mut record = record.lock().map_err(|_| broken())?;
        record.add(planned, data, measured);
        if !quick {
            record.write(&results)?;
        }
        let ran = ran.fetch_add(1, Ordering::Relaxed) + 1;
        console.say(format_args!("{} ({ran} of {count}): {}", study.name, planned.name()));
        Ok(())
    })?;
    if !done {
        return Err(Stopped("interrupted; run the same command to continue".into()).into());
    }
    let record = record.into_inner().map_err(|_| broken())?;
    let mut text = format!("{}: {}\n", study.name, study.about.title);
    for series in study.series() {
        for y in &study.about.panels {
            let line = record.line(study, series, y);
            let values: Vec<String> = line.iter().map(|spot| format!("{:.4}", spot.y)).collect();
            writeln!(text, "  {series}, {}: {}", y.label(), values.join(" "))?;
        }
    }
    if quick {
        writeln!(text, "smoke test: these numbers are not results and are not recorded")?;
    }
    Ok(text)
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
