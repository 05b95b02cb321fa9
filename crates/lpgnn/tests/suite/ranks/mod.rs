//! Training, evaluation and prediction are the same to the last bit on any number of ranks. Ranks are threads here.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(clippy::cast_possible_truncation, reason = "numbers here are small")]

mod parts;
mod threads;

use std::fmt::Write;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use lpgnn::check::uniform;
use lpgnn::constraint::ConstraintFunction;
use lpgnn::data::generate::CliqueConfig;
use lpgnn::data::{Dataset, Level, Split};
use lpgnn::experiment::run::{CheckpointInterval, Progress, Run, RunFolder};
use lpgnn::graph::{Communicator, Features, GraphBatch, Part, SparseRows, Targets};
use lpgnn::inference::{FixedPointOptions, Inference, RelaxOptions};
use lpgnn::lagrangian::{
    Lagrangian, Multipliers, Objective, ReadFrom, ReadLayers, Reads, Request, Scale, Variables,
    Weighing,
};
use lpgnn::readout::Supervision;
use lpgnn::run::{Checkpoint, RunConfig, SavedModel};
use lpgnn::saddle::{AugmentedLagrangian, Bdmm, DualRule, Implicit, OneShot, Sse, Unrolled};
use lpgnn::train::{
    EpochReport, ModelConfig, SolverConfig, Trainer, TrainerState, TrainingConfig, TrainingData,
};
use lpgnn::{Matrix, Scalar, Scratch};
use threads::on_ranks;

/// One large graph, cut into several groups: a ring with chords, and a node without edges.
fn large<S: Scalar>(nodes: usize, features: Features<S>) -> GraphBatch<S> {
    let mut draw = uniform(7);
    let mut edges = vec![];
    let last = nodes as u32 - 1;
    for v in 0..last {
        edges.push((v, (v + 1) % last));
        for _ in 0..2 {
            #[allow(clippy::cast_sign_loss, reason = "drawn from [0, 1)")]
            edges.push((v, (draw() * f64::from(last)) as u32));
        }
    }
    let rows: Vec<S> = (0..2 * edges.len()).map(|_| S::of(draw() - 0.5)).collect();
    let edge_features = Features::Dense(Matrix::from_entries(edges.len(), 2, rows).unwrap());
    let class = (0..nodes as u32).map(|v| (v / 7) % 3).collect();
    GraphBatch::of_graph_with_edges(features, &edges, &edge_features)
        .unwrap()
        .with_node_targets(Targets::classes(3, class).unwrap())
        .unwrap()
        .with_graph_targets(Targets::classes(3, vec![1]).unwrap())
        .unwrap()
}

fn dense<S: Scalar>(rows: usize, width: usize, seed: u64) -> Features<S> {
    let mut draw = uniform(seed);
    let entries = (0..rows * width).map(|_| S::of(2.0 * draw() - 1.0)).collect();
    Features::Dense(Matrix::from_entries(rows, width, entries).unwrap())
}

/// Many small graphs, one of them without nodes.
fn many<S: Scalar>(count: u64) -> GraphBatch<S> {
    use crate::common::{Form, graph};
    let graphs: Vec<GraphBatch<S>> = (0..count)
        .map(|seed| {
            graph(seed, if seed == 5 { 0 } else { 6 + seed as usize % 9 }, 0.3, Form::Dense)
        })
        .collect();
    GraphBatch::union(&graphs).unwrap()
}

fn nodes_in_thirds(batch: &GraphBatch<f32>) -> TrainingData<f32> {
    let part = |k: usize| (0..batch.nodes()).filter(|v| v % 3 == k).collect();
    let split = Split { level: Level::Node, train: part(0), val: part(1), test: part(2) };
    TrainingData::new(batch, &split, Level::Node).unwrap()
}

fn graphs_in_thirds(batch: &GraphBatch<f32>, level: Level) -> TrainingData<f32> {
    let part = |k: usize| (0..batch.graphs()).filter(|g| g % 3 == k).collect();
    let split = Split { level: Level::Graph, train: part(0), val: part(1), test: part(2) };
    TrainingData::new(batch, &split, level).unwrap()
}

fn small(transition: &str) -> ModelConfig {
    ModelConfig {
        transition: transition.into(),
        state_dim: 4,
        hidden_dims: vec![6],
        readout_hidden_dims: vec![5],
        reads: Reads { from: ReadFrom::Transition, ..Reads::default() },
        ..ModelConfig::default()
    }
}

fn solvers() -> Vec<SolverConfig> {
    vec![
        SolverConfig::Bdmm(Bdmm { penalty: 0.5, ..Bdmm::default() }),
        SolverConfig::OneShot(OneShot { inner_steps: 2, ..OneShot::default() }),
        SolverConfig::Implicit(Implicit { max_iter: 20, ..Implicit::default() }),
        SolverConfig::Unrolled(Unrolled { max_iter: 6, ..Unrolled::default() }),
        SolverConfig::Sse(Sse { adjoint_terms: 2, sample: 0.7, ..Sse::default() }),
        SolverConfig::AugmentedLagrangian(AugmentedLagrangian {
            inner_steps: 3,
            ..AugmentedLagrangian::default()
        }),
    ]
}

fn plan(solver: SolverConfig) -> TrainingConfig {
    TrainingConfig { epochs: 3, eval_every: 2, patience: None, solver, ..TrainingConfig::default() }
}

/// All that training tells and leaves, as text that shows every bit.
fn outcome(model: &ModelConfig, config: &TrainingConfig, data: &TrainingData<f32>) -> String {
    let model = model.build(data.dims()).unwrap();
    let mut told = String::new();
    let mut observer = |report: &EpochReport, state: &TrainerState<f32>| {
        told += &serde_json::to_string(report).unwrap();
        for (_, part) in state.variables.parts() {
            let bits: Vec<_> = part.iter().map(|x| x.to_bits()).collect();
            write!(told, "{bits:x?}").unwrap();
        }
        ControlFlow::Continue(())
    };
    let trainer = Trainer::new(config.clone().check().unwrap(), &model, data).unwrap();
    let (trained, state) = trainer.run_keeping_state(&mut observer).unwrap();
    format!("{told} {trained:?} {:?}", state.optimizer.slots)
}

fn same_on_ranks(model: &ModelConfig, config: &TrainingConfig, data: &TrainingData<f32>) {
    let alone = outcome(model, config, data);
    for ranks in [2, 3, 4] {
        let together = on_ranks(ranks, |communicator| {
            outcome(model, config, &data.clone().shared_by(&communicator))
        });
        for (rank, outcome) in together.iter().enumerate() {
            assert!(
                *outcome == alone,
                "rank {rank} of {ranks} differs: {model:?} {config:?}\n{}\n{}",
                &alone[..alone.len().min(600)],
                &outcome[..outcome.len().min(600)]
            );
        }
    }
}

const TRANSITIONS: [&str; 7] =
    ["gnn-sum", "gnn-mean", "gnn-normalized", "gin", "gcn-mean", "gcn", "sage-max"];

#[test]
fn every_solver_trains_a_large_graph_to_the_same_bits() {
    let data = nodes_in_thirds(&large(700, dense(700, 3, 1)));
    assert!(!data.training_graphs().groups().whole_graphs());
    for solver in solvers() {
        same_on_ranks(&small("gnn-mean"), &plan(solver), &data);
    }
}

#[test]
fn every_transition_trains_a_large_graph_to_the_same_bits() {
    let data = nodes_in_thirds(&large(700, dense(700, 3, 1)));
    for transition in TRANSITIONS {
        for hidden_dims in [vec![6], vec![6, 5]] {
            let model = ModelConfig { hidden_dims, ..small(transition) };
            same_on_ranks(&model, &plan(solvers()[1]), &data);
        }
    }
}

/// A ring of nodes that know the next two on both sides: most have no neighbours on another rank.
fn ring(nodes: usize) -> GraphBatch<f32> {
    let count = nodes as u32;
    let mut edges: Vec<(u32, u32)> =
        (0..count).flat_map(|v| [(v, (v + 1) % count), (v, (v + 2) % count)]).collect();
    edges.sort_unstable();
    let class = (0..count).map(|v| (v / 7) % 3).collect();
    GraphBatch::of_graph(dense(nodes, 3, 1), &edges)
        .unwrap()
        .with_node_targets(Targets::classes(3, class).unwrap())
        .unwrap()
}

#[test]
fn nodes_that_are_worked_on_while_ghosts_are_on_their_way_keep_the_bits() {
    // Enough for every rank to own some.
    let batch = ring(2400);
    for own in on_ranks(3, |ranks| batch.clone().shared_by(&ranks).share().unwrap().nodes()) {
        let part = Part::new(batch.topology(), own.clone().map(|v| v as u32).collect());
        let interior = &part.topology.ghosts().interior;
        let inner = 2..own.len() - 2;
        assert_eq!(interior[..], *std::slice::from_ref(&inner), "all but two on both sides");
    }
    let data = nodes_in_thirds(&batch);
    for transition in TRANSITIONS {
        for from in [ReadFrom::State, ReadFrom::Transition] {
            let reads = Reads { from, ..Reads::default() };
            let model = ModelConfig { reads, ..small(transition) };
            same_on_ranks(&model, &plan(solvers()[0]), &data);
            same_on_ranks(&model, &plan(solvers()[2]), &data);
        }
    }
    same_on_ranks(&ModelConfig { layers: 2, ..small("gnn-sum") }, &plan(solvers()[1]), &data);
}

#[test]
fn every_solver_trains_many_graphs_to_the_same_bits() {
    for (level, batch_size) in [
        (Level::Node, None),
        (Level::Graph, None),
        (Level::Node, Some(20)),
        (Level::Graph, Some(20)),
    ] {
        let data = graphs_in_thirds(&many(260), level);
        assert!(data.training_graphs().groups().whole_graphs());
        for solver in solvers() {
            let config = TrainingConfig { batch_size, ..plan(solver) };
            same_on_ranks(&small("gnn-mean"), &config, &data);
        }
    }
}

#[test]
fn every_transition_trains_many_graphs_to_the_same_bits() {
    let data = graphs_in_thirds(&many(150), Level::Graph);
    for transition in TRANSITIONS {
        same_on_ranks(&small(transition), &plan(solvers()[1]), &data);
    }
}

#[test]
fn options_of_training_keep_the_bits() {
    let data = nodes_in_thirds(&large(700, dense(700, 3, 1)));
    let base = || plan(solvers()[1]);
    let layers = ModelConfig {
        layers: 2,
        reads: Reads { layers: ReadLayers::All, from: ReadFrom::State, features: true },
        ..small("gnn-sum")
    };
    let nu_pi = Bdmm { dual_rule: DualRule::NuPi { nu: 0.5, kappa: 1.0 }, ..Bdmm::default() };
    let relax = Inference::Relax(RelaxOptions { max_iter: 20, ..RelaxOptions::default() });
    let never = FixedPointOptions {
        tol: 1e-12,
        max_iter: 12,
        fall_back: Some(RelaxOptions { max_iter: 10, ..RelaxOptions::default() }),
        ..FixedPointOptions::default()
    };
    for (model, config) in [
        (layers.clone(), base()),
        (layers, TrainingConfig { standardize: true, ..base() }),
        (small("gcn"), TrainingConfig { feature_dropout: 0.3, l2: 0.01, ..base() }),
        (ModelConfig { dropout: 0.4, ..small("gnn-mean") }, base()),
        (small("gnn-mean"), TrainingConfig { lipschitz: Some(0.9), ..base() }),
        (
            ModelConfig {
                constraint: ConstraintFunction::Squared,
                multipliers: Multipliers::PerNode,
                ..small("gnn-sum")
            },
            plan(SolverConfig::Bdmm(nu_pi)),
        ),
        (
            ModelConfig { constraint: ConstraintFunction::Absolute, ..small("gnn-mean") },
            TrainingConfig {
                weighing: Weighing {
                    constraint: Scale::Mean,
                    loss: Scale::Mean,
                    ..Weighing::default()
                },
                ..plan(solvers()[0])
            },
        ),
        (small("gnn-mean"), TrainingConfig { inference: relax, ..base() }),
        (small("gnn-sum"), TrainingConfig { inference: Inference::FixedPoint(never), ..base() }),
    ] {
        same_on_ranks(&model, &config, &data);
    }
}

#[test]
fn large_graphs_that_are_pooled_keep_the_bits() {
    let graphs =
        [large(500, dense(500, 3, 1)), large(40, dense(40, 3, 2)), large(900, dense(900, 3, 3))];
    let batch = GraphBatch::union(&graphs).unwrap();
    let split = Split { level: Level::Graph, train: vec![0, 1, 2], val: vec![], test: vec![] };
    let data = TrainingData::new(&batch, &split, Level::Graph).unwrap();
    assert!(!data.training_graphs().groups().whole_graphs());
    for readout in ["sum", "mean", "max"] {
        let model = ModelConfig { readout: readout.into(), ..small("gnn-mean") };
        same_on_ranks(&model, &plan(solvers()[0]), &data);
    }
}

#[test]
fn wide_features_and_more_ranks_than_groups_keep_the_bits() {
    // So wide that no group has a gradient of all of them, and so small that there are fewer groups than ranks.
    let nodes = 90;
    let columns: Vec<u32> = (0..nodes as u32).map(|v| (v * 37) % 4000).collect();
    let starts = (0..=nodes).collect();
    let rows = SparseRows::new(4000, starts, columns, vec![1.0; nodes]).unwrap();
    let data = nodes_in_thirds(&large(nodes, Features::Sparse(rows)));
    assert!(data.training_graphs().groups().ranges().len() < 4);
    same_on_ranks(&small("gnn-mean"), &plan(solvers()[1]), &data);
}

/// The Lagrangian across a cut, in double precision: its gradient is its slope.
#[test]
fn the_gradient_across_a_cut_is_the_slope() {
    let batch: GraphBatch<f64> = large(300, dense(300, 3, 1));
    let batch = batch.with_groups_of(300);
    let supervision = Supervision::all(batch.node_targets().clone());
    let config = small("gnn-mean");
    let data =
        lpgnn::train::ModelDims { features: 3, edge_features: 2, outputs: 3, level: Level::Node };
    let model = config.build_with(&lpgnn::registry::Registry::<f64>::default(), data).unwrap();
    let at = crate::common::point(&model, 300, 3);
    let value = |communicator: &Arc<dyn Communicator>, at: &Variables<f64>| {
        let shared = batch.clone().shared_by(communicator);
        let own = shared.share().unwrap().nodes();
        let scratch = Scratch::new();
        let lagrangian =
            Lagrangian::new(&model, &shared, &supervision, Weighing::default(), &scratch).unwrap();
        let rows = |all: &[Matrix<f64>]| all.iter().map(|m| m.select(own.clone())).collect();
        let at = Variables {
            weights: at.weights.clone(),
            states: rows(&at.states),
            multipliers: rows(&at.multipliers),
        };
        let mut gradient = at.zeros_like();
        let value = lagrangian.evaluate(&at, Request::ALL, &mut gradient).value();
        (value, own, gradient)
    };
    on_ranks(3, |communicator| {
        let (_, own, gradient) = value(&communicator, &at);
        // Nodes on both sides of every cut, and others.
        for node in [0, 99, 100, 101, 150, 199, 200, 201, 299] {
            let step = 1e-5;
            let mut there = at.clone();
            there.states[0].row_mut(node)[1] += step;
            let up = value(&communicator, &there).0;
            there.states[0].row_mut(node)[1] -= 2.0 * step;
            let slope = (up - value(&communicator, &there).0) / (2.0 * step);
            if own.contains(&node) {
                let d = gradient.states[0].row(node - own.start)[1];
                assert!((d - slope).abs() < 1e-6 * slope.abs().max(1.0), "{node}: {d} {slope}");
            }
        }
    });
}

fn cliques() -> (Dataset, RunConfig) {
    let dataset = CliqueConfig { graphs: 240, ..CliqueConfig::default() }.generate(1).unwrap();
    let mut config = RunConfig::for_data("clique", &dataset, &[]);
    (config.training.epochs, config.training.eval_every) = (6, 3);
    (dataset, config)
}

/// A run in `folder` on so many ranks, which stops after an epoch if told so; or goes on with the one that is there.
fn run(folder: &Path, ranks: usize, stop: Option<usize>, resume: bool) {
    let (dataset, config) = cliques();
    on_ranks(ranks, |communicator| {
        let first = communicator.rank() == 0;
        let run = match (resume, first) {
            (false, true) => Run::create(folder, config.clone(), &dataset),
            (false, false) => Run::follow(folder, config.clone(), &dataset),
            (true, true) => Run::resume(RunFolder::open(folder).unwrap(), &dataset, None),
            (true, false) => {
                Run::resume(RunFolder::open(folder).unwrap().following(), &dataset, None)
            }
        };
        let run = run.unwrap().without_baseline().shared_by(&communicator);
        let run = run.checkpoint_every(CheckpointInterval { seconds: 1e9, epochs: Some(2) });
        // Only one of the ranks is asked to stop.
        let mut observer = |progress: &Progress<'_>| {
            let here = communicator.rank() + 1 == communicator.ranks();
            match stop {
                Some(epoch) if here && progress.metrics.report.epoch >= epoch => {
                    ControlFlow::Break(())
                }
                _ => ControlFlow::Continue(()),
            }
        };
        run.train(&mut observer).unwrap();
    });
}

#[test]
fn a_run_resumes_on_another_number_of_ranks_to_the_same_bits() {
    let place = tempfile::tempdir().unwrap();
    let (alone, shared) = (place.path().join("alone"), place.path().join("shared"));
    run(&alone, 1, None, false);
    run(&shared, 3, Some(3), false);
    run(&shared, 2, Some(5), true);
    run(&shared, 4, None, true);
    let model = |folder: &Path| std::fs::read(folder.join(RunFolder::MODEL)).unwrap();
    assert_eq!(model(&alone), model(&shared));
    let reports = |folder: &Path| {
        let metrics = RunFolder::open(folder).unwrap().metrics().unwrap();
        metrics.into_iter().map(|epoch| epoch.report).collect::<Vec<_>>()
    };
    assert_eq!(reports(&alone), reports(&shared));
    let states = |folder: &Path| {
        let (dataset, config) = cliques();
        let setup = lpgnn::run::Setup::new(&config, &dataset).unwrap();
        let nodes = setup.data.training_graphs().nodes();
        let path = folder.join(RunFolder::CHECKPOINT);
        Checkpoint::read(&path, &setup.model, nodes).unwrap().state.variables
    };
    assert!(states(&alone) == states(&shared));

    let model = SavedModel::read(&alone.join(RunFolder::MODEL)).unwrap();
    let (dataset, _) = cliques();
    let before = model.predict(&dataset, true).unwrap();
    on_ranks(3, |communicator| {
        let tell = &mut |_| ();
        let now = model.predict_shared(&dataset, true, Some(&communicator), tell).unwrap();
        assert!(now.outputs == before.outputs);
        assert_eq!(now.fixed_point.residuals, before.fixed_point.residuals);
        assert_eq!(now.fixed_point.graph_iterations, before.fixed_point.graph_iterations);
        assert_eq!(now.fixed_point.iterations, before.fixed_point.iterations);
    });
}
