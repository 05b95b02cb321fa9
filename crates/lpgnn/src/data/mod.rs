mod dataset;
mod encoding;
mod features;
mod read;
mod split;

pub use dataset::{Dataset, DatasetParts, TargetColumn};
pub use encoding::{Encoding, LabelOptions, LabelSource};
pub use features::{Categories, Features};
pub use read::{Format, ReadOptions, read};
pub use split::{Level, Split};
