mod dataset;
mod encoding;
mod features;
mod split;
mod statistics;

/// Tasks made from a seed.
pub mod generate;

pub use dataset::{Dataset, DatasetParts, TargetColumn};
pub use encoding::{Encoding, LabelOptions, LabelSource};
pub use features::{Categories, Features};
pub use split::{Level, Ratio, Split};
pub use statistics::{
    CategoryCounts, ClassCount, FeatureCounts, Oddities, SplitCounts, Spread, Statistics,
    TargetCounts,
};
