//! Rings, cliques and random walks as features: they tell apart what neighbours alone cannot, on new graphs too.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::ops::ControlFlow;

use lpgnn::data::{Categories, Dataset, DatasetParts, FeatureColumns, Split, TargetColumn};
use lpgnn::graph::{Features, Level};
use lpgnn::live::{LiveData, LiveOptions};
use lpgnn::run::{RunConfig, SavedModel, Setting, Setup};
use lpgnn::train::{EpochReport, Trainer, TrainerState};

/// Rings of six, and pairs of triangles, in turn: all nodes have two neighbours, which have two, and so on.
fn hexagons_and_triangles(count: usize) -> Dataset {
    let hexagon = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (0, 5)];
    let triangles = [(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5)];
    in_turn(count, &hexagon, &triangles)
}

/// Graphs of six nodes of two kinds, in turn.
fn in_turn(count: usize, one: &[(u32, u32)], other: &[(u32, u32)]) -> Dataset {
    let mut edges: Vec<(u32, u32)> = vec![];
    for graph in 0..count {
        let first = u32::try_from(6 * graph).unwrap();
        let of = if graph % 2 == 0 { one } else { other };
        edges
            .extend(of.iter().flat_map(|&(u, v)| [(first + u, first + v), (first + v, first + u)]));
    }
    edges.sort_unstable();
    let classes: Vec<i64> = (0..count).map(|graph| i64::from(graph % 2 == 1)).collect();
    let part = |k: usize| (0..count).filter(|graph| graph / 2 % 3 == k).collect();
    Dataset::new(DatasetParts {
        name: "rings".into(),
        node_starts: (0..=count).map(|graph| 6 * graph).collect(),
        edge_features: FeatureColumns::none(edges.len()),
        edges,
        node_features: FeatureColumns::none(6 * count),
        node_targets: None,
        graph_targets: Some(TargetColumn::Classes(Categories::from_integers("y", &classes))),
        split: Some(Split { level: Level::Graph, train: part(0), val: part(1), test: part(2) }),
    })
    .unwrap()
}

fn config(dataset: &Dataset, settings: &[&str]) -> RunConfig {
    let all = ["training.epochs=150", "training.patience=none"].iter().chain(settings);
    let settings: Vec<Setting> = all.map(|text| Setting::parse("test", text).unwrap()).collect();
    RunConfig::for_data("rings", dataset, &settings).with(&settings).unwrap()
}

/// The trained model, read from its file.
fn trained(dataset: &Dataset, settings: &[&str]) -> SavedModel {
    let config = config(dataset, settings);
    let setup = Setup::new(&config, dataset).unwrap();
    let trainer = Trainer::new(setup.plan.clone(), &setup.model, &setup.data).unwrap();
    let mut observer = |_: &EpochReport, _: &TrainerState| ControlFlow::Continue(());
    let weights = trainer.run(&mut observer).unwrap().weights;
    let saved = SavedModel::new(&setup, &config, "rings", dataset.graphs(), weights);
    SavedModel::from_bytes(&saved.to_bytes().unwrap()).unwrap()
}

/// How many graphs are predicted correctly.
fn correct(model: &SavedModel, dataset: &Dataset) -> usize {
    let outputs = model.predict(dataset, false).unwrap().outputs;
    let right = |graph: &usize| {
        let row = outputs.row(*graph);
        usize::from(row[1] > row[0]) == graph % 2
    };
    (0..dataset.graphs()).filter(right).count()
}

#[test]
fn rings_tell_apart_what_neighbours_cannot() {
    let (known, new) = (hexagons_and_triangles(12), hexagons_and_triangles(30));
    // One prediction for all: half of them are right.
    assert_eq!(correct(&trained(&known, &["model.layers=3"]), &new), 15);
    for setting in
        ["features.structure.rings=6", "features.structure.cliques=3", "features.structure.walks=3"]
    {
        assert_eq!(correct(&trained(&known, &[setting]), &new), 30, "{setting}");
    }
    let edges = ["features.structure.rings=3", "features.structure.edges=true"];
    assert_eq!(correct(&trained(&known, &edges), &new), 30);
}

#[test]
fn counts_beyond_those_of_training_count_as_the_largest() {
    let known = hexagons_and_triangles(12);
    let settings = ["features.structure.rings=6", "features.structure.cliques=5"];
    let setup = Setup::new(&config(&known, &settings), &known).unwrap();
    // Degree 2 in three columns; 3-rings and 6-rings: none or one. What does not occur has no columns.
    assert_eq!(setup.encoding.node_width(), 3 + 2 + 2);
    assert!(setup.encoding.reads_structure());
    let encoded = setup.encoding.batch::<f32>(&known).unwrap();
    let row = |v: usize| encoded.node_features().entries(v).collect::<Vec<_>>();
    assert_eq!(row(0), [(2, 1.0), (3, 1.0), (6, 1.0)]);
    assert_eq!(row(6), [(2, 1.0), (4, 1.0), (5, 1.0)]);
    // Four nodes that are all joined: three triangles at each, more than were seen.
    let all = (0..4_u32)
        .flat_map(|u| (0..4).filter(move |&v| u != v).map(move |v| (u, v)))
        .collect::<Vec<_>>();
    let clique = Dataset::new(DatasetParts {
        name: "clique".into(),
        node_starts: vec![0, 4],
        edge_features: FeatureColumns::none(all.len()),
        edges: all,
        node_features: FeatureColumns::none(4),
        node_targets: None,
        graph_targets: None,
        split: None,
    });
    let encoded = setup.encoding.batch_without_targets::<f32>(&clique.unwrap()).unwrap();
    assert!(matches!(encoded.node_features(), Features::Sparse(_)));
    assert_eq!(
        encoded.node_features().entries(0).collect::<Vec<_>>(),
        [(2, 1.0), (4, 1.0), (5, 1.0)]
    );
}

#[test]
fn live_graphs_refuse_what_changes_far_from_an_event() {
    let known = hexagons_and_triangles(12);
    for (settings, named, refusal) in [
        (
            ["features.structure.rings=6"],
            "rings, cliques or random walks",
            "a live graph cannot keep",
        ),
        (["model.normalization=graph-norm"], "GraphNorm", "live graphs do not support it"),
    ] {
        let model = trained(&known, &settings);
        let error = LiveData::new(&model, &known, &LiveOptions::default()).unwrap_err().to_string();
        assert!(error.contains(named) && error.contains(refusal), "{error}");
    }
}

#[test]
fn sizes_that_there_are_not_are_refused() {
    let known = hexagons_and_triangles(12);
    for (setting, expected) in [
        ("features.structure.rings=2", "rings is 2, but 0 or an integer from 3 to 6 is expected"),
        (
            "features.structure.cliques=1",
            "cliques is 1, but 0 or an integer from 3 to 5 is expected",
        ),
        ("features.structure.walks=1", "walks is 1, but 0 or an integer from 2 to 64 is expected"),
    ] {
        let error = Setup::new(&config(&known, &[setting]), &known).unwrap_err().to_string();
        assert_eq!(error, expected);
    }
}

/// The sum of a graph's nodes is read, and it may not be rounding alone.
#[test]
fn a_normalised_model_learns_with_the_defaults() {
    let star = [(0, 1), (0, 2), (0, 3), (0, 4), (0, 5)];
    let path = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)];
    let known = in_turn(12, &star, &path);
    for layers in ["model.layers=1", "model.layers=3"] {
        let settings = ["model.normalization=graph-norm", layers, "training.epochs=30"];
        let config = config(&known, &settings);
        let setup = Setup::new(&config, &known).unwrap();
        let trainer = Trainer::new(setup.plan.clone(), &setup.model, &setup.data).unwrap();
        let mut losses = vec![];
        let mut observer = |report: &EpochReport, _: &TrainerState| {
            losses.push(report.loss);
            ControlFlow::Continue(())
        };
        trainer.run(&mut observer).unwrap();
        let largest = losses.iter().copied().fold(0.0, f64::max);
        assert!(largest <= 2.0 * losses[0], "{layers}: {losses:?}");
        assert!(losses[29] < 0.1 * losses[0], "{layers}: {losses:?}");
        let new = in_turn(30, &star, &path);
        assert_eq!(correct(&trained(&known, &settings), &new), 30, "{layers}");
    }
}

#[test]
fn a_normalised_model_is_the_same_from_its_file() {
    let known = hexagons_and_triangles(12);
    let settings =
        ["model.normalization=graph-norm", "model.layers=3", "features.structure.rings=6"];
    let config = config(&known, &settings);
    let setup = Setup::new(&config, &known).unwrap();
    let trainer = Trainer::new(setup.plan.clone(), &setup.model, &setup.data).unwrap();
    let mut observer = |_: &EpochReport, _: &TrainerState| ControlFlow::Continue(());
    let weights = trainer.run(&mut observer).unwrap().weights;
    let saved = SavedModel::new(&setup, &config, "rings", known.graphs(), weights);
    let model = SavedModel::from_bytes(&saved.to_bytes().unwrap()).unwrap();
    assert_eq!(model.functions().normalizations().len(), 3);
    let names: Vec<String> =
        model.functions().parameters().iter().map(|(p, _)| p.name().to_owned()).collect();
    assert!(names.iter().any(|name| name == "normalization.2.norm.mean_scale"), "{names:?}");
    let new = hexagons_and_triangles(30);
    let outputs = |model: &SavedModel| model.predict(&new, false).unwrap().outputs;
    assert_eq!(outputs(&model), outputs(&saved));
}
