//! One layer: `f_a` iterated to its fixed point, given what it reads as features.

use std::borrow::Cow;

use super::anderson::{Anderson, Chunks, plain_step};
use super::tile::{apply_everywhere, converge_tiles};
use super::{FixedPointOptions, graph_residual};
use crate::graph::{FeaturesView, GraphBatch};
use crate::lagrangian::Model;
use crate::numeric::{Scratch, largest_difference};
use crate::saddle::scatter;
use crate::transition::{
    Input, Iteration, PackedTransition, Transition, for_each_group, forward_all, split_rows,
};
use crate::{Matrix, Scalar};

/// The layers of a model with their weights, packed once for all graphs.
pub(crate) struct Layers<'a, S: Scalar> {
    pub(crate) model: &'a Model<S>,
    pub(crate) weights: &'a [S],
    packed: Vec<Packed<'a, S>>,
}

/// None where nothing is saved by it.
type Packed<'a, S> = Option<Box<dyn PackedTransition<S> + 'a>>;

impl<'a, S: Scalar> Layers<'a, S> {
    /// For batches whose features have the form of those of `batch`.
    pub(crate) fn new(model: &'a Model<S>, weights: &'a [S], batch: &GraphBatch<S>) -> Self {
        let none = Matrix::default();
        let packed = |(layer, transition): (usize, &'a dyn Transition<S>)| {
            let features = match layer {
                0 => batch.node_features().view(),
                _ => FeaturesView::Dense(&none),
            };
            transition.packed(&weights[model.transition_weights(layer)], features)
        };
        Self { model, weights, packed: model.transitions().enumerate().map(packed).collect() }
    }

    pub(crate) fn layer<'l>(
        &'l self,
        number: usize,
        below: Option<&'l Matrix<S>>,
        scratch: &'l Scratch<S>,
    ) -> Layer<'l, S> {
        let weights = &self.weights[self.model.transition_weights(number)];
        let (transition, packed) = (self.model.transition(number), self.packed[number].as_deref());
        Layer { transition, weights, packed, below, none: Matrix::default(), scratch }
    }
}

/// A transition with its weights, and what it reads.
pub(crate) struct Layer<'a, S: Scalar> {
    transition: &'a dyn Transition<S>,
    weights: &'a [S],
    packed: Option<&'a (dyn PackedTransition<S> + 'a)>,
    /// What it reads in place of the features of the graphs, above the first layer.
    below: Option<&'a Matrix<S>>,
    /// No states.
    none: Matrix<S>,
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

impl<S: Scalar> Layer<'_, S> {
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
        let features = self.below.map_or(batch.node_features().view(), FeaturesView::Dense);
        let alone = batch.share().is_none();
        match alone.then(|| self.iteration(batch, features)).flatten() {
            Some(iteration) => {
                converge_tiles(&*iteration, batch, &mut all, options, self.scratch, tell);
            }
            None => self.converge_together(batch, &mut all, options, tell),
        }
        all
    }

    /// All graphs step by step, each after the others.
    fn converge_together(
        &self,
        batch: &GraphBatch<S>,
        all: &mut Converged<S>,
        options: &FixedPointOptions,
        tell: &mut dyn FnMut(),
    ) {
        let graphs = batch.graphs();
        let mut active: Vec<usize> = (0..graphs).collect();
        let mut past: Vec<Anderson<S>> = vec![Anderson::new(options.window); graphs];
        let mut iterations = 0;
        // Whenever half of the graphs have converged, work goes on with the others alone.
        while !active.is_empty() && iterations < options.max_iter {
            let (part, mut x, mut f) = Part::take(batch, &active, self.below, all);
            let function = self.function(&part);
            let mut converged = vec![false; active.len()];
            while iterations < options.max_iter {
                iterations += 1;
                function(&x, &mut f);
                tell();
                for (i, residual) in part.step((&mut x, &f), &mut past, &mut converged, options) {
                    all.counts[active[i]] += 1;
                    all.residuals[active[i]] = residual;
                }
                let done = converged.iter().filter(|&&converged| converged).count();
                if done == active.len() || (2 * done >= active.len() && active.len() > 8) {
                    break;
                }
            }
            drop(function);
            part.put((x, f), all);
            let mut done = converged.iter();
            past.retain(|_| !done.next().copied().unwrap_or(true));
            let mut done = converged.iter();
            active.retain(|_| !done.next().copied().unwrap_or(true));
        }
        if !active.is_empty() {
            // Their states have moved since `f_a` was applied.
            let (part, x, mut f) = Part::take(batch, &active, self.below, all);
            self.function(&part)(&x, &mut f);
            for (i, &graph) in active.iter().enumerate() {
                all.residuals[graph] = graph_residual(&part.batch, i, &x, &f);
            }
            part.put((x, f), all);
        }
    }

    /// `f_a` of these graphs, as a function of their states.
    fn function<'p>(&'p self, part: &'p Part<'_, S>) -> Function<'p, S> {
        let (batch, below) = match part.batch.share() {
            None => (&*part.batch, part.below.as_deref()),
            Some(_) => (part.batch.own(), part.own_below.as_ref()),
        };
        let node_features = below.map_or(batch.node_features().view(), FeaturesView::Dense);
        match (self.iteration(batch, node_features), part.batch.share()) {
            (Some(iteration), None) => {
                Box::new(move |x, f| apply_everywhere(&*iteration, x, f, self.scratch))
            }
            (Some(iteration), Some(share)) => Box::new(move |x, f| {
                let own = share.own_rows(x);
                let mut f_own = self.scratch.matrix(own.rows(), own.cols());
                apply_everywhere(&*iteration, &own, &mut f_own, self.scratch);
                share.fill_rows(f_own.as_slice(), own.cols(), f.as_mut_slice());
            }),
            (None, _) => Box::new(move |x, f| {
                let read = (&*part.batch, part.below.as_deref());
                forward_all(self.transition, self.weights, read, x, f, self.scratch);
            }),
        }
    }

    /// `f_a` of graphs with these features, if it is packed.
    fn iteration<'p>(
        &'p self,
        batch: &'p GraphBatch<S>,
        node_features: FeaturesView<'p, S>,
    ) -> Option<Box<dyn Iteration<S> + 'p>> {
        let input = Input { node_features, ..Input::of(batch, &self.none) };
        self.packed?.iteration(input, self.scratch)
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
}

impl<'a, S: Scalar> Part<'a, S> {
    /// With their states, and room for `f_a` of them.
    fn take(
        batch: &'a GraphBatch<S>,
        graphs: &[usize],
        below: Option<&'a Matrix<S>>,
        all: &mut Converged<S>,
    ) -> (Self, Matrix<S>, Matrix<S>) {
        if graphs.len() == batch.graphs() {
            let (x, f) = (std::mem::take(&mut all.states), std::mem::take(&mut all.f_x));
            let (batch, below) = (Cow::Borrowed(batch), below.map(Cow::Borrowed));
            let own_below = own_rows(&batch, below.as_deref());
            return (Self { nodes: None, batch, below, own_below }, x, f);
        }
        let nodes: Vec<usize> = graphs.iter().flat_map(|&graph| batch.nodes_of(graph)).collect();
        let x = all.states.select(nodes.iter().copied());
        let f = Matrix::zeros(x.rows(), x.cols());
        let below = below.map(|below| Cow::Owned(below.select(nodes.iter().copied())));
        let batch = Cow::Owned(batch.select(graphs));
        (Self { batch, below, own_below: None, nodes: Some(nodes) }, x, f)
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

    /// The residual of every graph that has not converged before, and unless it has now, its next iterate.
    fn step(
        &self,
        (x, f): (&mut Matrix<S>, &Matrix<S>),
        past: &mut [Anderson<S>],
        converged: &mut [bool],
        options: &FixedPointOptions,
    ) -> Vec<(usize, f64)> {
        let (width, f) = (x.cols(), f.as_slice());
        let ranges: Vec<_> = (0..self.batch.graphs()).map(|g| self.batch.nodes_of(g)).collect();
        let rows = split_rows(x.as_mut_slice(), width, &ranges);
        let graphs = rows.into_iter().zip(past).zip(converged).zip(ranges).enumerate();
        let mut graphs: Vec<Moving<'_, S>> = graphs
            .filter(|(_, ((_, converged), _))| !**converged)
            .map(|(graph, (((x, past), converged), nodes))| {
                let f = &f[nodes.start * width..nodes.end * width];
                Moving { graph, x, f, past, converged, residual: f64::NAN }
            })
            .collect();
        let work = |graph: &mut Moving<'_, S>| self.step_of(graph, width, options);
        if self.batch.groups().ranges().len() == 1 {
            graphs.iter_mut().for_each(work);
        } else {
            for_each_group(&mut graphs, work);
        }
        graphs.into_iter().map(|graph| (graph.graph, graph.residual)).collect()
    }

    fn step_of(&self, graph: &mut Moving<'_, S>, width: usize, options: &FixedPointOptions) {
        let (x, f, beta) = (&mut *graph.x, graph.f, S::of(options.beta));
        let own = largest_difference(x, f).f64();
        graph.residual = self.batch.across().map_or(own, |share| share.largest(own));
        *graph.converged = graph.residual <= options.tol;
        if *graph.converged {
            return;
        }
        if graph.past.is_plain(graph.residual) {
            return plain_step(x, f, beta);
        }
        let parts = match self.batch.across() {
            None => Chunks::even(x.len()),
            Some(_) => Chunks::of_groups(self.batch.topology(), width),
        };
        graph.past.advance(x, f, beta, &parts);
    }
}

/// The rows that a rank owns, where it shares the batch with others.
fn own_rows<S: Scalar>(batch: &GraphBatch<S>, rows: Option<&Matrix<S>>) -> Option<Matrix<S>> {
    batch.share().zip(rows).map(|(share, rows)| share.own_rows(rows))
}

/// A graph on its way.
struct Moving<'a, S> {
    graph: usize,
    x: &'a mut [S],
    /// `f_a` of `x`.
    f: &'a [S],
    past: &'a mut Anderson<S>,
    converged: &'a mut bool,
    residual: f64,
}
