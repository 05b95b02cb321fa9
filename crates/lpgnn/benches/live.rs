//! A graph that changes: single edges, one by one.
//!
//! ```sh
//! cargo bench -p lpgnn --bench live -- [--nodes N] [--events N] [--warm N] [--batch N] [--tol TOL] [--final-tol TOL]
//!     [--state N] [--hidden N] [--transition NAME] [--model FILE --data PATH] [--threads N]
//! ```
//!
//! A random graph of ten neighbours per node; edges are removed and others added, in both directions at once. With `--model`, a
//! data set of one graph and a model that was trained on it: edges are removed and streamed back. Prints a JSON object: events
//! per second, the latency, nodes touched, memory, and how long it takes to converge again from the states that are there
//! and from scratch.
#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs, reason = "this is a program")]
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "numbers of nodes")]

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Instant;

use lpgnn::data::{ReadOptions, read};
use lpgnn::graph::{Features, GraphBatch, Level};
use lpgnn::inference::{FixedPointOptions, converge, converge_from};
use lpgnn::lagrangian::Model;
use lpgnn::live::{Event, LiveGraph, LiveOptions};
use lpgnn::run::SavedModel;
use lpgnn::train::{ModelConfig, ModelDims};
use lpgnn::transition::Degrees;
use lpgnn::{Matrix, NormMemory, Scratch, uniform};
use serde_json::json;

const FEATURES: usize = 8;

struct Case {
    edges: Vec<(u32, u32)>,
    batch: GraphBatch<f32>,
    model: Owner,
    weights: Vec<f32>,
}

enum Owner {
    Drawn(Model<f32>),
    Saved(Box<SavedModel>),
}

fn main() {
    let argument = |name: &str| std::env::args().skip_while(|x| x != name).nth(1);
    let number = |name: &str, default: f64| argument(name).map_or(default, |x| x.parse().unwrap());
    let (nodes, events) = (number("--nodes", 1e5) as usize, number("--events", 2e4) as usize);
    let (warm, batch) = (number("--warm", 0.0) as usize, number("--batch", 1.0) as usize);
    let threads = number("--threads", 1.0) as usize;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).use_current_thread();
    pool.build_global().unwrap();

    let (case, name) = if let (Some(model), Some(data)) = (argument("--model"), argument("--data"))
    {
        Case::saved(Path::new(&model), Path::new(&data))
    } else {
        let config = ModelConfig {
            state_dim: number("--state", 16.0) as usize,
            hidden_dims: vec![number("--hidden", 16.0) as usize],
            transition: argument("--transition").unwrap_or_else(|| "gnn-mean".into()),
            ..ModelConfig::default()
        };
        (Case::new(nodes, &config), "random".to_owned())
    };
    let tol = number("--tol", 1e-3);
    let (from_scratch, from_kept) = case.converge(tol);
    let final_tol = argument("--final-tol").map(|x| x.parse().unwrap());
    let options = LiveOptions { tol, final_tol, ..LiveOptions::default() };
    let live = LiveGraph::new(case.model(), &case.weights, &case.batch, &case.edges, &options);
    let mut live = live.unwrap();
    let mut draw = uniform(3);
    case.change(&mut live, warm, 1, &mut draw);
    let Changed { mut latencies, events: count, touched, evaluated } =
        case.change(&mut live, events, batch, &mut draw);
    let (calls, total) = (latencies.len() as f64, latencies.iter().sum::<f64>());
    latencies.sort_by(f64::total_cmp);
    let quantile = |q: f64| 1e6 * latencies[((calls - 1.0) * q) as usize];
    let count = count as f64;
    println!(
        "{}",
        json!({
            "data": name, "nodes": case.batch.nodes(), "edges": case.edges.len(), "tol": tol,
            "lipschitz": live.lipschitz(), "events": count, "batch": batch, "threads": threads,
            "events_per_second": count / total, "p50_us": quantile(0.5), "p99_us": quantile(0.99),
            "touched": touched as f64 / count, "evaluated": evaluated as f64 / count,
            "bytes": live.bytes(), "bytes_to_static": live.bytes() as f64 / case.bytes() as f64,
            "from_kept_s": from_kept, "from_scratch_s": from_scratch,
        })
    );
}

/// What some events took: seconds of every call, and nodes touched and computed in all.
#[derive(Default)]
struct Changed {
    latencies: Vec<f64>,
    events: usize,
    touched: usize,
    evaluated: usize,
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
        Self { edges, batch, model: Owner::Drawn(model), weights }
    }

    /// A model that was trained, and the name of its data.
    fn saved(model: &Path, data: &Path) -> (Self, String) {
        let model = SavedModel::read(model).unwrap();
        let data = read(data, &ReadOptions::default()).unwrap();
        let batch = model.encoding.batch_without_targets::<f32>(&data).unwrap();
        let (edges, weights) = (data.edges().to_vec(), model.weights.clone());
        (Self { edges, batch, model: Owner::Saved(model.into()), weights }, data.name().to_owned())
    }

    fn model(&self) -> &Model<f32> {
        match &self.model {
            Owner::Drawn(model) => model,
            Owner::Saved(model) => model.functions(),
        }
    }

    /// Neighbours with their twins, features and states: the graph that stands still.
    fn bytes(&self) -> usize {
        let nodes = self.batch.nodes();
        let features = match self.batch.node_features() {
            Features::Dense(rows) => 4 * rows.as_slice().len(),
            Features::OneHot(_) => 4 * nodes,
            Features::Sparse(rows) => 8 * rows.stored() + 8 * nodes,
        };
        let states: usize =
            self.model().transitions().map(lpgnn::transition::Transition::state_dim).sum();
        self.batch.neighbours().len() * 8 + nodes * (4 + 4 * states) + features
    }

    /// Seconds to converge from zero, and from the states that are there after one edge has gone.
    fn converge(&self, tol: f64) -> (f64, f64) {
        let Self { weights, batch, edges, .. } = self;
        let model = self.model();
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

    /// Edges go and others come; of a data set, the same ones come back.
    fn change(
        &self,
        live: &mut LiveGraph,
        events: usize,
        batch: usize,
        draw: &mut impl FnMut() -> f64,
    ) -> Changed {
        let nodes = self.batch.nodes() as f64;
        let is_real = matches!(self.model, Owner::Saved(_));
        let mut changes: Vec<[Event; 2]> = vec![];
        let mut later: Vec<[Event; 2]> = vec![];
        let mut gone = BTreeSet::new();
        while changes.len() + later.len() < events {
            let (u, v) = self.edges[(draw() * self.edges.len() as f64) as usize];
            let (u, v, w) = (u as usize, v as usize, (draw() * nodes) as usize);
            let is_new = u != v && u != w && live.contains_edge(u, v) && live.contains_edge(v, u);
            let free = is_real || !(live.contains_edge(u, w) || live.contains_edge(w, u));
            if !is_new || !free || !gone.insert((u.min(v), u.max(v))) {
                continue;
            }
            if !is_real && !gone.insert((u.min(w), u.max(w))) {
                continue;
            }
            changes.push([Event::remove_edge(u, v), Event::remove_edge(v, u)]);
            if is_real {
                later.push([Event::add_edge(u, v), Event::add_edge(v, u)]);
            } else {
                changes.push([Event::add_edge(u, w), Event::add_edge(w, u)]);
            }
        }
        changes.append(&mut later);
        let mut all = Changed::default();
        for changes in changes.chunks(batch) {
            let clock = Instant::now();
            let report = live.apply(&changes.concat());
            all.latencies.push(clock.elapsed().as_secs_f64());
            let refused = report.results.iter().find_map(|result| result.as_ref().err());
            assert!(refused.is_none(), "{}", refused.unwrap());
            all.events += changes.len();
            all.touched += report.touched;
            all.evaluated += report.evaluated;
        }
        all
    }
}
