//! The loops over pairs of neighbours: gather, activate, aggregate, and the way back.
//!
//! Rows are padded. A block of nodes has its pairs in rows `starts[first]..starts[end]`, counted
//! from the first; `base` is the node whose row comes first in a table of nodes.

use std::marker::PhantomData;
use std::ops::Range;

use crate::Scalar;
use crate::activation::{Activation, Unit, with_unit};
use crate::graph::Neighbours;
use crate::numeric::{Arithmetic, Kernel, LANES, Lanes, dispatch, for_lanes};

/// Rows of nodes from `base` on.
#[derive(Clone, Copy)]
pub(super) struct Table<'a, S> {
    pub(super) rows: &'a [S],
    pub(super) base: usize,
    pub(super) width: usize,
}

impl<'a, S: Scalar> Table<'a, S> {
    #[inline(always)]
    fn row(&self, node: usize) -> &'a [S] {
        &self.rows[(node - self.base) * self.width..][..self.width]
    }

    /// `W` times eight columns of a row, from `column` on.
    #[inline(always)]
    pub(super) fn lanes<const W: usize>(&self, node: usize, column: usize) -> &'a [[S; LANES]; W] {
        let (lanes, _) = self.rows[(node - self.base) * self.width + column..].as_chunks();
        lanes.first_chunk().expect("rows are padded")
    }

    /// Whether its rows are beyond the near caches.
    #[inline(always)]
    pub(super) fn is_far(&self) -> bool {
        self.rows.len() > 1 << 16
    }

    /// Lets the processor fetch a row that will soon be read; one that is not there does no harm.
    #[inline(always)]
    pub(super) fn call_for<A: Arithmetic>(&self, node: usize) {
        let start = node.wrapping_sub(self.base).wrapping_mul(self.width);
        for line in (0..self.width).step_by(2 * LANES) {
            A::prefetch(self.rows, start.wrapping_add(line));
        }
    }
}

/// The row that will be needed eight pairs after this one; any, near the end.
#[inline(always)]
pub(super) fn ahead(rows: &[u32], pair: usize) -> usize {
    rows.get(pair + 8).map_or(0, |&row| row as usize)
}

/// `t_(v,u) ← σ(p_u + q_v)`, or the sum itself while arc labels are still to be added.
pub(super) fn gather<S: Scalar>(
    neighbours: &Neighbours,
    nodes: Range<usize>,
    p: Table<'_, S>,
    q: Table<'_, S>,
    activation: Activation,
    t: &mut [S],
) {
    struct Gather<'a, S, U>(
        &'a Neighbours,
        Range<usize>,
        Table<'a, S>,
        Table<'a, S>,
        &'a mut [S],
        PhantomData<U>,
    );
    impl<S: Scalar, U: Unit> Kernel for Gather<'_, S, U> {
        type Output = ();
        #[inline(always)]
        fn run<A: Arithmetic>(self) {
            let Self(neighbours, nodes, p, q, t, _) = self;
            let (far, mut t) = (p.is_far(), t.chunks_exact_mut(q.width));
            for v in nodes {
                let q = q.row(v);
                for (pair, t) in neighbours.range(v).zip(&mut t) {
                    if far {
                        p.call_for::<A>(ahead(neighbours.nodes(), pair));
                    }
                    let p = p.row(neighbours.nodes()[pair] as usize);
                    for_lanes!((t), (p, q) => {
                        let sum = A::Lanes::<S>::load(p).add(Lanes::load(q));
                        U::value(sum).store(t);
                    });
                }
            }
        }
    }
    if q.width > 0 {
        with_unit!(activation, U => dispatch(Gather::<S, U>(neighbours, nodes, p, q, t, PhantomData)));
    }
}

/// How much the value of a pair counts: `at(v) · of[u]`, where an empty `of` is all ones.
#[derive(Clone, Copy)]
pub(super) struct Counts<'a, S> {
    pub(super) mean: bool,
    pub(super) roots: &'a [S],
}

impl<S: Scalar> Counts<'_, S> {
    #[inline(always)]
    pub(super) fn at(&self, v: usize, degree: usize) -> S {
        if self.mean { S::ONE / S::of(degree.max(1) as f64) } else { self.of(v) }
    }

    #[inline(always)]
    pub(super) fn of(&self, u: usize) -> S {
        if self.roots.is_empty() { S::ONE } else { self.roots[u] }
    }

    /// `Σ_u at(v) · of[u]`: how often a bias behind the sum counts.
    pub(super) fn total(&self, neighbours: &Neighbours, v: usize) -> S {
        let degree = neighbours.degree(v);
        let sum = if self.roots.is_empty() {
            S::of(degree as f64)
        } else {
            neighbours.of(v).iter().map(|&u| self.of(u as usize)).sum()
        };
        self.at(v, degree) * sum
    }
}

/// `s_v ← Σ_u count · t_(v,u)`
pub(super) fn sum<S: Scalar>(
    neighbours: &Neighbours,
    nodes: Range<usize>,
    counts: Counts<'_, S>,
    width: usize,
    t: &[S],
    s: &mut [S],
) {
    struct Sum<'a, S>(&'a Neighbours, Range<usize>, Counts<'a, S>, usize, &'a [S], &'a mut [S]);
    impl<S: Scalar> Kernel for Sum<'_, S> {
        type Output = ();
        #[inline(always)]
        fn run<A: Arithmetic>(self) {
            let Self(neighbours, nodes, counts, width, t, s) = self;
            let mut t = t.chunks_exact(width);
            for (v, s) in nodes.zip(s.chunks_exact_mut(width)) {
                s.fill(S::ZERO);
                for (&u, t) in neighbours.of(v).iter().zip(&mut t) {
                    let of = counts.of(u as usize);
                    let of = A::Lanes::<S>::splat(of);
                    for_lanes!((s), (t) => of.mul_add(Lanes::load(t), Lanes::load(s)).store(s));
                }
                let at = counts.at(v, neighbours.degree(v));
                let at = A::Lanes::<S>::splat(at);
                for_lanes!((s), () => at.mul(Lanes::load(s)).store(s));
            }
        }
    }
    if width > 0 {
        dispatch(Sum(neighbours, nodes, counts, width, t, s));
    }
}

/// `d_(v,u) ← count · d_v ⊙ σ'(t_(v,u))`
pub(super) fn spread<S: Scalar>(
    neighbours: &Neighbours,
    nodes: Range<usize>,
    counts: Counts<'_, S>,
    activation: Activation,
    width: usize,
    d_sum: &[S],
    t: &[S],
    d: &mut [S],
) {
    struct Spread<'a, S, U>(
        &'a Neighbours,
        Range<usize>,
        Counts<'a, S>,
        usize,
        &'a [S],
        &'a [S],
        &'a mut [S],
        PhantomData<U>,
    );
    impl<S: Scalar, U: Unit> Kernel for Spread<'_, S, U> {
        type Output = ();
        #[inline(always)]
        fn run<A: Arithmetic>(self) {
            let Self(neighbours, nodes, counts, width, d_sum, t, d, _) = self;
            let mut pairs = t.chunks_exact(width).zip(d.chunks_exact_mut(width));
            for (v, d_sum) in nodes.zip(d_sum.chunks_exact(width)) {
                let at = counts.at(v, neighbours.degree(v));
                for (&u, (t, d)) in neighbours.of(v).iter().zip(&mut pairs) {
                    let count = at * counts.of(u as usize);
                    let count = A::Lanes::<S>::splat(count);
                    for_lanes!((d), (t, d_sum) => {
                        let slope = U::slope(A::Lanes::<S>::load(t));
                        count.mul(Lanes::load(d_sum)).mul(slope).store(d);
                    });
                }
            }
        }
    }
    if width > 0 {
        with_unit!(activation, U => {
            dispatch(Spread::<S, U>(neighbours, nodes, counts, width, d_sum, t, d, PhantomData));
        });
    }
}

/// `s_v ← max_u t_(v,u)`, component by component; 0 without neighbours.
pub(super) fn maximum<S: Scalar>(
    neighbours: &Neighbours,
    nodes: Range<usize>,
    width: usize,
    t: &[S],
    s: &mut [S],
) {
    if width == 0 {
        return;
    }
    let mut t = t.chunks_exact(width);
    for (v, s) in nodes.zip(s.chunks_exact_mut(width)) {
        s.fill(S::ZERO);
        for (i, t) in (0..neighbours.degree(v)).zip(&mut t) {
            for (s, &t) in s.iter_mut().zip(t) {
                // Once there is a NaN it stays: nothing is larger.
                if i == 0 || t > *s || t.f64().is_nan() {
                    *s = t;
                }
            }
        }
    }
}

/// `d_(v,u) ← d_v ⊙ σ'(t_(v,u))` for the first neighbour at which the maximum is attained, else 0.
pub(super) fn spread_to_maximum<S: Scalar>(
    neighbours: &Neighbours,
    nodes: Range<usize>,
    activation: Activation,
    width: usize,
    (s, d_sum): (&[S], &[S]),
    t: &[S],
    d: &mut [S],
) {
    if width == 0 {
        return;
    }
    d.fill(S::ZERO);
    let rows = s.chunks_exact(width).zip(d_sum.chunks_exact(width));
    let first = neighbours.range(nodes.start).start;
    for (v, (s, d_sum)) in nodes.zip(rows) {
        let pairs = neighbours.range(v);
        for i in 0..width {
            let attained =
                pairs.clone().map(|pair| (pair - first) * width + i).find(|&at| t[at] >= s[i]);
            if let Some(at) = attained {
                d[at] = d_sum[i];
            }
        }
    }
    crate::activation::differentiate(activation, t, d);
}

/// `d_(v,u) ← d_(v,u) ⊙ σ'(t_(v,u))` and `dq_v ← Σ_u d_(v,u)`
pub(super) fn sum_by_target<S: Scalar>(
    neighbours: &Neighbours,
    nodes: Range<usize>,
    activation: Activation,
    width: usize,
    t: &[S],
    d: &mut [S],
    dq: &mut [S],
) {
    struct SumByTarget<'a, S, U>(
        &'a Neighbours,
        Range<usize>,
        usize,
        &'a [S],
        &'a mut [S],
        &'a mut [S],
        PhantomData<U>,
    );
    impl<S: Scalar, U: Unit> Kernel for SumByTarget<'_, S, U> {
        type Output = ();
        #[inline(always)]
        fn run<A: Arithmetic>(self) {
            let Self(neighbours, nodes, width, t, d, dq, _) = self;
            let mut pairs = t.chunks_exact(width).zip(d.chunks_exact_mut(width));
            for (v, dq) in nodes.zip(dq.chunks_exact_mut(width)) {
                dq.fill(S::ZERO);
                for (t, d) in pairs.by_ref().take(neighbours.degree(v)) {
                    for_lanes!((dq, d), (t) => {
                        let each = U::slope(A::Lanes::<S>::load(t)).mul(Lanes::load(d));
                        each.store(d);
                        each.add(Lanes::load(dq)).store(dq);
                    });
                }
            }
        }
    }
    if width > 0 {
        with_unit!(activation, U => {
            dispatch(SumByTarget::<S, U>(neighbours, nodes, width, t, d, dq, PhantomData));
        });
    }
}

/// `dp_u ← dp_u + d_(v,u)`, where all sources lie in the table that starts at `base`.
pub(super) fn add_by_source<S: Scalar>(
    neighbours: &Neighbours,
    nodes: Range<usize>,
    base: usize,
    width: usize,
    d: &[S],
    dp: &mut [S],
) {
    struct AddBySource<'a, S>(&'a [u32], usize, usize, &'a [S], &'a mut [S]);
    impl<S: Scalar> Kernel for AddBySource<'_, S> {
        type Output = ();
        #[inline(always)]
        fn run<A: Arithmetic>(self) {
            let Self(sources, base, width, d, dp) = self;
            for (&u, d) in sources.iter().zip(d.chunks_exact(width)) {
                let dp = &mut dp[(u as usize - base) * width..][..width];
                for_lanes!((dp), (d) => A::Lanes::<S>::load(dp).add(Lanes::load(d)).store(dp));
            }
        }
    }
    if width > 0 {
        let pairs =
            neighbours.starts()[nodes.start] as usize..neighbours.starts()[nodes.end] as usize;
        dispatch(AddBySource(&neighbours.nodes()[pairs], base, width, d, dp));
    }
}

/// `dp_u ← Σ_v d_(v,u)` over the nodes of which `u` is a neighbour, `d` being over all pairs.
pub(super) fn sum_by_source<S: Scalar>(
    neighbours: &Neighbours,
    nodes: Range<usize>,
    width: usize,
    d: &[S],
    dp: &mut [S],
) {
    struct SumBySource<'a, S>(&'a Neighbours, Range<usize>, usize, &'a [S], &'a mut [S]);
    impl<S: Scalar> Kernel for SumBySource<'_, S> {
        type Output = ();
        #[inline(always)]
        fn run<A: Arithmetic>(self) {
            let Self(neighbours, nodes, width, d, dp) = self;
            let table = Table { rows: d, base: 0, width };
            for (u, dp) in nodes.zip(dp.chunks_exact_mut(width)) {
                dp.fill(S::ZERO);
                for pair in neighbours.range(u) {
                    let twin = neighbours.twins()[pair];
                    table.call_for::<A>(ahead(neighbours.twins(), pair));
                    let d = &d[twin as usize * width..][..width];
                    for_lanes!((dp), (d) => A::Lanes::<S>::load(dp).add(Lanes::load(d)).store(dp));
                }
            }
        }
    }
    if width > 0 {
        dispatch(SumBySource(neighbours, nodes, width, d, dp));
    }
}
