//! Eight numbers on x86 processors with AVX2 and FMA.
#![allow(
    unsafe_code,
    clippy::undocumented_unsafe_blocks,
    reason = "SAFETY of every block: these types are only named by the loops that `dispatch` runs \
              after it has found AVX2 and FMA; references to arrays are valid to load and store"
)]

use std::arch::x86_64::{
    __m256, __m256d, __m256i, _CMP_GT_OQ, _mm_castps_si128, _mm_cvtss_f32, _mm_movehl_ps,
    _mm_storel_epi64, _mm_storeu_ps, _mm256_add_epi32, _mm256_add_pd, _mm256_add_ps,
    _mm256_blendv_pd, _mm256_blendv_ps, _mm256_castps256_ps128, _mm256_castsi256_ps, _mm256_cmp_pd,
    _mm256_cmp_ps, _mm256_cvtps_epi32, _mm256_div_pd, _mm256_div_ps, _mm256_extractf128_ps,
    _mm256_fmadd_pd, _mm256_fmadd_ps, _mm256_hadd_ps, _mm256_loadu_pd, _mm256_loadu_ps,
    _mm256_loadu_si256, _mm256_maskload_ps, _mm256_max_pd, _mm256_max_ps, _mm256_min_pd,
    _mm256_min_ps, _mm256_mul_pd, _mm256_mul_ps, _mm256_permute2f128_ps, _mm256_set1_epi32,
    _mm256_set1_pd, _mm256_set1_ps, _mm256_setzero_pd, _mm256_setzero_ps, _mm256_slli_epi32,
    _mm256_sqrt_pd, _mm256_sqrt_ps, _mm256_storeu_pd, _mm256_storeu_ps, _mm256_sub_pd,
    _mm256_sub_ps,
};

use super::{LANES, Lanes, Numbers, each};

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

impl Numbers<f32> for Single {
    #[inline(always)]
    fn splat(x: f32) -> Self {
        Self(unsafe { _mm256_set1_ps(x) })
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
            let exponent = _mm256_add_epi32(_mm256_cvtps_epi32(self.0), _mm256_set1_epi32(BIAS));
            _mm256_castsi256_ps(_mm256_slli_epi32::<MANTISSA>(exponent))
        })
    }
    #[inline(always)]
    fn map(self, f: impl Fn(f32) -> f32) -> Self {
        Self::load(&Numbers::map(each(self), f))
    }
}

impl Lanes<f32> for Single {
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

impl Numbers<f64> for Double {
    #[inline(always)]
    fn splat(x: f64) -> Self {
        unsafe { Self(_mm256_set1_pd(x), _mm256_set1_pd(x)) }
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
    fn map(self, f: impl Fn(f64) -> f64) -> Self {
        Self::load(&Numbers::map(each(self), f))
    }
}

impl Lanes<f64> for Double {
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
    fn first(self, count: usize, others: Self) -> Self {
        Self::load(&Lanes::first(each(self), count, each(others)))
    }
}
