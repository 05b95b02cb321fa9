//! Stopped by Ctrl-C, by a full disk, or by another process at work.

use std::process::Command;
use std::time::Duration;

use super::{lpgnn, run};

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
    // No file may grow beyond a block: to the program it is as if the disk were full.
    let shell = "trap '' XFSZ; ulimit -f 1; exec \"$@\"";
    let program = env!("CARGO_BIN_EXE_lpgnn");
    let again = [shell, "sh", program, "train", "--resume", "run", "--epochs=9"];
    let output =
        Command::new("sh").arg("-c").args(again).current_dir(place.path()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("error: "), "{said}");
    assert!(said.contains("File too large"), "{said}");
    assert_eq!(std::fs::read(place.path().join("run/model.safetensors")).unwrap(), before);
}
