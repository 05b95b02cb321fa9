//! Whether neighbours are alike.

use crate::data::{Dataset, TargetColumn};
use crate::graph::NO_TARGET;

/// Fewer edges than this tell nothing.
const LEAST_EDGES: usize = 20;

/// How much more often than by chance the ends of an edge have the same class, of the edges between `nodes`: 1 where they
/// always do, 0 where classes do not matter, below 0 where neighbours differ. None where few such edges are known.
///
/// ```text
/// (h − Σ_k p_k²) / (1 − Σ_k p_k²)
/// ```
///
/// with `h` the share of edges whose ends have the same class, and `p_k` the share of ends that have class `k`. Self loops
/// do not count, and the two directions of an edge count once.
pub(super) fn homophily(dataset: &Dataset, nodes: &[usize]) -> Option<f64> {
    let Some(TargetColumn::Classes(classes)) = dataset.node_targets() else { return None };
    let mut known = vec![NO_TARGET; dataset.nodes()];
    nodes.iter().for_each(|&v| known[v] = classes.codes()[v]);
    let edges = dataset.edges();
    let mut ends = vec![0_usize; classes.values().len()];
    let (mut count, mut same) = (0_usize, 0_usize);
    for &(u, v) in edges {
        let (a, b) = (known[u as usize], known[v as usize]);
        let again = u > v && edges.binary_search(&(v, u)).is_ok();
        if u == v || again || a == NO_TARGET || b == NO_TARGET {
            continue;
        }
        count += 1;
        same += usize::from(a == b);
        ends[a as usize] += 1;
        ends[b as usize] += 1;
    }
    if count < LEAST_EDGES {
        return None;
    }
    let share = |part: usize, all: usize| part as f64 / all as f64;
    let by_chance: f64 = ends.iter().map(|&of| share(of, 2 * count).powi(2)).sum();
    (by_chance < 1.0).then(|| (share(same, count) - by_chance) / (1.0 - by_chance))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::data::{Categories, DatasetParts, FeatureColumns};

    /// Two cliques of eight nodes, each of one class, or of both in turn, along edges in both directions.
    pub(in crate::run) fn cliques(alike: bool) -> Dataset {
        cliques_with(alike, FeatureColumns::none(16))
    }

    /// The same with features.
    pub(in crate::run) fn cliques_with(alike: bool, node_features: FeatureColumns) -> Dataset {
        let pairs = (0..16_u32).flat_map(|u| (0..16).map(move |v| (u, v)));
        let edges: Vec<_> = pairs.filter(|(u, v)| u != v && u / 8 == v / 8).collect();
        let class = |v: i64| if alike { v / 8 } else { v % 2 };
        let classes: Vec<i64> = (0..16).map(class).collect();
        Dataset::new(DatasetParts {
            name: "cliques".into(),
            node_starts: vec![0, 16],
            node_features,
            edge_features: FeatureColumns::none(edges.len()),
            edges,
            node_targets: Some(TargetColumn::Classes(Categories::from_integers("y", &classes))),
            graph_targets: None,
            split: None,
        })
        .unwrap()
    }

    #[test]
    fn it_is_what_classes_tell_about_edges_beyond_chance() {
        let all: Vec<usize> = (0..16).collect();
        assert_eq!(homophily(&cliques(true), &all), Some(1.0));
        // Of 28 pairs of a clique, 12 have the same class, where chance would give 14.
        let found = homophily(&cliques(false), &all).unwrap();
        assert!((found - (12.0 / 28.0 - 0.5) / 0.5).abs() < 1e-12, "{found}");
    }

    #[test]
    fn few_edges_and_one_class_tell_nothing() {
        let all: Vec<usize> = (0..16).collect();
        assert_eq!(homophily(&cliques(true), &all[..6]), None);
        assert_eq!(homophily(&cliques(true), &all[..8]), None, "there is one class");
    }
}
