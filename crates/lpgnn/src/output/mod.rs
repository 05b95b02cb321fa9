//! The output function `f_r`: what is read off the states, per node or per graph.

mod loss;
mod scale;

pub use loss::Supervision;
pub(crate) use loss::largest;
pub use scale::TargetScale;

use std::borrow::Cow;
use std::ops::Range;

use crate::activation::differentiate;
use crate::graph::GraphBatch;
use crate::network::{Dropout, Layer, Layout, Network, Stack};
use crate::numeric::{Arithmetic, Finish, Kernel, Scratch, Spare, dispatch, narrow_rows, padded};
use crate::transition::{FirstLayer, for_each_group, split_rows};
use crate::{Matrix, Scalar};

/// Whose output it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Readout {
    /// Every node's: `f_r(x_v)`.
    #[default]
    Node,
    /// The graph's, from the sum over its nodes: `f_r(Σ_v x_v)`.
    GraphSum,
    /// The graph's, from the mean over its nodes: `f_r(1/|V| Σ_v x_v)`.
    GraphMean,
}

/// The output function `f_r`: a network on what is read of a node or of a graph.
///
/// Weights: `W: [inputs, outputs]`, `b: [outputs]` of every layer; row by row.
#[derive(Clone, Debug)]
pub struct Output {
    readout: Readout,
    inputs: usize,
    outputs: usize,
    network: Network,
    dropout: f64,
    layout: Layout,
}

/// Rows that go through the network together.
const BLOCK: usize = 256;
/// Rows below which they are not worth a second thread.
const GROUP: usize = 160;
/// Graphs that are read off together.
const GRAPHS: usize = 256;

impl Output {
    /// A network from `input` components of a state to `output` classes or values.
    ///
    /// In training, each hidden unit is left out with probability `dropout`, and the others count
    /// `1 / (1 − dropout)` times.
    pub fn new(
        readout: Readout,
        input: usize,
        output: usize,
        network: Network,
        dropout: f64,
    ) -> Self {
        let mut layout = Layout::default();
        let mut inputs = input;
        for (outputs, _) in network.layers(output) {
            layout.push(inputs, outputs, inputs);
            layout.push(1, outputs, 0);
            inputs = outputs;
        }
        Self { readout, inputs: input, outputs: output, network, dropout, layout }
    }

    /// Number of weights `θ_r`.
    pub fn weights(&self) -> usize {
        self.layout.len()
    }

    /// Components that are read.
    pub fn input(&self) -> usize {
        self.inputs
    }

    /// Classes or values that come out.
    pub fn output(&self) -> usize {
        self.outputs
    }

    /// Whose output it is.
    pub fn readout(&self) -> Readout {
        self.readout
    }

    /// How many outputs a batch has: one per node or per graph.
    pub fn rows<S: Scalar>(&self, batch: &GraphBatch<S>) -> usize {
        match self.readout {
            Readout::Node => batch.nodes(),
            Readout::GraphSum | Readout::GraphMean => batch.graphs(),
        }
    }

    /// Weights to start from; `draw` gives uniform numbers in `[0, 1)`.
    pub fn initialize<S: Scalar>(&self, draw: &mut dyn FnMut() -> f64, weights: &mut [S]) {
        self.layout.initialize(draw, weights);
    }

    /// `f_r` of every node or graph. `reads` has a row per node.
    pub fn predict<S: Scalar>(
        &self,
        weights: &[S],
        batch: &GraphBatch<S>,
        reads: &Matrix<S>,
        scratch: &Scratch<S>,
    ) -> Matrix<S> {
        let mut predictions = Matrix::zeros(self.rows(batch), self.outputs);
        let silent = Supervision::all(crate::graph::Targets::None(predictions.rows()));
        let task = Task { supervision: &silent, factor: S::ZERO, dropout: None };
        self.evaluate(weights, batch, reads, &task, &mut predictions, None, None, scratch);
        predictions
    }

    /// `Σ_S loss(f_r, y)` times the factor of the task, the predictions it is made from, and its
    /// gradients where they are wanted: added to `d_weights`, set in `d_reads`.
    ///
    /// `reads` has a row per node; `d_reads` has one per output, since all nodes of a graph have the
    /// same.
    pub(crate) fn evaluate<S: Scalar>(
        &self,
        weights: &[S],
        batch: &GraphBatch<S>,
        reads: &Matrix<S>,
        task: &Task<'_, S>,
        predictions: &mut Matrix<S>,
        d_weights: Option<&mut [S]>,
        d_reads: Option<&mut Matrix<S>>,
        scratch: &Scratch<S>,
    ) -> f64 {
        let stack = self.stack(weights);
        let mut d_rows = d_reads.map(Matrix::as_mut_slice);
        if self.readout == Readout::Node {
            let rows = reads.as_slice();
            return self.rows_through(&stack, rows, task, predictions, d_weights, d_rows, scratch);
        }
        let mut pooled = scratch.take(batch.graphs() * self.inputs);
        self.pool(batch, reads, &mut pooled);
        let d_pooled = d_rows.as_deref_mut();
        let loss =
            self.rows_through(&stack, &pooled, task, predictions, d_weights, d_pooled, scratch);
        if let Some(d_rows) = d_rows {
            for (graph, d) in d_rows.chunks_exact_mut(self.inputs.max(1)).enumerate() {
                let count = self.count(batch, graph);
                d.iter_mut().for_each(|d| *d *= count);
            }
        }
        loss
    }

    fn stack<S: Scalar>(&self, weights: &[S]) -> Stack<S> {
        let layers = self.network.layers(self.outputs).into_iter().enumerate();
        let layer = |(k, (_, activation))| Layer::new(&self.layout, 2 * k, activation, weights);
        Stack { layers: layers.map(layer).collect() }
    }

    /// All rows through the network, in groups that depend on their number alone.
    fn rows_through<S: Scalar>(
        &self,
        stack: &Stack<S>,
        reads: &[S],
        task: &Task<'_, S>,
        predictions: &mut Matrix<S>,
        d_weights: Option<&mut [S]>,
        d_reads: Option<&mut [S]>,
        scratch: &Scratch<S>,
    ) -> f64 {
        let rows = predictions.rows();
        let size = rows.div_ceil((rows / GROUP).clamp(1, 32)).max(1);
        let ranges: Vec<Range<usize>> =
            (0..rows.max(1)).step_by(size).map(|start| start..(start + size).min(rows)).collect();
        let partial = if d_weights.is_some() { self.layout.padded_len() } else { 0 };
        let mut y = split_rows(predictions.as_mut_slice(), self.outputs, &ranges).into_iter();
        let mut d = d_reads.map(|d_reads| split_rows(d_reads, self.inputs, &ranges).into_iter());
        let mut groups: Vec<RowGroup<'_, S>> = ranges
            .iter()
            .map(|range| RowGroup {
                rows: range.clone(),
                predictions: y.next().unwrap_or_default(),
                d_reads: d.as_mut().and_then(Iterator::next),
                partial: scratch.zeros(partial),
                loss: 0.0,
            })
            .collect();
        for_each_group(&mut groups, |group| {
            for start in group.rows.clone().step_by(BLOCK) {
                let block = start..(start + BLOCK).min(group.rows.end);
                self.block(stack, block, reads, task, group, scratch);
            }
        });
        if let Some(d_weights) = d_weights {
            self.layout.fold(&groups.iter().map(|group| &group.partial[..]), d_weights);
        }
        groups.iter().map(|group| group.loss).sum()
    }

    fn block<S: Scalar>(
        &self,
        stack: &Stack<S>,
        block: Range<usize>,
        reads: &[S],
        task: &Task<'_, S>,
        group: &mut RowGroup<'_, S>,
        scratch: &Scratch<S>,
    ) {
        let (rows, stride) = (block.len(), padded(self.outputs));
        let z = &reads[block.start * self.inputs..block.end * self.inputs];
        let drop = task.dropout.filter(|_| self.dropout > 0.0).map(|seed| Dropout {
            rate: self.dropout,
            seed,
            first: block.start,
        });
        let outputs = stack.forward(rows, z, self.inputs, drop, scratch);
        let y = &outputs[outputs.len() - 1].value;
        let offset = block.start - group.rows.start;
        let predictions = &mut group.predictions[offset * self.outputs..];
        narrow_rows(y, stride, predictions, self.outputs);
        if group.partial.is_empty() && group.d_reads.is_none() {
            return;
        }
        let mut d = scratch.take(rows * stride);
        group.loss +=
            task.supervision.loss(block.start, self.outputs, stride, y, task.factor, &mut d);
        let partial = (!group.partial.is_empty()).then_some(&mut group.partial[..]);
        let d_z = group
            .d_reads
            .as_deref_mut()
            .map(|d| (&mut d[offset * self.inputs..][..rows * self.inputs], Finish::Set));
        differentiate(self.network.output_activation, y, &mut d);
        let (layout, input) = (&self.layout, self.inputs);
        stack.backward(layout, rows, z, input, &outputs, d, drop, partial, d_z, scratch);
    }

    /// The matrix and the bias of the last layer, among the weights of the function.
    fn last_layer(&self) -> (Range<usize>, Range<usize>) {
        let last = 2 * (self.network.layers(self.outputs).len() - 1);
        let (matrix, bias) = (self.layout.start(last), self.layout.start(last + 1));
        (matrix..bias, bias..bias + self.outputs)
    }

    /// The layer that reads, among the weights of the function.
    pub(crate) fn first_layer(&self) -> FirstLayer {
        let start = |block| self.layout.start(block);
        FirstLayer { matrices: vec![start(0)], bias: start(1), units: self.layout.columns(1) }
    }

    /// What the network is given: a row per output.
    pub(crate) fn pooled<'a, S: Scalar>(
        &self,
        batch: &GraphBatch<S>,
        reads: &'a Matrix<S>,
    ) -> Cow<'a, [S]> {
        if self.readout == Readout::Node {
            return reads.as_slice().into();
        }
        let mut pooled = vec![S::ZERO; batch.graphs() * self.inputs];
        self.pool(batch, reads, &mut pooled);
        pooled.into()
    }

    /// The sum or mean over the nodes of every graph.
    fn pool<S: Scalar>(&self, batch: &GraphBatch<S>, reads: &Matrix<S>, pooled: &mut [S]) {
        struct Pool<'a, S> {
            output: &'a Output,
            batch: &'a GraphBatch<S>,
            graphs: Range<usize>,
            reads: &'a Matrix<S>,
            pooled: &'a mut [S],
        }
        impl<S: Scalar> Kernel for Pool<'_, S> {
            type Output = ();
            #[inline(always)]
            fn run<A: Arithmetic>(self) {
                let width = self.output.inputs.max(1);
                for (graph, pooled) in self.graphs.zip(self.pooled.chunks_exact_mut(width)) {
                    pooled.fill(S::ZERO);
                    for v in self.batch.nodes_of(graph) {
                        for (pooled, &x) in pooled.iter_mut().zip(self.reads.row(v)) {
                            *pooled += x;
                        }
                    }
                    let count = self.output.count(self.batch, graph);
                    pooled.iter_mut().for_each(|pooled| *pooled *= count);
                }
            }
        }
        let graphs = graph_groups(batch);
        let mut groups: Vec<_> =
            graphs.iter().cloned().zip(split_rows(pooled, self.inputs, &graphs)).collect();
        for_each_group(&mut groups, |(graphs, pooled)| {
            dispatch(Pool { output: self, batch, graphs: graphs.clone(), reads, pooled });
        });
    }

    /// How much a node counts in what is read of its graph.
    fn count<S: Scalar>(&self, batch: &GraphBatch<S>, graph: usize) -> S {
        match self.readout {
            Readout::GraphMean => S::ONE / S::of(batch.nodes_of(graph).len().max(1) as f64),
            Readout::GraphSum | Readout::Node => S::ONE,
        }
    }
}

/// The graphs of a batch, some at a time.
fn graph_groups<S: Scalar>(batch: &GraphBatch<S>) -> Vec<Range<usize>> {
    let graphs = batch.graphs();
    (0..graphs).step_by(GRAPHS).map(|start| start..(start + GRAPHS).min(graphs)).collect()
}

/// What the predictions are compared with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Task<'a, S> {
    pub(crate) supervision: &'a Supervision<S>,
    /// What the loss is multiplied with.
    pub(crate) factor: S,
    /// In training, where this update's dropout starts.
    pub(crate) dropout: Option<u64>,
}

struct RowGroup<'a, S: Scalar> {
    rows: Range<usize>,
    predictions: &'a mut [S],
    d_reads: Option<&'a mut [S]>,
    partial: Spare<'a, S>,
    loss: f64,
}
