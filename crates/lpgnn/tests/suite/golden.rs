//! Loss and gradients in the authors' configuration equal those of independent programs.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::{Path, PathBuf};

use lpgnn::activation::Activation;
use lpgnn::constraint::ConstraintFunction;
use lpgnn::graph::{GraphBatch, Targets};
use lpgnn::lagrangian::{
    Lagrangian, Model, Multipliers, Objective, ReadFrom, Reads, Request, Scale, Variables, Weighing,
};
use lpgnn::network::Network;
use lpgnn::readout::{NodeReadout, Supervision};
use lpgnn::transition::{Aggregation, EdgeInputs, EdgeNetwork, Isolated};
use lpgnn::{Matrix, Scratch};
use serde_json::Value;

use crate::common::shared;

const MEANS: Weighing = Weighing { loss_weight: 1.0, loss: Scale::Mean, constraint: Scale::Mean };

fn constraint(name: &str, epsilon: f64) -> ConstraintFunction {
    match name {
        "lin" => ConstraintFunction::Linear,
        "lin-eps" => ConstraintFunction::LinearInsensitive { epsilon },
        "abs" => ConstraintFunction::Absolute,
        "abs-eps" => ConstraintFunction::AbsoluteInsensitive { epsilon },
        "squared" => ConstraintFunction::Squared,
        other => panic!("unknown G {other}"),
    }
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

fn matrix(rows: usize, entries: Vec<f64>) -> Matrix<f64> {
    Matrix::from_entries(rows, entries.len() / rows, entries).unwrap()
}

/// The largest difference, relative to the largest entry.
fn error(found: &[f64], expected: &[f64]) -> f64 {
    assert_eq!(found.len(), expected.len());
    let scale = expected.iter().fold(1e-12_f64, |max, x| max.max(x.abs()));
    found.iter().zip(expected).map(|(a, b)| (a - b).abs() / scale).fold(0.0, f64::max)
}

/// Made by `golden/make.py`, which derives nothing.
#[test]
fn the_authors_configuration_agrees_with_complex_steps() {
    let golden: Value = serde_json::from_str(include_str!("golden/authors.json")).unwrap();
    let size = |name: &str| usize::try_from(golden[name].as_u64().unwrap()).unwrap();
    let (n, m, s, h) = (size("nodes"), size("features_per_node"), size("state"), size("hidden"));
    let edges = golden["edges"].as_array().unwrap().iter().map(numbers);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "node numbers")]
    let edges: Vec<(u32, u32)> = edges.map(|edge| (edge[0] as u32, edge[1] as u32)).collect();
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "class numbers")]
    let class = numbers(&golden["y"]).iter().map(|&y| y as u32).collect();
    let features: Vec<Vec<f64>> =
        numbers(&golden["features"]).chunks(m).map(<[f64]>::to_vec).collect();
    let graph = GraphBatch::graph(&features, &edges).unwrap();
    let graph = graph.with_node_targets(Targets::classes(size("classes"), class).unwrap()).unwrap();
    let batch = GraphBatch::union(&[graph]).unwrap();

    for case in golden["cases"].as_array().unwrap() {
        let at = &case["at"];
        let per_node = numbers(&at["lam"]).len() == n;
        let network = Network {
            hidden_dims: vec![h],
            activation: Activation::Tanh,
            output_activation: Activation::Tanh,
        };
        let f_a = EdgeNetwork::new(s, m, 0, EdgeInputs::authors(), &network, Aggregation::Sum)
            .with_isolated(Isolated::Zero);
        let f_r = Network::one_hidden(size("readout"));
        let readout = Box::new(NodeReadout::new(s, size("classes"), f_r, 0.0));
        let g = constraint(case["g"].as_str().unwrap(), golden["epsilon"].as_f64().unwrap());
        let model = Model::<f64>::new(
            vec![Box::new(f_a)],
            readout,
            Reads { from: ReadFrom::Transition, ..Reads::default() },
            Box::new(g),
            if per_node { Multipliers::PerNode } else { Multipliers::PerComponent },
        )
        .unwrap();
        // W1 reads [l_v; l_u; x_u]; ours lie in the order of the paper: x_u, l_u, l_v.
        let ours = |from: &Value| -> Vec<f64> {
            let w1 = numbers(&from["W1"]);
            let (l_v, rest) = w1.split_at(m * h);
            let (l_u, x_u) = rest.split_at(m * h);
            let rest = ["b1", "W2", "b2", "R1", "c1", "R2", "c2"].map(|name| numbers(&from[name]));
            [x_u, l_u, l_v]
                .into_iter()
                .chain(rest.iter().map(Vec::as_slice))
                .flatten()
                .copied()
                .collect()
        };
        let point = Variables {
            weights: ours(at),
            states: vec![matrix(n, numbers(&at["X"]))],
            multipliers: vec![matrix(n, numbers(&at["lam"]))],
        };
        let supervision = Supervision::all(batch.node_targets().clone());
        let scratch = Scratch::new();
        let lagrangian = Lagrangian::new(&model, &batch, &supervision, MEANS, &scratch).unwrap();
        let mut gradient = point.zeros_like();
        let value = lagrangian.evaluate(&point, Request::ALL, &mut gradient).value();
        let expected = &case["gradient"];
        assert!((value - case["value"].as_f64().unwrap()).abs() < 1e-12, "{g:?}");
        assert!(error(&gradient.weights, &ours(expected)) < 1e-12, "{g:?}");
        assert!(error(gradient.states[0].as_slice(), &numbers(&expected["X"])) < 1e-12, "{g:?}");
        let multipliers = gradient.multipliers[0].as_slice();
        assert!(error(multipliers, &numbers(&expected["lam"])) < 1e-12, "{g:?}");
    }
}

/// Golden values that `PyTorch` computed in double precision, if they are available.
#[test]
fn twenty_configurations_agree_with_automatic_differentiation() {
    let (Some(golden), Some(data)) = (shared("peers/golden"), shared("peers/data/a")) else {
        return;
    };
    let indices = |name: &str| bytes(&data.join(name), |b: [u8; 4]| i32::from_le_bytes(b));
    let feature =
        |path: PathBuf| -> Vec<f64> { bytes(&path, |b: [u8; 4]| f64::from(f32::from_le_bytes(b))) };
    let unsigned = |x: &i32| u32::try_from(*x).unwrap();
    let (sources, targets) = (indices("src.i32"), indices("dst.i32"));
    let edges: Vec<(u32, u32)> =
        sources.iter().zip(&targets).map(|(u, v)| (unsigned(u), unsigned(v))).collect();
    let features: Vec<Vec<f64>> = feature(data.join("feat.f32")).iter().map(|&x| vec![x]).collect();
    let class = indices("y.i32").iter().map(unsigned).collect();
    let graph = GraphBatch::graph(&features, &edges).unwrap();
    let graph = graph.with_node_targets(Targets::classes(2, class).unwrap()).unwrap();
    let batch = GraphBatch::union(&[graph]).unwrap();
    let (n, s, m, h) = (batch.nodes(), 10, 1, 20);

    let mut cases = 0;
    for entry in std::fs::read_dir(golden).unwrap() {
        let folder = entry.unwrap().path();
        let meta: Value =
            serde_json::from_slice(&std::fs::read(folder.join("meta.json")).unwrap()).unwrap();
        let text = |name: &str| meta[name].as_str().unwrap();
        let g = constraint(text("G"), meta["eps"].as_f64().unwrap());
        // One multiplier per node with a G of both signs is refused here; the same Lagrangian has
        // one per component, all of a node's alike, and its gradient is the sum of theirs.
        let signed = text("G").starts_with("lin");
        let network = Network {
            hidden_dims: vec![h],
            activation: Activation::Tanh,
            output_activation: match text("out_act") {
                "tanh" => Activation::Tanh,
                _ => Activation::Identity,
            },
        };
        let aggregation = if text("agg") == "sum" { Aggregation::Sum } else { Aggregation::Mean };
        let f_a = EdgeNetwork::new(s, m, 0, EdgeInputs::default(), &network, aggregation);
        let readout = Box::new(NodeReadout::new(s, 2, Network::one_hidden(20), 0.0));
        let multipliers = if signed { Multipliers::PerComponent } else { Multipliers::PerNode };
        let model = Model::<f64>::new(
            vec![Box::new(f_a)],
            readout,
            Reads::default(),
            Box::new(g),
            multipliers,
        )
        .unwrap();
        // PyTorch keeps [outputs, inputs]; the first layer reads [x_u; l_u; x_v; l_v] as ours does.
        let ours = |prefix: &str| -> Vec<f64> {
            let of = |name: &str| feature(folder.join(format!("{prefix}{name}.f32")));
            let turned = |name: &str, outputs: usize| transpose(&of(name), outputs);
            [
                turned("W1", h),
                of("b1"),
                turned("W2", s),
                of("b2"),
                turned("R1", 20),
                of("c1"),
                turned("R2", 2),
                of("c2"),
            ]
            .concat()
        };
        let lambda = feature(folder.join("lam.f32"));
        let lambda =
            if signed { lambda.iter().flat_map(|&l| vec![l; s]).collect() } else { lambda };
        let point = Variables {
            weights: ours(""),
            states: vec![matrix(n, feature(folder.join("X.f32")))],
            multipliers: vec![matrix(n, lambda)],
        };
        let supervision = Supervision::all(batch.node_targets().clone());
        let scratch = Scratch::new();
        let lagrangian = Lagrangian::new(&model, &batch, &supervision, MEANS, &scratch).unwrap();
        let mut gradient = point.zeros_like();
        let value = lagrangian.evaluate(&point, Request::ALL, &mut gradient).value();
        let case = folder.file_name().unwrap().to_string_lossy().into_owned();
        // The stored numbers are rounded to single precision.
        assert!((value - meta["loss"].as_f64().unwrap()).abs() < 1e-6, "{case}: {value}");
        assert!(error(&gradient.weights, &ours("grad_")) < 1e-6, "{case}");
        let states = feature(folder.join("grad_X.f32"));
        assert!(error(gradient.states[0].as_slice(), &states) < 1e-6, "{case}");
        let found: Vec<f64> = gradient.multipliers[0]
            .as_slice()
            .chunks(if signed { s } else { 1 })
            .map(|row| row.iter().sum())
            .collect();
        assert!(error(&found, &feature(folder.join("grad_lam.f32"))) < 1e-6, "{case}");
        cases += 1;
    }
    assert_eq!(cases, 20);
}

fn bytes<T>(path: &Path, read: impl Fn([u8; 4]) -> T) -> Vec<T> {
    let content = std::fs::read(path).unwrap();
    content.as_chunks::<4>().0.iter().map(|&chunk| read(chunk)).collect()
}

fn transpose(w: &[f64], rows: usize) -> Vec<f64> {
    let columns = w.len() / rows;
    (0..columns).flat_map(|j| (0..rows).map(move |i| w[i * columns + j])).collect()
}
