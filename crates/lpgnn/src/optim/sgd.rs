use rayon::prelude::*;

use super::CHUNK;
use crate::Scalar;

/// Gradient descent: `z ← z − η ∂𝓛/∂z`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sgd {
    /// `η`
    pub lr: f64,
}

impl Sgd {
    /// With this learning rate.
    pub fn new(lr: f64) -> Self {
        Self { lr }
    }

    /// One step down.
    pub fn descend<S: Scalar>(&self, variable: &mut [S], gradient: &[S]) {
        axpy(S::of(-self.lr), gradient, variable);
    }

    /// One step up.
    pub fn ascend<S: Scalar>(&self, variable: &mut [S], gradient: &[S]) {
        axpy(S::of(self.lr), gradient, variable);
    }
}

/// `y ← y + a x`
pub fn axpy<S: Scalar>(a: S, x: &[S], y: &mut [S]) {
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
