//! What defaults depend on: facts about the data and their split.

use crate::Matrix;
use crate::data::{Dataset, Level};
use crate::run::SplitConfig;
use crate::run::homophily::homophily;

/// Labelled nodes of one graph from which on wide networks do not just learn them by heart.
const MANY_TARGETS: usize = 500;
/// Less than one target in so many nodes is few.
const FEW_TARGETS: usize = 10;
/// From this width on, features describe a node.
const WIDE: usize = 16;
/// Neighbours are alike whose classes have this much in common. Published graphs have 0.6 and more, or 0.1 and less.
const ALIKE: f64 = 0.3;

/// What the neighbours in one graph whose features describe its nodes have to do with each other, as far as training targets
/// tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Neighbours {
    /// There are several graphs, or features that do not describe nodes.
    Unknown,
    /// They are of the same class, by so many training targets; or these are too few to tell.
    Alike(usize),
    /// They are not, by so many.
    Different(usize),
}

impl Neighbours {
    /// Of nodes that are to be predicted.
    pub(crate) fn of(dataset: &Dataset, split: SplitConfig) -> Self {
        if let Some(graph) = dataset.in_parts() {
            return graph.info().neighbours;
        }
        let features = dataset.node_features();
        let describe = features.sparse().is_some() || features.values().cols() >= WIDE;
        if dataset.graphs() != 1 || !describe || !features.categories().is_empty() {
            return Self::Unknown;
        }
        let split = split.divide(dataset, Level::Node).ok();
        let Some(split) = split.filter(|split| split.level == Level::Node) else {
            return Self::Unknown;
        };
        let targets = split.train.len();
        let few = targets * FEW_TARGETS < dataset.nodes();
        let alike = homophily(dataset, &split.train).map_or(few, |found| found >= ALIKE);
        if alike { Self::Alike(targets) } else { Self::Different(targets) }
    }
}

/// Whether one graph has many labelled nodes to learn from.
pub(super) fn has_many_targets(dataset: &Dataset, split: SplitConfig) -> bool {
    if let Some(graph) = dataset.in_parts() {
        return graph.info().split_sizes[0] >= MANY_TARGETS;
    }
    let split = split.divide(dataset, Level::Node).ok();
    let trained = split.filter(|split| split.level == Level::Node).map(|split| split.train.len());
    dataset.graphs() == 1 && trained.is_some_and(|count| count >= MANY_TARGETS)
}

/// Whether columns are of the same kind, as those of an embedding are: standard deviations within a factor of 100, and
/// neither very large nor very small.
pub(super) fn have_one_unit(values: &Matrix<f32>) -> bool {
    let count = values.rows().max(1) as f64;
    let column = |j: usize| {
        let values = || (0..values.rows()).map(|row| f64::from(values.row(row)[j]));
        let mean = values().sum::<f64>() / count;
        (values().map(|x| (x - mean).powi(2)).sum::<f64>() / count).sqrt()
    };
    let all: Vec<f64> = (0..values.cols()).map(column).filter(|&std| std > 0.0).collect();
    let least = all.iter().copied().fold(f64::INFINITY, f64::min);
    let most = all.iter().copied().fold(0.0, f64::max);
    most <= 100.0 * least && (0.01..=10.0).contains(&most)
}

/// The largest `de[v]`, in which parents and children count alike and each once, as in the transition's sums.
pub(super) fn largest_degree(dataset: &Dataset) -> usize {
    if let Some(graph) = dataset.in_parts() {
        return graph.info().largest_degree;
    }
    let edges = dataset.edges();
    let mut degrees = vec![0_usize; dataset.nodes()];
    for &(source, target) in edges {
        degrees[target as usize] += 1;
        // A child that is a parent too is counted as a parent.
        if edges.binary_search(&(target, source)).is_err() {
            degrees[source as usize] += 1;
        }
    }
    degrees.into_iter().max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{DatasetParts, FeatureColumns};
    use crate::run::RunConfig;

    /// One hub and its leaves, with edges that all go one way.
    fn star(edge: impl Fn(u32) -> (u32, u32)) -> Dataset {
        let leaves = 40;
        let mut edges: Vec<(u32, u32)> = (1..=leaves).map(edge).collect();
        edges.sort_unstable();
        Dataset::new(DatasetParts {
            name: "star".into(),
            node_starts: vec![0, leaves as usize + 1],
            edge_features: FeatureColumns::none(edges.len()),
            edges,
            node_features: FeatureColumns::none(leaves as usize + 1),
            node_targets: None,
            graph_targets: None,
            split: None,
        })
        .unwrap()
    }

    #[test]
    fn a_hub_is_one_whichever_way_its_edges_go() {
        assert_eq!(largest_degree(&star(|leaf| (leaf, 0))), 40);
        assert_eq!(largest_degree(&star(|leaf| (0, leaf))), 40);
        let config = RunConfig::for_data("star", &star(|leaf| (0, leaf)), &[]);
        assert_ne!(config.model.transition, "gnn-sum");
    }

    #[test]
    fn both_directions_of_an_edge_are_one_neighbour() {
        let both = |leaf: u32| if leaf.is_multiple_of(2) { (0, leaf - 1) } else { (leaf, 0) };
        assert_eq!(largest_degree(&star(both)), 20);
    }
}
