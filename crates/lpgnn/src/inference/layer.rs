//! One layer: `f_a` iterated to its fixed point, given what it reads as features.

use std::borrow::Cow;
use std::ops::Range;

use super::anderson::{Anderson, Chunks};
use super::{FixedPointOptions, graph_residual};
use crate::graph::{FeaturesView, GraphBatch};
use crate::lagrangian::Model;
use crate::numeric::Scratch;
use crate::saddle::scatter;
use crate::transition::{Input, Transition, for_each_group, forward_all, split_rows};
use crate::{Matrix, Scalar};

/// A transition with its weights, and what it reads.
pub(crate) struct Layer<'a, S: Scalar> {
    transition: &'a dyn Transition<S>,
    weights: &'a [S],
    /// What it reads in place of the features of the graphs, above the first layer.
    below: Option<&'a Matrix<S>>,
    scratch: &'a Scratch<S>,
}

/// Sets `f_a` of states.
type Function<'a, S> = Box<dyn Fn(&Matrix<S>, &mut Matrix<S>) + 'a>;

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
            let (part, mut x, mut f) = Part::take(batch, &active, self.below, &mut all);
            let apply = self.function(&part);
            let mut converged = vec![false; active.len()];
            while iterations < options.max_iter {
                iterations += 1;
                apply(&x, &mut f);
                tell();
                for (i, &graph) in active.iter().enumerate().filter(|(i, _)| !converged[*i]) {
                    all.counts[graph] += 1;
                    all.residuals[graph] = graph_residual(&part.batch, i, &x, &f);
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
                part.advance((&mut x, &f), &mut past, moving, S::of(options.beta));
                if 2 * done >= active.len() && active.len() > 8 {
                    break;
                }
            }
            drop(apply);
            part.put((x, f), &mut all);
            let mut done = converged.iter();
            past.retain(|_| !done.next().copied().unwrap_or(true));
            let mut done = converged.iter();
            active.retain(|_| !done.next().copied().unwrap_or(true));
        }
        if !active.is_empty() {
            // Their states have moved since `f_a` was applied.
            let (part, x, mut f) = Part::take(batch, &active, self.below, &mut all);
            self.function(&part)(&x, &mut f);
            for (i, &graph) in active.iter().enumerate() {
                all.residuals[graph] = graph_residual(&part.batch, i, &x, &f);
            }
            part.put((x, f), &mut all);
        }
        all
    }

    /// `f_a` of these graphs, as a function of their states.
    fn function<'p>(&'p self, part: &'p Part<'_, S>) -> Function<'p, S> {
        let (batch, below) = match part.batch.share() {
            None => (&*part.batch, part.below.as_deref()),
            Some(_) => (part.batch.own(), part.own_below.as_ref()),
        };
        let node_features = below.map_or(batch.node_features().view(), FeaturesView::Dense);
        let input = Input { node_features, ..Input::of(batch, &part.none) };
        let iteration = self.transition.iteration(self.weights, input, self.scratch);
        match (iteration, part.batch.share()) {
            (Some(iteration), None) => Box::new(move |x, f| iteration.apply(x, f)),
            (Some(iteration), Some(share)) => Box::new(move |x, f| {
                let own = share.own_rows(x);
                let mut f_own = self.scratch.matrix(own.rows(), own.cols());
                iteration.apply(&own, &mut f_own);
                share.fill_rows(f_own.as_slice(), own.cols(), f.as_mut_slice());
            }),
            (None, _) => Box::new(move |x, f| {
                let read = (&*part.batch, part.below.as_deref());
                forward_all(self.transition, self.weights, read, x, f, self.scratch);
            }),
        }
    }
}

/// The graphs that have not converged, and what they read.
struct Part<'a, S: Scalar> {
    /// Their nodes; none if they are all.
    nodes: Option<Vec<usize>>,
    batch: Cow<'a, GraphBatch<S>>,
    below: Option<Cow<'a, Matrix<S>>>,
    /// Of the rank that shares them with others, the rows it owns.
    own_below: Option<Matrix<S>>,
    /// No states.
    none: Matrix<S>,
}

impl<'a, S: Scalar> Part<'a, S> {
    /// With their states, and room for `f_a` of them.
    fn take(
        batch: &'a GraphBatch<S>,
        graphs: &[usize],
        below: Option<&'a Matrix<S>>,
        all: &mut Converged<S>,
    ) -> (Self, Matrix<S>, Matrix<S>) {
        let none = Matrix::default();
        if graphs.len() == batch.graphs() {
            let (x, f) = (std::mem::take(&mut all.states), std::mem::take(&mut all.f_x));
            let (batch, below) = (Cow::Borrowed(batch), below.map(Cow::Borrowed));
            let own_below = own_rows(&batch, below.as_deref());
            return (Self { nodes: None, batch, below, own_below, none }, x, f);
        }
        let nodes: Vec<usize> = graphs.iter().flat_map(|&graph| batch.nodes_of(graph)).collect();
        let x = all.states.select(nodes.iter().copied());
        let f = Matrix::zeros(x.rows(), x.cols());
        let below = below.map(|below| Cow::Owned(below.select(nodes.iter().copied())));
        let batch = Cow::Owned(batch.select(graphs));
        (Self { batch, below, own_below: None, nodes: Some(nodes), none }, x, f)
    }

    /// The way back.
    fn put(self, (x, f): (Matrix<S>, Matrix<S>), all: &mut Converged<S>) {
        match self.nodes {
            None => (all.states, all.f_x) = (x, f),
            Some(nodes) => {
                scatter(&[x], &nodes, std::slice::from_mut(&mut all.states));
                scatter(&[f], &nodes, std::slice::from_mut(&mut all.f_x));
            }
        }
    }

    /// The next iterate of every graph with a residual; the others stay.
    fn advance(
        &self,
        (x, f): (&mut Matrix<S>, &Matrix<S>),
        past: &mut [Anderson<S>],
        residuals: impl Iterator<Item = Option<f64>>,
        beta: S,
    ) {
        let (width, f) = (x.cols(), f.as_slice());
        let ranges: Vec<_> = (0..self.batch.graphs()).map(|g| self.batch.nodes_of(g)).collect();
        let rows = split_rows(x.as_mut_slice(), width, &ranges);
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
            let parts = match self.batch.across() {
                None => Chunks::even(graph.x.len()),
                Some(_) => Chunks::of_groups(self.batch.topology(), width),
            };
            graph.past.advance(graph.x, f, (graph.residual, beta), &parts);
        };
        if self.batch.groups().ranges().len() == 1 {
            graphs.iter_mut().for_each(work);
        } else {
            for_each_group(&mut graphs, work);
        }
    }
}

/// The rows that a rank owns, where it shares the batch with others.
fn own_rows<S: Scalar>(batch: &GraphBatch<S>, rows: Option<&Matrix<S>>) -> Option<Matrix<S>> {
    batch.share().zip(rows).map(|(share, rows)| share.own_rows(rows))
}

/// A graph on its way.
struct Moving<'a, S> {
    x: &'a mut [S],
    past: &'a mut Anderson<S>,
    nodes: Range<usize>,
    residual: f64,
}
