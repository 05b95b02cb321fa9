//! The metric that selects the epoch.

use crate::evaluate::Metrics;
use crate::readout::Supervision;
use crate::{Matrix, Scalar};

/// The metric of the validation split by which the best epoch is selected.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Monitor {
    /// Accuracy, with ties broken by the loss; for real values the loss.
    #[default]
    Auto,
    /// Accuracy.
    Accuracy,
    /// Mean recall over classes, for imbalanced classes.
    BalancedAccuracy,
    /// Mean F1 over classes.
    MacroF1,
    /// Area under the ROC curve, for two classes.
    Auc,
    /// Mean loss.
    Loss,
    /// Explained share of the variance of real values.
    R2,
}

impl Monitor {
    /// Its name, as in a configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Accuracy => "accuracy",
            Self::BalancedAccuracy => "balanced-accuracy",
            Self::MacroF1 => "macro-f1",
            Self::Auc => "auc",
            Self::Loss => "loss",
            Self::R2 => "r2",
        }
    }

    /// Its name in a sentence.
    pub fn title(self) -> &'static str {
        match self {
            Self::Auto | Self::Accuracy => "accuracy",
            Self::BalancedAccuracy => "balanced accuracy",
            Self::MacroF1 => "macro F1",
            Self::Auc => "AUC",
            Self::Loss => "loss",
            Self::R2 => "R²",
        }
    }

    /// Whether whole trainings are compared by it too, instead of by accuracy: the loss only selects the epoch.
    pub fn compares_trainings(self) -> bool {
        !matches!(self, Self::Auto | Self::Accuracy | Self::Loss)
    }

    /// The metric of these outputs, or the negative loss: larger is better. None if it is not defined
    /// for these targets, and of `auto`, which is not one number.
    pub(crate) fn of<S: Scalar>(
        self,
        supervision: &Supervision<S>,
        outputs: &Matrix<S>,
    ) -> Option<f64> {
        match self {
            Self::Auto => return None,
            Self::Loss => return Some(-supervision.mean_loss(outputs)),
            _ => {}
        }
        let counts = supervision.counts();
        let rows: Vec<usize> = (0..counts.len()).filter(|&row| counts[row] > S::ZERO).collect();
        let targets = supervision.targets().select(rows.iter().copied());
        match (self, Metrics::of(&targets, &outputs.select(rows.iter().copied())).ok()?) {
            (Self::Accuracy, Metrics::Classes { accuracy, .. }) => Some(accuracy),
            (Self::BalancedAccuracy, Metrics::Classes { balanced_accuracy, .. }) => {
                Some(balanced_accuracy)
            }
            (Self::MacroF1, Metrics::Classes { macro_f1, .. }) => Some(macro_f1),
            (Self::Auc, Metrics::Classes { auc, .. }) => auc,
            (Self::R2, Metrics::Values { r_squared, .. }) => r_squared,
            _ => None,
        }
    }
}
