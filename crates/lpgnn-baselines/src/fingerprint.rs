use lpgnn::activation::Activation;
use lpgnn::parameters::Parameters;
use lpgnn::registry::TransitionSpec;
use lpgnn::{Error, Matrix, Scalar, transition::Transition};

use crate::dense::{Dense, Layers, add};
use crate::feed_forward::{FeedForward, Layer, Place};
use crate::operator::Operator;

/// A neural fingerprint (Duvenaud et al., 2015), the share of every node in it:
///
/// ```text
/// h⁰ = l      r_v = h_v + Σ_{u ∈ ne[v]} h_u      h_v ← relu(H_{t, de[v]} r_v + b_{t, de[v]})
/// f_v = Σ_{t = 0 … T} softmax(W_t hᵗ_v + b_t)
/// ```
///
/// with weights of their own for every degree up to a largest. The fingerprint of a graph is the sum over its nodes: the
/// read-out `sum`.
#[derive(Debug)]
pub(crate) struct Fingerprint {
    features: usize,
    length: usize,
    degrees: usize,
    /// By layer, then by degree.
    layers: Vec<Vec<Dense>>,
    /// From layer 0, the features, on.
    writes: Vec<Dense>,
    parameters: Parameters,
}

impl Fingerprint {
    pub(crate) fn new(
        features: usize,
        length: usize,
        (depth, width): (usize, usize),
        degrees: usize,
    ) -> Self {
        let mut all = Layers::default();
        let (mut layers, mut writes) = (vec![], vec![]);
        for t in 0..=depth {
            let inputs = if t == 0 { features } else { width };
            let write = (inputs, length);
            writes.push(all.dense(&format!("{t}.write"), write, Activation::Identity));
            if t < depth {
                let of_degree = |degree: usize| {
                    all.dense(&format!("{t}.degree{degree}"), (inputs, width), Activation::Relu)
                };
                layers.push((0..=degrees).map(of_degree).collect());
            }
        }
        Self { features, length, degrees, layers, writes, parameters: all.0 }
    }

    /// The nodes of every degree; the last list has those of larger degrees too.
    fn by_degree<S: Scalar>(&self, at: &Place<'_, S>) -> Vec<Vec<usize>> {
        let (neighbours, mut nodes) = (at.topology.neighbours(), vec![vec![]; self.degrees + 1]);
        for v in 0..at.topology.nodes() {
            let degree = if neighbours.is_isolated(v) { 0 } else { neighbours.degree(v) };
            nodes[degree.min(self.degrees)].push(v);
        }
        nodes
    }
}

impl FeedForward for Fingerprint {
    fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    fn shape(&self) -> (usize, usize) {
        (self.features, self.length)
    }

    /// `h⁰`, then `r` and `h` of every layer, then what every layer writes, then their sum.
    fn forward<S: Scalar>(&self, at: &Place<'_, S>) -> Vec<Matrix<S>> {
        let (nodes, mut trace) = (self.by_degree(at), vec![at.features.clone()]);
        for layer in &self.layers {
            let r = Operator::SumWithSelf.apply(at.topology, &trace[trace.len() - 1]);
            let mut h = Matrix::zeros(r.rows(), 0);
            for (of_degree, nodes) in layer.iter().zip(&nodes) {
                let rows = r.select(nodes.iter().copied());
                let made = of_degree.forward(at.weights, &rows, at.scratch);
                if h.cols() == 0 {
                    h = Matrix::zeros(r.rows(), made.cols());
                }
                for (row, &v) in nodes.iter().enumerate() {
                    h.row_mut(v).copy_from_slice(made.row(row));
                }
            }
            trace.extend([r, h]);
        }
        let mut sum = Matrix::zeros(at.features.rows(), self.length);
        for (t, write) in self.writes.iter().enumerate() {
            let mut written = write.forward(at.weights, &trace[2 * t], at.scratch);
            (0..written.rows()).for_each(|v| softmax(written.row_mut(v)));
            add(&mut sum, S::ONE, &written);
            trace.push(written);
        }
        trace.push(sum);
        trace
    }

    fn backward<S: Scalar>(
        &self,
        at: &Place<'_, S>,
        trace: &[Matrix<S>],
        d_value: &Matrix<S>,
        mut d_weights: Option<&mut [S]>,
    ) -> Matrix<S> {
        let (nodes, depth) = (self.by_degree(at), self.layers.len());
        let mut d_below: Option<Matrix<S>> = None;
        for t in (0..=depth).rev() {
            let written = &trace[2 * depth + 1 + t];
            let mut d_sums = d_value.clone();
            (0..d_sums.rows()).for_each(|v| softmax_back(written.row(v), d_sums.row_mut(v)));
            let to = d_weights.as_deref_mut();
            let mut d_h =
                self.writes[t].backward(at.weights, &trace[2 * t], &d_sums, to, at.scratch);
            if let Some(d_r) = d_below {
                add(&mut d_h, S::ONE, &Operator::SumWithSelf.transposed(at.topology, &d_r));
            }
            let Some(layer) = t.checked_sub(1).map(|below| &self.layers[below]) else { return d_h };
            let r = &trace[2 * t - 1];
            let mut d_r = Matrix::zeros(r.rows(), r.cols());
            for (of_degree, nodes) in layer.iter().zip(&nodes) {
                let (rows, d) =
                    (r.select(nodes.iter().copied()), d_h.select(nodes.iter().copied()));
                let to = d_weights.as_deref_mut();
                let d_rows = of_degree.backward(at.weights, &rows, &d, to, at.scratch);
                for (row, &v) in nodes.iter().enumerate() {
                    d_r.row_mut(v).copy_from_slice(d_rows.row(row));
                }
            }
            d_below = Some(d_r);
        }
        unreachable!("layer 0 reads the features, and ends it")
    }
}

/// `exp(a) / Σ exp(a)`, shifted by the largest so that nothing overflows.
fn softmax<S: Scalar>(row: &mut [S]) {
    let largest = row.iter().fold(-S::ONE / S::ZERO, |max, &a| S::max(max, a));
    row.iter_mut().for_each(|a| *a = S::exp(*a - largest));
    let sum: S = row.iter().copied().sum();
    row.iter_mut().for_each(|a| *a /= sum);
}

/// `p ⊙ (d − ⟨p, d⟩)`
fn softmax_back<S: Scalar>(p: &[S], d: &mut [S]) {
    let mean: S = p.iter().zip(&*d).map(|(&p, &d)| p * d).sum();
    d.iter_mut().zip(p).for_each(|(d, &p)| *d = p * (*d - mean));
}

/// Layers, their units, and the largest degree with weights of its own, unless options say otherwise.
const DEPTH: usize = 4;
const WIDTH: usize = 20;
const DEGREES: usize = 5;

/// The transition `fingerprint`, with the options `depth`, `width` and `degrees`; a state is as long as the fingerprint.
pub(crate) fn make<S: Scalar>(spec: &TransitionSpec<'_>) -> Result<Box<dyn Transition<S>>, Error> {
    let options = &spec.model.transition_options;
    options.check(&["depth", "width", "degrees"])?;
    let depth = options.count("depth", 1..=64, DEPTH)?;
    let width = options.count("width", 1..=4096, WIDTH)?;
    let degrees = options.count("degrees", 1..=256, DEGREES)?;
    let length = spec.model.state_dim;
    Ok(Box::new(Layer(Fingerprint::new(spec.features, length, (depth, width), degrees))))
}
