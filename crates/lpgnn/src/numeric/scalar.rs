use std::fmt::{Debug, Display};
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, DivAssign, Mul, MulAssign, Neg, Sub, SubAssign};

/// The larger of two sizes, where one that is not a number counts as the largest of all.
#[inline]
pub(crate) fn worse<S: Scalar>(a: S, b: S) -> S {
    // A comparison with NaN is false.
    if a >= b || a.f64().is_nan() { a } else { b }
}

/// A real number: `f32` for training, `f64` for proofs.
pub trait Scalar:
    Copy
    + Default
    + PartialOrd
    + PartialEq
    + Debug
    + Display
    + Send
    + Sync
    + 'static
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + SubAssign
    + MulAssign
    + DivAssign
    + Sum
    + super::elementary::Fast
{
    /// `0`
    const ZERO: Self;
    /// `1`
    const ONE: Self;
    /// The nearest number to `x`.
    fn of(x: f64) -> Self;
    /// The nearest number to `x`.
    fn of_f32(x: f32) -> Self;
    /// The same number in double precision.
    fn f64(self) -> f64;
    /// Absolute value.
    fn abs(self) -> Self;
    /// Hyperbolic tangent, by the standard library.
    fn tanh(self) -> Self;
    /// Exponential.
    fn exp(self) -> Self;
    /// Natural logarithm.
    fn ln(self) -> Self;
    /// Square root.
    fn sqrt(self) -> Self;
    /// The larger of two numbers, `other` where `self` is not a number.
    fn max(self, other: Self) -> Self;
    /// The smaller of two numbers, `other` where `self` is not a number.
    fn min(self, other: Self) -> Self;
    /// Neither infinite nor NaN.
    fn is_finite(self) -> bool;
}

macro_rules! impl_scalar {
    ($($float:ident),*) => {$(
        #[allow(
            clippy::cast_possible_truncation, clippy::cast_lossless,
            reason = "the nearest number is what is asked for"
        )]
        impl Scalar for $float {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            #[inline(always)] fn of(x: f64) -> Self { x as $float }
            #[inline(always)] fn of_f32(x: f32) -> Self { x as $float }
            #[inline(always)] fn f64(self) -> f64 { self as f64 }
            #[inline(always)] fn abs(self) -> Self { $float::abs(self) }
            #[inline(always)] fn tanh(self) -> Self { $float::tanh(self) }
            #[inline(always)] fn exp(self) -> Self { $float::exp(self) }
            #[inline(always)] fn ln(self) -> Self { $float::ln(self) }
            #[inline(always)] fn sqrt(self) -> Self { $float::sqrt(self) }
            #[inline(always)] fn max(self, other: Self) -> Self { if self > other { self } else { other } }
            #[inline(always)] fn min(self, other: Self) -> Self { if self < other { self } else { other } }
            #[inline(always)] fn is_finite(self) -> bool { $float::is_finite(self) }
        }
    )*};
}
impl_scalar!(f32, f64);
