use super::check;
use super::spread::{Spread, both_ways, check_copies};
use crate::Error;
use crate::data::{Dataset, Ratio};

/// Trees whose class is a feature of the root only, and has to be predicted at every node.
///
/// Like [`ChainsConfig`](super::ChainsConfig), but information has to be passed on to several
/// nodes: every node down to `depth` has `branching` children. With a `stretch` above 1, a path of
/// that many edges leads to each child, so that a tree with few nodes has a large diameter; from leaf
/// to leaf there are up to `2 · depth · stretch` edges.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct TreesConfig {
    /// Number of classes.
    pub classes: usize,
    /// Trees per class.
    pub trees: usize,
    /// Children per node.
    pub branching: usize,
    /// Levels below the root.
    pub depth: usize,
    /// Edges from a node to its child.
    pub stretch: usize,
    /// The split of the nodes, stratified by class.
    pub split: Ratio,
}

impl Default for TreesConfig {
    fn default() -> Self {
        let split = super::ChainsConfig::default().split;
        Self { classes: 2, trees: 20, branching: 2, depth: 4, stretch: 1, split }
    }
}

impl TreesConfig {
    /// The data set for this seed, which only affects the split.
    ///
    /// # Errors
    ///
    /// [`Error::Option`], naming the first invalid option.
    pub fn generate(&self, seed: u64) -> Result<Dataset, Error> {
        let Self { classes, trees, branching, depth, stretch, split } = *self;
        check("branching", branching, branching > 0, "a node has at least 1 child")?;
        check("stretch", stretch, stretch > 0, "there is at least 1 edge to a child")?;
        // The first level that is too large is reported, before a number overflows.
        let (mut level, mut inner) = (1.0_f64, 0.0_f64);
        for _ in 0..depth.min(64) {
            level *= branching as f64;
            inner += level;
        }
        let inner = if depth > 64 { inner * depth as f64 / 64.0 } else { inner };
        let copies = ("trees", trees);
        check_copies(classes, copies, ("depth", depth, inner + 1.0))?;
        check_copies(classes, copies, ("stretch", stretch, inner * stretch as f64 + 1.0))?;

        let mut edges: Vec<(u32, u32)> = vec![];
        let (mut parents, mut next) = (vec![0_u32], 1_u32);
        for _ in 0..depth {
            let mut children = Vec::with_capacity(parents.len() * branching);
            for parent in parents {
                for _ in 0..branching {
                    let mut above = parent;
                    for _ in 0..stretch {
                        edges.push((above, next));
                        above = next;
                        next += 1;
                    }
                    children.push(above);
                }
            }
            parents = children;
        }
        let (nodes, edges) = (next as usize, both_ways(edges.into_iter()));
        Spread { name: "trees", classes, copies, nodes, edges, split }.generate(seed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Statistics;

    #[test]
    fn a_tree_branches_and_its_edges_stretch() {
        let config =
            TreesConfig { trees: 1, branching: 2, depth: 2, stretch: 3, ..TreesConfig::default() };
        let dataset = config.generate(0).unwrap();
        let found = Statistics::of(&dataset);
        // The root, two paths of three nodes, and four more.
        assert_eq!((found.graphs, found.nodes, found.edges), (2, 2 * 19, 2 * 2 * 18));
        assert!(found.undirected);
        assert_eq!((found.degree.min, found.degree.max), (1, 3));
        let children: Vec<_> = dataset.edges().iter().filter(|(u, _)| *u == 0).collect();
        assert_eq!(children, [&(0, 1), &(0, 4)]);
    }

    #[test]
    fn a_tree_that_does_not_branch_is_a_chain() {
        let tree = TreesConfig { branching: 1, depth: 9, ..TreesConfig::default() };
        let chain = super::super::ChainsConfig::default();
        let (tree, chain) = (tree.generate(3).unwrap(), chain.generate(3).unwrap());
        assert_eq!(tree.edges(), chain.edges());
        assert_eq!(tree.node_features(), chain.node_features());
        assert_eq!(tree.split(), chain.split());
    }

    #[test]
    fn unusable_options_are_named() {
        let said = |config: TreesConfig| config.generate(0).unwrap_err().to_string();
        let config = TreesConfig::default;
        assert_eq!(
            said(TreesConfig { branching: 0, ..config() }),
            "branching is 0, but a node has at least 1 child"
        );
        for depth in [40, usize::MAX] {
            assert_eq!(
                said(TreesConfig { depth, ..config() }),
                format!(
                    "depth is {depth}, but the set would have more than 2e8 features and edges"
                )
            );
        }
        let said = said(TreesConfig { stretch: usize::MAX, ..config() });
        assert!(said.starts_with("stretch is"), "{said}");
    }
}
