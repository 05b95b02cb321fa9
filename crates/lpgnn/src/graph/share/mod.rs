//! What one of several ranks owns of a batch, and how it has what it needs of the others.
//!
//! ```text
//! cut       which nodes a rank owns, and what the batch is without the others
//! halo      which rows it sends to whom, and which ghosts come from whom
//! exchange  ghosts, exact or, by `stale`, one update old
//! reduce    sums over the groups or the parts of all ranks
//! rows      what all ranks own, put together
//! ```

mod cut;
mod exchange;
mod halo;
mod reduce;
mod rows;
mod stale;

use std::ops::Range;
use std::sync::Arc;

pub(super) use self::halo::are_nearly_all;

use self::cut::{graphs_of, owner, runs_of_groups};
use self::halo::Halo;
use self::stale::Stale;
use super::{Communicator, Part, Topology};
use crate::Error;

/// The nodes of a batch that one rank owns: those of a run of its groups.
///
/// Groups are those of the whole batch, whatever the number of ranks. So every sum within a group is taken by one rank in the
/// order of nodes, and sums of groups are added in the order of groups: results have the same bits for any number of ranks.
/// Where groups are whole graphs, so is what a rank owns; a graph that is cut has ghosts on both sides of the cut.
#[derive(Clone, Debug)]
pub struct Share {
    communicator: Arc<dyn Communicator>,
    /// The first group of every rank, and the number of groups.
    group_starts: Vec<usize>,
    /// The first node of every rank, and the number of nodes.
    node_starts: Vec<usize>,
    /// The graphs that have nodes here, or would if they had any.
    graphs: Range<usize>,
    /// Rows of tables of nodes that are ghosts elsewhere.
    nodes_at_cuts: Halo,
    /// The same of tables of pairs.
    pairs_at_cuts: Halo,
    /// Whether ghosts are exact, or one update old.
    stale: Arc<Stale>,
    /// Of a graph in parts, where ranks have rows of the nodes that they own and of no others.
    parts: Option<Parts>,
}

/// How a graph is cut into parts, whole numbers of which ranks own.
#[derive(Clone, Debug)]
pub(super) struct Parts {
    /// The first node of every part, and the number of nodes.
    pub(super) node_starts: Vec<usize>,
    /// The first part of every rank, and the number of parts.
    pub(super) rank_starts: Vec<usize>,
}

/// A batch is the same whoever else works on it.
impl PartialEq for Share {
    fn eq(&self, other: &Self) -> bool {
        self.node_starts == other.node_starts && self.graphs == other.graphs
    }
}

impl Share {
    /// What this rank owns of `whole`: its topology, and the numbers of its nodes and edges in the whole.
    pub(super) fn of(whole: &Topology, communicator: &Arc<dyn Communicator>) -> Part {
        let group_starts = runs_of_groups(whole, communicator.ranks());
        let ranges = whole.groups().ranges();
        let first_node = |&group: &usize| ranges.get(group).map_or(whole.nodes(), |g| g.start);
        let node_starts: Vec<usize> = group_starts.iter().map(first_node).collect();
        let rank = communicator.rank();
        let groups = group_starts[rank]..group_starts[rank + 1];
        let nodes = node_starts[rank]..node_starts[rank + 1];
        let entries = whole.neighbours().starts();
        let entry_starts: Vec<usize> = node_starts.iter().map(|&v| entries[v] as usize).collect();
        let graphs = graphs_of(whole, &nodes, rank + 1 == communicator.ranks());
        let groups = whole.groups().run(groups);
        let mut part = if groups.whole_graphs() {
            whole.part_of_graphs(graphs.clone(), groups)
        } else {
            whole.part_of_nodes(nodes, &graphs, groups)
        };
        let own = node_starts[rank]..node_starts[rank + 1];
        let lists = own.map(|v| whole.neighbours().of(v));
        let entries = entry_starts[rank]..entry_starts[rank + 1];
        let owners = part.ghost_pairs.iter().map(|&entry| owner(&entry_starts, entry as usize));
        part.topology.share = Some(Arc::new(Self {
            communicator: Arc::clone(communicator),
            nodes_at_cuts: Halo::of_nodes(lists, &part.ghosts, rank, &node_starts),
            pairs_at_cuts: Halo::of_pairs(
                &whole.neighbours().nodes()[entries],
                owners,
                rank,
                &node_starts,
            ),
            group_starts,
            node_starts,
            graphs,
            stale: Arc::default(),
            parts: None,
        }));
        part
    }

    /// What this rank has of a graph in parts, given the neighbours of its nodes and its ghosts, by their numbers in
    /// the whole graph; `ghost_pairs` is the number of pairs of every ghost.
    pub(super) fn of_parts<'a>(
        communicator: &Arc<dyn Communicator>,
        parts: Parts,
        lists: impl Iterator<Item = &'a [u32]> + Clone,
        (ghosts, ghost_pairs): (&[u32], &[u32]),
        group_starts: Vec<usize>,
    ) -> Self {
        let rank = communicator.rank();
        let first_node = |&part: &usize| parts.node_starts[part];
        let node_starts: Vec<usize> = parts.rank_starts.iter().map(first_node).collect();
        let owners = ghosts.iter().zip(ghost_pairs).flat_map(|(&ghost, &pairs)| {
            std::iter::repeat_n(owner(&node_starts, ghost as usize), pairs as usize)
        });
        let first = node_starts[rank];
        // A node without neighbours has an entry of its own.
        #[allow(clippy::cast_possible_truncation, reason = "numbers of a topology have 32 bits")]
        let entries: Vec<u32> = lists
            .clone()
            .zip(first..)
            .flat_map(|(list, v)| list.iter().copied().chain(list.is_empty().then_some(v as u32)))
            .collect();
        Self {
            communicator: Arc::clone(communicator),
            nodes_at_cuts: Halo::of_nodes(lists, ghosts, rank, &node_starts).widened(),
            pairs_at_cuts: Halo::of_pairs(&entries, owners, rank, &node_starts),
            group_starts,
            node_starts,
            graphs: 0..1,
            stale: Arc::default(),
            parts: Some(parts),
        }
    }

    /// The ranks among which the batch is shared.
    pub fn communicator(&self) -> &Arc<dyn Communicator> {
        &self.communicator
    }

    /// The nodes that this rank owns, as the whole batch numbers them.
    pub fn nodes(&self) -> Range<usize> {
        let rank = self.communicator.rank();
        self.node_starts[rank]..self.node_starts[rank + 1]
    }

    /// Number of nodes of the whole batch.
    pub fn whole_nodes(&self) -> usize {
        self.node_starts[self.communicator.ranks()]
    }

    /// The graphs of which this rank owns nodes.
    pub fn graphs(&self) -> Range<usize> {
        self.graphs.clone()
    }

    /// Whether rows are those of own nodes everywhere, since no rank has the whole graph.
    pub(crate) fn is_in_parts(&self) -> bool {
        self.parts.is_some()
    }

    /// Into how many parts the graph is cut; none where it is whole on every rank.
    pub(crate) fn parts(&self) -> usize {
        self.parts.as_ref().map_or(0, |parts| parts.node_starts.len() - 1)
    }

    /// The rows here of every part that this rank owns, with the number of the part.
    pub(crate) fn own_parts(&self) -> Vec<(usize, Range<usize>)> {
        let Some(parts) = &self.parts else { return vec![] };
        let (rank, first) = (self.communicator.rank(), self.nodes().start);
        let starts = &parts.node_starts;
        let own = parts.rank_starts[rank]..parts.rank_starts[rank + 1];
        own.map(|part| (part, starts[part] - first..starts[part + 1] - first)).collect()
    }

    /// The result of what every rank does by itself; an error on all of them where it is one on any.
    ///
    /// # Errors
    ///
    /// That of `result`, or [`Error::Elsewhere`].
    pub(crate) fn agree<T>(&self, result: Result<T, Error>) -> Result<T, Error> {
        agree(&*self.communicator, result)
    }
}

/// The result of what every rank does by itself; an error on all of them where it is one on any.
pub(crate) fn agree<T>(ranks: &dyn Communicator, result: Result<T, Error>) -> Result<T, Error> {
    match (ranks.any(result.is_err()), result) {
        (true, Ok(_)) => Err(Error::Elsewhere),
        (_, result) => result,
    }
}
