use super::{Predictions, SavedModel};
use crate::constraint::ConstraintFunction;
use crate::lagrangian::{
    Lagrangian, Model, Multipliers, Objective, Request, Scale, Variables, Weighing,
};
use crate::numeric::{largest_difference, worse};
use crate::optim::axpy;
use crate::readout::Supervision;
use crate::train::ModelDims;
use crate::{Error, Matrix, Scratch};

/// How many steps multipliers have to converge in.
const MOST_STEPS: usize = 10_000;
/// The change of a multiplier, relative to the largest, at which they have.
const TOLERANCE: f32 = 1e-5;

impl SavedModel {
    /// `max abs(x − f_a(x))` of every node, over the layers.
    pub fn node_residuals(&self, predictions: &Predictions) -> Vec<f64> {
        let (model, batch) = (self.functions(), &predictions.batch);
        let (states, scratch) = (&predictions.fixed_point.states, Scratch::new());
        let f_x = model.f_x(states.len(), &self.weights, batch, states, &scratch).f_x;
        let mut worst = vec![0.0; batch.nodes()];
        for (x, f) in states.iter().zip(&f_x) {
            for (node, worst) in worst.iter_mut().enumerate() {
                let residual = largest_difference(x.row(node), f.row(node));
                *worst = worse(*worst, f64::from(residual));
            }
        }
        worst
    }

    /// The multipliers `Λ` of every layer at the saddle point of these graphs, for `G = lin` and all
    /// targets of `predictions`: how the loss changes if the state of a node is moved.
    ///
    /// ```text
    /// λ = Jᵀ λ − ∂loss/∂x
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`] when there are no targets, or when they do not converge because `f_a` does
    /// not contract.
    pub fn multipliers(&self, predictions: &Predictions) -> Result<Vec<Matrix<f32>>, Error> {
        self.check_single("a multiplier")?;
        let batch = &predictions.batch;
        let supervision = Supervision::all(self.task.targets_of(batch).clone());
        if supervision.total() <= 0.0 {
            let level = self.task.plural();
            return Err(Error::Mismatch(format!(
                "the {level} have no targets, which multipliers depend on"
            )));
        }
        let linear = self.with_linear_constraint()?;
        let model = linear.as_ref().unwrap_or(self.functions());
        let scratch = Scratch::new();
        let weighing = Weighing { constraint: Scale::Sum, ..self.training.weighing };
        let lagrangian = Lagrangian::new(model, batch, &supervision, weighing, &scratch)?;
        let states = predictions.fixed_point.states.clone();
        let mut at = Variables { states, ..model.zeros(batch.nodes(), self.weights.clone()) };
        let mut gradient = at.zeros_like();
        for _ in 0..MOST_STEPS {
            let request = Request { weights: false, ..Request::ALL };
            lagrangian.evaluate(&at, request, &mut gradient);
            let (change, size) = (largest(&gradient.states), largest(&at.multipliers));
            if !(change + size).is_finite() {
                break;
            }
            if change <= TOLERANCE * size || change == 0.0 {
                return Ok(at.multipliers);
            }
            for (to, d) in at.multipliers.iter_mut().zip(&gradient.states) {
                axpy(-1.0, d.as_slice(), to.as_mut_slice());
            }
        }
        Err(Error::Mismatch("the multipliers do not converge: f_a does not contract".into()))
    }

    /// The same functions with `G = lin` and one multiplier per component; none if they are so.
    fn with_linear_constraint(&self) -> Result<Option<Model<f32>>, Error> {
        let mut config = self.model.clone();
        config.constraint = ConstraintFunction::Linear;
        config.multipliers = Multipliers::PerComponent;
        if config == self.model {
            return Ok(None);
        }
        let dims = ModelDims {
            features: self.encoding.node_width(),
            edge_features: self.encoding.edge_width(),
            outputs: self.outputs,
            level: self.task,
        };
        config.build(dims).map(Some)
    }
}

fn largest(matrices: &[Matrix<f32>]) -> f32 {
    let all = matrices.iter().flat_map(Matrix::as_slice);
    all.fold(0.0, |max, x| worse(max, x.abs()))
}
