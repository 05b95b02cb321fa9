//! Sums over all ranks, in an order that does not depend on how many there are.

use super::Share;
use crate::Scalar;
use crate::graph::Reduce;
use crate::graph::communicator::{bytes, bytes_mut};
use crate::numeric::worse;

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

impl Share {
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

    /// Numbers of the groups, or of the parts, of all ranks, `each` of every one; `starts` has the first one of every rank, and how many there are.
    fn totals_of(&self, starts: &[usize], own: &[f64], each: usize) -> Vec<f64> {
        let ends: Vec<usize> = starts[1..].iter().map(|end| end * each).collect();
        let mut all = vec![0.0; starts[self.communicator.ranks()] * each];
        let start = starts[self.communicator.rank()] * each;
        all[start..start + own.len()].copy_from_slice(own);
        self.communicator.gather(&mut all, &ends);
        all
    }

    /// The sum of the partial sums of the parts of all ranks, in the order of parts.
    pub(crate) fn sum_of_parts<S: Scalar>(&self, own: &[&[S]], length: usize) -> Vec<S> {
        self.sum_of(own, length)
    }

    /// Numbers of the parts of all ranks, `per_part` each, in the order of parts.
    pub(crate) fn of_all_parts(&self, own: &[f64], per_part: usize) -> Vec<f64> {
        let starts = self.parts.as_ref().map_or(&[0, 0][..], |parts| &parts.rank_starts);
        self.totals_of(starts, own, per_part)
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
