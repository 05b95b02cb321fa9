//! One graph whose neighbours are alike: what carries states is held, or learnt from plenty of targets.

use super::data::have_one_unit;
use super::l2_of;
use crate::data::Dataset;
use crate::lagrangian::Scale;
use crate::network::StateWeights;
use crate::run::RunConfig;
use crate::saddle::{OneShot, WeightDescent};
use crate::train::SolverConfig;

/// Labelled nodes of one graph whose neighbours are alike from which on it can be learnt how they influence each other.
pub(super) const PLENTY_OF_TARGETS: usize = 3_000;

impl RunConfig {
    /// What does well on one graph whose neighbours are alike, with so many targets: all that is learnt is how features are
    /// read, with some of them left out, and the fixed point spreads it.
    pub(super) fn hold_what_carries_states(&mut self, dataset: &Dataset, targets: usize) {
        self.model.transition = "gcn".into();
        self.model.state_weights = StateWeights::Frozen;
        self.model.state_dim = 16;
        (self.model.hidden_dims, self.model.readout_hidden_dims) = (vec![], vec![]);
        self.training.l2 = l2_of(targets);
        // As many steps as it takes to follow features that change with every update.
        self.leave_out_features(dataset, 0.5, WeightDescent::default(), 20);
    }

    /// The same with plenty of targets: how neighbours influence each other is learnt too. A small bound lets the features
    /// that neighbours have come before what is far away, of which a second layer says more.
    pub(super) fn learn_what_carries_states(&mut self, dataset: &Dataset) {
        self.model.transition = "gnn-mean".into();
        (self.model.layers, self.model.state_dim) = (2, 64);
        (self.model.hidden_dims, self.model.readout_hidden_dims) = (vec![64], vec![]);
        self.training.lipschitz = Some(0.5);
        let weights = WeightDescent { lr: 0.02, ..WeightDescent::default() };
        self.leave_out_features(dataset, 0.6, weights, 4);
    }

    /// What wide features of one graph whose neighbours are alike need, of which some are left out of every update.
    fn leave_out_features(
        &mut self,
        dataset: &Dataset,
        dropout: f64,
        weights: WeightDescent,
        inner_steps: usize,
    ) {
        self.features.row_normalize = dataset.node_features().sparse().is_some();
        // A mean over neighbours lets through what they have in common. Noise that was made as large as the rest is not.
        self.features.standardize = !have_one_unit(dataset.node_features().values());
        let training = &mut self.training;
        training.standardize = false;
        training.feature_dropout = dropout;
        training.weighing.loss = Scale::Mean;
        match &mut training.solver {
            SolverConfig::OneShot(solver) => {
                *solver = OneShot { weights, inner_steps, ..OneShot::default() };
            }
            SolverConfig::Implicit(solver) => solver.weights = weights,
            SolverConfig::Unrolled(solver) => solver.weights = weights,
            SolverConfig::Sse(solver) => solver.weights = weights,
            SolverConfig::Bdmm(_) | SolverConfig::AugmentedLagrangian(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{embedding, halves};
    use super::*;
    use crate::run::homophily::tests::cliques_with;

    #[test]
    fn with_plenty_of_targets_it_is_learnt_what_carries_states() {
        let config =
            |nodes| RunConfig::for_data("halves", &Dataset::new(halves(nodes)).unwrap(), &[]);
        let (few, plenty) = (config(3000), config(4000));
        assert_eq!((few.model.layers, few.model.state_weights), (1, StateWeights::Frozen));
        assert_eq!((plenty.model.layers, plenty.model.state_weights), (2, StateWeights::Random));
        assert!(plenty.training.l2 == 0.0 && few.training.l2 > 0.0);
    }

    #[test]
    fn training_targets_tell_whether_neighbours_are_alike() {
        let config = |alike: bool, unit: f32| {
            let dataset = cliques_with(alike, embedding(16, unit));
            RunConfig::for_data("cliques", &dataset, &[])
        };
        let (alike, different) = (config(true, 0.1), config(false, 0.1));
        assert_eq!(alike.model.state_weights, StateWeights::Frozen);
        assert_eq!((alike.features.standardize, alike.model.reads.features), (false, true));
        // 0.7 over 13 training nodes.
        assert!((alike.training.l2 - 0.054).abs() < 1e-12, "{}", alike.training.l2);
        assert_eq!(different.model.state_weights, StateWeights::Random);
        assert_eq!((different.features.standardize, different.model.reads.features), (true, true));
        assert!(config(true, 1e4).features.standardize, "their unit is far from 1");
    }
}
