use std::ops::Range;

use super::{Features, Graph, Groups, NO_EDGE, Neighbours, Targets};
use crate::{Error, Scalar};

/// The disjoint union of some graphs: what one update works on.
///
/// Node `i` of the `k`-th graph is node `node_starts()[k] + i` of the batch.
#[derive(Clone, Debug, PartialEq)]
pub struct GraphBatch<S = f32> {
    node_starts: Vec<usize>,
    edge_starts: Vec<usize>,
    neighbours: Neighbours,
    groups: Groups,
    node_features: Features<S>,
    edge_features: Features<S>,
    node_targets: Targets<S>,
    graph_targets: Targets<S>,
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
        super::check_range(nodes, edges)?;
        if !edges.is_sorted_by(|a, b| a < b) {
            return Err(Error::Mismatch("edges are not in order, or one occurs twice".into()));
        }

        // Edges lie in order of their source, so the graphs can be walked along with them.
        let mut edge_starts = Vec::with_capacity(graphs + 1);
        edge_starts.push(0);
        let mut edge = 0;
        for graph in 0..graphs {
            let range = node_starts[graph]..node_starts[graph + 1];
            while let Some(&(source, target)) = edges.get(edge)
                && (source as usize) < range.end
            {
                if !range.contains(&(target as usize)) {
                    let target_graph =
                        node_starts.partition_point(|&start| start <= target as usize) - 1;
                    return Err(Error::EdgeBetweenGraphs {
                        edge,
                        source_graph: graph,
                        target_graph,
                    });
                }
                edge += 1;
            }
            edge_starts.push(edge);
        }

        let neighbours = Neighbours::new(nodes, edges, parts.edge_features.width() > 0)?;
        Ok(Self {
            groups: Groups::new(&parts.node_starts, &neighbours.starts),
            node_starts: parts.node_starts,
            edge_starts,
            neighbours,
            node_features: parts.node_features,
            edge_features: parts.edge_features,
            node_targets: parts.node_targets,
            graph_targets: parts.graph_targets,
        })
    }

    /// The batch of some of its graphs, in the given order; a graph may occur more than once.
    ///
    /// # Panics
    ///
    /// When a graph does not exist.
    pub fn select(&self, graphs: &[usize]) -> Self {
        let mut node_starts = Vec::with_capacity(graphs.len() + 1);
        let mut edge_starts = Vec::with_capacity(graphs.len() + 1);
        node_starts.push(0);
        edge_starts.push(0);
        let (mut nodes, mut edges) = (0, 0);
        let mut neighbours = Neighbours { starts: vec![0], ..Neighbours::default() };
        for &graph in graphs {
            self.copy_neighbours(graph, nodes, edges, &mut neighbours);
            nodes += self.nodes_of(graph).len();
            edges += self.edges_of(graph).len();
            node_starts.push(nodes);
            edge_starts.push(edges);
        }
        assert!(neighbours.len() < u32::MAX as usize, "a selection repeats too many graphs");
        Self {
            groups: Groups::new(&node_starts, &neighbours.starts),
            node_starts,
            edge_starts,
            neighbours,
            node_features: self.node_features.select(graphs.iter().flat_map(|&g| self.nodes_of(g))),
            edge_features: self.edge_features.select(graphs.iter().flat_map(|&g| self.edges_of(g))),
            node_targets: self.node_targets.select(graphs.iter().flat_map(|&g| self.nodes_of(g))),
            graph_targets: self.graph_targets.select(graphs.iter().copied()),
        }
    }

    /// Appends the neighbours of `graph` to `all`, its first node and edge renumbered.
    #[allow(clippy::cast_possible_truncation, reason = "32-bit numbers minus 32-bit numbers")]
    fn copy_neighbours(&self, graph: usize, node: usize, edge: usize, all: &mut Neighbours) {
        let nodes = self.nodes_of(graph);
        let from = &self.neighbours;
        let entries = from.starts[nodes.start] as usize..from.starts[nodes.end] as usize;
        let place = all.nodes.len();
        let moved = |x: u32, from: usize, to: usize| (x as usize - from + to) as u32;
        all.starts.extend(
            from.starts[nodes.start + 1..=nodes.end]
                .iter()
                .map(|&start| moved(start, entries.start, place)),
        );
        all.nodes.extend(from.nodes[entries.clone()].iter().map(|&u| moved(u, nodes.start, node)));
        all.twins
            .extend(from.twins[entries.clone()].iter().map(|&t| moved(t, entries.start, place)));
        if !from.outgoing.is_empty() {
            let first = self.edge_starts[graph];
            let rename = |&a: &u32| if a == NO_EDGE { NO_EDGE } else { moved(a, first, edge) };
            all.outgoing.extend(from.outgoing[entries.clone()].iter().map(rename));
            all.incoming.extend(from.incoming[entries].iter().map(rename));
        }
    }

    /// Number of nodes, over all graphs.
    pub fn nodes(&self) -> usize {
        self.node_starts[self.graphs()]
    }

    /// Number of graphs.
    pub fn graphs(&self) -> usize {
        self.node_starts.len() - 1
    }

    /// Number of edges, over all graphs.
    pub fn edges(&self) -> usize {
        self.edge_starts[self.graphs()]
    }

    /// The first node of every graph, and the number of nodes.
    pub fn node_starts(&self) -> &[usize] {
        &self.node_starts
    }

    /// The nodes of a graph.
    pub fn nodes_of(&self, graph: usize) -> Range<usize> {
        self.node_starts[graph]..self.node_starts[graph + 1]
    }

    fn edges_of(&self, graph: usize) -> Range<usize> {
        self.edge_starts[graph]..self.edge_starts[graph + 1]
    }

    /// `ne[v]` of every node.
    pub fn neighbours(&self) -> &Neighbours {
        &self.neighbours
    }

    /// Its nodes in groups, for threads to share.
    pub fn groups(&self) -> &Groups {
        &self.groups
    }

    /// The same batch in groups of about `work` nodes and neighbours, in place of a size that
    /// suits the machine. A graph that is much larger is cut.
    #[must_use]
    pub fn with_groups_of(mut self, work: usize) -> Self {
        self.groups = Groups::of_work(&self.node_starts, &self.neighbours.starts, work.max(1));
        self
    }

    /// The same graphs with some entries of the node features left out: see
    /// [`Features::with_dropout`].
    #[must_use]
    pub fn with_feature_dropout(&self, rate: f64, seed: u64) -> Self {
        Self {
            node_starts: self.node_starts.clone(),
            edge_starts: self.edge_starts.clone(),
            neighbours: self.neighbours.clone(),
            groups: self.groups.clone(),
            node_features: self.node_features.with_dropout(rate, seed),
            edge_features: self.edge_features.clone(),
            node_targets: self.node_targets.clone(),
            graph_targets: self.graph_targets.clone(),
        }
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
