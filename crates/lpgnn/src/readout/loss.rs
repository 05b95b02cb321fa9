use crate::graph::{Share, Targets};
use crate::numeric::{
    Arithmetic, Kernel, LANES, Lanes, Numbers, dispatch, each, padded, widen_rows,
};
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

    /// The same with every row counting as often as `weights` says: 0 leaves it out.
    ///
    /// # Errors
    ///
    /// [`Error::RowCount`] when there is not one weight per row.
    pub fn with_weights(mut self, weights: &[f32]) -> Result<Self, Error> {
        let (expected, found) = (self.counts.len(), weights.len());
        if found != expected {
            return Err(Error::RowCount { what: "the sample weights", expected, found });
        }
        for (count, &weight) in self.counts.iter_mut().zip(weights) {
            *count *= S::of(f64::from(weight));
        }
        Ok(self)
    }

    /// The same with every class counting as `weights` says.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`] when there is not one weight per class, [`Error::Option`] when one is
    /// negative or NaN.
    pub fn with_class_weights(mut self, weights: &[f64]) -> Result<Self, Error> {
        if let Some(weight) = weights.iter().find(|w| !(**w >= 0.0 && w.is_finite())) {
            return Err(Error::Option {
                option: "a class weight",
                value: weight.to_string(),
                expected: "a non-negative number is expected".into(),
            });
        }
        match &self.targets {
            Targets::Classes { classes, class } if *classes == weights.len() => {
                for (count, &class) in self.counts.iter_mut().zip(class) {
                    if *count > S::ZERO {
                        *count *= S::of(weights[class as usize]);
                    }
                }
                Ok(self)
            }
            targets => Err(Error::Mismatch(format!(
                "there are {} class weights, but {} classes",
                weights.len(),
                targets.width()
            ))),
        }
    }

    /// The targets, of all rows.
    pub fn targets(&self) -> &Targets<S> {
        &self.targets
    }

    /// The same rows with other targets.
    pub(super) fn with_targets(&self, targets: Targets<S>) -> Self {
        Self { targets, counts: self.counts.clone() }
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
        let (mut correct, mut all) = (0, 0);
        let rows = predictions.as_slice().chunks_exact(predictions.cols().max(1));
        for ((y, &class), &count) in rows.zip(class).zip(&self.counts) {
            if count <= S::ZERO {
                continue;
            }
            all += 1;
            let (before, from) = y.split_at(class as usize);
            // The first of the largest; NaN is not a prediction. All are counted,
            // since NaN may occur anywhere.
            let below = before.iter().filter(|&&y| y < from[0]).count();
            let not_above = from.iter().filter(|&&y| y <= from[0]).count();
            let right = below + not_above == y.len();
            correct += usize::from(right);
        }
        (correct, all)
    }

    /// The mean loss of the supervised rows.
    pub fn mean_loss(&self, predictions: &Matrix<S>) -> f64 {
        let total = self.total();
        if total > 0.0 { self.summed_loss(predictions) / total } else { 0.0 }
    }

    /// The loss of the supervised rows, each as often as it counts.
    pub(crate) fn summed_loss(&self, predictions: &Matrix<S>) -> f64 {
        let width = predictions.cols();
        if width == 0 {
            return 0.0;
        }
        let stride = padded(width);
        let mut rows = vec![S::ZERO; predictions.rows() * stride];
        widen_rows(predictions.as_slice(), width, &mut rows, stride);
        let mut d = rows.clone();
        self.loss(0, width, stride, &rows, S::ONE, &mut d)
    }

    /// That of all ranks which share a graph in parts, one after the other.
    pub(crate) fn concatenated(&self, share: &Share) -> Self {
        Self { targets: self.targets.concatenated(share), counts: share.concatenate(&self.counts) }
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
    /// `factor`. Rows are `width` numbers and padding, `stride` in all.
    ///
    /// Classes: `−ln softmax(y)[class]`. Real values: `½ ‖y − target‖²` over those that are known.
    pub(super) fn loss(
        &self,
        first: usize,
        width: usize,
        stride: usize,
        predictions: &[S],
        factor: S,
        d: &mut [S],
    ) -> f64 {
        let counts = &self.counts[first..];
        match &self.targets {
            Targets::Classes { class, .. } => dispatch(CrossEntropy {
                predictions,
                class: &class[first..],
                counts,
                width,
                stride,
                factor,
                d,
            }),
            Targets::Values(values) => {
                let rows = predictions.chunks_exact(stride).zip(d.chunks_exact_mut(stride));
                let mut total = 0.0;
                for (row, ((y, d), &count)) in (first..).zip(rows.zip(counts)) {
                    d.fill(S::ZERO);
                    if count > S::ZERO {
                        let d = &mut d[..width];
                        let value = squared_error(&y[..width], values.row(row), d);
                        d.iter_mut().for_each(|d| *d *= factor * count);
                        total += (factor * count * value).f64();
                    }
                }
                total
            }
            Targets::None(_) => {
                d.fill(S::ZERO);
                0.0
            }
        }
    }
}

/// What predictions are compared with, and how much that counts.
#[derive(Clone, Copy, Debug)]
pub struct Loss<'a, S = f32> {
    /// The targets.
    pub supervision: &'a Supervision<S>,
    /// What the loss is multiplied with.
    pub factor: S,
}

impl<S: Scalar> Loss<'_, S> {
    /// `w Σ_S loss(f_r, y)`, and its derivative in the predictions.
    pub fn evaluate(&self, predictions: &Matrix<S>, d_predictions: &mut Matrix<S>) -> f64 {
        let width = predictions.cols();
        if width == 0 {
            return 0.0;
        }
        let (y, d) = (predictions.as_slice(), d_predictions.as_mut_slice());
        self.supervision.loss(0, width, width, y, self.factor, d)
    }
}

/// `−ln softmax(y)[class]` of some rows, and its derivative in `y`.
struct CrossEntropy<'a, S> {
    predictions: &'a [S],
    class: &'a [u32],
    /// How much a row counts; those that do not have no class either.
    counts: &'a [S],
    width: usize,
    stride: usize,
    factor: S,
    d: &'a mut [S],
}

impl<S: Scalar> Kernel for CrossEntropy<'_, S> {
    type Output = f64;

    #[inline(always)]
    fn run<A: Arithmetic>(self) -> f64 {
        let Self { predictions, width, stride, .. } = self;
        let mut loss = 0.0;
        self.d.fill(S::ZERO);
        let eights = predictions.chunks(LANES * stride).zip(self.d.chunks_mut(LANES * stride));
        for (first, (y, d)) in (0..).step_by(LANES).zip(eights) {
            // Eight rows together, class by class; what is missing of the last is its last again.
            let rows = y.len() / stride;
            let mut row = [0; LANES];
            for i in 0..LANES {
                row[i] = i.min(rows - 1) * stride;
            }
            let mut largest: A::Lanes<S> = of_class(y, &row, 0);
            for j in 1..width {
                largest = largest.max(of_class(y, &row, j));
            }
            // Shifted by the largest, so that exp cannot overflow.
            let mut sum = A::Lanes::<S>::splat(S::ZERO);
            for j in 0..width {
                let of_class: A::Lanes<S> = of_class(y, &row, j);
                let e = S::exp_lanes(of_class.sub(largest));
                sum = sum.add(e);
                for (e, row) in each(e).into_iter().zip(row) {
                    d[row + j] = e;
                }
            }
            let (sums, shifts) = (each(sum), each(largest));
            for i in 0..rows {
                let (class, count) = (self.class[first + i] as usize, self.counts[first + i]);
                let (y, d) = (&y[row[i]..][..width], &mut d[row[i]..][..width]);
                if count <= S::ZERO {
                    d.fill(S::ZERO);
                    continue;
                }
                let weight = self.factor * count;
                let scale = weight / sums[i];
                d.iter_mut().for_each(|d| *d *= scale);
                d[class] -= weight;
                loss += (weight * (sums[i].ln() - (y[class] - shifts[i]))).f64();
            }
        }
        loss
    }
}

/// Component `j` of eight rows.
#[inline(always)]
fn of_class<S: Scalar, L: Lanes<S>>(y: &[S], rows: &[usize; LANES], j: usize) -> L {
    let mut all = [S::ZERO; LANES];
    for i in 0..LANES {
        all[i] = y[rows[i] + j];
    }
    L::load(&all)
}

/// `½ ‖y − target‖²` over the targets that are known, and its derivative in `y`.
fn squared_error<S: Scalar>(y: &[S], target: &[S], d: &mut [S]) -> S {
    let mut sum = S::ZERO;
    for ((d, &y), &target) in d.iter_mut().zip(y).zip(target) {
        *d = if target.is_finite() { y - target } else { S::ZERO };
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
