use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::Args;
use lpgnn::data::parts::{Parts, is_in_parts};
use lpgnn::data::{Cache, Dataset, Format, ReadOptions, Source, Split};
use lpgnn::run::{RunConfig, Setting, SplitSource, notes, read_text, settings_of_toml};

use super::flags::Flags;
use crate::console::Console;
use crate::ranks;

/// How a run is configured: data, a settings file, single settings, and flags for common ones.
#[derive(Debug, Args)]
pub(crate) struct SettingArguments {
    /// A file or folder, or the name of a built-in or downloaded data set [default: clique].
    #[arg(value_name = "DATA")]
    pub(crate) data: Option<String>,

    /// A settings file, as printed by `lpgnn config`; it may be partial.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// A single setting, such as model.state-dim=20; may be repeated.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,

    #[command(flatten)]
    flags: Flags,
}

/// The settings of a run, and its data.
pub(crate) struct Chosen {
    pub(crate) config: RunConfig,
    pub(crate) dataset: Dataset,
    /// The settings that were made.
    pub(crate) settings: Vec<Setting>,
}

impl Chosen {
    /// Says what should be known before training on this split.
    pub(crate) fn tell_notes(&self, split: &Split, console: &Console) -> anyhow::Result<()> {
        for note in notes(&self.config, &self.settings, &self.dataset, split)? {
            console.say(format_args!("note: {note}"));
        }
        Ok(())
    }
}

impl SettingArguments {
    /// Reads the data, chooses their defaults and applies the given settings: flags take precedence
    /// over `--set`, and `--set` over the file.
    pub(crate) fn choose(&self) -> anyhow::Result<Chosen> {
        self.choose_with(&[])
    }

    /// The same, where the settings of `first` have the lowest precedence.
    pub(crate) fn choose_with(&self, first: &[Setting]) -> anyhow::Result<Chosen> {
        let mut settings = first.to_vec();
        settings.extend(self.settings()?);
        let (source, dataset) = self.data(&settings)?;
        Self::chosen(&source, dataset, settings)
    }

    /// The same by all ranks together, each of which has its nodes of a graph in parts.
    pub(crate) fn choose_shared(&self) -> anyhow::Result<Chosen> {
        let read = || {
            let settings = self.settings()?;
            let (data, format) = self.source(&settings)?;
            anyhow::Ok((settings, Loading::start(&data, format)?))
        };
        let (settings, loading) = ranks::agree(read())?;
        ranks::agree(
            loading.finish().and_then(|(source, dataset)| Self::chosen(&source, dataset, settings)),
        )
    }

    fn chosen(source: &str, dataset: Dataset, settings: Vec<Setting>) -> anyhow::Result<Chosen> {
        let config = config_for(source, &dataset, &settings)?;
        if config.split.source == SplitSource::Given {
            bail!(lpgnn::Error::Option {
                option: "split.source",
                value: "given".into(),
                expected: "that split exists only in the run it was given to; use data or ratio"
                    .into(),
            });
        }
        Ok(Chosen { config, dataset, settings })
    }

    /// The given settings, in order of increasing precedence.
    pub(crate) fn settings(&self) -> anyhow::Result<Vec<Setting>> {
        let mut settings = match &self.config {
            Some(path) => {
                let text = read_text(path)?;
                settings_of_toml(&path.display().to_string(), &text)?
            }
            None => vec![],
        };
        let names_data = settings.iter().any(|setting| setting.path() == "data.source");
        if self.data.is_some() && names_data {
            // The format is that of the file's data, not of DATA.
            settings.retain(|setting| !["data.source", "data.format"].contains(&setting.path()));
        }
        for text in &self.set {
            let setting = Setting::parse("--set", text)?;
            if let (Some(data), "data.source") = (&self.data, setting.path()) {
                let problem =
                    format!("DATA is {data}, but {text} names other data; give one of them");
                bail!(lpgnn::Error::Config { origin: "--set".into(), problem });
            }
            settings.push(setting);
        }
        settings.extend(self.flags.settings());
        Ok(settings)
    }

    /// The data of DATA, which takes precedence over a settings file, or of the settings.
    fn data(&self, settings: &[Setting]) -> anyhow::Result<(String, Dataset)> {
        let (data, format) = self.source(settings)?;
        load(&data, format)
    }

    fn source(&self, settings: &[Setting]) -> anyhow::Result<(String, Option<Format>)> {
        let asked = RunConfig::default().with(settings)?.data;
        Ok((self.data.clone().unwrap_or(asked.source), asked.format))
    }
}

/// Data that all ranks read: every rank the whole of them, or its own nodes of a graph in parts.
pub(crate) enum Loading {
    Whole(String, Box<Dataset>),
    Parts(String, Box<Parts>),
}

impl Loading {
    /// What a rank does by itself. All ranks have to [agree](ranks::agree) on it before they go on.
    pub(crate) fn start(data: &str, format: Option<Format>) -> anyhow::Result<Self> {
        let path = Path::new(data);
        if format.is_some() || !is_in_parts(path) {
            let (name, dataset) = load(data, format)?;
            return Ok(Self::Whole(name, Box::new(dataset)));
        }
        let job = ranks::or_alone();
        let parts = Parts::read(path, job.rank(), job.ranks())?.unchanged()?;
        Ok(Self::Parts(absolute(path).display().to_string(), Box::new(parts)))
    }

    /// What they do together.
    pub(crate) fn finish(self) -> anyhow::Result<(String, Dataset)> {
        match self {
            Self::Whole(name, dataset) => Ok((name, *dataset)),
            Self::Parts(name, parts) => Ok((name, parts.shared_by(&ranks::or_alone())?)),
        }
    }
}

/// [`Loading`] from its start to its end.
pub(crate) fn load_shared(data: &str, format: Option<Format>) -> anyhow::Result<(String, Dataset)> {
    ranks::agree(ranks::agree(Loading::start(data, format))?.finish())
}

/// The named data, and a name for them that is valid in any folder.
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

/// The defaults for these data, overridden by `settings`.
pub(crate) fn config_for(
    source: &str,
    dataset: &Dataset,
    settings: &[Setting],
) -> anyhow::Result<RunConfig> {
    Ok(RunConfig::choose(source, dataset, settings)?)
}
