//! Evaluation on converged states.

use std::ops::Range;

use super::{Best, ModelEvaluation, Monitor, SplitMetrics, SplitName, Trainer};
use crate::graph::{GraphBatch, Share};
use crate::inference::{FixedPoint, InferenceProgress, Tell, predict, spectral_radius};
use crate::readout::Supervision;
use crate::saddle::gather;
use crate::{Matrix, Scalar};

/// Power iterations for the reported spectral radius.
const RADIUS_ITERATIONS: usize = 20;

/// What is told which part of an evaluation, of how many, is how far.
type TellPart<'a> = &'a mut dyn FnMut(usize, usize, Option<InferenceProgress>);

/// Splits with what was found of their graphs.
struct Scored<S> {
    parts: Vec<(SplitName, SplitMetrics)>,
    /// See [`ModelEvaluation::outputs`].
    outputs: Vec<(SplitName, Matrix)>,
    converged: Vec<FixedPoint<S>>,
}

impl<S: Scalar> Trainer<'_, S> {
    /// Evaluates the current weights on states converged from zero, on all graphs.
    pub fn evaluate(&self) -> ModelEvaluation {
        self.evaluate_observed(&mut |_, _, _| ())
    }

    /// The same; `tell` is called when a split begins, with its number and that of the last, and within it.
    pub(super) fn evaluate_observed(&self, tell: TellPart<'_>) -> ModelEvaluation {
        self.with_gap(self.evaluate_all(&self.kept_weights(), |_| true, tell))
    }

    /// The evaluation of the last epoch: the same, but without the spectral radius where the weights of an epoch before
    /// are better, since that is told of the weights that training ends with.
    pub(super) fn evaluate_last(&self, tell: TellPart<'_>) -> ModelEvaluation {
        let asked = self.plan.config().eval_sample.is_none();
        let radius = |evaluation: &ModelEvaluation| asked || self.is_best(evaluation);
        self.with_gap(self.evaluate_all(&self.kept_weights(), radius, tell))
    }

    /// The same, as often as the plan has it before training ends: of the training graphs it measures a sample, and
    /// it leaves out the spectral radius, unless the plan asks for all.
    pub(super) fn evaluate_in_passing(&self, tell: TellPart<'_>) -> ModelEvaluation {
        if self.held_out_only {
            return self.score_from(1, &self.kept_weights(), tell).unfinished(None);
        }
        if self.plan.config().eval_sample.is_none() {
            return self.evaluate_observed(tell);
        }
        let weights = &self.kept_weights();
        let Some(sample) = &self.sample else {
            return self.with_gap(self.score_from(0, weights, tell).unfinished(None));
        };
        let mut scored = self.score_from(1, weights, tell);
        let inference = &self.plan.config().inference;
        let (found, outputs) =
            inference.outputs(self.model, weights, &sample.graphs, &self.scratch, &mut |_| ());
        let of_sample = metrics(&sample.graphs, &sample.supervision, &outputs, None);
        scored.parts.insert(0, (SplitName::Train, of_sample));
        scored.converged.push(found);
        let mut evaluation = scored.unfinished(Some(sample.graphs.graphs()));
        let trained = gather(&self.all_rows(&self.state.variables.states), &sample.nodes);
        evaluation.cheating_gap =
            self.gap(&sample.graphs, &sample.supervision, &trained, &evaluation);
        evaluation
    }

    /// The evaluation of the best weights on all graphs. The states they were trained with are gone, so that the
    /// cheating gap stays the one that was measured then.
    pub(super) fn evaluate_best(&self, best: &Best<S>, tell: TellPart<'_>) -> ModelEvaluation {
        if self.held_out_only || best.evaluation.is_complete() {
            return best.evaluation.clone();
        }
        let (sample, cheating_gap) = (best.evaluation.sample, best.evaluation.cheating_gap);
        ModelEvaluation { cheating_gap, sample, ..self.evaluate_all(&best.weights, |_| true, tell) }
    }

    /// All splits, and the spectral radius if `radius` says so; without the cheating gap.
    fn evaluate_all(
        &self,
        weights: &[S],
        radius: impl Fn(&ModelEvaluation) -> bool,
        tell: TellPart<'_>,
    ) -> ModelEvaluation {
        let mut scored = self.evaluate_from(0, weights, tell);
        let found = scored.converged.first_mut().map(|found| std::mem::take(&mut found.states));
        let mut evaluation = scored.unfinished(None);
        evaluation.spectral_radius = radius(&evaluation).then(|| {
            let (graphs, states) = (self.data.training_graphs(), &found.unwrap_or_default());
            spectral_radius(self.model, weights, graphs, states, RADIUS_ITERATIONS, &self.scratch)
        });
        evaluation
    }

    /// The same with the cheating gap of the current weights on all training graphs.
    fn with_gap(&self, evaluation: ModelEvaluation) -> ModelEvaluation {
        let trained = &self.all_rows(&self.state.variables.states);
        let (graphs, supervision) = (self.data.training_graphs(), &self.data.scored[0].2);
        let cheating_gap = self.gap(graphs, supervision, trained, &evaluation);
        ModelEvaluation { cheating_gap, ..evaluation }
    }

    /// The accuracy of the current weights on `trained` states, without dropout, minus that of the training split in
    /// `evaluation`.
    fn gap(
        &self,
        graphs: &GraphBatch<S>,
        supervision: &Supervision<S>,
        trained: &[Matrix<S>],
        evaluation: &ModelEvaluation,
    ) -> Option<f64> {
        let fresh = evaluation.parts[0].1.accuracy?;
        let weights = &self.kept_weights();
        let along = predict(self.model, weights, graphs, trained, &self.scratch);
        metrics(graphs, supervision, &along, None).accuracy.map(|accuracy| accuracy - fresh)
    }

    /// Evaluates the splits whose graphs come at `first` or later, and returns their states too.
    fn evaluate_from(&self, first: usize, weights: &[S], tell: TellPart<'_>) -> Scored<S> {
        self.each_batch(first, tell, |batch, within| {
            let inference = &self.plan.config().inference;
            let found =
                inference.states_observed(self.model, weights, batch, &self.scratch, within);
            let outputs = found.outputs(self.model, weights, batch, &self.scratch);
            (found, outputs)
        })
    }

    /// The same without the states.
    fn score_from(&self, first: usize, weights: &[S], tell: TellPart<'_>) -> Scored<S> {
        self.each_batch(first, tell, |batch, within| {
            let inference = &self.plan.config().inference;
            inference.outputs(self.model, weights, batch, &self.scratch, within)
        })
    }

    /// Scores the splits whose graphs come at `first` or later by what `answer` says of their graphs.
    fn each_batch(
        &self,
        first: usize,
        tell: TellPart<'_>,
        answer: impl Fn(&GraphBatch<S>, Tell<'_>) -> (FixedPoint<S>, Matrix<S>),
    ) -> Scored<S> {
        let batches = &self.data.batches[first..];
        let answer = |(number, batch): (usize, &GraphBatch<S>)| {
            tell(number, batches.len(), None);
            let mut within = |progress| tell(number, batches.len(), Some(progress));
            answer(batch, &mut within)
        };
        let (converged, outputs): (Vec<_>, Vec<_>) = (1..).zip(batches).map(answer).unzip();
        let scored = || self.data.scored.iter().filter(|(_, batch, _)| *batch >= first);
        let parts = scored().map(|(name, batch, supervision)| {
            let monitor = Some(self.plan.config().monitor).filter(|_| *name != SplitName::Train);
            let graphs = &self.data.batches[*batch];
            (*name, metrics(graphs, supervision, &outputs[batch - first], monitor))
        });
        let kept = scored().filter(|(name, batch, _)| {
            let whole = self.data.batches[*batch].across().is_none();
            self.keep_outputs && whole && *name != SplitName::Train
        });
        let kept = kept.map(|(name, batch, supervision)| {
            (*name, of_supervised(supervision, &outputs[batch - first]))
        });
        Scored { parts: parts.collect(), outputs: kept.collect(), converged }
    }
}

impl<S: Scalar> Scored<S> {
    /// An evaluation without spectral radius and cheating gap.
    fn unfinished(self, sample: Option<usize>) -> ModelEvaluation {
        let Self { parts, outputs, converged } = self;
        let not_converged = converged.iter().map(FixedPoint::failures).sum();
        let (spectral_radius, cheating_gap) = (None, None);
        ModelEvaluation { parts, not_converged, spectral_radius, cheating_gap, sample, outputs }
    }
}

/// The outputs for the supervised rows, in single precision.
#[allow(clippy::cast_possible_truncation, reason = "single precision is enough to compare classes")]
fn of_supervised<S: Scalar>(supervision: &Supervision<S>, outputs: &Matrix<S>) -> Matrix {
    let rows = outputs.select(supervised(supervision).into_iter());
    let entries = rows.as_slice().iter().map(|y| y.f64() as f32).collect();
    Matrix::from_entries(rows.rows(), rows.cols(), entries).expect("as many entries as before")
}

/// The metrics of the supervised rows, given the outputs for them alone.
pub(crate) fn supervised_metrics(
    supervision: &Supervision<f32>,
    outputs: &Matrix,
    monitor: Monitor,
) -> SplitMetrics {
    metrics_of(&supervision.select(&supervised(supervision)), outputs, Some(monitor))
}

/// The supervised nodes of all ranks that share a graph in parts, one rank after the other.
pub(super) fn of_all<S: Scalar>(share: &Share, supervision: &Supervision<S>) -> Supervision<S> {
    supervision.select(&supervised(supervision)).concatenated(share)
}

fn supervised<S: Scalar>(supervision: &Supervision<S>) -> Vec<usize> {
    let counts = supervision.counts();
    (0..counts.len()).filter(|&row| counts[row] > S::ZERO).collect()
}

fn metrics<S: Scalar>(
    graphs: &GraphBatch<S>,
    supervision: &Supervision<S>,
    outputs: &Matrix<S>,
    monitor: Option<Monitor>,
) -> SplitMetrics {
    match graphs.across() {
        None => metrics_of(supervision, outputs, monitor),
        Some(share) => metrics_of_parts(share, supervision, outputs, monitor),
    }
}

fn metrics_of<S: Scalar>(
    supervision: &Supervision<S>,
    outputs: &Matrix<S>,
    monitor: Option<Monitor>,
) -> SplitMetrics {
    let (right, all) = supervision.correct(outputs);
    let accuracy = (all > 0).then(|| right as f64 / all as f64);
    let monitored = monitor.and_then(|monitor| monitor.of(supervision, outputs));
    SplitMetrics { loss: supervision.mean_loss(outputs), accuracy, monitored }
}

/// The same of a graph in parts: every rank has those of its own parts, which are added up in the order of parts. Only metrics that
/// are no sums over nodes need the outputs of all of them.
fn metrics_of_parts<S: Scalar>(
    share: &Share,
    supervision: &Supervision<S>,
    outputs: &Matrix<S>,
    monitor: Option<Monitor>,
) -> SplitMetrics {
    let counts = supervision.counts();
    let of_part = |(_, nodes): (usize, Range<usize>)| {
        let rows: Vec<usize> = nodes.filter(|&row| counts[row] > S::ZERO).collect();
        let (part, outputs) = (supervision.select(&rows), outputs.select(rows.iter().copied()));
        let (right, all) = part.correct(&outputs);
        [part.summed_loss(&outputs), part.total(), right as f64, all as f64]
    };
    let own: Vec<f64> = share.own_parts().into_iter().flat_map(of_part).collect();
    let of_parts = share.of_all_parts(&own, 4);
    let sum = |which: usize| of_parts.iter().skip(which).step_by(4).sum::<f64>();
    let (loss, total, right, all) = (sum(0), sum(1), sum(2), sum(3));
    let loss = if total > 0.0 { loss / total } else { 0.0 };
    let accuracy = (all > 0.0).then(|| right / all);
    let monitored = monitor.and_then(|monitor| match monitor {
        Monitor::Auto => None,
        Monitor::Loss => Some(-loss),
        Monitor::Accuracy => accuracy,
        _ => {
            let rows = outputs.select(supervised(supervision).into_iter());
            monitor.of(&of_all(share, supervision), &share.concatenate_rows(&rows))
        }
    });
    SplitMetrics { loss, accuracy, monitored }
}
