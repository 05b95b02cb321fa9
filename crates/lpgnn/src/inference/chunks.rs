//! Small graphs, a few at a time, on all threads.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::{InferenceProgress, Tell};
use crate::Scalar;
use crate::graph::GraphBatch;

/// Nodes of small graphs whose states converge together, in cache, on one thread.
const CHUNK: usize = 1 << 10;

/// The graphs of every chunk: all of them where one is too large to lie in a group.
pub(super) fn chunks<S: Scalar>(batch: &GraphBatch<S>) -> Vec<Range<usize>> {
    let (starts, graphs) = (batch.node_starts(), batch.graphs());
    if !batch.groups().whole_graphs() || batch.groups().ranges().len() == 1 {
        return std::iter::once(0..graphs).collect();
    }
    let (mut chunks, mut first) = (vec![], 0);
    for graph in 1..=graphs {
        if starts[graph] - starts[first] >= CHUNK || graph == graphs {
            chunks.push(first..graph);
            first = graph;
        }
    }
    chunks
}

/// Works on all chunks; `work` returns how many graphs a chunk has, of `total`. This thread takes part and tells how far all
/// are: others cannot.
pub(super) fn for_each_chunk<C: Send>(
    chunks: &mut [C],
    total: usize,
    tell: Tell<'_>,
    work: impl Fn(&mut C, Tell<'_>) -> usize + Sync,
) {
    let done = AtomicUsize::new(0);
    let count = |graphs| done.fetch_add(graphs, Ordering::Relaxed) + graphs;
    let elsewhere = |chunk: &mut C| {
        count(work(chunk, &mut |_| ()));
    };
    share_out(chunks, elsewhere, |chunk| {
        let done = count(work(chunk, tell));
        tell(InferenceProgress::Graphs { done, total });
    });
}

/// Works on everything, each thread on what comes next: `here` what this thread takes, which can do what others cannot.
pub(super) fn share_out<C: Send>(
    all: &mut [C],
    elsewhere: impl Fn(&mut C) + Sync,
    mut here: impl FnMut(&mut C),
) {
    let threads = rayon::current_num_threads().min(all.len());
    if threads <= 1 {
        return all.iter_mut().for_each(here);
    }
    let left = Mutex::new(all.iter_mut());
    let next = || left.lock().unwrap_or_else(PoisonError::into_inner).next();
    rayon::in_place_scope(|scope| {
        for _ in 1..threads {
            scope.spawn(|_| {
                while let Some(one) = next() {
                    elsewhere(one);
                }
            });
        }
        while let Some(one) = next() {
            here(one);
        }
    });
}
