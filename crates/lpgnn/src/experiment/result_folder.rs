use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::shard::Share;
use super::work_folder::{FolderLock, create, create_next, is_empty};
use crate::run::{RunConfig, SettingChange, read_text, write_file};
use crate::{Error, Place};

/// A folder of results that are written one by one, so that completed ones are not repeated.
///
/// Several processes may work in it, each with its [`Share`].
#[derive(Debug)]
pub struct ResultFolder {
    path: PathBuf,
    share: Share,
    #[expect(dead_code, reason = "it is held, not read")]
    lock: Option<FolderLock>,
}

const PLAN: &str = "plan.json";
const SETTINGS: &str = "settings.toml";
const RESULT: &str = "result.json";

impl ResultFolder {
    /// Opens a folder that is new, or has results of the same plan, to complete it.
    ///
    /// # Errors
    ///
    /// [`Error::Folder`] when it has other contents, [`Error::Locked`], [`Error::Io`].
    pub fn open(path: &Path, plan: &Value, config: &RunConfig) -> Result<Self, Error> {
        Self::open_share(path, plan, config, Share::whole())
    }

    /// The same for a share of the work, beside other processes.
    ///
    /// # Errors
    ///
    /// Those of [`open`](Self::open), when another process has the same share.
    pub fn open_share(
        path: &Path,
        plan: &Value,
        config: &RunConfig,
        share: Share,
    ) -> Result<Self, Error> {
        // Nothing is written to a folder of something else.
        check(path, plan)?;
        create(path)?;
        let folder = Self { lock: share.lock(path)?, path: path.to_owned(), share };
        // Of several processes that begin at the same time, one writes the plan.
        let _alone = folder.alone()?;
        check(path, plan)?;
        if !folder.has(PLAN) {
            // First, since with it the folder is one of results.
            folder.save(PLAN, plan)?;
        }
        if !folder.has(SETTINGS) {
            write_file(&folder.file(SETTINGS), config.to_toml().as_bytes())?;
        }
        Ok(folder)
    }

    /// Opens a folder that has results of the same plan, to put them together while other processes may add to them.
    ///
    /// # Errors
    ///
    /// [`Error::Folder`] when it has none, or other contents.
    pub fn open_existing(path: &Path, plan: &Value) -> Result<Self, Error> {
        check(path, plan)?;
        let folder = Self { path: path.to_owned(), share: Share::whole(), lock: None };
        if folder.has(PLAN) {
            return Ok(folder);
        }
        Err(Error::Folder { path: path.to_owned(), problem: "has no results".into() })
    }

    /// The next free folder `NAME-1`, `NAME-2`, … in `parent`, for a share of the work.
    ///
    /// # Errors
    ///
    /// [`Error::Io`]
    pub fn create_in(
        parent: &Path,
        name: &str,
        plan: &Value,
        config: &RunConfig,
        share: Share,
    ) -> Result<Self, Error> {
        Self::open_share(&create_next(parent, name)?, plan, config, share)
    }

    /// The result in a folder, without a lock on it; none if it is no folder of results, or not done.
    ///
    /// # Errors
    ///
    /// [`Error::Io`]; [`Error::Input`] when the file holds something else.
    pub(crate) fn result(path: &Path) -> Result<Option<Value>, Error> {
        if !path.join(PLAN).exists() || !path.join(RESULT).exists() {
            return Ok(None);
        }
        read_json(&path.join(RESULT)).map(Some)
    }

    /// What the trials in a folder have in common.
    ///
    /// # Errors
    ///
    /// [`Error::Io`], [`Error::Config`]
    pub(crate) fn settings(path: &Path) -> Result<RunConfig, Error> {
        let path = path.join(SETTINGS);
        RunConfig::from_toml(&path.display().to_string(), &read_text(&path)?)
    }

    /// What was saved under names that begin with one of these, in the order of the names.
    ///
    /// # Errors
    ///
    /// [`Error::Io`]; [`Error::Input`] when a file holds something else.
    pub(crate) fn parts<T: DeserializeOwned>(
        path: &Path,
        beginnings: &[&str],
    ) -> Result<Vec<T>, Error> {
        let cannot = |source| Error::Io { action: "read", path: path.to_owned(), source };
        let mut names = vec![];
        for entry in std::fs::read_dir(path).map_err(cannot)? {
            let name = entry.map_err(cannot)?.file_name().to_string_lossy().into_owned();
            // Those in progress have a dot more.
            let stem = name.strip_suffix(".json").filter(|stem| !stem.contains('.'));
            let asked = |stem: &str| beginnings.iter().any(|beginning| stem.starts_with(beginning));
            if stem.is_some_and(asked) {
                names.push(name);
            }
        }
        names.sort();
        names.iter().map(|name| read_json(&path.join(name))).collect()
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What this process does of the work in it.
    pub fn share(&self) -> Share {
        self.share
    }

    /// A lock that is held for a moment, while writing what any of its processes might write.
    ///
    /// # Errors
    ///
    /// [`Error::Io`]
    pub fn alone(&self) -> Result<FolderLock, Error> {
        FolderLock::wait_for_item(&self.path, "result")
    }

    /// The path of a file in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Whether it has a file.
    pub fn has(&self, name: &str) -> bool {
        self.file(name).exists()
    }

    /// Removes all results in a folder, complete or not, if there is such a folder.
    ///
    /// # Errors
    ///
    /// [`Error::Locked`], [`Error::Io`]
    pub fn clear(path: &Path) -> Result<(), Error> {
        if !path.join(PLAN).exists() {
            return Ok(());
        }
        let _lock = FolderLock::take(path)?;
        let cannot = |source| Error::Io { action: "clear", path: path.to_owned(), source };
        for entry in std::fs::read_dir(path).map_err(cannot)? {
            let path = entry.map_err(cannot)?.path();
            let result = path.extension().is_some_and(|end| end == "json" || end == "safetensors");
            if result && !path.ends_with(PLAN) {
                std::fs::remove_file(path).map_err(cannot)?;
            }
        }
        Ok(())
    }

    /// Writes a result, as JSON.
    ///
    /// # Errors
    ///
    /// [`Error::Io`]
    pub fn save(&self, name: &str, value: &impl Serialize) -> Result<(), Error> {
        let path = self.file(name);
        let text = serde_json::to_string(value)
            .map_err(|error| Place::file(&path).error(error.to_string()))?;
        write_file(&path, (text + "\n").as_bytes())
    }

    /// Reads what [`save`](Self::save) wrote.
    ///
    /// # Errors
    ///
    /// [`Error::Io`]; [`Error::Input`] when the file holds something else.
    pub fn read<T: DeserializeOwned>(&self, name: &str) -> Result<T, Error> {
        read_json(&self.file(name))
    }
}

fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, Error> {
    serde_json::from_str(&read_text(path)?)
        .map_err(|error| Place::file(path).error(format!("it is not a result: {error}")))
}

/// Whether a folder is one of results of this plan, or may become one.
fn check(path: &Path, plan: &Value) -> Result<(), Error> {
    let problem = |problem: &str| Error::Folder { path: path.to_owned(), problem: problem.into() };
    match read_text(&path.join(PLAN)) {
        Ok(text) => {
            let before: Value = serde_json::from_str(&text).unwrap_or_default();
            if before == *plan {
                return Ok(());
            }
            Err(problem(&format!("has results for {}", difference(&before, plan))))
        }
        Err(_) if is_empty(path, &[])? => Ok(()),
        Err(_) => Err(problem("is not empty, but not a folder of results")),
    }
}

/// What is another one in a plan: the first that decides on everything behind it.
fn difference(before: &Value, plan: &Value) -> String {
    let differs = |key: &str| before[key] != plan[key];
    if differs("data") {
        return "other data".into();
    }
    if differs("splits") {
        return "another split of the data".into();
    }
    let [before, plan] = [before, plan].map(with_repetitions);
    let settings = SettingChange::between(&before, &plan).into_iter().filter_map(|change| {
        // Settings of several candidates or trials have a number before their name.
        let mut lists = ["candidates", "trials"].into_iter();
        let inside = lists.find_map(|list| change.path.strip_prefix(list));
        let path = inside.unwrap_or(&change.path);
        let path = path.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        // Where all of them, or a table of them, are missing or damaged, none has a name.
        let named = !path.is_empty() && is_setting(&change.before) && is_setting(&change.after);
        named.then(|| SettingChange { path: path.to_owned(), ..change })
    });
    let mut changes: Vec<String> = settings.map(|change| change.to_string()).collect();
    changes.dedup();
    match &changes[..] {
        [] => "other settings".into(),
        [one] => format!("other settings: {one}"),
        [one, rest @ ..] => format!("other settings: {one}, and {} more", rest.len()),
    }
}

/// A plan names how often something is repeated only when that is more than once.
fn with_repetitions(plan: &Value) -> Value {
    let mut plan = plan.clone();
    if let Value::Object(entries) = &mut plan {
        for repetition in ["stages", "ensemble"] {
            entries.entry(repetition).or_insert_with(|| 1.into());
        }
    }
    plan
}

/// Whether it is the value of one setting, and not a table of several.
fn is_setting(value: &Value) -> bool {
    match value {
        Value::Object(_) => false,
        Value::Array(entries) => entries.iter().all(is_setting),
        _ => true,
    }
}
