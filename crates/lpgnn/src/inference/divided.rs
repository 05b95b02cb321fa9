//! Small graphs that several ranks converge, each some of them.

use std::ops::Range;
use std::sync::Arc;

use super::FixedPoint;
use crate::graph::{Communicator, GraphBatch};
use crate::{Matrix, Scalar};

/// Which rank converges which graphs. They do not depend on each other, so that it does not matter who does.
pub(super) struct Division<'a, S> {
    batch: &'a GraphBatch<S>,
    communicator: &'a Arc<dyn Communicator>,
    /// The first chunk of every rank, and the number of chunks.
    chunk_starts: Vec<usize>,
    /// The first graph of every rank, and the number of graphs.
    graph_starts: Vec<usize>,
}

impl<'a, S: Scalar> Division<'a, S> {
    /// Chunks of graphs with about as many nodes for every rank; none where there is one rank, or one chunk.
    pub(super) fn of(batch: &'a GraphBatch<S>, chunks: &[Range<usize>]) -> Option<Self> {
        let communicator = batch.share().filter(|_| chunks.len() > 1)?.communicator();
        let (ranks, starts) = (communicator.ranks(), batch.node_starts());
        let before = |chunk: &Range<usize>| starts[chunk.start] + starts[chunk.end];
        let first = |rank: usize| {
            chunks.partition_point(|chunk| before(chunk) < 2 * rank * batch.nodes() / ranks)
        };
        let chunk_starts: Vec<usize> = (0..ranks).map(first).chain([chunks.len()]).collect();
        let first_graph = |&at: &usize| chunks.get(at).map_or(batch.graphs(), |c| c.start);
        let graph_starts = chunk_starts.iter().map(first_graph).collect();
        Some(Self { batch, communicator, chunk_starts, graph_starts })
    }

    /// The chunks of this rank.
    pub(super) fn own(&self) -> Range<usize> {
        let rank = self.communicator.rank();
        self.chunk_starts[rank]..self.chunk_starts[rank + 1]
    }

    /// All graphs, from those of every rank.
    pub(super) fn complete(&self, found: &mut FixedPoint<S>, tol: f64) {
        let node = |&graph: &usize| self.batch.node_starts()[graph];
        let ends: Vec<usize> = self.graph_starts[1..].iter().map(node).collect();
        found.states.iter_mut().chain(&mut found.f_x).for_each(|rows| self.rows(rows, &ends));
        found.residuals = self.numbers(&found.residuals);
        let counts: Vec<f64> = found.graph_iterations.iter().map(|&count| count as f64).collect();
        found.graph_iterations = self.numbers(&counts).into_iter().map(count).collect();
        found.iterations = found.graph_iterations.iter().copied().max().unwrap_or(0);
        found.converged = found.residuals.iter().map(|&residual| residual <= tol).collect();
    }

    fn rows(&self, rows: &mut Matrix<S>, ends: &[usize]) {
        let ends: Vec<usize> = ends.iter().map(|end| end * rows.cols()).collect();
        self.communicator.gather(rows.as_mut_slice(), &ends);
    }

    /// A number per graph, from those of own graphs.
    fn numbers(&self, own: &[f64]) -> Vec<f64> {
        let mut all = vec![0.0; self.batch.graphs()];
        let start = self.graph_starts[self.communicator.rank()];
        all[start..start + own.len()].copy_from_slice(own);
        self.communicator.gather(&mut all, &self.graph_starts[1..]);
        all
    }
}

/// A count that was sent as a number.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it was a count before")]
fn count(number: f64) -> usize {
    number as usize
}
