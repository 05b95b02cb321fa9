use crate::Error;
use crate::data::{Dataset, Split};
use crate::evaluate::{Metrics, Quantiles};
use crate::graph::Level;
use crate::run::{Predictions, SavedModel};
use crate::train::SplitName;

/// The evaluation of a run's model on all graphs, on converged states, as by `lpgnn evaluate`.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct FinalEvaluation {
    /// The metrics of every split that has targets.
    pub splits: Vec<SplitEvaluation>,
    /// The distribution of the residuals of graphs.
    pub residuals: Option<Quantiles>,
    /// Convergence of every graph, in the order of the data.
    pub graphs: GraphConvergence,
}

/// The metrics of a split.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct SplitEvaluation {
    /// Which one.
    pub split: SplitName,
    /// With the confusion matrix and every class, or with every target.
    pub metrics: Metrics,
}

/// Convergence of graphs: an entry per graph.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct GraphConvergence {
    /// `max abs(x − f_a)` over its nodes and layers.
    #[serde(with = "crate::nan::numbers")]
    pub residuals: Vec<f64>,
    /// Number of applications of `f_a` to it, over all layers.
    pub iterations: Vec<usize>,
    /// Whether its residual is within the tolerance.
    pub converged: Vec<bool>,
    /// How far its states are from the fixed point at most, by the [`Certificate`](crate::inference::Certificate).
    #[serde(default, with = "crate::nan::numbers")]
    pub distances: Vec<f64>,
}

impl FinalEvaluation {
    /// Evaluates a model on the splits of the data.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`], [`Error::UnknownCategory`] when the data do not fit the model.
    pub fn new(model: &SavedModel, dataset: &Dataset, split: &Split) -> Result<Self, Error> {
        Self::of_predictions(
            model,
            &model.predict_without_states(dataset, true, &mut |_| ())?,
            dataset,
            split,
        )
    }

    /// The same of predictions that are there.
    pub(super) fn of_predictions(
        model: &SavedModel,
        predictions: &Predictions,
        dataset: &Dataset,
        split: &Split,
    ) -> Result<Self, Error> {
        let targets = match model.task {
            Level::Node => predictions.batch.node_targets(),
            Level::Graph => predictions.batch.graph_targets(),
        };
        let mut splits = vec![];
        for (name, members) in [
            (SplitName::Train, &split.train),
            (SplitName::Val, &split.val),
            (SplitName::Test, &split.test),
        ] {
            let mut rows = split.rows(members, model.task, dataset);
            rows.retain(|&row| targets.is_known(row));
            let mut outputs = predictions.outputs.select(rows.iter().copied());
            let mut targets = targets.select(rows.iter().copied());
            if let Some(share) = predictions.batch.across() {
                (outputs, targets) =
                    (share.concatenate_rows(&outputs), targets.concatenated(share));
            }
            if targets.rows() > 0 {
                let metrics = Metrics::of(&targets, &outputs)?;
                splits.push(SplitEvaluation { split: name, metrics });
            }
        }
        let found = &predictions.fixed_point;
        Ok(Self {
            splits,
            residuals: Quantiles::of(found.residuals.iter().copied()),
            graphs: GraphConvergence {
                residuals: found.residuals.clone(),
                iterations: found.graph_iterations.clone(),
                converged: found.converged.clone(),
                distances: model.distances(predictions)?,
            },
        })
    }

    /// The metrics of a split.
    pub fn of(&self, split: SplitName) -> Option<&Metrics> {
        self.splits.iter().find(|of| of.split == split).map(|of| &of.metrics)
    }
}
