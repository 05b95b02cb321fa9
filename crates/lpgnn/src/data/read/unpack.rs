use std::io::{self, Read};
use std::path::Path;

use crate::{Error, Place};

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

/// Part of a sentence about a file that unpacks to more than its [`limit`].
pub(super) fn too_much() -> String {
    format!("it would be more than {RATIO} times as large and more than {} MiB", ALLOWANCE >> 20)
}

/// The error for a failure to read `path`: about its content if that is damaged, otherwise about the
/// operating system.
pub(super) fn read_error(path: &Path, error: io::Error) -> Error {
    use io::ErrorKind::{InvalidData, InvalidInput, Other, UnexpectedEof};
    match error.kind() {
        InvalidData | InvalidInput | Other | UnexpectedEof => {
            Place::file(path).error(format!("cannot be unpacked: {error}"))
        }
        _ => Error::Io { action: "read", path: path.to_owned(), source: error },
    }
}
