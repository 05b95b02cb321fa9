//! Runs, cross-validation and search: training in a folder that can be resumed bit-identically and
//! leaves a typed record.
//!
//! Several processes may work on a cross-validation or a search at the same time, on several machines with a common file
//! system: each has its [`Share`](crate::experiment::Share), and whoever works on a fold or a trial has a lock on it.
//!
//! The library writes files and calls observers; it prints nothing. An observer that returns
//! [`Break`](std::ops::ControlFlow::Break) stops an experiment in a state from which it can be resumed.
//!
//! # The folder of a run
//!
//! | file | holds | read by |
//! |---|---|---|
//! | `config.toml` | every setting, as used | [`RunFolder::config`](crate::experiment::run::RunFolder::config) |
//! | `split.json` | which nodes or graphs are trained, validated and tested on | [`RunFolder::split`](crate::experiment::run::RunFolder::split) |
//! | `model.safetensors` | the weights of the best epoch and all that prediction needs | [`SavedModel`](crate::run::SavedModel) |
//! | `checkpoint.safetensors` | the state of training | [`Run::resume`](crate::experiment::run::Run::resume) |
//! | `metrics.jsonl` | a line per epoch | [`RunFolder::metrics`](crate::experiment::run::RunFolder::metrics) |
//! | `log.txt` | the log, for people | |
//! | `record.json` | the record, once it has finished | [`RunFolder::record`](crate::experiment::run::RunFolder::record) |
//! | `.lock` | nothing; the process that works on the run holds a lock on it | |
//!
//! # The folder of a cross-validation or a search
//!
//! | file | holds |
//! |---|---|
//! | `plan.json` | the data, splits and settings that its results are of |
//! | `settings.toml` | what the trials have in common |
//! | `fold-01.json`, `trial-00001-of-9.json`, … | a [`FoldRecord`](crate::experiment::crossval::FoldRecord), a [`RankedTrial`](crate::experiment::search::RankedTrial) each: what is there is not done again |
//! | `*.part.json`, `*.checkpoint.safetensors` | a trial in progress |
//! | `.*.lock` | nothing; the process that works on a fold, a trial or a shard holds a lock on it |
//! | `best.toml`, `model.safetensors` | of a search, the settings and the model of the winner |
//! | `result.json` | the [`CrossvalReport`](crate::experiment::crossval::CrossvalReport) or the [`SearchRecord`](crate::experiment::search::SearchRecord) |
//!
//! # Example
//!
//! ```
//! use lpgnn::data::generate::CliqueConfig;
//! use lpgnn::experiment::run::Run;
//! use lpgnn::run::RunConfig;
//!
//! let dataset = CliqueConfig { graphs: 10, ..CliqueConfig::default() }.generate(0)?;
//! let mut config = RunConfig::for_data("clique", &dataset, &[]);
//! config.training.epochs = 10;
//!
//! # let place = tempfile::tempdir().unwrap();
//! # let folder = place.path().join("first");
//! let record = Run::create(&folder, config, &dataset)?.train(&mut ())?;
//! assert_eq!(record.epochs, 10);
//! assert_eq!(record.final_evaluation.graphs.residuals.len(), dataset.graphs());
//! # Ok::<(), lpgnn::Error>(())
//! ```

/// A run: one training run in a folder of its own.
pub mod run;

/// The record of a run.
pub mod record;

/// One configuration on several folds, or with several seeds, and their mean.
pub mod crossval;

/// Many configurations, of which the best by the validation split is found.
pub mod search;

/// Work side by side, each item on one thread.
pub mod parallel;

mod ensemble;
mod machine;
mod majority;
mod observer;
mod result_folder;
mod shard;
mod shared_work;
mod stages;
mod trial;
mod work_folder;

pub use machine::{Machine, Versions, today};
pub use majority::majority_accuracy;
pub use observer::{ExperimentObserver, TrialKind, TrialName, TrialObserver};
pub use result_folder::ResultFolder;
pub use shard::{Shard, Share};
pub use trial::TrialRecord;
pub use work_folder::FolderLock;
