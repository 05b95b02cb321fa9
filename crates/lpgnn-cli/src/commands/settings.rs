use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use lpgnn::data::{Cache, Dataset, Format, ReadOptions, Source};
use lpgnn::run::{RunConfig, Setting, settings_of_toml};

use super::flags::Flags;

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

    /// One setting, as in model.state-dim=20; may be given more than once.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,

    #[command(flatten)]
    flags: Flags,
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
        settings.extend(self.flags.settings());
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
