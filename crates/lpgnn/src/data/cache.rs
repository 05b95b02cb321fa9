use std::env;
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;

use crate::Error;

/// The environment variable that overrides the folder of the [`Cache`].
pub const CACHE_VARIABLE: &str = "LPGNN_CACHE";

/// The folder of downloaded data sets.
///
/// A data set called `NAME` is the file `NAME.zip`, as published, or a folder `NAME`. Either can be
/// put there by hand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    folder: PathBuf,
}

/// A data set in the [`Cache`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub struct CachedSet {
    /// Its name.
    pub name: String,
    /// The file or folder.
    pub path: PathBuf,
}

impl Cache {
    /// The cache in `folder`, which need not exist.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// The folder that `LPGNN_CACHE` names, or else `lpgnn` in the platform's cache folder:
    /// `$XDG_CACHE_HOME` or `~/.cache`, on macOS `~/Library/Caches`, on Windows `%LOCALAPPDATA%`.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`] if there is no home folder.
    pub fn of_user() -> Result<Self, Error> {
        if let Some(folder) = env::var_os(CACHE_VARIABLE).filter(|folder| !folder.is_empty()) {
            return Ok(Self::at(folder));
        }
        let strategy = etcetera::base_strategy::choose_native_strategy().map_err(|_| {
            Error::Mismatch(format!("there is no home folder, so set {CACHE_VARIABLE} to a folder"))
        })?;
        Ok(Self::at(strategy.cache_dir().join("lpgnn")))
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The path of the published file of `name`.
    pub fn zip(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.zip"))
    }

    /// The data set called `name`, if it is in the cache.
    pub fn find(&self, name: &str) -> Option<PathBuf> {
        if !is_name(name) {
            return None;
        }
        let (zip, folder) = (self.zip(name), self.folder.join(name));
        if zip.is_file() { Some(zip) } else { folder.is_dir().then_some(folder) }
    }

    /// All data sets in the cache, sorted by name.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the folder exists and cannot be listed.
    pub fn list(&self) -> Result<Vec<CachedSet>, Error> {
        let io = |source| Error::Io { action: "list", path: self.folder.clone(), source };
        let entries = match std::fs::read_dir(&self.folder) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(vec![]),
            entries => entries.map_err(io)?,
        };
        let mut sets = vec![];
        for entry in entries {
            let file = entry.map_err(io)?.file_name().to_string_lossy().into_owned();
            let name = file.strip_suffix(".zip").unwrap_or(&file);
            if let Some(path) = self.find(name) {
                sets.push(CachedSet { name: name.to_owned(), path });
            }
        }
        sets.sort_unstable();
        sets.dedup();
        Ok(sets)
    }
}

/// Whether `name` can be the name of a published data set: it becomes part of a path and of a URL.
pub(super) fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_+.".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_zip_files_and_folders_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path());
        for file in ["B.zip", "notes.txt", ".B-x.part", "A.zip"] {
            std::fs::write(folder.path().join(file), "").unwrap();
        }
        std::fs::create_dir(folder.path().join("A")).unwrap();
        std::fs::create_dir(folder.path().join("C")).unwrap();
        let names: Vec<String> = cache.list().unwrap().into_iter().map(|set| set.name).collect();
        assert_eq!(names, ["A", "B", "C"]);
        assert_eq!(cache.find("A"), Some(folder.path().join("A.zip")));
        assert_eq!(cache.find("../A"), None);
        assert_eq!(Cache::at(folder.path().join("none")).list().unwrap(), []);
    }

    #[test]
    fn names_lead_nowhere_else() {
        for name in ["MUTAG", "IMDB-BINARY", "PTC_MR", "COLORS-3"] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", "..", ".hidden", "a/b", "a\\b", "a b", "a?b", "ä"] {
            assert!(!is_name(name), "{name}");
        }
    }
}
