//! Ensembles: one model, trained several times from different seeds, whose predictions are averaged.

use super::{RunConfig, SavedModel, SettingChange};
use crate::evaluate::ensemble_outputs;
use crate::inference::FixedPoint;
use crate::train::TrainingConfig;
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
    /// [`Error::Mismatch`] when there are fewer than two members, when two have the same seed, or when models differ in anything
    /// but their seed and what it has led to: the content of the training data, their split, or a setting.
    pub fn ensemble(models: Vec<Self>) -> Result<Self, Error> {
        let mut models = models.into_iter();
        let Some(mut first) = models.next() else { return Err(too_few(0)) };
        for (number, other) in (2..).zip(models) {
            if let Some(what) = first.difference(&other) {
                return Err(Error::Mismatch(format!(
                    "model {number} cannot join an ensemble with the first: {what}"
                )));
            }
            let (own, others) = other.into_members();
            first.ensemble.push(own);
            first.ensemble.extend(others);
        }
        let own = std::iter::once(first.training.seed);
        let seeds: Vec<u64> = own.chain(first.ensemble.iter().map(|member| member.seed)).collect();
        for (number, seed) in seeds.iter().enumerate() {
            if let Some(before) = seeds[..number].iter().position(|before| before == seed) {
                return Err(Error::Mismatch(format!(
                    "members {} and {} of the ensemble have the same seed, {seed}, but a seed of its own is expected of each",
                    before + 1,
                    number + 1
                )));
            }
        }
        if seeds.len() < 2 {
            return Err(too_few(seeds.len()));
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
    fn difference(&self, other: &Self) -> Option<String> {
        if self.task != other.task {
            let (own, other) = (self.task.plural(), other.task.plural());
            return Some(format!("it predicts {other}, the first {own}"));
        }
        if self.data.fingerprint != other.data.fingerprint {
            let (own, other) = (&self.data.name, &other.data.name);
            return Some(format!(
                "it was trained on {other}, whose content is not that of the first's {own}"
            ));
        }
        if self.data.split != other.data.split {
            return Some("it was trained with another split of the data".into());
        }
        let config = |saved: &Self| RunConfig {
            model: saved.model.clone(),
            training: TrainingConfig { seed: 0, ..saved.training.clone() },
            ..RunConfig::default()
        };
        if let Some(SettingChange { path, before, after }) =
            config(self).changes(&config(other)).into_iter().next()
        {
            return Some(format!("{path} is {after}, that of the first {before}"));
        }
        let targets = |saved: &Self| (saved.outputs, saved.value_names.clone());
        (self.encoding != other.encoding || targets(self) != targets(other))
            .then(|| "it encodes the data in another way".into())
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
