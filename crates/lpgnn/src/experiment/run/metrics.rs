use crate::train::EpochReport;

/// A line of `metrics.jsonl`.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct EpochMetrics {
    /// What the epoch was like.
    #[serde(flatten)]
    pub report: EpochReport,
    /// How long it took, with its evaluation if there was one.
    #[serde(deserialize_with = "crate::nan::number")]
    pub seconds: f64,
}
