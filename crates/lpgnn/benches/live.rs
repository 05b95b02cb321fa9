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
use lpgnn::lagrangian::Model;
use lpgnn::live::{Event, LiveGraph, LiveOptions};
use lpgnn::train::{ModelConfig, ModelDims};
use lpgnn::transition::Degrees;
use lpgnn::{Matrix, NormMemory, Scratch, uniform};
use serde_json::json;

const FEATURES: usize = 8;

struct Case {
    edges: Vec<(u32, u32)>,
    batch: GraphBatch<f32>,
    model: Model<f32>,
    weights: Vec<f32>,
}

fn main() {
    let argument = |name: &str| std::env::args().skip_while(|x| x != name).nth(1);
    let number = |name: &str, default: f64| argument(name).map_or(default, |x| x.parse().unwrap());
    let (nodes, events) = (number("--nodes", 1e5) as usize, number("--events", 2e4) as usize);
    let (tol, state_dim) = (number("--tol", 2e-3), number("--state", 16.0) as usize);
    let hidden = number("--hidden", 16.0) as usize;
    let transition = argument("--transition").unwrap_or_else(|| "gnn-mean".into());
    rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build_global().unwrap();

    let config = ModelConfig {
        state_dim,
        hidden_dims: vec![hidden],
        transition: transition.clone(),
        ..ModelConfig::default()
    };
    let case = Case::new(nodes, &config);
    let (from_scratch, from_kept) = case.converge(tol);
    let options = LiveOptions { tol, ..LiveOptions::default() };
    let live = LiveGraph::new(&case.model, &case.weights, &case.batch, &case.edges, &options);
    let mut live = live.unwrap();
    let (mut latencies, touched, evaluated) = case.change(&mut live, events);
    let (count, total) = (latencies.len() as f64, latencies.iter().sum::<f64>());
    latencies.sort_by(f64::total_cmp);
    let quantile = |q: f64| 1e6 * latencies[((count - 1.0) * q) as usize];
    // Neighbours with their twins, features and states.
    let pairs = case.batch.neighbours().len();
    let still = pairs * 8 + nodes * (4 + 4 * FEATURES + 4 * state_dim);
    println!(
        "{}",
        json!({
            "transition": transition, "nodes": nodes, "edges": case.edges.len(), "state": state_dim,
            "hidden": hidden, "tol": tol, "events": count, "events_per_second": count / total,
            "p50_us": quantile(0.5), "p99_us": quantile(0.99),
            "touched": touched as f64 / count, "evaluated": evaluated as f64 / count,
            "bytes": live.bytes(), "bytes_to_static": live.bytes() as f64 / still as f64,
            "from_kept_s": from_kept, "from_scratch_s": from_scratch,
        })
    );
}

impl Case {
    /// A random graph, and a model that contracts by 0.9 on it.
    fn new(nodes: usize, config: &ModelConfig) -> Self {
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
        let dims =
            ModelDims { features: FEATURES, edge_features: 0, outputs: 4, level: Level::Node };
        let model = config.build::<f32>(dims).unwrap();
        let mut weights = model.start(0, &mut uniform(2)).weights;
        let degrees = Degrees::of(batch.topology());
        let range = model.transition_weights(0);
        let memory = &mut NormMemory::default();
        model.transition(0).contract(&mut weights[range], degrees, 0.9, memory);
        Self { edges, batch, model, weights }
    }

    /// Seconds to converge from zero, and from the states that are there after one edge has gone.
    fn converge(&self, tol: f64) -> (f64, f64) {
        let Self { model, weights, batch, edges } = self;
        let options = FixedPointOptions { tol: 0.1 * tol, ..FixedPointOptions::default() };
        let scratch = Scratch::new();
        let clock = Instant::now();
        let found = converge(model, weights, batch, &options, &scratch);
        let from_scratch = clock.elapsed().as_secs_f64();
        let mut fewer = edges.clone();
        fewer.retain(|&(u, v)| (u, v) != edges[0] && (v, u) != edges[0]);
        let changed = GraphBatch::of_graph(batch.node_features().clone(), &fewer).unwrap();
        let clock = Instant::now();
        converge_from(model, weights, &changed, found.states, &options, &scratch);
        (from_scratch, clock.elapsed().as_secs_f64())
    }

    /// Edges go and others come; seconds per event, and nodes touched and computed in all.
    fn change(&self, live: &mut LiveGraph, events: usize) -> (Vec<f64>, usize, usize) {
        let (mut draw, nodes) = (uniform(3), self.batch.nodes() as f64);
        let (mut latencies, mut touched, mut evaluated) = (vec![], 0, 0);
        while latencies.len() < events {
            let (u, v) = self.edges[(draw() * self.edges.len() as f64) as usize];
            let (u, v, w) = (u as usize, v as usize, (draw() * nodes) as usize);
            if u == v || u == w || !live.contains_edge(u, v) || live.contains_edge(u, w) {
                continue;
            }
            let removed = [Event::remove_edge(u, v), Event::remove_edge(v, u)];
            let added = [Event::add_edge(u, w), Event::add_edge(w, u)];
            for change in [removed, added] {
                let clock = Instant::now();
                let report = live.apply(&change);
                latencies.push(clock.elapsed().as_secs_f64());
                touched += report.touched;
                evaluated += report.evaluated;
            }
        }
        (latencies, touched, evaluated)
    }
}
