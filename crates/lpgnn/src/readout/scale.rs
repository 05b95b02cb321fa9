//! Real targets in units of their own spread.

use super::Supervision;
use crate::Scalar;
use crate::graph::Targets;
use crate::parameters::Parameters;

/// The mean `μ` and the standard deviation `σ` of the known real targets, component by component, in which
/// a target weighs as much as in the loss.
///
/// Training sees `(t − μ) / σ`, so that neither the unit of a target nor where its zero lies
/// matters. The last layer of `f_r` is linear, and so can take both back into its weights:
///
/// ```text
/// μ + σ ⊙ (W z + b) = (σ W) z + (σ ⊙ b + μ)
/// ```
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct TargetScale {
    mean: Vec<f64>,
    std: Vec<f64>,
}

impl TargetScale {
    pub(crate) fn new(mean: Vec<f64>, std: Vec<f64>) -> Self {
        Self { mean, std }
    }

    /// That of the real values which are supervised; none of classes.
    pub fn of<S: Scalar>(supervision: &Supervision<S>) -> Option<Self> {
        let Targets::Values(values) = supervision.targets() else { return None };
        let counted =
            supervision.counts().iter().enumerate().filter(|(_, count)| **count > S::ZERO);
        let rows: Vec<(&[S], f64)> =
            counted.map(|(row, count)| (values.row(row), count.f64())).collect();
        let known = |j: usize| {
            rows.iter().map(move |(row, w)| (row[j].f64(), *w)).filter(|(t, _)| t.is_finite())
        };
        // Σ w, Σ w t / Σ w and Σ w (t − μ)² / Σ w
        let total: Vec<f64> =
            (0..values.cols()).map(|j| known(j).map(|(_, w)| w).sum::<f64>()).collect();
        let per = |sum: f64, j: usize| if total[j] > 0.0 { sum / total[j] } else { 0.0 };
        let mean: Vec<f64> =
            (0..values.cols()).map(|j| per(known(j).map(|(t, w)| w * t).sum::<f64>(), j)).collect();
        let std = mean.iter().enumerate().map(|(j, mean)| {
            let squares = known(j).map(|(t, w)| w * (t - mean).powi(2)).sum::<f64>();
            let std = per(squares, j).sqrt();
            // For a constant target, the standard deviation is rounding error.
            if std > 1e-6 * mean.abs() { std } else { 1.0 }
        });
        Some(Self { std: std.collect(), mean })
    }

    /// `(t − μ) / σ` of all real targets.
    #[must_use]
    pub fn standardize<S: Scalar>(&self, supervision: &Supervision<S>) -> Supervision<S> {
        let Targets::Values(values) = supervision.targets() else { return supervision.clone() };
        let (mut values, columns) = (values.clone(), values.cols().max(1));
        for (i, t) in values.as_mut_slice().iter_mut().enumerate() {
            let (mean, std) = (self.mean[i % columns], self.std[i % columns]);
            *t = S::of((t.f64() - mean) / std);
        }
        supervision.with_targets(Targets::Values(values))
    }

    /// From the weights of a read-out that predicts `(t − μ) / σ` to those of one that predicts `t`.
    /// Its predictions are the sums of the layer that is declared last.
    ///
    /// # Panics
    ///
    /// When that layer has another number of units, or there are other weights than are declared.
    pub fn undo<S: Scalar>(&self, parameters: &Parameters, weights: &mut [S]) {
        let (matrices, bias) = parameters.last_layer();
        for matrix in matrices {
            for (i, w) in weights[matrix].iter_mut().enumerate() {
                *w *= S::of(self.std[i % self.std.len()]);
            }
        }
        let scale = self.std.iter().zip(&self.mean);
        for (b, (std, mean)) in weights[bias.unwrap_or_default()].iter_mut().zip(scale) {
            *b = S::of(b.f64() * std + mean);
        }
    }

    /// The way back, up to rounding.
    pub(crate) fn redo<S: Scalar>(&self, parameters: &Parameters, weights: &mut [S]) {
        let (matrices, bias) = parameters.last_layer();
        for matrix in matrices {
            for (i, w) in weights[matrix].iter_mut().enumerate() {
                *w = S::of(w.f64() / self.std[i % self.std.len()]);
            }
        }
        let scale = self.std.iter().zip(&self.mean);
        for (b, (std, mean)) in weights[bias.unwrap_or_default()].iter_mut().zip(scale) {
            *b = S::of((b.f64() - mean) / std);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Mlp;
    use super::*;
    use crate::network::Network;
    use crate::numeric::uniform;
    use crate::{Matrix, Scratch};

    fn supervision(values: &[[f64; 2]], rows: &[usize]) -> Supervision<f64> {
        let rows_of: Vec<Vec<f64>> = values.iter().map(|row| row.to_vec()).collect();
        Supervision::of(Targets::Values(Matrix::from_rows(&rows_of).unwrap()), rows).unwrap()
    }

    #[test]
    fn only_known_entries_of_supervised_rows_set_the_scale() {
        let nan = f64::NAN;
        let rows = [[1.0, 5.0], [9e9, -9e9], [5.0, 9.0], [nan, 5.0], [nan, 9.0]];
        let all = supervision(&rows, &[0, 2, 3, 4]);
        let scale = TargetScale::of(&all).unwrap();
        assert_eq!(scale, TargetScale { mean: vec![3.0, 7.0], std: vec![2.0, 2.0] });
        let standardized = scale.standardize(&all);
        let Targets::Values(values) = standardized.targets() else { panic!("values") };
        assert_eq!((values.row(0), values.row(2)), (&[-1.0, -1.0][..], &[1.0, 1.0][..]));
        assert!(values.row(3)[0].is_nan() && values.row(3)[1] < 0.0);
        assert!(TargetScale::of(&Supervision::all(Targets::<f64>::None(3))).is_none());
        let twice = supervision(&[[1.0, 5.0], [5.0, 9.0], [5.0, 9.0]], &[0, 1, 2]);
        let weighed = supervision(&[[1.0, 5.0], [5.0, 9.0], [9e9, 9e9]], &[0, 1, 2]);
        let weighed = weighed.with_weights(&[1.0, 2.0, 0.0]).unwrap();
        assert_eq!(TargetScale::of(&twice), TargetScale::of(&weighed));
    }

    #[test]
    fn weights_that_predict_the_standardized_predict_the_targets_after_undoing() {
        let mlp = Mlp::new(3, 2, Network::one_hidden(4), 0.0);
        let mut weights = vec![0.0; mlp.parameters().weights()];
        mlp.parameters().initialize(&mut uniform(2), &mut weights);
        let rows: Vec<f64> = (0..9).map(|i| f64::from(i) * 0.1).collect();
        let (mut small, mut large) = (Matrix::zeros(3, 2), Matrix::zeros(3, 2));
        let scratch = Scratch::new();
        mlp.forward(&weights, rows[..].into(), &mut small, &scratch);
        let scale = TargetScale { mean: vec![1000.0, -0.5], std: vec![3.0, 0.01] };
        scale.undo(mlp.parameters(), &mut weights);
        mlp.forward(&weights, rows[..].into(), &mut large, &scratch);
        for (small, large) in small.as_slice().chunks(2).zip(large.as_slice().chunks(2)) {
            assert!((1000.0 + 3.0 * small[0] - large[0]).abs() < 1e-9, "{small:?} {large:?}");
            assert!((-0.5 + 0.01 * small[1] - large[1]).abs() < 1e-12, "{small:?} {large:?}");
        }
        scale.redo(mlp.parameters(), &mut weights);
        let mut again = Matrix::zeros(3, 2);
        mlp.forward(&weights, rows[..].into(), &mut again, &scratch);
        for (small, again) in small.as_slice().iter().zip(again.as_slice()) {
            assert!((small - again).abs() < 1e-9, "{small} {again}");
        }
    }
}
