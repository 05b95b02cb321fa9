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
fn a_setting_that_the_data_leave_without_effect_is_refused() {
    let place = tempfile::tempdir().unwrap();
    write_ring(place.path(), BEFORE);
    let train = |more: &[&str]| {
        let arguments = [&["train", "ring", "--epochs=1", "--out=run", "--force"][..], more];
        lpgnn(place.path(), &arguments.concat())
    };
    let comes = "has no effect: ring comes with a split, which is used; split.source=ratio draws \
                 one instead\n";
    for setting in ["split.train=0.5", "split.val=0.1", "split.seed=3", "split={ test = 0.3 }"] {
        let done = train(&["--set", setting]);
        let path = setting.split('=').next().filter(|path| *path != "split");
        let path = path.unwrap_or("split.test");
        let expected = format!("error: --set: {path} {comes}");
        assert_eq!((done.code, done.stderr), (Some(2), expected));
    }
    let fractions = ["split.train=0.5", "split.val=0.25", "split.test=0.25", "split.source=ratio"];
    let drawn = train(&fractions.map(|fraction| ["--set", fraction]).concat());
    assert!(drawn.stderr.contains("nodes: train 15, val 8, test 7"), "{}", drawn.stderr);

    // Complete files have all settings, and one that was changed is meant.
    let all = succeed(place.path(), &["config", "ring"]).stdout;
    fs::write(place.path().join("all.toml"), &all).unwrap();
    let done = train(&["--config=all.toml"]);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    let other =
        all.replacen("train = 0.8", "train = 0.7", 1).replacen("test = 0.1", "test = 0.2", 1);
    fs::write(place.path().join("all.toml"), other).unwrap();
    let done = train(&["--config=all.toml"]);
    assert!(done.code == Some(2) && done.stderr.ends_with(comes), "{}", done.stderr);

    let folds = refused(place.path(), &["crossval", "ring", "--set=split.seed=1"], 2);
    let expected = "split.seed has no effect: cross-validation has folds; --folds and --fold-seed";
    assert!(folds.contains(expected), "{folds}");
    let format = refused(place.path(), &["train", "clique", "--format=tu"], 2);
    assert_eq!(format, "error: format is tu, but clique is built in, not a file\n");
}

#[test]
fn what_is_without_effect_and_harmless_is_noted() {
    let place = tempfile::tempdir().unwrap();
    let train = |more: &[&str]| {
        let arguments = [&["train", "karate", "--epochs=1", "--out=run", "--force"][..], more];
        succeed(place.path(), &arguments.concat()).stderr
    };
    let noted = train(&["--patience=3", "--batch-size=4", "--set=features.largest-degree=9"]);
    for note in [
        "note: training.patience has no effect, because there is no validation split\n",
        "note: training.batch-size has no effect, because there is only one training graph\n",
        "note: features.largest-degree has no effect, because the degree is not a feature\n",
    ] {
        assert!(noted.contains(note), "{noted}");
    }
    assert!(!train(&["--patience=none"]).contains("note: training"));
}

#[test]
fn classes_that_cannot_be_learnt_are_noted() {
    let place = tempfile::tempdir().unwrap();
    write_ring(place.path(), BEFORE);
    let path = place.path().join("ring/nodes.csv");
    let text = fs::read_to_string(&path).unwrap();
    let train = |text: &str| {
        fs::write(&path, text).unwrap();
        let arguments = ["train", "ring", "--epochs=1", "--out=run", "--force"];
        succeed(place.path(), &arguments).stderr
    };
    assert!(!train(&text).contains("note: "));
    let missing = train(&text.replace(",c1,train", ",c2,train"));
    let note = "note: class “c1” is not in the training split, so it is never predicted\n";
    assert!(missing.contains(note), "{missing}");
    let one = train(&text.replace(",c1,train", ",c0,train").replace(",c2,train", ",c0,train"));
    let note = "note: all training nodes are of class “c0”: there is nothing to learn\n";
    assert!(one.contains(note), "{one}");
}

#[test]
fn an_edited_list_of_the_split_is_put_right() {
    let place = tempfile::tempdir().unwrap();
    write_ring(place.path(), BEFORE);
    succeed(place.path(), &["train", "ring", "--epochs=2", "--out=run"]);
    let path = place.path().join("run/split.json");
    let split = fs::read_to_string(&path).unwrap();
    fs::write(&path, split.replacen("\"test\":[", "\"test\":[0,", 1)).unwrap();
    succeed(place.path(), &["train", "--resume=run", "--epochs=3"]);
    assert_eq!(fs::read_to_string(&path).unwrap(), split);
}

#[test]
fn targets_that_may_be_something_else_are_noted() {
    let place = tempfile::tempdir().unwrap();
    write_ring(place.path(), BEFORE);
    let path = place.path().join("ring/nodes.csv");
    let text = fs::read_to_string(&path).unwrap();
    let train = |text: &str| {
        fs::write(&path, text).unwrap();
        let arguments = ["train", "ring", "--epochs=1", "--out=run", "--force"];
        succeed(place.path(), &arguments).stderr
    };
    let said = train(&text.replace(",c1,", ",NA,"));
    let note = "note: “NA” is a class like the others; an empty cell is an unknown target\n";
    assert!(said.contains(note), "{said}");
    let said = train(&text.replace(",c0,", ",0,").replace(",c1,", ",-1,").replace(",c2,", ",1,"));
    let note = "note: “-1” is a class like the others; an empty cell is an unknown target\n";
    assert!(said.contains(note), "{said}");
    let numbers = text.replace(",c0,", ",0.0,").replace(",c1,", ",1.0,").replace(",c2,", ",2.0,");
    let said = train(&numbers);
    let note = "note: the target has only the values 0, 1, 2 and is treated as a number (regression); \
                classes are integers or words\n";
    assert!(said.contains(note), "{said}");
    assert!(!train(&numbers.replacen(",0.0,", ",0.5,", 1)).contains("note: the target"));
}

#[test]
fn features_of_the_other_direction_are_not_dropped_without_a_word() {
    let place = tempfile::tempdir().unwrap();
    write_ring(place.path(), BEFORE);
    let ring = place.path().join("ring");
    fs::write(ring.join("edges.csv"), "source,target,w\n0,1,0.5\n1,0,1.5\n1,2,2.5\n").unwrap();
    let train =
        || succeed(place.path(), &["train", "ring", "--epochs=1", "--out=run", "--force"]).stderr;
    assert!(train().contains("note: 2 duplicate edges have other features than the first"));
    fs::write(ring.join("dataset.toml"), "directed = true\n").unwrap();
    assert!(!train().contains("duplicate edges"));
}

#[test]
fn flags_come_before_what_a_search_space_sets_but_not_before_what_it_varies() {
    let place = tempfile::tempdir().unwrap();
    let space = "method = \"random\"\n[set]\n\"training.epochs\" = 9\n[values]\n\
                 \"model.state-dim\" = [2, 3]\n";
    fs::write(place.path().join("space.toml"), space).unwrap();
    let search = ["search", "clique", "--space=space.toml", "--budget=5"];
    let done = succeed(place.path(), &[&search[..], &["--epochs=3", "--json"]].concat());
    let found: Value = serde_json::from_str(&done.stdout).unwrap();
    let ranked = found["ranked"].as_array().unwrap();
    assert!(ranked.len() == 2 && ranked.iter().all(|trial| trial["epochs"] == 3), "{found}");
    let note = "note: these are all trials of the search space, fewer than the budget\n";
    assert!(done.stderr.contains(note), "{}", done.stderr);
    let said = refused(place.path(), &[&search[..], &["--state-dim=7"]].concat(), 2);
    let expected = "error: --state-dim: model.state-dim has no effect: the search space space.toml \
                    varies it\n";
    assert_eq!(said, expected);
}

#[test]
fn a_split_without_targets_has_no_score() {
    let place = tempfile::tempdir().unwrap();
    write_ring(place.path(), BEFORE);
    let path = place.path().join("ring/nodes.csv");
    let text = fs::read_to_string(&path).unwrap();
    // No node of the last third has a target, and they are the second fold.
    let lines = text.lines().map(|line| match line.split(',').collect::<Vec<_>>()[..] {
        [id, size, _, "test"] => format!("{id},{size},\n"),
        [id, size, y, _] => format!("{id},{size},{y}\n"),
        _ => String::new(),
    });
    fs::write(&path, lines.collect::<String>()).unwrap();
    let folds = place.path().join("folds");
    fs::create_dir(&folds).unwrap();
    let indices = |range: std::ops::Range<usize>| {
        range.map(|index| index.to_string()).collect::<Vec<_>>().join("\n")
    };
    for (name, range) in [
        ("train_idx-1.txt", 0..10),
        ("test_idx-1.txt", 10..20),
        ("train_idx-2.txt", 0..20),
        ("test_idx-2.txt", 20..30),
    ] {
        fs::write(folds.join(name), indices(range)).unwrap();
    }
    let said = refused(place.path(), &["crossval", "ring", "--fold-files=folds"], 1);
    assert_eq!(said, "error: no node of the test split of fold 2 has a target\n");

    // In a single split it is as if it was not there.
    let lines = text.lines().map(|line| match line.split(',').collect::<Vec<_>>()[..] {
        [id, size, _, split @ ("val" | "test")] => format!("{id},{size},,{split}\n"),
        _ => format!("{line}\n"),
    });
    fs::write(&path, lines.collect::<String>()).unwrap();
    let done = succeed(place.path(), &["train", "ring", "--epochs=2", "--out=run"]);
    for name in ["validation", "test"] {
        let note = format!("note: no node of the {name} split has a target: it is not evaluated\n");
        assert!(done.stderr.contains(&note), "{}", done.stderr);
    }
    assert!(!done.stderr.contains("val 0.0"), "{}", done.stderr);
    fs::write(place.path().join("space.toml"), "[values]\n\"model.state-dim\" = [2, 3]\n").unwrap();
    let said = refused(place.path(), &["search", "ring", "--space=space.toml"], 1);
    let expected = "error: ring has no validation split with targets, which a search requires\n";
    assert_eq!(said, expected);
}

#[test]
fn values_of_any_length_are_quoted_in_short() {
    let place = tempfile::tempdir().unwrap();
    let long = "x".repeat(10_000);
    let said = refused(place.path(), &["train", &format!("--set=training.epochs={long}")], 2);
    assert!(said.len() < 300 && said.contains("xxx…xxx"), "{said}");
    assert!(said.ends_with(", but a positive integer is expected\n"), "{said}");
    let said = refused(place.path(), &["data", "info", &long], 1);
    assert!(said.len() < 2000, "{said}");
}

#[test]
fn an_unknown_instruction_set_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let info = |set: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lpgnn"));
        let command = command.current_dir(&place).args(["data", "info", "karate"]);
        let output = command.env("LPGNN_SIMD", set).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, said) = info("avx3");
    assert_eq!(code, Some(2), "{said}");
    assert!(said.starts_with("error: LPGNN_SIMD is “avx3”, but one of portable, "), "{said}");
    for set in ["portable", ""] {
        assert_eq!(info(set), (Some(0), String::new()));
    }
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
    let text = succeed(place.path(), &crossval[..5]).stdout;
    assert!(!text.contains("NaN") && !text.contains("inf "), "{text}");
    assert!(text.contains("no mean: 1 of 2 folds has no finite score"), "{text}");
    // They are no classes.
    let said = refused(place.path(), &["train", "far", "--set=training.class-weights=balanced"], 1);
    let expected = "error: training.class-weights is balanced, which requires classes as targets\n";
    assert_eq!(said, expected);
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
