//! Which functions, of which size.

use super::data::largest_degree;
use crate::activation::Activation;
use crate::data::{Dataset, Level};
use crate::lagrangian::{ReadFrom, ReadLayers, Reads};
use crate::run::RunConfig;
use crate::train::{ModelConfig, SolverConfig};

/// Degrees above which a sum over neighbours, held to a bound, says little about each of them.
pub(super) const LARGE_DEGREE: usize = 15;

/// The functions for a task on these data.
pub(super) fn model_of(task: Level, dataset: &Dataset) -> ModelConfig {
    let transition = match task {
        _ if largest_degree(dataset) <= LARGE_DEGREE => "gnn-sum".into(),
        Level::Node => "gnn-mean".into(),
        Level::Graph => "gnn-normalized".into(),
    };
    let reads = Reads { from: ReadFrom::Transition, layers: ReadLayers::Last, features: false };
    match task {
        Level::Node => ModelConfig { transition, reads, ..ModelConfig::default() },
        // Sums over a graph are far from where tanh bends, and there are few of them to fit.
        Level::Graph => ModelConfig {
            transition,
            reads,
            state_dim: 16,
            hidden_dims: vec![32],
            readout_hidden_dims: vec![32],
            readout_activation: Activation::Relu,
            dropout: 0.5,
            ..ModelConfig::default()
        },
    }
}

/// Whether the read-out that settings ask for can read features.
pub(super) fn reads_features(asked: &RunConfig) -> bool {
    ["auto", "node", "sum", "mean", "max"].contains(&&asked.model.readout[..])
}

impl RunConfig {
    /// What does well where there is a lot to learn from.
    pub(super) fn widen(&mut self, units: usize, readout_units: usize, dropout: f64) {
        (self.model.state_dim, self.model.hidden_dims) = (units, vec![units]);
        self.model.readout_hidden_dims = vec![readout_units];
        (self.model.activation, self.model.readout_activation) =
            (Activation::Relu, Activation::Relu);
        self.model.dropout = dropout;
    }

    /// What does well on many graphs: layers that count what those below have found, all of them
    /// read. There are few graphs to learn from, so that weights are kept small.
    pub(super) fn stack_layers(&mut self) {
        let SolverConfig::OneShot(solver) = &mut self.training.solver else { return };
        solver.weights.weight_decay = 0.03;
        self.model.layers = 4;
        self.model.reads.layers = ReadLayers::All;
        self.model.activation = Activation::Relu;
        self.model.dropout = 0.3;
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{datasets, stars};
    use super::*;
    use crate::run::Setting;

    #[test]
    fn a_readout_that_does_not_read_features_is_not_told_to() {
        let wish = [Setting::new("test", "model.readout", "mine")];
        let dataset = datasets().remove(0);
        assert!(!RunConfig::for_data("stars", &dataset, &wish).model.reads.features);
        assert!(RunConfig::for_data("stars", &dataset, &[]).model.reads.features);
    }

    #[test]
    fn width_follows_what_there_is_to_learn_from() {
        let state_dim = |dataset: &Dataset, settings: &[Setting]| {
            RunConfig::for_data("stars", dataset, settings).model.state_dim
        };
        let one_layer = [Setting::new("test", "model.layers", 1)];
        let [few, many] = [datasets().remove(2), datasets().remove(4)];
        assert_eq!((state_dim(&few, &one_layer), state_dim(&many, &one_layer)), (16, 64));
        assert_eq!(state_dim(&many, &[]), 16, "a stack has room");
        let nodes = |count: usize| Dataset::new(stars(1, count, 3)).unwrap();
        assert_eq!((state_dim(&nodes(600), &[]), state_dim(&nodes(700), &[])), (10, 32));
    }
}
