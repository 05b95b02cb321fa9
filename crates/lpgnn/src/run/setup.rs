use std::borrow::Cow;
use std::sync::Arc;

use super::{RunConfig, SplitConfig, SplitSource, fingerprint};
use crate::Error;
use crate::data::parts::{GraphInParts, PartsInfo};
use crate::data::{Dataset, Encoding, Level, Ratio, Split, TargetColumn};
use crate::lagrangian::Model;
use crate::readout::TargetScale;
use crate::registry::Registry;
use crate::train::{TrainingData, TrainingPlan};

/// Everything that training needs, made from a configuration and the data it names.
#[derive(Debug)]
pub struct Setup {
    /// Whose targets are predicted.
    pub task: Level,
    /// How the data are encoded as features.
    pub encoding: Encoding,
    /// The training, validation and test split; of own nodes, where this process has no others.
    pub split: Split,
    /// The encoded data.
    pub data: TrainingData<f32>,
    /// The unit of real targets in `data`; weights that were trained on them are to
    /// [undo](TargetScale::undo) it.
    pub target_scale: Option<TargetScale>,
    /// The functions.
    pub model: Arc<Model<f32>>,
    /// How they are trained.
    pub plan: TrainingPlan,
    /// Names of the predicted values, if they are not classes.
    pub value_names: Vec<String>,
    /// The [`fingerprint`] of the data.
    pub fingerprint: String,
    /// That of the split: of all nodes, where this process has those that it owns of a graph in parts.
    pub split_fingerprint: String,
    /// How many nodes or graphs are in the training, validation and test split; likewise.
    pub split_sizes: [usize; 3],
}

impl Setup {
    /// For training by `config`. A split that is [given](SplitSource::Given) is that of `dataset`.
    ///
    /// # Errors
    ///
    /// [`Error::Option`] for a value that cannot be used, [`Error::Mismatch`] when configuration
    /// and data do not fit each other.
    pub fn new(config: &RunConfig, dataset: &Dataset) -> Result<Self, Error> {
        let given = dataset.split().filter(|_| config.split.source == SplitSource::Given);
        Self::with_registry(&Registry::default(), config, dataset, given.cloned())
    }

    /// The same with a given split.
    ///
    /// # Errors
    ///
    /// Those of [`new`](Self::new).
    pub fn with_split(config: &RunConfig, dataset: &Dataset, split: Split) -> Result<Self, Error> {
        Self::with_registry(&Registry::default(), config, dataset, Some(split))
    }

    /// The same with custom functions, and optionally a given split.
    ///
    /// # Errors
    ///
    /// Those of [`new`](Self::new).
    pub fn with_registry(
        registry: &Registry<f32>,
        config: &RunConfig,
        dataset: &Dataset,
        split: Option<Split>,
    ) -> Result<Self, Error> {
        Self::following(registry, config, dataset, split, None)
    }

    /// The same, with the encoding and the unit of real targets of the data `before`.
    pub(super) fn following(
        registry: &Registry<f32>,
        config: &RunConfig,
        dataset: &Dataset,
        split: Option<Split>,
        before: Option<(&Encoding, Option<&TargetScale>)>,
    ) -> Result<Self, Error> {
        let plan = config.training.clone().check()?;
        let task = Level::of_task(config.data.task, dataset)?;
        let info = dataset.in_parts().map(GraphInParts::info);
        info.map_or(Ok(()), |info| check_parts(config, info))?;
        let split = match (split, info.and(dataset.split())) {
            (Some(split), _) => split,
            (None, Some(own)) => own.clone(),
            (None, None) => config.split.divide(dataset, task)?,
        };
        split.check(dataset.nodes(), dataset.graphs())?;
        let encoding = match (before, info) {
            (Some((encoding, _)), _) => encoding.clone(),
            (None, Some(info)) => info.encoding.clone(),
            (None, None) => Encoding::for_split(dataset, &config.features, &split)?,
        };
        let batch = encoding.batch::<f32>(dataset)?;
        let mut data = TrainingData::new(&batch, &split, task)?;
        if let Some(weights) = dataset.weights() {
            data = data.with_weights(weights, &batch)?;
        }
        let model = Arc::new(config.model.build_with(registry, data.dims())?);
        let linear = model.readout().is_linear_in_last_layer();
        let target_scale = match before {
            Some((_, scale)) => scale.inspect(|scale| data.standardize_targets_by(scale)).cloned(),
            None if linear => match info {
                None => data.standardize_targets(),
                Some(info) => {
                    let scale = info.target_scale.as_ref();
                    scale.inspect(|scale| data.standardize_targets_by(scale)).cloned()
                }
            },
            None => None,
        };
        let value_names = match task.targets(dataset) {
            Some(TargetColumn::Values { names, .. }) => names.clone(),
            _ => vec![],
        };
        let fingerprint = fingerprint(dataset);
        let (split_fingerprint, split_sizes) = match info {
            None => (split.fingerprint(), [&split.train, &split.val, &split.test].map(Vec::len)),
            Some(info) => (info.split_fingerprint.clone(), info.split_sizes),
        };
        Ok(Self {
            task,
            encoding,
            split,
            data,
            target_scale,
            model,
            plan,
            value_names,
            fingerprint,
            split_fingerprint,
            split_sizes,
        })
    }
}

impl Setup {
    /// The split, as a run keeps it; none of a graph in parts, which keeps it itself.
    pub(crate) fn split_to_keep(&self) -> Cow<'_, Split> {
        if self.data.training_graphs().across().is_none() {
            return Cow::Borrowed(&self.split);
        }
        Cow::Owned(Split { level: Level::Node, train: vec![], val: vec![], test: vec![] })
    }
}

/// # Errors
///
/// [`Error::Mismatch`] when features or split are to be others than those that were written with the parts.
fn check_parts(config: &RunConfig, info: &PartsInfo) -> Result<(), Error> {
    let changed = if config.features == info.features {
        (config.split != info.split).then_some("split")
    } else {
        Some("features")
    };
    match changed {
        None => Ok(()),
        Some(what) => Err(Error::Mismatch(format!(
            "the {what} settings are not those that {} was partitioned with, and a graph in parts keeps its {what}",
            info.name
        ))),
    }
}

impl SplitConfig {
    /// The split that it asks for. One that is [given](SplitSource::Given) is that of `dataset`.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`] when the data are to have one and do not, [`Error::Option`] for shares
    /// that are none.
    pub fn divide(&self, dataset: &Dataset, task: Level) -> Result<Split, Error> {
        match (self.source, self.of_data(dataset, task)) {
            (_, Some(split)) => Ok(split.clone()),
            (SplitSource::Given, None) => Err(Error::Mismatch(format!(
                "the split of the {} of {} was given at training and is not known here",
                task.plural(),
                dataset.name()
            ))),
            (SplitSource::Data, None) => Err(Error::Mismatch(format!(
                "{} comes without a split of its {}",
                dataset.name(),
                task.plural()
            ))),
            _ => {
                let ratio = Ratio { train: self.train, val: self.val, test: self.test };
                Split::by_ratio(dataset, task.of_split(dataset), ratio, self.seed)
            }
        }
    }

    /// The split of the data, if it is the one that is used.
    pub(super) fn of_data<'d>(&self, dataset: &'d Dataset, task: Level) -> Option<&'d Split> {
        let usable = |split: &&Split| !(task == Level::Graph && split.level == Level::Node);
        match self.source {
            SplitSource::Given => dataset.split(),
            SplitSource::Auto | SplitSource::Data => dataset.split().filter(usable),
            SplitSource::Ratio => None,
        }
    }
}
