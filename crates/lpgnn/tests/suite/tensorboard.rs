//! Event files: one per training, whose records are whole.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::ops::ControlFlow;
use std::path::Path;

use lpgnn::data::Dataset;
use lpgnn::data::generate::CliqueConfig;
use lpgnn::evaluate::Protocol;
use lpgnn::experiment::ResultFolder;
use lpgnn::experiment::crossval::{Crossval, Division};
use lpgnn::experiment::run::{Progress, Run, RunFolder};
use lpgnn::graph::Level;
use lpgnn::run::RunConfig;
use lpgnn::tensorboard::{EventWriter, TrialEvents};

fn dataset() -> Dataset {
    CliqueConfig { graphs: 10, ..CliqueConfig::default() }.generate(3).unwrap()
}

fn config(dataset: &Dataset) -> RunConfig {
    let mut config = RunConfig::for_data("clique", dataset, &[]);
    config.training.epochs = 6;
    config.training.eval_every = 2;
    config
}

/// The data of every record in the files of a folder, in order.
fn records(folder: &Path) -> Vec<Vec<Vec<u8>>> {
    let files = std::fs::read_dir(folder).unwrap();
    let mut paths: Vec<_> = files.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let read = |path: &std::path::PathBuf| {
        let (bytes, mut at, mut found) = (std::fs::read(path).unwrap(), 0, vec![]);
        while at < bytes.len() {
            let length = u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
            let length = usize::try_from(length).unwrap();
            found.push(bytes[at + 12..at + 12 + length].to_vec());
            at += length + 16;
        }
        found
    };
    paths.iter().map(read).collect()
}

fn with(records: &[Vec<u8>], text: &str) -> usize {
    let has = |record: &&Vec<u8>| record.windows(text.len()).any(|part| part == text.as_bytes());
    records.iter().filter(has).count()
}

#[test]
fn a_run_that_is_resumed_adds_a_file() {
    let (place, dataset) = (tempfile::tempdir().unwrap(), dataset());
    let (folder, events) = (place.path().join("run"), place.path().join("events"));
    let stop = |progress: &Progress<'_>| {
        let last = progress.metrics.report.epoch == 4;
        if last { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let run = Run::create(&folder, config(&dataset), &dataset).unwrap();
    let writer = EventWriter::create(&events, run.epoch(), run.config()).unwrap();
    let mut observers = (stop, Some(writer));
    let record = run.train(&mut observers).unwrap();
    observers.1.unwrap().finish(Some(record.stop_reason)).unwrap();
    let run = Run::resume(RunFolder::open(&folder).unwrap(), &dataset, None).unwrap();
    let mut writer = EventWriter::create(&events, run.epoch(), run.config()).unwrap();
    let record = run.train(&mut writer).unwrap();
    writer.finish(Some(record.stop_reason)).unwrap();

    let [first, second] = &records(&events)[..] else { panic!("there are two files") };
    assert_eq!((with(first, "objective/loss"), with(second, "objective/loss")), (4, 2));
    assert_eq!((with(first, "residual/log10"), with(second, "residual/log10")), (2, 1));
    assert_eq!((with(first, "session_end"), with(second, "session_end")), (0, 1));
    assert_eq!(with(first, "training.solver.kind"), 1);
    // The session of the second begins at epoch 5: field 2 is the step, field 7 its start.
    assert!(second[1].ends_with(&[0x10, 5, 0x3a, 2, 8, 1]), "{:?}", second[1]);
}

#[test]
fn every_fold_and_every_candidate_has_a_folder() {
    let (place, dataset) = (tempfile::tempdir().unwrap(), dataset());
    let (one, mut two) = (config(&dataset), config(&dataset));
    two.model.state_dim = 3;
    let division = Division { folds: 2, files: None, seed: 0 };
    let candidates = [one.clone(), two];
    let folds = division.folds(&dataset, Level::Node, Protocol::Nested, &candidates).unwrap();
    let crossval = Crossval::new(&dataset, Protocol::Nested, folds).unwrap();
    let folder = ResultFolder::open(&place.path().join("cv"), &crossval.plan(), &one).unwrap();
    let events = place.path().join("events");
    let writers = TrialEvents::new(&events, |name, candidate| {
        crossval.folds().iter().find(|fold| fold.name == name)?.candidates.get(candidate)
    });
    let observers = ((), (Some(writers), None::<()>));
    crossval.run(&folder, &observers).unwrap().unwrap();
    observers.1.0.unwrap().finish().unwrap();
    let mut names: Vec<_> =
        std::fs::read_dir(&events).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["fold-01", "fold-01-2", "fold-02", "fold-02-2"]);
    for name in names {
        let files = records(&events.join(&name));
        assert_eq!((files.len(), with(&files[0], "objective/loss")), (1, 6), "{}", name.display());
    }
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let (place, dataset) = (tempfile::tempdir().unwrap(), dataset());
    let file = place.path().join("file");
    std::fs::write(&file, "").unwrap();
    let said = EventWriter::create(&file.join("run"), 0, &config(&dataset)).unwrap_err();
    assert!(said.to_string().contains("file"), "{said}");
}
