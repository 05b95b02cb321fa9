//! Products of two tall, narrow matrices: what rows of nodes, edges or graphs add to the gradient of
//! weights.

use std::ops::Range;

use super::dispatch::{Arithmetic, Kernel, dispatch};
use super::lanes::{LANES, Lanes, each, load_all};
use super::product::{CACHED, panels};
use super::rows::{end_of_rows, left_over, padded};
use crate::Scalar;

/// `C ← C + Aᵀ B` for `A: [rows, inner]`, with rows `a_stride` apart, and `B: [rows, columns]`.
///
/// `B` has padded rows; `C: [inner, padded(columns)]`.
pub(crate) fn transposed_product<S: Scalar>(
    rows: usize,
    a: &[S],
    a_stride: usize,
    inner: usize,
    b: &[S],
    columns: usize,
    c: &mut [S],
) {
    if rows == 0 || inner == 0 || columns == 0 {
        return;
    }
    let (b_stride, c_stride) = (padded(columns), padded(columns));
    // Columns of one factor go eight at a time, those of the other one by one: with ten of the one
    // and twenty of the other, twenty go better as twenty-four than ten as sixteen.
    let flipped = a_stride >= padded(inner) && columns * padded(inner) < inner * padded(columns);
    let both = [(a, a_stride, inner), (b, b_stride, columns)];
    let [(a, a_stride, inner), (b, b_stride, columns)] =
        if flipped { [both[1], both[0]] } else { both };
    let product =
        TransposedProduct { rows, a, a_stride, inner, b, b_stride, columns, c, c_stride, flipped };
    product.run();
}

/// `C ← C + Aᵀ B`, or if it is flipped `C ← C + Bᵀ A`.
struct TransposedProduct<'a, S> {
    rows: usize,
    a: &'a [S],
    a_stride: usize,
    inner: usize,
    b: &'a [S],
    b_stride: usize,
    columns: usize,
    c: &'a mut [S],
    c_stride: usize,
    flipped: bool,
}

impl<S: Scalar> TransposedProduct<'_, S> {
    fn run(mut self) {
        self.check();
        // As many rows at a time as stay in the first-level cache while all columns pass.
        let step = (CACHED / self.inner.max(self.columns)).max(64);
        for first in (0..self.rows).step_by(step) {
            for (start, width) in panels(self.columns) {
                let rows = first..(first + step).min(self.rows);
                let product = &mut self;
                match width {
                    24 => dispatch(Panel::<_, 3> { product, rows, start }),
                    16 => dispatch(Panel::<_, 2> { product, rows, start }),
                    _ => dispatch(Panel::<_, 1> { product, rows, start }),
                }
            }
            for column in self.columns - left_over(self.columns)..self.columns {
                let (rows, product) = (first..(first + step).min(self.rows), &mut self);
                dispatch(LeftOver { product, rows, column });
            }
        }
    }

    /// Adds to what `k` of `A` and `column` of `B` have in the result.
    #[inline(always)]
    fn add(&mut self, k: usize, column: usize, sum: S) {
        let (row, column) = if self.flipped { (column, k) } else { (k, column) };
        self.c[row * self.c_stride + column] += sum;
    }

    /// Finds all rows that the tiles will read within their slices, so that they need not look.
    fn check(&self) {
        let a_end = end_of_rows(self.rows, self.a_stride, self.inner);
        assert!(self.a.len() >= a_end, "rows of A");
        let b_end = end_of_rows(self.rows, self.b_stride, padded(self.columns));
        assert!(self.b.len() >= b_end, "rows of B");
    }
}

/// What `rows` add to `W` times eight columns of the result.
struct Panel<'a, 'p, S, const W: usize> {
    product: &'a mut TransposedProduct<'p, S>,
    rows: Range<usize>,
    start: usize,
}

impl<S: Scalar, const W: usize> Kernel for Panel<'_, '_, S, W> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arithmetic>(mut self) {
        let (mut k, inner) = (0, self.product.inner);
        while k < inner {
            // As many as registers hold the results of, and none left alone at the end.
            k += match (W, inner - k) {
                (1, 8..) => self.tile::<A, 8>(k),
                (2, 6 | 7 | 9..) => self.tile::<A, 6>(k),
                (1 | 2, 4..) => self.tile::<A, 4>(k),
                (3, 3 | 5..) => self.tile::<A, 3>(k),
                (_, 2..) => self.tile::<A, 2>(k),
                _ => self.tile::<A, 1>(k),
            }
        }
    }
}

impl<S: Scalar, const W: usize> Panel<'_, '_, S, W> {
    /// What `rows` add to `R` rows by `W` times eight columns of the result; returns `R`.
    #[inline(always)]
    #[allow(unsafe_code, reason = "looking at every row costs some hundredths of an update")]
    fn tile<A: Arithmetic, const R: usize>(&mut self, k: usize) -> usize {
        let Self { product, rows, start } = self;
        let (start, a_stride, b_stride) = (*start, product.a_stride, product.b_stride);
        let mut sum = [[A::Lanes::<S>::splat(S::ZERO); W]; R];
        let mut a = product.a.as_ptr().wrapping_add(rows.start * a_stride + k);
        let mut b = product.b.as_ptr().wrapping_add(rows.start * b_stride + start);
        for _ in rows.clone() {
            // SAFETY: `check` has found these rows, `inner` and `padded(columns)` long.
            let (row_of_a, row_of_b) =
                unsafe { (&*a.cast::<[S; R]>(), &*b.cast::<[[S; LANES]; W]>()) };
            let lanes: [A::Lanes<S>; W] = load_all(row_of_b);
            for r in 0..R {
                let a = A::Lanes::<S>::splat(row_of_a[r]);
                for j in 0..W {
                    sum[r][j] = a.mul_add(lanes[j], sum[r][j]);
                }
            }
            (a, b) = (a.wrapping_add(a_stride), b.wrapping_add(b_stride));
        }
        for r in 0..R {
            if product.flipped {
                for j in 0..W {
                    let columns = start + j * LANES..product.columns;
                    for (column, sum) in columns.zip(each(sum[r][j])) {
                        product.add(k + r, column, sum);
                    }
                }
            } else {
                let c = &mut product.c[(k + r) * product.c_stride + start..][..W * LANES];
                for (c, sum) in c.as_chunks_mut::<LANES>().0.iter_mut().zip(sum[r]) {
                    sum.add(Lanes::load(c)).store(c);
                }
            }
        }
        R
    }
}

/// What `rows` add to one column of the result that is left over: with lanes along rows of `A`.
struct LeftOver<'a, 'p, S> {
    product: &'a mut TransposedProduct<'p, S>,
    rows: Range<usize>,
    column: usize,
}

impl<S: Scalar> Kernel for LeftOver<'_, '_, S> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arithmetic>(mut self) {
        let (mut k, inner) = (0, self.product.inner);
        while k < inner {
            k += match inner - k {
                56.. => self.lanes::<A, 7>(k, LANES),
                48..56 => self.lanes::<A, 6>(k, LANES),
                32..48 => self.lanes::<A, 4>(k, LANES),
                16..32 => self.lanes::<A, 2>(k, LANES),
                8..16 => self.lanes::<A, 1>(k, LANES),
                rest => self.lanes::<A, 1>(k, rest),
            }
        }
    }
}

impl<S: Scalar> LeftOver<'_, '_, S> {
    /// `W` times eight rows of the result, or fewer than eight; returns how many.
    #[inline(always)]
    #[allow(unsafe_code, reason = "looking at every row costs some hundredths of an update")]
    fn lanes<A: Arithmetic, const W: usize>(&mut self, k: usize, last: usize) -> usize {
        let Self { product, rows, column } = self;
        let mut sums = [A::Lanes::<S>::splat(S::ZERO); W];
        let mut a = product.a.as_ptr().wrapping_add(rows.start * product.a_stride + k);
        let mut b = product.b.as_ptr().wrapping_add(rows.start * product.b_stride + *column);
        for _ in rows.clone() {
            let lanes: [A::Lanes<S>; W] = if last == LANES {
                // SAFETY: `check` has found these rows, `inner` and `padded(columns)` long.
                load_all(unsafe { &*a.cast::<[[S; LANES]; W]>() })
            } else {
                // SAFETY: likewise.
                [Lanes::load_some(unsafe { std::slice::from_raw_parts(a, last) }); W]
            };
            // SAFETY: likewise.
            let b_column = A::Lanes::<S>::splat(unsafe { *b });
            for i in 0..W {
                sums[i] = b_column.mul_add(lanes[i], sums[i]);
            }
            (a, b) = (a.wrapping_add(product.a_stride), b.wrapping_add(product.b_stride));
        }
        for i in 0..W {
            for (lane, sum) in each(sums[i]).into_iter().take(last).enumerate() {
                product.add(k + i * LANES + lane, *column, sum);
            }
        }
        (W - 1) * LANES + last
    }
}

#[cfg(test)]
mod tests {
    use super::super::dispatch::plainly;
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn rows_add_up_to_what_the_definition_says(
            rows in 0_usize..90, inner in 1_usize..70, columns in 1_usize..40, wide: bool, fused: bool,
        ) {
            let a_stride = if wide { padded(inner) } else { inner };
            let numbers = |len: usize, seed: f64| -> Vec<f64> {
                (0..len).map(|i| (i as f64 * 0.37 + seed).sin()).collect()
            };
            let (a, b) = (numbers(rows * a_stride, 0.1), numbers(rows * padded(columns), 0.7));
            let before = numbers(inner * padded(columns), 0.3);
            let mut c = before.clone();
            let mut add = || transposed_product(rows, &a, a_stride, inner, &b, columns, &mut c);
            if fused { add() } else { plainly(add) }
            for k in 0..inner {
                for j in 0..columns {
                    let at = k * padded(columns) + j;
                    let exact: f64 =
                        (0..rows).map(|i| a[i * a_stride + k] * b[i * padded(columns) + j]).sum();
                    prop_assert!((c[at] - before[at] - exact).abs() < 1e-11);
                }
            }
        }
    }
}
