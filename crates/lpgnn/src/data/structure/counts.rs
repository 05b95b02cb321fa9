use std::ops::Range;

use super::{Budget, cliques, rings};
use crate::graph::{NO_EDGE, Neighbours, Topology};
use crate::transition::{for_each_group, split_rows};

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// A cycle without chords.
    Ring,
    /// Nodes that are all neighbours of each other.
    Clique,
}

/// How many shapes of every kind go through every row, a node or an edge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::data) struct Counts {
    kinds: Vec<(Shape, usize)>,
    /// Row by row, a count per kind; beyond 2³² they stay there.
    counts: Vec<u32>,
}

impl Counts {
    fn zeros(kinds: &[(Shape, usize)], rows: usize) -> Self {
        Self { kinds: kinds.to_vec(), counts: vec![0; rows * kinds.len()] }
    }

    /// The kinds that occur, each with its largest count.
    pub(in crate::data) fn largest(&self) -> impl Iterator<Item = ((Shape, usize), u32)> + '_ {
        let largest = |(kind, what)| (what, self.column(kind).max().unwrap_or(0));
        self.kinds.iter().copied().enumerate().map(largest).filter(|(_, largest)| *largest > 0)
    }

    /// The counts of one kind; none if it was not counted.
    pub(in crate::data) fn of(&self, what: (Shape, usize)) -> Option<impl Iterator<Item = u32>> {
        let kind = self.kinds.iter().position(|kind| *kind == what)?;
        Some(self.column(kind))
    }

    fn column(&self, kind: usize) -> impl Iterator<Item = u32> {
        self.counts.chunks_exact(self.kinds.len()).map(move |row| row[kind])
    }
}

/// The largest count with a column of its own.
const SINGLE: u32 = 7;

/// The column of a count: its own up to 7, then one for 8 to 15, one for 16 to 31, and so on.
pub(in crate::data) fn bin(count: u32) -> u32 {
    if count <= SINGLE { count } else { SINGLE - 2 + count.ilog2() }
}

/// The counts of every node and, if they are asked for, of every edge, which has those of its two nodes as a pair in
/// either direction.
pub(super) fn count(
    topology: &Topology,
    kinds: &[(Shape, usize)],
    with_edges: bool,
    budget: &Budget,
) -> (Counts, Counts) {
    let neighbours = topology.neighbours();
    let mut nodes = Counts::zeros(kinds, topology.nodes());
    let mut pairs = Counts::zeros(kinds, if with_edges { neighbours.len() } else { 0 });
    let ranges: Vec<_> = (0..topology.graphs()).map(|graph| topology.nodes_of(graph)).collect();
    let start = |v: usize| neighbours.starts()[v] as usize;
    let entries: Vec<_> = ranges.iter().map(|r| start(r.start)..start(r.end)).collect();
    let own: Vec<_> = entries.iter().map(|e| if with_edges { e.clone() } else { 0..0 }).collect();
    let of_nodes = split_rows(&mut nodes.counts, kinds.len(), &ranges);
    let of_pairs = split_rows(&mut pairs.counts, kinds.len(), &own);
    let tally = |(((range, entries), nodes), pairs)| Tally {
        neighbours,
        kinds,
        range,
        entries,
        nodes,
        pairs,
    };
    let mut graphs: Vec<_> =
        ranges.into_iter().zip(entries).zip(of_nodes).zip(of_pairs).map(tally).collect();
    for_each_group(&mut graphs, |tally| {
        rings::count(tally, budget);
        cliques::count(tally, budget);
    });
    let mut edges = Counts::zeros(kinds, if with_edges { topology.edges() } else { 0 });
    for (row, &edge) in pairs.counts.chunks_exact(kinds.len()).zip(neighbours.outgoing()) {
        if edge != NO_EDGE {
            let start = edge as usize * kinds.len();
            edges.counts[start..start + kinds.len()].copy_from_slice(row);
        }
    }
    (nodes, edges)
}

/// The counts of one graph, on their way.
pub(super) struct Tally<'a> {
    pub(super) neighbours: &'a Neighbours,
    pub(super) kinds: &'a [(Shape, usize)],
    /// Its nodes.
    pub(super) range: Range<usize>,
    /// Its entries among the neighbours of all graphs.
    entries: Range<usize>,
    nodes: &'a mut [u32],
    /// Of its entries; empty where nobody asks.
    pairs: &'a mut [u32],
}

impl Tally<'_> {
    /// The neighbours of `v`, itself excluded, and their entries.
    pub(super) fn others(&self, v: usize) -> impl Iterator<Item = (usize, usize)> + '_ {
        let neighbours = self.neighbours;
        neighbours.range(v).filter_map(move |entry| {
            let u = neighbours.nodes()[entry] as usize;
            (u != v).then_some((u, entry))
        })
    }

    /// Whether pairs are counted.
    pub(super) fn with_pairs(&self) -> bool {
        !self.pairs.is_empty()
    }

    /// `by` more of this kind go through `v`.
    pub(super) fn node(&mut self, kind: usize, v: usize, by: u32) {
        let count = &mut self.nodes[(v - self.range.start) * self.kinds.len() + kind];
        *count = count.saturating_add(by);
    }

    /// `by` more go through the pair of neighbours that has this entry, and its twin.
    pub(super) fn pair(&mut self, kind: usize, entry: usize, by: u32) {
        if self.with_pairs() {
            for entry in [entry, self.neighbours.twins()[entry] as usize] {
                let count = &mut self.pairs[(entry - self.entries.start) * self.kinds.len() + kind];
                *count = count.saturating_add(by);
            }
        }
    }
}
