//! A linear classifier of how often something occurs in a graph.

use std::fmt::Debug;
use std::sync::Arc;

use lpgnn::graph::{GraphBatch, Level};
use lpgnn::parameters::{Init, Parameters, Role};
use lpgnn::readout::{Readout, ReadoutGradients, ReadoutInput};
use lpgnn::registry::ReadoutSpec;
use lpgnn::{Error, Matrix, Scalar, Scratch};

use crate::known::Known;
use crate::structure::Structure;

/// What is counted in a graph: `φ(g)`, whose few entries that are not zero are told as column and value, a column
/// perhaps more than once. It depends on the graph alone, so that new graphs get the same.
pub(crate) trait Counts: Debug + Send + Sync {
    fn of(&self, graph: &Structure) -> Vec<(u64, f64)>;
}

/// `y_g = Wᵀ φ(g) / ‖φ(g)‖ + b`, which is what a linear classifier makes of the normalised kernel
/// `⟨φ(g), φ(g')⟩ / ‖φ(g)‖ ‖φ(g')‖`.
///
/// Columns are hashed into so many buckets, so nothing has to be known of the data, neither in training nor later; a
/// model is `buckets × outputs` weights. States are not read.
#[derive(Debug)]
pub(crate) struct HistogramReadout<C> {
    counts: C,
    buckets: usize,
    /// What the model gives it to read, and it does not.
    inputs: usize,
    features: usize,
    parameters: Parameters,
    known: Known<(u32, f32)>,
}

/// The normalised entries of a graph: column and value.
type Row = Arc<[(u32, f32)]>;

/// Buckets, unless the option of this name says otherwise.
const BUCKETS: usize = 1 << 16;
const MOST_BUCKETS: usize = u32::MAX as usize;

impl<C: Counts> HistogramReadout<C> {
    /// For what a model asks for, with the option `buckets`.
    pub(crate) fn new(counts: C, spec: &ReadoutSpec<'_>) -> Result<Self, Error> {
        let buckets = spec.model.readout_options.count("buckets", 1..=MOST_BUCKETS, BUCKETS)?;
        let parameters = Parameters::new().layer("0", spec.outputs);
        // Zero is where a linear classifier has nothing to say yet.
        let parameters = parameters.weight("", Role::Hidden, buckets).starting(Init::Zeros).bias();
        let (inputs, features) = (spec.inputs, spec.features);
        Ok(Self { counts, buckets, inputs, features, parameters, known: Known::default() })
    }

    /// `φ(g) / ‖φ(g)‖` of every graph.
    fn rows<S: Scalar>(&self, batch: &GraphBatch<S>) -> Vec<Row> {
        let row = |graph| {
            let graph = Structure::of(batch, graph);
            self.known.of(&graph, || self.normalized(&graph))
        };
        (0..batch.graphs()).map(row).collect()
    }

    #[allow(clippy::cast_possible_truncation, reason = "buckets have 32-bit numbers")]
    fn normalized(&self, graph: &Structure) -> Row {
        let bucket = |(column, value): (u64, f64)| ((column % self.buckets as u64) as u32, value);
        let mut entries: Vec<(u32, f64)> = self.counts.of(graph).into_iter().map(bucket).collect();
        entries.sort_unstable_by_key(|&(column, _)| column);
        entries.dedup_by(|(column, value), (before, sum)| {
            let same = column == before;
            *sum += if same { *value } else { 0.0 };
            same
        });
        let length = entries.iter().map(|(_, value)| value * value).sum::<f64>().sqrt();
        let scale = if length > 0.0 { 1.0 / length } else { 0.0 };
        entries.into_iter().map(|(column, value)| (column, (value * scale) as f32)).collect()
    }
}

impl<S: Scalar, C: Counts> Readout<S> for HistogramReadout<C> {
    fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    fn level(&self) -> Level {
        Level::Graph
    }

    fn inputs(&self) -> usize {
        self.inputs
    }

    fn features(&self) -> usize {
        self.features
    }

    fn forward(
        &self,
        weights: &[S],
        input: ReadoutInput<'_, S>,
        predictions: &mut Matrix<S>,
        _: &Scratch<S>,
    ) {
        let (w, b) = (self.parameters.of(0, weights), self.parameters.of(1, weights));
        for (graph, row) in self.rows(input.batch).iter().enumerate() {
            let y = predictions.row_mut(graph);
            y.copy_from_slice(b);
            for &(column, value) in &**row {
                let w = &w[column as usize * b.len()..];
                y.iter_mut().zip(w).for_each(|(y, &w)| *y += S::of_f32(value) * w);
            }
        }
    }

    fn backward(
        &self,
        _: &[S],
        input: ReadoutInput<'_, S>,
        d_predictions: &Matrix<S>,
        gradients: ReadoutGradients<'_, S>,
        _: &Scratch<S>,
    ) {
        // φ has no derivative: colours and patterns are what they are.
        let Some(d_weights) = gradients.weights else { return };
        let (d_w, d_b) = d_weights.split_at_mut(self.parameters.range(0).len());
        for (graph, row) in self.rows(input.batch).iter().enumerate() {
            let d = d_predictions.row(graph);
            d_b.iter_mut().zip(d).for_each(|(to, &d)| *to += d);
            for &(column, value) in &**row {
                let d_w = &mut d_w[column as usize * d.len()..];
                d_w.iter_mut().zip(d).for_each(|(to, &d)| *to += S::of_f32(value) * d);
            }
        }
    }
}
