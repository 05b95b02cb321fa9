mod batch;
mod exchange;
mod features;
mod groups;
mod level;
mod neighbours;
mod targets;
mod topology;

pub(crate) use batch::check_starts;
pub use batch::{BatchParts, GraphBatch};
pub use exchange::{Exchange, Local, Reduce};
pub use features::{Features, FeaturesView, OneHot, SparseRows};
pub use groups::Groups;
pub use level::Level;
pub use neighbours::{NO_EDGE, Neighbours};
pub use targets::{NO_TARGET, Targets};
pub use topology::{Ghosts, Part, Topology};

use crate::{Error, Matrix, Scalar};

/// A directed graph with node features and, optionally, edge features and targets.
///
/// An undirected edge is two edges. Whatever exists is valid: edges name nodes that exist, lie in
/// order and occur once.
///
/// ```
/// use lpgnn::graph::{Graph, GraphBatch};
///
/// let path = Graph::new(&[vec![1.0_f32], vec![0.0], vec![0.0]], vec![(0, 1), (1, 2)])?;
/// let batch = GraphBatch::new(&[path])?;
/// assert_eq!(batch.neighbours().of(1), [0, 2]); // a parent and a child
/// # Ok::<(), lpgnn::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Graph<S = f32> {
    features: Features<S>,
    edges: Vec<(u32, u32)>,
    edge_features: Features<S>,
    node_targets: Targets<S>,
    target: Targets<S>,
}

impl<S: Scalar> Graph<S> {
    /// A graph from the features `l_v` of its nodes and its edges `(u, v)`, read "u → v".
    ///
    /// # Errors
    ///
    /// [`Error::RaggedRows`] or [`Error::EdgeOutOfRange`], naming the first offender.
    pub fn new(features: &[Vec<S>], edges: Vec<(u32, u32)>) -> Result<Self, Error> {
        Self::with_features(Features::Dense(Matrix::from_rows(features)?), edges)
    }

    /// A graph from features in any form and edges. An edge that is given twice counts once.
    ///
    /// # Errors
    ///
    /// [`Error::EdgeOutOfRange`], naming the first offender.
    pub fn with_features(features: Features<S>, mut edges: Vec<(u32, u32)>) -> Result<Self, Error> {
        check_range(features.rows(), &edges)?;
        edges.sort_unstable();
        edges.dedup();
        let nodes = features.rows();
        let edge_features = Features::none(edges.len());
        Ok(Self {
            features,
            edges,
            edge_features,
            node_targets: Targets::None(nodes),
            target: Targets::None(1),
        })
    }

    /// The same graph with a feature on every edge; `edges` and `edge_features` go together.
    ///
    /// # Errors
    ///
    /// As [`Graph::with_features`], and [`Error::RowCount`] when there is not one feature per edge. Of
    /// the features of an edge that is given twice, the first counts.
    pub fn with_edge_features(
        features: Features<S>,
        edges: &[(u32, u32)],
        edge_features: &Features<S>,
    ) -> Result<Self, Error> {
        if edge_features.rows() != edges.len() {
            let (expected, found) = (edges.len(), edge_features.rows());
            return Err(Error::RowCount { what: "the edge features", expected, found });
        }
        let mut order: Vec<usize> = (0..edges.len()).collect();
        order.sort_by_key(|&edge| edges[edge]);
        order.dedup_by_key(|edge| edges[*edge]);
        let graph = Self::with_features(features, edges.to_vec())?;
        Ok(Self { edge_features: edge_features.select(order.into_iter()), ..graph })
    }

    /// The same graph with a target on every node, or on those that have one.
    ///
    /// # Errors
    ///
    /// [`Error::RowCount`] when there is not one target per node.
    pub fn with_node_targets(self, targets: Targets<S>) -> Result<Self, Error> {
        targets.check_rows("the node targets", self.features.rows())?;
        Ok(Self { node_targets: targets, ..self })
    }

    /// The same graph with a target for itself.
    ///
    /// # Errors
    ///
    /// [`Error::RowCount`] when it is not one target.
    pub fn with_target(self, target: Targets<S>) -> Result<Self, Error> {
        target.check_rows("the graph target", 1)?;
        Ok(Self { target, ..self })
    }

    /// Number of nodes.
    pub fn nodes(&self) -> usize {
        self.features.rows()
    }

    /// Every edge `u → v` as `(u, v)`, in order.
    pub fn edges(&self) -> &[(u32, u32)] {
        &self.edges
    }

    /// The feature `l_v` of every node.
    pub fn features(&self) -> &Features<S> {
        &self.features
    }
}

/// # Errors
///
/// [`Error::EdgeOutOfRange`], naming the first edge that leaves `0..nodes`.
pub(crate) fn check_range(nodes: usize, edges: &[(u32, u32)]) -> Result<(), Error> {
    for (edge, &(source, target)) in edges.iter().enumerate() {
        let node = source.max(target) as usize;
        if node >= nodes {
            return Err(Error::EdgeOutOfRange { edge, node, nodes });
        }
    }
    Ok(())
}
