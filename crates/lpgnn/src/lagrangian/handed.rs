//! What layers hand on: to the layer above, and to the read-out.

use super::{Model, ReadFrom};
use crate::graph::GraphBatch;
use crate::numeric::{Scratch, SpareMatrix};
use crate::{Matrix, Scalar};

/// `f_a` of some layers, and what they hand on.
pub(crate) struct Handed<'s, S: Scalar> {
    /// `f_a(x)` of the first layers.
    pub(crate) f_x: Vec<SpareMatrix<'s, S>>,
    /// What they hand on, if that is normalised; otherwise nothing.
    pub(super) normalized: Vec<SpareMatrix<'s, S>>,
}

impl<S: Scalar> Handed<'_, S> {
    /// Of no layers yet.
    pub(super) fn new() -> Self {
        Self { f_x: vec![], normalized: vec![] }
    }
}

impl<S: Scalar> Model<S> {
    /// The states of a layer or `f_a` of them, whichever is handed on, before they are normalised.
    fn raw<'a>(
        &self,
        layer: usize,
        states: &'a [Matrix<S>],
        handed: &'a Handed<'_, S>,
    ) -> &'a Matrix<S> {
        match self.reads().from {
            ReadFrom::State => &states[layer],
            ReadFrom::Transition => &handed.f_x[layer],
        }
    }

    /// What a layer hands on.
    pub(crate) fn handed_on<'a>(
        &self,
        layer: usize,
        states: &'a [Matrix<S>],
        handed: &'a Handed<'_, S>,
    ) -> &'a Matrix<S> {
        match handed.normalized.get(layer) {
            Some(normalized) => normalized,
            None => self.raw(layer, states, handed),
        }
    }

    /// What a layer reads of the one below, if there is one.
    pub(crate) fn below<'a>(
        &self,
        layer: usize,
        states: &'a [Matrix<S>],
        handed: &'a Handed<'_, S>,
    ) -> Option<&'a Matrix<S>> {
        layer.checked_sub(1).map(|below| self.handed_on(below, states, handed))
    }

    /// What `layer` hands on of these rows, its states or `f_a` of them; none where that is the same.
    pub(crate) fn normalized<'s>(
        &self,
        layer: usize,
        weights: &[S],
        batch: &GraphBatch<S>,
        raw: &Matrix<S>,
        scratch: &'s Scratch<S>,
    ) -> Option<SpareMatrix<'s, S>> {
        let norm = self.normalizations().get(layer)?;
        let mut normalized = scratch.matrix(raw.rows(), raw.cols());
        let weights = &weights[self.normalization_weights(layer)];
        norm.forward(weights, batch.topology(), raw, &mut normalized);
        Some(normalized)
    }

    /// Adds what `layer` hands on to what the layers below do, once it is known.
    pub(super) fn hand_on<'s>(
        &self,
        layer: usize,
        weights: &[S],
        (batch, states): (&GraphBatch<S>, &[Matrix<S>]),
        handed: &mut Handed<'s, S>,
        scratch: &'s Scratch<S>,
    ) {
        let raw = self.raw(layer, states, handed);
        let normalized = self.normalized(layer, weights, batch, raw, scratch);
        handed.normalized.extend(normalized);
    }

    /// From the derivative in what `layer` hands on to that in its states or `f_a` of them, in its place; `d_weights`
    /// are those of all functions.
    pub(crate) fn hand_back(
        &self,
        layer: usize,
        weights: &[S],
        (batch, states): (&GraphBatch<S>, &[Matrix<S>]),
        handed: &Handed<'_, S>,
        d: &mut Matrix<S>,
        d_weights: Option<&mut [S]>,
    ) {
        let Some(norm) = self.normalizations().get(layer) else { return };
        let range = self.normalization_weights(layer);
        let d_weights = d_weights.map(|d| &mut d[range.clone()]);
        let raw = self.raw(layer, states, handed);
        norm.backward(&weights[range], batch.topology(), raw, d, d_weights);
    }
}
