use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use lpgnn::data::{Cache, Dataset, Format, ReadOptions, Source};
use lpgnn::run::{RunConfig, Setting, settings_of_toml};

use super::data::read_format;

/// What a run is to be: data, a file of settings, settings one by one, and flags for the usual ones.
#[derive(Debug, Args)]
pub(crate) struct SettingArguments {
    /// A file or folder, or the name of a data set that is built in or was fetched; clique unless
    /// told.
    #[arg(value_name = "DATA")]
    pub(crate) data: Option<String>,

    /// A file of settings, as `lpgnn config` writes it; it need not be complete.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// One setting, as in model.state_dim=20; may be given more than once.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,

    #[command(flatten)]
    flags: Flags,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Settings")]
struct Flags {
    /// Passes over the training data.
    #[arg(long, value_name = "N")]
    epochs: Option<u64>,

    /// Where random numbers start: the same seed, the same bits.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    seed: Option<u64>,

    /// one-shot, bdmm, implicit, unrolled, sse or augmented-lagrangian.
    #[arg(long, value_name = "KIND")]
    solver: Option<String>,

    /// Learning rate of the weights.
    #[arg(long, value_name = "X", value_parser = finite)]
    lr: Option<f64>,

    /// gnn-sum, gnn-mean, gnn-normalized, gin, gcn-mean, gcn or sage-max.
    #[arg(long, value_name = "KIND")]
    transition: Option<String>,

    /// Components of a state.
    #[arg(long, value_name = "N")]
    state_dim: Option<u64>,

    /// Units of the hidden layers of the transition, as in 20 or 50,20.
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    hidden_dims: Option<Vec<u64>>,

    /// Layers of states.
    #[arg(long, value_name = "N")]
    layers: Option<u64>,

    /// Graphs per update, or none.
    #[arg(long, value_name = "N")]
    batch_size: Option<String>,

    /// Epochs between evaluation.
    #[arg(long, value_name = "N")]
    eval_every: Option<u64>,

    /// ModelEvaluation without a better one before training ends, or none.
    #[arg(long, value_name = "N")]
    patience: Option<String>,

    /// The format of the data, if it is not to be recognised by the content.
    #[arg(long, value_parser = read_format())]
    format: Option<Format>,
}

/// The settings of a run, and the data they are about.
pub(crate) struct Chosen {
    pub(crate) config: RunConfig,
    pub(crate) dataset: Dataset,
}

impl SettingArguments {
    /// Reads the data, chooses defaults for them and changes what was asked for; flags win over
    /// settings, and those over the file.
    pub(crate) fn choose(&self) -> anyhow::Result<Chosen> {
        self.choose_with(&[])
    }

    /// The same, where `first` count less than anything that was asked for.
    pub(crate) fn choose_with(&self, first: &[Setting]) -> anyhow::Result<Chosen> {
        let mut settings = first.to_vec();
        settings.extend(self.settings()?);
        let (source, dataset) = self.data(&settings)?;
        let config = config_for(&source, &dataset, &settings)?;
        Ok(Chosen { config, dataset })
    }

    /// What was asked for, the most important last.
    pub(crate) fn settings(&self) -> anyhow::Result<Vec<Setting>> {
        let mut settings = match &self.config {
            Some(path) => {
                let text = std::fs::read_to_string(path)
                    .with_context(|| format!("cannot read {}", path.display()))?;
                settings_of_toml(&path.display().to_string(), &text)?
            }
            None => vec![],
        };
        for text in &self.set {
            settings.push(Setting::parse("--set", text)?);
        }
        settings.extend(self.flags.settings()?);
        Ok(settings)
    }

    fn data(&self, settings: &[Setting]) -> anyhow::Result<(String, Dataset)> {
        let set = |path: &str| {
            let setting = settings.iter().rfind(|setting| setting.path() == path);
            setting.and_then(|setting| setting.value().as_str())
        };
        let data = self.data.as_deref().or(set("data.source")).unwrap_or("clique");
        let format = match set("data.format").filter(|format| *format != "none") {
            Some(format) => Some(format.parse()?),
            None => None,
        };
        load(data, format)
    }
}

fn finite(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite());
    number.ok_or_else(|| "a finite number is expected".to_owned())
}

impl Flags {
    fn settings(&self) -> anyhow::Result<Vec<Setting>> {
        let mut settings = vec![];
        let mut add = |flag: &str, path: &str, value: Option<serde_json::Value>| {
            settings.extend(value.map(|value| Setting::new(flag, path, value)));
        };
        add("--epochs", "training.epochs", self.epochs.map(Into::into));
        add("--seed", "training.seed", self.seed.map(Into::into));
        add("--solver", "training.solver.kind", self.solver.clone().map(Into::into));
        add("--lr", "training.solver.weights.lr", self.lr.map(Into::into));
        add("--transition", "model.transition", self.transition.clone().map(Into::into));
        add("--state-dim", "model.state-dim", self.state_dim.map(Into::into));
        add("--hidden-dims", "model.hidden-dims", self.hidden_dims.clone().map(Into::into));
        add("--layers", "model.layers", self.layers.map(Into::into));
        add("--eval-every", "training.eval-every", self.eval_every.map(Into::into));
        add("--format", "data.format", self.format.map(|format| format.as_str().into()));
        for (flag, path, value) in [
            ("--batch-size", "training.batch-size", &self.batch_size),
            ("--patience", "training.patience", &self.patience),
        ] {
            if let Some(value) = value {
                let setting = Setting::parse(flag, &format!("{path}={value}"))?;
                settings.push(setting);
            }
        }
        Ok(settings)
    }
}

/// The data somebody means, and how to name them from any folder.
pub(crate) fn load(data: &str, format: Option<Format>) -> anyhow::Result<(String, Dataset)> {
    let source = Source::find(data, &Cache::of_user()?)?;
    let dataset = source.load(&ReadOptions { format })?;
    let name = match &source {
        Source::Path(path) => absolute(path).display().to_string(),
        Source::Builtin(builtin) => builtin.as_str().to_owned(),
    };
    Ok((name, dataset))
}

fn absolute(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// The defaults for these data, changed by settings.
pub(crate) fn config_for(
    source: &str,
    dataset: &Dataset,
    settings: &[Setting],
) -> anyhow::Result<RunConfig> {
    let mut config = RunConfig::for_data(source, dataset, settings).with(settings)?;
    source.clone_into(&mut config.data.source);
    Ok(config)
}
