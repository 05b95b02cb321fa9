use std::collections::BTreeSet;

use rand::RngExt;
use rand_distr::{Distribution, Normal, StandardNormal};

use super::{attribute_names, check, check_noise, check_size, node_targets, stream};
use crate::data::{Dataset, DatasetParts, FeatureColumns, Level, Ratio, Split};
use crate::{Error, Matrix};

/// One graph with communities whose members are more likely to be connected: which community does
/// a node belong to?
///
/// Every node has a popularity `exp(σ n)` with `n` drawn from `N(0, 1)`, and `σ` the `spread`: with 0
/// all degrees are about the same, with 1 or more a few hubs have most edges. An edge joins two nodes
/// drawn by popularity; it stays within a community except with probability `mixing`. The
/// features of a node are the one-hot vector of its community plus noise that hides most of it.
///
/// The edges are those of a degree-corrected stochastic block model (Karrer and Newman, 2011), given
/// their number.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct CommunitiesConfig {
    /// Number of communities.
    pub classes: usize,
    /// Number of nodes; all communities have the same size.
    pub nodes: usize,
    /// Average degree.
    pub degree: f64,
    /// `σ`: how much degrees vary.
    pub spread: f64,
    /// Proportion of edges between communities.
    pub mixing: f64,
    /// Standard deviation of the noise on every feature.
    pub noise: f64,
    /// The split of the nodes, stratified by class.
    pub split: Ratio,
}

impl Default for CommunitiesConfig {
    fn default() -> Self {
        Self {
            classes: 3,
            nodes: 600,
            degree: 6.0,
            spread: 1.0,
            mixing: 0.2,
            noise: 1.0,
            split: Ratio { train: 0.1, val: 0.2, test: 0.7 },
        }
    }
}

/// How often a pair that is already joined is drawn again.
const TRIES: usize = 100;

impl CommunitiesConfig {
    /// The data set for this seed.
    ///
    /// # Errors
    ///
    /// [`Error::Option`], naming the first invalid option.
    pub fn generate(&self, seed: u64) -> Result<Dataset, Error> {
        let noise = self.check()?;
        let Self { classes, nodes, split, .. } = *self;
        let random = &mut stream(seed, 0);
        let popularity: Vec<f64> = (0..nodes)
            .map(|_| (self.spread * random.sample::<f64, _>(StandardNormal)).exp())
            .collect();
        // Node v belongs to community v modulo the number of communities.
        let members: Vec<Vec<usize>> =
            (0..classes).map(|class| (class..nodes).step_by(classes).collect()).collect();
        let of = |members: &[usize]| Choice::new(members, &popularity);
        let choices: Vec<Choice> = members.iter().map(|members| of(members)).collect();
        let everybody = of(&(0..nodes).collect::<Vec<_>>());

        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it was checked"
        )]
        let ties = (nodes as f64 * self.degree / 2.0).round() as usize;
        let mut edges: BTreeSet<(u32, u32)> = BTreeSet::new();
        let mut tries = 0;
        while edges.len() < 2 * ties && tries < TRIES * ties {
            tries += 1;
            let u = everybody.draw(random.random());
            let shift =
                if random.random_bool(self.mixing) { random.random_range(1..classes) } else { 0 };
            let v = choices[(u as usize + shift) % classes].draw(random.random());
            if u != v {
                edges.extend([(u, v), (v, u)]);
            }
        }
        let class = |node: usize| node % classes;
        let features = self.features(noise, random, class)?;
        #[allow(clippy::cast_possible_truncation, reason = "there are at most 1000 classes")]
        let class_of_node = (0..nodes).map(|node| class(node) as u32).collect();
        let dataset = Dataset::new(DatasetParts {
            name: "communities".into(),
            node_starts: vec![0, nodes],
            edge_features: FeatureColumns::none(edges.len()),
            edges: edges.into_iter().collect(),
            node_features: FeatureColumns::none(nodes)
                .with_values(attribute_names(classes), features)?,
            node_targets: Some(node_targets(classes, class_of_node)?),
            graph_targets: None,
            split: None,
        })?;
        let split = Split::by_ratio(&dataset, Level::Node, split, seed)?;
        dataset.with_split(Some(split))
    }

    fn check(&self) -> Result<Normal<f64>, Error> {
        let Self { classes, nodes, degree, spread, mixing, .. } = *self;
        check("classes", classes, (2..=1000).contains(&classes), "there must be 2 to 1000")?;
        let expected = "every community has at least 2 nodes";
        check("nodes", nodes, nodes >= 2 * classes, expected)?;
        check_size("nodes", nodes, classes as f64)?;
        let most = (nodes / classes - 1) as f64 / 2.0;
        let expected = format!("a degree is at least 0 and here at most {most}");
        check("degree", degree, (0.0..=most).contains(&degree), &expected)?;
        check_size("nodes", nodes, degree)?;
        let expected = "a spread is at least 0 and at most 5";
        check("spread", spread, (0.0..=5.0).contains(&spread), expected)?;
        let usable = (0.0..=1.0).contains(&mixing);
        check("mixing", mixing, usable, "a probability lies between 0 and 1")?;
        check_noise(self.noise)
    }

    #[allow(clippy::cast_possible_truncation, reason = "features are kept in single precision")]
    fn features(
        &self,
        noise: Normal<f64>,
        random: &mut rand_chacha::ChaCha8Rng,
        class: impl Fn(usize) -> usize,
    ) -> Result<Matrix<f32>, Error> {
        let mut entries = Vec::with_capacity(self.nodes * self.classes);
        for node in 0..self.nodes {
            for column in 0..self.classes {
                let own = f64::from(u8::from(column == class(node)));
                entries.push((own + noise.sample(random)) as f32);
            }
        }
        Matrix::from_entries(self.nodes, self.classes, entries)
    }
}

/// Draws nodes by popularity.
struct Choice {
    nodes: Vec<u32>,
    /// Cumulative popularities.
    sums: Vec<f64>,
}

impl Choice {
    #[allow(clippy::cast_possible_truncation, reason = "all nodes have 32-bit numbers")]
    fn new(nodes: &[usize], popularity: &[f64]) -> Self {
        let mut sum = 0.0;
        let sums = nodes.iter().map(|&node| {
            sum += popularity[node];
            sum
        });
        Self { sums: sums.collect(), nodes: nodes.iter().map(|&node| node as u32).collect() }
    }

    /// `share` is uniform in `[0, 1)`.
    fn draw(&self, share: f64) -> u32 {
        let place = share * self.sums[self.sums.len() - 1];
        let node = self.sums.partition_point(|&sum| sum <= place);
        self.nodes[node.min(self.nodes.len() - 1)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Statistics;

    fn degrees(spread: f64) -> (usize, f64, usize) {
        let config = CommunitiesConfig { spread, ..CommunitiesConfig::default() };
        let found = Statistics::of(&config.generate(1).unwrap());
        (found.edges, found.degree.mean, found.degree.max)
    }

    #[test]
    fn a_larger_spread_makes_hubs_of_as_many_ties() {
        let (even, hubs) = (degrees(0.0), degrees(1.5));
        assert_eq!((even.0, hubs.0), (3600, 3600));
        assert!((even.1 - 6.0).abs() < 1e-9, "{even:?}");
        assert!(even.2 < 20 && hubs.2 > 60, "{even:?} {hubs:?}");
    }

    #[test]
    fn ties_stay_within_a_community_but_for_the_share_that_mixes() {
        let config = CommunitiesConfig { mixing: 0.25, ..CommunitiesConfig::default() };
        let dataset = config.generate(2).unwrap();
        let leave = dataset.edges().iter().filter(|(u, v)| u % 3 != v % 3).count();
        let share = leave as f64 / dataset.edges().len() as f64;
        assert!((share - 0.25).abs() < 0.05, "{share}");
        assert_eq!(dataset, config.generate(2).unwrap());
        assert_ne!(dataset, config.generate(3).unwrap());
    }

    #[test]
    fn a_graph_that_cannot_have_as_many_ties_has_those_it_can() {
        let config = CommunitiesConfig { nodes: 9, degree: 1.0, spread: 5.0, ..Default::default() };
        assert!(config.generate(0).unwrap().edges().len() <= 10);
    }

    #[test]
    fn unusable_options_are_named() {
        let said = |config: CommunitiesConfig| config.generate(0).unwrap_err().to_string();
        let config = CommunitiesConfig::default;
        assert_eq!(
            said(CommunitiesConfig { nodes: 5, ..config() }),
            "nodes is 5, but every community has at least 2 nodes"
        );
        assert_eq!(
            said(CommunitiesConfig { degree: 300.0, ..config() }),
            "degree is 300, but a degree is at least 0 and here at most 99.5"
        );
        assert_eq!(
            said(CommunitiesConfig { spread: f64::NAN, ..config() }),
            "spread is NaN, but a spread is at least 0 and at most 5"
        );
        assert_eq!(
            said(CommunitiesConfig { mixing: 2.0, ..config() }),
            "mixing is 2, but a probability lies between 0 and 1"
        );
    }
}
