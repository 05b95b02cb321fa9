use std::ops::Range;

use super::EdgeNetwork;
use super::prepared::{PackedWeights, Prepared};
use super::tiles::tiles;
use crate::numeric::{Scratch, Spare};
use crate::transition::{Input, Iteration, for_each_group, split_rows};
use crate::{Matrix, Scalar};

/// An edge network on the same small graphs with the same features, again and again: weights are packed once, and of the
/// projections
///
/// ```text
/// p_u = A x_u + B l_u          q_v = C x_v + (D l_v + b)
/// ```
///
/// what the features contribute is computed once.
pub(super) struct EdgeIteration<'a, S: Scalar> {
    network: &'a EdgeNetwork,
    packed: PackedWeights<'a, S>,
    /// `B l_u` and `D l_v + b` of all nodes.
    features: [Spare<'a, S>; 2],
    input: Input<'a, S>,
    scratch: &'a Scratch<S>,
}

impl<'a, S: Scalar> EdgeIteration<'a, S> {
    /// None where graphs are larger than a group: then all that is kept would be read from memory.
    pub(super) fn new(
        network: &'a EdgeNetwork,
        weights: &'a [S],
        input: Input<'a, S>,
        scratch: &'a Scratch<S>,
    ) -> Option<Self> {
        if !input.topology.groups().whole_graphs() {
            return None;
        }
        let packed = PackedWeights::new(network, weights, input.node_features);
        let features = {
            let prepared = Prepared::lent(network, &packed, input, scratch);
            let (ranges, width) = (input.topology.groups().ranges(), prepared.first());
            let room = input.topology.nodes() * width;
            let mut features = [scratch.take(room), scratch.take(room)];
            let [p, q] = features.each_mut().map(|rows| split_rows(rows, width, ranges));
            let mut groups: Vec<_> = ranges.iter().cloned().zip(p.into_iter().zip(q)).collect();
            for_each_group(&mut groups, |(range, (p, q))| {
                prepared.project_features(range.clone(), p, q);
            });
            drop(groups);
            features
        };
        Some(Self { network, packed, features, input, scratch })
    }
}

impl<S: Scalar> Iteration<S> for EdgeIteration<'_, S> {
    fn apply(&self, states: &Matrix<S>, f_x: &mut Matrix<S>) {
        let input = Input { states, ..self.input };
        let prepared = Prepared::lent(self.network, &self.packed, input, self.scratch);
        let (ranges, width) = (input.topology.groups().ranges(), prepared.first());
        let state = self.network.state_dim;
        let rows = split_rows(f_x.as_mut_slice(), state, ranges);
        let mut groups: Vec<_> = ranges.iter().cloned().zip(rows).collect();
        for_each_group(&mut groups, |(range, f_x)| {
            for tile in tiles(input.topology, range.clone(), width) {
                let rows = |of: &Range<usize>, width: usize| of.start * width..of.end * width;
                let [mut p, mut q] = self.features.each_ref().map(|features| {
                    let mut of_tile = self.scratch.take(tile.len() * width);
                    of_tile.copy_from_slice(&features[rows(&tile, width)]);
                    of_tile
                });
                prepared.add_states(tile.clone(), &mut p, &mut q);
                let own = tile.start - range.start..tile.end - range.start;
                let f_x = &mut f_x[rows(&own, state)];
                prepared.forward_blocks(tile.clone(), tile.start, &p, &q, f_x);
            }
        });
    }
}
