//! Products of tall, narrow matrices with small ones: the only kind an update needs.
//!
//! Rows are nodes, edges or graphs, up to millions; columns are components of a state or units of a
//! layer, tens. The small factor is packed once per update into panels that fit the registers and
//! then multiplies block after block of rows while they are in cache.

use std::ops::Range;

use super::dispatch::{Arithmetic, Kernel, dispatch, register};
use super::lanes::{Eights, LANES, Lanes, Numbers, each, total};
use super::rows::{end_of_rows, left_over, padded};
use crate::Scalar;
use crate::activation::{Activation, activate, differentiate};

/// A small matrix `B: [inner, columns]`, ready to be multiplied from the left.
///
/// Columns lie in [panels]; within a panel, row after row, and the last is padded to whole registers.
/// Behind them come the columns that are [left over](left_over), one after the other, padded.
#[derive(Clone, Debug, Default)]
pub(crate) struct Packed<S> {
    inner: usize,
    columns: usize,
    /// Numbers in a register: what the panels were cut for.
    register: usize,
    lines: Vec<Line<S>>,
}

/// Numbers that start where a line of the cache does.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Line<S>([S; 16]);

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
        let mut packed = Self { inner, columns, register: register::<S>(), lines: vec![] };
        packed.lines = vec![Line([S::ZERO; 16]); packed.len().div_ceil(16)];
        let mut entries = packed.lines.iter_mut().flat_map(|line| &mut line.0);
        let mut push = |entry| *entries.next().expect("as many as were counted") = entry;
        // A panel may reach beyond them, where it must add nothing.
        let over = columns - left_over(columns);
        for (start, width) in panels(columns, packed.register) {
            for k in 0..inner {
                for j in start..start + width {
                    push(if j < over { entry(k, j) } else { S::ZERO });
                }
            }
        }
        for j in over..columns {
            for k in 0..padded(inner) {
                push(if k < inner { entry(k, j) } else { S::ZERO });
            }
        }
        packed
    }

    /// How many entries there are in panels.
    fn len_of_panels(&self) -> usize {
        self.inner * (self.columns - left_over(self.columns)).next_multiple_of(self.register)
    }

    /// How many entries there are.
    fn len(&self) -> usize {
        self.len_of_panels() + left_over(self.columns) * padded(self.inner)
    }

    fn entries(&self) -> *const S {
        self.lines.as_ptr().cast()
    }
}

/// The panels of a row of `columns` columns, but for those left over: where each starts and how wide it
/// is, a few whole registers.
#[inline(always)]
pub(super) fn panels(columns: usize, register: usize) -> impl Iterator<Item = (usize, usize)> {
    let end = (columns - left_over(columns)).next_multiple_of(register);
    let mut start = 0;
    std::iter::from_fn(move || {
        let rest = (end - start) / register;
        let count = match (register, rest) {
            (_, 0) => return None,
            // There are 32 of the wide ones: up to four beside each other, in panels alike.
            (16, _) => rest.div_ceil(rest.div_ceil(4)),
            (_, 1) => 1,
            // Three where panels of two would leave one.
            _ => 2 + rest % 2,
        };
        start += count * register;
        Some((start - count * register, count * register))
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
    /// `C ← Y + P` for a `Y` of the shape of `C`.
    Plus(&'a [S]),
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
        Finish::Plus(y) => {
            assert!(y.len() >= end_of_rows(rows, c_stride, c_stride), "rows of Y");
            Product::new(rows, factors, c, c_stride, Plus(y)).run(|_, _| {});
        }
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
    /// What is added to every row of these columns from `column` on.
    #[inline(always)]
    fn bias<N: Eights<S, W>, const W: usize>(&self, column: usize) -> N
    where
        S: Scalar,
    {
        let _ = column;
        N::splat(S::ZERO)
    }
    /// Where that lies what sums are added to: the result is at `c`, and at `place` in all of `C`.
    #[inline(always)]
    fn source(&self, c: *const S, place: usize) -> *const S {
        let _ = place;
        c
    }
    /// What is stored, given sums of products, their bias and what is there.
    fn values<N: Numbers<S>>(&self, sums: N, bias: N, there: impl FnOnce() -> N) -> N;
    /// The same for one column.
    fn one(&self, sum: S, there: S, column: usize) -> S;
}

#[derive(Clone, Copy)]
struct Set;
#[derive(Clone, Copy)]
struct Add;
/// Of the shape of `C`, as has been checked.
#[derive(Clone, Copy)]
struct Plus<'a, S>(&'a [S]);
#[derive(Clone, Copy)]
struct Bias<'a, S>(&'a [S]);

impl<S: Scalar> To<S> for Set {
    #[inline(always)]
    fn values<N: Numbers<S>>(&self, sums: N, _: N, _: impl FnOnce() -> N) -> N {
        sums
    }
    #[inline(always)]
    fn one(&self, sum: S, _: S, _: usize) -> S {
        sum
    }
}

impl<S: Scalar> To<S> for Add {
    #[inline(always)]
    fn values<N: Numbers<S>>(&self, sums: N, _: N, there: impl FnOnce() -> N) -> N {
        sums.add(there())
    }
    #[inline(always)]
    fn one(&self, sum: S, there: S, _: usize) -> S {
        sum + there
    }
}

impl<S: Scalar> To<S> for Plus<'_, S> {
    #[inline(always)]
    fn source(&self, _: *const S, place: usize) -> *const S {
        self.0.as_ptr().wrapping_add(place)
    }
    #[inline(always)]
    fn values<N: Numbers<S>>(&self, sums: N, _: N, there: impl FnOnce() -> N) -> N {
        sums.add(there())
    }
    #[inline(always)]
    fn one(&self, sum: S, there: S, _: usize) -> S {
        sum + there
    }
}

impl<S: Scalar> To<S> for Bias<'_, S> {
    #[inline(always)]
    fn bias<N: Eights<S, W>, const W: usize>(&self, column: usize) -> N {
        let bias = &self.0[column..];
        match bias.as_chunks().0.first_chunk() {
            Some(bias) => N::load(bias),
            None => N::load_some(bias),
        }
    }
    #[inline(always)]
    fn values<N: Numbers<S>>(&self, sums: N, bias: N, _: impl FnOnce() -> N) -> N {
        sums.add(bias)
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
        let register = self.factors[0].b.register;
        let inner: usize = self.factors.iter().map(|factors| factors.b.inner).sum();
        // A multiple of what registers hold.
        let step = (CACHED / inner.max(1) / 24).max(1) * 24;
        for first in (0..self.rows).step_by(step) {
            let rows = first..(first + step).min(self.rows);
            for (start, width) in panels(self.columns, register) {
                match width / LANES {
                    8 => dispatch(self.panel::<8>(rows.clone(), start)),
                    6 => dispatch(self.panel::<6>(rows.clone(), start)),
                    4 => dispatch(self.panel::<4>(rows.clone(), start)),
                    3 => dispatch(self.panel::<3>(rows.clone(), start)),
                    2 => dispatch(self.panel::<2>(rows.clone(), start)),
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
            assert!(b.register == self.factors[0].b.register, "panels of B");
            assert!(b.lines.len() == b.len().div_ceil(16), "entries of B");
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
        let register = A::register::<S>();
        assert!(register > LANES || W <= 3, "panels are no wider than registers hold");
        while row < end {
            // As many rows as registers hold the results of, beside a row of `B`.
            row += match (register, W, end - row) {
                (16, 2 | 4, 12..) => self.tile::<A, 12>(row),
                (16, 2 | 4 | 6, 8..) | (8, 1, 8..) => self.tile::<A, 8>(row),
                (16, 8, 6..) | (8, 2, 6..) => self.tile::<A, 6>(row),
                (16, _, 4..) => self.tile::<A, 4>(row),
                (_, 3, 3..) => self.tile::<A, 3>(row),
                (_, _, 2..) => self.tile::<A, 2>(row),
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
        let mut sums = [A::Eights::<S, W>::splat(S::ZERO); R];
        for &Factors { a, stride, b } in self.factors {
            let a = a.as_ptr().wrapping_add(row * stride);
            let panel = b.entries().wrapping_add(start * b.inner).cast::<[[S; LANES]; W]>();
            for k in 0..b.inner {
                // SAFETY: a panel has `inner` rows of `W` times eight columns, and `check` has found
                // that all panels are there.
                let row_of_b = A::Eights::<S, W>::load(unsafe { &*panel.wrapping_add(k) });
                for r in 0..R {
                    // SAFETY: `check` has found `inner` numbers in every row.
                    let a = A::Eights::<S, W>::splat(unsafe { *a.wrapping_add(r * stride + k) });
                    sums[r] = a.mul_add(row_of_b, sums[r]);
                }
            }
        }
        let c = self.c.as_mut_ptr().wrapping_add(row * self.c_stride + start);
        let (room, bias) = (self.c_stride - start, self.to.bias::<A::Eights<S, W>, W>(start));
        // Loops over sums in registers are short: if one were not unrolled, sums would live in memory
        // throughout.
        if room >= W * LANES {
            for r in 0..R {
                let c = c.wrapping_add(r * self.c_stride);
                let there = self.to.source(c, (row + r) * self.c_stride + start);
                // SAFETY: `check` has found the row, and these columns are within it.
                let there = || Eights::load(unsafe { &*there.cast::<[[S; LANES]; W]>() });
                let values = self.to.values(sums[r], bias, there);
                // SAFETY: likewise.
                values.store(unsafe { &mut *c.cast::<[[S; LANES]; W]>() });
            }
        } else {
            // The last columns of rows that are not padded to whole registers.
            for r in 0..R {
                let c = c.wrapping_add(r * self.c_stride);
                let there = self.to.source(c, (row + r) * self.c_stride + start);
                // SAFETY: likewise.
                let there =
                    || Eights::load_some(unsafe { std::slice::from_raw_parts(there, room) });
                let values = self.to.values(sums[r], bias, there);
                // SAFETY: likewise.
                values.store_some(unsafe { std::slice::from_raw_parts_mut(c, room) });
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
            let columns = b.entries().wrapping_add(b.len_of_panels()).cast::<[S; LANES]>();
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
            let place = (row + r) * c_stride + start;
            let c = &mut self.0.c[place..][..c_stride - start];
            let (c, padding) = c.split_at_mut(N);
            for n in 0..N {
                let there = to.source(&raw const c[n], place + n);
                // SAFETY: it is in the row of `C`, or of what has its shape.
                c[n] = to.one(totals[r * N + n], unsafe { *there }, start + n);
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
    use super::super::dispatch::{InstructionSet, on_each};
    use super::*;
    use proptest::prelude::*;

    fn matrix<S: Scalar>(rows: usize, stride: usize, cols: usize, seed: f64) -> Vec<S> {
        (0..rows * stride)
            .map(
                |i| if i % stride < cols { S::of((i as f64 * 0.37 + seed).sin()) } else { S::ZERO },
            )
            .collect()
    }

    /// Whether a sum of some hundred products, each below a hundred, is as exact as it can be.
    fn is_near<S: Scalar>(found: S, exact: f64) -> bool {
        (found.f64() - exact).abs() < if size_of::<S>() == 4 { 5e-3 } else { 1e-11 }
    }

    fn adds_products<S: Scalar>(rows: usize, inner: usize, columns: usize) {
        let a = matrix::<S>(rows, inner, inner, 0.1);
        let b = matrix::<S>(inner, columns, columns, 0.7);
        let stride = padded(columns);
        let mut c = matrix::<S>(rows, stride, columns, 0.3);
        let before = c.clone();
        let packed = Packed::new(&b, inner, columns);
        let factors = [Factors { a: &a, stride: inner, b: &packed }];
        product(rows, &factors, &mut c, stride, Finish::Add);
        for i in 0..rows {
            for j in 0..stride {
                let entry = |k: usize| a[i * inner + k].f64() * b[k * columns + j].f64();
                let exact: f64 = if j < columns { (0..inner).map(entry).sum() } else { 0.0 };
                assert!(is_near(c[i * stride + j], before[i * stride + j].f64() + exact));
            }
        }

        // C Bᵀ, to rows without padding.
        let back = Packed::transposed(&b, columns, inner);
        let mut e = vec![S::ZERO; rows * inner];
        let factors = Factors { a: &c, stride, b: &back };
        product(rows, &[factors], &mut e, inner, Finish::Set);
        for i in 0..rows {
            for k in 0..inner {
                let entry = |j: usize| c[i * stride + j].f64() * b[k * columns + j].f64();
                let exact: f64 = (0..columns).map(entry).sum();
                assert!(is_near(e[i * inner + k], exact), "{i}, {k}");
            }
        }
    }

    fn finishes<S: Scalar>(rows: usize, inner: usize, columns: usize, kind: usize) {
        let stride = padded(columns);
        let (a, z) = (matrix::<S>(rows, inner.max(1), inner, 0.1), matrix::<S>(rows, 3, 3, 0.9));
        let (b, w) =
            (matrix::<S>(inner, columns, columns, 0.7), matrix::<S>(3, columns, columns, 0.2));
        let (packed_b, packed_w) = (Packed::new(&b, inner, columns), Packed::new(&w, 3, columns));
        let factors = [
            Factors { a: &a, stride: inner.max(1), b: &packed_b },
            Factors { a: &z, stride: 3, b: &packed_w },
        ];
        let bias = matrix::<S>(1, stride, columns, 0.4);
        let y = matrix::<S>(rows, stride, columns, 0.6);
        let mut c = vec![S::of(f64::NAN); rows * stride];
        let finish = match kind {
            0 => Finish::Slope(Activation::Tanh, &y),
            1 => Finish::Activate(Activation::Tanh, &bias),
            _ => Finish::Plus(&y),
        };
        product(rows, &factors, &mut c, stride, finish);
        for i in 0..rows {
            for j in 0..stride {
                let of_b = |k: usize| a[i * inner + k].f64() * b[k * columns + j].f64();
                let of_w = |k: usize| z[i * 3 + k].f64() * w[k * columns + j].f64();
                let sum = if j < columns {
                    (0..inner).map(of_b).sum::<f64>() + (0..3).map(of_w).sum::<f64>()
                } else {
                    0.0
                };
                let exact = match kind {
                    0 => sum * (1.0 - y[i * stride + j].f64().powi(2)),
                    1 => (sum + bias[j].f64()).tanh(),
                    _ => y[i * stride + j].f64() + sum,
                };
                assert!(is_near(c[i * stride + j], exact), "{i}, {j}");
            }
        }
    }

    proptest! {
        #[test]
        fn products_are_what_the_definition_says(
            rows in 0_usize..40, inner in 1_usize..80, columns in 1_usize..160,
        ) {
            on_each(|_| {
                adds_products::<f32>(rows, inner, columns);
                adds_products::<f64>(rows, inner, columns);
            });
        }

        #[test]
        fn a_sum_of_products_is_finished_as_asked(
            rows in 1_usize..40, inner in 0_usize..30, columns in 1_usize..160, kind in 0_usize..3,
        ) {
            on_each(|_| {
                finishes::<f32>(rows, inner, columns, kind);
                finishes::<f64>(rows, inner, columns, kind);
            });
        }

        #[test]
        fn all_processors_that_fuse_give_the_same_bits(
            rows in 1_usize..40, inner in 1_usize..80, columns in 1_usize..160,
        ) {
            let (a, b) = (matrix::<f32>(rows, inner, inner, 0.1), matrix(inner, columns, columns, 0.7));
            let mut first: Option<Vec<f32>> = None;
            on_each(|set| {
                let packed = Packed::new(&b, inner, columns);
                let factors = [Factors { a: &a, stride: inner, b: &packed }];
                let mut c = vec![0.0; rows * padded(columns)];
                product(rows, &factors, &mut c, padded(columns), Finish::Set);
                if set != InstructionSet::Portable {
                    assert!(*first.get_or_insert_with(|| c.clone()) == c, "{set:?}");
                }
            });
        }
    }
}
