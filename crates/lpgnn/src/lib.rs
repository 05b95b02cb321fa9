//! Lagrangian Propagation Graph Neural Networks.

/// Files and generated tasks become a [`Dataset`](data::Dataset), and that becomes numbers.
pub mod data;

/// Graphs, and the disjoint union of graphs that one update works on.
pub mod graph;

mod error;
mod numeric;

pub use error::{Error, Place};
pub use numeric::{Matrix, Scalar};
