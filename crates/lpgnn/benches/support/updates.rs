//! Updates of a model on a workload: forward, all gradients, the three optimiser steps.

use std::path::Path;

use lpgnn::activation::Activation;
use lpgnn::constraint::ConstraintFunction;
use lpgnn::lagrangian::{
    Lagrangian, Model, Multipliers, Objective, Request, Scale, Variables, Weighing,
};
use lpgnn::readout::Supervision;
use lpgnn::saddle::{
    Bdmm, Implicit, OneShot, OptimizerState, SaddleSolver, Unrolled, WeightDescent,
};
use lpgnn::train::ModelConfig;
use lpgnn::{Matrix, Scratch, uniform};

use super::workload::{Workload, read_array, write_array};

/// The model and its solver.
#[derive(Clone)]
pub(crate) struct Options {
    /// Whether `h` has tanh on its output.
    pub(crate) tanh: bool,
    /// `bdmm`, `one-shot`, `implicit` or `unrolled-T`.
    pub(crate) solver: String,
    pub(crate) transition: String,
}

impl Default for Options {
    fn default() -> Self {
        Self { tanh: false, solver: "bdmm".into(), transition: "gnn-sum".into() }
    }
}

impl Options {
    /// Solvers that iterate `f_a` need `G = lin`.
    fn linear(&self) -> bool {
        self.solver != "bdmm"
    }

    fn model(&self, workload: &Workload, constraint: ConstraintFunction) -> Model<f32> {
        let config = ModelConfig {
            transition: self.transition.clone(),
            state_dim: workload.state,
            hidden_dims: vec![workload.hidden],
            readout_hidden_dims: vec![workload.hidden],
            output_activation: if self.tanh { Activation::Tanh } else { Activation::Identity },
            constraint,
            multipliers: if self.linear() {
                Multipliers::PerComponent
            } else {
                Multipliers::PerNode
            },
            ..ModelConfig::default()
        };
        config.build(workload.dims()).unwrap()
    }

    /// Means, as in the authors' code; sums for the solvers that need them.
    fn weighing(&self) -> Weighing {
        let constraint = if self.linear() { Scale::Sum } else { Scale::Mean };
        Weighing { loss: Scale::Mean, constraint, ..Weighing::default() }
    }

    fn solver(&self) -> Box<dyn SaddleSolver<f32>> {
        let weights = WeightDescent { lr: 1e-3, ..WeightDescent::default() };
        match self.solver.as_str() {
            "bdmm" => {
                let (state_lr, multiplier_lr) = (1e-3, 1e-3);
                Box::new(Bdmm { weights, state_lr, multiplier_lr, ..Bdmm::default() })
            }
            "one-shot" => Box::new(OneShot { weights, ..OneShot::default() }),
            "implicit" => Box::new(Implicit { weights, ..Implicit::default() }),
            other => {
                let steps = other.strip_prefix("unrolled-").and_then(|steps| steps.parse().ok());
                let steps = steps.expect("bdmm, one-shot, implicit or unrolled-T");
                // A tol that is never reached: all T steps are made.
                Box::new(Unrolled { weights, tol: 1e-30, max_iter: steps })
            }
        }
    }
}

/// A model in training.
pub(crate) struct Updates<'a> {
    lagrangian: &'a Lagrangian<'a, f32>,
    solver: Box<dyn SaddleSolver<f32>>,
    at: Variables<f32>,
    state: OptimizerState<f32>,
}

impl Updates<'_> {
    pub(crate) fn step(&mut self) {
        self.solver.step(self.lagrangian, &mut self.at, &mut self.state);
    }

    /// The number of weights.
    pub(crate) fn weights(&self) -> usize {
        self.at.weights.len()
    }
}

/// Hands a model in training to `body`, at the point in the folder `start` if one is given.
pub(crate) fn train<R>(
    workload: &Workload,
    options: &Options,
    start: Option<&Path>,
    body: impl FnOnce(&mut Updates) -> R,
) -> R {
    let constraint = if options.linear() {
        ConstraintFunction::Linear
    } else {
        ConstraintFunction::AbsoluteInsensitive { epsilon: 0.01 }
    };
    let model = options.model(workload, constraint);
    let supervision = supervision(workload);
    let scratch = Scratch::new();
    let lagrangian =
        Lagrangian::new(&model, &workload.batch, &supervision, options.weighing(), &scratch)
            .unwrap();
    let at = match start {
        Some(folder) => read_point(workload, folder),
        None => model.start(workload.batch.nodes(), &mut uniform(1)),
    };
    let state = OptimizerState::new(&at);
    body(&mut Updates { lagrangian: &lagrangian, solver: options.solver(), at, state })
}

/// `𝓛` of the model with this constraint function at the point in the folder `from`; writes its
/// gradient to the folder `to`.
pub(crate) fn evaluate(
    workload: &Workload,
    options: &Options,
    constraint: &str,
    from: &Path,
    to: &Path,
) -> f64 {
    let constraint = match constraint {
        "squared" => ConstraintFunction::Squared,
        "abs-eps" => ConstraintFunction::AbsoluteInsensitive { epsilon: 0.01 },
        other => panic!("{other} is not squared or abs-eps"),
    };
    let model = options.model(workload, constraint);
    let supervision = supervision(workload);
    let scratch = Scratch::new();
    let lagrangian =
        Lagrangian::new(&model, &workload.batch, &supervision, options.weighing(), &scratch)
            .unwrap();
    let at = read_point(workload, from);
    assert_eq!(at.weights.len(), model.weights(), "weights of the point");
    let mut gradient = at.zeros_like();
    let value = lagrangian.evaluate(&at, Request::ALL, &mut gradient).value();
    std::fs::create_dir_all(to).unwrap();
    for (name, part) in gradient.parts() {
        let entries = part.iter().map(|x| x.to_le_bytes());
        write_array(&to.join(format!("{name}.f32")), entries);
    }
    value
}

fn supervision(workload: &Workload) -> Supervision<f32> {
    Supervision::all(workload.level.targets_of(&workload.batch).clone())
}

/// A point from `weights.f32`, `states.f32` and `multipliers.f32`: weights of `f_a` over
/// `[x_u; l_u; x_v; l_v]`, then of `f_r`, each layer `[inputs, outputs]` and its bias.
fn read_point(workload: &Workload, folder: &Path) -> Variables<f32> {
    let array = |name: &str| read_array(&folder.join(format!("{name}.f32")), f32::from_le_bytes);
    let matrix = |name: &str| {
        let (nodes, entries) = (workload.batch.nodes(), array(name));
        Matrix::from_entries(nodes, entries.len() / nodes, entries).unwrap()
    };
    Variables {
        weights: array("weights"),
        states: vec![matrix("states")],
        multipliers: vec![matrix("multipliers")],
    }
}
