//! Products of tall, narrow matrices with small ones: the only kind an update needs.
//!
//! Rows are nodes, arcs or graphs, up to millions; columns are components of a state or units of a
//! layer, tens. The small factor is packed once per update into panels that fit the registers and
//! then multiplies block after block of rows while they are in cache.

use std::ops::Range;

use super::dispatch::{Arithmetic, Kernel, dispatch};
use super::lanes::{LANES, Lanes};
use super::rows::padded;
use crate::Scalar;
use crate::activation::{Activation, Unit, with_unit};

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

/// Numbers of a matrix that stay in the first-level cache beside as many of another.
const CACHED: usize = 4096;

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
    let Some(first) = factors.first() else { return };
    let columns = first.b.columns;
    if rows == 0 || columns == 0 {
        return;
    }
    debug_assert!(factors.iter().all(|factors| factors.b.columns == columns));
    let then = match finish {
        Finish::Set | Finish::Add => Then::Nothing,
        Finish::Activate(activation, _) => Then::Activate(activation),
        Finish::Slope(activation, y) => Then::Slope(activation, y),
    };
    match finish {
        Finish::Set | Finish::Slope(..) => {
            dispatch(Product { rows, factors, columns, c, c_stride, to: Set, then });
        }
        Finish::Add => dispatch(Product { rows, factors, columns, c, c_stride, to: Add, then }),
        Finish::Activate(_, bias) => {
            dispatch(Product { rows, factors, columns, c, c_stride, to: Bias(bias), then });
        }
    }
}

/// How sums leave the registers.
trait To<S> {
    /// What is stored, given a sum of products, what is there, and the first of these columns.
    fn value<L: Lanes<S>>(&self, sum: L, there: impl FnOnce() -> L, column: usize) -> L;
}

struct Set;
struct Add;
struct Bias<'a, S>(&'a [S]);

impl<S: Scalar> To<S> for Set {
    #[inline(always)]
    fn value<L: Lanes<S>>(&self, sum: L, _: impl FnOnce() -> L, _: usize) -> L {
        sum
    }
}

impl<S: Scalar> To<S> for Add {
    #[inline(always)]
    fn value<L: Lanes<S>>(&self, sum: L, there: impl FnOnce() -> L, _: usize) -> L {
        sum.add(there())
    }
}

impl<S: Scalar> To<S> for Bias<'_, S> {
    #[inline(always)]
    fn value<L: Lanes<S>>(&self, sum: L, _: impl FnOnce() -> L, column: usize) -> L {
        let bias = self.0[column..].first_chunk().expect("the bias is padded");
        sum.add(L::load(bias))
    }
}

/// What happens to rows that are complete, while they are in the first-level cache.
#[derive(Clone, Copy)]
enum Then<'a, S> {
    Nothing,
    Activate(Activation),
    Slope(Activation, &'a [S]),
}

impl<S: Scalar> Then<'_, S> {
    /// For these rows of `c`.
    #[inline(always)]
    fn apply<A: Arithmetic>(self, c: &mut [S], rows: Range<usize>) {
        match self {
            Self::Nothing | Self::Activate(Activation::Identity) => {}
            Self::Activate(activation) => with_unit!(activation, U => {
                for c in c[rows].as_chunks_mut::<LANES>().0 {
                    U::value(A::Lanes::<S>::load(c)).store(c);
                }
            }),
            Self::Slope(activation, y) => with_unit!(activation, U => {
                let y = y[rows.clone()].as_chunks::<LANES>().0;
                for (c, y) in c[rows].as_chunks_mut::<LANES>().0.iter_mut().zip(y) {
                    U::slope(A::Lanes::<S>::load(y)).mul(Lanes::load(c)).store(c);
                }
            }),
        }
    }
}

struct Product<'a, S, T> {
    rows: usize,
    factors: &'a [Factors<'a, S>],
    columns: usize,
    c: &'a mut [S],
    c_stride: usize,
    to: T,
    then: Then<'a, S>,
}

impl<S: Scalar, T: To<S>> Kernel for Product<'_, S, T> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arithmetic>(mut self) {
        // As many rows at a time as stay in the first-level cache while all panels pass; a
        // multiple of what registers hold.
        let inner: usize = self.factors.iter().map(|factors| factors.b.inner).sum();
        let step = (CACHED / inner.max(1) / 12).max(2) * 12;
        for first in (0..self.rows).step_by(step) {
            let rows = first..(first + step).min(self.rows);
            for (start, width) in panels(self.columns) {
                match width {
                    24 => self.panel::<A, 3>(rows.clone(), start),
                    16 => self.panel::<A, 2>(rows.clone(), start),
                    _ => self.panel::<A, 1>(rows.clone(), start),
                }
            }
            let rows = rows.start * self.c_stride..rows.end * self.c_stride;
            self.then.apply::<A>(self.c, rows);
        }
    }
}

impl<S: Scalar, T: To<S>> Product<'_, S, T> {
    /// `W` times eight columns of some rows of the result.
    #[inline(always)]
    fn panel<A: Arithmetic, const W: usize>(&mut self, rows: Range<usize>, start: usize) {
        let mut row = rows.start;
        while row < rows.end {
            // As many rows as registers hold the results of, beside a row of `B`.
            row += match rows.end - row {
                6.. if W < 3 => self.tile::<A, 6, W>(row, start),
                3.. if W == 3 => self.tile::<A, 3, W>(row, start),
                2.. => self.tile::<A, 2, W>(row, start),
                _ => self.tile::<A, 1, W>(row, start),
            };
        }
    }

    /// `R` rows by `W` times eight columns of the result; returns `R`.
    #[inline(always)]
    fn tile<A: Arithmetic, const R: usize, const W: usize>(
        &mut self,
        row: usize,
        start: usize,
    ) -> usize {
        let mut sum = [[A::Lanes::<S>::splat(S::ZERO); W]; R];
        for factors in self.factors {
            let inner = factors.b.inner;
            let panel = &factors.b.panels[start * inner..][..W * LANES * inner];
            let panel = &panel.as_chunks::<LANES>().0.as_chunks::<W>().0[..inner];
            let a: [&[S]; R] =
                std::array::from_fn(|r| &factors.a[(row + r) * factors.stride..][..inner]);
            for k in 0..inner {
                let b: [A::Lanes<S>; W] = std::array::from_fn(|j| Lanes::load(&panel[k][j]));
                for r in 0..R {
                    let a = A::Lanes::<S>::splat(a[r][k]);
                    for j in 0..W {
                        sum[r][j] = a.mul_add(b[j], sum[r][j]);
                    }
                }
            }
        }
        if self.c_stride - start >= W * LANES {
            for r in 0..R {
                let at = (row + r) * self.c_stride + start;
                let c = self.c[at..].as_chunks_mut().0.first_chunk_mut::<W>();
                let c = c.expect("rows are as long as their stride");
                for j in 0..W {
                    let there = || Lanes::load(&c[j]);
                    self.to.value(sum[r][j], there, start + j * LANES).store(&mut c[j]);
                }
            }
        } else {
            self.narrow::<_, R, W>(sum, row, start);
        }
        R
    }

    /// Stores the last columns of rows that are not padded.
    #[inline(always)]
    fn narrow<L: Lanes<S>, const R: usize, const W: usize>(
        &mut self,
        sum: [[L; W]; R],
        row: usize,
        start: usize,
    ) {
        for r in 0..R {
            let at = (row + r) * self.c_stride + start;
            let (whole, rest) = self.c[at..].split_at_mut((W - 1) * LANES);
            let whole = whole.as_chunks_mut::<LANES>().0;
            for j in 0..W - 1 {
                let there = || Lanes::load(&whole[j]);
                self.to.value(sum[r][j], there, start + j * LANES).store(&mut whole[j]);
            }
            let (count, column) =
                (self.c_stride - start - whole.len() * LANES, start + (W - 1) * LANES);
            if let Some(eight) = rest.first_chunk_mut() {
                // What is behind is the next row, and is put back.
                let there = L::load(eight);
                let value = self.to.value(sum[r][W - 1], || there, column);
                value.first(count, there).store(eight);
            } else {
                let rest = &mut rest[..count];
                let there = || Lanes::load_some(rest);
                self.to.value(sum[r][W - 1], there, column).store_some(rest);
            }
        }
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
            k += match self.inner - k {
                6 | 7 | 9.. if W < 3 => self.tile::<A, 6, W>(rows.clone(), k, start),
                // 4 and 4 are better than 6 and 2.
                4.. if W < 3 => self.tile::<A, 4, W>(rows.clone(), k, start),
                3.. if W == 3 => self.tile::<A, 3, W>(rows.clone(), k, start),
                2.. => self.tile::<A, 2, W>(rows.clone(), k, start),
                _ => self.tile::<A, 1, W>(rows.clone(), k, start),
            }
        }
    }

    /// What `rows` add to `R` rows by `W` times eight columns of the result; returns `R`.
    #[inline(always)]
    fn tile<A: Arithmetic, const R: usize, const W: usize>(
        &mut self,
        rows: Range<usize>,
        k: usize,
        start: usize,
    ) -> usize {
        let stride = padded(self.columns);
        let mut sum = [[A::Lanes::<S>::splat(S::ZERO); W]; R];
        let a = self.a[rows.start * self.a_stride..][..rows.len() * self.a_stride]
            .chunks_exact(self.a_stride);
        let b = self.b[rows.start * stride..][..rows.len() * stride].chunks_exact(stride);
        for (a, b) in a.zip(b) {
            let (a, b) = (&a[k..k + R], &b[start..start + W * LANES]);
            let b: [A::Lanes<S>; W] =
                std::array::from_fn(|j| Lanes::load(&b.as_chunks::<LANES>().0[j]));
            for r in 0..R {
                let a = A::Lanes::<S>::splat(a[r]);
                for j in 0..W {
                    sum[r][j] = a.mul_add(b[j], sum[r][j]);
                }
            }
        }
        for r in 0..R {
            let c = &mut self.c[(k + r) * stride + start..][..W * LANES];
            for (c, sum) in c.as_chunks_mut::<LANES>().0.iter_mut().zip(sum[r]) {
                sum.add(Lanes::load(c)).store(c);
            }
        }
        R
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
            let factors = [Factors { a: &a, stride: inner, b: &packed }];
            let kernel = Product {
                rows, factors: &factors, columns, c: &mut c, c_stride: stride, to: Add,
                then: Then::Nothing,
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
            if fused {
                let finish = if slope {
                    Finish::Slope(Activation::Tanh, &y)
                } else {
                    Finish::Activate(Activation::Tanh, &bias)
                };
                product(rows, &factors, &mut c, stride, finish);
            } else {
                let (c, c_stride, factors) = (&mut c[..], stride, &factors[..]);
                if slope {
                    let then = Then::Slope(Activation::Tanh, &y);
                    Product { rows, factors, columns, c, c_stride, to: Set, then }.run::<Plain>();
                } else {
                    let (to, then) = (Bias(&bias), Then::Activate(Activation::Tanh));
                    Product { rows, factors, columns, c, c_stride, to, then }.run::<Plain>();
                }
            }
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
