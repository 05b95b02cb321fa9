use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};

use crate::memory::readable;

/// Everything that can go wrong. Each message is one sentence: what, where, what was expected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An edge names a node that does not exist.
    #[error("edge {edge} names node {node}, but there are {nodes} nodes")]
    EdgeOutOfRange {
        /// Position of the edge in the list that was given, from 0.
        edge: usize,
        /// The node it names.
        node: usize,
        /// How many nodes there are.
        nodes: usize,
    },
    /// An edge joins nodes of two graphs.
    #[error("edge {edge} joins a node of graph {source_graph} to a node of graph {target_graph}")]
    EdgeBetweenGraphs {
        /// Position of the edge in the list that was given, from 0.
        edge: usize,
        /// Graph of its source.
        source_graph: usize,
        /// Graph of its target.
        target_graph: usize,
    },
    /// A row has a different length than the first one.
    #[error("row {row} has {found} columns where {expected} were expected")]
    RaggedRows {
        /// The offending row.
        row: usize,
        /// Length of the first row.
        expected: usize,
        /// Length of this row.
        found: usize,
    },
    /// A matrix was given the wrong number of entries.
    #[error("{found} entries cannot fill {rows} rows of {cols}")]
    EntryCount {
        /// Rows of the matrix.
        rows: usize,
        /// Columns of the matrix.
        cols: usize,
        /// Entries that were given.
        found: usize,
    },
    /// A table has another number of rows than there are nodes, edges or graphs.
    #[error("{what} has {found} rows where {expected} were expected")]
    RowCount {
        /// The table.
        what: &'static str,
        /// Expected number of rows.
        expected: usize,
        /// Number of rows found.
        found: usize,
    },
    /// A column index is out of range.
    #[error("row {row} of {what} names column {column}, but there are {width} columns")]
    ColumnOutOfRange {
        /// What has the row.
        what: &'static str,
        /// The row.
        row: usize,
        /// The column it names.
        column: usize,
        /// How many columns there are.
        width: usize,
    },
    /// A number is infinite or NaN.
    #[error("row {row}, column {column} of {what} is {value}, but a finite number is expected")]
    NotFinite {
        /// What has the row.
        what: &'static str,
        /// The row, from 0.
        row: usize,
        /// The column, from 0.
        column: usize,
        /// The value.
        value: f64,
    },
    /// A category that was not seen in training.
    #[error(
        "{what} {row} of {graph} has {column} “{value}”, which is none of the known values: {known}"
    )]
    UnknownCategory {
        /// `node` or `edge`.
        what: &'static str,
        /// Its number.
        row: usize,
        /// The graph it belongs to, as in `graph 3`.
        graph: String,
        /// Name of the column.
        column: String,
        /// The value found.
        value: String,
        /// The values that are known.
        known: String,
    },
    /// Data, model and settings do not fit each other.
    #[error("{0}")]
    Mismatch(String),
    /// A change of a live graph was refused.
    #[error(transparent)]
    Event(#[from] crate::live::EventError),
    /// Nodes and edges are numbered with 32 bits.
    #[error("a batch has at most 2³² − 2 nodes and neighbours")]
    TooLarge,
    /// Something would take more memory than is left; see [`memory`](crate::memory).
    #[error(
        "{what} takes {}, but only {} of the memory limit of {} is left",
        readable(*bytes), readable(*left), readable(*limit)
    )]
    Memory {
        /// What would take it.
        what: String,
        /// How much it would take.
        bytes: u64,
        /// How much is left.
        left: u64,
        /// The limit of the process.
        limit: u64,
    },
    /// There is nothing to work on.
    #[error("there are no graphs")]
    NoGraphs,
    /// An option has a value that cannot be used.
    #[error("{option} is {value}, but {expected}")]
    Option {
        /// Name of the option.
        option: &'static str,
        /// Its value, as given.
        value: String,
        /// What is expected.
        expected: String,
    },
    /// A setting does not exist, or its value cannot be read.
    #[error("{origin}: {problem}")]
    Config {
        /// Where the setting was made.
        origin: Origin,
        /// What is wrong with it, and what was expected.
        problem: String,
    },
    /// The settings of a run are not those that it was trained with.
    #[error("{} was edited after the last checkpoint: {changes}", path.display())]
    EditedConfig {
        /// The file.
        path: PathBuf,
        /// Which settings, with the values before and now.
        changes: String,
    },
    /// The contents of a file are invalid.
    #[error("{place}: {problem}")]
    Input {
        /// Where.
        place: Place,
        /// What is wrong there, and what was expected.
        problem: String,
    },
    /// There is no data set of this name.
    #[error("{name} is neither a file or folder nor a built-in data set, and it is not in {}{hint}", cache.display())]
    UnknownSet {
        /// The name.
        name: String,
        /// The folder of downloaded data sets.
        cache: PathBuf,
        /// A suggestion, after a semicolon, or nothing.
        hint: String,
    },
    /// A file could not be downloaded.
    #[error(
        "cannot fetch {url}: {problem}{hint}; a copy from elsewhere can be put at {}",
        path.display()
    )]
    Fetch {
        /// Its address.
        url: String,
        /// What happened.
        problem: String,
        /// A suggestion for the address, after a semicolon, or nothing.
        hint: String,
        /// Where the file belongs.
        path: PathBuf,
    },
    /// A folder cannot be used.
    #[error("{} {problem}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What is wrong with it, and what can be done.
        problem: String,
    },
    /// Another process is using the folder.
    #[error("another process is working on {}", path.display())]
    Locked {
        /// The folder.
        path: PathBuf,
    },
    /// Another process of the same job has failed, and says why.
    #[error("another process of the job has failed")]
    Elsewhere,
    /// Threads cannot be started.
    #[error("cannot start threads: {0}")]
    Threads(String),
    /// An input or output operation failed.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// What was tried: `read`, `write`, …
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        #[source]
        source: std::io::Error,
    },
}

/// A message for people, in which no quoted value and nothing else is of any length: names in files may be.
///
/// ```
/// use lpgnn::shortened;
///
/// assert_eq!(shortened("y is “a”, but a number is expected"), "y is “a”, but a number is expected");
/// let long = format!("y is “{}z”, but a number is expected", "a".repeat(10_000));
/// assert!(shortened(&long).starts_with("y is “aaaaaaaa"));
/// assert!(shortened(&long).ends_with("aaz”, but a number is expected"));
/// assert!(shortened(&long).contains('…') && shortened(&long).len() < 200);
/// ```
pub fn shortened(text: &str) -> Cow<'_, str> {
    /// The first and the last characters that are left of a quoted value, and of a message.
    const QUOTED: (usize, usize) = (80, 20);
    const MESSAGE: (usize, usize) = (1000, 500);
    if text.len() <= QUOTED.0 + QUOTED.1 {
        return Cow::Borrowed(text);
    }
    let (mut short, mut rest) = (String::new(), text);
    while let Some(open) = rest.find(['“', '"']) {
        let mark = if rest[open..].starts_with('“') { '“' } else { '"' };
        let (before, quoted) = rest.split_at(open + mark.len_utf8());
        let close = quoted.find(if mark == '“' { '”' } else { '"' }).unwrap_or(quoted.len());
        short.push_str(before);
        short.push_str(&cut(&quoted[..close], QUOTED));
        rest = &quoted[close..];
        // The mark that closes is not one that opens.
        let mark = rest.chars().next().map_or(0, char::len_utf8);
        short.push_str(&rest[..mark]);
        rest = &rest[mark..];
    }
    short.push_str(rest);
    Cow::Owned(cut(&short, MESSAGE).into_owned())
}

/// The first and the last characters, with an ellipsis for what was between them.
fn cut(text: &str, (first, last): (usize, usize)) -> Cow<'_, str> {
    let count = text.chars().count();
    if count <= first + last + 1 {
        return Cow::Borrowed(text);
    }
    let place = |number: usize| text.char_indices().nth(number).map_or(text.len(), |(at, _)| at);
    Cow::Owned(format!("{}…{}", &text[..place(first)], &text[place(count - last)..]))
}

/// Where a setting was made: a file, with line and column, or a flag or an argument.
///
/// ```
/// use lpgnn::Origin;
///
/// assert_eq!(Origin::at("run.toml", 3, 10).to_string(), "run.toml, line 3, column 10");
/// assert_eq!(Origin::from("--set").to_string(), "--set");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    name: String,
    position: Option<(usize, usize)>,
}

impl Origin {
    /// A place in a file; lines and columns count from 1.
    pub fn at(name: &str, line: usize, column: usize) -> Self {
        Self { name: name.to_owned(), position: Some((line, column)) }
    }

    /// The file, the flag or the argument.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Line and column, from 1, in a file.
    pub fn position(&self) -> Option<(usize, usize)> {
        self.position
    }
}

impl From<String> for Origin {
    fn from(name: String) -> Self {
        Self { name, position: None }
    }
}

impl From<&str> for Origin {
    fn from(name: &str) -> Self {
        name.to_owned().into()
    }
}

impl From<&String> for Origin {
    fn from(name: &String) -> Self {
        name.clone().into()
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.name, self.position) {
            (name, Some((line, column))) => write!(f, "{name}, line {line}, column {column}"),
            (name, None) => f.write_str(name),
        }
    }
}

/// A place in a file, for messages: `NCI1_A.txt, line 17`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    path: PathBuf,
    position: Position,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Position {
    Whole,
    Line(u64),
    Byte(u64),
}

impl Place {
    /// The file as a whole.
    pub fn file(path: &Path) -> Self {
        Self { path: path.to_owned(), position: Position::Whole }
    }

    /// A line, counted from 1.
    pub fn line(path: &Path, line: u64) -> Self {
        Self { path: path.to_owned(), position: Position::Line(line) }
    }

    /// A byte, counted from 0.
    pub fn byte(path: &Path, byte: u64) -> Self {
        Self { path: path.to_owned(), position: Position::Byte(byte) }
    }

    /// The same place, when `from` is called `to`.
    #[cfg(feature = "fetch")]
    pub(crate) fn renamed(mut self, from: &Path, to: &Path) -> Self {
        if let Ok(rest) = self.path.strip_prefix(from) {
            // `join` with nothing would leave a slash at the end.
            self.path = if rest.as_os_str().is_empty() { to.to_owned() } else { to.join(rest) };
        }
        self
    }

    /// The error that `problem` is found here.
    pub fn error(self, problem: impl Into<String>) -> Error {
        Error::Input { place: self, problem: problem.into() }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match self.position {
            Position::Whole => write!(f, "{path}"),
            Position::Line(line) => write!(f, "{path}, line {line}"),
            Position::Byte(byte) => write!(f, "{path}, byte {byte}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_a_bounded_length_whatever_it_quotes() {
        let long = "ä".repeat(10_000);
        for text in [
            format!("nodes.csv, line 3: y is “{long}”, but “{long}” is expected"),
            format!("--set: training.epochs is \"{long}\", but a positive integer is expected"),
            format!("{long} has no column {long}"),
            format!("“{long}"),
            format!("“{long}“{long}”"),
        ] {
            let short = shortened(&text);
            assert!(short.chars().count() <= 1501 && short.contains('…'), "{short}");
            let ends = |text: &str| (text.chars().next(), text.chars().last());
            assert_eq!(ends(&short), ends(&text));
            assert_eq!(shortened(&short), short, "it is short now");
        }
        let short = "“a” and “b”, \"c\" and ".repeat(9);
        assert_eq!(shortened(&short), short);
    }
}
