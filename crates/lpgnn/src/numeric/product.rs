//! Products of tall, narrow matrices with small ones: the only kind an update needs.
//!
//! Rows are nodes, arcs or graphs, up to millions; columns are components of a state or units of a
//! layer, tens. The small factor is packed once per update into panels that fit the registers and
//! then multiplies block after block of rows while they are in cache.

use std::ops::Range;

use super::dispatch::{Arithmetic, Kernel, dispatch};
use super::lanes::{LANES, Lanes};
use crate::Scalar;

/// The padded length of a row of `columns` columns: rows of a buffer are padded with zeros, so that
/// no loop over columns has a rest.
pub(crate) const fn padded(columns: usize) -> usize {
    columns.next_multiple_of(LANES)
}

/// A small matrix `B: [inner, columns]`, ready to be multiplied from the left.
///
/// Columns lie in panels of 24 or 16, or 8 if there are no more; within a panel, row after row.
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
        let mut entries = Vec::with_capacity(inner * padded(columns));
        for (start, width) in panels(columns) {
            for k in 0..inner {
                entries.extend(
                    (start..start + width).map(|j| if j < columns { entry(k, j) } else { S::ZERO }),
                );
            }
        }
        Self { inner, columns, panels: entries }
    }
}

/// The panels of a row of `columns` columns: where each starts and how wide it is.
#[inline(always)]
fn panels(columns: usize) -> impl Iterator<Item = (usize, usize)> {
    let end = padded(columns);
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

/// How many of `rest` rows come next, where registers hold `most`, and 4 and 4 are better than 6
/// and 2.
#[inline(always)]
fn height(rest: usize, most: usize) -> usize {
    match rest {
        8 if most == 6 => 4,
        rest if rest >= most => most,
        4.. => 4,
        2.. => 2,
        _ => 1,
    }
}

/// Numbers of a matrix that stay in the first-level cache beside as many of another.
const CACHED: usize = 4096;

/// What happens to the result of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Store {
    /// It replaces what is there.
    Set,
    /// It is added to what is there.
    Add,
}

/// `C ← A B` or `C ← C + A B`.
///
/// `A` has rows of `b.inner` entries, `a_stride` apart; `C` rows of `c_stride`. Where `c_stride`
/// is the padded length, the padding receives zeros.
pub(crate) fn product<S: Scalar>(
    rows: usize,
    a: &[S],
    a_stride: usize,
    b: &Packed<S>,
    c: &mut [S],
    c_stride: usize,
    store: Store,
) {
    if rows > 0 && b.columns > 0 {
        dispatch(Product { rows, a, a_stride, b, c, c_stride, store });
    }
}

struct Product<'a, S> {
    rows: usize,
    a: &'a [S],
    a_stride: usize,
    b: &'a Packed<S>,
    c: &'a mut [S],
    c_stride: usize,
    store: Store,
}

impl<S: Scalar> Kernel for Product<'_, S> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arithmetic>(mut self) {
        // Panel by panel, so that a panel stays in the first-level cache.
        for (start, width) in panels(self.b.columns) {
            match width {
                24 => self.panel::<A, 3>(start),
                16 => self.panel::<A, 2>(start),
                _ => self.panel::<A, 1>(start),
            }
        }
    }
}

impl<S: Scalar> Product<'_, S> {
    /// `W` times eight columns of the result.
    #[inline(always)]
    fn panel<A: Arithmetic, const W: usize>(&mut self, start: usize) {
        let mut row = 0;
        while row < self.rows {
            let height = height(self.rows - row, if W == 3 { 3 } else { 6 });
            match height {
                6 => self.tile::<A, 6, W>(row, start),
                4 => self.tile::<A, 4, W>(row, start),
                3 => self.tile::<A, 3, W>(row, start),
                2 => self.tile::<A, 2, W>(row, start),
                _ => self.tile::<A, 1, W>(row, start),
            }
            row += height;
        }
    }

    /// `R` rows by `W` times eight columns of the result.
    #[inline(always)]
    fn tile<A: Arithmetic, const R: usize, const W: usize>(&mut self, row: usize, start: usize) {
        let inner = self.b.inner;
        let panel = &self.b.panels[start * inner..][..W * LANES * inner];
        let panel = &panel.as_chunks::<LANES>().0.as_chunks::<W>().0[..inner];
        let a: [&[S]; R] = std::array::from_fn(|r| &self.a[(row + r) * self.a_stride..][..inner]);
        let mut sum = [[A::Lanes::<S>::splat(S::ZERO); W]; R];
        for k in 0..inner {
            let b: [A::Lanes<S>; W] = std::array::from_fn(|j| Lanes::load(&panel[k][j]));
            for r in 0..R {
                let a = A::Lanes::<S>::splat(a[r][k]);
                for j in 0..W {
                    sum[r][j] = a.mul_add(b[j], sum[r][j]);
                }
            }
        }
        let width = (W * LANES).min(self.c_stride - start);
        for r in 0..R {
            let c = &mut self.c[(row + r) * self.c_stride + start..][..width];
            self.store.write(sum[r], c);
        }
    }
}

impl Store {
    /// Writes or adds numbers, as many as there is room for.
    #[inline(always)]
    fn write<S: Scalar, L: Lanes<S>, const W: usize>(self, sum: [L; W], c: &mut [S]) {
        let (whole, rest) = c.as_chunks_mut::<LANES>();
        for j in 0..W {
            if let Some(c) = whole.get_mut(j) {
                match self {
                    Self::Set => sum[j].store(c),
                    Self::Add => sum[j].add(L::load(c)).store(c),
                }
            } else if j == whole.len() {
                let mut last = [S::ZERO; LANES];
                sum[j].store(&mut last);
                // Fewer than eight, without a loop: four, two, one.
                let (rest, last) = self.write_some::<S, 4>(&last, rest);
                let (rest, last) = self.write_some::<S, 2>(last, rest);
                self.write_some::<S, 1>(last, rest);
            }
        }
    }

    /// Writes or adds `N` numbers if there is room, and returns where to go on.
    #[inline(always)]
    fn write_some<'c, 's, S: Scalar, const N: usize>(
        self,
        sum: &'s [S],
        c: &'c mut [S],
    ) -> (&'c mut [S], &'s [S]) {
        if c.len() < N {
            return (c, sum);
        }
        let ((c, c_rest), (sum, sum_rest)) = (c.split_at_mut(N), sum.split_at(N));
        for i in 0..N {
            match self {
                Self::Set => c[i] = sum[i],
                Self::Add => c[i] += sum[i],
            }
        }
        (c_rest, sum_rest)
    }
}

/// `C ← C + Aᵀ B` for `A: [rows, inner]`, `B: [rows, columns]`, both with rows `…_stride` apart.
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
    if rows > 0 && inner > 0 && columns > 0 {
        dispatch(TransposedProduct { rows, a, a_stride, inner, b, columns, c });
    }
}

struct TransposedProduct<'a, S> {
    rows: usize,
    a: &'a [S],
    a_stride: usize,
    inner: usize,
    b: &'a [S],
    columns: usize,
    c: &'a mut [S],
}

impl<S: Scalar> Kernel for TransposedProduct<'_, S> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arithmetic>(mut self) {
        // As many rows at a time as stay in the first-level cache while all columns pass.
        let step = (CACHED / self.inner.max(self.columns)).max(64);
        for first in (0..self.rows).step_by(step) {
            let rows = first..(first + step).min(self.rows);
            for (start, width) in panels(self.columns) {
                match width {
                    24 => self.panel::<A, 3>(rows.clone(), start),
                    16 => self.panel::<A, 2>(rows.clone(), start),
                    _ => self.panel::<A, 1>(rows.clone(), start),
                }
            }
        }
    }
}

impl<S: Scalar> TransposedProduct<'_, S> {
    /// What `rows` add to `W` times eight columns of the result.
    #[inline(always)]
    fn panel<A: Arithmetic, const W: usize>(&mut self, rows: Range<usize>, start: usize) {
        let mut k = 0;
        while k < self.inner {
            let height = height(self.inner - k, if W == 3 { 4 } else { 6 });
            match height {
                6 => self.tile::<A, 6, W>(rows.clone(), k, start),
                4 => self.tile::<A, 4, W>(rows.clone(), k, start),
                2 => self.tile::<A, 2, W>(rows.clone(), k, start),
                _ => self.tile::<A, 1, W>(rows.clone(), k, start),
            }
            k += height;
        }
    }

    /// What `rows` add to `R` rows by `W` times eight columns of the result.
    #[inline(always)]
    fn tile<A: Arithmetic, const R: usize, const W: usize>(
        &mut self,
        rows: Range<usize>,
        k: usize,
        start: usize,
    ) {
        let stride = padded(self.columns);
        let mut sum = [[A::Lanes::<S>::splat(S::ZERO); W]; R];
        let a = self.a[rows.start * self.a_stride + k..].chunks(self.a_stride);
        let b = self.b[rows.start * stride + start..].chunks(stride);
        for ((a, b), _) in a.zip(b).zip(rows) {
            let (Some(a), Some(b)) =
                (a.first_chunk::<R>(), b.as_chunks::<LANES>().0.first_chunk::<W>())
            else {
                break;
            };
            let b: [A::Lanes<S>; W] = std::array::from_fn(|j| Lanes::load(&b[j]));
            for r in 0..R {
                let a = A::Lanes::<S>::splat(a[r]);
                for j in 0..W {
                    sum[r][j] = a.mul_add(b[j], sum[r][j]);
                }
            }
        }
        for r in 0..R {
            let c = &mut self.c[(k + r) * stride + start..][..W * LANES];
            Store::Add.write(sum[r], c);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::dispatch::{Kernel, Plain};
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
            let kernel = Product {
                rows, a: &a, a_stride: inner, b: &packed, c: &mut c, c_stride: stride, store: Store::Add,
            };
            if fused { dispatch(kernel) } else { kernel.run::<Plain>() }
            for i in 0..rows {
                for j in 0..stride {
                    let exact: f64 = if j < columns {
                        (0..inner).map(|k| a[i * inner + k] * b[k * columns + j]).sum()
                    } else { 0.0 };
                    prop_assert!((c[i * stride + j] - before[i * stride + j] - exact).abs() < 1e-12);
                }
            }

            // Aᵀ C, with C's padded rows.
            let mut d = vec![0.0; inner * stride];
            transposed_product(rows, &a, inner, inner, &c, columns, &mut d);
            for k in 0..inner {
                for j in 0..columns {
                    let exact: f64 = (0..rows).map(|i| a[i * inner + k] * c[i * stride + j]).sum();
                    prop_assert!((d[k * stride + j] - exact).abs() < 1e-11);
                }
            }

            // C Bᵀ, to rows without padding.
            let back = Packed::transposed(&b, columns, inner);
            let mut e = vec![0.0; rows * inner];
            product(rows, &c, stride, &back, &mut e, inner, Store::Set);
            for i in 0..rows {
                for k in 0..inner {
                    let exact: f64 = (0..columns).map(|j| c[i * stride + j] * b[k * columns + j]).sum();
                    prop_assert!((e[i * inner + k] - exact).abs() < 1e-11);
                }
            }
        }
    }
}
