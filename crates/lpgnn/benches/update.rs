//! Whole updates: forward, all gradients, the three optimiser steps.
//!
//! ```sh
//! cargo bench -p lpgnn --bench update -- [WORKLOAD…] [--threads N] [--tanh] [--seconds S] [--raw DIR]
//! ```
//!
//! Prints a JSON line per workload: the median, least and largest milliseconds per update over
//! blocks of updates, and the peak memory of the process. Workloads are generated from a seed, or
//! read from `DIR/NAME` as raw little-endian arrays (`meta.json`, `src.i32`, `dst.i32`,
//! `feat.f32` or `label.i32`, `gid.i32`, `y.i32`), so that others can run on the same bytes.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    missing_docs,
    reason = "a benchmark that cannot go on has failed"
)]
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "sizes are known")]

use std::path::Path;
use std::time::Instant;

use lpgnn::activation::Activation;
use lpgnn::check::uniform;
use lpgnn::constraint::ConstraintFunction;
use lpgnn::graph::{BatchParts, GraphBatch, Labels, OneHot, Targets};
use lpgnn::lagrangian::{Lagrangian, Multipliers, Scale, Weighing};
use lpgnn::output::Supervision;
use lpgnn::saddle::{Bdmm, Memory, OneShot, SaddleSolver, Unrolled, WeightDescent};
use lpgnn::train::{ModelConfig, TransitionKind};
use lpgnn::{Matrix, Scratch};

/// A workload and the sizes of its model.
struct Workload {
    batch: GraphBatch<f32>,
    per_graph: bool,
    classes: usize,
    state: usize,
    hidden: usize,
}

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let (mut names, mut threads, mut tanh, mut seconds, mut raw) = (vec![], 1, false, 3.0, None);
    let (mut solver, mut transition) = ("bdmm".to_owned(), TransitionKind::GnnSum);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().unwrap();
        match argument.as_str() {
            "--threads" => threads = value().parse().unwrap(),
            "--seconds" => seconds = value().parse().unwrap(),
            "--raw" => raw = Some(value()),
            "--tanh" => tanh = true,
            "--solver" => solver = value(),
            "--transition" => {
                transition = serde_json::from_str(&format!("\"{}\"", value())).unwrap();
            }
            _ => names.push(argument),
        }
    }
    if names.is_empty() {
        names = ["a", "b", "b_l", "c"].map(str::to_owned).to_vec();
    }
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global().unwrap();
    for name in names {
        let workload = match &raw {
            Some(folder) => read(Path::new(folder), &name),
            None => generate(&name),
        };
        run(&name, &workload, threads, tanh, seconds, &solver, transition);
    }
}

fn run(
    name: &str,
    workload: &Workload,
    threads: usize,
    tanh: bool,
    seconds: f64,
    solver: &str,
    transition: TransitionKind,
) {
    let batch = &workload.batch;
    let linear = solver != "bdmm";
    let config = ModelConfig {
        transition,
        state: workload.state,
        hidden: vec![workload.hidden],
        readout_hidden: vec![workload.hidden],
        output_activation: if tanh { Activation::Tanh } else { Activation::Identity },
        constraint: if linear {
            ConstraintFunction::Linear
        } else {
            ConstraintFunction::AbsoluteInsensitive { epsilon: 0.01 }
        },
        multipliers: if linear { Multipliers::PerComponent } else { Multipliers::PerNode },
        ..ModelConfig::default()
    };
    let width = batch.node_labels().width();
    let model = config.build::<f32>(width, 0, workload.classes, workload.per_graph).unwrap();
    let targets = if workload.per_graph { batch.graph_targets() } else { batch.node_targets() };
    let supervision = Supervision::all(targets.clone());
    let scratch = Scratch::new();
    let constraint = if linear { Scale::Sum } else { Scale::Mean };
    let weighing = Weighing { loss: Scale::Mean, constraint, ..Weighing::default() };
    let lagrangian = Lagrangian::new(&model, batch, &supervision, weighing, &scratch).unwrap();
    let weights = WeightDescent { rate: 1e-3, ..WeightDescent::default() };
    let mut solver: Box<dyn SaddleSolver<f32>> = match solver {
        "bdmm" => {
            Box::new(Bdmm { weights, state_rate: 1e-3, multiplier_rate: 1e-3, ..Bdmm::default() })
        }
        "one-shot" => Box::new(OneShot { weights, ..OneShot::default() }),
        other => {
            let steps = other.strip_prefix("unrolled-").and_then(|t| t.parse().ok()).unwrap();
            Box::new(Unrolled { weights, tolerance: 1e-30, steps })
        }
    };
    let mut at = model.start(batch.nodes(), &mut uniform(1));
    let mut memory = Memory::new(&at);
    let mut step = || solver.step(&lagrangian, &mut at, &mut memory);
    let begin = Instant::now();
    step();
    let first = begin.elapsed().as_secs_f64();
    for _ in 0..((0.2 / first) as usize).min(200) {
        step();
    }
    // Blocks of about a tenth of a second.
    let begin = Instant::now();
    step();
    let per_block = ((0.1 / begin.elapsed().as_secs_f64()) as usize).max(1);
    let (mut blocks, begin) = (vec![], Instant::now());
    while blocks.len() < 5 || begin.elapsed().as_secs_f64() < seconds {
        let block = Instant::now();
        for _ in 0..per_block {
            step();
        }
        blocks.push(1e3 * block.elapsed().as_secs_f64() / per_block as f64);
    }
    blocks.sort_by(f64::total_cmp);
    println!(
        "{{\"workload\":\"{name}\",\"threads\":{threads},\"output\":\"{}\",\"ms\":{:.4},\"least\":{:.4},\"most\":{:.4},\"first_ms\":{:.1},\"peak_mb\":{}}}",
        if tanh { "tanh" } else { "linear" },
        blocks[blocks.len() / 2],
        blocks[0],
        blocks[blocks.len() - 1],
        1e3 * first,
        peak_megabytes()
    );
}

/// The largest memory of this process so far; 0 where the system does not say.
fn peak_megabytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<usize>().ok());
    kilobytes.unwrap_or(0) / 1024
}

fn sizes(name: &str) -> (usize, usize) {
    match name {
        "a" | "b_s" => (10, 20),
        "b" | "nci1" | "mutag" => (50, 50),
        "b_l" => (150, 150),
        _ => (32, 32),
    }
}

/// The workload of that name, from a fixed seed.
fn generate(name: &str) -> Workload {
    match name {
        "a" => many(name, 100, 7, 7, 3.8, None),
        "b" | "b_s" | "b_l" => many(name, 4110, 10, 49, 2.16, Some(37)),
        "c" => one(name, 100_000, 10),
        "d" => one(name, 1_000_000, 10),
        other => {
            // One graph of that many neighbours, for the cost per arc.
            let arcs: usize = other.parse().expect("a workload or a number of arcs");
            one(name, arcs / 10, 10)
        }
    }
}

/// Random connected graphs of `least..=most` nodes and about `degree` neighbours each.
fn many(
    name: &str,
    graphs: usize,
    least: usize,
    most: usize,
    degree: f64,
    labels: Option<usize>,
) -> Workload {
    let mut draw = uniform(1);
    let mut below = |n: usize| ((draw() * n as f64) as usize).min(n - 1);
    let (mut node_starts, mut arcs) = (vec![0], vec![]);
    for _ in 0..graphs {
        let start = node_starts[node_starts.len() - 1];
        let nodes = least + below(most - least + 1);
        let mut tie = |u: usize, v: usize| {
            let (u, v) = ((start + u) as u32, (start + v) as u32);
            arcs.extend([(u, v), (v, u)]);
        };
        for v in 1..nodes {
            tie(v - 1 - below(v.min(3)), v);
        }
        for _ in 0..((nodes as f64 * degree / 2.0) as usize).saturating_sub(nodes - 1) {
            let (u, v) = (below(nodes), below(nodes));
            if u != v {
                tie(u, v);
            }
        }
        node_starts.push(start + nodes);
    }
    arcs.sort_unstable();
    arcs.dedup();
    let nodes = node_starts[graphs];
    let node_labels = if let Some(width) = labels {
        let columns = (0..nodes).map(|_| below(width) as u32).collect();
        Labels::OneHot(OneHot::new(width, columns).unwrap())
    } else {
        let entries = (0..nodes).map(|_| below(1000) as f32 / 100.0).collect();
        Labels::Dense(Matrix::from_entries(nodes, 1, entries).unwrap())
    };
    let per_graph = labels.is_some();
    let rows = if per_graph { graphs } else { nodes };
    let class = (0..rows).map(|_| below(2) as u32).collect();
    let targets = Targets::classes(2, class).unwrap();
    let (node_targets, graph_targets) =
        if per_graph { (Targets::None(nodes), targets) } else { (targets, Targets::None(graphs)) };
    let arc_labels = Labels::none(arcs.len());
    let parts =
        BatchParts { node_starts, arcs, node_labels, arc_labels, node_targets, graph_targets };
    let (state, hidden) = sizes(name);
    Workload { batch: GraphBatch::from_parts(parts).unwrap(), per_graph, classes: 2, state, hidden }
}

/// One random graph with 64 real features per node.
fn one(name: &str, nodes: usize, degree: usize) -> Workload {
    let mut draw = uniform(2);
    let mut arcs = Vec::with_capacity(nodes * degree);
    while arcs.len() < nodes * degree {
        let (u, v) = ((draw() * nodes as f64) as u32, (draw() * nodes as f64) as u32);
        if u != v {
            arcs.extend([(u, v), (v, u)]);
        }
    }
    arcs.sort_unstable();
    arcs.dedup();
    let entries = (0..nodes * 64).map(|_| draw() as f32 - 0.5).collect();
    let class = (0..nodes).map(|_| (draw() * 10.0) as u32).collect();
    let (state, hidden) = sizes(name);
    let parts = BatchParts {
        node_starts: vec![0, nodes],
        node_labels: Labels::Dense(Matrix::from_entries(nodes, 64, entries).unwrap()),
        arc_labels: Labels::none(arcs.len()),
        arcs,
        node_targets: Targets::classes(10, class).unwrap(),
        graph_targets: Targets::None(1),
    };
    let batch = GraphBatch::from_parts(parts).unwrap();
    Workload { batch, per_graph: false, classes: 10, state, hidden }
}

/// A workload from raw arrays.
fn read(folder: &Path, name: &str) -> Workload {
    let folder = folder.join(name.strip_suffix("_l").or(name.strip_suffix("_s")).unwrap_or(name));
    let meta: serde_json::Value =
        serde_json::from_slice(&std::fs::read(folder.join("meta.json")).unwrap()).unwrap();
    let bytes = |file: &str| std::fs::read(folder.join(file)).unwrap();
    let integers = |file: &str| -> Vec<u32> {
        bytes(file).as_chunks::<4>().0.iter().map(|&b| u32::from_le_bytes(b)).collect()
    };
    let size = |key: &str| meta[key].as_u64().unwrap() as usize;
    let (nodes, graphs) = (size("V"), size("G"));
    let mut arcs: Vec<(u32, u32)> =
        integers("src.i32").into_iter().zip(integers("dst.i32")).collect();
    arcs.sort_unstable();
    let mut node_starts = vec![0; graphs + 1];
    for graph in integers("gid.i32") {
        node_starts[graph as usize + 1] += 1;
    }
    for graph in 0..graphs {
        node_starts[graph + 1] += node_starts[graph];
    }
    let node_labels = if meta["onehot"].as_bool().unwrap() {
        Labels::OneHot(OneHot::new(size("m"), integers("label.i32")).unwrap())
    } else {
        let values =
            bytes("feat.f32").as_chunks::<4>().0.iter().map(|&b| f32::from_le_bytes(b)).collect();
        Labels::Dense(Matrix::from_entries(nodes, size("m"), values).unwrap())
    };
    let per_graph = meta["graph"].as_bool().unwrap();
    let targets = Targets::classes(size("classes"), integers("y.i32")).unwrap();
    let (node_targets, graph_targets) =
        if per_graph { (Targets::None(nodes), targets) } else { (targets, Targets::None(graphs)) };
    let arc_labels = Labels::none(arcs.len());
    let parts =
        BatchParts { node_starts, arcs, node_labels, arc_labels, node_targets, graph_targets };
    let (state, hidden) = sizes(name);
    let batch = GraphBatch::from_parts(parts).unwrap();
    Workload { batch, per_graph, classes: size("classes"), state, hidden }
}
