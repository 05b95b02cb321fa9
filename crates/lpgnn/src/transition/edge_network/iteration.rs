use std::ops::Range;

use super::kernels::Table;
use super::prepared::{PackedWeights, Prepared};
use super::tiles::tiles;
use super::{A, B, C, D, EdgeNetwork};
use crate::activation::Activation;
use crate::graph::FeaturesView;
use crate::numeric::{Factors, Finish, Packed, Scratch, Spare, padded, product};
use crate::transition::{
    FeatureWeights, Input, Iteration, PackedTransition, for_each_group, split_rows,
};
use crate::{Matrix, Scalar};

/// An edge network with the same weights for one batch after another, and for one `X` after another: both projections of a node
///
/// ```text
/// [p_v  q_v] = [A  C] x_v + [B  D] l_v + [0  b]
/// ```
///
/// are one product and lie beside each other.
pub(super) struct PackedEdgeNetwork<'a, S: Scalar> {
    network: &'a EdgeNetwork,
    /// `[A  C]`
    states: Packed<S>,
    /// `[B  D]`
    features: FeatureWeights<'static, S>,
    /// `[0  b]`
    bias: Vec<S>,
    /// All that follows.
    behind: PackedWeights<'a, S>,
}

impl<'a, S: Scalar> PackedEdgeNetwork<'a, S> {
    pub(super) fn new(
        network: &'a EdgeNetwork,
        weights: &'a [S],
        node_features: FeaturesView<'_, S>,
    ) -> Self {
        let behind = PackedWeights::behind_projections(network, weights);
        let both = 2 * behind.bias.len();
        let of_states = beside(network, [A, C], network.state_dim, weights);
        let of_features = beside(network, [B, D], network.feature, weights);
        let mut bias = vec![S::ZERO; behind.bias.len()];
        bias.extend_from_slice(&behind.bias);
        Self {
            network,
            states: Packed::new(&of_states, network.state_dim, both),
            features: FeatureWeights::of_matrix(of_features, network.feature, both, node_features),
            bias,
            behind,
        }
    }
}

/// Two matrices of `rows` rows beside each other, both padded; one that is not there is zero.
fn beside<S: Scalar>(
    network: &EdgeNetwork,
    blocks: [usize; 2],
    rows: usize,
    weights: &[S],
) -> Vec<S> {
    let width = network.layers[0].0;
    let mut all = vec![S::ZERO; rows * 2 * padded(width)];
    for (i, block) in blocks.into_iter().enumerate() {
        let from = network.layout.of(block, weights).chunks_exact(width.max(1));
        for (to, from) in all.chunks_exact_mut(2 * padded(width).max(1)).zip(from) {
            to[i * padded(width)..][..width].copy_from_slice(from);
        }
    }
    all
}

impl<S: Scalar> PackedTransition<S> for PackedEdgeNetwork<'_, S> {
    /// None where graphs are larger than a group: then all that is kept would be read from memory.
    fn iteration<'a>(
        &'a self,
        input: Input<'a, S>,
        scratch: &'a Scratch<S>,
    ) -> Option<Box<dyn Iteration<S> + 'a>> {
        if !input.topology.groups().whole_graphs() {
            return None;
        }
        let (ranges, both) = (input.topology.groups().ranges(), self.bias.len());
        let mut features = scratch.take(input.topology.nodes() * both);
        let mut groups: Vec<_> =
            ranges.iter().zip(split_rows(&mut features, both, ranges)).collect();
        for_each_group(&mut groups, |(range, rows)| {
            if let Some(l) = self.features.factors(input.node_features, range.start) {
                let bias = Finish::Activate(Activation::Identity, &self.bias);
                return product(range.len(), &[l], rows, both, bias);
            }
            rows.chunks_exact_mut(both.max(1)).for_each(|row| row.copy_from_slice(&self.bias));
            self.features.add(input.node_features, range.start..range.end, rows);
        });
        drop(groups);
        let prepared = Prepared::lent(self.network, &self.behind, input, scratch);
        Some(Box::new(EdgeIteration { states: &self.states, features, prepared }))
    }
}

/// With the same features: what they contribute to the projections is computed once.
struct EdgeIteration<'a, S: Scalar> {
    states: &'a Packed<S>,
    /// `[B  D] l_v + [0  b]` of all nodes.
    features: Spare<'a, S>,
    prepared: Prepared<'a, S>,
}

impl<S: Scalar> Iteration<S> for EdgeIteration<'_, S> {
    fn apply(&self, nodes: &[Range<usize>], states: &Matrix<S>, f_x: &mut Matrix<S>) {
        let (topology, state) = (self.prepared.input.topology, states.cols());
        let ranges = topology.groups().ranges();
        let rows = split_rows(f_x.as_mut_slice(), state, ranges);
        let mut groups: Vec<_> = ranges.iter().zip(rows).collect();
        for_each_group(&mut groups, |(range, f_x)| {
            for nodes in nodes {
                let nodes = nodes.start.max(range.start)..nodes.end.min(range.end);
                for tile in tiles(topology, nodes, self.prepared.first()) {
                    let rows = (tile.start - range.start) * state..(tile.end - range.start) * state;
                    self.tile(tile, states, &mut f_x[rows]);
                }
            }
        });
    }
}

impl<S: Scalar> EdgeIteration<'_, S> {
    /// Of some whole graphs.
    fn tile(&self, nodes: Range<usize>, states: &Matrix<S>, f_x: &mut [S]) {
        let (state, width) = (states.cols(), self.prepared.first());
        let x = &states.as_slice()[nodes.start * state..nodes.end * state];
        let features = &self.features[nodes.start * 2 * width..nodes.end * 2 * width];
        // Where it starts, there are no states to be multiplied.
        let is_zero = |x: &S| x.abs() <= S::ZERO;
        let are_zero = |x: &[S]| x.iter().fold(true, |all, x| all & is_zero(x));
        let starts = x.first().is_none_or(is_zero) && x.chunks(64).all(are_zero);
        let mut sums = self.prepared.scratch.take(if starts { 0 } else { features.len() });
        let both = if starts {
            features
        } else {
            let x = Factors { a: x, stride: state, b: self.states };
            product(nodes.len(), &[x], &mut sums, 2 * width, Finish::Plus(features));
            &sums
        };
        let table = |rows| Table { rows, base: nodes.start, width, stride: 2 * width };
        let tables = (table(both), table(both.get(width..).unwrap_or_default()));
        self.prepared.forward_blocks(nodes, tables, f_x);
    }
}
