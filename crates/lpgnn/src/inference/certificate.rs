//! How far states can be from the fixed point, by their residual.

use crate::graph::{Features, GraphBatch, OneHot, SparseRows};
use crate::lagrangian::Model;
use crate::transition::{LocalTransition, Sensitivity};
use crate::{Error, Matrix, Scalar};

/// What residuals say of distances, for a model with these weights.
///
/// With the fixed point `X*` and `L < 1`, the [sensitivity](Sensitivity::states) of `f_a` to states,
///
/// ```text
/// ‖X − X*‖ ≤ ‖X − f_a(X)‖ + ‖f_a(X) − f_a(X*)‖ ≤ ‖X − f_a(X)‖ + L ‖X − X*‖      ⟹      ‖X − X*‖ ≤ ‖X − f_a(X)‖ / (1 − L)
/// ```
///
/// in the norm in which `f_a` contracts, `max_v ‖x_v‖ / w_v`. Layer `k` of a stack reads layer `k − 1`, which is not exact
/// either; with `Φ_k`, its sensitivity to what it reads, the errors `E_k` of the layers are
///
/// ```text
/// E_k ≤ (R_k + Φ_k E_{k−1}) / (1 − L_k)
/// ```
///
/// Of a residual only its largest component is known, so that `R_k` is `√s` times that, for `s` components, except for a
/// maximum, whose norm is that component. The bound covers what the iteration leaves, not the rounding of `f_a` itself.
#[derive(Debug)]
pub struct Certificate {
    /// Per layer: how sensitive it is, and the components of a state.
    layers: Vec<(Sensitivity, usize)>,
}

impl Certificate {
    /// None when nothing bounds the error: for transitions of your own that do not say how far a change reaches, layers
    /// that contract in different norms, and stacks that normalise what they hand on, which may enlarge an error.
    ///
    /// # Errors
    ///
    /// [`Error::ColumnOutOfRange`] never, as there are no rows.
    pub fn new<S: Scalar>(
        model: &Model<S>,
        weights: &[S],
        batch: &GraphBatch<S>,
    ) -> Result<Option<Self>, Error> {
        if model.layers() > 1 && !model.normalizations().is_empty() {
            return Ok(None);
        }
        let weights: Vec<f64> = weights.iter().map(|w| w.f64()).collect();
        let width = batch.node_features().width();
        let none = match batch.node_features() {
            Features::Dense(_) => Features::Dense(Matrix::zeros(0, width)),
            Features::OneHot(_) => Features::OneHot(OneHot::new(width, vec![])?),
            Features::Sparse(_) => {
                Features::Sparse(SparseRows::new(width, vec![0], vec![], vec![])?)
            }
        };
        let mut layers: Vec<(Sensitivity, usize)> = vec![];
        for (number, transition) in model.transitions().enumerate() {
            let below = Features::Dense(Matrix::zeros(0, transition.state_dim()));
            let features = if number == 0 { &none } else { &below };
            let weights = &weights[model.transition_weights(number)];
            let Some(local) = transition.local(weights, features.view()) else { return Ok(None) };
            let sensitivity = LocalTransition::sensitivity(&*local);
            if layers.first().is_some_and(|(first, _)| first.weighing != sensitivity.weighing) {
                return Ok(None);
            }
            layers.push((sensitivity, transition.state_dim()));
        }
        Ok(Some(Self { layers }))
    }

    /// How far the states of every graph are from the fixed point at most, `max_v ‖x_v − x*_v‖` over nodes and layers, given
    /// its residual, `max abs(x − f_a)`; infinite where `f_a` is not known to contract.
    pub fn distances<S: Scalar>(&self, batch: &GraphBatch<S>, residuals: &[f64]) -> Vec<f64> {
        residuals.iter().enumerate().map(|(graph, &r)| self.distance(batch, graph, r)).collect()
    }

    fn distance<S: Scalar>(&self, batch: &GraphBatch<S>, graph: usize, residual: f64) -> f64 {
        let topology = batch.topology();
        let (mut below, mut largest) = (0.0_f64, 0.0_f64);
        for (sensitivity, components) in &self.layers {
            let weighing = sensitivity.weighing;
            let (mut states, mut features, mut heaviest) = (0.0_f64, 0.0_f64, 1.0_f64);
            for v in batch.nodes_of(graph) {
                let degree =
                    if topology.neighbours().is_isolated(v) { 0 } else { topology.degree(v) };
                let normalized =
                    if weighing.reads_normalized() { normalized_sum(batch, v) } else { 0.0 };
                states = states.max(sensitivity.states(degree, normalized, 1.0));
                features = features.max(sensitivity.features(degree, normalized, 1.0));
                heaviest = heaviest.max(weighing.weight(degree));
            }
            if states >= 1.0 {
                return f64::INFINITY;
            }
            let parts = if weighing.is_largest_entry() { 1.0 } else { (*components as f64).sqrt() };
            below = (parts * residual + features * below) / (1.0 - states);
            largest = largest.max(heaviest * below);
        }
        largest
    }
}

/// How far the states of every graph are from the fixed point at most, given its residual; infinite where nothing bounds
/// that, and for graphs in parts.
pub(crate) fn distances<S: Scalar>(
    model: &Model<S>,
    weights: &[S],
    batch: &GraphBatch<S>,
    residuals: &[f64],
) -> Result<Vec<f64>, Error> {
    let certificate = match batch.across() {
        None => Certificate::new(model, weights, batch)?,
        Some(_) => None,
    };
    let none = || vec![f64::INFINITY; residuals.len()];
    Ok(certificate.map_or_else(none, |known| known.distances(batch, residuals)))
}

/// `Σ_u 1/√(de[v] de[u])`
fn normalized_sum<S: Scalar>(batch: &GraphBatch<S>, v: usize) -> f64 {
    let topology = batch.topology();
    let root = |v: usize| 1.0 / (topology.degree(v).max(1) as f64).sqrt();
    topology.neighbours().of(v).iter().map(|&u| root(u as usize)).sum::<f64>() * root(v)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::constraint::ConstraintFunction;
    use crate::data::{Encoding, FeatureOptions, FeatureSource};
    use crate::inference::{FixedPointOptions, converge};
    use crate::numeric::{NormMemory, Scratch, uniform};
    use crate::train::{ModelConfig, ModelDims};
    use crate::transition::Degrees;

    /// The states after a few iterations are no farther from those after very many than they are said to be.
    #[test]
    fn no_state_is_farther_from_the_fixed_point_than_it_is_said_to_be() {
        let set = crate::data::generate::CliqueConfig { graphs: 6, ..Default::default() };
        let (set, scratch) = (set.generate(3).unwrap(), Scratch::new());
        let options = FeatureOptions { source: FeatureSource::Degree, ..Default::default() };
        let batch: GraphBatch<f64> = Encoding::new(&set, &options).unwrap().batch(&set).unwrap();
        let features = batch.node_features().width();
        for transition in
            ["gnn-sum", "gnn-mean", "gnn-normalized", "sage-max", "gin", "gcn-mean", "gcn"]
        {
            for layers in 1..=3 {
                let config = ModelConfig {
                    transition: transition.into(),
                    layers,
                    constraint: ConstraintFunction::Linear,
                    ..ModelConfig::default()
                };
                let level = crate::graph::Level::Node;
                let dims = ModelDims { features, edge_features: 0, outputs: 2, level };
                let model = config.build::<f64>(dims).unwrap();
                let mut weights = model.start(0, &mut uniform(layers as u64)).weights;
                let degrees = Degrees::of(batch.topology());
                for (layer, f) in model.transitions().enumerate() {
                    let weights = &mut weights[model.transition_weights(layer)];
                    assert!(f.contract(weights, degrees, 0.8, &mut NormMemory::default()));
                }
                let found = |tol, max_iter| {
                    let options =
                        FixedPointOptions { tol, max_iter, fall_back: None, ..Default::default() };
                    converge(&model, &weights, &batch, &options, &scratch)
                };
                let (early, late) = (found(1e-2, 500), found(1e-14, 2000));
                let certificate = Certificate::new(&model, &weights, &batch).unwrap().unwrap();
                let bounds = certificate.distances(&batch, &early.residuals);
                for (graph, bound) in bounds.into_iter().enumerate() {
                    let mut distance = 0.0_f64;
                    for (x, exact) in early.states.iter().zip(&late.states) {
                        for v in batch.nodes_of(graph) {
                            let squares =
                                x.row(v).iter().zip(exact.row(v)).map(|(x, y)| (x - y).powi(2));
                            distance = distance.max(squares.sum::<f64>().sqrt());
                        }
                    }
                    let what = format!("{transition}, {layers} layers, graph {graph}");
                    assert!(late.residuals[graph] < 1e-12, "{what}: {:e}", late.residuals[graph]);
                    assert!(
                        bound.is_finite() && distance <= bound + 1e-12,
                        "{what}: {distance} > {bound}"
                    );
                    // It is a bound, not infinity in disguise.
                    assert!(
                        layers > 1 || bound < 1e3 * distance.max(1e-4),
                        "{what}: {bound}, {distance}"
                    );
                }
            }
        }
    }
}
