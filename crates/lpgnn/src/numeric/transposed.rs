//! Products of two tall, narrow matrices: what rows of nodes, edges or graphs add to the gradient of
//! weights.

use std::ops::Range;

use super::dispatch::{Arithmetic, Kernel, dispatch, register};
use super::lanes::{Eights, LANES, Numbers};
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
    // Columns of one factor go a register at a time, those of the other one by one: with ten of the
    // one and twenty of the other, twenty go better as twenty-four than ten as sixteen.
    let whole = |columns: usize| columns.next_multiple_of(register::<S>());
    let flipped = a_stride >= padded(inner) && columns * whole(inner) < inner * whole(columns);
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
            for (start, width) in panels(self.columns, register::<S>()) {
                let rows = first..(first + step).min(self.rows);
                let product = &mut self;
                // Rows are padded to eight, and the last panel may end in the middle of a register.
                match width.min(padded(product.columns) - start) / LANES {
                    8 => dispatch(Panel::<_, 8> { product, rows, start }),
                    7 => dispatch(Panel::<_, 7> { product, rows, start }),
                    6 => dispatch(Panel::<_, 6> { product, rows, start }),
                    5 => dispatch(Panel::<_, 5> { product, rows, start }),
                    4 => dispatch(Panel::<_, 4> { product, rows, start }),
                    3 => dispatch(Panel::<_, 3> { product, rows, start }),
                    2 => dispatch(Panel::<_, 2> { product, rows, start }),
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
        let register = A::register::<S>();
        assert!(register > LANES || W <= 3, "panels are no wider than registers hold");
        while k < inner {
            // As many as registers hold the results of, and none left alone at the end.
            k += match (register, W, inner - k) {
                (16, 1..=6, 8 | 11..) | (8, 1, 8..) => self.tile::<A, 8>(k),
                (16, _, 6 | 9..) | (8, 2, 6 | 7 | 9..) => self.tile::<A, 6>(k),
                (16, _, 4..) | (8, 1 | 2, 4..) => self.tile::<A, 4>(k),
                (16, _, 3) | (8, 3, 3 | 5..) => self.tile::<A, 3>(k),
                (_, _, 2..) => self.tile::<A, 2>(k),
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
        let mut sums = [A::Eights::<S, W>::splat(S::ZERO); R];
        let mut a = product.a.as_ptr().wrapping_add(rows.start * a_stride + k);
        let mut b = product.b.as_ptr().wrapping_add(rows.start * b_stride + start);
        for _ in rows.clone() {
            // SAFETY: `check` has found these rows, `inner` and `padded(columns)` long.
            let (row_of_a, row_of_b) =
                unsafe { (&*a.cast::<[S; R]>(), &*b.cast::<[[S; LANES]; W]>()) };
            let row_of_b = A::Eights::<S, W>::load(row_of_b);
            for r in 0..R {
                sums[r] = A::Eights::<S, W>::splat(row_of_a[r]).mul_add(row_of_b, sums[r]);
            }
            (a, b) = (a.wrapping_add(a_stride), b.wrapping_add(b_stride));
        }
        for r in 0..R {
            if product.flipped {
                let mut each = [[S::ZERO; LANES]; W];
                sums[r].store(&mut each);
                for (column, &sum) in (start..product.columns).zip(each.as_flattened()) {
                    product.add(k + r, column, sum);
                }
            } else {
                let c = &mut product.c[(k + r) * product.c_stride + start..][..W * LANES];
                let c = c.as_chunks_mut().0.first_chunk_mut().expect("as many as were taken");
                sums[r].add(Eights::load(c)).store(c);
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
        let mut sums = A::Eights::<S, W>::splat(S::ZERO);
        let mut a = product.a.as_ptr().wrapping_add(rows.start * product.a_stride + k);
        let mut b = product.b.as_ptr().wrapping_add(rows.start * product.b_stride + *column);
        for _ in rows.clone() {
            let row_of_a = if last == LANES {
                // SAFETY: `check` has found these rows, `inner` and `padded(columns)` long.
                A::Eights::<S, W>::load(unsafe { &*a.cast::<[[S; LANES]; W]>() })
            } else {
                // SAFETY: likewise.
                Eights::load_some(unsafe { std::slice::from_raw_parts(a, last) })
            };
            // SAFETY: likewise.
            sums = A::Eights::<S, W>::splat(unsafe { *b }).mul_add(row_of_a, sums);
            (a, b) = (a.wrapping_add(product.a_stride), b.wrapping_add(product.b_stride));
        }
        let mut each = [[S::ZERO; LANES]; W];
        sums.store(&mut each);
        let each = &each.as_flattened()[..(W - 1) * LANES + last];
        for (k, &sum) in (k..).zip(each) {
            product.add(k, *column, sum);
        }
        (W - 1) * LANES + last
    }
}

#[cfg(test)]
mod tests {
    use super::super::dispatch::{InstructionSet, on_each};
    use super::*;
    use proptest::prelude::*;

    fn numbers<S: Scalar>(len: usize, seed: f64) -> Vec<S> {
        (0..len).map(|i| S::of((i as f64 * 0.37 + seed).sin())).collect()
    }

    fn adds_up<S: Scalar>(rows: usize, inner: usize, columns: usize, wide: bool) -> Vec<S> {
        let tolerance = if size_of::<S>() == 4 { 1e-4 } else { 1e-11 };
        let (a_stride, b_stride) = (if wide { padded(inner) } else { inner }, padded(columns));
        let (a, b) = (numbers::<S>(rows * a_stride, 0.1), numbers::<S>(rows * b_stride, 0.7));
        let before = numbers::<S>(inner * b_stride, 0.3);
        let mut c = before.clone();
        transposed_product(rows, &a, a_stride, inner, &b, columns, &mut c);
        for k in 0..inner {
            for j in 0..columns {
                let at = k * b_stride + j;
                let entry = |i: usize| a[i * a_stride + k].f64() * b[i * b_stride + j].f64();
                let exact = before[at].f64() + (0..rows).map(entry).sum::<f64>();
                assert!((c[at].f64() - exact).abs() < tolerance, "{k}, {j}");
            }
        }
        c
    }

    proptest! {
        #[test]
        fn rows_add_up_to_what_the_definition_says(
            rows in 0_usize..90, inner in 1_usize..70, columns in 1_usize..160, wide: bool,
        ) {
            let mut first = None;
            on_each(|set| {
                let c = adds_up::<f32>(rows, inner, columns, wide);
                adds_up::<f64>(rows, inner, columns, wide);
                // Whatever fuses gives the same bits, but for the padding of what is flipped.
                if set != InstructionSet::Portable {
                    let rows = c.chunks_exact(padded(columns));
                    let c: Vec<Vec<f32>> = rows.map(|row| row[..columns].to_vec()).collect();
                    assert!(*first.get_or_insert_with(|| c.clone()) == c, "{set:?}");
                }
            });
        }
    }
}
