//! `lpgnn live --journal`: what was acknowledged is not lost without a word.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

fn train(folder: &Path) {
    let done = Command::new(env!("CARGO_BIN_EXE_lpgnn"))
        .args(["train", "karate", "--epochs=20", "--out=model", "--quiet"])
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// Sends lines to a live graph with a journal; returns its answers, or what it said at its end.
fn live(folder: &Path, lines: &[u8]) -> Result<Vec<Value>, String> {
    let mut child = Command::new(env!("CARGO_BIN_EXE_lpgnn"))
        .args(["live", "model", "karate", "--tol=0.01", "--quiet", "--journal=journal"])
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It may have ended before.
    let _ = child.stdin.take().unwrap().write_all(lines);
    let output = child.wait_with_output().unwrap();
    if !output.status.success() {
        assert_eq!(output.status.code(), Some(1));
        return Err(String::from_utf8(output.stderr).unwrap());
    }
    let answers = String::from_utf8(output.stdout).unwrap();
    Ok(answers.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

fn stats(folder: &Path) -> Result<u64, String> {
    live(folder, b"stats\n").map(|answers| answers[0]["events"].as_u64().unwrap())
}

const EVENTS: &[u8] = b"{\"op\": \"add-edge\", \"source\": 9, \"target\": 17, \"undirected\": true}
{\"op\": \"add-edge\", \"source\": 9, \"target\": 18, \"undirected\": true}
{\"op\": \"add-edge\", \"source\": 9, \"target\": 19, \"undirected\": true}
";

fn only(folder: &Path, beginning: &str) -> PathBuf {
    let files = std::fs::read_dir(folder.join("journal")).unwrap().map(|entry| entry.unwrap());
    let mut files = files.filter(|file| file.file_name().to_string_lossy().starts_with(beginning));
    let path = files.next().unwrap().path();
    assert!(files.next().is_none());
    path
}

#[test]
fn a_folder_of_something_else_is_no_journal() {
    let place = tempfile::tempdir().unwrap();
    train(place.path());
    let journal = place.path().join("journal");
    std::fs::rename(place.path().join("model"), &journal).unwrap();
    std::fs::create_dir(place.path().join("model")).unwrap();
    std::fs::copy(journal.join("model.safetensors"), place.path().join("model/model.safetensors"))
        .unwrap();
    let said = live(place.path(), EVENTS).unwrap_err();
    assert!(said.contains("is not of a journal, so the folder is left alone"), "{said}");
    let mut names = std::fs::read_dir(&journal).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(!names.any(|name| name.to_string_lossy().starts_with("snapshot-")));
}

#[test]
fn damage_before_acknowledged_events_is_an_error_and_a_torn_end_is_cut_off() {
    let place = tempfile::tempdir().unwrap();
    train(place.path());
    live(place.path(), EVENTS).unwrap();
    assert_eq!(stats(place.path()), Ok(3));
    let journal = only(place.path(), "journal-");
    let whole = std::fs::read(&journal).unwrap();
    // One bit of the first of three records: of its text, of its length.
    for byte in [20, 0, 3] {
        let mut damaged = whole.clone();
        damaged[byte] ^= 4;
        std::fs::write(&journal, &damaged).unwrap();
        let said = stats(place.path()).unwrap_err();
        assert!(said.contains("byte 0: a record is damaged, and acknowledged events"), "{said}");
        assert_eq!(std::fs::read(&journal).unwrap(), damaged, "nothing is cut off");
    }
    // A crash leaves a part of the last record, or zeros in its place.
    let last = whole.len() - 30;
    let zeros = [&whole[..], &[0; 60]].concat();
    for (torn, events) in [(&whole[..last], 2), (&zeros[..], 3)] {
        std::fs::write(&journal, torn).unwrap();
        assert_eq!(stats(place.path()), Ok(events));
    }
    let snapshot = only(place.path(), "snapshot-");
    let mut bytes = std::fs::read(&snapshot).unwrap();
    bytes[100] ^= 1;
    std::fs::write(&snapshot, bytes).unwrap();
    let said = stats(place.path()).unwrap_err();
    assert!(said.contains("is damaged: its checksum does not match"), "{said}");
}

#[test]
fn lines_that_are_no_text_are_errors_and_errors_are_short() {
    let place = tempfile::tempdir().unwrap();
    train(place.path());
    let long = "a".repeat(100_000);
    let mut lines = b"{\"op\": \"add-node\", \"node\": \"caf\xe9\"}\n".to_vec();
    lines.extend(format!("{{\"op\": \"{long}\"}}\npredict node {long}\npredict {long}\n").bytes());
    let answers = live(place.path(), &lines).unwrap();
    let errors: Vec<&str> = answers.iter().filter_map(|answer| answer["error"].as_str()).collect();
    assert_eq!(errors.len(), 4, "{answers:?}");
    assert_eq!(errors[0], "it is a line that is not UTF-8");
    assert!(errors.iter().all(|error| error.len() < 3000), "{errors:?}");
    assert_eq!(stats(place.path()), Ok(2));
}

#[cfg(unix)]
#[test]
fn a_journal_is_not_written_through_links() {
    use std::os::unix::fs::symlink;

    let place = tempfile::tempdir().unwrap();
    train(place.path());
    let victim = place.path().join("victim");
    std::fs::write(&victim, "precious").unwrap();
    let links =
        [".lock", "lock", "snapshot-00000000000000000000.part", "journal-00000000000000000000"];
    for name in links {
        std::fs::create_dir(place.path().join("journal")).unwrap();
        let link = place.path().join("journal").join(name);
        symlink(&victim, &link).unwrap();
        let _ = live(place.path(), EVENTS);
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious", "{name}");
        std::fs::remove_dir_all(place.path().join("journal")).unwrap();
    }
}
