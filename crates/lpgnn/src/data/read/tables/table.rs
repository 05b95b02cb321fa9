//! A CSV file, its columns and its rows.

use std::collections::HashSet;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::super::column::COLUMNS;
use super::super::npy;
use super::super::packed::{self, csv_error};
use super::super::text::{counted, quote};
use super::super::unpack::Guarded;
use crate::{Error, Matrix, Place};

/// How files in UTF-16 begin.
const UTF_16: [&[u8]; 2] = [b"\xff\xfe", b"\xfe\xff"];

/// A CSV file with a header.
pub(super) struct Table {
    folder: PathBuf,
    stem: &'static str,
    pub(super) path: PathBuf,
    reader: csv::Reader<Guarded<Box<dyn Read>>>,
    headers: Vec<String>,
}

/// The row that was read last.
pub(super) struct Row<'a> {
    pub(super) table: &'a Path,
    headers: &'a [String],
    record: &'a csv::ByteRecord,
    pub(super) line: u64,
}

impl Table {
    /// Opens `{stem}.csv` or `{stem}.csv.gz`, if there is one.
    pub(super) fn open(folder: &Path, stem: &'static str) -> Result<Option<Self>, Error> {
        let Some((path, source)) = packed::open(folder, stem)? else { return Ok(None) };
        let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(source);
        let record = reader.byte_headers().map_err(|error| csv_error(&path, error))?.clone();
        if record.get(0).is_some_and(|first| UTF_16.iter().any(|mark| first.starts_with(mark))) {
            return Err(Place::file(&path).error("is in UTF-16: save it in UTF-8"));
        }
        let mut headers: Vec<String> = vec![];
        for header in &record {
            let header = std::str::from_utf8(header)
                .ok()
                .map(str::trim)
                .filter(|header| !header.is_empty())
                .ok_or_else(|| {
                    let problem = match header {
                        [] => "has a column without a name, such as an index that was written too"
                            .to_owned(),
                        _ => format!("has a column called {}", quote(header)),
                    };
                    Place::line(&path, 1).error(problem)
                })?;
            headers.push(header.to_owned());
        }
        if headers.len() > COLUMNS {
            return Err(Place::line(&path, 1).error(format!(
                "has more than {COLUMNS} columns: many real values belong in {stem}.npy"
            )));
        }
        let folder = folder.to_owned();
        Ok(Some(Self { folder, stem, path, reader, headers }))
    }

    pub(super) fn require(folder: &Path, stem: &'static str) -> Result<Self, Error> {
        Self::open(folder, stem)?.ok_or_else(|| {
            Place::file(&folder.join(format!("{stem}.csv")))
                .error(format!("does not exist, and no {stem}.csv.gz either"))
        })
    }

    /// The role of every column; only `known` roles may occur.
    pub(super) fn roles(&self, known: &[Role]) -> Result<Vec<Column>, Error> {
        let here = |problem: String| Place::line(&self.path, 1).error(problem);
        let mut columns: Vec<Column> = vec![];
        let mut names = HashSet::new();
        for header in &self.headers {
            let column = Column::parse(header);
            // A reserved name is never a feature: a target among the features would leak.
            if !known.contains(&column.role) {
                return Err(here(unexpected(header, column.role, known)));
            }
            if !names.insert(column.name.clone()) {
                return Err(here(format!("has two columns {}", quote(column.name.as_bytes()))));
            }
            columns.push(column);
        }
        match misread(&columns, known) {
            Some(problem) => Err(here(problem)),
            None => Ok(columns),
        }
    }

    /// Calls `each` for every row, with its number from 0; returns the number of rows.
    pub(super) fn for_each(
        &mut self,
        mut each: impl FnMut(usize, &Row<'_>) -> Result<(), Error>,
    ) -> Result<usize, Error> {
        let mut record = csv::ByteRecord::new();
        let mut row = 0;
        while self.reader.read_byte_record(&mut record).map_err(|e| csv_error(&self.path, e))? {
            let line = record.position().map_or(0, csv::Position::line);
            let (table, headers) = (self.path.as_path(), &self.headers[..]);
            each(row, &Row { table, headers, record: &record, line })?;
            row += 1;
        }
        Ok(row)
    }

    /// The features in the `.npy` file next to the table, if there is one.
    pub(super) fn array(&self, rows: usize) -> Result<Matrix<f32>, Error> {
        let path = self.folder.join(format!("{}.npy", self.stem));
        if !path.exists() {
            return Ok(Matrix::zeros(rows, 0));
        }
        let array = npy::read(&path)?;
        if rows == 0 && array.rows() == 0 {
            // Any number of columns costs nothing in an empty file, but it would here.
            return Ok(Matrix::zeros(0, 0));
        }
        if array.rows() != rows {
            let file = self.path.file_name().unwrap_or_default().display();
            let problem = format!("has {}, but {file} has {rows}", counted(array.rows(), "row"));
            return Err(Place::file(&path).error(problem));
        }
        Ok(array)
    }
}

/// What others call the columns `id`, `graph` and `split`, without capitals and underscores. As features they would be misread: nodes would be
/// counted, graphs be one, and a split be drawn.
const OTHER_NAMES: [(&[&str], Role, &str); 3] = [
    (&["node", "nodeid", "nodename"], Role::Id, "call it id if it names the nodes"),
    (&["graphid", "graphname", "graphindex"], Role::Graph, "call it graph if it names the graphs"),
    (
        &["trainmask", "valmask", "validmask", "testmask"],
        Role::Split,
        "a split is one column split with train, val or test",
    ),
];

/// What is wrong with columns that would be read as something else than what they may be meant to be.
fn misread(columns: &[Column], known: &[Role]) -> Option<String> {
    if let [Column { name, .. }] = columns
        && name.contains([';', '\t'])
    {
        return Some(format!(
            "has the one column {}: separate columns by commas",
            quote(name.as_bytes())
        ));
    }
    columns.iter().find_map(|column| {
        let (role, advice) = column.meant()?;
        let is_free = known.contains(&role) && place_of(columns, role).is_none();
        let name = &column.name;
        is_free.then(|| {
            format!(
                "has the column {}, which would be a feature: {advice}; if it is one, call it {name}:category or {name}:value",
                quote(name.as_bytes())
            )
        })
    })
}

/// What is wrong with a column whose reserved name has no meaning in this table.
fn unexpected(header: &str, role: Role, known: &[Role]) -> String {
    let header = quote(header.as_bytes());
    if role == Role::Target && known.contains(&Role::Y) {
        return format!(
            "has the column {header}, which only edges.csv may have: what is to be predicted is \
             called y"
        );
    }
    let known: Vec<&str> = known.iter().map(|role| role.name()).collect();
    format!("has the column {header}, but only these have a meaning here: {}", known.join(", "))
}

impl<'a> Row<'a> {
    pub(super) fn error(&self, problem: impl Into<String>) -> Error {
        Place::line(self.table, self.line).error(problem)
    }

    /// The error for a cell of a column.
    pub(super) fn column_error(&self, column: usize, problem: impl std::fmt::Display) -> Error {
        self.error(format!("column {} {problem}", quote(self.headers[column].as_bytes())))
    }

    pub(super) fn bytes(&self, column: usize) -> &'a [u8] {
        self.record.get(column).unwrap_or_default()
    }

    pub(super) fn text(&self, column: usize) -> Result<&'a str, Error> {
        let bytes = self.bytes(column);
        std::str::from_utf8(bytes)
            .map_err(|_| self.column_error(column, format!("has {}, not UTF-8", quote(bytes))))
    }

    /// A cell that may not be empty.
    pub(super) fn name(&self, column: usize) -> Result<&'a str, Error> {
        match self.text(column)? {
            "" => Err(self.column_error(column, "is empty, but a name is expected")),
            text => Ok(text),
        }
    }
}

/// The role of a column.
///
/// `Target` is the node that an edge points to; `Y` is what is to be predicted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Graph,
    Id,
    Source,
    Target,
    Y,
    Split,
    Feature,
}

impl Role {
    const NAMED: [Self; 6] =
        [Self::Graph, Self::Id, Self::Source, Self::Target, Self::Y, Self::Split];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Graph => "graph",
            Self::Id => "id",
            Self::Source => "source",
            Self::Target => "target",
            Self::Y => "y",
            Self::Split => "split",
            Self::Feature => "features",
        }
    }
}

/// How the cells of a column are interpreted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Words,
    Values,
}

pub(super) struct Column {
    pub(super) role: Role,
    pub(super) name: String,
    /// What the header says: `age:category`, `age:value`, `y:class`, `y:value`.
    pub(super) kind: Option<Kind>,
}

impl Column {
    pub(super) fn parse(header: &str) -> Self {
        let lower = |kind: &str| kind.trim().to_ascii_lowercase();
        let parts = header.rsplit_once(':').map(|(name, kind)| (name.trim_end(), lower(kind)));
        let (name, kind) = match &parts {
            Some((name, kind)) if ["category", "class"].contains(&&kind[..]) => {
                (*name, Some(Kind::Words))
            }
            Some((name, kind)) if kind == "value" => (*name, Some(Kind::Values)),
            _ => (header, None),
        };
        let role = Role::NAMED.into_iter().find(|role| role.name().eq_ignore_ascii_case(name));
        match role {
            Some(role) => Self { role, name: role.name().to_owned(), kind },
            None => Self { role: Role::Feature, name: name.to_owned(), kind },
        }
    }

    /// What the column may be meant to be instead of a feature, and how to say so.
    fn meant(&self) -> Option<(Role, &'static str)> {
        let is_feature = self.role == Role::Feature && self.kind.is_none();
        let bare = || self.name.replace(['_', '-', ' '], "").to_ascii_lowercase();
        let name = is_feature.then(bare)?;
        let (_, role, advice) =
            OTHER_NAMES.into_iter().find(|(names, ..)| names.contains(&&name[..]))?;
        Some((role, advice))
    }
}

pub(super) fn place_of(columns: &[Column], role: Role) -> Option<usize> {
    columns.iter().position(|column| column.role == role)
}
