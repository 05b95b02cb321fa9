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
    AugmentedLagrangian, Bdmm, DualRule, Implicit, OneShot, OptimizerState, Order, PrimalRule,
    SaddleSolver, Sse, Unrolled, WeightDescent,
};
use lpgnn::train::{ModelConfig, ModelDims};
use lpgnn::transition::{EdgeInputs, Gradients, Input};
use lpgnn::{Matrix, Scalar, Scratch, check};

/// Without moments, so that rates mean what they say.
fn sgd(rate: f64) -> WeightDescent {
    WeightDescent { rule: PrimalRule::Sgd, lr: rate, ..WeightDescent::default() }
}

/// Weights that stay where they are: the step is below their last place.
fn frozen() -> WeightDescent {
    sgd(1e-30)
}

#[test]
fn every_solver_finds_known_saddle_points() {
    let bdmm = Bdmm {
        weights: sgd(0.05),
        state_rule: PrimalRule::Sgd,
        state_lr: 0.05,
        dual_rule: DualRule::Sgd,
        multiplier_lr: 0.05,
        ..Bdmm::default()
    };
    let nu_pi = Bdmm { dual_rule: DualRule::NuPi { nu: 0.0, kappa: 5.0 }, ..bdmm };
    let alternating = Bdmm { order: Order::Alternating, ..bdmm };
    let apart = Bdmm { inner_steps: 4, ..bdmm };
    for (solver, tol) in [(bdmm, 1e-8), (nu_pi, 1e-8), (alternating, 1e-8), (apart, 1e-8)] {
        check::solver(|| Box::new(solver), 6000, tol).unwrap();
    }
    // Adam keeps oscillating with about its rate; a rate that decays lets it come to rest.
    let adam = Bdmm {
        weights: WeightDescent { lr_half_life: Some(1000.0), lr: 0.02, ..WeightDescent::default() },
        state_lr: 0.02,
        state_lr_half_life: Some(1000.0),
        dual_rule: DualRule::Sgd,
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

#[test]
fn the_method_of_multipliers_finds_known_saddle_points() {
    // The penalty is at its largest from the first, or has to grow.
    for (penalty, max_penalty) in [(1.0, 1.0), (0.5, 8.0)] {
        let solver = AugmentedLagrangian {
            weights: sgd(0.05),
            state_rule: PrimalRule::Sgd,
            state_lr: 0.05,
            inner_steps: 20,
            penalty,
            max_penalty,
            ..AugmentedLagrangian::default()
        };
        check::solver(|| Box::new(solver.check().unwrap()), 1000, 1e-8).unwrap();
    }
}

#[test]
fn the_penalty_grows_while_the_violation_does_not_fall() {
    // States that do not move leave the violation of the parabola, x − 1, at 1.
    let still = AugmentedLagrangian {
        weights: frozen(),
        state_rule: PrimalRule::Sgd,
        state_lr: 1e-30,
        penalty: 1.0,
        penalty_growth: 3.0,
        max_penalty: 20.0,
        inner_steps: 5,
        ..AugmentedLagrangian::default()
    };
    let moving = AugmentedLagrangian { state_lr: 0.3, ..still };
    let problem = check::Quadratic::parabola();
    let penalties = |solver: AugmentedLagrangian| -> Vec<f64> {
        let mut at = problem.start();
        let mut state = OptimizerState::new(&at);
        let updates = (0..6).map(|_| {
            solver.step(&problem, &mut at, &mut state);
            *state.slots.number("augmented-lagrangian.penalty", 0.0)
        });
        updates.collect()
    };
    assert_eq!(penalties(still), [1.0, 1.0, 3.0, 9.0, 20.0, 20.0]);
    assert_eq!(penalties(moving), [1.0; 6]);
}

#[test]
fn steady_state_embedding_with_the_whole_adjoint_finds_known_saddle_points() {
    let sse =
        Sse { weights: sgd(0.1), beta: 1.0, state_steps: 40, adjoint_terms: 60, ..Sse::default() };
    check::solver(|| Box::new(sse), 500, 1e-9).unwrap();
    // A sample comes to the same, more slowly; so do several steps of the weights in a row.
    let sampled = Sse { sample: 0.5, state_steps: 80, weight_steps: 2, ..sse };
    check::solver(|| Box::new(sampled.check().unwrap()), 500, 1e-9).unwrap();
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
    solver: &dyn SaddleSolver<f64>,
    objective: &dyn Objective<f64>,
    start: Variables<f64>,
    steps: usize,
) -> (Variables<f64>, Vec<f64>) {
    let mut at = start;
    let mut state = OptimizerState::new(&at);
    for _ in 0..steps {
        solver.step(objective, &mut at, &mut state);
    }
    (at, state.gradient.weights)
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

                let one_shot = OneShot { weights: frozen(), ..OneShot::default() };
                let (shot, d_shot) = run(&one_shot, &lagrangian, start.clone(), 400);
                let implicit =
                    Implicit { weights: frozen(), tol: 1e-12, max_iter: 1000, beta: 1.0 };
                let (solved, d_solved) = run(&implicit, &lagrangian, start.clone(), 1);
                let unrolled = Unrolled { weights: frozen(), tol: 1e-13, max_iter: 500 };
                let (_, d_unrolled) = run(&unrolled, &lagrangian, start, 1);

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
        let one_shot = OneShot { weights: frozen(), ..OneShot::default() };
        let implicit = Implicit { weights: frozen(), tol: 1e-13, ..Implicit::default() };
        let (_, d_shot) = run(&one_shot, &lagrangian, start.clone(), 1);
        let (_, d_solved) = run(&implicit, &lagrangian, start, 1);
        assert!(d_solved.iter().any(|d| d.abs() > 1e-3), "nothing to compare");
        assert_eq!(worst(&d_shot, &d_solved) < 1e-12, exact, "{from:?}");
    }
}

#[test]
fn with_a_penalty_free_states_reach_the_saddle_point_that_implicit_solves_for() {
    let (model, graphs, weights) = contraction(1, 1, Reads::default());
    let supervision = Supervision::all(graphs.node_targets().clone());
    let scratch = Scratch::new();
    let start = model.zeros(graphs.nodes(), weights);
    let lagrangian =
        Lagrangian::new(&model, &graphs, &supervision, Weighing::default(), &scratch).unwrap();
    let implicit = Implicit { weights: frozen(), tol: 1e-12, max_iter: 1000, beta: 1.0 };
    let (solved, d_solved) = run(&implicit, &lagrangian, start.clone(), 1);

    let bdmm = Bdmm {
        weights: frozen(),
        state_rule: PrimalRule::Sgd,
        state_lr: 0.02,
        dual_rule: DualRule::Sgd,
        multiplier_lr: 0.1,
        penalty: 5.0,
        ..Bdmm::default()
    };
    // Here 5 is too little, however many inner steps: twice the curvature of the loss has to be less
    // than that of the penalty.
    let multipliers = AugmentedLagrangian {
        weights: frozen(),
        state_rule: PrimalRule::Sgd,
        state_lr: 0.005,
        inner_steps: 400,
        penalty: 20.0,
        max_penalty: 20.0,
        ..AugmentedLagrangian::default()
    };
    let solvers: [(&dyn SaddleSolver<f64>, usize); 2] = [(&bdmm, 20_000), (&multipliers, 50)];
    for (solver, steps) in solvers {
        let (reached, _) = run(solver, &lagrangian, start.clone(), steps);
        let apart = worst(reached.states[0].as_slice(), solved.states[0].as_slice());
        assert!(apart < 1e-5, "{solver:?}: {apart:e}");
        let apart = worst(reached.multipliers[0].as_slice(), solved.multipliers[0].as_slice());
        assert!(apart < 1e-5, "{solver:?}: {apart:e}");
        let mut gradient = reached.zeros_like();
        lagrangian.evaluate(&reached, Request::ALL, &mut gradient);
        assert!(worst(&gradient.weights, &d_solved) < 1e-5, "{solver:?}");
    }
}

/// Weights see one gradient, that at states and multipliers which have moved `m` times.
#[test]
fn inner_steps_move_states_and_multipliers_ahead_of_the_weights() {
    let (model, graphs, weights) = contraction(1, 1, Reads::default());
    let supervision = Supervision::all(graphs.node_targets().clone());
    let scratch = Scratch::new();
    let lagrangian =
        Lagrangian::new(&model, &graphs, &supervision, Weighing::default(), &scratch).unwrap();
    let solver = Bdmm { weights: sgd(0.05), dual_rule: DualRule::Sgd, ..Bdmm::default() };
    let start = model.zeros(graphs.nodes(), weights);
    let (ahead, _) = run(&Bdmm { weights: frozen(), ..solver }, &lagrangian, start.clone(), 2);
    let (apart, _) = run(&Bdmm { inner_steps: 3, ..solver }, &lagrangian, start, 1);
    let mut gradient = ahead.zeros_like();
    lagrangian.evaluate(&ahead, Request::ALL, &mut gradient);
    for ((w, before), d) in apart.weights.iter().zip(&ahead.weights).zip(&gradient.weights) {
        assert!((w - (before - 0.05 * d)).abs() < 1e-12, "{w} {before} {d}");
    }
    assert!(worst(apart.states[0].as_slice(), ahead.states[0].as_slice()) > 1e-6);
}

/// `(Jᵀ v)` of the first layer, for every unit vector `v`: the columns of `Jᵀ`.
fn transposed_jacobian(
    model: &Model<f64>,
    graphs: &GraphBatch<f64>,
    at: &Variables<f64>,
) -> Vec<Vec<f64>> {
    let transition = model.transitions().next().unwrap();
    let (n, scratch) = (at.states[0].as_slice().len(), Scratch::new());
    let column = |column: usize| {
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
        back.into_entries()
    };
    (0..n).map(column).collect()
}

#[test]
fn a_truncated_adjoint_is_its_neumann_series_and_none_is_one_application_of_f_a() {
    let reads = Reads { from: ReadFrom::Transition, ..Reads::default() };
    let (model, graphs, weights) = contraction(1, 1, reads);
    let supervision = Supervision::all(graphs.node_targets().clone());
    let scratch = Scratch::new();
    let lagrangian =
        Lagrangian::new(&model, &graphs, &supervision, Weighing::default(), &scratch).unwrap();
    let start = model.zeros(graphs.nodes(), weights);
    let sse = Sse { weights: frozen(), beta: 0.7, ..Sse::default() };

    // No terms: the slope of the loss in the weights while the states stay where they are.
    let (at, d_none) = run(&sse, &lagrangian, start.clone(), 1);
    assert!(at.multipliers[0].as_slice().iter().all(|&l| l.abs() <= 0.0));
    let mut spare = at.zeros_like();
    for (i, d) in d_none.iter().enumerate() {
        let mut loss = |h: f64| {
            let mut moved = at.clone();
            moved.weights[i] += h;
            lagrangian.evaluate(&moved, Request::ALL, &mut spare).loss
        };
        let slope = (loss(1e-5) - loss(-1e-5)) / 2e-5;
        assert!((d - slope).abs() < 1e-7 * slope.abs().max(1.0), "weight {i}: {d}, {slope}");
    }

    // k terms: Λ = −β Σ_{i<k} ((1−β) I + β Jᵀ)ⁱ ∂loss/∂X.
    let jacobian = transposed_jacobian(&model, &graphs, &at);
    lagrangian.evaluate(&at, Request::ALL, &mut spare);
    let mut term = spare.states[0].as_slice().to_vec();
    let mut sum = vec![0.0; term.len()];
    for terms in 1..=4 {
        sum.iter_mut().zip(&term).for_each(|(sum, term)| *sum -= 0.7 * term);
        let mut next: Vec<f64> = term.iter().map(|term| 0.3 * term).collect();
        for (column, &factor) in jacobian.iter().zip(&term) {
            next.iter_mut().zip(column).for_each(|(next, j)| *next += 0.7 * j * factor);
        }
        term = next;
        let truncated = Sse { adjoint_terms: terms, ..sse };
        let (reached, d_terms) = run(&truncated, &lagrangian, start.clone(), 1);
        assert!(worst(reached.multipliers[0].as_slice(), &sum) < 1e-12, "{terms} terms");
        assert!(worst(&d_terms, &d_none) > 1e-6, "{terms} terms");
    }
}

#[test]
fn steady_state_embedding_with_the_whole_adjoint_has_the_implicit_gradient() {
    let reads = Reads { from: ReadFrom::Transition, ..Reads::default() };
    for (transition, layers) in [(1, 1), (3, 2), (6, 2)] {
        let (model, graphs, weights) = contraction(transition, layers, reads);
        let supervision = Supervision::all(graphs.node_targets().clone());
        let scratch = Scratch::new();
        let lagrangian =
            Lagrangian::new(&model, &graphs, &supervision, Weighing::default(), &scratch).unwrap();
        let start = model.zeros(graphs.nodes(), weights);
        let implicit = Implicit { weights: frozen(), tol: 1e-13, max_iter: 1000, beta: 1.0 };
        let (_, d_solved) = run(&implicit, &lagrangian, start.clone(), 1);
        let apart = |terms: usize| {
            let sse =
                Sse { weights: frozen(), state_steps: 400, adjoint_terms: terms, ..Sse::default() };
            worst(&run(&sse, &lagrangian, start.clone(), 1).1, &d_solved)
        };
        let (none, few, many) = (apart(0), apart(5), apart(400));
        assert!(many < 1e-9, "transition {transition}: {many:e}");
        assert!(none > few && few > 1e3 * many, "transition {transition}: {none:e}, {few:e}");
    }
}

#[test]
fn a_sample_of_the_nodes_follows_from_seed_and_step() {
    let reads = Reads { from: ReadFrom::Transition, ..Reads::default() };
    let (model, graphs, weights) = contraction(1, 2, reads);
    let supervision = Supervision::all(graphs.node_targets().clone());
    let scratch = Scratch::new();
    let lagrangian =
        Lagrangian::new(&model, &graphs, &supervision, Weighing::default(), &scratch).unwrap();
    let start = model.zeros(graphs.nodes(), weights);
    let moved = |seed: u64, steps: usize| {
        let sse = Sse { sample: 0.5, seed, state_steps: steps, ..Sse::default() };
        run(&sse, &lagrangian, start.clone(), 1).0.states
    };
    let still = |states: &[Matrix<f64>]| -> Vec<usize> {
        let zero = |row: &[f64]| row.iter().all(|x| x.abs() <= 0.0);
        (0..graphs.nodes()).filter(|&v| zero(states[0].row(v))).collect()
    };
    let once = moved(1, 1);
    assert!((2..graphs.nodes() - 2).contains(&still(&once).len()), "{:?}", still(&once));
    assert_eq!(once, moved(1, 1));
    assert_ne!(still(&once), still(&moved(2, 1)));
    assert!(still(&moved(1, 9)).len() < still(&once).len());
    let whole = Sse { normalize: true, ..Sse::default() };
    let (at, _) = run(&whole, &lagrangian, start.clone(), 1);
    for states in &at.states {
        for v in 0..graphs.nodes() {
            let length = states.row(v).iter().map(|x| x * x).sum::<f64>().sqrt();
            assert!(length < 1e-15 || (length - 1.0).abs() < 1e-12, "{length}");
        }
    }
}

/// What a solver does to a graph does not depend on where in the batch the graph is.
#[test]
fn the_order_of_graphs_does_not_matter_to_a_solver() {
    let graphs = batch::<f64>(2, Form::Dense);
    let order = [4, 0, 5, 2, 3, 1];
    let shuffled = graphs.select(&order);
    let nodes: Vec<usize> = order.iter().flat_map(|&graph| graphs.nodes_of(graph)).collect();
    let reads = Reads { from: ReadFrom::Transition, ..Reads::default() };
    let (model, _, weights) = contraction(3, 2, reads);
    let moved = |solver: usize, graphs: &GraphBatch<f64>| {
        let supervision = Supervision::all(graphs.node_targets().clone());
        let scratch = Scratch::new();
        let lagrangian =
            Lagrangian::new(&model, graphs, &supervision, Weighing::default(), &scratch).unwrap();
        let start = model.zeros(graphs.nodes(), weights.clone());
        run(solvers::<f64>()[solver].as_ref(), &lagrangian, start, 4).0
    };
    for solver in 0..SOLVERS {
        let (one, other) = (moved(solver, &graphs), moved(solver, &shuffled));
        assert!(worst(&one.weights, &other.weights) < 1e-9, "solver {solver}");
        for (one, other) in one.states.iter().zip(&other.states) {
            let one = one.select(nodes.iter().copied());
            assert!(worst(one.as_slice(), other.as_slice()) < 1e-9, "solver {solver}");
        }
    }
}

fn solvers<S: Scalar>() -> Vec<Box<dyn SaddleSolver<S>>> {
    vec![
        Box::new(Bdmm::default()),
        Box::new(Bdmm { order: Order::Alternating, dual_rule: DualRule::Sgd, ..Bdmm::default() }),
        Box::new(OneShot::default()),
        Box::new(Implicit::default()),
        Box::new(Unrolled { max_iter: 5, ..Unrolled::default() }),
        Box::new(Sse { adjoint_terms: 2, ..Sse::default() }),
        Box::new(AugmentedLagrangian::default()),
    ]
}

const SOLVERS: usize = 7;

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
        let mut state = OptimizerState::new(&at);
        let supervision = Supervision::all(graphs.node_targets().clone());
        let scratch = Scratch::new();
        let solver = solvers::<S>().swap_remove(solver);
        let lagrangian =
            Lagrangian::new(&model, graphs, &supervision, Weighing::default(), &scratch).unwrap();
        for _ in 0..5 {
            solver.step(&lagrangian, &mut at, &mut state);
        }
        at.parts().flat_map(|(_, part)| part.iter().map(|x| x.f64().to_bits())).collect()
    })
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    // Once with whole graphs in a group, once with graphs cut.
    for work in [30, 3] {
        for transition in [0, 2, 3, 4, 5] {
            for solver in 0..SOLVERS {
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
