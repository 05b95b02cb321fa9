/// How far real values are from their targets.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct ValueErrors {
    /// How many targets are known.
    #[serde(default)]
    pub count: usize,
    /// The mean of `(y − target)²`.
    #[serde(deserialize_with = "crate::nan::number")]
    pub mean_squared: f64,
    /// The mean of `abs(y − target)`.
    #[serde(deserialize_with = "crate::nan::number")]
    pub mean_absolute: f64,
    /// `1 − Σ (y − target)² / Σ (target − mean)²`; none when the targets do not vary.
    pub r_squared: Option<f64>,
}

impl ValueErrors {
    /// The errors of pairs of a prediction and its target.
    ///
    /// ```
    /// use lpgnn::evaluate::ValueErrors;
    ///
    /// let errors = ValueErrors::of([(1.0, 0.0), (2.0, 4.0)].into_iter());
    /// assert_eq!((errors.mean_squared, errors.mean_absolute), (2.5, 1.5));
    /// assert_eq!(errors.r_squared, Some(1.0 - 5.0 / 8.0));
    /// ```
    pub fn of(pairs: impl Iterator<Item = (f64, f64)>) -> Self {
        let pairs: Vec<(f64, f64)> = pairs.collect();
        let count = pairs.len().max(1) as f64;
        let mean = pairs.iter().map(|(_, target)| target).sum::<f64>() / count;
        let squared: f64 = pairs.iter().map(|(y, target)| (y - target).powi(2)).sum();
        let absolute: f64 = pairs.iter().map(|(y, target)| (y - target).abs()).sum();
        let varies: f64 = pairs.iter().map(|(_, target)| (target - mean).powi(2)).sum();
        Self {
            count: pairs.len(),
            mean_squared: squared / count,
            mean_absolute: absolute / count,
            r_squared: (varies > 0.0).then(|| 1.0 - squared / varies),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constant_targets_have_no_variance_to_explain() {
        assert_eq!(ValueErrors::of([(1.0, 2.0), (3.0, 2.0)].into_iter()).r_squared, None);
    }
}
