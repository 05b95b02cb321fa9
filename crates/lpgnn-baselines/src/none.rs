use lpgnn::parameters::Parameters;
use lpgnn::transition::{Degrees, Gradients, Input, Transition};
use lpgnn::{Matrix, Scalar, Scratch};

/// `f_a = 0`: no states, for read-outs that make everything of the graph itself.
#[derive(Debug)]
pub(crate) struct NoStates {
    state_dim: usize,
    parameters: Parameters,
}

impl NoStates {
    /// With so many components, all of them zero.
    pub(crate) fn new(state_dim: usize) -> Self {
        Self { state_dim, parameters: Parameters::new() }
    }
}

impl<S: Scalar> Transition<S> for NoStates {
    fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    fn state_dim(&self) -> usize {
        self.state_dim
    }

    fn forward(&self, _: &[S], _: Input<'_, S>, f_x: &mut Matrix<S>, _: &Scratch<S>) {
        f_x.as_mut_slice().fill(S::ZERO);
    }

    fn backward(
        &self,
        _: &[S],
        _: Input<'_, S>,
        _: &Matrix<S>,
        _: Gradients<'_, S>,
        _: &Scratch<S>,
    ) {
        // A constant has no derivatives.
    }

    fn lipschitz(&self, _: &[S], _: Degrees) -> Option<f64> {
        Some(0.0)
    }
}
