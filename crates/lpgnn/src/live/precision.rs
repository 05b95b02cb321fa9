//! How precisely states and messages are kept.
//!
//! A stack multiplies what rounding does in its lower layers by what the upper ones do to their features. So all layers but the
//! last keep every number as the sum of two in single precision, `x ≈ x₁ + x₂`, in rows that have all `x₁` first.

use super::bound::UP;
use super::features::widen;
use crate::transition::SINGLE;

/// Of the rows of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Precision {
    Single,
    /// `|x − x₁ − x₂| ≤ 2⁻⁴⁸ |x|`
    SumOfTwo,
}

impl Precision {
    /// How many numbers of a row stand for one.
    pub(super) fn parts(self) -> usize {
        match self {
            Self::Single => 1,
            Self::SumOfTwo => 2,
        }
    }

    /// What a number is wrong by, relative to its size.
    pub(super) fn unit(self) -> f64 {
        match self {
            Self::Single => SINGLE,
            Self::SumOfTwo => SINGLE * SINGLE,
        }
    }

    /// `x` as it is kept.
    #[inline]
    pub(super) fn round(self, x: f64) -> f64 {
        let (first, second) = split(x);
        match self {
            Self::Single => f64::from(first),
            Self::SumOfTwo => f64::from(first) + f64::from(second),
        }
    }

    /// Writes a row, in as many numbers as there is room for.
    #[inline]
    pub(super) fn write(from: &[f64], row: &mut [f32]) {
        let (first, second) = row.split_at_mut(from.len());
        first.iter_mut().zip(from).for_each(|(to, &x)| *to = split(x).0);
        second.iter_mut().zip(from).for_each(|(to, &x)| *to = split(x).1);
    }

    /// Reads a row, of as many numbers as there are.
    #[inline]
    pub(super) fn read(row: &[f32], to: &mut [f64]) {
        let (first, second) = row.split_at(to.len());
        widen(first, to);
        to.iter_mut().zip(second).for_each(|(to, &x)| *to += f64::from(x));
    }

    /// The entries of a row.
    #[inline]
    pub(super) fn entries(self, row: &[f32]) -> impl Iterator<Item = f64> + '_ {
        let (first, second) = row.split_at(row.len() / self.parts());
        let second = second.iter().copied().chain(std::iter::repeat(0.0));
        first.iter().zip(second).map(|(&x, y)| f64::from(x) + f64::from(y))
    }

    /// `‖x‖₂`, rounded up.
    #[inline]
    pub(super) fn size(self, row: &[f32]) -> f64 {
        let squares = match self {
            Self::Single => row.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>(),
            Self::SumOfTwo => self.entries(row).map(|x| x * x).sum(),
        };
        squares.sqrt() * UP
    }
}

/// `x₁` and `x₂`
#[inline]
#[allow(clippy::cast_possible_truncation, reason = "that is what is wanted")]
fn split(x: f64) -> (f32, f32) {
    let first = x as f32;
    (first, (x - f64::from(first)) as f32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::uniform;

    #[test]
    fn a_sum_of_two_is_as_near_as_it_says() {
        let mut draw = uniform(7);
        for _ in 0..10_000 {
            let x = (draw() - 0.5) * 2.0_f64.powf(40.0 * draw() - 20.0);
            for precision in [Precision::Single, Precision::SumOfTwo] {
                let mut row = vec![0.0; precision.parts()];
                Precision::write(&[x], &mut row);
                let mut back = [0.0];
                Precision::read(&row, &mut back);
                assert!((back[0] - x).abs() <= precision.unit() * x.abs(), "{x:e}: {row:?}");
                assert_eq!(back[0].to_bits(), precision.round(x).to_bits());
                assert_eq!(precision.entries(&row).collect::<Vec<_>>(), back);
            }
        }
    }
}
