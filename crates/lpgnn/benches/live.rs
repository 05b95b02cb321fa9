//! A graph that changes: single edges, one by one.
//!
//! ```sh
//! cargo bench -p lpgnn --bench live -- [--nodes N] [--events N] [--tol TOL] [--state N] [--hidden N] [--transition NAME]
//! ```
//!
//! A random graph of ten neighbours per node; edges are removed and others added, in both directions at once. Prints a JSON
//! object: events per second, the latency, nodes touched, memory, and how long it takes to converge again from the states
//! that are there and from scratch.
#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs, reason = "this is a program")]
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "numbers of nodes")]

use std::time::Instant;

use lpgnn::graph::{Features, GraphBatch, Level};
use lpgnn::inference::{FixedPointOptions, converge, converge_from};
use lpgnn::live::{Event, LiveGraph, LiveOptions};
use lpgnn::train::{ModelConfig, ModelDims};
use lpgnn::transition::Degrees;
use lpgnn::{Matrix, NormMemory, Scratch, uniform};
use serde_json::json;

const FEATURES: usize = 8;

fn main() {
    let number = |name: &str, default: f64| {
        let mut arguments = std::env::args().skip_while(|x| x != name).skip(1);
        arguments.next().map_or(default, |x| x.parse().unwrap())
    };
    let nodes = number("--nodes", 1e5) as usize;
    let (events, tol) = (number("--events", 2e4) as usize, number("--tol", 1e-3));
    let (state_dim, hidden) = (number("--state", 16.0) as usize, number("--hidden", 16.0) as usize);
    let transition = std::env::args().skip_while(|x| x != "--transition").nth(1);
    let transition = transition.unwrap_or_else(|| "gnn-mean".into());
    rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build_global().unwrap();

    let mut draw = uniform(1);
    let mut edges = vec![];
    for u in 0..nodes as u32 {
        for _ in 0..5 {
            let v = (draw() * nodes as f64) as u32;
            edges.extend([(u, v), (v, u)]);
        }
    }
    edges.sort_unstable();
    edges.dedup();
    let entries = (0..nodes * FEATURES).map(|_| (2.0 * draw() - 1.0) as f32).collect();
    let features = Features::Dense(Matrix::from_entries(nodes, FEATURES, entries).unwrap());
    let batch = GraphBatch::of_graph(features, &edges).unwrap();
    let mut config = ModelConfig { state_dim, ..ModelConfig::default() };
    config.transition.clone_from(&transition);
    config.hidden_dims = vec![hidden];
    let dims =
        ModelDims { features: FEATURES, edge_features: 0, outputs: 4, level: Level::Node };
    let model = config.build::<f32>(dims).unwrap();
    let mut weights = model.start(0, &mut uniform(2)).weights;
    let degrees = Degrees::of(batch.topology());
    let range = model.transition_weights(0);
    model.transition(0).contract(&mut weights[range], degrees, 0.9, &mut NormMemory::default());

    let scratch = Scratch::new();
    let options = FixedPointOptions { tol: 0.1 * tol, ..FixedPointOptions::default() };
    let clock = Instant::now();
    let found = converge(&model, &weights, &batch, &options, &scratch);
    let from_scratch = clock.elapsed().as_secs_f64();
    // One edge changes: the states that are there are nearly right.
    let mut fewer = edges.clone();
    fewer.retain(|&(u, v)| (u, v) != edges[0] && (v, u) != edges[0]);
    let changed = GraphBatch::of_graph(batch.node_features().clone(), &fewer).unwrap();
    let clock = Instant::now();
    converge_from(&model, &weights, &changed, found.states.clone(), &options, &scratch);
    let from_kept = clock.elapsed().as_secs_f64();
    drop((found, changed, fewer));

    let options = LiveOptions { tol, ..LiveOptions::default() };
    let mut live = LiveGraph::new(&model, &weights, &batch, &edges, &options).unwrap();
    let static_bytes = batch.neighbours().len() * 8 + nodes * (4 + 4 * FEATURES + 4 * state_dim);
    let (mut latencies, mut touched, mut evaluated) = (vec![], 0, 0);
    let mut worst = 0_usize;
    while latencies.len() < events {
        let (u, v) = edges[(draw() * edges.len() as f64) as usize];
        let (u, v) = (u as usize, v as usize);
        if u == v || !live.contains_edge(u, v) {
            continue;
        }
        let w = (draw() * nodes as f64) as usize;
        let mut changes = vec![[Event::remove_edge(u, v), Event::remove_edge(v, u)]];
        if w != u && !live.contains_edge(u, w) {
            changes.push([Event::add_edge(u, w), Event::add_edge(w, u)]);
        }
        for change in changes {
            let clock = Instant::now();
            let report = live.apply(&change);
            latencies.push(clock.elapsed().as_secs_f64());
            touched += report.touched;
            evaluated += report.evaluated;
            worst = worst.max(report.touched);
        }
    }
    let total: f64 = latencies.iter().sum();
    let count = latencies.len() as f64;
    latencies.sort_by(f64::total_cmp);
    let quantile = |q: f64| 1e6 * latencies[((count - 1.0) * q) as usize];
    println!(
        "{}",
        json!({
            "transition": transition, "nodes": nodes, "edges": edges.len(), "state": state_dim, "hidden": hidden,
            "tol": tol, "events": count, "events_per_second": count / total,
            "p50_us": quantile(0.5), "p99_us": quantile(0.99),
            "touched": touched as f64 / count, "evaluated": evaluated as f64 / count, "most_touched": worst,
            "bytes": live.bytes(), "bytes_to_static": live.bytes() as f64 / static_bytes as f64,
            "from_kept_s": from_kept, "from_scratch_s": from_scratch,
        })
    );
}
