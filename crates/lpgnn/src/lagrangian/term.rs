use std::ops::Range;

use super::read::ReadGradient;
use crate::constraint::Constraint;
use crate::graph::GraphBatch;
use crate::numeric::{
    Arithmetic, Kernel, LANES, Lanes, Scratch, dispatch, each, for_lanes, total, worse,
};
use crate::transition::{NodeRows, Tally, Upstream, for_each_group, split_rows};
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
    pub(super) batch: &'a GraphBatch<S>,
    /// `∂𝓛/∂x` of what else reads the states, or `∂𝓛/∂f_a` if it reads their f_x.
    pub(super) d_read: Option<&'a ReadGradient<'a, S>>,
    pub(super) reads_transition: bool,
    pub(super) scratch: &'a Scratch<S>,
}

impl<S: Scalar> ConstraintTerm<'_, S> {
    /// The tally and `∂T/∂Λ` alone; `spare` is overwritten.
    pub(super) fn residual(
        &self,
        groups: &[Range<usize>],
        f_x: &Matrix<S>,
        spare: &mut Matrix<S>,
        d_multipliers: &mut Matrix<S>,
    ) -> Tally {
        let (width, multiplier) = (f_x.cols(), d_multipliers.cols());
        let mut d_f = self.scratch.take(f_x.as_slice().len());
        let rows = split_rows(&mut d_f, width, groups)
            .into_iter()
            .zip(split_rows(spare.as_mut_slice(), width, groups))
            .zip(split_rows(d_multipliers.as_mut_slice(), multiplier, groups));
        let mut work: Vec<_> =
            groups.iter().zip(rows).map(|work| (work, Tally::default())).collect();
        for_each_group(&mut work, |((nodes, ((d_f, d_states), d_multipliers)), tally)| {
            let rows = NodeRows { d_f, d_states, d_multipliers };
            *tally = self.upstream((*nodes).clone(), Self::rows(f_x, nodes), rows);
        });
        work.iter().fold(Tally::default(), |all, (_, tally)| all.and(*tally))
    }

    fn rows<'m>(matrix: &'m Matrix<S>, nodes: &Range<usize>) -> &'m [S] {
        &matrix.as_slice()[nodes.start * matrix.cols()..nodes.end * matrix.cols()]
    }
}

impl<S: Scalar> Upstream<S> for ConstraintTerm<'_, S> {
    fn upstream(&self, nodes: Range<usize>, f_x: &[S], rows: NodeRows<'_, S>) -> Tally {
        let width = self.states.cols();
        if width == 0 {
            return Tally::default();
        }
        let NodeRows { d_f, d_states, d_multipliers } = rows;
        // d_f holds a, d_states holds G'(a), until they get their own values.
        let residual = Residual { x: Self::rows(self.states, &nodes), f: f_x, a: &mut *d_f };
        let tally = dispatch(residual);
        // G(a) becomes ∂T/∂λ where every component has a multiplier.
        let per_component = self.multipliers.cols() == width;
        let mut values = self.scratch.take(if per_component { 0 } else { d_f.len() });
        let g: &mut [S] = if per_component { &mut *d_multipliers } else { &mut values };
        self.constraint.evaluate(d_f, g, d_states);
        // Where a node has one multiplier, it is repeated, and what it is multiplied with added up.
        let lambda = Self::rows(self.multipliers, &nodes);
        let mut repeated = self.scratch.take(if per_component { 0 } else { d_f.len() });
        if !per_component {
            for (to, &lambda) in repeated.chunks_exact_mut(width).zip(lambda) {
                to.fill(lambda);
            }
        }
        let read = self.d_read.map(|d| d.rows(self.batch, nodes.clone(), self.scratch));
        let (read, nothing): (&[S], &[S]) = (read.as_deref().unwrap_or_default(), &[]);
        let (loss_states, loss_f) =
            if self.reads_transition { (nothing, read) } else { (read, nothing) };
        let constraint = dispatch(Derive {
            factor: self.factor,
            penalty: self.penalty,
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
        if self.factor != S::ONE {
            d_multipliers.iter_mut().for_each(|d| *d *= self.factor);
        }
        Tally { constraint, ..tally }
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
        let (mut tally, mut max) = (Tally::default(), zero);
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
        // A maximum forgets what is not a number, a sum does not.
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
    /// What else reads states and f_x, empty where nothing does.
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
