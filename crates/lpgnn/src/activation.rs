use crate::Scalar;
use crate::numeric::{Arithmetic, Eights, Kernel, LANES, Lanes, Numbers, dispatch, for_lanes};

/// The function that a unit of a network applies to its sum.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Activation {
    /// `tanh(a)`
    #[default]
    Tanh,
    /// `max(a, 0)`
    Relu,
    /// `a` where it is positive, else `0.01 a`
    LeakyRelu,
    /// `a`
    Identity,
}

/// Slope of the leaky rectifier below zero.
const LEAK: f64 = 0.01;

/// An activation that the compiler knows, so that loops over it run on vectors.
///
/// All of them keep zero, so padding stays zero; all have slopes of at most 1 and pass a NaN on.
pub(crate) trait Unit {
    /// The activation of `a`.
    fn value<S: Scalar, N: Numbers<S>>(a: N) -> N;
    /// The slope where the activation is `y`; `0` or the leak at a kink.
    fn slope<S: Scalar, N: Numbers<S>>(y: N) -> N;
}

pub(crate) struct Tanh;
pub(crate) struct Relu;
pub(crate) struct LeakyRelu;
pub(crate) struct Identity;

impl Unit for Tanh {
    #[inline(always)]
    fn value<S: Scalar, N: Numbers<S>>(a: N) -> N {
        S::tanh_lanes(a)
    }
    #[inline(always)]
    fn slope<S: Scalar, N: Numbers<S>>(y: N) -> N {
        N::splat(S::ONE).sub(y.mul(y))
    }
}

impl Unit for Relu {
    #[inline(always)]
    fn value<S: Scalar, N: Numbers<S>>(a: N) -> N {
        N::splat(S::ZERO).max(a)
    }
    #[inline(always)]
    fn slope<S: Scalar, N: Numbers<S>>(y: N) -> N {
        y.if_positive(N::splat(S::ONE), N::splat(S::ZERO))
    }
}

impl Unit for LeakyRelu {
    #[inline(always)]
    fn value<S: Scalar, N: Numbers<S>>(a: N) -> N {
        a.mul(N::splat(S::of(LEAK))).max(a)
    }
    #[inline(always)]
    fn slope<S: Scalar, N: Numbers<S>>(y: N) -> N {
        y.if_positive(N::splat(S::ONE), N::splat(S::of(LEAK)))
    }
}

impl Unit for Identity {
    #[inline(always)]
    fn value<S: Scalar, N: Numbers<S>>(a: N) -> N {
        a
    }
    #[inline(always)]
    fn slope<S: Scalar, N: Numbers<S>>(_: N) -> N {
        N::splat(S::ONE)
    }
}

/// Runs `$body` with `$unit` standing for the type of the activation.
macro_rules! with_unit {
    ($activation:expr, $unit:ident => $body:expr) => {
        match $activation {
            $crate::activation::Activation::Tanh => {
                type $unit = $crate::activation::Tanh;
                $body
            }
            $crate::activation::Activation::Relu => {
                type $unit = $crate::activation::Relu;
                $body
            }
            $crate::activation::Activation::LeakyRelu => {
                type $unit = $crate::activation::LeakyRelu;
                $body
            }
            $crate::activation::Activation::Identity => {
                type $unit = $crate::activation::Identity;
                $body
            }
        }
    };
}
pub(crate) use with_unit;

/// `Y ← σ(Y)`; rows are padded.
pub(crate) fn activate<S: Scalar>(activation: Activation, y: &mut [S]) {
    struct Activate<'a, S, U>(&'a mut [S], std::marker::PhantomData<U>);
    impl<S: Scalar, U: Unit> Kernel for Activate<'_, S, U> {
        type Output = ();
        #[inline(always)]
        fn run<A: Arithmetic>(self) {
            let (fours, rest) = self.0.as_chunks_mut::<LANES>().0.as_chunks_mut::<4>();
            for y in fours {
                U::value(A::Eights::<S, 4>::load(y)).store(y);
            }
            for y in rest {
                U::value(A::Lanes::<S>::load(y)).store(y);
            }
        }
    }
    if activation != Activation::Identity {
        with_unit!(activation, U => dispatch(Activate::<S, U>(y, std::marker::PhantomData)));
    }
}

/// `D ← D ⊙ σ'`, where the activation was `y`; both have padded rows.
pub(crate) fn differentiate<S: Scalar>(activation: Activation, y: &[S], d: &mut [S]) {
    struct Differentiate<'a, S, U>(&'a [S], &'a mut [S], std::marker::PhantomData<U>);
    impl<S: Scalar, U: Unit> Kernel for Differentiate<'_, S, U> {
        type Output = ();
        #[inline(always)]
        fn run<A: Arithmetic>(self) {
            let (y, d) = (self.0, self.1);
            for_lanes!((d), (y) => {
                let slope = U::slope(A::Lanes::<S>::load(y));
                slope.mul(Lanes::load(d)).store(d);
            });
        }
    }
    with_unit!(activation, U => {
        dispatch(Differentiate::<S, U>(y, d, std::marker::PhantomData));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Activation; 4] =
        [Activation::Tanh, Activation::Relu, Activation::LeakyRelu, Activation::Identity];

    #[test]
    fn slope_is_the_derivative_away_from_kinks() {
        let h = 1e-6;
        for activation in ALL {
            for a in [-2.0, -0.3, 0.4, 1.7_f64] {
                let value = |a: f64| {
                    let mut y = [a; 8];
                    activate(activation, &mut y);
                    y[0]
                };
                let mut slope = [1.0; 8];
                differentiate(activation, &[value(a); 8], &mut slope);
                let expected = (value(a + h) - value(a - h)) / (2.0 * h);
                assert!((slope[0] - expected).abs() < 1e-8, "{activation:?} at {a}");
            }
        }
    }

    #[test]
    fn zero_stays_zero_and_nan_stays_nan() {
        for activation in ALL {
            let mut y = [0.0_f32; 8];
            activate(activation, &mut y);
            assert!(y.iter().all(|y| y.to_bits() == 0), "{activation:?}");
            let mut y = [f32::NAN; 8];
            activate(activation, &mut y);
            assert!(y.iter().all(|y| y.is_nan()), "{activation:?}");
        }
    }
}
