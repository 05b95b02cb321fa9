use std::ops::Range;
use std::sync::Arc;

use super::{Features, Graph, Groups, Neighbours, Targets, Topology};
use crate::{Error, Scalar};

/// The disjoint union of some graphs: what one update works on.
///
/// It is a [`Topology`] with features of nodes and edges and with targets, each of which is shared, not copied,
/// by batches that differ in another one. Node `i` of the `k`-th graph is node `node_starts()[k] + i`.
#[derive(Clone, Debug, PartialEq)]
pub struct GraphBatch<S = f32> {
    topology: Arc<Topology>,
    node_features: Arc<Features<S>>,
    edge_features: Arc<Features<S>>,
    node_targets: Arc<Targets<S>>,
    graph_targets: Arc<Targets<S>>,
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
    /// The union of `graphs`, in their order.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`] when the graphs disagree on features or targets, [`Error::TooLarge`] when
    /// the batch would have too many nodes.
    pub fn new(graphs: &[Graph<S>]) -> Result<Self, Error> {
        let mut node_starts = vec![0];
        let mut edges = Vec::new();
        for graph in graphs {
            let start = node_starts[node_starts.len() - 1];
            let end = start + graph.nodes();
            if end >= u32::MAX as usize {
                return Err(Error::TooLarge);
            }
            let shift = u32::try_from(start).map_err(|_| Error::TooLarge)?;
            edges.extend(graph.edges.iter().map(|&(u, v)| (u + shift, v + shift)));
            node_starts.push(end);
        }
        Self::from_parts(BatchParts {
            node_starts,
            edges,
            node_features: Features::concatenate(graphs.iter().map(|graph| &graph.features))?,
            edge_features: Features::concatenate(graphs.iter().map(|graph| &graph.edge_features))?,
            node_targets: Targets::concatenate(graphs.iter().map(|graph| &graph.node_targets))?,
            graph_targets: Targets::concatenate(graphs.iter().map(|graph| &graph.target))?,
        })
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
        }
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
        self
    }

    /// The same graphs with some entries of the node features left out: see
    /// [`Features::with_dropout`]. All else is shared.
    #[must_use]
    pub fn with_feature_dropout(&self, rate: f64, seed: u64) -> Self {
        let node_features = Arc::new(self.node_features.with_dropout(rate, seed));
        Self { node_features, ..self.clone() }
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
