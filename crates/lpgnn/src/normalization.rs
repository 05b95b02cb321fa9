//! Normalisation of what a layer hands on, to the layer above and to the read-out.

use crate::graph::Topology;
use crate::parameters::{Init, Parameters, Role};
use crate::transition::{for_each_group, split_rows};
use crate::{Matrix, Scalar};

/// What becomes of the states of a layer before anything else reads them.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Normalization {
    /// No normalisation.
    #[default]
    None,
    /// GraphNorm: mean and standard deviation over the nodes of each graph are replaced by learned ones, followed by ReLU.
    GraphNorm,
}

/// GraphNorm (Cai et al., 2021) over the `n` nodes of every graph, component by component.
///
/// ```text
/// o_v = x_v − α ⊙ m          m = 1/n Σ_v x_v          ŏ_v = o_v / s          s² = 1/n Σ_v o_v² + 10⁻⁵
/// y_v = max(0, γ ⊙ ŏ_v + β)
/// ```
///
/// With `α = 1` a graph's mean is lost; `α`, `γ` and `β` are learnt, from 1, 1 and 0. Without `max` the sum of a graph's rows,
/// which is what a read-out reads, would be zero there.
///
/// It is applied to fixed points, not within their equation: `f_a` of a layer reads its own states as they are, and its
/// Lipschitz bound holds as it does without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GraphNorm {
    width: usize,
}

/// What is added to a variance: states of a graph may all be the same.
const FLOOR: f64 = 1e-5;

impl GraphNorm {
    /// Of rows of `width` components.
    pub fn new(width: usize) -> Self {
        Self { width }
    }

    /// `γ`, `β` and `α`.
    pub fn parameters(self) -> Parameters {
        let vector = |all: Parameters, name, role, init| {
            all.vector(name, role).starting(init).without_decay()
        };
        let ones = Init::Uniform(1.0, 1.0);
        let all = Parameters::new().layer("norm", self.width);
        let all = vector(all, "weight", Role::Scale, ones);
        let all = vector(all, "bias", Role::Bias, Init::Zeros);
        vector(all, "mean_scale", Role::Scale, ones)
    }

    /// `y`, a row per node.
    pub fn forward<S: Scalar>(
        self,
        weights: &[S],
        topology: &Topology,
        x: &Matrix<S>,
        y: &mut Matrix<S>,
    ) {
        let ranges: Vec<_> = (0..topology.graphs()).map(|graph| topology.nodes_of(graph)).collect();
        let rows = split_rows(y.as_mut_slice(), self.width, &ranges);
        let mut graphs: Vec<_> = ranges.iter().zip(rows).collect();
        for_each_group(&mut graphs, |(nodes, y)| {
            let x = rows_of(x, nodes);
            let Moments { centre, inverse, .. } = self.moments(weights, x);
            let [gamma, beta, _] = self.vectors(weights);
            for (y, x) in y.chunks_exact_mut(self.width).zip(x.chunks_exact(self.width)) {
                for i in 0..self.width {
                    let unit = (x[i].f64() - centre[i]) * inverse[i];
                    let shifted = gamma[i].f64() * unit + beta[i].f64();
                    // `f64::max` would make NaN zero.
                    y[i] = S::of(if shifted < 0.0 { 0.0 } else { shifted });
                }
            }
        });
    }

    /// From `∂𝓛/∂y` to `∂𝓛/∂x`, in its place, and `∂𝓛/∂(γ, β, α)`, which is added to what is there.
    ///
    /// ```text
    /// d_v = ∂𝓛/∂y_v where y_v > 0, and 0 elsewhere
    ///
    /// ∂𝓛/∂γ = Σ_v d_v ⊙ ŏ_v        ∂𝓛/∂β = Σ_v d_v        ∂𝓛/∂o_v = γ/s ⊙ (d_v − ŏ_v ⊙ 1/n Σ_u d_u ⊙ ŏ_u)
    /// ∂𝓛/∂α = −m ⊙ Σ_v ∂𝓛/∂o_v                            ∂𝓛/∂x_v = ∂𝓛/∂o_v − α/n ⊙ Σ_u ∂𝓛/∂o_u
    /// ```
    pub fn backward<S: Scalar>(
        self,
        weights: &[S],
        topology: &Topology,
        x: &Matrix<S>,
        d: &mut Matrix<S>,
        d_weights: Option<&mut [S]>,
    ) {
        let ranges: Vec<_> = (0..topology.graphs()).map(|graph| topology.nodes_of(graph)).collect();
        let rows = split_rows(d.as_mut_slice(), self.width, &ranges);
        let mut graphs: Vec<_> = ranges.iter().zip(rows).map(|(n, d)| (n, d, vec![])).collect();
        for_each_group(&mut graphs, |(nodes, d, d_weights)| {
            *d_weights = self.backward_of_graph(weights, rows_of(x, nodes), d);
        });
        // In the order of the graphs, whichever threads they were on.
        if let Some(d_weights) = d_weights {
            for (_, _, of_graph) in &graphs {
                d_weights.iter_mut().zip(of_graph).for_each(|(d, &of)| *d += S::of(of));
            }
        }
    }

    /// The same of one graph; returns `∂𝓛/∂(γ, β, α)`.
    fn backward_of_graph<S: Scalar>(self, weights: &[S], x: &[S], d: &mut [S]) -> Vec<f64> {
        let width = self.width;
        let Moments { mean, centre, inverse } = self.moments(weights, x);
        let [gamma, beta, alpha] = self.vectors(weights);
        let count = (x.len() / width.max(1)).max(1) as f64;
        let mut d_weights = vec![0.0; 3 * width];
        let (d_gamma, rest) = d_weights.split_at_mut(width);
        let (d_beta, d_alpha) = rest.split_at_mut(width);
        let unit = |x: &[S], i: usize| (x[i].f64() - centre[i]) * inverse[i];
        for (d, x) in d.chunks_exact_mut(width).zip(x.chunks_exact(width)) {
            for i in 0..width {
                if gamma[i].f64() * unit(x, i) + beta[i].f64() <= 0.0 {
                    d[i] = S::ZERO;
                }
                d_gamma[i] += d[i].f64() * unit(x, i);
                d_beta[i] += d[i].f64();
            }
        }
        // Σ_v ∂𝓛/∂o_v
        let mut sums = vec![0.0; width];
        for (d, x) in d.chunks_exact_mut(width).zip(x.chunks_exact(width)) {
            for i in 0..width {
                let along = unit(x, i) * d_gamma[i] / count;
                let d_o = gamma[i].f64() * inverse[i] * (d[i].f64() - along);
                sums[i] += d_o;
                d[i] = S::of(d_o);
            }
        }
        for i in 0..width {
            d_alpha[i] = -mean[i] * sums[i];
        }
        for d in d.chunks_exact_mut(width) {
            for i in 0..width {
                d[i] -= S::of(alpha[i].f64() * sums[i] / count);
            }
        }
        d_weights
    }

    /// `γ`, `β` and `α`, one after the other.
    fn vectors<S: Scalar>(self, weights: &[S]) -> [&[S]; 3] {
        let (gamma, rest) = weights.split_at(self.width);
        let (beta, alpha) = rest.split_at(self.width);
        [gamma, beta, alpha]
    }

    fn moments<S: Scalar>(self, weights: &[S], x: &[S]) -> Moments {
        let width = self.width;
        let count = (x.len() / width.max(1)).max(1) as f64;
        let (mut mean, mut inverse) = (vec![0.0; width], vec![0.0; width]);
        for x in x.chunks_exact(width) {
            mean.iter_mut().zip(x).for_each(|(mean, x)| *mean += x.f64());
        }
        mean.iter_mut().for_each(|mean| *mean /= count);
        let alpha = self.vectors(weights)[2];
        let centre: Vec<f64> = mean.iter().zip(alpha).map(|(mean, a)| a.f64() * mean).collect();
        for x in x.chunks_exact(width) {
            for i in 0..width {
                inverse[i] += (x[i].f64() - centre[i]).powi(2);
            }
        }
        inverse.iter_mut().for_each(|square| *square = 1.0 / (*square / count + FLOOR).sqrt());
        Moments { mean, centre, inverse }
    }
}

/// Of one graph: `m`, `α ⊙ m` and `1/s`.
struct Moments {
    mean: Vec<f64>,
    centre: Vec<f64>,
    inverse: Vec<f64>,
}

/// The rows of some nodes.
fn rows_of<'m, S: Scalar>(matrix: &'m Matrix<S>, nodes: &std::ops::Range<usize>) -> &'m [S] {
    &matrix.as_slice()[nodes.start * matrix.cols()..nodes.end * matrix.cols()]
}
