//! Training: a configuration becomes a checked plan, and the plan runs.

mod config;
mod l2;
mod parts;
mod report;
mod standardize;

pub use config::{
    ClassWeights, ModelConfig, ModelDims, SolverConfig, TrainingConfig, TrainingPlan,
};
pub use parts::{SplitName, TrainingData};
pub use report::{EpochReport, ModelEvaluation, SplitMetrics};

use std::fmt;
use std::ops::{ControlFlow, Range};

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use crate::graph::{GraphBatch, Level, Targets};
use crate::inference::{FixedPoint, predict, spectral_radius};
use crate::lagrangian::{Lagrangian, Model, Multipliers, Scale, Variables};
use crate::numeric::{NormMemory, Scratch, length, uniform};
use crate::readout::Supervision;
use crate::saddle::{OptimizerState, SaddleSolver, gather, scatter};
use crate::transition::Degrees;
use crate::{Error, Matrix, Scalar};
use l2::WithL2;
use report::EpochSums;
use standardize::{coordinates, start_standardized};

/// Power iterations behind a reported spectral radius.
const RADIUS_ITERATIONS: usize = 20;

/// Trains a model by a plan, epoch by epoch.
#[derive(Debug)]
pub struct Trainer<'a, S: Scalar = f32> {
    plan: TrainingPlan,
    model: &'a Model<S>,
    data: &'a TrainingData<S>,
    supervision: Supervision<S>,
    degrees: Degrees,
    solver: Box<dyn SaddleSolver<S>>,
    state: TrainerState<S>,
    scratch: Scratch<S>,
    held_out_only: bool,
    /// Weights that stay what they start as, and where they are.
    frozen: Vec<(Range<usize>, Vec<S>)>,
}

/// Everything that changes in training: what a checkpoint keeps.
#[derive(Clone, Debug)]
pub struct TrainerState<S = f32> {
    /// Epochs that are done.
    pub epoch: usize,
    /// Weights, and the states and multipliers of all training graphs.
    pub variables: Variables<S>,
    /// What the solver remembers of them.
    pub memory: OptimizerState<S>,
    /// Where the next estimates of matrix norms start, per layer.
    pub norms: Vec<NormMemory>,
    /// The best weights so far, by the validation part.
    pub best: Option<Best<S>>,
    /// How many evaluation there have been since.
    pub since_best: usize,
}

/// The weights of the best epoch.
#[derive(Clone, Debug)]
pub struct Best<S = f32> {
    /// The epoch, counted from 1.
    pub epoch: usize,
    /// Its score on the validation part.
    pub score: SplitMetrics,
    /// All its evaluation.
    pub evaluation: ModelEvaluation,
    /// Its weights.
    pub weights: Vec<S>,
}

/// Watches training, and may end it.
pub trait Observer<S: Scalar = f32> {
    /// Called after every epoch.
    fn epoch(&mut self, report: &EpochReport, state: &TrainerState<S>) -> ControlFlow<()>;
}

/// A function can watch.
impl<S: Scalar, F: FnMut(&EpochReport, &TrainerState<S>) -> ControlFlow<()>> Observer<S> for F {
    fn epoch(&mut self, report: &EpochReport, state: &TrainerState<S>) -> ControlFlow<()> {
        self(report, state)
    }
}

/// Nobody watches.
impl<S: Scalar> Observer<S> for () {
    fn epoch(&mut self, _: &EpochReport, _: &TrainerState<S>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Why training ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case", tag = "reason")]
#[non_exhaustive]
pub enum StopReason {
    /// All epochs were used.
    Epochs,
    /// The validation score has not improved for a while.
    NoImprovement,
    /// An observer ended it.
    Stopped,
    /// A variable is no longer a number. The weights are those before it happened.
    Diverged {
        /// The epoch in which it happened, counted from 1.
        epoch: usize,
        /// What is not finite.
        variable: NotFinite,
    },
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Epochs => f.write_str("all epochs are done"),
            Self::NoImprovement => f.write_str("the validation split has not improved for a while"),
            Self::Stopped => f.write_str("stopped on request"),
            Self::Diverged { epoch, variable } => {
                write!(f, "diverged in epoch {epoch}: the {variable} are not finite")
            }
        }
    }
}

/// What is not finite when training diverges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NotFinite {
    /// `θ`
    Weights,
    /// `X`
    States,
    /// `Λ`
    Multipliers,
    /// Only what is made of them.
    Loss,
}

impl NotFinite {
    fn of<S: Scalar>(variables: &Variables<S>) -> Self {
        match variables.not_finite() {
            Some("weights") => Self::Weights,
            Some("states") => Self::States,
            Some(_) => Self::Multipliers,
            None => Self::Loss,
        }
    }

    /// `weights`, `states`, `multipliers` or `loss`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Weights => "weights",
            Self::States => "states",
            Self::Multipliers => "multipliers",
            Self::Loss => "loss",
        }
    }
}

impl fmt::Display for NotFinite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What training leaves behind.
#[derive(Clone, Debug)]
pub struct Trained<S = f32> {
    /// The weights of the best epoch, or the last ones without a validation part.
    pub weights: Vec<S>,
    /// The epoch they are of, counted from 1.
    pub epoch: usize,
    /// Their evaluation, if that epoch was scored.
    pub evaluation: Option<ModelEvaluation>,
    /// Why it ended.
    pub reason: StopReason,
    /// `Λ` of every layer when it ended, whichever epoch was the best.
    pub multipliers: Vec<Matrix<S>>,
}

impl<'a, S: Scalar> Trainer<'a, S> {
    /// Whether model, data and plan fit each other, before anything is computed.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`] when they do not.
    pub fn check(
        plan: &TrainingPlan,
        model: &Model<S>,
        data: &TrainingData<S>,
    ) -> Result<(), Error> {
        let config = plan.config();
        for batch in &data.batches {
            model.check(batch)?;
        }
        if config.solver.build::<S>().needs_linear_constraint() {
            check_linear(model, config)?;
        }
        if config.patience.is_some() && !data.has(SplitName::Val) {
            return Err(Error::Mismatch(
                "patience needs a validation part to see whether it improves".into(),
            ));
        }
        let supervision = weighted(config, data)?;
        let (graphs, weighing) = (data.training_graphs(), config.weighing);
        Lagrangian::new(model, graphs, &supervision, weighing, &Scratch::new()).map(|_| ())
    }

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
        Self::check(&plan, model, data)?;
        let config = plan.config();
        let solver = config.solver.build::<S>();
        let supervision = weighted(config, data)?;
        let degrees = Degrees::of(data.training_graphs().topology());
        let mut draw = uniform(config.seed);
        let (graphs, scratch) = (data.training_graphs(), Scratch::new());
        let mut variables = model.start(graphs.nodes(), &mut draw);
        let mut norms = vec![NormMemory::default(); model.layers()];
        if let Some(bound) = config.lipschitz {
            contract(model, &mut variables.weights, degrees, bound, &mut norms)?;
        }
        if config.standardize {
            start_standardized(model, graphs, &config.inference, &mut variables, &scratch);
        }
        let frozen = frozen(model, &variables.weights);
        let memory = OptimizerState::new(&variables);
        let state = TrainerState { epoch: 0, variables, memory, norms, best: None, since_best: 0 };
        Ok(Self {
            plan,
            model,
            data,
            supervision,
            degrees,
            solver,
            state,
            scratch,
            held_out_only: false,
            frozen,
        })
    }

    /// The same with a solver of one's own in place of the plan's.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`] when it needs another constraint than the model has.
    pub fn with_solver(mut self, solver: Box<dyn SaddleSolver<S>>) -> Result<Self, Error> {
        if solver.needs_linear_constraint() {
            check_linear(self.model, self.plan.config())?;
        }
        self.solver = solver;
        Ok(self)
    }

    /// The same, on the way scoring only what is not trained on: where many models are compared,
    /// converging the training graphs is most of what evaluation cost. The last epoch is scored in full.
    #[must_use]
    pub fn evaluating_held_out(mut self) -> Self {
        self.held_out_only = self.data.batches.len() > 1;
        self
    }

    /// The same, from where a checkpoint was taken.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`] when it is the checkpoint of another model or of other graphs.
    pub fn resume(mut self, state: TrainerState<S>) -> Result<Self, Error> {
        let shape = |at: &Variables<S>| at.parts().map(|(_, part)| part.len()).collect::<Vec<_>>();
        if shape(&state.variables) != shape(&self.state.variables)
            || state.norms.len() != self.state.norms.len()
        {
            return Err(Error::Mismatch(
                "the checkpoint is of another model, or of other graphs".into(),
            ));
        }
        self.state = state;
        Ok(self)
    }

    /// Where it is.
    pub fn state(&self) -> &TrainerState<S> {
        &self.state
    }

    /// Trains to the end of the plan, or until an observer or a divergence ends it.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`] when a Lipschitz bound is asked of a function that cannot keep one.
    pub fn run(mut self, observer: &mut dyn Observer<S>) -> Result<Trained<S>, Error> {
        let config = self.plan.config().clone();
        let mut last_evaluation = None;
        while self.state.epoch < config.epochs {
            // Asked first, so that who resumes a training that was out of patience goes no further.
            if config.patience.is_some_and(|patience| self.state.since_best >= patience) {
                return Ok(self.finish(StopReason::NoImprovement, last_evaluation));
            }
            let before = self.state.variables.weights.clone();
            let mut report = self.epoch()?;
            let variables = &self.state.variables;
            if !(report.loss + report.constraint + report.residual_max).is_finite()
                || variables.not_finite().is_some()
            {
                let variable = NotFinite::of(variables);
                let epoch = self.state.epoch;
                self.state.variables.weights = before;
                self.state.epoch -= 1;
                return Ok(self.finish(StopReason::Diverged { epoch, variable }, last_evaluation));
            }
            let due = self.state.epoch.is_multiple_of(config.eval_every)
                || self.state.epoch == config.epochs;
            if due {
                let brief = self.held_out_only && self.state.epoch < config.epochs;
                let evaluation = if brief { self.evaluate_held_out() } else { self.evaluate() };
                self.keep_best(&evaluation);
                last_evaluation = Some((self.state.epoch, evaluation.clone()));
                report.evaluation = Some(evaluation);
            }
            if observer.epoch(&report, &self.state).is_break() {
                return Ok(self.finish(StopReason::Stopped, last_evaluation));
            }
        }
        Ok(self.finish(StopReason::Epochs, last_evaluation))
    }

    fn finish(self, reason: StopReason, last: Option<(usize, ModelEvaluation)>) -> Trained<S> {
        match self.state.best {
            Some(best) => Trained {
                weights: best.weights,
                epoch: best.epoch,
                evaluation: Some(best.evaluation),
                reason,
                multipliers: self.state.variables.multipliers,
            },
            None => Trained {
                evaluation: match last {
                    Some((epoch, evaluation)) if epoch == self.state.epoch => Some(evaluation),
                    _ => Some(self.evaluate()),
                },
                weights: self.state.variables.weights,
                epoch: self.state.epoch,
                reason,
                multipliers: self.state.variables.multipliers,
            },
        }
    }

    /// One pass over the training data.
    fn epoch(&mut self) -> Result<EpochReport, Error> {
        let graphs = self.data.training_graphs();
        let mut sums = EpochSums::default();
        self.state.memory.undecayed = self.model.parameters().undecayed().into();
        if self.plan.config().standardize {
            self.state.memory.coordinates =
                coordinates(self.model, graphs, &self.state.variables.states);
        }
        match self.plan.config().batch_size {
            Some(size) if size < graphs.graphs() => {
                for members in self.shuffled(graphs.graphs()).chunks(size) {
                    self.update_some(members, &mut sums)?;
                }
            }
            _ => self.update_all(&mut sums)?,
        }
        self.state.epoch += 1;
        let multipliers = self.state.variables.multipliers.iter().flat_map(Matrix::as_slice);
        let largest = multipliers.fold(S::ZERO, |max, x| x.abs().max(max)).f64();
        let gradient = &self.state.memory.gradient;
        let lengths = |matrices: &[Matrix<S>]| {
            matrices.iter().map(|m| length(m.as_slice()).powi(2)).sum::<f64>().sqrt()
        };
        let norms =
            [length(&gradient.weights), lengths(&gradient.states), lengths(&gradient.multipliers)];
        Ok(sums.report(self.state.epoch, largest, norms))
    }

    /// The training graphs in the order of this epoch: a function of seed and epoch alone.
    fn shuffled(&self, graphs: usize) -> Vec<usize> {
        let mut random = ChaCha8Rng::seed_from_u64(self.plan.config().seed);
        random.set_stream(1 + self.state.epoch as u64);
        let mut order: Vec<usize> = (0..graphs).collect();
        order.shuffle(&mut random);
        order
    }

    /// Which units are left out at the next update: a function of seed and update alone.
    fn dropout(&self) -> u64 {
        self.plan.config().seed.rotate_left(32) ^ self.state.memory.weight_steps
    }

    /// The graphs as the next update sees them, if not as they are.
    fn with_feature_dropout(&self, graphs: &GraphBatch<S>) -> Option<GraphBatch<S>> {
        let rate = self.plan.config().feature_dropout;
        // Other entries than the units of f_r that are left out.
        (rate > 0.0).then(|| graphs.with_feature_dropout(rate, !self.dropout()))
    }

    fn update_all(&mut self, sums: &mut EpochSums) -> Result<(), Error> {
        let graphs = self.data.training_graphs();
        let dropped = self.with_feature_dropout(graphs);
        let lagrangian = Lagrangian::new(
            self.model,
            dropped.as_ref().unwrap_or(graphs),
            &self.supervision,
            self.plan.config().weighing,
            &self.scratch,
        )?
        .with_dropout(Some(self.dropout()));
        let undecayed = self.state.memory.undecayed.clone();
        let objective = WithL2 { of: &lagrangian, l2: self.plan.config().l2, except: &undecayed };
        let TrainerState { variables, memory, .. } = &mut self.state;
        let evaluation = self.solver.step(&objective, variables, memory);
        sums.add(&evaluation, components(variables));
        self.bound()
    }

    /// An update on some graphs: their states, multipliers and what is remembered of them are taken
    /// out, moved, and put back.
    fn update_some(&mut self, members: &[usize], sums: &mut EpochSums) -> Result<(), Error> {
        let graphs = self.data.training_graphs();
        let nodes: Vec<usize> = members.iter().flat_map(|&graph| graphs.nodes_of(graph)).collect();
        let part = graphs.select(members);
        let part = self.with_feature_dropout(&part).unwrap_or(part);
        let rows = match self.data.level {
            Level::Node => &nodes,
            Level::Graph => members,
        };
        let supervision = self.supervision.select(rows);
        let dropout = self.dropout();

        let TrainerState { variables: all, memory: everything, epoch, .. } = &mut self.state;
        let mut variables = take(all, &nodes);
        let mut memory = OptimizerState {
            gradient: variables.zeros_like(),
            moments: everything.moments.iter_mut().map(|moments| take(moments, &nodes)).collect(),
            weight_steps: everything.weight_steps,
            node_steps: *epoch as u64,
            coordinates: everything.coordinates.clone(),
            undecayed: everything.undecayed.clone(),
        };
        let weighing = self.plan.config().weighing;
        let lagrangian = Lagrangian::new(self.model, &part, &supervision, weighing, &self.scratch)?
            .with_dropout(Some(dropout));
        let l2 = self.plan.config().l2;
        let objective = WithL2 { of: &lagrangian, l2, except: &everything.undecayed };
        let evaluation = self.solver.step(&objective, &mut variables, &mut memory);
        sums.add(&evaluation, components(&variables));

        everything.weight_steps = memory.weight_steps;
        everything.node_steps = memory.node_steps;
        for (i, moments) in memory.moments.into_iter().enumerate() {
            if everything.moments.len() == i {
                // The first update made room for what it remembers; the other nodes need it too.
                let shape = if moments.states.is_empty() {
                    Variables { weights: all.weights.clone(), ..Variables::default() }
                } else {
                    all.clone()
                };
                everything.moments.push(shape.zeros_like());
            }
            put(moments, &nodes, &mut everything.moments[i]);
        }
        put(variables, &nodes, all);
        everything.gradient.weights = memory.gradient.weights;
        everything.gradient.states = memory.gradient.states;
        everything.gradient.multipliers = memory.gradient.multipliers;
        self.bound()
    }

    fn bound(&mut self) -> Result<(), Error> {
        for (range, weights) in &self.frozen {
            self.state.variables.weights[range.clone()].copy_from_slice(weights);
        }
        match self.plan.config().lipschitz {
            None => Ok(()),
            Some(bound) => contract(
                self.model,
                &mut self.state.variables.weights,
                self.degrees,
                bound,
                &mut self.state.norms,
            ),
        }
    }

    /// The evaluation of the weights as they are now, on states found afresh.
    pub fn evaluate(&self) -> ModelEvaluation {
        let Variables { weights, states: trained, .. } = &self.state.variables;
        let (parts, converged) = self.evaluate_from(0);
        // The same weights on the states that were trained along, without dropout.
        let graphs = self.data.training_graphs();
        let along = predict(self.model, weights, graphs, trained, &self.scratch);
        let (right, all) = self.data.scored[0].2.correct(&along);
        let fresh = parts[0].1.accuracy;
        ModelEvaluation {
            cheating_gap: fresh.filter(|_| all > 0).map(|fresh| right as f64 / all as f64 - fresh),
            parts,
            not_converged: converged.iter().map(FixedPoint::failures).sum(),
            spectral_radius: spectral_radius(
                self.model,
                weights,
                graphs,
                &converged[0].states,
                RADIUS_ITERATIONS,
                &self.scratch,
            ),
        }
    }

    /// The evaluation of the parts that are not trained on alone.
    fn evaluate_held_out(&self) -> ModelEvaluation {
        let (parts, converged) = self.evaluate_from(1);
        ModelEvaluation {
            parts,
            not_converged: converged.iter().map(FixedPoint::failures).sum(),
            spectral_radius: f64::NAN,
            cheating_gap: None,
        }
    }

    /// The evaluation of the parts whose graphs come at `first` or later, and their states.
    fn evaluate_from(&self, first: usize) -> (Vec<(SplitName, SplitMetrics)>, Vec<FixedPoint<S>>) {
        let (weights, inference) = (&self.state.variables.weights, &self.plan.config().inference);
        let (converged, outputs): (Vec<_>, Vec<_>) = self.data.batches[first..]
            .iter()
            .map(|batch| {
                let converged = inference.states(self.model, weights, batch, &self.scratch);
                let outputs = predict(self.model, weights, batch, &converged.states, &self.scratch);
                (converged, outputs)
            })
            .unzip();
        let scored = self.data.scored.iter().filter(|(_, batch, _)| *batch >= first);
        let parts = scored.map(|(name, batch, supervision)| {
            let outputs = &outputs[batch - first];
            let (right, all) = supervision.correct(outputs);
            let accuracy = (all > 0).then(|| right as f64 / all as f64);
            (*name, SplitMetrics { loss: supervision.mean_loss(outputs), accuracy })
        });
        (parts.collect(), converged)
    }

    fn keep_best(&mut self, evaluation: &ModelEvaluation) {
        let Some(score) = evaluation.of(SplitName::Val) else { return };
        self.state.since_best += 1;
        if self.state.best.as_ref().is_none_or(|best| score.beats(&best.score)) {
            self.state.since_best = 0;
            self.state.best = Some(Best {
                epoch: self.state.epoch,
                score: *score,
                evaluation: evaluation.clone(),
                weights: self.state.variables.weights.clone(),
            });
        }
    }
}

/// The weights that stay what they are, and where they are.
fn frozen<S: Scalar>(model: &Model<S>, weights: &[S]) -> Vec<(Range<usize>, Vec<S>)> {
    let ranges = model.parameters().frozen().into_iter();
    ranges.map(|range| (range.clone(), weights[range].to_vec())).collect()
}

fn components<S: Scalar>(variables: &Variables<S>) -> usize {
    variables.states.iter().map(|states| states.as_slice().len()).sum()
}

/// The weights, moved out, and the rows of some nodes.
fn take<S: Scalar>(all: &mut Variables<S>, nodes: &[usize]) -> Variables<S> {
    Variables {
        weights: std::mem::take(&mut all.weights),
        states: gather(&all.states, nodes),
        multipliers: gather(&all.multipliers, nodes),
    }
}

/// The way back.
fn put<S: Scalar>(part: Variables<S>, nodes: &[usize], all: &mut Variables<S>) {
    all.weights = part.weights;
    scatter(&part.states, nodes, &mut all.states);
    scatter(&part.multipliers, nodes, &mut all.multipliers);
}

/// Scales weights down to the bound, layer by layer.
fn contract<S: Scalar>(
    model: &Model<S>,
    weights: &mut [S],
    degrees: Degrees,
    bound: f64,
    norms: &mut [NormMemory],
) -> Result<(), Error> {
    for ((layer, transition), norms) in model.transitions().enumerate().zip(norms) {
        let range = model.transition_weights(layer);
        if !transition.contract(&mut weights[range], degrees, bound, norms) {
            return Err(Error::Mismatch(format!(
                "a Lipschitz bound was asked for, but {transition:?} cannot keep one"
            )));
        }
    }
    Ok(())
}

fn check_linear<S: Scalar>(model: &Model<S>, config: &TrainingConfig) -> Result<(), Error> {
    let g = model.constraint();
    let linear = [-2.0, -0.5, 0.3, 7.0]
        .iter()
        .all(|&a| (g.value(S::of(a)).f64() - S::of(a).f64()).abs() <= 0.0);
    let plain = config.weighing.constraint == Scale::Sum && config.weighing.penalty <= 0.0;
    if linear && plain && model.multipliers() == Multipliers::PerComponent {
        Ok(())
    } else {
        Err(Error::Mismatch(format!(
            "the solver {} iterates f_a itself: it needs G = lin, one multiplier per component, the \
             sum as the scale of the constraint, and no penalty",
            config.solver.name()
        )))
    }
}

/// What is learnt, each class counting as the configuration says.
fn weighted<S: Scalar>(
    config: &TrainingConfig,
    data: &TrainingData<S>,
) -> Result<Supervision<S>, Error> {
    let supervision = data.train.supervision.clone();
    match config.class_weights {
        ClassWeights::Equal => Ok(supervision),
        ClassWeights::Balanced => balanced(supervision),
    }
}

/// Every class counting the same in all.
fn balanced<S: Scalar>(supervision: Supervision<S>) -> Result<Supervision<S>, Error> {
    let Targets::Classes { classes, class } = supervision.targets() else {
        return Ok(supervision);
    };
    let mut counts = vec![0.0; *classes];
    for (&class, &count) in class.iter().zip(supervision.counts()) {
        if count > S::ZERO {
            counts[class as usize] += 1.0;
        }
    }
    let present = counts.iter().filter(|&&count| count > 0.0).count() as f64;
    let total: f64 = counts.iter().sum();
    let weights: Vec<f64> = counts
        .iter()
        .map(|&count| if count > 0.0 { total / (present * count) } else { 0.0 })
        .collect();
    supervision.with_class_weights(&weights)
}
