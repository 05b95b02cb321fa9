use std::fmt;
use std::str::FromStr;

use crate::Error;

/// An evaluation protocol. Results of different protocols cannot be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// The paper's (P1): the curves of the held-out folds are averaged, and the epoch with the best
    /// mean is reported. Optimistic: the epoch is selected on the reported folds.
    BestMeanEpoch,
    /// Unbiased (P4): model and epoch are selected on an inner split of the training folds, and the
    /// held-out fold is evaluated once.
    Nested,
    /// One split into training, validation and test data: the epoch is selected on validation data,
    /// and the mean is over random seeds.
    Split,
}

impl Protocol {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::BestMeanEpoch, Self::Nested, Self::Split];
    /// Those with folds.
    pub const OF_FOLDS: [Self; 2] = [Self::BestMeanEpoch, Self::Nested];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BestMeanEpoch => "best-mean-epoch",
            Self::Nested => "nested",
            Self::Split => "split",
        }
    }

    /// What it does, in a few words.
    pub fn describe(self) -> &'static str {
        match self {
            Self::BestMeanEpoch => {
                "P1: one epoch for all folds, selected by their mean; optimistic"
            }
            Self::Nested => {
                "P4: epoch selected on an inner split, outer fold evaluated once; unbiased"
            }
            Self::Split => {
                "one split, epoch selected on validation data, mean over seeds; unbiased"
            }
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Protocol {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::ALL.into_iter().find(|protocol| protocol.as_str() == text).ok_or_else(|| {
            Error::Option {
                option: "protocol",
                value: text.to_owned(),
                expected: format!("one of {} is expected", Self::ALL.map(Self::as_str).join(", ")),
            }
        })
    }
}

/// A mean over folds and its standard deviation (of the population, as in the paper).
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct MeanAndStd {
    /// The mean.
    #[serde(with = "crate::nan::number")]
    pub mean: f64,
    /// The standard deviation.
    #[serde(with = "crate::nan::number")]
    pub std: f64,
}

impl MeanAndStd {
    /// Mean and standard deviation of these values; none if there are none.
    ///
    /// ```
    /// use lpgnn::evaluate::MeanAndStd;
    ///
    /// let folds = MeanAndStd::of(&[1.0, 3.0]).unwrap();
    /// assert_eq!((folds.mean, folds.std), (2.0, 1.0));
    /// ```
    pub fn of(values: &[f64]) -> Option<Self> {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
        (!values.is_empty()).then(|| Self { mean, std: variance.sqrt() })
    }
}

/// The index with the best mean over curves of equal length, the first of equals, and the values of
/// all curves there.
///
/// A curve that ended early counts with its last value from there on.
///
/// ```
/// use lpgnn::evaluate::best_mean_epoch;
///
/// let curves = [vec![0.5, 0.9, 0.7], vec![0.6, 0.7, 0.8]];
/// assert_eq!(best_mean_epoch(&curves), Some((1, vec![0.9, 0.7])));
/// ```
pub fn best_mean_epoch(curves: &[Vec<f64>]) -> Option<(usize, Vec<f64>)> {
    let length = curves.iter().map(Vec::len).max()?;
    let at = |place: usize| -> Option<Vec<f64>> {
        curves.iter().map(|curve| curve.get(place).or(curve.last()).copied()).collect()
    };
    let mut best: Option<(usize, Vec<f64>, f64)> = None;
    for place in 0..length {
        let values = at(place)?;
        let sum = values.iter().sum();
        if best.as_ref().is_none_or(|(.., most)| sum > *most) {
            best = Some((place, values, sum));
        }
    }
    best.map(|(place, values, _)| (place, values))
}
