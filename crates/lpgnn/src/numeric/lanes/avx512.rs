//! Several times eight numbers on x86 processors with AVX-512: sixteen to a register, and eight in
//! the lower half of the last if their count is odd.
#![allow(
    unsafe_code,
    clippy::undocumented_unsafe_blocks,
    reason = "SAFETY of every block: these types are only named by the loops that `dispatch` runs \
              after it has found AVX-512; references to arrays are valid to load and store, and \
              where a mask is zero nothing is read or written"
)]

use std::arch::x86_64::{
    __m512, __mmask16, _CMP_GT_OQ, _mm512_add_epi32, _mm512_add_ps, _mm512_castsi512_ps,
    _mm512_cmp_ps_mask, _mm512_cvtps_epi32, _mm512_div_ps, _mm512_fmadd_ps, _mm512_loadu_ps,
    _mm512_mask_blend_ps, _mm512_mask_storeu_ps, _mm512_maskz_loadu_ps, _mm512_max_ps,
    _mm512_min_ps, _mm512_mul_ps, _mm512_set1_epi32, _mm512_set1_ps, _mm512_setzero_ps,
    _mm512_slli_epi32, _mm512_sqrt_ps, _mm512_storeu_ps, _mm512_sub_ps,
};

use super::avx2::Single;
use super::{Eights, LANES, Lanes, Numbers};

/// Numbers in a register.
const SIXTEEN: usize = 2 * LANES;

/// `W` times eight numbers of single precision.
#[derive(Clone, Copy)]
#[allow(unreachable_pub, reason = "named by a public trait")]
pub struct Singles<const W: usize> {
    /// Of these the first `W / 2` are used; the compiler drops the others.
    wide: [__m512; W],
    /// Used if `W` is odd: eight divisions and roots take half the time of sixteen.
    last: Single,
}

/// The first `count` of sixteen.
#[inline(always)]
fn mask(count: usize) -> __mmask16 {
    if count < SIXTEEN { (1 << count) - 1 } else { __mmask16::MAX }
}

/// An operation on all registers.
macro_rules! on_each_register {
    ($($name:ident($($other:ident),*) => $wide:ident;)*) => {$(
        #[inline(always)]
        fn $name(mut self, $($other: Self),*) -> Self {
            for i in 0..W / 2 {
                self.wide[i] = unsafe { $wide(self.wide[i], $($other.wide[i]),*) };
            }
            if W % 2 == 1 {
                self.last = self.last.$name($($other.last),*);
            }
            self
        }
    )*};
}

#[inline(always)]
unsafe fn if_positive(x: __m512, then: __m512, otherwise: __m512) -> __m512 {
    unsafe {
        let positive = _mm512_cmp_ps_mask::<_CMP_GT_OQ>(x, _mm512_setzero_ps());
        _mm512_mask_blend_ps(positive, otherwise, then)
    }
}

#[inline(always)]
unsafe fn power_of_two(x: __m512) -> __m512 {
    const BIAS: i32 = 127;
    const MANTISSA: u32 = 23;
    unsafe {
        let exponent = _mm512_add_epi32(_mm512_cvtps_epi32(x), _mm512_set1_epi32(BIAS));
        _mm512_castsi512_ps(_mm512_slli_epi32::<MANTISSA>(exponent))
    }
}

impl<const W: usize> Numbers<f32> for Singles<W> {
    #[inline(always)]
    fn splat(x: f32) -> Self {
        Self { wide: [unsafe { _mm512_set1_ps(x) }; W], last: Single::splat(x) }
    }
    on_each_register! {
        add(other) => _mm512_add_ps;
        sub(other) => _mm512_sub_ps;
        mul(other) => _mm512_mul_ps;
        div(other) => _mm512_div_ps;
        sqrt() => _mm512_sqrt_ps;
        mul_add(a, b) => _mm512_fmadd_ps;
        min(other) => _mm512_min_ps;
        max(other) => _mm512_max_ps;
        if_positive(then, otherwise) => if_positive;
        power_of_two() => power_of_two;
    }
    #[inline(always)]
    fn map(self, f: impl Fn(f32) -> f32) -> Self {
        let mut each = [[0.0; LANES]; W];
        self.store(&mut each);
        each.as_flattened_mut().iter_mut().for_each(|x| *x = f(*x));
        Self::load(&each)
    }
}

impl<const W: usize> Eights<f32, W> for Singles<W> {
    #[inline(always)]
    fn load(x: &[[f32; LANES]; W]) -> Self {
        let mut all = Self::splat(0.0);
        let x = x.as_flattened();
        for i in 0..W / 2 {
            all.wide[i] = unsafe { _mm512_loadu_ps(x[i * SIXTEEN..][..SIXTEEN].as_ptr()) };
        }
        if W % 2 == 1 {
            all.last = Single::load(x.last_chunk().expect("at least eight"));
        }
        all
    }
    #[inline(always)]
    fn store(self, to: &mut [[f32; LANES]; W]) {
        let to = to.as_flattened_mut();
        for i in 0..W / 2 {
            let to = &mut to[i * SIXTEEN..][..SIXTEEN];
            unsafe { _mm512_storeu_ps(to.as_mut_ptr(), self.wide[i]) }
        }
        if W % 2 == 1 {
            self.last.store(to.last_chunk_mut().expect("at least eight"));
        }
    }
    #[inline(always)]
    fn load_some(x: &[f32]) -> Self {
        let mut all = Self::splat(0.0);
        for i in 0..W / 2 {
            let x = x.get(i * SIXTEEN..).unwrap_or(&[]);
            all.wide[i] = unsafe { _mm512_maskz_loadu_ps(mask(x.len()), x.as_ptr()) };
        }
        if W % 2 == 1 {
            all.last = Single::load_some(x.get(W / 2 * SIXTEEN..).unwrap_or(&[]));
        }
        all
    }
    #[inline(always)]
    fn store_some(self, to: &mut [f32]) {
        for i in 0..W / 2 {
            let to = to.get_mut(i * SIXTEEN..).unwrap_or(&mut []);
            unsafe { _mm512_mask_storeu_ps(to.as_mut_ptr(), mask(to.len()), self.wide[i]) }
        }
        if W % 2 == 1 {
            self.last.store_some(to.get_mut(W / 2 * SIXTEEN..).unwrap_or(&mut []));
        }
    }
}
