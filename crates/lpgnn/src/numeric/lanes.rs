//! Eight numbers that go through a loop together, in the registers of the processor.
//!
//! Loops over plain arrays are left to the compiler's luck; these types say what is meant.

use crate::Scalar;

/// How many numbers go together.
pub(crate) const LANES: usize = 8;

/// Eight numbers.
#[allow(unreachable_pub, reason = "a bound of a public trait must be public")]
pub trait Lanes<S>: Copy {
    #[doc(hidden)]
    fn splat(x: S) -> Self;
    #[doc(hidden)]
    fn load(x: &[S; LANES]) -> Self;
    #[doc(hidden)]
    fn store(self, to: &mut [S; LANES]);
    /// Fewer than eight numbers, and zeros.
    #[doc(hidden)]
    #[inline(always)]
    fn load_some(x: &[S]) -> Self
    where
        S: Scalar,
    {
        Self::load(&std::array::from_fn(|i| x.get(i).copied().unwrap_or(S::ZERO)))
    }
    /// The first of the eight, fewer than all.
    #[doc(hidden)]
    #[inline(always)]
    fn store_some(self, to: &mut [S])
    where
        S: Scalar,
    {
        let mut each = [S::ZERO; LANES];
        self.store(&mut each);
        to.iter_mut().zip(each).for_each(|(to, x)| *to = x);
    }
    #[doc(hidden)]
    fn add(self, other: Self) -> Self;
    #[doc(hidden)]
    fn sub(self, other: Self) -> Self;
    #[doc(hidden)]
    fn mul(self, other: Self) -> Self;
    #[doc(hidden)]
    fn div(self, other: Self) -> Self;
    #[doc(hidden)]
    fn sqrt(self) -> Self;
    /// `self · a + b`
    #[doc(hidden)]
    fn mul_add(self, a: Self, b: Self) -> Self;
    /// `self` where it is smaller, else `other`; so `other` where one is not a number.
    #[doc(hidden)]
    fn min(self, other: Self) -> Self;
    /// `self` where it is larger, else `other`; so `other` where one is not a number.
    #[doc(hidden)]
    fn max(self, other: Self) -> Self;
    /// `then` where `self > 0`, else `otherwise`.
    #[doc(hidden)]
    fn if_positive(self, then: Self, otherwise: Self) -> Self;
    /// `2^self` of whole numbers for which that is a normal number.
    #[doc(hidden)]
    fn power_of_two(self) -> Self;
    /// The first `count` of `self`, and `others` behind them.
    #[doc(hidden)]
    fn first(self, count: usize, others: Self) -> Self;
    /// The [`total`] of each of eight.
    #[doc(hidden)]
    #[inline(always)]
    fn totals(all: [Self; LANES]) -> Self
    where
        S: Scalar,
    {
        let mut totals = [S::ZERO; LANES];
        for i in 0..LANES {
            totals[i] = total(all[i]);
        }
        Self::load(&totals)
    }
}

/// On any processor.
impl<S: Scalar> Lanes<S> for [S; LANES] {
    #[inline(always)]
    fn splat(x: S) -> Self {
        [x; LANES]
    }
    #[inline(always)]
    fn load(x: &[S; LANES]) -> Self {
        *x
    }
    #[inline(always)]
    fn store(self, to: &mut [S; LANES]) {
        *to = self;
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
        self.map(Scalar::sqrt)
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
        self.map(|n| S::of(n.f64().exp2()))
    }
    #[inline(always)]
    fn first(self, count: usize, others: Self) -> Self {
        std::array::from_fn(|i| if i < count { self[i] } else { others[i] })
    }
}

/// On x86 processors with AVX2 and FMA.
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2 {
    #![allow(
        unsafe_code,
        clippy::undocumented_unsafe_blocks,
        reason = "SAFETY of every block: these types are only named by the loops that `dispatch` runs \
                  after it has found AVX2 and FMA; references to arrays are valid to load and store"
    )]
    use std::arch::x86_64::{
        __m256, __m256d, __m256i, _CMP_GT_OQ, _mm_castps_si128, _mm_cvtss_f32, _mm_movehl_ps,
        _mm_storel_epi64, _mm_storeu_ps, _mm256_add_epi32, _mm256_add_pd, _mm256_add_ps,
        _mm256_blendv_pd, _mm256_blendv_ps, _mm256_castps256_ps128, _mm256_castsi256_ps,
        _mm256_cmp_pd, _mm256_cmp_ps, _mm256_cvtps_epi32, _mm256_div_pd, _mm256_div_ps,
        _mm256_extractf128_ps, _mm256_fmadd_pd, _mm256_fmadd_ps, _mm256_hadd_ps, _mm256_loadu_pd,
        _mm256_loadu_ps, _mm256_loadu_si256, _mm256_maskload_ps, _mm256_max_pd, _mm256_max_ps,
        _mm256_min_pd, _mm256_min_ps, _mm256_mul_pd, _mm256_mul_ps, _mm256_permute2f128_ps,
        _mm256_set1_epi32, _mm256_set1_pd, _mm256_set1_ps, _mm256_setzero_pd, _mm256_setzero_ps,
        _mm256_slli_epi32, _mm256_sqrt_pd, _mm256_sqrt_ps, _mm256_storeu_pd, _mm256_storeu_ps,
        _mm256_sub_pd, _mm256_sub_ps,
    };

    use super::{LANES, Lanes, each};

    /// All bits of the first `count` numbers of single precision, none of the others.
    #[inline(always)]
    fn mask(count: usize) -> __m256i {
        const MASK: [i32; 2 * LANES] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];
        let mask = &MASK[LANES - count.min(LANES)..][..LANES];
        unsafe { _mm256_loadu_si256(mask.as_ptr().cast()) }
    }

    /// Eight numbers of single precision.
    #[derive(Clone, Copy)]
    #[allow(unreachable_pub, reason = "named by a public trait")]
    pub struct Single(__m256);

    impl Lanes<f32> for Single {
        #[inline(always)]
        fn splat(x: f32) -> Self {
            Self(unsafe { _mm256_set1_ps(x) })
        }
        #[inline(always)]
        fn load(x: &[f32; LANES]) -> Self {
            Self(unsafe { _mm256_loadu_ps(x.as_ptr()) })
        }
        #[inline(always)]
        fn store(self, to: &mut [f32; LANES]) {
            unsafe { _mm256_storeu_ps(to.as_mut_ptr(), self.0) }
        }
        #[inline(always)]
        fn load_some(x: &[f32]) -> Self {
            // Where the mask is zero, nothing is read.
            Self(unsafe { _mm256_maskload_ps(x.as_ptr(), mask(x.len())) })
        }
        #[inline(always)]
        fn store_some(self, to: &mut [f32]) {
            // Four, two, one: the processor's masked store is far slower on some machines.
            let mut part = unsafe { _mm256_castps256_ps128(self.0) };
            let count = to.len();
            let (four, rest) = to.split_at_mut(count & 4);
            let (two, one) = rest.split_at_mut(count & 2);
            if let Some(four) = four.first_chunk_mut::<4>() {
                unsafe { _mm_storeu_ps(four.as_mut_ptr(), part) };
                part = unsafe { _mm256_extractf128_ps::<1>(self.0) };
            }
            if let Some(two) = two.first_chunk_mut::<2>() {
                unsafe { _mm_storel_epi64(two.as_mut_ptr().cast(), _mm_castps_si128(part)) };
                part = unsafe { _mm_movehl_ps(part, part) };
            }
            if let Some(one) = one.first_mut() {
                *one = unsafe { _mm_cvtss_f32(part) };
            }
        }
        #[inline(always)]
        fn add(self, other: Self) -> Self {
            Self(unsafe { _mm256_add_ps(self.0, other.0) })
        }
        #[inline(always)]
        fn sub(self, other: Self) -> Self {
            Self(unsafe { _mm256_sub_ps(self.0, other.0) })
        }
        #[inline(always)]
        fn mul(self, other: Self) -> Self {
            Self(unsafe { _mm256_mul_ps(self.0, other.0) })
        }
        #[inline(always)]
        fn div(self, other: Self) -> Self {
            Self(unsafe { _mm256_div_ps(self.0, other.0) })
        }
        #[inline(always)]
        fn sqrt(self) -> Self {
            Self(unsafe { _mm256_sqrt_ps(self.0) })
        }
        #[inline(always)]
        fn mul_add(self, a: Self, b: Self) -> Self {
            Self(unsafe { _mm256_fmadd_ps(self.0, a.0, b.0) })
        }
        #[inline(always)]
        fn min(self, other: Self) -> Self {
            Self(unsafe { _mm256_min_ps(self.0, other.0) })
        }
        #[inline(always)]
        fn max(self, other: Self) -> Self {
            Self(unsafe { _mm256_max_ps(self.0, other.0) })
        }
        #[inline(always)]
        fn if_positive(self, then: Self, otherwise: Self) -> Self {
            Self(unsafe {
                let positive = _mm256_cmp_ps::<_CMP_GT_OQ>(self.0, _mm256_setzero_ps());
                _mm256_blendv_ps(otherwise.0, then.0, positive)
            })
        }
        #[inline(always)]
        fn power_of_two(self) -> Self {
            const BIAS: i32 = 127;
            const MANTISSA: i32 = 23;
            Self(unsafe {
                let exponent =
                    _mm256_add_epi32(_mm256_cvtps_epi32(self.0), _mm256_set1_epi32(BIAS));
                _mm256_castsi256_ps(_mm256_slli_epi32::<MANTISSA>(exponent))
            })
        }
        #[inline(always)]
        fn first(self, count: usize, others: Self) -> Self {
            let mask = mask(count);
            Self(unsafe { _mm256_blendv_ps(others.0, self.0, _mm256_castsi256_ps(mask)) })
        }
        #[inline(always)]
        fn totals([a, b, c, d, e, f, g, h]: [Self; LANES]) -> Self {
            /// The sums of both halves of `x`, and of those of `y`.
            #[inline(always)]
            fn halves(x: __m256, y: __m256) -> __m256 {
                unsafe {
                    let low = _mm256_permute2f128_ps::<0x20>(x, y);
                    _mm256_add_ps(low, _mm256_permute2f128_ps::<0x31>(x, y))
                }
            }
            Self(unsafe {
                let low = _mm256_hadd_ps(halves(a.0, e.0), halves(b.0, f.0));
                _mm256_hadd_ps(low, _mm256_hadd_ps(halves(c.0, g.0), halves(d.0, h.0)))
            })
        }
    }

    /// Eight numbers of double precision.
    #[derive(Clone, Copy)]
    #[allow(unreachable_pub, reason = "named by a public trait")]
    pub struct Double(__m256d, __m256d);

    impl Lanes<f64> for Double {
        #[inline(always)]
        fn splat(x: f64) -> Self {
            unsafe { Self(_mm256_set1_pd(x), _mm256_set1_pd(x)) }
        }
        #[inline(always)]
        fn load(x: &[f64; LANES]) -> Self {
            unsafe { Self(_mm256_loadu_pd(x.as_ptr()), _mm256_loadu_pd(x[4..].as_ptr())) }
        }
        #[inline(always)]
        fn store(self, to: &mut [f64; LANES]) {
            unsafe {
                _mm256_storeu_pd(to.as_mut_ptr(), self.0);
                _mm256_storeu_pd(to[4..].as_mut_ptr(), self.1);
            }
        }
        #[inline(always)]
        fn add(self, other: Self) -> Self {
            unsafe { Self(_mm256_add_pd(self.0, other.0), _mm256_add_pd(self.1, other.1)) }
        }
        #[inline(always)]
        fn sub(self, other: Self) -> Self {
            unsafe { Self(_mm256_sub_pd(self.0, other.0), _mm256_sub_pd(self.1, other.1)) }
        }
        #[inline(always)]
        fn mul(self, other: Self) -> Self {
            unsafe { Self(_mm256_mul_pd(self.0, other.0), _mm256_mul_pd(self.1, other.1)) }
        }
        #[inline(always)]
        fn div(self, other: Self) -> Self {
            unsafe { Self(_mm256_div_pd(self.0, other.0), _mm256_div_pd(self.1, other.1)) }
        }
        #[inline(always)]
        fn sqrt(self) -> Self {
            unsafe { Self(_mm256_sqrt_pd(self.0), _mm256_sqrt_pd(self.1)) }
        }
        #[inline(always)]
        fn mul_add(self, a: Self, b: Self) -> Self {
            unsafe { Self(_mm256_fmadd_pd(self.0, a.0, b.0), _mm256_fmadd_pd(self.1, a.1, b.1)) }
        }
        #[inline(always)]
        fn min(self, other: Self) -> Self {
            unsafe { Self(_mm256_min_pd(self.0, other.0), _mm256_min_pd(self.1, other.1)) }
        }
        #[inline(always)]
        fn max(self, other: Self) -> Self {
            unsafe { Self(_mm256_max_pd(self.0, other.0), _mm256_max_pd(self.1, other.1)) }
        }
        #[inline(always)]
        fn if_positive(self, then: Self, otherwise: Self) -> Self {
            unsafe {
                let zero = _mm256_setzero_pd();
                let (low, high) = (
                    _mm256_cmp_pd::<_CMP_GT_OQ>(self.0, zero),
                    _mm256_cmp_pd::<_CMP_GT_OQ>(self.1, zero),
                );
                Self(
                    _mm256_blendv_pd(otherwise.0, then.0, low),
                    _mm256_blendv_pd(otherwise.1, then.1, high),
                )
            }
        }
        #[inline(always)]
        fn power_of_two(self) -> Self {
            Self::load(&each(self).power_of_two())
        }
        #[inline(always)]
        fn first(self, count: usize, others: Self) -> Self {
            Self::load(&each(self).first(count, each(others)))
        }
    }
}

/// `W` times eight numbers.
///
/// Loops over `W` are written as loops: what `map` and `from_fn` of arrays call is not always
/// inlined, and then is compiled for another processor than the kernel around it.
#[inline(always)]
pub(crate) fn load_all<S: Scalar, L: Lanes<S>, const W: usize>(x: &[[S; LANES]; W]) -> [L; W] {
    let mut all = [L::splat(S::ZERO); W];
    for i in 0..W {
        all[i] = L::load(&x[i]);
    }
    all
}

/// Their sum with others.
#[inline(always)]
pub(crate) fn add_all<S: Scalar, L: Lanes<S>, const W: usize>(
    mut x: [L; W],
    y: &[[S; LANES]; W],
) -> [L; W] {
    for i in 0..W {
        x[i] = x[i].add(L::load(&y[i]));
    }
    x
}

/// The way back.
#[inline(always)]
pub(crate) fn store_all<S: Scalar, L: Lanes<S>, const W: usize>(
    x: [L; W],
    to: &mut [[S; LANES]; W],
) {
    for i in 0..W {
        x[i].store(&mut to[i]);
    }
}

/// One by one.
#[inline(always)]
pub(crate) fn each<S: Scalar, L: Lanes<S>>(x: L) -> [S; LANES] {
    let mut each = [S::ZERO; LANES];
    x.store(&mut each);
    each
}

/// Their sum.
#[inline(always)]
pub(crate) fn total<S: Scalar, L: Lanes<S>>(x: L) -> S {
    let [a, b, c, d, e, f, g, h] = each(x);
    ((a + e) + (b + f)) + ((c + g) + (d + h))
}

/// Runs `body` on eight columns at a time of rows that are all padded to the same length.
macro_rules! for_lanes {
    (($($out:ident),*), ($($in:ident),*) => $body:expr) => {{
        $(let ($out, _) = $out.as_chunks_mut::<{ $crate::numeric::LANES }>();)*
        $(let ($in, _) = $in.as_chunks::<{ $crate::numeric::LANES }>();)*
        let count = [$($out.len(),)* $($in.len()),*].into_iter().min().unwrap_or(0);
        $(let $out = &mut $out[..count];)*
        $(let $in = &$in[..count];)*
        for i in 0..count {
            $(let $out = &mut $out[i];)*
            $(let $in = &$in[i];)*
            $body
        }
    }};
}
pub(crate) use for_lanes;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numeric::dispatch::{Arithmetic, Kernel, Plain, dispatch};

    /// Every operation on eight awkward numbers, as bits.
    struct All;

    impl Kernel for All {
        type Output = Vec<u32>;
        #[inline(always)]
        fn run<A: Arithmetic>(self) -> Vec<u32> {
            let x = [-2.0, -0.0, 0.0, 1.0, 3.5, f32::NAN, f32::INFINITY, -1e-30];
            let y = [1.0, 0.0, -0.0, f32::NAN, 2.0, 1.0, 1.0, 4.0_f32];
            let (a, b) = (A::Lanes::<f32>::load(&x), A::Lanes::<f32>::load(&y));
            // A sum in another order rounds otherwise.
            let c = A::Lanes::<f32>::load(&[0.1, 0.7, -3.3, 1e6, 2.5, 1e-3, 0.3, -9e5]);
            let one = A::Lanes::<f32>::splat(1.0);
            let mut bits = vec![];
            for lanes in [
                a.add(b),
                a.sub(b),
                a.mul(b),
                a.div(b),
                a.mul(a).sqrt(),
                a.min(b),
                a.max(b),
                a.if_positive(b, A::Lanes::<f32>::splat(7.0)),
                A::Lanes::<f32>::load(&[-126.0, -1.0, -0.0, 0.0, 1.0, 2.0, 23.0, 127.0])
                    .power_of_two(),
                a.first(0, b),
                a.first(3, b),
                a.first(8, b),
                Lanes::totals([
                    c,
                    c.mul(c),
                    a,
                    c.add(c),
                    c.min(one),
                    c.max(one),
                    c.sub(one),
                    c.div(one.add(one)),
                ]),
            ] {
                let mut out = [0.0; 8];
                lanes.store(&mut out);
                bits.extend(out.map(|x| if x.is_nan() { u32::MAX } else { x.to_bits() }));
            }
            bits
        }
    }

    #[test]
    fn the_processors_lanes_do_what_plain_ones_do() {
        assert_eq!(dispatch(All), All.run::<Plain>());
    }

    /// The first numbers of a slice, one more than they were, in a longer one.
    struct Part<'a>(&'a [f32]);

    impl Kernel for Part<'_> {
        type Output = Vec<f32>;
        #[inline(always)]
        fn run<A: Arithmetic>(self) -> Vec<f32> {
            let mut to = vec![-1.0; LANES];
            let lanes = A::Lanes::<f32>::load_some(self.0).add(A::Lanes::<f32>::splat(1.0));
            lanes.store_some(&mut to[..self.0.len()]);
            let mut all = [0.0; LANES];
            lanes.store(&mut all);
            to.extend(all);
            to
        }
    }

    #[test]
    fn fewer_than_eight_leave_the_rest_alone() {
        let x: Vec<f32> = (0_u8..7).map(|i| 2.0 + f32::from(i)).collect();
        for count in 0..LANES {
            let found = dispatch(Part(&x[..count]));
            assert_eq!(found, Part(&x[..count]).run::<Plain>(), "{count}");
            for (i, &found) in found.iter().enumerate() {
                let expected = match i % LANES {
                    lane if lane < count => x[lane] + 1.0,
                    // Beyond, nothing is written, and zero was read.
                    _ if i < LANES => -1.0,
                    _ => 1.0,
                };
                assert!((found - expected).abs() < 1e-6, "{i} of {count}: {found}");
            }
        }
    }
}
