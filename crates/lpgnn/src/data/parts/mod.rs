//! One large graph in parts, of which every process reads those that it owns and no others.
//!
//! A folder with `parts.json` and arrays as `numpy.save` writes them, in which the nodes of a part follow each other and
//! parts follow each other. So what a process owns, a run of parts, is a piece of every array, which it maps into its memory.
//! Features are those that a model reads: they were encoded when the parts were written.
//!
//! | file | type | what |
//! |---|---|---|
//! | `neighbour_starts.npy` | u64, nodes + 1 | where the neighbours of every node start |
//! | `neighbours.npy` | u32 | the neighbours of every node, parents and children, in order |
//! | `features.npy` | f32, nodes × width | dense features; or |
//! | `feature_columns.npy` | u32, nodes | the column that is 1 of one-hot features; or |
//! | `feature_starts.npy`, `feature_columns.npy`, `feature_values.npy` | u64, u32, f32 | sparse rows |
//! | `y.npy` | u32, or f32, nodes × values | classes, of which the largest number is none; or real values |
//! | `split.npy` | u8 | 0: in no split, 1: train, 2: val, 3: test |
//! | `original.npy` | u32 | which node of the data set it is |
//! | `names.txt` | text | the names of nodes, in the order of the data set, a line each; if they have any |

mod array;
mod fingerprint;
mod names;
mod read;
mod write;

pub(crate) use array::Mapped;
pub use names::Names;
pub use read::Parts;
pub(crate) use write::info_of;
pub use write::{NodeRow, PartsWriter, RowFeatures, write_parts};

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Encoding, FeatureOptions};
use crate::Matrix;
use crate::graph::{Communicator, GraphBatch, Targets};
use crate::readout::TargetScale;
use crate::run::{Neighbours, SplitConfig};

/// The file that makes a folder one of parts.
pub const PARTS: &str = "parts.json";

/// Whether a folder has a graph in parts.
pub fn is_in_parts(folder: &Path) -> bool {
    folder.join(PARTS).is_file()
}

/// Whether a file is one of such a folder.
pub(super) fn is_file(name: &str) -> bool {
    let arrays = [STARTS, NEIGHBOURS, FEATURES, FEATURE_STARTS, FEATURE_COLUMNS, FEATURE_VALUES];
    [PARTS, Y, SPLIT, ORIGINAL, NAMES].contains(&name) || arrays.contains(&name)
}

const STARTS: &str = "neighbour_starts.npy";
const NEIGHBOURS: &str = "neighbours.npy";
const FEATURES: &str = "features.npy";
const FEATURE_STARTS: &str = "feature_starts.npy";
const FEATURE_COLUMNS: &str = "feature_columns.npy";
const FEATURE_VALUES: &str = "feature_values.npy";
const Y: &str = "y.npy";
const SPLIT: &str = "split.npy";
const ORIGINAL: &str = "original.npy";
const NAMES: &str = "names.txt";

/// Nodes whose rows are in the memory of every process while all of them are written.
const TOGETHER: usize = 1 << 16;

const FORMAT: u32 = 1;

/// What is known of a graph in parts, whichever of them a process has: `parts.json`.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct PartsInfo {
    /// The version of the format.
    pub(crate) format: u32,
    /// The name of the data set.
    pub name: String,
    /// The first node of every part, and the number of nodes.
    pub part_starts: Vec<usize>,
    /// How many neighbours the nodes of every part have.
    pub part_neighbours: Vec<usize>,
    /// The largest number of neighbours of a node.
    pub largest_degree: usize,
    /// How features are stored.
    pub(crate) form: FeatureForm,
    /// What the features were made from, and how.
    pub(crate) encoding: Encoding,
    /// The settings of that.
    pub features: FeatureOptions,
    /// The settings of the split.
    pub split: SplitConfig,
    /// How many nodes are in the training, validation and test split.
    pub split_sizes: [usize; 3],
    /// What is predicted.
    pub(crate) targets: TargetForm,
    /// The unit of real targets of the training split.
    pub(crate) target_scale: Option<TargetScale>,
    /// Whether neighbours are alike as far as training targets tell: defaults follow from it.
    pub(crate) neighbours: Neighbours,
    /// Whether nodes have names.
    pub(crate) names: bool,
    /// The SHA-256 of the arrays of every part: of all but the split, and of the split.
    pub(crate) part_fingerprints: Vec<[String; 2]>,
    /// The SHA-256 of all of these but the splits.
    pub fingerprint: String,
    /// The SHA-256 of the splits.
    pub split_fingerprint: String,
}

/// How features are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum FeatureForm {
    /// A row of numbers per node.
    Dense {
        /// How many.
        width: usize,
    },
    /// The column that is 1 per node.
    OneHot {
        /// How many columns there are.
        width: usize,
    },
    /// The columns that are not 0.
    Sparse {
        /// How many columns there are.
        width: usize,
    },
}

/// What is predicted of nodes.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum TargetForm {
    /// Nothing is known.
    None,
    /// A class.
    Classes {
        /// The name of the column.
        name: String,
        /// The names of the classes.
        classes: Vec<String>,
    },
    /// Real values.
    Values {
        /// Their names.
        names: Vec<String>,
    },
}

impl PartsInfo {
    /// Number of nodes.
    pub fn nodes(&self) -> usize {
        self.part_starts.last().copied().unwrap_or(0)
    }

    /// Number of parts.
    pub fn parts(&self) -> usize {
        self.part_neighbours.len()
    }

    /// Nodes and neighbours of all parts.
    pub(crate) fn work(&self) -> usize {
        self.nodes() + self.part_neighbours.iter().sum::<usize>()
    }

    /// The first part of each of `ranks` processes, and the number of parts: so that all have about as much to do, and each
    /// has at least one part.
    pub(crate) fn rank_starts(&self, ranks: usize) -> Vec<usize> {
        let ends = self.part_starts[1..].iter().zip(&self.part_neighbours).scan(
            0,
            |neighbours, (end, own)| {
                *neighbours += own;
                Some(end + *neighbours)
            },
        );
        // A part belongs where its middle lies.
        let middles = ends.scan(0, |before, end| Some(std::mem::replace(before, end) + end));
        let middles: Vec<usize> = middles.collect();
        let (total, parts) = (self.work(), self.parts());
        let mut starts = vec![0];
        for rank in 1..ranks {
            let wanted = middles.partition_point(|&twice| twice < 2 * (total / ranks * rank));
            let least = starts[rank - 1] + 1;
            starts.push(wanted.clamp(least, (parts + rank).saturating_sub(ranks).max(least)));
        }
        starts.push(parts);
        starts
    }
}

/// What a process has of a graph in parts.
#[derive(Clone)]
pub struct GraphInParts {
    pub(super) folder: PathBuf,
    pub(super) info: PartsInfo,
    pub(super) batch: GraphBatch<f32>,
    /// Which node of the data set every own node is.
    pub(super) original: Arc<Mapped<u32>>,
    pub(super) communicator: Arc<dyn Communicator>,
}

impl fmt::Debug for GraphInParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in parts", self.folder.display())
    }
}

/// Graphs in parts are equal if they are the same files.
impl PartialEq for GraphInParts {
    fn eq(&self, other: &Self) -> bool {
        self.info == other.info && self.batch == other.batch
    }
}

impl GraphInParts {
    /// What is known of the whole graph.
    pub fn info(&self) -> &PartsInfo {
        &self.info
    }

    /// The nodes that this process owns, with their features and targets.
    pub fn batch(&self) -> &GraphBatch<f32> {
        &self.batch
    }

    /// The processes that share it.
    pub fn communicator(&self) -> &Arc<dyn Communicator> {
        &self.communicator
    }

    /// Which node of the data set every own node is.
    pub fn original(&self) -> &[u32] {
        self.original.as_slice()
    }

    /// Targets and outputs of some own nodes, followed by those of the other processes; all of them call it together.
    pub fn of_all(
        &self,
        targets: &Targets<f32>,
        outputs: &Matrix<f32>,
    ) -> (Targets<f32>, Matrix<f32>) {
        match self.batch.across() {
            None => (targets.clone(), outputs.clone()),
            Some(share) => (targets.concatenated(share), share.concatenate_rows(outputs)),
        }
    }

    /// Calls `each` with the rows of all nodes in the order of the data set, from those of own nodes. All processes call it together,
    /// and see all rows, some thousands at a time.
    pub fn in_original_order(&self, own: &Matrix<f32>, each: &mut dyn FnMut(usize, &[f32])) {
        let Some(share) = self.batch.across() else { return };
        let mut order: Vec<(u32, usize)> = self.original().iter().copied().zip(0..).collect();
        order.sort_unstable();
        let (all, mut done) = (share.whole_nodes(), 0);
        for start in (0..all).step_by(TOGETHER) {
            let end = (start + TOGETHER).min(all);
            let count = order[done..].partition_point(|(node, _)| (*node as usize) < end);
            let some = &order[done..done + count];
            done += count;
            let numbers: Vec<f64> = some.iter().map(|(node, _)| f64::from(*node)).collect();
            let rows = own.select(some.iter().map(|(_, row)| *row));
            let (numbers, rows) = (share.concatenate(&numbers), share.concatenate_rows(&rows));
            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "they were integers"
            )]
            let mut places: Vec<(usize, usize)> =
                numbers.iter().map(|&node| node as usize).zip(0..).collect();
            places.sort_unstable();
            places.iter().for_each(|&(node, row)| each(node, rows.row(row)));
        }
    }
}
