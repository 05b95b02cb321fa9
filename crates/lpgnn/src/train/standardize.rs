//! What reads states does so in coordinates in which they have mean 0 and std 1.

use std::sync::Arc;

use crate::graph::GraphBatch;
use crate::inference::{FixedPointOptions, Inference, converge_next};
use crate::lagrangian::{Model, Variables, side_by_side};
use crate::numeric::Scratch;
use crate::saddle::Coordinates;
use crate::{Matrix, Scalar};

/// Starts the states where they converge, since what is read of zeros does not vary, and what reads
/// them in coordinates that suit them; layer by layer, for each reads the one below.
pub(super) fn start_standardized<S: Scalar>(
    model: &Model<S>,
    graphs: &GraphBatch<S>,
    inference: &Inference,
    at: &mut Variables<S>,
    scratch: &Scratch<S>,
) {
    let options = match inference {
        Inference::FixedPoint(options) => *options,
        Inference::Relax(_) => FixedPointOptions::default(),
    };
    for layer in 0..model.layers() {
        if let Some(coordinates) = feature_coordinates(model, layer, &at.states) {
            coordinates.initialize(&mut at.weights);
        }
        let (known, rest) = at.states.split_at_mut(layer);
        let start = std::mem::take(&mut rest[0]);
        (rest[0], _) = converge_next(model, &at.weights, graphs, known, start, &options, scratch);
    }
    if let Some(coordinates) = output_coordinates(model, graphs, &at.states) {
        coordinates.initialize(&mut at.weights);
    }
}

/// Coordinates for the layers that read states, by the states as they are.
pub(super) fn coordinates<S: Scalar>(
    model: &Model<S>,
    graphs: &GraphBatch<S>,
    states: &[Matrix<S>],
) -> Arc<[Coordinates]> {
    let of_h = (1..model.layers()).filter_map(|layer| feature_coordinates(model, layer, states));
    of_h.chain(output_coordinates(model, graphs, states)).collect()
}

/// Those for `h` of a layer above another.
fn feature_coordinates<S: Scalar>(
    model: &Model<S>,
    layer: usize,
    states: &[Matrix<S>],
) -> Option<Coordinates> {
    let below = &states[layer.checked_sub(1)?];
    let reader = model.transitions().nth(layer)?.feature_layer()?;
    let reader = reader.after(model.transition_weights(layer).start);
    Coordinates::of(below.as_slice(), below.cols(), reader)
}

/// Those for `f_r`.
fn output_coordinates<S: Scalar>(
    model: &Model<S>,
    graphs: &GraphBatch<S>,
    states: &[Matrix<S>],
) -> Option<Coordinates> {
    let parts: Vec<&Matrix<S>> = states[model.read_layers()].iter().collect();
    let joined = (parts.len() > 1).then(|| side_by_side(&parts));
    let output = model.output();
    let rows = output.pooled(graphs, joined.as_ref().unwrap_or(parts[0]));
    let reader = output.first_layer().after(model.output_weights().start);
    Coordinates::of(&rows, output.input(), reader)
}
