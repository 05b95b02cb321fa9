//! Inference: the states of new graphs, for given weights.

mod anderson;
mod certificate;
mod chunks;
mod converge;
mod divided;
mod explain;
mod layer;
mod relax;
mod tile;

pub use certificate::Certificate;
pub(crate) use certificate::distances;
use chunks::{chunks, for_each_chunk};
use converge::converge_observed;
pub use converge::{FixedPointOptions, converge, converge_from};
pub use explain::{EdgeEffect, Explanation, Question, Score, explain};
pub(crate) use layer::Layers;
use relax::relax_observed;
pub use relax::{RelaxOptions, relax};

use std::fmt;
use std::ops::Range;

use crate::graph::GraphBatch;
use crate::lagrangian::{Model, ReadFrom};
use crate::numeric::{Scratch, largest_difference, length, worse};
use crate::readout::ReadoutInput;
use crate::transition::backward_all;
use crate::{Error, Matrix, Scalar};

/// How the states of new graphs are found.
#[derive(
    Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case", tag = "method")]
pub enum Inference {
    /// Iteration of `f_a` to its fixed point.
    FixedPoint(FixedPointOptions),
    /// Optimisation of the constraint term, as in the paper.
    Relax(RelaxOptions),
}

impl Default for Inference {
    fn default() -> Self {
        Self::FixedPoint(FixedPointOptions::default())
    }
}

/// The states found, and how well they meet `x = f_a(x)`.
#[derive(Clone, Debug)]
pub struct FixedPoint<S = f32> {
    /// `X` of every layer; empty where only [outputs](Inference::outputs) were asked for.
    pub states: Vec<Matrix<S>>,
    /// `f_a(X)` of every layer, if the read-out reads it; otherwise empty.
    pub f_x: Vec<Matrix<S>>,
    /// `max abs(x − f_a)` over the nodes and layers of every graph.
    pub residuals: Vec<f64>,
    /// Whether a graph's residual is within the tolerance.
    pub converged: Vec<bool>,
    /// Number of applications of `f_a` to the slowest graph, over all layers.
    pub iterations: usize,
    /// The number of applications that each graph took.
    pub graph_iterations: Vec<usize>,
}

/// How far the search for states has come.
///
/// In text: `iteration 57`, or `120 of 300 graphs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InferenceProgress {
    /// All graphs go on together, as one large graph does.
    Iteration {
        /// The iterations so far, over all layers.
        number: usize,
    },
    /// Small graphs go all the way a few at a time.
    Graphs {
        /// How many are done.
        done: usize,
        /// How many there are.
        total: usize,
    },
}

impl fmt::Display for InferenceProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Iteration { number } => write!(f, "iteration {number}"),
            Self::Graphs { done, total } => write!(f, "{done} of {total} graphs"),
        }
    }
}

/// Beyond it, anything would count as converged, whoever has set it.
const LARGEST_TOL: f64 = 1.0;

/// # Errors
///
/// [`Error::Option`] unless it is positive and at most [`LARGEST_TOL`].
fn check_tol(tol: f64) -> Result<(), Error> {
    if tol > 0.0 && tol <= LARGEST_TOL {
        return Ok(());
    }
    let expected = format!("a positive number up to {LARGEST_TOL} is expected");
    Err(Error::Option { option: "tol", value: tol.to_string(), expected })
}

/// What is told how far the search for states has come.
pub(crate) type Tell<'a> = &'a mut dyn FnMut(InferenceProgress);

impl<S: Scalar> FixedPoint<S> {
    /// Number of graphs that did not converge.
    pub fn failures(&self) -> usize {
        self.converged.iter().filter(|&&converged| !converged).count()
    }

    /// The output of every node or graph, as [`predict`] has it from these states.
    pub fn outputs(
        &self,
        model: &Model<S>,
        weights: &[S],
        batch: &GraphBatch<S>,
        scratch: &Scratch<S>,
    ) -> Matrix<S> {
        let read = match model.reads().from {
            ReadFrom::State => &self.states,
            ReadFrom::Transition => &self.f_x,
        };
        read_out(model, weights, batch, &read.iter().collect::<Vec<_>>(), scratch)
    }

    /// Of no graphs.
    fn none() -> Self {
        let (states, f_x) = (vec![], vec![]);
        let (residuals, converged, graph_iterations) = (vec![], vec![], vec![]);
        Self { states, f_x, residuals, converged, iterations: 0, graph_iterations }
    }

    /// With more graphs, without their states.
    fn append(&mut self, others: Self) {
        self.residuals.extend(others.residuals);
        self.converged.extend(others.converged);
        self.graph_iterations.extend(others.graph_iterations);
        self.iterations = self.iterations.max(others.iterations);
    }

    /// Of the same graphs found twice, with different weights: the larger residual of each, the states of `self`.
    pub(crate) fn worse_of(mut self, other: Self) -> Self {
        let residuals = self.residuals.iter_mut().zip(other.residuals);
        residuals.for_each(|(own, other)| *own = worse(*own, other));
        let converged = self.converged.iter_mut().zip(other.converged);
        converged.for_each(|(own, other)| *own &= other);
        let counts = self.graph_iterations.iter_mut().zip(other.graph_iterations);
        counts.for_each(|(own, other)| *own = (*own).max(other));
        self.iterations = self.iterations.max(other.iterations);
        self
    }

    /// The largest residual of all graphs; NaN if any is.
    pub fn largest_residual(&self) -> f64 {
        self.residuals.iter().copied().fold(0.0, worse)
    }
}

impl Inference {
    /// The same with this number of iterations; a second attempt has no more either.
    #[must_use]
    pub fn with_max_iter(mut self, max_iter: usize) -> Self {
        match &mut self {
            Self::FixedPoint(options) => options.max_iter = max_iter,
            Self::Relax(options) => options.max_iter = max_iter,
        }
        self.at_most(max_iter)
    }

    /// The same with at most this number of iterations.
    #[must_use]
    pub fn at_most(mut self, max_iter: usize) -> Self {
        match &mut self {
            Self::FixedPoint(options) => {
                options.max_iter = options.max_iter.min(max_iter);
                if let Some(relaxation) = &mut options.fall_back {
                    relaxation.max_iter = relaxation.max_iter.min(max_iter);
                }
            }
            Self::Relax(options) => options.max_iter = options.max_iter.min(max_iter),
        }
        self
    }

    /// How many matrices of the size of the states are in memory at a time, at most.
    pub(crate) fn copies(&self) -> usize {
        const ITERATION: usize = 8;
        match self {
            // Anderson acceleration keeps two differences per iterate.
            Self::FixedPoint(options) => ITERATION + 2 * options.window.min(options.max_iter),
            Self::Relax(_) => ITERATION,
        }
    }

    /// The states of `batch` under `weights`, from zero.
    pub fn states<S: Scalar>(
        &self,
        model: &Model<S>,
        weights: &[S],
        batch: &GraphBatch<S>,
        scratch: &Scratch<S>,
    ) -> FixedPoint<S> {
        self.states_observed(model, weights, batch, scratch, &mut |_| ())
    }

    /// The same; `tell` is called on the way, on this thread.
    pub fn states_observed<S: Scalar>(
        &self,
        model: &Model<S>,
        weights: &[S],
        batch: &GraphBatch<S>,
        scratch: &Scratch<S>,
        tell: &mut dyn FnMut(InferenceProgress),
    ) -> FixedPoint<S> {
        self.states_of(&Layers::new(model, weights, batch), batch, scratch, tell)
    }

    fn states_of<S: Scalar>(
        &self,
        layers: &Layers<'_, S>,
        batch: &GraphBatch<S>,
        scratch: &Scratch<S>,
        tell: Tell<'_>,
    ) -> FixedPoint<S> {
        let (model, weights) = (layers.model, layers.weights);
        match self {
            Self::FixedPoint(options) => {
                let start = model.zeros(batch.nodes(), vec![]).states;
                converge_observed(layers, batch, start, options, scratch, tell)
            }
            Self::Relax(options) => {
                let start = model.zeros(batch.nodes(), weights.to_vec());
                relax_observed(model, start, batch, options, scratch, tell)
            }
        }
    }
}

impl Inference {
    /// The output of every node or graph of `batch` under `weights`, and how well the states that it was read from meet
    /// `x = f_a(x)`. Of small graphs a few at a time are in memory; the states are not returned.
    pub fn outputs<S: Scalar>(
        &self,
        model: &Model<S>,
        weights: &[S],
        batch: &GraphBatch<S>,
        scratch: &Scratch<S>,
        tell: &mut dyn FnMut(InferenceProgress),
    ) -> (FixedPoint<S>, Matrix<S>) {
        let layers = Layers::new(model, weights, batch);
        let answer = |batch: &GraphBatch<S>, tell: Tell<'_>| {
            let found = self.states_of(&layers, batch, scratch, tell);
            let outputs = found.outputs(model, weights, batch, scratch);
            (FixedPoint { states: vec![], f_x: vec![], ..found }, outputs)
        };
        let chunks = chunks(batch);
        if chunks.len() == 1 || batch.share().is_some() {
            return answer(batch, tell);
        }
        let (mut all, readout) = (FixedPoint::none(), model.readout());
        let mut outputs = Matrix::zeros(readout.level().rows(batch), readout.outputs());
        let mut rest = outputs.as_mut_slice();
        let mut answers: Vec<_> = chunks.into_iter().map(|graphs| (graphs, None)).collect();
        for_each_chunk(&mut answers, batch.graphs(), tell, |(graphs, found), tell| {
            let part = batch.select(&graphs.clone().collect::<Vec<_>>());
            *found = Some(answer(&part, tell));
            graphs.len()
        });
        for (found, of_part) in answers.into_iter().filter_map(|(_, found)| found) {
            all.append(found);
            let (rows, behind) = rest.split_at_mut(of_part.as_slice().len());
            rows.copy_from_slice(of_part.as_slice());
            rest = behind;
        }
        (all, outputs)
    }
}

/// The output of every node or graph, from given states.
pub fn predict<S: Scalar>(
    model: &Model<S>,
    weights: &[S],
    batch: &GraphBatch<S>,
    states: &[Matrix<S>],
    scratch: &Scratch<S>,
) -> Matrix<S> {
    let f_x = match model.reads().from {
        ReadFrom::State => vec![],
        ReadFrom::Transition => model.f_x(model.layers(), weights, batch, states, scratch).f_x,
    };
    let read: Vec<&Matrix<S>> = match model.reads().from {
        ReadFrom::State => states.iter().collect(),
        ReadFrom::Transition => f_x.iter().map(|f| &**f).collect(),
    };
    read_out(model, weights, batch, &read, scratch)
}

/// `f_r` of what every layer hands on, given its states or `f_a` of them.
fn read_out<S: Scalar>(
    model: &Model<S>,
    weights: &[S],
    batch: &GraphBatch<S>,
    read: &[&Matrix<S>],
    scratch: &Scratch<S>,
) -> Matrix<S> {
    let readout = model.readout();
    let mut predictions = Matrix::zeros(readout.level().rows(batch), readout.outputs());
    let handed = |layer| model.normalized(layer, weights, batch, read[layer], scratch);
    let normalized: Vec<_> = model.read_layers().filter_map(handed).collect();
    let normalized: Vec<&Matrix<S>> = normalized.iter().map(|rows| &**rows).collect();
    let parts = if normalized.is_empty() { &read[model.read_layers()] } else { &normalized };
    let input = ReadoutInput { batch, parts, dropout: None };
    readout.forward(&weights[model.readout_weights()], input, &mut predictions, scratch);
    predictions
}

/// `f_a(X)` of every layer, and `max abs(x − f_a)` of every graph over all layers.
fn residuals<S: Scalar>(
    model: &Model<S>,
    weights: &[S],
    batch: &GraphBatch<S>,
    states: &[Matrix<S>],
    scratch: &Scratch<S>,
) -> (Vec<Matrix<S>>, Vec<f64>) {
    let mut worst = vec![0.0; batch.graphs()];
    let f_x = model.f_x(states.len(), weights, batch, states, scratch).f_x;
    for (x, f) in states.iter().zip(&f_x) {
        for (graph, worst) in worst.iter_mut().enumerate() {
            *worst = worse(*worst, graph_residual(batch, graph, x, f));
        }
    }
    let f_x = match model.reads().from {
        ReadFrom::State => vec![],
        ReadFrom::Transition => f_x.iter().map(|f| Matrix::clone(f)).collect(),
    };
    (f_x, worst)
}

/// `max abs(x − f)` over the nodes of a graph.
fn graph_residual<S: Scalar>(
    batch: &GraphBatch<S>,
    graph: usize,
    x: &Matrix<S>,
    f: &Matrix<S>,
) -> f64 {
    let nodes = batch.nodes_of(graph);
    let range = nodes.start * x.cols()..nodes.end * x.cols();
    let own = largest_difference(&x.as_slice()[range.clone()], &f.as_slice()[range]).f64();
    batch.across().map_or(own, |share| share.largest(own))
}

/// An estimate of the spectral radius of `∂f_a/∂X` at these states, the largest over the layers:
/// how fast the transition contracts (below 1) or expands near them.
///
/// The growth of `(Jᵀ)ⁿ v` over the last of `iterations` steps, for a `v` that favours no node.
pub fn spectral_radius<S: Scalar>(
    model: &Model<S>,
    weights: &[S],
    batch: &GraphBatch<S>,
    states: &[Matrix<S>],
    iterations: usize,
    scratch: &Scratch<S>,
) -> f64 {
    let mut largest = 0.0_f64;
    let handed = model.f_x(states.len() - 1, weights, batch, states, scratch);
    for (layer, transition) in model.transitions().enumerate() {
        let read = (batch, model.below(layer, states, &handed));
        let weights = &weights[model.transition_weights(layer)];
        let back =
            |v: &Matrix<S>| backward_all(transition, weights, read, &states[layer], v, scratch);
        let (nodes, width) = (states[layer].rows(), states[layer].cols());
        let start = Matrix::zeros(nodes, width);
        largest = worse(largest, layer_radius(batch, start, iterations, back));
    }
    largest
}

/// Of the layer that `back` multiplies with, from a start that it sets in `v`.
fn layer_radius<S: Scalar>(
    batch: &GraphBatch<S>,
    mut v: Matrix<S>,
    iterations: usize,
    back: impl Fn(&Matrix<S>) -> Matrix<S>,
) -> f64 {
    let first = batch.across().map_or(0, |share| share.nodes().start * v.cols());
    let length = |v: &Matrix<S>| match batch.across() {
        None => length(v.as_slice()),
        Some(share) => {
            let parts = share.own_parts().into_iter();
            let square = |(_, rows): (usize, Range<usize>)| {
                length(&v.as_slice()[rows.start * v.cols()..rows.end * v.cols()]).powi(2)
            };
            share.of_all_parts(&parts.map(square).collect::<Vec<_>>(), 1).iter().sum::<f64>().sqrt()
        }
    };
    for (i, v) in (first..).zip(v.as_mut_slice()) {
        *v = S::of((1.7 * i as f64 + 0.3).sin());
    }
    let (mut growth, mut counted) = (0.0, 0);
    for iteration in 0..iterations {
        let size = length(&v);
        if size == 0.0 || !size.is_finite() {
            return size;
        }
        let unit = S::of(1.0 / size);
        v.as_mut_slice().iter_mut().for_each(|v| *v *= unit);
        v = back(&v);
        // The first half turns v towards the leading directions; complex ones make single ratios
        // oscillate, but not their mean.
        if iteration >= iterations / 2 {
            growth += length(&v).max(f64::MIN_POSITIVE).ln();
            counted += 1;
        }
    }
    if counted == 0 { 0.0 } else { (growth / f64::from(counted)).exp() }
}
