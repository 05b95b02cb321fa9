//! Every gradient of the Lagrangian agrees with central differences.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use crate::common::{
    CONSTRAINTS, FORMS, Form, LABEL, POOLINGS, Recipe, TRANSITIONS, batch, model, networks, point,
};
use lpgnn::constraint::Constraint;
use lpgnn::graph::{GraphBatch, Level};
use lpgnn::lagrangian::{
    Evaluation, Lagrangian, Multipliers, Objective, ReadFrom, ReadLayers, Reads, Request, Scale,
    Variables, Weighing,
};
use lpgnn::normalization::Normalization;
use lpgnn::parameters::{Init, Parameters, Role};
use lpgnn::readout::{
    Mlp, MlpGradients, NodeReadout, Pooling, Readout, ReadoutGradients, ReadoutInput, Supervision,
};
use lpgnn::transition::Transition;
use lpgnn::{Scratch, check};
use proptest::prelude::*;

const READS: [Reads; 5] = [
    Reads { from: ReadFrom::State, layers: ReadLayers::Last, features: false },
    Reads { from: ReadFrom::Transition, layers: ReadLayers::Last, features: true },
    Reads { from: ReadFrom::State, layers: ReadLayers::All, features: true },
    Reads { from: ReadFrom::Transition, layers: ReadLayers::All, features: false },
    Reads { from: ReadFrom::State, layers: ReadLayers::Last, features: true },
];

/// The worst relative error of a recipe's gradient at a random point, with a penalty `ρ`.
fn worst(
    recipe: &Recipe,
    graphs: &GraphBatch<f64>,
    (weighing, penalty): (Weighing, f64),
    seed: u64,
) -> f64 {
    let model = model::<f64>(recipe);
    let targets = model.readout().level().targets_of(graphs).clone();
    let rows = u16::try_from(targets.rows()).unwrap();
    let weights: Vec<f32> = (0..rows).map(|row| [1.0, 0.0, 2.5][usize::from(row) % 3]).collect();
    let supervision = Supervision::all(targets).with_class_weights(&[1.0, 0.5, 2.0]).unwrap();
    let supervision = supervision.with_weights(&weights).unwrap();
    let scratch = Scratch::new();
    let lagrangian = Lagrangian::new(&model, graphs, &supervision, weighing, &scratch).unwrap();
    check::penalized_gradients(&lagrangian, &point(&model, graphs.nodes(), seed), penalty)
}

/// The whole grid: every transition, `G`, output, multiplier shape and depth.
#[test]
fn gradients_agree_with_central_differences() {
    let mut seed = 0;
    for transition in 0..TRANSITIONS {
        for constraint in CONSTRAINTS {
            for multipliers in [Multipliers::PerNode, Multipliers::PerComponent] {
                let signed = Constraint::<f64>::takes_both_signs(&constraint);
                if signed && multipliers == Multipliers::PerNode {
                    continue; // refused, see below
                }
                for pooling in POOLINGS {
                    for layers in 1..=3 {
                        seed += 1;
                        let recipe = Recipe {
                            transition,
                            layers,
                            constraint,
                            multipliers,
                            pooling,
                            reads: READS[seed % 5],
                            ..Recipe::default()
                        };
                        let graphs = batch(seed as u64 % 7, FORMS[seed % 3]);
                        let terms = (Weighing::default(), 0.3);
                        let error = worst(&recipe, &graphs, terms, seed as u64);
                        assert!(
                            error < 1e-6,
                            "transition {transition}, {constraint:?}, {multipliers:?}, {pooling:?}, \
                             {layers} layers, {:?}: {error:e}",
                            recipe.reads
                        );
                    }
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn gradients_hold_for_any_network_scale_and_grouping(
        transition in 0..TRANSITIONS, network in 0..6_usize, seed in 0..1000_u64, form in 0..3_usize,
        reads in 0..5_usize, readout in 0..4_usize, layers in 1..3_usize, groups in 1..40_usize,
        mean: bool, constraint in 0..5_usize, loss_weight in 0.1..2.0_f64,
    ) {
        let recipe = Recipe {
            transition, layers, h: networks()[network].clone(), constraint: CONSTRAINTS[constraint],
            multipliers: Multipliers::PerComponent, reads: READS[reads], pooling: POOLINGS[readout],
            state: 2, normalization: Normalization::None,
        };
        let scale = if mean { Scale::Mean } else { Scale::Sum };
        let weighing = Weighing { loss_weight, loss: scale, constraint: scale };
        // Groups of this little work cut graphs, which has a plan of its own.
        let graphs = batch(seed, FORMS[form]).with_groups_of(groups);
        let error = worst(&recipe, &graphs, (weighing, 0.0), seed);
        prop_assert!(error < 1e-6, "{error:e}");
    }
}

/// What a layer hands on has a derivative of its own, in states and in weights, whoever reads it.
#[test]
fn normalised_layers_agree_with_central_differences() {
    let mut seed = 0;
    for transition in 0..TRANSITIONS {
        for pooling in POOLINGS {
            for layers in 1..=3 {
                seed += 1;
                let recipe = Recipe {
                    transition,
                    layers,
                    pooling,
                    reads: READS[seed % 5],
                    normalization: Normalization::GraphNorm,
                    ..Recipe::default()
                };
                let graphs = batch(seed as u64 % 7, FORMS[seed % 3]);
                let error = worst(&recipe, &graphs, (Weighing::default(), 0.3), seed as u64);
                let reads = recipe.reads;
                assert!(
                    error < 1e-6,
                    "transition {transition}, {pooling:?}, {layers} layers, {reads:?}: {error:e}"
                );
            }
        }
    }
}

#[test]
fn every_transition_keeps_the_exported_contract() {
    for number in 0..TRANSITIONS {
        for (i, h) in networks().iter().enumerate() {
            for groups in [4, 1_000_000] {
                let graphs = batch(i as u64, Form::Dense).with_groups_of(groups);
                let f = crate::common::transition::<f64>(
                    number,
                    3,
                    crate::common::LABEL,
                    crate::common::EDGE_FEATURE,
                    h,
                );
                for seed in 0..3 {
                    let kept = check::transition(f.as_ref(), &graphs, seed);
                    assert!(kept.is_ok(), "transition {number}, {h:?}, groups {groups}: {kept:?}");
                }
            }
        }
    }
}

#[test]
fn one_multiplier_per_node_is_refused_where_components_could_cancel() {
    use lpgnn::constraint::ConstraintFunction::Linear;
    let readout = NodeReadout::new(3, 2, lpgnn::network::Network::one_hidden(2), 0.0);
    let h = lpgnn::network::Network::one_hidden(2);
    let error = lpgnn::lagrangian::Model::<f64>::new(
        vec![crate::common::transition(0, 3, 1, 0, &h)],
        Box::new(readout),
        Reads::default(),
        Box::new(Linear),
        Multipliers::PerNode,
    )
    .unwrap_err();
    assert!(error.to_string().contains("one per component"), "{error}");
}

/// An objective whose gradient is wrong in one number.
struct Wrong<'a>(Lagrangian<'a, f64>);

impl Objective<f64> for Wrong<'_> {
    fn evaluate(
        &self,
        at: &Variables<f64>,
        request: Request,
        gradient: &mut Variables<f64>,
    ) -> Evaluation {
        let evaluation = self.0.evaluate(at, request, gradient);
        gradient.weights[7] *= 1.0 + 1e-4;
        evaluation
    }
}

#[test]
fn a_wrong_derivative_is_caught() {
    let (recipe, graphs) = (Recipe::default(), batch(1, Form::Dense));
    let model = model::<f64>(&recipe);
    let supervision = Supervision::all(graphs.node_targets().clone());
    let scratch = Scratch::new();
    let weighing = Weighing::default();
    let lagrangian = Lagrangian::new(&model, &graphs, &supervision, weighing, &scratch).unwrap();
    let at = point(&model, graphs.nodes(), 4);
    assert!(check::gradients(&lagrangian, &at) < 1e-8);
    let worst = check::gradients(&Wrong(lagrangian), &at);
    assert!(worst > 1e-6, "{worst:e}");
}

/// The size of the only state, whose kink is nearer to some points than a difference reaches.
struct Kink {
    slope: f64,
}

impl Objective<f64> for Kink {
    fn evaluate(
        &self,
        at: &Variables<f64>,
        _: Request,
        gradient: &mut Variables<f64>,
    ) -> Evaluation {
        let x = at.states[0].row(0)[0];
        gradient.states[0].row_mut(0)[0] = self.slope * x.signum();
        Evaluation { loss: x.abs(), ..Evaluation::default() }
    }
}

#[test]
fn near_a_kink_a_derivative_is_still_right_or_wrong() {
    for x in [1.0, 3e-6, -2e-7, 5e-8] {
        let states = vec![lpgnn::Matrix::from_rows(&[vec![x]]).unwrap()];
        let at = Variables { weights: vec![], states, multipliers: vec![] };
        assert!(check::gradients(&Kink { slope: 1.0 }, &at) < 1e-6, "{x}");
        assert!(check::gradients(&Kink { slope: 1.0 + 1e-4 }, &at) > 1e-5, "{x}");
    }
}

/// A transition with `1 − tanh` for the derivative of tanh: it trains, and only the check notices.
#[derive(Debug)]
struct WrongSlope(Parameters);

impl Transition<f64> for WrongSlope {
    fn parameters(&self) -> &Parameters {
        &self.0
    }
    fn state_dim(&self) -> usize {
        1
    }
    fn check(
        &self,
        _: lpgnn::graph::FeaturesView<'_, f64>,
        _: lpgnn::graph::FeaturesView<'_, f64>,
    ) -> Result<(), lpgnn::Error> {
        Ok(())
    }
    fn forward(
        &self,
        weights: &[f64],
        input: lpgnn::transition::Input<'_, f64>,
        f_x: &mut lpgnn::Matrix<f64>,
        _: &Scratch<f64>,
    ) {
        for (f, x) in f_x.as_mut_slice().iter_mut().zip(input.states.as_slice()) {
            *f = (weights[0] * x).tanh();
        }
    }
    fn backward(
        &self,
        weights: &[f64],
        input: lpgnn::transition::Input<'_, f64>,
        d_f: &lpgnn::Matrix<f64>,
        gradients: lpgnn::transition::Gradients<'_, f64>,
        _: &Scratch<f64>,
    ) {
        let mut sum = 0.0;
        for (i, d) in d_f.as_slice().iter().enumerate() {
            let x = input.states.as_slice()[i];
            let slope = 1.0 - (weights[0] * x).tanh();
            sum += d * slope * x;
            gradients.states.as_mut_slice()[i] += d * slope * weights[0];
        }
        if let Some(d_weights) = gradients.weights {
            d_weights[0] += sum;
        }
    }
}

#[test]
fn a_wrong_slope_breaks_the_contract() {
    let w = Parameters::new().layer("0", 1).weight("", Role::OwnState, 1);
    let wrong = WrongSlope(w.starting(Init::Uniform(0.0, 1.0)));
    let error = check::transition(&wrong, &batch(0, Form::Dense), 1).unwrap_err();
    assert!(error.to_string().starts_with("the derivative in weight 0 is"), "{error}");
}

/// A transition that overwrites gradients where it should add to them.
#[derive(Debug)]
struct Overwrites(lpgnn::transition::NodeNetwork);

impl Transition<f64> for Overwrites {
    fn parameters(&self) -> &Parameters {
        Transition::<f64>::parameters(&self.0)
    }
    fn state_dim(&self) -> usize {
        Transition::<f64>::state_dim(&self.0)
    }
    fn check(
        &self,
        features: lpgnn::graph::FeaturesView<'_, f64>,
        edges: lpgnn::graph::FeaturesView<'_, f64>,
    ) -> Result<(), lpgnn::Error> {
        self.0.check(features, edges)
    }
    fn forward(
        &self,
        weights: &[f64],
        input: lpgnn::transition::Input<'_, f64>,
        f_x: &mut lpgnn::Matrix<f64>,
        scratch: &Scratch<f64>,
    ) {
        self.0.forward(weights, input, f_x, scratch);
    }
    fn backward(
        &self,
        weights: &[f64],
        input: lpgnn::transition::Input<'_, f64>,
        d_f: &lpgnn::Matrix<f64>,
        gradients: lpgnn::transition::Gradients<'_, f64>,
        scratch: &Scratch<f64>,
    ) {
        gradients.states.as_mut_slice().fill(0.0);
        self.0.backward(weights, input, d_f, gradients, scratch);
    }
}

#[test]
fn overwriting_a_gradient_breaks_the_contract() {
    let h = lpgnn::network::Network::one_hidden(3);
    let f = lpgnn::transition::NodeNetwork::new(
        2,
        crate::common::LABEL,
        &h,
        lpgnn::transition::NeighbourSum::Mean,
    );
    let graphs = batch(0, Form::Dense);
    check::transition(&f, &graphs, 1).unwrap();
    check::transition(&Overwrites(f), &graphs, 1).unwrap_err();
}

#[test]
fn every_readout_keeps_the_exported_contract() {
    for pooling in POOLINGS {
        for (i, network) in networks().into_iter().enumerate() {
            let network = lpgnn::network::Network {
                output_activation: lpgnn::activation::Activation::Identity,
                ..network
            };
            for (features, form) in [(0, Form::Dense)].into_iter().chain(FORMS.map(|f| (LABEL, f)))
            {
                let f = crate::common::readout::<f64>(pooling, (3, features), network.clone());
                let graphs = batch(i as u64, form);
                let kept: Vec<_> =
                    (0..3).map(|seed| check::readout(f.as_ref(), &graphs, seed)).collect();
                assert!(kept.iter().any(Result::is_ok), "{pooling:?}, {network:?}: {kept:?}");
            }
        }
    }
}

/// With nothing read of the states, what is left is the model that sees no edges.
#[test]
fn a_readout_of_features_contains_the_network_without_edges() {
    let network = lpgnn::network::Network::one_hidden(4);
    for (form, pooling) in FORMS.into_iter().flat_map(|form| POOLINGS.map(|of| (form, of))) {
        let graphs = batch::<f64>(3, form);
        let f = crate::common::readout::<f64>(pooling, (2, LABEL), network.clone());
        let mut weights = vec![0.0; f.parameters().weights()];
        f.parameters().initialize(&mut lpgnn::uniform(5), &mut weights);
        for (parameter, range) in f.parameters().iter() {
            if parameter.role() == Role::Input {
                weights[range].fill(0.0);
            }
        }
        let states = lpgnn::Matrix::zeros(graphs.nodes(), 2);
        let mut found = lpgnn::Matrix::zeros(f.level().rows(&graphs), f.outputs());
        let input = ReadoutInput { batch: &graphs, parts: &[&states], dropout: None };
        f.forward(&weights, input, &mut found, &Scratch::new());

        // The same weights, without those of the states, over features that are pooled by hand.
        let mlp = Mlp::new(LABEL, f.outputs(), network.clone(), 0.0);
        let own = f.parameters().iter().filter(|(parameter, _)| parameter.role() != Role::Input);
        let own: Vec<f64> = own.flat_map(|(_, range)| weights[range].to_vec()).collect();
        let rows: Vec<f64> =
            (0..found.rows()).flat_map(|row| pooled(&graphs, pooling, row)).collect();
        let mut expected = lpgnn::Matrix::zeros(found.rows(), found.cols());
        mlp.forward(&own, rows[..].into(), &mut expected, &Scratch::new());
        for (a, b) in found.as_slice().iter().zip(expected.as_slice()) {
            assert!((a - b).abs() < 1e-12, "{form:?}, {pooling:?}: {a} {b}");
        }
    }
}

/// The features of a node, or of the nodes of a graph together.
fn pooled(graphs: &GraphBatch<f64>, pooling: Option<Pooling>, row: usize) -> Vec<f64> {
    let of = |v: usize| {
        let mut dense = vec![0.0; LABEL];
        graphs.node_features().entries(v).for_each(|(column, value)| dense[column] += value);
        dense
    };
    let Some(pooling) = pooling else { return of(row) };
    let nodes: Vec<Vec<f64>> = graphs.nodes_of(row).map(of).collect();
    let column = |j: usize| {
        let values = || nodes.iter().map(|l| l[j]);
        let count = u32::try_from(nodes.len()).unwrap().max(1);
        match pooling {
            Pooling::Sum => values().sum(),
            Pooling::Mean => values().sum::<f64>() / f64::from(count),
            Pooling::Max if nodes.is_empty() => 0.0,
            Pooling::Max => values().fold(f64::NEG_INFINITY, f64::max),
        }
    };
    (0..LABEL).map(column).collect()
}

/// A read-out of the mean that gives its gradient to the first node of a graph, or, if `squared`,
/// one that is not linear in its last layer.
#[derive(Debug)]
struct WrongReadout {
    mlp: Mlp,
    squared: bool,
}

impl WrongReadout {
    fn means(&self, input: ReadoutInput<'_, f64>) -> Vec<f64> {
        let states = input.states();
        let mean = |graph: usize, i: usize| {
            let nodes = input.batch.nodes_of(graph);
            let count = nodes.len().max(1) as f64;
            nodes.map(|v| states.row(v)[i]).sum::<f64>() / count
        };
        let graphs = 0..input.batch.graphs();
        graphs.flat_map(|graph| (0..self.mlp.inputs()).map(move |i| mean(graph, i))).collect()
    }
}

impl Readout<f64> for WrongReadout {
    fn parameters(&self) -> &Parameters {
        self.mlp.parameters()
    }
    fn level(&self) -> Level {
        Level::Graph
    }
    fn inputs(&self) -> usize {
        self.mlp.inputs()
    }
    fn outputs(&self) -> usize {
        self.mlp.outputs()
    }
    fn forward(
        &self,
        weights: &[f64],
        input: ReadoutInput<'_, f64>,
        predictions: &mut lpgnn::Matrix<f64>,
        scratch: &Scratch<f64>,
    ) {
        self.mlp.forward(weights, self.means(input)[..].into(), predictions, scratch);
        if self.squared {
            predictions.as_mut_slice().iter_mut().for_each(|y| *y *= *y);
        }
    }
    fn backward(
        &self,
        weights: &[f64],
        input: ReadoutInput<'_, f64>,
        d_predictions: &lpgnn::Matrix<f64>,
        gradients: ReadoutGradients<'_, f64>,
        scratch: &Scratch<f64>,
    ) {
        let (means, mut d) = (self.means(input), d_predictions.clone());
        if self.squared {
            let mut y = d.clone();
            self.mlp.forward(weights, means[..].into(), &mut y, scratch);
            d.as_mut_slice().iter_mut().zip(y.as_slice()).for_each(|(d, y)| *d *= 2.0 * y);
        }
        let mut d_means = means.clone();
        let to =
            MlpGradients { weights: gradients.weights, rows: Some(&mut d_means), features: None };
        self.mlp.backward(weights, means[..].into(), &d, to, scratch);
        let Some(d_states) = gradients.states else { return };
        for (graph, d) in d_means.chunks(self.mlp.inputs()).enumerate() {
            let nodes = input.batch.nodes_of(graph);
            let share = 1.0 / nodes.len().max(1) as f64;
            let (some, part) = if self.squared { (nodes.len(), share) } else { (1, 1.0) };
            for v in nodes.take(some) {
                d_states.row_mut(v).iter_mut().zip(d).for_each(|(to, d)| *to += part * d);
            }
        }
    }
}

#[test]
fn a_gradient_of_the_wrong_node_breaks_the_contract_of_a_readout() {
    let mlp = Mlp::new(2, 3, lpgnn::network::Network::one_hidden(2), 0.0);
    let wrong = WrongReadout { mlp, squared: false };
    let error = check::readout(&wrong, &batch(0, Form::Dense), 1).unwrap_err();
    assert!(error.to_string().starts_with("the derivative in state"), "{error}");
}

#[test]
fn a_last_layer_that_is_not_linear_has_to_be_admitted() {
    let mlp = Mlp::new(2, 3, lpgnn::network::Network::one_hidden(2), 0.0);
    let wrong = WrongReadout { mlp, squared: true };
    let error = check::readout(&wrong, &batch(0, Form::Dense), 1).unwrap_err();
    assert!(error.to_string().contains("is_linear_in_last_layer should be false"), "{error}");
}
