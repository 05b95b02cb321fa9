use std::ops::Range;

use super::classes::weighted;
use super::fit::check_requirements;
use super::sample::Sample;
use super::standardize::start_standardized;
use super::update::{contract, frozen};
use super::whole::{own, share_of};
use super::{
    Best, ModelEvaluation, Observer, Stage, StepProgress, StopReason, Trained, TrainingData,
    TrainingPlan,
};
use crate::inference::InferenceProgress;
use crate::lagrangian::{L2, Model, ObjectiveLayer, Variables};
use crate::numeric::{NormMemory, Scratch, uniform};
use crate::readout::Supervision;
use crate::registry::Registry;
use crate::saddle::{OptimizerState, SaddleSolver};
use crate::transition::Degrees;
use crate::{Error, Scalar};

/// Trains a model by a plan, epoch by epoch.
#[derive(Debug)]
pub struct Trainer<'a, S: Scalar = f32> {
    pub(super) plan: TrainingPlan,
    pub(super) model: &'a Model<S>,
    pub(super) data: &'a TrainingData<S>,
    pub(super) supervision: Supervision<S>,
    pub(super) degrees: Degrees,
    pub(super) solver: Box<dyn SaddleSolver<S>>,
    /// The layers around the Lagrangian, from the inside to the outside.
    pub(super) layers: Vec<Box<dyn ObjectiveLayer<S>>>,
    pub(super) state: TrainerState<S>,
    pub(super) scratch: Scratch<S>,
    /// Room for the variables of a batch of some of the graphs.
    pub(super) part: Variables<S>,
    pub(super) held_out_only: bool,
    /// Whether evaluations have the outputs of the held-out splits.
    pub(super) keep_outputs: bool,
    /// What evaluations before the last measure of the training graphs; none: all.
    pub(super) sample: Option<Sample<S>>,
    /// Frozen weights, and where they are.
    pub(super) frozen: Vec<(Range<usize>, Vec<S>)>,
}

/// Why training ended, and the last evaluation with its epoch.
type Ended = (StopReason, Option<(usize, ModelEvaluation)>);

/// Everything that changes in training: what a checkpoint keeps.
#[derive(Clone, Debug)]
pub struct TrainerState<S = f32> {
    /// Epochs that are done.
    pub epoch: usize,
    /// Updates that are done.
    pub updates: u64,
    /// Weights, and the states and multipliers of all training graphs.
    pub variables: Variables<S>,
    /// The optimiser state.
    pub optimizer: OptimizerState<S>,
    /// Where the next estimates of matrix norms start, per layer.
    pub norms: Vec<NormMemory>,
    /// The best weights so far, by the validation split.
    pub best: Option<Best<S>>,
    /// The number of evaluations since.
    pub since_best: usize,
}

impl<'a, S: Scalar> Trainer<'a, S> {
    /// A trainer at the start.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`] when model, data and plan do not [fit](Self::check) each other, or a Lipschitz
    /// bound is asked of a function that cannot keep one.
    pub fn new(
        plan: TrainingPlan,
        model: &'a Model<S>,
        data: &'a TrainingData<S>,
    ) -> Result<Self, Error> {
        Self::new_with(&Registry::default(), plan, model, data)
    }

    /// The same, with solvers of your own: `registry` knows the name of the plan's.
    ///
    /// # Errors
    ///
    /// Those of [`new`](Self::new), and [`Error::Option`] when there is no solver of that name.
    pub fn new_with(
        registry: &Registry<S>,
        plan: TrainingPlan,
        model: &'a Model<S>,
        data: &'a TrainingData<S>,
    ) -> Result<Self, Error> {
        Self::check(&plan, model, data)?;
        let config = plan.config();
        let solver = match &config.custom_solver {
            None => config.solver.build::<S>(),
            Some(name) => {
                let solver = registry.solver(name, &config.custom_solver_options)?;
                check_requirements(name, solver.requirements(), model, config)?;
                solver
            }
        };
        let degrees = Degrees::of(data.training_graphs().topology());
        let scratch = Scratch::new();
        let mut layers: Vec<Box<dyn ObjectiveLayer<S>>> = vec![];
        if config.l2 > 0.0 {
            layers.push(Box::new(L2 { factor: config.l2, except: model.parameters().undecayed() }));
        }
        let state = own(share_of(&plan, data), start(&plan, model, data, degrees, &scratch)?);
        let sample = config.eval_sample.and_then(|size| Sample::draw(data, size, config.seed));
        Ok(Self {
            supervision: weighted(config, data)?,
            solver,
            frozen: frozen(model, &state.variables.weights),
            plan,
            model,
            data,
            degrees,
            layers,
            state,
            scratch,
            part: Variables::default(),
            held_out_only: false,
            keep_outputs: false,
            sample,
        })
    }

    /// The same with a custom solver in place of the plan's.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`] when it needs another constraint or another output than the model has.
    pub fn with_solver(mut self, solver: Box<dyn SaddleSolver<S>>) -> Result<Self, Error> {
        let name = format!("{solver:?}");
        check_requirements(&name, solver.requirements(), self.model, self.plan.config())?;
        self.solver = solver;
        Ok(self)
    }

    /// The same with one more layer around the Lagrangian, outside those that are there.
    #[must_use]
    pub fn with_layer(mut self, layer: Box<dyn ObjectiveLayer<S>>) -> Self {
        self.layers.push(layer);
        self
    }

    /// The same, but intermediate evaluations leave out the training split: when many models are
    /// compared, converging the training graphs is most of the cost. The last epoch is evaluated in full.
    #[must_use]
    pub fn evaluating_held_out(mut self) -> Self {
        self.held_out_only = self.data.batches.len() > 1;
        self
    }

    /// The same, but [evaluations](ModelEvaluation::outputs) have the outputs of the validation and the test split too: whoever
    /// averages the predictions of several trainings needs them. Those of a graph in parts are not kept.
    #[must_use]
    pub fn keeping_outputs(mut self) -> Self {
        self.keep_outputs = true;
        self
    }

    /// The same, resumed from a checkpoint.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`] when it is the checkpoint of another model or of other graphs.
    pub fn resume(mut self, state: TrainerState<S>) -> Result<Self, Error> {
        let shape = |at: &Variables<S>| at.parts().map(|(_, part)| part.len()).collect::<Vec<_>>();
        let nodes = self.data.training_graphs().nodes();
        let expected = self.model.zeros(nodes, vec![S::ZERO; self.model.weights()]);
        if shape(&state.variables) != shape(&expected)
            || state.norms.len() != self.state.norms.len()
        {
            return Err(Error::Mismatch(
                "the checkpoint belongs to another model or to other graphs".into(),
            ));
        }
        state.optimizer.slots.check(&state.variables)?;
        self.state = own(self.share(), state);
        Ok(self)
    }

    /// The current state; where ranks share the training graphs, of the nodes that this one owns.
    pub fn state(&self) -> &TrainerState<S> {
        &self.state
    }

    /// The same, going on from another training of this model, on other graphs: with its weights and what
    /// is remembered of them. States start at their fixed point, multipliers at zero.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`] when it is the state of another model.
    pub fn warm_start(mut self, from: TrainerState<S>) -> Result<Self, Error> {
        let TrainerState { epoch, updates, variables: Variables { mut weights, .. }, .. } = from;
        if weights.len() != self.model.weights() || from.norms.len() != self.model.layers() {
            return Err(Error::Mismatch(
                "training cannot continue from the state of another model".into(),
            ));
        }
        // What is frozen keeps the bound for these graphs, not for those before.
        for (range, frozen) in &self.frozen {
            weights[range.clone()].copy_from_slice(frozen);
        }
        let graphs = self.data.training_graphs();
        let inference = &self.plan.config().inference;
        let states = inference.states(self.model, &weights, graphs, &self.scratch).states;
        let variables = Variables { states, ..self.model.zeros(graphs.nodes(), weights) };
        let slots = from.optimizer.slots.without_nodes();
        let optimizer = OptimizerState::with_slots(&variables, slots);
        let (norms, best, since_best) = (from.norms, None, 0);
        let state = TrainerState { epoch, updates, variables, optimizer, norms, best, since_best };
        self.state = own(self.share(), state);
        Ok(self)
    }

    /// Trains to the end of the plan, or until an observer or a divergence ends it.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`] when a Lipschitz bound is asked of a function that cannot keep one.
    pub fn run(mut self, observer: &mut dyn Observer<S>) -> Result<Trained<S>, Error> {
        let (reason, last) = self.trained(observer)?;
        Ok(self.finish(reason, last, observer))
    }

    /// The same, and the state in which training has ended.
    ///
    /// # Errors
    ///
    /// Those of [`run`](Self::run).
    pub fn run_keeping_state(
        mut self,
        observer: &mut dyn Observer<S>,
    ) -> Result<(Trained<S>, TrainerState<S>), Error> {
        let (reason, last) = self.trained(observer)?;
        let state = self.whole().into_owned();
        Ok((self.finish(reason, last, observer), state))
    }

    /// The same with nothing under way before and afterwards.
    fn trained(&mut self, observer: &mut dyn Observer<S>) -> Result<Ended, Error> {
        let share = self.data.training_graphs().own().topology().share();
        share.inspect(|share| share.forget_stale());
        let ended = self.train(observer);
        share.inspect(|share| share.forget_stale());
        ended
    }

    /// Why training ended, and the last evaluation with its epoch.
    fn train(&mut self, observer: &mut dyn Observer<S>) -> Result<Ended, Error> {
        let (epochs, eval_every) = (self.plan.config().epochs, self.plan.config().eval_every);
        let mut last_evaluation = None;
        while self.state.epoch < epochs {
            // Checked first, so that a resumed training that had stopped early does not go on.
            if self.out_of_patience() {
                observer.stopped(&self.whole());
                return Ok((StopReason::NoImprovement, last_evaluation));
            }
            let before = self.state.variables.weights.clone();
            let last = self.state.epoch + 1 == epochs;
            let evaluated = last || (self.state.epoch + 1).is_multiple_of(eval_every);
            let brief = self.held_out_only && !last;
            let sample = if last { None } else { self.plan.config().eval_sample };
            let measured = (evaluated && !brief).then(|| sample.unwrap_or(usize::MAX));
            let mut report = self.epoch(measured, observer)?;
            if let Some(reason) = self.diverged(&report, before) {
                return Ok((reason, last_evaluation));
            }
            if evaluated {
                let epoch = self.state.epoch;
                let mut tell = tell_observer(epoch, observer);
                let evaluation = if last {
                    self.evaluate_last(&mut tell)
                } else {
                    self.evaluate_in_passing(&mut tell)
                };
                self.keep_best(&evaluation);
                last_evaluation = Some((self.state.epoch, evaluation.clone()));
                report.evaluation = Some(evaluation);
            }
            if self.tell(&report, observer) {
                return Ok((StopReason::Stopped, last_evaluation));
            }
        }
        Ok((StopReason::Epochs, last_evaluation))
    }
}

/// Tells the observer of the parts of an evaluation.
pub(super) fn tell_observer<S: Scalar>(
    epoch: usize,
    observer: &mut dyn Observer<S>,
) -> impl FnMut(usize, usize, Option<InferenceProgress>) {
    move |number, total, inference| {
        let stage = Stage::Evaluation;
        observer.step(&StepProgress { epoch, stage, number, total, passes: 0, inference });
    }
}

/// Everything as it is before the first update.
fn start<S: Scalar>(
    plan: &TrainingPlan,
    model: &Model<S>,
    data: &TrainingData<S>,
    degrees: Degrees,
    scratch: &Scratch<S>,
) -> Result<TrainerState<S>, Error> {
    let (config, graphs) = (plan.config(), data.training_graphs());
    let mut variables = model.start(graphs.nodes(), &mut uniform(config.seed));
    let mut norms = vec![NormMemory::default(); model.layers()];
    if let Some(bound) = config.lipschitz {
        contract(model, &mut variables.weights, degrees, bound, &mut norms)?;
    }
    if config.standardize {
        start_standardized(model, graphs, &config.inference, &mut variables, scratch);
    }
    let optimizer = OptimizerState::new(&variables);
    Ok(TrainerState {
        epoch: 0,
        updates: 0,
        variables,
        optimizer,
        norms,
        best: None,
        since_best: 0,
    })
}
