//! One update, of all training graphs or of some.

use std::ops::Range;

use super::observer::Observed;
use super::report::EpochSums;
use super::{Observer, StepProgress, Trainer, TrainerState};
use crate::graph::{GraphBatch, Level};
use crate::lagrangian::{Evaluation, Lagrangian, Layered, Model, Objective, Variables};
use crate::numeric::NormMemory;
use crate::saddle::{NodeCounts, OptimizerState, SaddleSolver, gather_into, scatter};
use crate::transition::{Degrees, Transition};
use crate::{Error, Matrix, Scalar};

/// Some of the training graphs.
pub(super) struct MiniBatch<'a, S> {
    /// Which ones.
    members: &'a [usize],
    nodes: Vec<usize>,
    graphs: GraphBatch<S>,
}

impl<'a, S: Scalar> MiniBatch<'a, S> {
    pub(super) fn new(graphs: &GraphBatch<S>, members: &'a [usize]) -> Self {
        let nodes = members.iter().flat_map(|&graph| graphs.nodes_of(graph)).collect();
        Self { members, nodes, graphs: graphs.select(members) }
    }
}

impl<S: Scalar> Trainer<'_, S> {
    /// An update on all graphs.
    pub(super) fn update_all(
        &mut self,
        sums: &mut EpochSums,
        (step, observer): (StepProgress, &mut dyn Observer<S>),
    ) -> Result<(), Error> {
        let graphs = self.data.training_graphs();
        let dropped = self.with_feature_dropout(graphs);
        let lagrangian = Lagrangian::new(
            self.model,
            dropped.as_ref().unwrap_or(graphs),
            &self.supervision,
            self.plan.config().weighing,
            &self.scratch,
        )?
        .with_dropout(Some(self.dropout()));
        let objective = Layered { inner: &lagrangian, layers: &self.layers };
        let objective = Observed::new(&objective, step, observer);
        let TrainerState { variables, optimizer, .. } = &mut self.state;
        let before = sums.constraints.is_some().then(|| variables.weights.clone());
        let share = graphs.own().topology().share();
        let stale = self.plan.config().staleness > 0;
        share.inspect(|share| share.set_stale(stale));
        let evaluation = self.solver.step(&objective, variables, optimizer);
        share.inspect(|share| share.set_stale(false));
        let state_dims = self.model.transitions().map(Transition::state_dim).sum::<usize>();
        sums.add(&evaluation, graphs.topology().whole_nodes() * state_dims);
        if let (Some(constraints), Some(weights)) = (&mut sums.constraints, before) {
            let seen = dropped.as_ref().unwrap_or(graphs);
            let states = self.all_rows(&self.state.variables.states);
            let (at, indices) = ((&weights[..], &states[..]), &self.data.graph_indices);
            constraints.add(self.model, seen, at, indices.iter().copied(), &self.scratch);
        }
        self.bound()
    }

    /// An update on some graphs: their states, multipliers and what is remembered of them are taken
    /// out, moved, and put back.
    pub(super) fn update_some(
        &mut self,
        MiniBatch { members, nodes, graphs: part }: MiniBatch<'_, S>,
        counts: &NodeCounts,
        sums: &mut EpochSums,
        (step, observer): (StepProgress, &mut dyn Observer<S>),
    ) -> Result<(), Error> {
        let graphs = self.data.training_graphs();
        let part = part.shared_like(graphs);
        let part = self.with_feature_dropout(&part).unwrap_or(part);
        let rows = match self.data.level {
            Level::Graph => members,
            Level::Node => &nodes,
        };
        let supervision = self.supervision.select(rows);
        let weighing = self.plan.config().weighing;
        let lagrangian = Lagrangian::new(self.model, &part, &supervision, weighing, &self.scratch)?
            .with_dropout(Some(self.dropout()));
        let objective = Layered { inner: &lagrangian, layers: &self.layers };
        let objective = Observed::new(&objective, step, observer);

        let TrainerState { variables: all, optimizer, .. } = &mut self.state;
        let mut variables = std::mem::take(&mut self.part);
        take(all, &nodes, &mut variables);
        // What a solver asks for is set, and nothing else is read.
        let mut gradient = std::mem::take(&mut optimizer.gradient);
        gradient.weights.resize(variables.weights.len(), S::ZERO);
        reshape_like(&variables.states, &mut gradient.states);
        reshape_like(&variables.multipliers, &mut gradient.multipliers);
        let mut state = OptimizerState {
            gradient,
            slots: optimizer.slots.take(&nodes, counts),
            coordinates: optimizer.coordinates.clone(),
            undecayed: optimizer.undecayed.clone(),
        };
        let mut constraints = sums.constraints.as_mut().filter(|report| report.wants_more());
        let before = constraints.is_some().then(|| variables.weights.clone());
        let evaluation = take_step(&*self.solver, &objective, &mut variables, &mut state);
        if let (Some(constraints), Some(weights)) = (&mut constraints, before) {
            let at = (&weights[..], &variables.states[..]);
            let indices = members.iter().map(|&graph| self.data.graph_indices[graph]);
            constraints.add(self.model, &part, at, indices, &self.scratch);
        }
        sums.add(&evaluation, components(&variables));
        put(&mut variables, &nodes, all);
        self.part = variables;
        optimizer.slots.put(state.slots, &nodes, all);
        optimizer.gradient = state.gradient;
        self.bound()
    }

    /// The random seed of the next update: a function of seed and update alone.
    fn dropout(&self) -> u64 {
        self.plan.config().seed.rotate_left(32) ^ self.state.updates
    }

    /// The graphs as the next update sees them, if not as they are.
    fn with_feature_dropout(&self, graphs: &GraphBatch<S>) -> Option<GraphBatch<S>> {
        let rate = self.plan.config().feature_dropout;
        // Other entries than the units of f_r that are left out.
        (rate > 0.0).then(|| graphs.with_feature_dropout(rate, !self.dropout()))
    }

    /// After an update: restores frozen weights, enforces the bound on `f_a` and averages.
    fn bound(&mut self) -> Result<(), Error> {
        self.state.updates += 1;
        for (range, weights) in &self.frozen {
            self.state.variables.weights[range.clone()].copy_from_slice(weights);
        }
        if let Some(bound) = self.plan.config().lipschitz {
            let weights = &mut self.state.variables.weights;
            contract(self.model, weights, self.degrees, bound, &mut self.state.norms)?;
        }
        self.average_weights();
        Ok(())
    }
}

/// A step of the solver. Where ranks share the graphs, each moves the nodes that it owns, and all have all of them afterwards.
fn take_step<S: Scalar>(
    solver: &dyn SaddleSolver<S>,
    objective: &dyn Objective<S>,
    at: &mut Variables<S>,
    state: &mut OptimizerState<S>,
) -> Evaluation {
    let Some(share) = objective.share() else { return solver.step(objective, at, state) };
    let mut own = std::mem::take(at).own_rows(share);
    let mut own_state = state.take_own_rows(share);
    let evaluation = solver.step(objective, &mut own, &mut own_state);
    *at = own.all_rows(share);
    *state = own_state.all_rows(share);
    evaluation
}

/// The frozen weights of all layers, and where they are.
pub(super) fn frozen<S: Scalar>(model: &Model<S>, weights: &[S]) -> Vec<(Range<usize>, Vec<S>)> {
    let ranges = model.parameters().frozen().into_iter();
    ranges.map(|range| (range.clone(), weights[range].to_vec())).collect()
}

/// The number of components of all states.
fn components<S: Scalar>(variables: &Variables<S>) -> usize {
    variables.states.iter().map(|states| states.as_slice().len()).sum()
}

/// The weights, moved out, and the rows of some nodes.
fn take<S: Scalar>(all: &mut Variables<S>, nodes: &[usize], part: &mut Variables<S>) {
    part.weights = std::mem::take(&mut all.weights);
    gather_into(&all.states, nodes, &mut part.states);
    gather_into(&all.multipliers, nodes, &mut part.multipliers);
}

/// Matrices of the same shapes, with whatever entries.
fn reshape_like<S: Scalar>(like: &[Matrix<S>], matrices: &mut Vec<Matrix<S>>) {
    matrices.resize_with(like.len(), Matrix::default);
    matrices.iter_mut().zip(like).for_each(|(m, like)| m.reshape(like.rows(), like.cols()));
}

/// The way back.
fn put<S: Scalar>(part: &mut Variables<S>, nodes: &[usize], all: &mut Variables<S>) {
    all.weights = std::mem::take(&mut part.weights);
    scatter(&part.states, nodes, &mut all.states);
    scatter(&part.multipliers, nodes, &mut all.multipliers);
}

/// Scales weights down to the bound, layer by layer.
pub(super) fn contract<S: Scalar>(
    model: &Model<S>,
    weights: &mut [S],
    degrees: Degrees,
    bound: f64,
    norms: &mut [NormMemory],
) -> Result<(), Error> {
    for ((layer, transition), norms) in model.transitions().enumerate().zip(norms) {
        let range = model.transition_weights(layer);
        if !transition.contract(&mut weights[range], degrees, bound, norms) {
            return Err(Error::Mismatch(format!(
                "training.lipschitz is set, but {transition:?} does not support a Lipschitz bound"
            )));
        }
    }
    Ok(())
}
