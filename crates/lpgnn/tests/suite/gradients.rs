//! Every gradient of the Lagrangian agrees with central differences.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use crate::common::{CONSTRAINTS, FORMS, Form, Recipe, TRANSITIONS, batch, model, networks, point};
use lpgnn::constraint::Constraint;
use lpgnn::graph::GraphBatch;
use lpgnn::lagrangian::{
    Evaluation, Lagrangian, Multipliers, Objective, ReadFrom, ReadLayers, Reads, Request, Scale,
    Variables, Weighing,
};
use lpgnn::output::{Readout, Supervision};
use lpgnn::transition::Transition;
use lpgnn::{Scratch, check};
use proptest::prelude::*;

const READS: [Reads; 4] = [
    Reads { from: ReadFrom::State, layers: ReadLayers::Last },
    Reads { from: ReadFrom::Transition, layers: ReadLayers::Last },
    Reads { from: ReadFrom::State, layers: ReadLayers::All },
    Reads { from: ReadFrom::Transition, layers: ReadLayers::All },
];
const READOUTS: [Readout; 3] = [Readout::Node, Readout::GraphSum, Readout::GraphMean];

/// The worst relative error of a recipe's gradient at a random point, with a penalty `ρ`.
fn worst(
    recipe: &Recipe,
    graphs: &GraphBatch<f64>,
    (weighing, penalty): (Weighing, f64),
    seed: u64,
) -> f64 {
    let model = model::<f64>(recipe);
    let targets = match recipe.readout {
        Readout::Node => graphs.node_targets().clone(),
        _ => graphs.graph_targets().clone(),
    };
    let supervision = Supervision::all(targets).with_class_weights(&[1.0, 0.5, 2.0]).unwrap();
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
                for readout in READOUTS {
                    for layers in 1..=3 {
                        seed += 1;
                        let recipe = Recipe {
                            transition,
                            layers,
                            constraint,
                            multipliers,
                            readout,
                            reads: READS[seed % 4],
                            ..Recipe::default()
                        };
                        let graphs = batch(seed as u64 % 7, FORMS[seed % 3]);
                        let terms = (Weighing::default(), 0.3);
                        let error = worst(&recipe, &graphs, terms, seed as u64);
                        assert!(
                            error < 1e-6,
                            "transition {transition}, {constraint:?}, {multipliers:?}, {readout:?}, \
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
        reads in 0..4_usize, readout in 0..3_usize, layers in 1..3_usize, groups in 1..40_usize,
        mean: bool, constraint in 0..5_usize, loss_weight in 0.1..2.0_f64,
    ) {
        let recipe = Recipe {
            transition, layers, h: networks()[network].clone(), constraint: CONSTRAINTS[constraint],
            multipliers: Multipliers::PerComponent, reads: READS[reads], readout: READOUTS[readout],
            state: 2,
        };
        let scale = if mean { Scale::Mean } else { Scale::Sum };
        let weighing = Weighing { loss_weight, loss: scale, constraint: scale };
        // Groups of this little work cut graphs, which has a plan of its own.
        let graphs = batch(seed, FORMS[form]).with_groups_of(groups);
        let error = worst(&recipe, &graphs, (weighing, 0.0), seed);
        prop_assert!(error < 1e-6, "{error:e}");
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
    let output = lpgnn::output::Output::new(
        Readout::Node,
        3,
        2,
        lpgnn::network::Network::one_hidden(2),
        0.0,
    );
    let h = lpgnn::network::Network::one_hidden(2);
    let error = lpgnn::lagrangian::Model::<f64>::new(
        vec![crate::common::transition(0, 3, 1, 0, &h)],
        output,
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
struct WrongSlope;

impl Transition<f64> for WrongSlope {
    fn weights(&self) -> usize {
        1
    }
    fn state_dim(&self) -> usize {
        1
    }
    fn check(
        &self,
        _: &GraphBatch<f64>,
        _: lpgnn::graph::FeaturesView<'_, f64>,
    ) -> Result<(), lpgnn::Error> {
        Ok(())
    }
    fn initialize(&self, draw: &mut dyn FnMut() -> f64, weights: &mut [f64]) {
        weights[0] = draw();
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
    let error = check::transition(&WrongSlope, &batch(0, Form::Dense), 1).unwrap_err();
    assert!(error.to_string().starts_with("the derivative in weight 0 is"), "{error}");
}

/// A transition that overwrites gradients where it should add to them.
#[derive(Debug)]
struct Overwrites(lpgnn::transition::NodeNetwork);

impl Transition<f64> for Overwrites {
    fn weights(&self) -> usize {
        Transition::<f64>::weights(&self.0)
    }
    fn state_dim(&self) -> usize {
        Transition::<f64>::state_dim(&self.0)
    }
    fn check(
        &self,
        batch: &GraphBatch<f64>,
        features: lpgnn::graph::FeaturesView<'_, f64>,
    ) -> Result<(), lpgnn::Error> {
        self.0.check(batch, features)
    }
    fn initialize(&self, draw: &mut dyn FnMut() -> f64, weights: &mut [f64]) {
        self.0.initialize(draw, weights);
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
