//! Numbers that go through a loop together, in the registers of the processor: eight, or several
//! times eight.
//!
//! Loops over plain arrays are left to the compiler's luck; these types say what is meant.

#[cfg(target_arch = "x86_64")]
pub(super) mod avx2;
#[cfg(target_arch = "x86_64")]
pub(super) mod avx512;
#[cfg(target_arch = "aarch64")]
pub(super) mod neon;
mod portable;

use crate::Scalar;

/// How many numbers go together.
pub(crate) const LANES: usize = 8;

/// Numbers that one instruction treats alike, or a few.
#[allow(unreachable_pub, reason = "a bound of a public trait must be public")]
pub trait Numbers<S>: Copy {
    #[doc(hidden)]
    fn splat(x: S) -> Self;
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
    /// `f` of each, one after the other.
    #[doc(hidden)]
    fn map(self, f: impl Fn(S) -> S) -> Self;
}

/// Eight numbers.
#[allow(unreachable_pub, reason = "a bound of a public trait must be public")]
pub trait Lanes<S>: Numbers<S> {
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

/// `W` times eight numbers, in as few registers as hold them.
#[allow(unreachable_pub, reason = "a bound of a public trait must be public")]
pub trait Eights<S, const W: usize>: Numbers<S> {
    #[doc(hidden)]
    fn load(x: &[[S; LANES]; W]) -> Self;
    #[doc(hidden)]
    fn store(self, to: &mut [[S; LANES]; W]);
    /// Fewer numbers, and zeros: the last register is not full, all others are.
    #[doc(hidden)]
    fn load_some(x: &[S]) -> Self;
    /// The first of them, likewise.
    #[doc(hidden)]
    fn store_some(self, to: &mut [S]);
}

/// `W` times eight numbers, eight by eight.
///
/// Loops over `W` are written as loops: what `map` and `from_fn` of arrays call is not always
/// inlined, and then is compiled for another processor than the kernel around it.
#[derive(Clone, Copy)]
#[allow(unreachable_pub, reason = "named by a public trait")]
pub struct EachEight<L, const W: usize>([L; W]);

/// An operation on all eights.
macro_rules! on_each_eight {
    ($($name:ident($($other:ident),*);)*) => {$(
        #[inline(always)]
        fn $name(mut self, $($other: Self),*) -> Self {
            for i in 0..W {
                self.0[i] = self.0[i].$name($($other.0[i]),*);
            }
            self
        }
    )*};
}

impl<S: Scalar, L: Lanes<S>, const W: usize> Numbers<S> for EachEight<L, W> {
    #[inline(always)]
    fn splat(x: S) -> Self {
        Self([L::splat(x); W])
    }
    on_each_eight! {
        add(other);
        sub(other);
        mul(other);
        div(other);
        sqrt();
        mul_add(a, b);
        min(other);
        max(other);
        if_positive(then, otherwise);
        power_of_two();
    }
    #[inline(always)]
    fn map(mut self, f: impl Fn(S) -> S) -> Self {
        for i in 0..W {
            self.0[i] = self.0[i].map(&f);
        }
        self
    }
}

impl<S: Scalar, L: Lanes<S>, const W: usize> Eights<S, W> for EachEight<L, W> {
    #[inline(always)]
    fn load(x: &[[S; LANES]; W]) -> Self {
        let mut all = [L::splat(S::ZERO); W];
        for i in 0..W {
            all[i] = L::load(&x[i]);
        }
        Self(all)
    }
    #[inline(always)]
    fn store(self, to: &mut [[S; LANES]; W]) {
        for i in 0..W {
            self.0[i].store(&mut to[i]);
        }
    }
    #[inline(always)]
    fn load_some(x: &[S]) -> Self {
        let (eights, rest) = x.as_chunks::<LANES>();
        let mut all = [L::splat(S::ZERO); W];
        for i in 0..W - 1 {
            all[i] = L::load(&eights[i]);
        }
        all[W - 1] = L::load_some(rest);
        Self(all)
    }
    #[inline(always)]
    fn store_some(self, to: &mut [S]) {
        let (eights, rest) = to.as_chunks_mut::<LANES>();
        for i in 0..W - 1 {
            self.0[i].store(&mut eights[i]);
        }
        self.0[W - 1].store_some(rest);
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
    use crate::numeric::dispatch::{
        Arithmetic, InstructionSet, Kernel, Portable, dispatch, on_each,
    };

    /// Awkward numbers, three times eight.
    const X: [f32; LANES] = [-2.0, -0.0, 0.0, 1.0, 3.5, f32::NAN, f32::INFINITY, -1e-30];
    const Y: [f32; LANES] = [1.0, 0.0, -0.0, f32::NAN, 2.0, 1.0, 1.0, 4.0];
    const WHOLE: [f32; LANES] = [-126.0, -1.0, -0.0, 0.0, 1.0, 2.0, 23.0, 127.0];

    /// The same for all that are not a number.
    fn bits(x: f32) -> u32 {
        if x.is_nan() { u32::MAX } else { x.to_bits() }
    }

    /// What must be the same on every processor.
    #[inline(always)]
    fn operations<N: Numbers<f32>>(a: N, b: N, whole: N) -> [N; 10] {
        [
            a.add(b),
            a.sub(b),
            a.mul(b),
            a.div(b),
            a.mul(a).sqrt(),
            a.min(b),
            a.max(b),
            a.if_positive(b, N::splat(7.0)),
            whole.power_of_two(),
            a.map(|x| x + 1.0),
        ]
    }

    /// Every operation on eight numbers, as bits.
    struct OnLanes;

    impl Kernel for OnLanes {
        type Output = Vec<u32>;
        #[inline(always)]
        fn run<A: Arithmetic>(self) -> Vec<u32> {
            let (a, b) = (A::Lanes::<f32>::load(&X), A::Lanes::<f32>::load(&Y));
            // A sum in another order rounds otherwise.
            let c = A::Lanes::<f32>::load(&[0.1, 0.7, -3.3, 1e6, 2.5, 1e-3, 0.3, -9e5]);
            let one = A::Lanes::<f32>::splat(1.0);
            let two = one.add(one);
            let totals = [c, c.mul(c), a, c.add(c), c.min(one), c.max(one), c.sub(one), c.div(two)];
            let others = [a.first(0, b), a.first(3, b), a.first(8, b), Lanes::totals(totals)];
            let all = operations(a, b, Lanes::load(&WHOLE)).into_iter().chain(others);
            all.flat_map(|lanes| each(lanes).map(bits)).collect()
        }
    }

    /// Every operation on `W` times eight numbers, as bits.
    struct OnEights<const W: usize>;

    impl<const W: usize> Kernel for OnEights<W> {
        type Output = Vec<u32>;
        #[inline(always)]
        fn run<A: Arithmetic>(self) -> Vec<u32> {
            // Each eight in another order, so that none can stand for another.
            let eights = |mut x: [f32; LANES]| {
                let mut all = [[0.0; LANES]; W];
                for eight in &mut all {
                    *eight = x;
                    x.rotate_left(1);
                }
                A::Eights::<f32, W>::load(&all)
            };
            let mut found = vec![];
            for eights in operations(eights(X), eights(Y), eights(WHOLE)) {
                let mut all = [[0.0; LANES]; W];
                eights.store(&mut all);
                found.extend(all.as_flattened().iter().copied().map(bits));
            }
            found
        }
    }

    #[test]
    fn every_processors_numbers_do_what_plain_ones_do() {
        on_each(|set| {
            assert_eq!(dispatch(OnLanes), OnLanes.run::<Portable>(), "{set:?}");
            assert_eq!(dispatch(OnEights::<1>), OnEights::<1>.run::<Portable>(), "{set:?}");
            assert_eq!(dispatch(OnEights::<2>), OnEights::<2>.run::<Portable>(), "{set:?}");
            assert_eq!(dispatch(OnEights::<5>), OnEights::<5>.run::<Portable>(), "{set:?}");
        });
    }

    /// The products of numbers whose rounding shows whether it was rounded in between.
    struct Fused;

    impl Kernel for Fused {
        type Output = [[f32; LANES]; 3];
        #[inline(always)]
        fn run<A: Arithmetic>(self) -> Self::Output {
            let (x, mut all) = (A::Eights::<f32, 3>::splat(1.0 + f32::EPSILON), [[0.0; LANES]; 3]);
            x.mul_add(x, A::Eights::<f32, 3>::splat(-1.0)).store(&mut all);
            all
        }
    }

    #[test]
    fn multiply_adds_round_once_but_on_any_processor() {
        let (x, twice) = (f64::from(1.0 + f32::EPSILON), 2.0 * f32::EPSILON);
        #[allow(clippy::cast_possible_truncation, reason = "one rounding is what is meant")]
        let once = (x * x - 1.0) as f32;
        on_each(|set| {
            let expected = if set == InstructionSet::Portable { twice } else { once };
            let found = dispatch(Fused);
            let same = found.as_flattened().iter().all(|x| x.to_bits() == expected.to_bits());
            assert!(same, "{set:?}: {found:?}");
        });
    }

    /// The first numbers of a slice, one more than they were, in a longer one; and all that went
    /// through the registers.
    struct Part<'a, const W: usize>(&'a [f32]);

    impl<const W: usize> Kernel for Part<'_, W> {
        type Output = [Vec<f32>; 2];
        #[inline(always)]
        fn run<A: Arithmetic>(self) -> [Vec<f32>; 2] {
            let (mut to, mut all) = (vec![-1.0; W * LANES], [[0.0; LANES]; W]);
            let some = A::Eights::<f32, W>::load_some(self.0).add(A::Eights::<f32, W>::splat(1.0));
            some.store_some(&mut to[..self.0.len()]);
            some.store(&mut all);
            if W == 1 {
                let mut again = vec![-1.0; LANES];
                let some = A::Lanes::<f32>::load_some(self.0).add(A::Lanes::<f32>::splat(1.0));
                some.store_some(&mut again[..self.0.len()]);
                assert!(again == to && each(some).map(bits) == all[0].map(bits), "one eight");
            }
            [to, all.as_flattened().to_vec()]
        }
    }

    fn leaves_the_rest_alone<const W: usize>() {
        let x: Vec<f32> = (0_u8..).take(W * LANES - 1).map(|i| 2.0 + f32::from(i)).collect();
        // Whatever a register holds, the last eight are in the last one.
        for count in (W - 1) * LANES..W * LANES {
            let [to, all] = dispatch(Part::<W>(&x[..count]));
            for i in 0..W * LANES {
                // Beyond, nothing is written, and zero was read.
                let expected = if i < count { [x[i] + 1.0; 2] } else { [-1.0, 1.0] };
                let right =
                    (to[i] - expected[0]).abs() < 1e-6 && (all[i] - expected[1]).abs() < 1e-6;
                assert!(right, "{i} of {count}: {} and {}", to[i], all[i]);
            }
        }
    }

    #[test]
    fn fewer_numbers_leave_the_rest_alone() {
        on_each(|_| {
            leaves_the_rest_alone::<1>();
            leaves_the_rest_alone::<2>();
            leaves_the_rest_alone::<5>();
        });
    }
}
