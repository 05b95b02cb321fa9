use std::ops::Range;
use std::sync::Arc;

use super::{Exchange, Groups, Local, NO_EDGE, Neighbours, Reduce, Share};
use crate::{Error, Scalar};

/// Who is whose neighbour, in all graphs of a batch: what one update walks along.
///
/// Node `i` of the `k`-th graph is node `node_starts()[k] + i`. A topology holds no features, no targets and
/// no states, so that these can change without it.
///
/// Where several processes share a graph, each *owns* some of its nodes and computes their states; a neighbour
/// that another process owns is a *ghost*. Rows of nodes are laid out as owned rows, then ghost rows, and an
/// [`Exchange`](super::Exchange) fills the latter.
#[derive(Clone, Debug, PartialEq)]
pub struct Topology {
    pub(super) node_starts: Vec<usize>,
    pub(super) edge_starts: Vec<usize>,
    pub(super) neighbours: Neighbours,
    pub(super) groups: Groups,
    pub(super) ghosts: Ghosts,
    /// Of a part that a rank owns of a batch: how it has what others own.
    pub(super) share: Option<Arc<Share>>,
}

/// What a process has to know of the nodes that others own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ghosts {
    /// `de[u]` of every ghost; its length is the number of ghosts.
    pub degrees: Vec<u32>,
    /// How many pairs `(u, v)` of a ghost `u` and an owned node `v` there are: entry `len() + k` of a table of
    /// pairs is the `k`-th of them, and twins may name it.
    pub pairs: usize,
    /// Runs of owned nodes without ghosts among their neighbours, in order: what can be done while rows of ghosts are on their
    /// way. Short runs are left out; there are none where there are no ghosts.
    pub interior: Vec<Range<usize>>,
}

impl Topology {
    /// The topology of graphs with these first nodes (and the number of nodes at the end) and these edges
    /// `(u, v)`, which are in order and without duplicates.
    ///
    /// `with_edges` keeps for every pair of neighbours which edges join them, for their features.
    ///
    /// # Errors
    ///
    /// [`Error::EdgeOutOfRange`], [`Error::EdgeBetweenGraphs`], [`Error::Mismatch`] when edges are not in
    /// order, [`Error::TooLarge`].
    pub fn new(
        node_starts: Vec<usize>,
        edges: &[(u32, u32)],
        with_edges: bool,
    ) -> Result<Self, Error> {
        let (_, nodes) = super::check_starts(&node_starts)?;
        super::check_range(nodes, edges)?;
        if !edges.is_sorted_by(|a, b| a < b) {
            return Err(Error::Mismatch("edges are not in order, or one occurs twice".into()));
        }
        let edge_starts = edge_starts(&node_starts, edges)?;
        let neighbours = Neighbours::new(nodes, edges, with_edges)?;
        Ok(Self::alone(node_starts, edge_starts, neighbours))
    }

    /// Of graphs that one process owns.
    fn alone(node_starts: Vec<usize>, edge_starts: Vec<usize>, neighbours: Neighbours) -> Self {
        let groups = Groups::new(&node_starts, neighbours.starts());
        let ghosts = Ghosts::default();
        Self { node_starts, edge_starts, neighbours, groups, ghosts, share: None }
    }

    /// The topology of some of its graphs, in the given order; a graph may occur more than once.
    ///
    /// # Panics
    ///
    /// When a graph does not exist.
    #[must_use]
    pub fn select(&self, graphs: &[usize]) -> Self {
        let mut node_starts = Vec::with_capacity(graphs.len() + 1);
        let mut edge_starts = Vec::with_capacity(graphs.len() + 1);
        node_starts.push(0);
        edge_starts.push(0);
        let (mut nodes, mut edges) = (0, 0);
        let mut neighbours = Neighbours::empty();
        for &graph in graphs {
            self.copy_neighbours(graph, nodes, edges, &mut neighbours);
            nodes += self.nodes_of(graph).len();
            edges += self.edges_of(graph).len();
            node_starts.push(nodes);
            edge_starts.push(edges);
        }
        assert!(neighbours.len() < u32::MAX as usize, "a selection repeats too many graphs");
        Self::alone(node_starts, edge_starts, neighbours)
    }

    /// The topology of all graphs of some topologies, in their order; `with_edges` keeps which edges join
    /// neighbours.
    ///
    /// # Errors
    ///
    /// [`Error::TooLarge`]
    pub fn union<'a>(all: impl Iterator<Item = &'a Self>, with_edges: bool) -> Result<Self, Error> {
        let (mut node_starts, mut edge_starts) = (vec![0], vec![0]);
        let (mut nodes, mut edges) = (0, 0);
        let mut neighbours = Neighbours::empty();
        for topology in all {
            if nodes + topology.nodes() >= u32::MAX as usize
                || neighbours.len() + topology.neighbours.len() >= u32::MAX as usize
            {
                return Err(Error::TooLarge);
            }
            for graph in 0..topology.graphs() {
                topology.copy_neighbours(graph, nodes, edges, &mut neighbours);
                nodes += topology.nodes_of(graph).len();
                edges += topology.edges_of(graph).len();
                node_starts.push(nodes);
                edge_starts.push(edges);
            }
        }
        if !with_edges && edges > 0 {
            // Graphs without any edge list which they have, whatever the others do.
            (neighbours.outgoing, neighbours.incoming) = (vec![], vec![]);
        }
        Ok(Self::alone(node_starts, edge_starts, neighbours))
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
        let first = from.isolated.partition_point(|&v| (v as usize) < nodes.start);
        let end = from.isolated.partition_point(|&v| (v as usize) < nodes.end);
        all.isolated.extend(from.isolated[first..end].iter().map(|&v| moved(v, nodes.start, node)));
        if !from.outgoing.is_empty() {
            let first = self.edge_starts[graph];
            let rename = |&a: &u32| if a == NO_EDGE { NO_EDGE } else { moved(a, first, edge) };
            all.outgoing.extend(from.outgoing[entries.clone()].iter().map(rename));
            all.incoming.extend(from.incoming[entries].iter().map(rename));
        }
    }

    /// The same in groups of about `work` nodes and pairs, in place of a size that suits the machine. A graph
    /// that is much larger is cut.
    #[must_use]
    pub fn with_groups_of(mut self, work: usize) -> Self {
        self.groups = Groups::of_work(&self.node_starts, self.neighbours.starts(), work.max(1));
        self
    }

    /// Number of nodes, over all graphs: those that this process owns.
    pub fn nodes(&self) -> usize {
        self.node_starts[self.graphs()]
    }

    /// Rows of a table of nodes: owned ones, then ghosts.
    pub fn rows(&self) -> usize {
        self.nodes() + self.ghosts.degrees.len()
    }

    /// Rows of a table of pairs: those of owned nodes, then those of ghosts with owned nodes.
    pub fn pair_rows(&self) -> usize {
        self.neighbours.len() + self.ghosts.pairs
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

    /// The edges of a graph.
    pub fn edges_of(&self, graph: usize) -> Range<usize> {
        self.edge_starts[graph]..self.edge_starts[graph + 1]
    }

    /// `ne[v]` of every owned node.
    pub fn neighbours(&self) -> &Neighbours {
        &self.neighbours
    }

    /// Its nodes in groups, for threads to share.
    pub fn groups(&self) -> &Groups {
        &self.groups
    }

    /// What this process knows of nodes that others own.
    pub fn ghosts(&self) -> &Ghosts {
        &self.ghosts
    }

    /// Some owned nodes in runs, in order: whether they are [interior](Ghosts::interior), and which they are.
    pub(crate) fn pieces(
        &self,
        nodes: Range<usize>,
    ) -> impl Iterator<Item = (bool, Range<usize>)> + '_ {
        let runs = &self.ghosts.interior;
        let mut runs = runs[runs.partition_point(|run| run.end <= nodes.start)..].iter().peekable();
        let mut start = nodes.start;
        std::iter::from_fn(move || {
            if start >= nodes.end {
                return None;
            }
            let (interior, end) = match runs.peek() {
                Some(run) if run.start <= start => (true, run.end),
                Some(run) => (false, run.start),
                None => (false, nodes.end),
            };
            if interior {
                runs.next();
            }
            let piece = start..end.min(nodes.end);
            start = piece.end;
            Some((interior, piece))
        })
    }

    /// Those of the [pieces](Self::pieces) that need no ghosts, or those that do.
    pub(crate) fn pieces_that(
        &self,
        interior: bool,
        nodes: Range<usize>,
    ) -> impl Iterator<Item = Range<usize>> + '_ {
        self.pieces(nodes).filter_map(move |(is, piece)| (is == interior).then_some(piece))
    }

    /// What this process owns of a batch that several share; none where it owns all nodes.
    pub fn share(&self) -> Option<&Share> {
        self.share.as_deref()
    }

    /// How rows of nodes that others own are had.
    pub(crate) fn exchange<S: Scalar>(&self) -> &dyn Exchange<S> {
        self.share().map_or(&Local, |share| share)
    }

    /// How the sums of groups are added up over all processes.
    pub(crate) fn reduce<S: Scalar>(&self) -> &dyn Reduce<S> {
        self.share().map_or(&Local, |share| share)
    }

    /// Number of nodes, whoever owns them.
    pub(crate) fn whole_nodes(&self) -> usize {
        self.share().map_or(self.nodes(), Share::whole_nodes)
    }

    /// `de[v]` of an owned node or a ghost.
    pub fn degree(&self, v: usize) -> usize {
        match v.checked_sub(self.nodes()) {
            None => self.neighbours.degree(v),
            Some(ghost) => self.ghosts.degrees[ghost] as usize,
        }
    }
}

/// The nodes that one of several processes owns, as it sees them.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// Their neighbours, with those that others own as ghosts.
    pub topology: Topology,
    /// The nodes it owns, as the whole topology numbers them.
    pub owned: Vec<u32>,
    /// The ghosts, likewise.
    pub ghosts: Vec<u32>,
    /// The pairs of ghosts with owned nodes, as entries of the whole table of neighbours.
    pub ghost_pairs: Vec<u32>,
    /// The edges at owned nodes whose features it needs, as the whole topology numbers them.
    pub edges: Vec<u32>,
}

impl Part {
    /// What a process sees that owns `owned` nodes of `whole`, given in ascending order.
    ///
    /// Neighbours keep their order, so that sums over them have the same bits as in the whole.
    ///
    /// # Panics
    ///
    /// When a node does not exist, or nodes are not in ascending order.
    #[allow(clippy::cast_possible_truncation, reason = "numbers of a topology have 32 bits")]
    pub fn new(whole: &Topology, owned: Vec<u32>) -> Self {
        assert!(owned.is_sorted_by(|a, b| a < b), "owned nodes are in ascending order");
        let from = whole.neighbours();
        let entries = || owned.iter().flat_map(|&v| from.range(v as usize));
        let place = |list: &[u32], x: u32| list.binary_search(&x).ok();
        let mut ghosts: Vec<u32> = entries().map(|entry| from.nodes[entry]).collect();
        ghosts.retain(|&u| place(&owned, u).is_none());
        ghosts.sort_unstable();
        ghosts.dedup();
        let kept: Vec<u32> = entries().map(|entry| entry as u32).collect();
        let mut ghost_pairs: Vec<u32> = entries().map(|entry| from.twins[entry]).collect();
        ghost_pairs.retain(|&twin| place(&kept, twin).is_none());
        ghost_pairs.sort_unstable();
        let joins = |entry: usize| [from.outgoing.get(entry), from.incoming.get(entry)];
        let mut edges: Vec<u32> = entries().flat_map(joins).flatten().copied().collect();
        edges.retain(|&edge| edge != NO_EDGE);
        edges.sort_unstable();
        edges.dedup();

        // Owned first, ghosts behind them.
        let local = |first: &[u32], second: &[u32], x: u32| {
            let ghost = || first.len() + place(second, x).expect("it is among one of both");
            place(first, x).unwrap_or_else(ghost) as u32
        };
        let edge = |list: &[u32]| -> Vec<u32> {
            let rename = |a: u32| place(&edges, a).map_or(NO_EDGE, |a| a as u32);
            entries().filter_map(|entry| list.get(entry)).map(|&a| rename(a)).collect()
        };
        let mut neighbours = Neighbours::empty();
        for &v in &owned {
            let before = neighbours.starts[neighbours.starts.len() - 1];
            neighbours.starts.push(before + from.degree(v as usize) as u32);
        }
        neighbours.nodes = entries().map(|e| local(&owned, &ghosts, from.nodes[e])).collect();
        neighbours.twins = entries().map(|e| local(&kept, &ghost_pairs, from.twins[e])).collect();
        (neighbours.outgoing, neighbours.incoming) = (edge(&from.outgoing), edge(&from.incoming));
        neighbours.isolated =
            from.isolated.iter().filter_map(|&v| place(&owned, v)).map(|v| v as u32).collect();
        let topology = Topology {
            node_starts: vec![0, owned.len()],
            edge_starts: vec![0, edges.len()],
            groups: Groups::cut_graphs(neighbours.starts()),
            ghosts: Ghosts {
                degrees: ghosts.iter().map(|&u| from.degree(u as usize) as u32).collect(),
                pairs: ghost_pairs.len(),
                interior: neighbours.runs_without(&ghosts, owned.len()),
            },
            neighbours,
            share: None,
        };
        Self { topology, owned, ghosts, ghost_pairs, edges }
    }
}

/// The first edge of every graph, and the number of edges.
fn edge_starts(node_starts: &[usize], edges: &[(u32, u32)]) -> Result<Vec<usize>, Error> {
    let graphs = node_starts.len() - 1;
    let mut edge_starts = Vec::with_capacity(graphs + 1);
    edge_starts.push(0);
    let mut edge = 0;
    // Edges lie in order of their source, so the graphs can be walked along with them.
    for graph in 0..graphs {
        let range = node_starts[graph]..node_starts[graph + 1];
        while let Some(&(source, target)) = edges.get(edge)
            && (source as usize) < range.end
        {
            if !range.contains(&(target as usize)) {
                let target_graph =
                    node_starts.partition_point(|&start| start <= target as usize) - 1;
                return Err(Error::EdgeBetweenGraphs { edge, source_graph: graph, target_graph });
            }
            edge += 1;
        }
        edge_starts.push(edge);
    }
    Ok(edge_starts)
}
