//! One-shot converges at the rate that the book derives, on a problem whose constants are known.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use lpgnn::Matrix;
use lpgnn::lagrangian::{Evaluation, Objective, Request, Variables};
use lpgnn::saddle::{OneShot, OptimizerState, PrimalRule, SaddleSolver, WeightDescent};

/// `f(x | θ) = a x + b θ` with the loss `q/2 (x − 1)² + s/2 θ²`: one state, one multiplier, one weight.
struct OneNode {
    a: f64,
    b: f64,
    q: f64,
    s: f64,
}

const PROBLEM: OneNode = OneNode { a: 0.5, b: 0.5, q: 1.0, s: 0.5 };

impl Objective<f64> for OneNode {
    fn evaluate(
        &self,
        at: &Variables<f64>,
        request: Request,
        gradient: &mut Variables<f64>,
    ) -> Evaluation {
        let (x, lambda, theta) = numbers(at);
        let (loss, penalty) = (f64::from(u8::from(request.loss)), request.penalty);
        assert!(penalty == 0.0, "one-shot has no penalty");
        let residual = x - self.a * x - self.b * theta;
        gradient.states[0].as_mut_slice()[0] = loss * self.q * (x - 1.0) + (1.0 - self.a) * lambda;
        gradient.multipliers[0].as_mut_slice()[0] = residual;
        gradient.weights[0] = loss * self.s * theta - self.b * lambda;
        Evaluation { residual_max: residual.abs(), ..Evaluation::default() }
    }
}

fn numbers(at: &Variables<f64>) -> (f64, f64, f64) {
    (at.states[0].as_slice()[0], at.multipliers[0].as_slice()[0], at.weights[0])
}

impl OneNode {
    /// `μ`, the curvature of `φ(θ) = loss(x*(θ), θ)`, here the same everywhere.
    fn curvature(&self) -> f64 {
        self.s + self.q * (self.b / (1.0 - self.a)).powi(2)
    }

    /// `x*`, `λ*` and `θ*`.
    fn saddle(&self) -> [f64; 3] {
        let r = self.b / (1.0 - self.a);
        let theta = self.q * r / self.curvature();
        let x = r * theta;
        [x, self.q * (1.0 - x) / (1.0 - self.a), theta]
    }

    /// `T(η)` of the book, of the errors of states, multipliers and weights.
    fn bound(&self, eta: f64) -> [[f64; 3]; 3] {
        let (l, m, mu) = (self.a, self.b, self.curvature());
        let (r, n) = (m / (1.0 - l), self.q * m / (1.0 - l).powi(2));
        [
            [l, eta * r * m, eta * r * mu],
            [self.q, l + eta * n * m, eta * n * mu],
            [0.0, eta * m, 1.0 - eta * mu],
        ]
    }
}

/// The largest eigenvalue of a matrix without negative entries, by its powers.
fn largest_eigenvalue(t: [[f64; 3]; 3]) -> f64 {
    let (mut v, mut growth) = ([1.0; 3], 0.0);
    for step in 0..20_000 {
        v = t.map(|row| row.iter().zip(v).map(|(t, v)| t * v).sum());
        let size = v.iter().sum::<f64>();
        v = v.map(|v| v / size);
        growth += if step < 10_000 { 0.0 } else { size.ln() };
    }
    (growth / 10_000.0).exp()
}

/// By how much the distance from the saddle shrinks per update.
fn measured(eta: f64) -> f64 {
    let one = |x: f64| vec![Matrix::from_entries(1, 1, vec![x]).unwrap()];
    let mut at = Variables { weights: vec![1.0], states: one(-0.4), multipliers: one(0.3) };
    let mut state = OptimizerState::new(&at);
    let weights = WeightDescent { rule: PrimalRule::Sgd, lr: eta, ..WeightDescent::default() };
    let solver = OneShot { weights, ..OneShot::default() };
    let distance = |at: &Variables<f64>| {
        let (x, lambda, theta) = numbers(at);
        let errors = [x, lambda, theta].into_iter().zip(PROBLEM.saddle());
        errors.map(|(z, saddle)| (z - saddle).powi(2)).sum::<f64>().sqrt()
    };
    // From where the error is small to where it is still far above rounding; a swing of several updates is averaged out.
    let (mut first, mut updates) = (None, 0);
    while distance(&at) > 1e-10 {
        solver.step(&PROBLEM, &mut at, &mut state);
        if first.is_none() && distance(&at) < 1e-3 {
            first = Some((distance(&at), updates));
        }
        updates += 1;
        assert!(updates < 100_000, "it does not converge at {eta}");
    }
    let (start, begun) = first.unwrap();
    (distance(&at) / start).powf(1.0 / f64::from(updates - 1 - begun))
}

#[test]
fn one_shot_converges_as_fast_as_its_bound_says() {
    for eta in [0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001] {
        let (rate, bound) = (measured(eta), largest_eigenvalue(PROBLEM.bound(eta)));
        println!(
            "η {eta}: measured {rate:.5}, bound {bound:.5}, descent {:.5}",
            1.0 - eta * PROBLEM.curvature()
        );
        assert!(bound < 1.0 && rate < bound + 1e-3, "{eta}: {rate}, {bound}");
    }
}

/// Of three coupled iterations, all of which move at once, the weights alone are left to wait for.
#[test]
fn small_steps_are_as_good_as_those_with_the_exact_gradient() {
    for (eta, within) in [(0.01, 0.06), (0.002, 0.012), (0.001, 0.006)] {
        let gain = (1.0 - measured(eta)) / (eta * PROBLEM.curvature());
        assert!(
            (gain - 1.0).abs() < within,
            "at {eta} an update gains {gain} of one of gradient descent"
        );
    }
}
