use lpgnn::activation::Activation;
use lpgnn::parameters::Parameters;
use lpgnn::registry::TransitionSpec;
use lpgnn::{Error, Matrix, Scalar, transition::Transition};

use crate::dense::{Dense, Layers, add, columns, joined};
use crate::feed_forward::{FeedForward, Layer, Place};
use crate::operator::Operator;

/// A layer that reads a node and its neighbours once, of which a stack is an ordinary network of graphs:
///
/// ```text
/// GIN          f = σ(W₂ᵀ σ(W₁ᵀ (l_v + Σ_u l_u)))            Xu et al., 2019, with ε = 0
/// GCN          f = σ(Wᵀ Σ_(u ∈ ne[v] ∪ v) l_u / √(d̃_v d̃_u))   Kipf and Welling, 2017, with d̃ = de + 1
/// GraphSAGE    f = σ(Wᵀ [l_v; 1/de[v] Σ_u l_u])             Hamilton et al., 2017, mean aggregation
/// ```
///
/// with a bias in every layer.
///
/// # Differences
///
/// GIN normalises over a batch, here `model.normalization` does over a graph. GraphSAGE's rows are not scaled to length 1.
#[derive(Debug)]
pub(crate) struct OneStep {
    operator: Operator,
    /// Whether the node itself is read beside what the operator makes of it and its neighbours.
    beside: bool,
    features: usize,
    state: usize,
    dense: Vec<Dense>,
    parameters: Parameters,
}

impl OneStep {
    fn new(
        (operator, beside, depth): (Operator, bool, usize),
        (features, state): (usize, usize),
        activation: Activation,
    ) -> Self {
        let mut layers = Layers::default();
        let read = if beside { 2 * features } else { features };
        let dense = (0..depth).map(|layer| {
            let inputs = if layer == 0 { read } else { state };
            layers.dense(&layer.to_string(), (inputs, state), activation)
        });
        let dense = dense.collect();
        Self { operator, beside, features, state, dense, parameters: layers.0 }
    }
}

impl FeedForward for OneStep {
    fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    fn shape(&self) -> (usize, usize) {
        (self.features, self.state)
    }

    /// What the dense layers read, one after the other, then `f`.
    fn forward<S: Scalar>(&self, at: &Place<'_, S>) -> Vec<Matrix<S>> {
        let around = self.operator.apply(at.topology, at.features);
        let read = if self.beside { joined(&[at.features, &around]) } else { around };
        let mut trace = vec![read];
        for (layer, dense) in self.dense.iter().enumerate() {
            trace.push(dense.forward(at.weights, &trace[layer], at.scratch));
        }
        trace
    }

    fn backward<S: Scalar>(
        &self,
        at: &Place<'_, S>,
        trace: &[Matrix<S>],
        d_value: &Matrix<S>,
        mut d_weights: Option<&mut [S]>,
    ) -> Matrix<S> {
        let mut d = d_value.clone();
        for (dense, read) in self.dense.iter().zip(trace).rev() {
            d = dense.backward(at.weights, read, &d, d_weights.as_deref_mut(), at.scratch);
        }
        if !self.beside {
            return self.operator.transposed(at.topology, &d);
        }
        let around = columns(&d, self.features..2 * self.features);
        let mut d_features = columns(&d, 0..self.features);
        add(&mut d_features, S::ONE, &self.operator.transposed(at.topology, &around));
        d_features
    }
}

fn make<S: Scalar>(
    kind: (Operator, bool, usize),
    spec: &TransitionSpec<'_>,
) -> Result<Box<dyn Transition<S>>, Error> {
    spec.model.transition_options.check(&[])?;
    let shape = (spec.features, spec.model.state_dim);
    Ok(Box::new(Layer(OneStep::new(kind, shape, spec.model.activation))))
}

/// The transition `gin-step`, with the activation of the model, as the others.
pub(crate) fn gin<S: Scalar>(spec: &TransitionSpec<'_>) -> Result<Box<dyn Transition<S>>, Error> {
    make((Operator::SumWithSelf, false, 2), spec)
}

/// The transition `gcn-step`.
pub(crate) fn gcn<S: Scalar>(spec: &TransitionSpec<'_>) -> Result<Box<dyn Transition<S>>, Error> {
    make((Operator::SymmetricWithSelf, false, 1), spec)
}

/// The transition `sage-step`.
pub(crate) fn sage<S: Scalar>(spec: &TransitionSpec<'_>) -> Result<Box<dyn Transition<S>>, Error> {
    make((Operator::Walk, true, 1), spec)
}
