//! Rows of nodes handed out to groups, and groups to threads.

use std::ops::Range;

use rayon::prelude::*;

/// The rows of every range, `width` entries each; ranges follow each other from 0 without gaps.
pub(crate) fn split_rows<'a, S>(
    mut entries: &'a mut [S],
    width: usize,
    ranges: &[Range<usize>],
) -> Vec<&'a mut [S]> {
    ranges
        .iter()
        .map(|range| {
            let (rows, rest) = std::mem::take(&mut entries).split_at_mut(range.len() * width);
            entries = rest;
            rows
        })
        .collect()
}

/// Runs `work` on every group; on this thread if there is one group, a small problem, or no other
/// thread to share them with.
pub(crate) fn for_each_group<G: Send>(groups: &mut [G], work: impl Fn(&mut G) + Sync + Send) {
    if groups.len() <= 1 || rayon::current_num_threads() == 1 {
        groups.iter_mut().for_each(work);
    } else {
        groups.par_iter_mut().for_each(work);
    }
}

/// Runs of groups of several threads between which rows on their way are looked after.
const POLLS: usize = 16;

/// The same while rows are on their way, which `poll` lets get on.
pub(crate) fn for_each_group_until<G: Send>(
    poll: &mut dyn FnMut(),
    groups: &mut [G],
    work: impl Fn(&mut G) + Sync + Send,
) {
    let threads = rayon::current_num_threads();
    let run = if threads == 1 { 1 } else { groups.len().div_ceil(POLLS).max(threads) };
    for some in groups.chunks_mut(run) {
        for_each_group(some, &work);
        poll();
    }
}
