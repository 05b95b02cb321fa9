//! Which rows ranks send each other.

use std::ops::Range;

use rayon::prelude::*;

use super::cut::owner;
use crate::Scalar;
use crate::graph::communicator::{bytes, bytes_mut};
use crate::graph::{Communicator, Incoming, Outgoing, OutgoingRows, Pending};

/// Rows that ranks send each other.
#[derive(Clone, Debug, Default)]
pub(super) struct Halo {
    /// Own rows that are ghosts elsewhere, for every rank that has any.
    sends: Vec<(usize, SentRows)>,
    /// How many ghosts come from a rank, in the order of ghosts.
    receives: Vec<(usize, usize)>,
    /// How many own rows there are.
    own: usize,
}

/// Own rows that a rank is sent.
#[derive(Clone, Debug)]
enum SentRows {
    /// All there are, so many.
    All(usize),
    /// These.
    Listed(Vec<u32>),
}

impl SentRows {
    fn len(&self) -> usize {
        match self {
            Self::All(count) => *count,
            Self::Listed(rows) => rows.len(),
        }
    }

    /// Those that have to be put together before they are sent.
    fn listed(&self) -> &[u32] {
        match self {
            Self::All(_) => &[],
            Self::Listed(rows) => rows,
        }
    }
}

/// Whether so many ghosts of so many nodes of a rank are nearly all: then there are ghosts of all of them, for rows that lie together
/// are sent as they are.
pub(in crate::graph) fn are_nearly_all(ghosts: usize, nodes: usize) -> bool {
    10 * ghosts >= 9 * nodes
}

impl Halo {
    /// Of nodes: whoever owns a neighbour of a node has it as a ghost. `lists` are the neighbours of own nodes.
    #[allow(clippy::cast_possible_truncation, reason = "numbers of a topology have 32 bits")]
    pub(super) fn of_nodes<'a>(
        lists: impl Iterator<Item = &'a [u32]>,
        ghosts: &[u32],
        rank: usize,
        node_starts: &[usize],
    ) -> Self {
        let nodes = node_starts[rank]..node_starts[rank + 1];
        let mut sends: Vec<Vec<u32>> = vec![vec![]; node_starts.len() - 1];
        for (row, list) in lists.enumerate() {
            for &u in list.iter().filter(|&&u| !nodes.contains(&(u as usize))) {
                let to = &mut sends[owner(node_starts, u as usize)];
                if to.last() != Some(&(row as u32)) {
                    to.push(row as u32);
                }
            }
        }
        let owners = ghosts.iter().map(|&u| owner(node_starts, u as usize));
        Self::new(sends, owners, nodes.len())
    }

    /// The same, where ranks that need [nearly all](are_nearly_all) own rows have ghosts of all of them.
    pub(super) fn widened(mut self) -> Self {
        for (_, rows) in &mut self.sends {
            if are_nearly_all(rows.len(), self.own) {
                *rows = SentRows::All(self.own);
            }
        }
        self
    }

    /// Of pairs: the entry "u of v" of a node here is needed by whoever owns `u`. `owners` are those of the pairs of ghosts.
    #[allow(clippy::cast_possible_truncation, reason = "numbers of a topology have 32 bits")]
    pub(super) fn of_pairs(
        entries: &[u32],
        owners: impl Iterator<Item = usize>,
        rank: usize,
        node_starts: &[usize],
    ) -> Self {
        let nodes = node_starts[rank]..node_starts[rank + 1];
        let mut sends: Vec<Vec<u32>> = vec![vec![]; node_starts.len() - 1];
        let across = entries.iter().enumerate().filter(|(_, u)| !nodes.contains(&(**u as usize)));
        for (row, &u) in across {
            sends[owner(node_starts, u as usize)].push(row as u32);
        }
        Self::new(sends, owners, entries.len())
    }

    fn new(sends: Vec<Vec<u32>>, owners: impl Iterator<Item = usize>, own: usize) -> Self {
        let mut receives: Vec<(usize, usize)> = vec![];
        for owner in owners {
            match receives.last_mut() {
                Some((rank, count)) if *rank == owner => *count += 1,
                _ => receives.push((owner, 1)),
            }
        }
        let sends = sends.into_iter().enumerate().filter(|(_, rows)| !rows.is_empty());
        let sends = sends.map(|(to, rows)| (to, SentRows::Listed(rows))).collect();
        Self { sends, receives, own }
    }

    /// Whether nothing is sent and nothing comes.
    pub(super) fn is_empty(&self) -> bool {
        self.sends.is_empty() && self.receives.is_empty()
    }

    /// Of every rank: how many rows go there, and how many come from there.
    pub(super) fn counts(&self, ranks: usize) -> Vec<[usize; 2]> {
        let mut counts = vec![[0, 0]; ranks];
        self.sends.iter().for_each(|(to, rows)| counts[*to][0] = rows.len());
        self.receives.iter().for_each(|&(from, count)| counts[from][1] += count);
        counts
    }

    /// Starts an exchange, without waiting for it.
    pub(super) fn start<S: Scalar>(
        &self,
        communicator: &dyn Communicator,
        width: usize,
        own: &[S],
    ) -> Box<dyn Pending> {
        let size = width * size_of::<S>();
        let pack = |(rank, of): &(usize, SentRows)| match of {
            SentRows::All(_) => (*rank, bytes(own).to_vec()),
            SentRows::Listed(of) => {
                let mut packed = vec![0; of.len() * size];
                pack(of, width, own, &mut packed);
                (*rank, packed)
            }
        };
        let sends = self.sends.iter().map(pack).collect();
        let receives: Vec<(usize, usize)> =
            self.receives.iter().map(|&(rank, count)| (rank, count * size)).collect();
        communicator.start_exchange(sends, &receives)
    }

    /// Sets the rows of ghosts while `meanwhile` does something else.
    pub(super) fn exchange<S: Scalar>(
        &self,
        communicator: &dyn Communicator,
        width: usize,
        (own, ghosts): (&[S], &mut [S]),
        meanwhile: &mut dyn FnMut(&mut dyn FnMut()),
    ) {
        let size = width * size_of::<S>();
        let writers = self.sends.iter().map(|(_, of)| {
            move |some: Range<usize>, into: &mut [u8]| pack(&of.listed()[some], width, own, into)
        });
        let writers: Vec<_> = writers.collect();
        let sends = self.sends.iter().zip(&writers).map(|((to, of), write)| {
            let rows = match of {
                SentRows::All(_) => OutgoingRows::There(bytes(own)),
                SentRows::Listed(of) => OutgoingRows::Written(of.len(), write),
            };
            Outgoing { to: *to, size, rows }
        });
        let sends: Vec<Outgoing<'_>> = sends.collect();
        let mut rest = ghosts;
        let mut receives = vec![];
        for &(from, count) in &self.receives {
            let (rows, behind) = rest.split_at_mut(count * width);
            receives.push(Incoming { from, size, bytes: bytes_mut(rows) });
            rest = behind;
        }
        communicator.exchange_rows(&sends, &mut receives, meanwhile);
    }
}

/// Rows that a thread copies at a time.
const PACKED: usize = 256;

/// Some own rows, one after the other.
fn pack<S: Scalar>(of: &[u32], width: usize, own: &[S], into: &mut [u8]) {
    let size = width * size_of::<S>();
    if size == 0 {
        return;
    }
    let copy = |(of, into): (&[u32], &mut [u8])| {
        for (&row, into) in of.iter().zip(into.chunks_exact_mut(size)) {
            into.copy_from_slice(bytes(&own[row as usize * width..][..width]));
        }
    };
    if rayon::current_num_threads() > 1 && of.len() > PACKED {
        of.par_chunks(PACKED).zip(into.par_chunks_mut(PACKED * size)).for_each(copy);
    } else {
        copy((of, into));
    }
}
