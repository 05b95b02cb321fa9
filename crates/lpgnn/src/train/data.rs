use std::fmt;
use std::sync::Arc;

use super::ModelDims;
use crate::data::{SampleWeights, Split};
use crate::graph::{Communicator, GraphBatch, Level};
use crate::readout::{Supervision, TargetScale};
use crate::{Error, Matrix, Scalar};

/// The data a model is trained and evaluated on: graphs, and the split each of their targets is in.
#[derive(Clone, Debug)]
pub struct TrainingData<S = f32> {
    /// What is trained on.
    pub(super) supervision: Supervision<S>,
    /// The splits to evaluate, the training split first; each with its index in `batches`.
    pub(super) scored: Vec<(SplitName, usize, Supervision<S>)>,
    /// The graphs whose states are converged for evaluation; the training graphs first.
    pub(super) batches: Vec<GraphBatch<S>>,
    /// The index of every training graph in the data.
    pub(super) graph_indices: Vec<usize>,
    pub(super) level: Level,
}

/// The name of a split.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SplitName {
    /// Fits the weights.
    Train,
    /// Selects the epoch.
    Val,
    /// Selects nothing: its metrics are only reported.
    Test,
}

impl SplitName {
    /// `train`, `val` or `test`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Val => "val",
            Self::Test => "test",
        }
    }
}

impl fmt::Display for SplitName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl<S: Scalar> TrainingData<S> {
    /// The splits of `batch`, with the targets of its nodes or of its graphs.
    ///
    /// If graphs are split, those of other splits are not seen in training. If nodes are split, all
    /// graphs are seen, but only the training targets. A validation or test split without targets is not evaluated.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`] when nothing is left to train on, or when graphs have the targets but
    /// nodes are split.
    pub fn new(batch: &GraphBatch<S>, split: &Split, level: Level) -> Result<Self, Error> {
        split.check(batch.nodes(), batch.graphs())?;
        let members = [
            (SplitName::Train, &split.train),
            (SplitName::Val, &split.val),
            (SplitName::Test, &split.test),
        ];
        let targets = |batch: &GraphBatch<S>| level.targets_of(batch).clone();
        // Without targets there is nothing to measure.
        let total = |supervision: &Supervision<S>| match batch.across() {
            None => supervision.total(),
            Some(share) => share.largest(supervision.total()),
        };
        let is_scored = |name: SplitName, supervision: &Supervision<S>| {
            let total = total(supervision);
            name == SplitName::Train || total > 0.0
        };
        let (mut batches, mut scored) = (vec![], vec![]);
        match split.level {
            Level::Graph => {
                for (name, graphs) in members {
                    let part = batch.select(graphs);
                    let supervision = Supervision::all(targets(&part));
                    if is_scored(name, &supervision) {
                        scored.push((name, batches.len(), supervision));
                        batches.push(part);
                    }
                }
            }
            Level::Node if level == Level::Graph => {
                return Err(Error::Mismatch(
                    "graphs have targets, but nodes are split; a split of graphs is expected"
                        .into(),
                ));
            }
            Level::Node => {
                batches.push(batch.clone());
                for (name, nodes) in members {
                    let supervision = Supervision::of(targets(batch), nodes)?;
                    if is_scored(name, &supervision) {
                        scored.push((name, 0, supervision));
                    }
                }
            }
        }
        let supervision = scored[0].2.clone();
        if total(&supervision) <= 0.0 {
            return Err(Error::Mismatch(format!(
                "no {} of the training split has a target",
                level.as_str()
            )));
        }
        let graph_indices = match split.level {
            Level::Graph => split.train.clone(),
            Level::Node => (0..batch.graphs()).collect(),
        };
        Ok(Self { supervision, scored, batches, graph_indices, level })
    }

    /// The same, where training targets count in the loss as often as `weights` says. Metrics do not
    /// depend on them.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`] when they are weights of nodes but graphs are predicted, or the other way
    /// round, or when nothing is left to train on.
    pub fn with_weights(
        mut self,
        weights: &SampleWeights,
        batch: &GraphBatch<S>,
    ) -> Result<Self, Error> {
        let level = self.level;
        if weights.level() != level {
            let (given, predicted) = (weights.level().plural(), level.plural());
            return Err(Error::Mismatch(format!(
                "the sample weights are those of {given}, but {predicted} are predicted"
            )));
        }
        let rows: Vec<usize> = match level {
            Level::Graph => self.graph_indices.clone(),
            Level::Node => self.graph_indices.iter().flat_map(|&g| batch.nodes_of(g)).collect(),
        };
        let weights = weights.select(&rows);
        self.supervision = self.supervision.with_weights(weights.as_slice())?;
        if self.supervision.total() <= 0.0 {
            return Err(Error::Mismatch(format!(
                "the sample weights of all {} of the training split with a target are 0",
                level.plural()
            )));
        }
        Ok(self)
    }

    /// Standardises real targets, so that those of the training split have mean 0 and standard
    /// deviation 1, and returns the scale; none for classes.
    pub fn standardize_targets(&mut self) -> Option<TargetScale> {
        let scale = TargetScale::of(&self.supervision)?;
        self.standardize_targets_by(&scale);
        Some(scale)
    }

    /// Standardises real targets by a scale that is known from elsewhere.
    pub fn standardize_targets_by(&mut self, scale: &TargetScale) {
        self.supervision = scale.standardize(&self.supervision);
        for (_, _, supervision) in &mut self.scored {
            *supervision = scale.standardize(supervision);
        }
    }

    /// The splits to evaluate, the training split first: graphs, and which of their nodes or of the graphs
    /// themselves have targets in the split.
    pub(crate) fn splits(
        &self,
    ) -> impl Iterator<Item = (SplitName, Level, &GraphBatch<S>, &Supervision<S>)> {
        self.scored.iter().map(|(name, batch, supervision)| {
            (*name, self.level, &self.batches[*batch], supervision)
        })
    }

    /// The same data, on which all ranks work together: see [`GraphBatch::shared_by`].
    #[must_use]
    pub fn shared_by(mut self, communicator: &Arc<dyn Communicator>) -> Self {
        let batches = self.batches.into_iter();
        self.batches = batches.map(|batch| batch.shared_by(communicator)).collect();
        self
    }

    /// The same data, whose nodes have more features behind their own: those that `more` finds of all nodes of some graphs.
    ///
    /// # Errors
    ///
    /// Those of [`GraphBatch::with_more_features`].
    pub fn with_more_features(
        mut self,
        more: impl Fn(&GraphBatch<S>) -> Matrix<S>,
    ) -> Result<Self, Error> {
        for batch in &mut self.batches {
            *batch = batch.with_more_features(&more(batch))?;
        }
        Ok(self)
    }

    /// The training graphs.
    pub fn training_graphs(&self) -> &GraphBatch<S> {
        &self.batches[0]
    }

    /// Number of classes or values to predict.
    pub fn outputs(&self) -> usize {
        self.supervision.targets().width()
    }

    /// Whether nodes or graphs have the targets.
    pub fn level(&self) -> Level {
        self.level
    }

    /// What a model of these data reads and predicts.
    pub fn dims(&self) -> ModelDims {
        let graphs = self.training_graphs();
        ModelDims {
            features: graphs.node_features().width(),
            edge_features: graphs.edge_features().width(),
            outputs: self.outputs(),
            level: self.level,
        }
    }

    /// Whether there is a split of this name to evaluate.
    pub fn has(&self, part: SplitName) -> bool {
        self.scored.iter().any(|(name, ..)| *name == part)
    }
}
