use std::ops::Range;

use crate::constraint::Constraint;
use crate::numeric::{Arithmetic, Kernel, LANES, Lanes, Scratch, dispatch, each, total, worse};
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
    pub(super) damping: S,
    /// `∂ loss/∂x`, where the output reads states.
    pub(super) d_state: Option<&'a Matrix<S>>,
    /// `∂ loss/∂f_a`, where it reads their image.
    pub(super) d_image: Option<&'a Matrix<S>>,
    pub(super) scratch: &'a Scratch<S>,
}

impl<S: Scalar> ConstraintTerm<'_, S> {
    /// The tally and `∂T/∂Λ` alone; `spare` is overwritten.
    pub(super) fn residual(
        &self,
        groups: &[Range<usize>],
        image: &Matrix<S>,
        spare: &mut Matrix<S>,
        d_multipliers: &mut Matrix<S>,
    ) -> Tally {
        let (width, multiplier) = (image.cols(), d_multipliers.cols());
        let mut d_image = self.scratch.take(image.as_slice().len());
        let rows = split_rows(&mut d_image, width, groups)
            .into_iter()
            .zip(split_rows(spare.as_mut_slice(), width, groups))
            .zip(split_rows(d_multipliers.as_mut_slice(), multiplier, groups));
        let mut work: Vec<_> =
            groups.iter().zip(rows).map(|work| (work, Tally::default())).collect();
        for_each_group(&mut work, |((nodes, ((d_image, d_states), d_multipliers)), tally)| {
            let rows = NodeRows { d_image, d_states, d_multipliers };
            *tally = self.upstream((*nodes).clone(), Self::rows(image, nodes), rows);
        });
        work.iter().fold(Tally::default(), |all, (_, tally)| all.and(*tally))
    }

    fn rows<'m>(matrix: &'m Matrix<S>, nodes: &Range<usize>) -> &'m [S] {
        &matrix.as_slice()[nodes.start * matrix.cols()..nodes.end * matrix.cols()]
    }
}

impl<S: Scalar> Upstream<S> for ConstraintTerm<'_, S> {
    fn upstream(&self, nodes: Range<usize>, image: &[S], rows: NodeRows<'_, S>) -> Tally {
        let width = self.states.cols();
        if width == 0 {
            return Tally::default();
        }
        let NodeRows { d_image, d_states, d_multipliers } = rows;
        // d_image holds a, d_states holds G'(a), until they get their own values.
        for ((a, &x), &f) in d_image.iter_mut().zip(Self::rows(self.states, &nodes)).zip(image) {
            *a = x - f;
        }
        // G(a) becomes ∂T/∂λ where every component has a multiplier.
        let per_component = self.multipliers.cols() == width;
        let mut values = self.scratch.take(if per_component { 0 } else { d_image.len() });
        let g: &mut [S] = if per_component { &mut *d_multipliers } else { &mut values };
        self.constraint.evaluate(d_image, g, d_states);
        // Where a node has one multiplier, it is repeated, and what it is multiplied with added up.
        let lambda = Self::rows(self.multipliers, &nodes);
        let mut repeated = self.scratch.take(if per_component { 0 } else { d_image.len() });
        if !per_component {
            for (to, &lambda) in repeated.chunks_exact_mut(width).zip(lambda) {
                to.fill(lambda);
            }
        }
        let tally = dispatch(Derive {
            factor: self.factor,
            damping: self.damping,
            lambda: if per_component { lambda } else { &repeated },
            g: if per_component { d_multipliers } else { &values },
            d_image,
            d_states,
            loss_states: self.d_state.map_or(&[], |d| Self::rows(d, &nodes)),
            loss_image: self.d_image.map_or(&[], |d| Self::rows(d, &nodes)),
        });
        if per_component {
            d_multipliers.iter_mut().for_each(|d| *d *= self.factor);
        } else {
            dispatch(SumUp { width, factor: self.factor, g: &values, sums: d_multipliers });
        }
        tally
    }
}

/// From `a`, `G(a)` and `G'(a)` to the derivatives of `T` and of the loss, component by component.
struct Derive<'a, S> {
    factor: S,
    damping: S,
    lambda: &'a [S],
    g: &'a [S],
    /// `a`, then the derivative in `f_a`.
    d_image: &'a mut [S],
    /// `G'(a)`, then the derivative in `x`.
    d_states: &'a mut [S],
    /// `∂ loss/∂x` and `∂ loss/∂f_a`, empty where the output does not read them.
    loss_states: &'a [S],
    loss_image: &'a [S],
}

/// Components whose values are added up in single precision.
const ADDED: usize = 32 * LANES;

impl<S: Scalar> Kernel for Derive<'_, S> {
    type Output = Tally;

    #[inline(always)]
    fn run<A: Arithmetic>(self) -> Tally {
        let (mut tally, count) = (Tally::default(), self.d_image.len());
        let mut sums = Sums::<A, S>::default();
        let whole = count / LANES * LANES;
        for start in (0..whole).step_by(ADDED) {
            for at in (start..whole.min(start + ADDED)).step_by(LANES) {
                let eight = |x: &[S]| A::Lanes::<S>::load(x[at..].first_chunk().expect("whole"));
                let loss = |x: &[S]| if x.is_empty() { A::Lanes::splat(S::ZERO) } else { eight(x) };
                let (d_state, d_image) = sums.derive(
                    (self.factor, self.damping),
                    (eight(self.lambda), eight(self.g)),
                    (eight(self.d_image), eight(self.d_states)),
                    (loss(self.loss_states), loss(self.loss_image)),
                );
                d_state.store(self.d_states[at..].first_chunk_mut().expect("whole"));
                d_image.store(self.d_image[at..].first_chunk_mut().expect("whole"));
            }
            sums.add_to(&mut tally, self.factor);
        }
        let some = |x: &[S]| A::Lanes::<S>::load_some(x.get(whole..).unwrap_or_default());
        let (d_state, d_image) = sums.derive(
            (self.factor, self.damping),
            (some(self.lambda), some(self.g)),
            (some(self.d_image), some(self.d_states)),
            (some(self.loss_states), some(self.loss_image)),
        );
        d_state.store_some(&mut self.d_states[whole..]);
        d_image.store_some(&mut self.d_image[whole..]);
        sums.add_to(&mut tally, self.factor);
        // A maximum forgets what is not a number, a sum does not.
        let max = each(sums.max).into_iter().fold(S::ZERO, worse).f64();
        tally.residual_max = if tally.residual_sum.is_nan() { f64::NAN } else { max };
        tally
    }
}

/// What is added up on the way.
struct Sums<A: Arithmetic, S: Scalar> {
    /// `Σ λ G(a) + ρ/2 a²`
    value: A::Lanes<S>,
    /// `Σ |a|`
    size: A::Lanes<S>,
    max: A::Lanes<S>,
}

impl<A: Arithmetic, S: Scalar> Default for Sums<A, S> {
    #[inline(always)]
    fn default() -> Self {
        let zero = A::Lanes::<S>::splat(S::ZERO);
        Self { value: zero, size: zero, max: zero }
    }
}

impl<A: Arithmetic, S: Scalar> Sums<A, S> {
    /// The derivatives in `x` and in `f_a` of eight components.
    #[inline(always)]
    fn derive(
        &mut self,
        (c, rho): (S, S),
        (lambda, g): (A::Lanes<S>, A::Lanes<S>),
        (a, slope): (A::Lanes<S>, A::Lanes<S>),
        (loss_state, loss_image): (A::Lanes<S>, A::Lanes<S>),
    ) -> (A::Lanes<S>, A::Lanes<S>) {
        let damped = a.mul(A::Lanes::splat(rho));
        let half = A::Lanes::splat(S::of(0.5));
        self.value = lambda.mul_add(g, self.value);
        self.value = damped.mul(half).mul_add(a, self.value);
        let size = a.max(A::Lanes::splat(S::ZERO).sub(a));
        self.size = self.size.add(size);
        self.max = self.max.max(size);
        let d = lambda.mul_add(slope, damped).mul(A::Lanes::splat(c));
        (loss_state.add(d), loss_image.sub(d))
    }

    #[inline(always)]
    fn add_to(&mut self, tally: &mut Tally, factor: S) {
        tally.constraint += (factor * total(self.value)).f64();
        tally.residual_sum += total(self.size).f64();
        *self = Self { max: self.max, ..Self::default() };
    }
}

/// `∂T/∂λ = c Σ G(a)` of nodes that have one multiplier each.
struct SumUp<'a, S> {
    width: usize,
    factor: S,
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
            *to = self.factor * total(sum);
        }
    }
}
