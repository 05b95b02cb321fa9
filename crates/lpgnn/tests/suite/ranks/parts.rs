//! A graph in parts: every rank has its own nodes and no others, and all ends with the bits of one process.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use lpgnn::Matrix;
use lpgnn::data::generate::CommunitiesConfig;
use lpgnn::data::parts::{Parts, write_parts};
use lpgnn::data::{Dataset, Overwrite};
use lpgnn::experiment::run::{CheckpointInterval, Progress, Run, RunFolder};
use lpgnn::graph::{Alone, Communicator};
use lpgnn::run::{RunConfig, SavedModel, Setting};

use super::threads::on_ranks;

fn whole() -> Dataset {
    CommunitiesConfig { nodes: 900, degree: 8.0, ..CommunitiesConfig::default() }
        .generate(3)
        .unwrap()
}

/// An order in which no node keeps its place.
fn order(nodes: usize) -> Vec<usize> {
    (0..nodes).map(|i| (i * 7 + 11) % nodes).collect()
}

fn write(folder: &Path, dataset: &Dataset, parts: usize) {
    let nodes = dataset.nodes();
    let config = RunConfig::for_data("communities", dataset, &[]);
    let starts: Vec<usize> = (0..parts).map(|part| part * nodes / parts).collect();
    write_parts(dataset, (&order(nodes), &starts), (&config, None), folder, Overwrite::Refuse)
        .unwrap();
}

fn read(folder: &Path, ranks: &Arc<dyn Communicator>) -> Dataset {
    Parts::read(folder, ranks.rank(), ranks.ranks()).unwrap().shared_by(ranks).unwrap()
}

fn config(dataset: &Dataset, settings: &[(&str, &str)]) -> RunConfig {
    let settings: Vec<Setting> = settings
        .iter()
        .map(|(path, value)| Setting::parse("test", &format!("{path}={value}")).unwrap())
        .collect();
    let mut config = RunConfig::choose("parts", dataset, &settings).unwrap();
    (config.training.epochs, config.training.eval_every) = (4, 2);
    config
}

/// Trains in `out` on so many ranks; stops after an epoch if told so, or goes on with what is there.
fn train(
    parts: &Path,
    out: &Path,
    ranks: usize,
    settings: &[(&str, &str)],
    stop: Option<usize>,
    resume: bool,
) {
    on_ranks(ranks, |communicator| {
        let dataset = read(parts, &communicator);
        let config = config(&dataset, settings);
        let open = || RunFolder::open(out).unwrap();
        let run = match (resume, communicator.rank()) {
            (false, 0) => Run::create(out, config, &dataset),
            (false, _) => Run::follow(out, config, &dataset),
            (true, 0) => Run::resume(open(), &dataset, None),
            (true, _) => Run::resume(open().following(), &dataset, None),
        };
        let run = run.unwrap().shared_by(&communicator);
        let run = run.checkpoint_every(CheckpointInterval { seconds: 1e9, epochs: Some(1) });
        let mut observer = |progress: &Progress<'_>| match stop {
            Some(epoch) if communicator.rank() == 0 && progress.metrics.report.epoch >= epoch => {
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        };
        run.train(&mut observer).unwrap();
    });
}

/// All that a run leaves which does not tell the time.
fn result(folder: &Path) -> (Vec<u8>, Vec<serde_json::Value>, serde_json::Value, String) {
    let text = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let epoch = |line: &str| {
        let mut epoch: serde_json::Value = serde_json::from_str(line).unwrap();
        epoch["seconds"].take();
        epoch
    };
    let mut record: serde_json::Value = serde_json::from_str(&text("record.json")).unwrap();
    for timed in ["machine", "seconds", "epoch_seconds"] {
        record[timed].take();
    }
    let epochs = text("metrics.jsonl").lines().map(epoch).collect();
    (std::fs::read(folder.join(RunFolder::MODEL)).unwrap(), epochs, record, text("items.json"))
}

fn same(parts: &Path, ranks: &[usize], settings: &[(&str, &str)]) {
    let place = tempfile::tempdir().unwrap();
    let at = |ranks: usize| place.path().join(ranks.to_string());
    train(parts, &at(1), 1, settings, None, false);
    let alone = result(&at(1));
    for &ranks in ranks {
        train(parts, &at(ranks), ranks, settings, None, false);
        assert!(result(&at(ranks)) == alone, "{ranks} ranks, {settings:?}");
    }
}

#[test]
fn training_ends_with_the_same_bits_on_any_number_of_ranks() {
    let place = tempfile::tempdir().unwrap();
    let parts = place.path().join("parts");
    write(&parts, &whole(), 7);
    same(&parts, &[2, 3, 7], &[]);
    let solvers = ["bdmm", "implicit", "unrolled", "sse", "augmented-lagrangian"];
    for (number, solver) in solvers.into_iter().enumerate() {
        same(&parts, &[2 + number % 3], &[("training.solver.kind", solver)]);
    }
    let transitions = ["gnn-mean", "gnn-normalized", "gin", "gcn-mean", "gcn", "sage-max"];
    for (number, transition) in transitions.into_iter().enumerate() {
        same(&parts, &[2 + number % 3], &[("model.transition", transition)]);
    }
    same(&parts, &[3], &[("model.layers", "2"), ("model.dropout", "0.3")]);
    same(
        &parts,
        &[4],
        &[("training.feature-dropout", "0.3"), ("training.class-weights", "balanced")],
    );
    same(&parts, &[2], &[("training.lipschitz", "0.9"), ("training.monitor", "macro-f1")]);
}

#[test]
fn parts_are_the_graph_they_were_made_from() {
    let (place, whole) = (tempfile::tempdir().unwrap(), whole());
    write(&place.path().join("parts"), &whole, 5);
    let parts = read(&place.path().join("parts"), &(Arc::new(Alone) as _));
    let ordered = whole.reordered(&order(whole.nodes())).unwrap();
    let epochs = |dataset: &Dataset, out: &str| {
        let out = place.path().join(out);
        let run = Run::create(&out, config(dataset, &[]), dataset).unwrap().without_baseline();
        let record = run.train(&mut ()).unwrap();
        let metrics = RunFolder::open(&out).unwrap().metrics().unwrap();
        (metrics.into_iter().map(|epoch| epoch.report).collect::<Vec<_>>(), record)
    };
    let ((in_parts, record), (expected, other)) = (epochs(&parts, "a"), epochs(&ordered, "b"));
    for (a, b) in in_parts.iter().zip(&expected) {
        // Sums over groups that are cut elsewhere differ in their last bits.
        assert!((a.loss - b.loss).abs() < 1e-4 * b.loss, "{} {}", a.loss, b.loss);
        assert!((a.residual_mean - b.residual_mean).abs() < 1e-3 * b.residual_mean);
    }
    assert_eq!(record.majority, other.majority);
    assert_eq!(record.final_evaluation.splits.len(), 3);
}

#[test]
fn a_run_on_parts_resumes_on_another_number_of_ranks_to_the_same_bits() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    write(&at("parts"), &whole(), 6);
    train(&at("parts"), &at("alone"), 1, &[], None, false);
    train(&at("parts"), &at("shared"), 3, &[], Some(1), false);
    train(&at("parts"), &at("shared"), 2, &[], Some(3), true);
    let folders = || {
        let names =
            std::fs::read_dir(at("shared")).unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| name.to_string_lossy().starts_with("checkpoint.")).count()
    };
    // The file, and the folder of one epoch.
    assert_eq!(folders(), 2);
    train(&at("parts"), &at("shared"), 4, &[], None, true);
    assert!(result(&at("alone")) == result(&at("shared")));
}

#[test]
fn predictions_come_in_the_order_of_the_data_set() {
    let (place, whole) = (tempfile::tempdir().unwrap(), whole());
    let at = |name: &str| place.path().join(name);
    write(&at("parts"), &whole, 6);
    train(&at("parts"), &at("run"), 2, &[], None, false);
    let model = SavedModel::read(&at("run").join(RunFolder::MODEL)).unwrap();
    let expected = model.predict(&whole, true).unwrap().outputs;
    let found = on_ranks(3, |communicator| {
        let dataset = read(&at("parts"), &communicator);
        let predictions = model.predict(&dataset, true).unwrap();
        let mut rows = BTreeMap::new();
        let mut next = 0;
        dataset.in_parts().unwrap().in_original_order(&predictions.outputs, &mut |node, row| {
            assert_eq!(node, next);
            next += 1;
            rows.insert(node, row.to_vec());
        });
        Matrix::from_rows(&rows.into_values().collect::<Vec<_>>()).unwrap()
    });
    for outputs in found {
        assert_eq!(outputs.rows(), expected.rows());
        for (a, b) in outputs.as_slice().iter().zip(expected.as_slice()) {
            assert!((a - b).abs() < 1e-2 * b.abs().max(1.0), "{a} {b}");
        }
    }
}

#[test]
fn a_rank_holds_its_part_and_its_ghosts() {
    let place = tempfile::tempdir().unwrap();
    let ring = CommunitiesConfig { nodes: 3000, degree: 6.0, ..CommunitiesConfig::default() };
    let whole = ring.generate(1).unwrap();
    write(&place.path().join("parts"), &whole, 12);
    let entries = |dataset: &Dataset| {
        let topology = dataset.in_parts().unwrap().batch().topology();
        (topology.nodes(), topology.neighbours().len(), topology.rows() - topology.nodes())
    };
    let alone = entries(&read(&place.path().join("parts"), &(Arc::new(Alone) as _)));
    let each =
        on_ranks(4, |communicator| entries(&read(&place.path().join("parts"), &communicator)));
    assert_eq!(each.iter().map(|of| of.0).sum::<usize>(), alone.0);
    assert_eq!(each.iter().map(|of| of.1).sum::<usize>(), alone.1);
    assert_eq!(alone.2, 0);
    for (nodes, neighbours, ghosts) in each {
        assert!(4 * nodes == alone.0 && 2 * neighbours < alone.1, "{nodes} {neighbours}");
        assert!(ghosts > 0 && ghosts <= alone.0 - nodes);
    }
}

#[test]
fn what_cannot_be_used_is_told_in_a_sentence() {
    let place = tempfile::tempdir().unwrap();
    let parts = place.path().join("parts");
    write(&parts, &whole(), 3);
    let said = |rank, ranks| Parts::read(&parts, rank, ranks).err().map(|error| error.to_string());
    assert!(said(0, 4).unwrap().contains("has 3 parts, but 4 processes"), "{:?}", said(0, 4));
    assert_eq!(said(2, 3), None);
    let read_whole = lpgnn::data::read(&parts, &lpgnn::data::ReadOptions::default());
    assert!(read_whole.unwrap_err().to_string().contains("is a graph in parts"));
    let dataset = read(&parts, &(Arc::new(Alone) as _));
    let mut other = config(&dataset, &[]);
    other.features.standardize = false;
    let error = Run::create(&place.path().join("run"), other, &dataset).unwrap_err().to_string();
    assert!(error.contains("the features settings are not those"), "{error}");
    let file = parts.join("neighbours.npy");
    let bytes = std::fs::read(&file).unwrap();
    std::fs::write(&file, &bytes[..bytes.len() - 4]).unwrap();
    assert!(said(0, 1).unwrap().contains("neighbours.npy"));
    // A neighbour that does not know of it, within a part and across parts.
    let list = |at: usize| u32::from_le_bytes(bytes[128 + 4 * at..][..4].try_into().unwrap());
    let (own, other): (Vec<usize>, Vec<usize>) =
        (0..6).filter(|&at| list(at) + 1 < list(at + 1)).partition(|&at| list(at) < 290);
    for (at, ranks) in
        own.first().map(|at| (*at, 1)).into_iter().chain(other.first().map(|at| (*at, 3)))
    {
        let mut broken = bytes.clone();
        broken[128 + 4 * at..][..4].copy_from_slice(&(list(at) + 1).to_le_bytes());
        std::fs::write(&file, &broken).unwrap();
        let failed = on_ranks(ranks, |communicator| {
            let read = Parts::read(&parts, communicator.rank(), communicator.ranks());
            // All of them have to come to the same end.
            if communicator.any(read.is_err()) {
                return true;
            }
            read.unwrap().shared_by(&communicator).is_err()
        });
        assert!(failed.iter().all(|&failed| failed), "entry {at} on {ranks} ranks: {failed:?}");
    }
    let mut broken = bytes.clone();
    broken[128..132].copy_from_slice(&u32::MAX.to_le_bytes());
    std::fs::write(&file, &broken).unwrap();
    assert!(said(0, 1).unwrap().contains("not in order"));
}

#[test]
fn features_in_a_file_are_read_as_they_are_and_change_nothing_else() {
    let (place, whole) = (tempfile::tempdir().unwrap(), whole());
    let at = |name: &str| place.path().join(name);
    let (nodes, width) = (whole.nodes(), 2);
    let mut bytes = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    bytes.extend(
        format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({nodes}, {width}), }}")
            .bytes(),
    );
    bytes.resize(127, b' ');
    bytes.push(b'\n');
    let values: Vec<f32> = (0..nodes * width).map(|i| i as f32).collect();
    bytes.extend(values.iter().flat_map(|x| x.to_le_bytes()));
    std::fs::write(at("x.npy"), &bytes).unwrap();
    let config = RunConfig::for_data("communities", &whole, &[]);
    let (order, file) = (order(nodes), at("x.npy"));
    let write = |out: &str, file: &Path| {
        write_parts(&whole, (&order, &[0, 300]), (&config, Some(file)), &at(out), Overwrite::Refuse)
    };
    write("parts", &file).unwrap();
    let dataset = read(&at("parts"), &(Arc::new(Alone) as _));
    let lpgnn::graph::Features::Dense(features) =
        dataset.in_parts().unwrap().batch().node_features()
    else {
        panic!("they are dense");
    };
    for (v, &node) in order.iter().enumerate() {
        assert_eq!(features.row(v), &values[node * width..][..width]);
    }
    std::fs::write(at("short.npy"), &bytes[..bytes.len() - 4]).unwrap();
    assert!(write("other", &at("short.npy")).unwrap_err().to_string().contains("short.npy"));
}

#[test]
fn ghosts_one_update_old_lead_to_the_same_fixed_point() {
    use lpgnn::saddle::{OneShot, WeightDescent};
    use lpgnn::train::{SolverConfig, Trainer, TrainingConfig};

    let batch = super::large::<f32>(600, super::dense(600, 5, 3));
    let data = super::nodes_in_thirds(&batch);
    let model = super::small("gnn-mean");
    let states = |ranks: usize, epochs: usize, staleness: usize| {
        // Weights that hardly move: the states converge for them, from zero.
        let weights = WeightDescent { lr: 1e-9, ..WeightDescent::default() };
        let solver =
            SolverConfig::OneShot(OneShot { weights, inner_steps: 1, ..OneShot::default() });
        let config = TrainingConfig {
            epochs,
            staleness,
            solver,
            eval_every: 1000,
            patience: None,
            standardize: false,
            ..TrainingConfig::default()
        };
        let of_ranks = on_ranks(ranks, |communicator| {
            let data = data.clone().shared_by(&communicator);
            let model = model.build(data.dims()).unwrap();
            let trainer = Trainer::new(config.clone().check().unwrap(), &model, &data).unwrap();
            trainer.run_keeping_state(&mut ()).unwrap().1.variables.states.remove(0)
        });
        assert!(of_ranks.iter().all(|states| *states == of_ranks[0]));
        of_ranks[0].clone()
    };
    let distance = |a: &Matrix<f32>, b: &Matrix<f32>| {
        let pairs = a.as_slice().iter().zip(b.as_slice());
        pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
    };
    let exact = states(3, 300, 0);
    assert!(exact.as_slice().iter().any(|x| x.abs() > 0.1), "it is not trivial");
    for ranks in [2, 3] {
        // On the way they are elsewhere, every time at the same place.
        let (early, old) = (states(ranks, 4, 0), states(ranks, 4, 1));
        assert!(distance(&early, &old) > 1e-3, "{}", distance(&early, &old));
        assert!(old == states(ranks, 4, 1));
        let apart = distance(&exact, &states(ranks, 300, 1));
        assert!(apart < 1e-4, "{ranks} ranks end {apart} apart");
    }
    assert!(exact == states(1, 300, 1), "one rank has no ghosts");
    assert!(TrainingConfig { staleness: 2, ..TrainingConfig::default() }.check().is_err());
}

#[test]
fn changed_parts_are_noticed() {
    let place = tempfile::tempdir().unwrap();
    let parts = place.path().join("parts");
    write(&parts, &whole(), 3);
    let read = |rank, ranks| Parts::read(&parts, rank, ranks).and_then(Parts::unchanged).map(drop);
    let said = |rank, ranks| read(rank, ranks).unwrap_err().to_string();
    read(0, 1).unwrap();
    (0..3).for_each(|rank| read(rank, 3).unwrap());
    let changed = |name: &str, change: &dyn Fn(&mut Vec<u8>)| {
        let before = std::fs::read(parts.join(name)).unwrap();
        let mut after = before.clone();
        change(&mut after);
        assert_ne!(after, before, "{name}");
        std::fs::write(parts.join(name), after).unwrap();
        before
    };
    let put_back = |name: &str, before: Vec<u8>| std::fs::write(parts.join(name), before).unwrap();
    // Training and test nodes change places, in the second part alone.
    let before = changed("split.npy", &|bytes| {
        bytes[128 + 300..128 + 600]
            .iter_mut()
            .for_each(|split| *split = [0, 3, 2, 1][*split as usize]);
    });
    assert!(said(0, 1).contains("the split of part 2 has changed since"), "{}", said(0, 1));
    assert!(read(0, 3).is_ok() && read(1, 3).is_err() && read(2, 3).is_ok());
    put_back("split.npy", before);
    // Two rows of features, two classes, two nodes of the data set; and what is not a number of any split.
    let swap = |width: usize| {
        move |bytes: &mut Vec<u8>| (0..width).for_each(|i| bytes.swap(128 + i, 128 + 5 * width + i))
    };
    let form: serde_json::Value =
        serde_json::from_slice(&std::fs::read(parts.join("parts.json")).unwrap()).unwrap();
    let width = form["form"]["width"].as_u64().unwrap() as usize;
    for (name, bytes) in [("features.npy", 4 * width), ("original.npy", 4)] {
        let before = changed(name, &swap(bytes));
        assert!(
            said(0, 1).contains("the arrays of part 1 have changed since"),
            "{name}: {}",
            said(0, 1)
        );
        put_back(name, before);
    }
    let before = changed("y.npy", &|bytes| bytes[128] = (bytes[128] + 1) % 3);
    assert!(said(0, 1).contains("the arrays of part 1 have changed since"), "{}", said(0, 1));
    put_back("y.npy", before);
    let before = changed("split.npy", &|bytes| bytes[130] = 7);
    assert!(said(0, 1).contains("other than 0, 1, 2 and 3"), "{}", said(0, 1));
    put_back("split.npy", before);
    let before = changed("original.npy", &|bytes| bytes.copy_within(128..132, 132));
    assert!(said(0, 1).contains("original.npy: lists node 11 twice"), "{}", said(0, 1));
    put_back("original.npy", before);
    // What is stated counts as well.
    let edited = |from: &'static str, to: &'static str| {
        move |bytes: &mut Vec<u8>| {
            *bytes = String::from_utf8_lossy(bytes).replacen(from, to, 1).into_bytes();
        }
    };
    let before = changed("parts.json", &edited("\"largest-degree\": ", "\"largest-degree\": 1"));
    assert!(said(0, 1).contains("the description of the parts has changed"), "{}", said(0, 1));
    put_back("parts.json", before);
    let before = changed(
        "parts.json",
        &edited("\"neighbours\": \"unknown\"", "\"neighbours\": { \"alike\": 1 }"),
    );
    assert!(said(0, 1).contains("the description of the split has changed"), "{}", said(0, 1));
    put_back("parts.json", before);
    read(0, 1).unwrap();
}

#[test]
fn names_that_do_not_fit_the_nodes_are_an_error() {
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir(place.path().join("tables")).unwrap();
    let nodes = (0..9).map(|node| format!("n{node},{},{}\n", node % 2, node % 3));
    let nodes = nodes.collect::<Vec<_>>().concat();
    std::fs::write(place.path().join("tables/nodes.csv"), format!("id,x,y\n{nodes}")).unwrap();
    let edges = (0..8).map(|node| format!("n{node},n{}\n", node + 1));
    let edges = edges.collect::<Vec<_>>().concat();
    std::fs::write(place.path().join("tables/edges.csv"), format!("source,target\n{edges}"))
        .unwrap();
    let options = lpgnn::data::ReadOptions::default();
    let whole = lpgnn::data::read(&place.path().join("tables"), &options).unwrap();
    let (parts, order) = (place.path().join("parts"), (0..9).rev().collect::<Vec<_>>());
    let config = (&RunConfig::for_data("tables", &whole, &[]), None);
    write_parts(&whole, (&order, &[0]), config, &parts, Overwrite::Refuse).unwrap();
    let names = || {
        let dataset = read(&parts, &(Arc::new(Alone) as _));
        dataset.in_parts().unwrap().names().map(|names| names.unwrap().take(20))
    };
    let whole: Vec<String> = names().unwrap().collect::<Result<_, _>>().unwrap();
    assert_eq!((whole.len(), &whole[8][..]), (9, "n8"));
    let file = parts.join("names.txt");
    for (text, problem) in [
        ("a\nb\n", "has 2 names for 9 nodes"),
        (&"a\n".repeat(10), "has more names than the 9 nodes"),
    ] {
        std::fs::write(&file, text).unwrap();
        let error = names().unwrap().find_map(Result::err).unwrap().to_string();
        assert!(error.contains(problem), "{error}");
    }
    #[cfg(unix)]
    {
        std::fs::remove_file(&file).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &file).unwrap();
        assert!(names().err().unwrap().to_string().contains("is a pipe or a device"));
    }
}
