//! Which nodes every rank owns, and what a batch is without those of others.

use std::ops::Range;

use crate::graph::{Groups, Part, Topology};

/// The first group of every rank and the number of groups, so that all have about as much to do.
pub(super) fn runs_of_groups(whole: &Topology, ranks: usize) -> Vec<usize> {
    let (ranges, starts) = (whole.groups().ranges(), whole.neighbours().starts());
    let work_before = |node: usize| node + starts[node] as usize;
    let total = work_before(whole.nodes());
    let first = |rank: usize| {
        let before = |group: &Range<usize>| work_before(group.start) + work_before(group.end);
        ranges.partition_point(|group| before(group) < 2 * rank * total / ranks)
    };
    (0..ranks).map(first).chain([ranges.len()]).collect()
}

/// The graphs that have some of `nodes`; graphs without nodes belong to whoever has what follows, or to the last.
pub(super) fn graphs_of(whole: &Topology, nodes: &Range<usize>, last: bool) -> Range<usize> {
    let starts = whole.node_starts();
    let first = if whole.groups().whole_graphs() {
        starts.partition_point(|&start| start < nodes.start)
    } else {
        starts.partition_point(|&start| start <= nodes.start).saturating_sub(1)
    };
    let end = if last { whole.graphs() } else { starts.partition_point(|&s| s < nodes.end) };
    first.min(whole.graphs())..end.max(first).min(whole.graphs())
}

/// The rank that owns a node or an entry, by where those of every rank start. Some ranks may have none.
pub(super) fn owner(starts: &[usize], of: usize) -> usize {
    starts.partition_point(|&start| start <= of) - 1
}

impl Topology {
    /// The part of some graphs, in these groups.
    #[allow(clippy::cast_possible_truncation, reason = "numbers of a topology have 32 bits")]
    pub(super) fn part_of_graphs(&self, graphs: Range<usize>, groups: Groups) -> Part {
        let nodes = self.node_starts[graphs.start] as u32..self.node_starts[graphs.end] as u32;
        let edges = self.edge_starts[graphs.start] as u32..self.edge_starts[graphs.end] as u32;
        let topology = self.select(&graphs.collect::<Vec<_>>()).in_groups(groups);
        let (owned, edges) = (nodes.collect(), edges.collect());
        Part { topology, owned, ghosts: vec![], ghost_pairs: vec![], edges }
    }

    /// The part of some nodes, in these groups; `graphs` are those that they are of.
    #[allow(clippy::cast_possible_truncation, reason = "numbers of a topology have 32 bits")]
    pub(super) fn part_of_nodes(
        &self,
        nodes: Range<usize>,
        graphs: &Range<usize>,
        groups: Groups,
    ) -> Part {
        let mut part = Part::new(self, (nodes.start as u32..nodes.end as u32).collect());
        let starts = self.node_starts[graphs.start..=graphs.end].iter();
        part.topology.node_starts =
            starts.map(|start| start.clamp(&nodes.start, &nodes.end) - nodes.start).collect();
        part.topology.edge_starts = vec![0; graphs.len()];
        part.topology.edge_starts.push(part.edges.len());
        part.topology = part.topology.in_groups(groups);
        part
    }

    fn in_groups(mut self, groups: Groups) -> Self {
        self.groups = groups;
        self
    }
}
