use rayon::prelude::*;

use super::CHUNK;
use crate::Scalar;
use crate::numeric::{Arithmetic, Kernel, LANES, Lanes, Numbers, dispatch, for_lanes};

/// Adam.
///
/// ```text
/// m ← β₁ m + (1 − β₁) d      v ← β₂ v + (1 − β₂) d²      z ← z − η m̂ / (√v̂ + ε)
/// ```
///
/// with `m̂ = m / (1 − β₁ᵗ)` and `v̂ = v / (1 − β₂ᵗ)` at step `t`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adam {
    /// `η`
    pub lr: f64,
    /// `β₁`
    pub beta1: f64,
    /// `β₂`
    pub beta2: f64,
    /// `ε`
    pub epsilon: f64,
}

impl Adam {
    /// With this learning rate and the usual `β₁ = 0.9`, `β₂ = 0.999`, `ε = 10⁻⁸`.
    pub fn new(lr: f64) -> Self {
        Self { lr, beta1: 0.9, beta2: 0.999, epsilon: 1e-8 }
    }

    /// One step down. `step` counts from 1; `moments` are `m` and `v`, zero at first.
    pub fn descend<S: Scalar>(
        &self,
        step: u64,
        variable: &mut [S],
        gradient: &[S],
        moments: [&mut [S]; 2],
    ) {
        self.follow(-self.lr, step, variable, gradient, moments);
    }

    /// One step up.
    pub fn ascend<S: Scalar>(
        &self,
        step: u64,
        variable: &mut [S],
        gradient: &[S],
        moments: [&mut [S]; 2],
    ) {
        self.follow(self.lr, step, variable, gradient, moments);
    }

    fn follow<S: Scalar>(
        &self,
        lr: f64,
        step: u64,
        variable: &mut [S],
        gradient: &[S],
        [first, second]: [&mut [S]; 2],
    ) {
        let step = step as f64;
        let adam = AdamStep {
            lr: S::of(lr / (1.0 - self.beta1.powf(step))),
            correction: S::of(1.0 / (1.0 - self.beta2.powf(step))),
            keep: [S::of(self.beta1), S::of(self.beta2)],
            take: [S::of(1.0 - self.beta1), S::of(1.0 - self.beta2)],
            epsilon: S::of(self.epsilon),
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
}

/// All numbers of a step.
#[derive(Clone, Copy)]
struct AdamStep<S> {
    /// `η / (1 − β₁ᵗ)`, negative to go down.
    lr: S,
    /// `1 / (1 − β₂ᵗ)`
    correction: S,
    /// `β₁`, `β₂`
    keep: [S; 2],
    /// `1 − β₁`, `1 − β₂`
    take: [S; 2],
    epsilon: S,
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
        let splat = A::Lanes::<S>::splat;
        let ([keep1, keep2], [take1, take2]) = (self.keep.map(splat), self.take.map(splat));
        let gradient = A::Lanes::<S>::load(d);
        let first = keep1.mul_add(Lanes::load(m), take1.mul(gradient));
        let second = keep2.mul_add(Lanes::load(v), take2.mul(gradient).mul(gradient));
        let root = splat(self.correction).mul(second).sqrt().add(splat(self.epsilon));
        let step = splat(self.lr).mul(first).div(root);
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
