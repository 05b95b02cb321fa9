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

use super::columns::{Columns, for_each_node, lanes_mut};
use super::edges::{Counts, Table, ahead};
use crate::Scalar;
use crate::activation::{Activation, Unit, with_unit};
use crate::graph::Neighbours;
use crate::numeric::{Arithmetic, Kernel, Lanes, dispatch, for_lanes};

/// `s_v` and `g_v` of `nodes`; and `kept`, unless it is empty, receives `of(u) σ'(t_(v,u))` of their
/// pairs.
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
    if q.width > 0 {
        with_unit!(activation, U => {
            let (far, unit) = (p.is_far(), PhantomData::<U>);
            let (first, base) = (nodes.start, neighbours.range(nodes.start).start);
            let mut sums = Sums { neighbours, first, base, counts, p, q, s, g, kept, far, unit };
            for_each_node(&nodes, q.width, &mut sums);
        });
    }
}

struct Sums<'a, S, U> {
    neighbours: &'a Neighbours,
    /// The first node, and its first pair.
    first: usize,
    base: usize,
    counts: Counts<'a, S>,
    p: Table<'a, S>,
    q: Table<'a, S>,
    s: &'a mut [S],
    g: &'a mut [S],
    kept: &'a mut [S],
    far: bool,
    unit: PhantomData<U>,
}

impl<S: Scalar, U: Unit> Columns for Sums<'_, S, U> {
    #[inline(always)]
    fn columns<A: Arithmetic, const W: usize>(&mut self, v: usize, column: usize) {
        let own = self.q.lanes::<W>(v, column);
        let zero = A::Lanes::<S>::splat(S::ZERO);
        let (mut sum, mut slopes) = ([zero; W], [zero; W]);
        let sources = self.neighbours.of(v);
        for (pair, &u) in self.neighbours.range(v).zip(sources) {
            let u = u as usize;
            if self.far {
                self.p.call_for::<A, W>(ahead(self.neighbours.nodes(), pair), column);
            }
            let other = self.p.lanes::<W>(u, column);
            let t = U::values::<S, _, W>(std::array::from_fn(|i| {
                A::Lanes::<S>::load(&other[i]).add(Lanes::load(&own[i]))
            }));
            let of = A::Lanes::<S>::splat(self.counts.of(u));
            let slope = t.map(|t| of.mul(U::slope(t)));
            for i in 0..W {
                sum[i] = of.mul_add(t[i], sum[i]);
                slopes[i] = slopes[i].add(slope[i]);
            }
            if !self.kept.is_empty() {
                let kept = lanes_mut::<S, W>(self.kept, (pair - self.base) * self.q.width + column);
                slope.iter().zip(kept).for_each(|(slope, kept)| slope.store(kept));
            }
        }
        let at = A::Lanes::<S>::splat(self.counts.at(v, sources.len()));
        let row = (v - self.first) * self.q.width + column;
        let s = lanes_mut::<S, W>(self.s, row);
        let g = lanes_mut::<S, W>(self.g, row);
        for i in 0..W {
            at.mul(sum[i]).store(&mut s[i]);
            slopes[i].store(&mut g[i]);
        }
    }
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
pub(super) fn to_sources<S: Scalar>(
    neighbours: &Neighbours,
    nodes: Range<usize>,
    counts: Counts<'_, S>,
    activation: Activation,
    p: Table<'_, S>,
    q: Table<'_, S>,
    d: Table<'_, S>,
    d_p: &mut [S],
) {
    if q.width > 0 {
        with_unit!(activation, U => {
            let (far, unit) = (p.is_far(), PhantomData::<U>);
            let first = nodes.start;
            let mut sums = ToSources { neighbours, first, counts, p, q, d, d_p, far, unit };
            for_each_node(&nodes, q.width, &mut sums);
        });
    }
}

struct ToSources<'a, S, U> {
    neighbours: &'a Neighbours,
    first: usize,
    counts: Counts<'a, S>,
    p: Table<'a, S>,
    q: Table<'a, S>,
    d: Table<'a, S>,
    d_p: &'a mut [S],
    far: bool,
    unit: PhantomData<U>,
}

impl<S: Scalar, U: Unit> Columns for ToSources<'_, S, U> {
    #[inline(always)]
    fn columns<A: Arithmetic, const W: usize>(&mut self, u: usize, column: usize) {
        let own = self.p.lanes::<W>(u, column);
        let mut sum = [A::Lanes::<S>::splat(S::ZERO); W];
        for (pair, &v) in self.neighbours.range(u).zip(self.neighbours.of(u)) {
            let v = v as usize;
            if self.far {
                let ahead = ahead(self.neighbours.nodes(), pair);
                self.q.call_for::<A, W>(ahead, column);
                self.d.call_for::<A, W>(ahead, column);
            }
            let other = self.q.lanes::<W>(v, column);
            let d = self.d.lanes::<W>(v, column);
            let t = U::values::<S, _, W>(std::array::from_fn(|i| {
                A::Lanes::<S>::load(&own[i]).add(Lanes::load(&other[i]))
            }));
            for i in 0..W {
                sum[i] = A::Lanes::<S>::load(&d[i]).mul_add(U::slope(t[i]), sum[i]);
            }
        }
        let of = A::Lanes::<S>::splat(self.counts.of(u));
        let row = (u - self.first) * self.p.width + column;
        for (sum, d_p) in sum.iter().zip(lanes_mut::<S, W>(self.d_p, row)) {
            of.mul(*sum).store(d_p);
        }
    }
}

/// `∂𝓛/∂p_u` of `nodes`, whose neighbours are among them, from what was [kept](sums) of their pairs.
pub(super) fn kept_to_sources<S: Scalar>(
    neighbours: &Neighbours,
    nodes: Range<usize>,
    kept: &[S],
    d: Table<'_, S>,
    d_p: &mut [S],
) {
    if d.width > 0 {
        let base = neighbours.starts()[nodes.start] as usize;
        let kept = Table { rows: kept, base, width: d.width };
        let mut sums = KeptToSources { neighbours, first: nodes.start, kept, d, d_p };
        for_each_node(&nodes, d.width, &mut sums);
    }
}

struct KeptToSources<'a, S> {
    neighbours: &'a Neighbours,
    first: usize,
    kept: Table<'a, S>,
    d: Table<'a, S>,
    d_p: &'a mut [S],
}

impl<S: Scalar> Columns for KeptToSources<'_, S> {
    #[inline(always)]
    fn columns<A: Arithmetic, const W: usize>(&mut self, u: usize, column: usize) {
        let mut sum = [A::Lanes::<S>::splat(S::ZERO); W];
        let twins = &self.neighbours.twins()[self.neighbours.range(u)];
        for (&twin, &v) in twins.iter().zip(self.neighbours.of(u)) {
            let slope = self.kept.lanes::<W>(twin as usize, column);
            let d = self.d.lanes::<W>(v as usize, column);
            for i in 0..W {
                sum[i] = A::Lanes::<S>::load(&d[i]).mul_add(Lanes::load(&slope[i]), sum[i]);
            }
        }
        let row = (u - self.first) * self.d.width + column;
        for (sum, d_p) in sum.iter().zip(lanes_mut::<S, W>(self.d_p, row)) {
            sum.store(d_p);
        }
    }
}
