use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::{Error, Place, memory};

/// The maximum ratio of unpacked to compressed size.
const RATIO: u64 = 100;
/// The unpacked size that is always allowed.
const ALLOWANCE: u64 = 32 << 20;

/// The maximum number of bytes that a compressed file of `size` bytes may unpack to: 100 times as many,
/// and at least 32 MiB. Real data stay far below; a zip bomb does not.
pub(super) fn limit(size: u64) -> u64 {
    ALLOWANCE.max(size.saturating_mul(RATIO))
}

/// Reads from `source`, with an error once it exceeds a limit.
pub(super) struct Bounded<'a, R> {
    source: R,
    left: &'a mut u64,
}

impl<'a, R> Bounded<'a, R> {
    /// Reads at most `left` bytes, which is decremented.
    pub(super) fn new(source: R, left: &'a mut u64) -> Self {
        Self { source, left }
    }
}

impl<R: Read> Read for Bounded<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read(buffer)?;
        match self.left.checked_sub(read as u64) {
            Some(left) => *self.left = left,
            None => return Err(io::Error::other(too_much())),
        }
        Ok(read)
    }
}

/// Reads from `source`, with an error once memory runs short.
///
/// What is read is kept in one form or another, so memory grows with it.
pub(super) struct Guarded<R> {
    source: R,
    path: PathBuf,
    unchecked: usize,
}

/// How much is read before memory is looked at again.
const BLOCK: usize = 1 << 18;
/// What a block may become in memory: short words that are all different take some 60 times as much.
const GROWN: u64 = 64 * BLOCK as u64;

impl<R> Guarded<R> {
    /// Messages call the source `path`.
    pub(super) fn new(path: &Path, source: R) -> Self {
        Self { source, path: path.to_owned(), unchecked: 0 }
    }
}

impl<R: Read> Read for Guarded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read(buffer)?;
        self.unchecked += read;
        if self.unchecked >= BLOCK {
            self.unchecked = 0;
            let what = format_args!("to continue reading {}", self.path.display());
            memory::require(GROWN, what).map_err(io::Error::other)?;
        }
        Ok(read)
    }
}

/// Part of a sentence about a file that unpacks to more than its [`limit`].
pub(super) fn too_much() -> String {
    format!("it would be more than {RATIO} times as large and more than {} MiB", ALLOWANCE >> 20)
}

/// The error for a failure to read `path`: about its content if that is damaged, otherwise about the
/// operating system.
pub(super) fn read_error(path: &Path, error: io::Error) -> Error {
    use io::ErrorKind::{InvalidData, InvalidInput, Other, UnexpectedEof};
    let error = match error.downcast() {
        Ok(error) => return error,
        Err(error) => error,
    };
    match error.kind() {
        InvalidData | InvalidInput | Other | UnexpectedEof => {
            Place::file(path).error(format!("cannot be unpacked: {error}"))
        }
        _ => Error::Io { action: "read", path: path.to_owned(), source: error },
    }
}
