use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::data::Split;
use crate::data::generate::CliqueConfig;
use crate::evaluate::{BaselineReport, Metrics};
use crate::experiment::{Share, TrialName, TrialObserver};
use crate::graph::Level;
use crate::run::{RunConfig, SavedModel};
use crate::train::EpochReport;

fn dataset() -> Dataset {
    CliqueConfig { graphs: 6, ..CliqueConfig::default() }.generate(1).unwrap()
}

fn config(dataset: &Dataset) -> RunConfig {
    let mut config = RunConfig::for_data("clique", dataset, &[]);
    config.training.epochs = 9;
    config.training.eval_every = 2;
    config.model.dropout = 0.2;
    config
}

fn crossval(dataset: &Dataset, protocol: Protocol) -> Crossval<'_> {
    let division = Division { folds: 3, files: None, seed: 4 };
    let folds = division.folds(dataset, Level::Node, protocol, &[config(dataset)]).unwrap();
    Crossval::new(dataset, protocol, folds).unwrap()
}

/// Stops after so many epochs of all trials, and counts them and the folds that are done.
struct Impatient {
    most: usize,
    epochs: AtomicUsize,
    folds: AtomicUsize,
}

impl ExperimentObserver for Impatient {
    fn trial(&self, _: TrialName, _: usize, until: usize) -> Box<dyn TrialObserver + '_> {
        assert_eq!(until, 9);
        Box::new(self)
    }

    fn fold(&self, _: &FoldRecord) {
        self.folds.fetch_add(1, Ordering::Relaxed);
    }
}

impl TrialObserver for &Impatient {
    fn epoch(&mut self, _: &EpochReport) -> ControlFlow<()> {
        let done = self.epochs.fetch_add(1, Ordering::Relaxed) + 1;
        if done == self.most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

#[test]
fn folds_that_were_stopped_go_on_to_the_same_report() {
    let (place, dataset) = (tempfile::tempdir().unwrap(), dataset());
    for protocol in Protocol::OF_FOLDS {
        let crossval = crossval(&dataset, protocol);
        let open = |name: &str| {
            let path = place.path().join(format!("{name}-{protocol}"));
            ResultFolder::open(&path, &crossval.plan(), &config(&dataset)).unwrap()
        };
        let whole = open("whole");
        let expected = crossval.run(&whole, &()).unwrap().unwrap();
        assert_eq!((expected.folds, expected.values.len(), expected.protocol), (3, 3, protocol));

        let mut epochs = 0;
        for most in [4, 2, usize::MAX] {
            // Whoever opens it again finds what was kept.
            let stopped = open("stopped");
            let observer = Impatient { most, epochs: 0.into(), folds: 0.into() };
            let report = crossval.run(&stopped, &observer).unwrap();
            epochs += observer.epochs.into_inner();
            match report {
                None => assert!(most < usize::MAX),
                Some(report) => {
                    let timeless = |report| CrossvalReport { seconds: 0.0, ..report };
                    assert_eq!(timeless(report), timeless(expected.clone()));
                    assert_eq!(
                        stopped.read::<CrossvalReport>(RESULT).unwrap().values,
                        expected.values
                    );
                }
            }
        }
        assert_eq!(epochs, 27, "no epoch is done twice");
        for fold in crossval.folds() {
            let record = |folder: &str| -> FoldRecord {
                let path = place.path().join(format!("{folder}-{protocol}")).join(fold.file());
                let mut record: FoldRecord =
                    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
                record.trial.seconds = 0.0;
                record
            };
            assert_eq!(record("stopped"), record("whole"), "{}", fold.name);
        }
    }
}

/// Stages below do not move while one above is trained, and it does not matter when training was stopped or on how many
/// threads it went on.
#[test]
fn layers_are_trained_one_after_the_other() {
    let (place, dataset) = (tempfile::tempdir().unwrap(), dataset());
    let crossval = crossval(&dataset, Protocol::Nested).with_stages(3);
    let open = |name: &str| {
        let path = place.path().join(name);
        ResultFolder::open(&path, &crossval.plan(), &config(&dataset)).unwrap()
    };
    let run = |folder: &ResultFolder, most: usize, threads: usize| {
        let observer = Impatient { most, epochs: 0.into(), folds: 0.into() };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let report = pool.install(|| crossval.run(folder, &observer)).unwrap();
        let timeless = |report| CrossvalReport { seconds: 0.0, ..report };
        (report.map(timeless), observer.epochs.into_inner())
    };
    let expected = run(&open("whole"), usize::MAX, 2);
    assert_eq!(expected.1, 81, "three stages of nine epochs in three folds");

    let (stopped, mut epochs) = (open("stopped"), 0);
    let below = |fold: usize| stopped.file(&format!("fold-{fold:02}-00001.stage-1.json"));
    let mut known: Option<Vec<u8>> = None;
    for (most, threads) in [(12, 1), (4, 3), (8, 1), (usize::MAX, 3)] {
        let (report, done) = run(&stopped, most, threads);
        epochs += done;
        if most < usize::MAX {
            assert_eq!(report, None);
            let found = std::fs::read(below(1)).unwrap();
            assert_eq!(known.get_or_insert_with(|| found.clone()), &found, "the first layer moves");
        } else {
            assert_eq!(report, expected.0);
        }
    }
    assert_eq!(epochs, 81, "no epoch is done twice");
    assert!(!below(1).exists(), "a fold that is done needs no stages");

    // The first stage is what there would be without the others.
    let weights = serde_json::from_slice::<crate::experiment::stages::Stage>(&known.unwrap());
    let fold = &crossval.folds()[0];
    let setup = Setup::with_split(&fold.candidates[0], &dataset, fold.split.clone()).unwrap();
    let trainer = crate::train::Trainer::new(setup.plan, &setup.model, &setup.data).unwrap();
    let alone = trainer.evaluating_held_out().run(&mut ()).unwrap();
    let alone: Vec<f64> = alone.weights.into_iter().map(f64::from).collect();
    assert_eq!(weights.unwrap().weights, alone);
}

/// What an ensemble is worth in a fold is what the saved models of its members are worth together, whenever it was stopped and
/// however many threads it went on with.
#[test]
fn members_are_averaged_as_their_saved_models_are() {
    let (place, dataset) = (tempfile::tempdir().unwrap(), dataset());
    for protocol in Protocol::OF_FOLDS {
        let crossval = crossval(&dataset, protocol).with_ensemble(3);
        let open = |name: &str| {
            let path = place.path().join(format!("{name}-{protocol}"));
            ResultFolder::open(&path, &crossval.plan(), &config(&dataset)).unwrap()
        };
        let run = |folder: &ResultFolder, most: usize, threads: usize| {
            let observer = Impatient { most, epochs: 0.into(), folds: 0.into() };
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let report = pool.install(|| crossval.run(folder, &observer)).unwrap();
            (
                report.map(|report| CrossvalReport { seconds: 0.0, ..report }),
                observer.epochs.into_inner(),
            )
        };
        let whole = open("whole");
        let expected = run(&whole, usize::MAX, 2);
        assert_eq!(expected.1, 81, "three members of nine epochs in three folds");
        let (stopped, mut epochs) = (open("stopped"), 0);
        for (most, threads) in [(12, 1), (4, 3), (8, 1), (usize::MAX, 3)] {
            let (report, done) = run(&stopped, most, threads);
            epochs += done;
            assert_eq!(report, if most < usize::MAX { None } else { expected.0.clone() });
        }
        assert_eq!(epochs, 81, "no epoch is done twice");
        let left: Vec<_> = std::fs::read_dir(stopped.path()).unwrap().collect();
        let of_members = left
            .iter()
            .filter(|file| file.as_ref().unwrap().file_name().to_string_lossy().contains("member"));
        assert_eq!(of_members.count(), 0, "a fold that is done needs no members");

        for (fold, record) in crossval.folds().iter().zip(crossval.records(&whole).unwrap()) {
            let models = [0, 1, 2].map(|seed| {
                let mut config = fold.candidates[0].clone();
                config.training.seed += seed;
                let setup = Setup::with_split(&config, &dataset, fold.split.clone()).unwrap();
                let trainer =
                    crate::train::Trainer::new(setup.plan.clone(), &setup.model, &setup.data);
                let trained = trainer.unwrap().evaluating_held_out().run(&mut ()).unwrap();
                SavedModel::new(&setup, &config, "clique", trained.epoch, trained.weights)
            });
            let predictions =
                SavedModel::ensemble(models.to_vec()).unwrap().predict(&dataset, true).unwrap();
            let targets = Level::Node.targets_of(&predictions.batch);
            let rows = fold.split.rows(&fold.split.test, Level::Node, &dataset);
            let (targets, outputs) = (
                targets.select(rows.iter().copied()),
                predictions.outputs.select(rows.iter().copied()),
            );
            let Metrics::Classes { accuracy, .. } = Metrics::of(&targets, &outputs).unwrap() else {
                panic!("cliques are classes")
            };
            assert_eq!(record.trial.ensemble, 3);
            assert_eq!(record.trial.test_value, Some(accuracy), "{protocol}, {}", fold.name);
            if protocol == Protocol::BestMeanEpoch {
                assert_eq!(
                    record.trial.test.last(),
                    Some(&accuracy),
                    "all are at their last epoch"
                );
            }
        }
    }
}

#[test]
fn a_metric_that_test_data_do_not_have_is_refused_before_anything_is_trained() {
    let dataset = CliqueConfig { graphs: 6, ..CliqueConfig::default() }.generate(1).unwrap();
    let mut config = config(&dataset);
    config.training.monitor = Monitor::R2;
    let division = Division { folds: 3, files: None, seed: 4 };
    let protocol = Protocol::BestMeanEpoch;
    let folds = division.folds(&dataset, Level::Node, protocol, &[config]).unwrap();
    assert_eq!(
        Crossval::new(&dataset, protocol, folds).unwrap_err().to_string(),
        "training.monitor is r2, which requires real targets that vary in the test split"
    );
}

#[test]
fn the_baseline_is_scored_by_the_same_metric() {
    let (place, dataset) = (tempfile::tempdir().unwrap(), dataset());
    let report = |monitor: Monitor| {
        let config = || {
            let mut config = config(&dataset);
            config.training.monitor = monitor;
            config
        };
        let division = Division { folds: 3, files: None, seed: 4 };
        let folds = division.folds(&dataset, Level::Node, Protocol::Nested, &[config()]).unwrap();
        let crossval = Crossval::new(&dataset, Protocol::Nested, folds).unwrap();
        let path = place.path().join(monitor.as_str());
        let folder = ResultFolder::open(&path, &crossval.plan(), &config()).unwrap();
        crossval.run(&folder, &()).unwrap().unwrap()
    };
    let [accuracy, auc] = [Monitor::Accuracy, Monitor::Auc].map(report);
    assert_eq!((accuracy.metric, auc.metric), (Monitor::Auto, Monitor::Auc));
    assert!(accuracy.majority.is_some() && auc.majority.is_none());
    // Features say nothing about cliques: without edges, ranking is as good as chance, while most nodes are in one class.
    assert!((auc.baseline.mean - 0.5).abs() < 0.05, "{:?}", auc.baseline);
    assert!(accuracy.baseline.mean > 0.55, "{:?}", accuracy.baseline);
}

#[test]
fn ranks_do_every_fold_once_and_the_first_one_waits_for_all() {
    let (place, dataset) = (tempfile::tempdir().unwrap(), dataset());
    let crossval = crossval(&dataset, Protocol::Nested);
    let open = |name: &str, share| {
        let path = place.path().join(name);
        ResultFolder::open_share(&path, &crossval.plan(), &config(&dataset), share).unwrap()
    };
    let whole = open("whole", Share::whole());
    let expected = crossval.run(&whole, &()).unwrap().unwrap();
    let observer = Impatient { most: usize::MAX, epochs: 0.into(), folds: 0.into() };
    let reports: Vec<Option<CrossvalReport>> = std::thread::scope(|scope| {
        let rank = |rank| {
            let folder = open("ranks", Share::of_rank(rank, 4).unwrap());
            let (crossval, observer) = (&crossval, &observer);
            scope.spawn(move || crossval.run(&folder, observer).unwrap())
        };
        let ranks: Vec<_> = (0..4).map(rank).collect();
        ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
    });
    let timeless = |report| CrossvalReport { seconds: 0.0, ..report };
    assert_eq!(timeless(reports[0].clone().unwrap()), timeless(expected));
    assert_eq!(observer.epochs.into_inner(), 27, "no epoch is done twice");
}

#[test]
fn a_shard_does_its_folds_and_no_others() {
    let (place, dataset) = (tempfile::tempdir().unwrap(), dataset());
    let crossval = crossval(&dataset, Protocol::Nested);
    let open = |shard: &str| {
        let share = Share::shard(shard.parse().unwrap());
        ResultFolder::open_share(place.path(), &crossval.plan(), &config(&dataset), share)
    };
    let folder = open("2/2").unwrap();
    assert!(crossval.run(&folder, &()).unwrap().is_none());
    let numbers = |names: Vec<TrialName>| names.iter().map(|name| name.number).collect::<Vec<_>>();
    assert_eq!(numbers(crossval.missing(&folder)), [1, 3]);
    assert!(crossval.collect(&folder).unwrap().is_none());
    let said = open("2/2").unwrap_err().to_string();
    assert!(said.ends_with("already has a process working on shard 2/2"), "{said}");
    assert!(crossval.run(&open("1/2").unwrap(), &()).unwrap().is_some());
}

#[test]
fn a_folder_has_results_of_one_plan() {
    let (place, dataset) = (tempfile::tempdir().unwrap(), dataset());
    let open = |protocol| {
        let plan = crossval(&dataset, protocol).plan();
        ResultFolder::open(place.path(), &plan, &config(&dataset))
    };
    let folder = open(Protocol::Nested).unwrap();
    assert!(matches!(open(Protocol::Nested), Err(Error::Locked { .. })));
    drop(folder);
    assert!(matches!(open(Protocol::BestMeanEpoch), Err(Error::Folder { .. })));
    assert!(open(Protocol::Nested).is_ok());
    // The same test splits, but others for validation.
    let mut other = crossval(&dataset, Protocol::Nested);
    let Split { train, val, .. } = &mut other.folds[1].split;
    std::mem::swap(&mut train[0], &mut val[0]);
    let other = ResultFolder::open(place.path(), &other.plan(), &config(&dataset));
    let said = other.unwrap_err().to_string();
    assert!(said.ends_with("has results for another split of the data"), "{said}");
}

/// What is told of the states is that of the worst fold, whoever computes them; and nothing where `f_a` may expand.
#[test]
fn a_report_bounds_how_far_states_are_from_their_fixed_point() {
    let (place, dataset) = (tempfile::tempdir().unwrap(), dataset());
    let run = |lipschitz, threads| {
        let mut config = config(&dataset);
        // A sum is bounded for the degrees of training graphs, and those of a test split may have larger ones.
        config.model.transition = "gnn-mean".into();
        config.training.lipschitz = lipschitz;
        let division = Division { folds: 3, files: None, seed: 4 };
        let folds = division.folds(&dataset, Level::Node, Protocol::Nested, &[config.clone()]);
        let crossval = Crossval::new(&dataset, Protocol::Nested, folds.unwrap()).unwrap();
        let path = place.path().join(format!("{lipschitz:?}-{threads}"));
        let folder = ResultFolder::open(&path, &crossval.plan(), &config).unwrap();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let report = pool.install(|| crossval.run(&folder, &())).unwrap().unwrap();
        (report, crossval.records(&folder).unwrap())
    };
    let (one, folds) = run(Some(0.9), 1);
    let of_folds: Vec<f64> = folds.iter().map(|fold| fold.trial.distance.unwrap()).collect();
    assert!(of_folds.iter().all(|distance| (1e-12..1.0).contains(distance)), "{of_folds:?}");
    assert_eq!(one.distance, of_folds.into_iter().reduce(f64::max));
    assert_eq!(run(Some(0.9), 3).0.distance, one.distance);
    assert_eq!(one.unbounded, 0);
    let without = run(None, 1).0;
    assert_eq!((without.distance, without.unbounded), (None, dataset.graphs()));

    let (mut folds, least) = (folds, 1e-12);
    (folds[0].trial.distance, folds[0].trial.unbounded) = (Some(least), 1);
    (folds[1].trial.distance, folds[1].trial.unbounded) = (None, 2);
    let report = CrossvalReport::new("clique", Protocol::Nested, 0, &folds).unwrap();
    assert_eq!((report.distance, report.unbounded), (folds[2].trial.distance, 3));
    // A report that was written before there was any bound.
    let mut before = serde_json::to_value(&one).unwrap();
    for name in ["distance", "unbounded"] {
        before.as_object_mut().unwrap().remove(name).unwrap();
    }
    assert_eq!(serde_json::from_value::<CrossvalReport>(before).unwrap().distance, None);
}

#[test]
fn a_fold_record_keeps_what_is_not_a_number() {
    let trial = TrialRecord {
        epochs: vec![1, 2],
        val: vec![f64::NEG_INFINITY, 0.1],
        test: vec![-0.5, f64::NAN],
        test_value: Some(f64::NAN),
        residual: Some(f64::INFINITY),
        ..TrialRecord::default()
    };
    let name = TrialName { kind: crate::experiment::TrialKind::Seed, number: 7 };
    let fold = FoldRecord::new(name, 0, trial, &BaselineReport::default(), None);
    let text = serde_json::to_string(&fold).unwrap();
    let again: FoldRecord = serde_json::from_str(&text).unwrap();
    assert_eq!(again.name.to_string(), "seed 7");
    assert!(again.trial.test[1].is_nan() && again.trial.test_value.is_some_and(f64::is_nan));
    assert_eq!((again.trial.val_value, again.majority), (None, None));
    assert_eq!(
        (again.trial.val[0], again.trial.residual),
        (f64::NEG_INFINITY, Some(f64::INFINITY))
    );
}
