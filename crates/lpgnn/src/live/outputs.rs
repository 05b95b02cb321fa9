use std::collections::BTreeSet;
use std::f64::consts::SQRT_2;

use super::bound::{self, together};
use super::precision::Precision;
use super::{EventError, FeatureTable, GONE, LiveGraph, Pools};
use crate::graph::Features;
use crate::lagrangian::Model;
use crate::readout::{PackedMlp, Pooling, largest};
use crate::{Error, Matrix};

/// A prediction, and how far it is from what full convergence would give.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// Logits of the classes, or values.
    pub outputs: Vec<f32>,
    /// The class of the largest logit; none for values, and where a logit is not finite.
    pub class: Option<usize>,
    /// `‖·‖₂` of the difference of `outputs` from those of the fixed point, at most.
    pub bound: f64,
    /// Whether the class is that of the fixed point for certain; values never are.
    pub is_final: bool,
}

/// What a prediction of a node rests on.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// The prediction.
    pub prediction: Prediction,
    /// `‖x_v − f_v(X)‖` at most, for every layer.
    pub residuals: Vec<f64>,
    /// Its neighbours, and `‖·‖₂` by which the outputs would move at once if a neighbour were not one; the most important
    /// first.
    pub neighbours: Vec<(usize, f64)>,
}

/// The read-out, and what it has last told.
#[derive(Debug)]
pub(super) struct Outputs {
    mlp: PackedMlp<f32>,
    pooling: Option<Pooling>,
    classes: bool,
    /// The class of every node or graph when it was last said to have changed, or its values.
    told: Told,
    /// Rows that have changed since somebody asked.
    pub(super) changed: BTreeSet<u32>,
    /// Rows to look at although none of their nodes was computed.
    asked: Vec<u32>,
}

#[derive(Debug)]
enum Told {
    Classes(Vec<u16>),
    Values(Vec<f32>),
}

/// What was told of one node.
#[derive(Debug)]
pub(super) enum ToldRow {
    Class(u16),
    Values(Vec<f32>),
    /// Graphs are told of.
    None,
}

/// The class of a row of which nothing was told yet.
const NOTHING: u16 = u16::MAX;

impl Outputs {
    pub(super) fn new(
        model: &Model<f32>,
        weights: &[f32],
        features: &FeatureTable,
        classes: bool,
    ) -> Result<Self, Error> {
        let (pooling, mlp) = model.readout().network().ok_or_else(|| {
            Error::Mismatch(
                "the read-out does not say how far a change of a state reaches, so there is no bound on the error of a \
                 live graph"
                    .into(),
            )
        })?;
        if classes && mlp.outputs() >= NOTHING.into() {
            return Err(Error::TooLarge);
        }
        // Pooled features have all columns.
        let form = match pooling {
            Some(_) => Features::none(0),
            None => features.select(&[]),
        };
        let told = if classes { Told::Classes(vec![]) } else { Told::Values(vec![]) };
        Ok(Self {
            mlp: mlp.packed(&weights[model.readout_weights()], form.view()),
            pooling,
            classes,
            told,
            changed: BTreeSet::new(),
            asked: vec![],
        })
    }

    /// What it reads of graphs, where those are predicted.
    pub(super) fn pools(&self, graphs: usize) -> Option<Pools> {
        let widths = (self.mlp.inputs, self.mlp.features);
        self.pooling.map(|pooling| Pools::new(pooling, widths, graphs))
    }

    /// Room for the rows of all nodes or graphs, of which nothing was told.
    pub(super) fn tell_all(&mut self, nodes: &[u32], graphs: usize) {
        let rows = if self.pooling.is_none() { nodes.len() } else { graphs };
        match &mut self.told {
            Told::Classes(told) => *told = vec![NOTHING; rows],
            Told::Values(told) => *told = vec![f32::NAN; rows * self.mlp.outputs],
        }
    }

    pub(super) fn push_row(&mut self) {
        match &mut self.told {
            Told::Classes(told) => told.push(NOTHING),
            Told::Values(told) => told.resize(told.len() + self.mlp.outputs, f32::NAN),
        }
    }

    /// Nothing was told of a node that is new; returns what was told of one of the same number.
    pub(super) fn forget(&mut self, node: usize) -> ToldRow {
        if self.pooling.is_some() {
            return ToldRow::None;
        }
        match &mut self.told {
            Told::Classes(told) => ToldRow::Class(std::mem::replace(&mut told[node], NOTHING)),
            Told::Values(told) => {
                let row = &mut told[node * self.mlp.outputs..][..self.mlp.outputs];
                let before = row.to_vec();
                row.fill(f32::NAN);
                ToldRow::Values(before)
            }
        }
    }

    pub(super) fn set_told_row(&mut self, node: usize, row: ToldRow) {
        match (&mut self.told, row) {
            (Told::Classes(told), ToldRow::Class(class)) => told[node] = class,
            (Told::Values(told), ToldRow::Values(values)) => {
                told[node * values.len()..][..values.len()].copy_from_slice(&values);
            }
            _ => {}
        }
    }

    /// Looks at a row after the next events.
    pub(super) fn ask_for(&mut self, row: u32) {
        self.asked.push(row);
    }

    /// Whether a prediction is not what was told last; then it is told.
    fn tell(&mut self, row: u32, outputs: &[f32], bound: f64) {
        let is_new = match &mut self.told {
            Told::Classes(told) => {
                #[allow(clippy::cast_possible_truncation, reason = "there are not as many classes")]
                let class = if are_finite(outputs) { largest(outputs) as u16 } else { NOTHING };
                std::mem::replace(&mut told[row as usize], class) != class
            }
            Told::Values(told) => {
                let told = &mut told[row as usize * self.mlp.outputs..][..self.mlp.outputs];
                let differences = told.iter().zip(outputs).map(|(a, b)| a - b);
                let distance = differences.map(|d| f64::from(d * d)).sum::<f64>().sqrt();
                // Nothing is told yet where the distance is not a number.
                let is_new = distance.is_nan() || distance > bound;
                if is_new {
                    told.copy_from_slice(outputs);
                }
                is_new
            }
        };
        if is_new {
            self.changed.insert(row);
        }
    }

    pub(super) fn bytes(&self) -> usize {
        match &self.told {
            Told::Classes(told) => told.capacity() * size_of::<u16>(),
            Told::Values(told) => told.capacity() * size_of::<f32>(),
        }
    }

    /// What was told, as numbers.
    pub(super) fn told(&self) -> Vec<u32> {
        match &self.told {
            Told::Classes(told) => told.iter().map(|&class| class.into()).collect(),
            Told::Values(told) => told.iter().map(|x| x.to_bits()).collect(),
        }
    }

    pub(super) fn told_numbers(&self, rows: usize) -> usize {
        if self.classes { rows } else { rows * self.mlp.outputs }
    }

    pub(super) fn set_told(&mut self, numbers: Vec<u32>) {
        self.told = if self.classes {
            #[allow(
                clippy::cast_possible_truncation,
                reason = "they were written from as many bits"
            )]
            Told::Classes(numbers.into_iter().map(|class| class as u16).collect())
        } else {
            Told::Values(numbers.into_iter().map(f32::from_bits).collect())
        };
    }
}

/// Rows that are predicted together.
const ROWS: usize = 1 << 12;

impl LiveGraph {
    /// All nodes, or all graphs.
    #[allow(clippy::cast_possible_truncation, reason = "nodes have 30 bits, graphs 32")]
    pub(super) fn rows(&self) -> Vec<u32> {
        if self.members.is_some() {
            return (0..self.graph_count as u32).collect();
        }
        let nodes = self.graphs.iter().zip(0..).filter(|(graph, _)| **graph != GONE);
        nodes.map(|(_, v)| v).collect()
    }

    /// The nodes, or the graphs of these nodes, in order.
    pub(super) fn rows_of(&self, nodes: &[u32]) -> Vec<u32> {
        let there = nodes.iter().copied().filter(|&v| self.contains(v as usize));
        let mut rows: Vec<u32> = if self.members.is_some() {
            there
                .map(|v| self.graphs[v as usize])
                .chain(self.outputs.asked.iter().copied())
                .collect()
        } else {
            there.collect()
        };
        rows.sort_unstable();
        rows.dedup();
        rows
    }

    /// Compares the predictions of some rows with what was told of them; returns the levels that their decisions need, of
    /// rows that have others.
    pub(super) fn update_outputs(&mut self, rows: &[u32]) -> Vec<(u32, u8)> {
        self.outputs.asked.clear();
        self.refresh_maxima();
        let (mut needs, width) = (vec![], self.outputs.mlp.outputs.max(1));
        for rows in rows.chunks(ROWS) {
            let (all, bounds) = self.outputs_of(rows);
            for ((&row, outputs), bound) in rows.iter().zip(all.chunks_exact(width)).zip(bounds) {
                self.outputs.tell(row, outputs, bound);
                if self.levels.most > 0 && self.outputs.classes {
                    let need = self.need(row as usize, outputs, bound);
                    if need != self.levels.needs[row as usize] {
                        needs.push((row, need));
                    }
                }
            }
        }
        needs
    }

    /// The level at which the class of a row is final, from its bound at the level that it has. It sinks by some levels at a
    /// time or not at all.
    fn need(&self, row: usize, outputs: &[f32], bound: f64) -> u8 {
        let levels = &self.levels;
        let level = if self.members.is_some() { levels.needs[row] } else { levels.of[row] };
        // No tolerance makes a class of what is not finite.
        if !are_finite(outputs) {
            return levels.needs[row];
        }
        let missing = SQRT_2 * bound / margin(outputs).max(f64::MIN_POSITIVE);
        if missing >= 1.0 {
            return level.saturating_add(levels.between(1.01 * missing).max(1)).min(levels.most);
        }
        let enough = level.saturating_sub(levels.between(1.0 / missing).saturating_sub(1));
        let now = levels.needs[row];
        if enough + 2 < now || enough > now { enough.min(now) } else { now }
    }

    /// The predictions of some nodes or graphs that exist.
    pub(super) fn predictions(&self, rows: &[u32]) -> Vec<Prediction> {
        let (all, bounds) = self.outputs_of(rows);
        let predict = |(outputs, bound): (&[f32], f64)| {
            let is_class = self.outputs.classes && are_finite(outputs);
            Prediction {
                class: is_class.then(|| largest(outputs)),
                is_final: is_class && margin(outputs) > SQRT_2 * bound,
                outputs: outputs.to_vec(),
                bound,
            }
        };
        all.chunks_exact(self.outputs.mlp.outputs.max(1)).zip(bounds).map(predict).collect()
    }

    /// The outputs of some rows, and how far each of them can be from that of the fixed point.
    fn outputs_of(&self, rows: &[u32]) -> (Vec<f32>, Vec<f64>) {
        let mlp = &self.outputs.mlp;
        let error = together(&self.errors()[self.read.clone()]) * self.to_two_norm();
        // Below what rounding allows, no tolerance is smaller.
        let least = self.least_share();
        let (mut inputs, mut pooled) = (Vec::with_capacity(rows.len() * mlp.inputs), vec![]);
        let mut errors = Vec::with_capacity(rows.len());
        for &row in rows {
            let share = if self.members.is_some() {
                self.levels.share_of_row(row as usize)
            } else {
                self.levels.share(row as usize)
            };
            let counts = self.read_row(row as usize, &mut inputs, &mut pooled);
            errors.push(error * share.max(least) * counts);
        }
        let features = self.read_features(rows, pooled);
        let outputs = mlp.forward(&inputs, features.view(), &self.readout_scratch);
        let inputs = inputs.chunks_exact(mlp.inputs.max(1));
        for ((number, input), error) in inputs.enumerate().zip(&mut errors) {
            // What is pooled is rounded once more. Features have no other error.
            let rounded = |size: f64| (size, size * f64::from(f32::EPSILON));
            let (size, rounding) = rounded(Precision::Single.size(input));
            let of_features = if mlp.features > 0 {
                let row = features.entries(number).map(|(_, x)| x.abs());
                rounded(Precision::Single.size(&row.collect::<Vec<_>>()))
            } else {
                (0.0, 0.0)
            };
            *error = mlp.error((size, *error + rounding), of_features);
        }
        (outputs, errors)
    }

    /// The features that the read-out's network reads of some rows: those of nodes, or what was pooled.
    fn read_features(&self, rows: &[u32], pooled: Vec<f32>) -> Features<f32> {
        match (self.outputs.mlp.features, &self.pools) {
            (0, _) => Features::none(rows.len()),
            (_, None) => self.node_features.select(rows),
            (width, Some(_)) => Features::Dense(
                Matrix::from_entries(rows.len(), width, pooled).expect("a row of each graph"),
            ),
        }
    }

    /// Residuals that rounding alone gives are no larger than this share of what is allowed.
    fn least_share(&self) -> f64 {
        let shares = self.layers.iter().map(|layer| layer.residual(0.0) / layer.residual(1.0));
        shares.fold(0.0, f64::max)
    }

    /// Appends what the read-out's network reads of the states of a row, and of the features of a graph; returns how often
    /// the error of a node of weight 1 counts in it.
    fn read_row(&self, row: usize, inputs: &mut Vec<f32>, features: &mut Vec<f32>) -> f64 {
        if let (Some(members), Some(pools)) = (&self.members, &self.pools) {
            return pools.read(row, members.len(row), inputs, features) * bound::UP;
        }
        self.read.clone().for_each(|layer| inputs.extend_from_slice(self.state(layer, row)));
        self.weight(row)
    }

    /// `‖·‖₂` of an error, in terms of the norm in which `f_a` contracts.
    fn to_two_norm(&self) -> f64 {
        let entries = self.outputs.mlp.inputs as f64;
        if self.layers[0].sensitivity.weighing.is_largest_entry() { entries.sqrt() } else { 1.0 }
    }

    /// What the prediction of a node rests on.
    ///
    /// # Errors
    ///
    /// [`EventError::UnknownNode`]
    pub fn explain(&self, node: usize) -> Result<Explanation, EventError> {
        if !self.contains(node) {
            return Err(EventError::UnknownNode { node });
        }
        let row = if self.members.is_some() { self.graphs[node] as usize } else { node };
        let last = self.layers.len() - 1;
        let own = self.state(last, node).to_vec();
        let width = own.len();
        let mut neighbours: Vec<(usize, f64)> = vec![];
        if self.members.is_none() {
            let mut read = vec![];
            self.read_row(node, &mut read, &mut vec![]);
            #[allow(clippy::cast_possible_truncation, reason = "nodes have 30 bits")]
            let features = self.read_features(&[node as u32], vec![]);
            let outputs = self.outputs.mlp.forward(&read, features.view(), &self.readout_scratch);
            for u in self.neighbours(node).collect::<Vec<_>>() {
                let without = self.evaluate_without(last, node, u);
                let mut other = read.clone();
                let at = other.len() - width;
                other[at..].copy_from_slice(&without);
                let moved =
                    self.outputs.mlp.forward(&other, features.view(), &self.readout_scratch);
                let squares = moved.iter().zip(&outputs).map(|(a, b)| f64::from(a - b).powi(2));
                neighbours.push((u, squares.sum::<f64>().sqrt()));
            }
        }
        neighbours.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let residuals = self.residuals.iter().map(|all| f64::from(all[node])).collect();
        Ok(Explanation { prediction: self.predict(row)?, residuals, neighbours })
    }
}

fn are_finite(outputs: &[f32]) -> bool {
    outputs.iter().all(|output| output.is_finite())
}

/// How much larger the largest output is than every other. While `‖z − z*‖₂` is at most `1/√2` of it, `z*` has its largest
/// entry at the same place: `(z_i − z_j) − (z*_i − z*_j)` is at most `√2 ‖z − z*‖₂`.
fn margin(outputs: &[f32]) -> f64 {
    let best = largest(outputs);
    let others = outputs.iter().enumerate().filter(|(i, _)| *i != best);
    let margins = others.map(|(_, &z)| f64::from(outputs[best]) - f64::from(z));
    margins.fold(f64::INFINITY, f64::min)
}
