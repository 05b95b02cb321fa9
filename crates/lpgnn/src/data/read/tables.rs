//! Tables: `nodes.csv` and `arcs.csv` or `ties.csv`, and `graphs.csv`, each plain or gzipped, with
//! features in columns or in `nodes.npy` and `arcs.npy` beside them.

use std::collections::{HashMap, HashSet};
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;

use super::column::{COLUMNS, WordColumn, numbered};
use super::text::{self, counted, quote, real};
use super::unpack::{self, read_error};
use super::{TEST, TRAIN, VALID, name_of, npy};
use crate::data::{Dataset, DatasetParts, Features, Level, Split, TargetColumn};
use crate::{Error, Matrix, Place};

/// The tables of a folder.
///
/// `nodes.csv` has one row per node. All its columns are optional: `graph` (without it, all nodes
/// are of one graph), `id` (unique within its graph; without it, nodes are counted from 0 in each
/// graph), `target`, `split`, and any others, which are features.
///
/// `arcs.csv` has the columns `from` and `to`, which name nodes by their `id`, `graph` unless ids
/// are unique over all graphs, and any others, which are features. `ties.csv` is the same for
/// undirected ties: a row is two arcs.
///
/// `graphs.csv`, which is optional, has the columns `graph`, `target` and `split`.
pub(super) fn read(folder: &Path) -> Result<Dataset, Error> {
    let graphs = Table::open(folder, "graphs")?.map(read_graphs).transpose()?;
    let nodes = Table::require(folder, "nodes")?;
    let nodes = read_nodes(nodes, graphs.as_ref())?;
    let (arcs, arc_features) = match (Table::open(folder, "arcs")?, Table::open(folder, "ties")?) {
        (Some(arcs), None) => read_arcs(arcs, &nodes, false)?,
        (None, Some(ties)) => read_arcs(ties, &nodes, true)?,
        (Some(_), Some(ties)) => {
            return Err(Place::file(&ties.path).error("stands beside arcs.csv: only one is read"));
        }
        (None, None) => {
            return Err(Place::file(&folder.join("arcs.csv"))
                .error("does not exist, and no arcs.csv.gz, ties.csv or ties.csv.gz either"));
        }
    };
    let Nodes { order, node_starts, features, targets, split, path, names, graphs: places, .. } =
        nodes;
    let graph_names = places.map(|places| {
        let mut names = vec![String::new(); places.len()];
        places.into_iter().for_each(|(name, place)| names[place as usize] = name.into());
        names
    });
    let split = match (split, graphs.as_ref().and_then(|graphs| graphs.split.clone())) {
        (Some(_), Some(_)) => {
            return Err(Place::file(&path)
                .error("has a column split, and so has graphs.csv: only one may be divided"));
        }
        (by_node, by_graph) => by_node.or(by_graph),
    };
    Dataset::new(DatasetParts {
        name: name_of(folder),
        node_starts,
        arcs,
        node_features: features.select(&order),
        arc_features,
        node_targets: targets.map(|targets| targets.select(&order)),
        graph_targets: graphs.and_then(|graphs| graphs.targets),
        split,
    })?
    .with_chosen_features()
    .with_names(graph_names, names)
}

/// A CSV file with a header.
struct Table {
    folder: PathBuf,
    stem: &'static str,
    path: PathBuf,
    reader: csv::Reader<Box<dyn Read>>,
    headers: Vec<String>,
}

/// The row that was read last.
struct Row<'a> {
    table: &'a Path,
    headers: &'a [String],
    record: &'a csv::ByteRecord,
    line: u64,
}

impl Table {
    /// `{stem}.csv` or `{stem}.csv.gz`, where there is one.
    fn open(folder: &Path, stem: &'static str) -> Result<Option<Self>, Error> {
        let plain = folder.join(format!("{stem}.csv"));
        let packed = folder.join(format!("{stem}.csv.gz"));
        let (path, source): (_, Box<dyn Read>) = match (plain.exists(), packed.exists()) {
            (false, false) => return Ok(None),
            (true, true) => {
                return Err(Place::file(&packed).error("stands beside the same file unpacked"));
            }
            (true, false) => {
                let file = text::open(&plain)?;
                (plain, Box::new(file))
            }
            (false, true) => {
                let file = text::open(&packed)?;
                let size = file.metadata().map_or(0, |found| found.len());
                let source =
                    Unpacked { source: MultiGzDecoder::new(file), left: unpack::limit(size) };
                (packed, Box::new(source))
            }
        };
        let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(source);
        let record = reader.byte_headers().map_err(|error| csv_error(&path, error))?.clone();
        let mut headers: Vec<String> = vec![];
        for header in &record {
            let header = std::str::from_utf8(header)
                .ok()
                .filter(|header| !header.is_empty())
                .ok_or_else(|| {
                    let problem = format!("has a column called {}", quote(header));
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

    fn require(folder: &Path, stem: &'static str) -> Result<Self, Error> {
        Self::open(folder, stem)?.ok_or_else(|| {
            Place::file(&folder.join(format!("{stem}.csv")))
                .error(format!("does not exist, and no {stem}.csv.gz either"))
        })
    }

    /// What every column is for; only `known` roles may occur.
    fn roles(&self, known: &[Role]) -> Result<Vec<Column>, Error> {
        let here = |problem: String| Place::line(&self.path, 1).error(problem);
        let mut columns: Vec<Column> = vec![];
        let mut names = HashSet::new();
        for header in &self.headers {
            let column = Column::parse(header);
            // A reserved name is never a feature: a target among the features would give itself away.
            if !known.contains(&column.role) {
                let known: Vec<&str> = known.iter().map(|role| role.name()).collect();
                return Err(here(format!(
                    "has the column {}, but only {} may occur",
                    quote(header.as_bytes()),
                    known.join(", ")
                )));
            }
            if !names.insert(column.name.clone()) {
                return Err(here(format!("has two columns {}", quote(column.name.as_bytes()))));
            }
            columns.push(column);
        }
        Ok(columns)
    }

    /// Calls `each` for every row, with its number from 0; returns how many there are.
    fn for_each(
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

    /// The features that a `.npy` file beside the table adds.
    fn array(&self, rows: usize) -> Result<Matrix<f32>, Error> {
        let path = self.folder.join(format!("{}.npy", self.stem));
        if !path.exists() {
            return Ok(Matrix::zeros(rows, 0));
        }
        let array = npy::read(&path)?;
        if rows == 0 && array.rows() == 0 {
            // Any number of columns costs nothing in the file, but would here.
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

/// What a gzipped file unpacks to, up to its limit.
struct Unpacked<R> {
    source: R,
    left: u64,
}

impl<R: Read> Read for Unpacked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        unpack::Bounded::new(&mut self.source, &mut self.left).read(buffer)
    }
}

fn csv_error(path: &Path, error: csv::Error) -> Error {
    let line = error.position().map_or(0, csv::Position::line);
    match error.into_kind() {
        csv::ErrorKind::Io(error) => read_error(path, error),
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => Place::line(path, line)
            .error(format!("has {len} fields, but the header has {expected_len}")),
        other => Place::line(path, line).error(format!("is not CSV: {other:?}")),
    }
}

impl<'a> Row<'a> {
    fn error(&self, problem: impl Into<String>) -> Error {
        Place::line(self.table, self.line).error(problem)
    }

    /// The error of a column.
    fn column_error(&self, column: usize, problem: impl std::fmt::Display) -> Error {
        self.error(format!("column {} {problem}", quote(self.headers[column].as_bytes())))
    }

    fn bytes(&self, column: usize) -> &'a [u8] {
        self.record.get(column).unwrap_or_default()
    }

    fn text(&self, column: usize) -> Result<&'a str, Error> {
        let bytes = self.bytes(column);
        std::str::from_utf8(bytes)
            .map_err(|_| self.column_error(column, format!("has {}, not UTF-8", quote(bytes))))
    }

    /// A text that may not be empty.
    fn name(&self, column: usize) -> Result<&'a str, Error> {
        match self.text(column)? {
            "" => Err(self.column_error(column, "is empty, but a name is expected")),
            text => Ok(text),
        }
    }
}

/// What a column is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Graph,
    Id,
    From,
    To,
    Target,
    Split,
    Feature,
}

impl Role {
    fn name(self) -> &'static str {
        match self {
            Self::Graph => "graph",
            Self::Id => "id",
            Self::From => "from",
            Self::To => "to",
            Self::Target => "target",
            Self::Split => "split",
            Self::Feature => "features",
        }
    }
}

/// How the cells of a column are understood.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Words,
    Values,
}

struct Column {
    role: Role,
    name: String,
    /// What the header asks for: `age:category`, `age:value`, `target:class`, `target:value`.
    kind: Option<Kind>,
}

impl Column {
    fn parse(header: &str) -> Self {
        let (name, kind) = match header.rsplit_once(':') {
            Some((name, "category" | "class")) => (name.trim_end(), Some(Kind::Words)),
            Some((name, "value")) => (name.trim_end(), Some(Kind::Values)),
            _ => (header, None),
        };
        let role = match name {
            "graph" => Role::Graph,
            "id" => Role::Id,
            "from" => Role::From,
            "to" => Role::To,
            "target" => Role::Target,
            "split" => Role::Split,
            _ => Role::Feature,
        };
        Self { role, name: name.to_owned(), kind }
    }
}

fn place_of(columns: &[Column], role: Role) -> Option<usize> {
    columns.iter().position(|column| column.role == role)
}

/// What `graphs.csv` tells.
struct Graphs {
    places: HashMap<Box<str>, u32>,
    count: usize,
    targets: Option<TargetColumn>,
    split: Option<Split>,
}

fn read_graphs(mut table: Table) -> Result<Graphs, Error> {
    let columns = table.roles(&[Role::Graph, Role::Target, Role::Split])?;
    let Some(graph) = place_of(&columns, Role::Graph) else {
        return Err(Place::line(&table.path, 1).error("has no column graph"));
    };
    let mut places = HashMap::new();
    let mut targets = Targets::new(&columns);
    let mut splits = Splits::new(&columns);
    let count = table.for_each(|number, row| {
        let place = u32::try_from(number).map_err(|_| Error::TooLarge)?;
        if places.insert(row.name(graph)?.into(), place).is_some() {
            let problem = format!("names {} for the second time", quote(row.bytes(graph)));
            return Err(row.column_error(graph, problem));
        }
        targets.push(row)?;
        splits.push(row, number)
    })?;
    Ok(Graphs {
        places,
        count,
        targets: targets.finish("graph target")?,
        split: splits.finish(Level::Graph, None),
    })
}

/// What `nodes.csv` tells. Rows are those of the file; nodes are numbered graph by graph.
struct Nodes {
    path: PathBuf,
    features: Features,
    targets: Option<TargetColumn>,
    split: Option<Split>,
    /// The row of every node.
    order: Vec<usize>,
    node_starts: Vec<usize>,
    /// Graphs by name; none when there is no column `graph`.
    graphs: Option<HashMap<Box<str>, u32>>,
    /// Nodes by id; none when there is no column `id`.
    ids: Option<Ids>,
    /// The id of every node.
    names: Option<Vec<String>>,
}

/// Nodes by their id.
struct Ids {
    codes: HashMap<Box<str>, u32>,
    /// The node with an id, by graph and code of the id.
    nodes: HashMap<(u32, u32), u32>,
    /// By code, a node with that id, and whether it is the only one.
    somewhere: Vec<(u32, bool)>,
}

fn read_nodes(mut table: Table, given: Option<&Graphs>) -> Result<Nodes, Error> {
    let columns =
        table.roles(&[Role::Graph, Role::Id, Role::Target, Role::Split, Role::Feature])?;
    let (graph, id) = (place_of(&columns, Role::Graph), place_of(&columns, Role::Id));
    if graph.is_none() && given.is_some_and(|graphs| graphs.count != 1) {
        let problem = "has no column graph, but graphs.csv has not one graph";
        return Err(Place::line(&table.path, 1).error(problem));
    }
    let mut graphs: HashMap<Box<str>, u32> =
        given.map_or_else(HashMap::new, |given| given.places.clone());
    let mut features = FeatureColumns::new(&columns);
    let mut targets = Targets::new(&columns);
    let mut splits = Splits::new(&columns);
    let (mut graph_of, mut id_of) = (vec![], WordColumn::default());
    let mut lines = vec![];
    let rows = table.for_each(|number, row| {
        if number + 1 >= u32::MAX as usize {
            return Err(Error::TooLarge);
        }
        if let Some(column) = graph {
            let name = row.name(column)?;
            let place = match graphs.get(name) {
                Some(&place) => place,
                None if given.is_some() => {
                    let problem =
                        format!("names {}, which is not in graphs.csv", quote(name.as_bytes()));
                    return Err(row.column_error(column, problem));
                }
                None => {
                    let place = u32::try_from(graphs.len()).map_err(|_| Error::TooLarge)?;
                    graphs.insert(name.into(), place);
                    place
                }
            };
            graph_of.push(place);
        } else {
            graph_of.push(0);
        }
        if let Some(column) = id {
            id_of.push(row.name(column)?)?;
            lines.push(row.line);
        }
        features.push(row)?;
        targets.push(row)?;
        splits.push(row, number)
    })?;
    if rows == 0 {
        return Err(Place::file(&table.path).error("has no nodes"));
    }
    let count = if graph.is_some() { graphs.len() } else { 1 };
    let (order, node_starts) = group(&graph_of, count);
    let mut node_of = vec![0; rows];
    for (node, &row) in order.iter().enumerate() {
        node_of[row] = node;
    }
    let name = |row: &usize| id_of.values()[id_of.codes()[*row] as usize].clone().into();
    let names = id.map(|_| order.iter().map(name).collect());
    let ids = match id {
        Some(_) => Some(Ids::new(&table.path, id_of, &graph_of, &node_of, &lines)?),
        None => None,
    };
    Ok(Nodes {
        features: features.finish("node feature", table.array(rows)?)?,
        targets: targets.finish("node target")?,
        split: splits.finish(Level::Node, Some(&node_of)),
        order,
        node_starts,
        graphs: graph.map(|_| graphs),
        ids,
        names,
        path: table.path,
    })
}

/// The rows graph by graph, in the order of the file within each, and where each graph starts.
fn group(graph_of: &[u32], graphs: usize) -> (Vec<usize>, Vec<usize>) {
    let mut starts = vec![0; graphs + 1];
    for &graph in graph_of {
        starts[graph as usize + 1] += 1;
    }
    for graph in 0..graphs {
        starts[graph + 1] += starts[graph];
    }
    let mut order: Vec<usize> = (0..graph_of.len()).collect();
    order.sort_by_key(|&row| graph_of[row]);
    (order, starts)
}

impl Ids {
    fn new(
        path: &Path,
        id_of: WordColumn,
        graph_of: &[u32],
        node_of: &[usize],
        lines: &[u64],
    ) -> Result<Self, Error> {
        let mut nodes = HashMap::new();
        let mut somewhere = vec![(0, false); id_of.values().len()];
        let mut met = vec![false; somewhere.len()];
        for (row, (&code, &graph)) in id_of.codes().iter().zip(graph_of).enumerate() {
            let node = u32::try_from(node_of[row]).map_err(|_| Error::TooLarge)?;
            if nodes.insert((graph, code), node).is_some() {
                let id = quote(id_of.values()[code as usize].as_bytes());
                let problem = format!("gives the id {id} to a second node of its graph");
                return Err(Place::line(path, lines[row]).error(problem));
            }
            somewhere[code as usize] = (node, !met[code as usize]);
            met[code as usize] = true;
        }
        Ok(Self { codes: id_of.into_known(), nodes, somewhere })
    }
}

impl Nodes {
    /// The node that a cell of a table of arcs names, in `graph` or, without one, in any.
    fn find(&self, row: &Row<'_>, column: usize, graph: Option<u32>) -> Result<u32, Error> {
        let id = row.name(column)?;
        let unknown = || {
            row.column_error(
                column,
                format!("names {}, which is no node of nodes.csv", quote(id.as_bytes())),
            )
        };
        let Some(ids) = &self.ids else {
            let graph = graph.unwrap_or(0) as usize;
            let range = self.node_starts[graph]..self.node_starts[graph + 1];
            let place = text::integer(id.as_bytes()).and_then(|place| usize::try_from(place).ok());
            return place
                .filter(|&place| place < range.len())
                .and_then(|place| u32::try_from(range.start + place).ok())
                .ok_or_else(|| {
                    row.column_error(
                        column,
                        format!(
                            "names {}: without a column id the {} nodes of the graph are \
                             counted from 0",
                            quote(id.as_bytes()),
                            range.len()
                        ),
                    )
                });
        };
        let code = *ids.codes.get(id).ok_or_else(unknown)?;
        match graph {
            Some(graph) => ids.nodes.get(&(graph, code)).copied().ok_or_else(|| {
                let problem = format!("names {}, a node of another graph", quote(id.as_bytes()));
                row.column_error(column, problem)
            }),
            None => match ids.somewhere[code as usize] {
                (node, true) => Ok(node),
                (_, false) => Err(row.column_error(
                    column,
                    format!(
                        "names {}, a node of several graphs: a column graph is needed",
                        quote(id.as_bytes())
                    ),
                )),
            },
        }
    }

    fn graph_of(&self, node: u32) -> usize {
        self.node_starts.partition_point(|&start| start <= node as usize) - 1
    }
}

fn read_arcs(
    mut table: Table,
    nodes: &Nodes,
    both_ways: bool,
) -> Result<(Vec<(u32, u32)>, Features), Error> {
    let columns = table.roles(&[Role::Graph, Role::From, Role::To, Role::Feature])?;
    let header = |problem: &str| Place::line(&table.path, 1).error(problem);
    let (Some(from), Some(to)) = (place_of(&columns, Role::From), place_of(&columns, Role::To))
    else {
        return Err(header("has no columns from and to, but an arc goes from a node to a node"));
    };
    let graph = place_of(&columns, Role::Graph);
    if graph.is_some() && nodes.graphs.is_none() {
        return Err(header("has a column graph, but nodes.csv has none"));
    }
    if graph.is_none() && nodes.ids.is_none() && nodes.node_starts.len() > 2 {
        return Err(header("has no column graph, and the nodes have neither an id to tell theirs"));
    }
    let mut features = FeatureColumns::new(&columns);
    let mut arcs = vec![];
    let rows = table.for_each(|_, row| {
        let inside = match (graph, &nodes.graphs) {
            (Some(column), Some(graphs)) => {
                let name = row.name(column)?;
                let unknown = || {
                    let problem =
                        format!("names {}, which is no graph of nodes.csv", quote(name.as_bytes()));
                    row.column_error(column, problem)
                };
                Some(*graphs.get(name).ok_or_else(unknown)?)
            }
            _ => None,
        };
        let arc = (nodes.find(row, from, inside)?, nodes.find(row, to, inside)?);
        if inside.is_none() && nodes.graph_of(arc.0) != nodes.graph_of(arc.1) {
            return Err(row.error("joins nodes of two graphs"));
        }
        arcs.push(arc);
        features.push(row)
    })?;
    let features = features.finish("arc feature", table.array(rows)?)?;
    if !both_ways {
        return Ok((arcs, features));
    }
    // A tie is an arc there and, unless it is a loop, an arc back with the same features.
    let mut there_and_back = vec![];
    let mut row_of = vec![];
    for (row, &(u, v)) in arcs.iter().enumerate() {
        there_and_back.push((u, v));
        row_of.push(row);
        if u != v {
            there_and_back.push((v, u));
            row_of.push(row);
        }
    }
    Ok((there_and_back, features.select(&row_of)))
}

/// The columns of a table that are features.
struct FeatureColumns {
    columns: Vec<(usize, String, Cells)>,
    rows: usize,
}

/// The cells of a feature: real values or categories, whichever the first row has unless the header
/// tells.
enum Cells {
    Undecided,
    Values(Vec<f32>),
    Words(WordColumn),
}

impl FeatureColumns {
    fn new(columns: &[Column]) -> Self {
        let features = columns
            .iter()
            .enumerate()
            .filter(|(_, column)| column.role == Role::Feature)
            .map(|(place, column)| {
                let cells = match column.kind {
                    None => Cells::Undecided,
                    Some(Kind::Values) => Cells::Values(vec![]),
                    Some(Kind::Words) => Cells::Words(WordColumn::default()),
                };
                (place, column.name.clone(), cells)
            })
            .collect();
        Self { columns: features, rows: 0 }
    }

    fn push(&mut self, row: &Row<'_>) -> Result<(), Error> {
        for (place, name, cells) in &mut self.columns {
            let cell = row.bytes(*place);
            if cell.is_empty() {
                let problem = "is empty, but a feature has a value in every row";
                return Err(row.column_error(*place, problem));
            }
            if matches!(cells, Cells::Undecided) {
                let number =
                    std::str::from_utf8(cell).is_ok_and(|text| text.parse::<f64>().is_ok());
                *cells = if number {
                    Cells::Values(vec![])
                } else {
                    Cells::Words(WordColumn::default())
                };
            }
            match cells {
                Cells::Values(values) => values.push(real(cell).map_err(|problem| {
                    let advice = if problem.ends_with("not a number") {
                        format!(" as in the first row: if it holds words, call it {name}:category")
                    } else {
                        String::new()
                    };
                    row.column_error(*place, format!("has {problem}{advice}"))
                })?),
                Cells::Words(words) => words.push(row.text(*place)?)?,
                Cells::Undecided => {}
            }
        }
        self.rows += 1;
        Ok(())
    }

    /// The features, and behind them those of `array`, called `{name} 1` and so on.
    fn finish(self, name: &str, array: Matrix<f32>) -> Result<Features, Error> {
        let mut features = Features::none(self.rows);
        let (mut names, mut values) = (vec![], vec![]);
        for (_, name, cells) in self.columns {
            match cells {
                Cells::Words(words) => features = features.with_categories(words.finish(name)?)?,
                Cells::Values(column) => {
                    names.push(name);
                    values.push(column);
                }
                // There is no row.
                Cells::Undecided => {}
            }
        }
        if values.is_empty() {
            return features.with_values(numbered(name, array.cols()), array);
        }
        names.extend(numbered(name, array.cols()));
        let mut entries = Vec::with_capacity(self.rows * names.len());
        for row in 0..self.rows {
            entries.extend(values.iter().map(|column| column[row]));
            entries.extend_from_slice(array.row(row));
        }
        let values = Matrix::from_entries(self.rows, names.len(), entries)?;
        features.with_values(names, values)
    }
}

/// The column `target`, where there is one.
///
/// Words and integers are classes; numbers, if one of them has a fraction, real values; an empty
/// cell is not known.
struct Targets {
    column: Option<(usize, Option<Kind>)>,
    cells: WordColumn,
    /// The values of the different cells, those of real numbers.
    values: Vec<f32>,
    word: Option<Cell>,
    fraction: Option<Cell>,
}

/// The first cell of its kind, for messages.
struct Cell {
    path: PathBuf,
    line: u64,
    text: String,
}

impl Targets {
    fn new(columns: &[Column]) -> Self {
        let column = place_of(columns, Role::Target).map(|place| (place, columns[place].kind));
        let cells = WordColumn::default();
        Self { column, cells, values: vec![], word: None, fraction: None }
    }

    fn push(&mut self, row: &Row<'_>) -> Result<(), Error> {
        let Some((place, kind)) = self.column else { return Ok(()) };
        let text = row.text(place)?;
        self.cells.push(text)?;
        if self.cells.values().len() == self.values.len() {
            return Ok(());
        }
        // A new value.
        let cell =
            || Cell { path: row.table.to_owned(), line: row.line, text: quote(text.as_bytes()) };
        match (text.parse::<f64>().is_ok(), real(text.as_bytes())) {
            (true, Err(problem)) if kind != Some(Kind::Words) => {
                return Err(row.column_error(place, format!("has {problem}")));
            }
            (true, value) => {
                self.values.push(value.unwrap_or(f32::NAN));
                if self.fraction.is_none() && text.parse::<i64>().is_err() {
                    self.fraction = Some(cell());
                }
            }
            (false, _) => {
                self.values.push(f32::NAN);
                if self.word.is_none() {
                    self.word = Some(cell());
                }
            }
        }
        Ok(())
    }

    fn finish(self, name: &str) -> Result<Option<TargetColumn>, Error> {
        let Some((_, kind)) = self.column else { return Ok(None) };
        let real = match (kind, &self.word, &self.fraction) {
            (Some(Kind::Values), Some(word), _) => {
                let problem = format!("has the target {}, not a number", word.text);
                return Err(Place::line(&word.path, word.line).error(problem));
            }
            (None, Some(word), Some(fraction)) => {
                return Err(Place::line(&word.path, word.line).error(format!(
                    "has the target {}, but line {} has {}: call the column target:class or \
                     target:value",
                    word.text, fraction.line, fraction.text
                )));
            }
            (Some(kind), ..) => kind == Kind::Values,
            (None, _, fraction) => fraction.is_some(),
        };
        if !real {
            return Ok(Some(TargetColumn::Classes(self.cells.finish(name)?)));
        }
        let value = |&code: &u32| self.values.get(code as usize).copied().unwrap_or(f32::NAN);
        let values: Vec<f32> = self.cells.codes().iter().map(value).collect();
        let values = Matrix::from_entries(values.len(), 1, values)?;
        Ok(Some(TargetColumn::Values { names: vec![name.to_owned()], values }))
    }
}

/// The column `split`, where there is one.
struct Splits {
    column: Option<usize>,
    members: [Vec<usize>; 3],
}

impl Splits {
    fn new(columns: &[Column]) -> Self {
        Self { column: place_of(columns, Role::Split), members: Default::default() }
    }

    fn push(&mut self, row: &Row<'_>, number: usize) -> Result<(), Error> {
        let Some(place) = self.column else { return Ok(()) };
        let cell = row.text(place)?;
        match [TRAIN, VALID, TEST].iter().position(|names| names.contains(&cell)) {
            Some(part) => self.members[part].push(number),
            None if cell.is_empty() => {}
            None => {
                let problem = format!("has {}, not train, valid or test", quote(cell.as_bytes()));
                return Err(row.column_error(place, problem));
            }
        }
        Ok(())
    }

    /// The split of what is at `place_of` each row.
    fn finish(self, level: Level, place_of: Option<&[usize]>) -> Option<Split> {
        self.column?;
        let [train, valid, test] = self.members.map(|rows| match place_of {
            None => rows,
            Some(place_of) => {
                let mut places: Vec<usize> = rows.into_iter().map(|row| place_of[row]).collect();
                places.sort_unstable();
                places
            }
        });
        Some(Split { level, train, valid, test })
    }
}
