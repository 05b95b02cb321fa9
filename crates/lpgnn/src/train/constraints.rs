//! How many nodes and graphs meet the constraints.

use crate::evaluate::{Histogram, Quantiles};
use crate::graph::{GraphBatch, Share};
use crate::lagrangian::Model;
use crate::numeric::{Scratch, largest_difference, worse};
use crate::transition::for_each_group;
use crate::{Matrix, Scalar};

/// The nodes and graphs whose trained states meet `x = f_a(x)`.
///
/// The states are those after an update, `f_a` has the weights that the update was taken from: the step of the
/// weights, which comes last, moves `f_a` away from states that have met it.
///
/// A node is within the tolerance if, in every layer,
///
/// ```text
/// max_i abs(x_i − f_a(x)_i) ≤ 0.01 · max(1, max_i abs(x_i))
/// ```
///
/// Rectified units have states of any size, so residuals are compared with the size of the state.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct ConstraintReport {
    /// Number of nodes.
    pub nodes: usize,
    /// Number of nodes within the tolerance.
    pub nodes_within: usize,
    /// Number of graphs that were looked at.
    pub graphs: usize,
    /// Number of training graphs, if not all of them were looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampled_from: Option<usize>,
    /// How many graphs are to be looked at, at least.
    #[serde(skip)]
    least: usize,
    /// Number of graphs of which at least 99 % of the nodes are within the tolerance.
    pub graphs_within: usize,
    /// The distribution of `max abs(x − f_a)` over nodes.
    #[serde(default)]
    pub residuals: Option<Quantiles>,
    /// What these are made of, until all graphs are there.
    #[serde(skip)]
    all: Vec<f64>,
    /// The graphs that are not, those with the largest residuals first; at most five.
    pub worst: Vec<GraphResidual>,
}

/// A graph that does not meet the constraints.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct GraphResidual {
    /// Its index in the data.
    pub graph: usize,
    /// Its name, in the record of a run on data that have names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Number of its nodes outside the tolerance.
    pub nodes_outside: usize,
    /// The largest `abs(x − f_a)` of its nodes.
    #[serde(with = "crate::nan::number")]
    pub residual: f64,
}

/// Largest residual of a node that meets the constraints, relative to the size of its state.
const TOLERANCE: f64 = 1e-2;
/// One in so many nodes of a graph, and one in so many graphs, may be outside.
const ONE_IN: usize = 100;
/// A residual so small counts as none.
const NONE: f64 = 1e-12;
/// Nodes that one thread looks at.
const NODES: usize = 1 << 10;
/// Of how many nodes of a graph in parts the distribution is made, at most.
const SHOWN: usize = 1 << 16;
/// How many graphs are named.
const NAMED: usize = 5;

impl ConstraintReport {
    /// Whether at least 99 % of the graphs are within the tolerance: of fewer than 100 graphs, all.
    pub fn met(&self) -> bool {
        enough(self.graphs_within, self.graphs)
    }

    /// None yet, of at least so many of all graphs.
    pub(super) fn of_some(least: usize, all: usize) -> Self {
        Self { least, sampled_from: Some(all), ..Self::default() }
    }

    /// Whether another batch is to be looked at.
    pub(super) fn wants_more(&self) -> bool {
        self.graphs < self.least
    }

    /// Adds the graphs of a batch, whose indices in the data are `indices`.
    pub(super) fn add<S: Scalar>(
        &mut self,
        model: &Model<S>,
        batch: &GraphBatch<S>,
        (weights, states): (&[S], &[Matrix<S>]),
        indices: impl Iterator<Item = usize>,
        scratch: &Scratch<S>,
    ) {
        let f_x = model.f_x(model.layers(), weights, batch, states, scratch).f_x;
        let layers: Vec<(&Matrix<S>, &Matrix<S>)> =
            states.iter().zip(f_x.iter().map(|f| &**f)).collect();
        let mut found = vec![(true, 0.0); batch.nodes()];
        let mut parts: Vec<_> = (0..).step_by(NODES).zip(found.chunks_mut(NODES)).collect();
        for_each_group(&mut parts, |(first, found)| {
            (*first..).zip(found.iter_mut()).for_each(|(v, found)| *found = residual(&layers, v));
        });
        if let Some(share) = batch.across() {
            return self.add_parts(share, &found);
        }
        for (graph, index) in indices.enumerate() {
            self.add_graph(index, found[batch.nodes_of(graph)].iter().copied());
        }
    }

    /// Adds a graph in parts, given what is found of own nodes. Of its residuals, some that are evenly spread are kept.
    fn add_parts(&mut self, share: &Share, found: &[(bool, f64)]) {
        let within = found.iter().filter(|(within, _)| *within).count();
        let largest =
            share.largest(found.iter().fold(0.0, |max, (_, residual)| worse(max, *residual)));
        let some: Vec<f64> = share.sample(SHOWN).map(|row| found[row].1).collect();
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "they are counts"
        )]
        let within = share.concatenate(&[within as f64]).iter().sum::<f64>() as usize;
        self.all.extend(share.concatenate(&some));
        self.add_counts(0, share.whole_nodes(), within, largest);
    }

    /// When all graphs are there; and the distribution of the logarithms of residuals.
    pub(super) fn finish(mut self) -> (Self, Option<Histogram>) {
        let all = std::mem::take(&mut self.all);
        self.sampled_from = self.sampled_from.filter(|&all| all > self.graphs);
        self.least = 0;
        // What is not a number stays so.
        let logarithm = |residual: &f64| residual.clamp(NONE, f64::INFINITY).log10();
        let logarithms = Histogram::of(all.iter().map(logarithm));
        self.residuals = Quantiles::of(all.into_iter());
        (self, logarithms)
    }

    /// Adds a graph: whether each of its nodes is within the tolerance, and its residual.
    fn add_graph(&mut self, graph: usize, nodes: impl Iterator<Item = (bool, f64)>) {
        let (mut count, mut within, mut largest) = (0, 0, 0.0);
        for (is_within, residual) in nodes {
            count += 1;
            within += usize::from(is_within);
            largest = worse(largest, residual);
            self.all.push(residual);
        }
        self.add_counts(graph, count, within, largest);
    }

    /// Adds a graph of `count` nodes.
    fn add_counts(&mut self, graph: usize, count: usize, within: usize, largest: f64) {
        self.nodes += count;
        self.nodes_within += within;
        self.graphs += 1;
        if enough(within, count) {
            self.graphs_within += 1;
        } else {
            let nodes_outside = count - within;
            self.worst.push(GraphResidual { graph, name: None, nodes_outside, residual: largest });
            // A residual that is not a number is the largest; of equal ones the first graph counts.
            let key =
                |of: &GraphResidual| if of.residual.is_nan() { f64::INFINITY } else { of.residual };
            self.worst.sort_by(|a, b| key(b).total_cmp(&key(a)).then(a.graph.cmp(&b.graph)));
            self.worst.truncate(NAMED);
        }
    }
}

/// Whether at most one in a hundred is missing.
fn enough(within: usize, all: usize) -> bool {
    (all - within) * ONE_IN <= all
}

/// Whether a node is within the tolerance in all layers, and its largest residual.
fn residual<S: Scalar>(layers: &[(&Matrix<S>, &Matrix<S>)], node: usize) -> (bool, f64) {
    let (mut within, mut largest) = (true, 0.0);
    for (x, f) in layers {
        let (x, f) = (x.row(node), f.row(node));
        let residual = largest_difference(x, f).f64();
        let size = x.iter().fold(S::ONE, |size, x| x.abs().max(size)).f64();
        // False for NaN, and for states so large that no tolerance makes sense.
        within &= residual <= TOLERANCE * size && size.is_finite();
        largest = worse(largest, residual);
    }
    (within, largest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_graphs_far_outside_are_not_hidden_by_the_mean() {
        let mut report = ConstraintReport::default();
        for graph in 0..50 {
            let far = graph == 17 || graph == 30;
            let node = if far { (false, graph as f64) } else { (true, 1e-5) };
            report.add_graph(graph, [(true, 1e-5), node].into_iter());
        }
        assert_eq!((report.nodes, report.nodes_within), (100, 98));
        assert_eq!((report.graphs, report.graphs_within), (50, 48));
        assert_eq!(report.worst.iter().map(|of| of.graph).collect::<Vec<_>>(), [30, 17]);
        assert!(!report.met(), "the mean residual is {}", 47.0 / 100.0);
    }

    #[test]
    fn one_node_in_a_hundred_may_be_outside() {
        for (outside, met) in [(0, true), (10, true), (11, false)] {
            let mut report = ConstraintReport::default();
            report.add_graph(0, (0..1000).map(|node| (node >= outside, 1.0)));
            assert_eq!(report.met(), met, "{outside}");
        }
    }

    #[test]
    fn a_residual_counts_relative_to_its_own_state() {
        let x =
            Matrix::from_rows(&[vec![1000.0, 0.0], vec![0.5, 0.0], vec![f64::NAN, 0.0]]).unwrap();
        let f = Matrix::from_rows(&[vec![1001.0, 9.0], vec![0.5, 0.1], vec![0.0, 0.0]]).unwrap();
        let within = |node| residual(&[(&x, &f)], node).0;
        assert!(within(0) && !within(1) && !within(2));
    }
}
