//! What all ranks own, put together on every one of them; and what one owns of it.

use super::Share;
use crate::{Matrix, Scalar};

impl Share {
    /// The rows that this rank owns of a matrix of all nodes.
    pub fn own_rows<S: Scalar>(&self, all: &Matrix<S>) -> Matrix<S> {
        all.select(self.nodes())
    }

    /// Rows of all nodes from those that every rank owns.
    pub fn all_rows<S: Scalar>(&self, own: &Matrix<S>) -> Matrix<S> {
        let mut all = Matrix::zeros(self.whole_nodes(), own.cols());
        self.fill_rows(own.as_slice(), own.cols(), all.as_mut_slice());
        all
    }

    /// [`all_rows`](Self::all_rows), into entries that are there.
    pub(crate) fn fill_rows<S: Scalar>(&self, own: &[S], width: usize, all: &mut [S]) {
        let nodes = self.nodes();
        all[nodes.start * width..nodes.end * width].copy_from_slice(own);
        let ends: Vec<usize> = self.node_starts[1..].iter().map(|end| end * width).collect();
        self.communicator.gather(all, &ends);
    }

    /// Rows of all nodes that are `wanted`, and zeros for the others, which are not sent.
    pub(crate) fn wanted_rows<S: Scalar>(
        &self,
        own: &Matrix<S>,
        wanted: impl Fn(usize) -> bool,
    ) -> Matrix<S> {
        let (nodes, width) = (self.nodes(), own.cols());
        let all: Vec<usize> = (0..self.whole_nodes()).filter(|&node| wanted(node)).collect();
        let before = |node: usize| all.partition_point(|&other| other < node);
        let mut rows = vec![S::ZERO; all.len() * width];
        let places = before(nodes.start)..before(nodes.end);
        let own_rows = rows.chunks_exact_mut(width.max(1)).zip(&all);
        for (row, &node) in own_rows.take(places.end).skip(places.start) {
            row.copy_from_slice(own.row(node - nodes.start));
        }
        let ends: Vec<usize> =
            self.node_starts[1..].iter().map(|&end| before(end) * width).collect();
        self.communicator.gather(&mut rows, &ends);
        let mut whole = Matrix::zeros(self.whole_nodes(), width);
        for (row, node) in rows.chunks_exact(width.max(1)).zip(all) {
            whole.row_mut(node).copy_from_slice(row);
        }
        whole
    }

    /// What all ranks have, one after the other; each may have another number of numbers.
    pub(crate) fn concatenate<S: Scalar>(&self, own: &[S]) -> Vec<S> {
        let mut end = 0.0;
        let counts = self.communicator.all(own.len() as f64).into_iter();
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "they are counts"
        )]
        let ends: Vec<usize> = counts
            .map(|count| {
                end += count;
                end as usize
            })
            .collect();
        let rank = self.communicator.rank();
        let mut all = vec![S::ZERO; ends[ends.len() - 1]];
        all[ends[rank] - own.len()..ends[rank]].copy_from_slice(own);
        self.communicator.gather(&mut all, &ends);
        all
    }

    /// The rows of all ranks, one after the other.
    pub(crate) fn concatenate_rows<S: Scalar>(&self, own: &Matrix<S>) -> Matrix<S> {
        let all = self.concatenate(own.as_slice());
        let rows = all.len().checked_div(own.cols()).unwrap_or(0);
        Matrix::from_entries(rows, own.cols(), all).expect("whole rows of every rank")
    }

    /// Every so many-th of the nodes of the whole graph, at most `most`: its row here.
    pub(crate) fn sample(&self, most: usize) -> impl Iterator<Item = usize> {
        let nodes = self.nodes();
        let step = self.whole_nodes().div_ceil(most).max(1);
        (nodes.start.next_multiple_of(step)..nodes.end).step_by(step).map(move |v| v - nodes.start)
    }
}
