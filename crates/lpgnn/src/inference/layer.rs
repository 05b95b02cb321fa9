//! One layer: `f_a` iterated to its fixed point, given what it reads as features.

use std::borrow::Cow;
use std::ops::Range;

use super::anderson::Anderson;
use super::{FixedPointOptions, graph_residual};
use crate::graph::GraphBatch;
use crate::lagrangian::Model;
use crate::numeric::Scratch;
use crate::saddle::scatter;
use crate::transition::{Transition, for_each_group, forward_all, split_rows};
use crate::{Matrix, Scalar};

/// A transition with its weights, and what it reads.
pub(crate) struct Layer<'a, S: Scalar> {
    transition: &'a dyn Transition<S>,
    weights: &'a [S],
    /// What it reads in place of the features of the graphs, above the first layer.
    below: Option<&'a Matrix<S>>,
    scratch: &'a Scratch<S>,
}

/// Where a layer has come to.
pub(crate) struct Converged<S> {
    pub(crate) states: Matrix<S>,
    /// `f_a` of these states.
    pub(crate) f_x: Matrix<S>,
    /// `max abs(x − f_a)` of every graph.
    pub(crate) residuals: Vec<f64>,
    /// How often `f_a` was applied to every graph.
    pub(crate) counts: Vec<usize>,
}

impl<'a, S: Scalar> Layer<'a, S> {
    pub(crate) fn of(
        model: &'a Model<S>,
        layer: usize,
        weights: &'a [S],
        below: Option<&'a Matrix<S>>,
        scratch: &'a Scratch<S>,
    ) -> Self {
        let weights = &weights[model.transition_weights(layer)];
        Self { transition: model.transition(layer), weights, below, scratch }
    }

    /// Iterates from `start` until all graphs are within `tol` or `max_iter` is reached; `tell` is called after
    /// every iteration.
    pub(crate) fn converge(
        &self,
        batch: &GraphBatch<S>,
        start: Matrix<S>,
        options: &FixedPointOptions,
        tell: &mut dyn FnMut(),
    ) -> Converged<S> {
        let (graphs, width) = (batch.graphs(), self.transition.state_dim());
        let mut all = Converged {
            f_x: Matrix::zeros(batch.nodes(), width),
            states: start,
            residuals: vec![f64::NAN; graphs],
            counts: vec![0; graphs],
        };
        let mut active: Vec<usize> = (0..graphs).collect();
        let mut past: Vec<Anderson<S>> = vec![Anderson::new(options.window); graphs];
        let mut iterations = 0;
        // Whenever half of the graphs have converged, work goes on with the others alone.
        while !active.is_empty() && iterations < options.max_iter {
            let mut part = Part::take(batch, &active, self.below, &mut all);
            let mut converged = vec![false; active.len()];
            while iterations < options.max_iter {
                iterations += 1;
                self.apply(&mut part);
                tell();
                for (i, &graph) in active.iter().enumerate().filter(|(i, _)| !converged[*i]) {
                    all.counts[graph] += 1;
                    all.residuals[graph] = graph_residual(&part.batch, i, &part.x, &part.f);
                }
                for (converged, &graph) in converged.iter_mut().zip(&active) {
                    *converged = all.residuals[graph] <= options.tol;
                }
                let done = converged.iter().filter(|&&converged| converged).count();
                if done == active.len() {
                    break;
                }
                let residuals = active.iter().map(|&graph| all.residuals[graph]);
                let moving = residuals.zip(&converged).map(|(r, done)| (!done).then_some(r));
                part.advance(&mut past, moving, S::of(options.beta));
                if 2 * done >= active.len() && active.len() > 8 {
                    break;
                }
            }
            part.put(&mut all);
            let mut done = converged.iter();
            past.retain(|_| !done.next().copied().unwrap_or(true));
            let mut done = converged.iter();
            active.retain(|_| !done.next().copied().unwrap_or(true));
        }
        if !active.is_empty() {
            // Their states have moved since `f_a` was applied.
            let mut part = Part::take(batch, &active, self.below, &mut all);
            self.apply(&mut part);
            for (i, &graph) in active.iter().enumerate() {
                all.residuals[graph] = graph_residual(&part.batch, i, &part.x, &part.f);
            }
            part.put(&mut all);
        }
        all
    }

    fn apply(&self, part: &mut Part<'_, S>) {
        let read = (&*part.batch, part.below.as_deref());
        forward_all(self.transition, self.weights, read, &part.x, &mut part.f, self.scratch);
    }
}

/// The graphs that have not converged.
struct Part<'a, S: Scalar> {
    /// Their nodes; none if they are all.
    nodes: Option<Vec<usize>>,
    batch: Cow<'a, GraphBatch<S>>,
    below: Option<Cow<'a, Matrix<S>>>,
    x: Matrix<S>,
    f: Matrix<S>,
}

impl<'a, S: Scalar> Part<'a, S> {
    fn take(
        batch: &'a GraphBatch<S>,
        graphs: &[usize],
        below: Option<&'a Matrix<S>>,
        all: &mut Converged<S>,
    ) -> Self {
        if graphs.len() == batch.graphs() {
            let (x, f) = (std::mem::take(&mut all.states), std::mem::take(&mut all.f_x));
            let (batch, below) = (Cow::Borrowed(batch), below.map(Cow::Borrowed));
            return Self { nodes: None, batch, below, x, f };
        }
        let nodes: Vec<usize> = graphs.iter().flat_map(|&graph| batch.nodes_of(graph)).collect();
        let x = all.states.select(nodes.iter().copied());
        Self {
            batch: Cow::Owned(batch.select(graphs)),
            below: below.map(|below| Cow::Owned(below.select(nodes.iter().copied()))),
            f: Matrix::zeros(x.rows(), x.cols()),
            x,
            nodes: Some(nodes),
        }
    }

    /// The way back.
    fn put(self, all: &mut Converged<S>) {
        match self.nodes {
            None => (all.states, all.f_x) = (self.x, self.f),
            Some(nodes) => {
                scatter(&[self.x], &nodes, std::slice::from_mut(&mut all.states));
                scatter(&[self.f], &nodes, std::slice::from_mut(&mut all.f_x));
            }
        }
    }

    /// The next iterate of every graph with a residual; the others stay.
    fn advance(
        &mut self,
        past: &mut [Anderson<S>],
        residuals: impl Iterator<Item = Option<f64>>,
        beta: S,
    ) {
        let (width, f) = (self.x.cols(), self.f.as_slice());
        let ranges: Vec<_> = (0..self.batch.graphs()).map(|g| self.batch.nodes_of(g)).collect();
        let rows = split_rows(self.x.as_mut_slice(), width, &ranges);
        let mut graphs: Vec<Moving<'_, S>> = rows
            .into_iter()
            .zip(past)
            .zip(ranges)
            .zip(residuals)
            .filter_map(|(((x, past), nodes), residual)| {
                residual.map(|residual| Moving { x, past, nodes, residual })
            })
            .collect();
        let work = |graph: &mut Moving<'_, S>| {
            let f = &f[graph.nodes.start * width..graph.nodes.end * width];
            graph.past.advance(graph.x, f, graph.residual, beta);
        };
        if self.batch.groups().ranges().len() == 1 {
            graphs.iter_mut().for_each(work);
        } else {
            for_each_group(&mut graphs, work);
        }
    }
}

/// A graph on its way.
struct Moving<'a, S> {
    x: &'a mut [S],
    past: &'a mut Anderson<S>,
    nodes: Range<usize>,
    residual: f64,
}
