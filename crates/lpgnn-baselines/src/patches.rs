use std::cmp::Reverse;
use std::collections::VecDeque;
use std::sync::Arc;

use lpgnn::graph::NO_EDGE;
use lpgnn::readout::{Readout, ReadoutInput};
use lpgnn::registry::ReadoutSpec;
use lpgnn::{Error, Matrix, Scalar};

use crate::known::Known;
use crate::sequence::{Sequence, SequenceReadout, Shape};
use crate::structure::Structure;
use crate::weisfeiler_lehman::refine;

/// The receptive fields of PATCHY-SAN (Niepert et al., 2016): the `fields` most central nodes of a graph, and of each the
/// `k` nearest nodes, itself among them, in a canonical order.
///
/// Central is what many shortest paths lead through (betweenness). The nodes of a field are in the order of their distance from its
/// root, then of centrality, then of their colour after some rounds of Weisfeiler–Lehman refinement.
///
/// Of every two places of a field, the features of the edge from one to the other can be read beside the states of its nodes.
///
/// # Differences
///
/// That order takes the place of a canonical labelling by nauty, which also breaks ties that colours leave. The same
/// units read nodes and edges of a field, where the publication has some for each and puts them side by side.
#[derive(Debug)]
pub(crate) struct Patches {
    fields: usize,
    k: usize,
    /// Components of the features of an edge; 0 if they are not read.
    edge_features: usize,
    /// Places by graph, numbered within it; [`NOBODY`] where there is no node.
    known: Known<u32>,
}

const NOBODY: u32 = u32::MAX;
/// Rounds of refinement that order nodes.
const ROUNDS: usize = 3;

impl Patches {
    #[allow(clippy::cast_possible_truncation, reason = "a graph has fewer than 2³² nodes")]
    fn of(&self, graph: &Structure) -> Arc<[u32]> {
        let centrality = betweenness(graph);
        let mut colours = graph.labels().to_vec();
        (0..ROUNDS).for_each(|_| colours = refine(graph, &colours));
        // Sums of paths differ in their last bits with the order of nodes.
        let central = |v: usize| Reverse((centrality[v] * 1e6).round() as i64);
        let mut roots: Vec<usize> = (0..graph.nodes()).collect();
        roots.sort_by_key(|&v| (central(v), Reverse(graph.neighbours(v).len()), colours[v]));
        let mut places = vec![NOBODY; self.fields * self.k];
        for (&root, to) in roots.iter().zip(places.chunks_exact_mut(self.k)) {
            let mut near = distances(graph, root);
            near.sort_by_key(|&(v, distance)| (distance, central(v), colours[v]));
            to.iter_mut().zip(near).for_each(|(to, (v, _))| *to = v as u32);
        }
        places.into()
    }
}

impl Sequence for Patches {
    fn places<S: Scalar>(&self, input: ReadoutInput<'_, S>) -> Vec<Option<usize>> {
        let mut places = vec![];
        for number in 0..input.batch.graphs() {
            let graph = Structure::of(input.batch, number);
            let first = input.batch.nodes_of(number).start;
            let node = |&v: &u32| (v != NOBODY).then_some(first + v as usize);
            places.extend(self.known.of(&graph, || self.of(&graph)).iter().map(node));
        }
        places
    }

    /// The features of the edge between every two nodes of a field; zeros where there is none.
    fn beside<S: Scalar>(
        &self,
        input: ReadoutInput<'_, S>,
        places: &[Option<usize>],
    ) -> Option<Matrix<S>> {
        let (width, k, neighbours) = (self.edge_features, self.k, input.batch.neighbours());
        let mut all = Matrix::zeros(places.len() / k, k * k * width);
        // Neighbours of graphs whose edges have no features know no edges.
        let known = width > 0 && !neighbours.outgoing().is_empty();
        for (row, field) in places.chunks_exact(k).enumerate().filter(|_| known) {
            for (i, v) in field.iter().enumerate().filter_map(|(i, v)| v.map(|v| (i, v))) {
                for entry in neighbours.range(v) {
                    let u = Some(neighbours.nodes()[entry] as usize);
                    let (j, edge) =
                        (field.iter().position(|&v| v == u), neighbours.outgoing()[entry]);
                    let Some(j) = j.filter(|_| edge != NO_EDGE) else { continue };
                    let to = &mut all.row_mut(row)[(i * k + j) * width..][..width];
                    let features = input.batch.edge_features().entries(edge as usize);
                    features.for_each(|(column, value)| to[column] = value);
                }
            }
        }
        Some(all)
    }
}

/// All nodes that can be reached, each with its distance.
fn distances(graph: &Structure, root: usize) -> Vec<(usize, usize)> {
    let mut found = vec![usize::MAX; graph.nodes()];
    let (mut all, mut next) = (vec![], 0);
    found[root] = 0;
    all.push((root, 0));
    while let Some(&(v, distance)) = all.get(next) {
        next += 1;
        for &u in graph.neighbours(v) {
            if found[u as usize] == usize::MAX {
                found[u as usize] = distance + 1;
                all.push((u as usize, distance + 1));
            }
        }
    }
    all
}

/// How many shortest paths between others lead through every node, where those of a pair count 1 together (Brandes, 2001).
fn betweenness(graph: &Structure) -> Vec<f64> {
    let nodes = graph.nodes();
    let mut through = vec![0.0; nodes];
    for source in 0..nodes {
        let (mut paths, mut distance) = (vec![0.0; nodes], vec![usize::MAX; nodes]);
        let (mut order, mut queue) = (vec![], VecDeque::from([source]));
        (paths[source], distance[source]) = (1.0, 0);
        while let Some(v) = queue.pop_front() {
            order.push(v);
            for &u in graph.neighbours(v) {
                let u = u as usize;
                if distance[u] == usize::MAX {
                    distance[u] = distance[v] + 1;
                    queue.push_back(u);
                }
                if distance[u] == distance[v] + 1 {
                    paths[u] += paths[v];
                }
            }
        }
        let mut share = vec![0.0; nodes];
        for &u in order.iter().rev() {
            for &v in graph.neighbours(u) {
                let v = v as usize;
                if distance[v] + 1 == distance[u] {
                    share[v] += paths[v] / paths[u] * (1.0 + share[u]);
                }
            }
            if u != source {
                through[u] += share[u];
            }
        }
    }
    through
}

/// Fields, nodes of a field and units, unless options say otherwise.
const FIELDS: usize = 18;
const K: usize = 10;
const UNITS: usize = 128;

/// The read-out of `fields` fields of `k` nodes, with states of `width` components.
pub(crate) fn readout(
    (fields, k): (usize, usize),
    (width, edge_features): (usize, usize),
    outputs: usize,
    (units, dropout): (usize, f64),
) -> Result<SequenceReadout<Patches>, Error> {
    let (length, kernel, pool, window, channels) = (fields * k, k, false, 10, (16, 8));
    let beside = k * k * edge_features;
    let shape = Shape { length, width, kernel, beside, pool, window, channels, units };
    let patches = Patches { fields, k, edge_features, known: Known::default() };
    SequenceReadout::new(patches, shape, outputs, dropout)
}

/// The read-out `patchy-san`, with the options `fields`, `k`, `units` and `edges`, and the dropout of the model.
pub(crate) fn make<S: Scalar>(spec: &ReadoutSpec<'_>) -> Result<Box<dyn Readout<S>>, Error> {
    let options = &spec.model.readout_options;
    options.check(&["fields", "k", "units", "edges"])?;
    let fields = options.count("fields", 1..=4096, FIELDS)?;
    let k = options.count("k", 1..=256, K)?;
    let units = options.count("units", 1..=1 << 16, UNITS)?;
    let edge_features = if options.get("edges")?.unwrap_or(false) { spec.edge_features } else { 0 };
    let last = (units, spec.model.dropout);
    Ok(Box::new(readout((fields, k), (spec.inputs, edge_features), spec.outputs, last)?))
}
