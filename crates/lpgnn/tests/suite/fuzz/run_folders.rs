//! Folders of runs: every file of them, one or two at a time.

use std::ops::ControlFlow;
use std::path::Path;

use lpgnn::data::generate::CliqueConfig;
use lpgnn::experiment::run::{Progress, Run, RunFolder};
use lpgnn::run::{RunConfig, SavedModel, Setting};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use serde_json::Value;

use super::files::{self, Files};
use super::mutate::{damage, damage_json, damage_signed};
use super::{Target, sentence};

#[test]
fn folders_of_runs() {
    let dataset = CliqueConfig { graphs: 3, ..CliqueConfig::default() }.generate(3).unwrap();
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("run");
    let settings = ["training.epochs=4", "training.eval-every=2", "model.state-dim=3"];
    let settings = settings.map(|text| Setting::parse("test", text).unwrap());
    let config = RunConfig::for_data("clique", &dataset, &settings).with(&settings).unwrap();
    let mut stop_after_2 = |progress: &Progress<'_>| match progress.metrics.report.epoch {
        2 => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    };
    Run::create(&path, config, &dataset).unwrap().train(&mut stop_after_2).unwrap();
    let valid = files::read(&path);
    Target { name: "run folder", valid: &valid, writes: true }.fuzz(damage_run, |folder| {
        let run = RunFolder::open(folder)?;
        let said = |error: &lpgnn::Error| sentence("run folder", error);
        let _ = run.record().inspect_err(said);
        let _ = run.finished().inspect_err(said);
        let _ = run.metrics().inspect_err(said);
        let _ = SavedModel::read(&run.file(RunFolder::MODEL)).inspect_err(said);
        let now = run.config()?;
        if !is_small(&now) {
            return Ok(());
        }
        let run = Run::resume(run, &dataset, None)?;
        run.train(&mut |_: &Progress<'_>| ControlFlow::Break(())).map(drop)
    });
}

/// Damages one file or two; sometimes one goes missing.
fn damage_run(random: &mut ChaCha8Rng, files: &mut Files) {
    if random.random_ratio(1, 20) {
        files.remove(random.random_range(0..files.len()));
    }
    for _ in 0..random.random_range(1..=2) {
        let (name, content) = {
            let file = random.random_range(0..files.len());
            (files[file].0, &mut files[file].1)
        };
        let other = content.clone();
        let json = Path::new(name).extension().is_some_and(|end| end == "json") && random.random();
        match serde_json::from_slice(content) {
            Ok(mut document) if json => {
                damage_json(random, &mut document);
                *content = document.to_string().into_bytes();
            }
            _ if name.ends_with(".safetensors") => damage_signed(random, content),
            _ => damage(random, content, &other),
        }
    }
}

/// Whether these settings, which are legal, ask for little enough to be tried here.
fn is_small(config: &RunConfig) -> bool {
    fn largest(value: &Value) -> u64 {
        match value {
            Value::Object(entries) => entries.values().map(largest).max().unwrap_or(0),
            Value::Array(items) => {
                items.iter().map(largest).chain([items.len() as u64]).max().unwrap_or(0)
            }
            value => value.as_u64().unwrap_or(0),
        }
    }
    let mut value = serde_json::to_value(config).unwrap();
    // These cost nothing.
    for free in ["seed", "epochs", "eval-every", "patience", "batch-size"] {
        value["training"][free].take();
    }
    value["split"].take();
    largest(&value) <= 1000
}
