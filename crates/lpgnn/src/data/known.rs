use std::fmt;
use std::str::FromStr;

use super::Dataset;
use super::generate::{
    ChainsConfig, CliqueConfig, CommunitiesConfig, GridsConfig, SubgraphConfig, TreesConfig,
    karate_club,
};
use crate::Error;

/// The built-in data sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Builtin {
    /// Subgraph matching, see [`SubgraphConfig`].
    Subgraph,
    /// Clique localisation, see [`CliqueConfig`].
    Clique,
    /// Chains whose class is a feature of one end, see [`ChainsConfig`].
    Chains,
    /// Grids whose class is a feature of one corner, see [`GridsConfig`].
    Grids,
    /// Trees whose class is a feature of the root, see [`TreesConfig`].
    Trees,
    /// Communities of nodes, see [`CommunitiesConfig`].
    Communities,
    /// Zachary's karate club, see [`karate_club`].
    Karate,
}

impl Builtin {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Subgraph,
        Self::Clique,
        Self::Chains,
        Self::Grids,
        Self::Trees,
        Self::Communities,
        Self::Karate,
    ];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Subgraph => "subgraph",
            Self::Clique => "clique",
            Self::Chains => "chains",
            Self::Grids => "grids",
            Self::Trees => "trees",
            Self::Communities => "communities",
            Self::Karate => "karate",
        }
    }

    /// The task, in a few words.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Subgraph => "nodes of a given subgraph, 3 × 100 graphs of 7 nodes",
            Self::Clique => "nodes of a clique of 3, 3 × 100 graphs of 7 nodes",
            Self::Chains => "the class at the far end, 2 × 20 chains of 10 nodes",
            Self::Grids => "the class in a corner, 2 × 20 grids of 5 × 6 nodes",
            Self::Trees => "the class at the root, 2 × 20 trees of 31 nodes",
            Self::Communities => "members of three communities, 600 nodes, some of them hubs",
            Self::Karate => "Zachary's karate club, 34 members of two factions",
        }
    }

    /// The data set with default options.
    ///
    /// # Errors
    ///
    /// None: the defaults can be used.
    pub fn generate(self, seed: u64) -> Result<Dataset, Error> {
        match self {
            Self::Subgraph => SubgraphConfig::default().generate(seed),
            Self::Clique => CliqueConfig::default().generate(seed),
            Self::Chains => ChainsConfig::default().generate(seed),
            Self::Grids => GridsConfig::default().generate(seed),
            Self::Trees => TreesConfig::default().generate(seed),
            Self::Communities => CommunitiesConfig::default().generate(seed),
            Self::Karate => karate_club(),
        }
    }
}

impl fmt::Display for Builtin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Builtin {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::ALL.into_iter().find(|set| set.as_str() == text).ok_or_else(|| Error::Option {
            option: "data",
            value: text.to_owned(),
            expected: format!("built in are {}", Self::ALL.map(Self::as_str).join(", ")),
        })
    }
}

/// A data set of the TU collection, published as `NAME.zip`.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct PublishedSet {
    /// Its name.
    pub name: &'static str,
    /// Number of graphs.
    pub graphs: usize,
    /// Number of classes.
    pub classes: usize,
    /// Mean number of nodes.
    pub mean_nodes: f64,
}

/// The most popular data sets of the TU collection. Others can be downloaded by name too.
pub const PUBLISHED: [PublishedSet; 25] = [
    published("AIDS", 2000, 2, 15.69),
    published("BZR", 405, 2, 35.75),
    published("COLLAB", 5000, 3, 74.49),
    published("COX2", 467, 2, 41.22),
    published("DD", 1178, 2, 284.32),
    published("ENZYMES", 600, 6, 32.63),
    published("FRANKENSTEIN", 4337, 2, 16.90),
    published("IMDB-BINARY", 1000, 2, 19.77),
    published("IMDB-MULTI", 1500, 3, 13.00),
    published("Letter-high", 2250, 15, 4.67),
    published("Letter-low", 2250, 15, 4.68),
    published("Letter-med", 2250, 15, 4.67),
    published("MSRC_21", 563, 20, 77.52),
    published("MSRC_9", 221, 8, 40.58),
    published("MUTAG", 188, 2, 17.93),
    published("Mutagenicity", 4337, 2, 30.32),
    published("NCI1", 4110, 2, 29.87),
    published("NCI109", 4127, 2, 29.68),
    published("PROTEINS", 1113, 2, 39.06),
    published("PTC_FM", 349, 2, 14.11),
    published("PTC_FR", 351, 2, 14.56),
    published("PTC_MM", 336, 2, 13.97),
    published("PTC_MR", 344, 2, 14.29),
    published("REDDIT-BINARY", 2000, 2, 429.63),
    published("REDDIT-MULTI-5K", 4999, 5, 508.52),
];

const fn published(
    name: &'static str,
    graphs: usize,
    classes: usize,
    mean_nodes: f64,
) -> PublishedSet {
    PublishedSet { name, graphs, classes, mean_nodes }
}

/// The name that was probably meant, if a similar one exists.
pub(super) fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |text: &str| text.to_lowercase().replace(['_', ' '], "-");
    let asked = plain(name);
    names
        .map(|known| (strsim::damerau_levenshtein(&asked, &plain(known)), known))
        .filter(|(distance, known)| *distance <= known.len() / 3)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builtin_sets_are_called_by_their_names() {
        for set in Builtin::ALL {
            assert_eq!(set.as_str().parse::<Builtin>().unwrap(), set);
            assert_eq!(set.generate(0).unwrap().name(), set.as_str());
        }
    }

    #[test]
    fn a_slip_of_the_finger_is_understood() {
        let names = || PUBLISHED.iter().map(|set| set.name);
        for (name, meant) in [
            ("mutag", Some("MUTAG")),
            ("MUTGA", Some("MUTAG")),
            ("IMDB_BINARY", Some("IMDB-BINARY")),
            ("proteins", Some("PROTEINS")),
            ("ptc-mr", Some("PTC_MR")),
            ("something else", None),
        ] {
            assert_eq!(nearest(name, names()), meant, "{name}");
        }
    }
}
