//! The loops over pairs of neighbours: gather, activate, aggregate, and the way back.
//!
//! Rows are padded. A block of nodes has its pairs in rows `starts[first]..starts[end]`, counted
//! from the first; `base` is the node whose row comes first in a table of nodes.

use std::marker::PhantomData;
use std::ops::Range;

use super::columns::{self, Columns, for_each_node};
use crate::Scalar;
use crate::activation::{Activation, Unit, with_unit};
use crate::graph::Neighbours;
use crate::numeric::{Arithmetic, Kernel, LANES, Lanes, dispatch};

/// Rows of nodes from `base` on.
#[derive(Clone, Copy)]
pub(super) struct Table<'a, S> {
    pub(super) rows: &'a [S],
    pub(super) base: usize,
    pub(super) width: usize,
}

impl<'a, S: Scalar> Table<'a, S> {
    /// `W` times eight columns of a row, from `column` on.
    #[inline(always)]
    pub(super) fn lanes<const W: usize>(&self, node: usize, column: usize) -> &'a [[S; LANES]; W] {
        columns::lanes(self.rows, (node - self.base) * self.width + column)
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

/// The row that will be needed sixteen pairs after this one; any, near the end.
#[inline(always)]
pub(super) fn ahead(rows: &[u32], pair: usize) -> usize {
    rows.get(pair + 16).map_or(0, |&row| row as usize)
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
    struct Gather<'a, S, U> {
        neighbours: &'a Neighbours,
        nodes: Range<usize>,
        p: Table<'a, S>,
        q: Table<'a, S>,
        t: &'a mut [S],
        far: bool,
        unit: PhantomData<U>,
    }
    impl<S: Scalar, U: Unit> Kernel for Gather<'_, S, U> {
        type Output = ();
        #[inline(always)]
        fn run<A: Arithmetic>(self) {
            for_each_node::<A>(self.nodes.clone(), self.q.width, self);
        }
    }
    impl<S: Scalar, U: Unit> Columns for Gather<'_, S, U> {
        #[inline(always)]
        fn columns<A: Arithmetic, const W: usize>(&mut self, v: usize, column: usize) {
            let pairs = self.neighbours.range(v);
            let first = self.neighbours.range(self.nodes.start).start;
            let own = self.q.lanes::<W>(v, column);
            let t = self.t[(pairs.start - first) * self.q.width..].chunks_exact_mut(self.q.width);
            for ((pair, &u), t) in pairs.zip(self.neighbours.of(v)).zip(t) {
                if self.far && column == 0 {
                    self.p.call_for::<A>(ahead(self.neighbours.nodes(), pair));
                }
                let other = self.p.lanes::<W>(u as usize, column);
                let t = columns::lanes_mut::<S, W>(t, column);
                for i in 0..W {
                    let sum = A::Lanes::<S>::load(&other[i]).add(Lanes::load(&own[i]));
                    U::value(sum).store(&mut t[i]);
                }
            }
        }
    }
    if q.width > 0 {
        with_unit!(activation, U => {
            let (far, unit) = (p.is_far(), PhantomData::<U>);
            dispatch(Gather { neighbours, nodes, p, q, t, far, unit });
        });
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
    #[inline]
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
    struct Sum<'a, S> {
        neighbours: &'a Neighbours,
        nodes: Range<usize>,
        counts: Counts<'a, S>,
        width: usize,
        t: &'a [S],
        s: &'a mut [S],
    }
    impl<S: Scalar> Kernel for Sum<'_, S> {
        type Output = ();
        #[inline(always)]
        fn run<A: Arithmetic>(self) {
            for_each_node::<A>(self.nodes.clone(), self.width, self);
        }
    }
    impl<S: Scalar> Columns for Sum<'_, S> {
        #[inline(always)]
        fn columns<A: Arithmetic, const W: usize>(&mut self, v: usize, column: usize) {
            let sources = self.neighbours.of(v);
            let first = self.neighbours.range(self.nodes.start).start;
            let t = &self.t[(self.neighbours.range(v).start - first) * self.width..];
            let mut sum = [A::Lanes::<S>::splat(S::ZERO); W];
            for (&u, t) in sources.iter().zip(t.chunks_exact(self.width)) {
                let (of, t) = (self.counts.of(u as usize), columns::lanes::<S, W>(t, column));
                let of = A::Lanes::<S>::splat(of);
                for i in 0..W {
                    sum[i] = of.mul_add(Lanes::load(&t[i]), sum[i]);
                }
            }
            let at = A::Lanes::<S>::splat(self.counts.at(v, sources.len()));
            let row = (v - self.nodes.start) * self.width + column;
            for (s, sum) in columns::lanes_mut::<S, W>(self.s, row).iter_mut().zip(sum) {
                at.mul(sum).store(s);
            }
        }
    }
    if width > 0 {
        dispatch(Sum { neighbours, nodes, counts, width, t, s });
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
    struct Spread<'a, S, U> {
        neighbours: &'a Neighbours,
        nodes: Range<usize>,
        counts: Counts<'a, S>,
        width: usize,
        d_sum: &'a [S],
        t: &'a [S],
        d: &'a mut [S],
        unit: PhantomData<U>,
    }
    impl<S: Scalar, U: Unit> Kernel for Spread<'_, S, U> {
        type Output = ();
        #[inline(always)]
        fn run<A: Arithmetic>(self) {
            for_each_node::<A>(self.nodes.clone(), self.width, self);
        }
    }
    impl<S: Scalar, U: Unit> Columns for Spread<'_, S, U> {
        #[inline(always)]
        fn columns<A: Arithmetic, const W: usize>(&mut self, v: usize, column: usize) {
            let sources = self.neighbours.of(v);
            let first = self.neighbours.range(self.nodes.start).start;
            let from = (self.neighbours.range(v).start - first) * self.width;
            let t = self.t[from..].chunks_exact(self.width);
            let d = self.d[from..].chunks_exact_mut(self.width);
            let row = (v - self.nodes.start) * self.width + column;
            let d_sum = columns::lanes::<S, W>(self.d_sum, row);
            let at = self.counts.at(v, sources.len());
            for (&u, (t, d)) in sources.iter().zip(t.zip(d)) {
                let count = A::Lanes::<S>::splat(at * self.counts.of(u as usize));
                let t = columns::lanes::<S, W>(t, column);
                let d = columns::lanes_mut::<S, W>(d, column);
                for i in 0..W {
                    let slope = U::slope(A::Lanes::<S>::load(&t[i]));
                    count.mul(Lanes::load(&d_sum[i])).mul(slope).store(&mut d[i]);
                }
            }
        }
    }
    if width > 0 {
        with_unit!(activation, U => {
            let unit = PhantomData::<U>;
            dispatch(Spread { neighbours, nodes, counts, width, d_sum, t, d, unit });
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

/// `dq_v ← Σ_u d_(v,u)`
pub(super) fn sum_by_target<S: Scalar>(
    neighbours: &Neighbours,
    nodes: Range<usize>,
    width: usize,
    d: &[S],
    dq: &mut [S],
) {
    sum(neighbours, nodes, Counts { mean: false, roots: &[] }, width, d, dq);
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
    struct AddBySource<'a, S> {
        neighbours: &'a Neighbours,
        nodes: Range<usize>,
        base: usize,
        width: usize,
        d: &'a [S],
        dp: &'a mut [S],
    }
    impl<S: Scalar> Kernel for AddBySource<'_, S> {
        type Output = ();
        #[inline(always)]
        fn run<A: Arithmetic>(self) {
            for_each_node::<A>(self.nodes.clone(), self.width, self);
        }
    }
    impl<S: Scalar> Columns for AddBySource<'_, S> {
        #[inline(always)]
        fn columns<A: Arithmetic, const W: usize>(&mut self, v: usize, column: usize) {
            let first = self.neighbours.range(self.nodes.start).start;
            let d = &self.d[(self.neighbours.range(v).start - first) * self.width..];
            for (&u, d) in self.neighbours.of(v).iter().zip(d.chunks_exact(self.width)) {
                let row = (u as usize - self.base) * self.width + column;
                let dp = columns::lanes_mut::<S, W>(self.dp, row);
                for (dp, d) in dp.iter_mut().zip(columns::lanes::<S, W>(d, column)) {
                    A::Lanes::<S>::load(dp).add(Lanes::load(d)).store(dp);
                }
            }
        }
    }
    if width > 0 {
        dispatch(AddBySource { neighbours, nodes, base, width, d, dp });
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
    struct SumBySource<'a, S> {
        neighbours: &'a Neighbours,
        nodes: Range<usize>,
        d: Table<'a, S>,
        dp: &'a mut [S],
    }
    impl<S: Scalar> Kernel for SumBySource<'_, S> {
        type Output = ();
        #[inline(always)]
        fn run<A: Arithmetic>(self) {
            for_each_node::<A>(self.nodes.clone(), self.d.width, self);
        }
    }
    impl<S: Scalar> Columns for SumBySource<'_, S> {
        #[inline(always)]
        fn columns<A: Arithmetic, const W: usize>(&mut self, u: usize, column: usize) {
            let twins = self.neighbours.twins();
            let mut sum = [A::Lanes::<S>::splat(S::ZERO); W];
            for pair in self.neighbours.range(u) {
                if column == 0 {
                    self.d.call_for::<A>(ahead(twins, pair));
                }
                let d = self.d.lanes::<W>(twins[pair] as usize, column);
                for i in 0..W {
                    sum[i] = sum[i].add(Lanes::load(&d[i]));
                }
            }
            let row = (u - self.nodes.start) * self.d.width + column;
            for (dp, sum) in columns::lanes_mut::<S, W>(self.dp, row).iter_mut().zip(sum) {
                sum.store(dp);
            }
        }
    }
    if width > 0 {
        let d = Table { rows: d, base: 0, width };
        dispatch(SumBySource { neighbours, nodes, d, dp });
    }
}
