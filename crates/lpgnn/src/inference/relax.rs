use std::ops::Range;

use super::chunks::for_each_chunk;
use super::divided::Division;
use super::{FixedPoint, InferenceProgress, Tell, check_tol, residuals};
use crate::graph::{GraphBatch, Targets};
use crate::lagrangian::{Lagrangian, Model, ReadFrom, Variables, Weighing};
use crate::numeric::Scratch;
use crate::readout::Supervision;
use crate::saddle::{
    Bdmm, OptimizerState, check_count, check_not_negative, check_positive, scatter,
};
use crate::{Error, Scalar};

/// How the constraint is optimised at test time.
#[derive(
    Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct RelaxOptions {
    /// Largest `abs(x − f_a(x))` of a graph that has converged.
    #[schemars(range(max = 1), extend("exclusiveMinimum" = 0))]
    pub tol: f64,
    /// Maximum number of updates.
    #[schemars(range(min = 1))]
    pub max_iter: usize,
    /// Learning rate of the states, halved eight times on the way.
    ///
    /// Adam leaves a residual of about its last learning rate.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub state_lr: f64,
    /// Learning rate of the multipliers.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub multiplier_lr: f64,
    /// Factor of the augmented-Lagrangian term, `ρ`.
    #[schemars(range(min = 0))]
    pub penalty: f64,
}

impl Default for RelaxOptions {
    fn default() -> Self {
        Self { tol: 1e-2, max_iter: 400, state_lr: 0.05, multiplier_lr: 0.01, penalty: 1.0 }
    }
}

impl RelaxOptions {
    /// Validates every value.
    ///
    /// # Errors
    ///
    /// [`Error::Option`], naming the first value that is not.
    pub fn check(self) -> Result<Self, Error> {
        check_tol(self.tol)?;
        check_positive("state-lr", self.state_lr)?;
        check_positive("multiplier-lr", self.multiplier_lr)?;
        check_count("max-iter", self.max_iter)?;
        check_not_negative("penalty", self.penalty)?;
        Ok(self)
    }
}

/// The paper's procedure for graphs that were not trained on: the constraint term is optimised in
/// states and multipliers of their own, from `start`, with the weights as they are.
///
/// # Panics
///
/// When the model cannot read the batch; see [`Model::check`].
pub fn relax<S: Scalar>(
    model: &Model<S>,
    start: Variables<S>,
    batch: &GraphBatch<S>,
    options: &RelaxOptions,
    scratch: &Scratch<S>,
) -> FixedPoint<S> {
    relax_observed(model, start, batch, options, scratch, &mut |_| ())
}

/// The same; `tell` is called on the way. Every graph is relaxed by itself, so that what becomes of it does not depend
/// on the others.
pub(super) fn relax_observed<S: Scalar>(
    model: &Model<S>,
    start: Variables<S>,
    batch: &GraphBatch<S>,
    options: &RelaxOptions,
    scratch: &Scratch<S>,
    tell: Tell<'_>,
) -> FixedPoint<S> {
    if batch.graphs() == 1 {
        return relax_graph(model, start, batch, options, scratch, tell);
    }
    let chunks: Vec<Range<usize>> = (0..batch.graphs()).map(|graph| graph..graph + 1).collect();
    let division = Division::of(batch, &chunks);
    let own = division.as_ref().map_or(0..batch.graphs(), Division::own);
    let mut found = FixedPoint::none();
    let zeros = |nodes| model.zeros(nodes, vec![]).states;
    (found.states, found.f_x) = (zeros(batch.nodes()), zeros(batch.nodes()));
    let mut graphs: Vec<(usize, Option<FixedPoint<S>>)> = own.map(|graph| (graph, None)).collect();
    for_each_chunk(&mut graphs, batch.graphs(), tell, |(graph, relaxed), tell| {
        let (part, start) = (batch.select(&[*graph]), start.of_nodes(batch.nodes_of(*graph)));
        *relaxed = Some(relax_graph(model, start, &part, options, scratch, tell));
        1
    });
    for (graph, relaxed) in graphs {
        let relaxed = relaxed.expect("all graphs have been relaxed");
        let nodes: Vec<usize> = batch.nodes_of(graph).collect();
        scatter(&relaxed.states, &nodes, &mut found.states);
        scatter(&relaxed.f_x, &nodes, &mut found.f_x);
        found.append(relaxed);
    }
    if model.reads().from == ReadFrom::State {
        found.f_x.clear();
    }
    if let Some(division) = &division {
        division.complete(&mut found, options.tol);
    }
    found
}

/// One graph, on which all ranks that share it work together.
fn relax_graph<S: Scalar>(
    model: &Model<S>,
    start: Variables<S>,
    batch: &GraphBatch<S>,
    options: &RelaxOptions,
    scratch: &Scratch<S>,
    tell: Tell<'_>,
) -> FixedPoint<S> {
    let nothing = Supervision::all(Targets::None(model.readout().level().rows(batch)));
    let lagrangian = Lagrangian::new(model, batch, &nothing, Weighing::default(), scratch)
        .expect("a model that has read a batch can read it again, and there are no targets");
    let solver = Bdmm {
        state_lr: options.state_lr,
        state_lr_half_life: Some(options.max_iter.max(8) as f64 / 8.0),
        multiplier_lr: options.multiplier_lr,
        penalty: options.penalty,
        ..Bdmm::default()
    };
    let share = batch.share();
    let mut at = match share {
        None => start,
        Some(share) => start.own_rows(share),
    };
    let mut state = OptimizerState::new(&at);
    // The best states so far: descent and ascent do not come nearer at every step.
    let (mut best, mut least) = (at.states.clone(), f64::INFINITY);
    let mut iterations = 0;
    while iterations < options.max_iter {
        iterations += 1;
        tell(InferenceProgress::Iteration { number: iterations });
        let before = at.states.clone();
        // The evaluation is of the point before the step.
        let residual = solver.relax(&lagrangian, &mut at, &mut state).residual_max;
        if residual < least {
            (best, least) = (before, residual);
        }
        if residual <= options.tol || !residual.is_finite() {
            break;
        }
    }
    at.states = match share {
        None => best,
        Some(share) => best.iter().map(|own| share.all_rows(own)).collect(),
    };
    let (f_x, residuals) = residuals(model, &at.weights, batch, &at.states, scratch);
    let converged = residuals.iter().map(|&residual| residual <= options.tol).collect();
    let graph_iterations = vec![iterations];
    FixedPoint { states: at.states, f_x, residuals, converged, iterations, graph_iterations }
}
