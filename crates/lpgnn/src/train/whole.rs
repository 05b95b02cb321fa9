//! The state of training where ranks share the training graphs.
//!
//! An update on all graphs leaves every rank with the rows of the nodes that it owns, and nothing else. What needs the rows of all
//! nodes asks for them here. Graphs that take turns in batches are owned by another rank every time, so that all ranks
//! have all rows then.

use std::borrow::Cow;

use super::{EpochReport, NotFinite, Observer, Trainer, TrainerState, TrainingData, TrainingPlan};
use crate::graph::Share;
use crate::numeric::{length, sizes, worse};
use crate::{Matrix, Scalar};

/// How ranks share the rows of the state of training by this plan; none where each has all.
pub(super) fn share_of<'d, S: Scalar>(
    plan: &TrainingPlan,
    data: &'d TrainingData<S>,
) -> Option<&'d Share> {
    let graphs = data.training_graphs();
    let in_turns = plan.config().batch_size.is_some_and(|size| size < graphs.graphs());
    graphs.share().filter(|_| !in_turns)
}

/// The state of a rank, from that of all nodes.
pub(super) fn own<S: Scalar>(share: Option<&Share>, mut state: TrainerState<S>) -> TrainerState<S> {
    let Some(share) = share else { return state };
    let optimizer = state.optimizer.take_own_rows(share);
    TrainerState { variables: state.variables.own_rows(share), optimizer, ..state }
}

impl<S: Scalar> Trainer<'_, S> {
    /// How ranks share the rows of the state, where any can have those of all nodes; none where this one has all, or
    /// where the graph is in parts.
    pub(super) fn share(&self) -> Option<&Share> {
        share_of(&self.plan, self.data)
    }

    /// The same, of a graph in parts too.
    pub(super) fn rows_share(&self) -> Option<&Share> {
        self.share().or(self.data.training_graphs().across())
    }

    /// The state of all nodes, on all ranks; of a graph in parts, of own nodes.
    pub(super) fn whole(&self) -> Cow<'_, TrainerState<S>> {
        let Some(share) = self.share() else { return Cow::Borrowed(&self.state) };
        let state = self.state.clone();
        let variables = state.variables.all_rows(share);
        let optimizer = state.optimizer.all_rows(share);
        Cow::Owned(TrainerState { variables, optimizer, ..state })
    }

    /// Rows of all nodes, or of own ones of a graph in parts, from those of the state.
    pub(super) fn all_rows<'m>(&self, rows: &'m [Matrix<S>]) -> Cow<'m, [Matrix<S>]> {
        match self.share() {
            None => Cow::Borrowed(rows),
            Some(share) => rows.iter().map(|own| share.all_rows(own)).collect(),
        }
    }

    /// Whether the observer of any rank asks to stop.
    pub(super) fn tell(&self, report: &EpochReport, observer: &mut dyn Observer<S>) -> bool {
        let graphs = self.data.training_graphs();
        let Some(share) = graphs.share().or(graphs.across()) else {
            let stop = observer.epoch(report, &self.state).is_break();
            if stop {
                observer.stopped(&self.state);
            }
            return stop;
        };
        let ranks = &**share.communicator();
        let reads = ranks.any(observer.reads_state(report));
        observer.all_read_state(reads);
        let state = if reads { self.whole() } else { Cow::Borrowed(&self.state) };
        let stop = ranks.any(observer.epoch(report, &state).is_break());
        if stop {
            let state = if reads { state } else { self.whole() };
            observer.stopped(&state);
        }
        stop
    }

    /// What is not finite, on any rank.
    pub(super) fn not_finite(&self) -> Option<NotFinite> {
        let own = NotFinite::of(&self.state.variables);
        let Some(share) = self.rows_share() else { return own };
        let order = [NotFinite::Weights, NotFinite::States, NotFinite::Multipliers];
        let place = own.and_then(|own| order.iter().position(|&other| other == own));
        let all = share.communicator().all(place.map_or(f64::INFINITY, |place| place as f64));
        let first = all.into_iter().fold(f64::INFINITY, f64::min);
        order.into_iter().enumerate().find(|(place, _)| *place as f64 >= first).map(|(_, of)| of)
    }

    /// The largest and the mean multiplier, in absolute value.
    pub(super) fn multiplier_sizes(&self) -> (f64, f64) {
        let all = &self.state.variables.multipliers;
        let largest = all.iter().fold(S::ZERO, |max, of| worse(max, sizes(of.as_slice()).1));
        let largest = self.rows_share().map_or(largest.f64(), |share| share.largest(largest.f64()));
        let sum = self.sum(all, |rows| sizes(rows).0);
        let nodes = self
            .rows_share()
            .map_or_else(|| all.first().map_or(0, Matrix::rows), Share::whole_nodes);
        let count = nodes * all.iter().map(Matrix::cols).sum::<usize>();
        (largest, sum / (count as f64).max(1.0))
    }

    /// The lengths of the gradient of the last update, in weights, states and multipliers.
    pub(super) fn gradient_norms(&self) -> [f64; 3] {
        let gradient = &self.state.optimizer.gradient;
        let squares = |rows: &[S]| length(rows).powi(2);
        let norm = |rows: &[Matrix<S>]| self.sum(rows, squares).sqrt();
        [length(&gradient.weights), norm(&gradient.states), norm(&gradient.multipliers)]
    }

    /// The sum over all layers and nodes of what `of` makes of the rows of a group of them.
    fn sum(&self, matrices: &[Matrix<S>], of: impl Fn(&[S]) -> f64) -> f64 {
        let graphs = self.data.training_graphs();
        let topology = self.rows_share().map_or(graphs, |_| graphs.own()).topology();
        let mut sum = 0.0;
        for matrix in matrices {
            if matrix.rows() != topology.nodes() {
                // The last of several batches.
                sum += of(matrix.as_slice());
                continue;
            }
            let rows = |range: &std::ops::Range<usize>| {
                of(&matrix.as_slice()[range.start * matrix.cols()..range.end * matrix.cols()])
            };
            let own: Vec<f64> = topology.groups().ranges().iter().map(rows).collect();
            let all = self.rows_share().and_then(|_| topology.reduce::<S>().totals(&own, 1));
            sum += all.unwrap_or(own).into_iter().sum::<f64>();
        }
        sum
    }
}
