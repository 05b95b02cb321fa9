//! The one-file text format of GIN and DGCNN.

use std::path::Path;

use super::column::IntegerColumn;
use super::name_of;
use super::text::{Lines, counted};
use crate::data::{ColumnNames, Dataset, DatasetParts, FeatureColumns, TargetColumn};
use crate::{Error, Matrix, Place};

/// `N`; per graph `n label`; per node `tag m nb_1 … nb_m`, followed by any attributes.
///
/// Neighbours are counted from 0 within the graph, and `v … u …` is the edge `v → u`.
pub(super) fn read(path: &Path) -> Result<Dataset, Error> {
    let mut lines = Lines::open(path)?;
    let mut count = [0];
    if !lines.next_integers(&mut count, "the number of graphs")? {
        return Err(Place::file(path).error("is empty, but a number of graphs is expected"));
    }
    let [announced] = count;
    let announced = u64::try_from(announced)
        .map_err(|_| lines.error(format!("declares {announced} graphs")))?;
    let mut node_starts = vec![0];
    let mut graph_labels = IntegerColumn::new();
    let mut nodes = Nodes::new();
    for graph in 0..announced {
        let mut header = [0; 2];
        if !lines.next_integers(&mut header, "a graph's number of nodes and label")? {
            return Err(Place::file(path).error(format!(
                "ends after graph {graph} of the {announced} that line 1 declares"
            )));
        }
        let [size, label] = header;
        let size = usize::try_from(size)
            .map_err(|_| lines.error(format!("declares that a graph has {size} nodes")))?;
        graph_labels.push(label)?;
        nodes.read_graph(&mut lines, graph, size)?;
        node_starts.push(nodes.count);
    }
    if let Some(line) = lines.next_row()? {
        let problem = format!("follows graph {announced}, the last that line 1 declares");
        return Err(line.error(problem));
    }
    if nodes.count == 0 {
        return Err(Place::file(path).error("has no nodes"));
    }
    let width = nodes.width.unwrap_or(0);
    let attributes = Matrix::from_entries(nodes.count, width, nodes.attributes)?;
    Dataset::new(DatasetParts {
        name: name_of(path),
        node_starts,
        edge_features: FeatureColumns::none(nodes.edges.len()),
        edges: nodes.edges,
        node_features: FeatureColumns::none(nodes.count)
            .with_categories(nodes.tags.finish("node label")?)?
            .with_values(
                ColumnNames::default().and_numbered("node attribute", width),
                attributes,
            )?,
        node_targets: None,
        graph_targets: Some(TargetColumn::Classes(graph_labels.finish("graph label")?)),
        split: None,
    })
}

/// The nodes so far.
struct Nodes {
    count: usize,
    tags: IntegerColumn,
    edges: Vec<(u32, u32)>,
    attributes: Vec<f32>,
    /// The number of attributes of the first node.
    width: Option<usize>,
}

impl Nodes {
    fn new() -> Self {
        let tags = IntegerColumn::new();
        Self { count: 0, tags, edges: vec![], attributes: vec![], width: None }
    }

    fn read_graph(&mut self, lines: &mut Lines<'_>, graph: u64, size: usize) -> Result<(), Error> {
        let start = self.count;
        for node in 0..size {
            let path = lines.path().to_owned();
            let Some(line) = lines.next_row()? else {
                return Err(Place::file(&path).error(format!(
                    "ends after node {node} of the {size} of graph {}",
                    graph + 1
                )));
            };
            let mut fields = line.fields();
            let (Some(tag), Some(degree)) = (fields.next_integer()?, fields.next_integer()?) else {
                return Err(line.error("has one number where a node's tag and degree are expected"));
            };
            self.tags.push(tag)?;
            let source = u32::try_from(start + node).map_err(|_| Error::TooLarge)?;
            for listed in 0..degree {
                let Some(neighbour) = fields.next_integer()? else {
                    return Err(
                        line.error(format!("declares {degree} neighbours and lists {listed}"))
                    );
                };
                match usize::try_from(neighbour) {
                    Ok(place) if place < size => {
                        let target = u32::try_from(start + place).map_err(|_| Error::TooLarge)?;
                        self.edges.push((source, target));
                    }
                    _ => {
                        return Err(line.error(format!(
                            "names neighbour {neighbour}, but the graph has {}, counted from 0",
                            counted(size, "node")
                        )));
                    }
                }
            }
            if degree < 0 {
                return Err(line.error(format!("declares {degree} neighbours")));
            }
            let before = self.attributes.len();
            while let Some(x) = fields.next_real()? {
                self.attributes.push(x);
            }
            let found = self.attributes.len() - before;
            let width = *self.width.get_or_insert(found);
            if found != width {
                return Err(line.error(format!(
                    "has {} after the neighbours, but the first node has {width}",
                    counted(found, "number")
                )));
            }
            self.count += 1;
        }
        Ok(())
    }
}

/// Whether a file that starts like this may have this format: one integer, then two.
pub(super) fn is_head(head: &[u8]) -> bool {
    let mut lines = Lines::new(Path::new(""), head);
    let mut matches = |count: usize| {
        let Ok(Some(line)) = lines.next_row() else { return false };
        let mut fields = line.fields();
        (0..count).all(|_| matches!(fields.next_integer(), Ok(Some(_))))
            && matches!(fields.next(), Ok(None))
    };
    matches(1) && matches(2)
}
