//! The text format of the TU collection: `NAME_A.txt`, `NAME_graph_indicator.txt`, …

use std::path::{Path, PathBuf};

use super::archive::Archive;
use super::column::{COLUMNS, Rows, integer_columns, numbered, real_matrix};
use super::text::{self, Lines};
use super::{TEST, TRAIN, VAL, join_parts, list};
use crate::data::{ColumnNames, Dataset, DatasetParts, FeatureColumns, TargetColumn};
use crate::{Error, Place};

/// A folder, a folder of such folders called `train`, `val` and `test`, or a zip file.
pub(super) fn read(path: &Path) -> Result<Dataset, Error> {
    if !path.is_dir() {
        return read_set(&mut Source::zip(path)?);
    }
    if names(path)?.is_empty() {
        let mut parts = [None, None, None];
        for (part, names) in parts.iter_mut().zip([TRAIN, VAL, TEST]) {
            let folder = names.iter().map(|name| path.join(name)).find(|folder| folder.is_dir());
            if let Some(folder) = folder {
                let set = read_set(&mut Source::folder(&folder)?)?;
                *part = Some((folder, set));
            }
        }
        if parts.iter().any(Option::is_some) {
            return join_parts(parts);
        }
    }
    read_set(&mut Source::folder(path)?)
}

/// The `NAME`s of the data sets in a folder, by `NAME_A.txt` and `NAME_graph_indicator.txt`.
pub(super) fn names(folder: &Path) -> Result<Vec<String>, Error> {
    let files = list(folder)?;
    Ok(set_names(files.iter().map(String::as_str)))
}

fn set_names<'a>(files: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut names: Vec<String> = files
        // What macOS adds to archives.
        .filter(|file| !file.starts_with("__MACOSX/") && !file_name(file).starts_with("._"))
        .filter_map(|file| {
            file.strip_suffix("_A.txt").or_else(|| file.strip_suffix("_graph_indicator.txt"))
        })
        .map(str::to_owned)
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn file_name(entry: &str) -> &str {
    entry.rsplit(['/', '\\']).next().unwrap_or(entry)
}

/// Where the files of a data set are: `{prefix}_A.txt` and so on.
struct Source {
    prefix: String,
    place: Container,
}

enum Container {
    Folder(PathBuf),
    Zip(Box<Archive>),
}

impl Source {
    fn folder(folder: &Path) -> Result<Self, Error> {
        let prefix = only(folder, names(folder)?)?;
        Ok(Self { prefix, place: Container::Folder(folder.to_owned()) })
    }

    fn zip(path: &Path) -> Result<Self, Error> {
        let archive = Archive::open(path)?;
        let prefix = only(path, set_names(archive.names().iter().map(String::as_str)))?;
        Ok(Self { prefix, place: Container::Zip(Box::new(archive)) })
    }

    /// `MUTAG`, without folders.
    fn name(&self) -> &str {
        file_name(&self.prefix)
    }

    fn path(&self, suffix: &str) -> PathBuf {
        let path = match &self.place {
            Container::Folder(path) => path,
            Container::Zip(archive) => archive.path(),
        };
        path.join(format!("{}{suffix}", self.prefix))
    }

    /// The lines of a file; none if the data set has no such file.
    fn open(&mut self, suffix: &str) -> Result<Option<Lines<'_>>, Error> {
        let path = self.path(suffix);
        match &mut self.place {
            Container::Folder(_) => match std::fs::symlink_metadata(&path) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
                _ => Lines::open(&path).map(Some),
            },
            Container::Zip(archive) => {
                let entry = archive.entry(&format!("{}{suffix}", self.prefix))?;
                Ok(entry.map(|(content, _)| Lines::new(&path, content)))
            }
        }
    }

    /// The lines of a required file.
    fn require(&mut self, suffix: &str) -> Result<Lines<'_>, Error> {
        let path = self.path(suffix);
        self.open(suffix)?.ok_or_else(|| {
            Place::file(&path).error("does not exist, but every TU data set has this file")
        })
    }
}

/// The one name there is.
fn only(path: &Path, names: Vec<String>) -> Result<String, Error> {
    // A folder may contain copies with other names: the one with the name of the folder counts.
    let own = path.file_stem().and_then(|stem| stem.to_str());
    if let Some(name) = names.iter().find(|name| Some(name.as_str()) == own) {
        return Ok(name.clone());
    }
    match <[String; 1]>::try_from(names) {
        Ok([name]) => Ok(name),
        Err(names) if names.is_empty() => Err(Place::file(path).error(
            "contains no TU data set: there is no file NAME_A.txt or NAME_graph_indicator.txt",
        )),
        Err(names) => Err(Place::file(path).error(format!(
            "holds {} TU data sets ({}, {}, …), but one is expected",
            names.len(),
            text::quote(names[0].as_bytes()),
            text::quote(names[1].as_bytes()),
        ))),
    }
}

fn read_set(source: &mut Source) -> Result<Dataset, Error> {
    let (graph_targets, graphs) = graph_targets(source)?;
    let node_starts = node_starts(source, graphs.as_ref())?;
    let nodes = node_starts.last().copied().unwrap_or(0);
    let indicator = format!("{}_graph_indicator.txt", source.name());
    let per_node = Rows::new(nodes, "node", &indicator);
    let edges = edges(source, &per_node)?;
    let per_edge = Rows::new(edges.len(), "edge", &format!("{}_A.txt", source.name()));

    let node_features = features(source, ["_node_labels.txt", "_node_attributes.txt"], &per_node)?;
    let edge_features = features(source, ["_edge_labels.txt", "_edge_attributes.txt"], &per_edge)?;
    let node_targets = match source.open("_node_targets.txt")? {
        Some(mut lines) => classes(&mut lines, Some(&per_node), "node target")?,
        None => None,
    };
    let name = source.name().to_owned();
    let parts = DatasetParts {
        name,
        node_starts,
        edges,
        node_features,
        edge_features,
        node_targets,
        graph_targets,
        split: None,
    };
    // Labels and attributes are both there to be read.
    let dataset = Dataset::new(parts).map(Dataset::with_chosen_features);
    dataset.map_err(|error| match error {
        Error::EdgeBetweenGraphs { edge, source_graph, target_graph } => {
            // Blank lines are rejected before the end, so the number of an edge is that of its line.
            Place::line(&source.path("_A.txt"), edge as u64 + 1).error(format!(
                "joins a node of graph {} to a node of graph {}",
                source_graph + 1,
                target_graph + 1
            ))
        }
        other => other,
    })
}

/// The targets of graphs, classes if there are both, and their number: only these files reveal
/// graphs without nodes.
fn graph_targets(source: &mut Source) -> Result<(Option<TargetColumn>, Option<Rows>), Error> {
    let name = source.name().to_owned();
    let (mut targets, mut rows) = (None, None);
    if let Some(mut lines) = source.open("_graph_labels.txt")? {
        targets = classes(&mut lines, None, "graph label")?;
        let count = targets.as_ref().map_or(0, TargetColumn::rows);
        rows = Some(Rows::new(count, "graph", &format!("{name}_graph_labels.txt")));
    }
    if let Some(mut lines) = source.open("_graph_attributes.txt")? {
        let values = real_matrix(&mut lines, rows.as_ref())?;
        let count = values.rows();
        if targets.is_none() {
            if values.cols() > COLUMNS {
                let problem = format!("has more than {COLUMNS} columns of targets");
                return Err(Place::line(lines.path(), 1).error(problem));
            }
            let names = numbered("graph attribute", values.cols());
            targets = Some(TargetColumn::Values { names, values });
            rows = Some(Rows::new(count, "graph", &format!("{name}_graph_attributes.txt")));
        }
    }
    Ok((targets, rows))
}

/// One class per row; none if there are no rows.
fn classes(
    lines: &mut Lines<'_>,
    rows: Option<&Rows>,
    name: &str,
) -> Result<Option<TargetColumn>, Error> {
    let columns = integer_columns(lines, rows)?;
    if columns.len() > 1 {
        let problem = format!("has {} numbers where a class is expected", columns.len());
        return Err(Place::line(lines.path(), 1).error(problem));
    }
    columns
        .into_iter()
        .next()
        .map(|column| Ok(TargetColumn::Classes(column.finish(name)?)))
        .transpose()
}

/// The first node of every graph, from the graph of each node.
fn node_starts(source: &mut Source, graphs: Option<&Rows>) -> Result<Vec<usize>, Error> {
    let mut lines = source.require("_graph_indicator.txt")?;
    // The first node of every graph up to the current one, which is `starts.len()`, from 1.
    let mut starts: Vec<usize> = vec![];
    let mut nodes = 0_usize;
    let mut row = [0];
    while lines.next_integers(&mut row, "the number of a graph")? {
        let [graph] = row;
        let Some(graph) = usize::try_from(graph).ok().filter(|&graph| graph > 0) else {
            return Err(lines.error(format!("names graph {graph}, but graphs are counted from 1")));
        };
        if graph != starts.len() {
            let current = starts.len();
            if graph < current {
                let problem = format!("steps back from graph {current} to graph {graph}");
                return Err(lines.error(problem));
            }
            match graphs {
                Some(rows) if graph > rows.count => {
                    return Err(lines.error(format!("names graph {graph}, but {}", rows.because)));
                }
                None if graph > current + 1 => {
                    return Err(lines.error(format!(
                        "steps from graph {current} to graph {graph}, but without a file of graph \
                         labels no graph may be empty"
                    )));
                }
                _ => starts.resize(graph, nodes),
            }
        }
        nodes += 1;
    }
    if nodes == 0 {
        return Err(Place::file(lines.path()).error("has no nodes"));
    }
    if nodes >= u32::MAX as usize {
        return Err(Error::TooLarge);
    }
    starts.resize(graphs.map_or(starts.len(), |rows| rows.count) + 1, nodes);
    starts.shrink_to_fit();
    Ok(starts)
}

fn edges(source: &mut Source, nodes: &Rows) -> Result<Vec<(u32, u32)>, Error> {
    let mut lines = source.require("_A.txt")?;
    let mut edges = vec![];
    let mut ends = [0; 2];
    while lines.next_integers(&mut ends, "a pair of nodes")? {
        let mut edge = [0; 2];
        for (node, end) in edge.iter_mut().zip(ends) {
            match u32::try_from(end.saturating_sub(1)) {
                Ok(place) if (place as usize) < nodes.count => *node = place,
                _ if end < 1 => {
                    let problem = format!("names node {end}, but nodes are counted from 1");
                    return Err(lines.error(problem));
                }
                _ => return Err(lines.error(format!("names node {end}, but {}", nodes.because))),
            }
        }
        edges.push((edge[0], edge[1]));
    }
    edges.shrink_to_fit();
    Ok(edges)
}

/// Labels, which are categories, and attributes, which are real values, if there are such files.
fn features(source: &mut Source, files: [&str; 2], rows: &Rows) -> Result<FeatureColumns, Error> {
    let [labels, attributes] = files;
    let what = if labels.starts_with("_node") { "node" } else { "edge" };
    let mut features = FeatureColumns::none(rows.count);
    if let Some(mut lines) = source.open(labels)? {
        let columns = integer_columns(&mut lines, Some(rows))?;
        let names = numbered(&format!("{what} label"), columns.len());
        for (column, name) in columns.into_iter().zip(names) {
            features = features.with_categories(column.finish(name)?)?;
        }
    }
    if let Some(mut lines) = source.open(attributes)? {
        let values = real_matrix(&mut lines, Some(rows))?;
        let base = format!("{what} attribute");
        let names = ColumnNames::default().and_numbered(&base, values.cols());
        features = features.with_values(names, values)?;
    }
    Ok(features)
}
