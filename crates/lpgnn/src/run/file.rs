use std::fs::File;
use std::io::Write;
use std::path::Path;

use crate::{Error, Place};

/// Writes a file atomically: to a temporary name, synced to disk, then renamed.
///
/// # Errors
///
/// [`Error::Io`]; whatever was at `path` is then still there as it was.
pub fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let io = |source| Error::Io { action: "write", path: path.to_owned(), source };
    // A link to a file is replaced, not followed. A device, a pipe or a folder stays, and so does a link to one.
    if path.metadata().is_ok_and(|found| !found.is_file()) {
        return Err(Place::file(path).error("is not a file, so it is not replaced"));
    }
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    // The name tells what is left over after a crash; it goes when the file is written again.
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".part");
    let part = folder.join(name);
    // What has this name is removed, not opened: it may be a link to a file somewhere else.
    let _ = std::fs::remove_file(&part);
    let written = File::create_new(&part).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    if let Err(error) = written.and_then(|()| std::fs::rename(&part, path)) {
        // A partial file is useless, and removing it frees space on a full disk.
        let _ = std::fs::remove_file(&part);
        return Err(io(error));
    }
    // The new name is on the disk when its folder is. Some systems cannot do this to a folder.
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_written_leaves_the_old_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model");
        write_file(&path, b"old").unwrap();
        // A folder stands where the new bytes would be put first.
        std::fs::create_dir(folder.path().join("model.part")).unwrap();
        assert!(write_file(&path, b"new").is_err());
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
    }

    #[cfg(unix)]
    #[test]
    fn a_link_in_the_way_is_replaced_and_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("model"), folder.path().join("thesis.tex"));
        std::fs::write(&other, "years of work").unwrap();
        std::os::unix::fs::symlink(&other, &path).unwrap();
        std::os::unix::fs::symlink(&other, folder.path().join("model.part")).unwrap();
        write_file(&path, b"new").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        assert_eq!(std::fs::read(&other).unwrap(), b"years of work");
    }

    #[cfg(unix)]
    #[test]
    fn a_link_to_a_device_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model");
        std::os::unix::fs::symlink("/dev/null", &path).unwrap();
        let problem = write_file(&path, b"new").unwrap_err().to_string();
        assert!(problem.contains("is not a file, so it is not replaced"), "{problem}");
        assert!(path.is_symlink());
    }
}
