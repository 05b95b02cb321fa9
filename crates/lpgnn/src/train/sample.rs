//! The training graphs that evaluations before the last measure.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::TrainingData;
use crate::Scalar;
use crate::graph::{GraphBatch, Level};
use crate::readout::Supervision;

/// Some of the training graphs, always the same ones.
#[derive(Debug)]
pub(super) struct Sample<S> {
    /// Their nodes among those of all training graphs.
    pub(super) nodes: Vec<usize>,
    pub(super) graphs: GraphBatch<S>,
    pub(super) supervision: Supervision<S>,
}

impl<S: Scalar> Sample<S> {
    /// `size` graphs, which follow from `seed`; none where there are no more than that, or where the training
    /// graphs are also those of other splits.
    pub(super) fn draw(data: &TrainingData<S>, size: usize, seed: u64) -> Option<Self> {
        let all = data.training_graphs();
        let shared = data.scored.iter().skip(1).any(|(_, batch, _)| *batch == 0);
        if shared || all.graphs() <= size {
            return None;
        }
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        // Other numbers than those that weights start from, and than the order of any epoch.
        random.set_stream(u64::MAX);
        let mut members: Vec<usize> = (0..all.graphs()).collect();
        members.shuffle(&mut random);
        members.truncate(size);
        members.sort_unstable();
        let nodes: Vec<usize> = members.iter().flat_map(|&graph| all.nodes_of(graph)).collect();
        let rows = match data.level {
            Level::Graph => &members,
            Level::Node => &nodes,
        };
        let supervision = data.scored[0].2.select(rows);
        Some(Self { graphs: all.select(&members).shared_like(all), supervision, nodes })
    }
}
