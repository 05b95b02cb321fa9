//! The loops over pairs of neighbours: gather, activate, aggregate, and the way back.
//!
//! Rows are padded. A block of nodes has its pairs in rows `starts[first]..starts[end]`, counted
//! from the first; `base` is the node whose row comes first in a table of nodes.

use std::marker::PhantomData;
use std::ops::Range;

use super::tiles::{pairs, pairs_of_each};
use crate::Scalar;
use crate::activation::{Activation, Unit, with_unit};
use crate::graph::{NO_EDGE, Neighbours};
use crate::numeric::{Arithmetic, Eights, Kernel, LANES, Numbers};
use crate::transition::columns::{by_columns, lanes, lanes_mut};

/// Rows of nodes from `base` on.
#[derive(Clone, Copy)]
pub(super) struct Table<'a, S> {
    pub(super) rows: &'a [S],
    pub(super) base: usize,
    pub(super) width: usize,
    /// How far apart rows are: more than they are wide where others lie between them.
    pub(super) stride: usize,
}

impl<'a, S: Scalar> Table<'a, S> {
    /// `W` times eight columns of a row, from `column` on.
    #[inline(always)]
    pub(super) fn lanes<const W: usize>(&self, node: usize, column: usize) -> &'a [[S; LANES]; W] {
        lanes(self.rows, (node - self.base) * self.stride + column)
    }

    /// Whether its rows are beyond the near caches.
    #[inline(always)]
    pub(super) fn is_far(&self) -> bool {
        self.rows.len() > 1 << 16
    }

    /// Lets the processor fetch columns that will soon be read; a row that is not there does no harm.
    #[inline(always)]
    pub(super) fn call_for<A: Arithmetic, const W: usize>(&self, node: usize, column: usize) {
        let start = node.wrapping_sub(self.base).wrapping_mul(self.stride).wrapping_add(column);
        for line in (0..W).step_by(2) {
            A::prefetch(self.rows, start.wrapping_add(line * LANES));
        }
    }
}

/// Rows that are found by the numbers of nodes.
pub(super) trait Rows<'a, S: Scalar>: Copy {
    /// `W` times eight columns of a row, from `column` on.
    fn lanes<const W: usize>(&self, node: usize, column: usize) -> &'a [[S; LANES]; W];

    /// Lets the processor fetch columns that will soon be read.
    fn call_for<A: Arithmetic, const W: usize>(&self, node: usize, column: usize);
}

impl<'a, S: Scalar> Rows<'a, S> for Table<'a, S> {
    #[inline(always)]
    fn lanes<const W: usize>(&self, node: usize, column: usize) -> &'a [[S; LANES]; W] {
        self.lanes(node, column)
    }

    #[inline(always)]
    fn call_for<A: Arithmetic, const W: usize>(&self, node: usize, column: usize) {
        self.call_for::<A, W>(node, column);
    }
}

/// Rows of all nodes in which those of ghosts come first, though their numbers follow those of own nodes.
#[derive(Clone, Copy)]
pub(super) struct GhostsFirst<'a, S> {
    table: Table<'a, S>,
    own: usize,
    ghosts: usize,
}

impl<'a, S: Scalar> GhostsFirst<'a, S> {
    /// With so many own nodes; the other rows are those of ghosts.
    pub(super) fn new(table: Table<'a, S>, own: usize) -> Self {
        Self { table, own, ghosts: table.rows.len() / table.width.max(1) - own }
    }

    /// The place of a row. There is no branch, which could not be predicted.
    #[inline(always)]
    fn place(&self, node: usize) -> usize {
        let shift = if node < self.own { self.ghosts } else { self.own.wrapping_neg() };
        node.wrapping_add(shift)
    }
}

impl<'a, S: Scalar> Rows<'a, S> for GhostsFirst<'a, S> {
    #[inline(always)]
    fn lanes<const W: usize>(&self, node: usize, column: usize) -> &'a [[S; LANES]; W] {
        self.table.lanes(self.place(node), column)
    }

    #[inline(always)]
    fn call_for<A: Arithmetic, const W: usize>(&self, node: usize, column: usize) {
        self.table.call_for::<A, W>(self.place(node), column);
    }
}

/// The row that will be needed sixteen pairs after this one; any, near the end.
#[inline(always)]
pub(super) fn ahead(rows: &[u32], pair: usize) -> usize {
    rows.get(pair + 16).map_or(0, |&row| row as usize)
}

/// What the one-hot features of the edges of pairs in one direction add to their sums: rows of `E`, or
/// of `F`.
#[derive(Clone, Copy)]
pub(super) struct EdgeRows<'a, S> {
    /// The edge of every pair, or [`NO_EDGE`].
    pub(super) edges: &'a [u32],
    /// The feature of every edge.
    pub(super) columns: &'a [u32],
    /// The row for every feature, and behind them one of zeros.
    pub(super) rows: &'a [S],
}

impl<'a, S: Scalar> EdgeRows<'a, S> {
    /// `W` times eight columns of the row of a pair, from `column` on.
    #[inline(always)]
    fn lanes<const W: usize>(
        &self,
        pair: usize,
        width: usize,
        column: usize,
    ) -> &'a [[S; LANES]; W] {
        let start = match self.edges[pair] {
            NO_EDGE => self.rows.len() - width,
            edge => self.columns[edge as usize] as usize * width,
        };
        lanes(self.rows, start + column)
    }
}

/// `t_(v,u) ← σ(p_u + q_v + …)` with the rows of its edges in some directions, or the sum itself while
/// edge features are still to be added.
pub(super) fn gather<S: Scalar, const N: usize>(
    neighbours: &Neighbours,
    nodes: Range<usize>,
    p: Table<'_, S>,
    q: Table<'_, S>,
    directions: [EdgeRows<'_, S>; N],
    activation: Activation,
    t: &mut [S],
) {
    struct Gather<'a, S, U, const N: usize, const W: usize> {
        neighbours: &'a Neighbours,
        nodes: Range<usize>,
        column: usize,
        p: Table<'a, S>,
        q: Table<'a, S>,
        directions: [EdgeRows<'a, S>; N],
        t: &'a mut [S],
        unit: PhantomData<U>,
    }
    impl<S: Scalar, U: Unit, const N: usize, const W: usize> Kernel for Gather<'_, S, U, N, W> {
        type Output = ();
        #[inline(always)]
        fn run<A: Arithmetic>(self) {
            let Self { neighbours, nodes, column, p, q, directions, t, .. } = self;
            let (sources, far) = (neighbours.nodes(), p.is_far());
            let mut row = column;
            for (v, pairs) in pairs_of_each(neighbours, nodes) {
                let own = A::Eights::<S, W>::load(q.lanes(v, column));
                for (pair, &u) in pairs.clone().zip(&sources[pairs]) {
                    if far {
                        p.call_for::<A, W>(ahead(sources, pair), column);
                    }
                    let mut sums = own.add(Eights::load(p.lanes(u as usize, column)));
                    for i in 0..N {
                        let rows = directions[i].lanes(pair, q.width, column);
                        sums = sums.add(Eights::load(rows));
                    }
                    U::value(sums).store(lanes_mut(t, row));
                    row += q.width;
                }
            }
        }
    }
    with_unit!(activation, U => by_columns!(q.width, |column, W| Gather::<S, U, N, W> {
        neighbours,
        nodes: nodes.clone(),
        column,
        p,
        q,
        directions,
        t: &mut *t,
        unit: PhantomData,
    }));
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

    /// Whether every pair counts once, in a sum.
    #[inline(always)]
    pub(super) fn are_one(&self) -> bool {
        !self.mean && self.roots.is_empty()
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
    struct Sum<'a, S, const W: usize> {
        neighbours: &'a Neighbours,
        nodes: Range<usize>,
        column: usize,
        counts: Counts<'a, S>,
        width: usize,
        t: &'a [S],
        s: &'a mut [S],
    }
    impl<S: Scalar, const W: usize> Kernel for Sum<'_, S, W> {
        type Output = ();
        #[inline(always)]
        fn run<A: Arithmetic>(self) {
            let Self { neighbours, nodes, column, counts, width, t, s } = self;
            let sources = neighbours.nodes();
            let (mut row, mut t_row) = (column, column);
            for (v, pairs) in pairs_of_each(neighbours, nodes) {
                let mut sum = A::Eights::<S, W>::splat(S::ZERO);
                let degree = pairs.len();
                for &u in &sources[pairs] {
                    let of = A::Eights::<S, W>::splat(counts.of(u as usize));
                    sum = of.mul_add(Eights::load(lanes(t, t_row)), sum);
                    t_row += width;
                }
                let at = A::Eights::<S, W>::splat(counts.at(v, degree));
                at.mul(sum).store(lanes_mut(s, row));
                row += width;
            }
        }
    }
    by_columns!(width, |column, W| Sum::<S, W> {
        neighbours,
        nodes: nodes.clone(),
        column,
        counts,
        width,
        t,
        s: &mut *s,
    });
}

/// `d_(v,u) ← count · d_v ⊙ σ'(t_(v,u))`
#[allow(clippy::too_many_arguments, reason = "a kernel names its buffers one by one")]
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
    struct Spread<'a, S, U, const W: usize> {
        neighbours: &'a Neighbours,
        nodes: Range<usize>,
        column: usize,
        counts: Counts<'a, S>,
        width: usize,
        d_sum: &'a [S],
        t: &'a [S],
        d: &'a mut [S],
        unit: PhantomData<U>,
    }
    impl<S: Scalar, U: Unit, const W: usize> Kernel for Spread<'_, S, U, W> {
        type Output = ();
        #[inline(always)]
        fn run<A: Arithmetic>(self) {
            let Self { neighbours, nodes, column, counts, width, d_sum, t, d, .. } = self;
            let sources = neighbours.nodes();
            let (mut row, mut t_row) = (column, column);
            for (v, pairs) in pairs_of_each(neighbours, nodes) {
                let d_sum = A::Eights::<S, W>::load(lanes(d_sum, row));
                let at = counts.at(v, pairs.len());
                for &u in &sources[pairs] {
                    let count = A::Eights::<S, W>::splat(at * counts.of(u as usize));
                    let slope = U::slope(A::Eights::<S, W>::load(lanes(t, t_row)));
                    count.mul(d_sum).mul(slope).store(lanes_mut(d, t_row));
                    t_row += width;
                }
                row += width;
            }
        }
    }
    with_unit!(activation, U => by_columns!(width, |column, W| Spread::<S, U, W> {
        neighbours,
        nodes: nodes.clone(),
        column,
        counts,
        width,
        d_sum,
        t,
        d: &mut *d,
        unit: PhantomData,
    }));
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
    struct AddBySource<'a, S, const W: usize> {
        sources: &'a [u32],
        column: usize,
        base: usize,
        width: usize,
        d: &'a [S],
        dp: &'a mut [S],
    }
    impl<S: Scalar, const W: usize> Kernel for AddBySource<'_, S, W> {
        type Output = ();
        #[inline(always)]
        fn run<A: Arithmetic>(self) {
            let Self { sources, column, base, width, d, dp } = self;
            let mut row = column;
            for &u in sources {
                let d = A::Eights::<S, W>::load(lanes(d, row));
                let dp = lanes_mut(dp, (u as usize - base) * width + column);
                d.add(Eights::load(dp)).store(dp);
                row += width;
            }
        }
    }
    let sources = &neighbours.nodes()[pairs(neighbours, &nodes)];
    by_columns!(width, |column, W| AddBySource::<S, W> {
        sources,
        column,
        base,
        width,
        d,
        dp: &mut *dp,
    });
}

/// `dp_u ← Σ_v d_(v,u)` over the nodes of which `u` is a neighbour, `d` being over all pairs.
pub(super) fn sum_by_source<S: Scalar>(
    neighbours: &Neighbours,
    nodes: Range<usize>,
    width: usize,
    d: &[S],
    dp: &mut [S],
) {
    struct SumBySource<'a, S, const W: usize> {
        neighbours: &'a Neighbours,
        nodes: Range<usize>,
        column: usize,
        d: Table<'a, S>,
        dp: &'a mut [S],
    }
    impl<S: Scalar, const W: usize> Kernel for SumBySource<'_, S, W> {
        type Output = ();
        #[inline(always)]
        fn run<A: Arithmetic>(self) {
            let Self { neighbours, nodes, column, d, dp } = self;
            let twins = neighbours.twins();
            let mut row = column;
            for (_, pairs) in pairs_of_each(neighbours, nodes) {
                let mut sum = A::Eights::<S, W>::splat(S::ZERO);
                for (pair, &twin) in pairs.clone().zip(&twins[pairs]) {
                    d.call_for::<A, W>(ahead(twins, pair), column);
                    sum = sum.add(Eights::load(d.lanes(twin as usize, column)));
                }
                sum.store(lanes_mut(dp, row));
                row += d.width;
            }
        }
    }
    let d = Table { rows: d, base: 0, width, stride: width };
    by_columns!(width, |column, W| SumBySource::<S, W> {
        neighbours,
        nodes: nodes.clone(),
        column,
        d,
        dp: &mut *dp,
    });
}
