//! What residuals say about errors.
//!
//! With `X*` the fixed point, `e_v ≥ ‖x_v − x*_v‖` and `ρ_v ≥ ‖x_v − f_v(X)‖`, the triangle inequality and the
//! [sensitivity](crate::transition::Sensitivity) of `f_a` give in the norm `‖e‖ = max_v e_v / w_v` in which `f_a` contracts,
//! for layer `k` of a stack, which reads layer `k − 1` as features:
//!
//! ```text
//! e_v ≤ ‖x_v − f_v(X)‖ + ‖f_v(X) − f_v(X*)‖        L_k = max_v L_v        Φ_k = max_v Φ_v
//! E_k ≤ max_v ρ_v / w_v + L_k E_k + Φ_k E_{k−1}    ⟹    E_k ≤ (R_k + Φ_k E_{k−1}) / (1 − L_k)        E_0 = 0
//! ```
//!
//! So `E_K = Σ_k R_k Π_{j > k} Φ_j / Π_{j ≥ k} (1 − L_j)`, and residuals are reduced until each term is the same part of
//! the tolerance. What is computed in single precision is wrong by at most
//! [`rounding`](crate::transition::LocalTransition::rounding), which is part of `ρ`.

use crate::transition::{LocalTransition, Rounding, Sensitivity, Sizes};

/// A layer, and what is known of it.
#[derive(Debug)]
pub(super) struct Layer {
    pub(super) f: Box<dyn LocalTransition<f32>>,
    pub(super) sensitivity: Sensitivity,
    /// What it reads is no larger than this.
    pub(super) sizes: Sizes,
    pub(super) contraction: Contraction,
    /// The largest `ρ_v / w_v` that is left.
    pub(super) threshold: f64,
    /// The largest `ρ_v / w_v` that rounding alone gives.
    pub(super) floor: f64,
}

/// `L` and `Φ` of a layer: no node has larger ones.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Contraction {
    pub(super) states: f64,
    pub(super) features: f64,
}

impl Contraction {
    pub(super) fn and(self, other: Self) -> Self {
        Self { states: self.states.max(other.states), features: self.features.max(other.features) }
    }
}

/// How much larger than what rounding gives a residual has to be before it is worth a look.
pub(super) const ABOVE_FLOOR: f64 = 1.5;

impl Layer {
    /// The norm of a difference of states.
    #[inline]
    pub(super) fn norm(&self, a: &[f32], b: &[f32]) -> f64 {
        let differences = a.iter().zip(b).map(|(&a, &b)| f64::from(a) - f64::from(b));
        if self.sensitivity.weighing.is_largest_entry() {
            differences.fold(0.0, |largest, d| largest.max(d.abs()))
        } else {
            differences.map(|d| d * d).sum::<f64>().sqrt() * UP
        }
    }

    /// The residual beyond which a node is looked at, in units of its weight.
    pub(super) fn residual(&self) -> f64 {
        self.threshold.max(ABOVE_FLOOR * self.floor)
    }

    pub(super) fn rounding(&self, degree: usize) -> Rounding {
        self.f.rounding(self.sizes, degree)
    }
}

/// Covers the rounding of a few operations in double precision.
pub(super) const UP: f64 = 1.0 + 1e-12;

/// `E_k` of all layers, from the largest residuals `R_k`.
pub(super) fn errors(layers: &[Layer], residuals: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut below = 0.0;
    let layers = layers.iter().zip(residuals);
    let errors = layers.map(|(layer, residual)| {
        let Contraction { states, features } = layer.contraction;
        below = (residual + features * below) / (1.0 - states) * UP;
        below
    });
    errors.collect()
}

/// The residuals `R_k` at which what is read of the layers is within `tol`: every layer contributes the same.
pub(super) fn thresholds(layers: &[Layer], read: std::ops::Range<usize>, tol: f64) -> Vec<f64> {
    // Π_{j > k} Φ_j / Π_{j ≥ k} (1 − L_j)
    let mut gain = 1.0;
    let mut residuals: Vec<f64> = layers
        .iter()
        .rev()
        .map(|layer| {
            let Contraction { states, features } = layer.contraction;
            gain /= 1.0 - states;
            let residual = tol / (layers.len() as f64 * gain);
            gain *= features.max(f64::MIN_POSITIVE);
            residual
        })
        .collect();
    residuals.reverse();
    // A layer that the next one hardly reads may not be wrong by more than the tolerance either.
    residuals.iter_mut().for_each(|residual| *residual = residual.min(tol));
    let bound = together(&errors(layers, residuals.iter().copied())[read]);
    let scale = tol / bound.max(f64::MIN_POSITIVE);
    residuals.iter_mut().for_each(|residual| *residual *= scale);
    residuals
}

/// The error of what is read of several layers, side by side.
pub(super) fn together(errors: &[f64]) -> f64 {
    errors.iter().map(|e| e * e).sum::<f64>().sqrt()
}
