use super::slots::Slots;
use crate::graph::{NO_EDGE, Topology};

/// Who is whose neighbour, in a graph that changes.
///
/// `ne[v]` are parents and children, each once and in order, as in [`Neighbours`](crate::graph::Neighbours); but a node
/// without any has an empty list here. So a graph is the same whatever changes have led to it.
#[derive(Clone, Debug, Default)]
pub(super) struct Adjacency {
    links: Slots<Link>,
    /// The edges `(v, u)` and `(u, v)` of every link; no lists where edges have no features.
    edges: Slots<[u32; 2]>,
    with_edges: bool,
}

/// A neighbour, and in which directions edges lead to it and from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Link(u32);

const OUTGOING: u32 = 1;
const INCOMING: u32 = 2;

/// Nodes that can be numbered.
pub(super) const MOST_NODES: usize = 1 << 30;

impl Link {
    fn new(node: u32, directions: u32) -> Self {
        Self(node << 2 | directions)
    }

    #[inline]
    pub(super) fn node(self) -> usize {
        (self.0 >> 2) as usize
    }

    fn has(self, direction: u32) -> bool {
        self.0 & direction != 0
    }

    pub(super) fn is_outgoing(self) -> bool {
        self.has(OUTGOING)
    }

    pub(super) fn is_incoming(self) -> bool {
        self.has(INCOMING)
    }
}

impl Adjacency {
    /// That of a topology, along these edges, which are in order.
    pub(super) fn new(topology: &Topology, edges: &[(u32, u32)], with_edges: bool) -> Self {
        let neighbours = topology.neighbours();
        let mut all = Self { with_edges, ..Self::default() };
        all.links.reserve(neighbours.len() - neighbours.isolated().len(), topology.nodes());
        if with_edges {
            all.edges.reserve(neighbours.len(), topology.nodes());
        }
        for v in 0..topology.nodes() {
            let own = if neighbours.is_isolated(v) { &[][..] } else { neighbours.of(v) };
            all.links.push(own.iter().map(|&u| Link::new(u, 0)));
            if with_edges {
                all.edges.push(own.iter().map(|_| [NO_EDGE; 2]));
            }
        }
        for (edge, &(source, target)) in (0..).zip(edges) {
            all.add(source as usize, target as usize, edge);
        }
        all
    }

    /// That of nodes without edges.
    pub(super) fn without_edges(nodes: usize, with_edges: bool) -> Self {
        let mut all = Self { with_edges, ..Self::default() };
        (0..nodes).for_each(|_| all.push_node());
        all
    }

    /// Numbers that nodes have, those of removed ones among them.
    pub(super) fn nodes(&self) -> usize {
        self.links.lists()
    }

    /// `de[v]`
    #[inline]
    pub(super) fn degree(&self, v: usize) -> usize {
        self.links.len(v)
    }

    /// The degree of `v` will soon be asked.
    #[inline]
    pub(super) fn call_for(&self, v: usize) {
        self.links.call_for(v);
    }

    /// The neighbours of `v` will be, too.
    #[inline]
    pub(super) fn call_for_neighbours(&self, v: usize) {
        self.links.call_for_entries(v);
    }

    /// `ne[v]`
    #[inline]
    pub(super) fn of(&self, v: usize) -> &[Link] {
        self.links.of(v)
    }

    /// The edges of every link of `v`, where edges have features.
    #[inline]
    pub(super) fn edges_of(&self, v: usize) -> Option<&[[u32; 2]]> {
        self.with_edges.then(|| self.edges.of(v))
    }

    pub(super) fn push_node(&mut self) {
        self.links.push(std::iter::empty());
        if self.with_edges {
            self.edges.push(std::iter::empty());
        }
    }

    /// The number of an edge, 0 where edges have no features; none if there is no such edge.
    pub(super) fn edge(&self, source: usize, target: usize) -> Option<u32> {
        let at = self.find(source, target).ok()?;
        self.links.of(source)[at]
            .has(OUTGOING)
            .then(|| if self.with_edges { self.edges.of(source)[at][0] } else { 0 })
    }

    /// Whether lists could no longer be numbered with one more edge.
    pub(super) fn is_full(&self, v: usize, u: usize) -> bool {
        self.links.is_full(self.degree(v) + self.degree(u))
    }

    fn find(&self, v: usize, u: usize) -> Result<usize, usize> {
        self.links.of(v).binary_search_by(|link| link.node().cmp(&u))
    }

    /// Adds an edge that does not exist.
    pub(super) fn add(&mut self, source: usize, target: usize, edge: u32) {
        self.set(source, target, OUTGOING, edge);
        self.set(target, source, INCOMING, edge);
    }

    /// Removes an edge that exists.
    pub(super) fn remove(&mut self, source: usize, target: usize) {
        self.unset(source, target, OUTGOING);
        self.unset(target, source, INCOMING);
    }

    #[allow(clippy::cast_possible_truncation, reason = "nodes have 30 bits")]
    fn set(&mut self, v: usize, u: usize, direction: u32, edge: u32) {
        let at = match self.find(v, u) {
            Ok(at) => at,
            Err(at) => {
                self.links.insert(v, at, Link::new(u as u32, 0));
                if self.with_edges {
                    self.edges.insert(v, at, [NO_EDGE; 2]);
                }
                at
            }
        };
        self.links.of_mut(v)[at].0 |= direction;
        if self.with_edges {
            self.edges.of_mut(v)[at][usize::from(direction == INCOMING)] = edge;
        }
    }

    fn unset(&mut self, v: usize, u: usize, direction: u32) {
        let Ok(at) = self.find(v, u) else { return };
        let link = &mut self.links.of_mut(v)[at];
        link.0 &= !direction;
        let gone = !link.has(OUTGOING) && !link.has(INCOMING);
        if self.with_edges {
            self.edges.of_mut(v)[at][usize::from(direction == INCOMING)] = NO_EDGE;
        }
        if gone {
            self.links.remove(v, at);
            if self.with_edges {
                self.edges.remove(v, at);
            }
        }
    }

    /// All edges `(source, target)` with their numbers, in order.
    pub(super) fn edges(&self) -> impl Iterator<Item = (u32, u32, u32)> + '_ {
        #[allow(clippy::cast_possible_truncation, reason = "nodes have 30 bits")]
        (0..self.nodes()).flat_map(move |v| {
            self.of(v).iter().enumerate().filter(|(_, link)| link.has(OUTGOING)).map(
                move |(at, link)| {
                    let edge = self.edges_of(v).map_or(0, |edges| edges[at][0]);
                    (v as u32, link.node() as u32, edge)
                },
            )
        })
    }

    /// Bytes that it takes.
    pub(super) fn bytes(&self) -> usize {
        self.links.bytes() + self.edges.bytes()
    }
}
