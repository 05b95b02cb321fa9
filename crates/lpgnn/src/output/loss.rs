use crate::graph::Targets;
use crate::{Error, Matrix, Scalar};

/// The supervised nodes or graphs `S` with their targets, and how much each of them counts.
#[derive(Clone, Debug)]
pub struct Supervision<S = f32> {
    targets: Targets<S>,
    /// 0 for those that are not supervised.
    counts: Vec<S>,
}

impl<S: Scalar> Supervision<S> {
    /// All that have a target, each counting once.
    pub fn all(targets: Targets<S>) -> Self {
        let counts = (0..targets.rows())
            .map(|row| if targets.is_known(row) { S::ONE } else { S::ZERO })
            .collect();
        Self { targets, counts }
    }

    /// Those of `rows` that have a target, each counting once.
    ///
    /// # Errors
    ///
    /// [`Error::RowCount`] when a row does not exist.
    pub fn of(targets: Targets<S>, rows: &[usize]) -> Result<Self, Error> {
        let mut counts = vec![S::ZERO; targets.rows()];
        for &row in rows {
            let expected = targets.rows();
            let count = counts.get_mut(row).ok_or(Error::RowCount {
                what: "the list of targets",
                expected,
                found: row + 1,
            })?;
            if targets.is_known(row) {
                *count = S::ONE;
            }
        }
        Ok(Self { targets, counts })
    }

    /// The same with every class counting as `weights` says.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`] when there is not one weight per class, [`Error::Option`] when one is
    /// negative or not a number.
    pub fn with_class_weights(mut self, weights: &[f64]) -> Result<Self, Error> {
        if let Some(weight) = weights.iter().find(|w| !(**w >= 0.0 && w.is_finite())) {
            return Err(Error::Option {
                option: "a class weight",
                value: weight.to_string(),
                expected: "a number that is not negative is expected".into(),
            });
        }
        match &self.targets {
            Targets::Classes { classes, class } if *classes == weights.len() => {
                for (count, &class) in self.counts.iter_mut().zip(class) {
                    if *count > S::ZERO {
                        *count = S::of(weights[class as usize]);
                    }
                }
                Ok(self)
            }
            targets => Err(Error::Mismatch(format!(
                "{} class weights cannot weigh {} classes",
                weights.len(),
                targets.width()
            ))),
        }
    }

    /// The targets, of all rows.
    pub fn targets(&self) -> &Targets<S> {
        &self.targets
    }

    /// How much a row counts; 0 when it is not supervised.
    pub fn counts(&self) -> &[S] {
        &self.counts
    }

    /// `Σ` of all counts.
    pub fn total(&self) -> f64 {
        self.counts.iter().map(|count| count.f64()).sum()
    }

    /// How many supervised rows have a prediction whose largest component is that of their class,
    /// and how many supervised rows there are.
    pub fn correct(&self, predictions: &Matrix<S>) -> (usize, usize) {
        let Targets::Classes { class, .. } = &self.targets else { return (0, 0) };
        let supervised = (0..class.len()).filter(|&row| self.counts[row] > S::ZERO);
        let (mut correct, mut all) = (0, 0);
        for row in supervised {
            all += 1;
            let (before, from) = predictions.row(row).split_at(class[row] as usize);
            // The first of the largest; what is not a number is no prediction.
            let right = before.iter().all(|&y| y < from[0]) && from.iter().all(|&y| y <= from[0]);
            correct += usize::from(right);
        }
        (correct, all)
    }

    /// The mean loss of the supervised rows.
    pub fn mean_loss(&self, predictions: &Matrix<S>) -> f64 {
        let width = predictions.cols();
        let total = self.total();
        if width == 0 || total <= 0.0 {
            return 0.0;
        }
        let mut d = vec![S::ZERO; predictions.as_slice().len()];
        self.loss(0, width, width, predictions.as_slice(), S::ONE, &mut d) / total
    }

    /// The supervision of some rows, in the given order.
    #[must_use]
    pub fn select(&self, rows: &[usize]) -> Self {
        Self {
            targets: self.targets.select(rows.iter().copied()),
            counts: rows.iter().map(|&row| self.counts[row]).collect(),
        }
    }

    /// The loss of some rows from `first` on, and its derivative in the predictions; both times
    /// `factor`.
    ///
    /// Classes: `−ln softmax(y)[class]`. Real values: `½ ‖y − target‖²`.
    pub(super) fn loss(
        &self,
        first: usize,
        width: usize,
        stride: usize,
        predictions: &[S],
        factor: S,
        d: &mut [S],
    ) -> f64 {
        let mut total = 0.0;
        d.fill(S::ZERO);
        let rows = predictions.chunks_exact(stride).zip(d.chunks_exact_mut(stride));
        for (row, (y, d)) in (first..).zip(rows) {
            let count = self.counts[row];
            if count <= S::ZERO {
                continue;
            }
            let (y, d) = (&y[..width], &mut d[..width]);
            let value = match &self.targets {
                Targets::Classes { class, .. } => cross_entropy(y, class[row] as usize, d),
                Targets::Values(values) => squared_error(y, values.row(row), d),
                Targets::None(_) => S::ZERO,
            };
            d.iter_mut().for_each(|d| *d *= factor * count);
            total += (factor * count * value).f64();
        }
        total
    }
}

/// `−ln softmax(y)[class]`, and its derivative in `y`.
fn cross_entropy<S: Scalar>(y: &[S], class: usize, d: &mut [S]) -> S {
    // Shifted by the largest, so that exp cannot overflow.
    let shift = y.iter().fold(y[0], |largest, &y| y.max(largest));
    let mut total = S::ZERO;
    for (d, &y) in d.iter_mut().zip(y) {
        *d = (y - shift).exp();
        total += *d;
    }
    let inverse = S::ONE / total;
    d.iter_mut().for_each(|d| *d *= inverse);
    d[class] -= S::ONE;
    total.ln() - (y[class] - shift)
}

/// `½ ‖y − target‖²`, and its derivative in `y`.
fn squared_error<S: Scalar>(y: &[S], target: &[S], d: &mut [S]) -> S {
    let mut sum = S::ZERO;
    for ((d, &y), &target) in d.iter_mut().zip(y).zip(target) {
        *d = y - target;
        sum += *d * *d;
    }
    S::of(0.5) * sum
}

/// The place of the largest component, the first of equals; NaN is never the largest.
pub(crate) fn largest<S: Scalar>(y: &[S]) -> usize {
    let mut best = 0;
    for (i, &value) in y.iter().enumerate() {
        // The second half lets a number replace a NaN in the first place.
        if value > y[best] || (y[best].f64().is_nan() && !value.f64().is_nan()) {
            best = i;
        }
    }
    best
}
