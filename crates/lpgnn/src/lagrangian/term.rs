use std::ops::Range;

use super::read::ReadGradient;
use crate::constraint::Constraint;
use crate::graph::{Reduce, Topology};
use crate::numeric::{
    Arithmetic, Kernel, LANES, Lanes, Numbers, Scratch, dispatch, each, for_lanes, total, worse,
};
use crate::transition::{Upstream, for_each_group, split_rows};
use crate::{Matrix, Scalar};

/// The constraint term of one layer, and what reaches the layer from the output.
///
/// ```text
/// T = c Σ_v (λ_v · G(a_v) + ρ/2 ‖a_v‖²)        a = x − f_a
/// ∂T/∂x = c (λ G'(a) + ρ a) = −∂T/∂f_a          ∂T/∂λ = c G(a)
/// ```
pub(super) struct ConstraintTerm<'a, S: Scalar> {
    pub(super) states: &'a Matrix<S>,
    pub(super) multipliers: &'a Matrix<S>,
    pub(super) constraint: &'a dyn Constraint<S>,
    /// `c`: one for a sum, less for a mean.
    pub(super) factor: S,
    /// `ρ`
    pub(super) penalty: S,
    pub(super) topology: &'a Topology,
    /// `∂𝓛/∂x` of what else reads the states, or `∂𝓛/∂f_a` if it reads `f_a(x)`.
    pub(super) d_read: Option<&'a ReadGradient<'a, S>>,
    pub(super) reads_transition: bool,
    pub(super) scratch: &'a Scratch<S>,
}

impl<S: Scalar> ConstraintTerm<'_, S> {
    /// The term at every group of nodes; `∂T/∂Λ` goes to `d_multipliers`.
    pub(super) fn groups<'t>(
        &'t self,
        ranges: &[Range<usize>],
        d_multipliers: &'t mut Matrix<S>,
    ) -> Vec<GroupTerm<'t, S>> {
        let width = d_multipliers.cols();
        let rows = split_rows(d_multipliers.as_mut_slice(), width, ranges);
        let group = |(nodes, d_multipliers): (&Range<usize>, &'t mut [S])| GroupTerm {
            term: self,
            first: nodes.start,
            d_multipliers,
            tally: Tally::default(),
        };
        ranges.iter().zip(rows).map(group).collect()
    }

    /// `∂T/∂Λ` alone; `spare` is overwritten.
    pub(super) fn residual(
        &self,
        groups: &mut [GroupTerm<'_, S>],
        ranges: &[Range<usize>],
        f_x: &Matrix<S>,
        spare: &mut Matrix<S>,
    ) {
        let width = f_x.cols();
        let mut d_f = self.scratch.take(f_x.as_slice().len());
        let rows = split_rows(&mut d_f, width, ranges).into_iter().zip(split_rows(
            spare.as_mut_slice(),
            width,
            ranges,
        ));
        let mut work: Vec<_> = groups.iter_mut().zip(ranges).zip(rows).collect();
        for_each_group(&mut work, |((group, nodes), (d_f, d_states))| {
            group.derive((*nodes).clone(), Self::rows(f_x, nodes), d_f, d_states);
        });
    }

    fn rows<'m>(matrix: &'m Matrix<S>, nodes: &Range<usize>) -> &'m [S] {
        &matrix.as_slice()[nodes.start * matrix.cols()..nodes.end * matrix.cols()]
    }
}

/// The term at the nodes of a group.
pub(super) struct GroupTerm<'t, S: Scalar> {
    term: &'t ConstraintTerm<'t, S>,
    /// The first node of the group.
    first: usize,
    d_multipliers: &'t mut [S],
    pub(super) tally: Tally,
}

impl<S: Scalar> Upstream<S> for GroupTerm<'_, S> {
    fn derive(&mut self, nodes: Range<usize>, f_x: &[S], d_f: &mut [S], d_states: &mut [S]) {
        let term = self.term;
        let width = term.states.cols();
        if width == 0 {
            return;
        }
        let multiplier = term.multipliers.cols();
        let rows = (nodes.start - self.first) * multiplier..(nodes.end - self.first) * multiplier;
        let d_multipliers = &mut self.d_multipliers[rows];
        // d_f holds a, d_states holds G'(a), until they get their own values.
        let x = ConstraintTerm::rows(term.states, &nodes);
        let tally = dispatch(Residual { x, f: f_x, a: &mut *d_f });
        // G(a) becomes ∂T/∂λ where every component has a multiplier.
        let per_component = multiplier == width;
        let mut values = term.scratch.take(if per_component { 0 } else { d_f.len() });
        let g: &mut [S] = if per_component { &mut *d_multipliers } else { &mut values };
        term.constraint.evaluate(d_f, g, d_states);
        // Where a node has one multiplier, it is repeated, and what it is multiplied with added up.
        let lambda = ConstraintTerm::rows(term.multipliers, &nodes);
        let mut repeated = term.scratch.take(if per_component { 0 } else { d_f.len() });
        if !per_component {
            for (to, &lambda) in repeated.chunks_exact_mut(width).zip(lambda) {
                to.fill(lambda);
            }
        }
        let read = term.d_read.map(|d| d.rows(term.topology, nodes.clone(), term.scratch));
        let (read, nothing): (&[S], &[S]) = (read.as_deref().unwrap_or_default(), &[]);
        let (loss_states, loss_f) =
            if term.reads_transition { (nothing, read) } else { (read, nothing) };
        let constraint = dispatch(Derive {
            factor: term.factor,
            penalty: term.penalty,
            lambda: if per_component { lambda } else { &repeated },
            g: if per_component { d_multipliers } else { &values },
            d_f,
            d_states,
            loss_states,
            loss_f,
        });
        if !per_component {
            dispatch(SumUp { width, g: &values, sums: &mut *d_multipliers });
        }
        if term.factor != S::ONE {
            d_multipliers.iter_mut().for_each(|d| *d *= term.factor);
        }
        self.tally = self.tally.and(Tally { constraint, ..tally });
    }
}

/// Sums over nodes that come out on the way.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Tally {
    /// `Σ λ · G(x − f_a)`, and the penalty term if there is one.
    pub(super) constraint: f64,
    /// `Σ abs(x − f_a)` over nodes and components.
    pub(super) residual_sum: f64,
    /// `max abs(x − f_a)` over nodes and components.
    pub(super) residual_max: f64,
    /// `Σ abs(x)` over nodes and components.
    pub(super) state_sum: f64,
    /// How many components of states there are.
    pub(super) components: f64,
}

/// The numbers of a tally.
const TALLY: usize = 5;

impl Tally {
    /// Of two sets of nodes together.
    #[must_use]
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            constraint: self.constraint + other.constraint,
            residual_sum: self.residual_sum + other.residual_sum,
            residual_max: worse(self.residual_max, other.residual_max),
            state_sum: self.state_sum + other.state_sum,
            components: self.components + other.components,
        }
    }

    /// Of the groups of all processes, in their order.
    pub(super) fn total<S: Scalar>(
        own: impl Iterator<Item = Self>,
        reduce: &dyn Reduce<S>,
    ) -> Self {
        let own: Vec<f64> = own.flat_map(Self::to_array).collect();
        let all = reduce.totals(&own, TALLY);
        let (groups, _) = all.as_deref().unwrap_or(&own).as_chunks();
        groups.iter().map(|group| Self::of_array(*group)).fold(Self::default(), Self::and)
    }

    fn to_array(self) -> [f64; TALLY] {
        let Self { constraint, residual_sum, residual_max, state_sum, components } = self;
        [constraint, residual_sum, residual_max, state_sum, components]
    }

    fn of_array(
        [constraint, residual_sum, residual_max, state_sum, components]: [f64; TALLY],
    ) -> Self {
        Self { constraint, residual_sum, residual_max, state_sum, components }
    }
}

/// Components whose values are added up in single precision.
const ADDED: usize = 32 * LANES;

/// `a = x − f_a`, and how large states and residuals are.
struct Residual<'a, S> {
    x: &'a [S],
    f: &'a [S],
    a: &'a mut [S],
}

impl<S: Scalar> Kernel for Residual<'_, S> {
    type Output = Tally;

    #[inline(always)]
    fn run<A: Arithmetic>(self) -> Tally {
        let zero = A::Lanes::<S>::splat(S::ZERO);
        let abs = |x: A::Lanes<S>| x.max(zero.sub(x));
        let components = self.x.len() as f64;
        let (mut tally, mut max) = (Tally { components, ..Tally::default() }, zero);
        let rows = self.x.chunks(ADDED).zip(self.f.chunks(ADDED)).zip(self.a.chunks_mut(ADDED));
        for ((x, f), a) in rows {
            let (mut size, mut state) = (zero, zero);
            let mut eight = |x: A::Lanes<S>, f: A::Lanes<S>| {
                let a = x.sub(f);
                size = size.add(abs(a));
                state = state.add(abs(x));
                max = max.max(abs(a));
                a
            };
            let whole = a.len() / LANES * LANES;
            let rest = eight(Lanes::load_some(&x[whole..]), Lanes::load_some(&f[whole..]));
            rest.store_some(&mut a[whole..]);
            for_lanes!((a), (x, f) => eight(Lanes::load(x), Lanes::load(f)).store(a));
            tally.residual_sum += total(size).f64();
            tally.state_sum += total(state).f64();
        }
        // A maximum ignores NaN, a sum does not.
        let max = each(max).into_iter().fold(S::ZERO, worse).f64();
        tally.residual_max = if tally.residual_sum.is_nan() { f64::NAN } else { max };
        tally
    }
}

/// From `a`, `G(a)` and `G'(a)` to the derivatives of `T` and of the loss, component by component;
/// returns `T`.
struct Derive<'a, S> {
    factor: S,
    penalty: S,
    lambda: &'a [S],
    g: &'a [S],
    /// `a`, then the derivative in `f_a`.
    d_f: &'a mut [S],
    /// `G'(a)`, then the derivative in `x`.
    d_states: &'a mut [S],
    /// `∂𝓛/∂x` and `∂𝓛/∂f_a` of what else reads them, empty where nothing does.
    loss_states: &'a [S],
    loss_f: &'a [S],
}

impl<S: Scalar> Kernel for Derive<'_, S> {
    type Output = f64;

    #[inline(always)]
    fn run<A: Arithmetic>(self) -> f64 {
        let count = self.d_f.len();
        let (mut constraint, whole) = (0.0, count / LANES * LANES);
        let (c, rho) = (A::Lanes::<S>::splat(self.factor), A::Lanes::<S>::splat(self.penalty));
        let (zero, half) = (A::Lanes::<S>::splat(S::ZERO), A::Lanes::<S>::splat(S::of(0.5)));
        // The derivatives in x and in f_a of eight components, and their part of T.
        let derive = |[lambda, g, a, slope, loss_state, loss_f]: [A::Lanes<S>; 6], value| {
            let damped = a.mul(rho);
            let value = damped.mul(half).mul_add(a, lambda.mul_add(g, value));
            let d = lambda.mul_add(slope, damped).mul(c);
            (loss_state.add(d), loss_f.sub(d), value)
        };
        for start in (0..whole).step_by(ADDED) {
            let mut value = zero;
            for at in (start..whole.min(start + ADDED)).step_by(LANES) {
                let eight = |x: &[S]| A::Lanes::<S>::load(x[at..].first_chunk().expect("whole"));
                let loss = |x: &[S]| if x.is_empty() { zero } else { eight(x) };
                let (d_state, d_f, sum) = derive(
                    [
                        eight(self.lambda),
                        eight(self.g),
                        eight(self.d_f),
                        eight(self.d_states),
                        loss(self.loss_states),
                        loss(self.loss_f),
                    ],
                    value,
                );
                value = sum;
                d_state.store(self.d_states[at..].first_chunk_mut().expect("whole"));
                d_f.store(self.d_f[at..].first_chunk_mut().expect("whole"));
            }
            constraint += (self.factor * total(value)).f64();
        }
        let some = |x: &[S]| A::Lanes::<S>::load_some(x.get(whole..).unwrap_or_default());
        let (d_state, d_f, value) = derive(
            [
                some(self.lambda),
                some(self.g),
                some(self.d_f),
                some(self.d_states),
                some(self.loss_states),
                some(self.loss_f),
            ],
            zero,
        );
        d_state.store_some(&mut self.d_states[whole..]);
        d_f.store_some(&mut self.d_f[whole..]);
        constraint + (self.factor * total(value)).f64()
    }
}

/// `Σ G(a)` of nodes that have one multiplier each.
struct SumUp<'a, S> {
    width: usize,
    g: &'a [S],
    sums: &'a mut [S],
}

impl<S: Scalar> Kernel for SumUp<'_, S> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arithmetic>(self) {
        for (g, to) in self.g.chunks_exact(self.width).zip(self.sums) {
            let (eights, rest) = g.as_chunks::<LANES>();
            let mut sum = A::Lanes::<S>::load_some(rest);
            for eight in eights {
                sum = sum.add(A::Lanes::<S>::load(eight));
            }
            *to = total(sum);
        }
    }
}
