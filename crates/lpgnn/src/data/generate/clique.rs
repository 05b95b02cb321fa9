use rand::seq::index;
use rand_chacha::ChaCha8Rng;
use rand_distr::Normal;

use super::drawing::Drawing;
use super::{Example, check, check_drawing, check_noise, integer_feature, noisy, three_parts};
use crate::Error;
use crate::data::Dataset;

/// Clique localisation: which nodes belong to a clique of at least a given size?
///
/// A graph has a clique on some of its nodes, and random edges that make it connected. Besides the
/// planted clique there may be others by chance: a node is positive if and only if it is in any clique
/// of at least `clique` nodes. Features are not informative.
///
/// The defaults are those of the paper: three times 100 graphs with 7 nodes, a clique of 3; what
/// the paper leaves open was measured on its authors' data: one feature from 0 to 8 per node without
/// noise, eight or nine edges per graph, 57 % of the nodes in a clique.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct CliqueConfig {
    /// Graphs in each of the training, validation and test splits.
    pub graphs: usize,
    /// Nodes per graph.
    pub nodes: usize,
    /// Size of the clique.
    pub clique: usize,
    /// The probability of an edge, outside the clique.
    pub density: f64,
    /// Number of integer features per node.
    pub feature_size: usize,
    /// The largest value of a feature; the smallest is 0.
    pub largest_feature: u32,
    /// Standard deviation of the noise on every feature.
    pub noise: f64,
}

impl Default for CliqueConfig {
    fn default() -> Self {
        Self {
            graphs: 100,
            nodes: 7,
            clique: 3,
            density: 0.25,
            feature_size: 1,
            largest_feature: 8,
            noise: 0.0,
        }
    }
}

impl CliqueConfig {
    /// The data set for this seed. Graphs are assigned to the three splits in order.
    ///
    /// # Errors
    ///
    /// [`Error::Option`], naming the first invalid option.
    pub fn generate(&self, seed: u64) -> Result<Dataset, Error> {
        let noise = self.check()?;
        three_parts("clique", self.graphs, self.feature_size, seed, |random| {
            Ok(self.draw(&noise, random))
        })
    }

    fn check(&self) -> Result<Normal<f64>, Error> {
        check_drawing(self.graphs, self.nodes, self.density, self.feature_size)?;
        let expected = format!(
            "a clique has at least 2 nodes and at most as many as the graph: {}",
            self.nodes
        );
        check("clique", self.clique, (2..=self.nodes).contains(&self.clique), &expected)?;
        check_noise(self.noise)
    }

    fn draw(&self, noise: &Normal<f64>, random: &mut ChaCha8Rng) -> Example {
        let mut drawing = Drawing::new(self.nodes);
        let mut fixed = vec![false; self.nodes];
        let members = index::sample(random, self.nodes, self.clique).into_vec();
        for &v in &members {
            fixed[v] = true;
            for &u in members.iter().take_while(|&&u| u != v) {
                drawing.join(u, v);
            }
        }
        drawing.scribble(self.density, &fixed, random);
        let found = in_cliques(&drawing, self.clique);
        let features = (0..self.nodes)
            .map(|_| integer_feature(self.feature_size, self.largest_feature, random))
            .collect::<Vec<_>>();
        let features = features.iter().map(|feature| noisy(feature, noise, random)).collect();
        Example { drawing, features, found }
    }
}

/// The nodes of all cliques of at least `size`; that is, of all cliques of exactly `size`.
fn in_cliques(drawing: &Drawing, size: usize) -> Vec<bool> {
    let mut found = vec![false; drawing.nodes()];
    // A node that is in no clique need not be considered again.
    let mut possible = vec![true; drawing.nodes()];
    for v in 0..drawing.nodes() {
        if found[v] {
            continue;
        }
        let near: Vec<usize> = drawing.neighbours(v).filter(|&u| possible[u]).collect();
        let mut clique = vec![v];
        if grow(drawing, &mut clique, &near, size) {
            for &u in &clique {
                found[u] = true;
            }
        } else {
            possible[v] = false;
        }
    }
    found
}

/// Extends `clique` to `size` nodes; each of `near` is a neighbour of all its members.
fn grow(drawing: &Drawing, clique: &mut Vec<usize>, near: &[usize], size: usize) -> bool {
    if clique.len() >= size {
        return true;
    }
    let missing = size - clique.len();
    for (i, &u) in near.iter().enumerate() {
        if near.len() - i < missing {
            return false;
        }
        let nearer: Vec<usize> =
            near[i + 1..].iter().copied().filter(|&w| drawing.has(u, w)).collect();
        clique.push(u);
        if grow(drawing, clique, &nearer, size) {
            return true;
        }
        clique.pop();
    }
    false
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::SeedableRng;

    use super::*;
    use crate::data::{Statistics, TargetColumn, Warnings};

    /// The definition, over all sets of nodes.
    fn by_definition(drawing: &Drawing, size: usize) -> Vec<bool> {
        let nodes = drawing.nodes();
        let mut found = vec![false; nodes];
        for set in 0_u32..1 << nodes {
            let members: Vec<usize> = (0..nodes).filter(|&v| set >> v & 1 == 1).collect();
            let complete =
                members.iter().all(|&u| members.iter().all(|&v| u == v || drawing.has(u, v)));
            if members.len() >= size && complete {
                for &v in &members {
                    found[v] = true;
                }
            }
        }
        found
    }

    proptest! {
        #[test]
        fn cliques_are_those_of_the_definition(
            seed: u64, nodes in 1_usize..10, size in 1_usize..7, density in 0.0..1.0_f64,
        ) {
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            let mut drawing = Drawing::new(nodes);
            drawing.scribble(density, &vec![false; nodes], &mut random);
            prop_assert_eq!(drawing.components().len(), 1);
            prop_assert_eq!(in_cliques(&drawing, size), by_definition(&drawing, size));
        }
    }

    #[test]
    fn defaults_are_the_paper_s() {
        let dataset = CliqueConfig::default().generate(0).unwrap();
        let found = Statistics::of(&dataset);
        assert_eq!((found.graphs, found.nodes), (300, 2100));
        assert_eq!(found.warnings, Warnings::default());
        let edges = found.edges_per_graph.mean / 2.0;
        assert!((7.8..9.0).contains(&edges), "{edges} edges per graph");
        let Some(TargetColumn::Classes(targets)) = dataset.node_targets() else { panic!() };
        let share = targets.counts()[1] as f64 / 2100.0;
        assert!((0.52..0.62).contains(&share), "{share} of the nodes are in a clique");
    }

    #[test]
    fn same_seed_same_bits() {
        let config = CliqueConfig { noise: 0.5, ..CliqueConfig::default() };
        assert_eq!(config.generate(7).unwrap(), config.generate(7).unwrap());
        assert_ne!(config.generate(7).unwrap(), config.generate(8).unwrap());
    }

    #[test]
    fn fewer_graphs_are_the_first_of_more() {
        let few = CliqueConfig { graphs: 2, ..CliqueConfig::default() }.generate(1).unwrap();
        let more = CliqueConfig { graphs: 5, ..CliqueConfig::default() }.generate(1).unwrap();
        assert_eq!(few.edges(), &more.edges()[..few.edges().len()]);
    }

    #[test]
    fn unusable_options_are_named() {
        let error = CliqueConfig { clique: 8, ..CliqueConfig::default() }.generate(0).unwrap_err();
        assert_eq!(
            error.to_string(),
            "clique is 8, but a clique has at least 2 nodes and at most as many as the graph: 7"
        );
    }
}
