//! The tour of the README does what the README says, command by command, in a folder of its own.
//!
//! `README=overwrite cargo test -p lpgnn-cli --test readme` writes what is said now.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

#[test]
fn the_tour_does_what_the_readme_says() {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let text = fs::read_to_string(&readme).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut written = String::new();
    let mut commands = 0;
    let mut blocks = text.split("```console\n");
    written += blocks.next().unwrap_or_default();
    for block in blocks {
        let (block, rest) = block.split_once("```").expect("a block has an end");
        let (line, expected) = block.split_once('\n').expect("a block has a line");
        let command = line.strip_prefix("$ lpgnn ").expect("a block starts with a command");
        let said = run(command, folder.path());
        assert!(
            comparable(command, &said) == comparable(command, expected)
                || std::env::var("README").is_ok_and(|value| value == "overwrite"),
            "{line}\nsays\n{said}\nwhere the README has\n{expected}"
        );
        written += &["```console\n", line, "\n", &said, "```", rest].concat();
        commands += 1;
    }
    assert!(commands >= 5, "only {commands} commands were found");
    if std::env::var("README").is_ok_and(|value| value == "overwrite") {
        fs::write(&readme, written).unwrap();
    }
}

/// What a command says, on stdout and stderr, as a terminal shows it.
fn run(command: &str, folder: &Path) -> String {
    let path = folder.join(".said");
    let file = File::create(&path).unwrap();
    let status = Command::new(env!("CARGO_BIN_EXE_lpgnn"))
        .args(command.split_whitespace())
        .current_dir(folder)
        .env("LPGNN_CACHE", "no-cache")
        .stdout(file.try_clone().unwrap())
        .stderr(file)
        .status()
        .unwrap();
    let said = fs::read_to_string(path).unwrap();
    assert!(status.success(), "lpgnn {command}\n{said}");
    said
}

/// Of commands that compute, the words: their numbers differ between processors in the last digits,
/// and after some hundred epochs not only in these.
fn comparable(command: &str, said: &str) -> String {
    let computes = ["train", "predict", "evaluate"].iter().any(|name| command.starts_with(name));
    if !computes {
        return said.to_owned();
    }
    let number =
        |word: &str| word.trim_start_matches('-').starts_with(|c: char| c.is_ascii_digit());
    let words = |line: &str| {
        let words = line.split_whitespace();
        words.map(|word| if number(word) { "#" } else { word }).collect::<Vec<_>>().join(" ")
    };
    // Whether the last epoch happens to meet the constraints is such a number too.
    let advice = |line: &&str| {
        let line = line.trim_start();
        !["try ", "note ", "not met by "].iter().any(|start| line.starts_with(start))
    };
    let lines: Vec<String> = said.lines().filter(advice).map(words).collect();
    lines.join("\n").replace("NOT met", "met")
}
