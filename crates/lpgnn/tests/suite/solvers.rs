//! Solvers find saddle points with known answers, agree with each other, and give the same bits on
//! any number of threads.
#![allow(clippy::cast_possible_truncation, reason = "numbers here are tiny, or to be rounded")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use crate::common::{CLASSES, EDGE_FEATURE, Form, LABEL, Recipe, batch, model, point};
use lpgnn::constraint::ConstraintFunction::Linear;
use lpgnn::graph::{GraphBatch, Level};
use lpgnn::lagrangian::{
    Lagrangian, Model, Multipliers, Objective, ReadFrom, Reads, Request, Variables, Weighing,
};
use lpgnn::readout::Supervision;
use lpgnn::saddle::{
    Bdmm, DualRule, Implicit, OneShot, OptimizerState, Order, PrimalRule, SaddleSolver, Unrolled,
    WeightDescent,
};
use lpgnn::train::{ModelConfig, ModelDims};
use lpgnn::transition::{EdgeInputs, Gradients, Input};
use lpgnn::{Matrix, Scalar, Scratch, check};

/// Plain descent, so that rates mean what they say.
fn sgd(rate: f64) -> WeightDescent {
    WeightDescent { rule: PrimalRule::Sgd, lr: rate, ..WeightDescent::default() }
}

/// Weights that stay where they are: the step is below their last place.
fn frozen() -> WeightDescent {
    sgd(1e-30)
}

#[test]
fn every_solver_finds_known_saddle_points() {
    let plain = Bdmm {
        weights: sgd(0.05),
        state_rule: PrimalRule::Sgd,
        state_lr: 0.05,
        dual_rule: DualRule::Plain,
        multiplier_lr: 0.05,
        ..Bdmm::default()
    };
    let nu_pi = Bdmm { dual_rule: DualRule::NuPi { nu: 0.0, kappa: 5.0 }, ..plain };
    let alternating = Bdmm { order: Order::Alternating, ..plain };
    for (solver, tol) in [(plain, 1e-8), (nu_pi, 1e-8), (alternating, 1e-8)] {
        check::solver(|| Box::new(solver), 6000, tol).unwrap();
    }
    // Adam keeps oscillating with about its rate; a rate that decays lets it come to rest.
    let adam = Bdmm {
        weights: WeightDescent { lr_half_life: Some(1000.0), lr: 0.02, ..WeightDescent::default() },
        state_lr: 0.02,
        state_lr_half_life: Some(1000.0),
        dual_rule: DualRule::Plain,
        multiplier_lr: 0.02,
        ..Bdmm::default()
    };
    check::solver(|| Box::new(adam), 12_000, 1e-2).unwrap();

    let one_shot = OneShot { weights: sgd(0.1), beta: 0.7, inner_steps: 1 };
    check::solver(|| Box::new(one_shot), 2000, 1e-10).unwrap();
    check::solver(|| Box::new(OneShot { inner_steps: 3, ..one_shot }), 2000, 1e-10).unwrap();
    let implicit = Implicit { weights: sgd(0.3), beta: 1.0, tol: 1e-13, max_iter: 200 };
    check::solver(|| Box::new(implicit), 500, 1e-10).unwrap();
}

/// A contracting model on random graphs, with `G = lin` and one multiplier per component.
fn contraction(
    transition: usize,
    layers: usize,
    reads: Reads,
) -> (Model<f64>, GraphBatch<f64>, Vec<f64>) {
    let recipe = Recipe {
        transition,
        layers,
        constraint: Linear,
        multipliers: Multipliers::PerComponent,
        reads,
        ..Recipe::default()
    };
    let model = model::<f64>(&recipe);
    let graphs = batch::<f64>(3, Form::Dense);
    let mut weights = point(&model, graphs.nodes(), 11).weights;
    crate::common::contract(&model, &graphs, &mut weights, 0.8);
    (model, graphs, weights)
}

/// Runs a solver with frozen weights and returns the point and the weight gradient.
fn run(
    solver: &mut dyn SaddleSolver<f64>,
    objective: &dyn Objective<f64>,
    start: Variables<f64>,
    steps: usize,
) -> (Variables<f64>, Vec<f64>) {
    let mut at = start;
    let mut memory = OptimizerState::new(&at);
    for _ in 0..steps {
        solver.step(objective, &mut at, &mut memory);
    }
    (at, memory.gradient.weights)
}

fn worst(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

/// Minus the adjoint of the fixed point by a dense linear solve: `(I − Jᵀ) λ = −∂loss/∂x`.
fn dense_multipliers(
    model: &Model<f64>,
    graphs: &GraphBatch<f64>,
    objective: &dyn Objective<f64>,
    at: &Variables<f64>,
) -> Vec<f64> {
    let scratch = Scratch::new();
    let n = at.states[0].as_slice().len();
    let transition = model.transitions().next().unwrap();
    let mut system = vec![vec![0.0; n + 1]; n];
    for column in 0..n {
        let mut unit = Matrix::zeros(graphs.nodes(), transition.state_dim());
        unit.as_mut_slice()[column] = 1.0;
        let mut back = Matrix::zeros(graphs.nodes(), transition.state_dim());
        transition.backward(
            &at.weights[model.transition_weights(0)],
            Input::of(graphs, &at.states[0]),
            &unit,
            Gradients::new(None, &mut back, None),
            &scratch,
        );
        for row in 0..n {
            system[row][column] = f64::from(u8::from(row == column)) - back.as_slice()[row];
        }
    }
    let mut at = at.clone();
    at.multipliers[0].as_mut_slice().fill(0.0);
    let mut gradient = at.zeros_like();
    objective.evaluate(&at, Request::ALL, &mut gradient);
    for (row, d) in gradient.states[0].as_slice().iter().enumerate() {
        system[row][n] = -d;
    }
    for k in 0..n {
        let pivot =
            (k..n).max_by(|&i, &j| system[i][k].abs().total_cmp(&system[j][k].abs())).unwrap();
        system.swap(k, pivot);
        for i in k + 1..n {
            let factor = system[i][k] / system[k][k];
            for j in k..=n {
                system[i][j] -= factor * system[k][j];
            }
        }
    }
    let mut x = vec![0.0; n];
    for i in (0..n).rev() {
        let known: f64 = (i + 1..n).map(|j| system[i][j] * x[j]).sum();
        x[i] = (system[i][n] - known) / system[i][i];
    }
    x
}

const READS: [ReadFrom; 2] = [ReadFrom::State, ReadFrom::Transition];

#[test]
fn at_rest_one_shot_implicit_and_unrolled_have_the_same_adjoint_and_gradient() {
    for transition in [1, 3, 4, 6, 7] {
        for layers in 1..=2 {
            for from in READS {
                let reads = Reads { from, ..Reads::default() };
                let (model, graphs, weights) = contraction(transition, layers, reads);
                let supervision = Supervision::all(graphs.node_targets().clone());
                let scratch = Scratch::new();
                let lagrangian =
                    Lagrangian::new(&model, &graphs, &supervision, Weighing::default(), &scratch)
                        .unwrap();
                let start = model.zeros(graphs.nodes(), weights);
                let case = format!("transition {transition}, {layers} layers, {from:?}");

                let mut one_shot = OneShot { weights: frozen(), ..OneShot::default() };
                let (shot, d_shot) = run(&mut one_shot, &lagrangian, start.clone(), 400);
                let mut implicit =
                    Implicit { weights: frozen(), tol: 1e-12, max_iter: 1000, beta: 1.0 };
                let (solved, d_solved) = run(&mut implicit, &lagrangian, start.clone(), 1);
                let mut unrolled = Unrolled { weights: frozen(), tol: 1e-13, max_iter: 500 };
                let (_, d_unrolled) = run(&mut unrolled, &lagrangian, start, 1);

                assert!(d_solved.iter().any(|d| d.abs() > 1e-3), "{case}: nothing to compare");
                for layer in 0..layers {
                    let (a, b) = (&shot.multipliers[layer], &solved.multipliers[layer]);
                    assert!(worst(a.as_slice(), b.as_slice()) < 1e-5, "{case}");
                }
                assert!(worst(&d_shot, &d_solved) < 1e-5, "{case}: {}", worst(&d_shot, &d_solved));
                assert!(
                    worst(&d_unrolled, &d_solved) < 1e-5,
                    "{case}: {}",
                    worst(&d_unrolled, &d_solved)
                );
                if layers == 1 {
                    let exact = dense_multipliers(&model, &graphs, &lagrangian, &solved);
                    let found = solved.multipliers[0].as_slice();
                    assert!(worst(found, &exact) < 1e-8, "{case}: {}", worst(found, &exact));
                }
            }
        }
    }
}

#[test]
fn a_stack_that_reads_images_is_never_behind_itself() {
    // Without states among the arguments of h, layers are those of a feed-forward network: one
    // update of one-shot, from states of zero, has the gradient of the converged ones.
    let inputs = EdgeInputs { neighbour_state: false, own_state: false, ..EdgeInputs::default() };
    let graphs = batch::<f64>(3, Form::Dense);
    let supervision = Supervision::all(graphs.node_targets().clone());
    let scratch = Scratch::new();
    for (from, exact) in [(ReadFrom::Transition, true), (ReadFrom::State, false)] {
        let reads = Reads { from, ..Reads::default() };
        let config = ModelConfig { layers: 3, inputs, reads, ..ModelConfig::default() };
        let (features, edge_features) = (LABEL, EDGE_FEATURE);
        let dims = ModelDims { features, edge_features, outputs: CLASSES, level: Level::Node };
        let model = config.build::<f64>(dims).unwrap();
        let start = model.start(graphs.nodes(), &mut check::uniform(1));
        let lagrangian =
            Lagrangian::new(&model, &graphs, &supervision, Weighing::default(), &scratch).unwrap();
        let mut one_shot = OneShot { weights: frozen(), ..OneShot::default() };
        let mut implicit = Implicit { weights: frozen(), tol: 1e-13, ..Implicit::default() };
        let (_, d_shot) = run(&mut one_shot, &lagrangian, start.clone(), 1);
        let (_, d_solved) = run(&mut implicit, &lagrangian, start, 1);
        assert!(d_solved.iter().any(|d| d.abs() > 1e-3), "nothing to compare");
        assert_eq!(worst(&d_shot, &d_solved) < 1e-12, exact, "{from:?}");
    }
}

#[test]
fn damped_bdmm_reaches_the_saddle_point_that_implicit_solves_for() {
    let (model, graphs, weights) = contraction(1, 1, Reads::default());
    let supervision = Supervision::all(graphs.node_targets().clone());
    let scratch = Scratch::new();
    let start = model.zeros(graphs.nodes(), weights);
    let plain = Weighing::default();
    let lagrangian = Lagrangian::new(&model, &graphs, &supervision, plain, &scratch).unwrap();
    let mut implicit = Implicit { weights: frozen(), tol: 1e-12, max_iter: 1000, beta: 1.0 };
    let (solved, d_solved) = run(&mut implicit, &lagrangian, start.clone(), 1);

    let damped = Weighing { penalty: 5.0, ..plain };
    let lagrangian = Lagrangian::new(&model, &graphs, &supervision, damped, &scratch).unwrap();
    let mut bdmm = Bdmm {
        weights: frozen(),
        state_rule: PrimalRule::Sgd,
        state_lr: 0.02,
        dual_rule: DualRule::Plain,
        multiplier_lr: 0.1,
        ..Bdmm::default()
    };
    let (reached, d_reached) = run(&mut bdmm, &lagrangian, start, 20_000);
    let apart = worst(reached.states[0].as_slice(), solved.states[0].as_slice());
    assert!(apart < 1e-5, "{apart:e}");
    assert!(worst(reached.multipliers[0].as_slice(), solved.multipliers[0].as_slice()) < 1e-5);
    assert!(worst(&d_reached, &d_solved) < 1e-5);
}

fn solvers<S: Scalar>() -> Vec<Box<dyn SaddleSolver<S>>> {
    vec![
        Box::new(Bdmm::default()),
        Box::new(Bdmm { order: Order::Alternating, dual_rule: DualRule::Plain, ..Bdmm::default() }),
        Box::new(OneShot::default()),
        Box::new(Implicit::default()),
        Box::new(Unrolled { max_iter: 5, ..Unrolled::default() }),
    ]
}

/// The weights after some updates on `threads` threads, as bits.
fn bits<S: Scalar>(
    threads: usize,
    solver: usize,
    transition: usize,
    graphs: &GraphBatch<S>,
) -> Vec<u64> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    pool.install(|| {
        let recipe = Recipe {
            transition,
            layers: 2,
            constraint: Linear,
            multipliers: Multipliers::PerComponent,
            ..Recipe::default()
        };
        let model = model::<S>(&recipe);
        let mut at = model.start(graphs.nodes(), &mut check::uniform(5));
        let mut memory = OptimizerState::new(&at);
        let supervision = Supervision::all(graphs.node_targets().clone());
        let scratch = Scratch::new();
        let mut solver = solvers::<S>().swap_remove(solver);
        let lagrangian =
            Lagrangian::new(&model, graphs, &supervision, Weighing::default(), &scratch).unwrap();
        for _ in 0..5 {
            solver.step(&lagrangian, &mut at, &mut memory);
        }
        at.parts().flat_map(|(_, part)| part.iter().map(|x| x.f64().to_bits())).collect()
    })
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    // Once with whole graphs in a group, once with graphs cut.
    for work in [30, 3] {
        for transition in [0, 2, 3, 4, 5] {
            for solver in 0..5 {
                let single = batch::<f32>(1, Form::OneHot).with_groups_of(work);
                let double = batch::<f64>(1, Form::OneHot).with_groups_of(work);
                assert!(single.groups().ranges().len() > 1);
                let (one, two) =
                    (bits(1, solver, transition, &single), bits(1, solver, transition, &double));
                for threads in [2, 4] {
                    assert_eq!(
                        one,
                        bits(threads, solver, transition, &single),
                        "f32, solver {solver}"
                    );
                    assert_eq!(
                        two,
                        bits(threads, solver, transition, &double),
                        "f64, solver {solver}"
                    );
                }
            }
        }
    }
}

#[test]
fn single_precision_follows_double_precision() {
    for transition in 0..crate::common::TRANSITIONS {
        let recipe = Recipe { transition, ..Recipe::default() };
        let (single, double) = (model::<f32>(&recipe), model::<f64>(&recipe));
        let (graphs32, graphs64) = (batch::<f32>(4, Form::Dense), batch::<f64>(4, Form::Dense));
        let at = point(&double, graphs64.nodes(), 3);
        let round =
            |matrices: &[Matrix<f64>]| matrices.iter().map(Matrix::convert::<f32>).collect();
        let at32 = Variables {
            weights: at.weights.iter().map(|&w| w as f32).collect(),
            states: round(&at.states),
            multipliers: round(&at.multipliers),
        };
        let (s32, s64) = (
            Supervision::all(graphs32.node_targets().clone()),
            Supervision::all(graphs64.node_targets().clone()),
        );
        let (scratch32, scratch64) = (Scratch::new(), Scratch::new());
        let weighing = Weighing::default();
        let l32 = Lagrangian::new(&single, &graphs32, &s32, weighing, &scratch32).unwrap();
        let l64 = Lagrangian::new(&double, &graphs64, &s64, weighing, &scratch64).unwrap();
        let (mut d32, mut d64) = (at32.zeros_like(), at.zeros_like());
        let value32 = l32.evaluate(&at32, Request::ALL, &mut d32).value();
        let value64 = l64.evaluate(&at, Request::ALL, &mut d64).value();
        assert!(
            (value32 - value64).abs() < 1e-4 * value64.abs().max(1.0),
            "transition {transition}"
        );
        for ((_, a), (name, b)) in d32.parts().zip(d64.parts()) {
            let scale = b.iter().fold(1.0_f64, |m, x| m.max(x.abs()));
            for (a, b) in a.iter().zip(b) {
                assert!(
                    (f64::from(*a) - b).abs() < 2e-5 * scale,
                    "transition {transition}, {name}: {a} for {b}"
                );
            }
        }
    }
}
