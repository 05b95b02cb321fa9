use super::prepared::{PackedWeights, Prepared};
use super::{A, Aggregation, B, C, D, EdgeNetwork};
use crate::Matrix;
use crate::graph::FeaturesView;
use crate::numeric::{Scratch, padded};
use crate::parameters::Role;
use crate::transition::local::{NetworkSizes, both, reach};
use crate::transition::{Input, LocalTransition, Rounding, Sensitivity, Sizes, Weighing};

/// An edge network with its weights, for a few nodes at a time.
///
/// The message of a node is `p_u = A x_u + B l_u`.
#[derive(Debug)]
pub(super) struct LocalEdgeNetwork {
    network: EdgeNetwork,
    packed: PackedWeights<'static, f64>,
    sensitivity: Sensitivity,
    sizes: NetworkSizes,
}

impl LocalEdgeNetwork {
    pub(super) fn new(
        network: &EdgeNetwork,
        weights: &[f64],
        node_features: FeaturesView<'_, f64>,
    ) -> Self {
        let layout = &network.layout;
        let largest_entry = network.aggregation == Aggregation::Max;
        let of = reach(layout, weights, largest_entry);
        let (neighbour, own, features) =
            (of(Role::NeighbourState)[0], of(Role::OwnState)[0], of(Role::Input));
        let message = of(Role::Hidden).into_iter().product();
        let together = |blocks| message * both(layout, weights, blocks, largest_entry);
        Self {
            packed: PackedWeights::new(network, weights, node_features).into_owned(),
            sensitivity: Sensitivity {
                message,
                neighbour,
                own,
                neighbour_features: features[0],
                own_features: features[1],
                both: together((A, C)).min(neighbour + own),
                both_features: together((B, D)).min(features[0] + features[1]),
                weighing: Weighing::Pairs(network.aggregation),
            },
            sizes: NetworkSizes::new(layout, &network.layers, weights),
            network: network.clone(),
        }
    }
}

impl LocalTransition for LocalEdgeNetwork {
    fn message_dim(&self) -> usize {
        padded(self.network.layers[0].0)
    }

    fn messages(
        &self,
        states: &Matrix<f64>,
        node_features: FeaturesView<'_, f64>,
        messages: &mut Matrix<f64>,
    ) {
        self.packed.project_sources(states.as_slice(), node_features, messages.as_mut_slice());
    }

    fn forward(
        &self,
        input: Input<'_, f64>,
        messages: &Matrix<f64>,
        f_x: &mut Matrix<f64>,
        scratch: &Scratch<f64>,
    ) {
        let prepared = Prepared::lent(&self.network, &self.packed, input, scratch);
        let nodes = 0..input.topology.nodes();
        let mut q = scratch.take(nodes.len() * prepared.first());
        prepared.project_targets(nodes.clone(), &mut q);
        let tables = (prepared.table(messages.as_slice(), 0), prepared.table(&q, 0));
        prepared.forward_blocks(nodes, tables, f_x.as_mut_slice());
    }

    fn sensitivity(&self) -> Sensitivity {
        self.sensitivity
    }

    fn rounding(&self, sizes: Sizes, degree: usize) -> Rounding {
        let (pairs, behind) = (degree.max(1), self.network.layers_per_pair() - 1);
        let total = match self.network.aggregation {
            Aggregation::Sum => pairs as f64,
            // Σ_u 1/√(de[v] de[u]) ≤ √de[v]
            Aggregation::NormalizedSum => (pairs as f64).sqrt(),
            Aggregation::Mean | Aggregation::Max => 1.0,
        };
        let Rounding { error, size } =
            self.sizes.rounding(sizes, (1.0, 0.0), Some((behind, pairs)));
        let kept = self.sensitivity.message * sizes.unit * sizes.message;
        Rounding { error: total * (error + kept), size }
    }
}
