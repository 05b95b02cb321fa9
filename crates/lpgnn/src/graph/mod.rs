mod batch;
mod groups;
mod labels;
mod neighbours;
mod targets;

pub(crate) use batch::check_starts;
pub use batch::{BatchParts, GraphBatch};
pub use groups::Groups;
pub use labels::{Labels, LabelsView, OneHot, SparseRows};
pub use neighbours::{NO_ARC, Neighbours};
pub use targets::{Targets, UNLABELLED};

use crate::{Error, Matrix, Scalar};

/// A directed graph with labelled nodes and, where they have them, labelled arcs and targets.
///
/// An undirected tie is two arcs. Whatever exists is valid: arcs name nodes that exist, lie in
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
    labels: Labels<S>,
    arcs: Vec<(u32, u32)>,
    arc_labels: Labels<S>,
    node_targets: Targets<S>,
    target: Targets<S>,
}

impl<S: Scalar> Graph<S> {
    /// A graph from the labels `l_v` of its nodes and its arcs `(u, v)`, read "u → v".
    ///
    /// # Errors
    ///
    /// [`Error::RaggedRows`] or [`Error::ArcOutOfRange`], naming the first offender.
    pub fn new(labels: &[Vec<S>], arcs: Vec<(u32, u32)>) -> Result<Self, Error> {
        Self::with_labels(Labels::Dense(Matrix::from_rows(labels)?), arcs)
    }

    /// A graph from labels in any form and arcs. An arc that is given twice counts once.
    ///
    /// # Errors
    ///
    /// [`Error::ArcOutOfRange`], naming the first offender.
    pub fn with_labels(labels: Labels<S>, mut arcs: Vec<(u32, u32)>) -> Result<Self, Error> {
        check_range(labels.rows(), &arcs)?;
        arcs.sort_unstable();
        arcs.dedup();
        let nodes = labels.rows();
        let arc_labels = Labels::none(arcs.len());
        Ok(Self {
            labels,
            arcs,
            arc_labels,
            node_targets: Targets::None(nodes),
            target: Targets::None(1),
        })
    }

    /// The same graph with a label on every arc; `arcs` and `arc_labels` go together.
    ///
    /// # Errors
    ///
    /// As [`Graph::with_labels`], and [`Error::RowCount`] when there is not one label per arc. Of
    /// the labels of an arc that is given twice, the first counts.
    pub fn with_arc_labels(
        labels: Labels<S>,
        arcs: &[(u32, u32)],
        arc_labels: &Labels<S>,
    ) -> Result<Self, Error> {
        if arc_labels.rows() != arcs.len() {
            let (expected, found) = (arcs.len(), arc_labels.rows());
            return Err(Error::RowCount { what: "the arc labels", expected, found });
        }
        let mut order: Vec<usize> = (0..arcs.len()).collect();
        order.sort_by_key(|&arc| arcs[arc]);
        order.dedup_by_key(|arc| arcs[*arc]);
        let graph = Self::with_labels(labels, arcs.to_vec())?;
        Ok(Self { arc_labels: arc_labels.select(order.into_iter()), ..graph })
    }

    /// The same graph with a target on every node, or on those that have one.
    ///
    /// # Errors
    ///
    /// [`Error::RowCount`] when there is not one target per node.
    pub fn with_node_targets(self, targets: Targets<S>) -> Result<Self, Error> {
        targets.check_rows("the node targets", self.labels.rows())?;
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
        self.labels.rows()
    }

    /// Every arc `u → v` as `(u, v)`, in order.
    pub fn arcs(&self) -> &[(u32, u32)] {
        &self.arcs
    }

    /// The label `l_v` of every node.
    pub fn labels(&self) -> &Labels<S> {
        &self.labels
    }
}

/// # Errors
///
/// [`Error::ArcOutOfRange`], naming the first arc that leaves `0..nodes`.
pub(crate) fn check_range(nodes: usize, arcs: &[(u32, u32)]) -> Result<(), Error> {
    for (arc, &(source, target)) in arcs.iter().enumerate() {
        let node = source.max(target) as usize;
        if node >= nodes {
            return Err(Error::ArcOutOfRange { arc, node, nodes });
        }
    }
    Ok(())
}
