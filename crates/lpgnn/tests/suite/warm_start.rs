//! Training that goes on from where another one ended, and what can be looked at in a trained model.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::ops::ControlFlow;

use lpgnn::data::generate::CliqueConfig;
use lpgnn::data::{Dataset, Level, Split};
use lpgnn::readout::Supervision;
use lpgnn::run::{RunConfig, SavedModel, Setting, Setup, WarmStart};
use lpgnn::train::{EpochReport, Trained, Trainer, TrainerState};

fn dataset(seed: u64) -> Dataset {
    let dataset = CliqueConfig { graphs: 8, ..CliqueConfig::default() }.generate(seed).unwrap();
    let train = (0..dataset.graphs()).collect();
    let all = Split { level: Level::Graph, train, val: vec![], test: vec![] };
    dataset.with_split(Some(all)).unwrap()
}

fn config(dataset: &Dataset, settings: &[&str]) -> RunConfig {
    let settings: Vec<Setting> =
        settings.iter().map(|text| Setting::parse("test", text).unwrap()).collect();
    RunConfig::for_data("clique", dataset, &settings).with(&settings).unwrap()
}

/// The result of training, its end, and the loss of its epochs.
fn run(trainer: Trainer<'_>) -> (Trained, TrainerState, Vec<f64>) {
    let mut losses = vec![];
    let mut watch = |report: &EpochReport, _: &TrainerState| {
        losses.push(report.loss);
        ControlFlow::Continue(())
    };
    let (trained, state) = trainer.run_keeping_state(&mut watch).unwrap();
    (trained, state, losses)
}

/// A training of so many epochs by settings for 20, and what it leaves behind.
fn first(dataset: &Dataset, settings: &[&str], epochs: usize) -> (Vec<f32>, WarmStart, Vec<f64>) {
    let mut config = config(dataset, settings);
    config.training.epochs = epochs;
    let setup = Setup::new(&config, dataset).unwrap();
    let trainer = Trainer::new(setup.plan.clone(), &setup.model, &setup.data).unwrap();
    let (trained, state, losses) = run(trainer);
    let start = WarmStart::new(&config, dataset, &setup, state).unwrap();
    let bytes = start.to_bytes().unwrap();
    assert!(WarmStart::from_bytes(&bytes[..bytes.len() / 2], &setup.model).is_err());
    (trained.weights, WarmStart::from_bytes(&bytes, &setup.model).unwrap(), losses)
}

#[test]
fn on_the_same_graphs_nothing_is_lost() {
    for settings in [
        &["training.epochs=20"][..],
        &["training.epochs=20", "training.solver.kind=bdmm"],
        &["training.epochs=20", "training.batch-size=5", "model.dropout=0.3", "model.layers=2"],
    ] {
        let dataset = dataset(3);
        let (whole, ..) = first(&dataset, settings, 20);
        let (_, start, _) = first(&dataset, settings, 8);
        let config = start.config(&[], 12).unwrap();
        assert_eq!((start.epoch(), config.training.epochs), (8, 20));
        let setup = start.setup(&config, &dataset).unwrap();
        let (trained, ..) = run(start.trainer(&setup, &dataset).unwrap());
        assert_eq!(trained.weights, whole, "{settings:?}");
    }
}

#[test]
fn on_other_graphs_weights_are_kept() {
    let (known, new) = (dataset(3), dataset(4));
    let settings = ["training.epochs=60"];
    let (weights, start, _) = first(&known, &settings, 60);
    let (_, _, anew) = first(&new, &settings, 60);
    let config = start.config(&[], 1).unwrap();
    let setup = start.setup(&config, &new).unwrap();
    let trainer = start.trainer(&setup, &new).unwrap();
    assert_eq!(trainer.state().variables.weights, weights);
    let (_, state, losses) = run(trainer);
    assert!(losses[0] < 0.8 * anew[0], "{losses:?} {}", anew[0]);
    assert_eq!(state.epoch, 61);
}

/// On other graphs and then on the same ones again is on other graphs for longer.
#[test]
fn frozen_weights_are_those_for_the_graphs_at_hand() {
    let settings = ["training.epochs=20", "model.transition=gnn-sum", "model.state-weights=frozen"];
    // In larger graphs degrees are larger, and the bound asks for smaller weights.
    let hubs = CliqueConfig { graphs: 4, nodes: 12, clique: 6, ..CliqueConfig::default() };
    let (known, new) = (hubs.generate(5).unwrap().with_split(None).unwrap(), dataset(4));
    let (_, start, _) = first(&known, &settings, 6);
    let go_on = |start: &WarmStart, epochs: usize| {
        let config = start.config(&[], epochs).unwrap();
        let setup = start.setup(&config, &new).unwrap();
        let (trained, state, _) = run(start.trainer(&setup, &new).unwrap());
        (trained.weights, WarmStart::new(&config, &new, &setup, state).unwrap())
    };
    let (whole, _) = go_on(&start, 8);
    let (_, half) = go_on(&start, 4);
    let (again, _) = go_on(&half, 4);
    assert_eq!(again, whole);
}

#[test]
fn the_model_cannot_change_on_the_way() {
    let (_, start, _) = first(&dataset(3), &["training.epochs=2"], 2);
    let change = |text: &str| start.config(&[Setting::parse("test", text).unwrap()], 1);
    assert!(change("training.solver.weights.lr=0.1").is_ok());
    let said = change("model.state-dim=7").unwrap_err().to_string();
    assert!(said.contains("same model"), "{said}");
}

/// `d loss/dθ = ∂𝓛/∂θ` at the multipliers: along its own direction, the loss grows as the gradient says.
#[test]
fn multipliers_carry_the_gradient_of_the_loss_through_the_fixed_point() {
    use lpgnn::Scratch;
    use lpgnn::lagrangian::{Lagrangian, Objective, Request, Variables};

    let data = dataset(3);
    let settings = ["training.epochs=40", "training.inference.tol=1e-6"];
    let setup = Setup::new(&config(&data, &settings), &data).unwrap();
    let (weights, ..) = first(&data, &settings, 40);
    let saved = SavedModel::new(&setup, &config(&data, &settings), "clique", 40, weights);
    let found = saved.predict(&data, true).unwrap();
    let targets = found.batch.node_targets().clone();
    let supervision = Supervision::all(targets);

    let residuals = saved.node_residuals(&found);
    for (graph, &expected) in found.fixed_point.residuals.iter().enumerate() {
        let own = found.batch.nodes_of(graph).map(|node| residuals[node]).fold(0.0, f64::max);
        assert!((own - expected).abs() < 1e-6, "graph {graph}: {own}, {expected}");
    }

    let multipliers = saved.multipliers(&found).unwrap();
    let (model, scratch) = (saved.functions(), Scratch::new());
    let weighing = saved.training.weighing;
    let lagrangian =
        Lagrangian::new(model, &found.batch, &supervision, weighing, &scratch).unwrap();
    let states = found.fixed_point.states.clone();
    let at = Variables { weights: saved.weights.clone(), states, multipliers };
    let mut gradient = at.zeros_like();
    lagrangian.evaluate(&at, Request::ALL, &mut gradient);

    let transition = model.transition_weights(0);
    let d = &gradient.weights[transition.clone()];
    let length = d.iter().map(|d| f64::from(d * d)).sum::<f64>().sqrt();
    #[allow(clippy::cast_possible_truncation, reason = "weights are in single precision")]
    let loss = |step: f64| {
        let mut moved = saved.clone();
        for (weight, d) in moved.weights[transition.clone()].iter_mut().zip(d) {
            *weight += (step / length) as f32 * d;
        }
        let outputs = moved.predict(&data, true).unwrap().outputs;
        supervision.mean_loss(&outputs) * supervision.total() * weighing.loss_weight
    };
    let slope = (loss(1e-2) - loss(-1e-2)) / 2e-2;
    assert!((slope - length).abs() < 0.02 * length, "{slope} {length}");

    let nothing = data.with_targets(None, None).unwrap();
    let nothing = saved.predict(&nothing, false).unwrap();
    assert!(saved.multipliers(&nothing).is_err());
}
