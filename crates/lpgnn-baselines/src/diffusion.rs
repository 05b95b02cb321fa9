use lpgnn::parameters::{Init, Parameters, Role};
use lpgnn::registry::TransitionSpec;
use lpgnn::{Error, Matrix, Scalar, transition::Transition};

use crate::dense::{add, columns, joined};
use crate::feed_forward::{FeedForward, Layer, Place, check_state_dim};
use crate::operator::Operator;

/// Diffusion-convolution (Atwood and Towsley, 2016): what random walks of 0 to `H` steps see of the features, with a
/// weight for every number of steps and every feature. `P = D⁻¹ A`.
///
/// ```text
/// f = tanh(w ⊙ [P⁰ l, …, Pᴴ l])      w: [H + 1, features]
/// ```
///
/// DCNN classifies the mean over the nodes by a dense layer: the read-out `mean`.
#[derive(Debug)]
pub(crate) struct Diffusion {
    features: usize,
    hops: usize,
    parameters: Parameters,
}

impl Diffusion {
    pub(crate) fn new(features: usize, hops: usize) -> Self {
        let parameters = Parameters::new().layer("0", features);
        // Small, as in the published code: then tanh is steep for all that walks can see.
        let start = Init::Uniform(-0.05, 0.05);
        let parameters = parameters.weight("", Role::Hidden, hops + 1).starting(start);
        Self { features, hops, parameters }
    }
}

impl FeedForward for Diffusion {
    fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    fn shape(&self) -> (usize, usize) {
        (self.features, (self.hops + 1) * self.features)
    }

    /// `[P⁰ l, …, Pᴴ l]`, then `f`.
    fn forward<S: Scalar>(&self, at: &Place<'_, S>) -> Vec<Matrix<S>> {
        let mut steps = vec![at.features.clone()];
        for step in 0..self.hops {
            steps.push(Operator::Walk.apply(at.topology, &steps[step]));
        }
        let seen = joined(&steps.iter().collect::<Vec<_>>());
        let mut f = seen.clone();
        for v in 0..f.rows() {
            let row = f.row_mut(v).iter_mut().zip(at.weights);
            row.for_each(|(f, &w)| *f = S::tanh(w * *f));
        }
        vec![seen, f]
    }

    fn backward<S: Scalar>(
        &self,
        at: &Place<'_, S>,
        trace: &[Matrix<S>],
        d_value: &Matrix<S>,
        mut d_weights: Option<&mut [S]>,
    ) -> Matrix<S> {
        let [seen, f] = trace else { unreachable!("forward leaves these two") };
        let mut d_seen = Matrix::zeros(seen.rows(), seen.cols());
        for v in 0..f.rows() {
            let row = f.row(v).iter().zip(d_value.row(v)).zip(seen.row(v));
            for (i, ((&f, &d), &seen)) in row.enumerate() {
                let d = d * (S::ONE - f * f);
                d_seen.row_mut(v)[i] = d * at.weights[i];
                if let Some(to) = &mut d_weights {
                    to[i] += d * seen;
                }
            }
        }
        // Σ_h (Pᴴ)ᵀ d_h, from the last step on: d_0 + Pᵀ (d_1 + Pᵀ (…)).
        let of_step =
            |step: usize| columns(&d_seen, step * self.features..(step + 1) * self.features);
        let mut d_features = of_step(self.hops);
        for step in (0..self.hops).rev() {
            d_features = Operator::Walk.transposed(at.topology, &d_features);
            add(&mut d_features, S::ONE, &of_step(step));
        }
        d_features
    }
}

/// Steps of a walk, unless the option `hops` says otherwise.
const HOPS: usize = 3;

/// The transition `dcnn`, with the option `hops`.
pub(crate) fn make<S: Scalar>(spec: &TransitionSpec<'_>) -> Result<Box<dyn Transition<S>>, Error> {
    let options = &spec.model.transition_options;
    options.check(&["hops"])?;
    let hops = options.count("hops", 0..=256, HOPS)?;
    let diffusion = Diffusion::new(spec.features, hops);
    let of = format!("0 to {hops} hops of {} features", spec.features);
    check_state_dim(spec.model.state_dim, diffusion.shape().1, &of)?;
    Ok(Box::new(Layer(diffusion)))
}
