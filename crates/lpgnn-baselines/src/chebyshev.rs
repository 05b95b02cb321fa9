use lpgnn::activation::Activation;
use lpgnn::parameters::Parameters;
use lpgnn::registry::TransitionSpec;
use lpgnn::{Error, Matrix, Scalar, transition::Transition};

use crate::dense::{Dense, Layers, add, columns, joined};
use crate::feed_forward::{FeedForward, Layer, Place};
use crate::operator::Operator;

/// A Chebyshev filter (Defferrard et al., 2016): a polynomial of the graph Laplacian.
///
/// ```text
/// T_0 = l      T_1 = L̃ l      T_k = 2 L̃ T_(k−1) − T_(k−2)      f = σ(Σ_{k < K} T_k Θ_k + b)
/// ```
///
/// with `L̃ = 2 L / λ_max − I` and `λ_max = 2`.
#[derive(Debug)]
pub(crate) struct Chebyshev {
    features: usize,
    state: usize,
    terms: usize,
    dense: Dense,
    parameters: Parameters,
}

impl Chebyshev {
    pub(crate) fn new(features: usize, state: usize, terms: usize, activation: Activation) -> Self {
        let mut layers = Layers::default();
        let dense = layers.dense("0", (terms * features, state), activation);
        Self { features, state, terms, dense, parameters: layers.0 }
    }
}

impl FeedForward for Chebyshev {
    fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    fn shape(&self) -> (usize, usize) {
        (self.features, self.state)
    }

    /// `[T_0, …, T_(K−1)]`, then `f`.
    fn forward<S: Scalar>(&self, at: &Place<'_, S>) -> Vec<Matrix<S>> {
        let mut terms = vec![at.features.clone()];
        for k in 1..self.terms {
            let mut next = Operator::ScaledLaplacian.apply(at.topology, &terms[k - 1]);
            if k > 1 {
                let once = next.clone();
                add(&mut next, S::ONE, &once);
                add(&mut next, -S::ONE, &terms[k - 2]);
            }
            terms.push(next);
        }
        let all = joined(&terms.iter().collect::<Vec<_>>());
        let f = self.dense.forward(at.weights, &all, at.scratch);
        vec![all, f]
    }

    fn backward<S: Scalar>(
        &self,
        at: &Place<'_, S>,
        trace: &[Matrix<S>],
        d_value: &Matrix<S>,
        d_weights: Option<&mut [S]>,
    ) -> Matrix<S> {
        let d = self.dense.backward(at.weights, &trace[0], d_value, d_weights, at.scratch);
        let of_term = |k: usize| columns(&d, k * self.features..(k + 1) * self.features);
        let mut d_terms: Vec<Matrix<S>> = (0..self.terms).map(of_term).collect();
        for k in (1..self.terms).rev() {
            let back = Operator::ScaledLaplacian.transposed(at.topology, &d_terms[k]);
            add(&mut d_terms[k - 1], S::ONE, &back);
            if k > 1 {
                add(&mut d_terms[k - 1], S::ONE, &back);
                let same = d_terms[k].clone();
                add(&mut d_terms[k - 2], -S::ONE, &same);
            }
        }
        d_terms.swap_remove(0)
    }
}

/// Terms of the polynomial, unless the option of this name says otherwise.
const TERMS: usize = 3;

/// The transition `chebyshev`, with the option `terms` and the activation of the model.
pub(crate) fn make<S: Scalar>(spec: &TransitionSpec<'_>) -> Result<Box<dyn Transition<S>>, Error> {
    let options = &spec.model.transition_options;
    options.check(&["terms"])?;
    let terms = options.count("terms", 1..=256, TERMS)?;
    let (features, state) = (spec.features, spec.model.state_dim);
    Ok(Box::new(Layer(Chebyshev::new(features, state, terms, spec.model.activation))))
}
