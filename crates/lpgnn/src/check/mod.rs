//! Checks that a new function can be put through: the ones this crate uses itself.

mod quadratic;

pub use quadratic::Quadratic;

use crate::constraint::Constraint;
use crate::graph::{GraphBatch, LabelsView};
use crate::lagrangian::{Objective, Variables, Want};
use crate::numeric::Scratch;
use crate::saddle::{Memory, SaddleSolver};
use crate::transition::{Gradients, Input, NodeRows, Tally, Transition, Upstream};
use crate::{Error, Matrix};

/// Half the distance over which a central difference is taken.
const STEP: f64 = 1e-5;

/// The largest relative error of the gradient of `objective` at `at`, against central differences.
///
/// Below `1e-6` for a correct implementation, away from kinks: at a kink a difference is no
/// derivative.
///
/// # Panics
///
/// When the gradient has another shape than the point.
pub fn gradients(objective: &dyn Objective<f64>, at: &Variables<f64>) -> f64 {
    let mut exact = at.zeros_like();
    objective.evaluate(at, Want::ALL, &mut exact);
    let mut spare = at.zeros_like();
    let mut moved = at.clone();
    let mut worst = 0.0_f64;
    for (part, (_, exact)) in exact.parts().enumerate() {
        for (i, &exact) in exact.iter().enumerate() {
            let mut along = |to: f64| {
                let entry = entry(&mut moved, part, i);
                let here = std::mem::replace(entry, to);
                let value = objective.evaluate(&moved, Want::ALL, &mut spare).value();
                *self::entry(&mut moved, part, i) = here;
                value
            };
            let here = at.parts().nth(part).expect("the point has this part").1[i];
            let slope = (along(here + STEP) - along(here - STEP)) / (2.0 * STEP);
            worst = worst.max(relative_error(exact, slope));
        }
    }
    worst
}

fn entry(at: &mut Variables<f64>, part: usize, i: usize) -> &mut f64 {
    &mut at.parts_mut().nth(part).expect("the point has this part").1[i]
}

/// The distance of two numbers, relative to the larger one or to 1.
fn relative_error(a: f64, b: f64) -> f64 {
    let error = (a - b).abs() / a.abs().max(b.abs()).max(1.0);
    // An error that is not a number is the worst of all.
    if error.is_nan() { f64::INFINITY } else { error }
}

/// Whether a transition function keeps its contract on `batch`: its derivatives are those of its
/// value, in weights, states and labels; its fused pass agrees with forward and backward; and a
/// node's image depends on the node and its neighbours alone.
///
/// # Errors
///
/// [`Error::Mismatch`], saying which part of the contract is broken and where.
pub fn transition(
    f: &dyn Transition<f64>,
    batch: &GraphBatch<f64>,
    seed: u64,
) -> Result<(), Error> {
    let mut draw = uniform(seed);
    let mut weights = vec![0.0; f.weights()];
    f.initialize(&mut draw, &mut weights);
    // Biases start at zero, where a forgotten one would not be noticed.
    weights.iter_mut().for_each(|w| *w += 0.2 * (draw() - 0.5));
    let mut states = Matrix::zeros(batch.nodes(), f.state());
    states.as_mut_slice().fill_with(|| draw() - 0.5);
    let mut d_image = states.clone();
    d_image.as_mut_slice().fill_with(|| draw() - 0.5);

    // Dense labels, so that they have a derivative.
    let given = batch.node_labels();
    let mut labels = Matrix::zeros(given.rows(), given.width());
    for row in 0..given.rows() {
        for (column, value) in given.entries(row) {
            labels.row_mut(row)[column] = value;
        }
    }
    let scratch = Scratch::new();
    let value = |weights: &[f64], labels: &Matrix<f64>, states: &Matrix<f64>| {
        let mut image = Matrix::zeros(batch.nodes(), f.state());
        let input = Input { batch, labels: LabelsView::Dense(labels), states };
        f.forward(weights, input, &mut image, &scratch);
        image
    };
    let weighed = |image: &Matrix<f64>| -> f64 {
        image.as_slice().iter().zip(d_image.as_slice()).map(|(f, d)| f * d).sum()
    };

    // Gradients are added to what is there, which is not zero.
    let mut d_weights: Vec<f64> = (0..weights.len()).map(|_| draw()).collect();
    let mut fill = |rows: usize, cols: usize| {
        let mut matrix = Matrix::zeros(rows, cols);
        matrix.as_mut_slice().fill_with(&mut draw);
        matrix
    };
    let mut d_states = fill(states.rows(), states.cols());
    let mut d_labels = fill(labels.rows(), labels.cols());
    let before = (d_weights.clone(), d_states.clone(), d_labels.clone());
    let input = Input { batch, labels: LabelsView::Dense(&labels), states: &states };
    f.check(batch, input.labels)?;
    let gradients = Gradients {
        weights: Some(&mut d_weights),
        states: &mut d_states,
        labels: Some(&mut d_labels),
    };
    f.backward(&weights, input, &d_image, gradients, &scratch);
    subtract(&mut d_weights, &before.0);
    subtract(d_states.as_mut_slice(), before.1.as_slice());
    subtract(d_labels.as_mut_slice(), before.2.as_slice());

    // The fused pass, and one that only states are wanted of.
    let upstream = Given { d_image: &d_image, d_states: &before.1 };
    let mut none = Matrix::zeros(batch.nodes(), 0);
    let mut p_weights = before.0.clone();
    let (mut p_states, mut p_labels) = (fill(states.rows(), states.cols()), before.2.clone());
    let gradients = Gradients {
        weights: Some(&mut p_weights),
        states: &mut p_states,
        labels: Some(&mut p_labels),
    };
    f.pass(&weights, input, &upstream, &mut none, gradients, &scratch);
    let mut s_states = before.1.clone();
    let gradients = Gradients { weights: None, states: &mut s_states, labels: None };
    f.backward(&weights, input, &d_image, gradients, &scratch);
    subtract(&mut p_weights, &before.0);
    subtract(p_labels.as_mut_slice(), before.2.as_slice());
    for states in [&mut p_states, &mut s_states] {
        subtract(states.as_mut_slice(), before.1.as_slice());
    }
    for (what, a, b) in [
        (
            "the fused pass and backward have different gradients of weights",
            &p_weights[..],
            &d_weights[..],
        ),
        (
            "the fused pass and backward have different gradients of states",
            p_states.as_slice(),
            d_states.as_slice(),
        ),
        (
            "the fused pass and backward have different gradients of labels",
            p_labels.as_slice(),
            d_labels.as_slice(),
        ),
        (
            "states have another gradient where it alone is wanted",
            s_states.as_slice(),
            d_states.as_slice(),
        ),
    ] {
        if a.iter().zip(b).any(|(a, b)| relative_error(*a, *b) > 1e-9) {
            return Err(Error::Mismatch(what.into()));
        }
    }

    let compare = |what: &str, i: usize, exact: f64, along: &dyn Fn(f64) -> f64| {
        let slope = (along(STEP) - along(-STEP)) / (2.0 * STEP);
        if relative_error(exact, slope) < 1e-6 {
            Ok(())
        } else {
            Err(Error::Mismatch(format!(
                "the derivative in {what} {i} is {exact}, but the slope of the value is {slope}"
            )))
        }
    };
    for (i, &exact) in d_weights.iter().enumerate() {
        compare("weight", i, exact, &|h| {
            let mut moved = weights.clone();
            moved[i] += h;
            weighed(&value(&moved, &labels, &states))
        })?;
    }
    for (i, &exact) in d_states.as_slice().iter().enumerate() {
        compare("state", i, exact, &|h| {
            let mut moved = states.clone();
            moved.as_mut_slice()[i] += h;
            weighed(&value(&weights, &labels, &moved))
        })?;
    }
    for (i, &exact) in d_labels.as_slice().iter().enumerate() {
        compare("label", i, exact, &|h| {
            let mut moved = labels.clone();
            moved.as_mut_slice()[i] += h;
            weighed(&value(&weights, &moved, &states))
        })?;
    }

    let image = value(&weights, &labels, &states);
    for u in 0..batch.nodes() {
        let mut moved = states.clone();
        moved.row_mut(u).iter_mut().for_each(|x| *x += 1.0);
        let other = value(&weights, &labels, &moved);
        let far = (0..batch.nodes())
            .filter(|&v| v != u && !batch.neighbours().of(v).iter().any(|&w| w as usize == u));
        for v in far {
            if image.row(v).iter().zip(other.row(v)).any(|(a, b)| a.to_bits() != b.to_bits()) {
                return Err(Error::Mismatch(format!(
                    "the image of node {v} depends on node {u}, which is no neighbour"
                )));
            }
        }
    }
    Ok(())
}

/// An upstream that is known beforehand.
struct Given<'a> {
    d_image: &'a Matrix<f64>,
    d_states: &'a Matrix<f64>,
}

impl Upstream<f64> for Given<'_> {
    fn upstream(&self, nodes: std::ops::Range<usize>, _: &[f64], rows: NodeRows<'_, f64>) -> Tally {
        let width = self.d_image.cols();
        let range = nodes.start * width..nodes.end * width;
        rows.d_image.copy_from_slice(&self.d_image.as_slice()[range.clone()]);
        rows.d_states.copy_from_slice(&self.d_states.as_slice()[range]);
        Tally::default()
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
        let slope = (g.value(a + STEP) - g.value(a - STEP)) / (2.0 * STEP);
        if relative_error(g.derivative(a), slope) > 1e-6 {
            let found = g.derivative(a);
            return fail(format!(
                "the derivative of {g:?} at {a} is {found}, its slope is {slope}"
            ));
        }
        if relative_error(values[i], g.value(a)) > 1e-12
            || relative_error(slopes[i], g.derivative(a)) > 1e-12
        {
            return fail(format!("{g:?} at {a} is another number when many are evaluated at once"));
        }
    }
    let both = g.value(1.0) * g.value(-1.0) < 0.0;
    if both && !g.takes_both_signs() {
        return fail(format!("{g:?} takes both signs, but says that it does not"));
    }
    Ok(())
}

/// Whether a solver keeps its contract: it finds the saddle points of a parabola and of quadratics
/// of several sizes, whose answers are known, within `tolerance` and `steps` updates.
///
/// # Errors
///
/// [`Error::Mismatch`], saying which problem it missed and by how much.
pub fn solver(
    mut make: impl FnMut() -> Box<dyn SaddleSolver<f64>>,
    steps: usize,
    tolerance: f64,
) -> Result<(), Error> {
    let problems = std::iter::once(Quadratic::parabola())
        .chain((1..=4).map(|seed| Quadratic::random(2 * usize::try_from(seed).unwrap_or(1), seed)));
    for problem in problems {
        let mut solver = make();
        let mut at = problem.start();
        let mut memory = Memory::new(&at);
        for _ in 0..steps {
            solver.step(&problem, &mut at, &mut memory);
        }
        let distance = problem.distance(&at);
        if distance.is_nan() || distance > tolerance {
            return Err(Error::Mismatch(format!(
                "after {steps} updates {solver:?} is {distance:e} away from the saddle point of \
                 {} variables",
                problem.size()
            )));
        }
    }
    Ok(())
}

/// A stream of reproducible uniform numbers in `[0, 1)`, for tests and examples.
pub fn uniform(seed: u64) -> impl FnMut() -> f64 {
    use rand::{Rng, SeedableRng};
    let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
    move || (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}
