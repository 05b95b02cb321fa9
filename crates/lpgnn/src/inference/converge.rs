use std::ops::Range;

use super::chunks::{chunks, for_each_chunk};
use super::divided::Division;
use super::layer::{Converged, Layers};
use super::{FixedPoint, InferenceProgress, RelaxOptions, Tell, check_tol, relax_observed};
use crate::graph::GraphBatch;
use crate::lagrangian::{Model, ReadFrom};
use crate::numeric::{Scratch, worse};
use crate::saddle::{check_beta, gather, scatter};
use crate::transition::split_rows;
use crate::{Error, Matrix, Scalar};

/// How `f_a` is iterated to its fixed point.
#[derive(
    Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct FixedPointOptions {
    /// Largest `abs(x − f_a(x))` of a graph that has converged.
    #[schemars(range(max = 1), extend("exclusiveMinimum" = 0))]
    pub tol: f64,
    /// Maximum number of applications of `f_a`, per layer.
    pub max_iter: usize,
    /// Step size `β` of plain steps; 1: undamped.
    #[schemars(range(max = 1), extend("exclusiveMinimum" = 0))]
    pub beta: f64,
    /// Iterates that Anderson acceleration combines; 0: plain iteration.
    pub window: usize,
    /// Second attempt, by optimisation, at graphs that do not converge; none: no second attempt.
    pub fall_back: Option<RelaxOptions>,
}

impl Default for FixedPointOptions {
    fn default() -> Self {
        Self {
            tol: 1e-4,
            max_iter: 300,
            beta: 1.0,
            window: 5,
            fall_back: Some(RelaxOptions::default()),
        }
    }
}

impl FixedPointOptions {
    /// Validates every value.
    ///
    /// # Errors
    ///
    /// [`Error::Option`], naming the first value that is not.
    pub fn check(self) -> Result<Self, Error> {
        check_tol(self.tol)?;
        check_beta(self.beta)?;
        if self.window > LARGEST_WINDOW {
            return Err(Error::Option {
                option: "window",
                value: self.window.to_string(),
                expected: format!("an integer up to {LARGEST_WINDOW} is expected"),
            });
        }
        if let Some(options) = self.fall_back {
            options.check()?;
        }
        Ok(self)
    }
}

/// An iteration takes a time that grows with the square of the window.
const LARGEST_WINDOW: usize = 100;

/// A residual beyond which states count as diverged.
const FAR: f64 = 1.0;

/// Iterates `X ← f_a(X)` from zero, graph by graph and layer by layer, until a graph is within
/// `tol` or `max_iter` is reached.
///
/// Graphs that do not converge are [relaxed](super::relax()) if the options say so; whether they then have
/// converged is decided per graph, by the residual of the returned states.
///
/// # Panics
///
/// When the model cannot read the batch, or has another number of weights; see [`Model::check`].
pub fn converge<S: Scalar>(
    model: &Model<S>,
    weights: &[S],
    batch: &GraphBatch<S>,
    options: &FixedPointOptions,
    scratch: &Scratch<S>,
) -> FixedPoint<S> {
    let start = model.zeros(batch.nodes(), vec![]).states;
    converge_from(model, weights, batch, start, options, scratch)
}

/// The same from other states than zero; where `f_a` contracts it ends at the same ones.
///
/// # Panics
///
/// As [`converge`].
pub fn converge_from<S: Scalar>(
    model: &Model<S>,
    weights: &[S],
    batch: &GraphBatch<S>,
    start: Vec<Matrix<S>>,
    options: &FixedPointOptions,
    scratch: &Scratch<S>,
) -> FixedPoint<S> {
    let layers = Layers::new(model, weights, batch);
    converge_observed(&layers, batch, start, options, scratch, &mut |_| ())
}

/// The same; `tell` is called on the way.
pub(super) fn converge_observed<S: Scalar>(
    layers: &Layers<'_, S>,
    batch: &GraphBatch<S>,
    start: Vec<Matrix<S>>,
    options: &FixedPointOptions,
    scratch: &Scratch<S>,
    tell: Tell<'_>,
) -> FixedPoint<S> {
    let mut found = iterate(layers, batch, start, options, scratch, tell);
    if let (Some(relaxation), true) = (&options.fall_back, found.failures() > 0) {
        let tol = relaxation.tol.min(options.tol);
        let relaxation = RelaxOptions { tol, ..*relaxation };
        let (model, weights) = (layers.model, layers.weights);
        relax_failed(model, weights, batch, &relaxation, scratch, &mut found, tell);
    }
    found.converged = found.residuals.iter().map(|&residual| residual <= options.tol).collect();
    found
}

/// All layers, without a second attempt. The iterates of a graph do not depend on the rest of its batch, so that
/// small graphs go all the way a few at a time.
fn iterate<S: Scalar>(
    layers: &Layers<'_, S>,
    batch: &GraphBatch<S>,
    mut states: Vec<Matrix<S>>,
    options: &FixedPointOptions,
    scratch: &Scratch<S>,
    tell: Tell<'_>,
) -> FixedPoint<S> {
    let chunks = chunks(batch);
    if chunks.len() == 1 {
        return iterate_together(layers, batch, states, options, scratch, tell);
    }
    let model = layers.model;
    let mut f_x: Vec<Matrix<S>> = if model.reads().from == ReadFrom::Transition {
        model.transitions().map(|f_a| Matrix::zeros(batch.nodes(), f_a.state_dim())).collect()
    } else {
        vec![]
    };
    let division = Division::of(batch, &chunks);
    let mut work: Vec<Chunk<'_, S>> =
        chunks.iter().map(|graphs| Chunk::of(graphs.clone())).collect();
    let nodes: Vec<Range<usize>> = chunks
        .iter()
        .map(|graphs| batch.node_starts()[graphs.start]..batch.node_starts()[graphs.end])
        .collect();
    for matrix in &mut states {
        let width = matrix.cols();
        let rows = split_rows(matrix.as_mut_slice(), width, &nodes);
        work.iter_mut().zip(rows).for_each(|(chunk, rows)| chunk.states.push(rows));
    }
    for matrix in &mut f_x {
        let width = matrix.cols();
        let rows = split_rows(matrix.as_mut_slice(), width, &nodes);
        work.iter_mut().zip(rows).for_each(|(chunk, rows)| chunk.f_x.push(rows));
    }
    let own = division.as_ref().map_or(0..work.len(), Division::own);
    for_each_chunk(&mut work[own], batch.graphs(), tell, |chunk, tell| {
        let part = batch.select(&chunk.graphs.clone().collect::<Vec<_>>());
        chunk.iterate(layers, &part, options, scratch, tell);
        chunk.graphs.len()
    });
    let mut found = FixedPoint::none();
    work.into_iter().for_each(|chunk| found.append(chunk.found));
    (found.states, found.f_x) = (states, f_x);
    if let Some(division) = &division {
        division.complete(&mut found, options.tol);
    }
    found
}

/// Some graphs, and where their results go.
struct Chunk<'a, S> {
    graphs: Range<usize>,
    /// Rows of every layer: where it starts, then where it ends.
    states: Vec<&'a mut [S]>,
    /// `f_a` of them; empty where nothing reads it.
    f_x: Vec<&'a mut [S]>,
    /// Without states.
    found: FixedPoint<S>,
}

impl<S: Scalar> Chunk<'_, S> {
    fn of(graphs: Range<usize>) -> Self {
        Self { graphs, states: vec![], f_x: vec![], found: FixedPoint::none() }
    }

    fn iterate(
        &mut self,
        layers: &Layers<'_, S>,
        batch: &GraphBatch<S>,
        options: &FixedPointOptions,
        scratch: &Scratch<S>,
        tell: Tell<'_>,
    ) {
        let start = self.states.iter().zip(layers.model.transitions()).map(|(rows, f_a)| {
            Matrix::from_entries(batch.nodes(), f_a.state_dim(), rows.to_vec())
                .expect("there is a row per node")
        });
        let mut found = iterate_together(layers, batch, start.collect(), options, scratch, tell);
        let rows = self.states.iter_mut().chain(&mut self.f_x);
        for (rows, found) in rows.zip(found.states.drain(..).chain(found.f_x.drain(..))) {
            rows.copy_from_slice(found.as_slice());
        }
        self.found = found;
    }
}

/// Graphs that go together, layer by layer, each of which reads the one below.
fn iterate_together<S: Scalar>(
    layers: &Layers<'_, S>,
    batch: &GraphBatch<S>,
    start: Vec<Matrix<S>>,
    options: &FixedPointOptions,
    scratch: &Scratch<S>,
    tell: Tell<'_>,
) -> FixedPoint<S> {
    let (model, weights) = (layers.model, layers.weights);
    let reads_transition = model.reads().from == ReadFrom::Transition;
    let mut number = 0;
    let mut tell = || {
        number += 1;
        tell(InferenceProgress::Iteration { number });
    };
    let mut found = FixedPoint::none();
    found.residuals = vec![0.0; batch.graphs()];
    found.graph_iterations = vec![0; batch.graphs()];
    let mut normalized: Option<Matrix<S>> = None;
    for (layer, start) in start.into_iter().enumerate() {
        let raw = if reads_transition { found.f_x.last() } else { found.states.last() };
        let this = layers.layer(layer, normalized.as_ref().or(raw), scratch);
        let Converged { states, f_x, residuals, counts } =
            this.converge(batch, start, options, &mut tell);
        for (worst, residual) in found.residuals.iter_mut().zip(residuals) {
            *worst = worse(*worst, residual);
        }
        found.graph_iterations.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        let raw = if reads_transition { &f_x } else { &states };
        normalized = model
            .normalized(layer, weights, batch, raw, scratch)
            .map(|normalized| Matrix::clone(&normalized));
        found.states.push(states);
        found.f_x.extend(reads_transition.then_some(f_x));
    }
    found.iterations = found.graph_iterations.iter().copied().max().unwrap_or(0);
    found.converged = found.residuals.iter().map(|&residual| residual <= options.tol).collect();
    found
}

/// The second attempt, by optimisation, at graphs that did not converge; what is no better than before is not taken.
fn relax_failed<S: Scalar>(
    model: &Model<S>,
    weights: &[S],
    batch: &GraphBatch<S>,
    options: &RelaxOptions,
    scratch: &Scratch<S>,
    found: &mut FixedPoint<S>,
    tell: Tell<'_>,
) {
    let failed: Vec<usize> = (0..batch.graphs()).filter(|&graph| !found.converged[graph]).collect();
    let all = failed.len() == batch.graphs();
    let part = if all { batch.clone() } else { batch.select(&failed).shared_like(batch) };
    let mut start = model.zeros(part.nodes(), weights.to_vec());
    // Diverged states are no place to start from: those graphs start at zero.
    for (i, _) in failed.iter().enumerate().filter(|(_, graph)| found.residuals[**graph] <= FAR) {
        let (from, to) = (batch.nodes_of(failed[i]).collect::<Vec<_>>(), part.nodes_of(i));
        scatter(&gather(&found.states, &from), &to.collect::<Vec<_>>(), &mut start.states);
    }
    let relaxed = relax_observed(model, start, &part, options, scratch, tell);
    for (i, &graph) in failed.iter().enumerate() {
        found.graph_iterations[graph] += relaxed.graph_iterations[i];
        if relaxed.residuals[i] < found.residuals[graph] || found.residuals[graph].is_nan() {
            found.residuals[graph] = relaxed.residuals[i];
            let from: Vec<usize> = part.nodes_of(i).collect();
            let to: Vec<usize> = batch.nodes_of(graph).collect();
            scatter(&gather(&relaxed.states, &from), &to, &mut found.states);
            scatter(&gather(&relaxed.f_x, &from), &to, &mut found.f_x);
        }
    }
    found.iterations = found.graph_iterations.iter().copied().max().unwrap_or(0);
}
