use super::{compare, random, relative_error, subtract, uniform, weights_of};
use crate::graph::{GraphBatch, Level, Targets};
use crate::numeric::Scratch;
use crate::readout::{Loss, Readout, ReadoutGradients, ReadoutInput, Supervision, TargetScale};
use crate::{Error, Matrix};

/// Whether a read-out keeps its contract on `batch`: its derivatives are those of its value, in
/// weights and states, and are added to what is there; its fused pass agrees with forward, loss and
/// backward; what is predicted of a graph depends on its own nodes alone; and if it says that its
/// predictions are linear in the layer declared last, they are.
///
/// # Errors
///
/// [`Error::Mismatch`], saying which part of the contract is broken and where.
pub fn readout(f: &dyn Readout<f64>, batch: &GraphBatch<f64>, seed: u64) -> Result<(), Error> {
    f.parameters().check()?;
    let mut draw = uniform(seed);
    let trial = Trial {
        f,
        batch,
        weights: weights_of(f.parameters(), &mut draw),
        states: random(batch.nodes(), f.inputs(), &mut draw),
        d_predictions: random(f.level().rows(batch), f.outputs(), &mut draw),
        scratch: Scratch::new(),
    };
    trial.check_slopes(&mut draw)?;
    trial.check_pass(&mut draw)?;
    trial.check_locality()?;
    trial.check_last_layer()
}

/// A read-out at a random point, with a random `∂𝓛/∂f_r`.
struct Trial<'a> {
    f: &'a dyn Readout<f64>,
    batch: &'a GraphBatch<f64>,
    weights: Vec<f64>,
    states: Matrix<f64>,
    d_predictions: Matrix<f64>,
    scratch: Scratch<f64>,
}

impl Trial<'_> {
    fn input<'a>(&'a self, parts: &'a [&'a Matrix<f64>]) -> ReadoutInput<'a, f64> {
        ReadoutInput { batch: self.batch, parts, dropout: None }
    }

    fn value(&self, weights: &[f64], states: &Matrix<f64>) -> Matrix<f64> {
        // What is not set shall be seen.
        let mut predictions = Matrix::zeros(self.d_predictions.rows(), self.f.outputs());
        predictions.as_mut_slice().fill(f64::NAN);
        self.f.forward(weights, self.input(&[states]), &mut predictions, &self.scratch);
        predictions
    }

    /// What backward adds to the gradients of weights and states, which are not zero.
    fn backward(
        &self,
        d_predictions: &Matrix<f64>,
        draw: &mut dyn FnMut() -> f64,
    ) -> (Vec<f64>, Matrix<f64>) {
        let before: Vec<f64> = self.weights.iter().map(|_| draw()).collect();
        let states_before = random(self.states.rows(), self.states.cols(), draw);
        let (mut weights, mut states) = (before.clone(), states_before.clone());
        let gradients = ReadoutGradients {
            weights: Some(&mut weights),
            states: Some(&mut states),
            features: None,
        };
        let parts = [&self.states];
        let input = self.input(&parts);
        self.f.backward(&self.weights, input, d_predictions, gradients, &self.scratch);
        subtract(&mut weights, &before);
        subtract(states.as_mut_slice(), states_before.as_slice());
        (weights, states)
    }

    /// Derivatives are the slopes of `Σ d ⊙ f_r`.
    fn check_slopes(&self, draw: &mut dyn FnMut() -> f64) -> Result<(), Error> {
        let (weights, states) = self.backward(&self.d_predictions, draw);
        let value = |weights: &[f64], states: &Matrix<f64>| -> f64 {
            let predictions = self.value(weights, states);
            let d = self.d_predictions.as_slice();
            predictions.as_slice().iter().zip(d).map(|(y, d)| y * d).sum()
        };
        for (i, &exact) in weights.iter().enumerate() {
            compare("weight", i, exact, &|h| {
                let mut moved = self.weights.clone();
                moved[i] += h;
                value(&moved, &self.states)
            })?;
        }
        for (i, &exact) in states.as_slice().iter().enumerate() {
            compare("state", i, exact, &|h| {
                let mut moved = self.states.clone();
                moved.as_mut_slice()[i] += h;
                value(&self.weights, &moved)
            })?;
        }
        Ok(())
    }

    /// The fused pass comes to the same as forward, loss and backward.
    fn check_pass(&self, draw: &mut dyn FnMut() -> f64) -> Result<(), Error> {
        let targets = random(self.d_predictions.rows(), self.f.outputs(), draw);
        let supervision = Supervision::all(Targets::Values(targets));
        let loss = Loss { supervision: &supervision, factor: 0.7 };
        let predictions = self.value(&self.weights, &self.states);
        let mut d_predictions = predictions.clone();
        let value = loss.evaluate(&predictions, &mut d_predictions);
        let (weights, states) = self.backward(&d_predictions, draw);

        let level = self.f.gradient_level();
        let mut fused = (
            predictions.clone(),
            vec![0.0; weights.len()],
            random(level.rows(self.batch), self.states.cols(), draw),
        );
        let gradients = ReadoutGradients {
            weights: Some(&mut fused.1),
            states: Some(&mut fused.2),
            features: None,
        };
        let parts = [&self.states];
        let input = self.input(&parts);
        let found = self.f.pass(&self.weights, input, loss, &mut fused.0, gradients, &self.scratch);
        for (what, found, expected) in [
            ("value of the loss", &[found][..], &[value][..]),
            ("predictions", fused.0.as_slice(), predictions.as_slice()),
            ("gradient of the weights", &fused.1, &weights),
            ("gradient of the states", self.per_node(&fused.2).as_slice(), states.as_slice()),
        ] {
            if found.iter().zip(expected).any(|(a, b)| relative_error(*a, *b) > 1e-9) {
                let text = format!("the {what} of the fused pass differs from that step by step");
                return Err(Error::Mismatch(text));
            }
        }
        Ok(())
    }

    /// A row per node.
    fn per_node(&self, d_states: &Matrix<f64>) -> Matrix<f64> {
        match self.f.gradient_level() {
            Level::Node => d_states.clone(),
            Level::Graph => d_states.select((0..self.batch.nodes()).map(|v| self.graph_of(v))),
        }
    }

    fn graph_of(&self, v: usize) -> usize {
        self.batch.node_starts().partition_point(|&start| start <= v) - 1
    }

    /// What is predicted of a graph or of its nodes depends on its own nodes alone.
    fn check_locality(&self) -> Result<(), Error> {
        let here = self.value(&self.weights, &self.states);
        let graph_of = |row: usize| match self.f.level() {
            Level::Node => self.graph_of(row),
            Level::Graph => row,
        };
        for u in 0..self.batch.nodes() {
            let mut moved = self.states.clone();
            moved.row_mut(u).iter_mut().for_each(|x| *x += 1.0);
            let other = self.value(&self.weights, &moved);
            for row in (0..here.rows()).filter(|&row| graph_of(row) != self.graph_of(u)) {
                let (a, b) = (here.row(row), other.row(row));
                if a.iter().zip(b).any(|(a, b)| a.to_bits() != b.to_bits()) {
                    return Err(Error::Mismatch(format!(
                        "the prediction of {} {row} depends on node {u}, which belongs to another graph",
                        self.f.level().as_str()
                    )));
                }
            }
        }
        Ok(())
    }

    /// If the last layer is said to be linear, a change of its unit is one of the predictions.
    fn check_last_layer(&self) -> Result<(), Error> {
        if !self.f.is_linear_in_last_layer() {
            return Ok(());
        }
        let mut weights = self.weights.clone();
        TargetScale::new(vec![3.0; self.f.outputs()], vec![2.0; self.f.outputs()])
            .undo(self.f.parameters(), &mut weights);
        let (one, other) =
            (self.value(&self.weights, &self.states), self.value(&weights, &self.states));
        let same = |(a, b): (&f64, &f64)| relative_error(3.0 + 2.0 * a, *b) < 1e-9;
        if one.as_slice().iter().zip(other.as_slice()).all(same) {
            return Ok(());
        }
        Err(Error::Mismatch(
            "the predictions are not linear in the layer that is declared last; \
             is_linear_in_last_layer should be false"
                .into(),
        ))
    }
}
