//! A way to the innermost loops for the benchmarks, and for nothing else: it is no part of the
//! interface and changes whenever they do.

use crate::activation::{Activation, activate};
use crate::numeric::{Factors, Finish, InstructionSet, Packed, padded};
use crate::optim::Adam;

/// A small matrix, packed to be multiplied from the left.
#[derive(Debug)]
pub struct Small {
    packed: Packed<f32>,
    inner: usize,
    columns: usize,
}

impl Small {
    /// Packs `b: [inner, columns]`.
    pub fn new(b: &[f32], inner: usize, columns: usize) -> Self {
        Self { packed: Packed::new(b, inner, columns), inner, columns }
    }

    /// `C ← A B` for `A: [rows, inner]`; rows of `C` have [`row`] entries.
    pub fn product(&self, rows: usize, a: &[f32], c: &mut [f32]) {
        let stride = padded(self.columns);
        let factors = Factors { a, stride: self.inner, b: &self.packed };
        crate::numeric::product(rows, &[factors], c, stride, Finish::Set);
    }
}

/// The length of a row of `columns` columns in a buffer.
pub fn row(columns: usize) -> usize {
    padded(columns)
}

/// `C ← C + Aᵀ B` for `A: [rows, inner]`; rows of `B` and `C` have [`row`] entries.
pub fn transposed_product(
    rows: usize,
    a: &[f32],
    inner: usize,
    b: &[f32],
    columns: usize,
    c: &mut [f32],
) {
    crate::numeric::transposed_product(rows, a, inner, inner, b, columns, c);
}

/// `Y ← tanh(Y)`; eight numbers at a time.
pub fn tanh(y: &mut [f32]) {
    activate(Activation::Tanh, y);
}

/// The first step of Adam.
pub fn adam(variable: &mut [f32], gradient: &[f32], moments: [&mut [f32]; 2]) {
    Adam::new(1e-3).descend(1, variable, gradient, moments);
}

/// The instruction set that loops run on: `portable`, `neon`, `avx2` or `avx512`.
pub fn instruction_set() -> &'static str {
    InstructionSet::current().name()
}
