//! States of graphs that were not trained on: found, unique, and honest about it.
#![allow(clippy::cast_possible_truncation, reason = "numbers here are tiny")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use common::{Form, Recipe, batch, model, point};
use lpgnn::Scratch;
use lpgnn::activation::Activation;
use lpgnn::graph::{Graph, GraphBatch};
use lpgnn::inference::{
    Inference, RelaxOptions, SettleOptions, predict, relax, settle, settle_from, spectral_radius,
};
use lpgnn::lagrangian::{Model, Multipliers, Reads};
use lpgnn::network::Network;
use lpgnn::output::{Output, Readout};
use lpgnn::transition::{NeighbourSum, NodeNetwork};

fn worst(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

#[test]
fn below_the_bound_settling_converges_to_one_point_from_any_start() {
    for case in 0..1000_u64 {
        let recipe = Recipe {
            transition: (case % common::TRANSITIONS as u64) as usize,
            layers: 1 + (case % 2) as usize,
            h: common::networks()[(case / 8 % 6) as usize].clone(),
            ..Recipe::default()
        };
        let model = model::<f64>(&recipe);
        let graphs = batch::<f64>(case, common::FORMS[(case % 3) as usize]);
        let mut weights = point(&model, graphs.nodes(), case).weights;
        weights.iter_mut().for_each(|w| *w *= 3.0); // far above the bound before it is enforced
        common::contract(&model, &graphs, &mut weights, 0.9);
        let options = SettleOptions {
            tolerance: 1e-9,
            limit: 1000,
            fall_back: None,
            ..SettleOptions::default()
        };
        let scratch = Scratch::new();
        let first = settle(&model, &weights, &graphs, &options, &scratch);
        assert_eq!(first.failures(), 0, "case {case}: {:?}", first.residuals);
        let start = point(&model, graphs.nodes(), case + 5000).states;
        let second = settle_from(&model, &weights, &graphs, start, &options, &scratch);
        assert_eq!(second.failures(), 0, "case {case}");
        for (a, b) in first.states.iter().zip(&second.states) {
            let apart = worst(a.as_slice(), b.as_slice());
            assert!(apart < 1e-6, "case {case}: {apart:e}");
        }
    }
}

#[test]
fn a_graph_that_does_not_settle_is_named() {
    // x ← −3 x has its only fixed point at 0, where it starts: so it is pushed away by a label.
    let recipe = Recipe { transition: 0, ..Recipe::default() };
    let model = model::<f64>(&recipe);
    let graphs = batch::<f64>(2, Form::Dense);
    let mut weights = point(&model, graphs.nodes(), 1).weights;
    weights.iter_mut().for_each(|w| *w *= 40.0);
    let options =
        SettleOptions { limit: 30, window: 0, fall_back: None, ..SettleOptions::default() };
    let settled = settle(&model, &weights, &graphs, &options, &Scratch::new());
    assert!(settled.failures() > 0);
    for (converged, residual) in settled.converged.iter().zip(&settled.residuals) {
        assert_eq!(*converged, *residual <= options.tolerance);
    }
}

#[test]
fn relaxing_finds_the_states_that_settling_finds() {
    for constraint in common::CONSTRAINTS {
        let recipe =
            Recipe { constraint, multipliers: Multipliers::PerComponent, ..Recipe::default() };
        let model = model::<f64>(&recipe);
        let graphs = batch::<f64>(5, Form::Dense);
        let mut weights = point(&model, graphs.nodes(), 2).weights;
        common::contract(&model, &graphs, &mut weights, 0.8);
        let scratch = Scratch::new();
        let settled = settle(&model, &weights, &graphs, &SettleOptions::default(), &scratch);
        let options = RelaxOptions { tolerance: 1e-3, steps: 3000, ..RelaxOptions::default() };
        let relaxed = Inference::Relax(options).states(&model, &weights, &graphs, &scratch);
        assert_eq!(relaxed.failures(), 0, "{constraint:?}: {:?}", relaxed.residuals);
        let apart = worst(relaxed.states[0].as_slice(), settled.states[0].as_slice());
        assert!(apart < 2e-2, "{constraint:?}: {apart}");
        let outputs = |states| predict(&model, &weights, &graphs, states, &scratch);
        let apart = worst(outputs(&relaxed.states).as_slice(), outputs(&settled.states).as_slice());
        assert!(apart < 5e-2, "{constraint:?}: {apart}");
    }
}

#[test]
fn what_does_not_settle_is_relaxed_and_never_worse_for_it() {
    let model = model::<f64>(&Recipe::default());
    let graphs = batch::<f64>(2, Form::Dense);
    let mut weights = point(&model, graphs.nodes(), 1).weights;
    common::contract(&model, &graphs, &mut weights, 0.95);
    let scratch = Scratch::new();
    // Two plain iterations cannot settle; the fall-back can.
    let hurried = SettleOptions {
        limit: 2,
        window: 0,
        tolerance: 1e-2,
        fall_back: None,
        ..SettleOptions::default()
    };
    let second_chance = SettleOptions {
        fall_back: Some(RelaxOptions { steps: 2000, tolerance: 1e-3, ..RelaxOptions::default() }),
        ..hurried
    };
    let first = settle(&model, &weights, &graphs, &hurried, &scratch);
    let second = settle(&model, &weights, &graphs, &second_chance, &scratch);
    assert!(first.failures() > 0);
    assert_eq!(second.failures(), 0, "{:?}", second.residuals);
    for (before, after) in first.residuals.iter().zip(&second.residuals) {
        assert!(after <= before, "{after} after {before}");
    }
    // Relaxing alone, from the same start, is available too.
    let start = model.rest(graphs.nodes(), weights.clone());
    assert!(relax(&model, start, &graphs, &RelaxOptions::default(), &scratch).iterations > 0);
}

#[test]
fn acceleration_needs_fewer_applications_than_plain_iteration() {
    let model = model::<f64>(&Recipe { transition: 6, ..Recipe::default() });
    let graphs = batch::<f64>(8, Form::Dense);
    let mut weights = point(&model, graphs.nodes(), 4).weights;
    weights.iter_mut().for_each(|w| *w *= 3.0);
    common::contract(&model, &graphs, &mut weights, 0.99);
    let count = |window| {
        let options =
            SettleOptions { window, tolerance: 1e-8, limit: 5000, ..SettleOptions::default() };
        let settled = settle(&model, &weights, &graphs, &options, &Scratch::new());
        assert_eq!(settled.failures(), 0);
        settled.iterations
    };
    let (plain, accelerated) = (count(0), count(5));
    assert!(accelerated < plain, "{accelerated} for {plain}");
}

#[test]
fn the_spectral_radius_of_a_linear_mean_is_its_weight() {
    // f_v = 0.7 · mean of x over v and its neighbours + label: the mean has spectral radius 1.
    let linear = Network {
        hidden: vec![],
        activation: Activation::Identity,
        output_activation: Activation::Identity,
    };
    let f_a = NodeNetwork::new(1, 1, &linear, NeighbourSum::Mean);
    let output = Output::new(Readout::Node, 1, 2, Network::one_hidden(2), 0.0);
    let g = lpgnn::constraint::ConstraintFunction::Squared;
    let model = Model::<f64>::new(
        vec![Box::new(f_a)],
        output,
        Reads::default(),
        Box::new(g),
        Multipliers::PerNode,
    )
    .unwrap();
    let labels = vec![vec![1.0], vec![0.0], vec![0.0], vec![2.0]];
    let arcs = vec![(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)];
    let graphs = GraphBatch::new(&[Graph::new(&labels, arcs).unwrap()]).unwrap();
    let mut weights = vec![0.0; model.weights()];
    weights[0] = -0.7;
    weights[1] = 1.0;
    let scratch = Scratch::new();
    let states = settle(&model, &weights, &graphs, &SettleOptions::default(), &scratch).states;
    let radius = spectral_radius(&model, &weights, &graphs, &states, 200, &scratch);
    assert!((radius - 0.7).abs() < 1e-6, "{radius}");
}
