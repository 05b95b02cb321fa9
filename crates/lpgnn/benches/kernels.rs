//! The innermost loops one by one, with what they move and compute per second.
//!
//! ```sh
//! cargo bench -p lpgnn --bench kernels -- [--threads N] [--seconds S]
//! ```
//!
//! Bytes are those that must be read and written at least, operations those that must be done; a
//! tanh counts as one.
#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs, reason = "this is a program")]
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "sizes are known")]

mod support;

use std::hint::black_box;

use lpgnn::activation::Activation;
use lpgnn::inference::{FixedPointOptions, converge};
use lpgnn::kernels::{self, Small};
use lpgnn::network::Network;
use lpgnn::train::ModelConfig;
use lpgnn::transition::{
    Aggregation, EdgeInputs, EdgeNetwork, Gradients, Input, NeighbourSum, NodeNetwork, Transition,
};
use lpgnn::{Matrix, Scratch, uniform};
use support::clock::{blocks, median};
use support::workload::Workload;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let value = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments[at + 1].parse::<f64>().ok()
    };
    let seconds = value("--seconds").unwrap_or(0.5);
    let threads = value("--threads").unwrap_or(1.0) as usize;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).use_current_thread();
    pool.build_global().unwrap();
    println!("{:44} {:>12} {:>10} {:>10}", "kernel", "µs", "GB/s", "GFLOP/s");
    products(seconds);
    elementwise(seconds);
    for name in ["b", "c"] {
        let workload = Workload::generate(name);
        transitions(seconds, &workload);
        converging(seconds, &workload);
    }
}

fn say(name: &str, seconds: f64, bytes: usize, operations: usize, call: impl FnMut()) {
    let ms = median(&blocks(seconds, call));
    let rate = |count: usize| count as f64 / ms / 1e6;
    println!("{name:44} {:12.2} {:10.2} {:10.2}", 1e3 * ms, rate(bytes), rate(operations));
}

/// The products of one tile, as the update meets them; on one thread.
fn products(seconds: f64) {
    for (rows, inner, columns) in
        [(256, 10, 20), (256, 20, 10), (256, 50, 50), (256, 64, 32), (256, 32, 32), (256, 150, 150)]
    {
        let mut draw = uniform(1);
        let mut matrix =
            |entries: usize| (0..entries).map(|_| draw() as f32 - 0.5).collect::<Vec<f32>>();
        let (a, b) = (matrix(rows * inner), matrix(inner * columns));
        let small = Small::new(&b, inner, columns);
        let stride = kernels::row(columns);
        let mut c = vec![0.0; rows * stride];
        let bytes = 4 * (rows * inner + inner * columns + rows * columns);
        let operations = 2 * rows * inner * columns;
        say(&format!("A B, {rows}×{inner}×{columns}"), seconds, bytes, operations, || {
            small.product(rows, black_box(&a), &mut c);
            black_box(&mut c);
        });
        let mut d = vec![0.0; inner * stride];
        say(&format!("Aᵀ C, {inner}×{rows}×{columns}"), seconds, bytes, operations, || {
            kernels::transposed_product(rows, black_box(&a), inner, &c, columns, &mut d);
            // So that sums over many calls stay small.
            d.fill(0.0);
            black_box(&mut d);
        });
    }
}

fn elementwise(seconds: f64) {
    for (place, len) in [("in cache", 4096), ("in memory", 1 << 24)] {
        let mut y = vec![0.5_f32; len];
        say(&format!("tanh, {place}"), seconds, 8 * len, len, || {
            kernels::tanh(black_box(&mut y));
        });
        let (mut x, d) = (vec![0.5_f32; len], vec![0.1_f32; len]);
        let (mut first, mut second) = (vec![0.0_f32; len], vec![0.0_f32; len]);
        // Two moments and the variable, read and written, and the gradient; 12 operations each.
        say(&format!("Adam, {place}"), seconds, 28 * len, 12 * len, || {
            kernels::adam(black_box(&mut x), &d, [&mut first, &mut second]);
        });
    }
}

/// `f_a` and its derivatives on one large graph and on many small ones.
fn transitions(seconds: f64, workload: &Workload) {
    let (s, h) = (workload.state, workload.hidden);
    let m = workload.batch.node_features().width();
    let network = |output_activation| Network {
        hidden_dims: vec![h],
        activation: Activation::Tanh,
        output_activation,
    };
    let edges = |output, aggregation| -> Box<dyn Transition> {
        let inputs = EdgeInputs::default();
        Box::new(EdgeNetwork::new(s, m, 0, inputs, &network(output), aggregation))
    };
    let gin = NodeNetwork::new(s, m, &network(Activation::Identity), NeighbourSum::Plain);
    let cases: [(&str, Box<dyn Transition>); 4] = [
        ("GNN, linear output", edges(Activation::Identity, Aggregation::Sum)),
        ("GNN, tanh output", edges(Activation::Tanh, Aggregation::Sum)),
        ("GraphSAGE", edges(Activation::Identity, Aggregation::Max)),
        ("GIN", Box::new(gin)),
    ];
    for (kind, transition) in cases {
        let per_pair = kind.starts_with("GNN") || kind == "GraphSAGE";
        let last_per_pair = kind == "GNN, tanh output" || kind == "GraphSAGE";
        let name = format!("{kind}, {}", workload.name);
        transition_speed(&name, seconds, workload, &*transition, per_pair, last_per_pair);
    }
}

/// States from zero to their fixed point, with Anderson acceleration: what a prediction costs. Bytes
/// and operations are those of `f_a`, as often as it is applied.
fn converging(seconds: f64, workload: &Workload) {
    let config = ModelConfig {
        transition: "gnn-mean".into(),
        state_dim: workload.state,
        hidden_dims: vec![workload.hidden],
        ..ModelConfig::default()
    };
    let (batch, scratch) = (&workload.batch, Scratch::new());
    let model = config.build(workload.dims()).unwrap();
    let weights = model.start(batch.nodes(), &mut uniform(1)).weights;
    let options = FixedPointOptions { tol: 1e-6, fall_back: None, ..FixedPointOptions::default() };
    let count = converge(&model, &weights, batch, &options, &scratch).iterations;
    let (bytes, operations) = cost(workload, true, false);
    let name = format!("converging, {}, f_a {count} times", workload.name);
    say(&name, seconds, count * bytes, count * operations, || {
        black_box(converge(&model, &weights, batch, &options, &scratch));
    });
}

/// What applying `f_a` moves and computes: a row of the neighbour per pair, and every node's state in
/// and out.
fn cost(workload: &Workload, per_pair: bool, last_per_pair: bool) -> (usize, usize) {
    let (batch, s, h) = (&workload.batch, workload.state, workload.hidden);
    let (nodes, pairs) = (batch.nodes(), batch.neighbours().len());
    let dense = if workload.name == "c" { batch.node_features().width() } else { 0 };
    let bytes = 4 * (pairs * (if per_pair { h } else { s }) + pairs + 2 * nodes * s);
    let sides = if per_pair { 2 } else { 1 };
    let first = 2 * nodes * sides * (s + dense) * h;
    let second = 2 * (if last_per_pair { pairs } else { nodes }) * h * s;
    let units = if per_pair { pairs * 2 * h } else { nodes * h + pairs * s };
    (bytes, first + second + units)
}

fn transition_speed(
    name: &str,
    seconds: f64,
    workload: &Workload,
    transition: &dyn Transition,
    per_pair: bool,
    last_per_pair: bool,
) {
    let (batch, s, nodes) = (&workload.batch, workload.state, workload.batch.nodes());
    let mut draw = uniform(4);
    let mut weights = vec![0.0; transition.parameters().weights()];
    transition.parameters().initialize(&mut draw, &mut weights);
    let states = (0..nodes * s).map(|_| draw() as f32 - 0.5).collect();
    let states = Matrix::from_entries(nodes, s, states).unwrap();
    let input = Input::of(batch, &states);
    let scratch = Scratch::new();

    let (bytes, operations) = cost(workload, per_pair, last_per_pair);
    let mut f_x = Matrix::zeros(nodes, s);
    say(&format!("{name}, forward"), seconds, bytes, operations, || {
        transition.forward(&weights, input, &mut f_x, &scratch);
    });
    let (mut d_weights, mut d_states) = (weights.clone(), Matrix::zeros(nodes, s));
    // Forward once more, then into states and weights.
    say(&format!("{name}, backward"), seconds, 3 * bytes, 3 * operations, || {
        let gradients = Gradients::new(Some(&mut d_weights), &mut d_states, None);
        transition.backward(&weights, input, &f_x, gradients, &scratch);
    });
}
