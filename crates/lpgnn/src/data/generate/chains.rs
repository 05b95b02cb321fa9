use super::check;
use super::spread::{Spread, both_ways, check_copies};
use crate::Error;
use crate::data::{Dataset, Ratio};

/// Chains whose class is a feature of one end only, and has to be predicted at every node.
///
/// A chain is a path of `length` nodes. The features of its first node are the one-hot class of the
/// chain, those of all others are 0. Every node has to be classified, so information has to travel
/// from one end along up to `length − 1` edges: a network whose states are fixed points can do that, one
/// with few layers cannot.
///
/// The defaults are those of implicit graph neural networks (Gu et al., 2020): two classes of
/// 20 chains, with 5 % of the nodes for training, 10 % for validation and the rest for testing.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ChainsConfig {
    /// Number of classes.
    pub classes: usize,
    /// Chains per class.
    pub chains: usize,
    /// Nodes per chain.
    pub length: usize,
    /// The split of the nodes, stratified by class.
    pub split: Ratio,
}

impl Default for ChainsConfig {
    fn default() -> Self {
        Self {
            classes: 2,
            chains: 20,
            length: 10,
            split: Ratio { train: 0.05, val: 0.1, test: 0.85 },
        }
    }
}

impl ChainsConfig {
    /// The data set for this seed, which only affects the split.
    ///
    /// # Errors
    ///
    /// [`Error::Option`], naming the first invalid option.
    pub fn generate(&self, seed: u64) -> Result<Dataset, Error> {
        let Self { classes, chains, length, split } = *self;
        check("length", length, length > 0, "a chain has at least 1 node")?;
        let copies = ("chains", chains);
        check_copies(classes, copies, ("length", length, length as f64))?;
        let last = u32::try_from(length).map_err(|_| Error::TooLarge)?;
        let edges = both_ways((1..last).map(|v| (v - 1, v)));
        Spread { name: "chains", classes, copies, nodes: length, edges, split }.generate(seed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Level, Statistics, TargetColumn};

    #[test]
    fn every_chain_is_a_path_that_starts_with_its_class() {
        let config = ChainsConfig { classes: 3, chains: 2, length: 5, ..ChainsConfig::default() };
        let dataset = config.generate(0).unwrap();
        let found = Statistics::of(&dataset);
        assert_eq!((found.graphs, found.nodes, found.edges), (6, 30, 6 * 8));
        assert!(found.undirected);
        assert_eq!((found.degree.min, found.degree.max), (1, 2));
        assert_eq!(found.warnings, crate::data::Warnings::default());
        let Some(TargetColumn::Classes(targets)) = dataset.node_targets() else { panic!() };
        for node in 0..30 {
            let class = node / 10;
            assert_eq!(targets.codes()[node] as usize, class);
            for (column, &x) in dataset.node_features().values().row(node).iter().enumerate() {
                let here = node % 5 == 0 && column == class;
                assert_eq!(x.to_bits(), f32::from(u8::from(here)).to_bits(), "node {node}");
            }
        }
    }

    #[test]
    fn nodes_are_divided_five_ten_eighty_five() {
        let dataset = ChainsConfig::default().generate(0).unwrap();
        let split = dataset.split().unwrap();
        assert_eq!(split.level, Level::Node);
        assert_eq!((split.train.len(), split.val.len(), split.test.len()), (20, 40, 340));
    }

    #[test]
    fn the_seed_decides_on_the_split_only() {
        let config = ChainsConfig::default();
        let (a, b) = (config.generate(1).unwrap(), config.generate(2).unwrap());
        assert_eq!(a, config.generate(1).unwrap());
        assert_ne!(a.split(), b.split());
        assert_eq!(a.clone().with_split(b.split().cloned()).unwrap(), b);
    }

    #[test]
    fn a_chain_of_one_node_has_no_edges() {
        let config = ChainsConfig { length: 1, ..ChainsConfig::default() };
        assert_eq!(config.generate(0).unwrap().edges(), []);
    }

    #[test]
    fn unusable_options_are_named() {
        let said = |config: ChainsConfig| config.generate(0).unwrap_err().to_string();
        let config = ChainsConfig::default;
        assert_eq!(
            said(ChainsConfig { length: 0, ..config() }),
            "length is 0, but a chain has at least 1 node"
        );
        assert_eq!(
            said(ChainsConfig { classes: 1, ..config() }),
            "classes is 1, but there must be 2 to 1000"
        );
        assert_eq!(
            said(ChainsConfig { length: usize::MAX, ..config() }),
            format!(
                "length is {}, but the set would have more than 2e8 features and edges",
                usize::MAX
            )
        );
    }
}
