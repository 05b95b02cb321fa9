use std::ops::Range;

use rayon::prelude::*;

use crate::Scalar;
use crate::numeric::{Arithmetic, Kernel, dispatch};
use crate::optim::CHUNK;
use crate::parameters::{InputLayer, others};

/// Coordinates of a first layer, of `f_r` or of `h` above another layer of states, in which its
/// inputs have mean 0 and standard deviation 1.
///
/// With `z = (p − μ) / σ` for what is read, `p`, the layer `Wᵀ p + b` is `Vᵀ z + c`, where
///
/// ```text
/// W = V / σ,   b = c − Wᵀ μ        so that        ∂𝓛/∂V = (∂𝓛/∂W − μ ∂𝓛/∂bᵀ) / σ,   ∂𝓛/∂c = ∂𝓛/∂b
/// ```
///
/// and the same for every `W` of a layer with several, which share `b`. The function stays what it
/// is; only its descent takes place in `V` and `c`. Sums over the nodes of a graph tell above all
/// how many there are, sums over neighbours how many of those: in `W` and `b`, all else is learnt
/// slowly.
#[derive(Clone, Debug)]
pub(crate) struct Coordinates {
    layer: InputLayer,
    /// `μ` and `1/σ`, per component that is read.
    statistics: Vec<(f64, f64)>,
}

/// Rows that one thread takes at a time.
const ROWS: usize = 1 << 12;

/// The mean of `f(x, of)` of every column, where `of` has a number per column.
fn column_means<S: Scalar>(
    rows: &[S],
    width: usize,
    f: impl Fn(f64, f64) -> f64 + Copy + Send + Sync,
    of: &[f64],
    count: f64,
) -> Vec<f64> {
    let parts: Vec<Vec<f64>> =
        rows.par_chunks(ROWS * width).map(|rows| dispatch(ColumnSums { rows, f, of })).collect();
    let mut sums = vec![0.0; width];
    for part in parts {
        sums.iter_mut().zip(part).for_each(|(sum, part)| *sum += part);
    }
    sums.into_iter().map(|sum| sum / count).collect()
}

struct ColumnSums<'a, S, F> {
    rows: &'a [S],
    f: F,
    of: &'a [f64],
}

impl<S: Scalar, F: Fn(f64, f64) -> f64> Kernel for ColumnSums<'_, S, F> {
    type Output = Vec<f64>;
    #[inline(always)]
    fn run<A: Arithmetic>(self) -> Vec<f64> {
        let mut sums = vec![0.0; self.of.len()];
        for row in self.rows.chunks_exact(self.of.len()) {
            for i in 0..sums.len() {
                sums[i] += (self.f)(row[i].f64(), self.of[i]);
            }
        }
        sums
    }
}

/// The share of the largest variance that every component is taken to have besides its own.
const FLOOR: f64 = 1e-4;
/// The share of the largest mean square up to which a variance is rounding, or states that are not
/// quite where they converge.
const ROUNDING: f64 = 1e-6;

impl Coordinates {
    /// The coordinates of a layer that reads these rows of `width` components; none where nothing
    /// varies.
    pub(crate) fn of<S: Scalar>(rows: &[S], width: usize, layer: InputLayer) -> Option<Self> {
        let count = rows.len().checked_div(width)?.max(1) as f64;
        let means = column_means(rows, width, |x, _| x, &vec![0.0; width], count);
        let variances = column_means(rows, width, |x, mean| (x - mean) * (x - mean), &means, count);
        let largest = variances.iter().copied().fold(0.0, f64::max);
        let square = means.iter().zip(&variances).map(|(mean, variance)| mean * mean + variance);
        let square = square.fold(0.0, f64::max);
        let varies = largest > ROUNDING * square && largest.is_normal();
        if !varies || means.iter().any(|mean| !mean.is_finite()) {
            return None;
        }
        let inverse = |variance: f64| 1.0 / (variance + FLOOR * largest).sqrt();
        let statistics = means.into_iter().zip(variances.into_iter().map(inverse)).collect();
        Some(Self { layer, statistics })
    }

    /// The rows of the layer's matrices, each with `μ` and `1/σ` of what it multiplies.
    fn rows(&self) -> impl Iterator<Item = (usize, f64, f64)> {
        let units = self.layer.units;
        self.layer.matrices.iter().flat_map(move |&at| {
            let rows = self.statistics.iter().enumerate();
            rows.map(move |(row, &(mean, inverse))| (at + row * units, mean, inverse))
        })
    }

    /// `∂𝓛/∂(W, b)` becomes `∂𝓛/∂(V, c)`.
    fn gradient<S: Scalar>(&self, gradient: &mut [S]) {
        for (row, mean, inverse) in self.rows() {
            for unit in 0..self.layer.units {
                let d_b = gradient[self.layer.bias + unit].f64();
                let d_w = &mut gradient[row + unit];
                *d_w = S::of((d_w.f64() - mean * d_b) * inverse);
            }
        }
    }

    /// A change of `(V, c)` becomes a change of `(W, b)`.
    fn change<S: Scalar>(&self, change: &mut [S]) {
        for (row, mean, inverse) in self.rows() {
            for unit in 0..self.layer.units {
                change[row + unit] *= S::of(inverse);
                let w = change[row + unit].f64();
                let b = &mut change[self.layer.bias + unit];
                *b = S::of(b.f64() - mean * w);
            }
        }
    }

    /// Weights that were drawn for `(V, c)` become weights.
    pub(crate) fn initialize<S: Scalar>(&self, weights: &mut [S]) {
        self.change(weights);
    }

    /// One step of all weights by `descend`, of those of the layers in their coordinates.
    pub(super) fn step<S: Scalar>(
        all: &[Self],
        weights: &mut [S],
        gradient: &mut [S],
        moments: [&mut [S]; 2],
        descend: impl Fn(&mut [S], &[S], [&mut [S]; 2]) + Sync,
    ) {
        all.iter().for_each(|coordinates| coordinates.gradient(gradient));
        let own = Self::ranges(all);
        let before: Vec<Vec<S>> = own.iter().map(|range| weights[range.clone()].to_vec()).collect();
        let mut pieces = pieces(&own, weights, gradient, moments);
        let work = |piece: &mut Piece<'_, S>| piece.step(&descend);
        if pieces.len() <= 2 * own.len() + 1 {
            pieces.iter_mut().for_each(work);
        } else {
            pieces.par_iter_mut().for_each(work);
        }
        for (range, before) in own.iter().zip(&before) {
            weights[range.clone()].iter_mut().zip(before).for_each(|(w, &before)| *w -= before);
        }
        all.iter().for_each(|coordinates| coordinates.change(weights));
        for (range, before) in own.iter().zip(&before) {
            weights[range.clone()].iter_mut().zip(before).for_each(|(w, &before)| *w += before);
        }
    }

    /// Where the weights of these layers are, in order.
    fn ranges(all: &[Self]) -> Vec<Range<usize>> {
        let mut ranges: Vec<Range<usize>> = vec![];
        for Self { layer, statistics } in all {
            let length = statistics.len() * layer.units;
            ranges.extend(layer.matrices.iter().map(|&at| at..at + length));
            ranges.push(layer.bias..layer.bias + layer.units);
        }
        ranges.sort_unstable_by_key(|range| range.start);
        // Those of one layer that reads two things share its bias.
        ranges.dedup();
        ranges
    }
}

/// Weights that descend together, while they are in cache.
struct Piece<'a, S> {
    weights: &'a mut [S],
    gradient: &'a [S],
    moments: [&'a mut [S]; 2],
    /// Whether they belong to a layer with coordinates.
    own: bool,
}

impl<S: Scalar> Piece<'_, S> {
    fn step(&mut self, descend: impl Fn(&mut [S], &[S], [&mut [S]; 2])) {
        let before = if self.own { vec![] } else { self.weights.to_vec() };
        let [first, second] = &mut self.moments;
        descend(self.weights, self.gradient, [first, second]);
        // Rounded as those are that become a change and weights again.
        for (w, before) in self.weights.iter_mut().zip(before) {
            *w = (*w - before) + before;
        }
    }
}

/// All weights, those at `own` apart from the others.
fn pieces<'a, S: Scalar>(
    own: &[Range<usize>],
    mut weights: &'a mut [S],
    mut gradient: &'a [S],
    [mut first, mut second]: [&'a mut [S]; 2],
) -> Vec<Piece<'a, S>> {
    let rest = others(weights.len(), own).map(|range| (range, false));
    let mut spans: Vec<_> = own.iter().map(|range| (range.clone(), true)).chain(rest).collect();
    spans.sort_unstable_by_key(|(range, _)| range.start);
    let mut pieces = vec![];
    for (span, own) in spans {
        let mut left = span.len();
        while left > 0 {
            let length = left.min(CHUNK);
            // There may be no moments.
            let (m, v);
            (m, first) = first.split_at_mut(length.min(first.len()));
            (v, second) = second.split_at_mut(length.min(second.len()));
            let (w, d);
            (w, weights) = weights.split_at_mut(length);
            (d, gradient) = gradient.split_at(length);
            pieces.push(Piece { weights: w, gradient: d, moments: [m, v], own });
            left -= length;
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two components of different size that move together, and a unit reading them.
    const ROWS: [f64; 6] = [10.0, 1.0, 30.0, 3.5, 20.0, 2.0];

    fn layer() -> InputLayer {
        InputLayer { matrices: vec![0], bias: 2, units: 1 }
    }

    fn value(weights: &[f64], row: &[f64]) -> f64 {
        weights[0] * row[0] + weights[1] * row[1] + weights[2]
    }

    #[test]
    fn drawn_weights_read_standardized_components() {
        let coordinates = Coordinates::of(&ROWS, 2, layer()).unwrap();
        let mut weights = [1.0, 0.0, 0.0];
        coordinates.initialize(&mut weights);
        let values: Vec<f64> = ROWS.chunks(2).map(|row| value(&weights, row)).collect();
        let mean = values.iter().sum::<f64>() / 3.0;
        let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 3.0;
        assert!(mean.abs() < 1e-12, "{mean}");
        assert!((variance - 1.0).abs() < 1e-3, "{variance}");
    }

    #[test]
    fn a_step_is_one_of_the_standardized_layer() {
        let coordinates = Coordinates::of(&ROWS, 2, layer()).unwrap();
        let (start, d) = ([0.3, -0.7, 0.1], [5.0, -2.0, 0.4]);
        let rate = 0.01;
        let (mut weights, mut gradient) = (start, d);
        Coordinates::step(
            std::slice::from_ref(&coordinates),
            &mut weights,
            &mut gradient,
            [&mut [], &mut []],
            |w, d, _| {
                w.iter_mut().zip(d).for_each(|(w, d)| *w -= rate * d);
            },
        );
        // The same in V and c, by hand.
        let [(m0, i0), (m1, i1)] = coordinates.statistics[..] else { panic!() };
        let v = [
            start[0] / i0 - rate * (d[0] - m0 * d[2]) * i0,
            start[1] / i1 - rate * (d[1] - m1 * d[2]) * i1,
        ];
        let c = start[2] + start[0] * m0 + start[1] * m1 - rate * d[2];
        for row in ROWS.chunks(2) {
            let expected = v[0] * (row[0] - m0) * i0 + v[1] * (row[1] - m1) * i1 + c;
            assert!((value(&weights, row) - expected).abs() < 1e-12);
        }
    }

    #[test]
    fn nothing_is_standardized_where_nothing_varies() {
        assert!(Coordinates::of(&[1.0, 2.0, 1.0, 2.0], 2, layer()).is_none());
        assert!(Coordinates::of::<f32>(&[], 2, layer()).is_none());
        assert!(Coordinates::of(&[1.0, 2.0, 1.0001, 2.0001], 2, layer()).is_none());
        assert!(Coordinates::of(&[1.0, 2.0, 1.01, 2.0], 2, layer()).is_some());
    }
}
