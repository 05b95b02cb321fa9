use super::{Loss, Mlp, MlpGradients, Pooling, Readout, ReadoutGradients, ReadoutInput};
use crate::graph::Level;
use crate::network::Network;
use crate::numeric::Scratch;
use crate::parameters::Parameters;
use crate::{Matrix, Scalar};

/// A network of every node's state: `f_{r,v} = mlp(x_v | θ_r)`.
#[derive(Clone, Debug)]
pub struct NodeReadout {
    mlp: Mlp,
}

impl NodeReadout {
    /// A network from `inputs` components of a state to `outputs` classes or values; for `dropout`,
    /// see [`Mlp::new`].
    pub fn new(inputs: usize, outputs: usize, network: Network, dropout: f64) -> Self {
        Self { mlp: Mlp::new(inputs, outputs, network, dropout) }
    }
}

impl<S: Scalar> Readout<S> for NodeReadout {
    fn parameters(&self) -> &Parameters {
        self.mlp.parameters()
    }

    fn level(&self) -> Level {
        Level::Node
    }

    fn inputs(&self) -> usize {
        self.mlp.inputs()
    }

    fn network(&self) -> Option<(Option<Pooling>, &Mlp)> {
        Some((None, &self.mlp))
    }

    fn forward(
        &self,
        weights: &[S],
        input: ReadoutInput<'_, S>,
        predictions: &mut Matrix<S>,
        scratch: &Scratch<S>,
    ) {
        self.mlp.forward(weights, input.states().as_slice(), input.dropout, predictions, scratch);
    }

    fn backward(
        &self,
        weights: &[S],
        input: ReadoutInput<'_, S>,
        d_predictions: &Matrix<S>,
        gradients: ReadoutGradients<'_, S>,
        scratch: &Scratch<S>,
    ) {
        let states = input.states();
        let states = states.as_slice();
        let mut d_rows = scratch.take(states.len());
        let to = MlpGradients { weights: gradients.weights, rows: Some(&mut d_rows) };
        self.mlp.backward(weights, states, input.dropout, d_predictions, to, scratch);
        if let Some(d_states) = gradients.states {
            d_states.as_mut_slice().iter_mut().zip(&d_rows[..]).for_each(|(to, &d)| *to += d);
        }
    }

    fn pass(
        &self,
        weights: &[S],
        input: ReadoutInput<'_, S>,
        loss: Loss<'_, S>,
        predictions: &mut Matrix<S>,
        gradients: ReadoutGradients<'_, S>,
        scratch: &Scratch<S>,
    ) -> f64 {
        let rows = gradients.states.map(Matrix::as_mut_slice);
        let to = MlpGradients { weights: gradients.weights, rows };
        let states = input.states();
        let rows = (states.as_slice(), input.dropout);
        self.mlp.pass(weights, rows, loss, predictions, to, scratch)
    }
}
