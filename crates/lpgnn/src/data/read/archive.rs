//! Zip files: of text files, or of arrays as `numpy.savez` writes them.

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use zip::ZipArchive;
use zip::result::ZipError;

use super::text;
use super::unpack::{self, Bounded};
use crate::{Error, Place};

/// A zip file. Entries are read in place and never written to disk, so their names cannot do harm.
pub(super) struct Archive {
    path: PathBuf,
    zip: ZipArchive<BufReader<File>>,
    /// How much may still be unpacked.
    left: u64,
}

impl Archive {
    /// # Errors
    ///
    /// [`Error::Input`] if it is not a zip file or has an entry twice.
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        let file = text::open(path)?;
        let size = file
            .metadata()
            .map_err(|source| Error::Io { action: "read", path: path.to_owned(), source })?
            .len();
        let zip = ZipArchive::new(BufReader::new(file)).map_err(|error| zip_error(path, error))?;
        if zip.has_duplicate_names() {
            return Err(Place::file(path).error(twice(path, zip)?));
        }
        Ok(Self { path: path.to_owned(), zip, left: unpack::limit(size) })
    }

    /// The file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The names of its entries, of those that have one.
    pub(super) fn names(&self) -> Vec<String> {
        self.zip.file_names().filter_map(Result::ok).map(|name| name.to_string()).collect()
    }

    /// Whether there is an entry of this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.zip.index_for_name(name).is_some()
    }

    /// The contents of an entry, and how long it claims to be; none if there is no such entry.
    pub(super) fn entry<'a>(
        &'a mut self,
        name: &str,
    ) -> Result<Option<(impl Read + use<'a>, u64)>, Error> {
        let path = self.path.join(name);
        let Some(index) = self.zip.index_for_name(name) else { return Ok(None) };
        let entry = self.zip.by_index(index).map_err(|error| zip_error(&path, error))?;
        let size = entry.size();
        if size > self.left {
            let problem = format!("cannot be unpacked: {}", unpack::too_much());
            return Err(Place::file(&path).error(problem));
        }
        Ok(Some((Bounded::new(entry, &mut self.left), size)))
    }
}

/// Which entry of an archive is there twice, as part of a sentence.
fn twice(path: &Path, archive: ZipArchive<BufReader<File>>) -> Result<String, Error> {
    /// An entry of the central directory: a signature, numbers, and the lengths of what follows them.
    const HEADER: usize = 46;
    let io = |error| unpack::read_error(path, error);
    let start = archive.central_directory_start();
    let mut directory = archive.into_inner();
    directory.seek(SeekFrom::Start(start)).map_err(io)?;
    let mut names = HashSet::new();
    let mut header = [0; HEADER];
    while directory.read_exact(&mut header).is_ok() && header.starts_with(b"PK\x01\x02") {
        let length = |at: usize| usize::from(u16::from_le_bytes([header[at], header[at + 1]]));
        let mut name = vec![0; length(28)];
        directory.read_exact(&mut name).map_err(io)?;
        let rest = i64::try_from(length(30) + length(32)).unwrap_or_default();
        directory.seek_relative(rest).map_err(io)?;
        if !names.insert(name.clone()) {
            return Ok(format!("has the entry {} twice", text::quote(&name)));
        }
    }
    Ok("has an entry twice".to_owned())
}

fn zip_error(path: &Path, error: ZipError) -> Error {
    match error {
        ZipError::Io(error) => unpack::read_error(path, error),
        error => Place::file(path).error(format!("cannot be read as a zip file: {error}")),
    }
}
