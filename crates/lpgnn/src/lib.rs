//! Lagrangian Propagation Graph Neural Networks: GNNs whose states are found by constrained
//! optimisation, together with the weights.
//!
//! # The method on one page
//!
//! A graph neural network gives every node `v` a state `x_v`, which follows from the features of the
//! node and of its neighbours and from their states: `x_v = f_{a,v}(X | θ_a)` for all nodes at once,
//! a fixed point. What is to be predicted is read off the states, `f_r(x_v | θ_r)`.
//!
//! The original GNN iterates `f_a` to its fixed point at every update of the weights and carries the
//! error back through all iterations. LP-GNN makes the states variables of their own, and the fixed
//! point a constraint on them:
//!
//! ```text
//! min over θ_a, θ_r, X    Σ_{v ∈ S} loss(f_r(x_v | θ_r), y_v)
//! subject to              G(x_v − f_{a,v}(X | θ_a)) = 0         for every node v
//!
//! 𝓛(θ, X, Λ) = Σ_{v ∈ S} loss(f_r(x_v | θ_r), y_v)  +  Σ_v λ_v · G(x_v − f_{a,v}(X | θ_a))
//! ```
//!
//! At a saddle point of the Lagrangian `𝓛` the constraint holds and the loss is stationary. One
//! evaluation of `𝓛` and its gradient touches every node and every pair of neighbours once, however
//! far information has to travel: `∂𝓛/∂x_v` needs `v` and its neighbours only.
//!
//! Everything a solver sees is that gradient. Solvers differ in who follows which part of it:
//!
//! | solver | states `X` | multipliers `Λ` | weights `θ` |
//! |---|---|---|---|
//! | [`Bdmm`](saddle::Bdmm), the paper's | descend `∂𝓛/∂X` | climb `∂𝓛/∂Λ` | descend `∂𝓛/∂θ` |
//! | [`OneShot`](saddle::OneShot) | one step `X − β ∂𝓛/∂Λ` | one step `Λ − β ∂𝓛/∂X` | descend |
//! | [`Implicit`](saddle::Implicit) | such steps until they converge | then these until they converge | descend |
//! | [`Unrolled`](saddle::Unrolled), the original GNN | such steps from zero | carried back through them | descend |
//! | [`Sse`](saddle::Sse), steady-state embedding | some such steps | `k` such steps from zero | descend |
//! | [`AugmentedLagrangian`](saddle::AugmentedLagrangian) | descend, some steps | then `Λ + ρ ∂𝓛/∂Λ` | descend |
//!
//! All but the first and the last need `G = lin` with one multiplier per component. Then `X − ∂𝓛/∂Λ` is `f_a(X)`, so
//! states follow the transition function and the loss never pulls them; and the other step is the
//! adjoint equation of the fixed point.
//!
//! Free states can cheat: a residual too small to notice is enough to write the answer into them.
//! So models are always evaluated on converged states ([`inference`]), and every evaluation reports the
//! [cheating gap](train::ModelEvaluation::cheating_gap): accuracy from trained states minus that from
//! converged ones.
//! A [bound](train::TrainingConfig::lipschitz) on the Lipschitz constant of `f_a` below 1 leaves one
//! fixed point for states to be at.
//!
//! # A first example
//!
//! Which nodes belong to a clique of three? Training and test graphs are drawn from a seed.
//!
//! ```
//! use std::ops::ControlFlow;
//!
//! use lpgnn::data::generate::CliqueConfig;
//! use lpgnn::data::{Encoding, FeatureOptions, FeatureSource};
//! use lpgnn::graph::Level;
//! use lpgnn::train::{
//!     EpochReport, ModelConfig, SplitName, Trainer, TrainerState, TrainingConfig, TrainingData,
//! };
//!
//! // Three times 20 graphs of 7 nodes, with their degrees as features, in one batch.
//! let dataset = CliqueConfig { graphs: 20, ..CliqueConfig::default() }.generate(0)?;
//! let features = FeatureOptions { source: FeatureSource::Degree, ..FeatureOptions::default() };
//! let encoding = Encoding::new(&dataset, &features)?;
//! let batch = encoding.batch::<f32>(&dataset)?;
//!
//! // A third for training, a third for validation, a third for testing.
//! let split = dataset.split().expect("generated data come with a split");
//! let data = TrainingData::new(&batch, split, Level::Node)?;
//!
//! // The functions, and how to train them, with defaults for everything else.
//! let model = ModelConfig { state_dim: 10, ..ModelConfig::default() }.build(data.dims())?;
//! let config = TrainingConfig { epochs: 60, eval_every: 20, ..TrainingConfig::default() };
//! let plan = config.check()?;
//!
//! let mut losses = vec![];
//! let mut watch = |report: &EpochReport, _: &TrainerState| {
//!     losses.push(report.loss);
//!     ControlFlow::Continue(())
//! };
//! let trained = Trainer::new(plan, &model, &data)?.run(&mut watch)?;
//!
//! assert!(losses[59] < losses[0]);
//! let evaluation = trained.evaluation.expect("the last epoch is evaluated");
//! let accuracy = evaluation.of(SplitName::Test).and_then(|metrics| metrics.accuracy).unwrap();
//! assert!(accuracy > 0.8, "{accuracy}"); // 57 % of the nodes are in a clique
//! assert!(evaluation.cheating_gap.unwrap().abs() < 0.1); // the states did not cheat
//! assert_eq!(evaluation.not_converged, 0); // and exist for every graph
//! # Ok::<(), lpgnn::Error>(())
//! ```
//!
//! # The data flow
//!
//! [`data`] → [`graph`] → [`parameters`], [`network`], [`activation`] → [`transition`] → [`normalization`] →
//! [`readout`] → [`constraint`] → [`lagrangian`] → [`optim`] → [`saddle`] → [`registry`] → [`train`] →
//! [`inference`] → [`live`] → [`evaluate`] → [`run`] → [`experiment`] → [`report`]; and [`check`] for custom functions.
//!
//! Functions are nothing but their shape: weights come from outside as one flat slice. All random
//! numbers come from seeds, and the same configuration with the same seed gives the same bits for
//! any number of threads.

/// Files and generated tasks become a [`Dataset`](data::Dataset), and an
/// [`Encoding`](data::Encoding) makes numbers of it.
pub mod data;

/// Graphs, and the disjoint union of graphs that one update works on.
pub mod graph;

/// The parameters of a function, declared once: names, shapes, roles, and how they start.
pub mod parameters;

/// The networks that `f_a` and `f_r` are made of.
///
pub mod network;

/// What a unit of a network applies to its sum.
pub mod activation;

/// `f_a`: the state of a node from the node and its neighbours.
///
pub mod transition;

/// Normalisation of what a layer hands on, outside its fixed point.
pub mod normalization;

/// `f_r` and its loss: what is read off the states, and how far it is from the targets.
///
pub mod readout;

/// `G`: what a residual `x − f_a` counts.
pub mod constraint;

/// `𝓛`: the loss and the constraint, with every derivative.
///
pub mod lagrangian;

/// How a variable follows its gradient.
pub mod optim;

/// Solvers of the saddle point.
///
pub mod saddle;

/// Transitions, read-outs and solvers by name, including custom ones.
pub mod registry;

/// From a configuration to trained weights.
///
pub mod train;

/// From trained weights to states and outputs of any graph.
///
pub mod inference;

/// Predictions on a graph that changes, with a bound on their error.
///
pub mod live;

/// Metrics and evaluation protocols.
///
pub mod evaluate;

/// From one file to a model on disk, with everything needed to use it again.
///
pub mod run;

/// Runs, cross-validation and search, each in a folder that can be continued, with typed records.
///
pub mod experiment;

/// Runs, cross-validations and searches as one page to look at.
///
pub mod report;

/// Event files for TensorBoard.
///
pub mod tensorboard;

/// Checks for custom functions and solvers.
///
pub mod check;

/// Ranks that MPI connects.
#[cfg(feature = "mpi")]
pub mod mpi;

/// The limit of the memory that this process takes.
///
pub mod memory;

/// Not part of the interface: the innermost loops, for the benchmarks.
#[doc(hidden)]
pub mod kernels;

mod error;
mod input;
mod nan;
mod numeric;

pub use error::{Error, Origin, Place, shortened};
pub use numeric::{Matrix, NormMemory, Scalar, Scratch, check_instruction_set, uniform};

/// The page of the crate has an example that runs, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
