//! Runs: one configuration for everything, and the files that a run leaves behind.
//!
//! | file | holds | made by |
//! |---|---|---|
//! | `config.toml` | every setting, as used | [`RunConfig`](crate::run::RunConfig) |
//! | `model.safetensors` | weights and all that prediction needs | [`SavedModel`](crate::run::SavedModel) |
//! | `checkpoint.safetensors` | the state of training | [`Checkpoint`](crate::run::Checkpoint) |
//!
//! Files are written to a temporary name and renamed when complete, so that there is always an old
//! file or a new one, never a partial one.

mod bundle;
mod checkpoint;
mod checkpoint_parts;
mod config;
mod defaults;
mod effect;
mod ensemble;
mod file;
mod fingerprint;
mod homophily;
mod inspect;
mod model_file;
mod prediction;
mod saved_model;
mod schema;
mod settings;
mod setup;
mod warm_start;

pub use crate::input::{read_file, read_text};
pub(crate) use checkpoint::CheckpointFile;
pub use checkpoint::{Checkpoint, EpochChange, TrainingOrigin};
pub(crate) use checkpoint_parts::remove_parts;
pub use config::{DataConfig, RunConfig, SettingChange, SplitConfig, SplitSource};
pub(crate) use defaults::Neighbours;
pub use effect::{notes, refuse};
pub use ensemble::EnsembleMember;
pub use file::write_file;
pub use fingerprint::fingerprint;
pub(crate) use fingerprint::hex;
pub use prediction::{MOST_ITERATIONS, Predictions};
pub use saved_model::{DataOrigin, SavedModel};
pub use schema::{Choice, Interval, Kind, Schema, SettingInfo};
pub use settings::{Setting, settings_of_json, settings_of_toml};
pub use setup::Setup;
pub use warm_start::WarmStart;
