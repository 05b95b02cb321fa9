use std::ops::Range;

use crate::Error;

/// No edge: the feature of an edge in a direction in which there is none.
pub const NO_EDGE: u32 = u32::MAX;

/// The neighbours `ne[v]` of every node: its parents and its children, each once, in order.
///
/// A node that has none, an [isolated](Self::is_isolated) one, is listed as its own neighbour: a function of pairs
/// of neighbours then sees it once.
///
/// `u ∈ ne[v]` exactly when `v ∈ ne[u]`, so every entry has a twin, and the same table serves the
/// sums over the neighbours of a node and those over the nodes of which it is a neighbour.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Neighbours {
    pub(super) starts: Vec<u32>,
    pub(super) nodes: Vec<u32>,
    pub(super) twins: Vec<u32>,
    /// The edges `(v, u)` and `(u, v)` of every entry; empty when edges have no features.
    pub(super) outgoing: Vec<u32>,
    pub(super) incoming: Vec<u32>,
    /// Nodes that no edge joins to another or to itself, in order.
    pub(super) isolated: Vec<u32>,
}

/// Nodes below which a run of them is not worth being worked on by itself.
const SHORT: usize = 8;

impl Neighbours {
    /// Runs of nodes all of whose neighbours are below `end`, but for short ones; none if there are no ghosts, as those above are.
    pub(super) fn runs_without(&self, ghosts: &[u32], end: usize) -> Vec<Range<usize>> {
        let (mut runs, mut start) = (vec![], 0);
        if ghosts.is_empty() {
            return runs;
        }
        let nodes = self.starts.len() - 1;
        for v in 0..=nodes {
            if v == nodes || self.of(v).iter().any(|&u| u as usize >= end) {
                if v - start >= SHORT {
                    runs.push(start..v);
                }
                start = v + 1;
            }
        }
        runs
    }

    /// The neighbours along `edges`, which are sorted, without duplicates and between `nodes` nodes.
    pub(super) fn new(nodes: usize, edges: &[(u32, u32)], with_edges: bool) -> Result<Self, Error> {
        // An entry is numbered with 32 bits; an edge makes at most two, an isolated node one.
        if nodes + 2 * edges.len() >= u32::MAX as usize {
            return Err(Error::TooLarge);
        }
        // Without any edge, their features may have any length: a function that reads them finds none.
        let with_edges = with_edges || edges.is_empty();
        let undirected = Self::undirected(nodes, edges, with_edges);
        Ok(undirected.unwrap_or_else(|| Self::merged(nodes, edges, with_edges)))
    }

    /// Parents and children of every node, merged.
    #[allow(
        clippy::cast_possible_truncation,
        reason = "at most twice the edges and once the nodes, see above"
    )]
    fn merged(nodes: usize, edges: &[(u32, u32)], with_edges: bool) -> Self {
        let children = starts(nodes, edges.iter().map(|&(source, _)| source));
        let parents = starts(nodes, edges.iter().map(|&(_, target)| target));
        // Sources come in order, so each list of parents does too.
        let mut parent_edges = vec![0_u32; edges.len()];
        let mut next = parents.clone();
        for (edge, &(_, target)) in (0_u32..).zip(edges) {
            parent_edges[next[target as usize] as usize] = edge;
            next[target as usize] += 1;
        }

        let mut all = Self::default();
        all.starts.reserve(nodes + 1);
        all.nodes.reserve(edges.len());
        all.starts.push(0);
        for v in 0..nodes {
            let mut out = (children[v]..children[v + 1]).peekable();
            let mut inward = parent_edges[parents[v] as usize..parents[v + 1] as usize]
                .iter()
                .copied()
                .peekable();
            loop {
                let child = out.peek().map(|&edge| edges[edge as usize].1);
                let parent = inward.peek().map(|&edge| edges[edge as usize].0);
                let Some(u) = child.into_iter().chain(parent).min() else { break };
                let outgoing = out.next_if(|_| child == Some(u)).unwrap_or(NO_EDGE);
                let incoming = inward.next_if(|_| parent == Some(u)).unwrap_or(NO_EDGE);
                all.nodes.push(u);
                if with_edges {
                    all.outgoing.push(outgoing);
                    all.incoming.push(incoming);
                }
            }
            if all.nodes.len() == all.starts[v] as usize {
                all.push_isolated(v as u32, with_edges);
            }
            all.starts.push(all.nodes.len() as u32);
        }
        all.twins = all.pair_up();
        all
    }

    /// The neighbours along edges that are in order and without duplicates.
    ///
    /// # Errors
    ///
    /// [`Error::TooLarge`]
    #[cfg(feature = "mpi")]
    pub(crate) fn along(nodes: usize, edges: &[(u32, u32)]) -> Result<Self, Error> {
        Self::new(nodes, edges, false)
    }

    /// The same where every edge has its reverse, as in most data: then parents are children. None otherwise.
    #[allow(
        clippy::cast_possible_truncation,
        reason = "at most the edges and once the nodes, see above"
    )]
    fn undirected(nodes: usize, edges: &[(u32, u32)], with_edges: bool) -> Option<Self> {
        let children = starts(nodes, edges.iter().map(|&(source, _)| source));
        // Edges come in order, so the reverse of the next edge to a node is the next edge from it.
        let mut next = children.clone();
        let mut reverse = Vec::with_capacity(edges.len());
        for &(source, target) in edges {
            let edge = next[target as usize];
            if edges.get(edge as usize) != Some(&(target, source)) {
                return None;
            }
            next[target as usize] += 1;
            reverse.push(edge);
        }
        let mut all = Self::empty();
        all.starts.reserve(nodes);
        all.nodes.reserve(edges.len());
        for (v, ends) in (0..).zip(children.windows(2)) {
            let own = ends[0] as usize..ends[1] as usize;
            if own.is_empty() {
                all.push_isolated(v, with_edges);
            }
            all.nodes.extend(edges[own.clone()].iter().map(|&(_, target)| target));
            if with_edges {
                all.outgoing.extend(ends[0]..ends[1]);
                all.incoming.extend(&reverse[own]);
            }
            all.starts.push(all.nodes.len() as u32);
        }
        all.twins = all.pair_up();
        Some(all)
    }

    /// A node without neighbours is its own, along no edge: so what is known of it reaches its state.
    pub(super) fn push_isolated(&mut self, v: u32, with_edges: bool) {
        self.nodes.push(v);
        self.isolated.push(v);
        if with_edges {
            self.outgoing.push(NO_EDGE);
            self.incoming.push(NO_EDGE);
        }
    }

    /// Of no nodes.
    pub(super) fn empty() -> Self {
        Self { starts: vec![0], ..Self::default() }
    }

    /// The place of `(u, v)` for every `(v, u)`: both lists are in order, so one sweep finds it.
    fn pair_up(&self) -> Vec<u32> {
        let mut next = self.starts.clone();
        self.nodes
            .iter()
            .map(|&u| {
                let twin = next[u as usize];
                next[u as usize] += 1;
                twin
            })
            .collect()
    }

    /// How many pairs `(v, u)` with `u ∈ ne[v]` there are.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether no node has a neighbour.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Where the neighbours of every node start, and where the last ones end.
    pub fn starts(&self) -> &[u32] {
        &self.starts
    }

    /// The entries of `v`: places in [`nodes`](Self::nodes).
    #[inline]
    pub fn range(&self, v: usize) -> std::ops::Range<usize> {
        self.starts[v] as usize..self.starts[v + 1] as usize
    }

    /// `ne[v]`
    #[inline]
    pub fn of(&self, v: usize) -> &[u32] {
        &self.nodes[self.range(v)]
    }

    /// `de[v]`, the number of neighbours.
    #[inline]
    pub fn degree(&self, v: usize) -> usize {
        self.range(v).len()
    }

    /// The neighbours of all nodes, one list after the other.
    pub fn nodes(&self) -> &[u32] {
        &self.nodes
    }

    /// For the entry that says `u ∈ ne[v]`, the one that says `v ∈ ne[u]`.
    pub fn twins(&self) -> &[u32] {
        &self.twins
    }

    /// For every entry `u ∈ ne[v]`, the edge `(v, u)` or [`NO_EDGE`]. Empty when edges have no features.
    pub fn outgoing(&self) -> &[u32] {
        &self.outgoing
    }

    /// For every entry `u ∈ ne[v]`, the edge `(u, v)` or [`NO_EDGE`]. Empty when edges have no features.
    pub fn incoming(&self) -> &[u32] {
        &self.incoming
    }

    /// Whether `v` has no edge at all, and is its own neighbour only so that it has one.
    pub fn is_isolated(&self, v: usize) -> bool {
        !self.isolated.is_empty()
            && self.isolated.binary_search_by(|&u| (u as usize).cmp(&v)).is_ok()
    }

    /// All isolated nodes, in order.
    pub fn isolated(&self) -> &[u32] {
        &self.isolated
    }

    /// The largest degree, 0 without nodes.
    pub fn largest_degree(&self) -> usize {
        self.starts.windows(2).map(|w| (w[1] - w[0]) as usize).max().unwrap_or(0)
    }
}

/// Where the group of every node starts when its members are laid out in order, and the end.
fn starts(nodes: usize, members: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut starts = vec![0_u32; nodes + 1];
    for node in members {
        starts[node as usize + 1] += 1;
    }
    for node in 0..nodes {
        starts[node + 1] += starts[node];
    }
    starts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::uniform;

    #[test]
    fn where_every_edge_has_its_reverse_neighbours_are_what_merging_finds() {
        let mut draw = uniform(1);
        for nodes in 1..30_u32 {
            let mut edges = vec![];
            for u in 0..nodes {
                for v in (u..nodes).filter(|_| draw() < 0.1) {
                    edges.extend([(u, v), (v, u)]);
                }
            }
            edges.sort_unstable();
            edges.dedup();
            for with_edges in [false, true] {
                let merged = Neighbours::merged(nodes as usize, &edges, with_edges);
                let undirected = Neighbours::undirected(nodes as usize, &edges, with_edges);
                assert_eq!(undirected, Some(merged), "{edges:?}");
            }
            if let Some(place) = edges.iter().position(|(u, v)| u != v) {
                edges.remove(place);
                let undirected = Neighbours::undirected(nodes as usize, &edges, false);
                assert_eq!(undirected, None, "{edges:?}");
            }
        }
    }
}
