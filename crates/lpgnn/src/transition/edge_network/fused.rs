//! Pairs of neighbours whose values are not stored.
//!
//! Where one layer of `h` is applied per pair and its values are added up, all that the way back
//! to the targets needs of them are sums of slopes. The way back to the sources needs the slopes
//! themselves: they are kept where there is room in cache, and beyond they are cheaper to compute
//! again. With `t_(v,u) = σ(p_u + q_v)` and counts `at(v) · of(u)`:
//!
//! ```text
//! s_v = at(v) Σ_u of(u) t_(v,u)          g_v = Σ_u of(u) σ'(t_(v,u))          d_v = at(v) ∂𝓛/∂s_v
//! ∂𝓛/∂q_v = d_v ⊙ g_v                    ∂𝓛/∂p_u = of(u) Σ_v d_v ⊙ σ'(t_(v,u))
//! ```

use std::marker::PhantomData;
use std::ops::Range;

use super::kernels::{Counts, Rows, Table, ahead};
use super::tiles::pairs_of_each;
use crate::Scalar;
use crate::activation::{Activation, Unit, with_unit};
use crate::graph::Neighbours;
use crate::numeric::{Arithmetic, Eights, Kernel, Lanes, Numbers, dispatch, for_lanes};
use crate::transition::columns::{by_columns, lanes_mut};

/// `s_v` of `nodes`, where nothing goes back.
pub(super) fn values<S: Scalar>(
    neighbours: &Neighbours,
    nodes: Range<usize>,
    counts: Counts<'_, S>,
    activation: Activation,
    (p, q): (Table<'_, S>, Table<'_, S>),
    s: &mut [S],
) {
    struct Values<'a, S, U, const W: usize> {
        neighbours: &'a Neighbours,
        nodes: Range<usize>,
        column: usize,
        counts: Counts<'a, S>,
        p: Table<'a, S>,
        q: Table<'a, S>,
        s: &'a mut [S],
        unit: PhantomData<U>,
    }
    impl<S: Scalar, U: Unit, const W: usize> Kernel for Values<'_, S, U, W> {
        type Output = ();
        #[inline(always)]
        fn run<A: Arithmetic>(self) {
            let Self { neighbours, nodes, column, counts, p, q, s, .. } = self;
            let (sources, width, far) = (neighbours.nodes(), q.width, p.is_far());
            let plain = counts.are_one();
            let mut row = column;
            for (v, pairs) in pairs_of_each(neighbours, nodes) {
                let own = A::Eights::<S, W>::load(q.lanes(v, column));
                let mut sum = A::Eights::<S, W>::splat(S::ZERO);
                let degree = pairs.len();
                for (pair, &u) in pairs.clone().zip(&sources[pairs]) {
                    if far {
                        p.call_for::<A, W>(ahead(sources, pair), column);
                    }
                    let other = A::Eights::<S, W>::load(p.lanes(u as usize, column));
                    let of = A::Eights::<S, W>::splat(counts.of(u as usize));
                    sum = of.mul_add(U::value(other.add(own)), sum);
                }
                if !plain {
                    sum = A::Eights::<S, W>::splat(counts.at(v, degree)).mul(sum);
                }
                sum.store(lanes_mut(s, row));
                row += width;
            }
        }
    }
    with_unit!(activation, U => by_columns!(q.width, |column, W| Values::<S, U, W> {
        neighbours,
        nodes: nodes.clone(),
        column,
        counts,
        p,
        q,
        s: &mut *s,
        unit: PhantomData,
    }));
}

/// `s_v` and `g_v` of `nodes`; and `kept`, unless it is empty, receives `of(u) σ'(t_(v,u))` of their
/// pairs.
#[allow(clippy::too_many_arguments, reason = "a kernel names its buffers one by one")]
pub(super) fn sums<S: Scalar>(
    neighbours: &Neighbours,
    nodes: Range<usize>,
    counts: Counts<'_, S>,
    activation: Activation,
    p: Table<'_, S>,
    q: Table<'_, S>,
    s: &mut [S],
    g: &mut [S],
    kept: &mut [S],
) {
    struct Sums<'a, S, U, const W: usize> {
        neighbours: &'a Neighbours,
        nodes: Range<usize>,
        column: usize,
        counts: Counts<'a, S>,
        p: Table<'a, S>,
        q: Table<'a, S>,
        s: &'a mut [S],
        g: &'a mut [S],
        kept: &'a mut [S],
        unit: PhantomData<U>,
    }
    impl<S: Scalar, U: Unit, const W: usize> Kernel for Sums<'_, S, U, W> {
        type Output = ();
        #[inline(always)]
        fn run<A: Arithmetic>(self) {
            let Self { neighbours, nodes, column, counts, p, q, s, g, kept, .. } = self;
            let (sources, width, far) = (neighbours.nodes(), q.width, p.is_far());
            let zero = A::Eights::<S, W>::splat(S::ZERO);
            let (mut row, mut kept_row) = (column, column);
            for (v, pairs) in pairs_of_each(neighbours, nodes) {
                let own = A::Eights::<S, W>::load(q.lanes(v, column));
                let (mut sum, mut slopes) = (zero, zero);
                let degree = pairs.len();
                for (pair, &u) in pairs.clone().zip(&sources[pairs]) {
                    if far {
                        p.call_for::<A, W>(ahead(sources, pair), column);
                    }
                    let other = A::Eights::<S, W>::load(p.lanes(u as usize, column));
                    let t = U::value(other.add(own));
                    let of = A::Eights::<S, W>::splat(counts.of(u as usize));
                    let slope = of.mul(U::slope(t));
                    sum = of.mul_add(t, sum);
                    slopes = slopes.add(slope);
                    if !kept.is_empty() {
                        slope.store(lanes_mut(kept, kept_row));
                        kept_row += width;
                    }
                }
                let at = A::Eights::<S, W>::splat(counts.at(v, degree));
                at.mul(sum).store(lanes_mut(s, row));
                slopes.store(lanes_mut(g, row));
                row += width;
            }
        }
    }
    with_unit!(activation, U => by_columns!(q.width, |column, W| Sums::<S, U, W> {
        neighbours,
        nodes: nodes.clone(),
        column,
        counts,
        p,
        q,
        s: &mut *s,
        g: &mut *g,
        kept: &mut *kept,
        unit: PhantomData,
    }));
}

/// `d_v ← at(v) d_v` and `g_v ← d_v ⊙ g_v` of `nodes`: `∂𝓛/∂s` and the slopes become what goes to
/// the sources and `∂𝓛/∂q`.
pub(super) fn to_targets<S: Scalar>(
    neighbours: &Neighbours,
    nodes: Range<usize>,
    counts: Counts<'_, S>,
    width: usize,
    d: &mut [S],
    g: &mut [S],
) {
    struct ToTargets<'a, S>(
        &'a Neighbours,
        Range<usize>,
        Counts<'a, S>,
        usize,
        &'a mut [S],
        &'a mut [S],
    );
    impl<S: Scalar> Kernel for ToTargets<'_, S> {
        type Output = ();
        #[inline(always)]
        fn run<A: Arithmetic>(self) {
            let Self(neighbours, nodes, counts, width, d, g) = self;
            let rows = d.chunks_exact_mut(width).zip(g.chunks_exact_mut(width));
            for (v, (d, g)) in nodes.zip(rows) {
                let at = A::Lanes::<S>::splat(counts.at(v, neighbours.degree(v)));
                for_lanes!((d, g), () => {
                    let each = at.mul(Lanes::load(d));
                    each.store(d);
                    each.mul(Lanes::load(g)).store(g);
                });
            }
        }
    }
    if width > 0 {
        dispatch(ToTargets(neighbours, nodes, counts, width, d, g));
    }
}

/// `∂𝓛/∂p_u` of `nodes`.
#[allow(clippy::too_many_arguments, reason = "a kernel names its buffers one by one")]
pub(super) fn to_sources<'d, S: Scalar, D: Rows<'d, S>>(
    neighbours: &Neighbours,
    nodes: Range<usize>,
    counts: Counts<'_, S>,
    activation: Activation,
    p: Table<'_, S>,
    q: Table<'_, S>,
    d: D,
    d_p: &mut [S],
) {
    struct ToSources<'a, S, U, D, const W: usize> {
        neighbours: &'a Neighbours,
        nodes: Range<usize>,
        column: usize,
        counts: Counts<'a, S>,
        p: Table<'a, S>,
        q: Table<'a, S>,
        d: D,
        d_p: &'a mut [S],
        unit: PhantomData<U>,
    }
    impl<'d, S: Scalar, U: Unit, D: Rows<'d, S>, const W: usize> Kernel for ToSources<'_, S, U, D, W> {
        type Output = ();
        #[inline(always)]
        fn run<A: Arithmetic>(self) {
            let Self { neighbours, nodes, column, counts, p, q, d, d_p, .. } = self;
            let (targets, far) = (neighbours.nodes(), q.is_far());
            let mut row = column;
            for (u, pairs) in pairs_of_each(neighbours, nodes) {
                let own = A::Eights::<S, W>::load(p.lanes(u, column));
                let mut sum = A::Eights::<S, W>::splat(S::ZERO);
                for (pair, &v) in pairs.clone().zip(&targets[pairs]) {
                    if far {
                        let ahead = ahead(targets, pair);
                        q.call_for::<A, W>(ahead, column);
                        d.call_for::<A, W>(ahead, column);
                    }
                    let other = A::Eights::<S, W>::load(q.lanes(v as usize, column));
                    let d = A::Eights::<S, W>::load(d.lanes(v as usize, column));
                    sum = d.mul_add(U::slope(U::value(own.add(other))), sum);
                }
                let of = A::Eights::<S, W>::splat(counts.of(u));
                of.mul(sum).store(lanes_mut(d_p, row));
                row += p.width;
            }
        }
    }
    with_unit!(activation, U => by_columns!(q.width, |column, W| ToSources::<S, U, D, W> {
        neighbours,
        nodes: nodes.clone(),
        column,
        counts,
        p,
        q,
        d,
        d_p: &mut *d_p,
        unit: PhantomData,
    }));
}

/// `∂𝓛/∂p_u` of `nodes`, whose neighbours are among them, from what was [kept](sums) of their pairs.
pub(super) fn kept_to_sources<S: Scalar>(
    neighbours: &Neighbours,
    nodes: Range<usize>,
    kept: &[S],
    d: Table<'_, S>,
    d_p: &mut [S],
) {
    struct KeptToSources<'a, S, const W: usize> {
        neighbours: &'a Neighbours,
        nodes: Range<usize>,
        column: usize,
        kept: Table<'a, S>,
        d: Table<'a, S>,
        d_p: &'a mut [S],
    }
    impl<S: Scalar, const W: usize> Kernel for KeptToSources<'_, S, W> {
        type Output = ();
        #[inline(always)]
        fn run<A: Arithmetic>(self) {
            let Self { neighbours, nodes, column, kept, d, d_p } = self;
            let (targets, twins) = (neighbours.nodes(), neighbours.twins());
            let mut row = column;
            for (_, pairs) in pairs_of_each(neighbours, nodes) {
                let mut sum = A::Eights::<S, W>::splat(S::ZERO);
                for (&twin, &v) in twins[pairs.clone()].iter().zip(&targets[pairs]) {
                    let slope = A::Eights::<S, W>::load(kept.lanes(twin as usize, column));
                    let d = A::Eights::<S, W>::load(d.lanes(v as usize, column));
                    sum = d.mul_add(slope, sum);
                }
                sum.store(lanes_mut(d_p, row));
                row += d.width;
            }
        }
    }
    let base = neighbours.range(nodes.start).start;
    let kept = Table { rows: kept, base, width: d.width, stride: d.width };
    by_columns!(d.width, |column, W| KeptToSources::<S, W> {
        neighbours,
        nodes: nodes.clone(),
        column,
        kept,
        d,
        d_p: &mut *d_p,
    });
}
