//! Random graphs and models, and how tests say that they are skipped.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(dead_code, unreachable_pub, reason = "every test uses its own part")]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "numbers here are tiny"
)]

mod skip;

use lpgnn::activation::Activation;
use lpgnn::check::uniform;
use lpgnn::constraint::ConstraintFunction;
use lpgnn::graph::{Features, GraphBatch, OneHot, SparseRows, Targets};
use lpgnn::lagrangian::{Model, Multipliers, Reads, Variables};
use lpgnn::network::Network;
use lpgnn::normalization::Normalization;
use lpgnn::readout::{NodeReadout, PooledReadout, Pooling, Readout};
use lpgnn::transition::{
    Aggregation, Degrees, EdgeInputs, EdgeNetwork, Isolated, NeighbourSum, NodeNetwork, Transition,
};
use lpgnn::{Matrix, NormMemory, Scalar};

pub use skip::{shared, skip};

/// Components of a node feature, and of an edge feature.
pub const LABEL: usize = 3;
pub const EDGE_FEATURE: usize = 2;
pub const CLASSES: usize = 3;

pub const CONSTRAINTS: [ConstraintFunction; 5] = [
    ConstraintFunction::Linear,
    ConstraintFunction::LinearInsensitive { epsilon: 0.01 },
    ConstraintFunction::Absolute,
    ConstraintFunction::AbsoluteInsensitive { epsilon: 0.01 },
    ConstraintFunction::Squared,
];

/// The form in which features are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Dense,
    OneHot,
    Sparse,
}

pub const FORMS: [Form; 3] = [Form::Dense, Form::OneHot, Form::Sparse];

/// `nodes` nodes with random edges of the given density: directed, with self loops and isolated
/// nodes, edges in one direction and in both.
pub fn graph<S: Scalar>(seed: u64, nodes: usize, density: f64, form: Form) -> GraphBatch<S> {
    let mut draw = uniform(seed);
    let mut edges = vec![];
    for u in 0..nodes as u32 {
        for v in 0..nodes as u32 {
            if draw() < density {
                edges.push((u, v));
            }
        }
    }
    let edge_features = features(&mut draw, edges.len(), EDGE_FEATURE, form);
    let node_features = features(&mut draw, nodes, LABEL, form);
    let class = (0..nodes).map(|v| ((seed as usize + v) % CLASSES) as u32).collect();
    GraphBatch::of_graph_with_edges(node_features, &edges, &edge_features)
        .unwrap()
        .with_node_targets(Targets::classes(CLASSES, class).unwrap())
        .unwrap()
        .with_graph_targets(
            Targets::classes(CLASSES, vec![(seed % CLASSES as u64) as u32]).unwrap(),
        )
        .unwrap()
}

fn features<S: Scalar>(
    draw: &mut impl FnMut() -> f64,
    rows: usize,
    width: usize,
    form: Form,
) -> Features<S> {
    match form {
        Form::Dense => {
            let entries = (0..rows * width).map(|_| S::of(2.0 * draw() - 1.0)).collect();
            Features::Dense(Matrix::from_entries(rows, width, entries).unwrap())
        }
        Form::OneHot => {
            let columns = (0..rows).map(|_| (draw() * width as f64) as u32).collect();
            Features::OneHot(OneHot::new(width, columns).unwrap())
        }
        Form::Sparse => {
            let (mut starts, mut columns, mut values) = (vec![0], vec![], vec![]);
            for _ in 0..rows {
                for column in 0..width as u32 {
                    if draw() < 0.5 {
                        columns.push(column);
                        values.push(S::of(2.0 * draw() - 1.0));
                    }
                }
                starts.push(columns.len());
            }
            Features::Sparse(SparseRows::new(width, starts, columns, values).unwrap())
        }
    }
}

/// Graphs of several sizes, with the awkward ones among them: no node, one node, no edges.
pub fn batch<S: Scalar>(seed: u64, form: Form) -> GraphBatch<S> {
    let graphs: Vec<GraphBatch<S>> = [(5, 0.35), (0, 0.0), (1, 0.0), (1, 1.0), (4, 0.5), (3, 0.0)]
        .iter()
        .enumerate()
        .map(|(i, &(nodes, density))| graph(seed * 17 + i as u64, nodes, density, form))
        .collect();
    GraphBatch::union(&graphs).unwrap()
}

/// A transition function by number, so that tests can go through all of them.
pub fn transition<S: Scalar>(
    number: usize,
    state: usize,
    feature: usize,
    edge_feature: usize,
    h: &Network,
) -> Box<dyn Transition<S>> {
    let edge = |inputs, aggregation| {
        Box::new(EdgeNetwork::new(state, feature, edge_feature, inputs, h, aggregation))
            as Box<dyn Transition<S>>
    };
    let zero = |inputs, aggregation| {
        let network = EdgeNetwork::new(state, feature, edge_feature, inputs, h, aggregation);
        Box::new(network.with_isolated(Isolated::Zero)) as Box<dyn Transition<S>>
    };
    let node = |sum| Box::new(NodeNetwork::new(state, feature, h, sum)) as Box<dyn Transition<S>>;
    let sage = EdgeInputs { own_state: false, edge_features: false, ..EdgeInputs::default() };
    match number {
        0 => edge(EdgeInputs::default(), Aggregation::Sum),
        1 => edge(EdgeInputs::default(), Aggregation::Mean),
        2 => edge(EdgeInputs::authors(), Aggregation::Sum),
        3 => edge(EdgeInputs::default(), Aggregation::NormalizedSum),
        4 => edge(sage, Aggregation::Max),
        5 => node(NeighbourSum::Plain),
        6 => node(NeighbourSum::Mean),
        7 => node(NeighbourSum::Normalized),
        8 => zero(EdgeInputs::default(), Aggregation::Mean),
        9 => zero(sage, Aggregation::Max),
        _ => unreachable!("there are {TRANSITIONS} transition functions"),
    }
}

pub const TRANSITIONS: usize = 10;

/// Networks of several depths and activations.
pub fn networks() -> Vec<Network> {
    use Activation::{Identity, LeakyRelu, Relu, Tanh};
    [
        (vec![4], Tanh, Identity),
        (vec![4], Tanh, Tanh),
        (vec![], Tanh, Tanh),
        (vec![5, 3], LeakyRelu, Identity),
        (vec![9, 4], Relu, Tanh),
        (vec![3, 4, 5], Identity, LeakyRelu),
    ]
    .into_iter()
    .map(|(hidden_dims, activation, output_activation)| Network {
        hidden_dims,
        activation,
        output_activation,
    })
    .collect()
}

pub struct Recipe {
    pub transition: usize,
    pub layers: usize,
    pub h: Network,
    pub constraint: ConstraintFunction,
    pub multipliers: Multipliers,
    pub reads: Reads,
    /// What is pooled over a graph; nothing where nodes are predicted.
    pub pooling: Option<Pooling>,
    pub state: usize,
    pub normalization: Normalization,
}

impl Default for Recipe {
    fn default() -> Self {
        Self {
            transition: 1,
            layers: 1,
            h: Network::one_hidden(4),
            constraint: ConstraintFunction::Squared,
            multipliers: Multipliers::PerNode,
            reads: Reads::default(),
            pooling: None,
            state: 3,
            normalization: Normalization::None,
        }
    }
}

/// Read-outs of nodes and of graphs.
pub const POOLINGS: [Option<Pooling>; 4] =
    [None, Some(Pooling::Sum), Some(Pooling::Mean), Some(Pooling::Max)];

pub fn readout<S: Scalar>(
    pooling: Option<Pooling>,
    (inputs, features): (usize, usize),
    network: Network,
) -> Box<dyn Readout<S>> {
    match pooling {
        None => {
            let readout = NodeReadout::new(inputs, CLASSES, network, 0.0);
            Box::new(readout.reading_features(features))
        }
        Some(pooling) => {
            let readout = PooledReadout::new(pooling, inputs, CLASSES, network, 0.0);
            Box::new(readout.reading_features(features))
        }
    }
}

pub fn model<S: Scalar>(recipe: &Recipe) -> Model<S> {
    use lpgnn::lagrangian::ReadLayers;
    let transitions = (0..recipe.layers)
        .map(|layer| {
            let feature = if layer == 0 { LABEL } else { recipe.state };
            transition(recipe.transition, recipe.state, feature, EDGE_FEATURE, &recipe.h)
        })
        .collect();
    let read = match recipe.reads.layers {
        ReadLayers::Last => recipe.state,
        ReadLayers::All => recipe.state * recipe.layers,
    };
    let features = if recipe.reads.features { LABEL } else { 0 };
    let readout = readout(recipe.pooling, (read, features), Network::one_hidden(4));
    Model::new(transitions, readout, recipe.reads, Box::new(recipe.constraint), recipe.multipliers)
        .unwrap()
        .with_normalization(recipe.normalization)
}

/// A point at which nothing is zero.
pub fn point<S: Scalar>(model: &Model<S>, nodes: usize, seed: u64) -> Variables<S> {
    let mut draw = uniform(seed);
    let mut at = model.start(nodes, &mut draw);
    for (_, part) in at.parts_mut() {
        part.iter_mut().for_each(|x| *x += S::of(draw() - 0.5));
    }
    at
}

/// Scales the weights of every layer down until `f_a` contracts by `bound`.
pub fn contract<S: Scalar>(
    model: &Model<S>,
    graphs: &GraphBatch<S>,
    weights: &mut [S],
    bound: f64,
) {
    for (layer, transition) in model.transitions().enumerate() {
        let range = model.transition_weights(layer);
        let mut memory = NormMemory::default();
        assert!(transition.contract(
            &mut weights[range.clone()],
            Degrees::of(graphs.topology()),
            bound,
            &mut memory
        ));
        let now = transition.lipschitz(&weights[range], Degrees::of(graphs.topology())).unwrap();
        assert!(now <= bound * (1.0 + 1e-6), "{now}");
    }
}
