use std::path::{Path, PathBuf};

use anyhow::Context;
use lpgnn::experiment::crossval::CrossvalReport;
use lpgnn::experiment::{Machine, today};
use lpgnn::run::{RunConfig, write_file};
use serde_json::Value;

use super::RESULTS;
use super::row::{Row, files};

/// The result of a row, and everything needed to obtain it again: a file that only the program writes.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Record {
    pub(super) name: String,
    /// The hash of the row when it was run.
    hash: String,
    /// Whether it was a smoke test.
    quick: bool,
    pub(super) report: CrossvalReport,
    /// All settings, including the defaults at that time.
    config: Value,
    /// The fingerprint of the data.
    data: String,
    version: String,
    /// The commit of the program; none if it is no longer in the history, which the note explains.
    pub(super) commit: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    pub(super) processor: String,
    pub(super) threads: usize,
    pub(super) date: String,
    command: String,
}

impl Record {
    pub(super) fn new(
        row: &Row,
        report: CrossvalReport,
        config: &RunConfig,
        data: String,
        quick: bool,
    ) -> anyhow::Result<Self> {
        let Machine { cpu, threads, .. } = Machine::here();
        Ok(Self {
            name: row.name.clone(),
            hash: row.hash.clone(),
            quick,
            report,
            config: serde_json::to_value(config)?,
            data,
            version: env!("CARGO_PKG_VERSION").into(),
            commit: Some(COMMIT.into()),
            note: None,
            processor: cpu,
            threads,
            date: today(),
            // The path of the data is specific to the machine.
            command: format!("lpgnn reproduce {} --data DIR", row.name),
        })
    }

    /// The record of a row, if there is one.
    pub(super) fn read(folder: &Path, row: &str) -> anyhow::Result<Option<Self>> {
        let path = Self::path(folder, row);
        if !path.exists() {
            return Ok(None);
        }
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        let broken = || format!("{} is not a result", path.display());
        Ok(Some(serde_json::from_str(&text).with_context(broken)?))
    }

    pub(super) fn write(&self, folder: &Path) -> anyhow::Result<PathBuf> {
        let path = Self::path(folder, &self.name);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)
                .with_context(|| format!("cannot create {}", parent.display()))?;
        }
        let text = serde_json::to_string_pretty(self)? + "\n";
        write_file(&path, text.as_bytes())?;
        Ok(path)
    }

    fn path(folder: &Path, row: &str) -> PathBuf {
        folder.join(format!("{row}.json"))
    }

    /// Whether the row's file is unchanged since it was run.
    pub(super) fn is_of(&self, row: &Row) -> bool {
        self.hash == row.hash
    }

    /// Whether the row would be run with the same settings and data today.
    pub(super) fn has_same(&self, config: &RunConfig, data: &str) -> anyhow::Result<bool> {
        Ok(self.data == data && is_within(&self.config, &serde_json::to_value(config)?))
    }
}

pub(super) const COMMIT: &str = env!("LPGNN_COMMIT");

/// Whether all recorded settings have the same value now; settings added later do not count.
fn is_within(before: &Value, now: &Value) -> bool {
    match (before, now) {
        (Value::Object(before), Value::Object(now)) => {
            before.iter().all(|(key, value)| now.get(key).is_some_and(|now| is_within(value, now)))
        }
        _ => before == now,
    }
}

/// The names of all results of rows in the folder of experiments.
pub(super) fn recorded(dir: &Path) -> anyhow::Result<Vec<String>> {
    let folder = dir.join(RESULTS);
    let mut names = vec![];
    let Ok(tables) = std::fs::read_dir(&folder) else { return Ok(names) };
    let is_table = |entry: &std::fs::DirEntry| {
        entry.path().is_dir() && entry.file_name() != super::study::STUDIES
    };
    for table in tables.flatten().filter(is_table) {
        for path in files(&table.path(), "json")? {
            let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            names.push(format!("{}/{stem}", table.file_name().to_string_lossy()));
        }
    }
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_setting_that_was_added_later_makes_no_difference() {
        let before = json!({ "model": { "state-dim": 5 } });
        assert!(is_within(&before, &json!({ "model": { "state-dim": 5, "new": 1 } })));
        assert!(!is_within(&before, &json!({ "model": { "state-dim": 6 } })));
        assert!(!is_within(&before, &json!({ "model": {} })));
    }
}
