use std::path::Path;

use serde_json::Value;

use super::scale::ValueScale;
use super::typed;
use crate::Error;
use crate::evaluate::MeanAndStd;
use crate::experiment::ResultFolder;
use crate::experiment::crossval::{CrossvalReport, FoldRecord};

/// A cross-validation, as the page shows it.
#[derive(Debug, serde::Serialize)]
pub(super) struct CrossvalPage {
    #[serde(skip)]
    data: String,
    #[serde(skip)]
    ensemble: usize,
    protocol: &'static str,
    about: &'static str,
    /// What the values are, and whether they are shown in percent.
    metric: &'static str,
    share: bool,
    values: Vec<f64>,
    mean: f64,
    std: f64,
    epoch: Option<usize>,
    seconds: f64,
    baseline: MeanAndStd,
    majority: Option<MeanAndStd>,
    epochs: Vec<usize>,
    curves: Vec<Vec<f64>>,
    mean_curve: Vec<f64>,
    alerts: Vec<Note>,
}

#[derive(Debug, serde::Serialize)]
struct Note {
    title: &'static str,
    text: String,
}

impl CrossvalPage {
    pub(super) fn read(path: &Path, result: Value) -> Result<Self, Error> {
        let report: CrossvalReport = typed(path, result)?;
        Ok(Self::new(report, ResultFolder::parts(path, &["fold-", "seed-"])?))
    }

    pub(super) fn new(report: CrossvalReport, folds: Vec<FoldRecord>) -> Self {
        let longest = folds.iter().max_by_key(|fold| fold.trial.epochs.len());
        let epochs = longest.map_or_else(Vec::new, |fold| fold.trial.epochs.clone());
        let curves: Vec<Vec<f64>> = folds.into_iter().map(|fold| fold.trial.test).collect();
        let scale = ValueScale::of(report.metric, report.values.iter().copied());
        Self {
            metric: scale.name,
            share: scale.share,
            mean_curve: mean(&curves, epochs.len()),
            alerts: notes(&report),
            data: report.data,
            ensemble: report.ensemble,
            protocol: report.protocol.as_str(),
            about: report.protocol.describe(),
            values: report.values,
            mean: report.test.mean,
            std: report.test.std,
            epoch: report.epoch,
            seconds: report.seconds,
            baseline: report.baseline,
            majority: report.majority,
            epochs,
            curves,
        }
    }

    pub(super) fn title(&self) -> String {
        let of_ensembles = match self.ensemble {
            1 => String::new(),
            members => format!(", ensembles of {members}"),
        };
        format!("{}, {} folds{of_ensembles}", self.data, self.values.len())
    }
}

/// The mean over curves, of which those that ended early keep their last value.
fn mean(curves: &[Vec<f64>], length: usize) -> Vec<f64> {
    let at = |curve: &Vec<f64>, k: usize| curve.get(k).or(curve.last()).copied();
    (0..length)
        .map(|k| {
            let values: Vec<f64> = curves.iter().filter_map(|curve| at(curve, k)).collect();
            values.iter().sum::<f64>() / values.len().max(1) as f64
        })
        .collect()
}

fn notes(report: &CrossvalReport) -> Vec<Note> {
    let mut notes = vec![];
    let mut note = |title, text| notes.push(Note { title, text });
    if report.diverged > 0 {
        note("Folds diverged", format!("{} of {} folds.", report.diverged, report.folds));
    }
    if report.not_converged > 0 {
        note("Graphs did not converge", format!("{} over all folds.", report.not_converged));
    }
    if report.baseline.mean >= report.test.mean {
        note(
            "No better than without edges",
            "An MLP that sees no edges is as good on average.".into(),
        );
    }
    notes
}
