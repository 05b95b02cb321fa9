//! What must hold for any graph: names of nodes do not matter, graphs do not see each other.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "numbers here are tiny"
)]

use crate::common::{
    CLASSES, EDGE_FEATURE, FORMS, Form, LABEL, POOLINGS, Recipe, TRANSITIONS, model, point,
};
use lpgnn::graph::{Features, GraphBatch, Targets};
use lpgnn::lagrangian::{
    Evaluation, Lagrangian, Model, Multipliers, Objective, ReadLayers, Reads, Request, Variables,
    Weighing,
};
use lpgnn::readout::Supervision;
use lpgnn::{Matrix, Scratch, check};
use proptest::prelude::*;

fn evaluate(
    model: &Model<f64>,
    graphs: &GraphBatch<f64>,
    at: &Variables<f64>,
) -> (Evaluation, Variables<f64>) {
    let supervision = Supervision::all(model.readout().level().targets_of(graphs).clone());
    let scratch = Scratch::new();
    let lagrangian =
        Lagrangian::new(model, graphs, &supervision, Weighing::default(), &scratch).unwrap();
    let mut gradient = at.zeros_like();
    (lagrangian.evaluate(at, Request::ALL, &mut gradient), gradient)
}

fn near(a: &[f64], b: &[f64]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-10)
}

fn rows(matrices: &[Matrix<f64>], nodes: &[usize]) -> Vec<Matrix<f64>> {
    matrices.iter().map(|matrix| matrix.select(nodes.iter().copied())).collect()
}

fn recipe(transition: usize, readout: usize, layers: usize) -> Recipe {
    Recipe {
        transition,
        layers,
        pooling: POOLINGS[readout],
        multipliers: Multipliers::PerComponent,
        reads: Reads { layers: ReadLayers::All, ..Reads::default() },
        ..Recipe::default()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn renumbering_the_nodes_renumbers_the_result(
        seed in 0..10_000_u64, nodes in 1..8_usize, density in 0.0..0.8_f64,
        transition in 0..TRANSITIONS, readout in 0..4_usize, layers in 1..3_usize,
    ) {
        // Node `new[v]` of the second graph is node `v` of the first.
        let mut draw = check::uniform(seed);
        let mut new: Vec<usize> = (0..nodes).collect();
        for i in (1..nodes).rev() {
            new.swap(i, (draw() * (i + 1) as f64) as usize);
        }
        let mut old = vec![0; nodes];
        for (v, &n) in new.iter().enumerate() {
            old[n] = v;
        }
        let mut edges = vec![];
        for u in 0..nodes as u32 {
            for v in 0..nodes as u32 {
                if draw() < density {
                    edges.push((u, v));
                }
            }
        }
        let mut dense = |rows: usize, width: usize| {
            let entries = (0..rows * width).map(|_| draw() - 0.5).collect();
            Matrix::from_entries(rows, width, entries).unwrap()
        };
        let (features, edge_features) = (dense(nodes, LABEL), Features::Dense(dense(edges.len(), EDGE_FEATURE)));
        let class: Vec<u32> = (0..nodes).map(|v| (v % CLASSES) as u32).collect();
        let graph = |order: &[usize], edges: &[(u32, u32)]| {
            let features = Features::Dense(features.select(order.iter().copied()));
            let class = order.iter().map(|&v| class[v]).collect();
            let graph = GraphBatch::of_graph_with_edges(features, edges, &edge_features).unwrap();
            let graph = graph.with_node_targets(Targets::classes(CLASSES, class).unwrap()).unwrap();
            let graph = graph.with_graph_targets(Targets::classes(CLASSES, vec![1]).unwrap()).unwrap();
            GraphBatch::union(&[graph]).unwrap()
        };
        let same: Vec<usize> = (0..nodes).collect();
        let renamed: Vec<(u32, u32)> =
            edges.iter().map(|&(u, v)| (new[u as usize] as u32, new[v as usize] as u32)).collect();
        let (first, second) = (graph(&same, &edges), graph(&old, &renamed));

        let model = model::<f64>(&recipe(transition, readout, layers));
        let at = point(&model, nodes, seed);
        let moved = Variables {
            weights: at.weights.clone(),
            states: rows(&at.states, &old),
            multipliers: rows(&at.multipliers, &old),
        };
        let (a, d_a) = evaluate(&model, &first, &at);
        let (b, d_b) = evaluate(&model, &second, &moved);
        prop_assert!((a.value() - b.value()).abs() < 1e-10);
        prop_assert!(near(&d_a.weights, &d_b.weights));
        for k in 0..layers {
            let states = d_a.states[k].select(old.iter().copied());
            let multipliers = d_a.multipliers[k].select(old.iter().copied());
            prop_assert!(near(states.as_slice(), d_b.states[k].as_slice()));
            prop_assert!(near(multipliers.as_slice(), d_b.multipliers[k].as_slice()));
        }
    }

    #[test]
    fn a_batch_is_its_graphs_one_by_one(
        seed in 0..10_000_u64, transition in 0..TRANSITIONS, readout in 0..4_usize,
        layers in 1..3_usize, form in 0..3_usize, work in 1..50_usize,
    ) {
        let graphs: Vec<GraphBatch<f64>> = [(4, 0.4), (0, 0.0), (6, 0.2), (1, 1.0), (2, 0.0)]
            .iter()
            .enumerate()
            .map(|(i, &(nodes, density))| {
                crate::common::graph(seed + i as u64, nodes, density, FORMS[form])
            })
            .collect();
        let all = GraphBatch::union(&graphs).unwrap().with_groups_of(work);
        let model = model::<f64>(&recipe(transition, readout, layers));
        let at = point(&model, all.nodes(), seed);
        let (whole, d_whole) = evaluate(&model, &all, &at);

        let (mut value, mut weights) = (0.0, vec![0.0; at.weights.len()]);
        for (i, graph) in graphs.iter().enumerate() {
            // Made from the graph itself, or selected from the batch: the same.
            let nodes: Vec<usize> = all.nodes_of(i).collect();
            let part = Variables {
                weights: at.weights.clone(),
                states: rows(&at.states, &nodes),
                multipliers: rows(&at.multipliers, &nodes),
            };
            let (one, d_one) = evaluate(&model, graph, &part);
            let (selected, _) = evaluate(&model, &all.select(&[i]), &part);
            prop_assert!((one.value() - selected.value()).abs() < 1e-12);
            value += one.value();
            weights.iter_mut().zip(&d_one.weights).for_each(|(sum, d)| *sum += d);
            for k in 0..layers {
                let expected = d_whole.states[k].select(nodes.iter().copied());
                prop_assert!(near(expected.as_slice(), d_one.states[k].as_slice()));
            }
        }
        prop_assert!((whole.value() - value).abs() < 1e-9);
        prop_assert!(near(&d_whole.weights, &weights));
    }
}

#[test]
fn an_empty_graph_changes_nothing() {
    for transition in 0..TRANSITIONS {
        // A graph-focused output has a row for the empty graph too, so it gets no target.
        let model = model::<f64>(&recipe(transition, 0, 1));
        let graphs: Vec<GraphBatch<f64>> =
            (0..3).map(|i| crate::common::graph(i, 4, 0.5, Form::Dense)).collect();
        let empty = crate::common::graph(9, 0, 0.0, Form::Dense);
        let without = GraphBatch::union(&graphs).unwrap();
        let with = [&graphs[..1], &[empty], &graphs[1..]].concat();
        let with = GraphBatch::union(&with).unwrap();
        let at = point(&model, without.nodes(), 1);
        let (a, d_a) = evaluate(&model, &without, &at);
        let (b, d_b) = evaluate(&model, &with, &at);
        assert_eq!(a, b);
        assert_eq!(d_a, d_b);
    }
}
