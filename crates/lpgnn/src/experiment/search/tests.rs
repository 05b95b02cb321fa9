use super::*;
use crate::Matrix;
use crate::data::{DatasetParts, FeatureColumns, TargetColumn};
use crate::experiment::run::Run;
use crate::train::SplitName;

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
