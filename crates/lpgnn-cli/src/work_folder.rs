use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

/// That this process is the only one at work in a folder.
///
/// The operating system takes it back when the process ends, however it does. The file that it is
/// taken on stays: whoever removed it could remove that of the next.
#[derive(Debug)]
pub(crate) struct FolderLock(#[expect(dead_code, reason = "it is held, not read")] Option<File>);

const LOCK: &str = ".lock";

impl FolderLock {
    /// Takes it in a folder that is there.
    ///
    /// # Errors
    ///
    /// When another process has it, or the folder cannot be written to.
    pub(crate) fn take(folder: &Path) -> anyhow::Result<Self> {
        let cannot = || format!("cannot write into {}", folder.display());
        let options = File::options().create(true).truncate(false).write(true).clone();
        let file = options.open(folder.join(LOCK)).with_context(cannot)?;
        match file.try_lock() {
            Ok(()) => Ok(Self(Some(file))),
            Err(TryLockError::WouldBlock) => {
                bail!("another process is working on {}", folder.display())
            }
            // Some network file systems have no locks; then there is none to respect.
            Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => {
                Ok(Self(None))
            }
            Err(TryLockError::Error(error)) => Err(error).with_context(cannot),
        }
    }
}

/// Whether a folder holds nothing, or is not there. What somebody who was killed had begun to write
/// is nothing.
pub(crate) fn is_empty(folder: &Path) -> anyhow::Result<bool> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(true),
        Err(error) => {
            return Err(error).with_context(|| format!("cannot use {}", folder.display()));
        }
    };
    let part = |entry: &fs::DirEntry| entry.path().extension().is_some_and(|end| end == "part");
    Ok(entries.flatten().all(|entry| entry.file_name() == LOCK || part(&entry)))
}

/// `PARENT/NAME-1`, or the first number that is free: creating a folder succeeds only once.
pub(crate) fn create_next(parent: &Path, name: &str) -> anyhow::Result<PathBuf> {
    let cannot = || format!("cannot create a folder in {}", parent.display());
    fs::create_dir_all(parent).with_context(cannot)?;
    let name = file_name(name);
    for number in 1_u64.. {
        let path = parent.join(format!("{name}-{number}"));
        match fs::create_dir(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error).with_context(cannot),
        }
    }
    bail!("there is no free number left")
}

/// A name, as far as it can be part of a path.
fn file_name(name: &str) -> String {
    let keep = |c: char| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    let name: String = name.chars().map(keep).collect();
    let name = name.trim_matches(['.', '-']);
    if name.is_empty() { "run".into() } else { name.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_locked_once_and_empty_all_the_same() {
        let place = tempfile::tempdir().unwrap();
        let lock = FolderLock::take(place.path()).unwrap();
        let error = FolderLock::take(place.path()).unwrap_err().to_string();
        assert_eq!(error, format!("another process is working on {}", place.path().display()));
        assert!(is_empty(place.path()).unwrap());
        drop(lock);
        FolderLock::take(place.path()).unwrap();
    }

    #[test]
    fn a_file_that_was_never_finished_is_nothing() {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("plan.json.part"), "{").unwrap();
        assert!(is_empty(place.path()).unwrap());
        fs::write(place.path().join("plan.json"), "{}").unwrap();
        assert!(!is_empty(place.path()).unwrap());
    }

    #[test]
    fn names_become_folders() {
        let place = tempfile::tempdir().unwrap();
        let name = |name| create_next(place.path(), name).unwrap();
        assert!(name("../my data").ends_with("my-data-1"));
        assert!(name("my data").ends_with("my-data-2"));
        assert!(name("..").ends_with("run-1"));
    }
}
