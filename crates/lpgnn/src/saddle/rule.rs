use rayon::prelude::*;

use super::{Coordinates, check_positive};
use crate::numeric::{Arithmetic, Kernel, LANES, Lanes, dispatch, for_lanes};
use crate::parameters::others;
use crate::{Error, Scalar};

/// How a variable that descends follows its gradient.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PrimalRule {
    /// Adam, with the usual `β₁ = 0.9`, `β₂ = 0.999`, `ε = 10⁻⁸`.
    Adam,
    /// `z ← z − η ∂𝓛/∂z`
    Sgd,
}

/// Numbers below which a step is not worth a second thread.
const CHUNK: usize = 1 << 15;

impl PrimalRule {
    /// How many moments it keeps.
    pub(crate) fn moments(self) -> usize {
        match self {
            Self::Adam => 2,
            Self::Sgd => 0,
        }
    }

    /// One step down: `step` counts from 1.
    pub(crate) fn descend<S: Scalar>(
        self,
        lr: f64,
        step: u64,
        variable: &mut [S],
        gradient: &[S],
        moments: [&mut [S]; 2],
    ) {
        self.follow(-lr, step, variable, gradient, moments);
    }

    /// One step up. Besides the fixed-point solvers' exchange this is the only way in which
    /// something climbs the Lagrangian.
    pub(crate) fn ascend<S: Scalar>(
        self,
        lr: f64,
        step: u64,
        variable: &mut [S],
        gradient: &[S],
        moments: [&mut [S]; 2],
    ) {
        self.follow(lr, step, variable, gradient, moments);
    }

    fn follow<S: Scalar>(
        self,
        lr: f64,
        step: u64,
        variable: &mut [S],
        gradient: &[S],
        [first, second]: [&mut [S]; 2],
    ) {
        match self {
            Self::Adam => {
                #[allow(clippy::cast_precision_loss, reason = "far below 2⁵² steps")]
                let step = step as f64;
                let adam = AdamStep {
                    lr: S::of(lr / (1.0 - 0.9_f64.powf(step))),
                    correction: S::of(1.0 / (1.0 - 0.999_f64.powf(step))),
                };
                if variable.len() <= CHUNK {
                    adam.apply(variable, gradient, first, second);
                } else {
                    variable
                        .par_chunks_mut(CHUNK)
                        .zip(gradient.par_chunks(CHUNK))
                        .zip(first.par_chunks_mut(CHUNK).zip(second.par_chunks_mut(CHUNK)))
                        .for_each(|((x, d), (m, v))| adam.apply(x, d, m, v));
                }
            }
            Self::Sgd => axpy(S::of(lr), gradient, variable),
        }
    }
}

/// `m ← 0.9 m + 0.1 d`, `v ← 0.999 v + 0.001 d²`, `x ← x + η m̂ / (√v̂ + ε)`
#[derive(Clone, Copy)]
struct AdamStep<S> {
    /// `η / (1 − β₁ᵗ)`, negative to go down.
    lr: S,
    /// `1 / (1 − β₂ᵗ)`
    correction: S,
}

impl<S: Scalar> AdamStep<S> {
    #[inline(always)]
    fn eight<A: Arithmetic>(
        self,
        x: &mut [S; LANES],
        d: &[S; LANES],
        m: &mut [S; LANES],
        v: &mut [S; LANES],
    ) {
        let splat = |x: f64| A::Lanes::<S>::splat(S::of(x));
        let gradient = A::Lanes::<S>::load(d);
        let first = splat(0.9).mul_add(Lanes::load(m), splat(0.1).mul(gradient));
        let second = splat(0.999).mul_add(Lanes::load(v), splat(0.001).mul(gradient).mul(gradient));
        let root = A::Lanes::<S>::splat(self.correction).mul(second).sqrt().add(splat(1e-8));
        let step = A::Lanes::<S>::splat(self.lr).mul(first).div(root);
        A::Lanes::<S>::load(x).add(step).store(x);
        first.store(m);
        second.store(v);
    }

    fn apply(self, x: &mut [S], d: &[S], m: &mut [S], v: &mut [S]) {
        struct Apply<'a, S>(AdamStep<S>, &'a mut [S], &'a [S], &'a mut [S], &'a mut [S]);
        impl<S: Scalar> Kernel for Apply<'_, S> {
            type Output = ();
            #[inline(always)]
            fn run<A: Arithmetic>(self) {
                let Self(adam, x, d, m, v) = self;
                // The rest of fewer than eight goes the same way, in a copy that is filled up.
                let whole = x.len() / LANES * LANES;
                let (x, x_rest) = x.split_at_mut(whole);
                let (m, m_rest) = m.split_at_mut(whole);
                let (v, v_rest) = v.split_at_mut(whole);
                let (d, d_rest) = d.split_at(whole);
                for_lanes!((x, m, v), (d) => adam.eight::<A>(x, d, m, v));
                let fill = |rest: &[S]| -> [S; LANES] {
                    std::array::from_fn(|i| rest.get(i).copied().unwrap_or(S::ZERO))
                };
                let (mut x8, mut m8, mut v8) = (fill(x_rest), fill(m_rest), fill(v_rest));
                adam.eight::<A>(&mut x8, &fill(d_rest), &mut m8, &mut v8);
                let count = x_rest.len();
                x_rest.copy_from_slice(&x8[..count]);
                m_rest.copy_from_slice(&m8[..count]);
                v_rest.copy_from_slice(&v8[..count]);
            }
        }
        dispatch(Apply(self, x, d, m, v));
    }
}

/// `y ← y + a x`
pub(crate) fn axpy<S: Scalar>(a: S, x: &[S], y: &mut [S]) {
    let add = |y: &mut [S], x: &[S]| {
        for (y, &x) in y.iter_mut().zip(x) {
            *y += a * x;
        }
    };
    if y.len() <= CHUNK {
        add(y, x);
    } else {
        y.par_chunks_mut(CHUNK).zip(x.par_chunks(CHUNK)).for_each(|(y, x)| add(y, x));
    }
}

/// How the weights descend, in every solver.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct WeightDescent {
    /// Adam or plain descent.
    pub rule: PrimalRule,
    /// `η_θ`
    pub lr: f64,
    /// Updates after which the lr is half of what it was; none keeps it.
    pub lr_half_life: Option<f64>,
    /// How much of every weight is taken off per update, relative to the lr.
    pub weight_decay: f64,
}

impl Default for WeightDescent {
    fn default() -> Self {
        Self { rule: PrimalRule::Adam, lr: 0.01, lr_half_life: None, weight_decay: 0.0 }
    }
}

impl WeightDescent {
    /// # Errors
    ///
    /// [`Error::Option`], naming the first value that is not usable.
    pub fn check(&self) -> Result<(), Error> {
        check_positive("weight lr", self.lr)?;
        if let Some(lr_half_life) = self.lr_half_life {
            check_positive("lr-half-life", lr_half_life)?;
        }
        if self.weight_decay < 0.0 || !self.weight_decay.is_finite() {
            return Err(Error::Option {
                option: "weight-decay",
                value: self.weight_decay.to_string(),
                expected: "a number that is not negative is expected".into(),
            });
        }
        Ok(())
    }

    /// One step of the weights along the gradient in `memory`.
    pub(crate) fn step<S: Scalar>(&self, weights: &mut [S], memory: &mut super::OptimizerState<S>) {
        memory.weight_steps += 1;
        let lr = decayed(self.lr, self.lr_half_life, memory.weight_steps);
        if self.weight_decay > 0.0 {
            let keep = S::of(1.0 - lr * self.weight_decay);
            for range in others(weights.len(), &memory.undecayed) {
                weights[range].iter_mut().for_each(|w| *w *= keep);
            }
        }
        let super::OptimizerState { gradient, moments, weight_steps, coordinates, .. } = memory;
        let moments = pair(moments, |moments| &mut moments.weights);
        let descend = |weights: &mut [S], gradient: &[S]| {
            self.rule.descend(lr, *weight_steps, weights, gradient, moments);
        };
        if coordinates.is_empty() {
            descend(weights, &gradient.weights);
        } else {
            Coordinates::step(coordinates, weights, &mut gradient.weights, descend);
        }
    }
}

/// A lr after `step − 1` steps.
pub(super) fn decayed(lr: f64, lr_half_life: Option<f64>, step: u64) -> f64 {
    #[allow(clippy::cast_precision_loss, reason = "far below 2⁵² steps")]
    let passed = step.saturating_sub(1) as f64;
    lr_half_life.map_or(lr, |lr_half_life| lr * (-passed / lr_half_life).exp2())
}

/// The same part of the first two moments, empty where there are none.
pub(super) fn pair<'a, S, V>(
    moments: &'a mut [V],
    part: impl Fn(&'a mut V) -> &'a mut Vec<S>,
) -> [&'a mut [S]; 2] {
    let mut parts = moments.iter_mut().map(part);
    [
        parts.next().map(Vec::as_mut_slice).unwrap_or_default(),
        parts.next().map(Vec::as_mut_slice).unwrap_or_default(),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::OptimizerState;
    use super::*;
    use crate::lagrangian::Variables;

    #[test]
    fn what_is_exempt_does_not_decay() {
        let mut at = Variables { weights: vec![1.0_f64; 3], ..Variables::default() };
        let mut memory = OptimizerState::new(&at);
        memory.undecayed = std::iter::once(1..2).collect();
        let weight_decay = 0.5;
        let descent = WeightDescent {
            rule: PrimalRule::Sgd,
            lr: 0.1,
            weight_decay,
            ..WeightDescent::default()
        };
        descent.step(&mut at.weights, &mut memory);
        assert_eq!(at.weights, [0.95, 1.0, 0.95]);
    }
}
