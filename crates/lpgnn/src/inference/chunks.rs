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
    let (left, done) = (Mutex::new(chunks.iter_mut()), AtomicUsize::new(0));
    let next = || left.lock().unwrap_or_else(PoisonError::into_inner).next();
    rayon::in_place_scope(|scope| {
        for _ in 1..rayon::current_num_threads() {
            scope.spawn(|_| {
                while let Some(chunk) = next() {
                    done.fetch_add(work(chunk, &mut |_| ()), Ordering::Relaxed);
                }
            });
        }
        while let Some(chunk) = next() {
            let graphs = work(chunk, tell);
            let done = done.fetch_add(graphs, Ordering::Relaxed) + graphs;
            tell(InferenceProgress::Graphs { done, total });
        }
    });
}
