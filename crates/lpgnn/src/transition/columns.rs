//! Loops over nodes and their neighbours with the columns of a row in registers.

use crate::numeric::LANES;

/// Runs `$kernel` on as many columns at a time as registers hold: on `$w` times eight of them from
/// `$column` on.
///
/// The kernel is made anew each time and is a value of its own, so that what it holds can stay in
/// registers too; behind a reference it would be loaded again after every store.
macro_rules! by_columns {
    ($width:expr, |$column:ident, $w:ident| $kernel:expr) => {{
        let width: usize = $width;
        for $column in (0..width).step_by(4 * $crate::numeric::LANES) {
            match (width - $column) / $crate::numeric::LANES {
                4.. => {
                    const $w: usize = 4;
                    $crate::numeric::dispatch($kernel);
                }
                3 => {
                    const $w: usize = 3;
                    $crate::numeric::dispatch($kernel);
                }
                2 => {
                    const $w: usize = 2;
                    $crate::numeric::dispatch($kernel);
                }
                _ => {
                    const $w: usize = 1;
                    $crate::numeric::dispatch($kernel);
                }
            }
        }
    }};
}
pub(super) use by_columns;

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
