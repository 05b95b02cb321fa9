//! The Lagrangian, its variables and its gradients.
//!
//! ```text
//! 𝓛(θ, X, Λ) = w Σ_{S} loss(f_r, y)  +  Σ_k Σ_v λ_v^k · G(x_v^k − f_{a,v}^k(X))  +  ρ/2 Σ_k ‖X^k − f_a^k(X)‖²
//! ```
//!
//! over the layers `k`, with the first term over supervised nodes or graphs and the others over all
//! nodes; `w` is the weight of the loss and `ρ` that of the penalty (1 and 0 in the paper).

mod handed;
mod layers;
mod model;
mod parts;
mod read;
mod term;
mod variables;

pub use layers::{CountEvaluations, L2, Layered, ObjectiveLayer};
pub use model::{Model, Multipliers, ReadFrom, ReadLayers, Reads};
pub use variables::Variables;

use crate::graph::{GraphBatch, Level, Share};
use crate::numeric::{Scratch, SpareMatrix};
use crate::readout::{Loss, ReadoutGradients, ReadoutInput, Supervision};
use crate::transition::{Gradients, Input, Kept, Upstream};
use crate::{Error, Matrix, Scalar};
use handed::Handed;
use read::ReadGradient;
use term::{ConstraintTerm, Tally};

/// A function with a saddle point: the Lagrangian of a batch, or a test problem with a known solution.
pub trait Objective<S: Scalar = f32> {
    /// The value and the gradient at a point. Requested parts of the gradient are set; the rest is
    /// unspecified.
    fn evaluate(
        &self,
        at: &Variables<S>,
        request: Request,
        gradient: &mut Variables<S>,
    ) -> Evaluation;

    /// How ranks share the nodes whose states and multipliers are in the variables; none where there is one rank.
    fn share(&self) -> Option<&Share> {
        None
    }
}

/// The parts of an evaluation that are requested; `∂𝓛/∂Λ` always is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Request {
    /// The loss; without it, only the constraint term counts, in the gradients too.
    pub loss: bool,
    /// `∂𝓛/∂θ`
    pub weights: bool,
    /// `∂𝓛/∂X`
    pub states: bool,
    /// `ρ`, which belongs to the solver; 0 for the Lagrangian of the paper.
    pub penalty: f64,
}

impl Request {
    /// Whether any derivative besides `∂𝓛/∂Λ` is requested.
    pub fn derivatives(self) -> bool {
        self.weights || self.states
    }

    /// Everything, without a penalty.
    pub const ALL: Self = Self { loss: true, weights: true, states: true, penalty: 0.0 };
    /// `∂𝓛/∂Λ` alone: for `G = lin` that is `X − f_a(X)`, a forward pass.
    pub const RESIDUAL: Self = Self { loss: false, weights: false, states: false, penalty: 0.0 };
}

/// The values of an evaluation.
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
    /// Number of correctly classified supervised rows, and number of supervised rows.
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
    /// Mean, as in its authors' code.
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
        "x-data-default" = "1; with bdmm 0.1 if G is lin; with bdmm and another G, and with augmented-lagrangian, 0.01 for nodes, 0.001 for graphs"
    ))]
    pub loss_weight: f64,
    /// Reduction of the loss over labelled nodes or graphs.
    #[schemars(extend("x-data-default" = "mean for homophilous and large heterophilous graphs, otherwise sum"))]
    pub loss: Scale,
    /// Reduction of the constraint term over nodes and components.
    pub constraint: Scale,
}

impl Default for Weighing {
    fn default() -> Self {
        Self { loss_weight: 1.0, loss: Scale::Sum, constraint: Scale::Sum }
    }
}

/// The Lagrangian of a batch of graphs.
///
/// Where ranks [share](GraphBatch::shared_by) the batch, variables and gradients have rows of the nodes that this one owns;
/// values and the gradient of the weights are those of all nodes, on all ranks.
#[derive(Debug)]
pub struct Lagrangian<'a, S: Scalar = f32> {
    model: &'a Model<S>,
    batch: &'a GraphBatch<S>,
    supervision: &'a Supervision<S>,
    weighing: Weighing,
    /// How much all supervised rows count together, those of other ranks too.
    total: f64,
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
        supervision.targets().check_rows("the targets", model.readout().level().rows(batch))?;
        let (width, output) = (supervision.targets().width(), model.readout().outputs());
        let total = match batch.across() {
            None => supervision.total(),
            Some(share) => parts::total(share, model, supervision)?,
        };
        if width != output && total > 0.0 {
            return Err(Error::Mismatch(format!(
                "the targets have {width} components or classes, but the read-out has {output} outputs"
            )));
        }
        Ok(Self { model, batch, supervision, weighing, total, dropout: None, scratch })
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

    /// The factors of one loss and of one residual of a layer.
    fn factors(&self) -> (S, impl Fn(usize) -> S + '_) {
        let per =
            |scale, count: f64| if scale == Scale::Mean && count > 0.0 { 1.0 / count } else { 1.0 };
        let loss = self.weighing.loss_weight * per(self.weighing.loss, self.total);
        let constraint = move |state: usize| {
            let nodes = self.batch.topology().whole_nodes();
            S::of(per(self.weighing.constraint, (nodes * state) as f64))
        };
        (S::of(loss), constraint)
    }

    /// `w Σ_S loss`, and its derivative in what the output reads, of every layer that it reads.
    fn loss<'s>(
        &'s self,
        at: &Variables<S>,
        reads: &[&Matrix<S>],
        d_weights: Option<&mut [S]>,
    ) -> (f64, (usize, usize), Vec<ReadGradient<'s, S>>) {
        if let Some(share) = self.batch.across() {
            return self.loss_of_parts(share, at, reads, d_weights);
        }
        let (model, scratch) = (self.model, self.scratch);
        let share = self.batch.share();
        let gathered = share.map(|share| self.rows_of_all(share, reads));
        let gathered: Option<Vec<&Matrix<S>>> = gathered.as_ref().map(|all| all.iter().collect());
        let reads = gathered.as_deref().unwrap_or(reads);
        let readout = model.readout();
        let width = reads.iter().map(|part| part.cols()).sum();
        let (outputs, read) = (readout.level().rows(self.batch), readout.gradient_level());
        let mut predictions = scratch.matrix(outputs, readout.outputs());
        let mut d_rows = scratch.matrix(read.rows(self.batch), width);
        let loss = readout.pass(
            &at.weights[model.readout_weights()],
            ReadoutInput { batch: self.batch, parts: reads, dropout: self.dropout },
            Loss { supervision: self.supervision, factor: self.factors().0 },
            &mut predictions,
            ReadoutGradients {
                weights: d_weights.map(|d| &mut d[model.readout_weights()]),
                states: Some(&mut d_rows),
                features: None,
            },
            scratch,
        );
        let correct = self.supervision.correct(&predictions);
        let widths: Vec<usize> = reads.iter().map(|part| part.cols()).collect();
        let gradient = match read {
            Level::Node => ReadGradient::Nodes,
            Level::Graph => ReadGradient::Graphs,
        };
        let d_rows = match share {
            None => d_rows,
            Some(share) => own_rows(share, read, &d_rows, scratch),
        };
        let parts = apart(d_rows, &widths, scratch);
        (loss, correct, parts.into_iter().map(gradient).collect())
    }

    /// What is read of all nodes: the read-out, a small part of the work, runs on every rank. A network of single nodes makes nothing of
    /// those without a target.
    fn rows_of_all(&self, share: &Share, reads: &[&Matrix<S>]) -> Vec<Matrix<S>> {
        let of_nodes = self.model.readout().network().is_some_and(|(pooling, _)| pooling.is_none());
        let counts = self.supervision.counts();
        let rows = |own: &&Matrix<S>| {
            if of_nodes {
                share.wanted_rows(own, |node| counts[node] > S::ZERO)
            } else {
                share.all_rows(own)
            }
        };
        reads.iter().map(rows).collect()
    }
}

/// The rows of the nodes that this rank owns, or of their graphs.
fn own_rows<'s, S: Scalar>(
    share: &Share,
    level: Level,
    rows: &Matrix<S>,
    scratch: &'s Scratch<S>,
) -> SpareMatrix<'s, S> {
    let range = match level {
        Level::Node => share.nodes(),
        Level::Graph => share.graphs(),
    };
    let mut own = scratch.matrix(range.len(), rows.cols());
    let entries = range.start * rows.cols()..range.end * rows.cols();
    own.as_mut_slice().copy_from_slice(&rows.as_slice()[entries]);
    own
}

impl<S: Scalar> Objective<S> for Lagrangian<'_, S> {
    fn share(&self) -> Option<&Share> {
        self.batch.share().or(self.batch.across())
    }

    fn evaluate(
        &self,
        at: &Variables<S>,
        request: Request,
        gradient: &mut Variables<S>,
    ) -> Evaluation {
        let (model, batch, scratch) = (self.model, self.batch.own(), self.scratch);
        let layers = model.layers();
        // f_a of the layers that something reads: the output, the layer above, or the residual itself.
        let count = match (self.reads_transition(), request.loss || !request.derivatives()) {
            (false, _) => 0,
            (true, true) => layers,
            (true, false) => layers - 1,
        };
        let (handed, mut kept) = if request.derivatives() {
            model.f_x_keeping(count, &at.weights, batch, &at.states, scratch)
        } else {
            (model.f_x(count, &at.weights, batch, &at.states, scratch), vec![])
        };
        kept.resize_with(layers, Kept::default);
        if request.weights {
            gradient.weights.fill(S::ZERO);
        }
        let (mut loss, mut correct) = (0.0, (0, 0));
        // ∂𝓛/∂ what is read of a layer, by the output and by the layer above.
        let mut d_read: Vec<Option<ReadGradient<'_, S>>> = (0..layers).map(|_| None).collect();
        if request.loss {
            let read = model.read_layers();
            let reads: Vec<&Matrix<S>> =
                read.clone().map(|layer| model.handed_on(layer, &at.states, &handed)).collect();
            let d_weights = request.weights.then_some(&mut gradient.weights[..]);
            let (value, right, d_parts) = self.loss(at, &reads, d_weights);
            (loss, correct) = (value, right);
            d_read[read].iter_mut().zip(d_parts).for_each(|(to, d)| *to = Some(d));
        }

        // From the last layer to the first, so that what the layer above makes of it is known.
        let mut tally = Tally::default();
        for layer in (0..layers).rev() {
            let f_x_here = handed.f_x.get(layer).map(|f_x| &**f_x);
            let kept = Kept { f_x: f_x_here, ..kept.pop().unwrap_or_default() };
            let below = (&handed, kept);
            tally = tally.and(self.layer(layer, at, request, below, &mut d_read, gradient));
        }
        Evaluation {
            loss,
            constraint: tally.constraint,
            residual_mean: tally.residual_sum / tally.components.max(1.0),
            residual_max: tally.residual_max,
            state_mean: tally.state_sum / tally.components.max(1.0),
            correct,
        }
    }
}

impl<S: Scalar> Lagrangian<'_, S> {
    /// Whether the output and the layers above the first read `f_a(x)`, not `x`.
    fn reads_transition(&self) -> bool {
        self.model.reads().from == ReadFrom::Transition
    }

    /// The constraint term of a layer with its gradients, given what layers hand on and what was kept of this one, and what reads this layer; leaves in `d_read` what this one makes of the layer below.
    fn layer<'s>(
        &'s self,
        layer: usize,
        at: &Variables<S>,
        request: Request,
        (handed, kept): (&Handed<'_, S>, Kept<'_, S>),
        d_read: &mut [Option<ReadGradient<'s, S>>],
        gradient: &mut Variables<S>,
    ) -> Tally {
        let (model, batch, scratch) = (self.model, self.batch.own(), self.scratch);
        let (topology, transition) = (batch.topology(), model.transition(layer));
        let d_read_here = d_read[layer].take().map(|d| {
            if model.normalizations().is_empty() {
                return d;
            }
            let mut d = d.per_node(topology, scratch);
            let d_weights = request.weights.then_some(&mut gradient.weights[..]);
            model.hand_back(layer, &at.weights, (batch, &at.states), handed, &mut d, d_weights);
            ReadGradient::Nodes(d)
        });
        let term = ConstraintTerm {
            states: &at.states[layer],
            multipliers: &at.multipliers[layer],
            constraint: model.constraint(),
            factor: self.factors().1(transition.state_dim()),
            penalty: S::of(request.penalty),
            topology,
            d_read: d_read_here.as_ref(),
            reads_transition: self.reads_transition(),
            scratch,
        };
        let ranges = topology.groups().ranges();
        let mut groups = term.groups(ranges, &mut gradient.multipliers[layer]);
        let (range, d_states) = (model.transition_weights(layer), &mut gradient.states[layer]);
        let weights = &at.weights[range.clone()];
        let input = Input {
            node_features: model.features(layer, batch, &at.states, handed),
            ..Input::of(batch, &at.states[layer])
        };
        if request.derivatives() {
            let mut below = layer.checked_sub(1).map(|below| {
                let width = at.states[below].cols();
                let zeros = || ReadGradient::zeros(topology.nodes(), width, scratch);
                d_read[below].take().unwrap_or_else(zeros).per_node(topology, scratch)
            });
            let mut upstream: Vec<&mut dyn Upstream<S>> =
                groups.iter_mut().map(|group| group as &mut dyn Upstream<S>).collect();
            let gradients = Gradients {
                weights: request.weights.then_some(&mut gradient.weights[range]),
                states: d_states,
                features: below.as_deref_mut(),
                reduce: topology.reduce(),
            };
            transition.pass_after(kept, weights, input, &mut upstream, gradients, scratch);
            if let Some(below) = below {
                d_read[layer - 1] = Some(ReadGradient::Nodes(below));
            }
        } else if self.reads_transition() {
            term.residual(&mut groups, ranges, &handed.f_x[layer], d_states);
        } else {
            let mut f = scratch.matrix(topology.nodes(), transition.state_dim());
            transition.forward(weights, input, &mut f, scratch);
            term.residual(&mut groups, ranges, &f, d_states);
        }
        Tally::total(groups.iter().map(|group| group.tally), topology.reduce::<S>())
    }
}

/// A matrix in parts of these widths.
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
