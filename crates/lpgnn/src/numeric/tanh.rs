//! A hyperbolic tangent without branches, so that a loop over it runs on vectors.

use super::LANES;
use super::lanes::Lanes;

/// What the kernels need of a scalar; not nameable outside, so [`Scalar`](crate::Scalar) is `f32`
/// or `f64`.
#[allow(unreachable_pub, reason = "a bound of a public trait must be public")]
pub trait Fast: Sized + Copy {
    /// Eight numbers on a processor with AVX2.
    #[cfg(target_arch = "x86_64")]
    #[doc(hidden)]
    type Avx2: Lanes<Self>;

    /// `tanh` of eight numbers: of `f32` within a few units in the last place, see the test below;
    /// `f64` is for proofs and takes the exact function of the standard library.
    #[doc(hidden)]
    fn tanh_lanes<L: Lanes<Self>>(x: L) -> L;
}

impl Fast for f64 {
    #[cfg(target_arch = "x86_64")]
    type Avx2 = super::lanes::avx2::Double;

    #[inline(always)]
    fn tanh_lanes<L: Lanes<f64>>(x: L) -> L {
        let mut each = [0.0; LANES];
        x.store(&mut each);
        L::load(&each.map(f64::tanh))
    }
}

impl Fast for f32 {
    #[cfg(target_arch = "x86_64")]
    type Avx2 = super::lanes::avx2::Single;

    /// A quotient of polynomials in `x`, odd of degree 9 over even of degree 8, which is the
    /// minimax approximation up to the bound; beyond, tanh rounds to ±1.
    #[allow(clippy::excessive_precision, reason = "the coefficients as they were computed")]
    #[inline(always)]
    fn tanh_lanes<L: Lanes<f32>>(x: L) -> L {
        const BOUND: f32 = 8.017_733_6;
        const ODD: [f32; 4] = [2.102_733_56e-5, 3.520_756_727e-3, 1.340_216_1e-1, 1.0];
        const EVEN: [f32; 4] = [3.326_951_409e-4, 2.597_254_514e-2, 4.673_548_34e-1, 1.0];
        // In this order, because of two arguments it is the second that passes a NaN on.
        let x = L::splat(BOUND).min(x);
        let x = L::splat(-BOUND).max(x);
        let square = x.mul(x);
        let mut p = L::splat(1.394_553_628e-8);
        for c in ODD {
            p = p.mul_add(square, L::splat(c));
        }
        let mut q = L::splat(8.015_776_984e-7);
        for c in EVEN {
            q = q.mul_add(square, L::splat(c));
        }
        x.mul(p).div(q)
    }
}

#[cfg(test)]
mod tests {
    use super::super::dispatch::{Arithmetic, Kernel, Plain, dispatch};
    use super::*;

    struct Tanh(f32);

    impl Kernel for Tanh {
        type Output = f32;
        #[inline(always)]
        fn run<A: Arithmetic>(self) -> f32 {
            let mut y = [0.0; LANES];
            f32::tanh_lanes(A::Lanes::<f32>::splat(self.0)).store(&mut y);
            y[0]
        }
    }

    /// The distance to the exact value, in units of the last place of the exact value.
    fn ulps(x: f32, found: f32) -> f64 {
        let exact = f64::from(x).tanh();
        #[allow(clippy::cast_possible_truncation, reason = "the nearest single is wanted")]
        let nearest = exact as f32;
        let unit = f64::from(nearest.abs().next_up()) - f64::from(nearest.abs());
        (f64::from(found) - exact).abs() / unit
    }

    #[test]
    fn tanh_is_within_a_few_units_in_the_last_place() {
        let mut worst = (0.0_f64, 0.0_f64);
        // Every 997th number from the smallest normal one to 20.
        let mut bits = f32::MIN_POSITIVE.to_bits();
        while bits < 20.0_f32.to_bits() {
            for x in [f32::from_bits(bits), -f32::from_bits(bits)] {
                let (fast, plain) = (dispatch(Tanh(x)), Tanh(x).run::<Plain>());
                assert!(fast.abs() <= 1.0 && plain.abs() <= 1.0, "{x}");
                worst = (worst.0.max(ulps(x, fast)), worst.1.max(ulps(x, plain)));
            }
            bits += 997;
        }
        assert!(worst.0 < 5.5 && worst.1 < 6.5, "{worst:?}");
    }

    #[test]
    fn tanh_keeps_signs_bounds_and_nan() {
        for x in [0.0, -0.0, 1e30, -1e30, f32::INFINITY, f32::NEG_INFINITY] {
            let y = dispatch(Tanh(x));
            assert!(y.abs() <= 1.0 && (y - x.tanh()).abs() < 1e-6, "{x} gives {y}");
        }
        assert!(dispatch(Tanh(f32::NAN)).is_nan());
    }
}
