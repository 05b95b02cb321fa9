use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context;
use lpgnn::experiment::{Machine, today};
use lpgnn::run::write_file;
use serde_json::Value;

use super::super::record::COMMIT;
use super::super::row::files;
use super::file::{Axis, STUDIES, Study};
use super::measure::{Measure, Measured};

/// The results of a study so far: a file that only the program writes.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct StudyRecord {
    name: String,
    version: String,
    /// The commit of the program that ran the last point; none if it is no longer in the history,
    /// which the note explains.
    pub(crate) commit: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    pub(crate) processor: String,
    pub(crate) date: String,
    command: String,
    /// By key.
    points: BTreeMap<String, Point>,
}

/// The result of a point.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(crate) struct Point {
    series: String,
    value: Value,
    seed: u64,
    /// Fingerprint of the data.
    data: String,
    commit: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    /// Once, or along a curve.
    measured: Vec<Measured>,
}

/// A point of a line in a plot: mean over seeds, with the least and the largest value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spot {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) least: f64,
    pub(crate) largest: f64,
}

impl StudyRecord {
    pub(crate) fn new(study: &Study) -> Self {
        Self {
            name: study.name.clone(),
            version: env!("CARGO_PKG_VERSION").into(),
            commit: Some(COMMIT.into()),
            note: None,
            processor: Machine::here().cpu,
            date: today(),
            command: format!("lpgnn reproduce {}", study.name),
            points: BTreeMap::new(),
        }
    }

    /// The record of a study, if there is one.
    pub(crate) fn read(results: &Path, name: &str) -> anyhow::Result<Option<Self>> {
        let path = Self::path(results, name);
        if !path.exists() {
            return Ok(None);
        }
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        let broken = || format!("{} is not the result of a study", path.display());
        Ok(Some(serde_json::from_str(&text).with_context(broken)?))
    }

    pub(crate) fn write(&self, results: &Path) -> anyhow::Result<()> {
        let path = Self::path(results, &self.name);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)
                .with_context(|| format!("cannot create {}", parent.display()))?;
        }
        let text = serde_json::to_string_pretty(self)? + "\n";
        Ok(write_file(&path, text.as_bytes())?)
    }

    fn path(results: &Path, name: &str) -> PathBuf {
        results.join(format!("{name}.json"))
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.points.contains_key(key)
    }

    /// Adds a point.
    pub(crate) fn add(
        &mut self,
        planned: &super::PlannedPoint,
        data: String,
        measured: Vec<Measured>,
    ) {
        let point = Point {
            series: planned.series.clone(),
            value: planned.value.clone(),
            seed: planned.seed,
            data,
            commit: Some(COMMIT.into()),
            note: None,
            measured,
        };
        self.points.insert(planned.key.clone(), point);
        (self.commit, self.note) = (Some(COMMIT.into()), None);
        (self.processor, self.date) = (Machine::here().cpu, today());
    }

    /// Drops points that are not planned.
    pub(crate) fn keep(&mut self, study: &Study) {
        self.points.retain(|key, _| study.plan.iter().any(|planned| planned.key == *key));
    }

    /// The line of a series in a plot.
    pub(crate) fn line(&self, study: &Study, series: &str, y: &Axis) -> Vec<Spot> {
        let mut spots = vec![];
        for (value, keys) in values_of(study, series) {
            let points: Vec<&Point> = keys.iter().filter_map(|key| self.points.get(*key)).collect();
            let length = points.iter().map(|point| point.measured.len()).max().unwrap_or(0);
            for place in 0..length {
                let at: Vec<&Measured> =
                    points.iter().filter_map(|point| point.measured.get(place)).collect();
                spots.extend(spot(&at, value, study.about.x.of, y.of));
            }
        }
        spots
    }
}

/// The values of a series in order, each with the keys of its points.
fn values_of<'a>(study: &'a Study, series: &str) -> Vec<(&'a Value, Vec<&'a str>)> {
    let mut values: Vec<(&Value, Vec<&str>)> = vec![];
    for point in study.plan.iter().filter(|point| point.series == series) {
        match values.iter_mut().find(|(value, _)| *value == &point.value) {
            Some((_, keys)) => keys.push(&point.key),
            None => values.push((&point.value, vec![&point.key])),
        }
    }
    values
}

/// The mean over the seeds that have both measures; none if none has.
fn spot(at: &[&Measured], value: &Value, x: Measure, y: Measure) -> Option<Spot> {
    let pairs: Vec<(f64, f64)> = at
        .iter()
        .filter_map(|measured| {
            let x = if x == Measure::Value { value.as_f64() } else { measured.get(&x).copied() };
            Some((x?, *measured.get(&y)?))
        })
        .collect();
    if pairs.is_empty() {
        return None;
    }
    let count = pairs.len() as f64;
    let ys = || pairs.iter().map(|(_, y)| *y);
    Some(Spot {
        x: pairs.iter().map(|(x, _)| x).sum::<f64>() / count,
        y: ys().sum::<f64>() / count,
        least: ys().fold(f64::INFINITY, f64::min),
        largest: ys().fold(f64::NEG_INFINITY, f64::max),
    })
}

/// The names of all studies with results.
pub(crate) fn recorded(results: &Path) -> anyhow::Result<Vec<String>> {
    let folder = results.join(STUDIES);
    if !folder.is_dir() {
        return Ok(vec![]);
    }
    let stem = |path: &PathBuf| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let mut names: Vec<String> =
        files(&folder, "json")?.iter().map(|path| format!("{STUDIES}/{}", stem(path))).collect();
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::super::file::tests::STUDY;
    use super::*;

    #[test]
    fn a_line_goes_through_the_means_over_seeds() {
        let study = Study::parse("x.toml", "x", STUDY).unwrap();
        let mut record = StudyRecord::new(&study);
        for (i, planned) in study.plan.iter().enumerate() {
            let hops = if i % 4 < 2 { 4.0 } else { 9.0 };
            let measured = [(Measure::Hops, hops), (Measure::Accuracy, 50.0 + i as f64)].into();
            record.add(planned, "data".into(), vec![measured]);
        }
        let line = record.line(&study, "maximum", &study.about.panels[0]);
        let spot = |x, y, least, largest| Spot { x, y, least, largest };
        assert_eq!(line, [spot(4.0, 54.5, 54.0, 55.0), spot(9.0, 56.5, 56.0, 57.0)]);
        let text = serde_json::to_string(&record).unwrap();
        let again: StudyRecord = serde_json::from_str(&text).unwrap();
        assert_eq!(again.line(&study, "maximum", &study.about.panels[0]), line);
    }
}
