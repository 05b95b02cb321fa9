use lpgnn::parameters::Parameters;
use lpgnn::registry::TransitionSpec;
use lpgnn::{Error, Matrix, Scalar, transition::Transition};

use crate::feed_forward::{FeedForward, Layer, Place, check_state_dim};

/// `f = l`: the features themselves, for read-outs of them.
#[derive(Debug)]
pub(crate) struct PassThrough {
    features: usize,
    parameters: Parameters,
}

impl FeedForward for PassThrough {
    fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    fn shape(&self) -> (usize, usize) {
        (self.features, self.features)
    }

    fn forward<S: Scalar>(&self, at: &Place<'_, S>) -> Vec<Matrix<S>> {
        vec![at.features.clone()]
    }

    fn backward<S: Scalar>(
        &self,
        _: &Place<'_, S>,
        _: &[Matrix<S>],
        d_value: &Matrix<S>,
        _: Option<&mut [S]>,
    ) -> Matrix<S> {
        d_value.clone()
    }
}

/// The transition `features`.
pub(crate) fn make<S: Scalar>(spec: &TransitionSpec<'_>) -> Result<Box<dyn Transition<S>>, Error> {
    spec.model.transition_options.check(&[])?;
    let features = spec.features;
    check_state_dim(spec.model.state_dim, features, "the features of a node")?;
    Ok(Box::new(Layer(PassThrough { features, parameters: Parameters::new() })))
}
