//! What a saved model predicts of data, and why.

use std::sync::Arc;

use super::SavedModel;
use crate::data::{Dataset, TargetColumn};
use crate::graph::{Communicator, GraphBatch, Level};
use crate::inference::{
    Explanation, FixedPoint, Inference, InferenceProgress, Question, Score, distances, explain,
};
use crate::numeric::worse;
use crate::readout::largest;
use crate::transition::Transition;
use crate::{Error, Matrix, Scratch, memory};

/// The number of iterations per layer that a model's own settings can ask for in prediction: a
/// model from elsewhere does not decide how long this machine computes.
pub const MOST_ITERATIONS: usize = 100_000;

/// The predictions of a model.
#[derive(Debug)]
pub struct Predictions {
    /// The graphs in numbers, with their targets if they were asked for.
    pub batch: GraphBatch<f32>,
    /// The states that were found, if they were asked for, and how well they meet `x = f_a(x)`.
    pub fixed_point: FixedPoint<f32>,
    /// A row for every node or graph: logits of the classes, or values.
    pub outputs: Matrix<f32>,
}

impl Predictions {
    /// Whether all outputs of a node or graph are finite; if not, it has no prediction.
    pub fn is_finite(&self, row: usize) -> bool {
        self.outputs.row(row).iter().all(|x| x.is_finite())
    }

    /// That there is a prediction for every node or graph.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`], which says how many outputs are not finite.
    pub fn check_finite(&self) -> Result<(), Error> {
        let rows = self.outputs.rows();
        match (0..rows).filter(|&row| !self.is_finite(row)).count() {
            0 => Ok(()),
            count => Err(Error::Mismatch(format!(
                "{count} of {rows} outputs are infinite or not a number: they are not predictions"
            ))),
        }
    }

    /// States from which nothing finite follows have not converged, whatever their residual.
    fn without_false_convergence(mut self, task: Level) -> Self {
        for graph in 0..self.batch.graphs() {
            let rows = match task {
                Level::Node => self.batch.nodes_of(graph),
                Level::Graph => graph..graph + 1,
            };
            let finite = rows.into_iter().all(|row| self.is_finite(row));
            let share = self.batch.across();
            let finite = share.map_or(finite, |share| !share.communicator().any(!finite));
            self.fixed_point.converged[graph] &= finite;
        }
        self
    }
}

impl SavedModel {
    /// Predicts nodes or graphs. With `targets`, the batch has those of `dataset`.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`], [`Error::UnknownCategory`] when the data do not fit the model.
    pub fn predict(&self, dataset: &Dataset, targets: bool) -> Result<Predictions, Error> {
        self.predict_observed(dataset, targets, &mut |_| ())
    }

    /// The same; `tell` is called on the way, on this thread.
    ///
    /// # Errors
    ///
    /// Those of [`predict`](Self::predict).
    pub fn predict_observed(
        &self,
        dataset: &Dataset,
        targets: bool,
        tell: &mut dyn FnMut(InferenceProgress),
    ) -> Result<Predictions, Error> {
        self.predict_shared(dataset, targets, None, tell)
    }

    /// The same by all ranks together, if there are several; all have all predictions.
    ///
    /// # Errors
    ///
    /// Those of [`predict`](Self::predict).
    pub fn predict_shared(
        &self,
        dataset: &Dataset,
        targets: bool,
        communicator: Option<&Arc<dyn Communicator>>,
        tell: &mut dyn FnMut(InferenceProgress),
    ) -> Result<Predictions, Error> {
        let batch = self.batch(dataset, targets)?;
        let batch = match communicator {
            None => batch,
            Some(communicator) => batch.shared_by(communicator),
        };
        self.functions().check(&batch)?;
        let scratch = Scratch::new();
        let inference = self.inference(&batch)?;
        let of_member = |weights| {
            let found =
                inference.states_observed(self.functions(), weights, &batch, &scratch, &mut *tell);
            let outputs = found.outputs(self.functions(), weights, &batch, &scratch);
            (found, outputs)
        };
        let (fixed_point, outputs) =
            self.together(self.member_weights().map(of_member).collect())?;
        Ok(Predictions { batch, fixed_point, outputs }.without_false_convergence(self.task))
    }

    /// The same in one process and without the states, so that of many small graphs only a few at a time are in memory.
    ///
    /// # Errors
    ///
    /// Those of [`predict`](Self::predict).
    pub fn predict_without_states(
        &self,
        dataset: &Dataset,
        targets: bool,
        tell: &mut dyn FnMut(InferenceProgress),
    ) -> Result<Predictions, Error> {
        let (batch, scratch) = (self.batch(dataset, targets)?, Scratch::new());
        let inference = self.inference(&batch)?;
        let of_member =
            |weights| inference.outputs(self.functions(), weights, &batch, &scratch, &mut *tell);
        let (fixed_point, outputs) =
            self.together(self.member_weights().map(of_member).collect())?;
        Ok(Predictions { batch, fixed_point, outputs }.without_false_convergence(self.task))
    }

    /// How far the states of every graph are from their fixed point at most, by their residuals: see
    /// [`Certificate`](crate::inference::Certificate).
    /// Infinite where nothing is known. Of an ensemble, the largest of its members'.
    ///
    /// # Errors
    ///
    /// Those of [`Certificate::new`](crate::inference::Certificate::new).
    pub fn distances(&self, predictions: &Predictions) -> Result<Vec<f64>, Error> {
        let (batch, residuals) = (&predictions.batch, &predictions.fixed_point.residuals);
        let mut largest = vec![0.0_f64; residuals.len()];
        for weights in self.member_weights() {
            let distances = distances(self.functions(), weights, batch, residuals)?;
            largest
                .iter_mut()
                .zip(distances)
                .for_each(|(largest, d)| *largest = worse(*largest, d));
        }
        Ok(largest)
    }

    /// Data that it can read, in numbers.
    fn batch(&self, dataset: &Dataset, targets: bool) -> Result<GraphBatch, Error> {
        let batch = if targets {
            self.check_target_names(dataset)?;
            self.encoding.batch(dataset)?
        } else {
            self.encoding.batch_without_targets(dataset)?
        };
        self.functions().check(&batch)?;
        Ok(batch)
    }

    /// That real targets are in the order of its outputs, where their names say so.
    fn check_target_names(&self, dataset: &Dataset) -> Result<(), Error> {
        let Some(TargetColumn::Values { names, .. }) = self.task.targets(dataset) else {
            return Ok(());
        };
        let misplaced =
            |(name, own): (&String, &String)| name != own && self.value_names.contains(name);
        if names.iter().zip(&self.value_names).any(misplaced) {
            return Err(Error::Mismatch(format!(
                "the targets are {}, but the model predicts {}, in this order",
                names.join(", "),
                self.value_names.join(", ")
            )));
        }
        Ok(())
    }

    /// The states of graphs that it can read.
    fn states(
        &self,
        batch: &GraphBatch,
        scratch: &Scratch,
        tell: &mut dyn FnMut(InferenceProgress),
    ) -> Result<FixedPoint, Error> {
        let inference = self.inference(batch)?;
        Ok(inference.states_observed(self.functions(), &self.weights, batch, scratch, tell))
    }

    /// How the states of these graphs are found, with a limit to the iterations.
    fn inference(&self, batch: &GraphBatch) -> Result<Inference, Error> {
        let inference = match self.max_iter {
            Some(max_iter) => self.training.inference.with_max_iter(max_iter),
            None => self.training.inference.at_most(MOST_ITERATIONS),
        };
        let fits = self.check_memory(&inference, batch.nodes());
        match batch.across() {
            None => fits?,
            Some(share) => share.agree(fits)?,
        }
        Ok(inference)
    }

    /// Explains what it predicts of a node or graph: the class it predicts, or output `output`; with the graph that the item
    /// is or belongs to, in which the explanation numbers nodes.
    ///
    /// # Errors
    ///
    /// As [`predict`](Self::predict) and [`explain`].
    pub fn explain(
        &self,
        dataset: &Dataset,
        item: usize,
        output: Option<usize>,
        edges: usize,
    ) -> Result<(usize, Explanation), Error> {
        self.check_single("an explanation")?;
        let model = self.functions();
        let batch = self.encoding.batch_without_targets(dataset)?;
        model.check(&batch)?;
        let items = self.task.rows(&batch);
        if item >= items {
            return Err(Error::Mismatch(format!(
                "{} {item} does not exist: there are {items} {}, counted from 0",
                self.task.as_str(),
                self.task.plural()
            )));
        }
        let (graph, item) = match self.task {
            Level::Graph => (item, 0),
            Level::Node => {
                let graph = batch.node_starts().partition_point(|&start| start <= item) - 1;
                (graph, item - batch.node_starts()[graph])
            }
        };
        let batch = batch.select(&[graph]);
        let scratch = Scratch::new();
        let found = self.states(&batch, &scratch, &mut |_| ())?;
        if found.failures() > 0 {
            return Err(Error::Mismatch(format!(
                "the states of graph {graph} have not converged (|x - f_a| is {:.1e} at most), so there is no fixed \
                 point from which to explain a prediction",
                found.largest_residual()
            )));
        }
        let outputs = found.outputs(model, &self.weights, &batch, &scratch);
        let score = match self.classes() {
            Some(_) => Score::Class(output.unwrap_or_else(|| largest(outputs.row(item)))),
            None => Score::Value(output.unwrap_or(0)),
        };
        let question = Question { item, score, edges };
        Ok((graph, explain(model, &self.weights, &batch, &found, question, &scratch)?))
    }

    fn check_memory(&self, inference: &Inference, nodes: usize) -> Result<(), Error> {
        let state_dim = self.functions().transitions().map(Transition::state_dim).sum();
        let copies = inference.copies();
        let what = format_args!("finding states of {state_dim} components for {nodes} nodes");
        memory::require(memory::bytes_of::<f32>(&[nodes, state_dim, copies]), what)
    }
}
