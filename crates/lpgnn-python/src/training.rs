use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use lpgnn::run::{
    RunConfig, SavedModel, Schema, Setting, SettingInfo, Setup, SplitSource, settings_of_json,
    settings_of_toml,
};
use lpgnn::train::{EpochReport, Observer, Trained, Trainer, TrainerState};
use pyo3::prelude::*;

use crate::dataset::{Dataset, SplitTuple, split_of};
use crate::error::{Error, exception, json_exception};
use crate::model::Model;
use crate::threads::pool;

/// How often Python is asked whether Ctrl-C was pressed.
const INTERVAL: Duration = Duration::from_millis(50);

/// Trains, and returns the model, a line of JSON per epoch, and how training ended, as JSON.
///
/// Epochs run on threads of their own. The calling thread waits for their reports: only there does
/// Python notice Ctrl-C, and only there are Python functions called.
#[pyfunction]
pub(crate) fn train(
    py: Python<'_>,
    data: &Dataset,
    toml: Option<(String, String)>,
    json: &str,
    split: Option<SplitTuple>,
    threads: usize,
    on_epoch: Option<Py<PyAny>>,
) -> PyResult<(Model, Vec<String>, String)> {
    let mut config = config(data, toml, json)?;
    let split = split.map(split_of).transpose()?;
    if split.is_some() {
        config.split.source = SplitSource::Given;
    }
    let pool = pool(threads)?;
    let setup = py.detach(|| {
        pool.install(|| match split {
            Some(split) => {
                let dataset = data.0.clone().with_split(Some(split.clone()))?;
                Setup::with_split(&config, &dataset, split)
            }
            None => Setup::new(&config, &data.0),
        })
    });
    let setup = setup.map_err(exception)?;

    let (reports, answers, stop) = (channel(), channel(), AtomicBool::new(false));
    let mut watch =
        Watch { reports: reports.0, answers: on_epoch.is_some().then_some(answers.1), stop: &stop };
    let listen = Listen { reports: reports.1, answers: answers.0, on_epoch, lines: vec![] };
    let (trained, heard) = py.detach(|| {
        thread::scope(|scope| {
            let setup = &setup;
            let training = scope.spawn(move || {
                pool.install(|| {
                    Trainer::new(setup.plan.clone(), &setup.model, &setup.data)?.run(&mut watch)
                })
            });
            let heard = listen.until_it_ends();
            stop.store(true, Ordering::Relaxed);
            (training.join(), heard)
        })
    });
    let lines = heard?;
    let trained = trained.map_err(|_| Error::new_err("training panicked"))?.map_err(exception)?;
    let Trained { weights, epoch, evaluation, reason, .. } = trained;
    let ending =
        serde_json::json!({ "stop_reason": reason, "epoch": epoch, "evaluation": evaluation });
    let ending = serde_json::to_string(&ending).map_err(|error| json_exception(&error))?;
    let model = SavedModel::new(&setup, &config, data.0.name(), epoch, weights);
    Ok((Model(model), lines, ending))
}

/// All settings of a run, as TOML.
#[pyfunction]
pub(crate) fn settings(
    data: &Dataset,
    toml: Option<(String, String)>,
    json: &str,
) -> PyResult<String> {
    Ok(config(data, toml, json)?.to_toml())
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

/// The names of these arguments, with what they mean.
#[pyfunction]
pub(crate) fn arguments() -> Vec<(String, String)> {
    let described = |(name, info): (String, &SettingInfo)| {
        let none = if info.optional { " or None" } else { "" };
        let SettingInfo { meaning, kind, path, .. } = info;
        let default = info.default_text();
        (name, format!("{meaning} {path}: {kind}{none} [default: {default}]"))
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

/// The defaults for the data, changed by a file of settings and then by settings one by one.
fn config(data: &Dataset, toml: Option<(String, String)>, json: &str) -> PyResult<RunConfig> {
    let mut settings: Vec<Setting> = match toml {
        Some((path, text)) => settings_of_toml(&path, &text).map_err(exception)?,
        None => vec![],
    };
    settings.extend(settings_of_python(json)?);
    let name = data.0.name();
    let mut config =
        RunConfig::for_data(name, &data.0, &settings).with(&settings).map_err(exception)?;
    name.clone_into(&mut config.data.source);
    Ok(config)
}

/// On the side of the training: reports every epoch.
struct Watch<'a> {
    reports: Sender<EpochReport>,
    /// Whether to continue, if `on_epoch` is asked after every epoch.
    answers: Option<Receiver<bool>>,
    stop: &'a AtomicBool,
}

impl Observer for Watch<'_> {
    fn epoch(&mut self, report: &EpochReport, _: &TrainerState) -> ControlFlow<()> {
        let heard = self.reports.send(report.clone()).is_ok();
        let wanted = self.answers.as_ref().is_none_or(|answers| answers.recv().unwrap_or(false));
        if heard && wanted && !self.stop.load(Ordering::Relaxed) {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    }
}

/// On the side of Python.
struct Listen {
    reports: Receiver<EpochReport>,
    answers: Sender<bool>,
    on_epoch: Option<Py<PyAny>>,
    lines: Vec<String>,
}

impl Listen {
    /// Until training ends or Python raises an exception; whoever waits for an answer gets none then.
    fn until_it_ends(mut self) -> PyResult<Vec<String>> {
        let mut asked = Instant::now();
        loop {
            match self.reports.recv_timeout(INTERVAL) {
                Ok(report) => self.hear(&report)?,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(self.lines),
            }
            if asked.elapsed() >= INTERVAL {
                #[allow(clippy::redundant_closure_for_method_calls, reason = "of any lifetime")]
                Python::attach(|py| py.check_signals())?;
                asked = Instant::now();
            }
        }
    }

    fn hear(&mut self, report: &EpochReport) -> PyResult<()> {
        let line = serde_json::to_string(report).map_err(|error| json_exception(&error))?;
        if let Some(on_epoch) = &self.on_epoch {
            let go_on = Python::attach(|py| on_epoch.bind(py).call1((&line,))?.extract::<bool>())?;
            // Training may be over.
            let _ = self.answers.send(go_on);
        }
        self.lines.push(line);
        Ok(())
    }
}
