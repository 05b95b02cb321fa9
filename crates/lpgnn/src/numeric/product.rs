//! Products of tall, narrow matrices with small ones: the only kind an update needs.
//!
//! Rows are nodes, arcs or graphs, up to millions; columns are components of a state or units of a
//! layer, tens. The small factor is packed once per update into panels that fit the registers and
//! then multiplies block after block of rows while they are in cache.

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
/// Columns lie in panels of 16, and 8 for the rest; within a panel, row after row.
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
        let mut panels = Vec::with_capacity(inner * padded(columns));
        for (start, width) in tiles(columns) {
            for k in 0..inner {
                panels.extend(
                    (start..start + width).map(|j| if j < columns { entry(k, j) } else { S::ZERO }),
                );
            }
        }
        Self { inner, columns, panels }
    }
}

/// The panels of a row of `columns` columns: where each starts and how wide it is.
#[inline(always)]
fn tiles(columns: usize) -> impl Iterator<Item = (usize, usize)> {
    let end = padded(columns);
    (0..end).step_by(16).map(move |start| (start, (end - start).min(16)))
}

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
        let mut row = 0;
        while row + 6 <= self.rows {
            self.stripe::<A, 6>(row);
            row += 6;
        }
        while row + 2 <= self.rows {
            self.stripe::<A, 2>(row);
            row += 2;
        }
        if row < self.rows {
            self.stripe::<A, 1>(row);
        }
    }
}

impl<S: Scalar> Product<'_, S> {
    #[inline(always)]
    fn stripe<A: Arithmetic, const R: usize>(&mut self, row: usize) {
        let mut panel = 0;
        for (start, width) in tiles(self.b.columns) {
            if width == 16 {
                self.tile::<A, R, 2>(row, start, panel);
            } else {
                self.tile::<A, R, 1>(row, start, panel);
            }
            panel += self.b.inner * width;
        }
    }

    /// `R` rows by `W` times eight columns of the result.
    #[inline(always)]
    fn tile<A: Arithmetic, const R: usize, const W: usize>(
        &mut self,
        row: usize,
        start: usize,
        panel: usize,
    ) {
        let inner = self.b.inner;
        let a: [&[S]; R] = std::array::from_fn(|r| &self.a[(row + r) * self.a_stride..][..inner]);
        let mut sum = [[A::Lanes::<S>::splat(S::ZERO); W]; R];
        let (panel, _) = self.b.panels[panel..][..inner * W * LANES].as_chunks::<LANES>();
        for k in 0..inner {
            let b: [A::Lanes<S>; W] = std::array::from_fn(|j| Lanes::load(&panel[k * W + j]));
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
            for (j, c) in c.chunks_mut(LANES).enumerate() {
                self.store.write(sum[r][j], c);
            }
        }
    }
}

impl Store {
    /// Writes or adds the first of eight numbers.
    #[inline(always)]
    fn write<S: Scalar, L: Lanes<S>>(self, sum: L, c: &mut [S]) {
        if let Ok(c) = <&mut [S; LANES]>::try_from(&mut *c) {
            match self {
                Self::Set => sum.store(c),
                Self::Add => sum.add(L::load(c)).store(c),
            }
        } else {
            let mut rest = [S::ZERO; LANES];
            sum.store(&mut rest);
            match self {
                Self::Set => c.copy_from_slice(&rest[..c.len()]),
                Self::Add => add(c, &rest),
            }
        }
    }
}

#[inline(always)]
fn add<S: Scalar>(y: &mut [S], x: &[S]) {
    for (y, &x) in y.iter_mut().zip(x) {
        *y += x;
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
        let mut k = 0;
        while k + 6 <= self.inner {
            self.stripe::<A, 6>(k);
            k += 6;
        }
        while k + 2 <= self.inner {
            self.stripe::<A, 2>(k);
            k += 2;
        }
        if k < self.inner {
            self.stripe::<A, 1>(k);
        }
    }
}

impl<S: Scalar> TransposedProduct<'_, S> {
    #[inline(always)]
    fn stripe<A: Arithmetic, const R: usize>(&mut self, k: usize) {
        for (start, width) in tiles(self.columns) {
            if width == 16 {
                self.tile::<A, R, 2>(k, start);
            } else {
                self.tile::<A, R, 1>(k, start);
            }
        }
    }

    /// `R` rows by `W` times eight columns of the result.
    #[inline(always)]
    fn tile<A: Arithmetic, const R: usize, const W: usize>(&mut self, k: usize, start: usize) {
        let stride = padded(self.columns);
        let mut sum = [[A::Lanes::<S>::splat(S::ZERO); W]; R];
        let (b, _) = self.b.as_chunks::<LANES>();
        for row in 0..self.rows {
            let a: &[S; R] = self.a[row * self.a_stride + k..]
                .first_chunk()
                .expect("a stripe of columns lies inside the row");
            let b = &b[(row * stride + start) / LANES..][..W];
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
            for (j, c) in c.chunks_mut(LANES).enumerate() {
                Store::Add.write(sum[r][j], c);
            }
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
