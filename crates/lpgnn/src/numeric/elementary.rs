//! A hyperbolic tangent and an exponential without branches, so that loops run on vectors.

#[cfg(target_arch = "x86_64")]
use super::lanes::Eights;
use super::lanes::{Lanes, Numbers};

/// What the kernels need of a scalar; not nameable outside, so [`Scalar`](crate::Scalar) is `f32`
/// or `f64`.
#[allow(unreachable_pub, reason = "a bound of a public trait must be public")]
pub trait Fast: Sized + Copy {
    /// Eight numbers on a processor with AVX2.
    #[cfg(target_arch = "x86_64")]
    #[doc(hidden)]
    type Avx2: Lanes<Self>;

    /// `W` times eight numbers on a processor with AVX-512.
    #[cfg(target_arch = "x86_64")]
    #[doc(hidden)]
    type Avx512<const W: usize>: Eights<Self, W>;

    /// Eight numbers on a processor with NEON.
    #[cfg(target_arch = "aarch64")]
    #[doc(hidden)]
    type Neon: Lanes<Self>;

    /// `tanh` of numbers, within a few units in the last place: see the tests below.
    #[doc(hidden)]
    fn tanh_lanes<N: Numbers<Self>>(x: N) -> N;

    /// `exp` of numbers that are not positive: of `f32` likewise, of `f64` by the standard library.
    #[doc(hidden)]
    fn exp_lanes<N: Numbers<Self>>(x: N) -> N;
}

impl Fast for f64 {
    #[cfg(target_arch = "x86_64")]
    type Avx2 = super::lanes::avx2::Double;

    #[cfg(target_arch = "x86_64")]
    type Avx512<const W: usize> = super::lanes::EachEight<Self::Avx2, W>;

    #[cfg(target_arch = "aarch64")]
    type Neon = super::lanes::neon::Double;

    /// `tanh 2y = 2 p q / (p² + q²)` for `tanh y = p / q`, twice, from a convergent of Lambert's continued fraction at
    /// `x / 4`. Up to the bound it is wrong by less than 1e-16 of its value but for rounding; beyond, tanh rounds to ±1.
    #[inline(always)]
    fn tanh_lanes<N: Numbers<f64>>(x: N) -> N {
        const BOUND: f64 = 20.0;
        const ODD: [f64; 4] = [2.0 / 69_615.0, 1.0 / 255.0, 7.0 / 51.0, 1.0];
        const EVEN: [f64; 4] = [4.0 / 9_945.0, 7.0 / 255.0, 8.0 / 17.0, 1.0];
        // In this order, because of two arguments it is the second that passes a NaN on.
        let y = N::splat(-BOUND).max(N::splat(BOUND).min(x)).mul(N::splat(0.25));
        let square = y.mul(y);
        let mut p = N::splat(1.0 / 34_459_425.0);
        for c in ODD {
            p = p.mul_add(square, N::splat(c));
        }
        p = p.mul(y);
        let mut q = N::splat(1.0 / 765_765.0);
        for c in EVEN {
            q = q.mul_add(square, N::splat(c));
        }
        for _ in 0..2 {
            (p, q) = (p.add(p).mul(q), p.mul_add(p, q.mul(q)));
        }
        N::splat(-1.0).max(N::splat(1.0).min(p.div(q)))
    }

    #[inline(always)]
    fn exp_lanes<N: Numbers<f64>>(x: N) -> N {
        x.map(f64::exp)
    }
}

impl Fast for f32 {
    #[cfg(target_arch = "x86_64")]
    type Avx2 = super::lanes::avx2::Single;

    #[cfg(target_arch = "x86_64")]
    type Avx512<const W: usize> = super::lanes::avx512::Singles<W>;

    #[cfg(target_arch = "aarch64")]
    type Neon = super::lanes::neon::Single;

    /// A quotient of polynomials in `x`, odd of degree 9 over even of degree 8, which is the
    /// minimax approximation up to the bound; beyond, tanh rounds to ±1.
    #[allow(clippy::excessive_precision, reason = "the coefficients as they were computed")]
    #[inline(always)]
    fn tanh_lanes<N: Numbers<f32>>(x: N) -> N {
        const BOUND: f32 = 8.017_733_6;
        const ODD: [f32; 4] = [2.102_733_56e-5, 3.520_756_727e-3, 1.340_216_1e-1, 1.0];
        const EVEN: [f32; 4] = [3.326_951_409e-4, 2.597_254_514e-2, 4.673_548_34e-1, 1.0];
        // In this order, because of two arguments it is the second that passes a NaN on.
        let x = N::splat(-BOUND).max(N::splat(BOUND).min(x));
        let square = x.mul(x);
        let mut p = N::splat(1.394_553_628e-8);
        for c in ODD {
            p = p.mul_add(square, N::splat(c));
        }
        let mut q = N::splat(8.015_776_984e-7);
        for c in EVEN {
            q = q.mul_add(square, N::splat(c));
        }
        x.mul(p).div(q)
    }

    /// `2^n e^r` with the nearest whole `n = x / ln 2`, and a polynomial for `e^r`. What is
    /// smaller than normal numbers are is about the smallest of them.
    #[allow(clippy::excessive_precision, reason = "the coefficients as they were computed")]
    #[inline(always)]
    fn exp_lanes<N: Numbers<f32>>(x: N) -> N {
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
        let x = N::splat(SMALLEST).max(x);
        let whole = N::splat(WHOLE);
        let n = x.mul_add(N::splat(std::f32::consts::LOG2_E), whole).sub(whole);
        let mut r = x;
        for part in LN_2 {
            r = n.mul_add(N::splat(-part), r);
        }
        let mut p = N::splat(1.987_569_15e-4);
        for term in TERMS {
            p = p.mul_add(r, N::splat(term));
        }
        p.mul_add(r.mul(r), r).add(N::splat(1.0)).mul(n.power_of_two())
    }
}

#[cfg(test)]
mod tests {
    use super::super::dispatch::{Arithmetic, InstructionSet, Kernel, dispatch, on_each};
    use super::super::lanes::LANES;
    use super::*;

    /// One function of three times eight equal numbers, which must give as many equal ones.
    struct Equal<F>(F, f32);

    trait Function {
        fn of<N: Numbers<f32>>(x: N) -> N;
    }
    struct Tanh;
    impl Function for Tanh {
        #[inline(always)]
        fn of<N: Numbers<f32>>(x: N) -> N {
            f32::tanh_lanes(x)
        }
    }
    struct Exp;
    impl Function for Exp {
        #[inline(always)]
        fn of<N: Numbers<f32>>(x: N) -> N {
            f32::exp_lanes(x)
        }
    }

    impl<F: Function> Kernel for Equal<F> {
        type Output = f32;
        #[inline(always)]
        fn run<A: Arithmetic>(self) -> f32 {
            let mut all = [[0.0; LANES]; 3];
            F::of(A::Eights::<f32, 3>::splat(self.1)).store(&mut all);
            let first = all[0][0];
            assert!(all.as_flattened().iter().all(|y| y.to_bits() == first.to_bits()), "{all:?}");
            first
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
        on_each(|set| {
            let mut worst = 0.0_f64;
            // Every 997th number from the smallest normal one to 20.
            let mut bits = f32::MIN_POSITIVE.to_bits();
            while bits < 20.0_f32.to_bits() {
                for x in [f32::from_bits(bits), -f32::from_bits(bits)] {
                    let found = dispatch(Equal(Tanh, x));
                    assert!(found.abs() <= 1.0, "{x}");
                    worst = worst.max(ulps(f64::from(x).tanh(), found));
                }
                bits += 997;
            }
            let limit = if set == InstructionSet::Portable { 6.5 } else { 5.5 };
            assert!(worst < limit, "{set:?}: {worst}");
        });
    }

    struct Double(f64);

    impl Kernel for Double {
        type Output = f64;
        #[inline(always)]
        fn run<A: Arithmetic>(self) -> f64 {
            let mut all = [[0.0; LANES]; 3];
            f64::tanh_lanes(A::Eights::<f64, 3>::splat(self.0)).store(&mut all);
            let first = all[0][0];
            assert!(all.as_flattened().iter().all(|y| y.to_bits() == first.to_bits()), "{all:?}");
            first
        }
    }

    #[test]
    fn tanh_of_doubles_is_within_a_few_units_in_the_last_place() {
        on_each(|set| {
            let mut worst = 0.0_f64;
            let mut bits = 1e-300_f64.to_bits();
            while bits < 25.0_f64.to_bits() {
                let x = f64::from_bits(bits);
                for x in [x, -x] {
                    let (exact, found) = (x.tanh(), dispatch(Double(x)));
                    assert!(found.abs() <= 1.0, "{x}");
                    worst = worst.max((found - exact).abs() / (exact.abs() * f64::EPSILON));
                }
                bits += 99_999_999_977;
                // Most numbers are tiny.
                if x > 1e-9 {
                    bits -= 99_999_000_000;
                    bits += 40_000_000_000;
                }
            }
            assert!(worst < 6.5, "{set:?}: {worst}");
            for x in [0.0, -0.0, 1e300, f64::NEG_INFINITY] {
                assert_eq!(dispatch(Double(x)).to_bits(), x.tanh().to_bits(), "{set:?}: {x}");
            }
            assert!(dispatch(Double(f64::NAN)).is_nan());
        });
    }

    #[test]
    fn tanh_keeps_signs_bounds_and_nan() {
        on_each(|set| {
            for x in [0.0, -0.0, 1e30, -1e30, f32::INFINITY, f32::NEG_INFINITY] {
                let y = dispatch(Equal(Tanh, x));
                assert!(y.abs() <= 1.0 && (y - x.tanh()).abs() < 1e-6, "{set:?}: {x} gives {y}");
            }
            assert!(dispatch(Equal(Tanh, f32::NAN)).is_nan());
        });
    }

    #[test]
    fn exp_is_within_a_few_units_in_the_last_place() {
        on_each(|set| {
            let mut worst = 0.0_f64;
            let mut bits = f32::MIN_POSITIVE.to_bits();
            while bits < 87.0_f32.to_bits() {
                let x = -f32::from_bits(bits);
                worst = worst.max(ulps(f64::from(x).exp(), dispatch(Equal(Exp, x))));
                bits += 997;
            }
            assert!(worst < 2.5, "{set:?}: {worst}");
            assert!(dispatch(Equal(Exp, f32::NAN)).is_nan());
            let least = dispatch(Equal(Exp, f32::NEG_INFINITY));
            assert!(least > 0.0 && least < 2.0 * f32::MIN_POSITIVE, "{least}");
        });
    }
}
