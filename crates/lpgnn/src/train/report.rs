use super::SplitName;
use crate::lagrangian::Evaluation;
use crate::numeric::worse;

/// What an epoch was like.
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
    /// Of the training part, what share the output puts into its class, from the trained states.
    pub trained_accuracy: Option<f64>,
    /// The largest absolute value of a multiplier.
    #[serde(deserialize_with = "crate::nan::number")]
    pub largest_multiplier: f64,
    /// Lengths of `∂𝓛/∂θ`, `∂𝓛/∂X`, `∂𝓛/∂Λ` at the last update.
    #[serde(deserialize_with = "crate::nan::three")]
    pub gradient_norms: [f64; 3],
    /// What was found on converged states, if it was looked for in this epoch.
    pub evaluation: Option<ModelEvaluation>,
}

/// A mean residual up to which constraints count as met, per mean size of a state if that is above 1.
const MET: f64 = 1e-2;

impl EpochReport {
    /// Whether states are near enough to the f_x of `f_a`: rectified units have states of any
    /// size, so a residual is compared with them.
    pub fn constraints_met(&self) -> bool {
        self.residual_mean <= MET * self.state_mean.max(1.0)
    }
}

/// What the model does on states that are found afresh, from zero, with the weights of an epoch.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct ModelEvaluation {
    /// One score per part of the split.
    pub parts: Vec<(SplitName, SplitMetrics)>,
    /// How many graphs did not converge, over all parts.
    pub not_converged: usize,
    /// An estimate of the spectral radius of `∂f_a/∂x` on the training graphs.
    #[serde(deserialize_with = "crate::nan::number")]
    pub spectral_radius: f64,
    /// Training accuracy from trained states minus that from converged ones: near zero in a model
    /// that is to be used on new graphs.
    pub cheating_gap: Option<f64>,
}

/// How well a part is predicted.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct SplitMetrics {
    /// The mean loss.
    #[serde(deserialize_with = "crate::nan::number")]
    pub loss: f64,
    /// The share of right classes; none for real values.
    pub accuracy: Option<f64>,
}

impl SplitMetrics {
    /// Whether it is better than another: more right classes, or the same with less loss.
    pub fn beats(&self, other: &Self) -> bool {
        match (self.accuracy, other.accuracy) {
            (Some(a), Some(b)) if (a - b).abs() > f64::EPSILON => a > b,
            _ => self.loss < other.loss || (other.loss.is_nan() && !self.loss.is_nan()),
        }
    }
}

impl ModelEvaluation {
    /// The score of a part.
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
