//! Rows of nodes handed out to groups, and groups to threads.

use std::ops::Range;

use rayon::prelude::*;

use crate::graph::Coming;

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

/// Runs of groups between which rows on their way are looked after.
const POLLS: usize = 16;

/// The same while rows are on their way.
pub(crate) fn for_each_group_until<G: Send>(
    coming: &mut Coming,
    groups: &mut [G],
    work: impl Fn(&mut G) + Sync + Send,
) {
    let run = groups.len().div_ceil(POLLS).max(rayon::current_num_threads());
    for some in groups.chunks_mut(run.max(1)) {
        for_each_group(some, &work);
        if let Some(coming) = coming {
            coming.poll();
        }
    }
}
