mod cache;
mod column_names;
mod dataset;
mod encoding;
mod features;
#[cfg(feature = "fetch")]
mod fetch;
mod folds;
mod known;
mod names;
mod order;
mod partition;
mod read;
mod resolve;
mod split;
mod statistics;
mod structure;
mod weights;
mod write;

/// One large graph in parts, for several processes.
pub mod parts;

/// Generated data sets.
pub mod generate;

pub use crate::graph::Level;
pub use cache::{CACHE_VARIABLE, Cache, CachedSet};
pub use column_names::ColumnNames;
pub use dataset::{Dataset, DatasetParts, TargetColumn};
pub use encoding::{Encoding, FeatureOptions, FeatureSource, UnseenCategories};
pub use features::{Categories, FeatureColumns};
#[cfg(feature = "fetch")]
pub use fetch::{FetchEvent, FetchOptions, Fetched, TU_COLLECTION, fetch};
pub use known::{Builtin, PUBLISHED, PublishedSet};
#[cfg(feature = "mpi")]
pub use partition::partition;
pub use partition::{Partition, blocks_of, cut};
pub use read::{Format, ReadOptions, read};
pub use resolve::{Source, resolve};
pub use split::{Ratio, Split};
pub use statistics::{
    CategoryCounts, ClassCount, FeatureCounts, SplitCounts, Spread, Statistics, TargetCounts,
    Warnings,
};
pub use structure::{Shape, StructureOptions};
pub use weights::SampleWeights;
pub use write::{Overwrite, WriteFormat, WriteOptions, write};
