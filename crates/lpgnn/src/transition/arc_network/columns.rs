//! Loops over nodes and their neighbours with the columns of a row in registers.

use std::ops::Range;

use crate::numeric::{Arithmetic, Kernel, LANES, dispatch};

/// What a loop does for some columns of one node and its neighbours.
pub(super) trait Columns {
    /// For `W` times eight columns from `column` on.
    fn columns<A: Arithmetic, const W: usize>(&mut self, node: usize, column: usize);
}

/// Runs `work` for every node, on as many columns at a time as registers hold.
pub(super) fn for_each_node(nodes: &Range<usize>, width: usize, work: &mut impl Columns) {
    for column in (0..width).step_by(4 * LANES) {
        let (nodes, work) = (nodes.clone(), &mut *work);
        match (width - column) / LANES {
            4.. => dispatch(Pass::<_, 4> { nodes, column, work }),
            3 => dispatch(Pass::<_, 3> { nodes, column, work }),
            2 => dispatch(Pass::<_, 2> { nodes, column, work }),
            _ => dispatch(Pass::<_, 1> { nodes, column, work }),
        }
    }
}

/// All nodes, on `W` times eight columns.
struct Pass<'a, C, const W: usize> {
    nodes: Range<usize>,
    column: usize,
    work: &'a mut C,
}

impl<C: Columns, const W: usize> Kernel for Pass<'_, C, W> {
    type Output = ();
    #[inline(always)]
    fn run<A: Arithmetic>(self) {
        for node in self.nodes {
            self.work.columns::<A, W>(node, self.column);
        }
    }
}

/// `W` times eight numbers from `at` on.
#[inline(always)]
pub(super) fn lanes<S, const W: usize>(rows: &[S], at: usize) -> &[[S; LANES]; W] {
    let some = &rows[at..at + W * LANES];
    some.as_chunks().0.first_chunk().expect("as many as were taken")
}

/// The same, to be changed.
#[inline(always)]
pub(super) fn lanes_mut<S, const W: usize>(rows: &mut [S], at: usize) -> &mut [[S; LANES]; W] {
    let some = &mut rows[at..at + W * LANES];
    some.as_chunks_mut().0.first_chunk_mut().expect("as many as were taken")
}
