use std::fmt::Debug;

use crate::numeric::{Arithmetic, Kernel, dispatch};
use crate::{Error, Scalar};

/// A function `G` with `G(0) = 0` that turns a residual `a = x − f_a` into a constraint.
///
/// Implement it for a function of your own; [`ConstraintFunction`] has those of the paper. Put a
/// new one through [`check::constraint`](crate::check::constraint) before use.
pub trait Constraint<S: Scalar = f32>: Debug + Send + Sync {
    /// `G(a)`
    fn value(&self, a: S) -> S;

    /// `G'(a)`; at a kink, the subgradient `0`.
    fn derivative(&self, a: S) -> S;

    /// Both for many residuals: `value[i] = G(a[i])`, `derivative[i] = G'(a[i])`.
    fn evaluate(&self, a: &[S], value: &mut [S], derivative: &mut [S]) {
        for ((&a, g), d) in a.iter().zip(value).zip(derivative) {
            *g = self.value(a);
            *d = self.derivative(a);
        }
    }

    /// Whether `G(a) = 0` says only that components cancel when they are summed up, as it is for
    /// a function that takes both signs: then every component needs a multiplier of its own.
    fn takes_both_signs(&self) -> bool {
        self.value(S::ONE) * self.value(-S::ONE) < S::ZERO
    }
}

/// The functions `G` of the paper (its table 2).
///
/// | variant | name | `G(a)` | `G'(a)` |
/// |---|---|---|---|
/// | `Linear` | lin | `a` | `1` |
/// | `LinearInsensitive` | lin-ε | `max(a, ε) − max(−a, ε)` | `1` where `abs(a) > ε`, else `0` |
/// | `Absolute` | abs | `abs(a)` | `sign(a)` |
/// | `AbsoluteInsensitive` | abs-ε | `max(abs(a) − ε, 0)` | `sign(a)` where `abs(a) > ε`, else `0` |
/// | `Squared` | squared | `a²` | `2a` |
///
/// ```
/// use lpgnn::constraint::{Constraint, ConstraintFunction};
///
/// let g = ConstraintFunction::AbsoluteInsensitive { epsilon: 0.5 };
/// assert_eq!(g.value(-2.0_f64), 1.5);
/// assert_eq!(g.derivative(-2.0_f64), -1.0);
/// assert_eq!(g.value(0.3_f64), 0.0); // inside the tube: satisfied
/// ```
#[derive(
    Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case", tag = "g")]
pub enum ConstraintFunction {
    /// The residual itself.
    #[serde(rename = "lin")]
    Linear,
    /// The residual, with a tube of half-width ε in which the constraint counts as met.
    #[serde(rename = "lin-eps")]
    LinearInsensitive {
        /// Half-width `ε` of the tube in which the constraint counts as met.
        #[serde(default = "narrow")]
        #[schemars(extend("exclusiveMinimum" = 0))]
        epsilon: f64,
    },
    /// The absolute value of the residual.
    #[serde(rename = "abs")]
    Absolute,
    /// The absolute value of the residual in excess of ε.
    #[serde(rename = "abs-eps")]
    AbsoluteInsensitive {
        /// Half-width `ε` of the tube in which the constraint counts as met.
        #[serde(default = "narrow")]
        #[schemars(extend("exclusiveMinimum" = 0))]
        epsilon: f64,
    },
    /// The square of the residual.
    Squared,
}

/// The width of a tube, by default.
fn narrow() -> f64 {
    0.01
}

impl ConstraintFunction {
    /// The same, with ε known to be usable.
    ///
    /// # Errors
    ///
    /// [`Error::Option`] when ε is not positive and finite.
    pub fn check(self) -> Result<Self, Error> {
        match self {
            Self::LinearInsensitive { epsilon } | Self::AbsoluteInsensitive { epsilon }
                if !(epsilon > 0.0 && epsilon.is_finite()) =>
            {
                Err(Error::Option {
                    option: "epsilon",
                    value: epsilon.to_string(),
                    expected: "a positive, finite half-width is expected".into(),
                })
            }
            usable => Ok(usable),
        }
    }
}

impl<S: Scalar> Constraint<S> for ConstraintFunction {
    #[inline(always)]
    fn value(&self, a: S) -> S {
        match *self {
            Self::Linear => a,
            Self::LinearInsensitive { epsilon } => {
                sign(a) * (a.abs() - S::of(epsilon)).max(S::ZERO)
            }
            Self::Absolute => a.abs(),
            Self::AbsoluteInsensitive { epsilon } => (a.abs() - S::of(epsilon)).max(S::ZERO),
            Self::Squared => a * a,
        }
    }

    #[inline(always)]
    fn derivative(&self, a: S) -> S {
        match *self {
            Self::Linear => S::ONE,
            Self::LinearInsensitive { epsilon } if a.abs() > S::of(epsilon) => S::ONE,
            Self::AbsoluteInsensitive { epsilon } if a.abs() > S::of(epsilon) => sign(a),
            Self::LinearInsensitive { .. } | Self::AbsoluteInsensitive { .. } => S::ZERO,
            Self::Absolute => sign(a),
            Self::Squared => a + a,
        }
    }

    fn evaluate(&self, a: &[S], value: &mut [S], derivative: &mut [S]) {
        dispatch(Evaluate { g: *self, a, value, derivative });
    }

    fn takes_both_signs(&self) -> bool {
        matches!(self, Self::Linear | Self::LinearInsensitive { .. })
    }
}

struct Evaluate<'a, S> {
    g: ConstraintFunction,
    a: &'a [S],
    value: &'a mut [S],
    derivative: &'a mut [S],
}

impl<S: Scalar> Kernel for Evaluate<'_, S> {
    type Output = ();

    #[inline(always)]
    fn run<A: Arithmetic>(self) {
        // The function is known in every arm, so that nothing is asked per residual.
        use ConstraintFunction::{
            Absolute, AbsoluteInsensitive, Linear, LinearInsensitive, Squared,
        };
        match self.g {
            Linear => self.each(Linear),
            LinearInsensitive { epsilon } => self.each(LinearInsensitive { epsilon }),
            Absolute => self.each(Absolute),
            AbsoluteInsensitive { epsilon } => self.each(AbsoluteInsensitive { epsilon }),
            Squared => self.each(Squared),
        }
    }
}

impl<S: Scalar> Evaluate<'_, S> {
    #[inline(always)]
    fn each(self, g: ConstraintFunction) {
        for ((&a, value), derivative) in self.a.iter().zip(self.value).zip(self.derivative) {
            *value = g.value(a);
            *derivative = g.derivative(a);
        }
    }
}

/// `−1`, `0` or `1`. (`f64::signum` will not do: it is `1` at `+0`.)
#[inline(always)]
fn sign<S: Scalar>(a: S) -> S {
    if a > S::ZERO {
        S::ONE
    } else if a < S::ZERO {
        -S::ONE
    } else {
        S::ZERO
    }
}

#[cfg(test)]
mod tests {
    use super::ConstraintFunction::{
        Absolute, AbsoluteInsensitive, Linear, LinearInsensitive, Squared,
    };
    use super::*;
    use crate::check;

    const ALL: [ConstraintFunction; 5] = [
        Linear,
        LinearInsensitive { epsilon: 0.1 },
        Absolute,
        AbsoluteInsensitive { epsilon: 0.1 },
        Squared,
    ];

    #[test]
    fn every_function_of_the_paper_keeps_the_contract() {
        for g in ALL {
            check::constraint(&g).unwrap();
        }
    }

    #[test]
    fn the_insensitive_linear_function_is_the_papers() {
        let g = LinearInsensitive { epsilon: 0.1 };
        for a in [-2.0, -0.1, -0.05, 0.0, 0.07, 0.1, 0.3_f64] {
            let paper = f64::max(a, 0.1) - f64::max(-a, 0.1);
            assert!((g.value(a) - paper).abs() < 1e-15, "at {a}");
        }
    }

    #[test]
    fn a_tube_without_width_is_refused() {
        let error = AbsoluteInsensitive { epsilon: 0.0 }.check().unwrap_err();
        let sentence = "epsilon is 0, but a positive, finite half-width is expected";
        assert_eq!(error.to_string(), sentence);
    }
}
