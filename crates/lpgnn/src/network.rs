//! The feed-forward networks `h` and `f_r` are made of: layers, their weights in one flat slice,
//! and both directions through them.

use crate::Scalar;
use crate::activation::{Activation, activate};
use crate::numeric::{
    Arithmetic, Factors, Finish, Kernel, LANES, Lanes, Numbers, Packed, Scratch, Spare, dispatch,
    padded, product, transposed_product,
};
use crate::parameters::{Parameters, Role};

/// The weights of `h` that multiply states, and so carry them from hop to hop.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum StateWeights {
    /// Initialised randomly, like all other weights, and trained.
    #[default]
    Random,
    /// Initialised to the identity, scaled down to the Lipschitz bound, and trained.
    ///
    /// From the first update on a node passes on what it has received, where random matrices mix it
    /// anew at every hop until nothing is left of it.
    Identity,
    /// The identity, scaled down to the Lipschitz bound, and not trained.
    ///
    /// How features are read is learnt, but not how states are passed on: few targets teach nothing
    /// better.
    Frozen,
}

/// The shape of a feed-forward network.
///
/// `y = σ_o(W_n σ(… σ(W_1 z + b_1) …) + b_n)`, with as many hidden layers as there are widths.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Network {
    /// Units of every hidden layer; none makes the network linear but for its output activation.
    pub hidden_dims: Vec<usize>,
    /// `σ`, of the hidden units.
    pub activation: Activation,
    /// `σ_o`, of the output.
    pub output_activation: Activation,
}

impl Network {
    /// One hidden layer of tanh units, the output left as it is.
    pub fn one_hidden(units: usize) -> Self {
        Self {
            hidden_dims: vec![units],
            activation: Activation::Tanh,
            output_activation: Activation::Identity,
        }
    }

    /// The width and activation of every layer, the last one with `outputs` units.
    pub(crate) fn layers(&self, outputs: usize) -> Vec<(usize, Activation)> {
        let hidden = self.hidden_dims.iter().map(|&width| (width, self.activation));
        hidden.chain([(outputs, self.output_activation)]).collect()
    }

    /// Declares the layers of such widths above a first one, each with its bias.
    pub(crate) fn declare_above(mut parameters: Parameters, widths: &[usize]) -> Parameters {
        for (k, pair) in widths.windows(2).enumerate() {
            let layer = parameters.layer((k + 1).to_string(), pair[1]);
            parameters = layer.weight("", Role::Hidden, pair[0]).bias();
        }
        parameters
    }
}

/// A layer with its weights packed for both directions.
#[derive(Debug)]
pub(crate) struct Layer<S> {
    forward: Packed<S>,
    backward: Packed<S>,
    pub(crate) bias: Vec<S>,
    pub(crate) activation: Activation,
    pub(crate) inputs: usize,
    pub(crate) outputs: usize,
    w: usize,
    b: usize,
}

impl<S: Scalar> Layer<S> {
    /// The layer whose matrix is parameter `w` of `layout` and whose bias is the one after it.
    pub(crate) fn new(
        layout: &Parameters,
        w: usize,
        activation: Activation,
        weights: &[S],
    ) -> Self {
        let (inputs, outputs) = (layout.rows(w), layout.columns(w));
        let matrix = layout.of(w, weights);
        Self {
            forward: Packed::new(matrix, inputs, outputs),
            backward: Packed::transposed(matrix, outputs, inputs),
            bias: layout.padded_copy(w + 1, weights),
            activation,
            inputs,
            outputs,
            w,
            b: w + 1,
        }
    }

    /// The factors of `Z W`; rows of `z` are `stride` apart.
    pub(crate) fn forward<'a>(&'a self, z: &'a [S], stride: usize) -> Factors<'a, S> {
        Factors { a: z, stride, b: &self.forward }
    }

    /// The factors of `D Wᵀ`, likewise.
    pub(crate) fn backward<'a>(&'a self, d: &'a [S], stride: usize) -> Factors<'a, S> {
        Factors { a: d, stride, b: &self.backward }
    }

    /// `∂𝓛/∂W ← … + Zᵀ D` and `∂𝓛/∂b ← … + Σ D`, given `D` after the activation's slope.
    pub(crate) fn gradients(
        &self,
        layout: &Parameters,
        rows: usize,
        z: &[S],
        z_stride: usize,
        d: &[S],
        partial: &mut [S],
    ) {
        let d_w = layout.partial(self.w, partial);
        transposed_product(rows, z, z_stride, self.inputs, d, self.outputs, d_w);
        sum_rows(d, layout.partial(self.b, partial));
    }

    /// The number of the bias in the layout.
    pub(crate) fn bias_block(&self) -> usize {
        self.b
    }

    /// The number of the matrix in the layout.
    pub(crate) fn matrix_block(&self) -> usize {
        self.w
    }
}

/// `sum ← sum + Σ rows of d`, for padded rows.
pub(crate) fn sum_rows<S: Scalar>(d: &[S], sum: &mut [S]) {
    struct SumRows<'a, S>(&'a [S], &'a mut [S]);
    impl<S: Scalar> Kernel for SumRows<'_, S> {
        type Output = ();
        #[inline(always)]
        fn run<A: Arithmetic>(self) {
            let Self(d, sum) = self;
            let stride = sum.len();
            // Column by column, so that sums stay in registers.
            for (i, sum) in sum.as_chunks_mut::<LANES>().0.iter_mut().enumerate() {
                let mut total = A::Lanes::<S>::load(sum);
                for d in d.chunks_exact(stride) {
                    total = total.add(Lanes::load(&d.as_chunks::<LANES>().0[i]));
                }
                total.store(sum);
            }
        }
    }
    if !sum.is_empty() {
        dispatch(SumRows(d, sum));
    }
}

/// Layers one after the other, over rows that go through together.
#[derive(Debug)]
pub(crate) struct Stack<S> {
    pub(crate) layers: Vec<Layer<S>>,
}

/// A forward pass through a [`Stack`], as its way back needs it.
pub(crate) struct Passed<'a, S: Scalar> {
    pub(crate) rows: usize,
    /// The input.
    pub(crate) z: &'a [S],
    /// Distance of the rows of `z`.
    pub(crate) z_stride: usize,
    /// The activations of every layer.
    pub(crate) outputs: &'a [Activations<'a, S>],
    pub(crate) dropout: Option<Dropout>,
}

/// Adds something to sums.
pub(crate) type Add<'a, S> = &'a dyn Fn(&mut [S]);

impl<S: Scalar> Stack<S> {
    /// The activations of every layer for `rows` inputs `z`; hidden units may be left out.
    pub(crate) fn forward<'a>(
        &self,
        rows: usize,
        z: &[S],
        z_stride: usize,
        dropout: Option<Dropout>,
        scratch: &'a Scratch<S>,
    ) -> Vec<Activations<'a, S>> {
        self.forward_with(rows, (z, z_stride), None, dropout, scratch)
    }

    /// The same, with something else that is added to the sums of the first layer.
    pub(crate) fn forward_with<'a>(
        &self,
        rows: usize,
        (z, z_stride): (&[S], usize),
        also: Option<Add<'_, S>>,
        dropout: Option<Dropout>,
        scratch: &'a Scratch<S>,
    ) -> Vec<Activations<'a, S>> {
        let mut outputs: Vec<Activations<'a, S>> = Vec::with_capacity(self.layers.len());
        for (k, layer) in self.layers.iter().enumerate() {
            let stride = padded(layer.outputs);
            let mut value = scratch.take(rows * stride);
            let (input, input_stride) =
                outputs.last().map_or((z, z_stride), |below| (below.read(), padded(layer.inputs)));
            let also = also.filter(|_| k == 0);
            let first = also.map_or(layer.activation, |_| Activation::Identity);
            let finish = Finish::Activate(first, &layer.bias);
            product(rows, &[layer.forward(input, input_stride)], &mut value, stride, finish);
            if let Some(add) = also {
                add(&mut value);
                activate(layer.activation, &mut value);
            }
            let hidden = k + 1 < self.layers.len();
            let dropped = dropout.filter(|_| hidden).map(|dropout| {
                let mut dropped = scratch.take(rows * stride);
                dropped.copy_from_slice(&value);
                dropout.apply(k, stride, &mut dropped);
                dropped
            });
            outputs.push(Activations { value, dropped });
        }
        outputs
    }

    /// The way back: `d` is `∂𝓛/∂` of the last layer's sums, after the slope of its activation, and
    /// is consumed; `∂𝓛/∂z` is written to `d_z` (strided like `z`) as its [`Finish`] says, and
    /// partial gradients are added to `partial`. Returns `∂𝓛/∂` of the first layer's sums.
    pub(crate) fn backward<'a>(
        &self,
        layout: &Parameters,
        passed: &Passed<'_, S>,
        mut d: Spare<'a, S>,
        mut partial: Option<&mut [S]>,
        d_z: Option<(&mut [S], Finish<'_, S>)>,
        scratch: &'a Scratch<S>,
    ) -> Spare<'a, S> {
        let Passed { rows, z, z_stride, outputs, dropout } = *passed;
        for (k, layer) in self.layers.iter().enumerate().rev() {
            let (input, stride) =
                if k == 0 { (z, z_stride) } else { (outputs[k - 1].read(), padded(layer.inputs)) };
            if let Some(partial) = partial.as_deref_mut() {
                layer.gradients(layout, rows, input, stride, &d, partial);
            }
            if k > 0 {
                let mut below = scratch.take(rows * stride);
                let d_stride = padded(layer.outputs);
                let slope = Finish::Slope(self.layers[k - 1].activation, &outputs[k - 1].value);
                product(rows, &[layer.backward(&d, d_stride)], &mut below, stride, slope);
                if let Some(dropout) = dropout {
                    dropout.apply(k - 1, stride, &mut below);
                }
                d = below;
            }
        }
        if let (Some((d_z, finish)), Some(first)) = (d_z, self.layers.first()) {
            let factors = first.backward(&d, padded(first.outputs));
            product(rows, &[factors], d_z, z_stride, finish);
        }
        d
    }
}

/// Which units are left out: a function of seed, row, layer and unit, so that it needs no storage
/// and does not depend on who asks first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dropout {
    pub(crate) rate: f64,
    pub(crate) seed: u64,
    /// The first of the rows that go through together.
    pub(crate) first: usize,
}

impl Dropout {
    /// Leaves out units of `y`, or of a gradient of it.
    pub(crate) fn apply<S: Scalar>(self, layer: usize, stride: usize, y: &mut [S]) {
        if stride == 0 {
            return;
        }
        let (keep, threshold) = self.keep_and_threshold();
        for (row, y) in (self.first..).zip(y.chunks_exact_mut(stride)) {
            let row = self.row(row, layer);
            for (unit, y) in (0_u64..).zip(y) {
                *y = if mix(row ^ unit) < threshold { S::ZERO } else { *y * keep };
            }
        }
    }

    /// The same for one entry of layer 0.
    pub(crate) fn apply_at<S: Scalar>(self, row: usize, unit: u64, y: &mut S) {
        let (keep, threshold) = self.keep_and_threshold();
        *y = if mix(self.row(row, 0) ^ unit) < threshold { S::ZERO } else { *y * keep };
    }

    fn row(self, row: usize, layer: usize) -> u64 {
        mix(self.seed ^ mix((row as u64) << 8 | layer as u64))
    }

    /// What an entry that stays is multiplied with, and below which number of 64 bits it goes.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a probability in 64 bits"
    )]
    fn keep_and_threshold<S: Scalar>(self) -> (S, u64) {
        (S::of(1.0 / (1.0 - self.rate)), (self.rate * u64::MAX as f64) as u64)
    }
}

/// A bijection of 64 bits that leaves no pattern (the finaliser of `SplitMix64`).
fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// The activations of a layer, and with some units left out.
pub(crate) struct Activations<'a, S: Scalar> {
    pub(crate) value: Spare<'a, S>,
    dropped: Option<Spare<'a, S>>,
}

impl<S: Scalar> Activations<'_, S> {
    /// What the layer above reads.
    fn read(&self) -> &[S] {
        self.dropped.as_ref().map_or(&self.value[..], |dropped| &dropped[..])
    }
}
