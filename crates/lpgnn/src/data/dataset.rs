use std::sync::Arc;

use super::features::{Categories, FeatureColumns};
use super::names::Names;
use super::parts::GraphInParts;
use super::split::Split;
use super::weights::SampleWeights;
use crate::graph::{self, NO_TARGET};
use crate::{Error, Matrix};

/// Graphs as they are in files, with names where files have names, in arrays over all graphs.
///
/// It is always valid. [`Encoding`](super::Encoding) turns it into numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Dataset {
    name: String,
    node_starts: Vec<usize>,
    edges: Vec<(u32, u32)>,
    node_features: FeatureColumns,
    edge_features: FeatureColumns,
    node_targets: Option<TargetColumn>,
    graph_targets: Option<TargetColumn>,
    split: Option<Split>,
    weights: Option<SampleWeights>,
    names: Names,
    reads_all: bool,
    duplicates: usize,
    conflicts: usize,
    /// Where these are the nodes that a process owns of a graph in parts.
    in_parts: Option<Arc<GraphInParts>>,
}

/// The parts of a [`Dataset`], before they are checked.
#[derive(Clone, Debug)]
pub struct DatasetParts {
    /// The name of the data set.
    pub name: String,
    /// The first node of every graph, and the number of nodes: `graphs + 1` entries from 0.
    pub node_starts: Vec<usize>,
    /// Edges `(u, v)`, in any order; nodes are numbered across all graphs.
    pub edges: Vec<(u32, u32)>,
    /// One row per node.
    pub node_features: FeatureColumns,
    /// One row per edge, in the order of `edges`.
    pub edge_features: FeatureColumns,
    /// One row per node.
    pub node_targets: Option<TargetColumn>,
    /// One row per graph.
    pub graph_targets: Option<TargetColumn>,
    /// The split that comes with the data.
    pub split: Option<Split>,
}

/// The targets of nodes or graphs.
#[derive(Clone, Debug, PartialEq)]
pub enum TargetColumn {
    /// A class each, or [`NO_TARGET`].
    Classes(Categories),
    /// Real values, one column per name; NaN if unknown.
    Values {
        /// Names of the columns.
        names: Vec<String>,
        /// One row per node or graph.
        values: Matrix<f32>,
    },
}

impl TargetColumn {
    /// The number of nodes or graphs, with or without a target.
    pub fn rows(&self) -> usize {
        match self {
            Self::Classes(categories) => categories.codes().len(),
            Self::Values { values, .. } => values.rows(),
        }
    }

    /// The rows with these indices, in this order.
    pub fn select(&self, rows: &[usize]) -> Self {
        match self {
            Self::Classes(categories) => Self::Classes(categories.select(rows)),
            Self::Values { names, values } => {
                Self::Values { names: names.clone(), values: values.select(rows.iter().copied()) }
            }
        }
    }

    /// Whether a row has a target; of several values, at least one.
    pub fn is_known(&self, row: usize) -> bool {
        match self {
            Self::Classes(categories) => categories.codes()[row] != NO_TARGET,
            Self::Values { values, .. } => values.row(row).iter().any(|x| x.is_finite()),
        }
    }
}

impl Dataset {
    /// Checks that the parts are consistent, sorts edges and merges duplicates.
    ///
    /// # Errors
    ///
    /// [`Error::NoGraphs`], [`Error::RowCount`], [`Error::EdgeOutOfRange`],
    /// [`Error::EdgeBetweenGraphs`]: edges are identified by their index in `parts.edges`, from 0.
    pub fn new(mut parts: DatasetParts) -> Result<Self, Error> {
        let (graphs, nodes) = graph::check_starts(&parts.node_starts)?;
        if graphs == 0 {
            return Err(Error::NoGraphs);
        }
        if nodes >= u32::MAX as usize {
            return Err(Error::TooLarge);
        }
        let rows = |column: &Option<TargetColumn>, without| {
            column.as_ref().map_or(without, TargetColumn::rows)
        };
        for (what, found, expected) in [
            ("the node features", parts.node_features.rows(), nodes),
            ("the edge features", parts.edge_features.rows(), parts.edges.len()),
            ("the node targets", rows(&parts.node_targets, nodes), nodes),
            ("the graph targets", rows(&parts.graph_targets, graphs), graphs),
        ] {
            if found != expected {
                return Err(Error::RowCount { what, expected, found });
            }
        }
        if let Some(split) = &parts.split {
            split.check(nodes, graphs)?;
        }
        graph::check_range(nodes, &parts.edges)?;
        check_graphs(&parts.node_starts, &parts.edges)?;

        let given = parts.edges.len();
        let mut conflicts = 0;
        if parts.edge_features.is_empty() {
            sort_edges(nodes, &mut parts.edges);
            parts.edges.dedup();
            parts.edge_features = FeatureColumns::none(parts.edges.len());
        } else if !parts.edges.is_sorted_by(|a, b| a < b) {
            let mut order = edge_order(nodes, &parts.edges);
            let features = &parts.edge_features;
            order.dedup_by(|next, kept| {
                let same = parts.edges[*next] == parts.edges[*kept];
                conflicts += usize::from(same && !features.same_rows(*next, *kept));
                same
            });
            parts.edge_features = features.select(&order);
            parts.edges = order.iter().map(|&edge| parts.edges[edge]).collect();
        }
        parts.edges.shrink_to_fit();
        Ok(Self {
            name: parts.name,
            node_starts: parts.node_starts,
            duplicates: given - parts.edges.len(),
            edges: parts.edges,
            node_features: parts.node_features,
            edge_features: parts.edge_features,
            node_targets: parts.node_targets,
            graph_targets: parts.graph_targets,
            split: parts.split,
            weights: None,
            names: Names::default(),
            reads_all: false,
            conflicts,
            in_parts: None,
        })
    }

    /// These graphs followed by those of `other`. Split and names are dropped.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`] if `other` has different features or targets, [`Error::TooLarge`].
    pub fn join(&self, other: &Self) -> Result<Self, Error> {
        let nodes = self.nodes();
        if nodes + other.nodes() >= u32::MAX as usize {
            return Err(Error::TooLarge);
        }
        let shift = u32::try_from(nodes).map_err(|_| Error::TooLarge)?;
        let starts = other.node_starts[1..].iter().map(|start| start + nodes);
        let edges = other.edges.iter().map(|&(u, v)| (u + shift, v + shift));
        let mismatch = |what: &'static str| {
            move |error: Error| Error::Mismatch(format!("the {what} differ: {error}"))
        };
        Ok(Self {
            name: self.name.clone(),
            node_starts: self.node_starts.iter().copied().chain(starts).collect(),
            edges: self.edges.iter().copied().chain(edges).collect(),
            node_features: self
                .node_features
                .join(&other.node_features)
                .map_err(mismatch("node features"))?,
            edge_features: self
                .edge_features
                .join(&other.edge_features)
                .map_err(mismatch("edge features"))?,
            node_targets: join_targets(self.node_targets(), other.node_targets())
                .map_err(mismatch("node targets"))?,
            graph_targets: join_targets(self.graph_targets(), other.graph_targets())
                .map_err(mismatch("graph targets"))?,
            split: None,
            weights: join_weights(self.weights(), other.weights())?,
            names: Names::default(),
            reads_all: self.reads_all && other.reads_all,
            duplicates: self.duplicates + other.duplicates,
            conflicts: self.conflicts + other.conflicts,
            in_parts: None,
        })
    }

    /// The same with names of graphs and nodes.
    ///
    /// # Errors
    ///
    /// [`Error::RowCount`] if there is not one name per graph or node.
    pub fn with_names(
        self,
        graphs: Option<Vec<String>>,
        nodes: Option<Vec<String>>,
    ) -> Result<Self, Error> {
        for (what, names, expected) in [
            ("the list of graph names", &graphs, self.graphs()),
            ("the list of node names", &nodes, self.nodes()),
        ] {
            let found = names.as_ref().map_or(expected, Vec::len);
            if found != expected {
                return Err(Error::RowCount { what, expected, found });
            }
        }
        let names = Names::new(graphs, nodes, &self.node_starts);
        Ok(Self { names, ..self })
    }

    /// The same, marked as having features that its author selected, so that all of them are used by
    /// default.
    #[must_use]
    pub fn with_chosen_features(self) -> Self {
        let features = self.node_features();
        let values = !features.value_names().is_empty() || features.sparse().is_some();
        let reads_all = values && !features.categories().is_empty();
        Self { reads_all, ..self }
    }

    /// The same nodes, as those that a process owns of a graph in parts.
    pub(super) fn with_parts(self, graph: GraphInParts) -> Self {
        Self { in_parts: Some(Arc::new(graph)), ..self }
    }

    /// What these nodes are of, if not all that there are: those that a process owns of a graph in parts. Their neighbours and
    /// features are there, not here.
    pub fn in_parts(&self) -> Option<&GraphInParts> {
        self.in_parts.as_deref()
    }

    /// Whether both categories and real values are used by default.
    pub fn reads_all(&self) -> bool {
        self.reads_all
    }

    /// The name of a graph; none if graphs are just numbered.
    pub fn graph_name(&self, graph: usize) -> Option<&str> {
        self.names.graph(graph)
    }

    /// The name of a node within its graph; none if nodes are just numbered.
    pub fn node_name(&self, node: usize) -> Option<&str> {
        self.names.node(node)
    }

    /// Whether graphs or nodes have names other than their numbers.
    pub fn has_names(&self) -> bool {
        self.names.are_there()
    }

    /// The same graphs with a different split.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`] if a member of the split does not exist or occurs twice.
    pub fn with_split(self, split: Option<Split>) -> Result<Self, Error> {
        if let Some(split) = &split {
            split.check(self.nodes(), self.graphs())?;
        }
        Ok(Self { split, ..self })
    }

    /// The same graphs with other targets of nodes and graphs, or none.
    ///
    /// # Errors
    ///
    /// [`Error::RowCount`] if there is not one row per node or graph.
    pub fn with_targets(
        self,
        node_targets: Option<TargetColumn>,
        graph_targets: Option<TargetColumn>,
    ) -> Result<Self, Error> {
        for (what, targets, expected) in [
            ("the node targets", &node_targets, self.nodes()),
            ("the graph targets", &graph_targets, self.graphs()),
        ] {
            let found = targets.as_ref().map_or(expected, TargetColumn::rows);
            if found != expected {
                return Err(Error::RowCount { what, expected, found });
            }
        }
        Ok(Self { node_targets, graph_targets, ..self })
    }

    /// The same graphs, where nodes or graphs count differently in the training loss, or all alike.
    ///
    /// # Errors
    ///
    /// [`Error::RowCount`] if there is not one weight per node or graph.
    pub fn with_weights(self, weights: Option<SampleWeights>) -> Result<Self, Error> {
        if let Some(weights) = &weights {
            let (expected, found) = (weights.level().count(&self), weights.as_slice().len());
            if found != expected {
                return Err(Error::RowCount { what: "the sample weights", expected, found });
            }
        }
        Ok(Self { weights, ..self })
    }

    /// The name of the data set.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Number of graphs.
    pub fn graphs(&self) -> usize {
        self.node_starts.len() - 1
    }

    /// Number of nodes, over all graphs.
    pub fn nodes(&self) -> usize {
        self.node_starts[self.graphs()]
    }

    /// The first node of every graph, and the number of nodes.
    pub fn node_starts(&self) -> &[usize] {
        &self.node_starts
    }

    /// Every edge `u → v` as `(u, v)`, sorted, without duplicates; nodes are numbered across all graphs.
    pub fn edges(&self) -> &[(u32, u32)] {
        &self.edges
    }

    /// The features of nodes.
    pub fn node_features(&self) -> &FeatureColumns {
        &self.node_features
    }

    /// The features of edges.
    pub fn edge_features(&self) -> &FeatureColumns {
        &self.edge_features
    }

    /// The targets of nodes.
    pub fn node_targets(&self) -> Option<&TargetColumn> {
        self.node_targets.as_ref()
    }

    /// The targets of graphs.
    pub fn graph_targets(&self) -> Option<&TargetColumn> {
        self.graph_targets.as_ref()
    }

    /// The split that comes with the data.
    pub fn split(&self) -> Option<&Split> {
        self.split.as_ref()
    }

    /// How much nodes or graphs count in the training loss, if not all alike.
    pub fn weights(&self) -> Option<&SampleWeights> {
        self.weights.as_ref()
    }

    /// The number of duplicate edges, which have been removed.
    pub fn duplicates(&self) -> usize {
        self.duplicates
    }

    /// The number of duplicates whose features differ from those of the edge that was kept, the first one.
    pub fn conflicts(&self) -> usize {
        self.conflicts
    }
}

fn join_weights(
    a: Option<&SampleWeights>,
    b: Option<&SampleWeights>,
) -> Result<Option<SampleWeights>, Error> {
    match (a, b) {
        (None, None) => Ok(None),
        (Some(a), Some(b)) if a.level() == b.level() => Ok(Some(a.join(b))),
        _ => Err(Error::Mismatch(
            "the sample weights differ: one of them has none, or those of nodes instead of graphs"
                .into(),
        )),
    }
}

fn join_targets(
    a: Option<&TargetColumn>,
    b: Option<&TargetColumn>,
) -> Result<Option<TargetColumn>, Error> {
    use TargetColumn::{Classes, Values};
    match (a, b) {
        (None, None) => Ok(None),
        (Some(Classes(a)), Some(Classes(b))) => Ok(Some(Classes(a.join(b)))),
        (Some(Values { names, values: a }), Some(Values { names: others, values: b }))
            if names == others =>
        {
            let entries = [a.as_slice(), b.as_slice()].concat();
            let values = Matrix::from_entries(a.rows() + b.rows(), names.len(), entries)?;
            Ok(Some(Values { names: names.clone(), values }))
        }
        _ => Err(Error::Mismatch(
            "one of them has none, classes instead of real values, or different columns".into(),
        )),
    }
}

/// Sorts edges by source and target: a counting sort by source, then a sort within each source.
fn sort_edges(nodes: usize, edges: &mut [(u32, u32)]) {
    if edges.is_sorted() {
        return;
    }
    let starts = source_starts(nodes, edges);
    let mut next = starts.clone();
    let mut targets = vec![0_u32; edges.len()];
    for &(source, target) in edges.iter() {
        targets[next[source as usize]] = target;
        next[source as usize] += 1;
    }
    drop(next);
    for (source, range) in (0_u32..).zip(starts.windows(2).map(|w| w[0]..w[1])) {
        targets[range.clone()].sort_unstable();
        for edge in range {
            edges[edge] = (source, targets[edge]);
        }
    }
}

/// The indices of the edges sorted by source and target; equal edges keep their order.
fn edge_order(nodes: usize, edges: &[(u32, u32)]) -> Vec<usize> {
    let starts = source_starts(nodes, edges);
    let mut next = starts.clone();
    let mut order = vec![0; edges.len()];
    for (edge, &(source, _)) in edges.iter().enumerate() {
        order[next[source as usize]] = edge;
        next[source as usize] += 1;
    }
    for range in starts.windows(2).map(|w| w[0]..w[1]) {
        order[range].sort_unstable_by_key(|&edge| (edges[edge].1, edge));
    }
    order
}

/// Where the edges of every source start once they are sorted, and the end.
fn source_starts(nodes: usize, edges: &[(u32, u32)]) -> Vec<usize> {
    let mut starts = vec![0; nodes + 1];
    for &(source, _) in edges {
        starts[source as usize + 1] += 1;
    }
    for node in 0..nodes {
        starts[node + 1] += starts[node];
    }
    starts
}

/// # Errors
///
/// [`Error::EdgeBetweenGraphs`], naming the first edge between different graphs.
fn check_graphs(node_starts: &[usize], edges: &[(u32, u32)]) -> Result<(), Error> {
    let graph_of = |node: u32| node_starts.partition_point(|&start| start <= node as usize) - 1;
    // Edges mostly come graph by graph: try the graph of the previous edge first.
    let mut range = 0..0;
    for (edge, &(source, target)) in edges.iter().enumerate() {
        let (from, to) = (source as usize, target as usize);
        if !range.contains(&from) {
            let graph = graph_of(source);
            range = node_starts[graph]..node_starts[graph + 1];
        }
        if !range.contains(&to) {
            let (source_graph, target_graph) = (graph_of(source), graph_of(target));
            return Err(Error::EdgeBetweenGraphs { edge, source_graph, target_graph });
        }
    }
    Ok(())
}
