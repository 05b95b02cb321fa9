use super::{Loss, Mlp, MlpGradients, MlpInput, Pooling, Readout, ReadoutGradients, ReadoutInput};
use crate::graph::Level;
use crate::network::Network;
use crate::numeric::Scratch;
use crate::parameters::Parameters;
use crate::{Matrix, Scalar};

/// A network of every node's state: `f_{r,v} = mlp(x_v | θ_r)`, or `mlp(x_v, l_v | θ_r)` if it
/// [reads features](Self::reading_features) too.
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

    /// The same, which also reads so many features of the node.
    #[must_use]
    pub fn reading_features(self, features: usize) -> Self {
        Self { mlp: self.mlp.reading_features(features) }
    }

    fn input<'a, S: Scalar>(&self, rows: &'a [S], input: ReadoutInput<'a, S>) -> MlpInput<'a, S> {
        let features = (self.mlp.features() > 0).then(|| input.batch.node_features().view());
        MlpInput { rows, features, dropout: input.dropout }
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

    fn features(&self) -> usize {
        self.mlp.features()
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
        let states = input.states();
        self.mlp.forward(weights, self.input(states.as_slice(), input), predictions, scratch);
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
        let wanted = gradients.features.as_ref().map_or(0, |d| d.as_slice().len());
        let mut d_rows = scratch.take(states.len());
        let mut d_features = scratch.take(wanted);
        let to = MlpGradients {
            weights: gradients.weights,
            rows: Some(&mut d_rows),
            features: (wanted > 0 && self.mlp.features() > 0).then_some(&mut d_features),
        };
        let read = to.features.is_some();
        self.mlp.backward(weights, self.input(states, input), d_predictions, to, scratch);
        if let Some(d_states) = gradients.states {
            d_states.as_mut_slice().iter_mut().zip(&d_rows[..]).for_each(|(to, &d)| *to += d);
        }
        if let Some(to) = gradients.features.filter(|_| read) {
            to.as_mut_slice().iter_mut().zip(&d_features[..]).for_each(|(to, &d)| *to += d);
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
        let to = MlpGradients { weights: gradients.weights, rows, features: None };
        let states = input.states();
        let input = self.input(states.as_slice(), input);
        self.mlp.pass(weights, input, loss, predictions, to, scratch)
    }
}
