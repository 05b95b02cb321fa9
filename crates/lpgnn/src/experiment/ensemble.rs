//! A trial of an ensemble: trainings that differ in their seed, whose predictions are averaged.

use super::trial::{HeldOut, TrialRecord, value};
use crate::evaluate::ensemble_outputs;
use crate::graph::Targets;
use crate::readout::Supervision;
use crate::run::Setup;
use crate::train::{SplitName, supervised_metrics};
use crate::{Error, Matrix};

/// The record of an ensemble, from those of its members with their outputs.
///
/// Its values at an epoch are those of all members at that epoch, of as many epochs as all of them have; its value on the test
/// split is that of every member at its own best epoch, as an ensemble of saved models has it. Where a member has diverged, its
/// record is that of the ensemble.
///
/// # Errors
///
/// [`Error::Mismatch`] when outputs are not those of the splits of `setup`.
pub(super) fn ensemble(setup: &Setup, members: &[TrialRecord]) -> Result<TrialRecord, Error> {
    let seconds = members.iter().map(|member| member.seconds).sum();
    let common = members.iter().map(|member| member.outputs.len()).min().unwrap_or(0);
    let failed = members.iter().find(|member| member.outputs.is_empty() || member.diverged());
    if let Some(failed) = failed {
        let (ensemble, outputs) = (members.len(), vec![]);
        return Ok(TrialRecord { ensemble, seconds, outputs, ..failed.clone() });
    }
    let first = members[0].clone();
    let at_epoch = |split, at: usize| of_members(setup, members, split, |_| at);
    let all = |split| {
        let values = (0..common).map(|at| at_epoch(split, at));
        values.filter_map(Result::transpose).collect::<Result<Vec<f64>, Error>>()
    };
    let best = |split| of_members(setup, members, split, best_evaluation);
    let mean = |values: Vec<f64>| {
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    };
    let largest = |value: fn(&TrialRecord) -> Option<f64>| {
        members.iter().map(value).try_fold(0.0, |largest: f64, value| Some(largest.max(value?)))
    };
    Ok(TrialRecord {
        epochs: first.epochs[..common].to_vec(),
        val: all(SplitName::Val)?,
        test: all(SplitName::Test)?,
        best_epoch: members.iter().map(|member| member.best_epoch).max().unwrap_or(0),
        val_value: best(SplitName::Val)?,
        test_value: best(SplitName::Test)?,
        cheating_gap: mean(members.iter().filter_map(|member| member.cheating_gap).collect()),
        not_converged: members.iter().map(|member| member.not_converged).max().unwrap_or(0),
        residual: largest(|member| member.residual),
        distance: largest(|member| member.distance),
        unbounded: members.iter().map(|member| member.unbounded).max().unwrap_or(0),
        ensemble: members.len(),
        seconds,
        outputs: vec![],
        ..first
    })
}

/// The place of a member's best epoch among its evaluations.
fn best_evaluation(member: &TrialRecord) -> usize {
    let best = member.epochs.iter().position(|&epoch| epoch == member.best_epoch);
    best.unwrap_or(member.epochs.len().saturating_sub(1))
}

/// The value of the mean prediction on a split, every member at one of its evaluations; none where there is no such split.
fn of_members(
    setup: &Setup,
    members: &[TrialRecord],
    split: SplitName,
    evaluation: impl Fn(&TrialRecord) -> usize,
) -> Result<Option<f64>, Error> {
    let Some((.., supervision)) = setup.data.splits().find(|(name, ..)| *name == split) else {
        return Ok(None);
    };
    let of = |held_out: &HeldOut| match split {
        SplitName::Val => matrix(&held_out.val, supervision),
        _ => matrix(&held_out.test, supervision),
    };
    let is_class = matches!(supervision.targets(), Targets::Classes { .. });
    let outputs = members.iter().map(|member| of(&member.outputs[evaluation(member)]));
    let outputs = ensemble_outputs(&outputs.collect::<Result<Vec<_>, _>>()?, is_class);
    let metric = members[0].metric;
    let monitor = setup.plan.config().monitor;
    Ok(Some(value(metric, &supervised_metrics(supervision, &outputs, monitor))))
}

#[allow(clippy::cast_possible_truncation, reason = "they were single before")]
fn matrix(outputs: &[f64], supervision: &Supervision<f32>) -> Result<Matrix, Error> {
    let cols = supervision.targets().width();
    let entries = outputs.iter().map(|&y| y as f32).collect();
    Matrix::from_entries(outputs.len() / cols.max(1), cols, entries)
}
