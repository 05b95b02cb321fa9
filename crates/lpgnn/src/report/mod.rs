//! Reports: runs, cross-validations and searches as one page to look at.
//!
//! A [`Report`](crate::report::Report) is made of [run folders](crate::experiment) alone, without the data and without computing
//! anything again. [`Report::html`](crate::report::Report::html) is one file that needs no network: charts that can be saved, the table behind
//! each, and, first of all, what is wrong.
//!
//! ```
//! use lpgnn::data::generate::CliqueConfig;
//! use lpgnn::experiment::run::Run;
//! use lpgnn::report::Report;
//! use lpgnn::run::RunConfig;
//!
//! let dataset = CliqueConfig { graphs: 10, ..CliqueConfig::default() }.generate(0)?;
//! let mut config = RunConfig::for_data("clique", &dataset, &[]);
//! config.training.epochs = 10;
//! # let place = tempfile::tempdir().unwrap();
//! # let folder = place.path().join("first");
//! Run::create(&folder, config, &dataset)?.train(&mut ())?;
//! let page = Report::of(&[&folder])?.html()?;
//! assert!(page.starts_with("<!doctype html>"));
//! # Ok::<(), lpgnn::Error>(())
//! ```
//!
//! A [`LiveReport`](crate::report::LiveReport) is the same page while training runs: it is told every epoch, and tells each of its
//! readers what is new.

mod crossval;
mod drawing;
mod history;
mod live;
mod page;
mod run;
mod scale;
mod search;

pub use live::{LiveReport, Seen};

use std::io::Read;
use std::path::Path;

use crate::data::Dataset;
use crate::experiment::record::ModelNotes;
use crate::experiment::run::RunFolder;
use crate::experiment::{ResultFolder, Versions, today};
use crate::registry::Registry;
use crate::run::{SavedModel, write_file};
use crate::{Error, Place, input};
use crossval::CrossvalPage;
use run::RunPage;
use search::SearchPage;

/// A report on some folders.
#[derive(Debug, serde::Serialize)]
pub struct Report {
    title: String,
    subtitle: String,
    runs: Vec<RunPage>,
    crossval: Option<CrossvalPage>,
    search: Option<SearchPage>,
}

impl Report {
    /// On one or more runs, on a cross-validation, or on a search.
    ///
    /// # Errors
    ///
    /// [`Error::Folder`] when a folder is none of these or holds nothing yet, or when a cross-validation or a
    /// search comes with something else; [`Error::Io`], [`Error::Input`] when a file cannot be read.
    pub fn of<P: AsRef<Path>>(folders: &[P]) -> Result<Self, Error> {
        let mut report = Self {
            title: String::new(),
            subtitle: format!("lpgnn {}, {}", Versions::here().library, today()),
            runs: vec![],
            crossval: None,
            search: None,
        };
        for folder in folders {
            report.add(folder.as_ref(), folders.len() == 1)?;
        }
        let names: Vec<&str> = report.runs.iter().map(RunPage::title).collect();
        if report.title.is_empty() {
            report.title = distinct(&names).join(", ");
        }
        Ok(report)
    }

    /// On a model and what is known of its training. With the data that it was trained on, there are a map of the states
    /// and drawings too.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`] when these are other data.
    pub fn of_model(
        saved: &SavedModel,
        notes: &ModelNotes,
        dataset: Option<&Dataset>,
    ) -> Result<Self, Error> {
        let mut report = Self::of::<&Path>(&[])?;
        report.title.clone_from(&saved.data.name);
        report.runs.push(RunPage::of_model(saved, notes, dataset)?);
        Ok(report)
    }

    fn add(&mut self, path: &Path, alone: bool) -> Result<(), Error> {
        let problem = |problem: &str| Error::Folder { path: path.into(), problem: problem.into() };
        if RunFolder::open(path).is_ok() {
            self.runs.push(RunPage::read(&RunFolder::open(path)?)?);
            return Ok(());
        }
        let Some(result) = ResultFolder::result(path)? else {
            return Err(problem("is neither a run nor a finished cross-validation or search"));
        };
        if !alone {
            return Err(problem(
                "is not a run: several folders can be compared only if all are runs",
            ));
        }
        if result.get("protocol").is_some() {
            let page = CrossvalPage::read(path, result)?;
            self.title = page.title();
            self.crossval = Some(page);
        } else {
            let page = SearchPage::read(path, result)?;
            self.title = page.title();
            self.search = Some(page);
        }
        Ok(())
    }

    /// The same with drawings of the graphs, or of the neighbourhoods, that the model is most wrong and most
    /// uncertain about. One run only: of several, nothing is drawn.
    ///
    /// # Errors
    ///
    /// [`Error::Folder`] when these are other data than the run was trained on.
    pub fn with_drawings(self, folder: &Path, dataset: &Dataset) -> Result<Self, Error> {
        self.with_drawings_by(&Registry::default(), folder, dataset)
    }

    /// The same of a model that is made of functions in `registry`.
    ///
    /// # Errors
    ///
    /// Those of [`with_drawings`](Self::with_drawings).
    pub fn with_drawings_by(
        mut self,
        registry: &Registry<f32>,
        folder: &Path,
        dataset: &Dataset,
    ) -> Result<Self, Error> {
        if let [run] = self.runs.as_mut_slice() {
            run.draw(registry, folder, dataset)?;
        }
        Ok(self)
    }

    /// The page.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`] when it cannot be written as JSON, which no record is known to do.
    pub fn html(&self) -> Result<String, Error> {
        page::page(self).map_err(|error| Error::Mismatch(format!("a report is not JSON: {error}")))
    }

    /// Writes the page to a file, which may be an earlier report.
    ///
    /// # Errors
    ///
    /// [`Error::Io`]; [`Error::Input`] when the file is there and is something else.
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        if path.exists() && !is_report(path)? {
            return Err(Place::file(path).error("exists and is not a report, so it is left alone"));
        }
        write_file(path, self.html()?.as_bytes())
    }
}

/// Whether a file starts like the page of a report.
fn is_report(path: &Path) -> Result<bool, Error> {
    let io = |source| Error::Io { action: "read", path: path.to_owned(), source };
    let mut head = vec![];
    input::open(path)?.take(1 << 10).read_to_end(&mut head).map_err(io)?;
    Ok(String::from_utf8_lossy(&head).contains(GENERATOR))
}

/// What says in the page who has written it.
const GENERATOR: &str = r#"<meta name="generator" content="lpgnn">"#;

/// Each name once, in order.
fn distinct<'a>(names: &[&'a str]) -> Vec<&'a str> {
    let mut seen = vec![];
    for name in names {
        if !seen.contains(name) {
            seen.push(name);
        }
    }
    seen
}

/// A result that was read as JSON.
fn typed<T: serde::de::DeserializeOwned>(
    path: &Path,
    value: serde_json::Value,
) -> Result<T, Error> {
    serde_json::from_value(value)
        .map_err(|error| Place::file(path).error(format!("it is not a result: {error}")))
}

/// A number for the page; none of what is not finite.
fn finite(x: f64) -> Option<f64> {
    x.is_finite().then_some(x)
}
