use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use super::message::Message;
use crate::Error;

/// An event file that grows.
///
/// A record is the length of its data in 8 bytes, a checksum of these, the data, and a checksum of the data.
#[derive(Debug)]
pub(super) struct EventFile {
    path: PathBuf,
    file: File,
}

impl EventFile {
    /// A new file in a folder, beside those that are there; the folder is created. What these tell of an epoch from
    /// `first` on is void: training was resumed there.
    pub(super) fn create(folder: &Path, first: usize) -> Result<Self, Error> {
        let io = |path: &Path, source| Error::Io { action: "write", path: path.to_owned(), source };
        std::fs::create_dir_all(folder).map_err(|source| io(folder, source))?;
        // TensorBoard reads files in the order of their names.
        let name = |number: u64| format!("events.out.tfevents.{number:013}.lpgnn");
        let mut number = newest(folder).map_or(0, |newest| newest + 1).max(milliseconds());
        let (path, file) = loop {
            let path = folder.join(name(number));
            match File::create_new(&path) {
                Ok(file) => break (path, file),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
                Err(source) => return Err(io(&path, source)),
            }
        };
        let mut file = Self { path, file };
        file.write(&event().text(3, "brain.Event:2"))?;
        let session_start = Message::default().integer(1, 1);
        file.write(&event().integer(2, first as u64).message(7, &session_start))?;
        Ok(file)
    }

    /// Adds values that belong to an epoch.
    pub(super) fn add(&mut self, epoch: usize, values: &[Message]) -> Result<(), Error> {
        let summary =
            values.iter().fold(Message::default(), |summary, value| summary.message(1, value));
        self.write(&event().integer(2, epoch as u64).message(5, &summary))
    }

    fn write(&mut self, event: &Message) -> Result<(), Error> {
        let data = event.as_bytes();
        let length = (data.len() as u64).to_le_bytes();
        let mut record = Vec::with_capacity(data.len() + 16);
        record.extend(length);
        record.extend(masked_crc(&length).to_le_bytes());
        record.extend(data);
        record.extend(masked_crc(data).to_le_bytes());
        self.file.write_all(&record).map_err(|source| Error::Io {
            action: "write",
            path: self.path.clone(),
            source,
        })
    }
}

/// An event of now.
fn event() -> Message {
    Message::default().double(1, seconds())
}

/// Seconds since 1970.
pub(super) fn seconds() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

fn milliseconds() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// The number of the newest file of ours, which has 13 digits: a clock may have been put back since.
fn newest(folder: &Path) -> Option<u64> {
    let names = std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.file_name());
    let number = |name: std::ffi::OsString| {
        let name = name.to_str()?;
        let number: u64 =
            name.strip_prefix("events.out.tfevents.")?.strip_suffix(".lpgnn")?.parse().ok()?;
        (number < 10_u64.pow(13)).then_some(number)
    };
    names.filter_map(number).max()
}

/// The checksum, rotated and moved: data that hold checksums of their own would fool it otherwise.
fn masked_crc(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_framed_with_lengths_and_checksums() {
        // Of the length of the first record in a file that TensorFlow wrote.
        assert_eq!(masked_crc(&24_u64.to_le_bytes()), 0x224b_7fa3);
        let folder = tempfile::tempdir().unwrap();
        let first = EventFile::create(folder.path(), 1).unwrap();
        let second = EventFile::create(folder.path(), 5).unwrap();
        assert!(second.path > first.path, "the newest comes last");
        let bytes = std::fs::read(&first.path).unwrap();
        assert_eq!(bytes[..8], 24_u64.to_le_bytes());
        assert_eq!(bytes[8..12], 0x224b_7fa3_u32.to_le_bytes());
        assert_eq!(&bytes[21..36], b"\x1a\x0dbrain.Event:2");
    }

    #[test]
    fn a_file_with_another_number_is_not_ours() {
        let folder = tempfile::tempdir().unwrap();
        let stranger = format!("events.out.tfevents.{}.lpgnn", u64::MAX);
        std::fs::write(folder.path().join(stranger), "").unwrap();
        let file = EventFile::create(folder.path(), 1).unwrap();
        assert!(file.path.to_string_lossy().len() < folder.path().as_os_str().len() + 41);
    }
}
