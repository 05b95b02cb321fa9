//! Whether a plan fits a model and its data.

use super::evaluation::of_all;
use super::{Monitor, SplitName, Trainer, TrainingConfig, TrainingData, TrainingPlan};
use crate::lagrangian::{Lagrangian, Model, Multipliers, ReadFrom, Scale};
use crate::numeric::Scratch;
use crate::saddle::Requirements;
use crate::transition::Transition;
use crate::{Error, Matrix, Scalar, memory};

impl<S: Scalar> Trainer<'_, S> {
    /// Whether model, data and plan fit each other, before anything is computed.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`] when they do not, [`Error::Memory`] when there is no room for them.
    pub fn check(
        plan: &TrainingPlan,
        model: &Model<S>,
        data: &TrainingData<S>,
    ) -> Result<(), Error> {
        let config = plan.config();
        let fits = check_memory(model, data);
        match data.training_graphs().across() {
            None => fits?,
            Some(share) => share.agree(fits)?,
        }
        for batch in &data.batches {
            model.check(batch)?;
        }
        if config.custom_solver.is_none() {
            let requirements = config.solver.build::<S>().requirements();
            check_requirements(config.solver.name(), requirements, model, config)?;
        }
        check_monitor(config.monitor, data, SplitName::Val)?;
        let supervision = super::classes::weighted(config, data)?;
        let (graphs, weighing) = (data.training_graphs(), config.weighing);
        Lagrangian::new(model, graphs, &supervision, weighing, &Scratch::new()).map(|_| ())
    }
}

/// Whether a metric that is asked for is defined for a split, if there is one of that name.
pub(crate) fn check_monitor<S: Scalar>(
    monitor: Monitor,
    data: &TrainingData<S>,
    split: SplitName,
) -> Result<(), Error> {
    let found = data.splits().find(|(name, ..)| *name == split);
    let Some((_, _, graphs, supervision)) = found.filter(|_| monitor != Monitor::Auto) else {
        return Ok(());
    };
    let gathered = graphs.across().map(|share| of_all(share, supervision));
    let supervision = gathered.as_ref().unwrap_or(supervision);
    let outputs = Matrix::zeros(supervision.targets().rows(), supervision.targets().width());
    if monitor.of(supervision, &outputs).is_some() {
        return Ok(());
    }
    let expected = match monitor {
        Monitor::Auc => "two classes that both occur",
        Monitor::R2 => "real targets that vary",
        _ => "classes with targets",
    };
    let split = if split == SplitName::Val { "validation" } else { split.as_str() };
    Err(Error::Mismatch(format!(
        "training.monitor is {}, which requires {expected} in the {split} split",
        monitor.as_str()
    )))
}

/// How often weights and states are kept: the variables, their gradient, two moments of each, the best
/// weights so far and a step in the making.
const COPIES: usize = 6;

/// # Errors
///
/// [`Error::Memory`] if there is no room for the variables and what the optimiser keeps of them.
fn check_memory<S: Scalar>(model: &Model<S>, data: &TrainingData<S>) -> Result<(), Error> {
    let (weights, nodes) = (model.weights(), data.training_graphs().nodes());
    let state_dims: usize = model.transitions().map(Transition::state_dim).sum();
    let bytes = memory::bytes_of::<S>(&[weights, COPIES])
        .saturating_add(memory::bytes_of::<S>(&[nodes, state_dims, COPIES]));
    let features = data.dims().features;
    let what = format_args!(
        "training {weights} weights on {features} features and the states of {nodes} nodes"
    );
    memory::require(bytes, what)
}

/// Whether the Lagrangian meets the requirements of the solver `name`.
pub(super) fn check_requirements<S: Scalar>(
    name: &str,
    requirements: Requirements,
    model: &Model<S>,
    config: &TrainingConfig,
) -> Result<(), Error> {
    let g = model.constraint();
    let linear = [-2.0, -0.5, 0.3, 7.0]
        .iter()
        .all(|&a| (g.value(S::of(a)).f64() - S::of(a).f64()).abs() <= 0.0)
        && config.weighing.constraint == Scale::Sum
        && model.multipliers() == Multipliers::PerComponent;
    if requirements.linear_constraint && !linear {
        return Err(Error::Mismatch(format!(
            "the solver {name} iterates f_a itself: it needs G = lin, one multiplier per component, \
             and the sum as the scale of the constraint"
        )));
    }
    if requirements.reads_transition && model.reads().from != ReadFrom::Transition {
        return Err(Error::Mismatch(format!(
            "the solver {name} takes its gradient through one application of f_a: it needs an output \
             that reads f_a(x), model.reads.from = \"transition\""
        )));
    }
    Ok(())
}
