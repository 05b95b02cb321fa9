//! Shards of a cross-validation, a search and reproductions, each a process of its own, end with the results of one process.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;

fn lpgnn(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lpgnn"));
    command.current_dir(folder).args(arguments).env("LPGNN_CACHE", "no-cache");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn run(folder: &Path, arguments: &[&str]) -> Output {
    lpgnn(folder, arguments).output().unwrap()
}

/// What it says; it has to succeed.
fn succeed(folder: &Path, arguments: &[&str]) -> String {
    let output = run(folder, arguments);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{arguments:?}: {said}");
    said
}

/// What it says; it has to fail.
fn fail(folder: &Path, arguments: &[&str]) -> String {
    let output = run(folder, arguments);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && output.stdout.is_empty(), "{arguments:?}: {said}");
    said
}

/// Runs all shards at the same time; how many of them have printed a result.
fn shards(folder: &Path, command: &[&str], count: usize) -> usize {
    let shard = |number: usize| {
        let shard = format!("--shard={number}/{count}");
        lpgnn(folder, &[command, &[shard.as_str()]].concat()).spawn().unwrap()
    };
    let children: Vec<_> = (1..=count).map(shard).collect();
    let printed = children.into_iter().filter_map(|child| {
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        (!output.stdout.is_empty()).then_some(())
    });
    printed.count()
}

/// All files of a folder but locks; results without how long they took.
fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
    let files = entries.map(|entry| (entry.file_name().into_string().unwrap(), entry.path()));
    let read = |(name, path): (String, std::path::PathBuf)| {
        let bytes = fs::read(&path).unwrap();
        if path.extension().is_none_or(|end| end != "json") {
            return (name, bytes);
        }
        let mut document: Value = serde_json::from_slice(&bytes).unwrap();
        forget_seconds(&mut document);
        (name, document.to_string().into_bytes())
    };
    let lock = |name: &str| name == ".lock" || Path::new(name).extension() == Some("lock".as_ref());
    files.filter(|(name, _)| !lock(name)).map(read).collect()
}

fn forget_seconds(document: &mut Value) {
    match document {
        Value::Object(entries) => {
            entries.remove("seconds");
            entries.values_mut().for_each(forget_seconds);
        }
        Value::Array(items) => items.iter_mut().for_each(forget_seconds),
        _ => {}
    }
}

fn assert_same(found: &Path, expected: &Path) {
    let (found, expected) = (contents(found), contents(expected));
    assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
    for (name, content) in &expected {
        assert!(found[name] == *content, "{name} is another");
    }
}

const CROSSVAL: [&str; 7] = [
    "crossval",
    "clique",
    "--folds=7",
    "--protocol=nested",
    "--epochs=30",
    "--set=model.dropout=0.2",
    "--threads=1",
];

fn with<'a>(command: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    [command, more].concat()
}

#[test]
fn shards_of_a_cross_validation_end_with_the_result_of_one_process() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    succeed(place, &with(&CROSSVAL, &["--out=whole"]));
    assert!(shards(place, &with(&CROSSVAL, &["--out=shards"]), 3) >= 1);
    assert_same(&place.join("shards"), &place.join("whole"));
    let result = |folder: &str| fs::read(place.join(folder).join("result.json")).unwrap();
    let before = result("shards");
    succeed(place, &with(&CROSSVAL, &["--out=shards", "--collect"]));
    assert!(result("shards") == before, "collecting again changes nothing");
}

#[test]
fn one_shard_after_another_says_what_is_left_and_the_last_one_collects() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let shard = |shard: &'static str| with(&CROSSVAL, &["--out=cv", shard]);
    let output = run(place, &shard("--shard=1/3"));
    let said = String::from_utf8_lossy(&output.stderr);
    let left = "shard 1/3 is done; folds 2, 3, 5 and 6 are left to other shards\n";
    assert!(output.status.success() && output.stdout.is_empty() && said.ends_with(left), "{said}");
    assert_eq!(said.matches(": test ").count(), 3, "{said}");
    let collect = with(&CROSSVAL, &["--out=cv", "--collect"]);
    assert_eq!(fail(place, &collect), "error: cv lacks folds 2, 3, 5 and 6\n");
    succeed(place, &shard("--shard=3/3"));
    assert_eq!(fail(place, &collect), "error: cv lacks folds 2 and 5\n");
    // Nothing is done twice.
    let said = succeed(place, &shard("--shard=3/3"));
    assert_eq!(said.matches(": test ").count(), 0, "{said}");
    let said = succeed(place, &shard("--shard=2/3"));
    assert!(said.ends_with("results in cv\n"), "{said}");
    succeed(place, &collect);
    let other = with(&CROSSVAL, &["--out=cv", "--shard=1/3", "--seed=1"]);
    assert_eq!(
        fail(place, &other),
        "error: cv has results for other settings: training.seed was 0 and is 1\n"
    );
}

#[test]
fn whoever_runs_it_without_a_shard_completes_it() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    succeed(place, &with(&CROSSVAL, &["--out=cv", "--shard=2/3"]));
    let said = succeed(place, &with(&CROSSVAL, &["--out=cv"]));
    assert_eq!(said.matches(": test ").count(), 5, "{said}");
    succeed(place, &with(&CROSSVAL, &["--out=whole"]));
    assert_same(&place.join("cv"), &place.join("whole"));
}

const SPACE: &str = r#"
[values]
"model.state-dim" = [2, 4, 8]
"training.solver.weights.lr" = [0.01, 0.001]
"model.dropout" = [0.0, 0.3]
"#;

const SEARCH: [&str; 6] =
    ["search", "clique", "--space=space.toml", "--epochs=90", "--min-epochs=7", "--threads=1"];

#[test]
fn shards_of_a_search_go_through_its_rounds_together() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    fs::write(place.join("space.toml"), SPACE).unwrap();
    succeed(place, &with(&SEARCH, &["--out=whole"]));
    assert_eq!(shards(place, &with(&SEARCH, &["--out=shards"]), 3), 3);
    assert_same(&place.join("shards"), &place.join("whole"));
    succeed(place, &with(&SEARCH, &["--out=shards", "--collect"]));
    assert_same(&place.join("shards"), &place.join("whole"));
    // A shard whose others do not come does their work rather than wait for ever.
    succeed(place, &with(&SEARCH, &["--out=alone", "--shard=2/3"]));
    assert_same(&place.join("alone"), &place.join("whole"));
    fs::remove_file(place.join("alone/trial-00003-of-9.json")).unwrap();
    let said = fail(place, &with(&SEARCH, &["--out=alone", "--collect"]));
    assert_eq!(said, "error: alone lacks trial 3 of round 1 of 3\n");
}

#[test]
fn no_trial_of_a_search_is_trained_by_two_shards() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    fs::write(place.join("space.toml"), SPACE).unwrap();
    let shard = |number: usize| {
        let shard = format!("--shard={number}/4");
        lpgnn(place, &with(&SEARCH, &["--out=found", "--tensorboard=events", &shard]))
            .spawn()
            .unwrap()
    };
    for child in (1..=4).map(shard).collect::<Vec<_>>() {
        assert!(child.wait_with_output().unwrap().status.success());
    }
    // Every process that trains a trial in a round begins a file of events.
    let mut rounds = 0;
    for trial in fs::read_dir(place.join("events/found")).unwrap() {
        rounds += fs::read_dir(trial.unwrap().path()).unwrap().count();
    }
    assert_eq!(rounds, 12 + 4 + 2);
}

#[test]
fn a_shard_is_worked_on_by_one_process() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let long =
        ["crossval", "clique", "--folds=3", "--epochs=100000", "--patience=none", "--out=cv"];
    let mut child = lpgnn(place, &with(&long, &["--shard=1/3"])).spawn().unwrap();
    while !place.join("cv/.fold-01.lock").exists() {
        std::thread::sleep(Duration::from_millis(10));
    }
    let said = fail(place, &with(&long, &["--shard=1/3"]));
    assert_eq!(said, "error: cv already has a process working on shard 1/3\n");
    // Another way to deal out the same folds leaves alone what is being worked on.
    let said = succeed(place, &with(&long, &["--shard=1/4", "--quiet"]));
    assert_eq!(said, "");
    // However it ends.
    child.kill().unwrap();
    child.wait().unwrap();
    let mut child = lpgnn(place, &with(&long, &["--shard=1/3"])).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(300));
    assert!(child.try_wait().unwrap().is_none(), "it goes on with what is left");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn what_is_no_shard_is_told_in_a_sentence() {
    let place = tempfile::tempdir().unwrap();
    for wrong in ["0/3", "4/3", "a/b", "3"] {
        for command in [&CROSSVAL[..], &SEARCH, &["reproduce"]] {
            let shard = format!("--shard={wrong}");
            let said = fail(place.path(), &with(command, &["--out=x", &shard]));
            let expected = format!(
                "error: invalid value '{wrong}' for '--shard <I/N>': shard is {wrong}, but I/N with I from 1 to N \
                 is expected, such as 1/3\n\nFor more information, try '--help'.\n"
            );
            assert_eq!(said, expected);
        }
    }
    let said = fail(place.path(), &with(&CROSSVAL, &["--shard=1/3"]));
    let expected = "--out is required: the folder that all shards share";
    assert_eq!(said, format!("error: --shard is 1/3, but {expected}\n"));
    let said = fail(place.path(), &with(&CROSSVAL, &["--collect"]));
    assert_eq!(said, format!("error: --collect is given, but {expected}\n"));
    let said = fail(place.path(), &with(&CROSSVAL, &["--collect", "--out=nothing"]));
    assert_eq!(said, "error: nothing has no results\n");
    assert!(!place.path().join("nothing").exists());
}

const ROW: &str = r#"
[experiment]
title = "The karate club"
table = "nodes"
row = "one-shot"
column = "karate"
protocol = "best-mean-epoch"
folds = 4
[data]
source = "karate"
[training]
epochs = 20
"#;

const STUDY: &str = r#"
[study]
title = "How fast states converge"
question = "Does it depend on the length?"
protocol = "converge"
seeds = [0, 1]
vary = "generate.length"
values = [5, 10]
x = { of = "hops" }
panels = [{ of = "iterations" }]
[data]
source = "chains"
[generate]
chains = 2
[[series]]
name = "mean"
"#;

/// Two rows, of folds and of seeds, and a study.
fn experiments(place: &Path) {
    fs::create_dir_all(place.join("experiments/nodes")).unwrap();
    fs::create_dir_all(place.join("experiments/studies")).unwrap();
    fs::write(place.join("experiments/nodes/folds.toml"), ROW).unwrap();
    let seeds = ROW.replace("best-mean-epoch", "split").replace("folds = 4", "seeds = [5, 6, 7]");
    fs::write(place.join("experiments/nodes/seeds.toml"), seeds).unwrap();
    fs::write(place.join("experiments/studies/converging.toml"), STUDY).unwrap();
}

/// All results, without how long they took.
fn results(place: &Path) -> Vec<BTreeMap<String, Vec<u8>>> {
    let folder = place.join("experiments/results");
    ["nodes", "studies"].map(|name| contents(&folder.join(name))).into()
}

#[test]
fn shards_of_reproductions_record_the_results_of_one_process() {
    let (whole, shared) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for place in [&whole, &shared] {
        experiments(place.path());
    }
    let all = ["reproduce", "nodes", "studies", "--threads=1"];
    succeed(whole.path(), &all);
    let shared = shared.path();
    succeed(shared, &with(&all, &["--shard=2/3"]));
    let said = fail(shared, &with(&all, &["--collect"]));
    assert_eq!(said, "error: studies/converging lacks 3 of 4 points\n");
    let said = fail(shared, &["reproduce", "--collect", "--quiet"]);
    let lacking = "nodes/folds lacks folds 1, 3 and 4; nodes/seeds lacks seeds 6 and 7";
    assert_eq!(said, format!("error: not all rows are complete: {lacking}\n"));
    shards(shared, &all, 3);
    succeed(shared, &with(&all, &["--collect"]));
    assert_eq!(results(shared), results(whole.path()));
    succeed(shared, &["reproduce", "--report=check"]);
}
