//! What is recorded in `experiments` is up to date, and is noticed when it is not.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::Path;
use std::process::Command;

fn lpgnn(folder: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_lpgnn"))
        .arg("reproduce")
        .args(arguments)
        .current_dir(folder)
        .env("LPGNN_CACHE", "no-cache")
        .output()
        .unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn results_are_those_of_their_rows_and_in_the_tables() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (code, said) = lpgnn(&root, &["--report=check"]);
    assert_eq!(code, Some(0), "{said}");
}

const ROW: &str = r#"
[experiment]
title = "The karate club"
table = "nodes"
row = "one-shot"
column = "karate"
protocol = "best-mean-epoch"
folds = 3
[data]
source = "karate"
[training]
epochs = 5
"#;

#[test]
fn results_open_with_the_best_row_beside_published_figures() {
    let place = tempfile::tempdir().unwrap();
    let file = |name: &str| place.path().join("experiments").join(name);
    fs::create_dir_all(file("nodes")).unwrap();
    fs::write(file("nodes/karate.toml"), ROW).unwrap();
    let overview = "[[overview]]\ntitle = \"At a glance\"\nprotocol = \"best-mean-epoch\"\ntables = [\"nodes\"]\n\
                    columns = [\"karate\", \"Cora\"]\n\
                    published = [{ name = \"GCN\", values = [nan, 81.5] }]\n";
    fs::write(file("tables.toml"), overview).unwrap();
    let (code, said) = lpgnn(place.path(), &[]);
    assert_eq!(code, Some(0), "{said}");
    let text = fs::read_to_string(file("RESULTS.md")).unwrap();
    let line = |of: &str| text.lines().find(|line| line.starts_with(of)).unwrap().to_owned();
    assert!(line("| karate |").ends_with("** | one-shot | – | nodes/karate |"), "{text}");
    assert_eq!(line("| Cora |"), "| Cora | not run |  | 81.5 |  |");
    let column =
        line("| file |").split('|').position(|cell| cell == " distance, at most ").unwrap();
    let row = line("| nodes/karate |");
    let distance = row.split('|').nth(column).unwrap().trim().parse::<f64>();
    assert!(distance.is_ok_and(|distance| (0.0..1.0).contains(&distance)), "{row}");

    fs::write(file("tables.toml"), overview.replace("nan, ", "")).unwrap();
    let said = "error: experiments/tables.toml: GCN has 1 values, but the overview has 2 columns\n";
    assert_eq!(lpgnn(place.path(), &["--report"]), (Some(2), said.into()));
}

#[test]
fn what_is_out_of_date_is_noticed() {
    let place = tempfile::tempdir().unwrap();
    let file = |name: &str| place.path().join("experiments").join(name);
    fs::create_dir_all(file("nodes")).unwrap();
    fs::write(file("nodes/karate.toml"), ROW).unwrap();
    let check = || lpgnn(place.path(), &["--report=check"]);
    let run = |arguments: &[&str]| {
        let (code, said) = lpgnn(place.path(), arguments);
        assert_eq!(code, Some(0), "{said}");
    };
    run(&[]);
    assert_eq!(check(), (Some(0), String::new()));

    // Where it stands decides on nothing but the tables.
    fs::write(file("nodes/karate.toml"), ROW.replace("\"karate\"\nprotocol", "\"K\"\nprotocol"))
        .unwrap();
    let said = "error: experiments/RESULTS.md is out of date; run `lpgnn reproduce --report` to \
                update it\n";
    assert_eq!(check(), (Some(1), said.into()));
    run(&["--report"]);
    assert_eq!(check(), (Some(0), String::new()));

    fs::write(file("nodes/karate.toml"), ROW.replace("epochs = 5", "epochs = 6")).unwrap();
    let said = "error: nodes/karate was run with other settings; run `lpgnn reproduce \
                nodes/karate` again\n";
    assert_eq!(check(), (Some(1), said.into()));
    run(&["karate"]);
    assert_eq!(check(), (Some(0), String::new()));

    fs::rename(file("nodes/karate.toml"), file("nodes/club.toml")).unwrap();
    let said = "error: experiments has a result for nodes/karate, but there is no such row\n";
    assert_eq!(check(), (Some(1), said.into()));
}

const STUDY: &str = r#"
[study]
title = "How fast states converge"
question = "Does it depend on the length?"
protocol = "converge"
seeds = [0, 1]
vary = "generate.length"
values = [5, 10]
x = { of = "hops" }
panels = [{ of = "iterations" }, { of = "converged-residual", log = true }]
[data]
source = "chains"
[generate]
chains = 2
[[series]]
name = "mean"
[[series]]
name = "maximum"
set = { model.transition = "sage-max" }
"#;

#[test]
fn a_study_is_run_point_by_point_and_noticed_when_it_is_out_of_date() {
    let place = tempfile::tempdir().unwrap();
    let file = |name: &str| place.path().join("experiments").join(name);
    fs::create_dir_all(file("studies")).unwrap();
    fs::create_dir_all(file("nodes")).unwrap();
    fs::write(file("nodes/karate.toml"), ROW).unwrap();
    let study = |text: &str| fs::write(file("studies/converging.toml"), text).unwrap();
    study(STUDY);
    let check = || lpgnn(place.path(), &["--report=check"]);
    let run = |arguments: &[&str]| {
        let (code, said) = lpgnn(place.path(), arguments);
        assert_eq!(code, Some(0), "{said}");
        said
    };
    run(&["--report"]);
    assert_eq!(check(), (Some(0), String::new()));
    run(&["studies", "--quick"]);
    assert!(!file("results").exists());

    let said = run(&["studies"]);
    assert!(said.contains("How fast states converge; 8 of 8 points to run"), "{said}");
    assert_eq!(check(), (Some(0), String::new()));
    let report = fs::read_to_string(file("STUDIES.md")).unwrap();
    assert!(report.contains("![How fast states converge](plots/converging.svg)"), "{report}");
    assert!(report.contains("8 of 8 points"), "{report}");
    let svg = fs::read_to_string(file("plots/converging.svg")).unwrap();
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    assert_eq!(svg.matches("<polyline").count(), 4);
    let said = run(&["studies/converging"]);
    assert!(said.contains("0 of 8 points to run"), "{said}");

    // What is told decides on the report alone.
    study(&STUDY.replace("protocol", "finding = \"It does.\"\nprotocol"));
    let said = "error: experiments/STUDIES.md is out of date; run `lpgnn reproduce --report` to \
                update it\n";
    assert_eq!(check(), (Some(1), said.into()));
    run(&["--report"]);
    assert_eq!(check(), (Some(0), String::new()));

    study(&STUDY.replace("[5, 10]", "[5, 10, 15]"));
    let said = "error: studies/converging has points without results; run `lpgnn reproduce \
                studies/converging`\n";
    assert_eq!(check(), (Some(1), said.into()));
    let said = run(&["converging"]);
    assert!(said.contains("4 of 12 points to run"), "{said}");
    let said = run(&["converging", "--again"]);
    assert!(said.contains("12 of 12 points to run"), "{said}");
    assert_eq!(check(), (Some(0), String::new()));

    fs::rename(file("studies/converging.toml"), file("studies/other.toml")).unwrap();
    let said =
        "error: experiments has a result for studies/converging, but there is no such study\n";
    assert_eq!(check(), (Some(1), said.into()));
}

#[test]
fn a_study_that_cannot_be_run_says_why() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("experiments/studies");
    fs::create_dir_all(&folder).unwrap();
    let said = |from: &str, to: &str| {
        fs::write(folder.join("x.toml"), STUDY.replace(from, to)).unwrap();
        let (code, said) =
            lpgnn(place.path(), &["studies", "--quick", "--quiet", "--threads", "1"]);
        assert_ne!(code, Some(0));
        said
    };
    assert_eq!(
        said("chains = 2", "chain = 2").lines().next().unwrap(),
        "error: cannot run mean, 5, seed 0 of studies/x"
    );
    assert_eq!(
        said("[study]", "[studies]"),
        "error: experiments/studies/x.toml: it has no [study]\n"
    );
    assert!(said("protocol =", "protocols =").contains("unknown field `protocols`"));
}

/// Every file in `experiments/studies` can be run; two of them are.
#[test]
fn studies_can_be_tried_in_seconds() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (code, said) = lpgnn(&root, &["studies/degrees", "studies/solver", "--quick"]);
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn without_a_validation_part_the_last_epoch_counts() {
    let place = tempfile::tempdir().unwrap();
    let file = |name: &str| place.path().join("experiments").join(name);
    fs::create_dir_all(file("nodes")).unwrap();
    let row = ROW.replace("best-mean-epoch", "split").replace("folds = 3", "seeds = [0, 1]");
    fs::write(file("nodes/karate.toml"), row).unwrap();
    let (code, said) = lpgnn(place.path(), &[]);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(said.matches("after epoch 5").count(), 2, "{said}");
}

#[cfg(unix)]
#[test]
fn a_row_that_was_killed_goes_on_to_the_same_result() {
    let (whole, killed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for place in [&whole, &killed] {
        fs::create_dir_all(place.path().join("experiments/nodes")).unwrap();
        let row = ROW.replace("epochs = 5", "epochs = 150");
        fs::write(place.path().join("experiments/nodes/karate.toml"), row).unwrap();
    }
    let result = |place: &Path| -> serde_json::Value {
        let path = place.join("experiments/results/nodes/karate.json");
        let record: serde_json::Value =
            serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
        record["report"]["values"].clone()
    };
    assert_eq!(lpgnn(whole.path(), &[]).0, Some(0));
    for milliseconds in [50, 150, 250] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_lpgnn"))
            .args(["reproduce", "--quiet"])
            .current_dir(killed.path())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(std::time::Duration::from_millis(milliseconds));
        let _ = child.kill();
        child.wait().unwrap();
    }
    assert_eq!(lpgnn(killed.path(), &[]).0, Some(0));
    assert_eq!(result(killed.path()), result(whole.path()));
}
