//! How a live graph begins: what contracts by how much, the residuals to reach, and the states from which they are reached.

use std::collections::BTreeSet;
use std::sync::Mutex;

use super::adjacency::Adjacency;
use super::bound::{self, Contraction, Layer, thresholds};
use super::features::{FeatureTable, Row};
use super::levels::Levels;
use super::outputs::Outputs;
use super::precision::Precision;
use super::push::Found;
use super::queue::Queue;
use super::slots::Slots;
use super::undo::Undo;
use super::{LiveGraph, LiveOptions};
use crate::graph::{FeaturesView, GraphBatch, Level};
use crate::lagrangian::Model;
use crate::parameters::Role;
use crate::transition::{Sizes, Transition};
use crate::{Error, Matrix, Scratch};

impl LiveGraph {
    /// The states of a layer, from such as are near them.
    pub(super) fn start_from(&mut self, layer: usize, states: &Matrix<f32>) {
        let parts = self.layers[layer].precision.parts();
        if parts == 1 {
            self.states[layer].copy_from_slice(states.as_slice());
            return;
        }
        let (width, rows) = (self.widths[layer], states.as_slice());
        let to = self.states[layer].chunks_exact_mut((parts * width).max(1));
        for (to, from) in to.zip(rows.chunks_exact(width.max(1))) {
            to[..width].copy_from_slice(from);
        }
    }

    /// Everything but the states, which are zero.
    pub(super) fn empty(
        model: &Model<f32>,
        weights: &[f32],
        batch: &GraphBatch<f32>,
        edges: &[(u32, u32)],
        options: &LiveOptions,
    ) -> Result<Self, Error> {
        model.check(batch)?;
        if !model.normalizations().is_empty() {
            return Err(Error::Mismatch(
                "the model uses GraphNorm, so any event changes every node of its graph; live graphs do not \
                 support it"
                    .into(),
            ));
        }
        let edge_features = edge_table(model, batch);
        let (nodes, with_edges) = (batch.nodes(), edge_features.width() > 0);
        let widths = || model.transitions().map(Transition::state_dim);
        let graph_of = |graph: usize| {
            #[allow(clippy::cast_possible_truncation, reason = "graphs have 32 bits")]
            std::iter::repeat_n(graph as u32, batch.nodes_of(graph).len())
        };
        #[allow(clippy::cast_possible_truncation, reason = "nodes have 30 bits")]
        let members = (model.readout().level() == Level::Graph).then(|| {
            let mut members = Slots::default();
            (0..batch.graphs())
                .for_each(|graph| members.push(batch.nodes_of(graph).map(|v| v as u32)));
            members
        });
        let node_features = FeatureTable::new(batch.node_features());
        let layers = layers(model, weights, node_features.empty().view())?;
        let message_dims: Vec<usize> = layers.iter().map(|layer| layer.f.message_dim()).collect();
        let outputs = Outputs::new(model, weights, &node_features, options.classes)?;
        Ok(Self {
            states: kept(&layers, widths(), nodes),
            messages: kept(&layers, message_dims.iter().copied(), nodes),
            layers,
            read: model.read_layers(),
            adjacency: Adjacency::new(batch.topology(), edges, with_edges),
            node_features,
            edge_features,
            free_edges: BTreeSet::new(),
            edge_rows: if with_edges { edges.len() } else { 0 },
            edges: edges.len(),
            graphs: (0..batch.graphs()).flat_map(graph_of).collect(),
            graph_count: batch.graphs(),
            free_nodes: BTreeSet::new(),
            members,
            pools: outputs.pools(batch.graphs()),
            widths: widths().collect(),
            message_dims,
            residuals: widths().map(|_| vec![0.0; nodes]).collect(),
            queues: widths().map(|_| Queue::new(nodes)).collect(),
            outputs,
            options: check(*options)?,
            limit: 1.0,
            levels: Levels::none(),
            undo: Undo::default(),
            ahead: bound::AHEAD,
            touched: vec![],
            found: Found::default(),
            readout_scratch: Scratch::new(),
            scratch: Scratch::new(),
            workspaces: Mutex::new(vec![]),
        })
    }

    /// How much every layer contracts on the graph as it is, and from that the residuals to reach.
    pub(super) fn measure(&mut self) -> Result<(), Error> {
        let largest = self.measure_contraction()?;
        if let Some(tol) = self.options.final_tol {
            let rows = if self.members.is_some() { self.graph_count } else { self.graphs.len() };
            let range = self.options.tol / tol;
            self.levels = Levels::new(range, largest, self.graphs.len(), rows);
        }
        let largest = self.measure_contraction()?;
        self.limit = self.options.lipschitz.unwrap_or_else(|| (0.5 + 0.5 * largest).max(0.95));
        if largest > self.limit {
            return Err(Error::Option {
                option: "lipschitz",
                value: self.limit.to_string(),
                expected: format!("the graph as it is has a bound of {largest:.4}"),
            });
        }
        self.measure_features();
        self.set_thresholds();
        Ok(())
    }

    /// `L` and `Φ` of every layer; returns the largest `L`.
    pub(super) fn measure_contraction(&mut self) -> Result<f64, Error> {
        for number in 0..self.layers.len() {
            let all = (0..self.graphs.len()).filter(|&v| self.contains(v));
            let found = all.map(|v| self.contraction(number, v));
            let found = found.fold(Contraction::default(), Contraction::and);
            if found.states.is_nan() || found.states >= 1.0 {
                return Err(Error::Mismatch(format!(
                    "the transition of layer {number} has a Lipschitz bound of {:.3} on these graphs, but a live graph \
                     needs one below 1; train with training.lipschitz below 1",
                    found.states
                )));
            }
            self.layers[number].contraction = found;
        }
        Ok(self.layers.iter().map(|layer| layer.contraction.states).fold(0.0, f64::max))
    }

    /// How large the features are.
    pub(super) fn measure_features(&mut self) {
        let terms = |table: &FeatureTable, rows: usize| {
            let rows = (0..rows).map(|row| Row::from(table.entries(row)));
            rows.fold((0.0_f64, 0), |(size, terms), row| {
                (size.max(row.size()), terms.max(row.terms()))
            })
        };
        let (feature, node_terms) = terms(&self.node_features, self.graphs.len());
        let (edge_feature, edge_terms) = terms(&self.edge_features, self.edge_rows);
        for (number, layer) in self.layers.iter_mut().enumerate() {
            let below = if number == 0 { node_terms } else { layer.sizes.terms };
            let terms = below.max(edge_terms);
            layer.set_sizes(Sizes { feature, edge_feature, terms, ..layer.sizes });
        }
    }

    /// The residuals to reach.
    pub(super) fn set_thresholds(&mut self) {
        let thresholds = thresholds(&self.layers, self.read.clone(), self.options.tol);
        for (layer, threshold) in self.layers.iter_mut().zip(thresholds) {
            layer.threshold = threshold;
        }
    }

    /// From states near the fixed point to states with a bound.
    pub(super) fn start(&mut self) -> Result<(), Error> {
        self.measure_states();
        self.pool();
        #[allow(clippy::cast_possible_truncation, reason = "nodes have 30 bits")]
        let nodes: Vec<u32> = (0..self.graphs.len() as u32).collect();
        for layer in 0..self.layers.len() {
            self.send(layer, &nodes, &mut Found::default());
            (0..self.graphs.len()).for_each(|v| self.forget(layer, v));
        }
        self.converge();
        // Now that it is known what rounding takes.
        self.set_thresholds();
        self.queue_again();
        self.converge();
        if let Err(bound) = self.is_within() {
            return Err(Error::Option {
                option: "tol",
                value: self.options.tol.to_string(),
                expected: format!(
                    "single precision cannot guarantee less than {:.1e} for this model and these graphs",
                    1.1 * bound
                ),
            });
        }
        self.touched = vec![];
        self.outputs.tell_all(&self.graphs, self.graph_count);
        self.refine(self.rows());
        self.outputs.changed.clear();
        self.queues.iter_mut().for_each(Queue::shrink);
        (self.touched, self.found) = (vec![], Found::default());
        (self.scratch, self.readout_scratch) = (Scratch::new(), Scratch::new());
        Ok(())
    }

    /// What states read of each other is as large as they are.
    pub(super) fn measure_states(&mut self) {
        for number in 0..self.layers.len() {
            let (width, precision) = (self.state_width(number), self.layers[number].precision);
            let rows = self.states[number].chunks_exact(width.max(1));
            let largest = rows.map(|row| precision.size(row)).fold(0.0, f64::max);
            self.layers[number].enlarge_states(largest, self.ahead);
            if let Some(above) = self.layers.get_mut(number + 1) {
                above.enlarge_features(largest, self.ahead);
            }
        }
    }

    /// `Σ_u 1/√(de[v] de[u])`, where it counts.
    pub(super) fn normalized(&self, v: usize) -> f64 {
        let links = self.adjacency.of(v);
        if !self.layers[0].sensitivity.weighing.reads_normalized() || links.is_empty() {
            return 1.0;
        }
        let root = |u: usize| 1.0 / (self.adjacency.degree(u) as f64).sqrt();
        links.iter().map(|link| root(link.node())).sum::<f64>() * root(v) * bound::UP
    }

    /// `L_v` and `Φ_v` of a node.
    pub(super) fn contraction(&self, layer: usize, v: usize) -> Contraction {
        let (degree, normalized) = (self.adjacency.degree(v), self.normalized(v));
        let sensitivity = &self.layers[layer].sensitivity;
        Contraction {
            states: sensitivity.states(degree, normalized, self.levels.ratio) * bound::UP,
            features: sensitivity.features(degree, normalized, self.levels.ratio) * bound::UP,
        }
    }
}

/// Room for the rows of all layers.
pub(super) fn kept(
    layers: &[Layer],
    widths: impl Iterator<Item = usize>,
    nodes: usize,
) -> Vec<Vec<f32>> {
    let rows = layers.iter().zip(widths);
    rows.map(|(layer, width)| vec![0.0; nodes * layer.precision.parts() * width]).collect()
}

pub(super) fn check(options: LiveOptions) -> Result<LiveOptions, Error> {
    let positive = |option: &'static str, value: f64, below: f64| {
        if value > 0.0 && value < below {
            return Ok(());
        }
        let expected = if below.is_finite() {
            format!("a number between 0 and {below} is expected")
        } else {
            "a positive number is expected".to_owned()
        };
        Err(Error::Option { option, value: value.to_string(), expected })
    };
    positive("tol", options.tol, f64::INFINITY)?;
    positive("final-tol", options.final_tol.unwrap_or(options.tol / 2.0), options.tol)?;
    positive("lipschitz", options.lipschitz.unwrap_or(0.5), 1.0)?;
    Ok(options)
}

/// The transition of every layer, for single nodes.
pub(super) fn layers(
    model: &Model<f32>,
    weights: &[f32],
    node_features: FeaturesView<'_, f64>,
) -> Result<Vec<Layer>, Error> {
    let weights: Vec<f64> = weights.iter().map(|&w| f64::from(w)).collect();
    let mut layers: Vec<Layer> = vec![];
    for (number, transition) in model.transitions().enumerate() {
        let below = Matrix::zeros(0, 0);
        let features = if number == 0 { node_features } else { FeaturesView::Dense(&below) };
        let weights = &weights[model.transition_weights(number)];
        let f = transition.local(weights, features).ok_or_else(|| {
            Error::Mismatch(format!(
                "the transition of layer {number} does not say how far a change at one node reaches, so there is no bound \
                 on the error of a live graph"
            ))
        })?;
        let weighing = f.sensitivity().weighing;
        if layers.first().is_some_and(|first| first.sensitivity.weighing != weighing) {
            return Err(Error::Mismatch(
                "the transitions of the layers contract in different norms, so there is no bound on the error of a live \
                 graph"
                    .into(),
            ));
        }
        let terms = if number == 0 { 0 } else { model.transition(number - 1).state_dim() };
        let is_last = number + 1 == model.transitions().count();
        let precision = if is_last { Precision::Single } else { Precision::SumOfTwo };
        layers.push(Layer::new(f, terms, precision));
    }
    Ok(layers)
}

/// The features of edges; where there are no edges yet, as many as the model reads.
pub(super) fn edge_table(model: &Model<f32>, batch: &GraphBatch<f32>) -> FeatureTable {
    let features = batch.edge_features();
    if features.rows() > 0 || features.width() > 0 {
        return FeatureTable::new(features);
    }
    let parameters = model.transition(0).parameters();
    let rows = parameters.of_role(Role::EdgeFeatures).map(|number| parameters.rows(number));
    FeatureTable::Dense { width: rows.max().unwrap_or(0), values: vec![] }
}
