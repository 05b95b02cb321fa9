use super::{attribute_names, check, check_size, node_targets};
use crate::data::{Dataset, DatasetParts, FeatureColumns, Level, Ratio, Split};
use crate::{Error, Matrix};

/// Several copies of one undirected graph: the class of a copy is a feature of its first node and has
/// to be predicted at every node, so that information has to travel across the whole copy.
pub(super) struct Spread {
    pub(super) name: &'static str,
    pub(super) classes: usize,
    /// The option for the number of copies per class, and its value.
    pub(super) copies: (&'static str, usize),
    pub(super) nodes: usize,
    /// Both directions of every edge of a copy, sorted.
    pub(super) edges: Vec<(u32, u32)>,
    /// The split of the nodes, stratified by class.
    pub(super) split: Ratio,
}

/// Checks that so many classes of copies of so many nodes fit into memory; `size` is the option that
/// determines their nodes.
///
/// # Errors
///
/// [`Error::Option`], naming the first invalid option.
pub(super) fn check_copies(
    classes: usize,
    (option, copies): (&'static str, usize),
    (size, value, nodes): (&'static str, usize, f64),
) -> Result<(), Error> {
    check("classes", classes, (2..=1000).contains(&classes), "there must be 2 to 1000")?;
    check(option, copies, copies > 0, "there must be at least 1")?;
    let features = (classes * classes) as f64;
    check_size(option, copies, features)?;
    let each = nodes / value.max(1) as f64;
    check_size(size, value, features * copies as f64 * each)
}

impl Spread {
    /// The data set for this seed, which only affects the split.
    pub(super) fn generate(self, seed: u64) -> Result<Dataset, Error> {
        let Self { name, classes, copies: (_, copies), nodes: size, edges: copy, split } = self;
        let graphs = classes * copies;
        let nodes = graphs * size;
        u32::try_from(nodes).map_err(|_| Error::TooLarge)?;
        let class = |graph: usize| graph / copies;
        let mut features = Matrix::zeros(nodes, classes);
        let mut edges = Vec::with_capacity(graphs * copy.len());
        #[allow(clippy::cast_possible_truncation, reason = "all nodes have 32-bit numbers")]
        for graph in 0..graphs {
            features.row_mut(graph * size)[class(graph)] = 1.0;
            let start = (graph * size) as u32;
            edges.extend(copy.iter().map(|&(u, v)| (start + u, start + v)));
        }
        #[allow(clippy::cast_possible_truncation, reason = "there are at most 1000 classes")]
        let class_of_node = (0..nodes).map(|node| class(node / size) as u32).collect();
        let dataset = Dataset::new(DatasetParts {
            name: name.into(),
            node_starts: (0..=graphs).map(|graph| graph * size).collect(),
            edge_features: FeatureColumns::none(edges.len()),
            edges,
            node_features: FeatureColumns::none(nodes)
                .with_values(attribute_names(classes), features)?,
            node_targets: Some(node_targets(classes, class_of_node)?),
            graph_targets: None,
            split: None,
        })?;
        let split = Split::by_ratio(&dataset, Level::Node, split, seed)?;
        dataset.with_split(Some(split))
    }
}

/// Both directions of every edge, sorted.
pub(super) fn both_ways(edges: impl Iterator<Item = (u32, u32)>) -> Vec<(u32, u32)> {
    let mut edges: Vec<(u32, u32)> = edges.flat_map(|(u, v)| [(u, v), (v, u)]).collect();
    edges.sort_unstable();
    edges
}
