//! Rows of ghosts, exact or one update old.

use super::Share;
use super::halo::Halo;
use crate::Scalar;
use crate::graph::communicator::bytes_mut;
use crate::graph::{Exchange, Topology};

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

impl Share {
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

    /// Whether ghosts are one update old from here on; if so, this is where an update begins.
    pub(crate) fn set_stale(&self, stale: bool) {
        self.stale.set(stale);
    }

    /// Waits for exchanges that are still under way; the next update has exact ghosts.
    pub(crate) fn forget_stale(&self) {
        self.stale.forget();
    }

    /// Whether every rank expects what others are going to send it.
    pub(in crate::graph) fn is_symmetric(&self) -> bool {
        let ranks = self.communicator.ranks();
        // Of every other rank: rows that go there and rows that come from there, of nodes and of pairs.
        let [nodes, pairs] = [&self.nodes_at_cuts, &self.pairs_at_cuts].map(|h| h.counts(ranks));
        let own = nodes.into_iter().zip(pairs).flat_map(|(nodes, pairs)| [nodes, pairs].concat());
        let own: Vec<f64> = own.map(|count| count as f64).collect();
        let all = self.concatenate(&own);
        let of = |rank: usize, other: usize, kind: usize| all[4 * (ranks * rank + other) + kind];
        #[allow(clippy::float_cmp, reason = "they are counts")]
        let fits = |a: usize, b: usize| [0, 2].iter().all(|&k| of(a, b, k) == of(b, a, k + 1));
        (0..ranks).all(|a| (0..ranks).all(|b| fits(a, b)))
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
