use super::prepared::{PackedWeights, Prepared};
use super::{Aggregation, EdgeNetwork};
use crate::graph::FeaturesView;
use crate::numeric::Scratch;
use crate::parameters::Role;
use crate::transition::local::{NetworkSizes, reach};
use crate::transition::{Input, LocalTransition, Rounding, Sensitivity, Sizes, Weighing};
use crate::{Matrix, Scalar};

/// An edge network with its weights, for a few nodes at a time.
#[derive(Debug)]
pub(super) struct LocalEdgeNetwork<S: Scalar> {
    network: EdgeNetwork,
    packed: PackedWeights<'static, S>,
    sensitivity: Sensitivity,
    sizes: NetworkSizes,
}

impl<S: Scalar> LocalEdgeNetwork<S> {
    pub(super) fn new(
        network: &EdgeNetwork,
        weights: &[S],
        node_features: FeaturesView<'_, S>,
    ) -> Self {
        let layout = &network.layout;
        let of = reach(layout, weights, network.aggregation == Aggregation::Max);
        let features = of(Role::Input);
        Self {
            packed: PackedWeights::new(network, weights, node_features).into_owned(),
            sensitivity: Sensitivity {
                neighbour: of(Role::NeighbourState)[0],
                own: of(Role::OwnState)[0],
                neighbour_features: features[0],
                own_features: features[1],
                weighing: Weighing::Pairs(network.aggregation),
            },
            sizes: NetworkSizes::new(layout, &network.layers, weights),
            network: network.clone(),
        }
    }
}

impl<S: Scalar> LocalTransition<S> for LocalEdgeNetwork<S> {
    fn forward(&self, input: Input<'_, S>, f_x: &mut Matrix<S>, scratch: &Scratch<S>) {
        let prepared = Prepared::lent(&self.network, &self.packed, input, scratch);
        let (nodes, rows, width) =
            (input.topology.nodes(), input.topology.rows(), prepared.first());
        let mut p = scratch.take(rows * width);
        let mut q = scratch.take(nodes * width);
        prepared.project_sources(0..rows, &mut p);
        prepared.project_targets(0..nodes, &mut q);
        prepared.forward_blocks(0..nodes, 0, &p, &q, f_x.as_mut_slice());
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
        Rounding { error: total * error, size }
    }
}
