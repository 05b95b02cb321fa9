use lpgnn::activation::Activation;
use lpgnn::graph::Level;
use lpgnn::parameters::Parameters;
use lpgnn::readout::{Readout, ReadoutGradients, ReadoutInput};
use lpgnn::registry::ReadoutSpec;
use lpgnn::{Error, Matrix, Scalar, Scratch};

use crate::dense::{Dense, Layers};
use crate::gated::open;

/// The read-out of a gated graph network: a sum over the nodes in which a gate says how much each of them counts.
///
/// ```text
/// y_g = W Σ_{v ∈ g} σ(W_i x_v + b_i) ⊙ tanh(W_j x_v + b_j) + b
/// ```
///
/// Reading all layers, or a layer of features among them, gives the gate what the published one reads of the features.
#[derive(Debug)]
pub(crate) struct GatedSum {
    inputs: usize,
    units: usize,
    gates: Dense,
    output: Dense,
    parameters: Parameters,
}

impl GatedSum {
    pub(crate) fn new(inputs: usize, units: usize, outputs: usize) -> Self {
        let mut layers = Layers::default();
        let gates = layers.dense("gates", (inputs, 2 * units), Activation::Tanh);
        let output = layers.dense("output", (units, outputs), Activation::Identity);
        Self { inputs, units, gates, output, parameters: layers.0 }
    }

    /// `tanh` of gates and values of every node, and the sums over the nodes of every graph.
    fn sums<S: Scalar>(
        &self,
        weights: &[S],
        input: ReadoutInput<'_, S>,
        scratch: &Scratch<S>,
    ) -> (Matrix<S>, Matrix<S>) {
        let all = self.gates.forward(weights, &input.states(), scratch);
        let mut sums = Matrix::zeros(input.batch.graphs(), self.units);
        for graph in 0..input.batch.graphs() {
            for v in input.batch.nodes_of(graph) {
                let (gate, value) = all.row(v).split_at(self.units);
                let terms = gate.iter().zip(value).map(|(&t, &value)| open(t) * value);
                sums.row_mut(graph).iter_mut().zip(terms).for_each(|(sum, term)| *sum += term);
            }
        }
        (all, sums)
    }
}

impl<S: Scalar> Readout<S> for GatedSum {
    fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    fn level(&self) -> Level {
        Level::Graph
    }

    fn inputs(&self) -> usize {
        self.inputs
    }

    fn forward(
        &self,
        weights: &[S],
        input: ReadoutInput<'_, S>,
        predictions: &mut Matrix<S>,
        scratch: &Scratch<S>,
    ) {
        let (_, sums) = self.sums(weights, input, scratch);
        *predictions = self.output.forward(weights, &sums, scratch);
    }

    fn backward(
        &self,
        weights: &[S],
        input: ReadoutInput<'_, S>,
        d_predictions: &Matrix<S>,
        mut gradients: ReadoutGradients<'_, S>,
        scratch: &Scratch<S>,
    ) {
        let (all, sums) = self.sums(weights, input, scratch);
        let to = gradients.weights.as_deref_mut();
        let d_sums = self.output.backward(weights, &sums, d_predictions, to, scratch);
        let mut d_all = Matrix::zeros(all.rows(), all.cols());
        for graph in 0..input.batch.graphs() {
            for v in input.batch.nodes_of(graph) {
                let (gate, value) = all.row(v).split_at(self.units);
                let (d_gate, d_value) = d_all.row_mut(v).split_at_mut(self.units);
                for (i, &d) in d_sums.row(graph).iter().enumerate() {
                    d_gate[i] = d * S::of(0.5) * value[i];
                    d_value[i] = d * open(gate[i]);
                }
            }
        }
        let states = input.states();
        let d = self.gates.backward(weights, &states, &d_all, gradients.weights, scratch);
        if let Some(d_states) = gradients.states {
            crate::dense::add(d_states, S::ONE, &d);
        }
    }
}

/// The read-out `gated`, with the option `units`, which is as many as a state has components unless it is given.
pub(crate) fn make<S: Scalar>(spec: &ReadoutSpec<'_>) -> Result<Box<dyn Readout<S>>, Error> {
    let options = &spec.model.readout_options;
    options.check(&["units"])?;
    let units = options.count("units", 1..=1 << 16, spec.model.state_dim)?;
    Ok(Box::new(GatedSum::new(spec.inputs, units, spec.outputs)))
}
