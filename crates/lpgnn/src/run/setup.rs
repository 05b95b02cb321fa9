use super::{RunConfig, SplitConfig, SplitSource, Task, TaskChoice, fingerprint};
use crate::Error;
use crate::data::{Dataset, Encoding, Level, Ratio, Split, TargetColumn};
use crate::lagrangian::Model;
use crate::output::TargetScale;
use crate::train::{TrainingData, TrainingPlan};

/// Everything that training needs, made from a configuration and the data it names.
#[derive(Debug)]
pub struct Setup {
    /// Whose targets are predicted.
    pub task: Task,
    /// How the data become numbers.
    pub encoding: Encoding,
    /// What is trained, validated and tested on.
    pub split: Split,
    /// The same in numbers.
    pub data: TrainingData<f32>,
    /// The unit of real targets in `data`; weights that were trained on them are to
    /// [undo](TargetScale::undo) it.
    pub target_scale: Option<TargetScale>,
    /// The functions.
    pub model: Model<f32>,
    /// How they are trained.
    pub plan: TrainingPlan,
    /// Names of the values that are predicted, if they are no classes.
    pub value_names: Vec<String>,
    /// The [`fingerprint`] of the data.
    pub fingerprint: String,
}

impl Setup {
    /// # Errors
    ///
    /// [`Error::Option`] for a value that cannot be used, [`Error::Mismatch`] when configuration
    /// and data do not fit each other.
    pub fn new(config: &RunConfig, dataset: &Dataset) -> Result<Self, Error> {
        let task = Task::of(config.data.task, dataset)?;
        let split = config.split.divide(dataset, task)?;
        Self::with_split(config, dataset, split)
    }

    /// The same with a split from elsewhere.
    ///
    /// # Errors
    ///
    /// Those of [`new`](Self::new).
    pub fn with_split(config: &RunConfig, dataset: &Dataset, split: Split) -> Result<Self, Error> {
        let plan = config.training.clone().check()?;
        let task = Task::of(config.data.task, dataset)?;
        let encoding = Encoding::for_split(dataset, &config.features, &split)?;
        let batch = encoding.batch::<f32>(dataset)?;
        let mut data = TrainingData::new(&batch, &split, task.per_graph())?;
        let target_scale = data.standardize_targets();
        let (features, edge_features) = (encoding.node_width(), encoding.edge_width());
        let model =
            config.model.build(features, edge_features, data.outputs(), task.per_graph())?;
        let value_names = match task.targets(dataset) {
            Some(TargetColumn::Values { names, .. }) => names.clone(),
            _ => vec![],
        };
        let fingerprint = fingerprint(dataset);
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
        })
    }
}

impl Task {
    /// The task of a data set.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`] when it has no targets for it.
    pub fn of(choice: TaskChoice, dataset: &Dataset) -> Result<Self, Error> {
        let divides_nodes = dataset.split().is_some_and(|split| split.level == Level::Node);
        let task = match choice {
            TaskChoice::Nodes => Self::Nodes,
            TaskChoice::Auto if dataset.graph_targets().is_none() => Self::Nodes,
            TaskChoice::Auto if divides_nodes && dataset.node_targets().is_some() => Self::Nodes,
            TaskChoice::Auto | TaskChoice::Graphs => Self::Graphs,
        };
        match (task.targets(dataset), choice) {
            (Some(_), _) => Ok(task),
            (None, TaskChoice::Auto) => Err(Error::Mismatch(format!(
                "{} has no targets, so there is nothing to learn",
                dataset.name()
            ))),
            (None, _) => Err(Error::Mismatch(format!(
                "the {} of {} have no targets",
                task.as_str(),
                dataset.name()
            ))),
        }
    }

    /// What is to be predicted.
    pub fn targets(self, dataset: &Dataset) -> Option<&TargetColumn> {
        match self {
            Self::Nodes => dataset.node_targets(),
            Self::Graphs => dataset.graph_targets(),
        }
    }

    /// What is divided for it: whole graphs, unless there is only one. Nodes of graphs that were
    /// never seen are what is to be predicted later, too.
    pub fn level(self, dataset: &Dataset) -> Level {
        match self {
            Self::Nodes if dataset.graphs() == 1 => Level::Node,
            Self::Nodes | Self::Graphs => Level::Graph,
        }
    }
}

impl SplitConfig {
    /// The split that it asks for.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`] when the data are to have one and do not, [`Error::Option`] for shares
    /// that are none.
    pub fn divide(&self, dataset: &Dataset, task: Task) -> Result<Split, Error> {
        let usable = |split: &&Split| !(task == Task::Graphs && split.level == Level::Node);
        match (self.source, dataset.split().filter(usable)) {
            (SplitSource::Given, _) => Err(Error::Mismatch(format!(
                "the split of the {} of {} was given at training and is not known here",
                task.as_str(),
                dataset.name()
            ))),
            (SplitSource::Auto | SplitSource::Data, Some(split)) => Ok(split.clone()),
            (SplitSource::Data, None) => Err(Error::Mismatch(format!(
                "{} comes without a split of its {}",
                dataset.name(),
                task.as_str()
            ))),
            _ => {
                let ratio = Ratio { train: self.train, val: self.val, test: self.test };
                Split::by_ratio(dataset, task.level(dataset), ratio, self.seed)
            }
        }
    }
}
