//! What one step over the edges of a graph does to a row per node.

use lpgnn::graph::Topology;
use lpgnn::{Matrix, Scalar};

/// A linear map `(A x)_v = a_vv x_v + Σ_{u ∈ ne[v]} a_vu x_u` whose coefficients follow from degrees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    /// `D̃⁻¹ Ã`: the mean of a node and its neighbours.
    MeanWithSelf,
    /// `P = D⁻¹ A`: the mean of the neighbours, a step of a random walk. One that cannot leave its node stays.
    Walk,
    /// `A`: the sum of the neighbours.
    Sum,
    /// `A + I`: with the node itself.
    SumWithSelf,
    /// `D̃^(−½) Ã D̃^(−½)`, which is symmetric.
    SymmetricWithSelf,
    /// `L̃ = 2 L / λ_max − I = −D^(−½) A D^(−½)`, with `λ_max = 2`, which no normalised Laplacian exceeds.
    ScaledLaplacian,
}

impl Operator {
    /// `a_vv`
    fn own<S: Scalar>(self, topology: &Topology, v: usize) -> S {
        match self {
            Self::MeanWithSelf | Self::SymmetricWithSelf
                if topology.neighbours().is_isolated(v) =>
            {
                S::ZERO
            }
            Self::MeanWithSelf | Self::SymmetricWithSelf => {
                S::ONE / S::of(topology.degree(v) as f64 + 1.0)
            }
            Self::Walk | Self::Sum | Self::ScaledLaplacian => S::ZERO,
            Self::SumWithSelf => S::ONE,
        }
    }

    /// `a_vu`. A node without edges is its own only neighbour.
    fn coefficient<S: Scalar>(self, topology: &Topology, v: usize, u: usize) -> S {
        let degree = |v: usize| topology.degree(v) as f64;
        match self {
            Self::MeanWithSelf | Self::SymmetricWithSelf
                if topology.neighbours().is_isolated(v) =>
            {
                S::ONE
            }
            Self::MeanWithSelf => S::ONE / S::of(degree(v) + 1.0),
            Self::SymmetricWithSelf => {
                S::ONE / S::of(((degree(v) + 1.0) * (degree(u) + 1.0)).sqrt())
            }
            Self::Walk => S::ONE / S::of(degree(v)),
            Self::Sum | Self::SumWithSelf if topology.neighbours().is_isolated(v) => S::ZERO,
            Self::Sum | Self::SumWithSelf => S::ONE,
            Self::ScaledLaplacian => -S::ONE / S::of((degree(v) * degree(u)).sqrt()),
        }
    }

    /// `A x`
    pub(crate) fn apply<S: Scalar>(self, topology: &Topology, x: &Matrix<S>) -> Matrix<S> {
        self.along(topology, x, |v, u| self.coefficient(topology, v, u))
    }

    /// `Aᵀ x`, which takes a derivative back. Neighbours are so in both directions.
    pub(crate) fn transposed<S: Scalar>(self, topology: &Topology, x: &Matrix<S>) -> Matrix<S> {
        self.along(topology, x, |v, u| self.coefficient(topology, u, v))
    }

    fn along<S: Scalar>(
        self,
        topology: &Topology,
        x: &Matrix<S>,
        coefficient: impl Fn(usize, usize) -> S,
    ) -> Matrix<S> {
        let mut y = Matrix::zeros(x.rows(), x.cols());
        let width = x.cols().max(1);
        for (v, y) in y.as_mut_slice().chunks_exact_mut(width).enumerate() {
            let mut gather = |a: S, u: usize| {
                y.iter_mut().zip(x.row(u)).for_each(|(y, &x)| *y += a * x);
            };
            let own = self.own(topology, v);
            if own > S::ZERO {
                gather(own, v);
            }
            for &u in topology.neighbours().of(v) {
                gather(coefficient(v, u as usize), u as usize);
            }
        }
        y
    }
}
