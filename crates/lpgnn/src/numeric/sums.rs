//! Many numbers to one: sums in double precision, and the largest.
//!
//! Eight are taken side by side, and parts of fixed length one after another, so that nothing
//! depends on the processor or the number of threads.

use rayon::prelude::*;

use super::dispatch::{Arithmetic, Kernel, dispatch};
use super::lanes::{Eights, LANES, Lanes, Numbers, each, total};
use super::scalar::worse;
use crate::Scalar;

/// Numbers that one thread takes at a time.
const PART: usize = 1 << 15;

/// `Σ a b`
pub(crate) fn dot<S: Scalar>(a: &[S], b: &[S]) -> f64 {
    if a.len() <= PART {
        return dispatch(Dot(a, b));
    }
    let parts: Vec<f64> =
        a.par_chunks(PART).zip(b.par_chunks(PART)).map(|(a, b)| dispatch(Dot(a, b))).collect();
    parts.iter().sum()
}

/// `√(Σ x²)`, the Euclidean length.
pub(crate) fn length<S: Scalar>(x: &[S]) -> f64 {
    dot(x, x).sqrt()
}

struct Dot<'a, S>(&'a [S], &'a [S]);

impl<S: Scalar> Kernel for Dot<'_, S> {
    type Output = f64;
    #[inline(always)]
    fn run<A: Arithmetic>(self) -> f64 {
        let ((a, a_rest), (b, b_rest)) = (self.0.as_chunks::<LANES>(), self.1.as_chunks::<LANES>());
        let mut sums = [0.0; LANES];
        for (a, b) in a.iter().zip(b) {
            for i in 0..LANES {
                sums[i] += a[i].f64() * b[i].f64();
            }
        }
        let rest: f64 = a_rest.iter().zip(b_rest).map(|(a, b)| a.f64() * b.f64()).sum();
        sums.iter().sum::<f64>() + rest
    }
}

/// `Σ |x|` and `max |x|`; not a number where a number is not.
pub(crate) fn sizes<S: Scalar>(x: &[S]) -> (f64, S) {
    if x.len() <= PART {
        return dispatch(Sizes(x));
    }
    let parts: Vec<(f64, S)> = x.par_chunks(PART).map(|x| dispatch(Sizes(x))).collect();
    parts.into_iter().fold((0.0, S::ZERO), |(sum, max), (s, m)| (sum + s, worse(max, m)))
}

struct Sizes<'a, S>(&'a [S]);

impl<S: Scalar> Kernel for Sizes<'_, S> {
    type Output = (f64, S);
    #[inline(always)]
    fn run<A: Arithmetic>(self) -> (f64, S) {
        let (x, rest) = self.0.as_chunks::<LANES>();
        let (mut sums, mut largest) = ([0.0; LANES], [S::ZERO; LANES]);
        let mut eight = |x: &[S; LANES]| {
            for i in 0..LANES {
                let size = x[i].abs();
                sums[i] += size.f64();
                largest[i] = if size > largest[i] { size } else { largest[i] };
            }
        };
        x.iter().for_each(&mut eight);
        let mut last = [S::ZERO; LANES];
        last[..rest.len()].copy_from_slice(rest);
        eight(&last);
        let sum: f64 = sums.iter().sum();
        // A maximum forgets what is not a number, a sum does not.
        (sum, if sum.is_nan() { S::of(sum) } else { largest.into_iter().fold(S::ZERO, worse) })
    }
}

/// `max |a − b|`; not a number where a difference is not.
pub(crate) fn largest_difference<S: Scalar>(a: &[S], b: &[S]) -> S {
    if a.len() <= PART {
        return dispatch(Largest(a, b));
    }
    let parts: Vec<S> =
        a.par_chunks(PART).zip(b.par_chunks(PART)).map(|(a, b)| dispatch(Largest(a, b))).collect();
    parts.into_iter().fold(S::ZERO, worse)
}

struct Largest<'a, S>(&'a [S], &'a [S]);

impl<S: Scalar> Kernel for Largest<'_, S> {
    type Output = S;
    #[inline(always)]
    fn run<A: Arithmetic>(self) -> S {
        let ((a, a_rest), (b, b_rest)) = (self.0.as_chunks::<LANES>(), self.1.as_chunks::<LANES>());
        let ((a_fours, a), (b_fours, b)) = (a.as_chunks::<4>(), b.as_chunks::<4>());
        let ((a_eights, a_four), (b_eights, b_four)) = (a_fours.as_chunks(), b_fours.as_chunks());
        // Two times four eights side by side, so that none waits for the one before.
        let mut fours = [Differences::<A::Eights<S, 4>>::none(); 2];
        for ([a, other_a], [b, other_b]) in a_eights.iter().zip(b_eights) {
            fours[0].differ(Eights::load(a), Eights::load(b));
            fours[1].differ(Eights::load(other_a), Eights::load(other_b));
        }
        for (a, b) in a_four.iter().zip(b_four) {
            fours[0].differ(Eights::load(a), Eights::load(b));
        }
        let mut eight = Differences::<A::Lanes<S>>::none();
        for (a, b) in a.iter().zip(b) {
            eight.differ(Lanes::load(a), Lanes::load(b));
        }
        if !a_rest.is_empty() {
            eight.differ(Lanes::load_some(a_rest), Lanes::load_some(b_rest));
        }
        let (mut largest, mut sums) = ([[S::ZERO; LANES]; 4], [[S::ZERO; LANES]; 4]);
        fours[0].largest.max(fours[1].largest).store(&mut largest);
        fours[0].sum.add(fours[1].sum).store(&mut sums);
        // Pair by pair: a graph is small, and waiting for one after the other would take as long as all of the above.
        let load = |eights: &[[S; LANES]; 4]| eights.each_ref().map(|x| A::Lanes::<S>::load(x));
        let ([a, b, c, d], [e, f, g, h]) = (load(&largest), load(&sums));
        let largest = a.max(b).max(c.max(d)).max(eight.largest);
        let sum = total(e.add(f).add(g.add(h)).add(eight.sum));
        // A maximum forgets what is not a number, a sum does not.
        if sum.f64().is_nan() { sum } else { largest_of(largest) }
    }
}

/// The largest of eight numbers.
#[inline(always)]
fn largest_of<S: Scalar, L: Lanes<S>>(x: L) -> S {
    let larger = |a: S, b: S| if a > b { a } else { b };
    let [a, b, c, d, e, f, g, h] = each(x);
    larger(larger(larger(a, e), larger(b, f)), larger(larger(c, g), larger(d, h)))
}

/// The largest of some sizes, and their sum.
#[derive(Clone, Copy)]
struct Differences<N> {
    largest: N,
    sum: N,
}

impl<N> Differences<N> {
    #[inline(always)]
    fn none<S: Scalar>() -> Self
    where
        N: Numbers<S>,
    {
        Self { largest: N::splat(S::ZERO), sum: N::splat(S::ZERO) }
    }

    /// With `|a − b|`.
    #[inline(always)]
    fn differ<S: Scalar>(&mut self, a: N, b: N)
    where
        N: Numbers<S>,
    {
        let d = a.sub(b);
        let size = d.max(N::splat(S::ZERO).sub(d));
        self.largest = size.max(self.largest);
        self.sum = self.sum.add(size);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_any_length_are_what_the_definition_says() {
        for count in [0, 1, 7, 8, 9, PART - 1, PART, PART + 1, 3 * PART + 5] {
            let a: Vec<f32> = (0..count).map(|i| (i as f32 * 0.37).sin()).collect();
            let b: Vec<f32> = (0..count).map(|i| (i as f32 * 0.11).cos()).collect();
            let plain: f64 = a.iter().zip(&b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum();
            assert!((dot(&a, &b) - plain).abs() <= 1e-9 * count as f64, "{count}");
            let plain: f64 = a.iter().map(|&a| f64::from(a).powi(2)).sum();
            assert!((length(&a) - plain.sqrt()).abs() <= 1e-12 * plain.sqrt(), "{count}");
        }
    }

    #[test]
    fn sizes_are_those_of_the_numbers() {
        for count in [0, 1, 9, PART, 2 * PART + 3] {
            let mut x: Vec<f32> = (0..count).map(|i| (i as f32 * 0.37).sin()).collect();
            let plain: f64 = x.iter().map(|x| f64::from(x.abs())).sum();
            let largest = x.iter().fold(0.0_f32, |max, x| max.max(x.abs()));
            let (sum, max) = sizes(&x);
            assert!((sum - plain).abs() <= 1e-9 * count as f64, "{count}");
            assert_eq!(max.to_bits(), largest.to_bits(), "{count}");
            if let Some(last) = x.last_mut() {
                *last = f32::NAN;
                assert!(sizes(&x).0.is_nan() && sizes(&x).1.is_nan(), "{count}");
            }
        }
    }

    #[test]
    fn the_largest_difference_is_found_wherever_it_is() {
        for count in [1, 7, 8, 9, PART, 2 * PART + 3] {
            let a: Vec<f32> = (0..count).map(|i| (i as f32 * 0.37).sin()).collect();
            for place in [0, count / 2, count - 1] {
                let mut b = a.clone();
                for (other, expected) in [(a[place] - 2.0, 2.0), (a[place] + 3.0, 3.0)] {
                    b[place] = other;
                    assert!((largest_difference(&a, &b) - expected).abs() < 1e-6, "{place}");
                }
                b[place] = f32::NAN;
                assert!(largest_difference(&a, &b).is_nan(), "{place} of {count}");
                b[place] = f32::NEG_INFINITY;
                assert!(largest_difference(&a, &b).is_infinite(), "{place} of {count}");
            }
            assert!(largest_difference(&a, &a) == 0.0);
        }
    }
}
