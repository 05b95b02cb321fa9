use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use lpgnn::run::{RunConfig, write_file};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::work_folder::{FolderLock, create_next, is_empty};

/// A folder of results that are made one by one, so that what is done is not done again.
#[derive(Debug)]
pub(crate) struct ResultFolder {
    path: PathBuf,
    #[expect(dead_code, reason = "it is held, not read")]
    lock: FolderLock,
}

const PLAN: &str = "plan.json";
const SETTINGS: &str = "settings.toml";

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
            None => create_next(Path::new("runs"), name)?,
        };
        let shown = path.display();
        match std::fs::read_to_string(path.join(PLAN)) {
            Ok(text) if serde_json::from_str::<Value>(&text).ok().as_ref() == Some(plan) => {}
            Ok(_) => bail!("{shown} has results of other data or settings"),
            Err(_) if is_empty(&path)? => {
                std::fs::create_dir_all(&path).with_context(|| format!("cannot create {shown}"))?;
            }
            Err(_) => bail!("{shown} is not empty, and not a folder of results"),
        }
        let folder = Self { lock: FolderLock::take(&path)?, path };
        if !folder.has(PLAN) {
            // First, since with it the folder is one of results.
            folder.save(PLAN, plan)?;
        }
        if !folder.has(SETTINGS) {
            write_file(&folder.file(SETTINGS), config.to_toml().as_bytes())?;
        }
        Ok(folder)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.file(name).exists()
    }

    /// Takes all results out, and what there is of others.
    pub(crate) fn clear(&self) -> anyhow::Result<()> {
        let cannot = || format!("cannot clear {}", self.path.display());
        for entry in std::fs::read_dir(&self.path).with_context(cannot)? {
            let path = entry.with_context(cannot)?.path();
            let result = path.extension().is_some_and(|end| end == "json" || end == "safetensors");
            if result && !path.ends_with(PLAN) {
                std::fs::remove_file(path).with_context(cannot)?;
            }
        }
        Ok(())
    }

    /// Writes a result, as JSON.
    pub(crate) fn save(&self, name: &str, value: &impl Serialize) -> anyhow::Result<()> {
        let text = serde_json::to_string(value)? + "\n";
        Ok(write_file(&self.file(name), text.as_bytes())?)
    }

    /// Reads what [`save`](Self::save) wrote.
    pub(crate) fn read<T: DeserializeOwned>(&self, name: &str) -> anyhow::Result<T> {
        let path = self.file(name);
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        serde_json::from_str(&text).with_context(|| format!("{} is no result", path.display()))
    }
}
