use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::Error;
use crate::input::in_the_way;

/// An exclusive lock on a folder, or on an item of the work in it.
///
/// The operating system releases it when the process ends, however that happens. The lock file is
/// not removed: that could remove the lock of the next process.
#[derive(Debug)]
pub struct FolderLock(Option<File>);

const LOCK: &str = ".lock";

impl FolderLock {
    /// Locks an existing folder.
    ///
    /// # Errors
    ///
    /// When another process holds the lock, or the folder cannot be written to.
    pub fn take(folder: &Path) -> Result<Self, Error> {
        let lock = Self::attempt(folder, LOCK)?;
        lock.ok_or_else(|| Error::Locked { path: folder.to_owned() })
    }

    /// Locks an item of the work in an existing folder; none when another process holds the lock.
    ///
    /// # Errors
    ///
    /// When the folder cannot be written to.
    pub fn try_item(folder: &Path, item: &str) -> Result<Option<Self>, Error> {
        Self::attempt(folder, &format!(".{item}{LOCK}"))
    }

    /// The same, once no other process holds it.
    ///
    /// # Errors
    ///
    /// When the folder cannot be written to.
    pub fn wait_for_item(folder: &Path, item: &str) -> Result<Self, Error> {
        let file = open(folder, &format!(".{item}{LOCK}"))?;
        match file.lock() {
            Ok(()) => Ok(Self(Some(file))),
            Err(error) if error.kind() == ErrorKind::Unsupported => Ok(Self(None)),
            Err(error) => Err(cannot_write(folder, error)),
        }
    }

    /// Whether it keeps other processes away: some network file systems do not support locks.
    pub fn is_held(&self) -> bool {
        self.0.is_some()
    }

    fn attempt(folder: &Path, name: &str) -> Result<Option<Self>, Error> {
        let file = open(folder, name)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self(Some(file)))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => {
                Ok(Some(Self(None)))
            }
            Err(TryLockError::Error(error)) => Err(cannot_write(folder, error)),
        }
    }
}

fn cannot_write(folder: &Path, source: std::io::Error) -> Error {
    Error::Io { action: "write into", path: folder.to_owned(), source }
}

/// Opens a lock file.
fn open(folder: &Path, name: &str) -> Result<File, Error> {
    let path = folder.join(name);
    // A folder may be a stranger's: nothing is created where its links lead.
    if let Some(other) = in_the_way(&path) {
        let problem = format!("has {other} in place of its file {name}");
        return Err(Error::Folder { path: folder.to_owned(), problem });
    }
    let options = File::options().create(true).truncate(false).write(true).clone();
    options.open(path).map_err(|error| cannot_write(folder, error))
}

/// Whether a folder is empty or does not exist. Temporary files of an interrupted write do not count, nor
/// do those of the names `besides`.
pub(super) fn is_empty(folder: &Path, besides: &[&str]) -> Result<bool, Error> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(true),
        Err(source) => return Err(Error::Io { action: "use", path: folder.to_owned(), source }),
    };
    let part = |entry: &fs::DirEntry| entry.path().extension().is_some_and(|end| end == "part");
    let nothing = |entry: &fs::DirEntry| {
        let name = entry.file_name();
        let lock = name.to_string_lossy().ends_with(LOCK);
        lock || part(entry) || besides.iter().any(|besides| name == *besides)
    };
    Ok(entries.flatten().all(|entry| nothing(&entry)))
}

/// Creates a folder, unless it exists.
pub(super) fn create(folder: &Path) -> Result<(), Error> {
    let cannot = |source| Error::Io { action: "create", path: folder.to_owned(), source };
    fs::create_dir_all(folder).map_err(cannot)
}

/// `PARENT/NAME-1`, or the first number that is free: creating a folder succeeds only once.
pub(super) fn create_next(parent: &Path, name: &str) -> Result<PathBuf, Error> {
    let cannot =
        |source| Error::Io { action: "create a folder in", path: parent.to_owned(), source };
    fs::create_dir_all(parent).map_err(cannot)?;
    let name = file_name(name);
    for number in 1_u64.. {
        let path = parent.join(format!("{name}-{number}"));
        match fs::create_dir(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(cannot(error)),
        }
    }
    Err(Error::Folder { path: parent.to_owned(), problem: "has no free number left".into() })
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
        assert!(is_empty(place.path(), &[]).unwrap());
        drop(lock);
        FolderLock::take(place.path()).unwrap();
    }

    #[test]
    fn an_item_is_locked_apart_from_the_folder_and_from_others() {
        let place = tempfile::tempdir().unwrap();
        let _folder = FolderLock::take(place.path()).unwrap();
        let lock = FolderLock::try_item(place.path(), "fold-01").unwrap().unwrap();
        assert!(lock.is_held());
        assert!(FolderLock::try_item(place.path(), "fold-01").unwrap().is_none());
        assert!(FolderLock::try_item(place.path(), "fold-02").unwrap().is_some());
        assert!(is_empty(place.path(), &[]).unwrap());
        let waiting = std::thread::spawn({
            let path = place.path().to_owned();
            move || FolderLock::wait_for_item(&path, "fold-01").unwrap()
        });
        drop(lock);
        let lock = waiting.join().unwrap();
        assert!(FolderLock::try_item(place.path(), "fold-01").unwrap().is_none());
        drop(lock);
    }

    #[cfg(unix)]
    #[test]
    fn a_lock_that_is_a_link_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let elsewhere = place.path().join("elsewhere");
        std::os::unix::fs::symlink(&elsewhere, place.path().join(LOCK)).unwrap();
        let error = FolderLock::take(place.path()).unwrap_err().to_string();
        assert!(error.ends_with("has a link in place of its file .lock"), "{error}");
        assert!(!elsewhere.exists());
    }

    #[test]
    fn a_file_that_was_never_finished_is_nothing() {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("plan.json.part"), "{").unwrap();
        assert!(is_empty(place.path(), &[]).unwrap());
        fs::write(place.path().join("plan.json"), "{}").unwrap();
        assert!(!is_empty(place.path(), &[]).unwrap());
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
