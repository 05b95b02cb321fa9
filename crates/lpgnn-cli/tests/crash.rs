//! Runs survive anything: killed at any moment and continued, they end with the same bits.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

fn lpgnn(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lpgnn"));
    command.current_dir(folder).args(arguments).env("LPGNN_CACHE", "no-cache");
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

fn run(folder: &Path, arguments: &[&str]) -> (bool, String) {
    let output = lpgnn(folder, arguments).output().unwrap();
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}

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

/// How often a run is killed: a few times, unless `LPGNN_CRASHES` says otherwise.
fn crashes() -> usize {
    std::env::var("LPGNN_CRASHES").ok().and_then(|text| text.parse().ok()).unwrap_or(4)
}

/// A small generator, so that the moments are many and no two runs alike.
fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state >> 33
}

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

    let mut state = 0x9e37_79b9_7f4a_7c15;
    let mut killed = 0;
    let mut run_number = 0;
    while killed < crashes() {
        run_number += 1;
        let name = format!("run-{run_number}");
        let out = format!("--out={name}");
        let mut child =
            lpgnn(place.path(), &[&SETTINGS[..], &[out.as_str()]].concat()).spawn().unwrap();
        let mut again = 0;
        // Killed up to three times before it may finish.
        while again < 3 && kill_after(&mut child, random(&mut state) % longest) {
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
        assert!(run_number < 20 * crashes(), "it cannot be killed in time");
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

/// Whether the child was still at work.
fn kill_after(child: &mut Child, milliseconds: u64) -> bool {
    std::thread::sleep(Duration::from_millis(milliseconds));
    let at_work = child.try_wait().unwrap().is_none();
    let _ = child.kill();
    let _ = child.wait();
    at_work
}

#[cfg(unix)]
#[test]
fn ctrl_c_stops_after_the_epoch_and_keeps_everything() {
    let place = tempfile::tempdir().unwrap();
    let arguments =
        ["train", "clique", "--epochs=100000", "--out=run", "--eval-every=50", "--patience=none"];
    let child = lpgnn(place.path(), &arguments).spawn().unwrap();
    let metrics = place.path().join("run/metrics.jsonl");
    while std::fs::metadata(&metrics).map_or(0, |file| file.len()) < 2000 {
        std::thread::sleep(Duration::from_millis(10));
    }
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{said}");
    let answer = "stopping after this epoch; press Ctrl-C again to stop now";
    assert_eq!(said.lines().filter(|line| *line == answer).count(), 1, "{said}");
    assert!(said.contains("stopped after"), "{said}");
    assert!(said.ends_with("run `lpgnn train --resume run` to continue\n"), "{said}");
    let text = std::fs::read_to_string(place.path().join("run/record.json")).unwrap();
    let record: serde_json::Value = serde_json::from_str(&text).unwrap();
    let (best, epochs) = (record["best_epoch"].as_u64(), record["epochs"].as_u64());
    let kept =
        format!("run/model.safetensors has the best model so far, of epoch {}", best.unwrap());
    assert!(best <= epochs && said.contains(&kept), "{said}");
    for name in ["config.toml", "model.safetensors", "checkpoint.safetensors", "record.json"] {
        assert!(place.path().join("run").join(name).exists(), "{name} is missing");
    }
    let (predicted, said) = run(place.path(), &["predict", "run", "clique"]);
    assert!(predicted, "{said}");
}

#[cfg(unix)]
#[test]
fn ctrl_c_stops_folds_and_trials_and_tells_how_to_go_on() {
    for (command, option) in [("crossval", "--folds=3"), ("search", "--space=paper-nodes")] {
        let place = tempfile::tempdir().unwrap();
        let end = ["--out=out", "--threads=2", "--patience=none"];
        let arguments = [&[command, "clique", "--epochs=20000", option][..], &end].concat();
        let child = lpgnn(place.path(), &arguments).spawn().unwrap();
        while !place.path().join("out/settings.toml").exists() {
            std::thread::sleep(Duration::from_millis(10));
        }
        std::thread::sleep(Duration::from_millis(500));
        let id = child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(130), "{said}");
        assert!(said.ends_with("run the same command with --out out to continue\n"), "{said}");
        let kept = std::fs::read_dir(place.path().join("out")).unwrap().flatten();
        let kept: Vec<_> = kept.map(|entry| entry.file_name()).collect();
        let checkpoint = |name: &std::ffi::OsString| {
            name.to_str().is_some_and(|name| name.ends_with(".checkpoint.safetensors"))
        };
        assert!(kept.iter().any(checkpoint), "{kept:?}");
    }
}

#[cfg(unix)]
#[test]
fn folds_that_were_stopped_go_on_to_the_same_result() {
    let place = tempfile::tempdir().unwrap();
    let arguments = |out: &'static str| {
        let settings = ["--epochs=100", "--batch-size=32", "--set=model.dropout=0.2"];
        [&["crossval", "clique", "--folds=2", "--threads=1", out][..], &settings].concat()
    };
    assert!(run(place.path(), &arguments("--out=whole")).0);
    for _ in 0..2 {
        let mut child = lpgnn(place.path(), &arguments("--out=stopped")).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(700));
        let _ = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
        child.wait().unwrap();
    }
    let (done, said) = run(place.path(), &arguments("--out=stopped"));
    assert!(done, "{said}");
    for name in ["fold-01.json", "fold-02.json"] {
        let fold = |folder: &str| -> serde_json::Value {
            let text = std::fs::read_to_string(place.path().join(folder).join(name)).unwrap();
            let mut fold: serde_json::Value = serde_json::from_str(&text).unwrap();
            fold["trial"].as_object_mut().unwrap().remove("seconds");
            fold
        };
        assert_eq!(fold("stopped"), fold("whole"), "{name}");
    }
}

#[test]
fn two_processes_do_not_work_on_the_same_folder() {
    let place = tempfile::tempdir().unwrap();
    let begun = ["train", "clique", "--epochs=100000", "--out=run", "--patience=none"];
    let mut child = lpgnn(place.path(), &begun).spawn().unwrap();
    while !place.path().join("run/metrics.jsonl").exists() {
        std::thread::sleep(Duration::from_millis(10));
    }
    for arguments in
        [&["train", "--resume", "run"][..], &["train", "--epochs=1", "--out=run", "--force"]]
    {
        let (done, said) = run(place.path(), arguments);
        assert!(!done);
        assert_eq!(said, "error: another process is working on run\n", "{arguments:?}");
    }
    // However it ends.
    child.kill().unwrap();
    child.wait().unwrap();
    let (done, said) = run(place.path(), &["train", "--epochs=1", "--out=run", "--force"]);
    assert!(done, "{said}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_told_and_damages_nothing() {
    let place = tempfile::tempdir().unwrap();
    let arguments = ["train", "clique", "--epochs=5", "--out=run"];
    assert!(run(place.path(), &arguments).0);
    let before = std::fs::read(place.path().join("run/model.safetensors")).unwrap();
    // Where the next log line would go, nothing fits any more.
    let log = place.path().join("run/log.txt");
    std::fs::remove_file(&log).unwrap();
    std::os::unix::fs::symlink("/dev/full", &log).unwrap();
    let (done, said) = run(place.path(), &["train", "--resume", "run", "--epochs=9"]);
    assert!(!done);
    assert!(said.contains("error: training stopped because run cannot be written"), "{said}");
    assert!(said.contains("No space left on device"), "{said}");
    assert_eq!(std::fs::read(place.path().join("run/model.safetensors")).unwrap(), before);
}
