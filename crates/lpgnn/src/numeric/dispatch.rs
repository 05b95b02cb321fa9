use crate::Scalar;

/// A loop that is compiled once per instruction set and runs on the best one the processor has.
///
/// Everything [`run`](Kernel::run) calls must be `#[inline(always)]`: only what is inlined into
/// the dispatched function is compiled for its instructions.
pub(crate) trait Kernel {
    /// What the loop returns.
    type Output;
    /// The loop, written for any arithmetic.
    fn run<A: Arithmetic>(self) -> Self::Output;
}

/// Whether a product and a sum round once or twice.
#[allow(unreachable_pub, reason = "named in a public trait")]
pub trait Arithmetic {
    #[doc(hidden)]
    fn mul_add<S: Scalar>(a: S, b: S, c: S) -> S;
}

/// With the processor's fused instruction.
pub(crate) struct Fused;
/// Without it; a call to the library's `fma` would be far slower than two operations.
pub(crate) struct Plain;

impl Arithmetic for Fused {
    #[inline(always)]
    fn mul_add<S: Scalar>(a: S, b: S, c: S) -> S {
        a.mul_add(b, c)
    }
}

impl Arithmetic for Plain {
    #[inline(always)]
    fn mul_add<S: Scalar>(a: S, b: S, c: S) -> S {
        a * b + c
    }
}

/// Runs `kernel` on the widest vectors the processor has.
#[inline]
pub(crate) fn dispatch<K: Kernel>(kernel: K) -> K::Output {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2,fma")]
        fn avx2<K: Kernel>(kernel: K) -> K::Output {
            kernel.run::<Fused>()
        }
        if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma")
        {
            // SAFETY: the processor has just been found to have both features.
            return unsafe { avx2(kernel) };
        }
    }
    #[cfg(target_arch = "aarch64")]
    {
        // Every 64-bit ARM processor has the fused instruction and vectors of 16 bytes.
        return kernel.run::<Fused>();
    }
    #[allow(unreachable_code, reason = "the fallback of every other processor")]
    kernel.run::<Plain>()
}
