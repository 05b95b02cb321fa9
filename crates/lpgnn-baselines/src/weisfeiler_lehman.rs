use lpgnn::registry::ReadoutSpec;
use lpgnn::{Error, Scalar, readout::Readout};

use crate::histogram::{Counts, HistogramReadout};
use crate::structure::{Structure, mix};

/// The colours of the Weisfeiler–Lehman refinement (Shervashidze et al., 2011), of all rounds from 0 to `rounds`:
///
/// ```text
/// c_v⁰ = hash(l_v)        c_v^(i+1) = hash(c_v^i, {{ c_u^i : u ∈ ne[v] }})        φ(g)_c = # { (i, v) : c_v^i = c }
/// ```
///
/// # Differences
///
/// A linear classifier in `φ` by cross-entropy, where the published figures are those of a support vector machine in the kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Colours {
    rounds: usize,
}

/// Rounds, unless the option of this name says otherwise.
const ROUNDS: usize = 5;

impl Counts for Colours {
    fn of(&self, graph: &Structure) -> Vec<(u64, f64)> {
        let mut colours = graph.labels().to_vec();
        let mut found = Vec::with_capacity((self.rounds + 1) * colours.len());
        for round in 0..=self.rounds as u64 {
            if round > 0 {
                colours = refine(graph, &colours);
            }
            found.extend(colours.iter().map(|&colour| (mix(round, colour), 1.0)));
        }
        found
    }
}

/// One round.
pub(crate) fn refine(graph: &Structure, colours: &[u64]) -> Vec<u64> {
    let of_node = |v: usize| {
        // A sum of hashes is that of a multiset: no order of the neighbours is needed.
        let around = graph.neighbours(v).iter().map(|&u| mix(1, colours[u as usize]));
        mix(colours[v], around.fold(0, u64::wrapping_add))
    };
    (0..colours.len()).map(of_node).collect()
}

/// The read-out `weisfeiler-lehman`, with the options `rounds` and `buckets`.
pub(crate) fn make<S: Scalar>(spec: &ReadoutSpec<'_>) -> Result<Box<dyn Readout<S>>, Error> {
    let options = &spec.model.readout_options;
    options.check(&["rounds", "buckets"])?;
    let rounds = options.count("rounds", 0..=64, ROUNDS)?;
    Ok(Box::new(HistogramReadout::new(Colours { rounds }, spec)?))
}
