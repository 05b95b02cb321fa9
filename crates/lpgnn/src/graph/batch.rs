use std::ops::Range;
use std::sync::Arc;

use super::{Communicator, Features, Groups, Neighbours, Part, Share, Targets, Topology};
use crate::{Error, Matrix, Scalar};

/// The disjoint union of some graphs: what one update works on.
///
/// It is a [`Topology`] with features of nodes and edges and with targets, each of which is shared, not copied,
/// by batches that differ in another one. Node `i` of the `k`-th graph is node `node_starts()[k] + i`. A graph is a
/// batch of one; an undirected edge is two edges.
///
/// ```
/// use lpgnn::graph::GraphBatch;
///
/// let path = GraphBatch::graph(&[vec![1.0_f32], vec![0.0], vec![0.0]], &[(0, 1), (1, 2)])?;
/// assert_eq!(path.neighbours().of(1), [0, 2]); // a parent and a child
/// assert_eq!(GraphBatch::union(&[path.clone(), path])?.nodes(), 6);
/// # Ok::<(), lpgnn::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct GraphBatch<S = f32> {
    topology: Arc<Topology>,
    node_features: Arc<Features<S>>,
    edge_features: Arc<Features<S>>,
    node_targets: Arc<Targets<S>>,
    graph_targets: Arc<Targets<S>>,
    /// What this process owns of it, where several share it.
    own: Option<Arc<Self>>,
}

/// What a [`GraphBatch`] is made of, before it is checked.
#[derive(Clone, Debug)]
pub struct BatchParts<S = f32> {
    /// The first node of every graph, and the number of nodes: `graphs + 1` entries from 0.
    pub node_starts: Vec<usize>,
    /// Edges `(u, v)` in order and without duplicates; nodes are numbered through all graphs.
    pub edges: Vec<(u32, u32)>,
    /// One feature per node.
    pub node_features: Features<S>,
    /// One feature per edge.
    pub edge_features: Features<S>,
    /// One target per node.
    pub node_targets: Targets<S>,
    /// One target per graph.
    pub graph_targets: Targets<S>,
}

impl<S: Scalar> GraphBatch<S> {
    /// A batch of one graph, from the features `l_v` of its nodes and its edges `(u, v)`, read "u → v".
    ///
    /// # Errors
    ///
    /// [`Error::RaggedRows`] or [`Error::EdgeOutOfRange`], naming the first offender.
    pub fn graph(features: &[Vec<S>], edges: &[(u32, u32)]) -> Result<Self, Error> {
        Self::of_graph(Features::Dense(Matrix::from_rows(features)?), edges)
    }

    /// The same from features in any form. An edge that is given twice counts once.
    ///
    /// # Errors
    ///
    /// [`Error::EdgeOutOfRange`], naming the first offender.
    pub fn of_graph(features: Features<S>, edges: &[(u32, u32)]) -> Result<Self, Error> {
        let edge_features = Features::none(edges.len());
        Self::of_graph_with_edges(features, edges, &edge_features)
    }

    /// The same with features of every edge; `edges` and `edge_features` go together.
    ///
    /// # Errors
    ///
    /// As [`of_graph`](Self::of_graph), and [`Error::RowCount`] when there is not one row per edge. Of
    /// the features of an edge that is given twice, the first count.
    pub fn of_graph_with_edges(
        features: Features<S>,
        edges: &[(u32, u32)],
        edge_features: &Features<S>,
    ) -> Result<Self, Error> {
        if edge_features.rows() != edges.len() {
            let (expected, found) = (edges.len(), edge_features.rows());
            return Err(Error::RowCount { what: "the edge features", expected, found });
        }
        let nodes = features.rows();
        super::check_range(nodes, edges)?;
        let mut order: Vec<usize> = (0..edges.len()).collect();
        order.sort_by_key(|&edge| edges[edge]);
        order.dedup_by_key(|edge| edges[*edge]);
        Self::from_parts(BatchParts {
            node_starts: vec![0, nodes],
            edges: order.iter().map(|&edge| edges[edge]).collect(),
            edge_features: edge_features.select(order.into_iter()),
            node_features: features,
            node_targets: Targets::None(nodes),
            graph_targets: Targets::None(1),
        })
    }

    /// The union of some batches, in their order.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`] when they disagree on features or targets, [`Error::TooLarge`] when the union
    /// would have too many nodes or edges.
    pub fn union(batches: &[Self]) -> Result<Self, Error> {
        let edge_features = Features::concatenate(batches.iter().map(|b| &*b.edge_features))?;
        let topologies = batches.iter().map(|batch| &*batch.topology);
        Ok(Self {
            topology: Arc::new(Topology::union(topologies, edge_features.width() > 0)?),
            node_features: Arc::new(Features::concatenate(
                batches.iter().map(|batch| &*batch.node_features),
            )?),
            edge_features: Arc::new(edge_features),
            node_targets: Arc::new(Targets::concatenate(
                batches.iter().map(|batch| &*batch.node_targets),
            )?),
            graph_targets: Arc::new(Targets::concatenate(
                batches.iter().map(|batch| &*batch.graph_targets),
            )?),
            own: None,
        })
    }

    /// The same batch with a target for every node, or for those that have one.
    ///
    /// # Errors
    ///
    /// [`Error::RowCount`] when there is not one target per node, [`Error::ColumnOutOfRange`] for a class
    /// that does not exist.
    pub fn with_node_targets(self, targets: Targets<S>) -> Result<Self, Error> {
        targets.check_rows("the node targets", self.nodes())?;
        targets.check_classes()?;
        Ok(Self { node_targets: Arc::new(targets), ..self })
    }

    /// The same batch with a target for every graph, or for those that have one.
    ///
    /// # Errors
    ///
    /// As [`with_node_targets`](Self::with_node_targets), of graphs.
    pub fn with_graph_targets(self, targets: Targets<S>) -> Result<Self, Error> {
        targets.check_rows("the graph targets", self.graphs())?;
        targets.check_classes()?;
        Ok(Self { graph_targets: Arc::new(targets), ..self })
    }

    /// A batch from arrays over all its graphs.
    ///
    /// # Errors
    ///
    /// [`Error::RowCount`], [`Error::EdgeOutOfRange`] or [`Error::EdgeBetweenGraphs`] when the parts
    /// do not fit each other, [`Error::Mismatch`] when edges are not in order, [`Error::TooLarge`].
    pub fn from_parts(parts: BatchParts<S>) -> Result<Self, Error> {
        let BatchParts { node_starts, edges, .. } = &parts;
        let (graphs, nodes) = check_starts(node_starts)?;
        for (what, found, expected) in [
            ("the node features", parts.node_features.rows(), nodes),
            ("the edge features", parts.edge_features.rows(), edges.len()),
            ("the node targets", parts.node_targets.rows(), nodes),
            ("the graph targets", parts.graph_targets.rows(), graphs),
        ] {
            if found != expected {
                return Err(Error::RowCount { what, expected, found });
            }
        }
        parts.node_targets.check_classes()?;
        parts.graph_targets.check_classes()?;
        parts.node_features.check_finite("the node features")?;
        parts.edge_features.check_finite("the edge features")?;
        let with_edges = parts.edge_features.width() > 0;
        Ok(Self {
            topology: Arc::new(Topology::new(parts.node_starts, &parts.edges, with_edges)?),
            node_features: Arc::new(parts.node_features),
            edge_features: Arc::new(parts.edge_features),
            node_targets: Arc::new(parts.node_targets),
            graph_targets: Arc::new(parts.graph_targets),
            own: None,
        })
    }

    /// The batch of some of its graphs, in the given order; a graph may occur more than once.
    ///
    /// # Panics
    ///
    /// When a graph does not exist.
    pub fn select(&self, graphs: &[usize]) -> Self {
        let nodes = || graphs.iter().flat_map(|&graph| self.topology.nodes_of(graph));
        let edges = graphs.iter().flat_map(|&graph| self.topology.edges_of(graph));
        Self {
            topology: Arc::new(self.topology.select(graphs)),
            node_features: Arc::new(self.node_features.select(nodes())),
            edge_features: Arc::new(self.edge_features.select(edges)),
            node_targets: Arc::new(self.node_targets.select(nodes())),
            graph_targets: Arc::new(self.graph_targets.select(graphs.iter().copied())),
            own: None,
        }
    }

    /// The same batch, on which all ranks work together: each computes the nodes that it owns.
    #[must_use]
    pub fn shared_by(mut self, communicator: &Arc<dyn Communicator>) -> Self {
        if communicator.ranks() > 1 && self.across().is_none() {
            let part = Share::of(&self.topology, communicator);
            let edges = part.edges.iter().map(|&edge| edge as usize);
            self.own = Some(Arc::new(Self {
                node_features: Arc::new(self.node_features.select(rows(&part))),
                edge_features: Arc::new(self.edge_features.select(edges)),
                node_targets: Arc::new(Targets::None(part.topology.nodes())),
                graph_targets: Arc::new(Targets::None(part.topology.graphs())),
                topology: Arc::new(part.topology),
                own: None,
            }));
        }
        self
    }

    /// The same batch, shared as `other` is.
    #[must_use]
    pub(crate) fn shared_like(self, other: &Self) -> Self {
        match other.share() {
            None => self,
            Some(share) => self.shared_by(share.communicator()),
        }
    }

    /// What this process owns of it; all of it where it is not shared.
    pub(crate) fn own(&self) -> &Self {
        self.own.as_deref().unwrap_or(self)
    }

    /// How it is shared; none where this process works on it alone.
    pub fn share(&self) -> Option<&Share> {
        self.own.as_ref().and_then(|own| own.topology.share())
    }

    /// How ranks share a graph in parts, of which each has no rows but those of the nodes that it owns; none of all else.
    pub fn across(&self) -> Option<&Share> {
        self.topology.share().filter(|share| share.is_in_parts())
    }

    /// The same with the node features of some rows alone, for a read-out of these.
    pub(crate) fn with_features_of(&self, rows: Range<usize>) -> Self {
        Self { node_features: Arc::new(self.node_features.select(rows)), ..self.clone() }
    }

    /// What a rank has of a graph in parts.
    ///
    /// # Errors
    ///
    /// [`Error::RowCount`] when there is not one row per node that it owns, [`Error::ColumnOutOfRange`] for a class that
    /// does not exist, [`Error::NotFinite`].
    pub(crate) fn of_parts(
        topology: Topology,
        node_features: Features<S>,
        node_targets: Targets<S>,
    ) -> Result<Self, Error> {
        let (expected, found) = (topology.nodes(), node_features.rows());
        if found != expected {
            return Err(Error::RowCount { what: "the node features", expected, found });
        }
        node_targets.check_rows("the node targets", expected)?;
        node_targets.check_classes()?;
        Ok(Self {
            topology: Arc::new(topology),
            node_features: Arc::new(node_features),
            edge_features: Arc::new(Features::none(0)),
            node_targets: Arc::new(node_targets),
            graph_targets: Arc::new(Targets::None(1)),
            own: None,
        })
    }

    /// Who is whose neighbour.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Number of nodes, over all graphs.
    pub fn nodes(&self) -> usize {
        self.topology.nodes()
    }

    /// Number of graphs.
    pub fn graphs(&self) -> usize {
        self.topology.graphs()
    }

    /// Number of edges, over all graphs.
    pub fn edges(&self) -> usize {
        self.topology.edges()
    }

    /// The first node of every graph, and the number of nodes.
    pub fn node_starts(&self) -> &[usize] {
        self.topology.node_starts()
    }

    /// The nodes of a graph.
    pub fn nodes_of(&self, graph: usize) -> Range<usize> {
        self.topology.nodes_of(graph)
    }

    /// `ne[v]` of every node.
    pub fn neighbours(&self) -> &Neighbours {
        self.topology.neighbours()
    }

    /// Its nodes in groups, for threads to share.
    pub fn groups(&self) -> &Groups {
        self.topology.groups()
    }

    /// The same batch in groups of about `work` nodes and neighbours, in place of a size that
    /// suits the machine. A graph that is much larger is cut.
    #[must_use]
    pub fn with_groups_of(mut self, work: usize) -> Self {
        self.topology = Arc::new(Topology::clone(&self.topology).with_groups_of(work));
        self.own = None;
        self
    }

    /// The same graphs with some entries of the node features left out: see
    /// [`Features::with_dropout`]. All else is shared.
    #[must_use]
    pub fn with_feature_dropout(&self, rate: f64, seed: u64) -> Self {
        let first = self.across().map_or(0, |share| share.nodes().start);
        let node_features = Arc::new(self.node_features.with_dropout_from(first, rate, seed));
        let own = self.share().map(|share| {
            let node_features = Arc::new(node_features.select(share.nodes()));
            Arc::new(Self { node_features, ..self.own().clone() })
        });
        Self { node_features, own, ..self.clone() }
    }

    /// The same graphs, whose nodes have `more` features behind their own, which become dense. All else is shared.
    ///
    /// # Errors
    ///
    /// [`Error::RowCount`] when there is not one row per node; [`Error::Mismatch`] where several processes share them.
    pub fn with_more_features(&self, more: &Matrix<S>) -> Result<Self, Error> {
        if self.share().is_some() || self.across().is_some() {
            return Err(Error::Mismatch(
                "graphs that several processes share cannot be given more features".into(),
            ));
        }
        let (expected, found) = (self.nodes(), more.rows());
        if found != expected {
            return Err(Error::RowCount { what: "the additional features", expected, found });
        }
        let own = self.node_features.width();
        let mut all = Matrix::zeros(expected, own + more.cols());
        for v in 0..expected {
            let row = all.row_mut(v);
            self.node_features.entries(v).for_each(|(column, value)| row[column] = value);
            row[own..].copy_from_slice(more.row(v));
        }
        Ok(Self { node_features: Arc::new(Features::Dense(all)), ..self.clone() })
    }

    /// The feature `l_v` of every node.
    pub fn node_features(&self) -> &Features<S> {
        &self.node_features
    }

    /// The feature `l_(u,v)` of every edge.
    pub fn edge_features(&self) -> &Features<S> {
        &self.edge_features
    }

    /// The targets of the nodes.
    pub fn node_targets(&self) -> &Targets<S> {
        &self.node_targets
    }

    /// The targets of the graphs.
    pub fn graph_targets(&self) -> &Targets<S> {
        &self.graph_targets
    }
}

/// The nodes of a part, as the whole numbers them.
fn rows(part: &Part) -> impl Iterator<Item = usize> + '_ {
    part.owned.iter().map(|&v| v as usize)
}

/// The numbers of graphs and nodes, from the first node of every graph and the end.
///
/// # Errors
///
/// [`Error::Mismatch`] unless they lead up from 0.
pub(crate) fn check_starts(node_starts: &[usize]) -> Result<(usize, usize), Error> {
    match node_starts {
        [0, .., nodes] if node_starts.is_sorted() => Ok((node_starts.len() - 1, *nodes)),
        [0] => Ok((0, 0)),
        _ => Err(Error::Mismatch("the first nodes of the graphs do not lead up from 0".into())),
    }
}
