use std::ops::{Deref, Range};

use crate::Scalar;
use crate::graph::Topology;
use crate::numeric::{Scratch, Spare, SpareMatrix};

/// `∂𝓛/∂` what is read of the nodes of a layer, by the output and by the layer above.
pub(super) enum ReadGradient<'a, S: Scalar> {
    /// A row per node.
    Nodes(SpareMatrix<'a, S>),
    /// A row per graph: all its nodes have the same, and it is written out where it is needed.
    Graphs(SpareMatrix<'a, S>),
}

/// Rows of some nodes, one after the other.
pub(super) enum Rows<'a, S: Scalar> {
    There(&'a [S]),
    WrittenOut(Spare<'a, S>),
}

impl<S: Scalar> Deref for Rows<'_, S> {
    type Target = [S];
    fn deref(&self) -> &[S] {
        match self {
            Self::There(rows) => rows,
            Self::WrittenOut(rows) => rows,
        }
    }
}

impl<'a, S: Scalar> ReadGradient<'a, S> {
    /// The rows of `nodes`.
    pub(super) fn rows<'r>(
        &'r self,
        topology: &Topology,
        nodes: Range<usize>,
        scratch: &'r Scratch<S>,
    ) -> Rows<'r, S> {
        match self {
            Self::Nodes(rows) => {
                Rows::There(&rows.as_slice()[nodes.start * rows.cols()..nodes.end * rows.cols()])
            }
            Self::Graphs(rows) => {
                let mut out = scratch.take(nodes.len() * rows.cols());
                let starts = topology.node_starts();
                let mut graph = starts.partition_point(|&start| start <= nodes.start) - 1;
                for (v, out) in nodes.zip(out.chunks_exact_mut(rows.cols().max(1))) {
                    while starts[graph + 1] <= v {
                        graph += 1;
                    }
                    out.copy_from_slice(rows.row(graph));
                }
                Rows::WrittenOut(out)
            }
        }
    }

    /// Zero for every node.
    pub(super) fn zeros(nodes: usize, width: usize, scratch: &'a Scratch<S>) -> Self {
        let mut zeros = scratch.matrix(nodes, width);
        zeros.as_mut_slice().fill(S::ZERO);
        Self::Nodes(zeros)
    }

    /// A row per node, to which more can be added.
    pub(super) fn per_node(
        self,
        topology: &Topology,
        scratch: &'a Scratch<S>,
    ) -> SpareMatrix<'a, S> {
        if let Self::Nodes(rows) = self {
            return rows;
        }
        let all = self.rows(topology, 0..topology.nodes(), scratch);
        let mut rows = scratch.matrix(topology.nodes(), all.len() / topology.nodes().max(1));
        rows.as_mut_slice().copy_from_slice(&all);
        rows
    }
}
