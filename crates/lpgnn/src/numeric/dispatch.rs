use std::sync::atomic::{AtomicU8, Ordering};

use super::lanes::{EachEight, Eights, Lanes};
use crate::{Error, Scalar};

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

/// What numbers are that go through a loop together, on a processor.
pub(crate) trait Arithmetic {
    /// Eight numbers.
    type Lanes<S: Scalar>: Lanes<S>;

    /// `W` times eight numbers.
    type Eights<S: Scalar, const W: usize>: Eights<S, W>;

    /// Numbers that products take at a time: as many as a register holds, at least eight.
    #[inline(always)]
    fn register<S: Scalar>() -> usize {
        super::LANES
    }

    /// Starts to fetch the number at `place` from memory, if there is one; nobody waits for it.
    #[inline(always)]
    fn prefetch<S>(numbers: &[S], place: usize) {
        let _ = (numbers, place);
    }
}

/// On any processor.
pub(crate) struct Portable;

impl Arithmetic for Portable {
    type Lanes<S: Scalar> = [S; super::LANES];
    type Eights<S: Scalar, const W: usize> = EachEight<Self::Lanes<S>, W>;
}

/// On an x86 processor with AVX2 and FMA.
#[cfg(target_arch = "x86_64")]
pub(crate) struct Avx2;

#[cfg(target_arch = "x86_64")]
impl Arithmetic for Avx2 {
    type Lanes<S: Scalar> = S::Avx2;
    type Eights<S: Scalar, const W: usize> = EachEight<S::Avx2, W>;

    #[inline(always)]
    fn prefetch<S>(numbers: &[S], place: usize) {
        prefetch(numbers, place);
    }
}

/// Starts to fetch the number at `place` from memory, where the processor can be told to; nobody waits for it.
#[inline(always)]
pub(crate) fn prefetch<S>(numbers: &[S], place: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let address = numbers.as_ptr().wrapping_add(place);
        // SAFETY: a prefetch is a hint, which no address makes fail.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (numbers, place);
}

/// On an x86 processor with AVX-512 for vectors of all lengths: eight numbers are what they are with
/// AVX2, in more registers, and several eights go two to a register.
#[cfg(target_arch = "x86_64")]
pub(crate) struct Avx512;

#[cfg(target_arch = "x86_64")]
impl Arithmetic for Avx512 {
    type Lanes<S: Scalar> = S::Avx2;
    type Eights<S: Scalar, const W: usize> = S::Avx512<W>;

    #[inline(always)]
    fn register<S: Scalar>() -> usize {
        // Double precision is for verification, and stays what it is with AVX2.
        if size_of::<S>() == 4 { 2 * super::LANES } else { super::LANES }
    }

    #[inline(always)]
    fn prefetch<S>(numbers: &[S], place: usize) {
        prefetch(numbers, place);
    }
}

/// On an ARM processor of 64 bits.
#[cfg(target_arch = "aarch64")]
pub(crate) struct Neon;

#[cfg(target_arch = "aarch64")]
impl Arithmetic for Neon {
    type Lanes<S: Scalar> = S::Neon;
    type Eights<S: Scalar, const W: usize> = EachEight<S::Neon, W>;
}

/// It names the best instruction set that may be used.
const VARIABLE: &str = "LPGNN_SIMD";

/// What a processor can do, the more the later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum InstructionSet {
    Portable = 1,
    #[cfg(target_arch = "aarch64")]
    Neon,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl InstructionSet {
    /// All there are for this kind of processor.
    const ALL: &'static [Self] = &[
        Self::Portable,
        #[cfg(target_arch = "aarch64")]
        Self::Neon,
        #[cfg(target_arch = "x86_64")]
        Self::Avx2,
        #[cfg(target_arch = "x86_64")]
        Self::Avx512,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            #[cfg(target_arch = "aarch64")]
            Self::Neon => "neon",
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => "avx512",
        }
    }

    /// Whether this processor has it.
    fn is_here(self) -> bool {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::is_x86_feature_detected as has;
            let avx2 = has!("avx2") && has!("fma");
            let avx512 =
                has!("avx512f") && has!("avx512vl") && has!("avx512dq") && has!("avx512bw");
            match self {
                Self::Portable => true,
                Self::Avx2 => avx2,
                Self::Avx512 => avx2 && avx512,
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        true
    }

    /// Those that this processor has.
    pub(crate) fn here() -> impl Iterator<Item = Self> {
        Self::ALL.iter().copied().filter(|set| set.is_here())
    }

    /// The best that the variable `LPGNN_SIMD` allows; none if it is not set.
    ///
    /// # Errors
    ///
    /// [`Error::Option`] if it is none of those for this kind of processor.
    pub(crate) fn most() -> Result<Option<Self>, Error> {
        let Some(name) = std::env::var_os(VARIABLE).filter(|name| !name.is_empty()) else {
            return Ok(None);
        };
        match Self::ALL.iter().find(|set| name == set.name()) {
            Some(set) => Ok(Some(*set)),
            None => Err(Error::Option {
                option: VARIABLE,
                value: format!("“{}”", name.to_string_lossy()),
                expected: format!(
                    "one of {} is expected",
                    Self::ALL.iter().map(|set| set.name()).collect::<Vec<_>>().join(", ")
                ),
            }),
        }
    }

    /// The best that this processor has and the variable `LPGNN_SIMD` allows.
    fn choose() -> Self {
        // Programs check it when they start; here there is nobody to tell.
        let most = Self::most().unwrap_or(None);
        let allowed = Self::here().filter(|&set| most.is_none_or(|most| set <= most));
        allowed.last().unwrap_or(Self::Portable)
    }

    /// The one that loops run on.
    #[inline]
    pub(crate) fn current() -> Self {
        /// Its number; 0 until it is chosen.
        static CHOSEN: AtomicU8 = AtomicU8::new(0);
        #[cfg(test)]
        if let Some(set) = FORCED.get() {
            return set;
        }
        match CHOSEN.load(Ordering::Relaxed) {
            #[cfg(target_arch = "x86_64")]
            number if number == Self::Avx512 as u8 => Self::Avx512,
            #[cfg(target_arch = "x86_64")]
            number if number == Self::Avx2 as u8 => Self::Avx2,
            #[cfg(target_arch = "aarch64")]
            number if number == Self::Neon as u8 => Self::Neon,
            number if number == Self::Portable as u8 => Self::Portable,
            _ => {
                // Several threads may do so at once: they choose alike.
                let chosen = Self::choose();
                CHOSEN.store(chosen as u8, Ordering::Relaxed);
                chosen
            }
        }
    }
}

/// That the variable `LPGNN_SIMD`, if it is set, names an instruction set; if it does not, it has no effect.
///
/// # Errors
///
/// [`Error::Option`], which names those for this kind of processor.
pub fn check_instruction_set() -> Result<(), Error> {
    InstructionSet::most().map(|_| ())
}

/// The [`register`](Arithmetic::register) of what loops run on.
#[inline]
pub(super) fn register<S: Scalar>() -> usize {
    match InstructionSet::current() {
        #[cfg(target_arch = "x86_64")]
        InstructionSet::Avx512 => Avx512::register::<S>(),
        _ => super::LANES,
    }
}

/// Runs `kernel` on the widest vectors there are.
#[inline]
pub(crate) fn dispatch<K: Kernel>(kernel: K) -> K::Output {
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    fn avx2<K: Kernel>(kernel: K) -> K::Output {
        kernel.run::<Avx2>()
    }
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma,avx512f,avx512vl,avx512dq,avx512bw")]
    fn avx512<K: Kernel>(kernel: K) -> K::Output {
        kernel.run::<Avx512>()
    }
    match InstructionSet::current() {
        InstructionSet::Portable => kernel.run::<Portable>(),
        #[cfg(target_arch = "aarch64")]
        InstructionSet::Neon => kernel.run::<Neon>(),
        // SAFETY: the processor has been found to have these features.
        #[cfg(target_arch = "x86_64")]
        InstructionSet::Avx2 => unsafe { avx2(kernel) },
        // SAFETY: likewise.
        #[cfg(target_arch = "x86_64")]
        InstructionSet::Avx512 => unsafe { avx512(kernel) },
    }
}

#[cfg(test)]
thread_local! {
    static FORCED: std::cell::Cell<Option<InstructionSet>> = const { std::cell::Cell::new(None) };
}

/// Runs `work` on every instruction set this processor has, one after the other, on this thread.
#[cfg(test)]
pub(crate) fn on_each(mut work: impl FnMut(InstructionSet)) {
    for set in InstructionSet::here() {
        FORCED.set(Some(set));
        work(set);
        FORCED.set(None);
    }
}
