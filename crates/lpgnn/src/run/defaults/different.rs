//! One graph whose neighbours are not alike, but whose features describe its nodes: what neighbours say is learnt from many
//! targets.

use super::data::largest_degree;
use super::l2_of;
use super::model::LARGE_DEGREE;
use crate::activation::Activation;
use crate::data::Dataset;
use crate::lagrangian::Scale;
use crate::run::RunConfig;
use crate::train::SolverConfig;

/// Labelled nodes of one graph whose neighbours are different from which on a wide network with wide features does not just
/// learn them by heart.
pub(super) const ENOUGH_TARGETS: usize = 300;

impl RunConfig {
    /// What does well there. Normalised sums tell how many neighbours a node has, which means do not; a second layer reads what
    /// the first has found. There are more features than targets, so half of them are left out of every update.
    pub(super) fn learn_what_neighbours_say(&mut self, dataset: &Dataset, targets: usize) {
        if largest_degree(dataset) > LARGE_DEGREE {
            self.model.transition = "gnn-normalized".into();
        }
        (self.model.layers, self.model.state_dim) = (2, 64);
        (self.model.hidden_dims, self.model.readout_hidden_dims) = (vec![64], vec![]);
        self.model.activation = Activation::Relu;
        let training = &mut self.training;
        training.feature_dropout = 0.5;
        training.l2 = l2_of(targets);
        training.weighing.loss = Scale::Mean;
        training.eval_every = training.eval_every.div_ceil(2);
        let weights = match &mut training.solver {
            SolverConfig::OneShot(solver) => &mut solver.weights,
            SolverConfig::Implicit(solver) => &mut solver.weights,
            SolverConfig::Unrolled(solver) => &mut solver.weights,
            SolverConfig::Sse(solver) => &mut solver.weights,
            SolverConfig::Bdmm(_) | SolverConfig::AugmentedLagrangian(_) => return,
        };
        weights.lr = 0.01;
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::halves;
    use super::*;
    use crate::data::{Categories, TargetColumn};

    #[test]
    fn with_enough_targets_it_is_learnt_what_neighbours_say() {
        let config = |nodes: u32| {
            let mut parts = halves(nodes);
            let class: Vec<i64> = (0..nodes).map(|v| i64::from(v % 2)).collect();
            parts.node_targets =
                Some(TargetColumn::Classes(Categories::from_integers("y", &class)));
            RunConfig::for_data("path", &Dataset::new(parts).unwrap(), &[])
        };
        let (few, enough) = (config(300), config(500));
        assert_eq!((few.model.layers, few.training.feature_dropout), (1, 0.0));
        assert_eq!((enough.model.layers, enough.training.feature_dropout), (2, 0.5));
        // 0.7 over about 400 training nodes.
        assert!((400.0 * enough.training.l2 - 0.7).abs() < 0.05, "{}", enough.training.l2);
        assert_eq!(enough.model.transition, "gnn-sum", "there is no hub");
    }
}
