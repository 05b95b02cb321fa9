//! CSV files, plain or gzipped.

use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;

use super::text;
use super::unpack::{self, Guarded, read_error};
use crate::{Error, Place};

/// What is in a file, unpacked.
pub(super) type Source = Guarded<Box<dyn Read>>;

/// Opens `{stem}.csv` or `{stem}.csv.gz`, if there is one.
///
/// # Errors
///
/// [`Error::Input`] if there are both; [`Error::Io`].
pub(super) fn open(folder: &Path, stem: &str) -> Result<Option<(PathBuf, Source)>, Error> {
    let plain = folder.join(format!("{stem}.csv"));
    let packed = folder.join(format!("{stem}.csv.gz"));
    let (path, source): (_, Box<dyn Read>) = match (plain.exists(), packed.exists()) {
        (false, false) => return Ok(None),
        (true, true) => {
            return Err(Place::file(&packed)
                .error("exists next to the same file without .gz: remove one of them"));
        }
        (true, false) => {
            let file = text::open(&plain)?;
            (plain, Box::new(file))
        }
        (false, true) => {
            let file = text::open(&packed)?;
            let size = file.metadata().map_or(0, |found| found.len());
            let source = Unpacked { source: MultiGzDecoder::new(file), left: unpack::limit(size) };
            (packed, Box::new(source))
        }
    };
    let source = Guarded::new(&path, source);
    Ok(Some((path, source)))
}

/// What a gzipped file unpacks to, up to its limit.
struct Unpacked<R> {
    source: R,
    left: u64,
}

impl<R: Read> Read for Unpacked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        unpack::Bounded::new(&mut self.source, &mut self.left).read(buffer)
    }
}

/// The error for a failure to read a row of the file at `path`.
pub(super) fn csv_error(path: &Path, error: csv::Error) -> Error {
    let line = error.position().map_or(0, csv::Position::line);
    match error.into_kind() {
        csv::ErrorKind::Io(error) => read_error(path, error),
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => Place::line(path, line)
            .error(format!("has {len} fields, but the first line has {expected_len}")),
        other => Place::line(path, line).error(format!("is not CSV: {other:?}")),
    }
}
