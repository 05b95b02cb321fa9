//! Sample weights: 0 leaves a target out of the loss, 2 counts it twice.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use crate::common::{FORMS, POOLINGS, Recipe, TRANSITIONS, graph, model, point};
use lpgnn::data::generate::CliqueConfig;
use lpgnn::data::{Dataset, Level, SampleWeights};
use lpgnn::graph::{GraphBatch, Targets};
use lpgnn::lagrangian::{
    Evaluation, Lagrangian, Model, Multipliers, Objective, Request, Scale, Variables, Weighing,
};
use lpgnn::readout::Supervision;
use lpgnn::run::{RunConfig, Setting, Setup};
use lpgnn::train::{EpochReport, Trainer, TrainerState};
use lpgnn::{Matrix, Scratch};

/// The loss and the gradient, without the constraint term, of graphs that are at the same states as in `all`.
fn evaluate(
    model: &Model<f64>,
    (all, at): (&GraphBatch<f64>, &Variables<f64>),
    chosen: &[usize],
    weigh: impl Fn(Supervision<f64>) -> Supervision<f64>,
    loss: Scale,
) -> (Evaluation, Vec<f64>) {
    let graphs = all.select(chosen);
    let nodes: Vec<usize> = chosen.iter().flat_map(|&graph| all.nodes_of(graph)).collect();
    let states = at.states.iter().map(|x| x.select(nodes.iter().copied())).collect();
    let at = Variables { states, ..model.zeros(nodes.len(), at.weights.clone()) };
    let targets = model.readout().level().targets_of(&graphs).clone();
    let supervision = weigh(Supervision::all(targets));
    let (weighing, scratch) = (Weighing { loss, ..Weighing::default() }, Scratch::new());
    let lagrangian = Lagrangian::new(model, &graphs, &supervision, weighing, &scratch).unwrap();
    let mut gradient = at.zeros_like();
    (lagrangian.evaluate(&at, Request::ALL, &mut gradient), gradient.weights)
}

/// Once with classes, once with real values.
fn batches(seed: usize) -> [GraphBatch<f64>; 2] {
    let graphs: Vec<GraphBatch<f64>> =
        (0..3).map(|i| graph((seed + i) as u64, 3 + i, 0.5, FORMS[seed % 3])).collect();
    let classes = GraphBatch::union(&graphs).unwrap();
    let values = |rows: usize| {
        let entries = (0..3 * rows).map(|i| (i as f64 * 1.3).sin()).collect();
        Targets::Values(Matrix::from_entries(rows, 3, entries).unwrap())
    };
    let nodes = classes.nodes();
    let real = classes.clone().with_node_targets(values(nodes)).unwrap();
    [classes, real.with_graph_targets(values(3)).unwrap()]
}

#[test]
fn a_weight_of_two_is_the_graph_twice_and_a_weight_of_zero_is_none() {
    for transition in 0..TRANSITIONS {
        for (seed, pooling) in POOLINGS.into_iter().enumerate() {
            let multipliers = Multipliers::PerComponent;
            let recipe = Recipe { transition, multipliers, pooling, ..Recipe::default() };
            let model = model::<f64>(&recipe);
            for all in batches(seed) {
                let at = point(&model, all.nodes(), seed as u64);
                let per_graph = [1.0, 2.0, 0.0];
                let weights: Vec<f32> = match model.readout().level() {
                    Level::Graph => per_graph.to_vec(),
                    Level::Node => (0..3)
                        .flat_map(|graph| all.nodes_of(graph).map(move |_| per_graph[graph]))
                        .collect(),
                };
                for loss in [Scale::Sum, Scale::Mean] {
                    let same = |supervision| supervision;
                    let (twice, d_twice) = evaluate(&model, (&all, &at), &[0, 1, 1], same, loss);
                    let weigh =
                        |supervision: Supervision<f64>| supervision.with_weights(&weights).unwrap();
                    let (weighed, d_weighed) =
                        evaluate(&model, (&all, &at), &[0, 1, 2], weigh, loss);
                    assert!((twice.loss - weighed.loss).abs() < 1e-12 * twice.loss.abs());
                    let apart = d_twice.iter().zip(&d_weighed).map(|(a, b)| (a - b).abs());
                    assert!(apart.fold(0.0, f64::max) < 1e-12, "{transition}, {pooling:?}");
                }
            }
        }
    }
}

fn dataset() -> Dataset {
    CliqueConfig { graphs: 8, ..CliqueConfig::default() }.generate(3).unwrap()
}

/// The weights that training leads to.
fn train(dataset: &Dataset, settings: &[&str]) -> Vec<u32> {
    let settings: Vec<Setting> =
        settings.iter().map(|text| Setting::parse("test", text).unwrap()).collect();
    let config = RunConfig::for_data("clique", dataset, &settings).with(&settings).unwrap();
    let setup = Setup::new(&config, dataset).unwrap();
    let trainer = Trainer::new(setup.plan.clone(), &setup.model, &setup.data).unwrap();
    let mut watch = |_: &EpochReport, _: &TrainerState| std::ops::ControlFlow::Continue(());
    let weights = trainer.run(&mut watch).unwrap().weights;
    weights.iter().map(|weight| weight.to_bits()).collect()
}

fn weighed(dataset: &Dataset, weight: impl Fn(usize) -> f32) -> Dataset {
    let weights = (0..dataset.nodes()).map(weight).collect();
    let weights = SampleWeights::new(Level::Node, weights).unwrap();
    dataset.clone().with_weights(Some(weights)).unwrap()
}

#[test]
fn training_weighs_what_the_data_weigh() {
    let dataset = dataset();
    for batches in [&["training.epochs=6"][..], &["training.epochs=6", "training.batch-size=3"]] {
        let mean = [batches, &["training.weighing.loss=mean"]].concat();
        assert_eq!(train(&dataset, batches), train(&weighed(&dataset, |_| 1.0), batches));
        // The same mean, to the last bit.
        assert_eq!(train(&dataset, &mean), train(&weighed(&dataset, |_| 4.0), &mean));
        let some = weighed(&dataset, |node| if node % 3 == 0 { 3.0 } else { 0.5 });
        assert_ne!(train(&dataset, batches), train(&some, batches));
    }
}

#[test]
fn targets_of_no_weight_might_as_well_be_unknown() {
    let dataset = dataset();
    let lpgnn::data::TargetColumn::Classes(classes) = dataset.node_targets().unwrap() else {
        panic!("nodes have classes")
    };
    let unknown = classes.codes().iter().enumerate();
    let unknown = unknown.map(|(v, &code)| if v % 3 == 0 { lpgnn::graph::NO_TARGET } else { code });
    let (name, values) = (classes.name().to_owned(), classes.values().to_vec());
    let unknown = lpgnn::data::Categories::from_codes(name, values, unknown.collect()).unwrap();
    let unknown = lpgnn::data::TargetColumn::Classes(unknown);
    let unknown = dataset.clone().with_targets(Some(unknown), None).unwrap();
    let none = weighed(&dataset, |node| if node % 3 == 0 { 0.0 } else { 1.0 });
    // Without validation, since metrics are of all that have a target.
    let settings =
        ["training.epochs=6", "split.source=ratio", "split.train=1", "split.val=0", "split.test=0"];
    assert_eq!(train(&unknown, &settings), train(&none, &settings));
}

#[test]
fn weights_that_do_not_fit_are_refused() {
    let dataset = dataset();
    assert!(SampleWeights::new(Level::Node, vec![1.0, -1.0]).is_err());
    assert!(SampleWeights::new(Level::Node, vec![f32::NAN]).is_err());
    let few = SampleWeights::new(Level::Node, vec![1.0; 3]).unwrap();
    assert!(dataset.clone().with_weights(Some(few)).is_err());
    let of_graphs = SampleWeights::new(Level::Graph, vec![1.0; dataset.graphs()]).unwrap();
    let of_graphs = dataset.clone().with_weights(Some(of_graphs)).unwrap();
    for (data, expected) in [
        (of_graphs, "the sample weights are those of graphs, but nodes are predicted"),
        (weighed(&dataset, |_| 0.0), "the sample weights of all nodes of the training split"),
    ] {
        let said = Setup::new(&RunConfig::for_data("clique", &data, &[]), &data).unwrap_err();
        assert!(said.to_string().starts_with(expected), "{said}");
    }
    let said = weighed(&dataset, |_| 1.0).join(&dataset).unwrap_err().to_string();
    assert!(said.starts_with("the sample weights differ"), "{said}");
    let joined = weighed(&dataset, |_| 1.0).join(&weighed(&dataset, |_| 2.0)).unwrap();
    let joined = joined.weights().unwrap().as_slice();
    assert_eq!(
        (joined.len(), joined[0], joined[joined.len() - 1]),
        (2 * dataset.nodes(), 1.0, 2.0)
    );
}
