//! What a prediction rests on: the gradient through the fixed point, and what edges add.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "numbers here are tiny"
)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use crate::common::{EDGE_FEATURE, LABEL, POOLINGS, Recipe, TRANSITIONS, contract, model, point};
use lpgnn::graph::{Features, GraphBatch, Level, OneHot};
use lpgnn::inference::{
    Explanation, FixedPoint, FixedPointOptions, Question, Score, converge, explain,
};
use lpgnn::lagrangian::{Model, ReadFrom, ReadLayers, Reads};
use lpgnn::{Error, Matrix, Scratch};

/// Draws the same numbers as ever.
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> f64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }
}

const NODES: usize = 7;

/// A ring with chords; every edge in both directions but for the first.
fn edges(draw: &mut Draw) -> Vec<(u32, u32)> {
    let ring = (0..NODES as u32).map(|v| (v, (v + 1) % NODES as u32));
    let chords: Vec<_> = (0..3)
        .map(|_| ((draw.next() * 7.0) as u32, (draw.next() * 7.0) as u32))
        .filter(|(u, v)| u != v)
        .collect();
    let mut edges: Vec<_> =
        ring.chain(chords).flat_map(|(u, v)| [(u, v), (v, u)]).skip(1).collect();
    edges.sort_unstable();
    edges.dedup();
    edges
}

fn dense(rows: usize, cols: usize, draw: &mut Draw) -> Vec<Vec<f64>> {
    (0..rows).map(|_| (0..cols).map(|_| 2.0 * draw.next() - 1.0).collect()).collect()
}

fn graph(features: Features<f64>, edges: &[(u32, u32)], of_edges: &[Vec<f64>]) -> GraphBatch<f64> {
    let of_edges = Features::Dense(Matrix::from_rows(of_edges).unwrap());
    GraphBatch::of_graph_with_edges(features, edges, &of_edges).unwrap()
}

fn fixed_point(model: &Model<f64>, weights: &[f64], graph: &GraphBatch<f64>) -> FixedPoint<f64> {
    let options = FixedPointOptions {
        tol: 1e-12,
        max_iter: 5000,
        fall_back: None,
        ..FixedPointOptions::default()
    };
    let found = converge(model, weights, graph, &options, &Scratch::new());
    assert_eq!(found.failures(), 0, "{:?}", found.residuals);
    found
}

fn explained(
    model: &Model<f64>,
    weights: &[f64],
    graph: &GraphBatch<f64>,
    question: Question,
) -> Result<Explanation<f64>, Error> {
    let found = fixed_point(model, weights, graph);
    explain(model, weights, graph, &found, question, &Scratch::new())
}

/// Models of every transition and read-out, in turn.
fn case(number: usize) -> (Model<f64>, Recipe) {
    let recipe = Recipe {
        transition: number % TRANSITIONS,
        layers: 1 + number % 3,
        reads: Reads {
            from: [ReadFrom::State, ReadFrom::Transition][number / 2 % 2],
            layers: [ReadLayers::Last, ReadLayers::All][number / 3 % 2],
            features: (number / 4).is_multiple_of(2),
        },
        pooling: POOLINGS[number % POOLINGS.len()],
        ..Recipe::default()
    };
    (model(&recipe), recipe)
}

fn weights_of(model: &Model<f64>, graph: &GraphBatch<f64>, seed: u64) -> Vec<f64> {
    let mut weights = point(model, graph.nodes(), seed).weights;
    contract(model, graph, &mut weights, 0.8);
    weights
}

fn item_of(model: &Model<f64>) -> usize {
    if model.readout().level() == Level::Node { 2 } else { 0 }
}

#[test]
fn the_gradient_through_the_fixed_point_is_that_of_differences() {
    for number in 0..3 * TRANSITIONS {
        let (model, _) = case(number);
        let mut draw = Draw(number as u64 + 1);
        let edges = edges(&mut draw);
        let of_edges = dense(edges.len(), EDGE_FEATURE, &mut draw);
        let features = dense(NODES, LABEL, &mut draw);
        let of = |features: &[Vec<f64>]| {
            graph(Features::Dense(Matrix::from_rows(features).unwrap()), &edges, &of_edges)
        };
        let here = of(&features);
        let weights = weights_of(&model, &here, number as u64);
        let score = if number % 2 == 0 { Score::Class(1) } else { Score::Value(0) };
        let question = Question { item: item_of(&model), score, edges: 0 };
        let found = explained(&model, &weights, &here, question).unwrap();
        let largest = found.gradient.as_slice().iter().fold(0.0_f64, |a, g| a.max(g.abs()));
        for v in 0..NODES {
            let mut contribution = 0.0;
            for j in 0..LABEL {
                const H: f64 = 1e-5;
                let value = |by: f64| {
                    let mut moved = features.clone();
                    moved[v][j] += by;
                    explained(&model, &weights, &of(&moved), question).unwrap().value
                };
                let by_difference = (value(H) - value(-H)) / (2.0 * H);
                let error = (by_difference - found.gradient.row(v)[j]).abs();
                assert!(
                    error <= 2e-5 * (largest + 1e-2),
                    "case {number}, node {v}: {error:e} of {largest:e}"
                );
                contribution += features[v][j] * found.gradient.row(v)[j];
            }
            assert!((contribution - found.nodes[v]).abs() < 1e-12);
        }
    }
}

#[test]
fn categories_have_the_gradient_of_their_indicators() {
    let (model, _) = case(0);
    let mut draw = Draw(5);
    let edges = edges(&mut draw);
    let of_edges = dense(edges.len(), EDGE_FEATURE, &mut draw);
    let columns: Vec<u32> = (0..NODES as u32).map(|v| v % LABEL as u32).collect();
    let indicators: Vec<Vec<f64>> = columns
        .iter()
        .map(|&column| (0..LABEL as u32).map(|j| f64::from(j == column)).collect())
        .collect();
    let one_hot = graph(Features::OneHot(OneHot::new(LABEL, columns).unwrap()), &edges, &of_edges);
    let dense = graph(Features::Dense(Matrix::from_rows(&indicators).unwrap()), &edges, &of_edges);
    let weights = weights_of(&model, &dense, 3);
    let question = Question { item: item_of(&model), score: Score::Class(0), edges: 3 };
    let [a, b] =
        [&one_hot, &dense].map(|graph| explained(&model, &weights, graph, question).unwrap());
    for (a, b) in a.gradient.as_slice().iter().zip(b.gradient.as_slice()) {
        assert!((a - b).abs() < 1e-9, "{a} {b}");
    }
    assert_eq!(
        a.edges.iter().map(|e| e.nodes).collect::<Vec<_>>(),
        b.edges.iter().map(|e| e.nodes).collect::<Vec<_>>()
    );
}

#[test]
fn an_edge_adds_what_the_score_loses_without_it() {
    for number in 0..TRANSITIONS {
        let (model, _) = case(number);
        let mut draw = Draw(number as u64 + 40);
        let edges = edges(&mut draw);
        let of_edges = dense(edges.len(), EDGE_FEATURE, &mut draw);
        let features = Features::Dense(Matrix::from_rows(&dense(NODES, LABEL, &mut draw)).unwrap());
        let here = graph(features.clone(), &edges, &of_edges);
        let weights = weights_of(&model, &here, number as u64);
        let question = Question { item: item_of(&model), score: Score::Class(2), edges: 1000 };
        let found = explained(&model, &weights, &here, question).unwrap();
        let mut pairs: Vec<_> = edges.iter().map(|&(u, v)| (u.min(v), u.max(v))).collect();
        pairs.sort_unstable();
        pairs.dedup();
        assert_eq!(found.edges.len(), pairs.len(), "every edge is tried");
        for effect in &found.edges {
            let gone =
                |&(u, v): &(u32, u32)| (u.min(v) as usize, u.max(v) as usize) == effect.nodes;
            let kept: Vec<usize> = (0..edges.len()).filter(|&e| !gone(&edges[e])).collect();
            assert!(kept.len() < edges.len());
            let left: Vec<_> = kept.iter().map(|&e| edges[e]).collect();
            let of_left: Vec<_> = kept.iter().map(|&e| of_edges[e].clone()).collect();
            let without = graph(features.clone(), &left, &of_left);
            let value = explained(&model, &weights, &without, Question { edges: 0, ..question });
            let expected = found.value - value.unwrap().value;
            // Occlusion converges to the tolerance of predictions.
            assert!(
                (effect.effect - expected).abs() < 5e-3,
                "case {number}: {effect:?} {expected}"
            );
        }
    }
}

/// What is named matters more than what is not: without the two most important edges the score moves further than
/// without two others.
#[test]
fn what_is_named_matters_more_than_what_is_drawn() {
    let (mut named, mut drawn) = (0.0, 0.0);
    for number in 0..2 * TRANSITIONS {
        let (model, _) = case(number);
        let mut draw = Draw(number as u64 + 90);
        let edges = edges(&mut draw);
        let of_edges = dense(edges.len(), EDGE_FEATURE, &mut draw);
        let features = Features::Dense(Matrix::from_rows(&dense(NODES, LABEL, &mut draw)).unwrap());
        let here = graph(features.clone(), &edges, &of_edges);
        let weights = weights_of(&model, &here, number as u64);
        let question = Question { item: item_of(&model), score: Score::Class(0), edges: 1000 };
        let found = explained(&model, &weights, &here, question).unwrap();
        let moved = |gone: &[(usize, usize)]| {
            let kept = |&&e: &&usize| {
                let (u, v) = (edges[e].0 as usize, edges[e].1 as usize);
                !gone.contains(&(u.min(v), u.max(v)))
            };
            let all: Vec<usize> = (0..edges.len()).collect();
            let kept: Vec<usize> = all.iter().filter(kept).copied().collect();
            let left: Vec<_> = kept.iter().map(|&e| edges[e]).collect();
            let of_left: Vec<_> = kept.iter().map(|&e| of_edges[e].clone()).collect();
            let without = graph(features.clone(), &left, &of_left);
            let question = Question { edges: 0, ..question };
            (explained(&model, &weights, &without, question).unwrap().value - found.value).abs()
        };
        let pairs: Vec<_> = found.edges.iter().map(|effect| effect.nodes).collect();
        let scale = moved(&pairs).max(1e-9);
        named += moved(&pairs[..2]) / scale;
        let other = |draw: &mut Draw| pairs[(draw.next() * pairs.len() as f64) as usize];
        drawn += moved(&[other(&mut draw), other(&mut draw)]) / scale;
    }
    assert!(named > 1.5 * drawn, "named {named}, drawn {drawn}");
}

#[test]
fn what_is_not_there_is_not_explained() {
    let (model, _) = case(0);
    let mut draw = Draw(1);
    let edges = edges(&mut draw);
    let of_edges = dense(edges.len(), EDGE_FEATURE, &mut draw);
    let features = Features::Dense(Matrix::from_rows(&dense(NODES, LABEL, &mut draw)).unwrap());
    let here = graph(features, &edges, &of_edges);
    let weights = weights_of(&model, &here, 1);
    let ask = |item, score| explained(&model, &weights, &here, Question { item, score, edges: 0 });
    let error = ask(99, Score::Class(0)).unwrap_err().to_string();
    assert!(error.contains("99") && error.contains("counted from 0"), "{error}");
    let error = ask(0, Score::Class(77)).unwrap_err().to_string();
    assert!(error.contains("output 77"), "{error}");
}
