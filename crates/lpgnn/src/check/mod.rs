//! Checks for custom functions and solvers, which this crate also uses for its own.

mod quadratic;
mod readout;

pub use crate::numeric::uniform;
pub use quadratic::Quadratic;
pub use readout::readout;

use crate::constraint::Constraint;
use crate::graph::{FeaturesView, GraphBatch};
use crate::lagrangian::{Objective, Request, Variables};
use crate::numeric::Scratch;
use crate::parameters::Parameters;
use crate::saddle::{OptimizerState, SaddleSolver};
use crate::transition::{Gradients, Input, Transition, Upstream};
use crate::{Error, Matrix};

/// Half the distances over which central differences are taken: the first, unless there may be a
/// kink within it.
const STEPS: [f64; 4] = [1e-5, 1e-6, 1e-7, 1e-8];

/// The largest relative error that is put down to rounding.
const ROUNDING: f64 = 1e-6;

/// The largest relative error of the gradient of `objective` at `at`, against central differences.
///
/// Below `1e-6` for a correct implementation, unless `at` is all but on a kink: there a difference is
/// no derivative.
///
/// # Panics
///
/// When the gradient has another shape than the point.
pub fn gradients(objective: &dyn Objective<f64>, at: &Variables<f64>) -> f64 {
    penalized_gradients(objective, at, 0.0)
}

/// The same with the penalty `ρ` that a solver may ask for.
///
/// # Panics
///
/// When the gradient has another shape than the point.
pub fn penalized_gradients(
    objective: &dyn Objective<f64>,
    at: &Variables<f64>,
    penalty: f64,
) -> f64 {
    let request = Request { penalty, ..Request::ALL };
    let mut exact = at.zeros_like();
    objective.evaluate(at, request, &mut exact);
    let mut spare = at.zeros_like();
    let mut moved = at.clone();
    let mut worst = 0.0_f64;
    for (part, (_, exact)) in exact.parts().enumerate() {
        for (i, &exact) in exact.iter().enumerate() {
            let here = at.parts().nth(part).expect("the point has this part").1[i];
            let (error, _) = slope_error(exact, |h| {
                *entry(&mut moved, part, i) = here + h;
                let value = objective.evaluate(&moved, request, &mut spare).value();
                *entry(&mut moved, part, i) = here;
                value
            });
            worst = worst.max(error);
        }
    }
    worst
}

/// The relative error of a derivative against the slope of `value` at 0, and that slope.
///
/// A kink within the distance of a difference puts the slopes on both sides apart, and explains an
/// error of at most what they are apart. Only then is a smaller distance tried, so a derivative that
/// is wrong where the function is smooth is wrong at once.
fn slope_error(exact: f64, mut value: impl FnMut(f64) -> f64) -> (f64, f64) {
    let mut found = (f64::INFINITY, f64::NAN);
    for step in STEPS {
        let (after, before) = (value(step), value(-step));
        let slope = (after - before) / (2.0 * step);
        found = (relative_error(exact, slope), slope);
        if found.0 < ROUNDING {
            break;
        }
        let sides = (after - 2.0 * value(0.0) + before).abs() / step;
        if sides < (exact - slope).abs() {
            break;
        }
    }
    found
}

fn entry(at: &mut Variables<f64>, part: usize, i: usize) -> &mut f64 {
    &mut at.parts_mut().nth(part).expect("the point has this part").1[i]
}

/// The distance of two numbers, relative to the larger one or to 1.
fn relative_error(a: f64, b: f64) -> f64 {
    let error = (a - b).abs() / a.abs().max(b.abs()).max(1.0);
    // NaN is the largest error.
    if error.is_nan() { f64::INFINITY } else { error }
}

/// Whether a transition function keeps its contract on `batch`: its derivatives are those of its
/// value, in weights, states and features, and are added to what is there; its fused pass agrees with
/// forward and backward; and `f_a` at a node depends on the node and its neighbours alone.
///
/// # Errors
///
/// [`Error::Mismatch`], saying which part of the contract is broken and where.
pub fn transition(
    f: &dyn Transition<f64>,
    batch: &GraphBatch<f64>,
    seed: u64,
) -> Result<(), Error> {
    f.parameters().check()?;
    f.check(batch.node_features().view(), batch.edge_features().view())?;
    let mut draw = uniform(seed);
    let trial = Trial::new(f, batch, &mut draw);
    let added = trial.backward(&mut draw);
    trial.check_slopes(&added)?;
    trial.check_pass(&added, &mut draw)?;
    trial.check_locality()
}

/// A transition function at a random point, with a random `∂𝓛/∂f_a`.
struct Trial<'a> {
    f: &'a dyn Transition<f64>,
    batch: &'a GraphBatch<f64>,
    weights: Vec<f64>,
    /// Dense, so that they have a derivative.
    features: Matrix<f64>,
    states: Matrix<f64>,
    d_f: Matrix<f64>,
    scratch: Scratch<f64>,
}

/// What a way back adds to the gradients of weights, states and features.
struct Added {
    weights: Vec<f64>,
    states: Matrix<f64>,
    features: Matrix<f64>,
}

impl<'a> Trial<'a> {
    fn new(
        f: &'a dyn Transition<f64>,
        batch: &'a GraphBatch<f64>,
        draw: &mut dyn FnMut() -> f64,
    ) -> Self {
        let weights = weights_of(f.parameters(), draw);
        let given = batch.node_features();
        let mut features = Matrix::zeros(given.rows(), given.width());
        for row in 0..given.rows() {
            for (column, value) in given.entries(row) {
                features.row_mut(row)[column] = value;
            }
        }
        let states = random(batch.nodes(), f.state_dim(), draw);
        let d_f = random(batch.nodes(), f.state_dim(), draw);
        Self { f, batch, weights, features, states, d_f, scratch: Scratch::new() }
    }

    fn input(&self) -> Input<'_, f64> {
        let node_features = FeaturesView::Dense(&self.features);
        Input { node_features, ..Input::of(self.batch, &self.states) }
    }

    fn value(&self, weights: &[f64], features: &Matrix<f64>, states: &Matrix<f64>) -> Matrix<f64> {
        let mut f_x = Matrix::zeros(self.batch.nodes(), self.f.state_dim());
        let node_features = FeaturesView::Dense(features);
        let input = Input { node_features, ..Input::of(self.batch, states) };
        self.f.forward(weights, input, &mut f_x, &self.scratch);
        f_x
    }

    /// What backward adds to gradients that are not zero.
    fn backward(&self, draw: &mut dyn FnMut() -> f64) -> Added {
        let before = self.random_gradients(draw);
        let (mut weights, mut states, mut features) =
            (before.weights.clone(), before.states.clone(), before.features.clone());
        let gradients = Gradients::new(Some(&mut weights), &mut states, Some(&mut features));
        self.f.backward(&self.weights, self.input(), &self.d_f, gradients, &self.scratch);
        Added { weights, states, features }.minus(&before)
    }

    fn random_gradients(&self, draw: &mut dyn FnMut() -> f64) -> Added {
        Added {
            weights: (0..self.weights.len()).map(|_| draw()).collect(),
            states: random(self.states.rows(), self.states.cols(), draw),
            features: random(self.features.rows(), self.features.cols(), draw),
        }
    }

    /// Derivatives are the slopes of `Σ d_f ⊙ f_a`.
    fn check_slopes(&self, added: &Added) -> Result<(), Error> {
        let value = |weights: &[f64], features: &Matrix<f64>, states: &Matrix<f64>| -> f64 {
            let f_x = self.value(weights, features, states);
            f_x.as_slice().iter().zip(self.d_f.as_slice()).map(|(f, d)| f * d).sum()
        };
        for (i, &exact) in added.weights.iter().enumerate() {
            compare("weight", i, exact, &|h| {
                let mut moved = self.weights.clone();
                moved[i] += h;
                value(&moved, &self.features, &self.states)
            })?;
        }
        for (i, &exact) in added.states.as_slice().iter().enumerate() {
            compare("state", i, exact, &|h| {
                let mut moved = self.states.clone();
                moved.as_mut_slice()[i] += h;
                value(&self.weights, &self.features, &moved)
            })?;
        }
        for (i, &exact) in added.features.as_slice().iter().enumerate() {
            compare("feature", i, exact, &|h| {
                let mut moved = self.features.clone();
                moved.as_mut_slice()[i] += h;
                value(&self.weights, &moved, &self.states)
            })?;
        }
        Ok(())
    }

    /// The fused pass, and a way back of which only states are wanted, add the same.
    fn check_pass(&self, added: &Added, draw: &mut dyn FnMut() -> f64) -> Result<(), Error> {
        let before = self.random_gradients(draw);
        let given = Given { d_f: &self.d_f, d_states: &before.states };
        let (mut weights, mut features) = (before.weights.clone(), before.features.clone());
        // The upstream sets the gradient of states; whatever was there is gone.
        let mut states = random(self.states.rows(), self.states.cols(), draw);
        let gradients = Gradients::new(Some(&mut weights), &mut states, Some(&mut features));
        let mut groups: Vec<_> = self.batch.groups().ranges().iter().map(|_| given).collect();
        let mut upstream: Vec<&mut dyn Upstream<f64>> =
            groups.iter_mut().map(|given| given as &mut dyn Upstream<f64>).collect();
        self.f.pass(&self.weights, self.input(), &mut upstream, gradients, &self.scratch);
        let fused = Added { weights, states, features }.minus(&before);

        let mut states = before.states.clone();
        let gradients = Gradients::new(None, &mut states, None);
        self.f.backward(&self.weights, self.input(), &self.d_f, gradients, &self.scratch);
        subtract(states.as_mut_slice(), before.states.as_slice());

        let expected = added.states.as_slice();
        for (what, found, expected) in [
            ("weights by the fused pass", &fused.weights[..], &added.weights[..]),
            ("states by the fused pass", fused.states.as_slice(), expected),
            ("features by the fused pass", fused.features.as_slice(), added.features.as_slice()),
            ("states where they alone are wanted", states.as_slice(), expected),
        ] {
            if found.iter().zip(expected).any(|(a, b)| relative_error(*a, *b) > 1e-9) {
                return Err(Error::Mismatch(format!(
                    "the gradient of {what} differs from that of backward"
                )));
            }
        }
        Ok(())
    }

    /// `f_a` at a node depends on the node and its neighbours alone.
    fn check_locality(&self) -> Result<(), Error> {
        let f_x = self.value(&self.weights, &self.features, &self.states);
        for u in 0..self.batch.nodes() {
            let mut moved = self.states.clone();
            moved.row_mut(u).iter_mut().for_each(|x| *x += 1.0);
            let other = self.value(&self.weights, &self.features, &moved);
            let near = |v: usize| self.batch.neighbours().of(v).iter().any(|&w| w as usize == u);
            for v in (0..self.batch.nodes()).filter(|&v| v != u && !near(v)) {
                if f_x.row(v).iter().zip(other.row(v)).any(|(a, b)| a.to_bits() != b.to_bits()) {
                    return Err(Error::Mismatch(format!(
                        "f_a at node {v} depends on node {u}, which is not a neighbour"
                    )));
                }
            }
        }
        Ok(())
    }
}

impl Added {
    fn minus(mut self, other: &Self) -> Self {
        subtract(&mut self.weights, &other.weights);
        subtract(self.states.as_mut_slice(), other.states.as_slice());
        subtract(self.features.as_mut_slice(), other.features.as_slice());
        self
    }
}

/// Whether `exact` is the slope of a value along entry `i` of something.
fn compare(what: &str, i: usize, exact: f64, along: &dyn Fn(f64) -> f64) -> Result<(), Error> {
    let (error, slope) = slope_error(exact, along);
    if error < ROUNDING {
        return Ok(());
    }
    Err(Error::Mismatch(format!(
        "the derivative in {what} {i} is {exact}, but the slope of the value is {slope}"
    )))
}

/// Weights as they are declared to start, moved a little: biases start at zero, where a forgotten
/// one would not be noticed.
fn weights_of(parameters: &Parameters, draw: &mut dyn FnMut() -> f64) -> Vec<f64> {
    let mut weights = vec![0.0; parameters.weights()];
    parameters.initialize(draw, &mut weights);
    weights.iter_mut().for_each(|w| *w += 0.2 * (draw() - 0.5));
    weights
}

/// Numbers in (−½, ½).
fn random(rows: usize, cols: usize, draw: &mut dyn FnMut() -> f64) -> Matrix<f64> {
    let mut matrix = Matrix::zeros(rows, cols);
    matrix.as_mut_slice().fill_with(|| draw() - 0.5);
    matrix
}

/// An upstream that is known beforehand.
#[derive(Clone, Copy)]
struct Given<'a> {
    d_f: &'a Matrix<f64>,
    d_states: &'a Matrix<f64>,
}

impl Upstream<f64> for Given<'_> {
    fn derive(
        &mut self,
        nodes: std::ops::Range<usize>,
        _: &[f64],
        d_f: &mut [f64],
        d_states: &mut [f64],
    ) {
        let width = self.d_f.cols();
        let range = nodes.start * width..nodes.end * width;
        d_f.copy_from_slice(&self.d_f.as_slice()[range.clone()]);
        d_states.copy_from_slice(&self.d_states.as_slice()[range]);
    }
}

fn subtract(x: &mut [f64], y: &[f64]) {
    x.iter_mut().zip(y).for_each(|(x, y)| *x -= y);
}

/// Whether a constraint function keeps its contract: `G(0) = 0`, its derivative is the slope of its
/// value, and both forms of evaluation agree.
///
/// # Errors
///
/// [`Error::Mismatch`], saying which part of the contract is broken and where.
pub fn constraint(g: &dyn Constraint<f64>) -> Result<(), Error> {
    let fail = |text: String| Err(Error::Mismatch(text));
    if g.value(0.0).abs() > 0.0 {
        return fail(format!("{g:?} at 0 is {}, but a met constraint is 0", g.value(0.0)));
    }
    // None of these is a round number, at which functions have their kinks.
    let points: Vec<f64> = (-37..=37).map(|i| f64::from(i) * 0.083_17 + 0.000_71).collect();
    let (mut values, mut slopes) = (vec![0.0; points.len()], vec![0.0; points.len()]);
    g.evaluate(&points, &mut values, &mut slopes);
    for (i, &a) in points.iter().enumerate() {
        let (error, slope) = slope_error(g.derivative(a), |h| g.value(a + h));
        if error >= ROUNDING {
            let found = g.derivative(a);
            return fail(format!(
                "the derivative of {g:?} at {a} is {found}, but its slope is {slope}"
            ));
        }
        if relative_error(values[i], g.value(a)) > 1e-12
            || relative_error(slopes[i], g.derivative(a)) > 1e-12
        {
            return fail(format!("{g:?} at {a} differs when many values are evaluated at once"));
        }
    }
    let both = g.value(1.0) * g.value(-1.0) < 0.0;
    if both && !g.takes_both_signs() {
        return fail(format!("{g:?} takes both signs, but says that it does not"));
    }
    Ok(())
}

/// Whether a solver keeps its contract: it finds the saddle points of a parabola and of quadratics
/// of several sizes, whose answers are known, within `tol` and `steps` updates.
///
/// # Errors
///
/// [`Error::Mismatch`], saying which problem it missed and by how much.
pub fn solver(
    mut make: impl FnMut() -> Box<dyn SaddleSolver<f64>>,
    steps: usize,
    tol: f64,
) -> Result<(), Error> {
    let problems = std::iter::once(Quadratic::parabola())
        .chain((1..=4).map(|seed| Quadratic::random(2 * usize::try_from(seed).unwrap_or(1), seed)));
    for problem in problems {
        let solver = make();
        let mut at = problem.start();
        let mut state = OptimizerState::new(&at);
        for _ in 0..steps {
            solver.step(&problem, &mut at, &mut state);
        }
        let distance = problem.distance(&at);
        if distance.is_nan() || distance > tol {
            return Err(Error::Mismatch(format!(
                "after {steps} updates {solver:?} is {distance:e} away from the saddle point of \
                 {} variables",
                problem.size()
            )));
        }
    }
    Ok(())
}
