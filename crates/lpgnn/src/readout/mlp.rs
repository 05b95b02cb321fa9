use std::ops::Range;

use super::Loss;
use crate::activation::differentiate;
use crate::graph::MOST_GROUPS;
use crate::network::{Dropout, Layer, Network, Passed, Stack};
use crate::numeric::{Finish, Scratch, Spare, narrow_rows, padded, widen_rows};
use crate::parameters::{Parameters, Role};
use crate::transition::{NetworkSizes, Sizes, for_each_group, reach, split_rows};
use crate::{Matrix, Scalar};

/// A multilayer perceptron over rows: what a read-out predicts from a state, or from what it has
/// pooled.
///
/// Weights: `W: [inputs, outputs]`, `b: [outputs]` of every layer; row by row.
#[derive(Clone, Debug)]
pub struct Mlp {
    inputs: usize,
    outputs: usize,
    network: Network,
    dropout: f64,
    layout: Parameters,
}

/// Where an [`Mlp`] leaves its gradients.
#[derive(Debug)]
pub struct MlpGradients<'a, S = f32> {
    /// `∂𝓛/∂θ`, added to, if wanted.
    pub weights: Option<&'a mut [S]>,
    /// `∂𝓛/∂` rows, set, if wanted.
    pub rows: Option<&'a mut [S]>,
}

/// Rows that go through the network together.
const BLOCK: usize = 256;
/// Rows below which they are not worth a second thread.
const GROUP: usize = 160;

impl Mlp {
    /// A network from `inputs` components to `outputs` classes or values.
    ///
    /// In training, each hidden unit is left out with probability `dropout`, and the others count
    /// `1 / (1 − dropout)` times.
    pub fn new(inputs: usize, outputs: usize, network: Network, dropout: f64) -> Self {
        let widths: Vec<usize> = network.layers(outputs).iter().map(|(width, _)| *width).collect();
        let first = Parameters::new().layer("0", widths[0]).weight("", Role::Input, inputs).bias();
        let layout = Network::declare_above(first, &widths);
        Self { inputs, outputs, network, dropout, layout }
    }

    /// Its parameters.
    pub fn parameters(&self) -> &Parameters {
        &self.layout
    }

    /// Components of a row.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// Classes or values that come out.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// The predictions of all rows; `dropout` is the seed of the units that are left out, if any.
    pub fn forward<S: Scalar>(
        &self,
        weights: &[S],
        rows: &[S],
        dropout: Option<u64>,
        predictions: &mut Matrix<S>,
        scratch: &Scratch<S>,
    ) {
        let none = MlpGradients { weights: None, rows: None };
        self.run(weights, &Work { rows, dropout, upstream: None }, predictions, none, scratch);
    }

    /// The vector–Jacobian product, given `∂𝓛/∂` predictions.
    pub fn backward<S: Scalar>(
        &self,
        weights: &[S],
        rows: &[S],
        dropout: Option<u64>,
        d_predictions: &Matrix<S>,
        gradients: MlpGradients<'_, S>,
        scratch: &Scratch<S>,
    ) {
        let mut again = scratch.matrix(d_predictions.rows(), self.outputs);
        let work = Work { rows, dropout, upstream: Some(Upstream::Given(d_predictions)) };
        self.run(weights, &work, &mut again, gradients, scratch);
    }

    /// Both at once, with the loss between them, block by block.
    pub(crate) fn pass<S: Scalar>(
        &self,
        weights: &[S],
        (rows, dropout): (&[S], Option<u64>),
        loss: Loss<'_, S>,
        predictions: &mut Matrix<S>,
        gradients: MlpGradients<'_, S>,
        scratch: &Scratch<S>,
    ) -> f64 {
        let work = Work { rows, dropout, upstream: Some(Upstream::Loss(loss)) };
        self.run(weights, &work, predictions, gradients, scratch)
    }

    /// All rows through the network, in groups that depend on their number alone.
    fn run<S: Scalar>(
        &self,
        weights: &[S],
        work: &Work<'_, S>,
        predictions: &mut Matrix<S>,
        gradients: MlpGradients<'_, S>,
        scratch: &Scratch<S>,
    ) -> f64 {
        let stack = self.stack(weights);
        let rows = predictions.rows();
        let size = rows.div_ceil((rows / GROUP).clamp(1, MOST_GROUPS)).max(1);
        let ranges: Vec<Range<usize>> =
            (0..rows.max(1)).step_by(size).map(|start| start..(start + size).min(rows)).collect();
        let partial = if gradients.weights.is_some() { self.layout.padded_len() } else { 0 };
        let mut y = split_rows(predictions.as_mut_slice(), self.outputs, &ranges).into_iter();
        let mut d = gradients.rows.map(|d| split_rows(d, self.inputs, &ranges).into_iter());
        let mut groups: Vec<RowGroup<'_, S>> = ranges
            .iter()
            .map(|range| RowGroup {
                rows: range.clone(),
                predictions: y.next().unwrap_or_default(),
                d_rows: d.as_mut().and_then(Iterator::next),
                partial: scratch.zeros(partial),
                loss: 0.0,
            })
            .collect();
        for_each_group(&mut groups, |group| {
            for start in group.rows.clone().step_by(BLOCK) {
                let block = start..(start + BLOCK).min(group.rows.end);
                self.block(&stack, block, work, group, scratch);
            }
        });
        if let Some(d_weights) = gradients.weights {
            self.layout.fold(&groups.iter().map(|group| &group.partial[..]), d_weights);
        }
        groups.iter().map(|group| group.loss).sum()
    }

    /// The same with these weights packed once, for a few rows at a time.
    pub(crate) fn packed<S: Scalar>(&self, weights: &[S]) -> PackedMlp<S> {
        PackedMlp {
            stack: self.stack(weights),
            inputs: self.inputs,
            outputs: self.outputs,
            lipschitz: reach(&self.layout, weights, false)(Role::Input)[0],
            sizes: NetworkSizes::new(&self.layout, &self.network.layers(self.outputs), weights),
        }
    }

    fn stack<S: Scalar>(&self, weights: &[S]) -> Stack<S> {
        let layers = self.network.layers(self.outputs).into_iter().enumerate();
        let layer = |(k, (_, activation))| Layer::new(&self.layout, 2 * k, activation, weights);
        Stack { layers: layers.map(layer).collect() }
    }

    fn block<S: Scalar>(
        &self,
        stack: &Stack<S>,
        block: Range<usize>,
        work: &Work<'_, S>,
        group: &mut RowGroup<'_, S>,
        scratch: &Scratch<S>,
    ) {
        let (rows, stride) = (block.len(), padded(self.outputs));
        let z = &work.rows[block.start * self.inputs..block.end * self.inputs];
        let drop = work.dropout.filter(|_| self.dropout > 0.0).map(|seed| Dropout {
            rate: self.dropout,
            seed,
            first: block.start,
        });
        let outputs = stack.forward(rows, z, self.inputs, drop, scratch);
        let y = &outputs[outputs.len() - 1].value;
        let offset = block.start - group.rows.start;
        let predictions = &mut group.predictions[offset * self.outputs..];
        narrow_rows(y, stride, predictions, self.outputs);
        let Some(upstream) = &work.upstream else { return };
        let mut d = scratch.take(rows * stride);
        match upstream {
            Upstream::Loss(Loss { supervision, factor }) => {
                group.loss +=
                    supervision.loss(block.start, self.outputs, stride, y, *factor, &mut d);
            }
            Upstream::Given(d_predictions) => {
                let given = &d_predictions.as_slice()[block.start * self.outputs..];
                widen_rows(&given[..rows * self.outputs], self.outputs, &mut d, stride);
            }
        }
        let partial = (!group.partial.is_empty()).then_some(&mut group.partial[..]);
        let d_z = group
            .d_rows
            .as_deref_mut()
            .map(|d| (&mut d[offset * self.inputs..][..rows * self.inputs], Finish::Set));
        differentiate(self.network.output_activation, y, &mut d);
        let passed = Passed { rows, z, z_stride: self.inputs, outputs: &outputs, dropout: drop };
        stack.backward(&self.layout, &passed, d, partial, d_z, scratch);
    }
}

/// An [`Mlp`] with its weights, and with bounds on what it makes of errors.
#[derive(Debug)]
pub(crate) struct PackedMlp<S: Scalar> {
    stack: Stack<S>,
    pub(crate) inputs: usize,
    pub(crate) outputs: usize,
    /// How much larger than the error of a row that of its prediction can be, both in `‖·‖₂`.
    lipschitz: f64,
    sizes: NetworkSizes,
}

impl<S: Scalar> PackedMlp<S> {
    /// The predictions of some rows.
    pub(crate) fn forward(&self, rows: &[S], scratch: &Scratch<S>) -> Vec<S> {
        let count = rows.len() / self.inputs.max(1);
        let outputs = self.stack.forward(count, rows, self.inputs, None, scratch);
        let mut predictions = vec![S::ZERO; count * self.outputs];
        let y = &outputs[outputs.len() - 1].value;
        narrow_rows(y, padded(self.outputs), &mut predictions, self.outputs);
        predictions
    }

    /// `‖·‖₂` of what the prediction of a row of this size can be wrong by when the row is wrong by `error`.
    pub(crate) fn error(&self, size: f64, error: f64) -> f64 {
        let sizes = Sizes { feature: size, terms: self.inputs, ..Sizes::default() };
        self.lipschitz * error + self.sizes.rounding(sizes, (0.0, 0.0), None).error
    }
}

/// What goes through the network, and what it comes back with.
struct Work<'a, S> {
    rows: &'a [S],
    dropout: Option<u64>,
    upstream: Option<Upstream<'a, S>>,
}

/// Where `∂𝓛/∂` predictions come from.
enum Upstream<'a, S> {
    Loss(Loss<'a, S>),
    Given(&'a Matrix<S>),
}

struct RowGroup<'a, S: Scalar> {
    rows: Range<usize>,
    predictions: &'a mut [S],
    d_rows: Option<&'a mut [S]>,
    partial: Spare<'a, S>,
    loss: f64,
}
