use super::{RunConfig, Task, TaskChoice};
use crate::constraint::ConstraintFunction;
use crate::data::Dataset;
use crate::lagrangian::{Multipliers, ReadFrom, ReadLayers, Reads};
use crate::saddle::{Bdmm, Implicit, OneShot, Unrolled, WeightDescent};
use crate::train::{ModelConfig, SolverConfig, TrainingConfig, TransitionKind};

/// Degrees above which a sum over neighbours, held to a bound, says little about each of them.
const LARGE_DEGREE: usize = 15;
/// Nodes above which graphs are trained on in batches.
const MANY_NODES: usize = 20_000;
/// How many of them then.
const BATCH: usize = 128;

impl RunConfig {
    /// What does well on data of this kind and size, with the solver of this name.
    ///
    /// An unknown name gives the defaults of the default solver; [`with`](Self::with) is where
    /// it is found out.
    pub fn for_data(source: &str, dataset: &Dataset, choice: TaskChoice, solver: &str) -> Self {
        let task = Task::of(choice, dataset).unwrap_or(Task::Nodes);
        let batches = dataset.nodes() > MANY_NODES && dataset.graphs() > 100;
        let epochs = match task {
            Task::Nodes => 600,
            Task::Graphs if batches => 100,
            Task::Graphs => 400,
        };
        // Large steps find the way, small ones let states and weights come to rest. Read-outs of
        // whole graphs learn slowly, and rest before they have found it.
        let updates = epochs * if batches { dataset.graphs().div_ceil(BATCH) } else { 1 };
        let half_life = (task == Task::Nodes).then_some(updates as f64 / 3.0);
        let weights = WeightDescent { rate: 0.005, half_life, ..WeightDescent::default() };
        let solver = match solver {
            "bdmm" => SolverConfig::Bdmm(Bdmm::default()),
            "implicit" => SolverConfig::Implicit(Implicit { weights, ..Implicit::default() }),
            "unrolled" => SolverConfig::Unrolled(Unrolled { weights, ..Unrolled::default() }),
            // With one step the states lag behind the weights and both may swing around the saddle;
            // in batches they are stale by all the weight steps of an epoch.
            _ => SolverConfig::OneShot(OneShot {
                weights,
                inner_steps: if batches { 3 } else { 2 },
                ..OneShot::default()
            }),
        };
        let mut config = Self::default();
        source.clone_into(&mut config.data.source);
        let transition = match task {
            Task::Nodes if largest_degree(dataset) <= LARGE_DEGREE => TransitionKind::GnnSum,
            _ => TransitionKind::GnnMean,
        };
        config.model = ModelConfig {
            transition,
            reads: Reads { from: ReadFrom::Image, layers: ReadLayers::Last },
            ..ModelConfig::default()
        };
        config.training = TrainingConfig {
            epochs,
            solver,
            batch_size: batches.then_some(BATCH),
            score_every: if batches { 2 } else { 10 },
            ..TrainingConfig::default()
        };
        if matches!(config.training.solver, SolverConfig::Bdmm(_)) {
            // A loss that weighs little cannot write the classes into the states.
            config.training.weighing.loss_weight = 1e-5;
            config.model.constraint = ConstraintFunction::Squared;
            config.model.multipliers = Multipliers::PerNode;
        }
        config
    }
}

fn largest_degree(dataset: &Dataset) -> usize {
    let mut degrees = vec![0; dataset.nodes()];
    for &(_, target) in dataset.arcs() {
        degrees[target as usize] += 1;
    }
    degrees.into_iter().max().unwrap_or(0)
}
