//! Nodes without neighbours.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use lpgnn::data::Split;
use lpgnn::graph::{Features, GraphBatch, Level, OneHot, Targets};
use lpgnn::lagrangian::{ReadFrom, Reads};
use lpgnn::train::{
    EpochReport, ModelConfig, SplitName, Trainer, TrainerState, TrainingConfig, TrainingData,
};
use lpgnn::transition::Isolated;

/// 60 graphs of one node, whose class is its feature.
fn graphs() -> GraphBatch<f32> {
    let graph = |class: u32| {
        let feature = Features::OneHot(OneHot::new(3, vec![class]).unwrap());
        let target = Targets::classes(3, vec![class]).unwrap();
        GraphBatch::of_graph(feature, &[]).unwrap().with_graph_targets(target).unwrap()
    };
    GraphBatch::union(&(0..60).map(|i| graph(i % 3)).collect::<Vec<_>>()).unwrap()
}

fn accuracy(transition: &str, isolated: Isolated) -> f64 {
    let graphs = graphs();
    let (train, test) = ((0..30).collect(), (30..60).collect());
    let split = Split { level: Level::Graph, train, val: vec![], test };
    let data = TrainingData::new(&graphs, &split, Level::Graph).unwrap();
    let reads = Reads { from: ReadFrom::Transition, ..Reads::default() };
    let model =
        ModelConfig { transition: transition.into(), isolated, reads, ..ModelConfig::default() };
    let model = model.build(data.dims()).unwrap();
    let plan = TrainingConfig { epochs: 60, ..TrainingConfig::default() }.check().unwrap();
    let mut watch = |_: &EpochReport, _: &TrainerState| std::ops::ControlFlow::Continue(());
    let trained = Trainer::new(plan, &model, &data).unwrap().run(&mut watch).unwrap();
    let evaluation = trained.evaluation.unwrap();
    evaluation.of(SplitName::Test).unwrap().accuracy.unwrap()
}

#[test]
fn a_node_without_neighbours_is_told_by_its_features() {
    for transition in ["gnn-sum", "gnn-mean", "gnn-normalized", "sage-max", "gin", "gcn"] {
        let found = accuracy(transition, Isolated::SelfLoop);
        assert!(found > 0.99, "{transition:?}: {found}");
    }
}

#[test]
fn a_sum_over_nothing_tells_nothing() {
    for transition in ["gnn-sum", "gnn-mean", "sage-max"] {
        let found = accuracy(transition, Isolated::Zero);
        assert!(found < 0.5, "{transition:?}: {found}");
    }
}

#[test]
fn an_isolated_node_is_counted_once() {
    let graphs = graphs();
    assert_eq!(graphs.neighbours().isolated().len(), 60);
    assert!(graphs.select(&[3, 7]).neighbours().is_isolated(1));
}
