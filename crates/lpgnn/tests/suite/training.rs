//! The whole path, from graphs to a report of why training ended.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "numbers here are tiny"
)]

use std::ops::ControlFlow;

use crate::common::{Form, graph};
use lpgnn::constraint::ConstraintFunction;
use lpgnn::data::generate::CliqueConfig;
use lpgnn::data::{Level, Split};
use lpgnn::graph::{Features, GraphBatch, OneHot, Targets};
use lpgnn::lagrangian::{
    CountEvaluations, Lagrangian, Multipliers, Objective, ReadFrom, Reads, Request, Weighing,
};
use lpgnn::network::StateWeights;
use lpgnn::readout::{NodeReadout, Supervision};
use lpgnn::run::{RunConfig, Setting, Setup};
use lpgnn::saddle::{AugmentedLagrangian, Bdmm, Implicit, OneShot, Sse, Unrolled, WeightDescent};
use lpgnn::train::{
    EpochReport, ModelConfig, ModelDims, Monitor, Observer, SolverConfig, SplitMetrics, SplitName,
    Stage, StepProgress, StopReason, Trained, Trainer, TrainerState, TrainingConfig, TrainingData,
};
use lpgnn::{Matrix, Scratch, check};

/// Graphs with the class of a node decided by whether it has more than two neighbours.
fn graphs(count: u64) -> GraphBatch<f32> {
    let graphs: Vec<GraphBatch<f32>> = (0..count)
        .map(|seed| {
            let plain = graph::<f32>(seed, 6, 0.2, Form::OneHot);
            let class = (0..6).map(|v| u32::from(plain.neighbours().degree(v) > 2)).collect();
            plain.with_node_targets(Targets::classes(2, class).unwrap()).unwrap()
        })
        .collect();
    GraphBatch::union(&graphs).unwrap()
}

fn thirds(count: usize) -> Split {
    let part = |k: usize| (0..count).filter(|i| i % 3 == k).collect();
    Split { level: Level::Graph, train: part(0), val: part(1), test: part(2) }
}

fn small() -> ModelConfig {
    ModelConfig {
        transition: "gnn-sum".into(),
        state_dim: 4,
        hidden_dims: vec![6],
        readout_hidden_dims: vec![6],
        ..ModelConfig::default()
    }
}

fn config(epochs: usize) -> TrainingConfig {
    TrainingConfig { epochs, patience: None, ..TrainingConfig::default() }
}

fn train(
    model: &ModelConfig,
    config: TrainingConfig,
    data: &TrainingData<f32>,
) -> (Trained<f32>, Vec<EpochReport>) {
    let model = model.build(data.dims()).unwrap();
    let mut reports = vec![];
    let mut observer = |report: &EpochReport, _: &TrainerState<f32>| {
        reports.push(report.clone());
        ControlFlow::Continue(())
    };
    let trainer = Trainer::new(config.check().unwrap(), &model, data).unwrap();
    (trainer.run(&mut observer).unwrap(), reports)
}

#[test]
fn a_structural_rule_is_learnt_and_holds_on_new_graphs() {
    let batch = graphs(60);
    let data = TrainingData::new(&batch, &thirds(60), Level::Node).unwrap();
    for solver in
        [SolverConfig::OneShot(OneShot::default()), SolverConfig::Unrolled(Unrolled::default())]
    {
        let (trained, reports) =
            train(&small(), TrainingConfig { solver, eval_every: 10, ..config(200) }, &data);
        let evaluation = trained.evaluation.unwrap();
        let test = evaluation.of(SplitName::Test).unwrap().accuracy.unwrap();
        assert!(test > 0.9, "{}: {test}", solver.name());
        assert!(evaluation.cheating_gap.unwrap().abs() < 0.05, "{evaluation:?}");
        assert_eq!(evaluation.not_converged, 0);
        assert!(reports[199].loss < 0.5 * reports[0].loss);
    }
}

#[test]
fn a_truncated_adjoint_learns_the_rule_too() {
    let batch = graphs(60);
    let data = TrainingData::new(&batch, &thirds(60), Level::Node).unwrap();
    let reads = Reads { from: ReadFrom::Transition, ..Reads::default() };
    let model = ModelConfig { reads, ..small() };
    for (adjoint_terms, sample, batch_size) in [(0, 1.0, None), (2, 0.7, None), (1, 1.0, Some(7))] {
        let solver = SolverConfig::Sse(Sse { adjoint_terms, sample, ..Sse::default() });
        let config = TrainingConfig { solver, batch_size, ..config(200) };
        let evaluation = train(&model, config, &data).0.evaluation.unwrap();
        let test = evaluation.of(SplitName::Test).unwrap().accuracy.unwrap();
        assert!(test > 0.9, "{solver:?}: {test}");
        assert!(evaluation.cheating_gap.unwrap().abs() < 0.05, "{evaluation:?}");
    }
}

#[test]
fn the_method_of_multipliers_meets_its_constraints() {
    let batch = graphs(30);
    let data = TrainingData::new(&batch, &thirds(30), Level::Node).unwrap();
    let solver = SolverConfig::AugmentedLagrangian(AugmentedLagrangian {
        state_lr_half_life: Some(1000.0),
        ..AugmentedLagrangian::default()
    });
    let weighing = Weighing { loss_weight: 1e-2, ..Weighing::default() };
    for batch_size in [None, Some(4)] {
        let config = TrainingConfig { solver, weighing, batch_size, eval_every: 50, ..config(200) };
        let (trained, reports) = train(&small(), config, &data);
        let last = &reports[reports.len() - 1];
        assert!(last.residual_mean < 0.01, "{last:?}");
        let evaluation = trained.evaluation.unwrap();
        let accuracy = evaluation.of(SplitName::Train).unwrap().accuracy.unwrap();
        assert!(accuracy > 0.9, "{evaluation:?}");
    }
}

#[test]
fn evaluations_are_counted_by_the_objective() {
    let batch = graphs(9);
    let data = TrainingData::new(&batch, &thirds(9), Level::Node).unwrap();
    let model = small().build::<f32>(data.dims()).unwrap();
    for (inner_steps, batch_size, expected) in [(1, None, 4), (3, None, 12), (2, Some(2), 16)] {
        let solver = SolverConfig::OneShot(OneShot { inner_steps, ..OneShot::default() });
        let config = TrainingConfig { solver, batch_size, l2: 0.1, ..config(4) };
        let count = CountEvaluations::default();
        let trainer = Trainer::new(config.check().unwrap(), &model, &data).unwrap();
        let trainer = trainer.with_layer(Box::new(count.clone()));
        let mut quiet = |_: &EpochReport, _: &TrainerState<f32>| ControlFlow::Continue(());
        trainer.run(&mut quiet).unwrap();
        assert_eq!(count.get(), expected, "{solver:?}, {batch_size:?}");
    }
}

#[test]
fn bdmm_meets_its_constraints() {
    let batch = graphs(30);
    let data = TrainingData::new(&batch, &thirds(30), Level::Node).unwrap();
    let model = ModelConfig {
        constraint: ConstraintFunction::Squared,
        multipliers: Multipliers::PerNode,
        ..small()
    };
    let solver = SolverConfig::Bdmm(Bdmm {
        state_lr_half_life: Some(100.0),
        penalty: 0.1,
        ..Bdmm::default()
    });
    let weighing = Weighing { loss_weight: 1e-3, ..Weighing::default() };
    let (_, reports) =
        train(&model, TrainingConfig { solver, weighing, eval_every: 50, ..config(400) }, &data);
    let last = &reports[reports.len() - 1];
    assert!(last.residual_mean < 0.01, "{last:?}");
    assert!(last.largest_multiplier > 0.0);
}

/// The claim of decision 32, in the weakest form that a change of the defaults would have to break.
#[test]
fn by_default_the_states_of_descent_ascent_do_not_cheat() {
    let dataset = CliqueConfig::default().generate(0).unwrap();
    let gap = |settings: &[&str]| {
        let set = |text: &&str| Setting::parse("test", text).unwrap();
        let settings: Vec<Setting> = settings.iter().map(set).collect();
        let config = RunConfig::for_data("clique", &dataset, &settings).with(&settings).unwrap();
        let setup = Setup::new(&config, &dataset).unwrap();
        let trainer = Trainer::new(setup.plan.clone(), &setup.model, &setup.data).unwrap();
        let trained = trainer.run(&mut ()).unwrap();
        trained.evaluation.unwrap().cheating_gap.unwrap()
    };
    let shared = ["training.solver.kind=bdmm", "training.epochs=150", "training.patience=none"];
    let plain = gap(&shared);
    assert!(plain.abs() < 0.01, "{plain}");
    let paper = ["model.constraint.g=squared", "training.weighing.loss-weight=1"];
    let adam = gap(&[&shared[..], &paper[..]].concat());
    assert!(adam > 0.03, "{adam}");
}

#[test]
fn the_same_seed_gives_the_same_weights_and_another_does_not() {
    let batch = graphs(12);
    let data = TrainingData::new(&batch, &thirds(12), Level::Node).unwrap();
    let model = ModelConfig { dropout: 0.3, ..small() };
    let run = |seed| {
        let config = TrainingConfig { seed, batch_size: Some(3), ..config(6) };
        train(&model, config, &data).0.weights
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn a_resumed_run_ends_with_the_same_bits() {
    let batch = graphs(12);
    let data = TrainingData::new(&batch, &thirds(12), Level::Node).unwrap();
    for (solver, constraint) in [
        (SolverConfig::OneShot(OneShot::default()), ConstraintFunction::Linear),
        (SolverConfig::Bdmm(Bdmm::default()), ConstraintFunction::Squared),
        (
            SolverConfig::AugmentedLagrangian(AugmentedLagrangian::default()),
            ConstraintFunction::Linear,
        ),
    ] {
        for batch_size in [None, Some(2)] {
            let config = TrainingConfig { solver, batch_size, ..config(8) };
            let model = ModelConfig { constraint, dropout: 0.2, ..small() };
            let model = model.build::<f32>(data.dims()).unwrap();
            let mut kept: Option<TrainerState<f32>> = None;
            let mut keep = |report: &EpochReport, state: &TrainerState<f32>| {
                if report.epoch == 5 {
                    kept = Some(state.clone());
                }
                ControlFlow::Continue(())
            };
            let plan = config.check().unwrap();
            let whole = Trainer::new(plan.clone(), &model, &data).unwrap().run(&mut keep).unwrap();
            let mut quiet = |_: &EpochReport, _: &TrainerState<f32>| ControlFlow::Continue(());
            let resumed = Trainer::new(plan, &model, &data).unwrap().resume(kept.unwrap()).unwrap();
            let resumed = resumed.run(&mut quiet).unwrap();
            assert_eq!(whole.weights, resumed.weights);
            assert_eq!(whole.epoch, resumed.epoch);
        }
    }
}

/// With batches of some graphs, an epoch moves every graph's states exactly once.
#[test]
fn states_of_every_graph_move_once_per_epoch() {
    let batch = graphs(9);
    let split = Split { level: Level::Graph, train: (0..9).collect(), val: vec![], test: vec![] };
    let data = TrainingData::new(&batch, &split, Level::Node).unwrap();
    let model = ModelConfig { constraint: ConstraintFunction::Squared, ..small() };
    let model = model.build::<f32>(data.dims()).unwrap();
    // Weights that hardly move, so that a graph's path does not depend on when it is visited.
    let solver = SolverConfig::Bdmm(Bdmm {
        weights: WeightDescent { lr: 1e-30, ..WeightDescent::default() },
        ..Bdmm::default()
    });
    let states = |batch_size| {
        let config =
            TrainingConfig { solver, batch_size, lipschitz: None, eval_every: 99, ..config(7) };
        let mut last = None;
        let mut keep = |_: &EpochReport, state: &TrainerState<f32>| {
            last = Some(state.variables.clone());
            ControlFlow::Continue(())
        };
        Trainer::new(config.check().unwrap(), &model, &data).unwrap().run(&mut keep).unwrap();
        last.unwrap()
    };
    let (all, some) = (states(None), states(Some(2)));
    assert!(all.states[0].as_slice().iter().any(|x| x.abs() > 0.01));
    assert_eq!(all.states, some.states);
    assert_eq!(all.multipliers, some.multipliers);
}

#[test]
fn an_observer_can_end_training_and_the_best_weights_are_kept() {
    let batch = graphs(12);
    let data = TrainingData::new(&batch, &thirds(12), Level::Node).unwrap();
    let model = small().build::<f32>(data.dims()).unwrap();
    let mut best: Option<(usize, Vec<f32>)> = None;
    let mut observer = |report: &EpochReport, state: &TrainerState<f32>| {
        best = state.best.as_ref().map(|best| (best.epoch, best.weights.clone()));
        if report.epoch == 20 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let trainer = Trainer::new(config(100).check().unwrap(), &model, &data).unwrap();
    let trained = trainer.run(&mut observer).unwrap();
    assert_eq!(trained.reason, StopReason::Stopped);
    assert_eq!(best, Some((trained.epoch, trained.weights)));
}

#[test]
fn training_ends_when_validation_no_longer_improves() {
    let batch = graphs(12);
    let data = TrainingData::new(&batch, &thirds(12), Level::Node).unwrap();
    let (trained, reports) =
        train(&small(), TrainingConfig { patience: Some(5), eval_every: 1, ..config(5000) }, &data);
    assert_eq!(trained.reason, StopReason::NoImprovement);
    assert_eq!(reports.len(), trained.epoch + 5);
}

#[test]
fn training_stops_early_by_default_where_there_is_a_validation_split() {
    let batch = graphs(12);
    let epochs = |split: &Split| {
        let data = TrainingData::new(&batch, split, Level::Node).unwrap();
        let config = TrainingConfig { epochs: 2000, eval_every: 1, ..TrainingConfig::default() };
        let (trained, reports) = train(&small(), config, &data);
        (trained.reason, reports.len())
    };
    let (reason, count) = epochs(&thirds(12));
    assert!(reason == StopReason::NoImprovement && count < 2000, "{reason:?} after {count}");
    let without = Split { val: vec![], ..thirds(12) };
    assert_eq!(epochs(&without), (StopReason::Epochs, 2000));
}

#[test]
fn the_monitored_metric_selects_the_epoch() {
    let batch = graphs(24);
    let data = TrainingData::new(&batch, &thirds(24), Level::Node).unwrap();
    let mut selected = vec![];
    for monitor in [Monitor::Accuracy, Monitor::BalancedAccuracy, Monitor::Auc, Monitor::Loss] {
        let config = TrainingConfig { monitor, eval_every: 1, ..config(60) };
        let (trained, reports) = train(&small(), config, &data);
        let of = |report: &EpochReport| -> SplitMetrics {
            *report.evaluation.as_ref().unwrap().of(SplitName::Val).unwrap()
        };
        let best = reports.iter().map(|report| of(report).monitored.unwrap());
        let best = best.fold(f64::NEG_INFINITY, f64::max);
        let chosen = of(&reports[trained.epoch - 1]);
        assert!((chosen.monitored.unwrap() - best).abs() < 1e-12, "{monitor:?}");
        if monitor == Monitor::Loss {
            assert!((chosen.loss + best).abs() < 1e-12);
        }
        selected.push(trained.epoch);
    }
    assert!(selected.iter().any(|epoch| *epoch != selected[0]), "{selected:?}");
    let model = small().build(data.dims()).unwrap();
    let config = TrainingConfig { monitor: Monitor::R2, ..config(5) };
    let error = Trainer::new(config.check().unwrap(), &model, &data).unwrap_err();
    let said =
        "training.monitor is r2, which requires real targets that vary in the validation split";
    assert_eq!(error.to_string(), said);
}

/// Keeps what it is told within epochs.
#[derive(Default)]
struct Steps(Vec<StepProgress>);

impl Observer for Steps {
    fn epoch(&mut self, _: &EpochReport, _: &TrainerState<f32>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn step(&mut self, step: &StepProgress) {
        self.0.push(*step);
    }
}

#[test]
fn progress_is_told_within_epochs_and_evaluations() {
    let batch = graphs(12);
    let data = TrainingData::new(&batch, &thirds(12), Level::Node).unwrap();
    let model = small().build(data.dims()).unwrap();
    let solver = SolverConfig::OneShot(OneShot { inner_steps: 2, ..OneShot::default() });
    let config = TrainingConfig { batch_size: Some(3), solver, eval_every: 2, ..config(2) };
    let mut steps = Steps::default();
    Trainer::new(config.check().unwrap(), &model, &data).unwrap().run(&mut steps).unwrap();
    let told = |step: &StepProgress| (step.epoch, step.stage, step.number, step.total, step.passes);
    let update = |epoch| {
        [(1, 1), (1, 2), (2, 1), (2, 2)].map(|(n, pass)| (epoch, Stage::Update, n, 2, pass))
    };
    let evaluation = [1, 2, 3].map(|n| (2, Stage::Evaluation, n, 3, 0));
    let expected = [&update(1)[..], &update(2), &evaluation].concat();
    let begun = steps.0.iter().filter(|step| step.inference.is_none());
    assert_eq!(begun.map(told).collect::<Vec<_>>(), expected);
    // Every part of the evaluation tells of every iteration.
    let within = |part| {
        let of_part = steps.0.iter().filter(move |step| step.number == part);
        of_part.filter_map(|step| step.inference).map(|inference| inference.to_string())
    };
    for part in 1..=3 {
        let told: Vec<String> = within(part).collect();
        let numbers = (1..=told.len()).map(|number| format!("iteration {number}"));
        assert!(told.len() > 2 && told.iter().cloned().eq(numbers), "{told:?}");
    }
    let last = steps.0.last().unwrap().to_string();
    assert!(last.starts_with("evaluating, part 3 of 3, iteration "), "{last}");
}

#[test]
fn evaluated_epochs_tell_which_graphs_meet_the_constraints() {
    let batch = graphs(12);
    let data = TrainingData::new(&batch, &thirds(12), Level::Node).unwrap();
    // Solved at every update, the constraints are met but for the last step of the weights.
    let weights = WeightDescent { lr: 1e-6, ..WeightDescent::default() };
    let exact = SolverConfig::Implicit(Implicit { weights, ..Implicit::default() });
    for batch_size in [None, Some(3)] {
        let config = TrainingConfig { solver: exact, eval_every: 2, batch_size, ..config(3) };
        let (_, reports) = train(&small(), config, &data);
        assert_eq!(reports[0].constraints, None);
        for report in &reports[1..] {
            let constraints = report.constraints.as_ref().unwrap();
            assert!(constraints.met() && constraints.worst.is_empty(), "{constraints:?}");
            let counts = (constraints.nodes, constraints.nodes_within, constraints.graphs);
            assert_eq!(counts, (24, 24, 4));
        }
    }
    // States that hardly move from zero do not meet them, whichever graph they are of.
    let slow = SolverConfig::OneShot(OneShot { beta: 1e-6, ..OneShot::default() });
    let config =
        TrainingConfig { solver: slow, batch_size: Some(3), standardize: false, ..config(1) };
    let (_, reports) = train(&small(), config, &data);
    let constraints = reports[0].constraints.as_ref().unwrap();
    assert!(!constraints.met(), "{constraints:?}");
    let mut named: Vec<usize> = constraints.worst.iter().map(|of| of.graph).collect();
    named.sort_unstable();
    assert_eq!(named, [0, 3, 6, 9], "indices in the data, not in the training split");
}

#[test]
fn a_run_that_diverges_says_when_and_keeps_the_last_good_weights() {
    let batch = graphs(12);
    let data = TrainingData::new(&batch, &thirds(12), Level::Node).unwrap();
    let model = ModelConfig { activation: lpgnn::activation::Activation::Identity, ..small() };
    // A linear transition far from a contraction, without a bound: states explode.
    let weights = WeightDescent { lr: 5.0, ..WeightDescent::default() };
    let solver = SolverConfig::OneShot(OneShot { weights, ..OneShot::default() });
    let config = TrainingConfig { solver, lipschitz: None, eval_every: 1000, ..config(999) };
    let (trained, reports) = train(&model, config, &data);
    let StopReason::Diverged { epoch, .. } = trained.reason else {
        panic!("ended by {:?}", trained.reason)
    };
    assert_eq!(epoch, reports.len() + 1);
    assert!(trained.weights.iter().all(|w| w.is_finite()));
}

#[test]
fn targets_hidden_by_a_split_of_nodes_do_not_matter() {
    // Two copies of the data that differ only in targets outside the training part.
    let batch = graphs(4);
    let split = Split { level: Level::Node, train: vec![0, 3, 7, 12], val: vec![], test: vec![] };
    let Targets::Classes { class, .. } = batch.node_targets() else { panic!("classes expected") };
    let mut other = class.clone();
    for (v, class) in other.iter_mut().enumerate() {
        if !split.train.contains(&v) {
            *class = 1 - *class;
        }
    }
    let parts = |class: Vec<u32>| {
        let graphs: Vec<GraphBatch<f32>> = (0..4)
            .map(|seed| {
                let class = class[seed as usize * 6..][..6].to_vec();
                let targets = Targets::classes(2, class).unwrap();
                graph::<f32>(seed, 6, 0.2, Form::OneHot).with_node_targets(targets).unwrap()
            })
            .collect();
        TrainingData::new(&GraphBatch::union(&graphs).unwrap(), &split, Level::Node).unwrap()
    };
    let (a, b) = (parts(class.clone()), parts(other));
    assert_eq!(train(&small(), config(5), &a).0.weights, train(&small(), config(5), &b).0.weights);
}

#[test]
fn real_values_are_fitted() {
    let graphs: Vec<GraphBatch<f32>> = (0..40)
        .map(|seed| {
            let nodes = 2 + seed as usize % 7;
            let value = Matrix::from_rows(&[vec![nodes as f32 / 4.0]]).unwrap();
            let plain = graph::<f32>(seed, nodes, 0.4, Form::OneHot);
            plain.with_graph_targets(Targets::Values(value)).unwrap()
        })
        .collect();
    let data =
        TrainingData::new(&GraphBatch::union(&graphs).unwrap(), &thirds(40), Level::Graph).unwrap();
    let model = ModelConfig { transition: "gnn-mean".into(), ..small() };
    let (trained, _) = train(&model, config(300), &data);
    let score = *trained.evaluation.unwrap().of(SplitName::Test).unwrap();
    // The mean as a prediction has half a variance of 0.125 as its loss.
    assert!(score.loss < 0.04 && score.accuracy.is_none(), "{score:?}");
}

#[test]
fn dropout_has_the_gradient_of_what_is_left() {
    let graphs = crate::common::batch::<f64>(2, Form::Dense);
    let recipe = crate::common::Recipe::default();
    let transitions = vec![crate::common::transition(
        1,
        3,
        crate::common::LABEL,
        crate::common::EDGE_FEATURE,
        &recipe.h,
    )];
    let network = lpgnn::network::Network { hidden_dims: vec![8, 6], ..recipe.h };
    let readout = NodeReadout::new(3, crate::common::CLASSES, network, 0.5);
    let constraint = Box::new(ConstraintFunction::Squared);
    let model = lpgnn::lagrangian::Model::new(
        transitions,
        Box::new(readout),
        recipe.reads,
        constraint,
        Multipliers::PerNode,
    )
    .unwrap();
    let supervision = Supervision::all(graphs.node_targets().clone());
    let scratch = Scratch::new();
    let at = crate::common::point(&model, graphs.nodes(), 1);
    let value = |seed| {
        let weighing = Weighing::default();
        let lagrangian =
            Lagrangian::new(&model, &graphs, &supervision, weighing, &scratch).unwrap();
        let lagrangian = lagrangian.with_dropout(seed);
        if seed.is_some() {
            assert!(check::gradients(&lagrangian, &at) < 1e-6);
        }
        lagrangian.evaluate(&at, Request::ALL, &mut at.zeros_like()).loss
    };
    let (none, first, second) = (value(None), value(Some(1)), value(Some(2)));
    assert!((none - first).abs() > 1e-6 && (first - second).abs() > 1e-6);
    assert!((value(Some(1)) - first).abs() < 1e-15);
}

#[test]
fn features_with_entries_left_out_have_their_own_gradient() {
    for form in [Form::Dense, Form::OneHot, Form::Sparse] {
        let graphs = crate::common::batch::<f64>(2, form);
        let recipe = crate::common::Recipe::default();
        let h = &recipe.h;
        let transitions = vec![crate::common::transition(
            1,
            3,
            crate::common::LABEL,
            crate::common::EDGE_FEATURE,
            h,
        )];
        let readout = Box::new(NodeReadout::new(3, crate::common::CLASSES, recipe.h.clone(), 0.0));
        let constraint = Box::new(ConstraintFunction::Squared);
        let per_node = Multipliers::PerNode;
        let model =
            lpgnn::lagrangian::Model::new(transitions, readout, recipe.reads, constraint, per_node)
                .unwrap();
        let supervision = Supervision::all(graphs.node_targets().clone());
        let scratch = Scratch::new();
        let at = crate::common::point(&model, graphs.nodes(), 1);
        let value = |graphs: &GraphBatch<f64>| {
            let weighing = Weighing::default();
            let lagrangian =
                Lagrangian::new(&model, graphs, &supervision, weighing, &scratch).unwrap();
            assert!(check::gradients(&lagrangian, &at) < 1e-6, "{form:?}");
            lagrangian.evaluate(&at, Request::ALL, &mut at.zeros_like()).value()
        };
        let dropped = |seed| value(&graphs.with_feature_dropout(0.5, seed));
        assert!((value(&graphs) - dropped(1)).abs() > 1e-6, "{form:?}");
        assert!((dropped(2) - dropped(1)).abs() > 1e-6, "{form:?}");
        assert!((dropped(1) - dropped(1)).abs() < 1e-15, "{form:?}");
    }
}

#[test]
fn the_same_entries_are_left_out_however_features_are_stored() {
    let one_hot = lpgnn::graph::OneHot::new(3, vec![0, 2, 1, 1, 0, 2]).unwrap();
    let mut dense = Matrix::<f64>::zeros(6, 3);
    (0..6).for_each(|row| dense.row_mut(row)[one_hot.column(row)] = 1.0);
    let features = [Features::OneHot(one_hot), Features::Dense(dense)];
    let mut kept = 0;
    for seed in 0..100 {
        let entries = features.each_ref().map(|features| {
            let dropped = features.with_dropout(0.25, seed);
            let entries = (0..6).flat_map(|row| {
                let stored: Vec<_> = dropped.entries(row).filter(|(_, x)| *x > 0.0).collect();
                stored.into_iter().map(move |(column, x)| (row, column, x))
            });
            entries.collect::<Vec<_>>()
        });
        assert_eq!(entries[0], entries[1], "seed {seed}");
        assert!(entries[0].iter().all(|(_, _, x)| (x - 4.0 / 3.0).abs() < 1e-12));
        kept += entries[0].len();
    }
    assert!((kept as f64 / 600.0 - 0.75).abs() < 0.06, "{kept} of 600");
}

#[test]
fn what_carries_states_can_be_held() {
    let batch = graphs(6);
    let data = TrainingData::new(&batch, &thirds(6), Level::Node).unwrap();
    for transition in ["gcn", "sage-max"] {
        for (state_weights, same) in [(StateWeights::Frozen, true), (StateWeights::Identity, false)]
        {
            let model = ModelConfig {
                transition: transition.into(),
                state_weights,
                hidden_dims: vec![],
                ..small()
            };
            let config = TrainingConfig { lipschitz: Some(0.5), ..config(5) };
            let (trained, _) = train(&model, config, &data);
            // A comes first: four rows of four.
            let half: Vec<f32> = (0..16).map(|i| if i % 5 == 0 { 0.5 } else { 0.0 }).collect();
            let far = trained.weights.iter().zip(&half).map(|(w, half)| (w - half).abs());
            let far = far.fold(0.0, f32::max);
            assert_eq!(far < 1e-4, same, "{transition:?} {state_weights:?}: {far}");
        }
    }
}

#[test]
fn a_penalty_keeps_weights_small() {
    let batch = graphs(12);
    // Without a validation split, the last weights count.
    let split = Split { val: vec![], test: vec![], ..thirds(12) };
    let data = TrainingData::new(&batch, &split, Level::Node).unwrap();
    let size = |l2| {
        let config = TrainingConfig { l2, ..config(60) };
        let (trained, _) = train(&small(), config, &data);
        trained.weights.iter().map(|w| w * w).sum::<f32>()
    };
    assert!(size(1.0) < 0.5 * size(0.0));
}

/// With a half-life far beyond the end, what is kept is the mean of the weights after every update.
#[test]
fn the_average_of_the_weights_is_what_is_kept() {
    let batch = graphs(12);
    let split = Split { level: Level::Graph, train: (0..12).collect(), val: vec![], test: vec![] };
    let data = TrainingData::new(&batch, &split, Level::Node).unwrap();
    let model = small().build::<f32>(data.dims()).unwrap();
    let of = |average_half_life, updates_per_epoch| {
        let config = TrainingConfig {
            batch_size: Some(4),
            updates_per_epoch,
            average_half_life,
            lipschitz: None,
            ..config(20)
        };
        let (mut sum, mut last) = (vec![0.0_f64; model.weights()], vec![]);
        let mut observer = |_: &EpochReport, state: &TrainerState<f32>| {
            last.clone_from(&state.variables.weights);
            sum.iter_mut().zip(&last).for_each(|(sum, &w)| *sum += f64::from(w));
            ControlFlow::Continue(())
        };
        let trainer = Trainer::new(config.check().unwrap(), &model, &data).unwrap();
        let trained = trainer.run(&mut observer).unwrap();
        (trained.weights, sum.into_iter().map(|sum| sum / 20.0).collect::<Vec<_>>(), last)
    };
    // One update per epoch, so that the observer sees all weights.
    let (kept, mean, last) = of(Some(1e9), Some(1));
    for (kept, mean) in kept.iter().zip(&mean) {
        assert!((f64::from(*kept) - mean).abs() < 1e-5, "{kept} is kept, the mean is {mean}");
    }
    assert_ne!(kept, last);
    // Training itself does not notice.
    let (plain, _, again) = of(None, Some(1));
    assert_eq!((&plain, &again), (&last, &last));
    // A short memory is the last update.
    let (short, ..) = of(Some(1e-9), Some(1));
    assert!(short.iter().zip(&last).all(|(a, b)| (a - b).abs() < 1e-6));
}

/// Graphs of 12 in batches of 4: an epoch of three updates is a pass, one of six has two.
#[test]
fn an_epoch_has_as_many_updates_as_it_is_given() {
    let batch = graphs(12);
    let split = Split { level: Level::Graph, train: (0..12).collect(), val: vec![], test: vec![] };
    let data = TrainingData::new(&batch, &split, Level::Node).unwrap();
    let model = small().build::<f32>(data.dims()).unwrap();
    let run = |updates_per_epoch, solver: SolverConfig| {
        let config = TrainingConfig { batch_size: Some(4), updates_per_epoch, solver, ..config(3) };
        let mut updates = 0;
        let mut observer = |_: &EpochReport, state: &TrainerState<f32>| {
            updates = state.updates;
            ControlFlow::Continue(())
        };
        let trainer = Trainer::new(config.check().unwrap(), &model, &data).unwrap();
        let trained = trainer.run(&mut observer).unwrap();
        (updates, trained.weights)
    };
    let one_shot = SolverConfig::OneShot(OneShot::default());
    assert_eq!(run(Some(50), one_shot).0, 150);
    assert_eq!(run(Some(2), one_shot).0, 6);
    assert_eq!(run(Some(3), one_shot), run(None, one_shot));
    assert_eq!(run(None, one_shot).0, 9);
}

#[test]
fn plans_that_do_not_fit_are_refused_with_the_reason() {
    let batch = graphs(6);
    let data = TrainingData::new(&batch, &thirds(6), Level::Node).unwrap();
    let model = ModelConfig { constraint: ConstraintFunction::Squared, ..small() };
    let model = model.build::<f32>(data.dims()).unwrap();
    let error = Trainer::new(config(1).check().unwrap(), &model, &data).unwrap_err();
    assert!(
        error.to_string().contains("one-shot iterates f_a itself: it needs G = lin"),
        "{error}"
    );
    let solver = SolverConfig::Sse(Sse::default());
    let model = small().build::<f32>(data.dims()).unwrap();
    let plan = TrainingConfig { solver, ..config(1) }.check().unwrap();
    let error = Trainer::new(plan, &model, &data).unwrap_err();
    assert!(error.to_string().contains("it needs an output that reads f_a(x)"), "{error}");
    let error = TrainingData::new(&batch, &Split { level: Level::Node, ..thirds(6) }, Level::Graph)
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "graphs have targets, but nodes are split; a split of graphs is expected"
    );
}

#[test]
fn the_lipschitz_bound_holds_throughout_training() {
    use lpgnn::transition::{Degrees, Transition};
    let batch = graphs(12);
    let data = TrainingData::new(&batch, &thirds(12), Level::Node).unwrap();
    let degrees = Degrees::of(data.training_graphs().topology());
    for transition in ["gnn-mean", "gnn-sum", "gnn-normalized", "gcn", "gin", "sage-max"] {
        for rate in [0.01, 0.1] {
            let model = ModelConfig {
                transition: transition.into(),
                state_dim: 8,
                hidden_dims: vec![12],
                ..small()
            };
            let model = model.build::<f32>(data.dims()).unwrap();
            let weights = WeightDescent { lr: rate, ..WeightDescent::default() };
            let solver = SolverConfig::OneShot(OneShot { weights, ..OneShot::default() });
            let config = TrainingConfig { solver, eval_every: 999, ..config(60) };
            let mut largest = 0.0_f64;
            let mut observer = |_: &EpochReport, state: &TrainerState<f32>| {
                let f_a: &dyn Transition<f32> = model.transitions().next().unwrap();
                let weights = &state.variables.weights[model.transition_weights(0)];
                largest = largest.max(f_a.lipschitz(weights, degrees).unwrap());
                ControlFlow::Continue(())
            };
            Trainer::new(config.check().unwrap(), &model, &data)
                .unwrap()
                .run(&mut observer)
                .unwrap();
            assert!(largest < 0.9 * 1.01, "{transition:?} at rate {rate}: {largest}");
        }
    }
}

#[test]
fn implicit_trains_the_transition_however_small_the_loss_weighs() {
    let batch = graphs(12);
    let data = TrainingData::new(&batch, &thirds(12), Level::Node).unwrap();
    let model = small().build::<f32>(data.dims()).unwrap();
    let solver = SolverConfig::Implicit(lpgnn::saddle::Implicit::default());
    let weighing = Weighing { loss_weight: 1e-6, ..Weighing::default() };
    let config = TrainingConfig { solver, weighing, ..config(5) };
    let trainer = Trainer::new(config.check().unwrap(), &model, &data).unwrap();
    let range = model.transition_weights(0);
    let start = trainer.state().variables.weights[range.clone()].to_vec();
    let mut quiet = |_: &EpochReport, _: &TrainerState<f32>| ControlFlow::Continue(());
    let trained = trainer.run(&mut quiet).unwrap();
    let moved = start.iter().zip(&trained.weights[range]).filter(|(a, b)| (**a - **b).abs() > 1e-4);
    assert!(moved.count() > start.len() / 2);
}

#[test]
fn a_solver_of_ones_own_trains() {
    let batch = graphs(12);
    let data = TrainingData::new(&batch, &thirds(12), Level::Node).unwrap();
    let model = small().build::<f32>(data.dims()).unwrap();
    let trained = |own: bool| {
        let trainer = Trainer::new(config(4).check().unwrap(), &model, &data).unwrap();
        let trainer = if own {
            trainer.with_solver(Box::new(OneShot { inner_steps: 3, ..OneShot::default() })).unwrap()
        } else {
            trainer
        };
        let mut quiet = |_: &EpochReport, _: &TrainerState<f32>| ControlFlow::Continue(());
        trainer.run(&mut quiet).unwrap().weights
    };
    assert_ne!(trained(true), trained(false));
}

#[test]
fn scores_are_of_the_epoch_that_is_named() {
    let batch = graphs(12);
    let split = Split { val: vec![], ..thirds(12) };
    let data = TrainingData::new(&batch, &split, Level::Node).unwrap();
    let model = small().build::<f32>(data.dims()).unwrap();
    // All evaluations are complete, as the one is that training ends with.
    let config = TrainingConfig { eval_every: 10, eval_sample: None, ..config(100) };
    let mut weights = vec![];
    let mut observer = |report: &EpochReport, state: &TrainerState<f32>| {
        weights.clone_from(&state.variables.weights);
        if report.epoch == 15 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let trained = Trainer::new(config.clone().check().unwrap(), &model, &data)
        .unwrap()
        .run(&mut observer)
        .unwrap();
    assert_eq!((trained.epoch, &trained.weights), (15, &weights));
    // Scored every epoch, the fifteenth has the same evaluation.
    let mut fifteenth = None;
    let mut observer = |report: &EpochReport, _: &TrainerState<f32>| {
        if report.epoch == 15 {
            fifteenth.clone_from(&report.evaluation);
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    };
    let config = TrainingConfig { eval_every: 1, ..config };
    Trainer::new(config.check().unwrap(), &model, &data).unwrap().run(&mut observer).unwrap();
    assert_eq!(trained.evaluation, fifteenth);
}

#[test]
fn graphs_without_edge_features_make_a_batch() {
    let graph = GraphBatch::graph(&[vec![1.0_f32], vec![0.0]], &[(0, 1)]).unwrap();
    let batch = GraphBatch::union(&[graph.clone(), graph]).unwrap();
    assert_eq!((batch.nodes(), batch.edges(), batch.edge_features().width()), (4, 2, 0));
}

#[test]
fn evaluations_before_the_last_measure_a_sample_of_the_training_graphs() {
    let data = TrainingData::new(&graphs(60), &thirds(60), Level::Node).unwrap();
    let config = TrainingConfig { eval_every: 2, ..config(6) };
    let sampled = TrainingConfig { eval_sample: Some(8), ..config.clone() };
    let full = TrainingConfig { eval_sample: None, ..config };
    let ((some, sampled), (all, full)) =
        (train(&small(), sampled, &data), train(&small(), full, &data));
    // What is measured changes nothing of what is trained, nor the metrics of other splits.
    assert_eq!(some.weights, all.weights);
    for (epoch, (sampled, full)) in sampled.iter().zip(&full).enumerate() {
        let (Some(sampled), Some(full)) = (&sampled.evaluation, &full.evaluation) else { continue };
        assert_eq!(sampled.parts[1..], full.parts[1..]);
        let last = epoch == 5;
        assert_eq!(sampled.sample, (!last).then_some(8));
        // Of the last epoch it is measured if that has the best weights.
        assert_eq!(sampled.spectral_radius.is_some(), last && some.epoch == 6);
        assert_eq!(sampled.parts[0] == full.parts[0], last);
        assert!(full.sample.is_none() && full.spectral_radius.is_some());
    }
    // What is reported is complete, whichever epoch was the best.
    let (some, all) = (some.evaluation.unwrap(), all.evaluation.unwrap());
    assert_eq!((&some.parts, some.spectral_radius), (&all.parts, all.spectral_radius));
}

#[test]
fn few_rows_of_wide_features_have_the_gradient_of_their_dense_form() {
    let (nodes, width) = (40_u32, 5000);
    let edges: Vec<(u32, u32)> = (0..nodes).map(|v| (v, (v + 1) % nodes)).collect();
    let columns: Vec<u32> = (0..nodes).map(|v| (v * 997 + v % 3) % width % 4999).collect();
    let one_hot = OneHot::new(width as usize, columns).unwrap();
    let mut dense = Matrix::<f64>::zeros(nodes as usize, width as usize);
    (0..nodes as usize).for_each(|v| dense.row_mut(v)[one_hot.column(v)] = 1.0);
    let gradient = |features: Features<f64>| {
        let class = (0..nodes).map(|v| v % 2).collect();
        let batch = GraphBatch::of_graph(features, &edges).unwrap();
        let supervision = Supervision::all(Targets::classes(2, class).unwrap());
        let dims = ModelDims {
            features: width as usize,
            edge_features: 0,
            outputs: 2,
            level: Level::Node,
        };
        let model = small().build::<f64>(dims).unwrap();
        let scratch = Scratch::new();
        let weighing = Weighing::default();
        let lagrangian = Lagrangian::new(&model, &batch, &supervision, weighing, &scratch).unwrap();
        let at = crate::common::point(&model, nodes as usize, 3);
        let mut gradient = at.zeros_like();
        lagrangian.evaluate(&at, Request::ALL, &mut gradient);
        gradient.weights
    };
    let (wide, dense) = (gradient(Features::OneHot(one_hot)), gradient(Features::Dense(dense)));
    let apart = wide.iter().zip(&dense).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(dense.iter().filter(|d| **d != 0.0).count() > 400);
    assert!(apart < 1e-12, "{apart:e}");
}
