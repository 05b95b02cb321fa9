//! Columns of what is around a node or an edge.

use super::part::{Part, mean_and_scale};
use crate::data::structure::{Counts, Shape, StructureOptions, bin};
use crate::graph::{Features, OneHot};
use crate::{Error, Matrix, Scalar};

/// A group of columns per kind that occurs at all. A triangle is a ring and a clique: one of them is enough.
pub(super) fn counts(found: &Counts) -> impl Iterator<Item = Part> + '_ {
    let rings = found.of((Shape::Ring, 3)).is_some();
    let kinds = found.largest().filter(move |(what, _)| !(rings && *what == (Shape::Clique, 3)));
    kinds.map(|((shape, size), count)| Part::Count { shape, size, largest: bin(count) })
}

/// With `rows`, probabilities are standardised over these, as real values are.
pub(super) fn returns(found: &Matrix<f32>, rows: Option<&[usize]>) -> Option<Part> {
    let (mean, scale) = match rows {
        Some(rows) => (0..found.cols()).map(|steps| mean_and_scale(found, rows, steps)).unzip(),
        None => (vec![0.0; found.cols()], vec![1.0; found.cols()]),
    };
    (found.cols() > 0).then_some(Part::Returns { mean, scale })
}

impl Part {
    /// Adds what has to be counted for it.
    pub(super) fn wants(&self, wanted: &mut StructureOptions) {
        match self {
            Self::Count { shape: Shape::Ring, size, .. } => wanted.rings = wanted.rings.max(*size),
            Self::Count { shape: Shape::Clique, size, .. } => {
                wanted.cliques = wanted.cliques.max(*size);
            }
            Self::Returns { mean, .. } => wanted.walks = mean.len() + 1,
            _ => {}
        }
    }

    /// That it is one that can be made.
    pub(super) fn check(&self) -> Result<(), Error> {
        let mut wanted = StructureOptions::default();
        self.wants(&mut wanted);
        let scaled = match self {
            Self::Values { names, mean, scale } => [mean.len(), scale.len()] == [names.len(); 2],
            Self::Returns { mean, scale } => mean.len() == scale.len(),
            _ => true,
        };
        if !scaled {
            return Err(Error::Mismatch("the encoding has values without a scale".into()));
        }
        if matches!(self, Self::Count { size: 0, .. }) {
            return Err(Error::Mismatch("the encoding counts shapes without nodes".into()));
        }
        wanted.check().map(|_| ())
    }
}

pub(super) fn encode_counts<S: Scalar>(
    found: &Counts,
    what: (Shape, usize),
    largest: u32,
) -> Result<Features<S>, Error> {
    let counts = found.of(what).expect("what an encoding reads has been counted");
    let columns = counts.map(|count| bin(count).min(largest)).collect();
    Ok(Features::OneHot(OneHot::new(largest as usize + 1, columns)?))
}

pub(super) fn encode_returns<S: Scalar>(
    found: &Matrix<f32>,
    mean: &[f32],
    scale: &[f32],
) -> Result<Features<S>, Error> {
    let units = mean.iter().zip(scale).cycle();
    let value = |(&p, (&mean, &scale)): (&f32, (&f32, &f32))| {
        S::of((f64::from(p) - f64::from(mean)) * f64::from(scale))
    };
    let entries = found.as_slice().iter().zip(units).map(value).collect();
    Ok(Features::Dense(Matrix::from_entries(found.rows(), found.cols(), entries)?))
}
