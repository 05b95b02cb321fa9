//! Whether rare classes count more in the loss.

use super::{ClassWeights, TrainingConfig, TrainingData};
use crate::graph::{Share, Targets};
use crate::readout::Supervision;
use crate::{Error, Scalar};

/// The training targets, with classes weighted as configured.
pub(super) fn weighted<S: Scalar>(
    config: &TrainingConfig,
    data: &TrainingData<S>,
) -> Result<Supervision<S>, Error> {
    let supervision = data.supervision.clone();
    match config.class_weights {
        ClassWeights::Equal => Ok(supervision),
        ClassWeights::Balanced => balanced(supervision, data.training_graphs().across()),
    }
}

/// Weights with which all classes have the same total weight.
fn balanced<S: Scalar>(
    supervision: Supervision<S>,
    share: Option<&Share>,
) -> Result<Supervision<S>, Error> {
    let Targets::Classes { classes, class } = supervision.targets() else {
        let problem = "training.class-weights is balanced, which requires classes as targets";
        return Err(Error::Mismatch(problem.into()));
    };
    let mut counts = vec![0.0; *classes];
    for (&class, &count) in class.iter().zip(supervision.counts()) {
        if count > S::ZERO {
            counts[class as usize] += count.f64();
        }
    }
    if let Some(share) = share {
        let all = share.concatenate(&counts);
        let of_all = |class: usize| all.iter().skip(class).step_by(*classes).sum();
        counts = (0..*classes).map(of_all).collect();
    }
    let present = counts.iter().filter(|&&count| count > 0.0).count() as f64;
    let total: f64 = counts.iter().sum();
    let weights: Vec<f64> = counts
        .iter()
        .map(|&count| if count > 0.0 { total / (present * count) } else { 0.0 })
        .collect();
    supervision.with_class_weights(&weights)
}
