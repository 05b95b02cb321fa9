//! Layers that are trained one after the other, each with a read-out of its own on what the one below has found.

use std::sync::Arc;

use crate::lagrangian::Model;
use crate::registry::Registry;
use crate::run::{RunConfig, Setup};
use crate::{Error, Matrix, Scratch};

/// A stage that is done: what the next one needs of it.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Stage {
    /// `θ`, which no later stage moves.
    #[serde(with = "crate::nan::numbers")]
    pub(super) weights: Vec<f64>,
    /// Seconds it took.
    pub(super) seconds: f64,
}

impl Stage {
    pub(super) fn new(weights: &[f32], seconds: f64) -> Self {
        Self { weights: weights.iter().copied().map(f64::from).collect(), seconds }
    }

    /// The setup of the stage above: nodes have, behind their features, `f_a(x)` at the fixed point of this one.
    ///
    /// ```text
    /// l_v^(k+1) = [l_v^(k); f_{a,v}(X^(k))]
    /// ```
    ///
    /// # Errors
    ///
    /// What is wrong with the functions on these features.
    #[allow(clippy::cast_possible_truncation, reason = "they were single before")]
    pub(super) fn above(
        &self,
        setup: Setup,
        registry: &Registry<f32>,
        config: &RunConfig,
    ) -> Result<Setup, Error> {
        let weights: Vec<f32> = self.weights.iter().map(|&w| w as f32).collect();
        let (below, inference) = (&setup.model, &setup.plan.config().inference);
        let scratch = Scratch::new();
        let data = setup.data.clone().with_more_features(|batch| {
            let found = inference.states(below, &weights, batch, &scratch);
            side_by_side(below, &found.f_x)
        })?;
        let model = Arc::new(config.model.build_with(registry, data.dims())?);
        Ok(Setup { data, model, ..setup })
    }
}

/// What the read-out could read, a row per node.
fn side_by_side(model: &Model<f32>, f_x: &[Matrix<f32>]) -> Matrix<f32> {
    let layers = &f_x[model.read_layers()];
    let rows = layers.first().map_or(0, Matrix::rows);
    let mut all = Matrix::zeros(rows, layers.iter().map(Matrix::cols).sum());
    for v in 0..rows {
        let values = layers.iter().flat_map(|layer| layer.row(v));
        all.row_mut(v).iter_mut().zip(values).for_each(|(to, &value)| *to = value);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::generate::CliqueConfig;

    #[test]
    fn a_stage_reads_the_features_and_what_the_one_below_has_found() {
        let dataset = CliqueConfig { graphs: 6, ..CliqueConfig::default() }.generate(1).unwrap();
        let mut config = RunConfig::for_data("clique", &dataset, &[]);
        (config.model.layers, config.model.state_dim) = (2, 4);
        let (below, registry) = (Setup::new(&config, &dataset).unwrap(), Registry::default());
        let weights: Vec<f32> =
            (0..below.model.weights()).map(|i| (i as f32).sin() / 9.0).collect();
        let batch = below.data.training_graphs().clone();
        let inference = &below.plan.config().inference;
        let found = inference.states(&below.model, &weights, &batch, &Scratch::new());
        let above = Stage::new(&weights, 0.0).above(below, &registry, &config).unwrap();
        let (own, read) = (batch.node_features().width(), above.data.training_graphs());
        // The read-out reads the last layer.
        assert_eq!(read.node_features().width(), own + 4);
        for v in 0..read.nodes() {
            let row: Vec<(usize, f32)> = read.node_features().entries(v).collect();
            let features = batch.node_features().entries(v);
            let states = found.f_x[1].row(v).iter().copied();
            let expected: Vec<(usize, f32)> = features.chain((own..).zip(states)).collect();
            assert_eq!(row, expected, "node {v}");
        }
    }
}
