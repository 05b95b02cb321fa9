//! What one of several ranks owns of a batch, and how it has what it needs of the others.

use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use super::communicator::{bytes, bytes_mut};
use super::stale::Stale;
use super::{
    Communicator, Exchange, Groups, Incoming, Outgoing, OutgoingRows, Part, Pending, Reduce,
    Topology,
};
use crate::numeric::worse;
use crate::{Error, Matrix, Scalar};

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
    nodes_at_cuts: Halo,
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

    /// Whether ghosts are one update old from here on; if so, this is where an update begins.
    pub(crate) fn set_stale(&self, stale: bool) {
        self.stale.set(stale);
    }

    /// Waits for exchanges that are still under way; the next update has exact ghosts.
    pub(crate) fn forget_stale(&self) {
        self.stale.forget();
    }

    /// Sets ghost rows while `meanwhile` does something else.
    fn exchange<S: Scalar>(
        &self,
        halo: &Halo,
        width: usize,
        (own, ghosts): (&[S], &mut [S]),
        meanwhile: &mut dyn FnMut(&mut dyn FnMut()),
    ) {
        if halo.is_empty() {
            return meanwhile(&mut || {});
        }
        match self.stale.swap(width, || halo.start(&*self.communicator, width, own)) {
            None => halo.exchange(&*self.communicator, width, (own, ghosts), meanwhile),
            Some(received) => {
                meanwhile(&mut || self.stale.poll());
                fill(&received, ghosts);
            }
        }
    }

    /// The result of what every rank does by itself; an error on all of them where it is one on any.
    ///
    /// # Errors
    ///
    /// That of `result`, or [`Error::Elsewhere`].
    pub(crate) fn agree<T>(&self, result: Result<T, Error>) -> Result<T, Error> {
        agree(&*self.communicator, result)
    }

    /// Whether every rank expects what others are going to send it.
    pub(super) fn is_symmetric(&self) -> bool {
        let ranks = self.communicator.ranks();
        // Of every other rank: rows that go there and rows that come from there, of nodes and of pairs.
        let mut own = vec![0.0; 4 * ranks];
        for (kind, halo) in [(0, &self.nodes_at_cuts), (2, &self.pairs_at_cuts)] {
            halo.sends.iter().for_each(|(to, rows)| own[4 * to + kind] = rows.len() as f64);
            let receives = halo.receives.iter();
            receives.for_each(|&(from, count)| own[4 * from + kind + 1] += count as f64);
        }
        let all = self.concatenate(&own);
        let of = |rank: usize, other: usize, kind: usize| all[4 * (ranks * rank + other) + kind];
        #[allow(clippy::float_cmp, reason = "they are counts")]
        let fits = |a: usize, b: usize| [0, 2].iter().all(|&k| of(a, b, k) == of(b, a, k + 1));
        (0..ranks).all(|a| (0..ranks).all(|b| fits(a, b)))
    }

    /// Whether rows are those of own nodes everywhere, since no rank has the whole graph.
    pub(crate) fn is_in_parts(&self) -> bool {
        self.parts.is_some()
    }

    /// Into how many parts the graph is cut.
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

    /// Numbers of the parts of all ranks, `per_part` each, in the order of parts.
    pub(crate) fn of_all_parts(&self, own: &[f64], per_part: usize) -> Vec<f64> {
        let starts = self.parts.as_ref().map_or(&[0, 0][..], |parts| &parts.rank_starts);
        self.totals_of(starts, own, per_part)
    }

    /// The sum of the partial sums of the parts of all ranks, in the order of parts.
    pub(crate) fn sum_of_parts<S: Scalar>(&self, own: &[&[S]], length: usize) -> Vec<S> {
        self.sum_of(own, length)
    }

    /// What all ranks have, one after the other; each may have another number of numbers.
    pub(crate) fn concatenate<S: Scalar>(&self, own: &[S]) -> Vec<S> {
        let mut end = 0.0;
        let counts = self.communicator.all(own.len() as f64).into_iter();
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "they are counts"
        )]
        let ends: Vec<usize> = counts
            .map(|count| {
                end += count;
                end as usize
            })
            .collect();
        let rank = self.communicator.rank();
        let mut all = vec![S::ZERO; ends[ends.len() - 1]];
        all[ends[rank] - own.len()..ends[rank]].copy_from_slice(own);
        self.communicator.gather(&mut all, &ends);
        all
    }

    /// The same of the rows of a matrix.
    pub(crate) fn concatenate_rows<S: Scalar>(&self, own: &Matrix<S>) -> Matrix<S> {
        let all = self.concatenate(own.as_slice());
        let rows = all.len().checked_div(own.cols()).unwrap_or(0);
        Matrix::from_entries(rows, own.cols(), all).expect("whole rows of every rank")
    }

    /// Every so many-th of the nodes of the whole graph, at most `most`: its row here.
    pub(crate) fn sample(&self, most: usize) -> impl Iterator<Item = usize> {
        let nodes = self.nodes();
        let step = self.whole_nodes().div_ceil(most).max(1);
        (nodes.start.next_multiple_of(step)..nodes.end).step_by(step).map(move |v| v - nodes.start)
    }

    fn totals_of(&self, starts: &[usize], own: &[f64], each: usize) -> Vec<f64> {
        let ends: Vec<usize> = starts[1..].iter().map(|end| end * each).collect();
        let mut all = vec![0.0; starts[self.communicator.ranks()] * each];
        let start = starts[self.communicator.rank()] * each;
        all[start..start + own.len()].copy_from_slice(own);
        self.communicator.gather(&mut all, &ends);
        all
    }

    /// From rank to rank, every one of which adds its partial sums to those of the ranks before it; slice by slice, so that all are at
    /// work. The last one has all, and tells the others.
    fn sum_of<S: Scalar>(&self, own: &[&[S]], length: usize) -> Vec<S> {
        let last = self.communicator.ranks() - 1;
        let size = (length / SLICES).clamp(LEAST_SLICE, MOST_SLICE);
        let mut all = vec![S::ZERO; length];
        let mut sent: &[S] = &[];
        for (slice, start) in all.chunks_mut(size).zip((0..).step_by(size)) {
            // The slice before this one leaves as this one comes.
            self.pass_on(sent, slice);
            for sums in own {
                let sums = &sums[start..start + slice.len()];
                slice.iter_mut().zip(sums).for_each(|(total, &x)| *total += x);
            }
            sent = slice;
        }
        self.pass_on(sent, &mut []);
        let ends: Vec<usize> = (0..=last).map(|of| if of < last { 0 } else { length }).collect();
        self.communicator.gather(&mut all, &ends);
        all
    }

    /// Sends numbers to the rank behind this one, and receives some from the one before it.
    fn pass_on<S: Scalar>(&self, sent: &[S], received: &mut [S]) {
        let (rank, last) = (self.communicator.rank(), self.communicator.ranks() - 1);
        let sends = (rank < last && !sent.is_empty()).then(|| (rank + 1, bytes(sent)));
        let receives = (rank > 0 && !received.is_empty()).then(|| (rank - 1, bytes_mut(received)));
        let (sends, mut receives) = (Vec::from_iter(sends), Vec::from_iter(receives));
        self.communicator.exchange(&sends, &mut receives);
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

    /// The rows that this rank owns of a matrix of all nodes.
    pub fn own_rows<S: Scalar>(&self, all: &Matrix<S>) -> Matrix<S> {
        all.select(self.nodes())
    }

    /// Rows of all nodes from those that every rank owns.
    pub fn all_rows<S: Scalar>(&self, own: &Matrix<S>) -> Matrix<S> {
        let mut all = Matrix::zeros(self.whole_nodes(), own.cols());
        self.fill_rows(own.as_slice(), own.cols(), all.as_mut_slice());
        all
    }

    /// Rows of those nodes that are `wanted`, and zeros for the others.
    pub(crate) fn wanted_rows<S: Scalar>(
        &self,
        own: &Matrix<S>,
        wanted: impl Fn(usize) -> bool,
    ) -> Matrix<S> {
        let (nodes, width) = (self.nodes(), own.cols());
        let all: Vec<usize> = (0..self.whole_nodes()).filter(|&node| wanted(node)).collect();
        let before = |node: usize| all.partition_point(|&other| other < node);
        let mut rows = vec![S::ZERO; all.len() * width];
        let places = before(nodes.start)..before(nodes.end);
        let own_rows = rows.chunks_exact_mut(width.max(1)).zip(&all);
        for (row, &node) in own_rows.take(places.end).skip(places.start) {
            row.copy_from_slice(own.row(node - nodes.start));
        }
        let ends: Vec<usize> =
            self.node_starts[1..].iter().map(|&end| before(end) * width).collect();
        self.communicator.gather(&mut rows, &ends);
        let mut whole = Matrix::zeros(self.whole_nodes(), width);
        for (row, node) in rows.chunks_exact(width.max(1)).zip(all) {
            whole.row_mut(node).copy_from_slice(row);
        }
        whole
    }

    /// The same, into entries that are there.
    pub(crate) fn fill_rows<S: Scalar>(&self, own: &[S], width: usize, all: &mut [S]) {
        let nodes = self.nodes();
        all[nodes.start * width..nodes.end * width].copy_from_slice(own);
        let ends: Vec<usize> = self.node_starts[1..].iter().map(|end| end * width).collect();
        self.communicator.gather(all, &ends);
    }

    /// The largest of what all ranks have; NaN if any has it.
    pub fn largest(&self, own: f64) -> f64 {
        self.communicator.all(own).into_iter().fold(0.0, worse)
    }
}

/// Slices that go from rank to rank, and the numbers in one at least and at most.
const SLICES: usize = 16;
const LEAST_SLICE: usize = 1 << 10;
const MOST_SLICE: usize = 1 << 16;

/// The result of what every rank does by itself; an error on all of them where it is one on any.
pub(crate) fn agree<T>(ranks: &dyn Communicator, result: Result<T, Error>) -> Result<T, Error> {
    match (ranks.any(result.is_err()), result) {
        (true, Ok(_)) => Err(Error::Elsewhere),
        (_, result) => result,
    }
}

/// The first group of every rank and the number of groups, so that all have about as much to do.
fn runs_of_groups(whole: &Topology, ranks: usize) -> Vec<usize> {
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
fn graphs_of(whole: &Topology, nodes: &Range<usize>, last: bool) -> Range<usize> {
    let starts = whole.node_starts();
    let first = if whole.groups().whole_graphs() {
        starts.partition_point(|&start| start < nodes.start)
    } else {
        starts.partition_point(|&start| start <= nodes.start).saturating_sub(1)
    };
    let end = if last { whole.graphs() } else { starts.partition_point(|&s| s < nodes.end) };
    first.min(whole.graphs())..end.max(first).min(whole.graphs())
}

/// Own rows that a rank is sent.
#[derive(Clone, Debug)]
enum SentRows {
    /// All there are.
    All(usize),
    Some(Vec<u32>),
}

impl SentRows {
    fn len(&self) -> usize {
        match self {
            Self::All(count) => *count,
            Self::Some(rows) => rows.len(),
        }
    }

    /// Those that have to be put together.
    fn some(&self) -> &[u32] {
        match self {
            Self::All(_) => &[],
            Self::Some(rows) => rows,
        }
    }
}

/// Whether so many ghosts of so many nodes of a rank are nearly all: then there are ghosts of all of them, for rows that lie together
/// are sent as they are.
pub(super) fn are_nearly_all(ghosts: usize, nodes: usize) -> bool {
    10 * ghosts >= 9 * nodes
}

/// Rows that ranks send each other.
#[derive(Clone, Debug, Default)]
struct Halo {
    /// Own rows that are ghosts elsewhere, for every rank that has any.
    sends: Vec<(usize, SentRows)>,
    /// How many ghosts come from a rank, in the order of ghosts.
    receives: Vec<(usize, usize)>,
    /// How many own rows there are.
    own: usize,
}

impl Halo {
    /// Of nodes: whoever owns a neighbour of a node has it as a ghost. `lists` are the neighbours of own nodes.
    #[allow(clippy::cast_possible_truncation, reason = "numbers of a topology have 32 bits")]
    fn of_nodes<'a>(
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
    fn widened(mut self) -> Self {
        for (_, rows) in &mut self.sends {
            if are_nearly_all(rows.len(), self.own) {
                *rows = SentRows::All(self.own);
            }
        }
        self
    }

    /// Of pairs: the entry "u of v" of a node here is needed by whoever owns `u`. `owners` are those of the pairs of ghosts.
    #[allow(clippy::cast_possible_truncation, reason = "numbers of a topology have 32 bits")]
    fn of_pairs(
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
        let sends = sends.map(|(to, rows)| (to, SentRows::Some(rows))).collect();
        Self { sends, receives, own }
    }

    /// Whether nothing is sent and nothing comes.
    fn is_empty(&self) -> bool {
        self.sends.is_empty() && self.receives.is_empty()
    }

    /// Starts an exchange, without waiting for it.
    fn start<S: Scalar>(
        &self,
        communicator: &dyn Communicator,
        width: usize,
        own: &[S],
    ) -> Box<dyn Pending> {
        let size = width * size_of::<S>();
        let pack = |(rank, of): &(usize, SentRows)| match of {
            SentRows::All(_) => (*rank, bytes(own).to_vec()),
            SentRows::Some(of) => {
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
    fn exchange<S: Scalar>(
        &self,
        communicator: &dyn Communicator,
        width: usize,
        (own, ghosts): (&[S], &mut [S]),
        meanwhile: &mut dyn FnMut(&mut dyn FnMut()),
    ) {
        let size = width * size_of::<S>();
        let writers = self.sends.iter().map(|(_, of)| {
            move |some: Range<usize>, into: &mut [u8]| pack(&of.some()[some], width, own, into)
        });
        let writers: Vec<_> = writers.collect();
        let sends = self.sends.iter().zip(&writers).map(|((to, of), write)| {
            let rows = match of {
                SentRows::All(_) => OutgoingRows::There(bytes(own)),
                SentRows::Some(of) => OutgoingRows::Written(of.len(), write),
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

/// Sets the rows of ghosts to what has come.
fn fill<S: Scalar>(received: &[Vec<u8>], ghosts: &mut [S]) {
    let ghosts = bytes_mut(ghosts);
    let mut start = 0;
    for from in received {
        ghosts[start..start + from.len()].copy_from_slice(from);
        start += from.len();
    }
}

/// The rank that owns a node or an entry, by where those of every rank start. Some ranks may have none.
fn owner(starts: &[usize], of: usize) -> usize {
    starts.partition_point(|&start| start <= of) - 1
}

impl<S: Scalar> Exchange<S> for Share {
    fn gather_nodes(&self, _: &Topology, width: usize, own: &[S], ghosts: &mut [S]) {
        self.exchange(&self.nodes_at_cuts, width, (own, ghosts), &mut |_| {});
    }

    fn gather_nodes_while(
        &self,
        _: &Topology,
        width: usize,
        own: &[S],
        ghosts: &mut [S],
        meanwhile: &mut dyn FnMut(&mut dyn FnMut()),
    ) {
        self.exchange(&self.nodes_at_cuts, width, (own, ghosts), meanwhile);
    }

    fn gather_pairs(&self, _: &Topology, width: usize, own: &[S], ghosts: &mut [S]) {
        self.exchange(&self.pairs_at_cuts, width, (own, ghosts), &mut |_| {});
    }
}

impl<S: Scalar> Reduce<S> for Share {
    fn sum(&self, own: &[&[S]], length: usize) -> Option<Vec<S>> {
        Some(self.sum_of(own, length))
    }

    fn totals(&self, own: &[f64], per_group: usize) -> Option<Vec<f64>> {
        Some(self.totals_of(&self.group_starts, own, per_group))
    }

    /// From rank to rank, and from the last one to all.
    fn in_turn(&self, values: &mut [S], add: &mut dyn FnMut(&mut [S])) {
        let (rank, last) = (self.communicator.rank(), self.communicator.ranks() - 1);
        if rank > 0 {
            self.communicator.exchange(&[], &mut [(rank - 1, bytes_mut(values))]);
        }
        add(values);
        if rank < last {
            self.communicator.exchange(&[(rank + 1, bytes(values))], &mut []);
            self.communicator.exchange(&[], &mut [(last, bytes_mut(values))]);
        } else {
            let sends: Vec<(usize, &[u8])> = (0..last).map(|to| (to, bytes(values))).collect();
            self.communicator.exchange(&sends, &mut []);
        }
    }
}

impl Topology {
    /// The part of some graphs, in these groups.
    #[allow(clippy::cast_possible_truncation, reason = "numbers of a topology have 32 bits")]
    fn part_of_graphs(&self, graphs: Range<usize>, groups: Groups) -> Part {
        let nodes = self.node_starts[graphs.start] as u32..self.node_starts[graphs.end] as u32;
        let edges = self.edge_starts[graphs.start] as u32..self.edge_starts[graphs.end] as u32;
        let topology = self.select(&graphs.collect::<Vec<_>>()).in_groups(groups);
        let (owned, edges) = (nodes.collect(), edges.collect());
        Part { topology, owned, ghosts: vec![], ghost_pairs: vec![], edges }
    }

    /// The part of some nodes, in these groups; `graphs` are those that they are of.
    #[allow(clippy::cast_possible_truncation, reason = "numbers of a topology have 32 bits")]
    fn part_of_nodes(&self, nodes: Range<usize>, graphs: &Range<usize>, groups: Groups) -> Part {
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
