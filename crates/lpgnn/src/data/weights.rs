use crate::Error;
use crate::graph::Level;

/// How much every node or every graph counts in the training loss: 0 leaves it out, 2 counts it twice.
///
/// Metrics do not depend on them.
#[derive(Clone, Debug, PartialEq)]
pub struct SampleWeights {
    level: Level,
    weights: Vec<f32>,
}

impl SampleWeights {
    /// One weight per node or per graph.
    ///
    /// # Errors
    ///
    /// [`Error::Option`] when one is negative or not finite.
    pub fn new(level: Level, weights: Vec<f32>) -> Result<Self, Error> {
        match weights.iter().find(|weight| !(**weight >= 0.0 && weight.is_finite())) {
            None => Ok(Self { level, weights }),
            Some(weight) => Err(Error::Option {
                option: "a sample weight",
                value: weight.to_string(),
                expected: "a non-negative number is expected".into(),
            }),
        }
    }

    /// Whether nodes or graphs have them.
    pub fn level(&self) -> Level {
        self.level
    }

    /// The weight of every node or graph.
    pub fn as_slice(&self) -> &[f32] {
        &self.weights
    }

    /// Those of some nodes or graphs, in this order.
    #[must_use]
    pub fn select(&self, rows: &[usize]) -> Self {
        let weights = rows.iter().map(|&row| self.weights[row]).collect();
        Self { level: self.level, weights }
    }

    /// These, followed by others of the same level.
    pub(super) fn join(&self, other: &Self) -> Self {
        Self { level: self.level, weights: [&self.weights[..], &other.weights].concat() }
    }
}
