mod dataset;
mod encoding;
mod features;
mod split;

pub use dataset::{Dataset, DatasetParts, TargetColumn};
pub use encoding::{Encoding, LabelOptions, LabelSource};
pub use features::{Categories, Features};
pub use split::{Level, Split};
