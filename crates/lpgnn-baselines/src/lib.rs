//! The systems that LP-GNN is compared with, as transitions and read-outs of [`lpgnn`].
//!
//! Each is feed-forward: its transition reads features and no states, so that the constraint holds after one step and one-shot
//! with one inner step is back-propagation. Everything else is the library's: folds, protocols, optimisers, model files. Any
//! transition goes with any read-out, those of the library among them.
//!
//! | system | transition | read-out |
//! |---|---|---|
//! | Weisfeiler–Lehman kernel, linear classifier | `none` | `weisfeiler-lehman` |
//! | anonymous walks, linear classifier | `none` | `anonymous-walks` |
//! | DGCNN | `dgcnn` | `sort-pooling` |
//! | PATCHY-SAN | `features` | `patchy-san` |
//! | DCNN | `dcnn` | `mean` |
//! | GGNN | `ggnn` | `gated` |
//! | neural fingerprints | `fingerprint` | `sum` |
//! | Chebyshev filters | `chebyshev`, in layers | `sum` or `mean` |
//! | GIN, GCN, GraphSAGE, of one step per layer | `gin-step`, `gcn-step`, `sage-step`, in layers | `sum` or `mean` |
//!
//! | transition | options | `state-dim` |
//! |---|---|---|
//! | `none` | | any: all components are zero |
//! | `features` | | as many as features |
//! | `dgcnn` | `channels`: of every layer (32, 32, 32, 1) | their sum |
//! | `dcnn` | `hops`: the longest walk (3) | `hops + 1` times the features |
//! | `ggnn` | `steps` (4) | at least as many as features |
//! | `fingerprint` | `depth` (4), `width` of a layer (20), `degrees`: the largest with its own weights (5) | the length of the fingerprint |
//! | `chebyshev` | `terms` of the polynomial (3) | any |
//! | `gin-step`, `gcn-step`, `sage-step` | | any |
//!
//! | read-out | options |
//! |---|---|
//! | `weisfeiler-lehman` | `rounds` (5), `buckets` (65536) |
//! | `anonymous-walks` | `steps` (7), `samples`, of graphs with too many walks to count them (10000), `buckets` (65536) |
//! | `sort-pooling` | `k`: nodes that are kept (30), `units` (128) |
//! | `patchy-san` | `fields` (18), `k`: nodes of a field (10), `units` (128), `edges`: whether the features of the edges of a field are read (false) |
//! | `gated` | `units` (those of a state) |
//!
//! ```
//! use lpgnn::data::generate::CliqueConfig;
//! use lpgnn::run::{RunConfig, Setup};
//!
//! let dataset = CliqueConfig { graphs: 10, ..CliqueConfig::default() }.generate(0)?;
//! let mut config = RunConfig::for_data("clique", &dataset, &[]);
//! config.model.transition = "chebyshev".into();
//! let setup = Setup::with_registry(&lpgnn_baselines::registry(), &config, &dataset, None)?;
//! assert_eq!(setup.model.transition(0).lipschitz(&[], Default::default()), Some(0.0));
//! # Ok::<(), lpgnn::Error>(())
//! ```
//!
//! # Memory
//!
//! What is found out about the structure of a graph once (colours, walks, receptive fields) is kept while a read-out lives: at most
//! 2²⁴ numbers, 128 MiB, in all; what does not fit is found out again. It follows from the graph alone, so new graphs are
//! read as those of training were.
//!
//! # Limits
//!
//! They work on whole graphs in one process: not on a graph in parts, nor on one that [changes](lpgnn::live).

mod anonymous_walks;
mod chebyshev;
mod dense;
mod diffusion;
mod features;
mod feed_forward;
mod fingerprint;
mod gated;
mod gated_readout;
mod graph_convolutions;
mod histogram;
mod known;
mod none;
mod one_step;
mod operator;
mod patches;
mod sequence;
mod sort_pooling;
mod structure;
mod weisfeiler_lehman;

use lpgnn::Scalar;
use lpgnn::registry::Registry;

/// Everything that is built into [`lpgnn`], and the functions of this crate.
pub fn registry<S: Scalar>() -> Registry<S> {
    Registry::default()
        .with_transition("none", |spec| Ok(Box::new(none::NoStates::new(spec.model.state_dim))))
        .with_transition("features", features::make)
        .with_transition("dgcnn", graph_convolutions::make)
        .with_transition("dcnn", diffusion::make)
        .with_transition("ggnn", gated::make)
        .with_transition("fingerprint", fingerprint::make)
        .with_transition("chebyshev", chebyshev::make)
        .with_transition("gin-step", one_step::gin)
        .with_transition("gcn-step", one_step::gcn)
        .with_transition("sage-step", one_step::sage)
        .with_readout("weisfeiler-lehman", weisfeiler_lehman::make)
        .with_readout("anonymous-walks", anonymous_walks::make)
        .with_readout("patchy-san", patches::make)
        .with_readout("sort-pooling", sort_pooling::make)
        .with_readout("gated", gated_readout::make)
}
