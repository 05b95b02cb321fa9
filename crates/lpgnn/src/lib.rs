//! Lagrangian Propagation Graph Neural Networks.

/// Files and generated tasks become a [`Dataset`](data::Dataset), and that becomes numbers.
pub mod data;

/// Graphs, and the disjoint union of graphs that one update works on.
pub mod graph;

/// The networks that `f_a` and `f_r` are made of.
pub mod network;

/// What a unit of a network applies to its sum.
pub mod activation;

/// State transition functions `f_a`.
pub mod transition;

/// The output function `f_r` and its loss.
pub mod output;

/// The constraint function `G`.
pub mod constraint;

/// The Lagrangian, its variables and its gradients.
pub mod lagrangian;

/// Solvers of the saddle point: what moves when.
pub mod saddle;

/// Training: a configuration becomes a checked plan, and the plan runs.
pub mod train;

/// States and outputs of graphs that were not trained on.
pub mod inference;

/// Metrics, and the protocols by which numbers are made.
pub mod evaluate;

/// Runs: one configuration for everything, and the files that a run leaves behind.
pub mod run;

/// Checks that a new function can be put through: the ones this crate uses itself.
pub mod check;

mod error;
mod numeric;

pub use error::{Error, Place};
pub use numeric::{Matrix, NormMemory, Scalar, Scratch};
