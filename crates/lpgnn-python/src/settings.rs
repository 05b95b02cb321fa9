use std::borrow::Cow;
use std::ffi::CString;

use lpgnn::graph::Level;
use lpgnn::run::{
    RunConfig, Schema, Setting, SettingInfo, SplitSource, notes, refuse, settings_of_json,
    settings_of_toml,
};
use lpgnn::shortened;
use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;

use crate::dataset::{Dataset, SplitTuple, split_of};
use crate::error::{exception, json_exception};

/// What Python asks for: a file of settings by name and text, single settings as JSON, and a split.
#[derive(FromPyObject)]
pub(crate) struct Request(Option<(String, String)>, String, Option<SplitTuple>);

/// A configuration and the data it is for.
pub(crate) struct Task<'a> {
    pub(crate) config: RunConfig,
    pub(crate) dataset: Cow<'a, lpgnn::data::Dataset>,
    /// The settings that were made.
    pub(crate) settings: Vec<Setting>,
}

impl Task<'_> {
    /// Warns of what should be known before training on the split that the settings ask for.
    pub(crate) fn warn_of_split(&self, py: Python<'_>) -> PyResult<()> {
        let Self { config, dataset, .. } = self;
        let task = Level::of_task(config.data.task, dataset).map_err(exception)?;
        let split = config.split.divide(dataset, task).map_err(exception)?;
        self.warn(py, &split)
    }

    /// Warns of what should be known before training on this split.
    pub(crate) fn warn(&self, py: Python<'_>, split: &lpgnn::data::Split) -> PyResult<()> {
        let notes = notes(&self.config, &self.settings, &self.dataset, split);
        warn(py, &notes.map_err(exception)?)
    }
}

/// Warns, where the function of this package was called.
pub(crate) fn warn(py: Python<'_>, notes: &[String]) -> PyResult<()> {
    for note in notes {
        // Python's strings may have it, C's may not.
        let note = CString::new(shortened(note).replace('\0', "\\0"))?;
        PyErr::warn(py, &py.get_type::<PyUserWarning>(), &note, 2)?;
    }
    Ok(())
}

impl Request {
    /// Those of a file, and then those that were given one by one.
    pub(crate) fn settings(&self) -> PyResult<Vec<Setting>> {
        let mut settings = match &self.0 {
            Some((path, text)) => settings_of_toml(path, text).map_err(exception)?,
            None => vec![],
        };
        settings.extend(settings_of_python(&self.1)?);
        Ok(settings)
    }

    /// The defaults for the data and their split, changed by `first`, by a file of settings and then by
    /// settings one by one.
    pub(crate) fn task(self, data: &Dataset, first: Vec<Setting>) -> PyResult<Task<'_>> {
        let mut settings = first;
        settings.extend(self.settings()?);
        let split = self.2;
        let single = |setting: &&Setting| setting.origin().position().is_none();
        let single: Vec<Setting> = settings.iter().filter(single).cloned().collect();
        let why = "data has been read already";
        refuse(&single, &["data.source", "data.format"], why).map_err(exception)?;
        let given = split.is_some();
        if given {
            // A file may have it, as `lpgnn.settings` writes it for a split.
            let other = |setting: &&Setting| *setting.value() != "given";
            let of_split: Vec<Setting> = settings.iter().filter(other).cloned().collect();
            refuse(&of_split, &["split"], "split is an argument").map_err(exception)?;
        }
        let dataset = match split {
            Some(split) => {
                let split = Some(split_of(split)?);
                Cow::Owned(data.0.clone().with_split(split).map_err(exception)?)
            }
            None => Cow::Borrowed(&data.0),
        };
        let source = data.1.as_deref().unwrap_or(dataset.name());
        let mut config = RunConfig::choose(source, &dataset, &settings).map_err(exception)?;
        if given {
            config.split.source = SplitSource::Given;
        }
        Ok(Task { config, dataset, settings })
    }
}

impl Request {
    /// The configuration of an earlier training for `epochs` more, and the data with their split.
    pub(crate) fn task_after<'a>(
        self,
        data: &'a Dataset,
        before: &lpgnn::run::WarmStart,
        epochs: usize,
    ) -> PyResult<Task<'a>> {
        let settings = settings_of_python(&self.1)?;
        let mut task = self.task(data, vec![])?;
        let split = task.config.split;
        task.config = before.config(&settings, epochs).map_err(exception)?;
        task.config.split = split;
        Ok(task)
    }
}

/// All settings of a run, as TOML.
#[pyfunction]
pub(crate) fn settings(data: &Dataset, request: Request) -> PyResult<String> {
    Ok(request.task(data, vec![])?.config.to_toml())
}

/// The settings that are arguments of `train`: all that have a flag, but for those of the data, which
/// are given as such.
fn settings_with_argument() -> impl Iterator<Item = (String, &'static SettingInfo)> {
    let flags = Schema::of_runs().flags().into_iter();
    flags.filter(|info| !info.path.starts_with("data.")).filter_map(|info| {
        let name = info.flag.as_ref()?.replace('-', "_");
        Some((name, info))
    })
}

/// The names of these arguments, the settings that they are, and what they mean.
#[pyfunction]
pub(crate) fn arguments() -> Vec<(String, String, String)> {
    let described = |(name, info): (String, &SettingInfo)| {
        let none = if info.optional { " or None" } else { "" };
        let SettingInfo { meaning, kind, path, .. } = info;
        let default = info.default_text();
        let meaning = format!("{meaning} {path}: {kind}{none} [default: {default}]");
        (name, path.clone(), meaning)
    };
    settings_with_argument().map(described).collect()
}

/// What Python gives: settings by their paths, and arguments by their names.
fn settings_of_python(json: &str) -> PyResult<Vec<Setting>> {
    let mut given: serde_json::Value =
        serde_json::from_str(json).map_err(|error| json_exception(&error))?;
    let mut settings = settings_of_json("settings", given["settings"].take()).map_err(exception)?;
    for (name, info) in settings_with_argument() {
        let value = given["arguments"].get(&name);
        settings.extend(value.map(|value| Setting::new(&name, &info.path, value.clone())));
    }
    Ok(settings)
}
