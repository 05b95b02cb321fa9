use super::lanes::Lanes;
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

/// What eight numbers are on a processor.
pub(crate) trait Arithmetic {
    /// Eight numbers.
    type Lanes<S: Scalar>: Lanes<S>;

    /// Starts to fetch the number at `place` from memory, if there is one; nobody waits for it.
    #[inline(always)]
    fn prefetch<S>(numbers: &[S], place: usize) {
        let _ = (numbers, place);
    }
}

/// On any processor.
pub(crate) struct Plain;

impl Arithmetic for Plain {
    type Lanes<S: Scalar> = [S; super::LANES];
}

/// On an x86 processor with AVX2 and FMA.
#[cfg(target_arch = "x86_64")]
pub(crate) struct Avx2;

#[cfg(target_arch = "x86_64")]
impl Arithmetic for Avx2 {
    type Lanes<S: Scalar> = S::Avx2;

    #[inline(always)]
    fn prefetch<S>(numbers: &[S], place: usize) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let address = numbers.as_ptr().wrapping_add(place);
        // SAFETY: a prefetch is a hint, which no address makes fail.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) }
    }
}

/// Runs `kernel` on the widest vectors the processor has.
#[inline]
pub(crate) fn dispatch<K: Kernel>(kernel: K) -> K::Output {
    #[cfg(test)]
    if PLAINLY.get() {
        return kernel.run::<Plain>();
    }
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2,fma")]
        fn avx2<K: Kernel>(kernel: K) -> K::Output {
            kernel.run::<Avx2>()
        }
        if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma")
        {
            // SAFETY: the processor has just been found to have both features.
            return unsafe { avx2(kernel) };
        }
    }
    kernel.run::<Plain>()
}

#[cfg(test)]
thread_local! {
    static PLAINLY: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Runs `work` as on a processor that has nothing special, on this thread.
#[cfg(test)]
pub(crate) fn plainly<T>(work: impl FnOnce() -> T) -> T {
    PLAINLY.set(true);
    let result = work();
    PLAINLY.set(false);
    result
}
