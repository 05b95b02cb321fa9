//! A hyperbolic tangent without branches, so that a loop over it runs on vectors.

use super::dispatch::Arithmetic;
use crate::Scalar;

/// `tanh(x)`, in single precision within a few units in the last place; see the test below.
///
/// `f64` is for proofs and takes the exact function of the standard library.
#[inline(always)]
pub(crate) fn tanh<A: Arithmetic, S: Scalar>(x: S) -> S {
    S::fast_tanh::<A>(x)
}

/// Numbers that have a fast tanh; not nameable outside, so [`Scalar`] is `f32` or `f64`.
#[allow(unreachable_pub, reason = "a bound of a public trait must be public")]
pub trait Fast: Sized {
    #[doc(hidden)]
    fn fast_tanh<A: Arithmetic>(x: Self) -> Self;
}

impl Fast for f64 {
    #[inline(always)]
    fn fast_tanh<A: Arithmetic>(x: f64) -> f64 {
        x.tanh()
    }
}

impl Fast for f32 {
    /// A quotient of polynomials in `x`, odd of degree 13 over even of degree 6, which is the
    /// minimax approximation on `[−7.9, 7.9]`; beyond, tanh rounds to ±1.
    #[allow(clippy::excessive_precision, reason = "the coefficients as they were computed")]
    #[inline(always)]
    fn fast_tanh<A: Arithmetic>(x: f32) -> f32 {
        const BOUND: f32 = 7.905_311;
        const ODD: [f32; 6] = [
            2.000_187_9e-13,
            -8.604_671_5e-11,
            5.122_297e-8,
            1.485_722_4e-5,
            6.372_619_3e-4,
            4.893_524_6e-3,
        ];
        const EVEN: [f32; 3] = [1.185_347_06e-4, 2.268_434_6e-3, 4.893_525_2e-3];
        // `clamp` would keep a NaN; so does this, because the comparison with it is false.
        let x = if x > BOUND { BOUND } else { x };
        let x = if x < -BOUND { -BOUND } else { x };
        let square = x * x;
        let mut p = -2.760_768_5e-16;
        for c in ODD {
            p = A::mul_add(p, square, c);
        }
        let mut q = 1.198_258_4e-6;
        for c in EVEN {
            q = A::mul_add(q, square, c);
        }
        // The quotient first: `p · x` would lose the last digits of a tiny `x`.
        x * (p / q)
    }
}

#[cfg(test)]
mod tests {
    use super::super::dispatch::{Fused, Plain};
    use super::*;

    /// The distance to the exact value, in units of the last place of the exact value.
    fn ulps<A: Arithmetic>(x: f32) -> f64 {
        let exact = f64::from(x).tanh();
        #[allow(clippy::cast_possible_truncation, reason = "the nearest single is wanted")]
        let nearest = exact as f32;
        let unit = f64::from(nearest.abs().next_up()) - f64::from(nearest.abs());
        (f64::from(tanh::<A, f32>(x)) - exact).abs() / unit
    }

    #[test]
    fn tanh_is_within_a_few_units_in_the_last_place() {
        let mut worst = (0.0_f64, 0.0_f64);
        // Every 997th number from the smallest normal one to 20.
        let mut bits = f32::MIN_POSITIVE.to_bits();
        while bits < 20.0_f32.to_bits() {
            for x in [f32::from_bits(bits), -f32::from_bits(bits)] {
                assert!(tanh::<Fused, f32>(x).abs() <= 1.0, "{x}");
                worst = (worst.0.max(ulps::<Fused>(x)), worst.1.max(ulps::<Plain>(x)));
            }
            bits += 997;
        }
        assert!(worst.0 < 5.5 && worst.1 < 6.5, "{worst:?}");
    }

    #[test]
    fn tanh_keeps_signs_bounds_and_nan() {
        for x in [0.0, -0.0, 1e30, -1e30, f32::INFINITY, f32::NEG_INFINITY] {
            let y = tanh::<Fused, f32>(x);
            assert!(y.abs() <= 1.0 && (y - x.tanh()).abs() < 1e-6, "{x} gives {y}");
        }
        assert!(tanh::<Fused, f32>(f32::NAN).is_nan());
    }
}
