use super::SplitName;
use crate::lagrangian::Evaluation;
use crate::numeric::worse;

/// The metrics of an epoch.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct EpochReport {
    /// Counted from 1.
    pub epoch: usize,
    /// `w Σ_S loss`, over all updates of the epoch.
    #[serde(deserialize_with = "crate::nan::number")]
    pub loss: f64,
    /// `Σ λ · G(x − f_a)`, over all updates of the epoch.
    #[serde(deserialize_with = "crate::nan::number")]
    pub constraint: f64,
    /// The mean of `abs(x − f_a)`.
    #[serde(deserialize_with = "crate::nan::number")]
    pub residual_mean: f64,
    /// The largest `abs(x − f_a)`.
    #[serde(deserialize_with = "crate::nan::number")]
    pub residual_max: f64,
    /// The mean of `abs(x)`.
    #[serde(default, deserialize_with = "crate::nan::number")]
    pub state_mean: f64,
    /// Accuracy on the training split, from the trained states.
    pub trained_accuracy: Option<f64>,
    /// The largest absolute value of a multiplier.
    #[serde(deserialize_with = "crate::nan::number")]
    pub largest_multiplier: f64,
    /// Norms of `∂𝓛/∂θ`, `∂𝓛/∂X`, `∂𝓛/∂Λ` at the last update.
    #[serde(deserialize_with = "crate::nan::three")]
    pub gradient_norms: [f64; 3],
    /// The evaluation on converged states, if this epoch was evaluated.
    pub evaluation: Option<ModelEvaluation>,
}

/// Mean residual up to which constraints count as met, relative to the mean size of a state if that is above 1.
const MET: f64 = 1e-2;

impl EpochReport {
    /// Whether states are close enough to `f_a(x)`. Rectified units have states of any size, so the
    /// residual is compared with their size.
    pub fn constraints_met(&self) -> bool {
        self.residual_mean <= MET * self.state_mean.max(1.0)
    }
}

/// The evaluation of an epoch's weights on states converged from zero.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct ModelEvaluation {
    /// The metrics of every split.
    pub parts: Vec<(SplitName, SplitMetrics)>,
    /// Number of graphs that did not converge, over all splits.
    pub not_converged: usize,
    /// An estimate of the spectral radius of `∂f_a/∂x` on the training graphs; none where it was not measured.
    pub spectral_radius: Option<f64>,
    /// Training accuracy from trained states minus that from converged ones: near zero for a model
    /// that generalises to new graphs.
    pub cheating_gap: Option<f64>,
    /// Number of training graphs that the cheating gap was measured on, and the metrics of the training split before
    /// the last evaluation; none: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<usize>,
}

/// The metrics of a split.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct SplitMetrics {
    /// The mean loss.
    #[serde(deserialize_with = "crate::nan::number")]
    pub loss: f64,
    /// The accuracy; none for real values.
    pub accuracy: Option<f64>,
}

impl SplitMetrics {
    /// Whether it is better than another: a higher accuracy, or the same with a lower loss.
    pub fn beats(&self, other: &Self) -> bool {
        match (self.accuracy, other.accuracy) {
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
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EpochSums {
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
        &self,
        epoch: usize,
        largest_multiplier: f64,
        gradient_norms: [f64; 3],
    ) -> EpochReport {
        let (right, all) = self.correct;
        EpochReport {
            epoch,
            loss: self.loss,
            constraint: self.constraint,
            residual_mean: self.residual_sum / self.components.max(1.0),
            residual_max: self.residual_max,
            state_mean: self.state_sum / self.components.max(1.0),
            trained_accuracy: (all > 0).then(|| right as f64 / all as f64),
            largest_multiplier,
            gradient_norms,
            evaluation: None,
        }
    }
}
