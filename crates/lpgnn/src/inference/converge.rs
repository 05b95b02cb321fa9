use std::ops::Range;

use rayon::prelude::*;

use super::anderson::Anderson;
use super::{FixedPoint, RelaxOptions, graph_residual, relax, residuals};
use crate::graph::{Features, GraphBatch};
use crate::lagrangian::{Model, ReadFrom};
use crate::numeric::Scratch;
use crate::saddle::{check_beta, check_positive, gather, scatter};
use crate::transition::{Input, Transition, split_rows};
use crate::{Error, Matrix, Scalar};

/// How `f_a` is iterated to its fixed point.
#[derive(
    Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct FixedPointOptions {
    /// Largest `abs(x − f_a(x))` of a graph that has converged.
    #[schemars(extend("exclusiveMinimum" = 0))]
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
        check_positive("tol", self.tol)?;
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
/// Graphs that do not converge are [relaxed](relax) if the options say so; whether they then have
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
    let mut states: Vec<Matrix<S>> = vec![];
    let mut iterations = 0;
    let mut graph_iterations = vec![0; batch.graphs()];
    for start in start {
        let (converged, counts) =
            converge_next(model, weights, batch, &states, start, options, scratch);
        states.push(converged);
        // The layer took as long as its slowest graph.
        iterations += counts.iter().max().copied().unwrap_or(0);
        graph_iterations.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    }
    let mut residuals = residuals(model, weights, batch, &states, scratch);
    let within = |residual: &f64| *residual <= options.tol;
    let failed: Vec<usize> = (0..batch.graphs()).filter(|&g| !within(&residuals[g])).collect();
    if let (Some(relaxation), false) = (&options.fall_back, failed.is_empty()) {
        let part = batch.select(&failed);
        let mut start = model.zeros(part.nodes(), weights.to_vec());
        // Diverged states are no place to start from: those graphs start at zero.
        for (i, _) in failed.iter().enumerate().filter(|(_, graph)| residuals[**graph] <= FAR) {
            let (from, to) = (batch.nodes_of(failed[i]).collect::<Vec<_>>(), part.nodes_of(i));
            scatter(&gather(&states, &from), &to.collect::<Vec<_>>(), &mut start.states);
        }
        let tol = relaxation.tol.min(options.tol);
        let relaxation = RelaxOptions { tol, ..*relaxation };
        let relaxed = relax(model, start, &part, &relaxation, scratch);
        for (i, &graph) in failed.iter().enumerate() {
            graph_iterations[graph] += relaxed.graph_iterations[i];
            if relaxed.residuals[i] < residuals[graph] || residuals[graph].is_nan() {
                residuals[graph] = relaxed.residuals[i];
                let from: Vec<usize> = part.nodes_of(i).collect();
                let to: Vec<usize> = batch.nodes_of(graph).collect();
                scatter(&gather(&relaxed.states, &from), &to, &mut states);
            }
        }
        iterations += relaxed.iterations;
    }
    let converged = residuals.iter().map(within).collect();
    FixedPoint { states, residuals, converged, iterations, graph_iterations }
}

/// The layer above those whose states are known; returns its states and how often `f_a` was applied
/// to each graph.
pub(crate) fn converge_next<S: Scalar>(
    model: &Model<S>,
    weights: &[S],
    batch: &GraphBatch<S>,
    known: &[Matrix<S>],
    start: Matrix<S>,
    options: &FixedPointOptions,
    scratch: &Scratch<S>,
) -> (Matrix<S>, Vec<usize>) {
    let layer = known.len();
    let below = known.last().map(|below| {
        Features::Dense(match model.reads().from {
            ReadFrom::State => below.clone(),
            ReadFrom::Transition => {
                model.f_x(layer, weights, batch, known, scratch)[layer - 1].clone()
            }
        })
    });
    let features = below.as_ref().unwrap_or(batch.node_features());
    let transition = model.transitions().nth(layer).expect("there is a layer above");
    let weights = &weights[model.transition_weights(layer)];
    converge_layer(transition, weights, batch, features, start, options, scratch)
}

/// One layer, given what it reads as features.
fn converge_layer<S: Scalar>(
    transition: &dyn Transition<S>,
    weights: &[S],
    batch: &GraphBatch<S>,
    features: &Features<S>,
    start: Matrix<S>,
    options: &FixedPointOptions,
    scratch: &Scratch<S>,
) -> (Matrix<S>, Vec<usize>) {
    let width = transition.state_dim();
    let mut states = start;
    let mut active: Vec<usize> = (0..batch.graphs()).collect();
    let mut past: Vec<Anderson<S>> = vec![Anderson::new(options.window); batch.graphs()];
    let mut iterations = 0;
    let mut counts = vec![0; batch.graphs()];
    // Whenever half of the graphs have converged, work goes on with the others alone.
    while !active.is_empty() && iterations < options.max_iter {
        let all = active.len() == batch.graphs();
        let nodes: Vec<usize> = active.iter().flat_map(|&graph| batch.nodes_of(graph)).collect();
        let selected =
            (!all).then(|| (batch.select(&active), features.select(nodes.iter().copied())));
        let (part, features) = selected.as_ref().map_or((batch, features), |(b, l)| (b, l));
        let mut x = if all { states.clone() } else { states.select(nodes.iter().copied()) };
        let mut f = Matrix::zeros(part.nodes(), width);
        let mut converged = vec![false; part.graphs()];
        while iterations < options.max_iter {
            iterations += 1;
            let input = Input { node_features: features.view(), ..Input::of(part, &x) };
            transition.forward(weights, input, &mut f, scratch);
            for (graph, converged) in converged.iter_mut().enumerate() {
                counts[active[graph]] += usize::from(!*converged);
                *converged |= graph_residual(part, graph, &x, &f) <= options.tol;
            }
            let done = converged.iter().filter(|&&converged| converged).count();
            if done == part.graphs() {
                break;
            }
            // The iterates of a graph do not depend on the rest of its batch.
            advance(part, &mut x, &f, &mut past, &converged, S::of(options.beta));
            if 2 * done >= part.graphs() && part.graphs() > 8 {
                break;
            }
        }
        scatter(std::slice::from_ref(&x), &nodes, std::slice::from_mut(&mut states));
        let mut not_converged = converged.iter().map(|converged| !converged);
        past.retain(|_| not_converged.next().unwrap_or(false));
        let mut not_converged = converged.iter().map(|converged| !converged);
        active.retain(|_| not_converged.next().unwrap_or(false));
    }
    (states, counts)
}

/// The next iterate of every graph that has not converged.
fn advance<S: Scalar>(
    batch: &GraphBatch<S>,
    x: &mut Matrix<S>,
    f: &Matrix<S>,
    past: &mut [Anderson<S>],
    converged: &[bool],
    beta: S,
) {
    let width = x.cols();
    let ranges: Vec<_> = (0..batch.graphs()).map(|graph| batch.nodes_of(graph)).collect();
    let rows = split_rows(x.as_mut_slice(), width, &ranges);
    let mut graphs: Vec<_> = rows
        .into_iter()
        .zip(past)
        .zip(ranges)
        .zip(converged)
        .filter(|(_, converged)| !**converged)
        .map(|(((x, past), nodes), _)| GraphRows { x, past, nodes })
        .collect();
    let work = |graph: &mut GraphRows<'_, S>| {
        let f_x = &f.as_slice()[graph.nodes.start * width..graph.nodes.end * width];
        graph.past.advance(graph.x, f_x, beta);
    };
    if batch.groups().ranges().len() == 1 {
        graphs.iter_mut().for_each(work);
    } else {
        graphs.par_iter_mut().for_each(work);
    }
}

/// A graph that has not converged.
struct GraphRows<'a, S> {
    x: &'a mut [S],
    past: &'a mut Anderson<S>,
    nodes: Range<usize>,
}
