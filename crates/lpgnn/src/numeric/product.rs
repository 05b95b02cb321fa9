//! Products of tall, narrow matrices with small ones: the only kind an update needs.
//!
//! Rows are nodes, edges or graphs, up to millions; columns are components of a state or units of a
//! layer, tens. The small factor is packed once per update into panels that fit the registers and
//! then multiplies block after block of rows while they are in cache.

use std::ops::Range;

use super::dispatch::{Arithmetic, Kernel, dispatch};
use super::lanes::{LANES, Lanes, each, load_all, total};
use super::rows::{end_of_rows, left_over, padded};
use crate::Scalar;
use crate::activation::{Activation, activate, differentiate};

/// A small matrix `B: [inner, columns]`, ready to be multiplied from the left.
///
/// Columns lie in panels of 24 or 16, or 8 if there are no more; within a panel, row after row. Behind
/// them come the columns that are [left over](left_over), one after the other, padded.
#[derive(Clone, Debug, Default)]
pub(crate) struct Packed<S> {
    inner: usize,
    columns: usize,
    panels: Vec<S>,
}

impl<S: Scalar> Packed<S> {
    /// Packs `b: [inner, columns]`, row by row.
    pub(crate) fn new(b: &[S], inner: usize, columns: usize) -> Self {
        Self::pack(inner, columns, |k, j| b[k * columns + j])
    }

    /// Packs the transpose of `b: [columns, inner]`.
    pub(crate) fn transposed(b: &[S], inner: usize, columns: usize) -> Self {
        Self::pack(inner, columns, |k, j| b[j * inner + k])
    }

    fn pack(inner: usize, columns: usize, entry: impl Fn(usize, usize) -> S) -> Self {
        let mut entries = Vec::with_capacity(padded(inner) * padded(columns));
        for (start, width) in panels(columns) {
            for k in 0..inner {
                entries.extend(
                    (start..start + width).map(|j| if j < columns { entry(k, j) } else { S::ZERO }),
                );
            }
        }
        for j in columns - left_over(columns)..columns {
            entries
                .extend((0..padded(inner)).map(|k| if k < inner { entry(k, j) } else { S::ZERO }));
        }
        Self { inner, columns, panels: entries }
    }

    /// How many entries there are.
    fn len(&self) -> usize {
        let over = left_over(self.columns);
        self.inner * padded(self.columns - over) + over * padded(self.inner)
    }
}

/// The panels of a row of `columns` columns, but for those left over: where each starts and how wide it
/// is.
#[inline(always)]
pub(super) fn panels(columns: usize) -> impl Iterator<Item = (usize, usize)> {
    let end = padded(columns - left_over(columns));
    let mut start = 0;
    std::iter::from_fn(move || {
        let width = match end - start {
            0 => return None,
            8 => 8,
            // One panel of 24 where panels of 16 would leave a rest.
            rest if rest % 16 == 8 => 24,
            _ => 16,
        };
        start += width;
        Some((start - width, width))
    })
}

/// Numbers of a matrix that stay in the first-level cache beside as many of another.
pub(super) const CACHED: usize = 4096;

/// `A` of a product `A B`: rows of `b.inner` entries, `stride` apart.
#[derive(Clone, Copy)]
pub(crate) struct Factors<'a, S> {
    pub(crate) a: &'a [S],
    pub(crate) stride: usize,
    pub(crate) b: &'a Packed<S>,
}

/// What happens to a sum of products `P` before it is stored.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Finish<'a, S> {
    /// `C ← P`
    Set,
    /// `C ← C + P`
    Add,
    /// `C ← σ(P + b)`; the bias is as long as a row of `C`, which is padded.
    Activate(Activation, &'a [S]),
    /// `C ← P ⊙ σ'`, where the activation was `y`, which has the shape of `C`, padded.
    Slope(Activation, &'a [S]),
}

/// `C ← Σ_i A_i B_i`, finished as `finish` says; rows of `C` are `c_stride` apart.
///
/// All `B_i` have as many columns. Where `c_stride` is their padded number, the padding receives
/// zeros.
pub(crate) fn product<S: Scalar>(
    rows: usize,
    factors: &[Factors<'_, S>],
    c: &mut [S],
    c_stride: usize,
    finish: Finish<'_, S>,
) {
    match finish {
        Finish::Set => Product::new(rows, factors, c, c_stride, Set).run(|_, _| {}),
        Finish::Add => Product::new(rows, factors, c, c_stride, Add).run(|_, _| {}),
        Finish::Activate(activation, bias) => {
            Product::new(rows, factors, c, c_stride, Bias(bias))
                .run(|c, _| activate(activation, c));
        }
        Finish::Slope(activation, y) => {
            let slope = |c: &mut [S], part| differentiate(activation, &y[part], c);
            Product::new(rows, factors, c, c_stride, Set).run(slope);
        }
    }
}

/// How sums leave the registers.
trait To<S>: Copy {
    /// What is stored, given a sum of products, what is there, and the first of these columns.
    fn value<L: Lanes<S>>(&self, sum: L, there: impl FnOnce() -> L, column: usize) -> L;
    /// The same for one column.
    fn one(&self, sum: S, there: S, column: usize) -> S;
}

#[derive(Clone, Copy)]
struct Set;
#[derive(Clone, Copy)]
struct Add;
#[derive(Clone, Copy)]
struct Bias<'a, S>(&'a [S]);

impl<S: Scalar> To<S> for Set {
    #[inline(always)]
    fn value<L: Lanes<S>>(&self, sum: L, _: impl FnOnce() -> L, _: usize) -> L {
        sum
    }
    #[inline(always)]
    fn one(&self, sum: S, _: S, _: usize) -> S {
        sum
    }
}

impl<S: Scalar> To<S> for Add {
    #[inline(always)]
    fn value<L: Lanes<S>>(&self, sum: L, there: impl FnOnce() -> L, _: usize) -> L {
        sum.add(there())
    }
    #[inline(always)]
    fn one(&self, sum: S, there: S, _: usize) -> S {
        sum + there
    }
}

impl<S: Scalar> To<S> for Bias<'_, S> {
    #[inline(always)]
    fn value<L: Lanes<S>>(&self, sum: L, _: impl FnOnce() -> L, column: usize) -> L {
        let bias = self.0[column..].first_chunk().expect("the bias is padded");
        sum.add(L::load(bias))
    }
    #[inline(always)]
    fn one(&self, sum: S, _: S, column: usize) -> S {
        sum + self.0[column]
    }
}

struct Product<'a, S, T> {
    rows: usize,
    factors: &'a [Factors<'a, S>],
    columns: usize,
    c: &'a mut [S],
    c_stride: usize,
    to: T,
}

impl<'a, S: Scalar, T: To<S>> Product<'a, S, T> {
    fn new(
        rows: usize,
        factors: &'a [Factors<'a, S>],
        c: &'a mut [S],
        c_stride: usize,
        to: T,
    ) -> Self {
        let columns = factors.first().map_or(0, |factors| factors.b.columns);
        Self { rows, factors, columns, c, c_stride, to }
    }

    /// The product, as many rows at a time as stay in the first-level cache while all panels pass;
    /// `then` gets them, and where they are, while they are still there.
    fn run(mut self, then: impl Fn(&mut [S], Range<usize>)) {
        if self.rows == 0 || self.columns == 0 {
            return;
        }
        self.check();
        let inner: usize = self.factors.iter().map(|factors| factors.b.inner).sum();
        // A multiple of what registers hold.
        let step = (CACHED / inner.max(1) / 24).max(1) * 24;
        for first in (0..self.rows).step_by(step) {
            let rows = first..(first + step).min(self.rows);
            for (start, width) in panels(self.columns) {
                match width {
                    24 => dispatch(self.panel::<3>(rows.clone(), start)),
                    16 => dispatch(self.panel::<2>(rows.clone(), start)),
                    _ => dispatch(self.panel::<1>(rows.clone(), start)),
                }
            }
            match left_over(self.columns) {
                0 => {}
                1 => dispatch(LeftOver::<_, _, 1>(self.panel(rows.clone(), self.columns - 1))),
                _ => dispatch(LeftOver::<_, _, 2>(self.panel(rows.clone(), self.columns - 2))),
            }
            let part = rows.start * self.c_stride..rows.end * self.c_stride;
            then(&mut self.c[part.clone()], part);
        }
    }

    fn panel<const W: usize>(&mut self, rows: Range<usize>, start: usize) -> Panel<'_, S, T, W> {
        let Self { factors, c_stride, to, .. } = *self;
        Panel { factors, c: &mut *self.c, c_stride, to, rows, start }
    }

    /// Finds all that the tiles will touch within its slice, so that they need not look.
    fn check(&self) {
        for Factors { a, stride, b } in self.factors {
            assert!(
                b.inner == 0 || a.len() >= end_of_rows(self.rows, *stride, b.inner),
                "rows of A"
            );
            assert!(b.columns == self.columns, "columns of B");
            assert!(b.panels.len() == b.len(), "panels of B");
        }
        assert!(self.c_stride >= self.columns, "columns of C");
        let end = end_of_rows(self.rows, self.c_stride, self.c_stride);
        assert!(self.c.len() >= end, "rows of C");
    }
}

/// `W` times eight columns of some rows of the result. A loop of its own for every `W`: together
/// they would have to share the registers.
struct Panel<'a, S, T, const W: usize> {
    factors: &'a [Factors<'a, S>],
    c: &'a mut [S],
    c_stride: usize,
    to: T,
    rows: Range<usize>,
    start: usize,
}

impl<S: Scalar, T: To<S>, const W: usize> Kernel for Panel<'_, S, T, W> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arithmetic>(mut self) {
        let Range { start: mut row, end } = self.rows.clone();
        while row < end {
            // As many rows as registers hold the results of, beside a row of `B`.
            row += match end - row {
                8.. if W == 1 => self.tile::<A, 8>(row),
                6.. if W == 2 => self.tile::<A, 6>(row),
                3.. if W == 3 => self.tile::<A, 3>(row),
                2.. => self.tile::<A, 2>(row),
                _ => self.tile::<A, 1>(row),
            };
        }
    }
}

impl<S: Scalar, T: To<S>, const W: usize> Panel<'_, S, T, W> {
    /// `R` rows by `W` times eight columns of the result; returns `R`.
    #[inline(always)]
    #[allow(unsafe_code, reason = "looking at every row costs some hundredths of an update")]
    fn tile<A: Arithmetic, const R: usize>(&mut self, row: usize) -> usize {
        let start = self.start;
        let mut sum = [[A::Lanes::<S>::splat(S::ZERO); W]; R];
        for &Factors { a, stride, b } in self.factors {
            let a = a.as_ptr().wrapping_add(row * stride);
            let panel = b.panels.as_ptr().wrapping_add(start * b.inner).cast::<[[S; LANES]; W]>();
            for k in 0..b.inner {
                // SAFETY: a panel has `inner` rows of `W` times eight columns, and `check` has found
                // that all panels are there.
                let row_of_b = unsafe { &*panel.wrapping_add(k) };
                let b: [A::Lanes<S>; W] = load_all(row_of_b);
                for r in 0..R {
                    // SAFETY: `check` has found `inner` numbers in every row.
                    let a = A::Lanes::<S>::splat(unsafe { *a.wrapping_add(r * stride + k) });
                    for j in 0..W {
                        sum[r][j] = a.mul_add(b[j], sum[r][j]);
                    }
                }
            }
        }
        let c = self.c.as_mut_ptr().wrapping_add(row * self.c_stride + start);
        let room = self.c_stride - start;
        for r in 0..R {
            let c = c.wrapping_add(r * self.c_stride).cast::<[S; LANES]>();
            for j in 0..W {
                let (column, c) = (start + j * LANES, c.wrapping_add(j));
                if j + 1 < W || room >= W * LANES {
                    // SAFETY: `check` has found the row, and these columns are within it.
                    let c = unsafe { &mut *c };
                    self.to.value(sum[r][j], || Lanes::load(c), column).store(c);
                } else {
                    // The last columns of rows that are not padded.
                    // SAFETY: likewise.
                    let c = unsafe { std::slice::from_raw_parts_mut(c.cast(), room - j * LANES) };
                    self.to.value(sum[r][j], || Lanes::load_some(c), column).store_some(c);
                }
            }
        }
        R
    }
}

/// The `N` columns of some rows of the result that are left over: dot products, with lanes along rows
/// of `A`.
struct LeftOver<'a, S, T, const N: usize>(Panel<'a, S, T, N>);

impl<S: Scalar, T: To<S>, const N: usize> Kernel for LeftOver<'_, S, T, N> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arithmetic>(mut self) {
        let Range { start: mut row, end } = self.0.rows.clone();
        while row < end {
            row += match end - row {
                8.. if N == 1 => self.tile::<A, 8>(row),
                4.. if N == 2 => self.tile::<A, 4>(row),
                _ => self.tile::<A, 1>(row),
            };
        }
    }
}

impl<S: Scalar, T: To<S>, const N: usize> LeftOver<'_, S, T, N> {
    /// `R` rows of the result, with `R · N ≤ 8`; returns `R`.
    #[inline(always)]
    #[allow(unsafe_code, reason = "looking at every row costs some hundredths of an update")]
    fn tile<A: Arithmetic, const R: usize>(&mut self, row: usize) -> usize {
        let Panel { factors, start, c_stride, to, .. } = self.0;
        let mut sums = [A::Lanes::<S>::splat(S::ZERO); LANES];
        for &Factors { a, stride, b } in factors {
            let (whole, rest) = (b.inner / LANES, b.inner % LANES);
            let a = a.as_ptr().wrapping_add(row * stride);
            let columns = b.panels.as_ptr().wrapping_add(start * b.inner).cast::<[S; LANES]>();
            let lanes_of_b = |k: usize| {
                let mut lanes = [A::Lanes::<S>::splat(S::ZERO); N];
                for n in 0..N {
                    let place = n * b.inner.div_ceil(LANES) + k;
                    // SAFETY: `check` has found all columns that are left over, padded.
                    lanes[n] = Lanes::load(unsafe { &*columns.wrapping_add(place) });
                }
                lanes
            };
            for k in 0..whole {
                let b = lanes_of_b(k);
                for r in 0..R {
                    let a = a.wrapping_add(r * stride + k * LANES).cast::<[S; LANES]>();
                    // SAFETY: `check` has found `inner` numbers in every row.
                    let a = A::Lanes::<S>::load(unsafe { &*a });
                    for n in 0..N {
                        sums[r * N + n] = a.mul_add(b[n], sums[r * N + n]);
                    }
                }
            }
            if rest > 0 {
                let b = lanes_of_b(whole);
                for r in 0..R {
                    let a = a.wrapping_add(r * stride + whole * LANES);
                    // SAFETY: likewise.
                    let a =
                        A::Lanes::<S>::load_some(unsafe { std::slice::from_raw_parts(a, rest) });
                    for n in 0..N {
                        sums[r * N + n] = a.mul_add(b[n], sums[r * N + n]);
                    }
                }
            }
        }
        let mut totals = [S::ZERO; LANES];
        if R == 1 {
            for n in 0..N {
                totals[n] = total(sums[n]);
            }
        } else {
            totals = each(A::Lanes::<S>::totals(sums));
        }
        for r in 0..R {
            let c = &mut self.0.c[(row + r) * c_stride..][..c_stride];
            let (c, padding) = c[start..].split_at_mut(N);
            for n in 0..N {
                c[n] = to.one(totals[r * N + n], c[n], start + n);
            }
            if let Some(padding) = padding.get_mut(..LANES - N) {
                for zero in padding {
                    *zero = S::ZERO;
                }
            }
        }
        R
    }
}

#[cfg(test)]
mod tests {
    use super::super::dispatch::plainly;
    use super::*;
    use proptest::prelude::*;

    fn matrix(rows: usize, stride: usize, cols: usize, seed: f64) -> Vec<f64> {
        (0..rows * stride)
            .map(|i| if i % stride < cols { (i as f64 * 0.37 + seed).sin() } else { 0.0 })
            .collect()
    }

    proptest! {
        #[test]
        fn products_are_what_the_definition_says(
            rows in 0_usize..20, inner in 1_usize..40, columns in 1_usize..40, fused: bool,
        ) {
            let a = matrix(rows, inner, inner, 0.1);
            let b = matrix(inner, columns, columns, 0.7);
            let stride = padded(columns);
            let mut c = matrix(rows, stride, columns, 0.3);
            let before = c.clone();
            let packed = Packed::new(&b, inner, columns);
            let factors = [Factors { a: &a, stride: inner, b: &packed }];
            let mut add = || product(rows, &factors, &mut c, stride, Finish::Add);
            if fused { add() } else { plainly(add) }
            for i in 0..rows {
                for j in 0..stride {
                    let exact: f64 = if j < columns {
                        (0..inner).map(|k| a[i * inner + k] * b[k * columns + j]).sum()
                    } else { 0.0 };
                    prop_assert!((c[i * stride + j] - before[i * stride + j] - exact).abs() < 1e-12);
                }
            }

            // C Bᵀ, to rows without padding.
            let back = Packed::transposed(&b, columns, inner);
            let mut e = vec![0.0; rows * inner];
            let factors = Factors { a: &c, stride, b: &back };
            product(rows, &[factors], &mut e, inner, Finish::Set);
            for i in 0..rows {
                for k in 0..inner {
                    let exact: f64 = (0..columns).map(|j| c[i * stride + j] * b[k * columns + j]).sum();
                    prop_assert!((e[i * inner + k] - exact).abs() < 1e-11);
                }
            }
        }

        #[test]
        fn a_sum_of_products_is_finished_as_asked(
            rows in 1_usize..20, inner in 0_usize..30, columns in 1_usize..60, fused: bool, slope: bool,
        ) {
            let stride = padded(columns);
            let (a, z) = (matrix(rows, inner.max(1), inner, 0.1), matrix(rows, 3, 3, 0.9));
            let (b, w) = (matrix(inner, columns, columns, 0.7), matrix(3, columns, columns, 0.2));
            let (packed_b, packed_w) = (Packed::new(&b, inner, columns), Packed::new(&w, 3, columns));
            let factors = [
                Factors { a: &a, stride: inner.max(1), b: &packed_b },
                Factors { a: &z, stride: 3, b: &packed_w },
            ];
            let (bias, y) = (matrix(1, stride, columns, 0.4), matrix(rows, stride, columns, 0.6));
            let mut c = vec![f64::NAN; rows * stride];
            let finish = if slope {
                Finish::Slope(Activation::Tanh, &y)
            } else {
                Finish::Activate(Activation::Tanh, &bias)
            };
            let mut set = || product(rows, &factors, &mut c, stride, finish);
            if fused { set() } else { plainly(set) }
            for i in 0..rows {
                for j in 0..stride {
                    let sum = if j < columns {
                        (0..inner).map(|k| a[i * inner + k] * b[k * columns + j]).sum::<f64>()
                            + (0..3).map(|k| z[i * 3 + k] * w[k * columns + j]).sum::<f64>()
                    } else { 0.0 };
                    let exact = if slope {
                        sum * (1.0 - y[i * stride + j].powi(2))
                    } else {
                        (sum + bias[j]).tanh()
                    };
                    prop_assert!((c[i * stride + j] - exact).abs() < 1e-12);
                }
            }
        }
    }
}
