//! Rows with and without padding.

use super::lanes::LANES;
use crate::Scalar;

/// The padded length of a row of `columns` columns: rows of a buffer are padded with zeros, so that
/// no loop over columns has a rest.
pub(crate) const fn padded(columns: usize) -> usize {
    columns.next_multiple_of(LANES)
}

/// How many of `columns` columns a product computes otherwise than eight at a time: one or two beyond a
/// multiple of eight, which would be eight with the padding. Not if there are nine or ten: eight alone
/// are no faster than sixteen.
pub(crate) const fn left_over(columns: usize) -> usize {
    match (columns / LANES, columns % LANES) {
        (0 | 2.., few @ 1..=2) => few,
        _ => 0,
    }
}

/// Where the last of `rows` rows of `width` numbers ends, which are `stride` apart.
pub(crate) const fn end_of_rows(rows: usize, stride: usize, width: usize) -> usize {
    match rows.checked_sub(1) {
        Some(last) => last.saturating_mul(stride).saturating_add(width),
        None => 0,
    }
}

/// Rows of `from` without their padding.
pub(crate) fn narrow_rows<S: Scalar>(
    from: &[S],
    from_stride: usize,
    to: &mut [S],
    to_stride: usize,
) {
    if to_stride > 0 {
        for (to, from) in to.chunks_exact_mut(to_stride).zip(from.chunks_exact(from_stride)) {
            to.copy_from_slice(&from[..to_stride]);
        }
    }
}

/// Rows of `from`, padded with zeros.
pub(crate) fn widen_rows<S: Scalar>(
    from: &[S],
    from_stride: usize,
    to: &mut [S],
    to_stride: usize,
) {
    if from_stride > 0 {
        for (to, from) in to.chunks_exact_mut(to_stride).zip(from.chunks_exact(from_stride)) {
            to[..from_stride].copy_from_slice(from);
            to[from_stride..].fill(S::ZERO);
        }
    }
}
