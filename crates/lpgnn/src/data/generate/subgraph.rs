use rand::seq::index;
use rand_chacha::ChaCha8Rng;
use rand_distr::Normal;

use super::drawing::Drawing;
use super::pattern::{Pattern, PatternChoice};
use super::{
    Example, check, check_drawing, check_noise, integer_feature, noisy, stream, three_parts,
};
use crate::Error;
use crate::data::Dataset;

/// Subgraph matching: which nodes belong to an occurrence of a given pattern `S`?
///
/// `τ_S(G, v) = 1` for every node `v` of every occurrence of `S`, else `0`.
///
/// A graph has random integer features, the pattern on some of its nodes, and random edges that make
/// it connected. The network sees the features with Gaussian noise. An occurrence is
/// a subgraph with the features (before noise) and the edges of the pattern, induced or not: as in
/// the paper, `Ŝ ⊂ G` isomorphic to `S`. Besides the planted one there may be others by
/// chance, and all of them count.
///
/// The defaults are those of the paper's table: three times 100 graphs with 7 nodes, a pattern of 3;
/// what the paper leaves open was measured on its authors' data: two features from 0 to 8 per node,
/// noise with standard deviation ¼, seven or eight edges per graph.
///
/// ```
/// # use lpgnn::data::generate::SubgraphConfig;
/// let task = SubgraphConfig { nodes: 12, ..SubgraphConfig::default() }.generate(1)?;
/// assert_eq!((task.graphs(), task.nodes()), (300, 3600));
/// # Ok::<(), lpgnn::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct SubgraphConfig {
    /// Graphs in each of the training, validation and test splits.
    pub graphs: usize,
    /// Nodes per graph.
    pub nodes: usize,
    /// The pattern.
    pub pattern: PatternChoice,
    /// The probability of an edge outside the pattern.
    pub density: f64,
    /// Number of integer features per node.
    pub feature_size: usize,
    /// The largest value of a feature; the smallest is 0.
    pub largest_feature: u32,
    /// Standard deviation of the noise on every feature.
    pub noise: f64,
}

impl Default for SubgraphConfig {
    fn default() -> Self {
        Self {
            graphs: 100,
            nodes: 7,
            pattern: PatternChoice::Random(3),
            density: 0.25,
            feature_size: 2,
            largest_feature: 8,
            noise: 0.25,
        }
    }
}

impl SubgraphConfig {
    /// The data set for this seed. Graphs are assigned to the three splits in order.
    ///
    /// # Errors
    ///
    /// [`Error::Option`], naming the first invalid option.
    pub fn generate(&self, seed: u64) -> Result<Dataset, Error> {
        let noise = self.check()?;
        let pattern = self.pattern(seed)?;
        three_parts("subgraph", self.graphs, self.feature_size, seed, |random| {
            Ok(self.draw(&pattern, &noise, random))
        })
    }

    /// The pattern that [`generate`](Self::generate) plants in every graph.
    ///
    /// # Errors
    ///
    /// [`Error::Option`], naming the first invalid option.
    pub fn pattern(&self, seed: u64) -> Result<Pattern, Error> {
        self.check()?;
        Ok(match &self.pattern {
            PatternChoice::Given(pattern) => pattern.clone(),
            &PatternChoice::Random(nodes) => {
                // A stream that no graph uses.
                let mut random = stream(seed, u64::MAX);
                let (width, largest) = (self.feature_size, self.largest_feature);
                Pattern::random(nodes, self.density, width, largest, &mut random)
            }
        })
    }

    fn check(&self) -> Result<Normal<f64>, Error> {
        check_drawing(self.graphs, self.nodes, self.density, self.feature_size)?;
        let size = self.feature_size;
        let (option, nodes) = match &self.pattern {
            PatternChoice::Random(nodes) => ("pattern-nodes", *nodes),
            PatternChoice::Given(pattern) => {
                let found = pattern.features()[0].len();
                let expected =
                    format!("its features have {found} integers where others have {size}");
                check("pattern", format_args!("“{pattern}”"), found == size, &expected)?;
                ("nodes of the pattern", pattern.nodes())
            }
        };
        let expected =
            format!("there must be at least 1 and at most as many as nodes: {}", self.nodes);
        check(option, nodes, (1..=self.nodes).contains(&nodes), &expected)?;
        check_noise(self.noise)
    }

    fn draw(&self, pattern: &Pattern, noise: &Normal<f64>, random: &mut ChaCha8Rng) -> Example {
        let mut features: Vec<Vec<u32>> = (0..self.nodes)
            .map(|_| integer_feature(self.feature_size, self.largest_feature, random))
            .collect();
        let mut drawing = Drawing::new(self.nodes);
        let mut fixed = vec![false; self.nodes];
        let places = index::sample(random, self.nodes, pattern.nodes()).into_vec();
        for (place, feature) in places.iter().zip(pattern.features()) {
            features[*place].clone_from(feature);
            fixed[*place] = true;
        }
        for &(u, v) in pattern.edges() {
            drawing.join(places[u], places[v]);
        }
        drawing.scribble(self.density, &fixed, random);
        let found = pattern.occurrences(&drawing, &features);
        let features = features.iter().map(|feature| noisy(feature, noise, random)).collect();
        Example { drawing, features, found }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::{RngExt, SeedableRng};

    use super::*;
    use crate::data::{Level, Statistics, TargetColumn};

    /// The definition, by trying every way to map the pattern.
    fn by_definition(pattern: &Pattern, drawing: &Drawing, features: &[Vec<u32>]) -> Vec<bool> {
        let (k, n) = (pattern.nodes(), drawing.nodes());
        let mut found = vec![false; n];
        for number in 0..n.pow(u32::try_from(k).unwrap()) {
            let image: Vec<usize> =
                (0..k).map(|i| number / n.pow(u32::try_from(i).unwrap()) % n).collect();
            let injective = (0..k).all(|i| !image[..i].contains(&image[i]));
            let same_features = (0..k).all(|i| features[image[i]] == pattern.features()[i]);
            let edges = pattern.edges().iter().all(|&(u, v)| drawing.has(image[u], image[v]));
            if injective && same_features && edges {
                for &v in &image {
                    found[v] = true;
                }
            }
        }
        found
    }

    proptest! {
        #[test]
        fn occurrences_are_those_of_the_definition(
            seed: u64, nodes in 1_usize..7, size in 1_usize..5, largest in 0_u32..3,
        ) {
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            let density = random.random_range(0.0..1.0);
            let pattern = Pattern::random(size.min(nodes), density, 1, largest, &mut random);
            let mut drawing = Drawing::new(nodes);
            drawing.scribble(density, &vec![false; nodes], &mut random);
            let features: Vec<_> =
                (0..nodes).map(|_| integer_feature(1, largest, &mut random)).collect();
            prop_assert_eq!(
                pattern.occurrences(&drawing, &features),
                by_definition(&pattern, &drawing, &features),
                "{} in {:?} {:?}", pattern, drawing, features
            );
        }

        #[test]
        fn a_disconnected_pattern_is_found_too(seed: u64) {
            let pattern: Pattern = "0 1 0 1; 0-1 2-3".parse().unwrap();
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            let mut drawing = Drawing::new(6);
            drawing.scribble(0.3, &[false; 6], &mut random);
            let features: Vec<_> = (0..6).map(|_| integer_feature(1, 1, &mut random)).collect();
            prop_assert_eq!(
                pattern.occurrences(&drawing, &features),
                by_definition(&pattern, &drawing, &features)
            );
        }

        #[test]
        fn a_pattern_reads_as_it_is_written(seed: u64, nodes in 1_usize..9, width in 1_usize..4) {
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            let pattern = Pattern::random(nodes, 0.3, width, 8, &mut random);
            prop_assert_eq!(pattern.to_string().parse::<Pattern>().unwrap(), pattern);
        }
    }

    #[test]
    fn defaults_are_the_paper_s() {
        let dataset = SubgraphConfig::default().generate(0).unwrap();
        let found = Statistics::of(&dataset);
        assert_eq!((found.graphs, found.nodes), (300, 2100));
        assert!(found.undirected);
        assert_eq!(found.warnings, crate::data::Warnings::default());
        let edges = found.edges_per_graph.mean / 2.0;
        assert!((6.8..8.2).contains(&edges), "{edges} edges per graph");
        let split = dataset.split().unwrap();
        assert_eq!(split.level, Level::Graph);
        assert_eq!((split.train.len(), split.val.len(), split.test.len()), (100, 100, 100));
        // Three nodes per graph, and now and then a second occurrence.
        let Some(TargetColumn::Classes(targets)) = dataset.node_targets() else { panic!() };
        let found = targets.counts()[1];
        assert!((900..960).contains(&found), "{found} nodes in occurrences");
    }

    #[test]
    fn same_seed_same_bits_and_other_seed_other_pattern() {
        let config = SubgraphConfig::default();
        assert_eq!(config.generate(7).unwrap(), config.generate(7).unwrap());
        assert_ne!(config.generate(7).unwrap(), config.generate(8).unwrap());
        assert_ne!(config.pattern(7).unwrap(), config.pattern(8).unwrap());
    }

    #[test]
    fn noise_has_its_deviation_around_integers() {
        let quiet = SubgraphConfig { noise: 0.0, ..SubgraphConfig::default() };
        let noisy = SubgraphConfig { noise: 0.1, ..quiet.clone() };
        let values = |config: &SubgraphConfig| {
            config.generate(3).unwrap().node_features().values().as_slice().to_vec()
        };
        assert!(values(&quiet).iter().all(|x| x.fract().abs() < f32::EPSILON && *x <= 8.0));
        let values = values(&noisy);
        let square: f32 = values.iter().map(|x| (x - x.round()).powi(2)).sum();
        let std = (square / values.len() as f32).sqrt();
        assert!((std - 0.1).abs() < 0.01, "{std}");
    }

    #[test]
    fn the_given_pattern_is_in_every_graph() {
        let pattern: Pattern = "1 2 3 4; 0-1 1-2 2-3 3-0".parse().unwrap();
        let config = SubgraphConfig {
            pattern: PatternChoice::Given(pattern.clone()),
            feature_size: 1,
            noise: 0.0,
            graphs: 20,
            ..SubgraphConfig::default()
        };
        let dataset = config.generate(0).unwrap();
        let Some(TargetColumn::Classes(targets)) = dataset.node_targets() else { panic!() };
        for nodes in dataset.node_starts().windows(2) {
            let found = targets.codes()[nodes[0]..nodes[1]].iter().filter(|&&code| code == 1);
            assert!(found.count() >= 4);
        }
    }

    #[test]
    fn unusable_options_are_named() {
        let said = |config: SubgraphConfig| config.generate(0).unwrap_err().to_string();
        let config = SubgraphConfig::default;
        assert_eq!(
            said(SubgraphConfig { graphs: 0, ..config() }),
            "graphs is 0, but there must be at least 1"
        );
        assert_eq!(
            said(SubgraphConfig { pattern: PatternChoice::Random(8), ..config() }),
            "pattern-nodes is 8, but there must be at least 1 and at most as many as nodes: 7"
        );
        assert_eq!(
            said(SubgraphConfig { density: f64::NAN, ..config() }),
            "density is NaN, but a probability lies between 0 and 1"
        );
        assert_eq!(
            said(SubgraphConfig { noise: -1.0, ..config() }),
            "noise is -1, but a std is at least 0 and at most 1000000"
        );
        assert_eq!(
            said(SubgraphConfig {
                pattern: PatternChoice::Given("1; ".parse().unwrap()),
                ..config()
            }),
            "pattern is “1; ”, but its features have 1 integers where others have 2"
        );
    }

    #[test]
    fn a_pattern_that_makes_no_sense_is_refused() {
        for (text, problem) in [
            ("1 2", "a pattern is written like 1,8 8,4 6,1; 0-1 1-2: features, then edges"),
            ("1 x; 0-1", "a pattern is written like 1,8 8,4 6,1; 0-1 1-2: features, then edges"),
            ("1 2; 0-2", "an edge joins two different nodes of 0 to 1"),
            ("1 2; 1-1", "an edge joins two different nodes of 0 to 1"),
            (";", "a pattern has at least one node"),
            ("1 2,3; 0-1", "row 1 has 2 columns where 1 were expected"),
        ] {
            let error = text.parse::<Pattern>().unwrap_err().to_string();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }
}
