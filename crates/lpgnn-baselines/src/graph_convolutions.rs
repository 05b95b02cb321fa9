use lpgnn::activation::Activation;
use lpgnn::parameters::Parameters;
use lpgnn::registry::TransitionSpec;
use lpgnn::{Error, Matrix, Scalar, transition::Transition};

use crate::dense::{Dense, Layers, add, columns, joined};
use crate::feed_forward::{FeedForward, Layer, Place, check_state_dim};
use crate::operator::Operator;

/// The graph convolutions of DGCNN (Zhang et al., 2018), whose layers are all read, side by side:
///
/// ```text
/// H⁰ = l      H^(t+1) = tanh(D̃⁻¹ Ã Hᵗ W_t + b_t)      f = [H¹ … Hᵀ]
/// ```
#[derive(Debug)]
pub(crate) struct GraphConvolutions {
    features: usize,
    channels: Vec<usize>,
    layers: Vec<Dense>,
    parameters: Parameters,
}

impl GraphConvolutions {
    pub(crate) fn new(features: usize, channels: Vec<usize>) -> Self {
        let mut all = Layers::default();
        let inputs = std::iter::once(&features).chain(&channels);
        let layers = inputs.zip(&channels).enumerate();
        let layers = layers.map(|(t, (&inputs, &outputs))| {
            all.dense(&t.to_string(), (inputs, outputs), Activation::Tanh)
        });
        let layers = layers.collect();
        Self { features, channels, layers, parameters: all.0 }
    }
}

impl FeedForward for GraphConvolutions {
    fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    fn shape(&self) -> (usize, usize) {
        (self.features, self.channels.iter().sum())
    }

    /// The means `D̃⁻¹ Ã Hᵗ` of every layer, then `f`.
    fn forward<S: Scalar>(&self, at: &Place<'_, S>) -> Vec<Matrix<S>> {
        let (mut means, mut values) = (vec![], vec![]);
        for layer in &self.layers {
            let below = values.last().unwrap_or(at.features);
            let mean = Operator::MeanWithSelf.apply(at.topology, below);
            values.push(layer.forward(at.weights, &mean, at.scratch));
            means.push(mean);
        }
        means.push(joined(&values.iter().collect::<Vec<_>>()));
        means
    }

    fn backward<S: Scalar>(
        &self,
        at: &Place<'_, S>,
        trace: &[Matrix<S>],
        d_value: &Matrix<S>,
        mut d_weights: Option<&mut [S]>,
    ) -> Matrix<S> {
        let (mut end, mut d_below) = (d_value.cols(), None::<Matrix<S>>);
        for (t, layer) in self.layers.iter().enumerate().rev() {
            let start = end - self.channels[t];
            // H is read by f and by the layer above.
            let mut d = columns(d_value, start..end);
            if let Some(d_below) = &d_below {
                add(&mut d, S::ONE, d_below);
            }
            let to = d_weights.as_deref_mut();
            let d_mean = layer.backward(at.weights, &trace[t], &d, to, at.scratch);
            d_below = Some(Operator::MeanWithSelf.transposed(at.topology, &d_mean));
            end = start;
        }
        d_below.unwrap_or_else(|| Matrix::zeros(at.features.rows(), self.features))
    }
}

/// The transition `dgcnn`, with the option `channels`.
pub(crate) fn make<S: Scalar>(spec: &TransitionSpec<'_>) -> Result<Box<dyn Transition<S>>, Error> {
    let options = &spec.model.transition_options;
    options.check(&["channels"])?;
    let channels: Vec<usize> = options.get("channels")?.unwrap_or_else(|| vec![32, 32, 32, 1]);
    let of = format!("layers of {channels:?} channels side by side");
    check_state_dim(spec.model.state_dim, channels.iter().sum(), &of)?;
    Ok(Box::new(Layer(GraphConvolutions::new(spec.features, channels))))
}
