use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Mutex;

use super::*;
use crate::Matrix;
use crate::data::generate::CliqueConfig;
use crate::data::{DatasetParts, FeatureColumns, TargetColumn};
use crate::evaluate::Metrics;
use crate::experiment::TrialObserver;
use crate::experiment::record::FinalEvaluation;
use crate::experiment::run::Run;
use crate::train::{EpochReport, Monitor, SplitName, StopReason};

/// Pairs of nodes, and around a thousand to be predicted of each.
fn dataset() -> Dataset {
    let graphs = 24;
    let feature: Vec<f32> = (0..2 * graphs).map(|node: u8| f32::from(node % 7)).collect();
    let target: Vec<f32> =
        feature.chunks(2).map(|pair| 1000.0 + 50.0 * (pair[0] + pair[1])).collect();
    let graphs = usize::from(graphs);
    let values = Matrix::from_entries(2 * graphs, 1, feature).unwrap();
    Dataset::new(DatasetParts {
        name: "pairs".into(),
        node_starts: (0..=graphs).map(|graph| 2 * graph).collect(),
        edges: (0..24).map(|graph| (2 * graph, 2 * graph + 1)).collect(),
        node_features: FeatureColumns::none(2 * graphs)
            .with_values(vec!["a".into()], values)
            .unwrap(),
        edge_features: FeatureColumns::none(graphs),
        node_targets: None,
        graph_targets: Some(TargetColumn::Values {
            names: vec!["y".into()],
            values: Matrix::from_entries(graphs, 1, target).unwrap(),
        }),
        split: None,
    })
    .unwrap()
}

#[test]
fn the_winner_is_evaluated_in_the_units_it_was_trained_in() {
    let (place, dataset) = (tempfile::tempdir().unwrap(), dataset());
    let file = place.path().join("space.toml");
    std::fs::write(&file, "[values]\n\"model.state-dim\" = [3, 4]\n").unwrap();
    let space = Space::find(file.to_str().unwrap()).unwrap();
    let mut config = RunConfig::for_data("pairs", &dataset, &[]);
    config.training.epochs = 12;
    let options = SearchOptions { min_epochs: 4, ..SearchOptions::default() };
    let search = Search::new(&dataset, config.clone(), &space, options).unwrap();
    assert_eq!(search.rounds().len(), 2);
    let folder = ResultFolder::open(&place.path().join("found"), &search.plan(), &config).unwrap();
    let found = search.run(&folder, &()).unwrap().unwrap();
    assert!(found.complete);
    assert_eq!(folder.read::<SearchRecord>(RESULT).unwrap(), found);

    let winner = search.trials()[found.trial - 1].clone();
    let run = Run::create(&place.path().join("run"), winner, &dataset).unwrap();
    let evaluation = run.train(&mut ()).unwrap().evaluation.unwrap();
    let loss = |split| evaluation.of(split).unwrap().loss;
    assert_eq!(found.val, Some(-loss(SplitName::Val)));
    let difference = found.test_of_the_winner.unwrap() + loss(SplitName::Test);
    assert!(difference.abs() < 1e-3, "{found:?} {evaluation:?}");
}

#[test]
fn trials_are_compared_by_the_metric_that_is_monitored() {
    let dataset = CliqueConfig { graphs: 20, ..CliqueConfig::default() }.generate(3).unwrap();
    let place = tempfile::tempdir().unwrap();
    let space = space("[values]\n\"model.state-dim\" = [3, 4, 5]\n");
    for monitor in [Monitor::Auc, Monitor::MacroF1, Monitor::Loss] {
        let mut config = RunConfig::for_data("clique", &dataset, &[]);
        (config.training.epochs, config.training.monitor) = (20, monitor);
        let options = SearchOptions { min_epochs: 10, ..SearchOptions::default() };
        let search = Search::new(&dataset, config.clone(), &space, options).unwrap();
        let path = place.path().join(monitor.as_str());
        let folder = ResultFolder::open(&path, &search.plan(), &config).unwrap();
        let found = search.run(&folder, &()).unwrap().unwrap();
        let model = SavedModel::read(&folder.file(RunFolder::MODEL)).unwrap();
        let evaluation = FinalEvaluation::new(&model, &dataset, search.split()).unwrap();
        let value = |split| match (monitor, evaluation.of(split).unwrap()) {
            (Monitor::Auc, Metrics::Classes { auc, .. }) => auc.unwrap(),
            (Monitor::MacroF1, Metrics::Classes { macro_f1, .. }) => *macro_f1,
            // The loss selects the epoch alone.
            (Monitor::Loss, Metrics::Classes { accuracy, .. }) => *accuracy,
            _ => panic!("classes"),
        };
        let expected = if monitor == Monitor::Loss { Monitor::Auto } else { monitor };
        assert_eq!(found.metric, expected);
        let found = [found.val, found.test_of_the_winner].map(Option::unwrap);
        let expected = [SplitName::Val, SplitName::Test].map(value);
        for (found, expected) in found.into_iter().zip(expected) {
            assert!((found - expected).abs() < 1e-3, "{monitor:?}: {found} is not {expected}");
        }
    }
}

/// Every epoch that is trained, by trial.
#[derive(Default)]
struct Epochs(Mutex<BTreeMap<u64, Vec<usize>>>);

impl ExperimentObserver for Epochs {
    fn trial(&self, name: TrialName, _: usize, _: usize) -> Box<dyn TrialObserver + '_> {
        Box::new(EpochsOf(self, name.number))
    }
}

struct EpochsOf<'a>(&'a Epochs, u64);

impl TrialObserver for EpochsOf<'_> {
    fn epoch(&mut self, report: &EpochReport) -> ControlFlow<()> {
        let mut all = self.0.0.lock().unwrap();
        all.entry(self.1).or_default().push(report.epoch);
        ControlFlow::Continue(())
    }
}

fn space(text: &str) -> Space {
    Space::from_json("space", toml::from_str(text).unwrap()).unwrap()
}

#[test]
fn no_epoch_is_trained_twice_and_a_trial_that_has_stopped_early_not_again() {
    let (place, dataset) = (tempfile::tempdir().unwrap(), dataset());
    let space = space("[values]\n\"training.solver.weights.lr\" = [1e-9, 1e-8, 0.01, 0.02]\n");
    let mut config = RunConfig::for_data("pairs", &dataset, &[]);
    config.training.epochs = 90;
    config.training.eval_every = 1;
    config.training.patience = Some(3);
    let options = SearchOptions { min_epochs: 5, ..SearchOptions::default() };
    let search = Search::new(&dataset, config.clone(), &space, options).unwrap();
    assert!(search.rounds().len() > 2);
    let folder = ResultFolder::open(&place.path().join("found"), &search.plan(), &config).unwrap();
    let epochs = Epochs::default();
    let found = search.run(&folder, &epochs).unwrap().unwrap();
    let early = |trial: &RankedTrial| trial.result.stop_reason == Some(StopReason::NoImprovement);
    assert!(found.ranked.iter().any(early), "{found:?}");
    for (trial, epochs) in epochs.0.into_inner().unwrap() {
        let once: Vec<usize> = (1..=epochs.len()).collect();
        assert_eq!(epochs, once, "trial {trial}");
    }
}

#[test]
fn the_result_of_another_trial_is_not_taken() {
    let (place, dataset) = (tempfile::tempdir().unwrap(), dataset());
    let space = space("[values]\n\"model.state-dim\" = [3, 4]\n");
    let mut config = RunConfig::for_data("pairs", &dataset, &[]);
    config.training.epochs = 2;
    let search = Search::new(&dataset, config.clone(), &space, SearchOptions::default()).unwrap();
    let folder = ResultFolder::open(&place.path().join("found"), &search.plan(), &config).unwrap();
    search.run(&folder, &()).unwrap();
    std::fs::copy(folder.file(&file(1, 1)), folder.file(&file(0, 1))).unwrap();
    let error = search.run(&folder, &()).unwrap_err().to_string();
    let expected = "trial-00001-of-1.json: it is the result of trial 2, not of this one";
    assert!(error.ends_with(expected), "{error}");
}

#[test]
fn a_budget_for_more_trials_than_there_are_is_noticed() {
    let dataset = dataset();
    let space = space("method = \"random\"\n[values]\n\"model.state-dim\" = [3, 4]\n");
    let config = RunConfig::for_data("pairs", &dataset, &[]);
    let search = |trials| {
        let budget = Some(Budget::Trials(trials));
        let options = SearchOptions { budget, ..SearchOptions::default() };
        Search::new(&dataset, config.clone(), &space, options).unwrap()
    };
    assert!(search(5).exhausts_space() && search(5).trials().len() == 2);
    assert!(!search(2).exhausts_space());
}
