use std::ops::Range;

use crate::constraint::Constraint;
use crate::numeric::{Scratch, worse};
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
}

impl<S: Scalar> ConstraintTerm<'_, S> {
    /// The tally and `∂T/∂Λ` alone; `spare` is overwritten.
    pub(super) fn residual(
        &self,
        groups: &[Range<usize>],
        image: &Matrix<S>,
        spare: &mut Matrix<S>,
        d_multipliers: &mut Matrix<S>,
        scratch: &Scratch<S>,
    ) -> Tally {
        let (width, multiplier) = (image.cols(), d_multipliers.cols());
        let mut d_image = scratch.take(image.as_slice().len());
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
        let per_component = self.multipliers.cols() == width;

        // d_image holds a, d_states holds G'(a), until they get their own values below.
        let (a, slope) = (d_image, d_states);
        for ((a, &x), &f) in a.iter_mut().zip(Self::rows(self.states, &nodes)).zip(image) {
            *a = x - f;
        }
        // G(a) is ∂T/∂λ itself where every component has a multiplier.
        let mut values = vec![S::ZERO; if per_component { 0 } else { a.len() }];
        let g: &mut [S] = if per_component { &mut *d_multipliers } else { &mut values };
        self.constraint.evaluate(a, g, slope);

        let mut tally = Tally::default();
        let lambda = Self::rows(self.multipliers, &nodes);
        let lambdas = lambda.chunks_exact(self.multipliers.cols());
        let (half, c, rho) = (S::of(0.5), self.factor, self.damping);
        let node_rows = a.chunks_exact_mut(width).zip(slope.chunks_exact_mut(width));
        for (((a, slope), g), lambda) in node_rows.zip(g.chunks_exact_mut(width)).zip(lambdas) {
            let (mut value, mut sum, mut max) = (S::ZERO, S::ZERO, S::ZERO);
            for i in 0..width {
                let lambda = lambda[if per_component { i } else { 0 }];
                let d = c * (lambda * slope[i] + rho * a[i]);
                value += lambda * g[i] + half * rho * a[i] * a[i];
                sum += a[i].abs();
                max = worse(max, a[i].abs());
                (slope[i], a[i]) = (d, -d);
                g[i] *= c;
            }
            tally = tally.and(Tally {
                constraint: (c * value).f64(),
                residual_sum: sum.f64(),
                residual_max: max.f64(),
            });
        }
        // ∂T/∂λ_v = c Σ_i G(a_vi)
        for (d, g) in d_multipliers.iter_mut().zip(values.chunks_exact(width)) {
            *d = g.iter().copied().sum();
        }
        let (d_image, d_states) = (a, slope);
        for (d, loss) in [(d_states, self.d_state), (d_image, self.d_image)] {
            if let Some(loss) = loss {
                for (d, &loss) in d.iter_mut().zip(Self::rows(loss, &nodes)) {
                    *d += loss;
                }
            }
        }
        tally
    }
}
