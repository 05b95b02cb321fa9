//! Readers.

mod archive;
mod citation;
mod column;
mod gin;
mod mat5;
mod matlab;
mod node_link;
mod npy;
mod npz;
mod ogb;
mod packed;
mod rounding;
mod tables;
mod text;
mod tu;
mod unpack;

pub(super) use column::COLUMNS;
pub(super) use npy::layout as npy_layout;
pub(super) use npz::splits as npz_splits;

use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::{Dataset, Level, Split};
use crate::{Error, Place, memory};
use archive::Archive;

/// Reads the graphs at `path`, a file or a folder in one of the [`Format`]s.
///
/// ```
/// use lpgnn::data::{ReadOptions, read};
///
/// let folder = tempfile::tempdir()?;
/// std::fs::write(folder.path().join("TRIANGLE_A.txt"), "1, 2\n2, 3\n3, 1\n")?;
/// std::fs::write(folder.path().join("TRIANGLE_graph_indicator.txt"), "1\n1\n1\n")?;
/// let triangle = read(folder.path(), &ReadOptions::default())?;
/// assert_eq!((triangle.graphs(), triangle.nodes()), (1, 3));
/// assert_eq!(triangle.edges(), [(0, 1), (1, 2), (2, 0)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Memory use is bounded by what the files contain, not by what they claim to contain. A compressed
/// file that unpacks to more than 100 times its size and more than 32 MiB is rejected.
///
/// # Errors
///
/// [`Error::Input`], which names the file, the line and what was expected there; [`Error::Io`].
pub fn read(path: &Path, options: &ReadOptions) -> Result<Dataset, Error> {
    let format = match options.format {
        Some(format) => format,
        None => Format::recognise(path)?,
    };
    if matches!(format, Format::Citation | Format::Ogb | Format::Tables) && path.is_file() {
        let problem = format!("is a file, but the format {format} is a folder");
        return Err(Place::file(path).error(problem));
    }
    let dataset = match format {
        Format::Tu => tu::read(path),
        Format::Gin => gin::read(path),
        Format::Matlab => matlab::read(path),
        Format::Citation => citation::read(path),
        Format::Npz => npz::read(path),
        Format::Ogb => ogb::read(path),
        Format::NodeLink => node_link::read(path),
        Format::Tables => tables::read(path),
    }?;
    let graphs = dataset.graphs();
    memory::require(
        memory::bytes_of::<[u8; PER_GRAPH]>(&[graphs]),
        format_args!("{graphs} graphs"),
    )?;
    Ok(dataset)
}

/// Bytes that whatever is done with a data set takes for a graph of no nodes: its target, where it begins, what becomes of it.
const PER_GRAPH: usize = 512;

/// Options for [`read`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// The format; if none, it is recognised by content.
    pub format: Option<Format>,
}

/// The formats that can be read.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Hash,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// The text files of the TU collection: a folder, a zip file, or a folder with such folders
    /// called `train`, `val` and `test`.
    Tu,
    /// The one-file text format of GIN and DGCNN.
    Gin,
    /// MATLAB level 5 files in the layouts of the method's authors.
    Matlab,
    /// A citation graph: a folder with `edges.txt`, `features.txt` and `labels.txt`.
    Citation,
    /// A graph as arrays in an `.npz` file: edges with tables and masks, or sparse matrices with indices.
    Npz,
    /// The raw CSV files of the Open Graph Benchmark: a folder with `raw/edge.csv.gz`.
    Ogb,
    /// Node-link JSON, as `networkx.node_link_data` and D3 write it.
    NodeLink,
    /// A folder with `nodes.csv` and `edges.csv`.
    Tables,
}

impl Format {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Tu,
        Self::Gin,
        Self::Matlab,
        Self::Citation,
        Self::Npz,
        Self::Ogb,
        Self::NodeLink,
        Self::Tables,
    ];

    /// Its name: `tu`, `gin`, `matlab`, `citation`, `npz`, `ogb`, `node-link` or `tables`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tu => "tu",
            Self::Gin => "gin",
            Self::Matlab => "matlab",
            Self::Citation => "citation",
            Self::Npz => "npz",
            Self::Ogb => "ogb",
            Self::NodeLink => "node-link",
            Self::Tables => "tables",
        }
    }

    /// Recognises the format: of a folder by the files in it, of a file by its first bytes.
    ///
    /// # Errors
    ///
    /// [`Error::Input`], which says what was looked for, if `path` does not exist or matches no
    /// format, or a folder matches more than one.
    pub fn recognise(path: &Path) -> Result<Self, Error> {
        if path.is_dir() { recognise_folder(path) } else { recognise_file(path) }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Format {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::ALL.into_iter().find(|format| format.as_str() == text).ok_or_else(|| Error::Option {
            option: "format",
            value: text.to_owned(),
            expected: format!("it is one of {}", Self::ALL.map(Self::as_str).join(", ")),
        })
    }
}

fn recognise_folder(folder: &Path) -> Result<Format, Error> {
    if super::parts::is_in_parts(folder) {
        return Err(Place::file(folder)
            .error("is a graph in parts, which train, evaluate, predict and states can read"));
    }
    let files = list(folder)?;
    let has = |name: &str| files.iter().any(|file| file == name);
    let mut found = vec![];
    if !tu::names(folder)?.is_empty() {
        found.push(Format::Tu);
    }
    if matlab::is_folder(&files) {
        found.push(Format::Matlab);
    }
    if has("edges.txt") && (has("labels.txt") || has("features.txt")) {
        found.push(Format::Citation);
    }
    if ogb::is_folder(folder) {
        found.push(Format::Ogb);
    }
    if has("nodes.csv") || has("nodes.csv.gz") {
        found.push(Format::Tables);
    }
    if found.is_empty() {
        for name in [TRAIN, VAL, TEST].into_iter().flatten() {
            let part = folder.join(name);
            if part.is_dir() && !tu::names(&part)?.is_empty() {
                return Ok(Format::Tu);
            }
        }
    }
    match found[..] {
        [format] => Ok(format),
        [] => Err(Place::file(folder).error(
            "contains no data set in a known format: it has neither NAME_A.txt (tu), conmattrain.mat \
             (matlab), edges.txt with labels.txt (citation), raw/edge.csv (ogb), nodes.csv (tables), \
             nor a folder train with NAME_A.txt",
        )),
        [first, second, ..] => Err(Place::file(folder).error(format!(
            "has files of the formats {first} and {second}: choose one with --format"
        ))),
    }
}

fn recognise_file(path: &Path) -> Result<Format, Error> {
    let mut head = vec![];
    text::open(path)?.take(4096).read_to_end(&mut head).map_err(|source| Error::Io {
        action: "read",
        path: path.to_owned(),
        source,
    })?;
    if head.starts_with(b"PK\x03\x04") || head.starts_with(b"PK\x05\x06") {
        // Arrays, or what may be text files: their reader says if it is not even a zip file.
        let arrays = Archive::open(path)
            .is_ok_and(|archive| archive.names().iter().any(|name| is_array(name)));
        Ok(if arrays { Format::Npz } else { Format::Tu })
    } else if head.starts_with(b"MATLAB ") {
        Ok(Format::Matlab)
    } else if gin::is_head(&head) {
        Ok(Format::Gin)
    } else if node_link::is_head(&head) {
        Ok(Format::NodeLink)
    } else {
        Err(Place::file(path).error(
            "is not a data set in a known format: it starts neither like a zip file (tu, npz), a \
             MATLAB 5.0 file (matlab), JSON (node-link), nor with a number of graphs and then a \
             number of nodes and a label (gin)",
        ))
    }
}

/// Whether an entry of an archive is an array.
fn is_array(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|end| end == "npy")
}

/// The names of the files in a folder, sorted. Names that are not UTF-8 are ignored.
fn list(folder: &Path) -> Result<Vec<String>, Error> {
    let io = |source| Error::Io { action: "list", path: folder.to_owned(), source };
    let mut names = vec![];
    for entry in std::fs::read_dir(folder).map_err(io)? {
        names.extend(entry.map_err(io)?.file_name().into_string());
    }
    names.sort_unstable();
    Ok(names)
}

/// The names of the three splits in data; the first one is ours.
const TRAIN: &[&str] = &["train"];
const VAL: &[&str] = &["val", "valid", "validation"];
const TEST: &[&str] = &["test"];

/// One data set from those of the train, val and test splits; messages refer to each by its path.
///
/// # Errors
///
/// [`Error::Input`] naming the one whose columns differ from those of the first.
fn join_parts(parts: [Option<(PathBuf, Dataset)>; 3]) -> Result<Dataset, Error> {
    let mut joined: Option<Dataset> = None;
    let mut members = [vec![], vec![], vec![]];
    for (part, members) in parts.into_iter().zip(&mut members) {
        let Some((path, part)) = part else { continue };
        let start = joined.as_ref().map_or(0, Dataset::graphs);
        *members = (start..start + part.graphs()).collect();
        joined = Some(match joined {
            None => part,
            Some(before) => before.join(&part).map_err(|error| {
                Place::file(&path)
                    .error(format!("cannot be joined with the splits before it: {error}"))
            })?,
        });
    }
    let [train, val, test] = members;
    let split = Split { level: Level::Graph, train, val, test };
    joined.ok_or(Error::NoGraphs)?.with_split(Some(split))
}

/// The name of a data set at `path`: that of the file or folder, without extension.
fn name_of(path: &Path) -> String {
    let full = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    full.file_stem().map_or_else(|| "graphs".to_owned(), |name| name.to_string_lossy().into_owned())
}
