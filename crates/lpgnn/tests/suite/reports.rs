//! Reports: what is in the page, from the folders alone.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::path::Path;

use lpgnn::data::Dataset;
use lpgnn::data::generate::CliqueConfig;
use lpgnn::experiment::record::ModelNotes;
use lpgnn::experiment::run::{Run, RunFolder};
use lpgnn::report::{LiveReport, Report, Seen};
use lpgnn::run::{RunConfig, SavedModel};
use serde_json::Value;

fn dataset() -> Dataset {
    CliqueConfig { graphs: 12, ..CliqueConfig::default() }.generate(3).unwrap()
}

fn train(folder: &Path, dataset: &Dataset, change: impl Fn(&mut RunConfig)) {
    let mut config = RunConfig::for_data("clique", dataset, &[]);
    config.training.epochs = 6;
    config.training.eval_every = 2;
    change(&mut config);
    Run::create(folder, config, dataset).unwrap().train(&mut ()).unwrap();
}

/// The data in a page.
fn data_of(page: &str) -> Value {
    let start = page.find("id=\"data\">").unwrap() + "id=\"data\">".len();
    let end = start + page[start..].find("</script>").unwrap();
    serde_json::from_str(&page[start..end]).unwrap()
}

#[test]
fn a_page_shows_a_run_from_its_folder_alone() {
    let (place, dataset) = (tempfile::tempdir().unwrap(), dataset());
    let folder = place.path().join("first");
    train(&folder, &dataset, |config| config.model.dropout = 0.25);
    let report = Report::of(&[&folder]).unwrap();
    let data = data_of(&report.html().unwrap());
    let run = &data["runs"][0];
    assert_eq!(run["history"]["epoch"], serde_json::json!([1, 2, 3, 4, 5, 6]));
    assert!(run["history"]["splits"]["val"]["accuracy"][1].is_number());
    assert!(run["history"]["splits"]["val"]["accuracy"][0].is_null());
    assert!(run["history"]["residual_p95"][1].is_number() && run["history"]["lr"][5].is_number());
    let changed: Vec<&str> =
        run["changed"].as_array().unwrap().iter().map(|of| of[0].as_str().unwrap()).collect();
    assert!(changed.contains(&"model.dropout") && changed.contains(&"training.epochs"));
    assert!(run["rerun"].as_str().unwrap().contains("--set model.dropout=0.25"));
    let nodes = dataset.nodes();
    for column in ["index", "target", "predicted", "pca_x", "pca_y", "multiplier"] {
        assert_eq!(run["items"][column].as_array().unwrap().len(), nodes, "{column}");
    }
    assert!(run["drawings"].as_array().unwrap().is_empty());
    let drawn = report.with_drawings(&folder, &dataset).unwrap();
    assert!(!data_of(&drawn.html().unwrap())["runs"][0]["drawings"].as_array().unwrap().is_empty());
}

#[test]
fn a_report_replaces_a_report_and_nothing_else() {
    let (place, dataset) = (tempfile::tempdir().unwrap(), dataset());
    let folder = place.path().join("run");
    train(&folder, &dataset, |_| ());
    let (report, page) = (Report::of(&[&folder]).unwrap(), place.path().join("page.html"));
    report.write(&page).unwrap();
    report.write(&page).unwrap();
    let data = place.path().join("nodes.csv");
    std::fs::write(&data, "id,x\n").unwrap();
    for other in [&data, &folder, Path::new("/dev/null")] {
        assert!(report.write(other).is_err(), "{}", other.display());
    }
    assert_eq!(std::fs::read_to_string(&data).unwrap(), "id,x\n");
}

#[test]
fn two_runs_are_overlaid_and_other_data_are_not_drawn() {
    let (place, dataset) = (tempfile::tempdir().unwrap(), dataset());
    let folders = ["a", "b"].map(|name| place.path().join(name));
    folders.iter().for_each(|folder| train(folder, &dataset, |_| ()));
    let data = data_of(&Report::of(&folders).unwrap().html().unwrap());
    assert_eq!(data["runs"].as_array().unwrap().len(), 2);
    assert_eq!(data["runs"][1]["name"], "b");
    let other = CliqueConfig { graphs: 12, ..CliqueConfig::default() }.generate(4).unwrap();
    let report = Report::of(&folders[..1]).unwrap();
    let said = report.with_drawings(&folders[0], &other).unwrap_err().to_string();
    assert!(said.contains("was trained on other data"), "{said}");
}

#[test]
fn what_is_no_run_or_not_done_gets_a_sentence() {
    let place = tempfile::tempdir().unwrap();
    let said = Report::of(&[place.path()]).unwrap_err().to_string();
    assert!(said.ends_with("is neither a run nor a finished cross-validation or search"), "{said}");
    let folder = place.path().join("run");
    train(&folder, &dataset(), |_| ());
    std::fs::remove_file(folder.join(RunFolder::RECORD)).unwrap();
    let said = Report::of(&[&folder]).unwrap_err().to_string();
    assert!(said.contains("is a run without a record"), "{said}");
    train(&place.path().join("other"), &dataset(), |_| ());
    std::fs::write(place.path().join("other/items.json"), "{\"of\":1,\"index\":[0]}").unwrap();
    let said = Report::of(&[place.path().join("other")]).unwrap_err().to_string();
    assert!(said.contains("items.json"), "{said}");
}

#[test]
fn a_live_report_tells_each_reader_what_is_new_to_it() {
    let (place, dataset) = (tempfile::tempdir().unwrap(), dataset());
    let folder = place.path().join("run");
    train(&folder, &dataset, |_| ());
    let run = RunFolder::open(&folder).unwrap();
    let (epochs, config) = (run.metrics().unwrap(), run.config().unwrap());

    let mut live = LiveReport::new("<title>", "secret");
    let (mut first, mut late) = (Seen::default(), Seen::default());
    let news = |live: &LiveReport, seen: &mut Seen| {
        let news = live.news(seen).unwrap();
        news.map(|(kind, json)| (kind, serde_json::from_str::<Value>(&json).unwrap()))
    };
    let (kind, data) = news(&live, &mut first).unwrap();
    assert_eq!(
        (kind, &data["title"], &data["live"]["token"]),
        ("data", &"<title>".into(), &"secret".into())
    );
    live.begin(7, "run", (0, 6), &config);
    live.epoch(7, &epochs[0]);
    assert_eq!(news(&live, &mut first).unwrap().0, "data", "a run has begun");
    assert_eq!(news(&live, &mut first), None);
    live.epoch(7, &epochs[1]);
    live.epoch(7, &epochs[2]);
    live.epoch(8, &epochs[0]);
    let (kind, tail) = news(&live, &mut first).unwrap();
    assert_eq!((kind, &tail[0]["run"]), ("epochs", &0.into()));
    assert_eq!(tail[0]["history"]["epoch"], serde_json::json!([2, 3]));
    assert!(tail[0]["history"]["splits"]["val"]["accuracy"][0].is_number(), "epoch 2 is evaluated");
    let (kind, data) = news(&live, &mut late).unwrap();
    assert_eq!(kind, "data", "who comes late is told everything");
    assert_eq!(data["runs"][0]["history"]["epoch"], serde_json::json!([1, 2, 3]));
    assert_eq!(data_of(&live.html().unwrap()), data, "so is who loads the page");

    live.done(7);
    live.end(Report::of(&[&folder]).unwrap());
    let (kind, data) = news(&live, &mut first).unwrap();
    assert_eq!((kind, &data["live"]["token"]), ("data", &"secret".into()));
    assert!(data["runs"][0]["items"].is_object());
    assert_eq!(news(&live, &mut first), None);
}

#[test]
fn a_model_without_a_folder_has_a_report() {
    let (place, dataset) = (tempfile::tempdir().unwrap(), dataset());
    let folder = place.path().join("run");
    train(&folder, &dataset, |_| ());
    let run = RunFolder::open(&folder).unwrap();
    let record = run.record().unwrap().unwrap();
    let notes = ModelNotes {
        stop_reason: Some(record.stop_reason),
        metrics: run.metrics().unwrap(),
        evaluation: record.evaluation,
        final_evaluation: record.final_evaluation,
    };
    let saved = SavedModel::read(&run.file(RunFolder::MODEL)).unwrap();
    let of_run = data_of(&Report::of(&[&folder]).unwrap().html().unwrap());
    let report = Report::of_model(&saved, &notes, Some(&dataset)).unwrap();
    let of_model = data_of(&report.html().unwrap());
    for part in ["history", "final", "classes", "weights", "best_epoch", "stop"] {
        assert_eq!(of_model["runs"][0][part], of_run["runs"][0][part], "{part}");
    }
    for part in ["target", "predicted", "pca_x", "split"] {
        assert_eq!(of_model["runs"][0]["items"][part], of_run["runs"][0]["items"][part], "{part}");
    }
    let without = data_of(&Report::of_model(&saved, &notes, None).unwrap().html().unwrap());
    assert!(without["runs"][0]["items"].is_null());
    let other = CliqueConfig { graphs: 12, ..CliqueConfig::default() }.generate(4).unwrap();
    let said = Report::of_model(&saved, &notes, Some(&other)).unwrap_err().to_string();
    assert!(said.contains("trained on other data"), "{said}");
}
