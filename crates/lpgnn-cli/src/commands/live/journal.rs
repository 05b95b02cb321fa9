//! Events on disk before they are acknowledged.
//!
//! `snapshot-N` is the graph after `N` events, `journal-N` what came after them: a record per batch, for events that are
//! applied together give other bits than one by one. A record is the length of its text, the first eight bytes of the
//! SHA-256 of it, and the text. What a crash has left of the last record was not acknowledged, and is cut off.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use lpgnn::live::{LiveData, LiveOptions};
use lpgnn::run::SavedModel;
use sha2::{Digest, Sha256};

pub(super) struct Journal {
    folder: PathBuf,
    file: File,
    /// Events of the snapshot, and since.
    snapshot: u64,
    since: u64,
    every: u64,
    key: [u8; 32],
    /// Held for as long as this process writes here.
    _lock: File,
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
        let lock = File::create(folder.join("lock")).with_context(cannot)?;
        if lock.try_lock().is_err() {
            bail!("{} is in use by another process", folder.display());
        }
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
        let file = OpenOptions::new().read(true).append(true).create(true).open(&path);
        let file = file.with_context(cannot)?;
        let bytes = fs::read(&path).with_context(cannot)?;
        let (batches, end) = records(&bytes);
        if end < bytes.len() {
            file.set_len(end as u64).with_context(cannot)?;
            file.sync_all().with_context(cannot)?;
        }
        sync_folder(folder).with_context(cannot)?;
        let since = batches.iter().map(|batch| batch.lines().count() as u64).sum();
        let folder = folder.to_owned();
        let journal = Self { folder, file, snapshot, since, every, key, _lock: lock };
        Ok((journal, data, batches))
    }

    /// Writes a batch of lines; when this returns, they are on disk.
    pub(super) fn append(&mut self, lines: &[String]) -> anyhow::Result<()> {
        let text = lines.join("\n");
        let length = u32::try_from(text.len()).context("a batch of events is too long")?;
        let mut record = length.to_le_bytes().to_vec();
        record.extend(&checksum(text.as_bytes()));
        record.extend(text.as_bytes());
        let written = self.file.write_all(&record).and_then(|()| self.file.sync_data());
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
        let file = OpenOptions::new().append(true).create(true).open(path);
        self.file = file.with_context(cannot)?;
        sync_folder(&self.folder).with_context(cannot)?;
        for name in [JOURNAL, SNAPSHOT] {
            // What is left over does no harm: the newest snapshot counts.
            let _ = fs::remove_file(self.folder.join(format!("{name}{before:020}")));
        }
        Ok(())
    }
}

/// The texts of all whole records, and where they end.
fn records(bytes: &[u8]) -> (Vec<String>, usize) {
    let (mut texts, mut at) = (vec![], 0);
    while let Some((head, rest)) = bytes[at..].split_at_checked(12) {
        let (length, sum) = head.split_at(4);
        let length = u32::from_le_bytes(length.try_into().expect("four bytes")) as usize;
        let Some(text) = rest.get(..length).filter(|text| checksum(text) == *sum) else { break };
        let Ok(text) = std::str::from_utf8(text) else { break };
        texts.push(text.to_owned());
        at += 12 + length;
    }
    (texts, at)
}

fn checksum(bytes: &[u8]) -> [u8; 8] {
    let all: [u8; 32] = Sha256::digest(bytes).into();
    *all.first_chunk().expect("it is longer")
}

/// What the graph of a journal depends on besides its events.
fn key(model: &SavedModel, options: &LiveOptions) -> anyhow::Result<[u8; 32]> {
    let mut all = model.to_bytes()?;
    all.extend(format!("{options:?}").into_bytes());
    Ok(Sha256::digest(all).into())
}

/// The newest snapshot that is whole, without its checksum.
fn last_snapshot(folder: &Path) -> anyhow::Result<Option<(u64, Vec<u8>)>> {
    let mut numbers: Vec<u64> = vec![];
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        let number: Option<u64> =
            name.to_str().and_then(|name| name.strip_prefix(SNAPSHOT)?.parse().ok());
        numbers.extend(number);
    }
    numbers.sort_unstable();
    for &number in numbers.iter().rev() {
        let mut bytes = fs::read(folder.join(format!("{SNAPSHOT}{number:020}")))?;
        let body = bytes.len().saturating_sub(32);
        let sum: [u8; 32] = Sha256::digest(&bytes[..body]).into();
        if bytes[body..] == sum {
            bytes.truncate(body);
            return Ok(Some((number, bytes)));
        }
    }
    if numbers.is_empty() {
        return Ok(None);
    }
    bail!("no snapshot in {} is whole", folder.display())
}

fn write_snapshot(folder: &Path, key: &[u8], data: &LiveData) -> io::Result<()> {
    let mut bytes = key.to_vec();
    bytes.extend(data.save());
    let sum: [u8; 32] = Sha256::digest(&bytes).into();
    bytes.extend(sum);
    let temporary = folder.join("snapshot.part");
    let mut file = File::create(&temporary)?;
    file.write_all(&bytes)?;
    file.sync_all()?;
    fs::rename(&temporary, folder.join(format!("{SNAPSHOT}{:020}", data.events())))?;
    sync_folder(folder)
}

/// Makes names of files in a folder last, where systems need it.
fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}
