use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use lpgnn::run::{RunConfig, write_file};

use crate::summary::Summary;
use crate::work_folder::{FolderLock, create_next, is_empty};

/// The folder of a run; to write to it takes its lock.
#[derive(Debug)]
pub(crate) struct RunFolder {
    path: PathBuf,
    lock: Option<FolderLock>,
}

pub(crate) const CONFIG: &str = "config.toml";
pub(crate) const MODEL: &str = "model.safetensors";
pub(crate) const CHECKPOINT: &str = "checkpoint.safetensors";
pub(crate) const METRICS: &str = "metrics.jsonl";
pub(crate) const LOG: &str = "log.txt";
pub(crate) const SUMMARY: &str = "summary.json";
const ALL: [&str; 6] = [SUMMARY, MODEL, CHECKPOINT, METRICS, LOG, CONFIG];

impl RunFolder {
    /// A new folder for a run: `out`, or the next one called after the data in `runs`.
    pub(crate) fn create(out: Option<&Path>, name: &str, force: bool) -> anyhow::Result<Self> {
        if let Some(path) = out {
            return Self::create_at(path, force);
        }
        let path = create_next(Path::new("runs"), name)?;
        Self { path, lock: None }.lock()
    }

    fn create_at(path: &Path, force: bool) -> anyhow::Result<Self> {
        let folder = Self { path: path.to_owned(), lock: None };
        let taken = !is_empty(path)?;
        if taken && !folder.file(CONFIG).exists() {
            bail!("{} is no run and not empty, so it is left alone", path.display());
        }
        if taken && !force {
            bail!(
                "{} is a run already; --resume continues it, --force replaces it",
                path.display()
            );
        }
        fs::create_dir_all(path).with_context(|| format!("cannot create {}", path.display()))?;
        let folder = folder.lock()?;
        for name in ALL {
            match fs::remove_file(folder.file(name)) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(error)
                        .with_context(|| format!("cannot replace {}", path.display()));
                }
                _ => {}
            }
        }
        Ok(folder)
    }

    /// A run that is there, to be looked at.
    pub(crate) fn open(path: &Path) -> anyhow::Result<Self> {
        let folder = Self { path: path.to_owned(), lock: None };
        if folder.file(CONFIG).exists() {
            Ok(folder)
        } else {
            bail!("{} is no run: it has no {CONFIG}", path.display());
        }
    }

    /// The same, to be written to.
    pub(crate) fn lock(mut self) -> anyhow::Result<Self> {
        self.lock = Some(FolderLock::take(&self.path)?);
        Ok(self)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    pub(crate) fn write_config(&self, config: &RunConfig) -> anyhow::Result<()> {
        Ok(write_file(&self.file(CONFIG), config.to_toml().as_bytes())?)
    }

    pub(crate) fn read_config(&self) -> anyhow::Result<RunConfig> {
        let path = self.file(CONFIG);
        let text =
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(RunConfig::from_toml(&path.display().to_string(), &text)?)
    }

    pub(crate) fn write_summary(&self, summary: &Summary) -> anyhow::Result<()> {
        let text = serde_json::to_string_pretty(summary)? + "\n";
        Ok(write_file(&self.file(SUMMARY), text.as_bytes())?)
    }

    /// None while the run has not ended.
    pub(crate) fn read_summary(&self) -> anyhow::Result<Option<Summary>> {
        let path = self.file(SUMMARY);
        match fs::read_to_string(&path) {
            Ok(text) => {
                let broken = || format!("{} is no summary of a run", path.display());
                serde_json::from_str(&text).map(Some).with_context(broken)
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
        }
    }

    /// The metrics of all epochs so far.
    pub(crate) fn read_metrics(&self) -> anyhow::Result<String> {
        let path = self.file(METRICS);
        match fs::read_to_string(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(String::new()),
            read => read.with_context(|| format!("cannot read {}", path.display())),
        }
    }

    /// The metrics, to be continued behind `epochs`: what is told of later ones goes.
    pub(crate) fn metrics_from(&self, epochs: usize) -> anyhow::Result<LineFile> {
        let path = self.file(METRICS);
        let kept = keep_until(&self.read_metrics()?, epochs);
        write_file(&path, kept.as_bytes())?;
        LineFile::open(path)
    }

    pub(crate) fn log(&self) -> anyhow::Result<LineFile> {
        LineFile::open(self.file(LOG))
    }
}

/// The whole lines that are about an epoch up to this one.
fn keep_until(text: &str, epochs: usize) -> String {
    let epoch = |line: &str| -> Option<u64> {
        serde_json::from_str::<serde_json::Value>(line).ok()?["epoch"].as_u64()
    };
    text.lines()
        .filter(|line| epoch(line).is_some_and(|epoch| epoch <= epochs as u64))
        .flat_map(|line| [line, "\n"])
        .collect()
}

/// A file that grows by lines.
#[derive(Debug)]
pub(crate) struct LineFile {
    path: PathBuf,
    file: File,
}

impl LineFile {
    fn open(path: PathBuf) -> anyhow::Result<Self> {
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self { path, file })
    }

    pub(crate) fn line(&mut self, line: &str) -> anyhow::Result<()> {
        self.file
            .write_all(format!("{line}\n").as_bytes())
            .with_context(|| format!("cannot write {}", self.path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_of_later_epochs_and_half_lines_go() {
        let text = "{\"epoch\":1}\n{\"epoch\":2}\n{\"epoch\":3}\n{\"epo";
        assert_eq!(keep_until(text, 2), "{\"epoch\":1}\n{\"epoch\":2}\n");
    }

    #[test]
    fn nothing_is_overwritten_unless_asked() {
        let place = tempfile::tempdir().unwrap();
        let run = place.path().join("run");
        let folder = RunFolder::create(Some(&run), "x", false).unwrap();
        fs::write(folder.file(CONFIG), "").unwrap();
        assert!(RunFolder::create(Some(&run), "x", false).is_err());
        assert!(RunFolder::create(Some(&run), "x", true).is_err(), "somebody is at work there");
        drop(folder);
        assert!(RunFolder::create(Some(&run), "x", true).is_ok());
        fs::write(run.join("thesis.tex"), "years of work").unwrap();
        assert!(RunFolder::create(Some(&run), "x", true).is_err());
        assert!(run.join("thesis.tex").exists());
    }
}
