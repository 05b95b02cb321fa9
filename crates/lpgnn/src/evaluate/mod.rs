//! Metrics, and evaluation protocols.

mod baseline;
mod classes;
mod ensemble;
mod histogram;
mod protocol;
mod quantiles;
mod values;

pub use baseline::{Baseline, BaselineReport, BaselineScore};
pub use classes::{ClassMetrics, Confusion, auc, probabilities};
pub use ensemble::ensemble_outputs;
pub use histogram::Histogram;
pub use protocol::{MeanAndStd, Protocol, best_mean_epoch};
pub use quantiles::Quantiles;
pub use values::ValueErrors;

use crate::graph::Targets;
use crate::readout::largest;
use crate::{Error, Matrix, Scalar};

/// The metrics of a set of predictions.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
#[non_exhaustive]
pub enum Metrics {
    /// Metrics of classes.
    Classes {
        /// Number of nodes or graphs with a known class.
        count: usize,
        /// The accuracy.
        accuracy: f64,
        /// The balanced accuracy: the mean recall over classes.
        balanced_accuracy: f64,
        /// The mean over classes of F1.
        macro_f1: f64,
        /// The area under the ROC curve of the second class; for two classes that both occur.
        auc: Option<f64>,
        /// The mean of `−ln p(class)`.
        #[serde(with = "crate::nan::number")]
        loss: f64,
        /// The confusion matrix: a row per true class, a column per predicted class.
        confusion: Vec<Vec<usize>>,
        /// Precision, recall and F1 of every class, in the order of the confusion matrix.
        per_class: Vec<ClassMetrics>,
    },
    /// Metrics of real values.
    Values {
        /// Number of nodes or graphs with a known value.
        count: usize,
        /// The mean of `(y − target)²`; of several targets, the mean over targets, as of all below.
        #[serde(with = "crate::nan::number")]
        mean_squared_error: f64,
        /// The mean of `abs(y − target)`.
        #[serde(with = "crate::nan::number")]
        mean_absolute_error: f64,
        /// `R²`, the share of the variance that is explained; none when nothing varies.
        #[serde(default, with = "crate::nan::optional")]
        r_squared: Option<f64>,
        /// The errors of every target, one per column.
        per_target: Vec<ValueErrors>,
    },
}

impl Metrics {
    /// The metrics of `outputs`, over the rows that have a target.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`] when no row has a target or the outputs have another shape.
    pub fn of<S: Scalar>(targets: &Targets<S>, outputs: &Matrix<S>) -> Result<Self, Error> {
        if targets.width() == 0 {
            return Err(Error::Mismatch(
                "the targets are not what the model predicts: classes cannot be compared with real values".into(),
            ));
        }
        if (targets.rows(), targets.width()) != (outputs.rows(), outputs.cols()) {
            return Err(Error::Mismatch(format!(
                "{} outputs of {} components cannot be compared to {} targets of {}",
                outputs.rows(),
                outputs.cols(),
                targets.rows(),
                targets.width()
            )));
        }
        let known: Vec<usize> = (0..targets.rows()).filter(|&row| targets.is_known(row)).collect();
        if known.is_empty() {
            return Err(Error::Mismatch("there are no targets to compare with".into()));
        }
        match targets {
            Targets::Classes { classes, class } => {
                Ok(Self::of_classes(*classes, class, outputs, &known))
            }
            Targets::Values(values) => {
                let per_target = (0..outputs.cols()).map(|column| {
                    let pair = |&row: &usize| {
                        (outputs.row(row)[column].f64(), values.row(row)[column].f64())
                    };
                    ValueErrors::of(known.iter().map(pair).filter(|(_, t)| t.is_finite()))
                });
                let per_target: Vec<ValueErrors> = per_target.collect();
                let mean = |error: fn(&ValueErrors) -> Option<f64>| {
                    // A target of which nothing is known here has no error.
                    let found = per_target.iter().filter(|errors| errors.count > 0);
                    let found: Vec<f64> = found.filter_map(error).collect();
                    MeanAndStd::of(&found).map(|errors| errors.mean)
                };
                Ok(Self::Values {
                    count: known.len(),
                    mean_squared_error: mean(|e| Some(e.mean_squared)).unwrap_or(f64::NAN),
                    mean_absolute_error: mean(|e| Some(e.mean_absolute)).unwrap_or(f64::NAN),
                    r_squared: mean(|e| e.r_squared),
                    per_target,
                })
            }
            Targets::None(_) => Err(Error::Mismatch("there are no targets".into())),
        }
    }

    fn of_classes<S: Scalar>(
        classes: usize,
        class: &[u32],
        outputs: &Matrix<S>,
        known: &[usize],
    ) -> Self {
        let pairs = known.iter().map(|&row| (class[row] as usize, largest(outputs.row(row))));
        let confusion = Confusion::new(classes, pairs);
        // One row at a time: there may be more of them than fit into memory twice.
        let rows =
            || known.iter().map(|&row| (class[row] as usize, probabilities(outputs.row(row))));
        // Of certainty, 0 and not −0.
        let loss = rows().map(|(class, p)| 0.0 - p[class].max(f64::MIN_POSITIVE).ln());
        Self::Classes {
            count: known.len(),
            accuracy: confusion.accuracy(),
            balanced_accuracy: confusion.balanced_accuracy(),
            macro_f1: confusion.macro_f1(),
            auc: if classes == 2 { auc(rows().map(|(c, p)| (p[1], c == 1))) } else { None },
            loss: loss.sum::<f64>() / known.len() as f64,
            confusion: confusion.rows().map(<[usize]>::to_vec).collect(),
            per_class: confusion.per_class(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::NO_TARGET;

    #[test]
    fn rows_without_a_target_do_not_count() {
        let targets = Targets::classes(2, vec![0, NO_TARGET, 1]).unwrap();
        let outputs =
            Matrix::from_rows(&[vec![2.0, 0.0], vec![0.0, 9.0], vec![1.0, 0.0_f64]]).unwrap();
        let Metrics::Classes { count, accuracy, auc, .. } =
            Metrics::of(&targets, &outputs).unwrap()
        else {
            panic!("classes have metrics of classes");
        };
        assert_eq!((count, auc), (2, Some(1.0)));
        assert!((accuracy - 0.5).abs() < 1e-12);
    }

    #[test]
    fn the_loss_of_certainty_is_zero_without_a_sign() {
        let outputs = Matrix::<f64>::zeros(2, 1);
        let targets = Targets::classes(1, vec![0, 0]).unwrap();
        let Metrics::Classes { loss, .. } = Metrics::of(&targets, &outputs).unwrap() else {
            panic!("classes have metrics of classes");
        };
        assert_eq!(loss.to_bits(), 0.0_f64.to_bits());
    }

    #[test]
    fn each_target_counts_where_it_is_known_and_in_its_own_unit() {
        let nan = f64::NAN;
        let targets = [vec![1.0, nan], vec![3.0, 1000.0], vec![nan, 5000.0], vec![nan, nan]];
        let targets = Targets::Values(Matrix::from_rows(&targets).unwrap());
        let outputs = [vec![1.0, 7.0], vec![3.0, 2000.0], vec![7.0, 4000.0], vec![7.0, 7.0]];
        let outputs = Matrix::from_rows(&outputs).unwrap();
        let Metrics::Values { count, mean_absolute_error, r_squared, per_target, .. } =
            Metrics::of(&targets, &outputs).unwrap()
        else {
            panic!("values have metrics of values");
        };
        assert_eq!((count, mean_absolute_error), (3, 500.0));
        assert_eq!(per_target.iter().map(|of| of.count).collect::<Vec<_>>(), [2, 2]);
        let squared: Vec<_> = per_target.iter().map(|of| of.r_squared).collect();
        assert_eq!(squared, [Some(1.0), Some(0.75)]);
        assert_eq!(r_squared, Some(0.875));
    }

    #[test]
    fn targets_of_another_width_are_a_mismatch() {
        let targets = Targets::<f32>::classes(3, vec![0, 1]).unwrap();
        assert!(Metrics::of(&targets, &Matrix::zeros(2, 2)).is_err());
        assert!(Metrics::of(&Targets::<f32>::None(0), &Matrix::zeros(0, 0)).is_err());
        // The targets of values, for a model of classes.
        let said = Metrics::of(&Targets::<f32>::None(2), &Matrix::zeros(2, 2)).unwrap_err();
        assert!(said.to_string().contains("classes cannot be compared with real values"));
    }
}
