//! Features that say what is around a node, whatever its own features are: counts of rings and cliques, and how
//! often a random walk comes back. They follow from the edges alone and are the same before and after training.

mod cliques;
mod counts;
mod rings;
mod walks;

#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicU64, Ordering};

pub use counts::Shape;
pub(super) use counts::{Counts, bin};

use super::dataset::Dataset;
use super::encoding::degrees;
use crate::graph::Topology;
use crate::{Error, Matrix};

/// Which features are made from the edges around a node.
///
/// A model without them cannot count rings: no network that gathers from neighbours tells two triangles from a
/// ring of six. Counts are one-hot up to 7; larger ones share a column per doubling, the largest that the data
/// have being the last. In a live graph they would change far from every event, so there they are refused.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct StructureOptions {
    /// Largest ring size to count per node, as a feature, 3 to 6; 0: none.
    ///
    /// Rings have no chords: only consecutive nodes of a ring are neighbours.
    #[schemars(range(max = 6))]
    pub rings: usize,
    /// Largest clique size to count per node, as a feature, 3 to 5; 0: none.
    ///
    /// If rings are counted, they include triangles, which are not counted twice.
    #[schemars(range(max = 5))]
    pub cliques: usize,
    /// Longest random walk whose return probability is a feature, 2 to 64; 0: none.
    ///
    /// There is a feature per length, starting from 2, standardised like real values.
    #[schemars(range(max = 64))]
    pub walks: usize,
    /// Whether the numbers of rings and cliques through an edge are edge features.
    pub edges: bool,
}

/// Steps of all searches together: at most some minutes.
const MOST_STEPS: u64 = 1 << 35;

impl StructureOptions {
    /// # Errors
    ///
    /// [`Error::Option`] for sizes that there are not.
    pub(crate) fn check(self) -> Result<Self, Error> {
        let sizes = [
            ("rings", self.rings, 3..=6),
            ("cliques", self.cliques, 3..=5),
            ("walks", self.walks, 2..=64),
        ];
        for (option, value, sizes) in sizes {
            if value != 0 && !sizes.contains(&value) {
                let (smallest, largest) = (sizes.start(), sizes.end());
                let expected = format!("0 or an integer from {smallest} to {largest} is expected");
                return Err(Error::Option { option, value: value.to_string(), expected });
            }
        }
        Ok(self)
    }

    /// What is counted, in the order of its columns.
    pub(super) fn kinds(self) -> Vec<(Shape, usize)> {
        let rings = (3..=self.rings).map(|size| (Shape::Ring, size));
        rings.chain((3..=self.cliques).map(|size| (Shape::Clique, size))).collect()
    }
}

/// What is known of the nodes and edges of a data set from its edges alone.
pub(super) struct Structure {
    /// `de[v]`; empty if nothing reads it.
    pub(super) degrees: Vec<u32>,
    /// Of every node.
    pub(super) nodes: Counts,
    /// Of every edge.
    pub(super) edges: Counts,
    /// The probabilities to be back after 2, 3, … steps, a row per node.
    pub(super) returns: Matrix<f32>,
}

impl Structure {
    /// That of a node alone, of which nothing is known but its degree.
    pub(super) fn of_degree(degree: u32) -> Self {
        let (nodes, edges) = (Counts::default(), Counts::default());
        Self { degrees: vec![degree], nodes, edges, returns: Matrix::zeros(1, 0) }
    }

    /// # Errors
    ///
    /// [`Error::Mismatch`] if the graphs are too dense for the search.
    pub(super) fn new(
        dataset: &Dataset,
        reads_degree: bool,
        options: StructureOptions,
    ) -> Result<Self, Error> {
        let degrees = if reads_degree { degrees(dataset) } else { vec![] };
        let none = Matrix::zeros(dataset.nodes(), 0);
        let mut found =
            Self { degrees, nodes: Counts::default(), edges: Counts::default(), returns: none };
        if options == StructureOptions::default() {
            return Ok(found);
        }
        let topology = Topology::new(dataset.node_starts().to_vec(), dataset.edges(), true)?;
        let budget = Budget::new(MOST_STEPS);
        let kinds = options.kinds();
        if !kinds.is_empty() {
            (found.nodes, found.edges) = counts::count(&topology, &kinds, options.edges, &budget);
            budget.check("rings and cliques", "features.structure.rings and cliques")?;
        }
        if options.walks > 0 {
            found.returns = walks::returns(&topology, options.walks, &budget);
            budget.check("return probabilities", "features.structure.walks")?;
        }
        Ok(found)
    }
}

/// How many steps searches may take; the number does not depend on the threads that take them.
#[derive(Debug)]
struct Budget {
    spent: AtomicU64,
    most: u64,
}

impl Budget {
    fn new(most: u64) -> Self {
        Self { spent: AtomicU64::new(0), most }
    }

    /// Whether there are any left after these.
    fn spend(&self, steps: usize) -> bool {
        let before = self.spent.fetch_add(steps as u64, Ordering::Relaxed);
        before.saturating_add(steps as u64) <= self.most
    }

    /// # Errors
    ///
    /// [`Error::Mismatch`] if a search has ended early.
    fn check(&self, what: &str, settings: &str) -> Result<(), Error> {
        if self.spent.load(Ordering::Relaxed) <= self.most {
            return Ok(());
        }
        Err(Error::Mismatch(format!(
            "the graphs are too large or too dense for {what}: the search takes more than {} steps; {settings} can \
             be smaller",
            self.most
        )))
    }
}
