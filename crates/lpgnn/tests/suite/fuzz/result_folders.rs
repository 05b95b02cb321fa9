//! Folders of results, of a cross-validation and of a search.

use lpgnn::data::Dataset;
use lpgnn::data::generate::CliqueConfig;
use lpgnn::evaluate::Protocol;
use lpgnn::experiment::ResultFolder;
use lpgnn::experiment::crossval::{Crossval, Division};
use lpgnn::experiment::search::{Budget, Search, SearchOptions, Space};
use lpgnn::graph::Level;
use lpgnn::run::{RunConfig, Setting};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::Target;
use super::files::{self, Files};
use super::mutate::{damage, damage_json};

fn dataset() -> Dataset {
    CliqueConfig { graphs: 4, ..CliqueConfig::default() }.generate(1).unwrap()
}

fn config(dataset: &Dataset) -> RunConfig {
    let settings = ["training.epochs=2", "model.state-dim=3", "training.eval-every=1"];
    let settings = settings.map(|text| Setting::parse("test", text).unwrap());
    RunConfig::for_data("clique", dataset, &settings).with(&settings).unwrap()
}

/// One thread, so that its memory is counted.
fn alone<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap().install(work)
}

fn damage_results(random: &mut ChaCha8Rng, files: &mut Files) {
    if random.random_ratio(1, 20) {
        files.remove(random.random_range(0..files.len()));
    }
    let file = random.random_range(0..files.len());
    let content = &mut files[file].1;
    match serde_json::from_slice(content) {
        Ok(mut document) if random.random() => {
            damage_json(random, &mut document);
            *content = document.to_string().into_bytes();
        }
        _ => damage(random, content, &[]),
    }
}

#[test]
fn folders_of_cross_validations() {
    let dataset = dataset();
    let config = config(&dataset);
    let division = Division { folds: 2, files: None, seed: 4 };
    let protocol = Protocol::Nested;
    let folds = division.folds(&dataset, Level::Node, protocol, &[config.clone()]).unwrap();
    let crossval = Crossval::new(&dataset, protocol, folds).unwrap();
    let place = tempfile::tempdir().unwrap();
    let run = |path: &std::path::Path| {
        let folder = ResultFolder::open(path, &crossval.plan(), &config)?;
        alone(|| crossval.run(&folder, &())).map(drop)
    };
    let path = place.path().join("results");
    run(&path).unwrap();
    let names = ["plan.json", "settings.toml", "fold-01.json", "fold-02.json", "result.json"];
    let valid = files::read(&path, &names);
    Target { name: "crossval folder", valid: &valid, writes: true }.fuzz(damage_results, run);
}

#[test]
fn folders_of_searches() {
    let dataset = dataset();
    let config = config(&dataset);
    let space = Space::find("paper-nodes").unwrap();
    let options = SearchOptions { budget: Some(Budget::Trials(2)), ..SearchOptions::default() };
    let search = Search::new(&dataset, config.clone(), &space, options).unwrap();
    let place = tempfile::tempdir().unwrap();
    let run = |path: &std::path::Path| {
        let folder = ResultFolder::open(path, &search.plan(), &config)?;
        alone(|| search.run(&folder, &())).map(drop)
    };
    let path = place.path().join("results");
    run(&path).unwrap();
    let names: Vec<&'static str> = std::fs::read_dir(&path)
        .unwrap()
        .map(|entry| &*entry.unwrap().file_name().into_string().unwrap().leak())
        .filter(|name| *name != ".lock")
        .collect();
    let valid = files::read(&path, &names);
    Target { name: "search folder", valid: &valid, writes: true }.fuzz(damage_results, run);
}
