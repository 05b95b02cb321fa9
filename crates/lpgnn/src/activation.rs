use crate::Scalar;
use crate::numeric::{Arithmetic, Kernel, dispatch, tanh};

/// The function that a unit of a network applies to its sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
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
/// All of them keep zero, so padding stays zero; all have slopes of at most 1.
pub(crate) trait Unit {
    /// The activation of `a`.
    fn value<A: Arithmetic, S: Scalar>(a: S) -> S;
    /// The slope where the activation is `y`; `0` at a kink.
    fn slope<S: Scalar>(y: S) -> S;
}

pub(crate) struct Tanh;
pub(crate) struct Relu;
pub(crate) struct LeakyRelu;
pub(crate) struct Identity;

impl Unit for Tanh {
    #[inline(always)]
    fn value<A: Arithmetic, S: Scalar>(a: S) -> S {
        tanh::<A, S>(a)
    }
    #[inline(always)]
    fn slope<S: Scalar>(y: S) -> S {
        S::ONE - y * y
    }
}

impl Unit for Relu {
    #[inline(always)]
    fn value<A: Arithmetic, S: Scalar>(a: S) -> S {
        a.max(S::ZERO)
    }
    #[inline(always)]
    fn slope<S: Scalar>(y: S) -> S {
        if y > S::ZERO { S::ONE } else { S::ZERO }
    }
}

impl Unit for LeakyRelu {
    #[inline(always)]
    fn value<A: Arithmetic, S: Scalar>(a: S) -> S {
        if a > S::ZERO { a } else { a * S::of(LEAK) }
    }
    #[inline(always)]
    fn slope<S: Scalar>(y: S) -> S {
        if y > S::ZERO { S::ONE } else { S::of(LEAK) }
    }
}

impl Unit for Identity {
    #[inline(always)]
    fn value<A: Arithmetic, S: Scalar>(a: S) -> S {
        a
    }
    #[inline(always)]
    fn slope<S: Scalar>(_: S) -> S {
        S::ONE
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

/// `Y ← σ(Y + b)`, row by row; `bias` is as long as a row.
pub(crate) fn activate<S: Scalar>(activation: Activation, bias: &[S], y: &mut [S]) {
    struct Activate<'a, S, U>(&'a [S], &'a mut [S], std::marker::PhantomData<U>);
    impl<S: Scalar, U: Unit> Kernel for Activate<'_, S, U> {
        type Output = ();
        #[inline(always)]
        fn run<A: Arithmetic>(self) {
            for row in self.1.chunks_exact_mut(self.0.len()) {
                for (y, &b) in row.iter_mut().zip(self.0) {
                    *y = U::value::<A, S>(*y + b);
                }
            }
        }
    }
    if !bias.is_empty() {
        with_unit!(activation, U => {
            dispatch(Activate::<S, U>(bias, y, std::marker::PhantomData));
        });
    }
}

/// `D ← D ⊙ σ'`, where the activation was `y`.
pub(crate) fn differentiate<S: Scalar>(activation: Activation, y: &[S], d: &mut [S]) {
    struct Differentiate<'a, S, U>(&'a [S], &'a mut [S], std::marker::PhantomData<U>);
    impl<S: Scalar, U: Unit> Kernel for Differentiate<'_, S, U> {
        type Output = ();
        #[inline(always)]
        fn run<A: Arithmetic>(self) {
            for (d, &y) in self.1.iter_mut().zip(self.0) {
                *d *= U::slope(y);
            }
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
                    let mut y = [a];
                    activate(activation, &[0.0], &mut y);
                    y[0]
                };
                let mut slope = [1.0];
                differentiate(activation, &[value(a)], &mut slope);
                let expected = (value(a + h) - value(a - h)) / (2.0 * h);
                assert!((slope[0] - expected).abs() < 1e-8, "{activation:?} at {a}");
            }
        }
    }

    #[test]
    fn zero_stays_zero() {
        for activation in ALL {
            let mut y = [0.0_f32];
            activate(activation, &[0.0], &mut y);
            assert!(y[0].to_bits() == 0, "{activation:?}");
        }
    }
}
