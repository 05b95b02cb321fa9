//! Generated data sets: the same seed gives the same bits.

mod chains;
mod clique;
mod communities;
mod drawing;
mod grids;
mod karate;
mod large;
mod pattern;
mod spread;
mod subgraph;
mod trees;

pub use chains::ChainsConfig;
pub use clique::CliqueConfig;
pub use communities::CommunitiesConfig;
pub use grids::GridsConfig;
pub use karate::karate_club;
pub use large::LargeConfig;
pub use pattern::{Pattern, PatternChoice};
pub use subgraph::SubgraphConfig;
pub use trees::TreesConfig;

use drawing::Drawing;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Normal};

use super::{Categories, Dataset, DatasetParts, FeatureColumns, Level, Split, TargetColumn};
use crate::{Error, Matrix};

/// The maximum number of nodes of a random graph; more would need gigabytes.
const MOST_NODES: usize = 20_000;

/// The maximum number of features and edges of a data set; more would need gigabytes.
const MOST_NUMBERS: f64 = 2e8;

/// A random graph with the features of its nodes and the positive nodes.
struct Example {
    drawing: Drawing,
    features: Vec<Vec<f32>>,
    found: Vec<bool>,
}

/// Three times `graphs` examples, for training, validation and test.
///
/// Every graph has a random stream of its own, so none depends on the number of graphs.
fn three_parts(
    name: &str,
    graphs: usize,
    width: usize,
    seed: u64,
    mut draw: impl FnMut(&mut ChaCha8Rng) -> Result<Example, Error>,
) -> Result<Dataset, Error> {
    let total = 3 * graphs;
    let mut node_starts = vec![0];
    let (mut edges, mut features, mut found) = (vec![], vec![], vec![]);
    for graph in 0..total {
        let example = draw(&mut stream(seed, graph as u64))?;
        let start = u32::try_from(found.len()).map_err(|_| Error::TooLarge)?;
        edges.extend(example.drawing.edges().map(|(u, v)| (start + u, start + v)));
        features.extend(example.features.into_iter().flatten());
        found.extend(example.found.iter().map(|&found| u32::from(found)));
        node_starts.push(found.len());
    }
    let nodes = found.len();
    let values = Matrix::from_entries(nodes, width, features)?;
    Dataset::new(DatasetParts {
        name: name.to_owned(),
        node_starts,
        edge_features: FeatureColumns::none(edges.len()),
        edges,
        node_features: FeatureColumns::none(nodes).with_values(attribute_names(width), values)?,
        node_targets: Some(node_targets(2, found)?),
        graph_targets: None,
        split: Some(Split {
            level: Level::Graph,
            train: (0..graphs).collect(),
            val: (graphs..2 * graphs).collect(),
            test: (2 * graphs..total).collect(),
        }),
    })
}

/// The classes of all nodes, named by their numbers.
fn node_targets(classes: usize, class: Vec<u32>) -> Result<TargetColumn, Error> {
    let names = (0..classes).map(|class| class.to_string()).collect();
    Ok(TargetColumn::Classes(Categories::from_codes("node target", names, class)?))
}

/// The column names that the reader of TU folders uses, so that a model can be applied to a data set
/// that was written to such a folder.
fn attribute_names(width: usize) -> Vec<String> {
    match width {
        1 => vec!["node attribute".to_owned()],
        _ => (1..=width).map(|column| format!("node attribute {column}")).collect(),
    }
}

/// The `number`-th of the independent streams of a seed.
fn stream(seed: u64, number: u64) -> ChaCha8Rng {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    random.set_stream(number);
    random
}

/// An integer feature from `0..=largest`.
///
/// # Differences
///
/// Uniform; in the data sets of the method's authors the smallest and the largest value are half as
/// frequent.
fn integer_feature(width: usize, largest: u32, random: &mut ChaCha8Rng) -> Vec<u32> {
    (0..width).map(|_| random.random_range(0..=largest)).collect()
}

/// The features as the network sees them: `l + N(0, noise²)` in every component.
#[allow(clippy::cast_possible_truncation, reason = "features are kept in single precision")]
fn noisy(feature: &[u32], noise: &Normal<f64>, random: &mut ChaCha8Rng) -> Vec<f32> {
    feature.iter().map(|&l| (f64::from(l) + noise.sample(random)) as f32).collect()
}

fn check_noise(noise: f64) -> Result<Normal<f64>, Error> {
    let usable = (0.0..=1e6).contains(&noise);
    check("noise", noise, usable, "a std is at least 0 and at most 1000000")?;
    Normal::new(0.0, noise).map_err(|problem| Error::Mismatch(problem.to_string()))
}

fn check_drawing(
    graphs: usize,
    nodes: usize,
    density: f64,
    feature_size: usize,
) -> Result<(), Error> {
    check("graphs", graphs, graphs > 0, "there must be at least 1")?;
    let expected = format!("there must be at least 1 and at most {MOST_NODES}");
    check("nodes", nodes, (1..=MOST_NODES).contains(&nodes), &expected)?;
    let usable = (0.0..=1.0).contains(&density);
    check("density", density, usable, "a probability lies between 0 and 1")?;
    let usable = (1..=1000).contains(&feature_size);
    check("feature-size", feature_size, usable, "there must be 1 to 1000 features")?;
    let nodes = nodes as f64;
    check_size("graphs", graphs, 3.0 * nodes * (feature_size as f64 + nodes * density))
}

/// Whether `count` times `each` numbers fit into memory.
fn check_size(option: &'static str, count: usize, each: f64) -> Result<(), Error> {
    let expected = format!("the set would have more than {MOST_NUMBERS:e} features and edges");
    check(option, count, count as f64 * each <= MOST_NUMBERS, &expected)
}

/// # Errors
///
/// [`Error::Option`] unless `good`.
fn check(
    option: &'static str,
    value: impl std::fmt::Display + Copy,
    good: bool,
    expected: &str,
) -> Result<(), Error> {
    if good {
        return Ok(());
    }
    Err(Error::Option { option, value: value.to_string(), expected: expected.to_owned() })
}
