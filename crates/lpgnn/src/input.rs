//! Files from outside: opened only if they are files, read only if there is memory for them.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::{Error, Place, memory};

/// Opens a regular file, not a directory, a pipe or a device, which might never end.
///
/// # Errors
///
/// [`Error::Io`]; [`Error::Input`] if it is something else.
pub(crate) fn open(path: &Path) -> Result<File, Error> {
    let io = |source| Error::Io { action: "read", path: path.to_owned(), source };
    // Before it is opened: to open a pipe is to wait for whoever writes to it.
    let found = std::fs::metadata(path).map_err(io)?;
    if found.is_dir() {
        return Err(Place::file(path).error("is a directory, but a file is expected"));
    }
    if !found.is_file() {
        return Err(Place::file(path).error("is a pipe or a device, but a file is expected"));
    }
    File::open(path).map_err(io)
}

/// What stands in the way of a file that is to be written to: a link, which may lead anywhere, a pipe, whose opening waits for a
/// reader, a device or a folder.
pub(crate) fn in_the_way(path: &Path) -> Option<&'static str> {
    let found = path.symlink_metadata().ok()?;
    match (found.is_symlink(), found.is_file()) {
        (true, _) => Some("a link"),
        (_, true) => None,
        _ => Some("a folder, a pipe or a device"),
    }
}

/// How often the contents of a file are in memory while they are interpreted.
const COPIES: u64 = 3;

/// Reads a regular file, if there is memory for it.
///
/// # Errors
///
/// [`Error::Io`]; [`Error::Input`] if it is a directory, a pipe or a device; [`Error::Memory`].
pub fn read_file(path: &Path) -> Result<Vec<u8>, Error> {
    let io = |source| Error::Io { action: "read", path: path.to_owned(), source };
    let mut file = open(path)?;
    let size = file.metadata().map_err(io)?.len();
    memory::require(size.saturating_mul(COPIES), format_args!("reading {}", path.display()))?;
    let mut bytes = vec![];
    file.read_to_end(&mut bytes).map_err(io)?;
    Ok(bytes)
}

/// The same for text.
///
/// # Errors
///
/// Those of [`read_file`]; [`Error::Input`] if it is not UTF-8.
pub fn read_text(path: &Path) -> Result<String, Error> {
    String::from_utf8(read_file(path)?).map_err(|error| {
        let place = error.utf8_error().valid_up_to() as u64;
        Place::byte(path, place).error("is not UTF-8")
    })
}

/// What is wrong with a TOML file, on one line of bounded length: the parser quotes values as they are.
pub(crate) fn toml_problem(error: &toml::de::Error) -> String {
    let mut problem = String::new();
    for c in error.message().trim_end().replace('\n', ", ").chars().take(200) {
        if c.is_control() { problem.extend(c.escape_debug()) } else { problem.push(c) }
    }
    problem
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_parser_quotes_stays_on_one_line() {
        #[derive(Debug, serde::Deserialize)]
        #[serde(rename_all = "kebab-case")]
        enum Kind {
            Grid,
        }
        #[derive(Debug, serde::Deserialize)]
        struct Space {
            kind: Kind,
        }
        let Kind::Grid = toml::from_str::<Space>("kind = \"grid\"").unwrap().kind;
        let text = format!("kind = \"r\\n\\u001b{}\"", "a".repeat(1000));
        let problem = toml_problem(&toml::from_str::<Space>(&text).unwrap_err());
        assert!(problem.starts_with("unknown variant `r, \\u{1b}aaa"), "{problem}");
        assert!(problem.len() < 210 && !problem.contains('\n'));
    }

    #[cfg(unix)]
    #[test]
    fn what_is_no_file_is_in_the_way() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        assert_eq!(in_the_way(&path), None);
        std::fs::write(&path, "x").unwrap();
        assert_eq!(in_the_way(&path), None);
        assert_eq!(in_the_way(folder.path()), Some("a folder, a pipe or a device"));
        assert_eq!(in_the_way(Path::new("/dev/null")), Some("a folder, a pipe or a device"));
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert_eq!(in_the_way(&link), Some("a link"));
    }

    #[test]
    fn only_files_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let said = |path: &Path| {
            let error = read_file(path).unwrap_err().to_string();
            error.replace(&folder.path().display().to_string(), "F")
        };
        assert_eq!(said(folder.path()), "F: is a directory, but a file is expected");
        let path = folder.path().join("x");
        assert_eq!(said(&path), "cannot read F/x");
        std::fs::write(&path, [b'a', 0xff]).unwrap();
        assert_eq!(read_file(&path).unwrap(), [b'a', 0xff]);
        assert!(read_text(&path).unwrap_err().to_string().ends_with("x, byte 1: is not UTF-8"));
        #[cfg(unix)]
        {
            let link = folder.path().join("link");
            std::os::unix::fs::symlink("/dev/zero", &link).unwrap();
            assert_eq!(said(&link), "F/link: is a pipe or a device, but a file is expected");
        }
    }
}
