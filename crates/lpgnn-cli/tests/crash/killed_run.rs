//! A run that is killed at any moment.

use std::path::Path;

use super::{Moments, kill_after, kills, lpgnn, run};

const SETTINGS: [&str; 8] = [
    "train",
    "clique",
    "--epochs=150",
    "--batch-size=30",
    "--eval-every=7",
    "--checkpoint-epochs=3",
    "--set=model.dropout=0.2",
    "--threads=1",
];

#[test]
fn a_killed_run_continues_to_the_same_bits() {
    let place = tempfile::tempdir().unwrap();
    let begun = std::time::Instant::now();
    let (done, said) = run(place.path(), &[&SETTINGS[..], &["--out=whole"]].concat());
    assert!(done, "{said}");
    // Moments from before the first checkpoint to shortly before the end.
    let longest = u64::try_from(begun.elapsed().as_millis()).unwrap();
    let expected = std::fs::read(place.path().join("whole/model.safetensors")).unwrap();
    let metrics = epochs(&place.path().join("whole/metrics.jsonl"));

    let mut moments = Moments::new();
    let mut killed = 0;
    let mut run_number = 0;
    while killed < kills() {
        run_number += 1;
        let name = format!("run-{run_number}");
        let out = format!("--out={name}");
        let mut child =
            lpgnn(place.path(), &[&SETTINGS[..], &[out.as_str()]].concat()).spawn().unwrap();
        let mut again = 0;
        // Killed up to three times before it may finish.
        while again < 3 && kill_after(&mut child, moments.below(longest)) {
            killed += 1;
            again += 1;
            if !place.path().join(&name).join("config.toml").exists() {
                break;
            }
            child = lpgnn(place.path(), &["train", "--resume", &name]).spawn().unwrap();
        }
        let _ = child.wait();
        if place.path().join(&name).join("config.toml").exists() {
            let (done, said) = run(place.path(), &["train", "--resume", &name]);
            assert!(done, "{said}");
            let found = std::fs::read(place.path().join(&name).join("model.safetensors")).unwrap();
            assert!(
                found == expected,
                "{name} ended with another model; it was killed {again} times"
            );
            let found = epochs(&place.path().join(&name).join("metrics.jsonl"));
            assert!(found == metrics, "{name} has other metrics");
        }
        assert!(run_number < 20 * kills(), "it cannot be killed in time");
    }
}

/// The lines of metrics, without how long each took.
fn epochs(path: &Path) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(path).unwrap();
    let epoch = |line: &str| {
        let mut epoch: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(epoch["seconds"].as_f64().unwrap() >= 0.0);
        epoch["seconds"].take();
        epoch
    };
    text.lines().map(epoch).collect()
}
