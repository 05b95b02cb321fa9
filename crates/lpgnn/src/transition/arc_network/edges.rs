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
use crate::numeric::{Arithmetic, LANES, Lanes};

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

    /// Lets the processor fetch columns that will soon be read; a row that is not there does no harm.
    #[inline(always)]
    pub(super) fn call_for<A: Arithmetic, const W: usize>(&self, node: usize, column: usize) {
        let start = node.wrapping_sub(self.base).wrapping_mul(self.width).wrapping_add(column);
        for line in (0..W).step_by(2) {
            A::prefetch(self.rows, start.wrapping_add(line * LANES));
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
        base: usize,
        p: Table<'a, S>,
        q: Table<'a, S>,
        t: &'a mut [S],
        far: bool,
        unit: PhantomData<U>,
    }
    impl<S: Scalar, U: Unit> Columns for Gather<'_, S, U> {
        #[inline(always)]
        fn columns<A: Arithmetic, const W: usize>(&mut self, v: usize, column: usize) {
            let own = self.q.lanes::<W>(v, column);
            for (pair, &u) in self.neighbours.range(v).zip(self.neighbours.of(v)) {
                if self.far {
                    self.p.call_for::<A, W>(ahead(self.neighbours.nodes(), pair), column);
                }
                let other = self.p.lanes::<W>(u as usize, column);
                let values = U::values::<S, _, W>(std::array::from_fn(|i| {
                    A::Lanes::<S>::load(&other[i]).add(Lanes::load(&own[i]))
                }));
                let row = (pair - self.base) * self.q.width + column;
                let t = columns::lanes_mut::<S, W>(self.t, row);
                values.iter().zip(t).for_each(|(value, t)| value.store(t));
            }
        }
    }
    if q.width > 0 {
        with_unit!(activation, U => {
            let (far, unit) = (p.is_far(), PhantomData::<U>);
            let base = neighbours.range(nodes.start).start;
            let mut gather = Gather { neighbours, base, p, q, t, far, unit };
            for_each_node(&nodes, q.width, &mut gather);
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
        first: usize,
        base: usize,
        counts: Counts<'a, S>,
        width: usize,
        t: &'a [S],
        s: &'a mut [S],
    }
    impl<S: Scalar> Columns for Sum<'_, S> {
        #[inline(always)]
        fn columns<A: Arithmetic, const W: usize>(&mut self, v: usize, column: usize) {
            let sources = self.neighbours.of(v);
            let mut sum = [A::Lanes::<S>::splat(S::ZERO); W];
            let mut row = (self.neighbours.range(v).start - self.base) * self.width + column;
            for &u in sources {
                let t = columns::lanes::<S, W>(self.t, row);
                let of = A::Lanes::<S>::splat(self.counts.of(u as usize));
                for i in 0..W {
                    sum[i] = of.mul_add(Lanes::load(&t[i]), sum[i]);
                }
                row += self.width;
            }
            let at = A::Lanes::<S>::splat(self.counts.at(v, sources.len()));
            let row = (v - self.first) * self.width + column;
            for (s, sum) in columns::lanes_mut::<S, W>(self.s, row).iter_mut().zip(sum) {
                at.mul(sum).store(s);
            }
        }
    }
    if width > 0 {
        let (first, base) = (nodes.start, neighbours.range(nodes.start).start);
        let mut sum = Sum { neighbours, first, base, counts, width, t, s };
        for_each_node(&nodes, width, &mut sum);
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
        first: usize,
        base: usize,
        counts: Counts<'a, S>,
        width: usize,
        d_sum: &'a [S],
        t: &'a [S],
        d: &'a mut [S],
        unit: PhantomData<U>,
    }
    impl<S: Scalar, U: Unit> Columns for Spread<'_, S, U> {
        #[inline(always)]
        fn columns<A: Arithmetic, const W: usize>(&mut self, v: usize, column: usize) {
            let sources = self.neighbours.of(v);
            let row = (v - self.first) * self.width + column;
            let d_sum = columns::lanes::<S, W>(self.d_sum, row);
            let at = self.counts.at(v, sources.len());
            let mut row = (self.neighbours.range(v).start - self.base) * self.width + column;
            for &u in sources {
                let count = A::Lanes::<S>::splat(at * self.counts.of(u as usize));
                let t = columns::lanes::<S, W>(self.t, row);
                let d = columns::lanes_mut::<S, W>(self.d, row);
                for i in 0..W {
                    let slope = U::slope(A::Lanes::<S>::load(&t[i]));
                    count.mul(Lanes::load(&d_sum[i])).mul(slope).store(&mut d[i]);
                }
                row += self.width;
            }
        }
    }
    if width > 0 {
        with_unit!(activation, U => {
            let (first, base) = (nodes.start, neighbours.range(nodes.start).start);
            let unit = PhantomData::<U>;
            let mut spread = Spread { neighbours, first, base, counts, width, d_sum, t, d, unit };
            for_each_node(&nodes, width, &mut spread);
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
        first: usize,
        base: usize,
        width: usize,
        d: &'a [S],
        dp: &'a mut [S],
    }
    impl<S: Scalar> Columns for AddBySource<'_, S> {
        #[inline(always)]
        fn columns<A: Arithmetic, const W: usize>(&mut self, v: usize, column: usize) {
            for (pair, &u) in self.neighbours.range(v).zip(self.neighbours.of(v)) {
                let d = columns::lanes::<S, W>(self.d, (pair - self.base) * self.width + column);
                let row = (u as usize - self.first) * self.width + column;
                let dp = columns::lanes_mut::<S, W>(self.dp, row);
                for (dp, d) in dp.iter_mut().zip(d) {
                    A::Lanes::<S>::load(dp).add(Lanes::load(d)).store(dp);
                }
            }
        }
    }
    if width > 0 {
        let (first, base) = (base, neighbours.range(nodes.start).start);
        for_each_node(&nodes, width, &mut AddBySource { neighbours, first, base, width, d, dp });
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
        first: usize,
        d: Table<'a, S>,
        dp: &'a mut [S],
    }
    impl<S: Scalar> Columns for SumBySource<'_, S> {
        #[inline(always)]
        fn columns<A: Arithmetic, const W: usize>(&mut self, u: usize, column: usize) {
            let twins = self.neighbours.twins();
            let mut sum = [A::Lanes::<S>::splat(S::ZERO); W];
            for pair in self.neighbours.range(u) {
                self.d.call_for::<A, W>(ahead(twins, pair), column);
                let d = self.d.lanes::<W>(twins[pair] as usize, column);
                for i in 0..W {
                    sum[i] = sum[i].add(Lanes::load(&d[i]));
                }
            }
            let row = (u - self.first) * self.d.width + column;
            for (dp, sum) in columns::lanes_mut::<S, W>(self.dp, row).iter_mut().zip(sum) {
                sum.store(dp);
            }
        }
    }
    if width > 0 {
        let d = Table { rows: d, base: 0, width };
        for_each_node(&nodes, width, &mut SumBySource { neighbours, first: nodes.start, d, dp });
    }
}
