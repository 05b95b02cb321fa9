use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::Args;
use lpgnn::data::{Dataset, Format};
use lpgnn::experiment::run::RunFolder;
use lpgnn::run::{Predictions, SavedModel};
use serde_json::Value;

use super::data::read_format;
use super::functions;
use super::settings::load_shared;
use crate::console::Console;
use crate::count::positive;
use crate::ranks;
use crate::slow::Waiting;

/// A model and the data to apply it to.
#[derive(Debug, Args)]
pub(crate) struct ModelArguments {
    /// A run folder or a model file.
    #[arg(value_name = "MODEL")]
    model: PathBuf,

    /// A file or folder, or the name of a built-in or downloaded data set.
    #[arg(value_name = "DATA")]
    data: String,

    /// The format of DATA [default: recognised by content].
    #[arg(long, value_parser = read_format())]
    format: Option<Format>,

    /// Maximum number of iterations per layer when states are computed [default: the model's, up to
    /// 100000].
    #[arg(long, value_name = "N", value_parser = positive)]
    max_iter: Option<NonZeroUsize>,
}

/// A model applied to data.
pub(crate) struct Used {
    pub(crate) model: SavedModel,
    pub(crate) dataset: Dataset,
    pub(crate) predictions: Predictions,
}

impl ModelArguments {
    /// Applies the model to the data; with `targets`, the data must have targets.
    pub(crate) fn apply(&self, targets: bool, console: &Console) -> anyhow::Result<Used> {
        self.apply_and_keep(targets, false, console)
    }

    /// The same without targets, and keeps the states.
    pub(crate) fn apply_keeping_states(&self, console: &Console) -> anyhow::Result<Used> {
        self.apply_and_keep(false, true, console)
    }

    fn apply_and_keep(
        &self,
        targets: bool,
        states: bool,
        console: &Console,
    ) -> anyhow::Result<Used> {
        let mut model = ranks::agree(read_model(&self.model))?;
        if let Some(max_iter) = self.max_iter {
            model = model.with_max_iter(max_iter.get());
        }
        let (_, dataset) = load_shared(&self.data, self.format)?;
        if targets && model.task.targets(&dataset).is_none() {
            bail!(
                "the model predicts {0}, but the {0} of {1} have no targets to compare with",
                model.task.plural(),
                dataset.name()
            );
        }
        let mut waiting = Waiting::new(console);
        let (job, tell) = (ranks::communicator(), &mut |progress| waiting.tell(progress));
        let predicted = if states || job.is_some() {
            model.predict_shared(&dataset, targets, job.as_ref(), tell)
        } else {
            model.predict_without_states(&dataset, targets, tell)
        };
        drop(waiting);
        let predictions = predicted.map_err(|error| {
            let fits = matches!(error, lpgnn::Error::Memory { .. });
            let error = anyhow::Error::from(error);
            let unfit = || format!("{} does not fit {}", dataset.name(), self.model.display());
            if fits { error } else { error.context(unfit()) }
        })?;
        let failures = predictions.fixed_point.failures();
        if failures > 0 {
            console.say(format_args!(
                "note: the states of {failures} of {} graphs did not converge; do not trust \
                 their predictions",
                dataset.graphs()
            ));
        }
        Ok(Used { model, dataset, predictions })
    }
}

/// The model of a run or a model file.
pub(super) fn read_model(path: &Path) -> anyhow::Result<SavedModel> {
    if !path.is_dir() {
        return Ok(SavedModel::read_with(&functions(), path)?);
    }
    let file = path.join(RunFolder::MODEL);
    if !file.exists() && path.join(RunFolder::CONFIG).exists() {
        bail!(
            "{0} has no model yet; run `lpgnn train --resume {0}` to finish training",
            path.display()
        );
    }
    if !file.exists() {
        bail!(
            "{} is neither a run nor a model: it contains neither {} nor {}",
            path.display(),
            RunFolder::CONFIG,
            RunFolder::MODEL
        );
    }
    Ok(SavedModel::read_with(&functions(), &file)?)
}

impl Used {
    /// The name of a graph, or its index.
    pub(crate) fn graph(&self, graph: usize) -> Value {
        self.dataset.graph_name(graph).map_or_else(|| graph.into(), Into::into)
    }

    /// The name of a node within its graph, or its index.
    pub(crate) fn node(&self, row: usize) -> Value {
        self.dataset.node_name(row).map_or_else(|| self.place(row).1.into(), Into::into)
    }

    /// The graph of a predicted node or graph, and the index within it.
    pub(crate) fn place(&self, row: usize) -> (usize, usize) {
        let starts = self.dataset.node_starts();
        let graph = starts.partition_point(|&start| start <= row).saturating_sub(1);
        (graph, row - starts[graph])
    }
}
