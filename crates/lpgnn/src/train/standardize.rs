//! Layers that read states descend in coordinates in which these have mean 0 and standard deviation 1.

use std::sync::Arc;

use crate::graph::GraphBatch;
use crate::inference::{FixedPointOptions, Inference, Layer};
use crate::lagrangian::{Model, ReadFrom, Variables};
use crate::numeric::Scratch;
use crate::parameters::{Parameters, Role};
use crate::readout::ReadoutInput;
use crate::saddle::Coordinates;
use crate::{Matrix, Scalar};

/// Starts the states at their fixed point, since zeros do not vary, and the layers that read them in
/// standardised coordinates; layer by layer, because each reads the one below.
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
    let mut f_x: Option<Matrix<S>> = None;
    for layer in 0..model.layers() {
        for coordinates in feature_coordinates(model, layer, &at.states) {
            coordinates.initialize(&mut at.weights);
        }
        let (known, rest) = at.states.split_at_mut(layer);
        let below = match model.reads().from {
            ReadFrom::State => known.last(),
            ReadFrom::Transition => f_x.as_ref(),
        };
        let layer = Layer::of(model, layer, &at.weights, below, scratch);
        let found = layer.converge(graphs, std::mem::take(&mut rest[0]), &options, &mut || ());
        (rest[0], f_x) = (found.states, Some(found.f_x));
    }
    for coordinates in readout_coordinates(model, graphs, &at.states) {
        coordinates.initialize(&mut at.weights);
    }
}

/// Coordinates for the layers that read states, from the current states.
pub(super) fn coordinates<S: Scalar>(
    model: &Model<S>,
    graphs: &GraphBatch<S>,
    states: &[Matrix<S>],
) -> Arc<[Coordinates]> {
    let of_h = (1..model.layers()).flat_map(|layer| feature_coordinates(model, layer, states));
    of_h.chain(readout_coordinates(model, graphs, states)).collect()
}

/// Those for `h` of a layer above another.
fn feature_coordinates<S: Scalar>(
    model: &Model<S>,
    layer: usize,
    states: &[Matrix<S>],
) -> Vec<Coordinates> {
    let below = layer.checked_sub(1).map(|below| &states[below]);
    let (Some(below), Some(transition)) = (below, model.transitions().nth(layer)) else {
        return vec![];
    };
    of_layers(Role::Input, transition.parameters(), model.transition_weights(layer).start, below)
}

/// Those for `f_r`.
fn readout_coordinates<S: Scalar>(
    model: &Model<S>,
    graphs: &GraphBatch<S>,
    states: &[Matrix<S>],
) -> Vec<Coordinates> {
    let parts: Vec<&Matrix<S>> = states[model.read_layers()].iter().collect();
    let (readout, start) = (model.readout(), model.readout_weights().start);
    let input = ReadoutInput { batch: graphs, parts: &parts, dropout: None };
    let of_states = readout
        .layer_inputs(input)
        .map(|rows| of_layers(Role::Input, readout.parameters(), start, &rows));
    let of_features = readout
        .feature_inputs(graphs)
        .map(|rows| of_layers(Role::Features, readout.parameters(), start, &rows));
    of_states.into_iter().chain(of_features).flatten().collect()
}

/// Those for the layers that read these rows in this role, of a function whose weights start at `start`.
fn of_layers<S: Scalar>(
    role: Role,
    parameters: &Parameters,
    start: usize,
    rows: &Matrix<S>,
) -> Vec<Coordinates> {
    let layers = parameters.layers_reading(role, rows.cols()).into_iter();
    layers
        .filter_map(|layer| Coordinates::of(rows.as_slice(), rows.cols(), layer.after(start)))
        .collect()
}
