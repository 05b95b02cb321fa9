//! States of graphs that were not trained on: found, unique, and honest about it.
#![allow(clippy::cast_possible_truncation, reason = "numbers here are tiny")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use crate::common::{Form, Recipe, batch, model, point};
use lpgnn::Scratch;
use lpgnn::activation::Activation;
use lpgnn::graph::GraphBatch;
use lpgnn::inference::{
    FixedPointOptions, Inference, InferenceProgress, RelaxOptions, converge, converge_from,
    predict, relax, spectral_radius,
};
use lpgnn::lagrangian::{Model, Multipliers, ReadFrom, ReadLayers, Reads};
use lpgnn::network::Network;
use lpgnn::readout::NodeReadout;
use lpgnn::transition::{NeighbourSum, NodeNetwork};

fn worst(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

#[test]
fn below_the_bound_converging_converges_to_one_point_from_any_start() {
    for case in 0..1000_u64 {
        let recipe = Recipe {
            transition: (case % crate::common::TRANSITIONS as u64) as usize,
            layers: 1 + (case % 2) as usize,
            h: crate::common::networks()[(case / 8 % 6) as usize].clone(),
            ..Recipe::default()
        };
        let model = model::<f64>(&recipe);
        let graphs = batch::<f64>(case, crate::common::FORMS[(case % 3) as usize]);
        let mut weights = point(&model, graphs.nodes(), case).weights;
        weights.iter_mut().for_each(|w| *w *= 3.0); // far above the bound before it is enforced
        crate::common::contract(&model, &graphs, &mut weights, 0.9);
        let options = FixedPointOptions {
            tol: 1e-9,
            max_iter: 1000,
            fall_back: None,
            ..FixedPointOptions::default()
        };
        let scratch = Scratch::new();
        let first = converge(&model, &weights, &graphs, &options, &scratch);
        assert_eq!(first.failures(), 0, "case {case}: {:?}", first.residuals);
        let start = point(&model, graphs.nodes(), case + 5000).states;
        let second = converge_from(&model, &weights, &graphs, start, &options, &scratch);
        assert_eq!(second.failures(), 0, "case {case}");
        for (a, b) in first.states.iter().zip(&second.states) {
            let apart = worst(a.as_slice(), b.as_slice());
            assert!(apart < 1e-6, "case {case}: {apart:e}");
        }
    }
}

#[test]
fn a_graph_that_does_not_converge_is_named() {
    // x ← −3 x has its only fixed point at 0, where it starts: so it is pushed away by a feature.
    let recipe = Recipe { transition: 0, ..Recipe::default() };
    let model = model::<f64>(&recipe);
    let graphs = batch::<f64>(2, Form::Dense);
    let mut weights = point(&model, graphs.nodes(), 1).weights;
    weights.iter_mut().for_each(|w| *w *= 40.0);
    let options = FixedPointOptions {
        max_iter: 30,
        window: 0,
        fall_back: None,
        ..FixedPointOptions::default()
    };
    let converged = converge(&model, &weights, &graphs, &options, &Scratch::new());
    assert!(converged.failures() > 0);
    for (converged, residual) in converged.converged.iter().zip(&converged.residuals) {
        assert_eq!(*converged, *residual <= options.tol);
    }
}

#[test]
fn relaxing_finds_the_states_that_converging_finds() {
    for constraint in crate::common::CONSTRAINTS {
        let recipe =
            Recipe { constraint, multipliers: Multipliers::PerComponent, ..Recipe::default() };
        let model = model::<f64>(&recipe);
        let graphs = batch::<f64>(5, Form::Dense);
        let mut weights = point(&model, graphs.nodes(), 2).weights;
        crate::common::contract(&model, &graphs, &mut weights, 0.8);
        let scratch = Scratch::new();
        let converged =
            converge(&model, &weights, &graphs, &FixedPointOptions::default(), &scratch);
        let options = RelaxOptions { tol: 1e-3, max_iter: 3000, ..RelaxOptions::default() };
        let relaxed = Inference::Relax(options).states(&model, &weights, &graphs, &scratch);
        assert_eq!(relaxed.failures(), 0, "{constraint:?}: {:?}", relaxed.residuals);
        let apart = worst(relaxed.states[0].as_slice(), converged.states[0].as_slice());
        assert!(apart < 2e-2, "{constraint:?}: {apart}");
        let outputs = |states| predict(&model, &weights, &graphs, states, &scratch);
        let apart =
            worst(outputs(&relaxed.states).as_slice(), outputs(&converged.states).as_slice());
        assert!(apart < 5e-2, "{constraint:?}: {apart}");
    }
}

#[test]
fn what_does_not_converge_is_relaxed_and_never_worse_for_it() {
    let model = model::<f64>(&Recipe::default());
    let graphs = batch::<f64>(2, Form::Dense);
    let mut weights = point(&model, graphs.nodes(), 1).weights;
    crate::common::contract(&model, &graphs, &mut weights, 0.95);
    let scratch = Scratch::new();
    // Two plain iterations cannot converge; the fall-back can.
    let hurried = FixedPointOptions {
        max_iter: 2,
        window: 0,
        tol: 1e-2,
        fall_back: None,
        ..FixedPointOptions::default()
    };
    let second_chance = FixedPointOptions {
        fall_back: Some(RelaxOptions { max_iter: 2000, tol: 1e-3, ..RelaxOptions::default() }),
        ..hurried
    };
    let first = converge(&model, &weights, &graphs, &hurried, &scratch);
    let second = converge(&model, &weights, &graphs, &second_chance, &scratch);
    assert!(first.failures() > 0);
    assert_eq!(second.failures(), 0, "{:?}", second.residuals);
    for (before, after) in first.residuals.iter().zip(&second.residuals) {
        assert!(after <= before, "{after} after {before}");
    }
    // Relaxing alone, from the same start, is available too.
    let start = model.zeros(graphs.nodes(), weights.clone());
    assert!(relax(&model, start, &graphs, &RelaxOptions::default(), &scratch).iterations > 0);
}

#[test]
fn acceleration_needs_fewer_applications_than_plain_iteration() {
    let model = model::<f64>(&Recipe { transition: 6, ..Recipe::default() });
    let graphs = batch::<f64>(8, Form::Dense);
    let mut weights = point(&model, graphs.nodes(), 4).weights;
    weights.iter_mut().for_each(|w| *w *= 3.0);
    crate::common::contract(&model, &graphs, &mut weights, 0.99);
    let count = |window| {
        let options =
            FixedPointOptions { window, tol: 1e-8, max_iter: 5000, ..FixedPointOptions::default() };
        let converged = converge(&model, &weights, &graphs, &options, &Scratch::new());
        assert_eq!(converged.failures(), 0);
        converged.iterations
    };
    let (plain, accelerated) = (count(0), count(5));
    assert!(accelerated < plain, "{accelerated} for {plain}");
}

/// `f_v = w · sum over v and its neighbours + l_v`, and the weights that make it so.
fn linear(sum: NeighbourSum, w: f64) -> (Model<f64>, Vec<f64>) {
    let identity = Network {
        hidden_dims: vec![],
        activation: Activation::Identity,
        output_activation: Activation::Identity,
    };
    let model = Model::new(
        vec![Box::new(NodeNetwork::new(1, 1, &identity, sum))],
        Box::new(NodeReadout::new(1, 2, Network::one_hidden(2), 0.0)),
        Reads::default(),
        Box::new(lpgnn::constraint::ConstraintFunction::Squared),
        Multipliers::PerNode,
    )
    .unwrap();
    let mut weights = vec![0.0; model.weights()];
    (weights[0], weights[1]) = (w, 1.0);
    (model, weights)
}

fn labelled(features: &[f64], edges: &[(u32, u32)]) -> GraphBatch<f64> {
    let features: Vec<Vec<f64>> = features.iter().map(|&feature| vec![feature]).collect();
    GraphBatch::graph(&features, edges).unwrap()
}

#[test]
fn the_spectral_radius_of_a_linear_mean_is_its_weight() {
    // The mean over a node and its neighbours has spectral radius 1.
    let (model, weights) = linear(NeighbourSum::Mean, -0.7);
    let graphs = labelled(&[1.0, 0.0, 0.0, 2.0], &[(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)]);
    let scratch = Scratch::new();
    let states =
        converge(&model, &weights, &graphs, &FixedPointOptions::default(), &scratch).states;
    let radius = spectral_radius(&model, &weights, &graphs, &states, 200, &scratch);
    assert!((radius - 0.7).abs() < 1e-6, "{radius}");
}

/// Two nodes that triple each other's states; the third is alone and stays at zero, so the last
/// residual that is looked at is a fine one.
fn runaway() -> (Model<f64>, GraphBatch<f64>, Vec<f64>) {
    let (model, weights) = linear(NeighbourSum::Plain, 3.0);
    (model, labelled(&[1.0, 1.0, 0.0], &[(0, 1)]), weights)
}

#[test]
fn states_that_run_away_to_infinity_have_not_converged() {
    let (model, graphs, weights) = runaway();
    let options = FixedPointOptions {
        window: 0,
        max_iter: 2000,
        fall_back: None,
        ..FixedPointOptions::default()
    };
    let converged = converge(&model, &weights, &graphs, &options, &Scratch::new());
    assert!(!converged.states[0].row(0)[0].is_finite());
    assert!(converged.states[0].row(2)[0].abs() < 1e-300);
    assert_eq!(converged.converged, [false], "{:?}", converged.residuals);
}

#[test]
fn relaxing_finds_the_fixed_point_of_what_cannot_be_iterated() {
    // x = 3 (x_0 + x_1) + 1 has the fixed point −0.2, from which iteration runs away.
    let (model, graphs, weights) = runaway();
    let relaxation = RelaxOptions { max_iter: 4000, ..RelaxOptions::default() };
    let options = FixedPointOptions {
        window: 0,
        max_iter: 2000,
        tol: 1e-2,
        fall_back: Some(relaxation),
        ..FixedPointOptions::default()
    };
    let converged = converge(&model, &weights, &graphs, &options, &Scratch::new());
    assert_eq!(converged.converged, [true], "{:?}", converged.residuals);
}

#[test]
fn a_graph_converges_alike_alone_and_in_company() {
    let model = model::<f64>(&Recipe::default());
    let graphs: Vec<GraphBatch<f64>> =
        (0..12).map(|seed| crate::common::graph(seed, 5, 0.3, Form::Dense)).collect();
    let all = GraphBatch::union(&graphs).unwrap();
    let mut weights = point(&model, all.nodes(), 2).weights;
    weights.iter_mut().for_each(|w| *w *= 2.0);
    crate::common::contract(&model, &all, &mut weights, 0.98);
    let options = FixedPointOptions { tol: 1e-6, ..FixedPointOptions::default() };
    let scratch = Scratch::new();
    let together = converge(&model, &weights, &all, &options, &scratch);
    for i in 0..graphs.len() {
        let alone = converge(&model, &weights, &all.select(&[i]), &options, &scratch);
        let here = together.states[0].select(all.nodes_of(i));
        assert!(worst(here.as_slice(), alone.states[0].as_slice()) < 1e-12, "graph {i}");
    }
}

#[test]
fn a_graph_takes_as_many_iterations_as_it_would_alone() {
    let model = model::<f64>(&Recipe::default());
    let graphs = batch::<f64>(12, Form::Dense);
    let mut weights = point(&model, graphs.nodes(), 4).weights;
    crate::common::contract(&model, &graphs, &mut weights, 0.9);
    let options = FixedPointOptions { fall_back: None, ..FixedPointOptions::default() };
    let together = converge(&model, &weights, &graphs, &options, &Scratch::new());
    assert_eq!(together.graph_iterations.len(), graphs.graphs());
    for (graph, &count) in together.graph_iterations.iter().enumerate() {
        let part = graphs.select(&[graph]);
        let alone = converge(&model, &weights, &part, &options, &Scratch::new());
        assert_eq!((alone.iterations, alone.graph_iterations), (count, vec![count]), "{graph}");
    }
    let most = together.graph_iterations.iter().max().copied().unwrap();
    assert!(most > 1 && together.iterations >= most);
}

/// Small graphs, more than are iterated together.
fn many_graphs() -> GraphBatch<f64> {
    let graphs: Vec<GraphBatch<f64>> =
        (0..400).map(|seed| crate::common::graph(seed, 7, 0.3, Form::OneHot)).collect();
    GraphBatch::union(&graphs).unwrap()
}

#[test]
fn what_a_graph_converges_to_does_not_depend_on_the_others() {
    for from in [ReadFrom::State, ReadFrom::Transition] {
        let reads = Reads { from, layers: ReadLayers::All, features: true };
        let model = model::<f64>(&Recipe { layers: 3, reads, ..Recipe::default() });
        let graphs = many_graphs();
        let mut weights = point(&model, graphs.nodes(), 3).weights;
        crate::common::contract(&model, &graphs, &mut weights, 0.9);
        let (options, scratch) = (FixedPointOptions::default(), Scratch::new());
        let all = converge(&model, &weights, &graphs, &options, &scratch);
        assert_eq!(all.failures(), 0);
        for graph in [0, 17, 199, 399] {
            let one = converge(&model, &weights, &graphs.select(&[graph]), &options, &scratch);
            assert_eq!(one.graph_iterations, [all.graph_iterations[graph]], "graph {graph}");
            let nodes = graphs.nodes_of(graph);
            for (one, all) in one.states.iter().zip(&all.states) {
                assert_eq!(one, &all.select(nodes.clone()), "graph {graph}");
            }
        }
    }
}

#[test]
fn every_iteration_is_told_once_and_no_graph_depends_on_the_others() {
    let model = model::<f64>(&Recipe::default());
    let graphs = many_graphs().select(&(0..100).collect::<Vec<_>>());
    let mut weights = point(&model, graphs.nodes(), 3).weights;
    crate::common::contract(&model, &graphs, &mut weights, 0.9);
    let scratch = Scratch::new();
    // Plain steps that end, damped ones, combinations of iterates, and iterations that are broken off, or never begin.
    for (beta, window, max_iter) in
        [(1.0, 0, 300), (0.7, 0, 300), (0.2, 3, 300), (1.0, 5, 4), (0.7, 0, 3), (1.0, 5, 0)]
    {
        let options = FixedPointOptions { tol: 1e-7, max_iter, beta, window, fall_back: None };
        let inference = Inference::FixedPoint(options);
        let mut told = vec![];
        let all = inference.states_observed(&model, &weights, &graphs, &scratch, &mut |progress| {
            told.push(progress);
        });
        let expected: Vec<InferenceProgress> =
            (1..=all.iterations).map(|number| InferenceProgress::Iteration { number }).collect();
        assert_eq!(told, expected, "{options:?}");
        for graph in 0..graphs.graphs() {
            let one = converge(&model, &weights, &graphs.select(&[graph]), &options, &scratch);
            assert_eq!(one.graph_iterations, [all.graph_iterations[graph]], "graph {graph}");
            assert_eq!(one.residuals, [all.residuals[graph]], "graph {graph}, {options:?}");
            let here = all.states[0].select(graphs.nodes_of(graph));
            assert_eq!(one.states[0], here, "graph {graph}, {options:?}");
        }
    }
}

#[test]
fn what_is_relaxed_does_not_depend_on_the_others() {
    let model = model::<f64>(&Recipe { layers: 2, ..Recipe::default() });
    let graphs = many_graphs();
    let mut weights = point(&model, graphs.nodes(), 3).weights;
    // No contraction: some graphs converge by iteration, some by optimisation, some not at all.
    weights.iter_mut().for_each(|w| *w *= 2.0);
    let scratch = Scratch::new();
    let relax = RelaxOptions { max_iter: 60, ..RelaxOptions::default() };
    let fall_back =
        FixedPointOptions { max_iter: 20, fall_back: Some(relax), ..FixedPointOptions::default() };
    for inference in [Inference::Relax(relax), Inference::FixedPoint(fall_back)] {
        let all = inference.states(&model, &weights, &graphs, &scratch);
        let relaxed = |count: &usize| *count > 40;
        assert!(all.graph_iterations.iter().any(relaxed), "{:?}", all.graph_iterations);
        for graph in [0, 17, 199, 399] {
            let one = inference.states(&model, &weights, &graphs.select(&[graph]), &scratch);
            assert_eq!(one.graph_iterations, [all.graph_iterations[graph]], "graph {graph}");
            for (one, all) in one.states.iter().zip(&all.states) {
                assert_eq!(one, &all.select(graphs.nodes_of(graph)), "graph {graph}");
            }
        }
        let (found, outputs) = inference.outputs(&model, &weights, &graphs, &scratch, &mut |_| ());
        assert_eq!(found.residuals, all.residuals);
        assert_eq!(found.iterations, all.iterations);
        assert_eq!(outputs, all.outputs(&model, &weights, &graphs, &scratch));
    }
}

#[test]
fn outputs_and_residuals_are_those_of_the_states_that_were_found() {
    for (from, max_iter) in
        [(ReadFrom::State, 300), (ReadFrom::Transition, 300), (ReadFrom::Transition, 3)]
    {
        let reads = Reads { from, layers: ReadLayers::All, features: true };
        let model = model::<f64>(&Recipe { layers: 3, reads, ..Recipe::default() });
        let graphs = many_graphs();
        let mut weights = point(&model, graphs.nodes(), 3).weights;
        crate::common::contract(&model, &graphs, &mut weights, 0.9);
        // With three iterations most graphs are relaxed, and not all of them converge.
        let relax = RelaxOptions { max_iter: 5, ..RelaxOptions::default() };
        let options =
            FixedPointOptions { max_iter, fall_back: Some(relax), ..FixedPointOptions::default() };
        let scratch = Scratch::new();
        let found = converge(&model, &weights, &graphs, &options, &scratch);
        let outputs = found.outputs(&model, &weights, &graphs, &scratch);
        let again = predict(&model, &weights, &graphs, &found.states, &scratch);
        // An iteration adds up in another order than a single application of f_a.
        let apart =
            |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        let difference = apart(outputs.as_slice(), again.as_slice());
        assert!(difference < 1e-12, "{from:?}, {max_iter}: {difference:e}");
        // Starting where it ended, one iteration measures the residual of the states.
        let once = FixedPointOptions { max_iter: 0, fall_back: None, ..options };
        let states = found.states.clone();
        let measured = converge_from(&model, &weights, &graphs, states, &once, &scratch);
        let difference = apart(&found.residuals, &measured.residuals);
        assert!(difference < 1e-12, "{from:?}, {max_iter}: {difference:e}");
    }
}
