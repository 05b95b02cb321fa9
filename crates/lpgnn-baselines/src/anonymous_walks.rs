use std::collections::BTreeMap;

use lpgnn::check::uniform;
use lpgnn::registry::ReadoutSpec;
use lpgnn::{Error, Scalar, readout::Readout};

use crate::histogram::{Counts, HistogramReadout};
use crate::structure::{Structure, mix};

/// How probable every anonymous walk of so many steps is (Ivanov and Burnaev, 2018): of a random walk from a random node,
/// when it is at a node for the first time, and when it is there again. `a b a c` and `x y x z` are both `0 1 0 2`.
///
/// ```text
/// p_g(a) = 1/|V| Σ_v P(pattern of a walk from v = a)      φ(g)_a = √p_g(a)
/// ```
///
/// The root makes `⟨φ(g), φ(g')⟩` the Bhattacharyya coefficient of two distributions. Walks are counted exactly as long as they
/// are few, and sampled otherwise, from a seed that follows from the graph: the same graph always gets the same.
///
/// # Differences
///
/// A linear classifier in `φ`, where the published figures are those of a support vector machine, in part of an embedding that
/// is learnt from co-occurring walks. Labels are not read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patterns {
    steps: usize,
    samples: usize,
}

/// Walks of a graph up to which all are counted.
const EXACT: f64 = 2e5;

impl Patterns {
    /// Walks of so many steps, from all nodes.
    fn walks(self, graph: &Structure) -> f64 {
        let mut walks = vec![1.0; graph.nodes()];
        for _ in 0..self.steps {
            let from = |v: usize| match graph.neighbours(v) {
                [] => walks[v],
                neighbours => neighbours.iter().map(|&u| walks[u as usize]).sum(),
            };
            walks = (0..graph.nodes()).map(from).collect();
        }
        walks.iter().sum()
    }
}

/// A walk as far as it has come.
struct Walk<'a> {
    graph: &'a Structure,
    /// Its nodes, each once, in the order of their first occurrence.
    met: Vec<usize>,
    found: BTreeMap<u64, f64>,
}

impl Walk<'_> {
    /// The pattern of one more node, which is then among those met; and whether it was not before.
    fn arrive(&mut self, v: usize, pattern: u64) -> (u64, bool) {
        let place = self.met.iter().position(|&met| met == v);
        if place.is_none() {
            self.met.push(v);
        }
        (mix(pattern, place.unwrap_or(self.met.len() - 1) as u64), place.is_none())
    }

    /// All walks that go on from `v` with so many steps.
    fn all(&mut self, v: usize, pattern: u64, probability: f64, steps: usize) {
        let (pattern, new) = self.arrive(v, pattern);
        let graph = self.graph;
        match graph.neighbours(v) {
            _ if steps == 0 => *self.found.entry(pattern).or_default() += probability,
            // A walk that cannot leave its node stays.
            [] => self.all(v, pattern, probability, steps - 1),
            neighbours => {
                let probability = probability / neighbours.len() as f64;
                for &u in neighbours {
                    self.all(u as usize, pattern, probability, steps - 1);
                }
            }
        }
        if new {
            self.met.pop();
        }
    }

    /// One walk at random.
    fn one(&mut self, first: usize, probability: f64, steps: usize, draw: &mut dyn FnMut() -> f64) {
        self.met.clear();
        let (mut v, (mut pattern, _)) = (first, self.arrive(first, 0));
        for _ in 0..steps {
            if let Some(&u) = pick(self.graph.neighbours(v), draw) {
                v = u as usize;
            }
            (pattern, _) = self.arrive(v, pattern);
        }
        *self.found.entry(pattern).or_default() += probability;
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "below the length")]
fn pick<'a, T>(from: &'a [T], draw: &mut dyn FnMut() -> f64) -> Option<&'a T> {
    from.get((draw() * from.len() as f64) as usize)
}

impl Counts for Patterns {
    fn of(&self, graph: &Structure) -> Vec<(u64, f64)> {
        let (nodes, mut walk) =
            (graph.nodes(), Walk { graph, met: vec![], found: BTreeMap::new() });
        if self.walks(graph) <= EXACT {
            (0..nodes).for_each(|v| walk.all(v, 0, 1.0 / nodes as f64, self.steps));
        } else {
            let mut draw = uniform(graph.key()[0]);
            let first: Vec<usize> = (0..nodes).collect();
            for _ in 0..self.samples {
                if let Some(&v) = pick(&first, &mut draw) {
                    walk.one(v, 1.0 / self.samples as f64, self.steps, &mut draw);
                }
            }
        }
        walk.found.into_iter().map(|(pattern, p)| (pattern, p.sqrt())).collect()
    }
}

/// Steps and sampled walks, unless options say otherwise.
const STEPS: usize = 7;
const SAMPLES: usize = 10_000;
const MOST_STEPS: usize = 64;
const MOST_SAMPLES: usize = 10_000_000;

/// The read-out `anonymous-walks`, with the options `steps`, `samples` and `buckets`.
pub(crate) fn make<S: Scalar>(spec: &ReadoutSpec<'_>) -> Result<Box<dyn Readout<S>>, Error> {
    let options = &spec.model.readout_options;
    options.check(&["steps", "samples", "buckets"])?;
    let steps = options.count("steps", 1..=MOST_STEPS, STEPS)?;
    let samples = options.count("samples", 1..=MOST_SAMPLES, SAMPLES)?;
    Ok(Box::new(HistogramReadout::new(Patterns { steps, samples }, spec)?))
}
