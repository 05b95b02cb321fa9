//! Ensembles: one model, trained several times from different seeds, whose predictions are averaged.

use super::SavedModel;
use crate::evaluate::ensemble_outputs;
use crate::inference::FixedPoint;
use crate::{Error, Matrix};

/// What another training of the same model has led to.
#[derive(Clone, Debug, PartialEq)]
pub struct EnsembleMember {
    /// The seed it was trained with.
    pub seed: u64,
    /// The epoch of its weights.
    pub epoch: usize,
    /// The weights of all functions.
    pub weights: Vec<f32>,
}

impl SavedModel {
    /// The ensemble of these models, or of all members of those that are ensembles. It predicts the mean of their probabilities, or
    /// of their values: see [`ensemble_outputs`]. Its residuals are the largest of its members', its states those of the first.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`] when there are fewer than two members, when two have the same weights, or when models differ in anything
    /// but their seed and what it has led to: functions, encoding of the data, training data, split, or how states are found.
    pub fn ensemble(models: Vec<Self>) -> Result<Self, Error> {
        let mut models = models.into_iter();
        let Some(mut first) = models.next() else { return Err(too_few(0)) };
        for (number, other) in (2..).zip(models) {
            if let Some(what) = first.difference(&other) {
                return Err(Error::Mismatch(format!(
                    "model {number} cannot join an ensemble with model 1: {what}"
                )));
            }
            let (own, others) = other.into_members();
            first.ensemble.push(own);
            first.ensemble.extend(others);
        }
        let weights: Vec<&[f32]> = first.member_weights().collect();
        for (number, later) in weights.iter().enumerate() {
            if let Some(before) = weights[..number].iter().position(|before| before == later) {
                return Err(Error::Mismatch(format!(
                    "members {} and {} of the ensemble are the same: models that were trained with different seeds are expected",
                    before + 1,
                    number + 1
                )));
            }
        }
        if weights.len() < 2 {
            return Err(too_few(weights.len()));
        }
        // They are about the training of one member.
        first.notes = serde_json::Value::Null;
        Ok(first)
    }

    /// The number of members; 1 for a model that is no ensemble.
    pub fn members_of_ensemble(&self) -> usize {
        1 + self.ensemble.len()
    }

    /// That it is no ensemble.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`], which says that `what` needs a single model.
    pub fn check_single(&self, what: &str) -> Result<(), Error> {
        if self.ensemble.is_empty() {
            return Ok(());
        }
        Err(Error::Mismatch(format!(
            "the model is an ensemble of {}, and {what} needs a single model: use one of those that it was made of",
            self.members_of_ensemble()
        )))
    }

    /// The weights of all members, its own first.
    pub(super) fn member_weights(&self) -> impl Iterator<Item = &[f32]> {
        let others = self.ensemble.iter().map(|member| &member.weights[..]);
        std::iter::once(&self.weights[..]).chain(others)
    }

    /// What all members find together, given the states and outputs that each finds.
    pub(super) fn together(
        &self,
        mut found: Vec<(FixedPoint, Matrix)>,
    ) -> Result<(FixedPoint, Matrix), Error> {
        if found.len() == 1 {
            return found.pop().ok_or_else(|| too_few(0));
        }
        let (fixed_points, outputs): (Vec<_>, Vec<_>) = found.into_iter().unzip();
        let fixed_point = fixed_points.into_iter().reduce(FixedPoint::worse_of);
        let outputs = ensemble_outputs(&outputs, self.classes().is_some());
        Ok((fixed_point.ok_or_else(|| too_few(0))?, outputs))
    }

    fn into_members(self) -> (EnsembleMember, Vec<EnsembleMember>) {
        let own =
            EnsembleMember { seed: self.training.seed, epoch: self.epoch, weights: self.weights };
        (own, self.ensemble)
    }

    /// In what it differs from a model that could join it, if in anything.
    fn difference(&self, other: &Self) -> Option<&'static str> {
        if (self.task, self.outputs, &self.value_names)
            != (other.task, other.outputs, &other.value_names)
        {
            return Some("it predicts something else");
        }
        if self.model != other.model {
            return Some("its functions have other settings");
        }
        if self.data != other.data {
            let same_data = self.data.fingerprint == other.data.fingerprint;
            return Some(if same_data {
                "it was trained with another split"
            } else {
                "it was trained on other data"
            });
        }
        if self.encoding != other.encoding {
            return Some("it encodes the data in another way");
        }
        (self.training.inference != other.training.inference)
            .then(|| "it finds states in another way")
    }
}

fn too_few(members: usize) -> Error {
    Error::Mismatch(format!(
        "an ensemble has at least two members, but there {}",
        match members {
            0 => "is none".to_owned(),
            count => format!("is {count}"),
        }
    ))
}
