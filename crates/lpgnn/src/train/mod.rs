//! Training: a configuration becomes a checked plan, and the plan runs.

mod average;
mod classes;
mod config;
mod constraints;
mod data;
mod epoch;
mod evaluation;
mod fit;
mod monitor;
mod observer;
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
pub use data::{SplitName, TrainingData};
pub(crate) use evaluation::supervised_metrics;
pub(crate) use fit::check_monitor;
pub use monitor::Monitor;
pub use observer::{Observer, Stage, StepProgress};
pub use report::{EpochReport, Histograms, ModelEvaluation, SplitMetrics};
pub use stop::{Best, NotFinite, StopReason, Trained};
pub use trainer::{Trainer, TrainerState};
