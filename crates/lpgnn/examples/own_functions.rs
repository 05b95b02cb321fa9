//! A custom transition function and a custom constraint function, each checked and used.
//!
//! ```sh
//! cargo run --release --example own_functions
//! ```

use lpgnn::constraint::Constraint;
use lpgnn::graph::{FeaturesView, Graph, GraphBatch, Targets};
use lpgnn::lagrangian::{Lagrangian, Model, Multipliers, Reads, Weighing};
use lpgnn::network::Network;
use lpgnn::parameters::{Init, Parameters, Role};
use lpgnn::readout::{NodeReadout, Supervision};
use lpgnn::saddle::{Bdmm, DualRule, OptimizerState, PrimalRule, SaddleSolver, WeightDescent};
use lpgnn::transition::{Gradients, Input, Transition};
use lpgnn::{Error, Matrix, Scratch, check};

/// Diffusion with a source: `f_v = tanh(w₁ mean_{u ∈ ne[v]} x_u + w₂ l_v)`, component by component.
#[derive(Debug)]
struct Diffusion {
    state: usize,
    parameters: Parameters,
}

impl Diffusion {
    fn new(state: usize) -> Self {
        let init = Init::Uniform(0.5, 0.9);
        let parameters = Parameters::new()
            .layer("mix", 1)
            .weight("neighbours", Role::NeighbourState, 1)
            .starting(init)
            .weight("source", Role::Input, 1)
            .starting(init);
        Self { state, parameters }
    }

    fn mean(input: Input<'_, f64>, v: usize, i: usize) -> f64 {
        let neighbours = input.topology.neighbours().of(v);
        let sum: f64 = neighbours.iter().map(|&u| input.states.row(u as usize)[i]).sum();
        sum / neighbours.len().max(1) as f64
    }

    fn feature(input: Input<'_, f64>, v: usize, i: usize) -> f64 {
        input
            .node_features
            .entries(v)
            .find(|&(column, _)| column == i)
            .map_or(0.0, |(_, value)| value)
    }
}

impl Transition<f64> for Diffusion {
    fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    fn state_dim(&self) -> usize {
        self.state
    }

    fn check(
        &self,
        features: FeaturesView<'_, f64>,
        _: FeaturesView<'_, f64>,
    ) -> Result<(), Error> {
        if features.width() == self.state {
            return Ok(());
        }
        Err(Error::Mismatch(format!("features need {} components, as states have", self.state)))
    }

    fn forward(&self, w: &[f64], input: Input<'_, f64>, f_x: &mut Matrix<f64>, _: &Scratch<f64>) {
        for v in 0..f_x.rows() {
            for i in 0..self.state {
                let sum = w[0] * Self::mean(input, v, i) + w[1] * Self::feature(input, v, i);
                f_x.row_mut(v)[i] = sum.tanh();
            }
        }
    }

    fn backward(
        &self,
        w: &[f64],
        input: Input<'_, f64>,
        d_f: &Matrix<f64>,
        mut to: Gradients<'_, f64>,
        _: &Scratch<f64>,
    ) {
        for v in 0..d_f.rows() {
            for i in 0..self.state {
                let (mean, feature) = (Self::mean(input, v, i), Self::feature(input, v, i));
                let f = (w[0] * mean + w[1] * feature).tanh();
                let d = d_f.row(v)[i] * (1.0 - f * f);
                if let Some(weights) = &mut to.weights {
                    weights[0] += d * mean;
                    weights[1] += d * feature;
                }
                let neighbours = input.topology.neighbours().of(v);
                for &u in neighbours {
                    to.states.row_mut(u as usize)[i] += d * w[0] / neighbours.len() as f64;
                }
                if let Some(features) = &mut to.features {
                    features.row_mut(v)[i] += d * w[1];
                }
            }
        }
    }
}

/// `G(a) = ln cosh a`: squared near zero, absolute far away, smooth everywhere.
#[derive(Debug)]
struct LogCosh;

impl Constraint<f64> for LogCosh {
    fn value(&self, a: f64) -> f64 {
        a.cosh().ln()
    }
    fn derivative(&self, a: f64) -> f64 {
        a.tanh()
    }
}

#[allow(clippy::print_stdout, reason = "an example shows what it does")]
fn main() -> Result<(), Error> {
    // A path whose first node knows the answer; the last one is asked.
    let nodes = 6_u32;
    let features: Vec<Vec<f64>> =
        (0..nodes).map(|v| vec![if v == 0 { 1.0 } else { 0.0 }]).collect();
    let edges = (1..nodes).flat_map(|v| [(v - 1, v), (v, v - 1)]).collect();
    let class =
        (0..nodes).map(|v| if v + 1 == nodes { 1 } else { lpgnn::graph::NO_TARGET }).collect();
    let path = Graph::new(&features, edges)?.with_node_targets(Targets::classes(2, class)?)?;
    let batch = GraphBatch::new(&[path])?;

    // The checks that the library's own functions pass.
    check::transition(&Diffusion::new(1), &batch, 1)?;
    check::constraint(&LogCosh)?;
    println!("both keep their contracts");

    let readout = NodeReadout::new(1, 2, Network::one_hidden(4), 0.0);
    let model = Model::new(
        vec![Box::new(Diffusion::new(1))],
        Box::new(readout),
        Reads::default(),
        Box::new(LogCosh),
        Multipliers::PerNode,
    )?;
    let supervision = Supervision::all(batch.node_targets().clone());
    let scratch = Scratch::new();
    let lagrangian = Lagrangian::new(&model, &batch, &supervision, Weighing::default(), &scratch)?;
    let mut at = model.start(batch.nodes(), &mut check::uniform(7));
    let mut state = OptimizerState::new(&at);
    let solver = Bdmm {
        weights: WeightDescent { rule: PrimalRule::Sgd, lr: 0.1, ..WeightDescent::default() },
        state_rule: PrimalRule::Sgd,
        state_lr: 0.1,
        dual_rule: DualRule::Sgd,
        multiplier_lr: 0.1,
        penalty: 1.0,
        ..Bdmm::default()
    };
    let first = solver.step(&lagrangian, &mut at, &mut state);
    let mut last = first;
    for _ in 0..2000 {
        last = solver.step(&lagrangian, &mut at, &mut state);
    }
    println!("loss {:.4} → {:.4}, residual {:.1e}", first.loss, last.loss, last.residual_max);
    assert!(last.loss < 0.1 * first.loss && last.residual_max < 0.05, "{last:?}");
    Ok(())
}
