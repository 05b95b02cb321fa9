use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

use super::EpochMetrics;
use crate::data::Split;
use crate::experiment::record::{Items, RunRecord};
use crate::experiment::work_folder::{FolderLock, create, is_empty};
use crate::input::in_the_way;
use crate::run::{RunConfig, read_text, remove_parts, write_file};
use crate::train::StopReason;
use crate::{Error, Place};

/// The folder of a run; to write to it takes its lock.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    lock: Option<FolderLock>,
    /// Of a rank that leaves writing to the first one.
    follows: bool,
}

const ALL: [&str; 8] = [
    RunFolder::RECORD,
    RunFolder::ITEMS,
    RunFolder::MODEL,
    RunFolder::CHECKPOINT,
    RunFolder::METRICS,
    RunFolder::LOG,
    RunFolder::SPLIT,
    RunFolder::CONFIG,
];

impl RunFolder {
    /// Every setting, as used.
    pub const CONFIG: &'static str = "config.toml";
    /// The training, validation and test split.
    pub const SPLIT: &'static str = "split.json";
    /// The weights of the best epoch and all that prediction needs.
    pub const MODEL: &'static str = "model.safetensors";
    /// The state of training.
    pub const CHECKPOINT: &'static str = "checkpoint.safetensors";
    /// A line per epoch.
    pub const METRICS: &'static str = "metrics.jsonl";
    /// The log.
    pub const LOG: &'static str = "log.txt";
    /// The record.
    pub const RECORD: &'static str = "record.json";
    /// Single nodes or graphs, for a report.
    pub const ITEMS: &'static str = "items.json";

    /// A new folder for a run.
    pub(super) fn create(path: &Path) -> Result<Self, Error> {
        let folder = Self { path: path.to_owned(), lock: None, follows: false };
        // The split is written first: a folder that has nothing else is of no run yet.
        if is_empty(path, &[Self::SPLIT])? {
            create(path)?;
            return folder.lock();
        }
        Err(folder.problem(if folder.is_run() {
            "is already a run; it can be resumed or replaced"
        } else {
            "is neither a run nor empty, so it is left alone"
        }))
    }

    /// The folder of a run that the first of several ranks writes to, and this one does not.
    pub(super) fn followed(path: &Path) -> Self {
        Self { path: path.to_owned(), lock: None, follows: true }
    }

    /// The same folder, to which only the first of several ranks writes.
    #[must_use]
    pub fn following(self) -> Self {
        Self { follows: true, ..self }
    }

    /// Whether files are written.
    pub(super) fn writes(&self) -> bool {
        !self.follows
    }

    /// Whether it has settings and a split that can be read: many programs have a `config.toml`.
    fn is_run(&self) -> bool {
        self.config().is_ok() && matches!(self.split(), Ok(Some(_)))
    }

    /// The same in place of a run.
    pub(super) fn replace(path: &Path) -> Result<Self, Error> {
        let folder = Self { path: path.to_owned(), lock: None, follows: false };
        if !folder.is_run() {
            return Self::create(path);
        }
        let folder = folder.lock()?;
        // All of them or none.
        let stuck = |name: &&&str| folder.file(name).symlink_metadata().is_ok_and(|f| f.is_dir());
        if let Some(name) = ALL.iter().find(stuck) {
            return Err(folder.problem(&format!("has a folder in place of its file {name}")));
        }
        remove_parts(&folder.file(Self::CHECKPOINT), None);
        for name in ALL {
            match fs::remove_file(folder.file(name)) {
                Err(source) if source.kind() != ErrorKind::NotFound => {
                    return Err(Error::Io { action: "replace", path: path.to_owned(), source });
                }
                _ => {}
            }
        }
        Ok(folder)
    }

    /// Opens an existing run for reading.
    ///
    /// # Errors
    ///
    /// [`Error::Folder`] when it is not a run.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let folder = Self { path: path.to_owned(), lock: None, follows: false };
        match [Self::CONFIG, Self::SPLIT].into_iter().find(|name| !folder.file(name).exists()) {
            None => Ok(folder),
            Some(name) => Err(folder.problem(&format!("is not a run: it has no {name}"))),
        }
    }

    /// The same, for writing.
    pub(super) fn lock(mut self) -> Result<Self, Error> {
        if self.lock.is_none() && self.writes() {
            self.lock = Some(FolderLock::take(&self.path)?);
        }
        Ok(self)
    }

    pub(super) fn problem(&self, problem: &str) -> Error {
        Error::Folder { path: self.path.clone(), problem: problem.into() }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of a file in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    pub(super) fn write_config(&self, config: &RunConfig) -> Result<(), Error> {
        if !self.writes() {
            return Ok(());
        }
        write_file(&self.file(Self::CONFIG), config.to_toml().as_bytes())
    }

    /// Every setting, as used.
    ///
    /// # Errors
    ///
    /// [`Error::Io`], [`Error::Config`]
    pub fn config(&self) -> Result<RunConfig, Error> {
        let path = self.file(Self::CONFIG);
        let text = read_text(&path)?;
        RunConfig::from_toml(&path.display().to_string(), &text)
    }

    pub(super) fn write_split(&self, split: &Split) -> Result<(), Error> {
        self.write_json(Self::SPLIT, serde_json::to_string(split))
    }

    /// The training, validation and test split; none in a folder that does not have it.
    ///
    /// # Errors
    ///
    /// [`Error::Io`]; [`Error::Input`] when the file is not a split.
    pub fn split(&self) -> Result<Option<Split>, Error> {
        self.read_json(Self::SPLIT, "a split")
    }

    pub(super) fn write_record(&self, record: &RunRecord) -> Result<(), Error> {
        self.write_json(Self::RECORD, serde_json::to_string_pretty(record))
    }

    /// The record of the run; none until it has finished.
    ///
    /// # Errors
    ///
    /// [`Error::Io`]; [`Error::Input`] when the file is not a record.
    pub fn record(&self) -> Result<Option<RunRecord>, Error> {
        self.read_json(Self::RECORD, "a run record")
    }

    pub(super) fn write_items(&self, items: &Items) -> Result<(), Error> {
        self.write_json(Self::ITEMS, serde_json::to_string(items))
    }

    /// Single nodes or graphs, as the saved model sees them; none until the run has finished.
    ///
    /// # Errors
    ///
    /// [`Error::Io`]; [`Error::Input`] when the file holds something else.
    pub fn items(&self) -> Result<Option<Items>, Error> {
        let items: Option<Items> = self.read_json(Self::ITEMS, "a list of nodes or graphs")?;
        if items.as_ref().is_some_and(|items| !items.is_table()) {
            let problem = "its columns have different lengths";
            return Err(Place::file(&self.file(Self::ITEMS)).error(problem));
        }
        Ok(items)
    }

    fn write_json(&self, name: &str, text: serde_json::Result<String>) -> Result<(), Error> {
        if !self.writes() {
            return Ok(());
        }
        let path = self.file(name);
        let text = text.map_err(|error| Place::file(&path).error(error.to_string()))?;
        write_file(&path, (text + "\n").as_bytes())
    }

    fn read_json<T: DeserializeOwned>(&self, name: &str, what: &str) -> Result<Option<T>, Error> {
        let path = self.file(name);
        let Some(text) = read_if_there(&path)? else { return Ok(None) };
        serde_json::from_str(&text)
            .map(Some)
            .map_err(|error| Place::file(&path).error(format!("it is not {what}: {error}")))
    }

    /// The record of a run to which nothing is left to do; none of one that can be resumed.
    ///
    /// # Errors
    ///
    /// Those of [`record`](Self::record).
    pub fn finished(&self) -> Result<Option<RunRecord>, Error> {
        let whole = self.file(Self::MODEL).exists();
        let ended = |record: &RunRecord| whole && record.stop_reason != StopReason::Stopped;
        Ok(self.record()?.filter(ended))
    }

    /// All epochs so far.
    ///
    /// # Errors
    ///
    /// [`Error::Io`]; [`Error::Input`], naming the line that is not an epoch. The last line may be half
    /// written while the run is under way, and is left out then.
    pub fn metrics(&self) -> Result<Vec<EpochMetrics>, Error> {
        if !self.writes() {
            return Ok(vec![]);
        }
        let path = self.file(Self::METRICS);
        let text = read_if_there(&path)?.unwrap_or_default();
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        let epoch = |(line, text): (u64, &str)| {
            serde_json::from_str(text).map_err(|error| {
                Place::line(&path, line).error(format!("it is not an epoch: {error}"))
            })
        };
        (1..).zip(text[..whole].lines()).map(epoch).collect()
    }

    /// The metrics, to be continued behind `epochs`: what is told of later ones goes.
    pub(super) fn metrics_from(&self, epochs: usize) -> Result<LineFile, Error> {
        let path = self.file(Self::METRICS);
        if !self.writes() {
            return Ok(LineFile { path, file: None });
        }
        let kept = keep_until(&read_if_there(&path)?.unwrap_or_default(), epochs);
        write_file(&path, kept.as_bytes())?;
        LineFile::open(path)
    }

    pub(super) fn log(&self) -> Result<LineFile, Error> {
        let path = self.file(Self::LOG);
        if self.writes() { LineFile::open(path) } else { Ok(LineFile { path, file: None }) }
    }
}

fn read_if_there(path: &Path) -> Result<Option<String>, Error> {
    match read_text(path) {
        Ok(text) => Ok(Some(text)),
        Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
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
pub(super) struct LineFile {
    path: PathBuf,
    /// None of a rank that does not write.
    file: Option<File>,
}

impl LineFile {
    fn open(path: PathBuf) -> Result<Self, Error> {
        // A folder may be a stranger's: nothing is written through its links.
        if let Some(other) = in_the_way(&path) {
            let problem = format!("it is {other}, and only files are written to");
            return Err(Place::file(&path).error(problem));
        }
        match OpenOptions::new().create(true).append(true).open(&path) {
            Ok(file) => Ok(Self { path, file: Some(file) }),
            Err(source) => Err(Error::Io { action: "write", path, source }),
        }
    }

    pub(super) fn line(&mut self, line: &str) -> Result<(), Error> {
        let Some(file) = &mut self.file else { return Ok(()) };
        file.write_all(format!("{line}\n").as_bytes()).map_err(|source| Error::Io {
            action: "write",
            path: self.path.clone(),
            source,
        })
    }

    /// Has what was written on the disk.
    pub(super) fn sync(&self) -> Result<(), Error> {
        let Some(file) = &self.file else { return Ok(()) };
        file.sync_data().map_err(|source| Error::Io {
            action: "write",
            path: self.path.clone(),
            source,
        })
    }

    pub(super) fn json(&mut self, value: &impl serde::Serialize) -> Result<(), Error> {
        let line = serde_json::to_string(value)
            .map_err(|error| Place::file(&self.path).error(error.to_string()))?;
        self.line(&line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Level;

    #[test]
    fn metrics_of_later_epochs_and_half_lines_go() {
        let text = "{\"epoch\":1}\n{\"epoch\":2}\n{\"epoch\":3}\n{\"epo";
        assert_eq!(keep_until(text, 2), "{\"epoch\":1}\n{\"epoch\":2}\n");
    }

    /// A folder that a run was begun in.
    fn begun(path: &Path) -> RunFolder {
        let folder = RunFolder::create(path).unwrap();
        let (train, none) = (vec![0, 2], vec![]);
        let split = Split { level: Level::Node, train, val: none.clone(), test: none };
        folder.write_split(&split).unwrap();
        assert_eq!(folder.split().unwrap(), Some(split));
        assert!(RunFolder::open(path).is_err(), "it has no settings yet");
        folder.write_config(&RunConfig::default()).unwrap();
        folder
    }

    #[test]
    fn nothing_is_overwritten_unless_asked() {
        let place = tempfile::tempdir().unwrap();
        let run = place.path().join("run");
        let folder = begun(&run);
        assert!(RunFolder::create(&run).is_err());
        assert!(RunFolder::replace(&run).is_err(), "somebody is at work there");
        drop(folder);
        assert!(RunFolder::replace(&run).is_ok());
        fs::write(run.join("thesis.tex"), "years of work").unwrap();
        assert!(RunFolder::replace(&run).is_err());
        assert!(run.join("thesis.tex").exists());
    }

    #[test]
    fn only_a_run_is_replaced_and_only_its_own_files() {
        let place = tempfile::tempdir().unwrap();
        let (site, run) = (place.path().join("site"), place.path().join("run"));
        fs::create_dir(&site).unwrap();
        for (name, text) in [("config.toml", "title = \"mine\""), ("log.txt", "mine")] {
            fs::write(site.join(name), text).unwrap();
        }
        for config in ["title = \"mine\"", ""] {
            fs::write(site.join("config.toml"), config).unwrap();
            let said = RunFolder::replace(&site).unwrap_err().to_string();
            assert!(said.ends_with("is neither a run nor empty, so it is left alone"), "{said}");
            assert!(RunFolder::open(&site).is_err());
        }
        assert_eq!(fs::read_to_string(site.join("log.txt")).unwrap(), "mine");

        drop(begun(&run));
        fs::write(run.join("plot.svg"), "mine").unwrap();
        drop(RunFolder::replace(&run).unwrap());
        let mut left: Vec<_> =
            fs::read_dir(&run).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, [".lock", "plot.svg"]);
    }

    #[test]
    fn a_folder_left_before_there_were_settings_can_be_used() {
        let place = tempfile::tempdir().unwrap();
        drop(begun(place.path()));
        fs::remove_file(place.path().join(RunFolder::CONFIG)).unwrap();
        assert!(RunFolder::create(place.path()).is_ok());
    }

    #[cfg(unix)]
    #[test]
    fn the_log_of_a_run_is_not_written_through_a_link() {
        let place = tempfile::tempdir().unwrap();
        let run = RunFolder::create(&place.path().join("run")).unwrap();
        let thesis = place.path().join("thesis.tex");
        for exists in [false, true] {
            if exists {
                fs::write(&thesis, "years of work").unwrap();
            }
            let _ = fs::remove_file(run.file(RunFolder::LOG));
            std::os::unix::fs::symlink(&thesis, run.file(RunFolder::LOG)).unwrap();
            let error = run.log().unwrap_err().to_string();
            assert!(
                error.ends_with("log.txt: it is a link, and only files are written to"),
                "{error}"
            );
        }
        assert_eq!(fs::read(&thesis).unwrap(), b"years of work");
    }
}
