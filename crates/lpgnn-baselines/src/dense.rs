//! Dense layers inside a function, with their weights side by side in one flat slice.

use std::ops::Range;

use lpgnn::activation::Activation;
use lpgnn::network::Network;
use lpgnn::parameters::{Parameters, Role};
use lpgnn::readout::{Mlp, MlpGradients};
use lpgnn::{Matrix, Scalar, Scratch};

/// `y = σ(Wᵀ z + b)` of every row `z`.
#[derive(Debug)]
pub(crate) struct Dense {
    mlp: Mlp,
    weights: Range<usize>,
}

/// The dense layers of a function, as they are declared.
#[derive(Debug, Default)]
pub(crate) struct Layers(pub(crate) Parameters);

impl Layers {
    /// Declares one more.
    pub(crate) fn dense(
        &mut self,
        name: &str,
        (inputs, outputs): (usize, usize),
        activation: Activation,
    ) -> Dense {
        let network = Network { hidden_dims: vec![], activation, output_activation: activation };
        let start = self.0.weights();
        // Not of the role of inputs: what these layers read is not what the function reads.
        let before = std::mem::take(&mut self.0).layer(name, outputs);
        self.0 = before.weight("", Role::Hidden, inputs).bias();
        Dense { mlp: Mlp::new(inputs, outputs, network, 0.0), weights: start..self.0.weights() }
    }
}

impl Dense {
    /// A row per row of `z`.
    pub(crate) fn forward<S: Scalar>(
        &self,
        weights: &[S],
        z: &Matrix<S>,
        scratch: &Scratch<S>,
    ) -> Matrix<S> {
        let mut y = Matrix::zeros(z.rows(), self.mlp.outputs());
        self.mlp.forward(&weights[self.weights.clone()], z.as_slice().into(), &mut y, scratch);
        y
    }

    /// `∂𝓛/∂z` from `∂𝓛/∂y`; adds `∂𝓛/∂θ` where it is wanted.
    pub(crate) fn backward<S: Scalar>(
        &self,
        weights: &[S],
        z: &Matrix<S>,
        d_y: &Matrix<S>,
        d_weights: Option<&mut [S]>,
        scratch: &Scratch<S>,
    ) -> Matrix<S> {
        let mut d_z = Matrix::zeros(z.rows(), z.cols());
        let to = MlpGradients {
            weights: d_weights.map(|d| &mut d[self.weights.clone()]),
            rows: Some(d_z.as_mut_slice()),
            features: None,
        };
        let rows = z.as_slice().into();
        self.mlp.backward(&weights[self.weights.clone()], rows, d_y, to, scratch);
        d_z
    }
}

/// Matrices of as many rows side by side.
pub(crate) fn joined<S: Scalar>(parts: &[&Matrix<S>]) -> Matrix<S> {
    let mut all = Matrix::zeros(parts[0].rows(), parts.iter().map(|part| part.cols()).sum());
    let mut first = 0;
    for part in parts {
        for row in 0..part.rows() {
            all.row_mut(row)[first..first + part.cols()].copy_from_slice(part.row(row));
        }
        first += part.cols();
    }
    all
}

/// Some columns of a matrix.
pub(crate) fn columns<S: Scalar>(of: &Matrix<S>, columns: Range<usize>) -> Matrix<S> {
    let mut some = Matrix::zeros(of.rows(), columns.len());
    for row in 0..of.rows() {
        some.row_mut(row).copy_from_slice(&of.row(row)[columns.clone()]);
    }
    some
}

/// `to ← to + factor · from`, entry by entry.
pub(crate) fn add<S: Scalar>(to: &mut Matrix<S>, factor: S, from: &Matrix<S>) {
    let entries = to.as_mut_slice().iter_mut().zip(from.as_slice());
    entries.for_each(|(to, &from)| *to += factor * from);
}
