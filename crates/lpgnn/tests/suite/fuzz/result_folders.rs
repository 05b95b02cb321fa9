//! Folders of results, of a cross-validation and of a search.

use std::path::Path;

use lpgnn::Error;
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

/// On one thread. It is not the one that is measured: memory is not counted here, only time.
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
    let folds =
        division.folds(&dataset, Level::Node, protocol, std::slice::from_ref(&config)).unwrap();
    let crossval = Crossval::new(&dataset, protocol, folds).unwrap();
    let place = tempfile::tempdir().unwrap();
    let run = |path: &Path| {
        let folder = ResultFolder::open(path, &crossval.plan(), &config)?;
        alone(|| crossval.run(&folder, &())).map(drop)
    };
    let path = place.path().join("results");
    run(&path).unwrap();
    let valid = files::read(&path);
    Target { name: "crossval folder", valid: &valid, writes: true }.fuzz(damage_results, run);
}

/// A search of two trials, with its results in this folder.
fn search(path: &Path) -> Result<(), Error> {
    let dataset = dataset();
    let config = config(&dataset);
    let space = Space::find("paper-nodes")?;
    let options = SearchOptions { budget: Some(Budget::Trials(2)), ..SearchOptions::default() };
    let config = config.with(&space.settings())?;
    let search = Search::new(&dataset, config.clone(), &space, options)?;
    let folder = ResultFolder::open(path, &search.plan(), &config)?;
    alone(|| search.run(&folder, &())).map(drop)
}

#[test]
fn folders_of_searches() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("results");
    search(&path).unwrap();
    let valid = files::read(&path);
    Target { name: "search folder", valid: &valid, writes: true }.fuzz(damage_results, search);
}

#[cfg(unix)]
#[test]
fn the_results_of_a_search_are_not_written_through_links() {
    let place = tempfile::tempdir().unwrap();
    let (path, thesis) = (place.path().join("results"), place.path().join("thesis.tex"));
    search(&path).unwrap();
    std::fs::write(&thesis, "years of work").unwrap();
    let names = files::read(&path);
    let is_lock = |name: &str| Path::new(name).extension().is_some_and(|end| end == "lock");
    let is_result = |name: &str| name != "plan.json" && !is_lock(name);
    for (name, _) in names.iter().filter(|(name, _)| is_result(name)) {
        std::fs::remove_file(path.join(name)).unwrap();
        // A trial that is there is not done again.
        if !name.starts_with("trial-") {
            std::os::unix::fs::symlink(&thesis, path.join(name)).unwrap();
        }
    }
    search(&path).unwrap();
    assert_eq!(std::fs::read(&thesis).unwrap(), b"years of work");
    assert!(!path.join("model.safetensors").is_symlink());
    for (name, _) in names.iter().filter(|(name, _)| is_lock(name)) {
        std::fs::remove_file(path.join(name)).unwrap();
        std::os::unix::fs::symlink(&thesis, path.join(name)).unwrap();
        // What is done needs no lock.
        if let Err(error) = search(&path) {
            let said = error.to_string();
            assert!(said.contains("has a link in place of its file"), "{name}: {said}");
        }
        std::fs::remove_file(path.join(name)).unwrap();
    }
    assert_eq!(std::fs::read(&thesis).unwrap(), b"years of work");
}
