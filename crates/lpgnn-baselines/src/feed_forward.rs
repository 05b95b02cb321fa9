//! Feed-forward networks as transitions.

use std::fmt::Debug;

use lpgnn::graph::{FeaturesView, Topology};
use lpgnn::parameters::Parameters;
use lpgnn::transition::{Degrees, Gradients, Input, Transition, Upstream};
use lpgnn::{Error, Matrix, Scalar, Scratch};

/// A network of the features of all nodes, as many steps deep as it likes.
pub(crate) trait FeedForward: Debug + Send + Sync {
    fn parameters(&self) -> &Parameters;

    /// Components that it reads of a node, and that it makes of one.
    fn shape(&self) -> (usize, usize);

    /// What the way back needs; the value is last.
    fn forward<S: Scalar>(&self, at: &Place<'_, S>) -> Vec<Matrix<S>>;

    /// `∂𝓛/∂` features from `∂𝓛/∂` the value; adds `∂𝓛/∂θ` where it is wanted.
    fn backward<S: Scalar>(
        &self,
        at: &Place<'_, S>,
        trace: &[Matrix<S>],
        d_value: &Matrix<S>,
        d_weights: Option<&mut [S]>,
    ) -> Matrix<S>;
}

/// Where a network is evaluated.
pub(crate) struct Place<'a, S: Scalar> {
    pub(crate) weights: &'a [S],
    pub(crate) topology: &'a Topology,
    pub(crate) features: &'a Matrix<S>,
    pub(crate) scratch: &'a Scratch<S>,
}

/// `f_a(X) = network(l)`: a transition that does not read states.
///
/// A Lipschitz constant of 0 is within every bound, so the fixed point is reached in one step; with `reads.from =
/// transition`, which is the default, the gradient of one-shot is that of back-propagation. Stacks of layers are
/// stacks of networks.
#[derive(Debug)]
pub(crate) struct Layer<F>(pub(crate) F);

impl<F: FeedForward> Layer<F> {
    fn at<R, S: Scalar>(
        weights: &[S],
        input: Input<'_, S>,
        scratch: &Scratch<S>,
        work: impl FnOnce(&Place<'_, S>) -> R,
    ) -> R {
        let topology = input.topology;
        match input.node_features {
            FeaturesView::Dense(features) => work(&Place { weights, topology, features, scratch }),
            view => work(&Place { weights, topology, features: &dense(view), scratch }),
        }
    }
}

impl<F: FeedForward, S: Scalar> Transition<S> for Layer<F> {
    fn parameters(&self) -> &Parameters {
        self.0.parameters()
    }

    fn state_dim(&self) -> usize {
        self.0.shape().1
    }

    fn check(
        &self,
        node_features: FeaturesView<'_, S>,
        _: FeaturesView<'_, S>,
    ) -> Result<(), Error> {
        let (reads, width) = (self.0.shape().0, node_features.width());
        if reads == width {
            return Ok(());
        }
        Err(Error::Mismatch(format!("f_a reads {reads} features of a node, but there are {width}")))
    }

    fn forward(
        &self,
        weights: &[S],
        input: Input<'_, S>,
        f_x: &mut Matrix<S>,
        scratch: &Scratch<S>,
    ) {
        let mut trace = Self::at(weights, input, scratch, |at| self.0.forward(at));
        if let Some(value) = trace.pop() {
            *f_x = value;
        }
    }

    fn backward(
        &self,
        weights: &[S],
        input: Input<'_, S>,
        d_f: &Matrix<S>,
        gradients: Gradients<'_, S>,
        scratch: &Scratch<S>,
    ) {
        Self::at(weights, input, scratch, |at| {
            let trace = self.0.forward(at);
            let d = self.0.backward(at, &trace, d_f, gradients.weights);
            if let Some(d_features) = gradients.features {
                crate::dense::add(d_features, S::ONE, &d);
            }
        });
    }

    fn pass(
        &self,
        weights: &[S],
        input: Input<'_, S>,
        upstream: &mut [&mut dyn Upstream<S>],
        gradients: Gradients<'_, S>,
        scratch: &Scratch<S>,
    ) {
        Self::at(weights, input, scratch, |at| {
            let trace = self.0.forward(at);
            let f_x = &trace[trace.len() - 1];
            let (nodes, width) = (input.topology.nodes(), f_x.cols());
            let mut d_f = Matrix::zeros(nodes, width);
            for (group, upstream) in input.topology.groups().ranges().iter().zip(upstream) {
                let rows = group.start * width..group.end * width;
                upstream.derive(
                    group.clone(),
                    &f_x.as_slice()[rows.clone()],
                    &mut d_f.as_mut_slice()[rows.clone()],
                    &mut gradients.states.as_mut_slice()[rows],
                );
            }
            let d = self.0.backward(at, &trace, &d_f, gradients.weights);
            if let Some(d_features) = gradients.features {
                crate::dense::add(d_features, S::ONE, &d);
            }
        });
    }

    fn lipschitz(&self, _: &[S], _: Degrees) -> Option<f64> {
        Some(0.0)
    }
}

/// All columns of all rows.
fn dense<S: Scalar>(features: FeaturesView<'_, S>) -> Matrix<S> {
    let mut all = Matrix::zeros(features.rows(), features.width());
    for row in 0..features.rows() {
        let to = all.row_mut(row);
        features.entries(row).for_each(|(column, value)| to[column] = value);
    }
    all
}

/// # Errors
///
/// [`Error::Option`] when states are to have another number of components than the network makes.
pub(crate) fn check_state_dim(asked: usize, made: usize, of: &str) -> Result<(), Error> {
    if asked == made {
        return Ok(());
    }
    Err(Error::Option {
        option: "state-dim",
        value: asked.to_string(),
        expected: format!("{made} is expected, for {of}"),
    })
}
