use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use lpgnn::data::{Dataset, Format};
use lpgnn::experiment::run::RunFolder;
use lpgnn::run::{Predictions, SavedModel, fingerprint};
use serde_json::Value;

use super::data::read_format;
use super::settings::load;
use crate::console::Console;

/// A model and the data that it is used on.
#[derive(Debug, Args)]
pub(crate) struct ModelArguments {
    /// The folder of a run, or a model file.
    #[arg(value_name = "MODEL")]
    model: PathBuf,

    /// A file or folder, or the name of a data set that is built in or was fetched.
    #[arg(value_name = "DATA")]
    data: String,

    /// The format of the data, if it is not to be recognised by the content.
    #[arg(long, value_parser = read_format())]
    format: Option<Format>,
}

/// What a model says of data.
pub(crate) struct Used {
    pub(crate) model: SavedModel,
    pub(crate) dataset: Dataset,
    pub(crate) predictions: Predictions,
}

impl ModelArguments {
    /// Uses the model on the data; with `targets`, what is to be predicted must be there.
    pub(crate) fn apply(&self, targets: bool, console: &Console) -> anyhow::Result<Used> {
        let model = read_model(&self.model)?;
        let (_, dataset) = load(&self.data, self.format)?;
        if targets && model.task.targets(&dataset).is_none() {
            bail!(
                "the model is about {0}, but the {0} of {1} have no targets to compare with",
                model.task.plural(),
                dataset.name()
            );
        }
        let predictions = model
            .predict(&dataset, targets)
            .with_context(|| format!("{} does not fit {}", dataset.name(), self.model.display()))?;
        let failures = predictions.fixed_point.failures();
        if failures > 0 {
            console.say(format_args!(
                "note: the states of {failures} of {} graphs did not converge; do not trust what is \
                 said of them",
                dataset.graphs()
            ));
        }
        Ok(Used { model, dataset, predictions })
    }
}

/// The model of a run, or of a file.
fn read_model(path: &Path) -> anyhow::Result<SavedModel> {
    if !path.is_dir() {
        return Ok(SavedModel::read(path)?);
    }
    let file = path.join(RunFolder::MODEL);
    if !file.exists() && path.join(RunFolder::CONFIG).exists() {
        bail!("{0} has no model yet; `lpgnn train --resume {0}` finishes it", path.display());
    }
    if !file.exists() {
        bail!(
            "{} is not a run or a model: it has neither {} nor {}",
            path.display(),
            RunFolder::CONFIG,
            RunFolder::MODEL
        );
    }
    Ok(SavedModel::read(&file)?)
}

impl Used {
    /// Whether these are the data that the model was trained on.
    pub(crate) fn was_trained_on(&self) -> bool {
        fingerprint(&self.dataset) == self.model.data.fingerprint
    }

    /// What a graph is called: by its name or its number.
    pub(crate) fn graph(&self, graph: usize) -> Value {
        self.dataset.graph_name(graph).map_or_else(|| graph.into(), Into::into)
    }

    /// What a node is called within its graph.
    pub(crate) fn node(&self, row: usize) -> Value {
        self.dataset.node_name(row).map_or_else(|| self.place(row).1.into(), Into::into)
    }

    /// The graph of a node or graph that something is predicted of, and its number within.
    pub(crate) fn place(&self, row: usize) -> (usize, usize) {
        let starts = self.dataset.node_starts();
        let graph = starts.partition_point(|&start| start <= row).saturating_sub(1);
        (graph, row - starts[graph])
    }
}
