//! Why a prediction is what it is: which features, nodes and edges it rests on.
//!
//! The score `s` that is explained is read of states `x = f_a(x, l)`. By the implicit function theorem its derivative by
//! the features `l` goes through the fixed point, however far away a node is:
//!
//! ```text
//! z = ∂s/∂x + Jᵀz,   J = ∂f_a/∂x          ∂s/∂l = (∂f_a/∂l)ᵀ z
//! ```
//!
//! layer by layer from the last, where the features of a layer are what is read of the one below; a read-out that reads
//! features adds what it makes of them directly. What an edge adds to the
//! score is not a derivative: the edge is taken away, and the states converge again from where they are.

use super::{FixedPoint, FixedPointOptions, converge_from};
use crate::graph::{BatchParts, Features, FeaturesView, GraphBatch, Level, NO_EDGE, Targets};
use crate::lagrangian::{Model, ReadFrom};
use crate::numeric::{Scratch, largest_difference};
use crate::readout::{ReadoutGradients, ReadoutInput};
use crate::transition::{Gradients, Input, Transition};
use crate::{Error, Matrix, Scalar, memory};

/// What is explained of the outputs of a node or graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Score {
    /// The log-odds `y_c − log Σ_{k≠c} exp y_k` of a class: they do not saturate where its probability does.
    Class(usize),
    /// A real value.
    Value(usize),
}

/// Of what an explanation is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question {
    /// The node or graph.
    pub item: usize,
    /// What of its outputs.
    pub score: Score,
    /// How many edges are taken away in turn, at most: those first at whose ends a change of `f_a` moves the score most.
    pub edges: usize,
}

/// The features, nodes and edges that a prediction rests on.
#[derive(Clone, Debug)]
pub struct Explanation<S = f32> {
    /// What is explained.
    pub score: Score,
    /// Its value.
    pub value: f64,
    /// `∂s/∂l`, a row per node.
    pub gradient: Matrix<S>,
    /// `Σ_j l_vj ∂s/∂l_vj` of every node: what its features contribute, to first order.
    pub nodes: Vec<f64>,
    /// The edges that were taken away, the most important first.
    pub edges: Vec<EdgeEffect>,
}

/// What an edge, in both directions if there are both, contributes to a score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EdgeEffect {
    /// The nodes it joins, the smaller number first.
    pub nodes: (usize, usize),
    /// The score with it minus the score without it.
    pub effect: f64,
    /// Whether the states without it have converged.
    pub converged: bool,
}

/// Steps that an adjoint may take, of which a contraction by 0.99 needs all.
const MOST_STEPS: usize = 2000;
/// The change of an adjoint, relative to its largest component, at which it has converged: what single or double precision has.
fn tolerance<S>() -> f64 {
    if size_of::<S>() == size_of::<f32>() { 1e-6 } else { 1e-12 }
}

/// Explains a score, from the fixed point of the whole batch.
///
/// # Errors
///
/// [`Error::Mismatch`] when there is no such item or output, or the adjoint does not converge because `f_a` does not
/// contract at these states; [`Error::Memory`] when the gradient of all features needs more than there is.
pub fn explain<S: Scalar>(
    model: &Model<S>,
    weights: &[S],
    batch: &GraphBatch<S>,
    found: &FixedPoint<S>,
    question: Question,
    scratch: &Scratch<S>,
) -> Result<Explanation<S>, Error> {
    let Question { item, score, edges } = question;
    let outputs = found.outputs(model, weights, batch, scratch);
    score.check(&outputs, item, model.readout().level())?;
    let what = format_args!("the gradient of all features of {} nodes", batch.nodes());
    let width = batch.node_features().width();
    memory::require(memory::bytes_of::<S>(&[3, batch.nodes(), width]), what)?;

    let (read, direct) =
        readout_gradient(model, weights, batch, found, &score.derivative(&outputs, item), scratch);
    let (mut gradient, pull) = through_layers(model, weights, batch, found, &read, scratch)?;
    let direct = direct.as_slice().iter();
    gradient.as_mut_slice().iter_mut().zip(direct).for_each(|(to, &d)| *to += d);
    let node = |v: usize| -> f64 {
        batch.node_features().entries(v).map(|(j, l)| l.f64() * gradient.row(v)[j].f64()).sum()
    };
    let nodes = (0..batch.nodes()).map(node).collect();
    let value = score.value(outputs.row(item));
    let mut effects = vec![];
    for (u, v) in candidates(batch, &pull, edges) {
        let without = without_edge(batch, u, v)?;
        let options = FixedPointOptions { fall_back: None, ..FixedPointOptions::default() };
        let start = found.states.clone();
        let again = converge_from(model, weights, &without, start, &options, scratch);
        let outputs = again.outputs(model, weights, &without, scratch);
        let effect = value - score.value(outputs.row(item));
        effects.push(EdgeEffect { nodes: (u, v), effect, converged: again.failures() == 0 });
    }
    effects.sort_by(|a, b| b.effect.abs().total_cmp(&a.effect.abs()).then(a.nodes.cmp(&b.nodes)));
    Ok(Explanation { score, value, gradient, nodes, edges: effects })
}

impl Score {
    fn output(self) -> usize {
        match self {
            Self::Class(output) | Self::Value(output) => output,
        }
    }

    fn check<S: Scalar>(self, outputs: &Matrix<S>, item: usize, level: Level) -> Result<(), Error> {
        if item >= outputs.rows() {
            let (what, count) = (level.as_str(), outputs.rows());
            return Err(Error::Mismatch(format!(
                "{what} {item} is to be explained, but there are {count} {}, counted from 0",
                level.plural()
            )));
        }
        if self.output() >= outputs.cols() {
            return Err(Error::Mismatch(format!(
                "output {} is to be explained, but the model has {}, counted from 0",
                self.output(),
                outputs.cols()
            )));
        }
        Ok(())
    }

    /// `s(y)`
    fn value<S: Scalar>(self, y: &[S]) -> f64 {
        match self {
            Self::Value(output) => y[output].f64(),
            Self::Class(class) => y[class].f64() - log_sum_exp_of_others(class, y),
        }
    }

    /// `∂s/∂y`, zero but for the row of `item`.
    fn derivative<S: Scalar>(self, outputs: &Matrix<S>, item: usize) -> Matrix<S> {
        let mut d = Matrix::zeros(outputs.rows(), outputs.cols());
        let y = outputs.row(item);
        let row = d.row_mut(item);
        row[self.output()] = S::of(1.0);
        if let Self::Class(class) = self {
            let others = log_sum_exp_of_others(class, y);
            for k in (0..y.len()).filter(|&k| k != class) {
                row[k] = S::of(-(y[k].f64() - others).exp());
            }
        }
        d
    }
}

/// `log Σ_{k≠c} exp y_k`
fn log_sum_exp_of_others<S: Scalar>(class: usize, y: &[S]) -> f64 {
    let others = || (0..y.len()).filter(|&k| k != class).map(|k| y[k].f64());
    let largest = others().fold(f64::NEG_INFINITY, f64::max);
    if largest.is_finite() {
        largest + others().map(|y| (y - largest).exp()).sum::<f64>().ln()
    } else {
        // One class only: its score is its output.
        0.0
    }
}

/// `∂s/∂` what is read of the layers that the read-out reads, side by side, and `∂s/∂l` with the states as they are, of no
/// columns if it does not read features.
fn readout_gradient<S: Scalar>(
    model: &Model<S>,
    weights: &[S],
    batch: &GraphBatch<S>,
    found: &FixedPoint<S>,
    d_outputs: &Matrix<S>,
    scratch: &Scratch<S>,
) -> (Matrix<S>, Matrix<S>) {
    let all = match model.reads().from {
        ReadFrom::State => &found.states,
        ReadFrom::Transition => &found.f_x,
    };
    let layers = model.read_layers();
    let handed = |layer| model.normalized(layer, weights, batch, &all[layer], scratch);
    let normalized: Vec<_> = layers.clone().filter_map(handed).collect();
    let read: Vec<&Matrix<S>> = if normalized.is_empty() {
        all[layers].iter().collect()
    } else {
        normalized.iter().map(|rows| &**rows).collect()
    };
    let mut d_states = Matrix::zeros(batch.nodes(), model.readout().inputs());
    let mut d_features = Matrix::zeros(batch.nodes(), model.readout().features());
    model.readout().backward(
        &weights[model.readout_weights()],
        ReadoutInput { batch, parts: &read, dropout: None },
        d_outputs,
        ReadoutGradients {
            weights: None,
            states: Some(&mut d_states),
            features: Some(&mut d_features),
        },
        scratch,
    );
    (d_states, d_features)
}

/// `∂s/∂l`, and `Σ_k |z_v|` over the layers: how far the score follows a change of `f_a` at node `v`.
fn through_layers<S: Scalar>(
    model: &Model<S>,
    weights: &[S],
    batch: &GraphBatch<S>,
    found: &FixedPoint<S>,
    read: &Matrix<S>,
    scratch: &Scratch<S>,
) -> Result<(Matrix<S>, Vec<f64>), Error> {
    let handed = model.f_x(model.layers(), weights, batch, &found.states, scratch);
    let mut pull = vec![0.0; batch.nodes()];
    let mut columns = read.cols();
    let mut from_above: Option<Matrix<S>> = None;
    for (layer, transition) in model.transitions().enumerate().rev() {
        let width = transition.state_dim();
        let mut g = from_above.take().unwrap_or_else(|| Matrix::zeros(batch.nodes(), width));
        if model.read_layers().contains(&layer) {
            columns -= width;
            for v in 0..batch.nodes() {
                let read = &read.row(v)[columns..columns + width];
                g.row_mut(v).iter_mut().zip(read).for_each(|(g, &read)| *g += read);
            }
        }
        model.hand_back(layer, weights, (batch, &found.states), &handed, &mut g, None);
        let node_features = model.features(layer, batch, &found.states, &handed);
        let input = Input { node_features, ..Input::of(batch, &found.states[layer]) };
        let weights = &weights[model.transition_weights(layer)];
        let z = adjoint(transition, weights, input, &g, scratch)?;
        for (v, pull) in pull.iter_mut().enumerate() {
            *pull += z.row(v).iter().map(|z| z.f64() * z.f64()).sum::<f64>().sqrt();
        }
        // Transitions have no gradient of categories and sparse features, which training does not need: here they are numbers.
        let dense = match node_features {
            FeaturesView::Dense(_) => None,
            sparse => Some(to_dense(sparse)),
        };
        let node_features = dense.as_ref().map_or(node_features, FeaturesView::Dense);
        let mut d_features = Matrix::zeros(batch.nodes(), node_features.width());
        let mut d_states = Matrix::zeros(batch.nodes(), width);
        let gradients = Gradients::new(None, &mut d_states, Some(&mut d_features));
        transition.backward(weights, Input { node_features, ..input }, &z, gradients, scratch);
        from_above = Some(d_features);
    }
    // A model has a layer.
    Ok((from_above.unwrap_or_else(|| Matrix::zeros(batch.nodes(), 0)), pull))
}

fn to_dense<S: Scalar>(features: FeaturesView<'_, S>) -> Matrix<S> {
    let mut dense = Matrix::zeros(features.rows(), features.width());
    for v in 0..features.rows() {
        for (column, value) in features.entries(v) {
            dense.row_mut(v)[column] = value;
        }
    }
    dense
}

/// `z = g + Jᵀz`, by iteration.
fn adjoint<S: Scalar>(
    transition: &dyn Transition<S>,
    weights: &[S],
    input: Input<'_, S>,
    g: &Matrix<S>,
    scratch: &Scratch<S>,
) -> Result<Matrix<S>, Error> {
    let mut z = g.clone();
    for _ in 0..MOST_STEPS {
        let mut next = g.clone();
        transition.backward(weights, input, &z, Gradients::new(None, &mut next, None), scratch);
        let change = largest_difference(next.as_slice(), z.as_slice()).f64();
        let largest = next.as_slice().iter().fold(0.0_f64, |most, z| most.max(z.f64().abs()));
        z = next;
        if change <= tolerance::<S>() * largest {
            return Ok(z);
        }
    }
    Err(Error::Mismatch(format!(
        "the gradient through the fixed point did not converge in {MOST_STEPS} steps: the transition does not \
         contract at these states, and there is no derivative to explain them by"
    )))
}

/// The edges to try, as pairs of nodes: at most `most` of them, those with the largest pull at their ends.
fn candidates<S: Scalar>(batch: &GraphBatch<S>, pull: &[f64], most: usize) -> Vec<(usize, usize)> {
    let neighbours = batch.neighbours();
    let mut pairs: Vec<(usize, usize)> = (0..batch.nodes())
        .filter(|&v| !neighbours.is_isolated(v))
        .flat_map(|v| neighbours.of(v).iter().map(move |&u| (v, u as usize)))
        .filter(|&(v, u)| v <= u)
        .collect();
    let pull = |&(v, u): &(usize, usize)| pull[v] + pull[u];
    pairs.sort_by(|a, b| pull(b).total_cmp(&pull(a)).then(a.cmp(b)));
    pairs.truncate(most);
    pairs
}

/// The same graphs without the edges between `u` and `v`; features stay what they are.
fn without_edge<S: Scalar>(
    batch: &GraphBatch<S>,
    u: usize,
    v: usize,
) -> Result<GraphBatch<S>, Error> {
    let neighbours = batch.neighbours();
    let with_features = batch.edge_features().width() > 0;
    let (mut edges, mut rows) = (vec![], vec![]);
    for source in (0..batch.nodes()).filter(|&v| !neighbours.is_isolated(v)) {
        for entry in neighbours.range(source) {
            let target = neighbours.nodes()[entry];
            if (source, target as usize) == (u, v) || (source, target as usize) == (v, u) {
                continue;
            }
            if with_features {
                match neighbours.outgoing()[entry] {
                    NO_EDGE => continue,
                    row => rows.push(row as usize),
                }
            }
            let source = u32::try_from(source).map_err(|_| Error::TooLarge)?;
            edges.push((source, target));
        }
    }
    let edge_features = if with_features {
        batch.edge_features().select(rows.into_iter())
    } else {
        Features::none(edges.len())
    };
    GraphBatch::from_parts(BatchParts {
        node_starts: batch.node_starts().to_vec(),
        edges,
        node_features: batch.node_features().clone(),
        edge_features,
        node_targets: Targets::None(batch.nodes()),
        graph_targets: Targets::None(batch.graphs()),
    })
}
