use lpgnn::activation::Activation;
use lpgnn::parameters::Parameters;
use lpgnn::registry::TransitionSpec;
use lpgnn::{Error, Matrix, Scalar, transition::Transition};

use crate::dense::{Dense, Layers, add, columns, joined};
use crate::feed_forward::{FeedForward, Layer, Place};
use crate::operator::Operator;

/// A gated graph network (Li et al., 2016), whose `T` steps share their weights:
///
/// ```text
/// h⁰ = [l, 0]      a_v = Σ_{u ∈ ne[v]} (W h_u + b)      z, r = σ(W_zr [a; h] + b_zr)
/// c = tanh(W_c [a; r ⊙ h] + b_c)      h ← (1 − z) ⊙ h + z ⊙ c
/// ```
///
/// Its read-out is `gated`.
///
/// # Differences
///
/// One type of edges, where the published one has weights for each type and direction.
#[derive(Debug)]
pub(crate) struct GatedSteps {
    features: usize,
    state: usize,
    steps: usize,
    message: Dense,
    gates: Dense,
    candidate: Dense,
    parameters: Parameters,
}

/// What a step computes, in this order.
const OF_STEP: usize = 5;

impl GatedSteps {
    pub(crate) fn new(features: usize, state: usize, steps: usize) -> Self {
        let mut layers = Layers::default();
        let message = layers.dense("message", (state, state), Activation::Identity);
        // σ(a) = (1 + tanh(a / 2)) / 2, and half of a is another a.
        let gates = layers.dense("gates", (2 * state, 2 * state), Activation::Tanh);
        let candidate = layers.dense("candidate", (2 * state, state), Activation::Tanh);
        Self { features, state, steps, message, gates, candidate, parameters: layers.0 }
    }

    /// The states before a step, `[a; h]`, the gates as `tanh`, `[a; r ⊙ h]`, the candidate.
    fn step<S: Scalar>(&self, at: &Place<'_, S>, h: Matrix<S>, trace: &mut Vec<Matrix<S>>) {
        let message = self.message.forward(at.weights, &h, at.scratch);
        let read = joined(&[&Operator::Sum.apply(at.topology, &message), &h]);
        let gates = self.gates.forward(at.weights, &read, at.scratch);
        let mut reset = read.clone();
        for v in 0..h.rows() {
            let own = reset.row_mut(v)[self.state..].iter_mut();
            own.zip(&gates.row(v)[self.state..]).for_each(|(h, &t)| *h *= open(t));
        }
        let candidate = self.candidate.forward(at.weights, &reset, at.scratch);
        trace.extend([h, read, gates, reset, candidate]);
    }

    /// `(1 − z) ⊙ h + z ⊙ c`
    fn mix<S: Scalar>(step: &[Matrix<S>]) -> Matrix<S> {
        let [h, _, gates, _, candidate] = step else { unreachable!("a step leaves five") };
        let mut next = h.clone();
        for v in 0..h.rows() {
            let own = next.row_mut(v).iter_mut().zip(candidate.row(v)).zip(gates.row(v));
            own.for_each(|((h, &c), &t)| *h += open(t) * (c - *h));
        }
        next
    }

    /// `∂𝓛/∂h` before a step from that after it.
    fn back<S: Scalar>(
        &self,
        at: &Place<'_, S>,
        step: &[Matrix<S>],
        d_next: &Matrix<S>,
        mut d_weights: Option<&mut [S]>,
    ) -> Matrix<S> {
        let [h, read, gates, reset, candidate] = step else { unreachable!("a step leaves five") };
        let (state, rows) = (self.state, h.rows());
        let mut d_candidate = Matrix::zeros(rows, state);
        let mut d_gates = Matrix::zeros(rows, 2 * state);
        let mut d_h = Matrix::zeros(rows, state);
        for v in 0..rows {
            for (i, &d) in d_next.row(v).iter().enumerate() {
                let z = open(gates.row(v)[i]);
                d_candidate.row_mut(v)[i] = d * z;
                d_gates.row_mut(v)[i] = d * half() * (candidate.row(v)[i] - h.row(v)[i]);
                d_h.row_mut(v)[i] = d * (S::ONE - z);
            }
        }
        let to = d_weights.as_deref_mut();
        let d_reset = self.candidate.backward(at.weights, reset, &d_candidate, to, at.scratch);
        for v in 0..rows {
            for (i, &d) in d_reset.row(v)[state..].iter().enumerate() {
                d_gates.row_mut(v)[state + i] = d * half() * h.row(v)[i];
                d_h.row_mut(v)[i] += d * open(gates.row(v)[state + i]);
            }
        }
        let to = d_weights.as_deref_mut();
        let d_read = self.gates.backward(at.weights, read, &d_gates, to, at.scratch);
        add(&mut d_h, S::ONE, &columns(&d_read, state..2 * state));
        let mut d_sum = columns(&d_read, 0..state);
        add(&mut d_sum, S::ONE, &columns(&d_reset, 0..state));
        let d_message = Operator::Sum.transposed(at.topology, &d_sum);
        let d_own = self.message.backward(at.weights, h, &d_message, d_weights, at.scratch);
        add(&mut d_h, S::ONE, &d_own);
        d_h
    }
}

fn half<S: Scalar>() -> S {
    S::of(0.5)
}

/// `σ(2a)` from `tanh(a)`.
pub(crate) fn open<S: Scalar>(t: S) -> S {
    half::<S>() * (S::ONE + t)
}

impl FeedForward for GatedSteps {
    fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    fn shape(&self) -> (usize, usize) {
        (self.features, self.state)
    }

    fn forward<S: Scalar>(&self, at: &Place<'_, S>) -> Vec<Matrix<S>> {
        let rest = Matrix::zeros(at.features.rows(), self.state - self.features);
        let (mut trace, mut h) = (vec![], joined(&[at.features, &rest]));
        for _ in 0..self.steps {
            self.step(at, h, &mut trace);
            h = Self::mix(&trace[trace.len() - OF_STEP..]);
        }
        trace.push(h);
        trace
    }

    fn backward<S: Scalar>(
        &self,
        at: &Place<'_, S>,
        trace: &[Matrix<S>],
        d_value: &Matrix<S>,
        mut d_weights: Option<&mut [S]>,
    ) -> Matrix<S> {
        let mut d_h = d_value.clone();
        for step in trace[..trace.len() - 1].chunks_exact(OF_STEP).rev() {
            d_h = self.back(at, step, &d_h, d_weights.as_deref_mut());
        }
        columns(&d_h, 0..self.features)
    }
}

/// Steps, unless the option of this name says otherwise.
const STEPS: usize = 4;

/// The transition `ggnn`, with the option `steps`.
pub(crate) fn make<S: Scalar>(spec: &TransitionSpec<'_>) -> Result<Box<dyn Transition<S>>, Error> {
    let options = &spec.model.transition_options;
    options.check(&["steps"])?;
    let steps = options.count("steps", 0..=1024, STEPS)?;
    let (features, state) = (spec.features, spec.model.state_dim);
    if state < features {
        return Err(Error::Option {
            option: "state-dim",
            value: state.to_string(),
            expected: format!("at least {features} is expected: states start as the features"),
        });
    }
    Ok(Box::new(Layer(GatedSteps::new(features, state, steps))))
}
