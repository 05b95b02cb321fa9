//! A convolutional network of a sequence of nodes, which DGCNN and PATCHY-SAN end in.

use std::fmt::Debug;

use lpgnn::activation::Activation;
use lpgnn::graph::Level;
use lpgnn::network::Network;
use lpgnn::parameters::Parameters;
use lpgnn::readout::{Mlp, MlpGradients, MlpInput, Readout, ReadoutGradients, ReadoutInput};
use lpgnn::{Error, Matrix, Scalar, Scratch};

use crate::dense::{Dense, Layers};

/// How the nodes of a graph are put into a sequence.
pub(crate) trait Sequence: Debug + Send + Sync {
    /// The nodes in their places, in all graphs as many; `None` where a graph has no node to put.
    fn places<S: Scalar>(&self, input: ReadoutInput<'_, S>) -> Vec<Option<usize>>;

    /// What the first convolution reads beside the states in its places, a row each time; nothing moves it.
    fn beside<S: Scalar>(
        &self,
        input: ReadoutInput<'_, S>,
        places: &[Option<usize>],
    ) -> Option<Matrix<S>> {
        let _ = (input, places);
        None
    }
}

/// The sizes of a network of a sequence.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// Places of the sequence.
    pub(crate) length: usize,
    /// Components of a node.
    pub(crate) width: usize,
    /// Places that the first convolution reads together, each once.
    pub(crate) kernel: usize,
    /// Components that it reads beside them.
    pub(crate) beside: usize,
    /// Whether the larger of two neighbours is kept after it.
    pub(crate) pool: bool,
    /// Rows that the second convolution reads together, moving by one.
    pub(crate) window: usize,
    /// Channels of both.
    pub(crate) channels: (usize, usize),
    /// Units of the dense layer.
    pub(crate) units: usize,
}

/// ```text
/// relu(conv) → max of two, if so → relu(conv) → dense, relu, dropout → dense
/// ```
///
/// of the states of nodes in a sequence, and of what is beside them; zeros where there is no node.
#[derive(Debug)]
pub(crate) struct SequenceReadout<Q> {
    sequence: Q,
    shape: Shape,
    rows: Dense,
    windows: Dense,
    dense: Mlp,
    first: usize,
    parameters: Parameters,
}

/// The values of all layers but the last.
struct Trace<S: Scalar> {
    /// The nodes of a kernel side by side, and what the first convolution makes of them.
    read: Matrix<S>,
    rows: Matrix<S>,
    /// The rows of a window side by side, and what the second makes of them: what the dense layers read, graph by graph.
    spread: Matrix<S>,
    windows: Matrix<S>,
}

impl Shape {
    /// Components that the first convolution reads of places, and in all.
    fn inputs(self) -> (usize, usize) {
        (self.kernel * self.width, self.kernel * self.width + self.beside)
    }

    /// Rows of a graph after the first convolution, after pooling, and after the second convolution.
    fn rows(self) -> (usize, usize, usize) {
        let first = self.length / self.kernel;
        let pooled = if self.pool { first / 2 } else { first };
        (first, pooled, (pooled + 1).saturating_sub(self.window))
    }
}

impl<Q: Sequence> SequenceReadout<Q> {
    /// # Errors
    ///
    /// [`Error::Mismatch`] when the sequence is shorter than a window.
    pub(crate) fn new(
        sequence: Q,
        shape: Shape,
        outputs: usize,
        dropout: f64,
    ) -> Result<Self, Error> {
        let (_, pooled, windows) = shape.rows();
        if windows == 0 {
            return Err(Error::Mismatch(format!(
                "a sequence of {} nodes leaves {pooled} rows, but the second convolution reads {} together",
                shape.length, shape.window
            )));
        }
        let (first, second) = shape.channels;
        let mut layers = Layers::default();
        let rows = layers.dense("rows", (shape.inputs().1, first), Activation::Relu);
        let windows_of = layers.dense("windows", (shape.window * first, second), Activation::Relu);
        let network = Network {
            hidden_dims: vec![shape.units],
            activation: Activation::Relu,
            output_activation: Activation::Identity,
        };
        let dense = Mlp::new(windows * second, outputs, network, dropout);
        let first = layers.0.weights();
        let parameters = layers.0.with_all("dense", dense.parameters());
        Ok(Self { sequence, shape, rows, windows: windows_of, dense, first, parameters })
    }

    /// The places that the first convolution reads together.
    fn kernels<'a>(
        &self,
        places: &'a [Option<usize>],
    ) -> impl Iterator<Item = &'a [Option<usize>]> + use<'a, Q> {
        let (Shape { length, kernel, .. }, of_graph) = (self.shape, self.shape.rows().0);
        let of_all = places.chunks_exact(length);
        of_all.flat_map(move |places| places[..of_graph * kernel].chunks_exact(kernel))
    }

    /// The states in their places, and what is beside them.
    fn read<S: Scalar>(&self, places: &[Option<usize>], input: ReadoutInput<'_, S>) -> Matrix<S> {
        let (states, width) = (input.states(), self.shape.width.max(1));
        let (of_places, all) = self.shape.inputs();
        let beside = self.sequence.beside(input, places);
        let mut read = Matrix::zeros(self.kernels(places).count(), all);
        for (row, kernel) in self.kernels(places).enumerate() {
            let (in_places, rest) = read.row_mut(row).split_at_mut(of_places);
            for (to, node) in in_places.chunks_exact_mut(width).zip(kernel) {
                node.iter().for_each(|&v| to.copy_from_slice(states.row(v)));
            }
            beside.iter().for_each(|beside| rest.copy_from_slice(beside.row(row)));
        }
        read
    }

    fn trace<S: Scalar>(
        &self,
        weights: &[S],
        places: &[Option<usize>],
        input: ReadoutInput<'_, S>,
        scratch: &Scratch<S>,
    ) -> Trace<S> {
        let read = self.read(places, input);
        let rows = self.rows.forward(weights, &read, scratch);
        let (of_graph, pooled, windows) = self.shape.rows();
        let (graphs, channels) = (rows.rows() / of_graph, rows.cols());
        let mut spread = Matrix::zeros(graphs * windows, self.shape.window * channels);
        for row in 0..spread.rows() {
            let (graph, start) = (row / windows, row % windows);
            let to = spread.row_mut(row).chunks_exact_mut(channels);
            for (to, place) in to.zip(start..pooled) {
                for (channel, to) in to.iter_mut().enumerate() {
                    *to = rows.row(self.kept(&rows, graph, place, channel))[channel];
                }
            }
        }
        let windows = self.windows.forward(weights, &spread, scratch);
        Trace { read, rows, spread, windows }
    }

    /// The row that a place keeps of a channel: its only one, or the larger of two, the first of equals.
    fn kept<S: Scalar>(
        &self,
        rows: &Matrix<S>,
        graph: usize,
        place: usize,
        channel: usize,
    ) -> usize {
        let first = graph * self.shape.rows().0;
        if !self.shape.pool {
            return first + place;
        }
        let row = first + 2 * place;
        row + usize::from(rows.row(row + 1)[channel] > rows.row(row)[channel])
    }

    /// `∂𝓛/∂` the rows of the first convolution, from those of the windows.
    fn gather<S: Scalar>(&self, rows: &Matrix<S>, d_spread: &Matrix<S>) -> Matrix<S> {
        let (_, pooled, windows) = self.shape.rows();
        let mut d_rows = Matrix::zeros(rows.rows(), rows.cols());
        for row in 0..d_spread.rows() {
            let (graph, start) = (row / windows, row % windows);
            let d = d_spread.row(row).chunks_exact(rows.cols());
            for (d, place) in d.zip(start..pooled) {
                for (channel, &d) in d.iter().enumerate() {
                    d_rows.row_mut(self.kept(rows, graph, place, channel))[channel] += d;
                }
            }
        }
        d_rows
    }
}

impl<S: Scalar, Q: Sequence> Readout<S> for SequenceReadout<Q> {
    fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    fn level(&self) -> Level {
        Level::Graph
    }

    fn inputs(&self) -> usize {
        self.shape.width
    }

    fn forward(
        &self,
        weights: &[S],
        input: ReadoutInput<'_, S>,
        predictions: &mut Matrix<S>,
        scratch: &Scratch<S>,
    ) {
        let places = self.sequence.places(input);
        let trace = self.trace(weights, &places, input, scratch);
        let rows = trace.windows.as_slice();
        let read = MlpInput { rows, features: None, dropout: input.dropout };
        self.dense.forward(&weights[self.first..], read, predictions, scratch);
    }

    fn backward(
        &self,
        weights: &[S],
        input: ReadoutInput<'_, S>,
        d_predictions: &Matrix<S>,
        mut gradients: ReadoutGradients<'_, S>,
        scratch: &Scratch<S>,
    ) {
        let places = self.sequence.places(input);
        let trace = self.trace(weights, &places, input, scratch);
        let mut d_windows = Matrix::zeros(trace.windows.rows(), trace.windows.cols());
        let to = MlpGradients {
            weights: gradients.weights.as_deref_mut().map(|d| &mut d[self.first..]),
            rows: Some(d_windows.as_mut_slice()),
            features: None,
        };
        let rows = trace.windows.as_slice();
        let read = MlpInput { rows, features: None, dropout: input.dropout };
        self.dense.backward(&weights[self.first..], read, d_predictions, to, scratch);
        let to = gradients.weights.as_deref_mut();
        let d_spread = self.windows.backward(weights, &trace.spread, &d_windows, to, scratch);
        let d_rows = self.gather(&trace.rows, &d_spread);
        let d_read = self.rows.backward(weights, &trace.read, &d_rows, gradients.weights, scratch);
        let Some(d_states) = gradients.states else { return };
        let width = self.shape.width.max(1);
        for (row, kernel) in self.kernels(&places).enumerate() {
            let d_places = d_read.row(row)[..self.shape.inputs().0].chunks_exact(width);
            for (d, node) in d_places.zip(kernel) {
                if let Some(v) = *node {
                    d_states.row_mut(v).iter_mut().zip(d).for_each(|(to, &d)| *to += d);
                }
            }
        }
    }
}
