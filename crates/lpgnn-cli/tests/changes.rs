//! What was trained on what is known: data, split or settings that change under a result are noticed.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// What the program printed and said, and its exit code.
struct Done {
    stdout: String,
    stderr: String,
    code: Option<i32>,
}

fn lpgnn(folder: &Path, arguments: &[&str]) -> Done {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lpgnn"));
    command.current_dir(folder).args(arguments).env("LPGNN_CACHE", "no-cache");
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Done { stdout: text(&output.stdout), stderr: text(&output.stderr), code: output.status.code() }
}

fn succeed(folder: &Path, arguments: &[&str]) -> Done {
    let done = lpgnn(folder, arguments);
    assert_eq!(done.code, Some(0), "{arguments:?}: {}", done.stderr);
    done
}

fn refused(folder: &Path, arguments: &[&str], code: i32) -> String {
    let done = lpgnn(folder, arguments);
    assert_eq!(done.code, Some(code), "{arguments:?}: {}", done.stderr);
    assert_eq!(done.stderr.lines().count(), 1, "one sentence: {}", done.stderr);
    done.stderr
}

/// A ring of thirty nodes in three classes, of which ten each are for training, validation and test.
fn write_ring(folder: &Path, splits: [&str; 3]) {
    let ring = folder.join("ring");
    fs::create_dir_all(&ring).unwrap();
    let mut nodes = String::from("id,size,y,split\n");
    let mut edges = String::from("source,target\n");
    for node in 0..30 {
        let split = splits[node / 10];
        writeln!(nodes, "{node},{}.5,c{},{split}", node % 7, node % 3).unwrap();
        writeln!(edges, "{node},{}", (node + 1) % 30).unwrap();
    }
    fs::write(ring.join("nodes.csv"), nodes).unwrap();
    fs::write(ring.join("edges.csv"), edges).unwrap();
}

const BEFORE: [&str; 3] = ["train", "val", "test"];
const SWAPPED: [&str; 3] = ["test", "val", "train"];

#[test]
fn a_run_is_not_resumed_on_another_split() {
    let place = tempfile::tempdir().unwrap();
    write_ring(place.path(), BEFORE);
    succeed(place.path(), &["train", "ring", "--epochs=4", "--out=run"]);
    write_ring(place.path(), SWAPPED);
    let said = refused(place.path(), &["train", "--resume=run", "--epochs=6"], 1);
    assert!(said.contains("was started with another split of"), "{said}");
    assert!(said.contains("20 nodes are in another split now"), "{said}");
    write_ring(place.path(), BEFORE);
    succeed(place.path(), &["train", "--resume=run", "--epochs=6"]);
}

#[test]
fn a_search_is_not_continued_on_another_split() {
    let place = tempfile::tempdir().unwrap();
    write_ring(place.path(), BEFORE);
    fs::write(place.path().join("space.toml"), "[values]\n\"model.state-dim\" = [2, 3]\n").unwrap();
    let search = ["search", "ring", "--space=space.toml", "--epochs=4", "--out=found"];
    succeed(place.path(), &search);
    write_ring(place.path(), SWAPPED);
    let said = refused(place.path(), &search, 1);
    assert_eq!(said, "error: found has results for another split of the data\n");
    // Its model has the test split too, which its trials did not see.
    write_ring(place.path(), BEFORE);
    let done =
        succeed(place.path(), &["evaluate", "found/model.safetensors", "ring", "--split=test"]);
    assert!(done.stdout.starts_with("nodes                10\n"), "{}", done.stdout);
}

#[test]
fn a_model_is_evaluated_on_the_split_it_was_trained_with_whatever_the_data_say() {
    let place = tempfile::tempdir().unwrap();
    write_ring(place.path(), BEFORE);
    succeed(place.path(), &["train", "ring", "--epochs=20", "--out=run"]);
    let evaluate = |split: &str| {
        let done = succeed(place.path(), &["evaluate", "run", "ring", "--json", split]);
        (serde_json::from_str::<Value>(&done.stdout).unwrap(), done.stderr)
    };
    let (before, said) = evaluate("--split=test");
    assert_eq!((&before["trained_on"], said.as_str()), (&0.into(), ""));
    let (all, said) = evaluate("--split=all");
    assert_eq!((&all["trained_on"], &all["count"]), (&10.into(), &30.into()));
    assert_eq!(
        said,
        "note: the model was trained on 10 of these 30 nodes; --split test leaves them out\n"
    );

    write_ring(place.path(), SWAPPED);
    let (after, said) = evaluate("--split=test");
    assert_eq!(after, before);
    assert_eq!(
        said,
        "note: ring comes with another split, and the model was trained on 10 of the 10 nodes of \
         its test split; evaluated on the split that the model was trained with\n"
    );

    // Of other data it cannot tell.
    let path = place.path().join("ring/nodes.csv");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("0,0.5,", "0,0.25,")).unwrap();
    let (other, said) = evaluate("--split=test");
    assert_eq!(other["trained_on"], Value::Null);
    assert_eq!(said, "note: whether the model was trained on any of these nodes is not known\n");
}

#[test]
fn an_edited_setting_is_named_or_recorded() {
    let place = tempfile::tempdir().unwrap();
    write_ring(place.path(), BEFORE);
    succeed(place.path(), &["train", "ring", "--epochs=4", "--lr=0.005", "--out=run"]);
    let path = place.path().join("run/config.toml");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("lr = 0.005", "lr = 0.5")).unwrap();
    // Also if there is nothing left to do.
    for arguments in [&["train", "--resume=run"][..], &["train", "--resume=run", "--epochs=8"]] {
        let said = refused(place.path(), arguments, 1);
        let expected = "error: run/config.toml was edited after the last checkpoint: \
                        training.solver.weights.lr was 0.005 and is 0.5; --accept-changes resumes \
                        with the new values\n";
        assert_eq!(said, expected);
    }
    succeed(place.path(), &["train", "--resume=run", "--epochs=8", "--accept-changes"]);
    let record = fs::read_to_string(place.path().join("run/record.json")).unwrap();
    let record: Value = serde_json::from_str(&record).unwrap();
    let expected = serde_json::json!([
        { "epoch": 4, "path": "training.solver.weights.lr", "before": 0.005, "after": 0.5 },
    ]);
    assert_eq!(record["changes"], expected);
    for alone in [&["train", "ring", "--accept-changes"][..], &["train", "--accept-changes"]] {
        let done = lpgnn(place.path(), alone);
        assert_eq!(done.code, Some(2), "{alone:?}: {}", done.stderr);
    }
}

#[test]
fn one_data_set_is_named_once() {
    let place = tempfile::tempdir().unwrap();
    write_ring(place.path(), BEFORE);
    let train = |more: &[&str]| {
        let arguments = [&["train", "--epochs=1", "--quiet"][..], more].concat();
        lpgnn(place.path(), &arguments)
    };
    let both = train(&["karate", "--set=data.source=ring"]);
    assert_eq!(
        (both.code, both.stderr.as_str()),
        (
            Some(2),
            "error: --set: DATA is karate, but data.source=ring names other data; give one of them\n"
        )
    );
    assert_eq!(train(&["--set=data.source=ring"]).stdout, "runs/ring-1\n");
    // A settings file gives way to an argument, as it does to all others.
    fs::write(place.path().join("some.toml"), "[data]\nsource = \"clique\"\n").unwrap();
    assert_eq!(train(&["ring", "--config=some.toml"]).stdout, "runs/ring-2\n");
    let given = train(&["ring", "--set=split.source=given"]);
    assert_eq!(given.code, Some(2), "{}", given.stderr);
}

#[test]
fn an_infinite_loss_is_read_as_it_was_written() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("far");
    fs::create_dir(&data).unwrap();
    fs::write(data.join("nodes.csv"), "graph,id\na,1\nb,1\nc,1\nd,1\n").unwrap();
    fs::write(data.join("edges.csv"), "source,target,graph\n").unwrap();
    fs::write(data.join("graphs.csv"), "graph,y\na,0.1\nb,1.5\nc,1.2\nd,1e30\n").unwrap();
    let crossval = ["crossval", "far", "--folds=2", "--epochs=2", "--out=cv", "--json"];
    let first = succeed(place.path(), &crossval).stdout;
    assert!(first.contains("Infinity\""), "a loss is infinite: {first}");
    assert!(!first.contains("null,null"), "{first}");
    // All of it is read from the folder.
    assert_eq!(succeed(place.path(), &crossval).stdout, first);
}

#[test]
fn only_a_run_is_replaced() {
    let place = tempfile::tempdir().unwrap();
    let site = place.path().join("site");
    fs::create_dir(&site).unwrap();
    let files =
        [("config.toml", "title = \"mine\"\n"), ("log.txt", "mine\n"), ("record.json", "{}")];
    for (name, text) in files {
        fs::write(site.join(name), text).unwrap();
    }
    let train = ["train", "karate", "--epochs=1", "--out=site", "--force"];
    let said = refused(place.path(), &train, 1);
    assert_eq!(said, "error: site is neither a run nor empty, so it is left alone\n");
    for (name, text) in files {
        assert_eq!(fs::read_to_string(site.join(name)).unwrap(), text, "{name}");
    }
    let train = ["train", "karate", "--epochs=1", "--out=run", "--force"];
    succeed(place.path(), &train);
    succeed(place.path(), &train);
}
