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
//! the tolerance. What is computed is wrong by at most [`rounding`](crate::transition::LocalTransition::rounding), and a
//! state by the [precision](super::precision) in which it is kept; both are part of `ρ`.

use super::precision::Precision;
use crate::transition::{LocalTransition, Rounding, Sensitivity, Sizes};

/// A layer, and what is known of it.
#[derive(Debug)]
pub(super) struct Layer {
    pub(super) f: Box<dyn LocalTransition>,
    pub(super) sensitivity: Sensitivity,
    /// Of its states and messages.
    pub(super) precision: Precision,
    /// What it reads is no larger than this.
    pub(super) sizes: Sizes,
    pub(super) contraction: Contraction,
    /// The largest `ρ_v / w_v` that is left.
    pub(super) threshold: f64,
    /// The largest `ρ_v / w_v` that rounding alone gives.
    pub(super) floor: f64,
    /// What rounding gives by degree, as far as it is known.
    roundings: Vec<f64>,
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

/// What is known of a layer, and changes with the graph.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    sizes: Sizes,
    contraction: Contraction,
    threshold: f64,
    floor: f64,
}

/// How much larger than what rounding gives a residual has to be before it is worth a look.
pub(super) const ABOVE_FLOOR: f64 = 1.5;
/// How far ahead of what was seen sizes are, so that they seldom change.
pub(super) const AHEAD: f64 = 1.25;
/// By how much what rounding gives may still grow once events are accepted, when tolerances of single nodes shrink.
pub(super) const ROOM: f64 = 1.02;
/// Degrees of which the rounding is kept.
const DEGREES: usize = 1 << 10;

impl Layer {
    pub(super) fn new(f: Box<dyn LocalTransition>, terms: usize, precision: Precision) -> Self {
        Self {
            sensitivity: f.sensitivity(),
            f,
            precision,
            sizes: Sizes { terms, unit: precision.unit(), ..Sizes::default() },
            contraction: Contraction::default(),
            threshold: 0.0,
            floor: 0.0,
            roundings: vec![],
        }
    }

    pub(super) fn known(&self) -> Known {
        let Self { sizes, contraction, threshold, floor, .. } = *self;
        Known { sizes, contraction, threshold, floor }
    }

    pub(super) fn set_known(&mut self, known: Known) {
        let Known { sizes, contraction, threshold, floor } = known;
        self.set_sizes(sizes);
        (self.contraction, self.threshold, self.floor) = (contraction, threshold, floor);
    }

    /// The norm of a difference.
    #[inline]
    pub(super) fn norm(&self, differences: impl Iterator<Item = f64>) -> f64 {
        if self.sensitivity.weighing.is_largest_entry() {
            differences.fold(0.0, |largest, d| largest.max(d.abs()))
        } else {
            differences.map(|d| d * d).sum::<f64>().sqrt() * UP
        }
    }

    /// The norm of the difference of states or messages.
    #[inline]
    pub(super) fn distance(&self, a: &[f32], b: &[f32]) -> f64 {
        match self.precision {
            Precision::Single => {
                self.norm(a.iter().zip(b).map(|(&a, &b)| f64::from(a) - f64::from(b)))
            }
            kept @ Precision::SumOfTwo => {
                self.norm(kept.entries(a).zip(kept.entries(b)).map(|(a, b)| a - b))
            }
        }
    }

    /// The residual beyond which a node is looked at that has this share of the tolerance, in units of its weight.
    #[inline]
    pub(super) fn residual(&self, share: f64) -> f64 {
        (share * self.threshold).max(ABOVE_FLOOR * self.floor)
    }

    pub(super) fn rounding(&self, degree: usize) -> Rounding {
        self.rounding_of(self.sizes, degree)
    }

    pub(super) fn rounding_of(&self, sizes: Sizes, degree: usize) -> Rounding {
        let Rounding { error, size } = self.f.rounding(sizes, degree);
        Rounding { error: error + sizes.unit * sizes.state + f64::from(f32::MIN_POSITIVE), size }
    }

    /// What rounding gives at a node of this degree.
    pub(super) fn rounding_error(&mut self, degree: usize) -> f64 {
        if degree >= DEGREES {
            return self.rounding(degree).error;
        }
        if self.roundings.len() <= degree {
            self.roundings.resize(degree + 1, f64::NAN);
        }
        if self.roundings[degree].is_nan() {
            self.roundings[degree] = self.rounding(degree).error;
        }
        self.roundings[degree]
    }

    pub(super) fn set_sizes(&mut self, sizes: Sizes) {
        if self.sizes != sizes {
            self.sizes = sizes;
            self.roundings.clear();
        }
    }

    /// States are as large as this at least; as far `ahead` as they seldom have to be enlarged again.
    pub(super) fn enlarge_states(&mut self, size: f64, ahead: f64) {
        if size > self.sizes.state {
            self.set_sizes(Sizes { state: ahead * size, ..self.sizes });
        }
    }

    /// The same of what an upper layer reads as features.
    pub(super) fn enlarge_features(&mut self, size: f64, ahead: f64) {
        if size > self.sizes.feature {
            self.set_sizes(Sizes { feature: ahead * size, ..self.sizes });
        }
    }

    /// The same of messages; what the sizes were before, if that is larger than all others.
    pub(super) fn enlarge_messages(&mut self, size: f64, ahead: f64) -> Option<Sizes> {
        let before = self.sizes;
        (size > before.message).then(|| {
            self.set_sizes(Sizes { message: ahead * size, ..before });
            before
        })
    }

    /// How large the message of a node of this size can be.
    pub(super) fn message_size(&self, sizes: Sizes) -> f64 {
        let s = &self.sensitivity;
        if self.f.message_dim() == 0 || s.message <= 0.0 {
            return 0.0;
        }
        (s.neighbour * sizes.state + s.neighbour_features * sizes.feature) / s.message * UP
    }
}

/// The part of the tolerance that is aimed at, so that no bound exceeds it by rounding.
const AIM: f64 = 1.0 - 1e-9;

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

/// The residuals `R_k` at which what is read of the layers is within `tol`, if they can be: beyond rounding, every layer
/// contributes the same.
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
    let bound =
        |residuals: &[f64]| together(&errors(layers, residuals.iter().copied())[read.clone()]);
    // What rounding takes comes first, and the rest is shared.
    let floors: Vec<f64> = layers.iter().map(|layer| ABOVE_FLOOR * layer.floor).collect();
    let left = (tol * AIM - bound(&floors)).max(0.0);
    let scale = left / bound(&residuals).max(f64::MIN_POSITIVE);
    let both = residuals.iter().zip(&floors);
    both.map(|(residual, floor)| floor + scale * residual).collect()
}

/// The error of what is read of several layers, side by side.
pub(super) fn together(errors: &[f64]) -> f64 {
    errors.iter().map(|e| e * e).sum::<f64>().sqrt()
}
