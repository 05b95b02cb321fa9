//! Metrics, and evaluation protocols.

mod baseline;
mod classes;
mod protocol;
mod values;

pub use baseline::{Baseline, BaselineReport, BaselineScore};
pub use classes::{ClassMetrics, Confusion, auc, probabilities};
pub use protocol::{MeanAndStd, Protocol, best_mean_epoch};
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
        loss: f64,
        /// The confusion matrix: a row per true class, a column per predicted class.
        confusion: Vec<Vec<usize>>,
        /// Precision, recall and F1 of every class, in the order of the confusion matrix.
        per_class: Vec<ClassMetrics>,
    },
    /// Metrics of real values.
    Values {
        /// Number of nodes or graphs with known values.
        count: usize,
        /// The mean of `(y − target)²`.
        #[serde(deserialize_with = "crate::nan::number")]
        mean_squared_error: f64,
        /// The mean of `abs(y − target)`.
        #[serde(deserialize_with = "crate::nan::number")]
        mean_absolute_error: f64,
        /// `R²`, the share of the variance that is explained; none when nothing varies.
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
                let pairs = known.iter().flat_map(|&row| {
                    outputs.row(row).iter().zip(values.row(row)).map(|(y, t)| (y.f64(), t.f64()))
                });
                let errors = ValueErrors::of(pairs);
                let per_target = (0..outputs.cols()).map(|column| {
                    let pair = |&row: &usize| {
                        (outputs.row(row)[column].f64(), values.row(row)[column].f64())
                    };
                    ValueErrors::of(known.iter().map(pair))
                });
                Ok(Self::Values {
                    count: known.len(),
                    mean_squared_error: errors.mean_squared,
                    mean_absolute_error: errors.mean_absolute,
                    r_squared: errors.r_squared,
                    per_target: per_target.collect(),
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
        let rows: Vec<(usize, Vec<f64>)> = known
            .iter()
            .map(|&row| (class[row] as usize, probabilities(outputs.row(row))))
            .collect();
        let loss = rows.iter().map(|(class, p)| -p[*class].max(f64::MIN_POSITIVE).ln());
        Self::Classes {
            count: known.len(),
            accuracy: confusion.accuracy(),
            balanced_accuracy: confusion.balanced_accuracy(),
            macro_f1: confusion.macro_f1(),
            auc: if classes == 2 { auc(rows.iter().map(|(c, p)| (p[1], *c == 1))) } else { None },
            loss: loss.sum::<f64>() / rows.len() as f64,
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
    fn targets_of_another_width_are_a_mismatch() {
        let targets = Targets::<f32>::classes(3, vec![0, 1]).unwrap();
        assert!(Metrics::of(&targets, &Matrix::zeros(2, 2)).is_err());
        assert!(Metrics::of(&Targets::<f32>::None(0), &Matrix::zeros(0, 0)).is_err());
    }
}
