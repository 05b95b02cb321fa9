use std::ops::Range;

use crate::Scalar;

/// Coordinates of the first layer of `f_r` in which what it reads has mean 0 and deviation 1.
///
/// With `z = (p − μ) / σ` for what is read, `p`, the layer `Wᵀ p + b` is `Vᵀ z + c`, where
///
/// ```text
/// W = V / σ,   b = c − Wᵀ μ        so that        ∂𝓛/∂V = (∂𝓛/∂W − μ ∂𝓛/∂bᵀ) / σ,   ∂𝓛/∂c = ∂𝓛/∂b
/// ```
///
/// The function stays what it is; only its descent takes place in `V` and `c`. Sums over the nodes
/// of a graph tell above all how many there are: in `W` and `b`, all else is learnt slowly.
#[derive(Clone, Debug)]
pub(crate) struct Coordinates {
    /// Where `W` starts among the weights; `b` follows it.
    at: usize,
    units: usize,
    /// `μ` and `1/σ`, per component that is read.
    statistics: Vec<(f64, f64)>,
}

/// The share of the largest variance that every component is taken to have besides its own.
const FLOOR: f64 = 1e-4;

impl Coordinates {
    /// The coordinates for these rows of `width` components, which a layer of `units` reads; none
    /// where nothing varies.
    pub(crate) fn of<S: Scalar>(rows: &[S], width: usize, at: usize, units: usize) -> Option<Self> {
        let count = rows.len().checked_div(width)?.max(1) as f64;
        let mut means = vec![0.0; width];
        for row in rows.chunks_exact(width) {
            means.iter_mut().zip(row).for_each(|(mean, x)| *mean += x.f64() / count);
        }
        let mut variances = vec![0.0; width];
        for row in rows.chunks_exact(width) {
            for ((variance, x), mean) in variances.iter_mut().zip(row).zip(&means) {
                *variance += (x.f64() - mean).powi(2) / count;
            }
        }
        let largest = variances.iter().copied().fold(0.0, f64::max);
        if !largest.is_normal() || means.iter().any(|mean| !mean.is_finite()) {
            return None;
        }
        let inverse = |variance: f64| 1.0 / (variance + FLOOR * largest).sqrt();
        let statistics = means.into_iter().zip(variances.into_iter().map(inverse)).collect();
        Some(Self { at, units, statistics })
    }

    /// The weights that they are the coordinates of: `W` row by row, and `b`.
    fn block(&self) -> Range<usize> {
        self.at..self.at + (self.statistics.len() + 1) * self.units
    }

    /// `∂𝓛/∂(W, b)` becomes `∂𝓛/∂(V, c)`.
    fn gradient<S: Scalar>(&self, gradient: &mut [S]) {
        let (d_w, d_b) = gradient.split_at_mut(self.statistics.len() * self.units);
        for (d_w, &(mean, inverse)) in d_w.chunks_exact_mut(self.units).zip(&self.statistics) {
            for (d_w, d_b) in d_w.iter_mut().zip(&*d_b) {
                *d_w = S::of((d_w.f64() - mean * d_b.f64()) * inverse);
            }
        }
    }

    /// A change of `(V, c)` becomes a change of `(W, b)`.
    fn change<S: Scalar>(&self, change: &mut [S]) {
        let (w, b) = change.split_at_mut(self.statistics.len() * self.units);
        for (w, &(mean, inverse)) in w.chunks_exact_mut(self.units).zip(&self.statistics) {
            for (w, b) in w.iter_mut().zip(&mut *b) {
                *w *= S::of(inverse);
                *b = S::of(b.f64() - mean * w.f64());
            }
        }
    }

    /// Weights that were drawn for `(V, c)` become weights.
    pub(crate) fn initialize<S: Scalar>(&self, weights: &mut [S]) {
        self.change(&mut weights[self.block()]);
    }

    /// One step of all weights by `descend`, of those of the layer in its coordinates.
    pub(super) fn step<S: Scalar>(
        &self,
        weights: &mut [S],
        gradient: &mut [S],
        descend: impl FnOnce(&mut [S], &[S]),
    ) {
        let block = self.block();
        let before = weights[block.clone()].to_vec();
        self.gradient(&mut gradient[block.clone()]);
        descend(weights, gradient);
        let block = &mut weights[block];
        block.iter_mut().zip(&before).for_each(|(w, &before)| *w -= before);
        self.change(block);
        block.iter_mut().zip(&before).for_each(|(w, &before)| *w += before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two components of different size that move together, and a unit reading them.
    const ROWS: [f64; 6] = [10.0, 1.0, 30.0, 3.5, 20.0, 2.0];

    fn value(weights: &[f64], row: &[f64]) -> f64 {
        weights[0] * row[0] + weights[1] * row[1] + weights[2]
    }

    #[test]
    fn drawn_weights_read_standardized_components() {
        let coordinates = Coordinates::of(&ROWS, 2, 0, 1).unwrap();
        let mut weights = [1.0, 0.0, 0.0];
        coordinates.initialize(&mut weights);
        let values: Vec<f64> = ROWS.chunks(2).map(|row| value(&weights, row)).collect();
        let mean = values.iter().sum::<f64>() / 3.0;
        let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 3.0;
        assert!(mean.abs() < 1e-12, "{mean}");
        assert!((variance - 1.0).abs() < 1e-3, "{variance}");
    }

    #[test]
    fn a_step_is_one_of_the_standardized_layer() {
        let coordinates = Coordinates::of(&ROWS, 2, 0, 1).unwrap();
        let (start, d) = ([0.3, -0.7, 0.1], [5.0, -2.0, 0.4]);
        let rate = 0.01;
        let (mut weights, mut gradient) = (start, d);
        coordinates.step(&mut weights, &mut gradient, |w, d| {
            w.iter_mut().zip(d).for_each(|(w, d)| *w -= rate * d);
        });
        // The same in V and c, by hand.
        let [(m0, i0), (m1, i1)] = coordinates.statistics[..] else { panic!() };
        let v = [
            start[0] / i0 - rate * (d[0] - m0 * d[2]) * i0,
            start[1] / i1 - rate * (d[1] - m1 * d[2]) * i1,
        ];
        let c = start[2] + start[0] * m0 + start[1] * m1 - rate * d[2];
        for row in ROWS.chunks(2) {
            let expected = v[0] * (row[0] - m0) * i0 + v[1] * (row[1] - m1) * i1 + c;
            assert!((value(&weights, row) - expected).abs() < 1e-12);
        }
    }

    #[test]
    fn nothing_is_standardized_where_nothing_varies() {
        assert!(Coordinates::of(&[1.0, 2.0, 1.0, 2.0], 2, 0, 1).is_none());
        assert!(Coordinates::of::<f32>(&[], 2, 0, 1).is_none());
    }
}
