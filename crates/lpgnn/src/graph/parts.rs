//! A graph in parts, of which a process has the nodes that it owns and no others.

use std::ops::Range;
use std::sync::Arc;

use super::share::{Parts, are_nearly_all};
use super::{Communicator, Exchange, Ghosts, Groups, Neighbours, Share, Topology};
use crate::{Error, Scalar};

/// The neighbours of the nodes that a rank owns, by their numbers in the whole graph.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PartRows<'a> {
    /// The first node of every part of the graph, and the number of nodes.
    pub(crate) part_starts: &'a [usize],
    /// The first part of every rank, and the number of parts.
    pub(crate) rank_starts: &'a [usize],
    /// Whose rows these are.
    pub(crate) rank: usize,
    /// Nodes and neighbours of all parts.
    pub(crate) work: usize,
    /// Where the neighbours of every own node start, and the end; the first start is that of `neighbours`.
    pub(crate) starts: &'a [u64],
    /// The neighbours of own nodes, each list in order. A node without any has an empty one.
    pub(crate) neighbours: &'a [u32],
}

impl<'a> PartRows<'a> {
    /// The nodes of a rank.
    fn nodes(&self, rank: usize) -> Range<usize> {
        let first = |rank: usize| self.part_starts[self.rank_starts[rank]];
        first(rank)..first(rank + 1)
    }

    /// The neighbours of an own node.
    #[allow(clippy::cast_possible_truncation, reason = "it is in memory")]
    pub(crate) fn list(&self, v: usize) -> &'a [u32] {
        let start = |v: usize| (self.starts[v] - self.starts[0]) as usize;
        &self.neighbours[start(v)..start(v + 1)]
    }

    /// The neighbours of every own node.
    fn lists(&self) -> impl Iterator<Item = &'a [u32]> + Clone + use<'a> {
        let (starts, all) = (self.starts, self.neighbours);
        let first = starts.first().copied().unwrap_or(0);
        #[allow(clippy::cast_possible_truncation, reason = "it is in memory")]
        starts.windows(2).map(move |w| &all[(w[0] - first) as usize..(w[1] - first) as usize])
    }

    /// # Errors
    ///
    /// [`Error::Mismatch`] unless lists lead up from the first to the last, each in order and of nodes that exist.
    pub(crate) fn check(&self, own: usize) -> Result<(), Error> {
        let mismatch = |problem: &str| Err(Error::Mismatch(problem.into()));
        let nodes = self.part_starts.last().copied().unwrap_or(0);
        let (first, last) = (self.starts.first().copied(), self.starts.last().copied());
        let count = first.zip(last).and_then(|(first, last)| last.checked_sub(first));
        if self.starts.len() != own + 1
            || !self.starts.is_sorted()
            || count != Some(self.neighbours.len() as u64)
        {
            return mismatch("the lists of neighbours of a part do not follow each other");
        }
        if nodes >= u32::MAX as usize || own + self.neighbours.len() >= u32::MAX as usize {
            return Err(Error::TooLarge);
        }
        let sound = |list: &[u32]| {
            list.is_sorted_by(|a, b| a < b) && list.last().is_none_or(|&u| (u as usize) < nodes)
        };
        if !self.lists().all(sound) {
            return mismatch(
                "a list of neighbours of a part is not in order, or names a node that does not exist",
            );
        }
        if !self.is_symmetric(first.unwrap_or(0)) {
            return mismatch("a node of a part is the neighbour of one that is not its neighbour");
        }
        Ok(())
    }
}

impl PartRows<'_> {
    /// Whether `v` is a neighbour of `u` wherever `u` is one of `v`, as far as both are here.
    fn is_symmetric(&self, first_entry: u64) -> bool {
        let Some(first) = self.first_node() else { return true };
        let own = first..first + self.starts.len() - 1;
        // Lists are in order, so that the own neighbours of a node are met in their order.
        let below = |list: &[u32]| list.partition_point(|&u| (u as usize) < own.start) as u64;
        let mut next: Vec<u64> = self
            .starts
            .iter()
            .zip(self.lists())
            .map(|(start, list)| start - first_entry + below(list))
            .collect();
        for (v, list) in own.clone().zip(self.lists()) {
            for &u in list.iter().filter(|&&u| own.contains(&(u as usize))) {
                let place = &mut next[u as usize - own.start];
                let end = self.starts[u as usize - own.start + 1] - first_entry;
                #[allow(clippy::cast_possible_truncation, reason = "it is in memory")]
                let found = self.neighbours.get(*place as usize).filter(|_| *place < end);
                if found.is_none_or(|&back| back as usize != v) {
                    return false;
                }
                *place += 1;
            }
        }
        true
    }

    /// The first node whose neighbours are here.
    fn first_node(&self) -> Option<usize> {
        let first = self.part_starts.get(*self.rank_starts.get(self.rank)?)?;
        (self.starts.len() > 1).then_some(*first)
    }
}

impl Topology {
    /// The topology of the nodes that this rank owns of a graph in parts. All ranks call it together.
    ///
    /// It is that of [`GraphBatch::shared_by`](super::GraphBatch::shared_by), made without the whole graph: owned nodes
    /// are numbered from 0, ghosts follow in the order of their numbers.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`], on all ranks, when what one has of its neighbours does not fit what others have.
    ///
    /// # Panics
    ///
    /// When lists are not in order.
    pub(crate) fn of_parts(
        rows: PartRows<'_>,
        ranks: &Arc<dyn Communicator>,
    ) -> Result<Self, Error> {
        let nodes = rows.nodes(ranks.rank());
        let ghosts = widened(&ghosts(&rows, &nodes), &rows);
        let (neighbours, ghost_pairs) = neighbours(&rows, &nodes, &ghosts);
        let parts = Parts {
            node_starts: rows.part_starts.to_vec(),
            rank_starts: rows.rank_starts.to_vec(),
        };
        let own = parts.rank_starts[ranks.rank()]..parts.rank_starts[ranks.rank() + 1];
        let starts = parts.node_starts.iter().map(|&start| start.wrapping_sub(nodes.start));
        let starts: Vec<usize> = starts.collect();
        let own = own.map(|part| starts[part]..starts[part + 1]);
        let groups = Groups::of_parts(own, neighbours.starts(), rows.work);
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "they are counts"
        )]
        let counts =
            ranks.all(groups.ranges().len() as f64).into_iter().map(|count| count as usize);
        let group_starts = std::iter::once(0).chain(counts.scan(0, |end, count| {
            *end += count;
            Some(*end)
        }));
        let (list, group_starts) = (rows.lists(), group_starts.collect());
        let share = Share::of_parts(ranks, parts, list, (&ghosts, &ghost_pairs), group_starts);
        if !share.is_symmetric() {
            return Err(Error::Mismatch(
                "the neighbours across parts do not fit each other: the parts are not those of one graph"
                    .into(),
            ));
        }
        let mut topology = Self {
            node_starts: vec![0, nodes.len()],
            edge_starts: vec![0, 0],
            ghosts: Ghosts {
                degrees: vec![0; ghosts.len()],
                pairs: ghost_pairs.iter().map(|&count| count as usize).sum(),
                interior: neighbours.runs_without(&ghosts, nodes.len()),
            },
            neighbours,
            groups,
            share: Some(Arc::new(share)),
        };
        topology.ghosts.degrees = topology.ghost_degrees();
        Ok(topology)
    }

    /// `de[u]` of ghosts, from whoever owns them.
    fn ghost_degrees(&self) -> Vec<u32> {
        let own: Vec<f64> = (0..self.nodes()).map(|v| self.neighbours.degree(v) as f64).collect();
        let mut degrees = vec![0.0; self.rows() - self.nodes()];
        exchange_of::<f64>(self).gather_nodes(self, 1, &own, &mut degrees);
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "they are counts"
        )]
        degrees.iter().map(|&degree| degree as u32).collect()
    }
}

fn exchange_of<S: Scalar>(topology: &Topology) -> &dyn Exchange<S> {
    topology.exchange()
}

/// Neighbours that other ranks own, in order.
fn ghosts(rows: &PartRows<'_>, nodes: &Range<usize>) -> Vec<u32> {
    let mut ghosts: Vec<u32> =
        rows.neighbours.iter().copied().filter(|&u| !nodes.contains(&(u as usize))).collect();
    ghosts.sort_unstable();
    ghosts.dedup();
    ghosts
}

/// The same with all nodes of ranks of which they are [nearly all](are_nearly_all).
#[allow(clippy::cast_possible_truncation, reason = "checked: numbers have 32 bits")]
fn widened(ghosts: &[u32], rows: &PartRows<'_>) -> Vec<u32> {
    let mut all = Vec::with_capacity(ghosts.len());
    let mut rest = ghosts;
    for rank in 0..rows.rank_starts.len() - 1 {
        let nodes = rows.nodes(rank);
        let (of_rank, behind) = rest.split_at(rest.partition_point(|&u| (u as usize) < nodes.end));
        if !of_rank.is_empty() && are_nearly_all(of_rank.len(), nodes.len()) {
            all.extend(nodes.map(|u| u as u32));
        } else {
            all.extend_from_slice(of_rank);
        }
        rest = behind;
    }
    all
}

/// The table of neighbours with the numbers that this rank gives to nodes, and the number of pairs of every ghost.
#[allow(clippy::cast_possible_truncation, reason = "checked: numbers have 32 bits")]
fn neighbours(rows: &PartRows<'_>, nodes: &Range<usize>, ghosts: &[u32]) -> (Neighbours, Vec<u32>) {
    let mut all = Neighbours::empty();
    all.starts.reserve(nodes.len());
    all.nodes.reserve(rows.neighbours.len());
    let mut pairs = vec![0_u32; ghosts.len()];
    for (v, list) in (0_u32..).zip(rows.lists()) {
        for &u in list {
            if nodes.contains(&(u as usize)) {
                all.nodes.push((u as usize - nodes.start) as u32);
            } else {
                let ghost = ghosts.binary_search(&u).expect("all of them are listed");
                pairs[ghost] += 1;
                all.nodes.push((nodes.len() + ghost) as u32);
            }
        }
        if list.is_empty() {
            all.push_isolated(v, false);
        }
        all.starts.push(all.nodes.len() as u32);
    }
    // The twin of "u of v" is "v of u": behind the ghosts of u with smaller numbers, since lists are in order; and of a ghost u, among
    // the pairs behind all own ones, which are in the order of ghosts and then of own nodes.
    let before = rows.lists().map(|list| list.partition_point(|&u| (u as usize) < nodes.start));
    let mut next: Vec<u32> =
        all.starts.iter().zip(before).map(|(start, before)| start + before as u32).collect();
    let mut end = all.nodes.len() as u32;
    for &count in &pairs {
        next.push(end);
        end += count;
    }
    all.twins = all
        .nodes
        .iter()
        .map(|&u| {
            let twin = next[u as usize];
            next[u as usize] += 1;
            twin
        })
        .collect();
    (all, pairs)
}
