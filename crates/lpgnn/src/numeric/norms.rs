use crate::Scalar;

/// Singular vectors found last time, so that the next search starts where this one ended.
#[derive(Clone, Debug, Default)]
pub struct NormMemory {
    vectors: Vec<Vec<f64>>,
}

/// Power iterations from a cold start, at most.
const COLD: usize = 2000;
/// And from where the last search ended: the weights have moved little since.
const WARM: usize = 300;
/// How much of the cold start a warm one keeps: without it, a direction that the last search has
/// left for good could not become the leading one again.
const COLD_SHARE: f64 = 0.1;
/// The relative change at which the search ends.
const TOLERANCE: f64 = 1e-7;

impl NormMemory {
    /// What is remembered: a vector per matrix that was asked for, empty where none was.
    pub fn vectors(&self) -> &[Vec<f64>] {
        &self.vectors
    }

    /// A memory of these vectors.
    pub fn from_vectors(vectors: Vec<Vec<f64>>) -> Self {
        Self { vectors }
    }

    /// `‖W‖₂` of `w: [rows, columns]`, the `place`-th matrix that is asked for.
    pub fn spectral_norm<S: Scalar>(
        &mut self,
        place: usize,
        w: &[S],
        rows: usize,
        columns: usize,
    ) -> f64 {
        if self.vectors.len() <= place {
            self.vectors.resize(place + 1, vec![]);
        }
        let v = &mut self.vectors[place];
        // No direction is left out, and none is at right angles to all rows by symmetry.
        let cold = (0..columns).map(|j| 1.0 + 0.5 * (1.7 * j as f64 + 0.3).sin());
        let length = v.iter().map(|x| x * x).sum::<f64>().sqrt();
        let warm = v.len() == columns && length > 0.0 && length.is_finite();
        if warm {
            let share = COLD_SHARE / (columns as f64).sqrt();
            v.iter_mut().zip(cold).for_each(|(v, cold)| *v = *v / length + share * cold);
        } else {
            *v = cold.collect();
        }
        power_iteration(w, rows, columns, v, if warm { WARM } else { COLD })
    }
}

/// `‖W‖₂`, by power iteration on `WᵀW` from `v`, which is left where it ended.
fn power_iteration<S: Scalar>(
    w: &[S],
    rows: usize,
    columns: usize,
    v: &mut [f64],
    limit: usize,
) -> f64 {
    if rows == 0 || columns == 0 {
        return 0.0;
    }
    let mut norm = 0.0;
    for _ in 0..limit {
        let length = v.iter().map(|x| x * x).sum::<f64>().sqrt();
        if length == 0.0 || !length.is_finite() {
            return length;
        }
        v.iter_mut().for_each(|x| *x /= length);
        let f_x: Vec<f64> = w
            .chunks_exact(columns)
            .map(|row| row.iter().zip(v.iter()).map(|(w, v)| w.f64() * v).sum())
            .collect();
        let next = f_x.iter().map(|x| x * x).sum::<f64>().sqrt();
        v.fill(0.0);
        for (row, u) in w.chunks_exact(columns).zip(&f_x) {
            for (v, w) in v.iter_mut().zip(row) {
                *v += w.f64() * u;
            }
        }
        let converged = (next - norm).abs() <= TOLERANCE * next;
        norm = next;
        if converged {
            break;
        }
    }
    norm
}

/// An upper bound on `‖W‖₂` that is not much larger.
///
/// `λ I − G` is positive definite, `G` being `W Wᵀ` or `Wᵀ W`, exactly when `λ > ‖W‖₂²`; and it is when Cholesky's
/// factors exist. Power iteration proposes `λ`, which it approaches from below.
pub(crate) fn spectral_norm_bound<S: Scalar>(w: &[S], rows: usize, columns: usize) -> f64 {
    let size = w.iter().map(|x| x.f64() * x.f64()).sum::<f64>().sqrt();
    if size == 0.0 || !size.is_finite() {
        return size;
    }
    let n = rows.min(columns);
    let at = |i: usize, k: usize| {
        if rows <= columns { w[i * columns + k].f64() } else { w[k * columns + i].f64() }
    };
    let mut gram = vec![0.0; n * n];
    for i in 0..n {
        for j in 0..=i {
            gram[i * n + j] = (0..rows.max(columns)).map(|k| at(i, k) * at(j, k)).sum::<f64>();
        }
    }
    let mut bound = NormMemory::default().spectral_norm(0, w, rows, columns) * (1.0 + 1e-6);
    while bound < size {
        if is_above(&gram, n, bound * bound) {
            return bound;
        }
        bound *= 1.001;
    }
    size * (1.0 + 1e-12)
}

/// Whether `λ I − G` is positive definite, by a margin that covers rounding.
fn is_above(gram: &[f64], n: usize, lambda: f64) -> bool {
    let margin = lambda * 1e-13 * (n + 1) as f64;
    let mut l = vec![0.0; n * n];
    for i in 0..n {
        for j in 0..=i {
            let dot: f64 = (0..j).map(|k| l[i * n + k] * l[j * n + k]).sum();
            if i == j {
                let d = lambda - gram[i * n + i] - dot - margin;
                if d <= 0.0 {
                    return false;
                }
                l[i * n + i] = d.sqrt();
            } else {
                l[i * n + j] = (-gram[i * n + j] - dot) / l[j * n + j];
            }
        }
    }
    true
}

/// `max_j Σ_i abs(W_ij)`: how much `z ↦ z W` can enlarge the largest entry of `z`.
pub(crate) fn largest_column_sum<S: Scalar>(w: &[S], columns: usize) -> f64 {
    let mut sums = vec![0.0; columns];
    if columns > 0 {
        for row in w.chunks_exact(columns) {
            for (sum, w) in sums.iter_mut().zip(row) {
                *sum += w.f64().abs();
            }
        }
    }
    sums.into_iter().fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_norm_of_a_rotated_diagonal_is_its_largest_entry() {
        // W = R diag(3, 1) with R a rotation by 0.4.
        let (sin, cos) = 0.4_f64.sin_cos();
        let w = [3.0 * cos, -sin, 3.0 * sin, cos];
        assert!((NormMemory::default().spectral_norm(0, &w, 2, 2) - 3.0).abs() < 1e-8);
    }

    #[test]
    fn the_bound_on_a_norm_is_above_it_and_near_it() {
        for (rows, columns) in [(2, 2), (7, 5), (5, 7), (1, 9), (40, 16), (3, 0)] {
            let w: Vec<f64> =
                (0..rows * columns).map(|i| (1.3 * i as f64 + rows as f64).sin()).collect();
            let norm = NormMemory::default().spectral_norm(0, &w, rows, columns);
            let bound = spectral_norm_bound(&w, rows, columns);
            assert!(norm <= bound && bound <= 1.01 * norm, "{rows} × {columns}: {norm}, {bound}");
        }
        // Two directions of almost the same length, of which a search may find either.
        let w = [1.0, 0.0, 0.0, 1.0 + 1e-9_f64];
        assert!(spectral_norm_bound(&w, 2, 2) >= 1.0 + 1e-9);
    }

    #[test]
    fn a_warm_start_follows_a_slowly_changing_matrix() {
        let matrix =
            |t: f64| -> Vec<f64> { (0..35).map(|i| (f64::from(i) * 0.9 + t).sin()).collect() };
        let mut memory = NormMemory::default();
        for step in 0..50 {
            let w = matrix(f64::from(step) * 1e-3);
            let warm = memory.spectral_norm(0, &w, 7, 5);
            let cold = NormMemory::default().spectral_norm(0, &w, 7, 5);
            assert!((warm - cold).abs() < 1e-4 * cold, "step {step}: {warm} for {cold}");
        }
    }

    #[test]
    fn a_direction_that_was_small_is_found_when_it_grows() {
        let mut memory = NormMemory::default();
        for step in 0..=100 {
            let t = f64::from(step) / 100.0;
            let w = [2.0 - t, 0.0, 0.0, 0.5 + 2.0 * t];
            let norm = memory.spectral_norm(0, &w, 2, 2);
            let exact = f64::max(w[0], w[3]);
            assert!((norm - exact).abs() < 2e-3 * exact, "step {step}: {norm} for {exact}");
        }
    }

    #[test]
    fn a_matrix_of_zeros_is_not_remembered() {
        let mut memory = NormMemory::default();
        assert!(memory.spectral_norm(0, &[0.0_f64; 4], 2, 2).abs() < 1e-300);
        assert!((memory.spectral_norm(0, &[3.0, 0.0, 0.0, 1.0_f64], 2, 2) - 3.0).abs() < 1e-6);
    }

    #[test]
    fn column_sums_bound_the_largest_entry() {
        assert!((largest_column_sum(&[1.0, -2.0, 3.0, 4.0_f64], 2) - 6.0).abs() < 1e-12);
    }
}
