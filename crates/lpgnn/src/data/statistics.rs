use super::dataset::{Dataset, TargetColumn};
use super::encoding::degrees;
use super::features::FeatureColumns;
use crate::graph::Level;
use crate::graph::SparseRows;

/// Statistics of a [`Dataset`], and warnings about it.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Statistics {
    /// Its name.
    pub name: String,
    /// Number of graphs.
    pub graphs: usize,
    /// Number of nodes, over all graphs.
    pub nodes: usize,
    /// Number of directed edges, over all graphs, without duplicates.
    pub edges: usize,
    /// Whether every edge has a reverse edge.
    pub undirected: bool,
    /// Nodes per graph.
    pub nodes_per_graph: Spread,
    /// Edges per graph.
    pub edges_per_graph: Spread,
    /// Degrees: neighbours per node, parents and children, each counted once.
    pub degree: Spread,
    /// The features of nodes.
    pub node_features: FeatureCounts,
    /// The features of edges.
    pub edge_features: FeatureCounts,
    /// The targets of nodes.
    pub node_targets: Option<TargetCounts>,
    /// The targets of graphs.
    pub graph_targets: Option<TargetCounts>,
    /// The sizes of the split that comes with the data.
    pub split: Option<SplitCounts>,
    /// Unexpected properties of the data.
    pub warnings: Warnings,
}

/// The minimum, mean and maximum of some counts; all 0 if there are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Spread {
    /// The minimum.
    pub min: usize,
    /// The mean.
    pub mean: f64,
    /// The maximum.
    pub max: usize,
}

/// The number of features of every node or edge.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct FeatureCounts {
    /// Categorical columns.
    pub categories: Vec<CategoryCounts>,
    /// Number of real-valued columns.
    pub values: usize,
    /// Length of a sparse row.
    pub sparse: usize,
}

/// A categorical column.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct CategoryCounts {
    /// Name of the column.
    pub name: String,
    /// The number of distinct values.
    pub values: usize,
}

/// Targets, and how many are known.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum TargetCounts {
    /// A class.
    Classes {
        /// The classes, sorted, with their sizes.
        classes: Vec<ClassCount>,
        /// How many classes are unknown.
        unknown: usize,
    },
    /// Real values.
    Values {
        /// Names of the columns.
        names: Vec<String>,
        /// How many values are unknown.
        unknown: usize,
    },
}

/// A class and its size.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct ClassCount {
    /// Its name.
    pub class: String,
    /// The number of nodes or graphs of this class.
    pub count: usize,
}

/// The sizes of a [`Split`](super::Split).
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct SplitCounts {
    /// Whether nodes or graphs are split.
    pub level: Level,
    /// Size of the training split.
    pub train: usize,
    /// Size of the validation split.
    pub val: usize,
    /// Size of the test split.
    pub test: usize,
}

/// Unexpected properties of the data, which real files do have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Warnings {
    /// Duplicate edges, which were merged.
    pub duplicate_edges: usize,
    /// Duplicates whose features differ from those of the edge that was kept.
    pub conflicting_duplicates: usize,
    /// Self-loops.
    pub self_loops: usize,
    /// Isolated nodes, which have no edge.
    pub isolated_nodes: usize,
    /// Graphs without nodes.
    pub empty_graphs: usize,
    /// Graphs that have nodes but no edges.
    pub graphs_without_edges: usize,
    /// Graphs with more than one connected component, including those without edges.
    pub disconnected_graphs: usize,
}

impl Statistics {
    /// The statistics of `dataset`.
    pub fn of(dataset: &Dataset) -> Self {
        let edges = dataset.edges();
        let nodes_of = || dataset.node_starts().windows(2).map(|w| w[0]..w[1]);
        let degrees = degrees(dataset);
        let edges_of: Vec<usize> = nodes_of()
            .map(|nodes| {
                let before = |node: usize| edges.partition_point(|&(u, _)| (u as usize) < node);
                before(nodes.end) - before(nodes.start)
            })
            .collect();
        let mut components = Components::new(dataset.nodes());
        for &(u, v) in edges {
            components.join(u as usize, v as usize);
        }
        let pieces = |nodes: std::ops::Range<usize>| {
            nodes.filter(|&node| components.is_root(node)).take(2).count()
        };
        let warnings = Warnings {
            duplicate_edges: dataset.duplicates(),
            conflicting_duplicates: dataset.conflicts(),
            self_loops: edges.iter().filter(|(u, v)| u == v).count(),
            isolated_nodes: degrees.iter().filter(|&&degree| degree == 0).count(),
            empty_graphs: nodes_of().filter(std::ops::Range::is_empty).count(),
            graphs_without_edges: nodes_of()
                .zip(&edges_of)
                .filter(|(nodes, edges)| !nodes.is_empty() && **edges == 0)
                .count(),
            disconnected_graphs: nodes_of().filter(|nodes| pieces(nodes.clone()) > 1).count(),
        };
        Self {
            name: dataset.name().to_owned(),
            graphs: dataset.graphs(),
            nodes: dataset.nodes(),
            edges: edges.len(),
            undirected: edges.iter().all(|&(u, v)| u == v || edges.binary_search(&(v, u)).is_ok()),
            nodes_per_graph: Spread::of(nodes_of().map(|nodes| nodes.len())),
            edges_per_graph: Spread::of(edges_of.iter().copied()),
            degree: Spread::of(degrees.iter().map(|&degree| degree as usize)),
            node_features: FeatureCounts::of(dataset.node_features()),
            edge_features: FeatureCounts::of(dataset.edge_features()),
            node_targets: dataset.node_targets().map(TargetCounts::of),
            graph_targets: dataset.graph_targets().map(TargetCounts::of),
            split: dataset.split().map(|split| SplitCounts {
                level: split.level,
                train: split.train.len(),
                val: split.val.len(),
                test: split.test.len(),
            }),
            warnings,
        }
    }
}

impl Spread {
    fn of(counts: impl Iterator<Item = usize>) -> Self {
        let (mut min, mut max, mut sum, mut number) = (usize::MAX, 0, 0, 0_usize);
        for count in counts {
            (min, max) = (min.min(count), max.max(count));
            sum += count;
            number += 1;
        }
        if number == 0 {
            return Self::default();
        }
        Self { min, mean: sum as f64 / number as f64, max }
    }
}

impl FeatureCounts {
    fn of(features: &FeatureColumns) -> Self {
        let categories = features
            .categories()
            .iter()
            .map(|column| CategoryCounts {
                name: column.name().to_owned(),
                values: column.values().len(),
            })
            .collect();
        Self {
            categories,
            values: features.values().cols(),
            sparse: features.sparse().map_or(0, SparseRows::width),
        }
    }

    /// Whether there are no features.
    pub fn is_empty(&self) -> bool {
        self.categories.is_empty() && self.values == 0 && self.sparse == 0
    }
}

impl TargetCounts {
    fn of(targets: &TargetColumn) -> Self {
        let unknown = (0..targets.rows()).filter(|&row| !targets.is_known(row)).count();
        match targets {
            TargetColumn::Classes(column) => Self::Classes {
                classes: column
                    .values()
                    .iter()
                    .zip(column.counts())
                    .map(|(class, count)| ClassCount { class: class.clone(), count })
                    .collect(),
                unknown,
            },
            TargetColumn::Values { names, .. } => Self::Values { names: names.clone(), unknown },
        }
    }
}

/// Union-find: a forest whose roots represent the connected components.
struct Components {
    parents: Vec<usize>,
}

impl Components {
    fn new(nodes: usize) -> Self {
        Self { parents: (0..nodes).collect() }
    }

    fn root(&mut self, mut node: usize) -> usize {
        while self.parents[node] != node {
            self.parents[node] = self.parents[self.parents[node]];
            node = self.parents[node];
        }
        node
    }

    fn join(&mut self, u: usize, v: usize) {
        let (u, v) = (self.root(u), self.root(v));
        self.parents[u.max(v)] = u.min(v);
    }

    fn is_root(&self, node: usize) -> bool {
        self.parents[node] == node
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Categories, DatasetParts};

    /// A triangle with a tail and an isolated node; a node with a loop; nothing; two lone nodes.
    fn odd() -> Dataset {
        Dataset::new(DatasetParts {
            name: "odd".into(),
            node_starts: vec![0, 5, 6, 6, 8],
            edges: vec![(0, 1), (1, 0), (1, 2), (2, 1), (2, 0), (0, 2), (2, 3), (0, 1), (5, 5)],
            node_features: FeatureColumns::none(8)
                .with_categories(Categories::from_integers("atom", &[0, 0, 1, 2, 7, 0, 0, 0]))
                .unwrap(),
            edge_features: FeatureColumns::none(9)
                .with_categories(Categories::from_integers("bond", &[1, 1, 1, 1, 1, 1, 1, 2, 1]))
                .unwrap(),
            node_targets: None,
            graph_targets: Some(TargetColumn::Classes(Categories::from_text(
                "class",
                &["b", "a", "b", ""],
            ))),
            split: None,
        })
        .unwrap()
    }

    #[test]
    fn everything_is_counted_once() {
        let found = Statistics::of(&odd());
        assert_eq!((found.graphs, found.nodes, found.edges), (4, 8, 8));
        assert!(!found.undirected, "2 → 3 has no edge back");
        assert_eq!(found.nodes_per_graph, Spread { min: 0, mean: 2.0, max: 5 });
        assert_eq!(found.edges_per_graph, Spread { min: 0, mean: 2.0, max: 7 });
        // Degrees 2, 2, 3, 1, 0; 1 for the loop; 0, 0.
        assert_eq!(found.degree, Spread { min: 0, mean: 9.0 / 8.0, max: 3 });
        assert_eq!(
            found.warnings,
            Warnings {
                duplicate_edges: 1,
                conflicting_duplicates: 1,
                self_loops: 1,
                isolated_nodes: 3,
                empty_graphs: 1,
                graphs_without_edges: 1,
                disconnected_graphs: 2,
            }
        );
    }

    #[test]
    fn statistics_are_json() {
        let json = serde_json::to_value(Statistics::of(&odd())).unwrap();
        assert_eq!(json["node_features"]["categories"][0]["values"], 4);
        assert_eq!(json["graph_targets"]["kind"], "classes");
        assert_eq!(json["graph_targets"]["classes"][1]["count"], 2);
        assert_eq!(json["graph_targets"]["unknown"], 1);
        assert_eq!(json["warnings"]["self_loops"], 1);
    }
}
