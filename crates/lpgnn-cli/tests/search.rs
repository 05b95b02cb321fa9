//! A search gives every trial what it would have alone, whatever happens on the way.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

fn lpgnn(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lpgnn"));
    command.current_dir(folder).args(arguments).env("LPGNN_CACHE", "no-cache");
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

fn run(folder: &Path, arguments: &[&str]) {
    let output = lpgnn(folder, arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

const SPACE: &str = r#"
[values]
"model.state-dim" = [2, 4, 8]
"training.solver.weights.lr" = [0.01, 0.001]
"model.dropout" = [0.0, 0.3]
"#;

const SEARCH: [&str; 8] = [
    "search",
    "clique",
    "--space=space.toml",
    "--epochs=90",
    "--min-epochs=7",
    "--eval-every=4",
    "--threads=2",
    "--out=found",
];

#[test]
fn the_winner_is_the_same_bits_as_a_run_from_scratch() {
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("space.toml"), SPACE).unwrap();
    run(place.path(), &SEARCH);
    let file = |name: &str| place.path().join("found").join(name);
    assert!(file("trial-00001-of-9.json").exists(), "there was more than one round");
    assert!(!file("trial-00001.checkpoint.safetensors").exists(), "nobody needs it any more");
    run(place.path(), &["train", "--config=found/best.toml", "--out=run"]);
    let found = std::fs::read(file("model.safetensors")).unwrap();
    assert!(found == std::fs::read(place.path().join("run/model.safetensors")).unwrap());
    let result = result(place.path());
    let record = std::fs::read_to_string(place.path().join("run/record.json")).unwrap();
    let record: serde_json::Value = serde_json::from_str(&record).unwrap();
    let accuracy = |part: usize| &record["evaluation"]["parts"][part][1]["accuracy"];
    assert_eq!((&result["val"], &result["test_of_the_winner"]), (accuracy(1), accuracy(2)));
    for trial in result["ranked"].as_array().unwrap() {
        assert!(trial["result"]["test"].as_array().unwrap().is_empty(), "{trial}");
    }
}

#[test]
fn a_killed_search_goes_on_to_the_same_result() {
    let (whole, killed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for place in [&whole, &killed] {
        std::fs::write(place.path().join("space.toml"), SPACE).unwrap();
    }
    let begun = std::time::Instant::now();
    run(whole.path(), &SEARCH);
    let step = begun.elapsed() / 4;
    for _ in 0..3 {
        let mut child = lpgnn(killed.path(), &SEARCH).spawn().unwrap();
        std::thread::sleep(step.max(Duration::from_millis(20)));
        let _ = child.kill();
        child.wait().unwrap();
    }
    run(killed.path(), &SEARCH);
    assert_eq!(result(killed.path()), result(whole.path()));
}

/// What was found, without how long it took.
fn result(folder: &Path) -> serde_json::Value {
    let text = std::fs::read_to_string(folder.join("found/result.json")).unwrap();
    let mut result: serde_json::Value = serde_json::from_str(&text).unwrap();
    for trial in result["ranked"].as_array_mut().unwrap() {
        trial["result"].as_object_mut().unwrap().remove("seconds");
    }
    result
}
