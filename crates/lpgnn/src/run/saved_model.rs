//! A trained model: its functions, its weights, and what it knows of its training.

use std::sync::Arc;

use super::{EnsembleMember, Setup, SplitConfig, fingerprint};
use crate::Error;
use crate::data::{Dataset, Encoding, Split};
use crate::graph::Level;
use crate::lagrangian::Model;
use crate::train::{ModelConfig, TrainingConfig};

/// A trained model with all that is needed to use it.
#[derive(Clone, Debug, PartialEq)]
pub struct SavedModel {
    /// The version of this library that trained it.
    pub version: String,
    /// Whose targets it predicts.
    pub task: Level,
    /// How many classes or values it predicts.
    pub outputs: usize,
    /// Names of the values, if it does not predict classes.
    pub value_names: Vec<String>,
    /// Its functions.
    pub model: ModelConfig,
    /// How it was trained, and how states of new graphs are found.
    pub training: TrainingConfig,
    /// How data are encoded as features.
    pub encoding: Encoding,
    /// The training data.
    pub data: DataOrigin,
    /// How the training data were split.
    pub split: SplitConfig,
    /// The split itself: which nodes or graphs were trained on. None in files that do not tell.
    pub members: Option<Split>,
    /// The epoch of its weights.
    pub epoch: usize,
    /// The weights of all functions.
    pub weights: Vec<f32>,
    /// The other members, if it is an [ensemble](Self::ensemble()).
    pub ensemble: Vec<EnsembleMember>,
    /// What else is to be kept with the model, such as the history of its training; null if nothing is.
    pub notes: serde_json::Value,
    pub(super) functions: Functions,
    pub(super) max_iter: Option<usize>,
}

/// The functions that `model` names, built once.
#[derive(Clone, Debug)]
pub(super) struct Functions(pub(super) Arc<Model<f32>>);

/// They follow from the other fields.
impl PartialEq for Functions {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// The data a model was trained on.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct DataOrigin {
    /// The name of the data.
    pub name: String,
    /// Their [`fingerprint`](super::fingerprint).
    pub fingerprint: String,
    /// The [fingerprint](Split::fingerprint) of their split; empty where that is not known.
    #[serde(default)]
    pub split: String,
}

impl SavedModel {
    /// The model that training by a setup has led to.
    pub fn new(
        setup: &Setup,
        config: &super::RunConfig,
        name: &str,
        epoch: usize,
        mut weights: Vec<f32>,
    ) -> Self {
        if let Some(scale) = &setup.target_scale {
            let readout = setup.model.readout().parameters();
            scale.undo(readout, &mut weights[setup.model.readout_weights()]);
        }
        Self {
            version: env!("CARGO_PKG_VERSION").into(),
            task: setup.task,
            outputs: setup.data.outputs(),
            value_names: setup.value_names.clone(),
            model: config.model.clone(),
            training: config.training.clone(),
            encoding: setup.encoding.clone(),
            data: DataOrigin {
                name: name.into(),
                fingerprint: setup.fingerprint.clone(),
                split: setup.split_fingerprint.clone(),
            },
            split: config.split,
            // Of a graph in parts, this process knows the split of its own nodes only.
            members: setup.data.training_graphs().across().is_none().then(|| setup.split.clone()),
            epoch,
            weights,
            ensemble: vec![],
            notes: serde_json::Value::Null,
            functions: Functions(setup.model.clone()),
            max_iter: None,
        }
    }

    /// The same, trained by another split than that of its setup: one that has a test split too.
    #[must_use]
    pub fn with_split(mut self, split: Split) -> Self {
        self.data.split = split.fingerprint();
        self.members = Some(split);
        self
    }

    /// The split of these data that it was trained by; none where that is not known: because it was
    /// trained on other data, or its file does not tell.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`] when its file tells of members that the data do not have.
    pub fn split_of(&self, dataset: &Dataset) -> Result<Option<&Split>, Error> {
        let Some(split) = &self.members else { return Ok(None) };
        if fingerprint(dataset) != self.data.fingerprint {
            return Ok(None);
        }
        split.check(dataset.nodes(), dataset.graphs())?;
        Ok(Some(split))
    }

    /// Names of the classes, if it predicts classes.
    pub fn classes(&self) -> Option<&[String]> {
        match self.task {
            Level::Node => self.encoding.node_classes(),
            Level::Graph => self.encoding.graph_classes(),
        }
    }

    /// Its functions.
    pub fn functions(&self) -> &Model<f32> {
        &self.functions.0
    }

    /// The same model, but states of new graphs are found in at most `max_iter` iterations per layer,
    /// whatever its settings say. Without this, it is what its settings say and at most
    /// [`MOST_ITERATIONS`](super::MOST_ITERATIONS).
    #[must_use]
    pub fn with_max_iter(self, max_iter: usize) -> Self {
        Self { max_iter: Some(max_iter), ..self }
    }
}
