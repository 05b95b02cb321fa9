use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::*;
use crate::activation::Activation;
use crate::data::generate::CliqueConfig;
use crate::data::{Level, Split, TargetColumn};
use crate::evaluate::Metrics;
use crate::readout::largest;
use crate::train::{Monitor, SplitName};

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
    assert_eq!(longer.epochs, expected.epochs);
    assert_eq!(last(longer), last(expected));
}

/// The last epoch without the spectral radius, which is measured of the best epoch only: that may be one which a shorter
/// run has evaluated and a longer one has not.
fn last(record: RunRecord) -> Option<crate::train::EpochReport> {
    let mut last = record.last_epoch;
    if let Some(evaluation) = last.as_mut().and_then(|last| last.evaluation.as_mut()) {
        evaluation.spectral_radius = None;
    }
    last
}

/// Train and test swapped.
fn swapped(dataset: &Dataset) -> Dataset {
    let Split { level, train, val, test } = dataset.split().unwrap().clone();
    dataset.clone().with_split(Some(Split { level, train: test, val, test: train })).unwrap()
}

/// A run that is stopped after four epochs.
fn stopped(folder: &Path, config: RunConfig, dataset: &Dataset) {
    let mut stop = |progress: &Progress<'_>| {
        if progress.metrics.report.epoch == 4 {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    Run::create(folder, config, dataset).unwrap().train(&mut stop).unwrap();
}

#[test]
fn a_changed_split_is_noticed() {
    let (place, dataset) = (tempfile::tempdir().unwrap(), dataset());
    let folder = place.path().join("run");
    stopped(&folder, config(&dataset), &dataset);
    let resume = |dataset| Run::resume(RunFolder::open(&folder).unwrap(), dataset, None).map(drop);
    let changed = swapped(&dataset);
    let said = resume(&changed).unwrap_err().to_string();
    let expected = "was started with another split of clique: 16 graphs are in another split now";
    assert!(said.ends_with(expected), "{said}");
    let unknown = dataset.clone().with_split(None).unwrap();
    assert!(resume(&unknown).is_err(), "another one would be drawn");
    resume(&dataset).unwrap();
}

#[test]
fn a_split_that_is_given_is_kept_with_the_run() {
    let (place, dataset) = (tempfile::tempdir().unwrap(), dataset());
    let (folder, whole) = (place.path().join("run"), place.path().join("whole"));
    let given = swapped(&dataset);
    let mut config = config(&given);
    config.split.source = SplitSource::Given;
    let expected = Run::create(&whole, config.clone(), &given).unwrap().train(&mut ()).unwrap();
    stopped(&folder, config, &given);
    // Who resumes it knows the data, but not the split.
    let run = Run::resume(RunFolder::open(&folder).unwrap(), &dataset, None).unwrap();
    assert_eq!(Some(&run.setup().split), given.split());
    let record = run.train(&mut ()).unwrap();
    assert_eq!(timeless(record), timeless(expected));
    // Nor is it believed whatever is in its file.
    let path = folder.join(RunFolder::SPLIT);
    let text = std::fs::read_to_string(&path).unwrap();
    for strange in [text.replace(":[", ":[4000000000,"), text.replace(":[", ":[-"), "{}".into()] {
        std::fs::write(&path, strange).unwrap();
        assert!(Run::resume(RunFolder::open(&folder).unwrap(), &dataset, Some(20)).is_err());
    }
    let model = SavedModel::read(&folder.join(RunFolder::MODEL)).unwrap();
    assert_eq!(model.members.as_ref(), given.split());
    assert_eq!(model.data.split, given.split().unwrap().fingerprint());
}

#[test]
fn edited_settings_are_refused_by_name_or_recorded() {
    let (place, dataset) = (tempfile::tempdir().unwrap(), dataset());
    let folder = place.path().join("run");
    stopped(&folder, config(&dataset), &dataset);
    let open = || RunFolder::open(&folder).unwrap();
    let mut edited = open().config().unwrap();
    (edited.model.dropout, edited.training.epochs) = (0.5, 14);
    open().write_config(&edited).unwrap();
    let said = Run::resume(open(), &dataset, None).unwrap_err().to_string();
    let expected = "was edited after the last checkpoint: model.dropout was 0.2 and is 0.5";
    assert!(said.ends_with(expected), "{said}");

    let run = Run::resume_with_changes(open(), &dataset, None).unwrap();
    let mut stop = |progress: &Progress<'_>| {
        if progress.metrics.report.epoch == 7 {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    run.train(&mut stop).unwrap();
    // What was accepted is not asked again, nor forgotten.
    let record = Run::resume(open(), &dataset, None).unwrap().train(&mut ()).unwrap();
    assert_eq!((record.epochs, record.changes.len()), (14, 1));
    let change = &record.changes[0];
    assert_eq!((change.epoch, change.change.path.as_str()), (4, "model.dropout"));
    assert_eq!(RunFolder::open(&folder).unwrap().record().unwrap(), Some(record));

    // Fewer epochs than it was to have are an edit like others.
    let mut edited = open().config().unwrap();
    edited.training.epochs = 3;
    open().write_config(&edited).unwrap();
    let said = Run::resume(open(), &dataset, None).unwrap_err().to_string();
    assert!(said.ends_with("training.epochs was 14 and is 3"), "{said}");
}

/// Weights of other settings are not what their scores say.
#[test]
fn scores_of_a_run_are_those_of_the_model_that_it_saves_whatever_was_edited() {
    type Edit = fn(&mut RunConfig);
    let (place, dataset) = (tempfile::tempdir().unwrap(), dataset());
    let edits: [(&str, Edit); 3] = [
        ("activation", |config| config.model.activation = Activation::Relu),
        ("standardize", |config| config.features.standardize = false),
        ("monitor", |config| config.training.monitor = Monitor::Loss),
    ];
    for (name, edit) in edits {
        let folder = place.path().join(name);
        let mut begun = config(&dataset);
        (begun.training.eval_every, begun.training.epochs) = (1, 6);
        Run::create(&folder, begun.clone(), &dataset).unwrap().train(&mut ()).unwrap();
        let open = || RunFolder::open(&folder).unwrap();
        begun.training.epochs = 7;
        edit(&mut begun);
        open().write_config(&begun).unwrap();
        let run = Run::resume_with_changes(open(), &dataset, None).unwrap();
        let record = run.train(&mut ()).unwrap();
        assert_eq!(record.best_epoch, 7, "{name}");
        let said = record.evaluation.unwrap().of(SplitName::Test).unwrap().accuracy.unwrap();
        let model = SavedModel::read(&open().file(RunFolder::MODEL)).unwrap();
        let outputs = model.predict(&dataset, true).unwrap().outputs;
        let Some(TargetColumn::Classes(targets)) = dataset.node_targets() else { panic!("{name}") };
        let split = dataset.split().unwrap();
        let rows = split.rows(&split.test, Level::Node, &dataset);
        let is_right = |row: usize| largest(outputs.row(row)) == targets.codes()[row] as usize;
        let right = rows.iter().filter(|&&row| is_right(row)).count();
        let found = right as f64 / rows.len() as f64;
        assert!((said - found).abs() < 1e-9, "{name}: {said}, {found}");
    }
}

#[test]
fn a_run_that_ended_before_its_record_gets_the_same_record() {
    let (place, dataset) = (tempfile::tempdir().unwrap(), dataset());
    let Split { level, train, val, test } = dataset.split().unwrap().clone();
    let test = [val, test].concat();
    let no_validation =
        dataset.clone().with_split(Some(Split { level, train, val: vec![], test })).unwrap();
    for (name, patience, dataset) in
        [("val", None, &dataset), ("none", None, &no_validation), ("early", Some(1), &dataset)]
    {
        let folder = place.path().join(name);
        let mut config = config(dataset);
        (config.training.patience, config.training.eval_every) = (patience, 2);
        let interval = CheckpointInterval { seconds: f64::INFINITY, epochs: Some(1) };
        let run = Run::create(&folder, config, dataset).unwrap().checkpoint_every(interval);
        let expected = run.train(&mut ()).unwrap();
        let before = files(&folder);
        for gone in [&[RunFolder::RECORD][..], &[RunFolder::RECORD, RunFolder::MODEL]] {
            gone.iter().for_each(|file| std::fs::remove_file(folder.join(file)).unwrap_or(()));
            let run = Run::resume(RunFolder::open(&folder).unwrap(), dataset, None).unwrap();
            assert_eq!(run.epoch(), expected.epochs, "{name}");
            let record = run.train(&mut ()).unwrap();
            assert!(record.last_epoch.is_some(), "{name}");
            assert_eq!(timeless(record), timeless(expected.clone()), "{name}");
            assert_eq!(files(&folder), before, "{name}");
        }
    }
}

#[test]
fn a_run_that_stopped_early_goes_on_with_what_it_was_trained_on_alone() {
    let (place, dataset) = (tempfile::tempdir().unwrap(), dataset());
    let folder = place.path().join("run");
    let mut config = config(&dataset);
    (config.training.epochs, config.training.patience, config.training.eval_every) =
        (1000, Some(1), 1);
    let record = Run::create(&folder, config, &dataset).unwrap().train(&mut ()).unwrap();
    assert!(record.epochs < 1000, "{}", record.epochs);
    let open = || RunFolder::open(&folder).unwrap();
    // More epochs do not change why it stopped.
    let longer = Run::resume(open(), &dataset, Some(2000)).unwrap();
    assert_eq!(longer.epoch(), record.epochs);
    assert_eq!(longer.train(&mut ()).unwrap().epochs, record.epochs);

    let mut edited = open().config().unwrap();
    edited.training.l2 = 0.5;
    open().write_config(&edited).unwrap();
    let said = Run::resume(open(), &dataset, None).unwrap_err().to_string();
    assert!(said.contains("training.l2 was"), "{said}");
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
fn a_record_compares_with_an_mlp_and_tells_which_graphs_meet_the_constraints() {
    let (place, dataset) = (tempfile::tempdir().unwrap(), dataset());
    let run = |name: &str| Run::create(&place.path().join(name), config(&dataset), &dataset);
    let record = run("run").unwrap().train(&mut ()).unwrap();
    let baseline = record.baseline.as_ref().unwrap();
    assert!(baseline.best().unwrap().test.is_some() && baseline.trained_on == baseline.of);
    let constraints = record.constraints.as_ref().unwrap();
    assert_eq!(constraints.graphs, dataset.split().unwrap().train.len());
    assert_eq!(Some(constraints.met()), record.constraints_met());
    let without = run("without").unwrap().without_baseline().train(&mut ()).unwrap();
    assert_eq!((without.baseline, without.evaluation), (None, record.evaluation));
}

#[test]
fn a_run_that_does_not_fit_leaves_no_folder() {
    let (place, dataset) = (tempfile::tempdir().unwrap(), dataset());
    let mut config = config(&dataset);
    config.training.epochs = 0;
    assert!(Run::create(&place.path().join("run"), config, &dataset).is_err());
    assert!(!place.path().join("run").exists());
}
