//! A hyperbolic tangent and an exponential without branches, so that loops run on vectors.

use super::lanes::{Lanes, each};

/// What the kernels need of a scalar; not nameable outside, so [`Scalar`](crate::Scalar) is `f32`
/// or `f64`.
#[allow(unreachable_pub, reason = "a bound of a public trait must be public")]
pub trait Fast: Sized + Copy {
    /// Eight numbers on a processor with AVX2.
    #[cfg(target_arch = "x86_64")]
    #[doc(hidden)]
    type Avx2: Lanes<Self>;

    /// `tanh` of `W` times eight numbers: of `f32` within a few units in the last place, see the test
    /// below; `f64` is for proofs and takes the exact function of the standard library.
    #[doc(hidden)]
    fn tanh_lanes<L: Lanes<Self>, const W: usize>(x: [L; W]) -> [L; W];

    /// `exp` of eight numbers that are not positive, likewise.
    #[doc(hidden)]
    fn exp_lanes<L: Lanes<Self>>(x: L) -> L;
}

impl Fast for f64 {
    #[cfg(target_arch = "x86_64")]
    type Avx2 = super::lanes::avx2::Double;

    #[inline(always)]
    fn tanh_lanes<L: Lanes<f64>, const W: usize>(x: [L; W]) -> [L; W] {
        let mut y = x;
        for i in 0..W {
            y[i] = L::load(&each(x[i]).map(f64::tanh));
        }
        y
    }

    #[inline(always)]
    fn exp_lanes<L: Lanes<f64>>(x: L) -> L {
        L::load(&each(x).map(f64::exp))
    }
}

impl Fast for f32 {
    #[cfg(target_arch = "x86_64")]
    type Avx2 = super::lanes::avx2::Single;

    /// A quotient of polynomials in `x`, odd of degree 9 over even of degree 8, which is the
    /// minimax approximation up to the bound; beyond, tanh rounds to ±1. Every coefficient meets all
    /// numbers in turn, so that it is loaded once.
    #[allow(clippy::excessive_precision, reason = "the coefficients as they were computed")]
    #[inline(always)]
    fn tanh_lanes<L: Lanes<f32>, const W: usize>(mut x: [L; W]) -> [L; W] {
        const BOUND: f32 = 8.017_733_6;
        const ODD: [f32; 4] = [2.102_733_56e-5, 3.520_756_727e-3, 1.340_216_1e-1, 1.0];
        const EVEN: [f32; 4] = [3.326_951_409e-4, 2.597_254_514e-2, 4.673_548_34e-1, 1.0];
        let mut square = x;
        for i in 0..W {
            // In this order, because of two arguments it is the second that passes a NaN on.
            x[i] = L::splat(-BOUND).max(L::splat(BOUND).min(x[i]));
            square[i] = x[i].mul(x[i]);
        }
        let mut p = [L::splat(1.394_553_628e-8); W];
        for c in ODD {
            for i in 0..W {
                p[i] = p[i].mul_add(square[i], L::splat(c));
            }
        }
        for i in 0..W {
            x[i] = x[i].mul(p[i]);
        }
        let mut q = [L::splat(8.015_776_984e-7); W];
        for c in EVEN {
            for i in 0..W {
                q[i] = q[i].mul_add(square[i], L::splat(c));
            }
        }
        for i in 0..W {
            x[i] = x[i].div(q[i]);
        }
        x
    }

    /// `2^n e^r` with the nearest whole `n = x / ln 2`, and a polynomial for `e^r`. What is
    /// smaller than normal numbers are is about the smallest of them.
    #[allow(clippy::excessive_precision, reason = "the coefficients as they were computed")]
    #[inline(always)]
    fn exp_lanes<L: Lanes<f32>>(x: L) -> L {
        const SMALLEST: f32 = -87.3;
        // Above 2^23 single precision has whole numbers only.
        const WHOLE: f32 = 12_582_912.0;
        // ln 2 in two parts, the first of which has few digits: products with it are exact.
        const LN_2: [f32; 2] = [0.693_359_375, -2.121_944_4e-4];
        const TERMS: [f32; 5] = [
            1.398_199_950_7e-3,
            8.333_451_907_3e-3,
            4.166_579_589_4e-2,
            1.666_666_545_9e-1,
            5.000_000_120_1e-1,
        ];
        let x = L::splat(SMALLEST).max(x);
        let whole = L::splat(WHOLE);
        let n = x.mul_add(L::splat(std::f32::consts::LOG2_E), whole).sub(whole);
        let mut r = x;
        for part in LN_2 {
            r = n.mul_add(L::splat(-part), r);
        }
        let mut p = L::splat(1.987_569_15e-4);
        for term in TERMS {
            p = p.mul_add(r, L::splat(term));
        }
        p.mul_add(r.mul(r), r).add(L::splat(1.0)).mul(n.power_of_two())
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
            each(f32::tanh_lanes([A::Lanes::<f32>::splat(self.0)])[0])[0]
        }
    }

    struct Exp(f32);

    impl Kernel for Exp {
        type Output = f32;
        #[inline(always)]
        fn run<A: Arithmetic>(self) -> f32 {
            each(f32::exp_lanes(A::Lanes::<f32>::splat(self.0)))[0]
        }
    }

    /// The distance to the exact value, in units of the last place of the exact value.
    fn ulps(exact: f64, found: f32) -> f64 {
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
                let exact = f64::from(x).tanh();
                assert!(fast.abs() <= 1.0 && plain.abs() <= 1.0, "{x}");
                worst = (worst.0.max(ulps(exact, fast)), worst.1.max(ulps(exact, plain)));
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

    #[test]
    fn exp_is_within_a_few_units_in_the_last_place() {
        let mut worst = 0.0_f64;
        let mut bits = f32::MIN_POSITIVE.to_bits();
        while bits < 87.0_f32.to_bits() {
            let x = -f32::from_bits(bits);
            let exact = f64::from(x).exp();
            worst =
                worst.max(ulps(exact, dispatch(Exp(x)))).max(ulps(exact, Exp(x).run::<Plain>()));
            bits += 997;
        }
        assert!(worst < 2.5, "{worst}");
        assert!(dispatch(Exp(f32::NAN)).is_nan());
        let least = dispatch(Exp(f32::NEG_INFINITY));
        assert!(least > 0.0 && least < 2.0 * f32::MIN_POSITIVE, "{least}");
    }
}
