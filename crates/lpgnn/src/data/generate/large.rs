use std::path::Path;

use rand::RngExt;
use rand::distr::StandardUniform;
use rand_distr::StandardNormal;

use super::{attribute_names, check, check_noise, stream};
use crate::Error;
use crate::data::parts::{
    FeatureForm, NodeRow, PartsInfo, PartsWriter, RowFeatures, TargetForm, info_of,
};
use crate::data::write::{Overwrite, fill_folder};
use crate::data::{Encoding, FeatureOptions, FeatureSource, Ratio};
use crate::run::{SplitConfig, SplitSource};

/// One graph of any size with communities, written node by node into parts: which class does the community of a node have?
///
/// The communities follow each other, and have `community` nodes each. In every of `degree / 2` rounds a permutation joins every node
/// to one other: `x ↦ a x + b`, modulo the size of its community, with `a` and `b` drawn for every community and round; or, in a share
/// `mixing` of the rounds, modulo the number of nodes. The neighbours of a node are where permutations and their inverses lead from it,
/// so that nobody has to know the edges of anybody else. Features are the one-hot vector of the class plus noise.
///
/// The graph depends on the seed and these numbers, and not on how many parts it has.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct LargeConfig {
    /// Number of nodes.
    pub nodes: usize,
    /// Number of neighbours of a node, at most.
    pub degree: usize,
    /// Nodes of a community.
    pub community: usize,
    /// Proportion of edges to anywhere.
    pub mixing: f64,
    /// Number of classes; community `i` has class `i` modulo this.
    pub classes: usize,
    /// Number of features: at least that of classes. Those beyond it are noise.
    pub features: usize,
    /// Standard deviation of the noise on every feature.
    pub noise: f64,
    /// The split of the nodes.
    pub split: Ratio,
    /// Number of parts.
    pub parts: usize,
}

impl Default for LargeConfig {
    fn default() -> Self {
        Self {
            nodes: 1_000_000,
            degree: 20,
            community: 1000,
            mixing: 0.1,
            classes: 4,
            features: 16,
            noise: 1.0,
            split: Ratio { train: 0.1, val: 0.1, test: 0.8 },
            parts: 64,
        }
    }
}

/// `x ↦ a x + b (mod m)`, and its inverse.
#[derive(Clone, Copy)]
struct Permutation {
    a: u64,
    inverse: u64,
    b: u64,
    modulus: u64,
}

impl Permutation {
    /// One that is drawn.
    fn draw(modulus: usize, random: &mut rand_chacha::ChaCha8Rng) -> Self {
        let modulus = modulus as u64;
        let (a, inverse) = loop {
            let a = random.random_range(1..modulus.max(2));
            if let Some(inverse) = inverse(a, modulus) {
                break (a, inverse);
            }
        };
        Self { a, inverse, b: random.random_range(0..modulus), modulus }
    }

    fn forth(self, x: u64) -> u64 {
        times(self.a, x, self.modulus).wrapping_add(self.b) % self.modulus
    }

    fn back(self, y: u64) -> u64 {
        times(self.inverse, y + self.modulus - self.b, self.modulus)
    }
}

/// `a x` modulo `m`, all below 2³².
fn times(a: u64, x: u64, m: u64) -> u64 {
    (a % m) * (x % m) % m
}

/// The inverse of `a` modulo `m`, by Euclid's algorithm; none if they have a common divisor.
fn inverse(a: u64, m: u64) -> Option<u64> {
    let (mut r, mut next_r) = (i128::from(m), i128::from(a % m.max(1)));
    let (mut t, mut next_t) = (0_i128, 1_i128);
    while next_r != 0 {
        let q = r / next_r;
        (r, next_r) = (next_r, r - q * next_r);
        (t, next_t) = (next_t, t - q * next_t);
    }
    let found = u64::try_from(t.rem_euclid(i128::from(m.max(1)))).ok()?;
    (r == 1 || m == 1).then_some(found)
}

impl LargeConfig {
    /// Writes the graph of this seed.
    ///
    /// # Errors
    ///
    /// [`Error::Option`], naming the first invalid option; [`Error::Mismatch`] when the folder is not to be replaced; [`Error::Io`].
    pub fn write(
        &self,
        seed: u64,
        folder: &Path,
        overwrite: Overwrite,
    ) -> Result<PartsInfo, Error> {
        self.check()?;
        let Ratio { train, val, test } = self.split;
        let classes: Vec<String> = (0..self.classes).map(|class| class.to_string()).collect();
        let encoding = Encoding::of_values(attribute_names(self.features), classes.clone());
        let form = FeatureForm::Dense { width: self.features };
        let options = FeatureOptions {
            source: FeatureSource::Values,
            standardize: false,
            ..FeatureOptions::default()
        };
        let split = SplitConfig { source: SplitSource::Data, train, val, test, seed };
        let targets = TargetForm::Classes { name: "y".into(), classes };
        let info = info_of("large", (encoding, form), (options, split), targets);
        fill_folder(folder, overwrite, |new| {
            let mut writer = PartsWriter::create(new, info)?;
            self.write_nodes(seed, &mut writer)?;
            writer.finish()
        })
    }

    fn check(&self) -> Result<(), Error> {
        let Self { nodes, degree, community, mixing, classes, features, parts, .. } = *self;
        let most = u32::MAX as usize - 1;
        check("nodes", nodes, (2..=most).contains(&nodes), "there must be 2 to 2³² − 2")?;
        let usable = (2..=nodes).contains(&community);
        check("community", community, usable, "a community has at least 2 nodes, and at most all")?;
        check("degree", degree, degree < community, "a degree is below the size of a community")?;
        check("classes", classes, (2..=1000).contains(&classes), "there must be 2 to 1000")?;
        let usable = (classes..=1 << 16).contains(&features);
        check(
            "features",
            features,
            usable,
            "there are at least as many as classes, and at most 65536",
        )?;
        check("parts", parts, (1..=nodes).contains(&parts), "a part has at least one node")?;
        let usable = (0.0..=1.0).contains(&mixing);
        check("mixing", mixing, usable, "a probability lies between 0 and 1")?;
        self.split.check()?;
        check_noise(self.noise).map(|_| ())
    }

    #[allow(clippy::cast_possible_truncation, reason = "nodes are numbered with 32 bits")]
    fn write_nodes(&self, seed: u64, writer: &mut PartsWriter) -> Result<(), Error> {
        let rounds = self.degree / 2;
        #[allow(clippy::cast_sign_loss, reason = "a share of rounds")]
        let far = (self.mixing * rounds as f64).round() as usize;
        let anywhere = &mut stream(seed, 0);
        let far: Vec<Permutation> =
            (0..far).map(|_| Permutation::draw(self.nodes, anywhere)).collect();
        let mut near: Vec<Permutation> = vec![];
        let (mut neighbours, mut features) = (vec![], vec![0.0; self.features]);
        let mut next_part = 0;
        for v in 0..self.nodes {
            if v == next_part * self.nodes / self.parts {
                writer.end_part();
                next_part += 1;
            }
            let (number, place) = (v / self.community, v % self.community);
            let start = number * self.community;
            if place == 0 {
                let random = &mut stream(seed, 1 + number as u64);
                let size = self.community.min(self.nodes - start);
                near = (far.len()..rounds).map(|_| Permutation::draw(size, random)).collect();
            }
            neighbours.clear();
            let both = |p: &Permutation, x: u64| [p.forth(x), p.back(x)];
            neighbours.extend(far.iter().flat_map(|p| both(p, v as u64)).map(|u| u as u32));
            let here = near.iter().flat_map(|p| both(p, place as u64));
            neighbours.extend(here.map(|u| (start as u64 + u) as u32));
            neighbours.retain(|&u| u as usize != v);
            neighbours.sort_unstable();
            neighbours.dedup();
            let class = number % self.classes;
            let random = &mut stream(!seed, v as u64);
            for (column, x) in features.iter_mut().enumerate() {
                let own = f64::from(u8::from(column == class));
                *x = (own + self.noise * random.sample::<f64, _>(StandardNormal)) as f32;
            }
            let drawn: f64 = random.sample(StandardUniform);
            let split = [self.split.train, self.split.train + self.split.val, f64::INFINITY];
            let split = split.iter().position(|&end| drawn < end).unwrap_or(2);
            writer.node(&NodeRow {
                neighbours: &neighbours,
                features: RowFeatures::Dense(&features),
                class: class as u32,
                values: &[],
                split: 1 + split as u8,
                original: v as u32,
            })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permutation_and_its_inverse_lead_back() {
        let random = &mut stream(1, 0);
        for modulus in [1, 2, 7, 10, 1000, 4_000_000_000] {
            let p = Permutation::draw(modulus, random);
            for x in [0, 1, 3, 999, 3_999_999_998_u64].map(|x| x % modulus as u64) {
                assert_eq!((p.back(p.forth(x)), p.forth(p.back(x))), (x, x), "{modulus}");
            }
        }
    }

    #[test]
    fn the_graph_does_not_depend_on_the_number_of_parts() {
        let place = tempfile::tempdir().unwrap();
        let write = |parts: usize| {
            let folder = place.path().join(parts.to_string());
            let config =
                LargeConfig { nodes: 3050, community: 100, parts, ..LargeConfig::default() };
            let info = config.write(5, &folder, Overwrite::Refuse).unwrap();
            assert_eq!((info.parts(), info.nodes()), (parts, 3050));
            let arrays = ["neighbour_starts", "neighbours", "features", "y", "split"];
            arrays.map(|name| std::fs::read(folder.join(format!("{name}.npy"))).unwrap())
        };
        assert_eq!(write(1), write(7));
    }
}
