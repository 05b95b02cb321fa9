use std::borrow::Cow;
use std::ops::Range;

use super::{Loss, Mlp, MlpGradients, MlpInput, Readout, ReadoutGradients, ReadoutInput};
use crate::graph::{FeaturesView, GraphBatch, Level};
use crate::network::Network;
use crate::numeric::{Arithmetic, Kernel, Scratch, dispatch};
use crate::parameters::Parameters;
use crate::transition::{for_each_group, split_rows};
use crate::{Matrix, Scalar};

/// A network of what is pooled over the nodes of every graph: `f_r = mlp(⊕_v x_v | θ_r)`, or
/// `mlp(⊕_v x_v, ⊕_v l_v | θ_r)` if it [reads features](Self::reading_features) too.
///
/// What is pooled over no nodes is zero.
#[derive(Clone, Debug)]
pub struct PooledReadout {
    pooling: Pooling,
    mlp: Mlp,
}

/// How what is read of the nodes of a graph becomes one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pooling {
    /// `Σ_v x_v`
    Sum,
    /// `1/|V| Σ_v x_v`
    Mean,
    /// `max_v x_v`, component by component; its gradient goes to the first node that has it.
    Max,
}

/// Graphs that are pooled together.
const GRAPHS: usize = 32;

impl PooledReadout {
    /// A network from `inputs` components of a state to `outputs` classes or values; for `dropout`,
    /// see [`Mlp::new`].
    pub fn new(
        pooling: Pooling,
        inputs: usize,
        outputs: usize,
        network: Network,
        dropout: f64,
    ) -> Self {
        Self { pooling, mlp: Mlp::new(inputs, outputs, network, dropout) }
    }

    /// The same, which also reads so many features of a node, pooled like states.
    #[must_use]
    pub fn reading_features(self, features: usize) -> Self {
        Self { mlp: self.mlp.reading_features(features), ..self }
    }

    /// `⊕_v l_v` of every graph, if it reads features.
    fn pool_features<S: Scalar>(&self, batch: &GraphBatch<S>) -> Option<Matrix<S>> {
        let width = self.mlp.features();
        if width == 0 {
            return None;
        }
        let features = batch.node_features();
        let mut pooled = Matrix::zeros(batch.graphs(), width);
        let mut own = vec![S::ZERO; width];
        for graph in 0..batch.graphs() {
            let to = pooled.row_mut(graph);
            if self.pooling == Pooling::Max {
                for (place, v) in batch.nodes_of(graph).enumerate() {
                    own.fill(S::ZERO);
                    features.entries(v).for_each(|(column, value)| own[column] += value);
                    let is_larger = |(to, own): &(&mut S, &S)| place == 0 || **own > **to;
                    to.iter_mut().zip(&own).filter(is_larger).for_each(|(to, &own)| *to = own);
                }
                continue;
            }
            for v in batch.nodes_of(graph) {
                features.entries(v).for_each(|(column, value)| to[column] += value);
            }
            let count = self.pooling.count(batch, graph);
            to.iter_mut().for_each(|to| *to *= count);
        }
        Some(pooled)
    }

    /// `d_features ← d_features + ∂𝓛/∂l_v`, from `∂𝓛/∂ ⊕_v l_v`.
    fn unpool_features<S: Scalar>(
        &self,
        batch: &GraphBatch<S>,
        d_pooled: &[S],
        d_features: &mut Matrix<S>,
    ) {
        let width = self.mlp.features().max(1);
        let of = |v: usize, column: usize| {
            let here = batch.node_features().entries(v).filter(move |(other, _)| *other == column);
            here.fold(S::ZERO, |sum, (_, value)| sum + value)
        };
        for (graph, d) in d_pooled.chunks_exact(width).enumerate() {
            let count = self.pooling.count(batch, graph);
            for (column, &d) in d.iter().enumerate() {
                if self.pooling == Pooling::Max {
                    if let Some(v) = first_largest(batch.nodes_of(graph), |v| of(v, column)) {
                        d_features.row_mut(v)[column] += d;
                    }
                    continue;
                }
                for v in batch.nodes_of(graph) {
                    d_features.row_mut(v)[column] += count * d;
                }
            }
        }
    }

    /// `⊕_v x_v` of every graph, part by part of what is read.
    fn pool<S: Scalar>(&self, input: ReadoutInput<'_, S>, pooled: &mut [S]) {
        let ReadoutInput { batch, parts, .. } = input;
        let ends = |start: usize| start..(start + GRAPHS).min(batch.graphs());
        let graphs: Vec<Range<usize>> = (0..batch.graphs()).step_by(GRAPHS).map(ends).collect();
        let width = parts.iter().map(|part| part.cols()).sum();
        let rows = split_rows(pooled, width, &graphs);
        let mut groups: Vec<_> = graphs.iter().cloned().zip(rows).collect();
        for_each_group(&mut groups, |(graphs, pooled)| {
            let mut column = 0;
            for states in parts {
                let (pooling, graphs) = (self.pooling, graphs.clone());
                dispatch(Pool { pooling, batch, graphs, states, pooled, width, column });
                column += states.cols();
            }
        });
    }

    /// `d_states ← d_states + ∂𝓛/∂x_v`, from `∂𝓛/∂ ⊕_v x_v`.
    fn unpool<S: Scalar>(
        &self,
        input: ReadoutInput<'_, S>,
        d_pooled: &[S],
        d_states: &mut Matrix<S>,
    ) {
        let (batch, width) = (input.batch, d_states.cols().max(1));
        let states = input.states();
        for (graph, d) in d_pooled.chunks_exact(width).enumerate() {
            if self.pooling == Pooling::Max {
                for (i, &d) in d.iter().enumerate() {
                    if let Some(v) = first_largest(batch.nodes_of(graph), |v| states.row(v)[i]) {
                        d_states.row_mut(v)[i] += d;
                    }
                }
            } else {
                let count = self.pooling.count(batch, graph);
                for v in batch.nodes_of(graph) {
                    d_states.row_mut(v).iter_mut().zip(d).for_each(|(to, &d)| *to += count * d);
                }
            }
        }
    }
}

impl Pooling {
    /// How much a node counts in a sum or mean over its graph.
    fn count<S: Scalar>(self, batch: &GraphBatch<S>, graph: usize) -> S {
        match self {
            Self::Mean => S::ONE / S::of(batch.nodes_of(graph).len().max(1) as f64),
            Self::Sum | Self::Max => S::ONE,
        }
    }
}

/// The node with the largest value, the first of equals.
fn first_largest<S: Scalar>(nodes: Range<usize>, value: impl Fn(usize) -> S) -> Option<usize> {
    nodes.reduce(|best, v| if value(v) > value(best) { v } else { best })
}

/// `⊕_v x_v` of some graphs.
struct Pool<'a, S> {
    pooling: Pooling,
    batch: &'a GraphBatch<S>,
    graphs: Range<usize>,
    states: &'a Matrix<S>,
    /// Rows of so many components, of which those from this column on are set.
    pooled: &'a mut [S],
    width: usize,
    column: usize,
}

impl<S: Scalar> Kernel for Pool<'_, S> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arithmetic>(self) {
        let columns = self.column..self.column + self.states.cols();
        for (graph, row) in self.graphs.zip(self.pooled.chunks_exact_mut(self.width.max(1))) {
            let (nodes, pooled) = (self.batch.nodes_of(graph), &mut row[columns.clone()]);
            pooled.fill(S::ZERO);
            if self.pooling == Pooling::Max {
                for (i, pooled) in pooled.iter_mut().enumerate() {
                    let largest = first_largest(nodes.clone(), |v| self.states.row(v)[i]);
                    *pooled = largest.map_or(S::ZERO, |v| self.states.row(v)[i]);
                }
                continue;
            }
            for v in nodes {
                for (pooled, &x) in pooled.iter_mut().zip(self.states.row(v)) {
                    *pooled += x;
                }
            }
            let count = self.pooling.count(self.batch, graph);
            pooled.iter_mut().for_each(|pooled| *pooled *= count);
        }
    }
}

impl<S: Scalar> Readout<S> for PooledReadout {
    fn parameters(&self) -> &Parameters {
        self.mlp.parameters()
    }

    fn level(&self) -> Level {
        Level::Graph
    }

    fn inputs(&self) -> usize {
        self.mlp.inputs()
    }

    fn features(&self) -> usize {
        self.mlp.features()
    }

    fn network(&self) -> Option<(Option<Pooling>, &Mlp)> {
        Some((Some(self.pooling), &self.mlp))
    }

    fn forward(
        &self,
        weights: &[S],
        input: ReadoutInput<'_, S>,
        predictions: &mut Matrix<S>,
        scratch: &Scratch<S>,
    ) {
        let mut pooled = scratch.take(input.batch.graphs() * self.mlp.inputs());
        self.pool(input, &mut pooled);
        let features = self.pool_features(input.batch);
        let features = features.as_ref().map(FeaturesView::Dense);
        let input = MlpInput { rows: &pooled, features, dropout: input.dropout };
        self.mlp.forward(weights, input, predictions, scratch);
    }

    fn backward(
        &self,
        weights: &[S],
        input: ReadoutInput<'_, S>,
        d_predictions: &Matrix<S>,
        gradients: ReadoutGradients<'_, S>,
        scratch: &Scratch<S>,
    ) {
        let mut pooled = scratch.take(input.batch.graphs() * self.mlp.inputs());
        self.pool(input, &mut pooled);
        let mut d_pooled = scratch.take(pooled.len());
        let features = self.pool_features(input.batch);
        let wanted = gradients.features.filter(|_| features.is_some());
        let mut d_features = wanted.as_ref().and(features.clone());
        let to = MlpGradients {
            weights: gradients.weights,
            rows: Some(&mut d_pooled),
            features: d_features.as_mut().map(Matrix::as_mut_slice),
        };
        let features = features.as_ref().map(FeaturesView::Dense);
        let read = MlpInput { rows: &pooled, features, dropout: input.dropout };
        self.mlp.backward(weights, read, d_predictions, to, scratch);
        if let Some(d_states) = gradients.states {
            self.unpool(input, &d_pooled, d_states);
        }
        if let (Some(to), Some(d)) = (wanted, d_features) {
            self.unpool_features(input.batch, d.as_slice(), to);
        }
    }

    fn pass(
        &self,
        weights: &[S],
        input: ReadoutInput<'_, S>,
        loss: Loss<'_, S>,
        predictions: &mut Matrix<S>,
        gradients: ReadoutGradients<'_, S>,
        scratch: &Scratch<S>,
    ) -> f64 {
        let mut pooled = scratch.take(input.batch.graphs() * self.mlp.inputs());
        self.pool(input, &mut pooled);
        let per_graph = Readout::<S>::gradient_level(self) == Level::Graph;
        let mut spare = scratch.take(if per_graph { 0 } else { pooled.len() });
        let mut d_states = gradients.states;
        let d_pooled = d_states
            .as_deref_mut()
            .map(|d_states| if per_graph { d_states.as_mut_slice() } else { &mut spare[..] });
        let to = MlpGradients { weights: gradients.weights, rows: d_pooled, features: None };
        let features = self.pool_features(input.batch);
        let features = features.as_ref().map(FeaturesView::Dense);
        let read = MlpInput { rows: &pooled, features, dropout: input.dropout };
        let value = self.mlp.pass(weights, read, loss, predictions, to, scratch);
        if let Some(d_states) = d_states {
            if per_graph {
                let rows = d_states.as_mut_slice().chunks_exact_mut(self.mlp.inputs().max(1));
                for (graph, d) in rows.enumerate() {
                    let count = self.pooling.count(input.batch, graph);
                    d.iter_mut().for_each(|d| *d *= count);
                }
            } else {
                d_states.as_mut_slice().fill(S::ZERO);
                self.unpool(input, &spare, d_states);
            }
        }
        value
    }

    /// Sums and means: all nodes of a graph have the same gradient.
    fn gradient_level(&self) -> Level {
        if self.pooling == Pooling::Max { Level::Node } else { Level::Graph }
    }

    fn layer_inputs<'a>(&self, input: ReadoutInput<'a, S>) -> Option<Cow<'a, Matrix<S>>> {
        let width = input.parts.iter().map(|part| part.cols()).sum();
        let mut pooled = Matrix::zeros(input.batch.graphs(), width);
        self.pool(input, pooled.as_mut_slice());
        Some(Cow::Owned(pooled))
    }

    fn feature_inputs(&self, batch: &GraphBatch<S>) -> Option<Matrix<S>> {
        self.pool_features(batch)
    }
}
