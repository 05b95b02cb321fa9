//! One pass over the training data.

use std::borrow::Cow;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

use super::report::EpochSums;
use super::standardize::coordinates;
use super::update::MiniBatch;
use super::{ConstraintReport, EpochReport, Observer, Stage, StepProgress, Trainer};
use crate::evaluate::Histogram;
use crate::{Error, Matrix, Scalar};

/// How many multipliers a distribution is made of, at most.
const SHOWN: usize = 1 << 16;

impl<S: Scalar> Trainer<'_, S> {
    /// One pass over the training data; `measured`: with the nodes that meet the constraints, of so many graphs at least if
    /// there are that many.
    pub(super) fn epoch(
        &mut self,
        measured: Option<usize>,
        observer: &mut dyn Observer<S>,
    ) -> Result<EpochReport, Error> {
        let graphs = self.data.training_graphs();
        let mut sums = EpochSums::default();
        sums.constraints = measured.map(|least| ConstraintReport::of_some(least, graphs.graphs()));
        let stage = Stage::Update;
        let mut step = StepProgress::after(self.state.epoch + 1, stage);
        self.state.optimizer.undecayed = self.model.parameters().undecayed().into();
        if self.plan.config().standardize {
            let states = self.all_rows(&self.state.variables.states);
            self.state.optimizer.coordinates = coordinates(
                self.model,
                graphs,
                (&self.state.variables.weights, &states),
                &self.scratch,
            );
        }
        match self.plan.config().batch_size {
            Some(size) if size < graphs.graphs() => {
                let mut counts = self.state.optimizer.slots.node_counts();
                let pass = graphs.graphs().div_ceil(size);
                step.total = self.plan.config().updates_per_epoch.unwrap_or(pass);
                let drawn = self.drawn(graphs.graphs(), size, step.total);
                let mut batches = drawn.iter().map(|members| MiniBatch::new(graphs, members));
                let mut next = batches.next();
                while let Some(batch) = next.take() {
                    // Once per pass: all nodes of a pass have moved as often when it begins.
                    if (step.number - 1).is_multiple_of(pass) {
                        counts = self.state.optimizer.slots.node_counts();
                    }
                    // Idle threads put the next mini-batch together.
                    rayon::in_place_scope(|threads| {
                        threads.spawn(|_| next = batches.next());
                        self.update_some(batch, &counts, &mut sums, (step, &mut *observer))
                    })?;
                    step.number += 1;
                }
            }
            _ => self.update_all(&mut sums, (step, observer))?,
        }
        self.state.epoch += 1;
        let steps = self.state.optimizer.slots.find_counter("weights.steps");
        let lr = steps.map(|steps| self.plan.config().solver.weights().lr_at(steps));
        let (sizes, norms) = (self.multiplier_sizes(), self.gradient_norms());
        let mut report = sums.report(self.state.epoch, sizes, norms, lr);
        if measured.is_some() {
            let multipliers = self.shown_multipliers();
            let count: usize = multipliers.iter().map(|of| of.as_slice().len()).sum();
            let all = multipliers.iter().flat_map(Matrix::as_slice);
            let some = all.step_by(count.div_ceil(SHOWN).max(1));
            report.histograms.multipliers = Histogram::of(some.map(|x| x.f64()));
        }
        Ok(report)
    }

    /// The multipliers of all nodes; of a graph in parts, of some that are evenly spread.
    fn shown_multipliers(&self) -> Cow<'_, [Matrix<S>]> {
        let multipliers = &self.state.variables.multipliers;
        match self.data.training_graphs().across() {
            None => self.all_rows(multipliers),
            Some(share) => {
                let some =
                    |own: &Matrix<S>| share.concatenate_rows(&own.select(share.sample(SHOWN)));
                multipliers.iter().map(some).collect()
            }
        }
    }

    /// The training graphs of every mini-batch of this epoch, pass by pass: a function of seed and epoch alone.
    fn drawn(&self, graphs: usize, size: usize, batches: usize) -> Vec<Vec<usize>> {
        let mut random = ChaCha8Rng::seed_from_u64(self.plan.config().seed);
        random.set_stream(1 + self.state.epoch as u64);
        let mut drawn = Vec::with_capacity(batches);
        while drawn.len() < batches {
            let mut order: Vec<usize> = (0..graphs).collect();
            order.shuffle(&mut random);
            drawn.extend(order.chunks(size).take(batches - drawn.len()).map(<[usize]>::to_vec));
        }
        drawn
    }
}
