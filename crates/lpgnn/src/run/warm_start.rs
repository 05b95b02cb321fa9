use super::{Checkpoint, RunConfig, Setting, Setup, TrainingOrigin, fingerprint};
use crate::Error;
use crate::data::{Dataset, Encoding, Level, Split};
use crate::lagrangian::Model;
use crate::readout::TargetScale;
use crate::registry::Registry;
use crate::run::bundle::Bundle;
use crate::train::{Trainer, TrainerState};

/// What a training leaves behind for another one to go on from, on the same graphs or on others.
///
/// The functions, the encoding of the data and the unit of real targets stay the same, and training goes on with the
/// weights and what the optimiser remembers of them. On the same training graphs it goes on with their states
/// and multipliers, too.
#[derive(Clone, Debug)]
pub struct WarmStart {
    origin: TrainingOrigin,
    kept: Kept,
    state: TrainerState<f32>,
}

/// What is kept beside a checkpoint.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
struct Kept {
    encoding: Encoding,
    target_scale: Option<TargetScale>,
    /// The fingerprint of the training graphs, whatever their targets.
    graphs: String,
    /// Number of training nodes.
    nodes: usize,
}

impl WarmStart {
    /// Of a training by `setup`, which ended in `state`.
    ///
    /// # Errors
    ///
    /// [`Error::RowCount`] when `dataset` is not that of the setup.
    pub fn new(
        config: &RunConfig,
        dataset: &Dataset,
        setup: &Setup,
        state: TrainerState<f32>,
    ) -> Result<Self, Error> {
        let kept = Kept {
            encoding: setup.encoding.clone(),
            target_scale: setup.target_scale.clone(),
            graphs: graphs(dataset, &setup.split)?,
            nodes: setup.data.training_graphs().nodes(),
        };
        Ok(Self { origin: TrainingOrigin::new(config.clone(), setup), kept, state })
    }

    /// Epochs that are done.
    pub fn epoch(&self) -> usize {
        self.state.epoch
    }

    /// The configuration for `epochs` more, with these settings changed.
    ///
    /// # Errors
    ///
    /// Those of [`RunConfig::with`]; [`Error::Mismatch`] when they change the functions of the model.
    pub fn config(&self, settings: &[Setting], epochs: usize) -> Result<RunConfig, Error> {
        let mut config = self.origin.config.clone().with(settings)?;
        let before = &self.origin.config;
        if config.model != before.model || config.features != before.features {
            return Err(Error::Mismatch(
                "settings of the model or of its features have changed, but training continues with the \
                 same model"
                    .into(),
            ));
        }
        config.training.epochs = self.state.epoch.saturating_add(epochs);
        Ok(config)
    }

    /// What training needs to go on with these data and their split.
    ///
    /// # Errors
    ///
    /// Those of [`Setup::new`].
    pub fn setup(&self, config: &RunConfig, dataset: &Dataset) -> Result<Setup, Error> {
        self.setup_with(&Registry::default(), config, dataset)
    }

    /// The same with the functions in `registry`.
    ///
    /// # Errors
    ///
    /// Those of [`Setup::new`].
    pub fn setup_with(
        &self,
        registry: &Registry<f32>,
        config: &RunConfig,
        dataset: &Dataset,
    ) -> Result<Setup, Error> {
        let before = (&self.kept.encoding, self.kept.target_scale.as_ref());
        let split = dataset.split().cloned();
        Setup::following(registry, config, dataset, split, Some(before))
    }

    /// A trainer that goes on.
    ///
    /// # Errors
    ///
    /// Those of [`Trainer::new`].
    pub fn trainer<'a>(&self, setup: &'a Setup, dataset: &Dataset) -> Result<Trainer<'a>, Error> {
        let trainer = Trainer::new(setup.plan.clone(), &setup.model, &setup.data)?;
        let same = self.kept.graphs == graphs(dataset, &setup.split)?;
        // States from which nothing finite follows are no place to go on from.
        if !same || self.state.variables.not_finite().is_some() {
            return trainer.warm_start(self.state.clone());
        }
        // Other targets may be trained on or validated with: what was best before is not comparable.
        trainer.resume(TrainerState { best: None, since_best: 0, ..self.state.clone() })
    }

    /// As bytes, for [`from_bytes`](Self::from_bytes).
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`] when it cannot be written in this format.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Error> {
        let mut bundle =
            Checkpoint::bundle(&self.origin, 0.0, &self.state, None).map_err(Error::Mismatch)?;
        bundle.about[KEPT] =
            serde_json::to_value(&self.kept).map_err(|error| Error::Mismatch(error.to_string()))?;
        bundle.to_bytes().map_err(Error::Mismatch)
    }

    /// That of such bytes, of a training of `model`.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`] when they are not one, or one of another model.
    pub fn from_bytes(bytes: &[u8], model: &Model<f32>) -> Result<Self, Error> {
        let problem = |problem: String| Error::Mismatch(format!("the state of training {problem}"));
        let mut bundle = Bundle::from_bytes(bytes).map_err(problem)?;
        let kept: Kept = serde_json::from_value(bundle.about[KEPT].take())
            .map_err(|error| problem(format!("cannot be read: {error}")))?;
        // Every node has a state.
        if kept.nodes > bytes.len() {
            return Err(problem(format!("is too short for {} nodes", kept.nodes)));
        }
        let Checkpoint { origin, state, .. } =
            Checkpoint::of_bundle(bundle, model, kept.nodes).map_err(problem)?;
        Ok(Self { origin, kept, state })
    }
}

/// The name under which it is kept.
const KEPT: &str = "warm_start";

/// The fingerprint of the training graphs, whatever their targets.
fn graphs(dataset: &Dataset, split: &Split) -> Result<String, Error> {
    let graphs = fingerprint(&dataset.clone().with_targets(None, None)?.with_weights(None)?);
    Ok(match split.level {
        Level::Node => graphs,
        Level::Graph => {
            let train = Split { val: vec![], test: vec![], ..split.clone() };
            format!("{graphs} {}", train.fingerprint())
        }
    })
}
