use super::probabilities;
use crate::{Matrix, Scalar};

/// The outputs of an ensemble, from those of its members, a row per node or graph each:
///
/// ```text
/// classes        softmax(y) = 1/M Σ_m softmax(y_m)        y = ln of that
/// real values    y = 1/M Σ_m y_m
/// ```
///
/// Not finite where those of a member are not.
///
/// # Panics
///
/// When there is no member, or members have outputs of different shapes.
pub fn ensemble_outputs<S: Scalar>(members: &[Matrix<S>], classes: bool) -> Matrix<S> {
    let (rows, cols) = (members[0].rows(), members[0].cols());
    assert!(members.iter().all(|y| (y.rows(), y.cols()) == (rows, cols)), "one shape of outputs");
    let mut outputs = Matrix::zeros(rows, cols);
    for row in 0..rows {
        let mut mean = vec![0.0; cols];
        for member in members {
            let y = member.row(row);
            let values =
                if classes { probabilities(y) } else { y.iter().map(|y| y.f64()).collect() };
            mean.iter_mut().zip(values).for_each(|(mean, y)| *mean += y / members.len() as f64);
        }
        for (y, mean) in outputs.row_mut(row).iter_mut().zip(mean) {
            // A class that no member holds possible keeps a finite logit.
            *y = S::of(if classes { mean.max(f64::from(f32::MIN_POSITIVE)).ln() } else { mean });
        }
        if !members.iter().all(|member| member.row(row).iter().all(|y| y.f64().is_finite())) {
            outputs.row_mut(row).fill(S::of(f64::NAN));
        }
    }
    outputs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(y: &[f64]) -> Matrix<f64> {
        Matrix::from_entries(1, y.len(), y.to_vec()).unwrap()
    }

    #[test]
    fn probabilities_of_an_ensemble_are_the_mean_of_its_members() {
        let (sure, unsure) = (row(&[0.9_f64.ln(), 0.1_f64.ln()]), row(&[3.0, 3.0]));
        let found = probabilities(ensemble_outputs(&[sure.clone(), unsure], true).row(0));
        assert!((found[0] - 0.7).abs() < 1e-12 && (found[1] - 0.3).abs() < 1e-12, "{found:?}");
        let alone = probabilities(ensemble_outputs(&[sure], true).row(0));
        assert!((alone[0] - 0.9).abs() < 1e-12);
    }

    #[test]
    fn what_no_member_holds_possible_is_still_a_number() {
        let found = ensemble_outputs(&[row(&[0.0, -2000.0]), row(&[0.0, -3000.0])], true);
        assert!(found.row(0).iter().all(|y| y.is_finite()), "{found:?}");
        assert!(probabilities(found.row(0))[1] < 1e-30);
    }

    #[test]
    fn values_are_averaged_and_a_member_without_a_prediction_leaves_none() {
        assert_eq!(
            ensemble_outputs(&[row(&[1.0, -4.0]), row(&[3.0, 0.0])], false).row(0),
            [2.0, -2.0]
        );
        for classes in [false, true] {
            let found = ensemble_outputs(&[row(&[1.0, 0.0]), row(&[f64::NAN, 0.0])], classes);
            assert!(found.row(0).iter().all(|y| y.is_nan()), "{found:?}");
        }
    }
}
