//! Loops over nodes and their neighbours with the columns of a row in registers.

use std::ops::Range;

use crate::numeric::{Arithmetic, LANES};

/// What a loop does for some columns of one node and its neighbours.
pub(super) trait Columns {
    /// For `W` times eight columns from `column` on.
    fn columns<A: Arithmetic, const W: usize>(&mut self, node: usize, column: usize);
}

/// Runs `work` for every node, on as many columns at a time as registers hold.
#[inline(always)]
pub(super) fn for_each_node<A: Arithmetic>(
    nodes: Range<usize>,
    width: usize,
    mut work: impl Columns,
) {
    for node in nodes {
        for column in (0..width).step_by(4 * LANES) {
            match (width - column) / LANES {
                4.. => work.columns::<A, 4>(node, column),
                3 => work.columns::<A, 3>(node, column),
                2 => work.columns::<A, 2>(node, column),
                _ => work.columns::<A, 1>(node, column),
            }
        }
    }
}

/// `W` times eight numbers from `at` on.
#[inline(always)]
pub(super) fn lanes<S, const W: usize>(rows: &[S], at: usize) -> &[[S; LANES]; W] {
    rows[at..].as_chunks().0.first_chunk().expect("rows are padded")
}

/// The same, to be changed.
#[inline(always)]
pub(super) fn lanes_mut<S, const W: usize>(rows: &mut [S], at: usize) -> &mut [[S; LANES]; W] {
    rows[at..].as_chunks_mut().0.first_chunk_mut().expect("rows are padded")
}
