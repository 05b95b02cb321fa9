use super::uniform;
use crate::Matrix;
use crate::lagrangian::{Evaluation, Objective, Request, Variables};
use crate::numeric::worse;

/// A saddle point without any graph, and with a known answer.
///
/// ```text
/// min_{x,w} max_λ   ½ xᵀQx + qᵀx + ½ ‖w − c‖²  +  λᵀ (x − (A x + B w + b))
/// ```
///
/// with `Q` positive definite and `‖A‖ < 1`: as if `f_a(x | w) = A x + B w + b`. A penalty adds
/// `ρ/2` times the square of the residual, which does not move the saddle point.
#[derive(Clone, Debug)]
pub struct Quadratic {
    q: Vec<Vec<f64>>,
    linear: Vec<f64>,
    centre: Vec<f64>,
    a: Vec<Vec<f64>>,
    b_w: Vec<Vec<f64>>,
    b: Vec<f64>,
}

impl Quadratic {
    /// `min_x max_λ ½x² + λ(x − 1)`, with its saddle point at `x = 1`, `λ = −1`.
    pub fn parabola() -> Self {
        Self {
            q: vec![vec![1.0]],
            linear: vec![0.0],
            centre: vec![],
            a: vec![vec![0.0]],
            b_w: vec![vec![]],
            b: vec![1.0],
        }
    }

    /// A random problem of `size` states and two weights.
    pub fn random(size: usize, seed: u64) -> Self {
        let mut draw = uniform(seed);
        let mut matrix = |rows: usize, cols: usize, scale: f64| -> Vec<Vec<f64>> {
            (0..rows).map(|_| (0..cols).map(|_| scale * (2.0 * draw() - 1.0)).collect()).collect()
        };
        let root = matrix(size, size, 0.5);
        let mut q = vec![vec![0.0; size]; size];
        for i in 0..size {
            for j in 0..size {
                q[i][j] = (0..size).map(|k| root[i][k] * root[j][k]).sum();
            }
            q[i][i] += 1.0;
        }
        // Rows of at most 0.5 in all: a contraction.
        let a = matrix(size, size, 0.5 / size as f64);
        let b_w = matrix(size, 2, 0.3);
        let row = |mut rows: Vec<Vec<f64>>| rows.swap_remove(0);
        let (linear, centre) = (row(matrix(1, size, 1.0)), row(matrix(1, 2, 1.0)));
        let b = row(matrix(1, size, 1.0));
        Self { q, linear, centre, a, b_w, b }
    }

    /// How many variables there are.
    pub fn size(&self) -> usize {
        self.centre.len() + 2 * self.linear.len()
    }

    /// All zero.
    pub fn start(&self) -> Variables<f64> {
        Variables {
            weights: vec![0.0; self.centre.len()],
            states: vec![Matrix::zeros(1, self.linear.len())],
            multipliers: vec![Matrix::zeros(1, self.linear.len())],
        }
    }

    /// The largest distance of a variable to its value at the saddle point.
    ///
    /// The gradient is linear, so the saddle point solves a linear system whose columns are
    /// differences of gradients.
    pub fn distance(&self, at: &Variables<f64>) -> f64 {
        let flat = |v: &Variables<f64>| -> Vec<f64> {
            v.parts().flat_map(|(_, part)| part.to_vec()).collect()
        };
        let gradient = |v: &Variables<f64>| {
            let mut g = v.zeros_like();
            self.evaluate(v, Request::ALL, &mut g);
            flat(&g)
        };
        let zero = self.start();
        let origin = gradient(&zero);
        let n = self.size();
        let mut system: Vec<Vec<f64>> =
            origin.iter().map(|g| vec![0.0; n].into_iter().chain([-g]).collect()).collect();
        for column in 0..n {
            let mut moved = zero.clone();
            let mut place = column;
            for (_, part) in moved.parts_mut() {
                if let Some(x) = part.get_mut(place) {
                    *x = 1.0;
                    break;
                }
                place -= part.len();
            }
            for (row, (g, o)) in gradient(&moved).iter().zip(&origin).enumerate() {
                system[row][column] = g - o;
            }
        }
        let answer = eliminate(system);
        flat(at).iter().zip(answer).map(|(x, a)| (x - a).abs()).fold(0.0, worse)
    }
}

/// Gaussian elimination with pivots; the last column is the right-hand side.
fn eliminate(mut system: Vec<Vec<f64>>) -> Vec<f64> {
    let n = system.len();
    for k in 0..n {
        let pivot = (k..n)
            .max_by(|&i, &j| system[i][k].abs().total_cmp(&system[j][k].abs()))
            .expect("there is a row");
        system.swap(k, pivot);
        for i in 0..n {
            if i != k {
                let factor = system[i][k] / system[k][k];
                for j in k..=n {
                    system[i][j] -= factor * system[k][j];
                }
            }
        }
    }
    (0..n).map(|i| system[i][n] / system[i][i]).collect()
}

fn apply(matrix: &[Vec<f64>], x: &[f64]) -> Vec<f64> {
    matrix.iter().map(|row| row.iter().zip(x).map(|(m, x)| m * x).sum()).collect()
}

impl Objective<f64> for Quadratic {
    fn evaluate(
        &self,
        at: &Variables<f64>,
        request: Request,
        gradient: &mut Variables<f64>,
    ) -> Evaluation {
        let (w, x, lambda) = (&at.weights, at.states[0].row(0), at.multipliers[0].row(0));
        let (ax, bw, qx) = (apply(&self.a, x), apply(&self.b_w, w), apply(&self.q, x));
        let count = if request.loss { 1.0 } else { 0.0 };
        let residual: Vec<f64> = (0..x.len()).map(|i| x[i] - ax[i] - bw[i] - self.b[i]).collect();
        // λ + ρ r, which both derivatives are made of
        let held: Vec<f64> =
            lambda.iter().zip(&residual).map(|(l, r)| l + request.penalty * r).collect();
        for i in 0..x.len() {
            let back: f64 = (0..x.len()).map(|j| self.a[j][i] * held[j]).sum();
            gradient.states[0].row_mut(0)[i] = count * (qx[i] + self.linear[i]) + held[i] - back;
            gradient.multipliers[0].row_mut(0)[i] = residual[i];
        }
        for k in 0..w.len() {
            let back: f64 = (0..x.len()).map(|j| self.b_w[j][k] * held[j]).sum();
            gradient.weights[k] = count * (w[k] - self.centre[k]) - back;
        }
        let loss: f64 = (0..x.len()).map(|i| x[i] * (0.5 * qx[i] + self.linear[i])).sum::<f64>()
            + w.iter().zip(&self.centre).map(|(w, c)| 0.5 * (w - c).powi(2)).sum::<f64>();
        Evaluation {
            loss: count * loss,
            constraint: residual.iter().zip(lambda).map(|(r, l)| r * l).sum::<f64>()
                + 0.5 * request.penalty * residual.iter().map(|r| r * r).sum::<f64>(),
            residual_mean: residual.iter().map(|r| r.abs()).sum::<f64>() / x.len() as f64,
            residual_max: residual.iter().fold(0.0, |m, r| r.abs().max(m)),
            state_mean: x.iter().map(|x| x.abs()).sum::<f64>() / x.len() as f64,
            correct: (0, 0),
        }
    }
}
