use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use lpgnn::run::{RunConfig, write_file};
use serde_json::Value;

/// A folder of results that are made one by one, so that what is done is not done again.
#[derive(Debug)]
pub(crate) struct ResultFolder(PathBuf);

const PLAN: &str = "plan.json";

impl ResultFolder {
    /// The folder `out`, new or with results of the same plan; or the next free one in `runs`.
    pub(crate) fn open(
        out: Option<&Path>,
        name: &str,
        plan: &Value,
        config: &RunConfig,
    ) -> anyhow::Result<Self> {
        let path = match out {
            Some(path) => path.to_owned(),
            None => (1..=u64::MAX)
                .map(|number| Path::new("runs").join(format!("{name}-{number}")))
                .find(|path| !path.exists())
                .context("there is no free number left")?,
        };
        let folder = Self(path);
        let plan_file = folder.file(PLAN);
        if let Ok(text) = std::fs::read_to_string(&plan_file) {
            if serde_json::from_str::<Value>(&text).ok().as_ref() == Some(plan) {
                return Ok(folder);
            }
            bail!("{} has results of other data or settings", folder.path().display());
        }
        let taken = std::fs::read_dir(folder.path()).is_ok_and(|mut all| all.next().is_some());
        if taken {
            bail!("{} is not empty, and not a folder of results", folder.path().display());
        }
        std::fs::create_dir_all(folder.path())
            .with_context(|| format!("cannot create {}", folder.path().display()))?;
        write_file(&folder.file("settings.toml"), config.to_toml().as_bytes())?;
        // Last, since with it the folder is one of results.
        write_file(&plan_file, format!("{plan}\n").as_bytes())?;
        Ok(folder)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}
