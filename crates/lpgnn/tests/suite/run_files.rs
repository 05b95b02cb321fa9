//! The files of a run: what is written is read again, and nothing that is read can do harm.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::ops::ControlFlow;

use lpgnn::Matrix;
use lpgnn::data::generate::CliqueConfig;
use lpgnn::data::{Dataset, DatasetParts, FeatureColumns, Split, TargetColumn};
use lpgnn::network::Network;
use lpgnn::readout::NodeReadout;
use lpgnn::registry::Registry;
use lpgnn::run::{Checkpoint, RunConfig, SavedModel, Setting, Setup, TrainingOrigin};
use lpgnn::train::{EpochReport, Trainer, TrainerState};

fn dataset() -> Dataset {
    CliqueConfig { graphs: 8, ..CliqueConfig::default() }.generate(3).unwrap()
}

fn config(settings: &[&str]) -> RunConfig {
    let settings: Vec<Setting> =
        settings.iter().map(|text| Setting::parse("test", text).unwrap()).collect();
    RunConfig::for_data("clique", &dataset(), &settings).with(&settings).unwrap()
}

fn train(setup: &Setup, from: Option<TrainerState>, stop_after: usize) -> (Vec<f32>, TrainerState) {
    let mut trainer = Trainer::new(setup.plan.clone(), &setup.model, &setup.data).unwrap();
    if let Some(state) = from {
        trainer = trainer.resume(state).unwrap();
    }
    let mut last = trainer.state().clone();
    let trained = trainer.run(&mut |report: &EpochReport, state: &TrainerState| {
        last = state.clone();
        if report.epoch >= stop_after { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    (trained.unwrap().weights, last)
}

fn bits(weights: &[f32]) -> Vec<u32> {
    weights.iter().map(|weight| weight.to_bits()).collect()
}

#[test]
fn a_resumed_training_ends_with_the_same_bits() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("checkpoint.safetensors");
    for settings in [
        &["training.epochs=12", "training.eval-every=5"][..],
        &["training.epochs=12", "training.solver.kind=unrolled", "model.transition=gin"],
        &["training.epochs=12", "training.batch-size=3", "model.dropout=0.3"],
        &["training.epochs=12", "training.feature-dropout=0.3", "model.state-weights=frozen"],
        &["training.epochs=12", "training.batch-size=4", "training.l2=0.1"],
        &["training.epochs=12", "training.solver.kind=bdmm", "model.layers=2"],
        &["training.epochs=6", "training.solver.kind=implicit", "training.patience=2"],
        &["training.epochs=12", "training.solver.weights.rule=sgd", "split.source=ratio"],
    ] {
        let config = config(settings);
        let setup = Setup::new(&config, &dataset()).unwrap();
        let (whole, _) = train(&setup, None, usize::MAX);
        let nodes = setup.data.training_graphs().nodes();
        for stop in [1, 4, 5] {
            let (_, state) = train(&setup, None, stop);
            Checkpoint::write(&path, &TrainingOrigin::new(config.clone(), &setup), 1.5, &state)
                .unwrap();
            let read = Checkpoint::read(&path, &setup.model, nodes).unwrap();
            assert_eq!(read.origin, TrainingOrigin::new(config.clone(), &setup));
            assert_eq!(read.seconds.to_bits(), 1.5_f64.to_bits());
            let (resumed, _) = train(&setup, Some(read.state), usize::MAX);
            assert_eq!(bits(&resumed), bits(&whole), "{settings:?}, stopped after {stop}");
        }
    }
}

#[test]
fn every_solver_resumes_with_the_same_bits() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("checkpoint.safetensors");
    for solver in [
        &["training.solver.kind=one-shot", "training.solver.inner-steps=2"][..],
        &["training.solver.kind=bdmm"],
        &["training.solver.kind=bdmm", "training.solver.state-rule=sgd"],
        &["training.solver.kind=bdmm", "training.solver.dual-rule=sgd"],
        &["training.solver.kind=bdmm", "training.solver.dual-rule={nu-pi={nu=0.5,kappa=1.0}}"],
        &["training.solver.kind=bdmm", "training.solver.state-lr-half-life=3.0"],
        &["training.solver.kind=implicit"],
        &["training.solver.kind=unrolled"],
        &["training.solver.kind=sse", "training.solver.adjoint-terms=2"],
        &["training.solver.kind=sse", "training.solver.sample=0.5"],
        &["training.solver.kind=sse", "training.solver.weight-steps=2"],
        &["training.solver.kind=augmented-lagrangian", "training.solver.violation-share=0.5"],
    ] {
        for batches in [&[][..], &["training.batch-size=3", "model.dropout=0.3"]] {
            let short = ["training.epochs=7", "model.state-dim=4", "training.eval-every=7"];
            let settings: Vec<&str> = [&short, solver, batches].concat();
            let config = config(&settings);
            let setup = Setup::new(&config, &dataset()).unwrap();
            let (whole, end) = train(&setup, None, usize::MAX);
            let (_, state) = train(&setup, None, 4);
            Checkpoint::write(&path, &TrainingOrigin::new(config.clone(), &setup), 0.0, &state)
                .unwrap();
            let nodes = setup.data.training_graphs().nodes();
            let read = Checkpoint::read(&path, &setup.model, nodes).unwrap();
            assert_eq!(read.state.optimizer.slots, state.optimizer.slots, "{settings:?}");
            let (resumed, resumed_end) = train(&setup, Some(read.state), usize::MAX);
            assert_eq!(bits(&resumed), bits(&whole), "{settings:?}");
            assert_eq!(resumed_end.variables, end.variables, "{settings:?}");
            assert_eq!(resumed_end.optimizer.slots, end.optimizer.slots, "{settings:?}");
        }
    }
}

#[test]
fn slots_of_every_kind_and_name_are_kept_to_the_last_bit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("checkpoint.safetensors");
    let config = config(&["training.epochs=1"]);
    let setup = Setup::new(&config, &dataset()).unwrap();
    let (_, mut state) = train(&setup, None, 1);
    let TrainerState { variables, optimizer, .. } = &mut state;
    let slots = &mut optimizer.slots;
    // Names that look like those of the arrays of another slot, and ones that are no identifiers.
    slots.states(["a", "a.states"], &variables.states)[0][0].row_mut(2)[1] = 0.1;
    slots.weights(["a.states.0", "weights"], variables.weights.len())[0][3] = -0.0;
    slots.multipliers(["ρ / \"two\"", ""], &variables.multipliers)[0][0].row_mut(0)[0] = 7.0;
    *slots.number("infinite", f64::NEG_INFINITY) = f64::INFINITY;
    *slots.counter("largest") = u64::MAX;
    *slots.node_counter("turns") = 3;
    Checkpoint::write(&path, &TrainingOrigin::new(config.clone(), &setup), 0.0, &state).unwrap();
    let nodes = setup.data.training_graphs().nodes();
    let read = Checkpoint::read(&path, &setup.model, nodes).unwrap();
    assert_eq!(read.state.optimizer.slots, state.optimizer.slots);
}

#[test]
fn a_checkpoint_of_another_model_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("checkpoint.safetensors");
    let (one, other) = (config(&["model.state-dim=4"]), config(&["model.state-dim=5"]));
    let setup = Setup::new(&one, &dataset()).unwrap();
    let (_, state) = train(&setup, None, 1);
    Checkpoint::write(&path, &TrainingOrigin::new(one.clone(), &setup), 0.0, &state).unwrap();
    let nodes = setup.data.training_graphs().nodes();
    assert!(Checkpoint::read(&path, &setup.model, nodes).is_ok());
    assert!(Checkpoint::read(&path, &setup.model, nodes + 1).is_err());
    let setup = Setup::new(&other, &dataset()).unwrap();
    let error = Checkpoint::read(&path, &setup.model, nodes).unwrap_err().to_string();
    assert!(error.contains("was expected"), "{error}");
}

fn saved() -> SavedModel {
    let config = config(&["training.epochs=3"]);
    let setup = Setup::new(&config, &dataset()).unwrap();
    let (weights, _) = train(&setup, None, usize::MAX);
    SavedModel::new(&setup, &config, "clique", 3, weights)
}

#[test]
fn a_model_is_read_as_it_was_written() {
    let model = saved();
    let again = SavedModel::from_bytes(&model.to_bytes().unwrap()).unwrap();
    assert_eq!(again, model);
    assert_eq!(bits(&again.weights), bits(&model.weights));
    let (one, other) = (model.predict(&dataset(), false), again.predict(&dataset(), true));
    assert_eq!(bits(one.unwrap().outputs.as_slice()), bits(other.unwrap().outputs.as_slice()));
}

#[test]
fn a_model_of_ones_own_functions_needs_their_registry() {
    let registry = Registry::default().with_readout("mine", |spec| {
        let units = spec.model.readout_options.get("units")?.unwrap_or(3);
        let network = Network::one_hidden(units);
        Ok(Box::new(NodeReadout::new(spec.inputs, spec.outputs, network, 0.0)))
    });
    let settings =
        ["training.epochs=3", "model.readout=mine", "model.readout-options.units=7"].as_slice();
    let config = config(settings);
    let setup = Setup::with_registry(&registry, &config, &dataset(), None).unwrap();
    let names = setup.model.parameters();
    let (first, _) = names.iter().find(|(p, _)| p.name() == "readout.0.weight").unwrap();
    assert_eq!(first.shape()[1], 7);
    let (weights, _) = train(&setup, None, usize::MAX);
    let model = SavedModel::new(&setup, &config, "clique", 3, weights);
    let bytes = model.to_bytes().unwrap();
    let error = SavedModel::from_bytes(&bytes).unwrap_err().to_string();
    assert!(error.contains("readout is mine, but one of auto, node, sum, mean, max"), "{error}");
    let again = SavedModel::from_bytes_with(&registry, &bytes).unwrap();
    assert_eq!(again, model);
    let said = |model: &SavedModel| model.predict(&dataset(), false).unwrap();
    assert_eq!(bits(said(&again).outputs.as_slice()), bits(said(&model).outputs.as_slice()));
}

#[test]
fn a_split_that_was_given_is_not_made_up_again() {
    let (given, config) = (dataset(), config(&["split.source=given"]));
    let none = given.clone().with_split(None).unwrap();
    let error = Setup::new(&config, &none).unwrap_err().to_string();
    assert!(error.contains("was given at training and is not known here"), "{error}");
    let setup = Setup::new(&config, &given).unwrap();
    assert_eq!(Some(&setup.split), given.split());
}

#[test]
fn a_model_knows_its_split_or_says_that_it_does_not() {
    let (model, dataset) = (saved(), dataset());
    assert_eq!(model.split_of(&dataset).unwrap(), dataset.split());
    let again = SavedModel::from_bytes(&model.to_bytes().unwrap()).unwrap();
    let Split { level, train, val, test } = dataset.split().unwrap().clone();
    // Whatever the split of the data is now, the model has that of its training.
    let swapped = Split { level, train: test, val, test: train };
    let changed = dataset.clone().with_split(Some(swapped.clone())).unwrap();
    assert_eq!(again.split_of(&changed).unwrap(), dataset.split());
    assert_ne!(again.data.split, swapped.fingerprint());
    // Other data, or a file that does not tell.
    let other = CliqueConfig { graphs: 8, ..CliqueConfig::default() }.generate(4).unwrap();
    assert_eq!(again.split_of(&other).unwrap(), None);
    let mut silent = again.clone();
    silent.members = None;
    let silent = SavedModel::from_bytes(&silent.to_bytes().unwrap()).unwrap();
    assert_eq!(silent.split_of(&dataset).unwrap(), None);
    // One that was made to harm.
    let harmful = again.with_split(Split { train: vec![usize::from(u16::MAX)], ..swapped });
    let harmful = SavedModel::from_bytes(&harmful.to_bytes().unwrap()).unwrap();
    assert!(harmful.split_of(&dataset).is_err());
}

/// Rings and paths whose length is to be predicted, in some unit.
fn lengths(unit: f32, zero: f32) -> Dataset {
    let (mut node_starts, mut edges, mut values) = (vec![0], vec![], vec![]);
    for size in 3..43_u32 {
        let first = u32::try_from(node_starts[node_starts.len() - 1]).unwrap();
        edges.extend(
            (1..size).flat_map(|v| [(first + v - 1, first + v), (first + v, first + v - 1)]),
        );
        if size % 2 == 0 {
            edges.extend([(first, first + size - 1), (first + size - 1, first)]);
        }
        node_starts.push((first + size) as usize);
        values.push(zero + unit * f32::from(u16::try_from(size).unwrap()));
    }
    let nodes = node_starts[node_starts.len() - 1];
    let values = Matrix::from_entries(values.len(), 1, values).unwrap();
    Dataset::new(DatasetParts {
        name: "lengths".into(),
        node_features: FeatureColumns::none(nodes),
        edge_features: FeatureColumns::none(edges.len()),
        node_starts,
        edges,
        node_targets: None,
        graph_targets: Some(TargetColumn::Values { names: vec!["length".into()], values }),
        split: None,
    })
    .unwrap()
}

#[test]
fn neither_the_unit_of_a_target_nor_its_zero_matters() {
    let predict = |unit, zero| {
        let dataset = lengths(unit, zero);
        let settings = [Setting::parse("test", "training.epochs=40").unwrap()];
        let config = RunConfig::for_data("lengths", &dataset, &settings).with(&settings).unwrap();
        let setup = Setup::new(&config, &dataset).unwrap();
        let (weights, _) = train(&setup, None, usize::MAX);
        let model = SavedModel::new(&setup, &config, "lengths", 40, weights);
        model.predict(&dataset, false).unwrap().outputs
    };
    let plain = predict(1.0, 0.0);
    let wrong: f32 =
        plain.as_slice().iter().zip(3_u16..).map(|(y, n)| (y - f32::from(n)).abs()).sum();
    assert!(wrong / 40.0 < 8.0, "lengths are wrong by {}", wrong / 40.0);
    // Powers of two, and numbers of which single precision drops nothing: the same bits inside.
    for (unit, zero) in [(4.0, 0.0), (0.125, 0.0), (1.0, 1024.0)] {
        for (&plain, &other) in plain.as_slice().iter().zip(predict(unit, zero).as_slice()) {
            let expected = zero + unit * plain;
            assert!((other - expected).abs() < 1e-3 * unit, "{unit} {zero}: {other}, {expected}");
        }
    }
}

/// A small generator, so that the same variants are tried every time.
fn random(state: &mut u64) -> usize {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    usize::try_from(*state >> 33).unwrap()
}

#[test]
fn ten_thousand_corrupted_models_never_panic() {
    let bytes = saved().to_bytes().unwrap();
    let mut state = 0x9e37_79b9_7f4a_7c15;
    let mut accepted = 0;
    for variant in 0..10_000 {
        let mut broken = bytes.clone();
        match variant % 4 {
            0 => {
                let at = random(&mut state) % (broken.len() * 8);
                broken[at / 8] ^= 1 << (at % 8);
            }
            1 => broken.truncate(random(&mut state) % broken.len()),
            2 => {
                let (from, to) = (random(&mut state), random(&mut state));
                let length = 1 + random(&mut state) % 64;
                let (from, to) = (from % (broken.len() - 64), to % (broken.len() - 64));
                broken.copy_within(from..from + length, to);
            }
            _ => {
                let at = random(&mut state) % broken.len();
                let insert = (0..random(&mut state) % 9).map(|_| b'0' + 5);
                broken.splice(at..at, insert);
            }
        }
        if let Ok(model) = SavedModel::from_bytes(&broken) {
            assert_eq!(model, saved(), "variant {variant} is another model");
            accepted += 1;
        }
    }
    assert!(accepted < 500, "{accepted} variants were no variants at all");
}
