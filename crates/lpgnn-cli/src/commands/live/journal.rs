//! Events on disk before they are acknowledged.
//!
//! `snapshot-N` is the graph after `N` events, `journal-N` what came after them: a record per batch, for events that are
//! applied together give other bits than one by one. A record is the length of its text, the first eight bytes of the
//! SHA-256 of it, and the text. What a crash has left of the last record was not acknowledged, and is cut off; a record
//! that is damaged before whole ones was, and is an error.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use lpgnn::experiment::FolderLock;
use lpgnn::live::{LiveData, LiveOptions};
use lpgnn::run::{SavedModel, read_file, write_file};
use lpgnn::{Error, Place};
use sha2::{Digest, Sha256};

pub(super) struct Journal {
    folder: PathBuf,
    file: File,
    /// Whether a record may be there in part, so that nothing may follow it.
    torn: bool,
    /// Events of the snapshot, and since.
    snapshot: u64,
    since: u64,
    every: u64,
    key: [u8; 32],
    /// Held for as long as this process writes here.
    _lock: FolderLock,
}

const SNAPSHOT: &str = "snapshot-";
const JOURNAL: &str = "journal-";

impl Journal {
    /// The journal in a folder, the graph of its last snapshot, and the batches since.
    pub(super) fn open(
        folder: &Path,
        every: u64,
        model: &SavedModel,
        options: &LiveOptions,
        start: impl FnOnce() -> anyhow::Result<LiveData>,
    ) -> anyhow::Result<(Self, LiveData, Vec<String>)> {
        let cannot = || format!("cannot use {} as a journal", folder.display());
        fs::create_dir_all(folder).with_context(cannot)?;
        check_own(folder).with_context(cannot)?;
        let lock = FolderLock::take(folder)?;
        let key = key(model, options)?;
        let (data, snapshot) = if let Some((snapshot, bytes)) = last_snapshot(folder)? {
            let Some(graph) = bytes.strip_prefix(&key) else {
                bail!("{} was written with another model or other options", folder.display());
            };
            (LiveData::load(model, graph, options).with_context(cannot)?, snapshot)
        } else {
            let data = start()?;
            write_snapshot(folder, &key, &data).with_context(cannot)?;
            let events = data.events();
            (data, events)
        };
        let path = folder.join(format!("{JOURNAL}{snapshot:020}"));
        let file = open(&path)?;
        let bytes = read_file(&path)?;
        let (batches, end) = records(&bytes);
        if end < bytes.len() {
            if (end + 1..bytes.len()).any(|at| record(&bytes[at..]).is_some()) {
                let place = Place::byte(&path, end as u64);
                bail!(place.error("a record is damaged, and acknowledged events follow it"));
            }
            file.set_len(end as u64).with_context(cannot)?;
            file.sync_all().with_context(cannot)?;
        }
        sync_folder(folder).with_context(cannot)?;
        let since = batches.iter().map(|batch| batch.lines().count() as u64).sum();
        let folder = folder.to_owned();
        let journal = Self { folder, file, torn: false, snapshot, since, every, key, _lock: lock };
        Ok((journal, data, batches))
    }

    /// Writes a batch of lines; when this returns, they are on disk.
    pub(super) fn append(&mut self, lines: &[String]) -> anyhow::Result<()> {
        if self.torn {
            bail!("an event could not be written to {}", self.folder.display());
        }
        let text = lines.join("\n");
        let length = u32::try_from(text.len()).context("a batch of events is too long")?;
        let mut record = length.to_le_bytes().to_vec();
        record.extend(&checksum(text.as_bytes()));
        record.extend(text.as_bytes());
        let written = self.file.write_all(&record).and_then(|()| self.file.sync_data());
        self.torn = written.is_err();
        written.with_context(|| format!("cannot write to {}", self.folder.display()))?;
        self.since += lines.len() as u64;
        Ok(())
    }

    /// Replaces the journal by a snapshot if it is long enough.
    pub(super) fn rotate(&mut self, data: &LiveData) -> anyhow::Result<()> {
        if self.since < self.every {
            return Ok(());
        }
        let cannot = || format!("cannot write a snapshot to {}", self.folder.display());
        write_snapshot(&self.folder, &self.key, data).with_context(cannot)?;
        let before = self.snapshot;
        (self.snapshot, self.since) = (data.events(), 0);
        let path = self.folder.join(format!("{JOURNAL}{:020}", self.snapshot));
        self.file = open(&path)?;
        sync_folder(&self.folder).with_context(cannot)?;
        for name in [JOURNAL, SNAPSHOT] {
            // What is left over does no harm: the newest snapshot counts.
            let _ = fs::remove_file(self.folder.join(format!("{name}{before:020}")));
        }
        Ok(())
    }
}

/// That nothing else is in the folder: the lock there may be that of a run.
fn check_own(folder: &Path) -> anyhow::Result<()> {
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        let is_own = |start| name.as_encoded_bytes().starts_with(str::as_bytes(start));
        if ![SNAPSHOT, JOURNAL, "."].into_iter().any(is_own) {
            bail!(
                Place::file(&folder.join(name))
                    .error("is not of a journal, so the folder is left alone")
            );
        }
    }
    Ok(())
}

/// The texts of all whole records, and where they end.
fn records(bytes: &[u8]) -> (Vec<String>, usize) {
    let (mut texts, mut at) = (vec![], 0);
    while let Some(text) = record(&bytes[at..]) {
        texts.push(text.to_owned());
        at += 12 + text.len();
    }
    (texts, at)
}

/// The text of the record that these bytes begin with; none if it is not whole.
fn record(bytes: &[u8]) -> Option<&str> {
    let (head, rest) = bytes.split_at_checked(12)?;
    let (length, sum) = head.split_at(4);
    let length = u32::from_le_bytes(length.try_into().expect("four bytes")) as usize;
    // No batch is empty.
    let text = rest.get(..length).filter(|text| !text.is_empty() && checksum(text) == *sum)?;
    std::str::from_utf8(text).ok()
}

/// Opens a journal to write behind its end.
fn open(path: &Path) -> anyhow::Result<File> {
    if path.exists() || path.is_symlink() {
        let found =
            path.symlink_metadata().with_context(|| format!("cannot read {}", path.display()))?;
        if !found.is_file() {
            bail!(Place::file(path).error("is a link, a pipe or a device, but a file is expected"));
        }
    }
    let file = OpenOptions::new().append(true).create(true).open(path);
    file.with_context(|| format!("cannot write {}", path.display()))
}

fn checksum(bytes: &[u8]) -> [u8; 8] {
    let all: [u8; 32] = Sha256::digest(bytes).into();
    *all.first_chunk().expect("it is longer")
}

/// Whether a graph is kept in a folder.
pub(super) fn has_snapshot(folder: &Path) -> bool {
    fs::read_dir(folder).is_ok_and(|entries| {
        entries.flatten().any(|entry| entry.file_name().to_string_lossy().starts_with(SNAPSHOT))
    })
}

/// What the graph of a journal depends on besides its events.
fn key(model: &SavedModel, options: &LiveOptions) -> anyhow::Result<[u8; 32]> {
    let mut all = model.to_bytes()?;
    all.extend(format!("{options:?}").into_bytes());
    Ok(Sha256::digest(all).into())
}

/// The newest snapshot, without its checksum. Since it got its name when it was whole, one that is not was damaged, and an older one
/// would be without events that were acknowledged.
fn last_snapshot(folder: &Path) -> anyhow::Result<Option<(u64, Vec<u8>)>> {
    let mut newest: Option<u64> = None;
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        let number: Option<u64> =
            name.to_str().and_then(|name| name.strip_prefix(SNAPSHOT)?.parse().ok());
        newest = newest.max(number);
    }
    let Some(number) = newest else { return Ok(None) };
    let path = folder.join(format!("{SNAPSHOT}{number:020}"));
    let mut bytes = read_file(&path)?;
    let body = bytes.len().saturating_sub(32);
    let sum: [u8; 32] = Sha256::digest(&bytes[..body]).into();
    if bytes[body..] != sum {
        bail!(Place::file(&path).error("is damaged: its checksum does not match"));
    }
    bytes.truncate(body);
    Ok(Some((number, bytes)))
}

fn write_snapshot(folder: &Path, key: &[u8], data: &LiveData) -> Result<(), Error> {
    let mut bytes = key.to_vec();
    bytes.extend(data.save());
    let sum: [u8; 32] = Sha256::digest(&bytes).into();
    bytes.extend(sum);
    write_file(&folder.join(format!("{SNAPSHOT}{:020}", data.events())), &bytes)
}

/// Makes names of files in a folder last, where systems need it.
fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}
