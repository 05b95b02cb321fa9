mod options;
mod part;
mod structure;

pub use options::{FeatureOptions, FeatureSource, UnseenCategories};

use std::any::Any;

use super::dataset::{Dataset, TargetColumn};
use super::features::FeatureColumns;
use super::parts::GraphInParts;
use super::split::Split;
use super::structure::{Structure, StructureOptions};
use crate::graph::Level;
use crate::graph::{BatchParts, Features, GraphBatch, Targets};
use crate::{Error, Scalar};
use part::{Part, categories, encode, values};
use structure::{counts, returns};

/// How the columns of a [`Dataset`] become the numeric features `l_v` and `l_(u,v)`.
///
/// It is fitted to the data a model is trained on and saved with the model, so that new data are
/// encoded in the same way.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Encoding {
    nodes: Vec<Part>,
    edges: Vec<Part>,
    node_classes: Option<Vec<String>>,
    graph_classes: Option<Vec<String>>,
}

/// The rows of the training graphs.
struct Seen {
    nodes: Vec<usize>,
    edges: Vec<usize>,
}

impl Seen {
    /// Members that do not exist are reported elsewhere.
    fn of_graphs(dataset: &Dataset, graphs: &[usize]) -> Self {
        let mut seen = vec![false; dataset.nodes()];
        for ends in graphs.iter().filter_map(|&graph| dataset.node_starts().get(graph..graph + 2)) {
            seen[ends[0]..ends[1]].fill(true);
        }
        let edges = dataset.edges().iter().enumerate();
        Self {
            edges: edges.filter(|(_, (u, _))| seen[*u as usize]).map(|(edge, _)| edge).collect(),
            nodes: (0..seen.len()).filter(|&node| seen[node]).collect(),
        }
    }
}

impl Encoding {
    /// The encoding fitted to all graphs of `dataset`.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`] if the requested features do not exist.
    pub fn new(dataset: &Dataset, options: &FeatureOptions) -> Result<Self, Error> {
        let all = Seen {
            nodes: (0..dataset.nodes()).collect(),
            edges: (0..dataset.edges().len()).collect(),
        };
        Self::of(dataset, options, &all)
    }

    /// The encoding fitted to the training graphs of `split`: means and standard deviations are
    /// computed over them.
    ///
    /// If nodes are split, all graphs are seen in training, with the features of all their nodes.
    /// Categories and degrees are always those of all graphs, since they only determine the columns.
    ///
    /// # Errors
    ///
    /// Those of [`new`](Self::new).
    pub fn for_split(
        dataset: &Dataset,
        options: &FeatureOptions,
        split: &Split,
    ) -> Result<Self, Error> {
        match split.level {
            Level::Node => Self::new(dataset, options),
            Level::Graph => Self::of(dataset, options, &Seen::of_graphs(dataset, &split.train)),
        }
    }

    fn of(dataset: &Dataset, options: &FeatureOptions, seen: &Seen) -> Result<Self, Error> {
        let features = dataset.node_features();
        let row_normalize = options.row_normalize;
        let values =
            |features, seen| values(features, options.standardize.then_some(seen), row_normalize);
        let rows = &seen.nodes[..];
        let categories = |features, seen| categories(features, options.unseen, seen);
        let mut nodes = match options.source {
            FeatureSource::Auto if !features.categories().is_empty() => categories(features, rows),
            FeatureSource::Auto if !features.is_empty() => values(features, rows),
            FeatureSource::Auto | FeatureSource::Degree => vec![degree(dataset, options)],
            FeatureSource::Categories => categories(features, rows),
            FeatureSource::Values => values(features, rows),
            FeatureSource::All => [categories(features, rows), values(features, rows)].concat(),
            FeatureSource::Constant => vec![Part::Constant],
        };
        if nodes.is_empty() {
            return Err(Error::Mismatch(format!(
                "the nodes of {} have none of the requested features",
                dataset.name()
            )));
        }
        let mut edges = if options.edges {
            let features = dataset.edge_features();
            let rows = &seen.edges[..];
            [categories(features, rows), values(features, rows)].concat()
        } else {
            vec![]
        };
        let structure = Structure::new(dataset, false, options.structure.check()?)?;
        nodes.extend(counts(&structure.nodes));
        nodes.extend(returns(&structure.returns, options.standardize.then_some(rows)));
        edges.extend(counts(&structure.edges));
        let classes = |targets: Option<&TargetColumn>| match targets {
            Some(TargetColumn::Classes(classes)) => Some(classes.values().to_vec()),
            _ => None,
        };
        Ok(Self {
            nodes,
            edges,
            node_classes: classes(dataset.node_targets()),
            graph_classes: classes(dataset.graph_targets()),
        })
    }

    /// That of real values which are read as they are, and of classes.
    pub(crate) fn of_values(names: Vec<String>, classes: Vec<String>) -> Self {
        let (mean, scale) = (vec![0.0; names.len()], vec![1.0; names.len()]);
        Self {
            nodes: vec![Part::Values { names: names.into(), mean, scale }],
            edges: vec![],
            node_classes: Some(classes),
            graph_classes: None,
        }
    }

    /// The same with node features that are read as they are, in place of its own.
    pub(crate) fn with_values(self, names: Vec<String>) -> Self {
        Self { nodes: Self::of_values(names, vec![]).nodes, ..self }
    }

    /// The number of node features.
    pub fn node_width(&self) -> usize {
        self.nodes.iter().map(Part::width).sum()
    }

    /// The number of edge features.
    pub fn edge_width(&self) -> usize {
        self.edges.iter().map(Part::width).sum()
    }

    /// The names of the classes of nodes.
    pub fn node_classes(&self) -> Option<&[String]> {
        self.node_classes.as_deref()
    }

    /// The names of the classes of graphs.
    pub fn graph_classes(&self) -> Option<&[String]> {
        self.graph_classes.as_deref()
    }

    /// The features of a node, in a few words: `37 node features`, `degree up to 135`.
    pub fn describe_nodes(&self) -> String {
        self.nodes.iter().map(Part::describe).collect::<Vec<_>>().join(" + ")
    }

    /// The same of an edge; nothing if edges have no features.
    pub fn describe_edges(&self) -> String {
        self.edges.iter().map(Part::describe).collect::<Vec<_>>().join(" + ")
    }

    /// All graphs of `dataset`, encoded.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownCategory`] if a node or edge has a category that is not part of this encoding,
    /// [`Error::Mismatch`] if `dataset` has different columns or classes.
    pub fn batch<S: Scalar>(&self, dataset: &Dataset) -> Result<GraphBatch<S>, Error> {
        let node_targets =
            targets(self.node_classes.as_deref(), dataset.node_targets(), dataset.nodes())?;
        let graph_targets =
            targets(self.graph_classes.as_deref(), dataset.graph_targets(), dataset.graphs())?;
        self.batch_with(dataset, node_targets, graph_targets)
    }

    /// The same, ignoring targets.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownCategory`], [`Error::Mismatch`] if `dataset` has different columns.
    pub fn batch_without_targets<S: Scalar>(
        &self,
        dataset: &Dataset,
    ) -> Result<GraphBatch<S>, Error> {
        let (nodes, graphs) = (dataset.nodes(), dataset.graphs());
        self.batch_with(dataset, Targets::None(nodes), Targets::None(graphs))
    }

    fn batch_with<S: Scalar>(
        &self,
        dataset: &Dataset,
        node_targets: Targets<S>,
        graph_targets: Targets<S>,
    ) -> Result<GraphBatch<S>, Error> {
        if let Some(graph) = dataset.in_parts() {
            return self.batch_of_parts(graph, node_targets);
        }
        let structure = Structure::new(dataset, self.reads_degree(), self.structure())?;
        GraphBatch::from_parts(BatchParts {
            node_starts: dataset.node_starts().to_vec(),
            edges: dataset.edges().to_vec(),
            node_features: encode(&self.nodes, "node", dataset.node_features(), &structure)
                .map_err(|error| in_graph(error, dataset))?,
            edge_features: encode(&self.edges, "edge", dataset.edge_features(), &structure)
                .map_err(|error| in_graph(error, dataset))?,
            node_targets,
            graph_targets,
        })
    }

    /// Nodes whose features were encoded when they were written.
    fn batch_of_parts<S: Scalar>(
        &self,
        graph: &GraphInParts,
        node_targets: Targets<S>,
    ) -> Result<GraphBatch<S>, Error> {
        let encoded = &graph.info().encoding;
        if self.nodes != encoded.nodes || self.edges != encoded.edges {
            return Err(Error::Mismatch(format!(
                "the model reads {}, but the parts have {}, or the same features on another scale",
                self.describe_nodes(),
                encoded.describe_nodes()
            )));
        }
        let batch = graph.batch() as &dyn Any;
        match batch.downcast_ref::<GraphBatch<S>>() {
            Some(batch) => batch.clone().with_node_targets(node_targets),
            None => Err(Error::Mismatch("a graph in parts has numbers of single precision".into())),
        }
    }

    /// The features of one node, from its columns, a table of one row, and its degree.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownCategory`], [`Error::Mismatch`] if a column is missing.
    pub fn node(&self, columns: &FeatureColumns, degree: u32) -> Result<Features<f32>, Error> {
        encode(&self.nodes, "node", columns, &Structure::of_degree(degree))
    }

    /// The features of one edge, likewise.
    ///
    /// # Errors
    ///
    /// Those of [`node`](Self::node).
    pub fn edge(&self, columns: &FeatureColumns) -> Result<Features<f32>, Error> {
        encode(&self.edges, "edge", columns, &Structure::of_degree(0))
    }

    /// Whether the degree of a node is one of its features.
    pub fn reads_degree(&self) -> bool {
        self.nodes.iter().any(|part| matches!(part, Part::Degree { .. }))
    }

    /// Whether rings, cliques or random walks are among the features, which change far from where edges do.
    pub fn reads_structure(&self) -> bool {
        self.structure() != StructureOptions::default()
    }

    /// What has to be counted for it.
    fn structure(&self) -> StructureOptions {
        let mut wanted = StructureOptions::default();
        self.nodes.iter().for_each(|part| part.wants(&mut wanted));
        for part in &self.edges {
            part.wants(&mut wanted);
            wanted.edges |= matches!(part, Part::Count { .. });
        }
        wanted
    }

    /// The columns of `dataset` that it does not read, as in `node feature charge`.
    pub fn unread(&self, dataset: &Dataset) -> Vec<String> {
        let nodes = part::unread(&self.nodes, "node", dataset.node_features());
        let edges = part::unread(&self.edges, "edge", dataset.edge_features());
        [nodes, edges].concat()
    }

    /// Checks an encoding that was read from a file: no group of columns is wider than `largest`, and
    /// there is one mean and one scale per value.
    pub(crate) fn check(&self, largest: usize) -> Result<(), Error> {
        let mut total = 0_usize;
        for part in self.nodes.iter().chain(&self.edges) {
            let width = match part {
                Part::Degree { largest } => largest.saturating_add(1),
                Part::Count { largest, .. } => (*largest as usize).saturating_add(1),
                part => part.width(),
            };
            total = total.saturating_add(width);
            part.check()?;
        }
        if self.nodes.is_empty() {
            return Err(Error::Mismatch("the encoding has no node features".into()));
        }
        if self.edges.iter().any(|part| matches!(part, Part::Degree { .. } | Part::Returns { .. }))
        {
            return Err(Error::Mismatch("the encoding gives edges a feature of nodes".into()));
        }
        if total <= largest {
            Ok(())
        } else {
            Err(Error::Mismatch(format!("the encoding has {total} columns, {largest} at most")))
        }
    }
}

/// The same, naming the graph of a node or edge with an unknown category.
fn in_graph(mut error: Error, dataset: &Dataset) -> Error {
    if let Error::UnknownCategory { what, row, graph, .. } = &mut error {
        let node = if *what == "edge" { dataset.edges()[*row].0 as usize } else { *row };
        let place = dataset.node_starts().partition_point(|&start| start <= node) - 1;
        *graph = match dataset.graph_name(place) {
            Some(name) => format!("graph {name}"),
            None => format!("graph {place}"),
        };
    }
    error
}

fn degree(dataset: &Dataset, options: &FeatureOptions) -> Part {
    let largest = degrees(dataset).into_iter().max().unwrap_or(0) as usize;
    Part::Degree { largest: largest.min(options.largest_degree) }
}

/// `de[v]`: the number of neighbours of every node, parents and children, each counted once.
pub(super) fn degrees(dataset: &Dataset) -> Vec<u32> {
    let edges = dataset.edges();
    let mut degrees = vec![0_u32; dataset.nodes()];
    for &(source, target) in edges {
        degrees[source as usize] += 1;
        // The edge also counts for its target, unless the reverse edge does.
        if source != target && edges.binary_search(&(target, source)).is_err() {
            degrees[target as usize] += 1;
        }
    }
    degrees
}

/// Targets, with classes numbered as in `classes`. A class that is not among them is a mismatch;
/// without `classes` (a model for another kind of target) only real values are accepted.
fn targets<S: Scalar>(
    classes: Option<&[String]>,
    column: Option<&TargetColumn>,
    rows: usize,
) -> Result<Targets<S>, Error> {
    match (column, classes) {
        (Some(TargetColumn::Classes(found)), Some(classes)) => {
            let translate: Vec<u32> = found
                .values()
                .iter()
                .map(|value| {
                    classes
                        .iter()
                        .zip(0..)
                        .find(|(class, _)| *class == value)
                        .map(|(_, i)| i)
                        .ok_or_else(|| {
                            Error::Mismatch(format!(
                                "class “{value}” is not one of the model's classes: {}",
                                classes.join(", ")
                            ))
                        })
                })
                .collect::<Result<_, _>>()?;
            let class = found
                .codes()
                .iter()
                .map(|&code| translate.get(code as usize).copied().unwrap_or(code))
                .collect();
            Targets::classes(classes.len(), class)
        }
        (Some(TargetColumn::Values { values, .. }), None) => Ok(Targets::Values(values.convert())),
        _ => Ok(Targets::None(rows)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Matrix;
    use crate::data::{DatasetParts, FeatureColumns};

    /// Two graphs of two nodes, with one value per node and per edge.
    fn pairs(nodes: [f32; 4], edges: [f32; 2]) -> Dataset {
        let values = |entries: &[f32]| {
            let matrix = Matrix::from_entries(entries.len(), 1, entries.to_vec()).unwrap();
            FeatureColumns::none(entries.len()).with_values(vec!["x".into()], matrix).unwrap()
        };
        Dataset::new(DatasetParts {
            name: "pairs".into(),
            node_starts: vec![0, 2, 4],
            edges: vec![(0, 1), (2, 3)],
            node_features: values(&nodes),
            edge_features: values(&edges),
            node_targets: None,
            graph_targets: None,
            split: None,
        })
        .unwrap()
    }

    #[test]
    fn graphs_that_are_not_trained_on_do_not_shift_or_scale() {
        let options = FeatureOptions::default();
        let split = |level| Split { level, train: vec![1], val: vec![], test: vec![0] };
        let a = pairs([100.0, -300.0, 3.0, 5.0], [70.0, 2.0]);
        let b = pairs([0.0, 0.0, 3.0, 5.0], [0.0, 2.0]);
        let of = |set: &Dataset, level| Encoding::for_split(set, &options, &split(level)).unwrap();
        assert_eq!(of(&a, Level::Graph), of(&b, Level::Graph));
        let Part::Values { mean, scale, .. } = &of(&a, Level::Graph).nodes[0] else {
            panic!("nodes have values")
        };
        assert_eq!((&mean[..], &scale[..]), (&[4.0][..], &[1.0][..]));
        // All nodes of a graph that is trained on are seen, whatever is known of them.
        assert_eq!(of(&a, Level::Node), Encoding::new(&a, &options).unwrap());
    }

    #[test]
    fn a_constant_column_becomes_one() {
        for constant in [0.0, 1.0, -3.5] {
            let set = pairs([constant; 4], [0.0, 1.0]);
            let encoding = Encoding::new(&set, &FeatureOptions::default()).unwrap();
            let batch = encoding.batch::<f64>(&set).unwrap();
            let entries: Vec<_> = (0..4).flat_map(|v| batch.node_features().entries(v)).collect();
            assert_eq!(entries, [(0, 1.0); 4]);
        }
    }
}
