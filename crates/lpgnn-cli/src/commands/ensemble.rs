use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::Args;
use lpgnn::run::SavedModel;

use super::model::read_model;
use crate::console::{Console, print};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Run folders or model files: trainings with the same data, split and settings, but different seeds.
    #[arg(value_name = "MODEL", required = true, num_args = 2..)]
    models: Vec<PathBuf>,

    /// The model file to write.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,

    /// Overwrite FILE if it exists.
    #[arg(long)]
    force: bool,
}

pub(super) fn run(arguments: &Arguments, console: &Console) -> anyhow::Result<()> {
    let Arguments { models, out, force } = arguments;
    if out.is_dir() {
        bail!("{} is a folder, but --out is the model file to write", out.display());
    }
    if out.symlink_metadata().is_ok() && !force {
        bail!("{} exists; --force overwrites it", out.display());
    }
    let read = models.iter().map(|path| read_model(path)).collect::<anyhow::Result<Vec<_>>>()?;
    let ensemble = SavedModel::ensemble(read).with_context(|| {
        let numbered =
            (1..).zip(models).map(|(number, path)| format!("{} ({number})", path.display()));
        format!("cannot combine {}", numbered.collect::<Vec<_>>().join(", "))
    })?;
    ensemble.write(out)?;
    console.say(format_args!(
        "an ensemble of {}; lpgnn predict and lpgnn evaluate take it as a model",
        ensemble.members_of_ensemble()
    ));
    print(&format!("{}\n", out.display()))
}
