//! The Lagrangian, its variables and its gradients.
//!
//! ```text
//! 𝓛(θ, X, Λ) = w Σ_{S} loss(f_r, y)  +  Σ_k Σ_v λ_v^k · G(x_v^k − f_{a,v}^k(X))  +  ρ/2 Σ_k ‖X^k − f_a^k(X)‖²
//! ```
//!
//! over the layers `k`, with the first term over supervised nodes or graphs and the others over all
//! nodes; `w` weighs the loss and `ρ` damps (both 1 and 0 in the paper).

mod model;
mod read;
mod term;
mod variables;

pub use model::{Model, Multipliers, ReadFrom, ReadLayers, Reads};
pub use variables::Variables;

use crate::graph::GraphBatch;
use crate::numeric::{Scratch, SpareMatrix};
use crate::output::{Readout, Supervision, Task};
use crate::transition::{Gradients, Input, Tally};
use crate::{Error, Matrix, Scalar};
use read::ReadGradient;
use term::ConstraintTerm;

/// Something with a saddle point: the Lagrangian of a batch, or a toy with a known answer.
pub trait Objective<S: Scalar = f32> {
    /// The value and the gradient at a point. Of the gradient, what is wanted is set; the rest may
    /// be anything.
    fn evaluate(
        &self,
        at: &Variables<S>,
        request: Request,
        gradient: &mut Variables<S>,
    ) -> Evaluation;
}

/// Which parts of an evaluation are wanted; `∂𝓛/∂Λ` always is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The loss; without it, only the constraint term counts, in the gradients too.
    pub loss: bool,
    /// `∂𝓛/∂θ`
    pub weights: bool,
    /// `∂𝓛/∂X`
    pub states: bool,
}

impl Request {
    /// Everything.
    pub const ALL: Self = Self { loss: true, weights: true, states: true };
    /// `∂𝓛/∂Λ` alone: for `G = lin` that is `X − f_a(X)`, a forward pass.
    pub const RESIDUAL: Self = Self { loss: false, weights: false, states: false };
}

/// The values that come out of an evaluation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Evaluation {
    /// `w Σ_S loss(f_r, y)`
    pub loss: f64,
    /// `Σ λ · G(x − f_a)`, and the penalty term if there is one.
    pub constraint: f64,
    /// The mean of `abs(x − f_a)` over nodes and components.
    pub residual_mean: f64,
    /// The largest `abs(x − f_a)`: how far the states are from a fixed point of `f_a`.
    pub residual_max: f64,
    /// The mean of `abs(x)`, which residuals can be compared with.
    pub state_mean: f64,
    /// How many supervised rows the output puts into their class, and how many there are.
    pub correct: (usize, usize),
}

impl Evaluation {
    /// `𝓛`
    pub fn value(&self) -> f64 {
        self.loss + self.constraint
    }
}

/// A sum, or a mean.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// Sum, as in the paper: the step of a state does not depend on the rest of its batch.
    #[default]
    Sum,
    /// Mean, as in the code of its authors.
    Mean,
}

/// How the terms of the Lagrangian are weighed.
#[derive(
    Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Weighing {
    /// Factor of the loss, `w`.
    #[schemars(extend(
        "exclusiveMinimum" = 0,
        "x-data-default" = "1; with bdmm 0.01 for nodes, 0.001 for graphs"
    ))]
    pub loss_weight: f64,
    /// Reduction of the loss over labelled nodes or graphs.
    #[schemars(extend("x-data-default" = "mean for citation-like data, otherwise sum"))]
    pub loss: Scale,
    /// Reduction of the constraint term over nodes and components.
    pub constraint: Scale,
    /// Factor of the augmented-Lagrangian term, `ρ`.
    #[schemars(range(min = 0), extend("x-data-default" = "1 with bdmm, otherwise 0"))]
    pub penalty: f64,
}

impl Default for Weighing {
    fn default() -> Self {
        Self { loss_weight: 1.0, loss: Scale::Sum, constraint: Scale::Sum, penalty: 0.0 }
    }
}

/// The Lagrangian of a batch of graphs.
#[derive(Debug)]
pub struct Lagrangian<'a, S: Scalar = f32> {
    model: &'a Model<S>,
    batch: &'a GraphBatch<S>,
    supervision: &'a Supervision<S>,
    weighing: Weighing,
    dropout: Option<u64>,
    scratch: &'a Scratch<S>,
}

impl<'a, S: Scalar> Lagrangian<'a, S> {
    /// The Lagrangian of `model` on `batch`.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`] when the model cannot read the batch, or its output has another number
    /// of components than the targets; [`Error::RowCount`] when there is not one target per output.
    pub fn new(
        model: &'a Model<S>,
        batch: &'a GraphBatch<S>,
        supervision: &'a Supervision<S>,
        weighing: Weighing,
        scratch: &'a Scratch<S>,
    ) -> Result<Self, Error> {
        model.check(batch)?;
        supervision.targets().check_rows("the targets", model.output().rows(batch))?;
        let (width, output) = (supervision.targets().width(), model.output().output());
        if width != output && supervision.total() > 0.0 {
            return Err(Error::Mismatch(format!(
                "targets have {width} components or classes, the output function gives {output}"
            )));
        }
        Ok(Self { model, batch, supervision, weighing, dropout: None, scratch })
    }

    /// The same in training, where units are left out: which ones follows from `seed`.
    #[must_use]
    pub fn with_dropout(self, seed: Option<u64>) -> Self {
        Self { dropout: seed, ..self }
    }

    /// The model.
    pub fn model(&self) -> &Model<S> {
        self.model
    }

    /// What one loss counts, and one residual of a layer.
    fn factors(&self) -> (S, impl Fn(usize) -> S + '_) {
        let per =
            |scale, count: f64| if scale == Scale::Mean && count > 0.0 { 1.0 / count } else { 1.0 };
        let loss = self.weighing.loss_weight * per(self.weighing.loss, self.supervision.total());
        let constraint = move |state: usize| {
            S::of(per(self.weighing.constraint, (self.batch.nodes() * state) as f64))
        };
        (S::of(loss), constraint)
    }

    /// `w Σ_S loss`, and its derivative in what the output reads, of every layer that it reads.
    fn loss<'s>(
        &'s self,
        at: &Variables<S>,
        reads: &[&Matrix<S>],
        d_weights: &mut [S],
    ) -> (f64, (usize, usize), Vec<ReadGradient<'s, S>>) {
        let (model, scratch) = (self.model, self.scratch);
        let joined = (reads.len() > 1).then(|| side_by_side(reads));
        let rows = joined.as_ref().unwrap_or(reads[0]);
        let output = model.output();
        let mut predictions = scratch.matrix(output.rows(self.batch), output.output());
        let mut d_rows = scratch.matrix(predictions.rows(), rows.cols());
        let task =
            Task { supervision: self.supervision, factor: self.factors().0, dropout: self.dropout };
        let loss = output.evaluate(
            &at.weights[model.output_weights()],
            self.batch,
            rows,
            &task,
            &mut predictions,
            Some(&mut d_weights[model.output_weights()]),
            Some(&mut d_rows),
            scratch,
        );
        let correct = self.supervision.correct(&predictions);
        let widths: Vec<usize> = reads.iter().map(|part| part.cols()).collect();
        let per_node = output.readout() == Readout::Node;
        let gradient = if per_node { ReadGradient::Nodes } else { ReadGradient::Graphs };
        let parts = apart(d_rows, &widths, scratch);
        (loss, correct, parts.into_iter().map(gradient).collect())
    }
}

impl<S: Scalar> Objective<S> for Lagrangian<'_, S> {
    fn evaluate(
        &self,
        at: &Variables<S>,
        request: Request,
        gradient: &mut Variables<S>,
    ) -> Evaluation {
        let (model, batch, scratch) = (self.model, self.batch, self.scratch);
        let reads_transition = model.reads().from == ReadFrom::Transition;
        let layers = model.layers();
        let derive = request.weights || request.states;
        // Images that something reads: the output, the layer above, or the residual itself.
        let f_x = match (reads_transition, request.loss || !derive) {
            (false, _) => vec![],
            (true, true) => model.f_x(layers, &at.weights, batch, &at.states, scratch),
            (true, false) => model.f_x(layers - 1, &at.weights, batch, &at.states, scratch),
        };
        gradient.weights.fill(S::ZERO);
        let (mut loss, mut correct) = (0.0, (0, 0));
        // ∂𝓛/∂ what is read of a layer, by the output and by the layer above.
        let mut d_read: Vec<Option<ReadGradient<'_, S>>> = (0..layers).map(|_| None).collect();
        if request.loss {
            let read = model.read_layers();
            let reads: Vec<&Matrix<S>> = if reads_transition {
                f_x[read.clone()].iter().map(|f| &**f).collect()
            } else {
                at.states[read.clone()].iter().collect()
            };
            let (value, right, d_parts) = self.loss(at, &reads, &mut gradient.weights);
            (loss, correct) = (value, right);
            d_read[read].iter_mut().zip(d_parts).for_each(|(to, d)| *to = Some(d));
        }

        // From the last layer to the first, so that what the layer above makes of it is known.
        let mut tally = Tally::default();
        let mut components = 0;
        for (layer, transition) in model.transitions().enumerate().rev() {
            let d_read_here = d_read[layer].take();
            let term = ConstraintTerm {
                states: &at.states[layer],
                multipliers: &at.multipliers[layer],
                constraint: model.constraint(),
                factor: self.factors().1(transition.state_dim()),
                penalty: S::of(self.weighing.penalty),
                batch,
                d_read: d_read_here.as_ref(),
                reads_transition,
                scratch,
            };
            components += at.states[layer].as_slice().len();
            let range = model.transition_weights(layer);
            let weights = &at.weights[range.clone()];
            let features = model.features(layer, batch, &at.states, &f_x);
            let input = Input { batch, features, states: &at.states[layer] };
            let (d_states, d_multipliers) =
                (&mut gradient.states[layer], &mut gradient.multipliers[layer]);
            tally = tally.and(if derive {
                let mut below = layer.checked_sub(1).map(|below| {
                    if let Some(d) = d_read[below].take() {
                        return d.per_node(batch, scratch);
                    }
                    let mut zeros = scratch.matrix(batch.nodes(), at.states[below].cols());
                    zeros.as_mut_slice().fill(S::ZERO);
                    zeros
                });
                let gradients = Gradients {
                    weights: request.weights.then_some(&mut gradient.weights[range]),
                    states: d_states,
                    features: below.as_deref_mut(),
                };
                let tally =
                    transition.pass(weights, input, &term, d_multipliers, gradients, scratch);
                if let Some(below) = below {
                    d_read[layer - 1] = Some(ReadGradient::Nodes(below));
                }
                tally
            } else {
                let f = if reads_transition {
                    None
                } else {
                    let mut f = scratch.matrix(batch.nodes(), transition.state_dim());
                    transition.forward(weights, input, &mut f, scratch);
                    Some(f)
                };
                let f = f.as_ref().unwrap_or_else(|| &f_x[layer]);
                term.residual(batch.groups().ranges(), f, d_states, d_multipliers)
            });
        }
        Evaluation {
            loss,
            constraint: tally.constraint,
            residual_mean: tally.residual_sum / components.max(1) as f64,
            residual_max: tally.residual_max,
            state_mean: tally.state_sum / components.max(1) as f64,
            correct,
        }
    }
}

/// Matrices of as many rows, as one.
pub(crate) fn side_by_side<S: Scalar>(parts: &[&Matrix<S>]) -> Matrix<S> {
    let cols = parts.iter().map(|part| part.cols()).sum();
    let mut joined = Matrix::zeros(parts[0].rows(), cols);
    for row in 0..joined.rows() {
        let mut to = joined.row_mut(row);
        for part in parts {
            let (own, rest) = to.split_at_mut(part.cols());
            own.copy_from_slice(part.row(row));
            to = rest;
        }
    }
    joined
}

/// The opposite: a matrix in parts of these widths.
fn apart<'a, S: Scalar>(
    joined: SpareMatrix<'a, S>,
    widths: &[usize],
    scratch: &'a Scratch<S>,
) -> Vec<SpareMatrix<'a, S>> {
    if widths.len() == 1 {
        return vec![joined];
    }
    let mut start = 0;
    widths
        .iter()
        .map(|&width| {
            let mut part = scratch.matrix(joined.rows(), width);
            for row in 0..joined.rows() {
                part.row_mut(row).copy_from_slice(&joined.row(row)[start..start + width]);
            }
            start += width;
            part
        })
        .collect()
}
