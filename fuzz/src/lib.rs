//! What the fuzzers do with their bytes: everything that lpgnn reads, read and used.
//!
//! Nothing here may panic, hang, or take memory out of proportion; whatever is wrong is an error. How
//! inputs of several files are joined, and how models are signed, is shared with the tests of damaged
//! inputs in `crates/lpgnn/tests/suite/fuzz`, which also write the seeds.

#[path = "../../crates/lpgnn/tests/suite/fuzz/files.rs"]
mod files;
#[path = "../../crates/lpgnn/tests/suite/fuzz/signed.rs"]
mod signed;

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use lpgnn::data::generate::CliqueConfig;
use lpgnn::data::parts::Parts;
use lpgnn::data::{Dataset, Encoding, FeatureOptions, Format, Level, ReadOptions, Split, read};
use lpgnn::experiment::run::RunFolder;
use lpgnn::experiment::search::Space;
use lpgnn::graph::Alone;
use lpgnn::inference::Inference;
use lpgnn::live::{LiveData, LiveOptions, NamedEvent};
use lpgnn::run::{Checkpoint, RunConfig, SavedModel, Setting, Setup, TrainingOrigin};
use lpgnn::train::{EpochReport, ModelDims, Trainer, TrainerState};
use signed::Contents;

/// A data set of these files, read at `path` within their folder.
pub fn data(bytes: &[u8], format: Format, names: &[&'static str], path: &str) {
    in_folder(bytes, names, |folder| {
        let path = folder.join(path);
        let _ = Format::recognise(&path);
        let Ok(dataset) = read(&path, &ReadOptions { format: Some(format) }) else { return };
        let encoding = Encoding::new(&dataset, &FeatureOptions::default());
        let _ = encoding.and_then(|encoding| encoding.batch::<f32>(&dataset));
    });
}

/// Folds in one file, and in files of indices.
pub fn folds(bytes: &[u8]) {
    let names =
        ["folds.txt", "train_idx-1.txt", "test_idx-1.txt", "train_idx-2.txt", "test_idx-2.txt"];
    in_folder(bytes, &names, |folder| {
        let _ = Split::read_folds(&folder.join("folds.txt"), Level::Node, 5);
        let _ = Split::read_folds(folder, Level::Graph, 5);
    });
}

/// The splits of an `.npz` graph.
pub fn npz_folds(bytes: &[u8]) {
    in_folder(bytes, &["x.npz"], |folder| {
        let _ = Split::read_folds(&folder.join("x.npz"), Level::Node, 3);
    });
}

/// A graph in parts, as one process and as the second of two read it.
pub fn parts(bytes: &[u8]) {
    // In the order in which the seeds have them.
    let names = [
        "parts.json",
        "neighbour_starts.npy",
        "neighbours.npy",
        "features.npy",
        "y.npy",
        "split.npy",
        "original.npy",
    ];
    in_folder(bytes, &names, |folder| {
        let _ = Parts::read(folder, 1, 2).and_then(Parts::unchanged);
        let Ok(parts) = Parts::read(folder, 0, 1) else { return };
        let _ = parts.shared_by(&(Arc::new(Alone) as _));
    });
}

/// A model file, or the description of one.
pub fn model(bytes: &[u8]) {
    let trained = trained();
    let file = match described(bytes, &trained.model) {
        Some(file) => file,
        None => bytes.to_vec(),
    };
    let Ok(mut model) = SavedModel::from_bytes(&file) else { return };
    match &mut model.training.inference {
        Inference::FixedPoint(options) => {
            options.max_iter = options.max_iter.min(20);
            options.window = options.window.min(20);
            options.fall_back = None;
        }
        Inference::Relax(options) => options.max_iter = options.max_iter.min(20),
    }
    let _ = model.predict(&trained.dataset, false);
    let again = SavedModel::from_bytes(&model.to_bytes().expect("it was read"));
    assert!(again.is_ok(), "what was read and written cannot be read again");
}

/// A checkpoint, or the description of one.
pub fn checkpoint(bytes: &[u8]) {
    let trained = trained();
    let setup = &trained.setup;
    let file = described(bytes, &trained.checkpoint).unwrap_or_else(|| bytes.to_vec());
    in_folder(&[], &[], |folder| {
        let path = folder.join("checkpoint.safetensors");
        std::fs::write(&path, file).expect("there is space");
        let nodes = setup.data.training_graphs().nodes();
        let Ok(checkpoint) = Checkpoint::read(&path, &setup.model, nodes) else { return };
        let trainer = Trainer::new(setup.plan.clone(), &setup.model, &setup.data);
        let Ok(trainer) = trainer.expect("it was trained").resume(checkpoint.state) else { return };
        let mut stop = |_: &EpochReport, _: &TrainerState| ControlFlow::Break(());
        let _ = trainer.run(&mut stop);
    });
}

/// A file of settings.
pub fn settings(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Some(line) = text.lines().next() {
        let setting = Setting::parse("--set", line);
        let _ = setting.and_then(|setting| RunConfig::default().with(&[setting]));
    }
    let Ok(config) = RunConfig::from_toml("config.toml", &text) else { return };
    let again = RunConfig::from_toml("again", &config.to_toml());
    assert_eq!(again.expect("it was written"), config);
    let dims = ModelDims { features: 3, edge_features: 1, outputs: 2, level: Level::Node };
    let _ = config.model.build::<f32>(dims);
    let _ = config.training.check();
}

/// A search space.
pub fn space(bytes: &[u8]) {
    in_folder(bytes, &["space.toml"], |folder| {
        let file = folder.join("space.toml");
        let Ok(space) = Space::find(file.to_str().expect("a name without surprises")) else {
            return;
        };
        if let Ok(config) = RunConfig::default().with(&space.settings()) {
            let _ = space.trials(&config, Some(5), 0);
        }
    });
}

/// Lines of events on live graphs.
pub fn events(bytes: &[u8]) {
    static LIVE: OnceLock<(SavedModel, Vec<u8>)> = OnceLock::new();
    let options = LiveOptions::default();
    let (model, saved) = LIVE.get_or_init(|| {
        let (trained, model) = train(&["training.lipschitz=0.4"]).expect("the seeds can be made");
        let live = LiveData::new(&model, &trained.dataset, &options).expect("its states converge");
        (model, live.save())
    });
    let mut live = LiveData::load(model, saved, &options).expect("it was saved");
    let text = String::from_utf8_lossy(bytes);
    let events: Vec<NamedEvent> =
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let report = live.apply(&events);
    assert!(report.bound <= options.tol, "{report:?}");
    let outputs = report.changed.iter().flat_map(|change| &change.prediction.outputs);
    assert!(outputs.into_iter().all(|y| y.is_finite()), "{report:?}");
}

/// The folder of a run, to look at.
pub fn run_folder(bytes: &[u8]) {
    // In the order in which the seeds have them.
    let names = [RunFolder::CONFIG, RunFolder::LOG, RunFolder::METRICS, RunFolder::RECORD];
    in_folder(bytes, &names, |folder| {
        let Ok(run) = RunFolder::open(folder) else { return };
        let _ = (run.config(), run.record(), run.finished(), run.metrics());
    });
}

/// Splits the bytes into files of a folder that exists as long as the call.
fn in_folder(bytes: &[u8], names: &[&'static str], work: impl FnOnce(&Path)) {
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
    let folder = folder.expect("there is space");
    files::write(folder.path(), &files::split(bytes, names));
    work(folder.path());
}

/// A file like this one with these bytes as its description, with the right checksum; none if they
/// are a file themselves.
fn described(bytes: &[u8], file: &[u8]) -> Option<Vec<u8>> {
    let about = std::str::from_utf8(bytes).ok().filter(|text| text.starts_with('{'))?;
    let mut contents = Contents::read(file)?;
    contents.about = about.to_owned();
    contents.write()
}

/// The model and the checkpoint of a short training.
struct Trained {
    dataset: Dataset,
    setup: Setup,
    model: Vec<u8>,
    checkpoint: Vec<u8>,
}

fn trained() -> &'static Trained {
    static TRAINED: OnceLock<Trained> = OnceLock::new();
    TRAINED.get_or_init(|| train(&[]).expect("the seeds can be made").0)
}

/// As the tests in `crates/lpgnn/tests/suite/fuzz` do it, so that their descriptions fit.
fn train(more: &[&str]) -> Result<(Trained, SavedModel), lpgnn::Error> {
    let dataset = CliqueConfig { graphs: 3, ..CliqueConfig::default() }.generate(3)?;
    let settings = ["training.epochs=9", "training.eval-every=2", "model.state-dim=3"];
    let settings = settings.iter().chain(more).map(|text| Setting::parse("seed", text));
    let settings: Vec<Setting> = settings.collect::<Result<_, _>>()?;
    let config = RunConfig::for_data("clique", &dataset, &settings).with(&settings)?;
    let setup = Setup::new(&config, &dataset)?;
    let folder = tempfile::tempdir().expect("there is space");
    let path = folder.path().join("checkpoint.safetensors");
    let origin = TrainingOrigin::new(config.clone(), &setup);
    let mut keep = |report: &EpochReport, state: &TrainerState| {
        let written = Checkpoint::write(&path, &origin, 1.5, state);
        if report.epoch < 3 && written.is_ok() {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    };
    let trained = Trainer::new(setup.plan.clone(), &setup.model, &setup.data)?.run(&mut keep)?;
    let saved = SavedModel::new(&setup, &config, "clique", 3, trained.weights);
    let checkpoint = std::fs::read(&path).expect("it was written");
    let model = saved.to_bytes()?;
    Ok((Trained { dataset, setup, model, checkpoint }, saved))
}
