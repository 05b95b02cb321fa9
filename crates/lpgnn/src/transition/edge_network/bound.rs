use super::{A, Aggregation, C, EdgeNetwork};
use crate::Scalar;
use crate::numeric::{NormMemory, largest_column_sum};
use crate::parameters::Role;
use crate::transition::Degrees;

impl EdgeNetwork {
    /// A bound on the Lipschitz constant, for activations of slope at most 1.
    ///
    /// With `a = ‖A‖ Π_{k ≥ 2} ‖W_k‖` and `c` the same of `C`:
    ///
    /// | `⊕` | bound | in the norm |
    /// |---|---|---|
    /// | mean | `a + c` | `max_v ‖x_v‖₂` |
    /// | sum | `(a + c) · max_v de[v]` | `max_v ‖x_v‖₂` |
    /// | normalised sum | `a + c · max_v Σ_u 1/√(de[v] de[u])` | `‖X‖₂` |
    /// | maximum | `a + c`, with `‖·‖_∞` for the matrices | `max_{v,i} abs(x_{v,i})` |
    pub(super) fn bound<S: Scalar>(
        &self,
        weights: &[S],
        degrees: Degrees,
        memory: &mut NormMemory,
    ) -> f64 {
        let mut norm = |block: usize| {
            let (w, rows, columns) = (
                self.layout.of(block, weights),
                self.layout.rows(block),
                self.layout.columns(block),
            );
            if self.aggregation == Aggregation::Max {
                largest_column_sum(w, columns)
            } else {
                memory.spectral_norm(block, w, rows, columns)
            }
        };
        let above: f64 = self.layout.of_role(Role::Hidden).map(&mut norm).product();
        let (a, c) = (norm(A) * above, norm(C) * above);
        match self.aggregation {
            Aggregation::Mean | Aggregation::Max => a + c,
            Aggregation::Sum => (a + c) * degrees.largest as f64,
            Aggregation::NormalizedSum => a + c * degrees.largest_normalized,
        }
    }

    /// Scales `A` and `C`, the only matrices that multiply states directly, down to the bound.
    pub(super) fn scale_down<S: Scalar>(
        &self,
        weights: &mut [S],
        degrees: Degrees,
        bound: f64,
        memory: &mut NormMemory,
    ) {
        let now = self.bound(weights, degrees, memory);
        if now > bound {
            self.layout.scale_states(weights, bound / now);
        }
    }
}
