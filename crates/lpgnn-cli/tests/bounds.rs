//! Data and models from strangers: whatever they claim, the program answers in bounded time and memory,
//! with a sentence and exit code 1.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::io::{Cursor, Write};
use std::path::Path;
use std::process::{Command, Output};

use lpgnn::inference::{FixedPointOptions, Inference};
use lpgnn::run::SavedModel;
use tempfile::TempDir;

/// The address space of every program here, in kB: none of these tests can take more.
const SPACE: u32 = 1_500_000;

/// Runs the program for at most a minute, on one thread, within `space` kB.
fn run_in(space: u32, folder: &Path, arguments: &[&str]) -> Output {
    let script = format!("ulimit -v {space} && exec timeout 60 \"$0\" \"$@\"");
    Command::new("sh")
        .args(["-c", &script, env!("CARGO_BIN_EXE_lpgnn"), "--threads", "1"])
        .args(arguments)
        .current_dir(folder)
        .env_remove("LPGNN_MAX_MEMORY")
        .output()
        .unwrap()
}

fn run(folder: &Path, arguments: &[&str]) -> Output {
    run_in(SPACE, folder, arguments)
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// The first line of stderr of a program that has to fail in order.
fn refusal(output: &Output) -> String {
    let said = stderr(output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.starts_with("error: ") && !said.contains("panicked"), "{said}");
    said.lines().next().unwrap().trim_start_matches("error: ").to_owned()
}

fn write(folder: &Path, files: &[(&str, &[u8])]) {
    for (name, content) in files {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
}

/// A small archive with one node that has very many attributes.
fn wide_zip() -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(Cursor::new(vec![]));
    let attributes = "0 ".repeat(16_500_000) + "\n";
    for (name, text) in [
        ("S_A.txt", "1 1\n"),
        ("S_graph_indicator.txt", "1\n"),
        ("S_graph_labels.txt", "1\n"),
        ("S_node_attributes.txt", &attributes),
    ] {
        zip.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
        zip.write_all(text.as_bytes()).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// An array of one row and so many columns, of one byte each.
fn wide_npy(columns: usize) -> Vec<u8> {
    let mut header =
        format!("{{'descr': '|b1', 'fortran_order': False, 'shape': (1, {columns}), }}");
    header.extend(std::iter::repeat_n(' ', 128 - 10 - header.len() - 1));
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    bytes.extend(header.as_bytes());
    bytes.resize(bytes.len() + columns, 0);
    bytes
}

#[test]
fn columns_without_names_take_no_memory_for_names() {
    let folder = tempfile::tempdir().unwrap();
    write(
        folder.path(),
        &[
            ("wide.zip", &wide_zip()),
            ("array/nodes.csv", b"y\n1\n"),
            ("array/edges.csv", b"source,target\n"),
            ("array/nodes.npy", &wide_npy(30_000_000)),
        ],
    );
    // The names of the columns alone took two to four gigabytes.
    for (data, width) in [("wide.zip", "16500000"), ("array", "30000000")] {
        let output = run_in(900_000, folder.path(), &["data", "info", data]);
        let text = String::from_utf8(output.stdout.clone()).unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        assert!(text.contains(&format!("{width} real values")), "{text}");
    }
}

#[test]
fn every_reader_stops_at_the_limit() {
    let folder = tempfile::tempdir().unwrap();
    let lines = |line: &dyn Fn(usize) -> String| -> Vec<u8> {
        (0..1_500_000).map(line).collect::<String>().into_bytes()
    };
    let ids = lines(&|i| format!("{i:x}\n"));
    let zeros = lines(&|_| "0\n".into());
    let ones = lines(&|_| "1\n".into());
    let json = [b"{\"nodes\": [{}\n".to_vec(), lines(&|_| ",{}\n".into())].concat();
    let gin = [b"1\n1500000 0\n".to_vec(), lines(&|i| format!("{i} 0\n"))].concat();
    write(
        folder.path(),
        &[
            ("wide.zip", &wide_zip()),
            ("array/nodes.csv", b"y\n1\n"),
            ("array/edges.csv", b"source,target\n"),
            ("array/nodes.npy", &wide_npy(30_000_000)),
            ("tables/nodes.csv", &[b"id\n".to_vec(), ids].concat()),
            ("tables/edges.csv", b"source,target\n"),
            ("tu/T_graph_indicator.txt", &ones),
            ("tu/T_A.txt", b"1 1\n"),
            ("citation/labels.txt", &zeros),
            ("citation/edges.txt", b"0 1\n"),
            ("citation/features.txt", b""),
            ("graphs.txt", &gin),
            ("ogb/raw/edge.csv", b""),
            ("ogb/raw/num-node-list.csv", &ones),
            ("ogb/raw/num-edge-list.csv", b""),
            ("graph.json", &json),
        ],
    );
    for (data, part) in [
        ("wide.zip", "to continue reading wide.zip/S_node_attributes.txt takes 1"),
        ("array", "an array of 1 × 30000000 in array/nodes.npy takes 120 MB"),
        ("tables", "to continue reading tables/nodes.csv takes 1"),
        ("tu", "to continue reading tu/T_graph_indicator.txt takes 1"),
        ("citation", "to continue reading citation/labels.txt takes 1"),
        ("graphs.txt", "to continue reading graphs.txt takes 1"),
        ("ogb", "to continue reading ogb/raw/num-node-list.csv takes 1"),
        ("graph.json", "to continue reading graph.json takes 1"),
    ] {
        let output = run(folder.path(), &["data", "info", data, "--max-memory", "25M"]);
        let said = refusal(&output);
        assert!(said.starts_with(part), "{said}");
        assert!(said.ends_with("of the memory limit of 26 MB is left"), "{said}");
        assert!(stderr(&output).ends_with("note: --max-memory sets the limit\n"));
    }
}

#[test]
fn a_model_that_no_memory_holds_is_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    write(
        folder.path(),
        &[
            ("words/edges.txt", b"0 1\n"),
            ("words/features.txt", b"16777215:1\n0:1\n"),
            ("words/labels.txt", b"0\n1\n"),
        ],
    );
    let said = refusal(&run(folder.path(), &["train", "words", "--out", "run"]));
    assert!(said.contains(" weights") && said.contains("is left"), "{said}");
    assert!(!folder.path().join("run").exists());
    for dims in ["model.hidden-dims=[65536,65536]", "model.readout-hidden-dims=[65536,65536]"] {
        let said = refusal(&run(folder.path(), &["train", "karate", "--out=run", "--set", dims]));
        assert!(said.starts_with("a model with 4") && said.contains("takes 17 GB"), "{said}");
    }
}

#[test]
fn what_no_check_foresees_is_a_sentence_too() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["data", "generate", "clique", "--graphs", "300000", "--out", "x"];
    let output = run(folder.path(), &[&arguments[..], &["--max-memory", "20M"]].concat());
    assert_eq!(refusal(&output), "out of memory: the limit is 20 MiB, set by --max-memory");
}

/// A small model, and data for it in the folder `new`.
fn trained() -> (TempDir, SavedModel) {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [
        "data generate clique --graphs 4 --out task",
        "data generate clique --graphs 1 --nodes 4 --seed 2 --out new",
        "train task --epochs 2 --out run",
    ] {
        let arguments: Vec<&str> = arguments.split(' ').collect();
        let output = run(folder.path(), &arguments);
        assert!(output.status.success(), "{}", stderr(&output));
    }
    let model = SavedModel::read(&folder.path().join("run/model.safetensors")).unwrap();
    (folder, model)
}

#[test]
fn only_files_are_models_and_settings() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("run")).unwrap();
    let made = Command::new("mkfifo").arg(folder.path().join("pipe")).status().unwrap();
    assert!(made.success());
    std::os::unix::fs::symlink("/dev/zero", folder.path().join("zero")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", folder.path().join("run/model.safetensors")).unwrap();
    for arguments in [
        "predict pipe karate",
        "predict zero karate",
        "predict run karate",
        "evaluate pipe karate",
        "states zero karate",
        "data info pipe",
        "train --config pipe",
        "train --config zero",
        "search karate --space pipe",
        "search karate --space zero",
    ] {
        let output = run(folder.path(), &arguments.split(' ').collect::<Vec<_>>());
        let said = refusal(&output);
        let name = if arguments.contains(" run ") { "run/model.safetensors" } else { "" };
        let expected = format!("{name}: is a pipe or a device, but a file is expected");
        assert!(said.ends_with(&expected), "{arguments}: {said}");
    }
}

#[test]
fn a_model_does_not_decide_how_long_this_machine_computes() {
    let (folder, mut model) = trained();
    // It never is within this tolerance.
    let forever = FixedPointOptions {
        tol: f64::MIN_POSITIVE,
        max_iter: 1_000_000_000_000_000_000,
        beta: 1e-300,
        window: 0,
        fall_back: None,
    };
    model.training.inference = Inference::FixedPoint(forever);
    model.write(&folder.path().join("endless.safetensors")).unwrap();
    for more in [&["--max-iter", "7"][..], &[]] {
        let output =
            run(folder.path(), &[&["predict", "endless.safetensors", "new"][..], more].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        assert!(stderr(&output).contains("3 of 3 graphs did not converge"), "{}", stderr(&output));
    }
    model.training.inference =
        Inference::FixedPoint(FixedPointOptions { window: 1_000_000, ..forever });
    model.write(&folder.path().join("window.safetensors")).unwrap();
    let said = refusal(&run(folder.path(), &["predict", "window.safetensors", "new"]));
    assert!(said.ends_with("window is 1000000, but an integer up to 100 is expected"), "{said}");
}

#[test]
fn states_that_no_memory_holds_are_a_sentence() {
    let (folder, _) = trained();
    let model =
        "train task --epochs 1 --out large --set model.state-dim=1000 --set model.hidden-dims=[1]";
    let output = run(folder.path(), &model.split(' ').collect::<Vec<_>>());
    assert!(output.status.success(), "{}", stderr(&output));
    let said =
        refusal(&run(folder.path(), &["predict", "large", "clique", "--max-memory", "100M"]));
    let expected = "finding states of 1000 components for 2100 nodes takes ";
    assert!(said.starts_with(expected), "{said}");
}

#[test]
fn an_output_that_is_not_finite_is_no_prediction() {
    let (folder, mut model) = trained();
    model.weights.iter_mut().for_each(|weight| *weight = 3e38_f32.copysign(*weight));
    model.write(&folder.path().join("nan.safetensors")).unwrap();
    let expected = "12 of 12 outputs are infinite or not a number: they are not predictions";

    let output = run(folder.path(), &["predict", "nan.safetensors", "new"]);
    assert_eq!(refusal_after_notes(&output), expected);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().count(), 13, "{text}");
    for line in text.lines().skip(1) {
        assert!(line.split(',').nth(2) == Some("") && line.contains(",false,"), "{line}");
    }
    let output = run(folder.path(), &["predict", "nan.safetensors", "new", "--as", "jsonl"]);
    let text = String::from_utf8(output.stdout).unwrap();
    for line in text.lines() {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(row["class"].is_null() && row["converged"] == false, "{line}");
    }
    let output = run(folder.path(), &["evaluate", "nan.safetensors", "new"]);
    assert_eq!(refusal_after_notes(&output), expected);
    assert!(output.stdout.is_empty());
}

/// The error of a program that may have said something before.
fn refusal_after_notes(output: &Output) -> String {
    let said = stderr(output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    said.lines().find_map(|line| line.strip_prefix("error: ")).unwrap().to_owned()
}

#[test]
fn control_characters_never_reach_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let evil = "\u{1b}]0;owned\u{7}\u{9b}31m\u{202e}";
    let nodes = format!("{evil}:category,y\n{evil},{evil}a\n\"b\nc\",{evil}b\n");
    let data = format!("set{evil}");
    write(
        folder.path(),
        &[
            (&format!("{data}/nodes.csv"), nodes.as_bytes()),
            (&format!("{data}/edges.csv"), b"source,target\n0,1\n"),
            ("bad/nodes.csv", nodes.as_bytes()),
            ("bad/edges.csv", format!("source,{evil}\n0,1\n").as_bytes()),
            ("folds/train_idx-1.txt", format!("{evil}\n").as_bytes()),
        ],
    );
    let missing = format!("no{evil}such");
    for (arguments, success) in [
        (&["data", "info", &data][..], true),
        (&["data", "info", &data, "--json"], true),
        (&["data", "info", "bad"], false),
        (&["data", "info", &missing], false),
        (&["predict", &missing, "karate"], false),
        (&["crossval", "karate", "--fold-files", "folds", "--out", "x"], false),
    ] {
        let output = run(folder.path(), arguments);
        assert_eq!(output.status.success(), success, "{}", stderr(&output));
        for text in [String::from_utf8(output.stdout.clone()).unwrap(), stderr(&output)] {
            let wrong = text.chars().find(|&c| (c.is_control() && c != '\n') || c == '\u{202e}');
            assert_eq!(wrong, None, "{arguments:?}: {text:?}");
        }
    }
}
