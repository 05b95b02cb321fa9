//! What holds for every function of the crate, and what is known of some.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

use lpgnn::data::{Categories, Dataset, DatasetParts, FeatureColumns, TargetColumn};
use lpgnn::graph::{Features, GraphBatch, Level};
use lpgnn::readout::{Readout, ReadoutInput, Supervision};
use lpgnn::registry::{Options, ReadoutSpec, TransitionSpec};
use lpgnn::run::{RunConfig, SavedModel, Setup};
use lpgnn::saddle::{OneShot, WeightDescent};
use lpgnn::train::{ModelConfig, SolverConfig, Trainer};
use lpgnn::transition::{Input, Transition};
use lpgnn::{Error, Matrix, Scratch, check};
use lpgnn_baselines::registry;

const FEATURES: usize = 3;

/// A transition with its options and the components that it makes.
fn transitions() -> Vec<(&'static str, Options, usize)> {
    let none = Options::default;
    vec![
        ("none", none(), 2),
        ("features", none(), FEATURES),
        ("dgcnn", none().with("channels", vec![4, 2, 1]), 7),
        ("dcnn", none().with("hops", 2), 3 * FEATURES),
        ("ggnn", none().with("steps", 2), 5),
        ("fingerprint", none().with("depth", 2).with("width", 4).with("degrees", 2), 5),
        ("chebyshev", none().with("terms", 4), 4),
        ("gin-step", none(), 4),
        ("gcn-step", none(), 4),
        ("sage-step", none(), 4),
    ]
}

/// A read-out with its options.
fn readouts() -> Vec<(&'static str, Options)> {
    let none = Options::default;
    vec![
        ("weisfeiler-lehman", none().with("rounds", 2).with("buckets", 40)),
        ("anonymous-walks", none().with("steps", 4).with("buckets", 40)),
        ("sort-pooling", none().with("k", 10).with("units", 5)),
        ("patchy-san", none().with("fields", 11).with("k", 3).with("units", 5)),
        ("gated", none().with("units", 3)),
    ]
}

fn transition(
    name: &str,
    transition_options: Options,
    state_dim: usize,
) -> Box<dyn Transition<f64>> {
    let transition = name.to_owned();
    let model = ModelConfig { transition, transition_options, state_dim, ..ModelConfig::default() };
    let spec = TransitionSpec { layer: 0, features: FEATURES, edge_features: 0, model: &model };
    registry().transition(&spec).unwrap()
}

fn readout(name: &str, readout_options: Options) -> Box<dyn Readout<f64>> {
    let readout = name.to_owned();
    let model = ModelConfig { readout, readout_options, ..ModelConfig::default() };
    let (level, inputs, features, edge_features, outputs) = (Level::Graph, FEATURES, 0, 2, 2);
    let spec = ReadoutSpec { level, inputs, features, edge_features, outputs, model: &model };
    registry().readout(&spec).unwrap()
}

fn graph(features: &[Vec<f64>], edges: &[(u32, u32)]) -> GraphBatch<f64> {
    GraphBatch::graph(features, edges).unwrap()
}

fn random(rows: usize, seed: u64) -> Vec<Vec<f64>> {
    let mut draw = check::uniform(seed);
    (0..rows).map(|_| (0..FEATURES).map(|_| draw() - 0.5).collect()).collect()
}

/// A tree with more nodes than are pooled, a triangle with a node beside it, and a node by itself.
fn graphs() -> GraphBatch<f64> {
    let tree: Vec<(u32, u32)> = (1..13).map(|v| ((v - 1) / 2, v)).collect();
    GraphBatch::union(&[
        graph(&random(13, 1), &tree),
        graph(&random(4, 2), &[(0, 1), (1, 2), (2, 0)]),
        graph(&random(1, 3), &[]),
    ])
    .unwrap()
}

#[test]
fn every_derivative_is_the_slope_of_its_value() {
    for (name, options, state_dim) in transitions() {
        check::transition(&*transition(name, options, state_dim), &graphs(), 1)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    for (name, options) in readouts() {
        check::readout(&*readout(name, options), &graphs(), 1)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

/// Bonds of a ring of four elements: what is at them tells the two rings apart, and nothing else does.
#[test]
fn patchy_san_reads_the_features_of_edges_if_it_is_told_to() {
    let ring = [(0, 1), (1, 2), (2, 3), (3, 0)];
    let of = |first: f64| {
        let bonds = [vec![first, 0.0], vec![0.0, 1.0], vec![1.0, 0.0], vec![0.0, 1.0]];
        let bonds = Features::Dense(Matrix::from_rows(&bonds).unwrap());
        let elements = Features::Dense(Matrix::from_rows(&random(4, 9)).unwrap());
        GraphBatch::of_graph_with_edges(elements, &ring, &bonds).unwrap()
    };
    let both = GraphBatch::union(&[of(1.0), of(-1.0)]).unwrap();
    let options = || Options::default().with("fields", 11).with("k", 3).with("units", 5);
    for edges in [false, true] {
        let readout = readout("patchy-san", options().with("edges", edges));
        let (w, scratch) = (weights(readout.parameters()), Scratch::new());
        let states = Matrix::from_rows(&[random(4, 9), random(4, 9)].concat()).unwrap();
        let (input, mut predictions) =
            (ReadoutInput { batch: &both, parts: &[&states], dropout: None }, Matrix::zeros(2, 2));
        readout.forward(&w, input, &mut predictions, &scratch);
        assert_eq!(predictions.row(0) != predictions.row(1), edges, "{predictions:?}");
        check::readout(&*readout, &both, 1).unwrap();
    }
}

/// The same nodes in another order: node `v` becomes `order[v]`.
fn renumbered(rows: &[Vec<f64>], edges: &[(u32, u32)], order: &[usize]) -> GraphBatch<f64> {
    let mut moved = rows.to_vec();
    order.iter().zip(rows).for_each(|(&to, row)| moved[to].clone_from(row));
    let at = |v: u32| u32::try_from(order[v as usize]).unwrap();
    graph(&moved, &edges.iter().map(|&(u, v)| (at(u), at(v))).collect::<Vec<_>>())
}

fn rows_of(matrix: &[Vec<f64>]) -> Matrix<f64> {
    Matrix::from_rows(matrix).unwrap()
}

fn weights(parameters: &lpgnn::parameters::Parameters) -> Vec<f64> {
    let (mut weights, mut draw) = (vec![0.0; parameters.weights()], check::uniform(4));
    weights.fill_with(|| draw() - 0.5);
    weights
}

#[test]
fn renumbering_nodes_renumbers_states_and_leaves_predictions_as_they_are() {
    let (rows, order) = (random(8, 5), [3, 5, 0, 7, 1, 6, 2, 4]);
    let edges = [(0, 1), (1, 2), (2, 3), (3, 0), (3, 4), (4, 5), (5, 6), (6, 4)];
    let (here, there) = (graph(&rows, &edges), renumbered(&rows, &edges, &order));
    let scratch = Scratch::new();
    for (name, options, state_dim) in transitions() {
        let f = transition(name, options, state_dim);
        let w = weights(f.parameters());
        let value = |batch: &GraphBatch<f64>| {
            let (states, mut f_x) = (Matrix::zeros(8, state_dim), Matrix::zeros(8, state_dim));
            f.forward(&w, Input::of(batch, &states), &mut f_x, &scratch);
            f_x
        };
        let (a, b) = (value(&here), value(&there));
        for (v, &to) in order.iter().enumerate() {
            let near = a.row(v).iter().zip(b.row(to)).all(|(a, b)| (a - b).abs() < 1e-12);
            assert!(near, "{name}: node {v}");
        }
    }
    let mut states = rows.clone();
    order.iter().zip(&rows).for_each(|(&to, row)| states[to].clone_from(row));
    for (name, options) in readouts() {
        let f = readout(name, options);
        let w = weights(f.parameters());
        let value = |batch: &GraphBatch<f64>, states: &Matrix<f64>| {
            let mut y = Matrix::zeros(1, 2);
            let input = ReadoutInput { batch, parts: &[states], dropout: None };
            f.forward(&w, input, &mut y, &scratch);
            y
        };
        let (a, b) = (value(&here, &rows_of(&rows)), value(&there, &rows_of(&states)));
        let near = a.row(0).iter().zip(b.row(0)).all(|(a, b)| (a - b).abs() < 1e-6);
        assert!(near && a.row(0)[0].abs() > 1e-9, "{name}: {a:?} {b:?}");
    }
}

fn ring(first: u32, nodes: u32) -> impl Iterator<Item = (u32, u32)> {
    (0..nodes).map(move |v| (first + v, first + (v + 1) % nodes))
}

/// What a read-out of the structure alone predicts of a graph without features.
fn of_structure(name: &str, options: Options, nodes: usize, edges: &[(u32, u32)]) -> Vec<f64> {
    let f = readout(name, options);
    let batch = graph(&vec![vec![]; nodes], edges);
    let (states, mut y) = (Matrix::zeros(nodes, FEATURES), Matrix::zeros(1, 2));
    let input = ReadoutInput { batch: &batch, parts: &[&states], dropout: None };
    f.forward(&weights(f.parameters()), input, &mut y, &Scratch::new());
    y.row(0).to_vec()
}

#[test]
fn refinement_cannot_tell_two_triangles_from_a_ring_of_six_and_walks_can() {
    let ring_of_six: Vec<_> = ring(0, 6).collect();
    let triangles: Vec<_> = ring(0, 3).chain(ring(3, 3)).collect();
    let path: Vec<_> = ring(0, 6).take(5).collect();
    let distance = |name: &str, options: &Options, a: &[(u32, u32)], b: &[(u32, u32)]| -> f64 {
        let a = of_structure(name, options.clone(), 6, a);
        let b = of_structure(name, options.clone(), 6, b);
        a.iter().zip(b).map(|(a, b)| (a - b).abs()).sum()
    };
    let colours = Options::default().with("rounds", 4);
    let walks = Options::default().with("steps", 3);
    assert!(distance("weisfeiler-lehman", &colours, &ring_of_six, &triangles) < 1e-12);
    assert!(distance("weisfeiler-lehman", &colours, &ring_of_six, &path) > 1e-3);
    // A walk of three steps comes back to where it began in a triangle alone.
    assert!(distance("anonymous-walks", &walks, &ring_of_six, &triangles) > 1e-3);
}

#[test]
fn a_diffusion_of_one_hop_is_a_mean_over_the_neighbours() {
    let f = transition("dcnn", Options::default().with("hops", 1), 2 * FEATURES);
    let rows = vec![vec![1.0, 0.0, 0.0], vec![0.0, 2.0, 0.0], vec![0.0, 4.0, 6.0]];
    let star = graph(&rows, &[(0, 1), (0, 2)]);
    let (states, mut f_x) = (Matrix::zeros(3, 6), Matrix::zeros(3, 6));
    f.forward(&[0.1; 6], Input::of(&star, &states), &mut f_x, &Scratch::new());
    let expected = [0.1, 0.0, 0.0, 0.0, 0.3, 0.3].map(f64::tanh);
    assert!(f_x.row(0).iter().zip(expected).all(|(f, e)| (f - e).abs() < 1e-12), "{f_x:?}");
}

#[test]
fn what_does_not_fit_is_refused_by_name() {
    let built = |model: ModelConfig| {
        let spec = TransitionSpec { layer: 0, features: 3, edge_features: 0, model: &model };
        let transition = registry::<f32>().transition(&spec).map(drop);
        let (level, inputs, features, edge_features, outputs) = (Level::Graph, 4, 0, 0, 2);
        let spec = ReadoutSpec { level, inputs, features, edge_features, outputs, model: &model };
        transition
            .and_then(|()| registry::<f32>().readout(&spec).map(drop))
            .unwrap_err()
            .to_string()
    };
    let auto = ModelConfig::default;
    let dgcnn = ModelConfig { transition: "dgcnn".into(), ..auto() };
    assert_eq!(
        built(dgcnn),
        "state-dim is 10, but 97 is expected, for layers of [32, 32, 32, 1] channels side by side"
    );
    let ggnn = ModelConfig { transition: "ggnn".into(), state_dim: 2, ..auto() };
    assert_eq!(
        built(ggnn),
        "state-dim is 2, but at least 3 is expected: states start as the features"
    );
    let readout_options = Options::default().with("k", 8);
    let short = ModelConfig { readout: "sort-pooling".into(), readout_options, ..auto() };
    assert_eq!(
        built(short),
        "a sequence of 8 nodes leaves 4 rows, but the second convolution reads 5 together"
    );
}

/// Rings and, one in three, paths of 10 to 17 nodes.
fn rings_and_paths(graphs: u32) -> Result<Dataset, Error> {
    let (mut node_starts, mut edges, mut class, mut first) = (vec![0], vec![], vec![], 0);
    for graph in 0..graphs {
        let (size, is_path) = (10 + graph % 8, graph % 3 == 0);
        let pairs = ring(first, size).take((size - u32::from(is_path)) as usize);
        edges.extend(pairs.flat_map(|(u, v)| [(u, v), (v, u)]));
        first += size;
        node_starts.push(first as usize);
        class.push(if is_path { "path" } else { "ring" });
    }
    Dataset::new(DatasetParts {
        name: "rings and paths".into(),
        node_features: FeatureColumns::none(first as usize),
        edge_features: FeatureColumns::none(edges.len()),
        graph_targets: Some(TargetColumn::Classes(Categories::from_text("class", &class))),
        node_targets: None,
        split: None,
        node_starts,
        edges,
    })
}

#[test]
fn every_system_trains_and_a_model_that_is_read_again_predicts_the_same() {
    let dataset = rings_and_paths(60).unwrap();
    let of = |name: &str, state_dim: usize, readout: &str| {
        (name.to_owned(), state_dim, readout.to_owned())
    };
    for (transition, state_dim, readout) in [
        of("none", 1, "weisfeiler-lehman"),
        of("none", 1, "anonymous-walks"),
        of("dgcnn", 97, "sort-pooling"),
        of("features", 3, "patchy-san"),
        of("dcnn", 12, "mean"),
        of("ggnn", 10, "gated"),
        of("fingerprint", 10, "sum"),
        of("chebyshev", 10, "mean"),
        of("gin-step", 10, "sum"),
        of("gcn-step", 10, "sum"),
        of("sage-step", 10, "sum"),
    ] {
        let mut config = RunConfig::for_data("rings and paths", &dataset, &[]);
        let name = format!("{transition} and {readout}");
        let layers = 1;
        config.model =
            ModelConfig { transition, state_dim, readout, layers, ..ModelConfig::default() };
        config.training.epochs = 150;
        // A linear classifier starts at zero and has far to go.
        let lr = if config.model.transition == "none" { 0.1 } else { 0.01 };
        let weights = WeightDescent { lr, ..WeightDescent::default() };
        config.training.solver = SolverConfig::OneShot(OneShot { weights, ..OneShot::default() });
        let registry = registry();
        let setup = Setup::with_registry(&registry, &config, &dataset, None)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let trainer = Trainer::new(setup.plan.clone(), &setup.model, &setup.data).unwrap();
        let trained = trainer.run(&mut ()).unwrap();
        let model = SavedModel::new(&setup, &config, "rings", trained.epoch, trained.weights);
        let loaded = SavedModel::from_bytes_with(&registry, &model.to_bytes().unwrap()).unwrap();
        let predicted = loaded.predict(&dataset, true).unwrap();
        assert_eq!(predicted.outputs, model.predict(&dataset, true).unwrap().outputs, "{name}");
        assert_eq!(predicted.fixed_point.failures(), 0, "{name}");
        let targets = Supervision::all(predicted.batch.graph_targets().clone());
        let (right, all) = targets.correct(&predicted.outputs);
        assert!(100 * right > 80 * all, "{name}: {right} of {all}, of which two thirds are rings");
    }
}
