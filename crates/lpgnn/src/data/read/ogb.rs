//! The raw files of the Open Graph Benchmark: a folder `raw` of CSV files without headers, and a
//! folder `split`.

use std::io::Read;
use std::path::{Path, PathBuf};

use super::column::{COLUMNS, IntegerColumn, Rows, numbered};
use super::packed::{self, csv_error};
use super::tables::{Description, both_directions};
use super::text::{self, counted, quote};
use super::unpack::Guarded;
use super::{list, name_of};
use crate::data::{ColumnNames, Dataset, DatasetParts, FeatureColumns, Level, Split, TargetColumn};
use crate::{Error, Matrix, Place};

/// Reads the folder of a data set, or its folder `raw`. Every file is plain or gzipped:
///
/// `num-node-list` and `num-edge-list` have a number per graph, `edge` has the edges of one graph
/// after the other, with nodes counted from 0 within their graph; `node-feat`, `edge-feat`,
/// `node-label` and `graph-label` have a row of numbers each, and all of them are optional. A row of
/// `edge` is an undirected edge unless `dataset.toml` says `directed = true`.
///
/// `split/NAME/{train,valid,test}` lists nodes or graphs, counted from 0.
pub(super) fn read(folder: &Path) -> Result<Dataset, Error> {
    let raw = tables_of(folder).ok_or_else(|| {
        Place::file(folder).error(
            "contains no OGB data set: there is no raw/edge.csv with raw/num-node-list.csv, \
             gzipped or not",
        )
    })?;
    // The folder of a data set is the one that `raw` is in.
    let own = raw.ends_with("raw").then(|| raw.parent()).flatten().unwrap_or(&raw).to_owned();
    let description = Description::read(&own)?;
    let sizes = Sizes::read(&raw)?;
    let edges = edges(&raw, &sizes)?;
    let per_edge = Rows::new(edges.len(), "edge", &sizes.edge_file);
    let edge_features = features(&raw, "edge", &per_edge)?;
    let per_node = Rows::new(sizes.nodes(), "node", &sizes.node_file);
    let node_features = features(&raw, "node", &per_node)?;
    let node_targets = targets(&raw, "node", &per_node)?;
    let graphs = sizes.node_starts.len() - 1;
    let graph_targets = targets(&raw, "graph", &Rows::new(graphs, "graph", &sizes.node_file))?;
    if node_features.is_empty() && node_targets.is_none() {
        sizes.check_claim(&raw, edges.len())?;
    }
    let (edges, edge_features) = if description.directed {
        (edges, edge_features)
    } else {
        both_directions(&edges, &edge_features)
    };
    let (level, members) = match node_targets {
        Some(_) => (Level::Node, per_node),
        None => (Level::Graph, Rows::new(graphs, "graph", &sizes.node_file)),
    };
    let dataset = Dataset::new(DatasetParts {
        name: description.name.unwrap_or_else(|| name_of(&own)),
        node_starts: sizes.node_starts,
        edges,
        node_features,
        edge_features,
        node_targets,
        graph_targets,
        split: None,
    })?;
    let splits = own.join("split");
    let split = split(&splits, level, &members)?;
    dataset.with_split(split).map_err(|error| Place::file(&splits).error(error.to_string()))
}

/// Whether a folder has these files.
pub(super) fn is_folder(folder: &Path) -> bool {
    tables_of(folder).is_some()
}

/// The folder with the tables: `raw`, or the folder itself.
fn tables_of(folder: &Path) -> Option<PathBuf> {
    [folder.join("raw"), folder.to_owned()].into_iter().find(|folder| {
        let has = |stem: &str| {
            ["csv", "csv.gz"].iter().any(|end| folder.join(format!("{stem}.{end}")).is_file())
        };
        has("edge") && has("num-node-list")
    })
}

/// How many nodes and edges every graph has.
struct Sizes {
    node_file: String,
    edge_file: String,
    node_starts: Vec<usize>,
    /// Where the edges of every graph end.
    edge_ends: Vec<usize>,
}

impl Sizes {
    fn read(raw: &Path) -> Result<Self, Error> {
        let mut node_table = Csv::require(raw, "num-node-list")?;
        let mut edge_table = Csv::require(raw, "num-edge-list")?;
        let node_starts = node_table.sums()?;
        let edge_ends = edge_table.sums()?.split_off(1);
        let graphs = node_starts.len() - 1;
        if edge_ends.len() != graphs {
            return Err(Place::file(&edge_table.path).error(format!(
                "has {}, but {} has {graphs}",
                counted(edge_ends.len(), "graph"),
                node_table.name()
            )));
        }
        if graphs == 0 || node_starts[graphs] == 0 {
            return Err(Place::file(&node_table.path).error("has no nodes"));
        }
        let (node_file, edge_file) = (node_table.name(), edge_table.name());
        Ok(Self { node_file, edge_file, node_starts, edge_ends })
    }

    fn nodes(&self) -> usize {
        self.node_starts[self.node_starts.len() - 1]
    }

    /// Nodes that no file has a row for are only claimed. Some have no edge either, but not most of
    /// them.
    fn check_claim(&self, raw: &Path, edges: usize) -> Result<(), Error> {
        if self.nodes() / 16 <= edges + self.edge_ends.len() + 64 {
            return Ok(());
        }
        Err(Place::file(&raw.join(&self.node_file)).error(format!(
            "declares {}, but there is neither node-feat.csv nor node-label.csv, and there are only {}",
            counted(self.nodes(), "node"),
            counted(edges, "edge")
        )))
    }
}

/// The edges as they are listed.
fn edges(raw: &Path, sizes: &Sizes) -> Result<Vec<(u32, u32)>, Error> {
    let mut table = Csv::require(raw, "edge")?;
    let (mut edges, mut graph) = (vec![], 0);
    let announced = sizes.edge_ends.last().copied().unwrap_or(0);
    while let Some(row) = table.next()? {
        if edges.len() == announced {
            let problem = format!("is a row too many: {} has {announced} edges", sizes.edge_file);
            return Err(row.error(problem));
        }
        while sizes.edge_ends[graph] <= edges.len() {
            graph += 1;
        }
        let (start, end) = (sizes.node_starts[graph], sizes.node_starts[graph + 1]);
        if row.record.len() != 2 {
            let problem =
                format!("has {} where two nodes are expected", counted(row.record.len(), "field"));
            return Err(row.error(problem));
        }
        let node = |field: usize| {
            let place = row.integer(field)?;
            let node = usize::try_from(place).ok().filter(|&place| place < end - start);
            node.and_then(|place| u32::try_from(start + place).ok()).ok_or_else(|| {
                row.error(format!(
                    "names node {place}, but graph {graph} has {}, counted from 0",
                    counted(end - start, "node")
                ))
            })
        };
        edges.push((node(0)?, node(1)?));
    }
    if edges.len() < announced {
        return Err(Place::file(&table.path).error(format!(
            "ends after {}, but {} has {announced} edges",
            counted(edges.len(), "row"),
            sizes.edge_file
        )));
    }
    Ok(edges)
}

/// From this number of columns on, integers are counts, not codes of categories.
const TABLE: usize = 32;

/// `node-feat` or `edge-feat`: categories if all numbers are written as integers, otherwise values.
fn features(raw: &Path, what: &str, rows: &Rows) -> Result<FeatureColumns, Error> {
    let features = FeatureColumns::none(rows.count);
    let Some(mut table) = Csv::open(raw, &format!("{what}-feat"))? else { return Ok(features) };
    let numbers = table.numbers(rows)?;
    let base = format!("{what} feature");
    if let Some(place) = numbers.entries.iter().position(|x| x.is_nan()) {
        let problem = format!("has no number in row {}, counted from 0", place / numbers.cols);
        return Err(Place::file(&table.path).error(problem));
    }
    if !numbers.whole || numbers.cols >= TABLE {
        let names = ColumnNames::default().and_numbered(&base, numbers.cols);
        return features.with_values(names, numbers.matrix(rows.count)?);
    }
    let mut all = features;
    for (column, name) in numbered(&base, numbers.cols).into_iter().enumerate() {
        all = all.with_categories(numbers.integers(column)?.finish(name)?)?;
    }
    Ok(all)
}

/// `node-label` or `graph-label`: a class each if it is one integer, otherwise values.
fn targets(raw: &Path, what: &str, rows: &Rows) -> Result<Option<TargetColumn>, Error> {
    let Some(mut table) = Csv::open(raw, &format!("{what}-label"))? else { return Ok(None) };
    let numbers = table.numbers(rows)?;
    let name = format!("{what} label");
    let is_class = |x: &f32| x.is_nan() || x.fract() == 0.0 && x.abs() < EXACT;
    if numbers.cols == 1 && numbers.entries.iter().all(is_class) {
        return Ok(Some(TargetColumn::Classes(numbers.integers(0)?.finish(name)?)));
    }
    if numbers.cols > COLUMNS {
        let problem = format!("has more than {COLUMNS} columns of targets");
        return Err(Place::line(&table.path, 1).error(problem));
    }
    let names = numbered(&name, numbers.cols);
    Ok(Some(TargetColumn::Values { names, values: numbers.matrix(rows.count)? }))
}

/// The split in the only folder of `splits`; none if there is no such folder.
fn split(splits: &Path, level: Level, members: &Rows) -> Result<Option<Split>, Error> {
    if !splits.is_dir() {
        return Ok(None);
    }
    let mut folders: Vec<PathBuf> = list(splits)?.iter().map(|name| splits.join(name)).collect();
    folders.retain(|folder| folder.is_dir());
    let folder = match &folders[..] {
        [] => return Ok(None),
        [folder] => folder,
        [first, second, ..] => {
            return Err(Place::file(splits).error(format!(
                "has the folders {} and {}, but one split is expected",
                quote(name_of(first).as_bytes()),
                quote(name_of(second).as_bytes())
            )));
        }
    };
    let read = |stem: &str| {
        let mut table = Csv::require(folder, stem)?;
        let mut indices = vec![];
        while let Some(row) = table.next()? {
            let place = row.integer(0)?;
            let index = usize::try_from(place).ok().filter(|&index| index < members.count);
            indices.push(index.ok_or_else(|| {
                let what = level.as_str();
                row.error(format!("names {what} {place}, but {}, counted from 0", members.because))
            })?);
        }
        Ok::<_, Error>(indices)
    };
    let (train, val, test) = (read("train")?, read("valid")?, read("test")?);
    Ok(Some(Split { level, train, val, test }))
}

/// A CSV file without a header.
struct Csv {
    path: PathBuf,
    reader: csv::Reader<Guarded<Box<dyn Read>>>,
    record: csv::ByteRecord,
}

/// The row that was read last.
struct Row<'a> {
    path: &'a Path,
    record: &'a csv::ByteRecord,
}

/// A table of numbers, in rows; NaN where there is none.
struct Numbers {
    cols: usize,
    entries: Vec<f32>,
    /// Whether all are written as integers, of which single precision holds every digit.
    whole: bool,
}

impl Csv {
    fn open(folder: &Path, stem: &str) -> Result<Option<Self>, Error> {
        let Some((path, source)) = packed::open(folder, stem)? else { return Ok(None) };
        let mut builder = csv::ReaderBuilder::new();
        let reader = builder.has_headers(false).trim(csv::Trim::All).from_reader(source);
        Ok(Some(Self { path, reader, record: csv::ByteRecord::new() }))
    }

    fn require(folder: &Path, stem: &str) -> Result<Self, Error> {
        Self::open(folder, stem)?.ok_or_else(|| {
            Place::file(&folder.join(format!("{stem}.csv")))
                .error(format!("does not exist, and no {stem}.csv.gz either"))
        })
    }

    fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    fn next(&mut self) -> Result<Option<Row<'_>>, Error> {
        let more = self.reader.read_byte_record(&mut self.record);
        let more = more.map_err(|error| csv_error(&self.path, error))?;
        Ok(more.then_some(Row { path: &self.path, record: &self.record }))
    }

    /// The sums of a column of sizes, from 0.
    fn sums(&mut self) -> Result<Vec<usize>, Error> {
        let mut sums = vec![0_usize];
        while let Some(row) = self.next()? {
            let size = row.integer(0)?;
            let size = usize::try_from(size)
                .map_err(|_| row.error(format!("has {size}, but a size is expected")))?;
            let sum = sums[sums.len() - 1].checked_add(size).filter(|&sum| sum < u32::MAX as usize);
            sums.push(sum.ok_or(Error::TooLarge)?);
        }
        Ok(sums)
    }

    /// All numbers; a field that is empty or `nan` is unknown.
    fn numbers(&mut self, rows: &Rows) -> Result<Numbers, Error> {
        let mut numbers = Numbers { cols: 1, entries: vec![], whole: true };
        let mut found = 0;
        while let Some(row) = self.next()? {
            if found == rows.count {
                return Err(row.error(format!("is a row too many: {}", rows.because)));
            }
            numbers.cols = row.record.len();
            for field in row.record {
                if field.is_empty() || field.eq_ignore_ascii_case(b"nan") {
                    numbers.entries.push(f32::NAN);
                    continue;
                }
                let number =
                    text::real(field).map_err(|problem| row.error(format!("has {problem}")))?;
                numbers.whole &= number.abs() < EXACT && is_whole(field);
                numbers.entries.push(number);
            }
            found += 1;
        }
        if found < rows.count {
            let problem = format!("ends after {}, but {}", counted(found, "row"), rows.because);
            return Err(Place::file(&self.path).error(problem));
        }
        Ok(numbers)
    }
}

/// Integers below are exact in single precision.
const EXACT: f32 = 16_777_216.0;

/// Whether a number is written as an integer.
fn is_whole(field: &[u8]) -> bool {
    field.iter().all(|byte| byte.is_ascii_digit() || matches!(byte, b'+' | b'-'))
}

impl Row<'_> {
    fn error(&self, problem: impl Into<String>) -> Error {
        let line = self.record.position().map_or(0, csv::Position::line);
        Place::line(self.path, line).error(problem)
    }

    fn integer(&self, field: usize) -> Result<i64, Error> {
        let field = self.record.get(field).unwrap_or_default();
        text::integer(field)
            .ok_or_else(|| self.error(format!("has {}, not an integer", quote(field))))
    }
}

impl Numbers {
    fn matrix(self, rows: usize) -> Result<Matrix<f32>, Error> {
        Matrix::from_entries(rows, self.cols, self.entries)
    }

    /// A column as categories.
    #[allow(clippy::cast_possible_truncation, reason = "they are integers")]
    fn integers(&self, column: usize) -> Result<IntegerColumn, Error> {
        let mut codes = IntegerColumn::new();
        for x in self.entries.iter().skip(column).step_by(self.cols) {
            if x.is_nan() { codes.push_unknown() } else { codes.push(*x as i64)? }
        }
        Ok(codes)
    }
}
