use crate::train::EpochReport;

/// A line of `metrics.jsonl`.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct EpochMetrics {
    /// The metrics of the epoch.
    #[serde(flatten)]
    pub report: EpochReport,
    /// Seconds it took, including its evaluation if there was one.
    #[serde(with = "crate::nan::number")]
    pub seconds: f64,
}
