use std::cmp::Ordering;

use lpgnn::registry::ReadoutSpec;
use lpgnn::{Error, Scalar, readout::Readout, readout::ReadoutInput};

use crate::sequence::{Sequence, SequenceReadout, Shape};

/// `SortPooling` (Zhang et al., 2018): the `k` nodes of a graph with the largest last component, the largest first; where
/// they are equal, the component before decides.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SortPooling {
    k: usize,
}

impl Sequence for SortPooling {
    fn places<S: Scalar>(&self, input: ReadoutInput<'_, S>) -> Vec<Option<usize>> {
        let (states, mut places) = (input.states(), vec![]);
        let later = |&a: &usize, &b: &usize| {
            let pairs = states.row(b).iter().zip(states.row(a)).rev();
            let unequal = pairs.map(|(b, a)| b.f64().total_cmp(&a.f64()));
            unequal.fold(Ordering::Equal, Ordering::then)
        };
        for graph in 0..input.batch.graphs() {
            let mut nodes: Vec<usize> = input.batch.nodes_of(graph).collect();
            nodes.sort_by(later);
            nodes.truncate(self.k);
            let missing = self.k - nodes.len();
            places.extend(nodes.into_iter().map(Some).chain(vec![None; missing]));
        }
        places
    }
}

/// Nodes that are kept, and units, unless options say otherwise.
const K: usize = 30;
const UNITS: usize = 128;

/// The read-out of a model with states of `width` components.
pub(crate) fn readout(
    (k, width): (usize, usize),
    outputs: usize,
    units: usize,
    dropout: f64,
) -> Result<SequenceReadout<SortPooling>, Error> {
    let (kernel, pool, window, channels) = (1, true, 5, (16, 32));
    let beside = 0;
    let shape = Shape { length: k, width, kernel, beside, pool, window, channels, units };
    SequenceReadout::new(SortPooling { k }, shape, outputs, dropout)
}

/// The read-out `sort-pooling`, with the options `k` and `units`, and the dropout of the model.
pub(crate) fn make<S: Scalar>(spec: &ReadoutSpec<'_>) -> Result<Box<dyn Readout<S>>, Error> {
    let options = &spec.model.readout_options;
    options.check(&["k", "units"])?;
    let k = options.count("k", 1..=1 << 16, K)?;
    let units = options.count("units", 1..=1 << 16, UNITS)?;
    Ok(Box::new(readout((k, spec.inputs), spec.outputs, units, spec.model.dropout)?))
}
