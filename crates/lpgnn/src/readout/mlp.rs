use std::ops::Range;

use super::Loss;
use crate::activation::differentiate;
use crate::graph::{FeaturesView, MOST_GROUPS};
use crate::network::{Dropout, Layer, Network, Passed, Stack};
use crate::numeric::{
    Factors, Finish, Packed, Scratch, Spare, narrow_rows, padded, product, widen_rows,
};
use crate::parameters::{Parameters, Role};
use crate::transition::{FeatureWeights, NetworkSizes, Sizes, for_each_group, reach, split_rows};
use crate::{Matrix, Scalar};

/// A multilayer perceptron over rows: what a read-out predicts from a state, or from what it has
/// pooled.
///
/// Weights: `W: [inputs, outputs]`, `b: [outputs]` of every layer; row by row. If it
/// [reads features](Self::reading_features) `l` of its rows, the first layer is `σ(Wᵀ z + Fᵀ l + b)`, and `F: [features,
/// outputs]` comes first.
#[derive(Clone, Debug)]
pub struct Mlp {
    inputs: usize,
    features: usize,
    outputs: usize,
    network: Network,
    dropout: f64,
    layout: Parameters,
}

/// What an [`Mlp`] reads.
#[derive(Debug)]
pub struct MlpInput<'a, S = f32> {
    /// As many components of every row as it has inputs.
    pub rows: &'a [S],
    /// The features of the same rows, if it reads them; none: they are zero.
    pub features: Option<FeaturesView<'a, S>>,
    /// The seed of the units that are left out, if any.
    pub dropout: Option<u64>,
}

impl<S> Clone for MlpInput<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<S> Copy for MlpInput<'_, S> {}

/// Rows without features, of which no unit is left out.
impl<'a, S> From<&'a [S]> for MlpInput<'a, S> {
    fn from(rows: &'a [S]) -> Self {
        Self { rows, features: None, dropout: None }
    }
}

/// Where an [`Mlp`] leaves its gradients.
#[derive(Debug)]
pub struct MlpGradients<'a, S = f32> {
    /// `∂𝓛/∂θ`, added to, if wanted.
    pub weights: Option<&'a mut [S]>,
    /// `∂𝓛/∂` rows, set, if wanted.
    pub rows: Option<&'a mut [S]>,
    /// `∂𝓛/∂` features, of which all columns are stored, set, if wanted and read.
    pub features: Option<&'a mut [S]>,
}

/// Rows that go through the network together.
const BLOCK: usize = 256;
/// Rows below which they are not worth a second thread.
const GROUP: usize = 160;

impl Mlp {
    /// A network from `inputs` components to `outputs` classes or values.
    ///
    /// In training, each hidden unit is left out with probability `dropout`, and the others count
    /// `1 / (1 − dropout)` times.
    pub fn new(inputs: usize, outputs: usize, network: Network, dropout: f64) -> Self {
        let none = Parameters::new();
        let mlp = Self { inputs, features: 0, outputs, network, dropout, layout: none };
        mlp.reading_features(0)
    }

    /// The same network, whose first layer also reads so many features of every row.
    #[must_use]
    pub fn reading_features(self, features: usize) -> Self {
        let layers = self.network.layers(self.outputs);
        let widths: Vec<usize> = layers.iter().map(|(width, _)| *width).collect();
        let mut first = Parameters::new().layer("0", widths[0]);
        if features > 0 {
            first = first.weight("features", Role::Features, features);
        }
        let first = first.weight("", Role::Input, self.inputs).bias();
        Self { features, layout: Network::declare_above(first, &widths), ..self }
    }

    /// Its parameters.
    pub fn parameters(&self) -> &Parameters {
        &self.layout
    }

    /// Components of a row.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// Components of the features of a row that it reads.
    pub fn features(&self) -> usize {
        self.features
    }

    /// Classes or values that come out.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// The predictions of all rows.
    pub fn forward<S: Scalar>(
        &self,
        weights: &[S],
        input: MlpInput<'_, S>,
        predictions: &mut Matrix<S>,
        scratch: &Scratch<S>,
    ) {
        let none = MlpGradients { weights: None, rows: None, features: None };
        self.run(weights, &Work { input, upstream: None }, predictions, none, scratch);
    }

    /// The vector–Jacobian product, given `∂𝓛/∂` predictions.
    pub fn backward<S: Scalar>(
        &self,
        weights: &[S],
        input: MlpInput<'_, S>,
        d_predictions: &Matrix<S>,
        gradients: MlpGradients<'_, S>,
        scratch: &Scratch<S>,
    ) {
        let mut again = scratch.matrix(d_predictions.rows(), self.outputs);
        let work = Work { input, upstream: Some(Upstream::Given(d_predictions)) };
        self.run(weights, &work, &mut again, gradients, scratch);
    }

    /// Both at once, with the loss between them, block by block.
    pub(crate) fn pass<S: Scalar>(
        &self,
        weights: &[S],
        input: MlpInput<'_, S>,
        loss: Loss<'_, S>,
        predictions: &mut Matrix<S>,
        gradients: MlpGradients<'_, S>,
        scratch: &Scratch<S>,
    ) -> f64 {
        let work = Work { input, upstream: Some(Upstream::Loss(loss)) };
        self.run(weights, &work, predictions, gradients, scratch)
    }

    /// All rows through the network, in groups that depend on their number alone.
    fn run<S: Scalar>(
        &self,
        weights: &[S],
        work: &Work<'_, S>,
        predictions: &mut Matrix<S>,
        gradients: MlpGradients<'_, S>,
        scratch: &Scratch<S>,
    ) -> f64 {
        let packed = PackedWeights {
            stack: self.stack(weights),
            features: work.input.features.and_then(|view| self.feature_weights(weights, view)),
            back: gradients.features.as_ref().map(|_| self.way_back(weights)),
        };
        let rows = predictions.rows();
        let size = rows.div_ceil((rows / GROUP).clamp(1, MOST_GROUPS)).max(1);
        let ranges: Vec<Range<usize>> =
            (0..rows.max(1)).step_by(size).map(|start| start..(start + size).min(rows)).collect();
        let partial = if gradients.weights.is_some() { self.layout.padded_len() } else { 0 };
        let mut y = split_rows(predictions.as_mut_slice(), self.outputs, &ranges).into_iter();
        let mut d = gradients.rows.map(|d| split_rows(d, self.inputs, &ranges).into_iter());
        let mut d_l = gradients.features.map(|d| split_rows(d, self.features, &ranges).into_iter());
        let mut groups: Vec<RowGroup<'_, S>> = ranges
            .iter()
            .map(|range| RowGroup {
                rows: range.clone(),
                predictions: y.next().unwrap_or_default(),
                d_rows: d.as_mut().and_then(Iterator::next),
                d_features: d_l.as_mut().and_then(Iterator::next),
                partial: scratch.zeros(partial),
                loss: 0.0,
            })
            .collect();
        for_each_group(&mut groups, |group| {
            for start in group.rows.clone().step_by(BLOCK) {
                let block = start..(start + BLOCK).min(group.rows.end);
                self.block(&packed, block, work, group, scratch);
            }
        });
        if let Some(d_weights) = gradients.weights {
            self.layout.fold(&groups.iter().map(|group| &group.partial[..]), d_weights);
        }
        groups.iter().map(|group| group.loss).sum()
    }

    /// The same with these weights packed once, for a few rows at a time, with features of this form.
    pub(crate) fn packed<S: Scalar>(
        &self,
        weights: &[S],
        form: FeaturesView<'_, S>,
    ) -> PackedMlp<S> {
        let reach = reach(&self.layout, weights, false);
        PackedMlp {
            stack: self.stack(weights),
            feature_weights: self.feature_weights(weights, form).map(FeatureWeights::into_owned),
            inputs: self.inputs,
            features: self.features,
            outputs: self.outputs,
            lipschitz: [Role::Input, Role::Features].map(|role| reach(role).into_iter().sum()),
            sizes: NetworkSizes::new(&self.layout, &self.network.layers(self.outputs), weights),
        }
    }

    fn stack<S: Scalar>(&self, weights: &[S]) -> Stack<S> {
        let layers = self.network.layers(self.outputs).into_iter().enumerate();
        let first = self.layout.of_role(Role::Features).count();
        let layer =
            |(k, (_, activation))| Layer::new(&self.layout, first + 2 * k, activation, weights);
        Stack { layers: layers.map(layer).collect() }
    }

    /// `F`, for features of this form; none if it reads none.
    fn feature_weights<'w, S: Scalar>(
        &self,
        weights: &'w [S],
        form: FeaturesView<'_, S>,
    ) -> Option<FeatureWeights<'w, S>> {
        let number = self.layout.of_role(Role::Features).next()?;
        Some(FeatureWeights::new(&self.layout, number, weights, form))
    }

    /// `Fᵀ`; of no rows if it reads no features.
    fn way_back<S: Scalar>(&self, weights: &[S]) -> Packed<S> {
        match self.layout.of_role(Role::Features).next() {
            None => Packed::transposed(&[], 0, 0),
            Some(number) => {
                let units = self.layout.columns(number);
                Packed::transposed(self.layout.of(number, weights), units, self.features)
            }
        }
    }

    fn block<S: Scalar>(
        &self,
        packed: &PackedWeights<'_, S>,
        block: Range<usize>,
        work: &Work<'_, S>,
        group: &mut RowGroup<'_, S>,
        scratch: &Scratch<S>,
    ) {
        let (rows, stride) = (block.len(), padded(self.outputs));
        let input = &work.input;
        let z = &input.rows[block.start * self.inputs..block.end * self.inputs];
        let features = packed.features.as_ref().zip(input.features);
        let drop = input.dropout.filter(|_| self.dropout > 0.0).map(|seed| Dropout {
            rate: self.dropout,
            seed,
            first: block.start,
        });
        let add = |sums: &mut [S]| {
            if let Some((weights, features)) = features {
                weights.add(features, block.clone(), sums);
            }
        };
        let also = features.is_some().then_some(&add as &dyn Fn(&mut [S]));
        let outputs = packed.stack.forward_with(rows, (z, self.inputs), also, drop, scratch);
        let y = &outputs[outputs.len() - 1].value;
        let offset = block.start - group.rows.start;
        let predictions = &mut group.predictions[offset * self.outputs..];
        narrow_rows(y, stride, predictions, self.outputs);
        let Some(upstream) = &work.upstream else { return };
        let mut d = scratch.take(rows * stride);
        match upstream {
            Upstream::Loss(Loss { supervision, factor }) => {
                group.loss +=
                    supervision.loss(block.start, self.outputs, stride, y, *factor, &mut d);
            }
            Upstream::Given(d_predictions) => {
                let given = &d_predictions.as_slice()[block.start * self.outputs..];
                widen_rows(&given[..rows * self.outputs], self.outputs, &mut d, stride);
            }
        }
        let mut partial = (!group.partial.is_empty()).then_some(&mut group.partial[..]);
        let d_z = group
            .d_rows
            .as_deref_mut()
            .map(|d| (&mut d[offset * self.inputs..][..rows * self.inputs], Finish::Set));
        differentiate(self.network.output_activation, y, &mut d);
        let passed = Passed { rows, z, z_stride: self.inputs, outputs: &outputs, dropout: drop };
        let to = partial.as_deref_mut();
        let d_first = packed.stack.backward(&self.layout, &passed, d, to, d_z, scratch);
        if let (Some((weights, features)), Some(partial)) = (features, partial) {
            weights.gradient(&self.layout, features, block.clone(), &d_first, partial);
        }
        if let (Some(b), Some(d_features)) = (&packed.back, group.d_features.as_deref_mut()) {
            let d_features = &mut d_features[offset * self.features..][..rows * self.features];
            let stride = padded(packed.stack.layers[0].outputs);
            let factors = Factors { a: &d_first, stride, b };
            product(rows, &[factors], d_features, self.features, Finish::Set);
        }
    }
}

/// The weights of an [`Mlp`], for both directions.
struct PackedWeights<'w, S: Scalar> {
    stack: Stack<S>,
    features: Option<FeatureWeights<'w, S>>,
    /// `Fᵀ`, where the gradient of features is wanted.
    back: Option<Packed<S>>,
}

/// An [`Mlp`] with its weights, and with bounds on what it makes of errors.
#[derive(Debug)]
pub(crate) struct PackedMlp<S: Scalar> {
    stack: Stack<S>,
    feature_weights: Option<FeatureWeights<'static, S>>,
    pub(crate) inputs: usize,
    pub(crate) features: usize,
    pub(crate) outputs: usize,
    /// How much larger than the error of a row, or of its features, that of its prediction can be, both in `‖·‖₂`.
    lipschitz: [f64; 2],
    sizes: NetworkSizes,
}

impl<S: Scalar> PackedMlp<S> {
    /// The predictions of some rows with these features.
    pub(crate) fn forward(
        &self,
        rows: &[S],
        features: FeaturesView<'_, S>,
        scratch: &Scratch<S>,
    ) -> Vec<S> {
        let count = rows.len() / self.inputs.max(1);
        let add = |sums: &mut [S]| {
            if let Some(weights) = &self.feature_weights {
                weights.add(features, 0..count, sums);
            }
        };
        let also = self.feature_weights.is_some().then_some(&add as &dyn Fn(&mut [S]));
        let outputs = self.stack.forward_with(count, (rows, self.inputs), also, None, scratch);
        let mut predictions = vec![S::ZERO; count * self.outputs];
        let y = &outputs[outputs.len() - 1].value;
        narrow_rows(y, padded(self.outputs), &mut predictions, self.outputs);
        predictions
    }

    /// `‖·‖₂` of what the prediction of a row can be wrong by: how large the row and its features are, and what they are
    /// wrong by.
    pub(crate) fn error(&self, row: (f64, f64), features: (f64, f64)) -> f64 {
        let terms = self.inputs.max(self.features);
        let sizes = Sizes { feature: row.0, edge_feature: features.0, terms, ..Sizes::default() };
        let [of_row, of_features] = self.lipschitz;
        let rounding = self.sizes.rounding(sizes, (0.0, 0.0), None).error;
        of_row * row.1 + of_features * features.1 + rounding
    }
}

/// What goes through the network, and what it comes back with.
struct Work<'a, S> {
    input: MlpInput<'a, S>,
    upstream: Option<Upstream<'a, S>>,
}

/// Where `∂𝓛/∂` predictions come from.
enum Upstream<'a, S> {
    Loss(Loss<'a, S>),
    Given(&'a Matrix<S>),
}

struct RowGroup<'a, S: Scalar> {
    rows: Range<usize>,
    predictions: &'a mut [S],
    d_rows: Option<&'a mut [S]>,
    d_features: Option<&'a mut [S]>,
    partial: Spare<'a, S>,
    loss: f64,
}
