use std::ops::Range;

use super::kernels::Table;
use super::prepared::{PackedWeights, Prepared};
use super::tiles::tiles;
use super::{A, B, C, D, EdgeNetwork};
use crate::Scalar;
use crate::activation::Activation;
use crate::graph::FeaturesView;
use crate::numeric::{Factors, Finish, Packed, Scratch, Spare, padded, product};
use crate::transition::{
    FeatureWeights, Input, Iteration, PackedTransition, for_each_group, split_rows,
};

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
    fn tiles(&self) -> Vec<Range<usize>> {
        let topology = self.prepared.input.topology;
        tiles(topology, 0..topology.nodes(), self.prepared.first()).collect()
    }

    fn room(&self, nodes: usize) -> usize {
        2 * nodes * self.prepared.first() + self.prepared.room_for_sums(nodes)
    }

    fn apply(&self, nodes: Range<usize>, states: &[S], f_x: &mut [S], room: &mut [S]) {
        let (state, width) = (self.prepared.network.state_dim, self.prepared.first());
        let features = &self.features[nodes.start * 2 * width..nodes.end * 2 * width];
        // Where it starts, there are no states to be multiplied.
        let is_zero = |x: &S| x.abs() <= S::ZERO;
        let are_zero = |x: &[S]| x.iter().fold(true, |all, x| all & is_zero(x));
        let starts = states.first().is_none_or(is_zero) && states.chunks(64).all(are_zero);
        let (projections, sums) = room.split_at_mut(features.len());
        let both = if starts {
            features
        } else {
            let x = Factors { a: states, stride: state, b: self.states };
            product(nodes.len(), &[x], projections, 2 * width, Finish::Plus(features));
            projections
        };
        let table = |rows| Table { rows, base: nodes.start, width, stride: 2 * width };
        let tables = (table(both), table(both.get(width..).unwrap_or_default()));
        self.prepared.forward_blocks_in(sums, nodes, tables, f_x);
    }
}
