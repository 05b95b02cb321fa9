//! Writers.

mod tables;
mod tu;

use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::Dataset;
use crate::Error;
use crate::graph::SparseRows;

/// Writes `dataset` to a new folder, and returns what the format cannot represent.
///
/// The folder gets its name once everything is written, so there is never an incomplete data set.
///
/// # Errors
///
/// [`Error::Mismatch`] if the folder exists and may not be replaced, or if the format cannot
/// represent the data at all; [`Error::Io`].
pub fn write(
    dataset: &Dataset,
    folder: &Path,
    options: &WriteOptions,
) -> Result<Vec<String>, Error> {
    fill_folder(folder, options.overwrite, |new| {
        let mut losses = match options.format {
            WriteFormat::Tu => tu::write(dataset, new)?,
            WriteFormat::Tables => tables::write(dataset, new)?,
        };
        if dataset.weights().is_some() {
            losses.push("sample weights are not written".to_owned());
        }
        Ok(losses)
    })
}

/// Lets `fill` write the files of a folder, which gets its name once they are all there.
pub(super) fn fill_folder<T>(
    folder: &Path,
    overwrite: Overwrite,
    fill: impl FnOnce(&Path) -> Result<T, Error>,
) -> Result<T, Error> {
    let existing = existing(folder)?;
    match (existing, overwrite) {
        (Existing::Nothing | Existing::Empty, _) => {}
        (Existing::Full, Overwrite::Refuse) => {
            return Err(Error::Mismatch(format!("{} already exists", folder.display())));
        }
        (Existing::Full, Overwrite::Replace) => check_ours(folder)?,
    }
    let parent = match folder.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    fs::create_dir_all(parent).map_err(io_error("create", parent))?;
    let work = tempfile::Builder::new()
        .prefix(".lpgnn-")
        .tempdir_in(parent)
        .map_err(io_error("write", folder))?;
    let new = work.path().join("new");
    fs::create_dir(&new).map_err(io_error("create", folder))?;
    let filled = fill(&new)?;
    if existing != Existing::Nothing {
        // The old one is removed with the temporary folder, once the new one is in place.
        fs::rename(folder, work.path().join("old")).map_err(io_error("replace", folder))?;
    }
    fs::rename(&new, folder).map_err(io_error("write", folder))?;
    Ok(filled)
}

/// Options for [`write()`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteOptions {
    /// The format.
    pub format: WriteFormat,
    /// What to do if the folder exists and is not empty.
    pub overwrite: Overwrite,
}

/// What to do with an existing folder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overwrite {
    /// Fail.
    #[default]
    Refuse,
    /// Replace it, unless it contains anything that is not part of a data set.
    Replace,
}

/// The formats that can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WriteFormat {
    /// The text files of the TU collection.
    Tu,
    /// `nodes.csv`, `edges.csv`, `graphs.csv` and `dataset.toml`.
    Tables,
}

impl WriteFormat {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Tu, Self::Tables];

    /// Its name: `tu` or `tables`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tu => "tu",
            Self::Tables => "tables",
        }
    }
}

impl fmt::Display for WriteFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for WriteFormat {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::ALL.into_iter().find(|format| format.as_str() == text).ok_or_else(|| Error::Option {
            option: "format",
            value: text.to_owned(),
            expected: format!(
                "the formats that can be written are {}",
                Self::ALL.map(Self::as_str).join(", ")
            ),
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Existing {
    Nothing,
    Empty,
    Full,
}

fn existing(folder: &Path) -> Result<Existing, Error> {
    match fs::read_dir(folder) {
        Ok(mut entries) => {
            Ok(if entries.next().is_none() { Existing::Empty } else { Existing::Full })
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Existing::Nothing),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
            Err(Error::Mismatch(format!("{} is a file, not a folder", folder.display())))
        }
        Err(error) => Err(io_error("list", folder)(error)),
    }
}

/// # Errors
///
/// [`Error::Mismatch`] if a folder contains a file that no writer would have written: replacing it
/// could destroy somebody's work.
fn check_ours(folder: &Path) -> Result<(), Error> {
    let io = |source| Error::Io { action: "list", path: folder.to_owned(), source };
    for entry in fs::read_dir(folder).map_err(io)? {
        let entry = entry.map_err(io)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type().map_err(io)?.is_dir() {
            if tu::PARTS.contains(&name.as_str()) {
                check_ours(&entry.path())?;
                continue;
            }
        } else if tu::is_file(&name) || tables::is_file(&name) || super::parts::is_file(&name) {
            continue;
        }
        return Err(Error::Mismatch(format!(
            "{} is not replaced, because it contains {name}, which is not part of a data set",
            folder.display()
        )));
    }
    Ok(())
}

/// The largest dense array that is written in place of a sparse one.
const MOST_ENTRIES: usize = 4_000_000_000;

/// # Errors
///
/// [`Error::Mismatch`] if sparse rows would be too large as a dense array.
fn check_written_out(sparse: &SparseRows<f32>) -> Result<(), Error> {
    let (rows, width) = (sparse.rows(), sparse.width());
    match rows.checked_mul(width) {
        Some(entries) if entries <= MOST_ENTRIES => Ok(()),
        _ => Err(Error::Mismatch(format!(
            "{rows} sparse rows of {width} would be too large as a dense array"
        ))),
    }
}

/// A file that is written line by line.
struct Output {
    path: PathBuf,
    file: BufWriter<File>,
}

impl Output {
    fn create(path: PathBuf) -> Result<Self, Error> {
        let file = File::create(&path).map_err(io_error("write", &path))?;
        Ok(Self { path, file: BufWriter::new(file) })
    }

    fn line(&mut self, line: fmt::Arguments<'_>) -> Result<(), Error> {
        writeln!(self.file, "{line}").map_err(io_error("write", &self.path))
    }

    fn finish(mut self) -> Result<(), Error> {
        self.file.flush().map_err(io_error("write", &self.path))
    }
}

fn io_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error + use<> {
    let path = path.to_owned();
    move |source| Error::Io { action, path, source }
}
