//! Eight numbers on any processor: the compiler makes of them what it can.

use super::{LANES, Lanes, Numbers};
use crate::Scalar;

impl<S: Scalar> Numbers<S> for [S; LANES] {
    #[inline(always)]
    fn splat(x: S) -> Self {
        [x; LANES]
    }
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        std::array::from_fn(|i| self[i] + other[i])
    }
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        std::array::from_fn(|i| self[i] - other[i])
    }
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        std::array::from_fn(|i| self[i] * other[i])
    }
    #[inline(always)]
    fn div(self, other: Self) -> Self {
        std::array::from_fn(|i| self[i] / other[i])
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        Numbers::map(self, Scalar::sqrt)
    }
    #[inline(always)]
    fn mul_add(self, a: Self, b: Self) -> Self {
        // Two roundings: a call to the library's `fma` would be far slower.
        std::array::from_fn(|i| self[i] * a[i] + b[i])
    }
    #[inline(always)]
    fn min(self, other: Self) -> Self {
        std::array::from_fn(|i| self[i].min(other[i]))
    }
    #[inline(always)]
    fn max(self, other: Self) -> Self {
        std::array::from_fn(|i| self[i].max(other[i]))
    }
    #[inline(always)]
    fn if_positive(self, then: Self, otherwise: Self) -> Self {
        std::array::from_fn(|i| if self[i] > S::ZERO { then[i] } else { otherwise[i] })
    }
    #[inline(always)]
    fn power_of_two(self) -> Self {
        Numbers::map(self, |n| S::of(n.f64().exp2()))
    }
    #[inline(always)]
    fn map(mut self, f: impl Fn(S) -> S) -> Self {
        for x in &mut self {
            *x = f(*x);
        }
        self
    }
}

impl<S: Scalar> Lanes<S> for [S; LANES] {
    #[inline(always)]
    fn load(x: &[S; LANES]) -> Self {
        *x
    }
    #[inline(always)]
    fn store(self, to: &mut [S; LANES]) {
        *to = self;
    }
    #[inline(always)]
    fn first(self, count: usize, others: Self) -> Self {
        std::array::from_fn(|i| if i < count { self[i] } else { others[i] })
    }
}
