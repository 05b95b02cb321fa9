//! Workloads: generated from a seed, read from raw arrays, or real.

use std::path::Path;

use lpgnn::data::{Encoding, FeatureOptions, ReadOptions};
use lpgnn::graph::{BatchParts, Features, GraphBatch, Level, OneHot, Targets};
use lpgnn::train::ModelDims;
use lpgnn::{Matrix, data, uniform};
use serde_json::json;

/// Graphs, and the sizes of the model that is trained on them.
pub(crate) struct Workload {
    pub(crate) name: String,
    pub(crate) batch: GraphBatch<f32>,
    pub(crate) level: Level,
    pub(crate) classes: usize,
    pub(crate) state: usize,
    pub(crate) hidden: usize,
}

/// State and hidden units for a workload of this name.
fn sizes(name: &str) -> (usize, usize) {
    match name {
        "a" => (10, 20),
        "b" | "b_tiny" => (50, 50),
        "b_l" => (150, 150),
        _ => (32, 32),
    }
}

impl Workload {
    /// The workload of that name, always the same.
    ///
    /// | name | graphs |
    /// |---|---|
    /// | `a` | 100 of 7 nodes, with one real feature, node-focused |
    /// | `b`, `b_l` | 4110 of about 30 nodes with 37 one-hot features, graph-focused |
    /// | `b_tiny` | 12 of the same kind |
    /// | `c`, `d` | one of 10⁵ or 10⁶ nodes and ten times as many edges, 64 real features, node-focused |
    /// | a number | like `c`, with that many edges |
    /// | `chain:N`, `random:N` | one of N nodes and 2 (N − 1) edges, a chain or random |
    pub(crate) fn generate(name: &str) -> Self {
        let whole = |text: &str| text.parse::<f64>().ok().map(|count| count as usize);
        match name {
            "a" => many(name, 100, 7, 7, 6.5, None),
            "b" | "b_l" => many(name, 4110, 10, 49, 2.25, Some(37)),
            "b_tiny" => many(name, 12, 10, 49, 2.25, Some(37)),
            "c" => random(name, 100_000, 1_000_000),
            "d" => random(name, 1_000_000, 10_000_000),
            _ => match name.split_once(':') {
                Some(("chain", nodes)) => chain(name, whole(nodes).unwrap()),
                Some(("random", nodes)) => {
                    let nodes = whole(nodes).unwrap();
                    random(name, nodes, 2 * (nodes - 1))
                }
                _ => {
                    let edges = whole(name).expect("a workload or a number of edges");
                    random(name, edges / 10, edges)
                }
            },
        }
    }

    /// A data set in any format, its features encoded as in training, without features of edges.
    pub(crate) fn real(path: &Path) -> Self {
        let dataset = data::read(path, &ReadOptions::default()).unwrap_or_else(|e| panic!("{e}"));
        let options = FeatureOptions { edges: false, ..FeatureOptions::default() };
        let encoding = Encoding::new(&dataset, &options).unwrap();
        let batch = encoding.batch::<f32>(&dataset).unwrap();
        let of_nodes = matches!(batch.graph_targets(), Targets::None(_));
        let level = if of_nodes { Level::Node } else { Level::Graph };
        let classes = level.targets_of(&batch).width();
        Self { name: dataset.name().to_owned(), batch, level, classes, state: 50, hidden: 50 }
    }

    /// What a model of it reads and predicts.
    pub(crate) fn dims(&self) -> ModelDims {
        ModelDims {
            features: self.batch.node_features().width(),
            edge_features: 0,
            outputs: self.classes,
            level: self.level,
        }
    }

    /// A workload from raw arrays, as [`write`](Self::write) leaves them in `folder/name`.
    pub(crate) fn read(folder: &Path, name: &str) -> Self {
        let folder = folder.join(name);
        let meta: serde_json::Value =
            serde_json::from_slice(&std::fs::read(folder.join("meta.json")).unwrap()).unwrap();
        let integers = |file: &str| read_array(&folder.join(file), u32::from_le_bytes);
        let size = |key: &str| meta[key].as_u64().unwrap() as usize;
        let (nodes, graphs) = (size("V"), size("G"));
        let mut edges: Vec<(u32, u32)> =
            integers("src.i32").into_iter().zip(integers("dst.i32")).collect();
        edges.sort_unstable();
        let mut node_starts = vec![0; graphs + 1];
        for graph in integers("gid.i32") {
            node_starts[graph as usize + 1] += 1;
        }
        for graph in 0..graphs {
            node_starts[graph + 1] += node_starts[graph];
        }
        let features = if meta["onehot"].as_bool().unwrap() {
            Features::OneHot(OneHot::new(size("m"), integers("feature.i32")).unwrap())
        } else {
            let values = read_array(&folder.join("feat.f32"), f32::from_le_bytes);
            Features::Dense(Matrix::from_entries(nodes, size("m"), values).unwrap())
        };
        let of_graphs = meta["graph"].as_bool().unwrap();
        let level = if of_graphs { Level::Graph } else { Level::Node };
        Self::new(name, node_starts, edges, features, level, size("classes"), integers("y.i32"))
    }

    /// Writes raw little-endian arrays to `folder/name`, for programs in other languages.
    ///
    /// | file | holds |
    /// |---|---|
    /// | `meta.json` | `V` nodes, `E` edges, `G` graphs, `m` components of a feature, `classes`, whether features are `onehot`, whether targets are of a `graph`, `state`, `hidden` |
    /// | `src.i32`, `dst.i32` | edges by target, then source |
    /// | `feat.f32` or `feature.i32` | features, or the column that is 1 |
    /// | `gid.i32` | the graph of every node |
    /// | `y.i32` | the class of every node or graph |
    pub(crate) fn write(&self, folder: &Path) {
        let folder = folder.join(&self.name);
        std::fs::create_dir_all(&folder).unwrap();
        let (batch, neighbours) = (&self.batch, self.batch.neighbours());
        let integers = |file: &str, values: &mut dyn Iterator<Item = u32>| {
            write_array(&folder.join(file), values.map(u32::to_le_bytes));
        };
        integers("src.i32", &mut neighbours.nodes().iter().copied());
        let targets = (0..batch.nodes()).flat_map(|v| neighbours.of(v).iter().map(move |_| v));
        integers("dst.i32", &mut targets.map(|v| v as u32));
        let graphs = (0..batch.graphs()).flat_map(|g| batch.nodes_of(g).map(move |_| g as u32));
        integers("gid.i32", &mut graphs.into_iter());
        match batch.node_features() {
            Features::OneHot(one_hot) => {
                integers("feature.i32", &mut one_hot.columns().iter().copied());
            }
            Features::Dense(matrix) => {
                let values = matrix.as_slice().iter().map(|x| x.to_le_bytes());
                write_array(&folder.join("feat.f32"), values);
            }
            Features::Sparse(_) => panic!("sparse features have no raw form"),
        }
        let Targets::Classes { class, .. } = self.level.targets_of(batch) else {
            panic!("targets are classes")
        };
        integers("y.i32", &mut class.iter().copied());
        // Last, so that a folder with it is complete.
        let meta = json!({
            "V": batch.nodes(), "E": neighbours.len(), "G": batch.graphs(),
            "m": batch.node_features().width(), "classes": self.classes,
            "onehot": matches!(batch.node_features(), Features::OneHot(_)),
            "graph": self.level == Level::Graph,
            "state": self.state, "hidden": self.hidden,
        });
        std::fs::write(folder.join("meta.json"), meta.to_string()).unwrap();
    }

    fn new(
        name: &str,
        node_starts: Vec<usize>,
        edges: Vec<(u32, u32)>,
        node_features: Features<f32>,
        level: Level,
        classes: usize,
        class: Vec<u32>,
    ) -> Self {
        let (nodes, graphs) = (node_features.rows(), node_starts.len() - 1);
        let targets = Targets::classes(classes, class).unwrap();
        let (node_targets, graph_targets) = match level {
            Level::Node => (targets, Targets::None(graphs)),
            Level::Graph => (Targets::None(nodes), targets),
        };
        let edge_features = Features::none(edges.len());
        let parts = BatchParts {
            node_starts,
            edges,
            node_features,
            edge_features,
            node_targets,
            graph_targets,
        };
        let (state, hidden) = sizes(name);
        let batch = GraphBatch::from_parts(parts).unwrap();
        Self { name: name.to_owned(), batch, level, classes, state, hidden }
    }
}

/// Random connected graphs of `least..=most` nodes. Edges are drawn until there are `degree` per
/// node, and counted once if drawn twice: so there are fewer, by far where graphs are small.
fn many(
    name: &str,
    graphs: usize,
    least: usize,
    most: usize,
    degree: f64,
    features: Option<usize>,
) -> Workload {
    let mut draw = uniform(1);
    let mut below = |n: usize| ((draw() * n as f64) as usize).min(n - 1);
    let (mut node_starts, mut edges) = (vec![0], vec![]);
    for _ in 0..graphs {
        let start = node_starts[node_starts.len() - 1];
        let nodes = least + below(most - least + 1);
        let mut tie = |u: usize, v: usize| {
            let (u, v) = ((start + u) as u32, (start + v) as u32);
            edges.extend([(u, v), (v, u)]);
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
    edges.sort_unstable();
    edges.dedup();
    let nodes = node_starts[graphs];
    let node_features = if let Some(width) = features {
        let columns = (0..nodes).map(|_| below(width) as u32).collect();
        Features::OneHot(OneHot::new(width, columns).unwrap())
    } else {
        let entries = (0..nodes).map(|_| below(1000) as f32 / 100.0).collect();
        Features::Dense(Matrix::from_entries(nodes, 1, entries).unwrap())
    };
    let (level, rows) =
        if features.is_some() { (Level::Graph, graphs) } else { (Level::Node, nodes) };
    let class = (0..rows).map(|_| below(2) as u32).collect();
    Workload::new(name, node_starts, edges, node_features, level, 2, class)
}

/// One random graph.
fn random(name: &str, nodes: usize, edges: usize) -> Workload {
    let mut draw = uniform(2);
    let mut pairs = Vec::with_capacity(edges);
    while pairs.len() < edges {
        let (u, v) = ((draw() * nodes as f64) as u32, (draw() * nodes as f64) as u32);
        if u != v {
            pairs.extend([(u, v), (v, u)]);
        }
    }
    one(name, nodes, pairs, draw)
}

/// One chain, its nodes numbered at random: of the largest diameter, yet no easier to cache than a
/// random graph.
fn chain(name: &str, nodes: usize) -> Workload {
    let mut draw = uniform(3);
    let mut order: Vec<u32> = (0..nodes as u32).collect();
    for i in (1..nodes).rev() {
        order.swap(i, (draw() * (i + 1) as f64) as usize);
    }
    let pairs = order.windows(2).flat_map(|pair| [(pair[0], pair[1]), (pair[1], pair[0])]);
    one(name, nodes, pairs.collect(), draw)
}

/// One graph, with 64 real features and one of ten classes per node.
fn one(
    name: &str,
    nodes: usize,
    mut edges: Vec<(u32, u32)>,
    mut draw: impl FnMut() -> f64,
) -> Workload {
    edges.sort_unstable();
    edges.dedup();
    let entries = (0..nodes * 64).map(|_| draw() as f32 - 0.5).collect();
    let features = Features::Dense(Matrix::from_entries(nodes, 64, entries).unwrap());
    let class = (0..nodes).map(|_| (draw() * 10.0) as u32).collect();
    Workload::new(name, vec![0, nodes], edges, features, Level::Node, 10, class)
}

/// The entries of a raw array.
pub(crate) fn read_array<T>(path: &Path, entry: fn([u8; 4]) -> T) -> Vec<T> {
    let content = std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    content.as_chunks::<4>().0.iter().map(|&bytes| entry(bytes)).collect()
}

/// Writes a raw array.
pub(crate) fn write_array(path: &Path, entries: impl Iterator<Item = [u8; 4]>) {
    std::fs::write(path, entries.flatten().collect::<Vec<u8>>()).unwrap();
}
