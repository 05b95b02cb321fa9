//! Read-outs `f_r`: predictions from states, per node or per graph.
//!
//! A read-out maps the states of all nodes to predictions. Like a
//! [transition](crate::transition::Transition) it is nothing but its shape: the weights `θ_r` come
//! from outside as one flat slice.
//!
//! | name | predicts | from |
//! |---|---|---|
//! | `node` | every node | its state: [`NodeReadout`](crate::readout::NodeReadout) |
//! | `sum`, `mean`, `max` | every graph | its nodes' states, pooled: [`PooledReadout`](crate::readout::PooledReadout) |

mod loss;
mod mlp;
mod node;
mod pooled;
mod scale;

pub(crate) use loss::largest;
pub use loss::{Loss, Supervision};
pub(crate) use mlp::PackedMlp;
pub use mlp::{Mlp, MlpGradients, MlpInput};
pub use node::NodeReadout;
pub use pooled::{PooledReadout, Pooling};
pub use scale::TargetScale;

use std::borrow::Cow;
use std::fmt::Debug;

use crate::graph::{GraphBatch, Level};
use crate::numeric::Scratch;
use crate::parameters::Parameters;
use crate::transition::for_each_group;
use crate::{Matrix, Scalar};

/// A read-out `f_r`, with its derivatives.
///
/// [`forward`](Self::forward) and [`backward`](Self::backward) are enough. Put a new one through
/// [`check::readout`](crate::check::readout) before use.
pub trait Readout<S: Scalar = f32>: Debug + Send + Sync {
    /// Its parameters: their names, shapes and roles, and how they start.
    fn parameters(&self) -> &Parameters;

    /// Whether it predicts nodes or graphs.
    fn level(&self) -> Level;

    /// Components it reads of every node.
    fn inputs(&self) -> usize;

    /// Components of the features of a node that it reads besides; 0 if it reads none.
    ///
    /// They are those of [`ReadoutInput::batch`]. What they contribute is learnt without a state in between: such a read-out
    /// can be the model that sees no edges.
    fn features(&self) -> usize {
        0
    }

    /// Classes or values it predicts; the units of the layer that is declared last.
    fn outputs(&self) -> usize {
        self.parameters().units_of_last_layer()
    }

    /// `predictions ← f_r(X | θ_r)`, a row per node or per graph.
    fn forward(
        &self,
        weights: &[S],
        input: ReadoutInput<'_, S>,
        predictions: &mut Matrix<S>,
        scratch: &Scratch<S>,
    );

    /// The vector–Jacobian product: adds to the gradients what `∂𝓛/∂f_r` contributes to them, in the
    /// states one row per node.
    fn backward(
        &self,
        weights: &[S],
        input: ReadoutInput<'_, S>,
        d_predictions: &Matrix<S>,
        gradients: ReadoutGradients<'_, S>,
        scratch: &Scratch<S>,
    );

    /// Both at once, with the loss between them: returns its value, adds to the gradient of the
    /// weights, and *sets* that of the states.
    ///
    /// Functions that can do so while rows are in cache write it themselves; this one calls forward,
    /// the loss and backward.
    fn pass(
        &self,
        weights: &[S],
        input: ReadoutInput<'_, S>,
        loss: Loss<'_, S>,
        predictions: &mut Matrix<S>,
        mut gradients: ReadoutGradients<'_, S>,
        scratch: &Scratch<S>,
    ) -> f64 {
        self.forward(weights, input, predictions, scratch);
        let mut d_predictions = Matrix::zeros(predictions.rows(), predictions.cols());
        let value = loss.evaluate(predictions, &mut d_predictions);
        if let Some(d_states) = &mut gradients.states {
            d_states.as_mut_slice().fill(S::ZERO);
        }
        self.backward(weights, input, &d_predictions, gradients, scratch);
        value
    }

    /// Whether [`pass`](Self::pass) sets a row of the states' gradient per node, or one per graph
    /// since all nodes of a graph have the same.
    fn gradient_level(&self) -> Level {
        Level::Node
    }

    /// What the matrices of [`Role::Input`](crate::parameters::Role::Input) multiply, row by row;
    /// none if that is not known beforehand. Layers that read it may descend in coordinates in which
    /// it has mean 0 and standard deviation 1.
    fn layer_inputs<'a>(&self, input: ReadoutInput<'a, S>) -> Option<Cow<'a, Matrix<S>>> {
        (self.level() == Level::Node).then(|| input.states())
    }

    /// What the matrices of [`Role::Features`](crate::parameters::Role::Features) multiply, row by row, if these may
    /// descend in standardised coordinates too.
    fn feature_inputs(&self, _batch: &GraphBatch<S>) -> Option<Matrix<S>> {
        None
    }

    /// What it pools over the nodes of a graph, if it predicts graphs, and its network of a row; none if it is anything
    /// else than a network of what it has pooled. A graph that changes needs it: see [`live`](crate::live).
    fn network(&self) -> Option<(Option<Pooling>, &Mlp)> {
        None
    }

    /// Whether its predictions are the sums `Σ_i W_iᵀ z_i + b` of the layer that is declared last. If
    /// so, it can be trained on standardised targets, and that layer then takes their unit back.
    fn is_linear_in_last_layer(&self) -> bool {
        self.parameters().last_layer().1.is_some()
    }
}

/// What a read-out reads.
#[derive(Debug)]
pub struct ReadoutInput<'a, S = f32> {
    /// The graphs.
    pub batch: &'a GraphBatch<S>,
    /// The states or `f_a` of them, of every layer that is read; one row per node.
    pub parts: &'a [&'a Matrix<S>],
    /// In training, the seed of the units that this update leaves out.
    pub dropout: Option<u64>,
}

impl<S> Clone for ReadoutInput<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<S> Copy for ReadoutInput<'_, S> {}

impl<'a, S: Scalar> ReadoutInput<'a, S> {
    /// All that is read of the nodes: the parts side by side.
    pub fn states(&self) -> Cow<'a, Matrix<S>> {
        match self.parts {
            [all] => Cow::Borrowed(all),
            parts => Cow::Owned(side_by_side(parts)),
        }
    }
}

/// Rows that are joined on one thread.
const ROWS: usize = 1 << 10;

/// Matrices of as many rows, as one.
pub(crate) fn side_by_side<S: Scalar>(parts: &[&Matrix<S>]) -> Matrix<S> {
    let cols = parts.iter().map(|part| part.cols()).sum();
    let mut joined = Matrix::zeros(parts.first().map_or(0, |part| part.rows()), cols);
    let mut blocks: Vec<(usize, &mut [S])> =
        (0..).step_by(ROWS).zip(joined.as_mut_slice().chunks_mut(ROWS * cols.max(1))).collect();
    for_each_group(&mut blocks, |(first, block)| {
        for (row, mut to) in (*first..).zip(block.chunks_exact_mut(cols)) {
            for part in parts {
                let (own, rest) = to.split_at_mut(part.cols());
                own.copy_from_slice(part.row(row));
                to = rest;
            }
        }
    });
    joined
}

/// Where a read-out leaves its gradients.
#[derive(Debug)]
pub struct ReadoutGradients<'a, S = f32> {
    /// `∂𝓛/∂θ_r`, if wanted.
    pub weights: Option<&'a mut [S]>,
    /// `∂𝓛/∂` what is read of the states, if wanted.
    pub states: Option<&'a mut Matrix<S>>,
    /// `∂𝓛/∂` the features of nodes, a row per node with all columns, if wanted: [`backward`](Readout::backward) adds to it
    /// if the read-out reads them.
    pub features: Option<&'a mut Matrix<S>>,
}
