//! Layers that read states descend in coordinates in which these have mean 0 and standard deviation 1.

use std::borrow::Cow;
use std::sync::Arc;

use crate::graph::{GraphBatch, Share};
use crate::inference::{FixedPointOptions, Inference, Layers};
use crate::lagrangian::{Model, ReadFrom, Variables};
use crate::numeric::Scratch;
use crate::parameters::{InputLayer, Parameters, Role};
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
        let states = handed_states(model, graphs, (&at.weights, &at.states), scratch);
        for coordinates in feature_coordinates(model, layer, graphs, &states) {
            coordinates.initialize(&mut at.weights);
        }
        let (known, rest) = at.states.split_at_mut(layer);
        let below = match model.reads().from {
            ReadFrom::State => known.last(),
            ReadFrom::Transition => f_x.as_ref(),
        };
        let normalized = below
            .and_then(|below| model.normalized(layer - 1, &at.weights, graphs, below, scratch));
        let below = normalized.as_deref().or(below);
        let layers = Layers::new(model, &at.weights, graphs);
        let layer = layers.layer(layer, below, scratch);
        let found = layer.converge(graphs, std::mem::take(&mut rest[0]), &options, &mut || ());
        (rest[0], f_x) = (found.states, Some(found.f_x));
    }
    let states = handed_states(model, graphs, (&at.weights, &at.states), scratch);
    for coordinates in readout_coordinates(model, graphs, &states) {
        coordinates.initialize(&mut at.weights);
    }
}

/// Coordinates for the layers that read states, from the current states.
pub(super) fn coordinates<S: Scalar>(
    model: &Model<S>,
    graphs: &GraphBatch<S>,
    (weights, states): (&[S], &[Matrix<S>]),
    scratch: &Scratch<S>,
) -> Arc<[Coordinates]> {
    let states = handed_states(model, graphs, (weights, states), scratch);
    let of_h =
        (1..model.layers()).flat_map(|layer| feature_coordinates(model, layer, graphs, &states));
    of_h.chain(readout_coordinates(model, graphs, &states)).collect()
}

/// What layers hand on of their states.
fn handed_states<'a, S: Scalar>(
    model: &Model<S>,
    graphs: &GraphBatch<S>,
    (weights, states): (&[S], &'a [Matrix<S>]),
    scratch: &Scratch<S>,
) -> Cow<'a, [Matrix<S>]> {
    let normalized = |(layer, states)| model.normalized(layer, weights, graphs, states, scratch);
    if model.normalizations().is_empty() {
        return Cow::Borrowed(states);
    }
    let all = states.iter().enumerate().filter_map(normalized);
    Cow::Owned(all.map(|rows| Matrix::clone(&rows)).collect())
}

/// Those for `h` of a layer above another.
fn feature_coordinates<S: Scalar>(
    model: &Model<S>,
    layer: usize,
    graphs: &GraphBatch<S>,
    states: &[Matrix<S>],
) -> Vec<Coordinates> {
    let below = layer.checked_sub(1).map(|below| &states[below]);
    let (Some(below), Some(transition)) = (below, model.transitions().nth(layer)) else {
        return vec![];
    };
    let start = model.transition_weights(layer).start;
    of_layers(Role::Input, transition.parameters(), start, below, graphs.across())
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
        .map(|rows| of_layers(Role::Input, readout.parameters(), start, &rows, graphs.across()));
    let of_features = readout
        .feature_inputs(graphs)
        .map(|rows| of_layers(Role::Features, readout.parameters(), start, &rows, graphs.across()));
    of_states.into_iter().chain(of_features).flatten().collect()
}

/// Those for the layers that read these rows in this role, of a function whose weights start at `start`.
fn of_layers<S: Scalar>(
    role: Role,
    parameters: &Parameters,
    start: usize,
    rows: &Matrix<S>,
    share: Option<&Share>,
) -> Vec<Coordinates> {
    let layers = parameters.layers_reading(role, rows.cols()).into_iter();
    let of = |layer: InputLayer| {
        let layer = layer.after(start);
        match share {
            None => Coordinates::of(rows.as_slice(), rows.cols(), layer),
            Some(share) => Coordinates::of_parts(rows.as_slice(), rows.cols(), layer, share),
        }
    };
    layers.filter_map(of).collect()
}
