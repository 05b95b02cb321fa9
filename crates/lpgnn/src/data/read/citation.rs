//! Citation graphs: one graph whose nodes are classified.

use std::path::Path;

use super::column::{IntegerColumn, Rows};
use super::name_of;
use super::text::{self, Lines, counted, quote};
use crate::data::{Categories, Dataset, DatasetParts, FeatureColumns, Level, Split, TargetColumn};
use crate::graph::SparseRows;
use crate::{Error, Place};

/// `labels.txt`, one class per node, negative if unknown; `edges.txt`, an undirected edge `u v` per
/// line; `features.txt`, a row of `index:value` per node; `train_idx.txt`, `val_idx.txt` and
/// `test_idx.txt`, all or none. Nodes and indices are counted from 0.
pub(super) fn read(folder: &Path) -> Result<Dataset, Error> {
    let labels = labels(&folder.join("labels.txt"))?;
    let count = labels.codes().len();
    if count >= u32::MAX as usize {
        return Err(Error::TooLarge);
    }
    let nodes = Rows::new(count, "node", "labels.txt");
    let edges = edges(&folder.join("edges.txt"), &nodes)?;
    Dataset::new(DatasetParts {
        name: name_of(folder),
        node_starts: vec![0, count],
        edge_features: FeatureColumns::none(edges.len()),
        edges,
        node_features: FeatureColumns::none(count)
            .with_sparse(sparse_rows(&folder.join("features.txt"), &nodes)?)?,
        node_targets: Some(TargetColumn::Classes(labels)),
        graph_targets: None,
        split: split(folder, &nodes)?,
    })
}

fn labels(path: &Path) -> Result<Categories, Error> {
    let mut lines = Lines::open(path)?;
    let mut labels = IntegerColumn::new();
    let mut nodes = 0;
    let mut row = [0];
    while lines.next_integers(&mut row, "a class")? {
        match row {
            [class] if class < 0 => labels.push_unknown(),
            [class] => labels.push(class)?,
        }
        nodes += 1;
    }
    if nodes == 0 {
        return Err(Place::file(path).error("has no nodes"));
    }
    labels.finish("node label")
}

fn edges(path: &Path, nodes: &Rows) -> Result<Vec<(u32, u32)>, Error> {
    let mut lines = Lines::open(path)?;
    let mut edges = vec![];
    let mut ends = [0_i64; 2];
    while lines.next_integers(&mut ends, "a pair of nodes")? {
        for end in ends {
            if usize::try_from(end).map_or(true, |end| end >= nodes.count) {
                let problem = format!("names node {end}, but {}, counted from 0", nodes.because);
                return Err(lines.error(problem));
            }
        }
        let [u, v] = ends.map(|end| u32::try_from(end).unwrap_or(u32::MAX));
        edges.push((u, v));
        if u != v {
            edges.push((v, u));
        }
    }
    Ok(edges)
}

fn sparse_rows(path: &Path, nodes: &Rows) -> Result<SparseRows<f32>, Error> {
    let mut lines = Lines::open(path)?;
    let (mut starts, mut columns, mut values) = (vec![0], vec![], vec![]);
    let mut row: Vec<(u32, f32)> = vec![];
    // A node may have no features, so a blank line is a row here.
    while let Some(line) = lines.next_line()? {
        if starts.len() > nodes.count {
            if line.is_blank() {
                continue;
            }
            return Err(line.error(format!("is a row too many: {}", nodes.because)));
        }
        row.clear();
        let mut fields = line.fields();
        while let Some(field) = fields.next()? {
            row.push(entry(field).map_err(|problem| line.error(problem))?);
        }
        row.sort_unstable_by_key(|&(column, _)| column);
        if let Some(twice) = row.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(line.error(format!("has index {} twice", twice[0].0)));
        }
        columns.extend(row.iter().map(|&(column, _)| column));
        values.extend(row.iter().map(|&(_, value)| value));
        starts.push(columns.len());
    }
    if starts.len() <= nodes.count {
        let found = starts.len() - 1;
        let problem = format!("ends after {}, but {}", counted(found, "row"), nodes.because);
        return Err(Place::file(path).error(problem));
    }
    let width = columns.iter().max().map_or(0, |&column| column as usize + 1);
    SparseRows::new(width, starts, columns, values)
}

/// The maximum number of features. A model has weights for each, so a wrong index must not cost
/// gigabytes.
pub(super) const WIDTH: u32 = 1 << 24;

/// `index:value`
fn entry(field: &[u8]) -> Result<(u32, f32), String> {
    let wrong =
        || format!("has {}, not index:value with an index from 0 below {WIDTH}", quote(field));
    let colon = memchr::memchr(b':', field).ok_or_else(wrong)?;
    let index = text::integer(&field[..colon]).and_then(|index| u32::try_from(index).ok());
    let index = index.filter(|&index| index < WIDTH).ok_or_else(wrong)?;
    let value = text::real(&field[colon + 1..]).map_err(|problem| format!("has {problem}"))?;
    Ok((index, value))
}

fn split(folder: &Path, nodes: &Rows) -> Result<Option<Split>, Error> {
    let names = ["train_idx.txt", "val_idx.txt", "test_idx.txt"];
    if !names.iter().any(|name| folder.join(name).exists()) {
        return Ok(None);
    }
    let mut taken = vec![false; nodes.count];
    let mut read = |name: &str| {
        let mut lines = Lines::open(&folder.join(name))?;
        let mut members = vec![];
        let mut row = [0];
        while lines.next_integers(&mut row, "a node")? {
            let [node] = row;
            match usize::try_from(node).ok().filter(|&node| node < nodes.count) {
                None => {
                    let problem =
                        format!("names node {node}, but {}, counted from 0", nodes.because);
                    return Err(lines.error(problem));
                }
                Some(node) if taken[node] => {
                    return Err(lines.error(format!("names node {node} for the second time")));
                }
                Some(node) => {
                    taken[node] = true;
                    members.push(node);
                }
            }
        }
        Ok(members)
    };
    let [train, val, test] = names;
    let (train, val, test) = (read(train)?, read(val)?, read(test)?);
    Ok(Some(Split { level: Level::Node, train, val, test }))
}
