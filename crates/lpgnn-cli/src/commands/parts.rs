//! What is written of every node of a graph in parts, in the order of the data set. The first rank writes.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use lpgnn::data::parts::{GraphInParts, Names};
use serde_json::Value;

use crate::ranks;

/// Where lines go.
pub(super) enum Sink {
    Stdout,
    File(PathBuf),
}

/// Lines, one per node.
pub(super) struct Lines {
    /// None on ranks that write nothing.
    to: Option<Box<dyn Write>>,
    /// The file, which gets its name when it is whole.
    path: Option<PathBuf>,
    names: Option<Names>,
    text: Vec<u8>,
    /// What went wrong first. The other ranks do not know of it, and go on.
    error: Option<anyhow::Error>,
}

impl Lines {
    pub(super) fn new(graph: &GraphInParts, sink: Sink, header: &[u8]) -> anyhow::Result<Self> {
        let (path, opened) = match sink {
            _ if ranks::follows() => (None, Ok((None, None))),
            Sink::Stdout => (None, open(graph, None)),
            Sink::File(path) => (Some(path.clone()), open(graph, Some(&part_of(&path)))),
        };
        let (to, names) = ranks::agree(opened)?;
        let (text, error) = (header.to_vec(), None);
        Ok(Self { to, path, names, text, error })
    }

    /// The line of a node, from its name or number.
    pub(super) fn write(&mut self, node: usize, line: impl FnOnce(Value, &mut Vec<u8>)) {
        let Some(to) = self.to.as_mut().filter(|_| self.error.is_none()) else { return };
        let next = || -> anyhow::Result<()> {
            let name = self.names.as_mut().and_then(Iterator::next).transpose()?;
            line(name.map_or_else(|| node.into(), Value::String), &mut self.text);
            to.write_all(&self.text)?;
            self.text.clear();
            Ok(())
        };
        self.error = next().err();
    }

    /// # Errors
    ///
    /// Whatever has gone wrong.
    pub(super) fn finish(mut self) -> anyhow::Result<()> {
        // A name that no node has is an error too.
        let surplus = self.names.as_mut().and_then(Iterator::next).and_then(Result::err);
        let done = match self.error.take().or(surplus.map(Into::into)) {
            Some(error) => Err(error),
            None => self
                .to
                .as_mut()
                .map_or(Ok(()), |to| to.write_all(&self.text).and_then(|()| to.flush()))
                .map_err(anyhow::Error::from),
        };
        drop(self.to);
        let done = done.and_then(|()| match &self.path {
            Some(path) => Ok(std::fs::rename(part_of(path), path)?),
            None => Ok(()),
        });
        match &self.path {
            Some(path) => done.with_context(|| format!("cannot write {}", path.display())),
            None => done,
        }
    }
}

type Opened = (Option<Box<dyn Write>>, Option<Names>);

fn open(graph: &GraphInParts, path: Option<&Path>) -> anyhow::Result<Opened> {
    let to: Box<dyn Write> = match path {
        None => Box::new(BufWriter::new(io::stdout())),
        Some(path) => {
            let file =
                File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
            Box::new(BufWriter::new(file))
        }
    };
    Ok((Some(to), graph.names()?))
}

fn part_of(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".part");
    path.with_file_name(name)
}
