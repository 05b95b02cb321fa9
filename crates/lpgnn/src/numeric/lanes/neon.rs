//! Eight numbers on ARM processors of 64 bits, all of which have NEON: two registers of single
//! precision, four of double.
#![allow(
    unsafe_code,
    clippy::undocumented_unsafe_blocks,
    reason = "SAFETY of every block: every such processor has these instructions; references to \
              arrays are valid to load and store"
)]

use std::arch::aarch64::{
    float32x4_t, float64x2_t, vaddq_f32, vaddq_f64, vaddq_s32, vbslq_f32, vbslq_f64, vcgtq_f32,
    vcgtq_f64, vcgtzq_f32, vcgtzq_f64, vcltq_f32, vcltq_f64, vcvtnq_s32_f32, vdivq_f32, vdivq_f64,
    vdupq_n_f32, vdupq_n_f64, vdupq_n_s32, vfmaq_f32, vfmaq_f64, vld1q_f32, vld1q_f64, vmulq_f32,
    vmulq_f64, vreinterpretq_f32_s32, vshlq_n_s32, vsqrtq_f32, vsqrtq_f64, vst1q_f32, vst1q_f64,
    vsubq_f32, vsubq_f64,
};

use super::{LANES, Lanes, Numbers, each};

/// Eight numbers of single precision.
#[derive(Clone, Copy)]
#[allow(unreachable_pub, reason = "named by a public trait")]
pub struct Single([float32x4_t; 2]);

/// Eight numbers of double precision.
#[derive(Clone, Copy)]
#[allow(unreachable_pub, reason = "named by a public trait")]
pub struct Double([float64x2_t; 4]);

/// `Numbers` and `Lanes` of `$count` registers of `$each` numbers.
macro_rules! registers {
    (
        $lanes:ident, $float:ident, $register:ident, $count:literal, $each:literal,
        $splat:ident, $load:ident, $store:ident, $add:ident, $sub:ident, $mul:ident, $div:ident,
        $sqrt:ident, $fma:ident, $less:ident, $greater:ident, $positive:ident, $select:ident,
        $power_of_two:ident
    ) => {
        impl $lanes {
            #[inline(always)]
            fn zip(mut self, other: Self, f: impl Fn($register, $register) -> $register) -> Self {
                for i in 0..$count {
                    self.0[i] = f(self.0[i], other.0[i]);
                }
                self
            }
        }

        impl Numbers<$float> for $lanes {
            #[inline(always)]
            fn splat(x: $float) -> Self {
                Self([unsafe { $splat(x) }; $count])
            }
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                self.zip(other, |a, b| unsafe { $add(a, b) })
            }
            #[inline(always)]
            fn sub(self, other: Self) -> Self {
                self.zip(other, |a, b| unsafe { $sub(a, b) })
            }
            #[inline(always)]
            fn mul(self, other: Self) -> Self {
                self.zip(other, |a, b| unsafe { $mul(a, b) })
            }
            #[inline(always)]
            fn div(self, other: Self) -> Self {
                self.zip(other, |a, b| unsafe { $div(a, b) })
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                self.zip(self, |a, _| unsafe { $sqrt(a) })
            }
            #[inline(always)]
            fn mul_add(self, a: Self, mut b: Self) -> Self {
                for i in 0..$count {
                    b.0[i] = unsafe { $fma(b.0[i], self.0[i], a.0[i]) };
                }
                b
            }
            // By comparison: the processor's own minimum of a number and what is none is none.
            #[inline(always)]
            fn min(self, other: Self) -> Self {
                self.zip(other, |a, b| unsafe { $select($less(a, b), a, b) })
            }
            #[inline(always)]
            fn max(self, other: Self) -> Self {
                self.zip(other, |a, b| unsafe { $select($greater(a, b), a, b) })
            }
            #[inline(always)]
            fn if_positive(self, then: Self, mut otherwise: Self) -> Self {
                for i in 0..$count {
                    otherwise.0[i] =
                        unsafe { $select($positive(self.0[i]), then.0[i], otherwise.0[i]) };
                }
                otherwise
            }
            #[inline(always)]
            fn power_of_two(self) -> Self {
                $power_of_two(self)
            }
            #[inline(always)]
            fn map(self, f: impl Fn($float) -> $float) -> Self {
                Self::load(&Numbers::map(each(self), f))
            }
        }

        impl Lanes<$float> for $lanes {
            #[inline(always)]
            fn load(x: &[$float; LANES]) -> Self {
                let mut all = Self::splat(0.0);
                for i in 0..$count {
                    all.0[i] = unsafe { $load(x[i * $each..][..$each].as_ptr()) };
                }
                all
            }
            #[inline(always)]
            fn store(self, to: &mut [$float; LANES]) {
                for i in 0..$count {
                    unsafe { $store(to[i * $each..][..$each].as_mut_ptr(), self.0[i]) }
                }
            }
            #[inline(always)]
            fn first(self, count: usize, others: Self) -> Self {
                Self::load(&Lanes::first(each(self), count, each(others)))
            }
        }
    };
}

registers!(
    Single,
    f32,
    float32x4_t,
    2,
    4,
    vdupq_n_f32,
    vld1q_f32,
    vst1q_f32,
    vaddq_f32,
    vsubq_f32,
    vmulq_f32,
    vdivq_f32,
    vsqrtq_f32,
    vfmaq_f32,
    vcltq_f32,
    vcgtq_f32,
    vcgtzq_f32,
    vbslq_f32,
    by_exponent
);
registers!(
    Double,
    f64,
    float64x2_t,
    4,
    2,
    vdupq_n_f64,
    vld1q_f64,
    vst1q_f64,
    vaddq_f64,
    vsubq_f64,
    vmulq_f64,
    vdivq_f64,
    vsqrtq_f64,
    vfmaq_f64,
    vcltq_f64,
    vcgtq_f64,
    vcgtzq_f64,
    vbslq_f64,
    one_by_one
);

/// `2^x`, whose exponent is a field of its bits.
#[inline(always)]
fn by_exponent(x: Single) -> Single {
    const BIAS: i32 = 127;
    const MANTISSA: i32 = 23;
    x.zip(x, |x, _| unsafe {
        let exponent = vaddq_s32(vcvtnq_s32_f32(x), vdupq_n_s32(BIAS));
        vreinterpretq_f32_s32(vshlq_n_s32::<MANTISSA>(exponent))
    })
}

/// `2^x` in double precision, which is for verification.
#[inline(always)]
fn one_by_one(x: Double) -> Double {
    Double::load(&each(x).power_of_two())
}
