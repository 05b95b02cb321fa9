//! Training: a configuration becomes a checked plan, and the plan runs.

mod average;
mod classes;
mod config;
mod constraints;
mod epoch;
mod evaluation;
mod fit;
mod monitor;
mod observer;
mod parts;
mod report;
mod sample;
mod standardize;
mod stop;
mod trainer;
mod update;
mod whole;

pub use config::{
    ClassWeights, ModelConfig, ModelDims, SolverConfig, TrainingConfig, TrainingPlan,
};
pub use constraints::{ConstraintReport, GraphResidual};
pub use monitor::Monitor;
pub use observer::{Observer, Stage, StepProgress};
pub use parts::{SplitName, TrainingData};
pub use report::{EpochReport, Histograms, ModelEvaluation, SplitMetrics};
pub use stop::{Best, NotFinite, StopReason, Trained};
pub use trainer::{Trainer, TrainerState};
