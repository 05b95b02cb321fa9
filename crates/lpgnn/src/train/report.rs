use super::{ConstraintReport, SplitName};
use crate::Matrix;
use crate::evaluate::Histogram;
use crate::lagrangian::Evaluation;
use crate::numeric::worse;

/// The metrics of an epoch.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct EpochReport {
    /// Counted from 1.
    pub epoch: usize,
    /// `w Σ_S loss`, over all updates of the epoch.
    #[serde(with = "crate::nan::number")]
    pub loss: f64,
    /// `Σ λ · G(x − f_a)`, over all updates of the epoch.
    #[serde(with = "crate::nan::number")]
    pub constraint: f64,
    /// The mean of `abs(x − f_a)`.
    #[serde(with = "crate::nan::number")]
    pub residual_mean: f64,
    /// The largest `abs(x − f_a)`.
    #[serde(with = "crate::nan::number")]
    pub residual_max: f64,
    /// The mean of `abs(x)`.
    #[serde(default, with = "crate::nan::number")]
    pub state_mean: f64,
    /// Accuracy on the training split, from the trained states.
    pub trained_accuracy: Option<f64>,
    /// The largest absolute value of a multiplier.
    #[serde(with = "crate::nan::number")]
    pub largest_multiplier: f64,
    /// The mean of `abs(λ)`.
    #[serde(default, with = "crate::nan::number")]
    pub multiplier_mean: f64,
    /// The learning rate of the weights at the last update.
    #[serde(default)]
    pub lr: Option<f64>,
    /// Norms of `∂𝓛/∂θ`, `∂𝓛/∂X`, `∂𝓛/∂Λ` at the last update.
    #[serde(with = "crate::nan::three")]
    pub gradient_norms: [f64; 3],
    /// How many nodes and graphs meet the constraints, if this epoch was evaluated.
    pub constraints: Option<ConstraintReport>,
    /// The evaluation on converged states, if this epoch was evaluated.
    pub evaluation: Option<ModelEvaluation>,
    /// Distributions, if this epoch was evaluated. No file has them.
    #[serde(skip)]
    pub histograms: Histograms,
}

/// How single numbers of an epoch are distributed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histograms {
    /// The decimal logarithm of `max abs(x − f_a)` of every node, of which all below 10⁻¹² are taken for that.
    pub log_residuals: Option<Histogram>,
    /// The multipliers `λ`; of more than 65,536, as many that are evenly spread.
    pub multipliers: Option<Histogram>,
}

/// The evaluation of an epoch's weights on states converged from zero.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct ModelEvaluation {
    /// The metrics of every split.
    pub parts: Vec<(SplitName, SplitMetrics)>,
    /// Number of graphs that did not converge, over all splits.
    pub not_converged: usize,
    /// An estimate of the spectral radius of `∂f_a/∂x` on the training graphs; none where it was not measured.
    #[serde(default, with = "crate::nan::optional")]
    pub spectral_radius: Option<f64>,
    /// Training accuracy from trained states minus that from converged ones: near zero for a model
    /// that generalises to new graphs.
    pub cheating_gap: Option<f64>,
    /// Number of training graphs that the cheating gap was measured on, and the metrics of the training split before
    /// the last evaluation; none: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<usize>,
    /// The outputs for the nodes or graphs of the validation and the test split that have a target, a row each, if the trainer
    /// [keeps](super::Trainer::keeping_outputs) them. No file has them.
    #[serde(skip)]
    pub outputs: Vec<(SplitName, Matrix)>,
}

/// The metrics of a split.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct SplitMetrics {
    /// The mean loss.
    #[serde(with = "crate::nan::number")]
    pub loss: f64,
    /// The accuracy; none for real values.
    pub accuracy: Option<f64>,
    /// Of the validation and the test split, the metric that selects the epoch, or the negative loss: larger is better. None
    /// where that is the accuracy and then the loss.
    #[serde(default, with = "crate::nan::optional")]
    pub monitored: Option<f64>,
}

impl SplitMetrics {
    /// Whether it is better than another: a better monitored metric, or a higher accuracy where none is
    /// monitored; or the same with a lower loss.
    pub fn beats(&self, other: &Self) -> bool {
        match (self.monitored.or(self.accuracy), other.monitored.or(other.accuracy)) {
            (Some(a), Some(b)) if (a - b).abs() > f64::EPSILON => a > b,
            _ => self.loss < other.loss || (other.loss.is_nan() && !self.loss.is_nan()),
        }
    }
}

impl ModelEvaluation {
    /// Whether it is of all graphs, and with the spectral radius.
    pub(super) fn is_complete(&self) -> bool {
        self.sample.is_none() && self.spectral_radius.is_some()
    }

    /// The metrics of a split.
    pub fn of(&self, part: SplitName) -> Option<&SplitMetrics> {
        self.parts.iter().find(|(name, _)| *name == part).map(|(_, score)| score)
    }
}

/// Sums over the updates of an epoch.
#[derive(Clone, Debug, Default)]
pub(super) struct EpochSums {
    /// If this epoch is to tell.
    pub(super) constraints: Option<ConstraintReport>,
    loss: f64,
    constraint: f64,
    residual_sum: f64,
    residual_max: f64,
    state_sum: f64,
    components: f64,
    correct: (usize, usize),
}

impl EpochSums {
    /// Adds an update over so many components of states.
    pub(super) fn add(&mut self, evaluation: &Evaluation, components: usize) {
        let components = components as f64;
        self.loss += evaluation.loss;
        self.constraint += evaluation.constraint;
        self.residual_sum += evaluation.residual_mean * components;
        self.residual_max = worse(self.residual_max, evaluation.residual_max);
        self.state_sum += evaluation.state_mean * components;
        self.components += components;
        self.correct.0 += evaluation.correct.0;
        self.correct.1 += evaluation.correct.1;
    }

    pub(super) fn report(
        self,
        epoch: usize,
        (largest_multiplier, multiplier_mean): (f64, f64),
        gradient_norms: [f64; 3],
        lr: Option<f64>,
    ) -> EpochReport {
        let (right, all) = self.correct;
        let (constraints, log_residuals) = self.constraints.map(ConstraintReport::finish).unzip();
        EpochReport {
            epoch,
            loss: self.loss,
            constraint: self.constraint,
            residual_mean: self.residual_sum / self.components.max(1.0),
            residual_max: self.residual_max,
            state_mean: self.state_sum / self.components.max(1.0),
            trained_accuracy: (all > 0).then(|| right as f64 / all as f64),
            largest_multiplier,
            multiplier_mean,
            lr,
            gradient_norms,
            constraints,
            evaluation: None,
            histograms: Histograms { log_residuals: log_residuals.flatten(), multipliers: None },
        }
    }
}
