use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::*;
use crate::data::generate::CliqueConfig;
use crate::data::{Level, Split};
use crate::evaluate::Metrics;
use crate::run::SplitSource;
use crate::train::{SplitName, StopReason};

fn dataset() -> Dataset {
    CliqueConfig { graphs: 8, ..CliqueConfig::default() }.generate(1).unwrap()
}

fn config(dataset: &Dataset) -> RunConfig {
    let mut config = RunConfig::for_data("clique", dataset, &[]);
    config.training.epochs = 12;
    config.training.eval_every = 5;
    config.training.batch_size = Some(3);
    config.model.dropout = 0.2;
    config
}

/// What does not depend on how fast the machine is.
fn timeless(record: RunRecord) -> RunRecord {
    RunRecord { seconds: 0.0, epoch_seconds: None, date: String::new(), ..record }
}

/// The model, and the metrics without their seconds.
fn files(folder: &Path) -> (Vec<u8>, Vec<crate::train::EpochReport>) {
    let folder = RunFolder::open(folder).unwrap();
    let metrics = folder.metrics().unwrap().into_iter().map(|epoch| epoch.report).collect();
    (std::fs::read(folder.file(RunFolder::MODEL)).unwrap(), metrics)
}

#[test]
fn a_run_that_was_interrupted_ends_with_the_bits_and_the_record_of_one_that_was_not() {
    let (place, dataset) = (tempfile::tempdir().unwrap(), dataset());
    let whole = place.path().join("whole");
    let expected = Run::create(&whole, config(&dataset), &dataset).unwrap().train(&mut ()).unwrap();
    assert_eq!((expected.epochs, expected.stop_reason), (12, StopReason::Epochs));

    let broken = place.path().join("broken");
    let mut stop = |progress: &Progress<'_>| {
        if progress.metrics.report.epoch == 4 {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    let record =
        Run::create(&broken, config(&dataset), &dataset).unwrap().train(&mut stop).unwrap();
    assert_eq!((record.epochs, record.stop_reason), (4, StopReason::Stopped));
    assert!(RunFolder::open(&broken).unwrap().finished().unwrap().is_none());

    // It crashes two epochs behind a checkpoint.
    let run = Run::resume(RunFolder::open(&broken).unwrap(), &dataset, None).unwrap();
    assert_eq!(run.epoch(), 4);
    let run = run.checkpoint_every(CheckpointInterval { seconds: f64::INFINITY, epochs: Some(3) });
    let mut crash = |progress: &Progress<'_>| {
        assert!(progress.metrics.report.epoch < 9, "as if the power had failed");
        ControlFlow::Continue(())
    };
    assert!(catch_unwind(AssertUnwindSafe(|| run.train(&mut crash))).is_err());

    let run = Run::resume(RunFolder::open(&broken).unwrap(), &dataset, None).unwrap();
    assert_eq!(run.epoch(), 7);
    let record = run.train(&mut ()).unwrap();
    assert_eq!(timeless(record.clone()), timeless(expected));
    assert_eq!(files(&broken), files(&whole));
    assert_eq!(RunFolder::open(&broken).unwrap().finished().unwrap(), Some(record));
}

#[test]
fn a_run_that_is_done_can_be_made_longer_but_not_shorter() {
    let (place, dataset) = (tempfile::tempdir().unwrap(), dataset());
    let (short, long) = (place.path().join("short"), place.path().join("long"));
    Run::create(&short, config(&dataset), &dataset).unwrap().train(&mut ()).unwrap();
    let open = || RunFolder::open(&short).unwrap();
    assert!(Run::resume(open(), &dataset, Some(11)).is_err());
    let longer = Run::resume(open(), &dataset, Some(20)).unwrap();
    assert_eq!((longer.epoch(), longer.folder().config().unwrap().training.epochs), (12, 20));
    let longer = longer.train(&mut ()).unwrap();
    let mut config = config(&dataset);
    // The last of twelve epochs was evaluated, which the twelfth of twenty is not.
    config.training.epochs = 20;
    let expected = Run::create(&long, config, &dataset).unwrap().train(&mut ()).unwrap();
    assert_eq!((longer.epochs, longer.last_epoch), (expected.epochs, expected.last_epoch));
}

/// Keeps the lines of the log.
struct Listen<'a>(&'a mut Vec<String>);
impl RunObserver for Listen<'_> {
    fn epoch(&mut self, _: &Progress<'_>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn note(&mut self, line: &str) {
        self.0.push(line.to_owned());
    }
}

#[test]
fn a_record_has_what_a_report_needs() {
    let (place, dataset) = (tempfile::tempdir().unwrap(), dataset());
    let folder = place.path().join("run");
    let mut lines = vec![];
    let run = Run::create(&folder, config(&dataset), &dataset).unwrap().with_commit("abc");
    let record = run.train(&mut Listen(&mut lines)).unwrap();
    let log = std::fs::read_to_string(folder.join(RunFolder::LOG)).unwrap();
    assert!(
        log.starts_with(&lines.join("\n")) && log.ends_with(&format!("{}\n", record.last_line()))
    );
    assert_eq!(record.versions.commit.as_deref(), Some("abc"));
    assert!(!record.versions.target.is_empty() && record.machine.cores > 0);
    let seconds = record.epoch_seconds.unwrap();
    assert!(seconds.count == 12 && seconds.min >= 0.0 && seconds.mean * 12.0 <= record.seconds);
    assert!(record.multipliers.unwrap().max > 0.0);
    let converged = &record.final_evaluation.graphs;
    assert_eq!((converged.iterations.len(), converged.residuals.len()), (24, 24));
    assert_eq!(record.final_evaluation.residuals.unwrap().count, 24);
    // Evaluated on the way and at the end, it is the same.
    let evaluation = record.evaluation.as_ref().unwrap();
    for split in [SplitName::Train, SplitName::Val, SplitName::Test] {
        let Some(Metrics::Classes { accuracy, per_class, count, .. }) =
            record.final_evaluation.of(split)
        else {
            panic!("classes have metrics of classes");
        };
        assert_eq!(Some(*accuracy), evaluation.of(split).unwrap().accuracy);
        assert_eq!(per_class.iter().map(|class| class.support).sum::<usize>(), *count);
        assert_eq!(per_class.len(), record.classes.as_ref().unwrap().len());
    }
    assert_eq!(RunFolder::open(&folder).unwrap().record().unwrap(), Some(record));
}

#[test]
fn a_run_keeps_the_split_that_it_was_given() {
    let (place, dataset) = (tempfile::tempdir().unwrap(), dataset());
    let mut config = config(&dataset);
    config.split.source = SplitSource::Given;
    let train: Vec<usize> = (0..dataset.graphs()).filter(|graph| graph % 3 != 0).collect();
    let test = (0..dataset.graphs()).step_by(3).collect();
    let split = Split { level: Level::Graph, train, val: vec![], test };
    let given = dataset.clone().with_split(Some(split.clone())).unwrap();
    let folder = place.path().join("run");
    let mut stop = |progress: &Progress<'_>| match progress.metrics.report.epoch {
        5 => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    };
    Run::create(&folder, config.clone(), &given).unwrap().train(&mut stop).unwrap();
    // It is not resumed with another split, which the data may have.
    let run = Run::resume(RunFolder::open(&folder).unwrap(), &dataset, None).unwrap();
    assert_eq!((run.epoch(), &run.setup().split), (5, &split));
    run.train(&mut ()).unwrap();
    let saved = SavedModel::read(&folder.join(RunFolder::MODEL)).unwrap();
    assert_eq!(saved.members, Some(split));
    let whole = place.path().join("whole");
    Run::create(&whole, config, &given).unwrap().train(&mut ()).unwrap();
    assert_eq!(saved.weights, SavedModel::read(&whole.join(RunFolder::MODEL)).unwrap().weights);
}

#[test]
fn a_run_that_does_not_fit_leaves_no_folder() {
    let (place, dataset) = (tempfile::tempdir().unwrap(), dataset());
    let mut config = config(&dataset);
    config.training.epochs = 0;
    assert!(Run::create(&place.path().join("run"), config, &dataset).is_err());
    assert!(!place.path().join("run").exists());
}
