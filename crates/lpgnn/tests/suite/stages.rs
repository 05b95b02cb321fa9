//! An update is the same whoever owns which nodes.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::sync::{Barrier, Mutex};

use lpgnn::graph::{Exchange, FeaturesView, GraphBatch, Local, Part, Reduce, Topology};
use lpgnn::transition::{Gradients, Input, Transition, Upstream};
use lpgnn::{Matrix, Scratch};

use crate::common::{self, EDGE_FEATURE, FORMS, LABEL, TRANSITIONS, batch, networks};

/// Threads that share a graph, each with some of its nodes, and lay their rows open for each other.
#[derive(Debug)]
struct Shared<'a> {
    barrier: &'a Barrier,
    /// A table of all nodes, or of all pairs, of the whole graph.
    table: &'a Mutex<Vec<f64>>,
    part: &'a Part,
    /// The entry of the whole table for every own entry.
    pairs: Vec<usize>,
}

impl Shared<'_> {
    /// Writes own rows into the whole table, and reads those of ghosts when all have written.
    fn swap(
        &self,
        width: usize,
        (own, ghosts): (&[usize], &[u32]),
        rows: &[f64],
        of_ghosts: &mut [f64],
    ) {
        let size = own.iter().copied().chain(ghosts.iter().map(|&g| g as usize)).max();
        self.barrier.wait();
        {
            let mut table = self.table.lock().unwrap();
            let needed = (size.unwrap_or(0) + 1) * width;
            if table.len() < needed {
                table.resize(needed, f64::NAN);
            }
            for (row, &at) in own.iter().enumerate() {
                table[at * width..][..width].copy_from_slice(&rows[row * width..][..width]);
            }
        }
        self.barrier.wait();
        let table = self.table.lock().unwrap();
        for (row, &at) in ghosts.iter().enumerate() {
            of_ghosts[row * width..][..width]
                .copy_from_slice(&table[at as usize * width..][..width]);
        }
    }
}

impl Exchange<f64> for Shared<'_> {
    fn gather_nodes(&self, _: &Topology, width: usize, rows: &[f64], ghosts: &mut [f64]) {
        let own: Vec<usize> = self.part.owned.iter().map(|&v| v as usize).collect();
        self.swap(width, (&own, &self.part.ghosts), rows, ghosts);
    }

    fn gather_pairs(&self, _: &Topology, width: usize, rows: &[f64], ghosts: &mut [f64]) {
        self.swap(width, (&self.pairs, &self.part.ghost_pairs), rows, ghosts);
    }
}

/// An upstream that depends on the value, so that a wrong one is noticed: `∂𝓛/∂f = f ⊙ f + 1`.
struct Squares;

impl Upstream<f64> for Squares {
    fn derive(&mut self, _: std::ops::Range<usize>, f: &[f64], d_f: &mut [f64], d_x: &mut [f64]) {
        d_f.iter_mut().zip(f).for_each(|(d, f)| *d = f * f + 1.0);
        d_x.fill(0.0);
    }
}

/// `∂𝓛/∂X` and `∂𝓛/∂θ` of one process.
fn pass(
    f: &dyn Transition<f64>,
    weights: &[f64],
    input: Input<'_, f64>,
    reduce: &dyn Reduce<f64>,
) -> (Matrix<f64>, Vec<f64>) {
    let mut d_states = Matrix::zeros(input.topology.nodes(), f.state_dim());
    let mut d_weights = vec![0.0; weights.len()];
    let mut squares: Vec<_> = input.topology.groups().ranges().iter().map(|_| Squares).collect();
    let mut upstream: Vec<&mut dyn Upstream<f64>> =
        squares.iter_mut().map(|s| s as &mut dyn Upstream<f64>).collect();
    let gradients =
        Gradients { reduce, ..Gradients::new(Some(&mut d_weights), &mut d_states, None) };
    f.pass(weights, input, &mut upstream, gradients, &Scratch::new());
    (d_states, d_weights)
}

fn dense(features: &lpgnn::graph::Features<f64>, rows: &[u32]) -> Matrix<f64> {
    let mut dense = Matrix::zeros(rows.len(), features.width());
    for (row, &from) in rows.iter().enumerate() {
        for (column, value) in features.entries(from as usize) {
            dense.row_mut(row)[column] = value;
        }
    }
    dense
}

/// One graph, of which `owner` says who has which node; returns the gradients in the order of the whole.
fn shared(
    f: &dyn Transition<f64>,
    weights: &[f64],
    whole: &GraphBatch<f64>,
    states: &Matrix<f64>,
    owner: impl Fn(usize) -> usize,
) -> (Matrix<f64>, Vec<f64>) {
    let of = |rank: usize| {
        let owned = (0..whole.nodes()).filter(|&v| owner(v) == rank);
        Part::new(whole.topology(), owned.map(|v| u32::try_from(v).unwrap()).collect())
    };
    let parts = [of(0), of(1)];
    let (barrier, table) = (Barrier::new(2), Mutex::new(vec![]));
    let found: Vec<_> = std::thread::scope(|scope| {
        let run = |part| {
            let (barrier, table) = (&barrier, &table);
            scope.spawn(move || {
                let part: &Part = part;
                let range = |&v: &u32| whole.neighbours().range(v as usize);
                let pairs = part.owned.iter().flat_map(range).collect();
                let exchange = Shared { barrier, table, part, pairs };
                let own_states = states.select(part.owned.iter().map(|&v| v as usize));
                let node_features = dense(whole.node_features(), &part.owned);
                let edge_features = dense(whole.edge_features(), &part.edges);
                let input = Input {
                    topology: &part.topology,
                    node_features: FeaturesView::Dense(&node_features),
                    edge_features: FeaturesView::Dense(&edge_features),
                    states: &own_states,
                    exchange: &exchange,
                };
                pass(f, weights, input, &Local)
            })
        };
        let threads: Vec<_> = parts.iter().map(run).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let mut d_states = Matrix::zeros(states.rows(), states.cols());
    let mut d_weights = vec![0.0; weights.len()];
    for (part, (d_own, d)) in parts.iter().zip(&found) {
        for (row, &v) in part.owned.iter().enumerate() {
            d_states.row_mut(v as usize).copy_from_slice(d_own.row(row));
        }
        d_weights.iter_mut().zip(d).for_each(|(sum, d)| *sum += d);
    }
    (d_states, d_weights)
}

#[test]
fn a_graph_that_two_processes_share_has_the_gradients_of_the_whole() {
    for h in &networks() {
        for number in 0..TRANSITIONS {
            let f = common::transition::<f64>(number, 3, LABEL, EDGE_FEATURE, h);
            for seed in 0..3 {
                // Cut into groups, so that the whole takes the same way as its parts do.
                let whole = batch::<f64>(seed, FORMS[0]).with_groups_of(1);
                let mut draw = lpgnn::uniform(seed);
                let mut weights = vec![0.0; f.parameters().weights()];
                f.parameters().initialize(&mut draw, &mut weights);
                let mut states = Matrix::zeros(whole.nodes(), 3);
                states.as_mut_slice().fill_with(|| draw() - 0.5);
                let all: Vec<u32> = (0..u32::try_from(whole.nodes()).unwrap()).collect();
                let features = dense(whole.node_features(), &all);
                let input = Input {
                    node_features: FeaturesView::Dense(&features),
                    ..Input::of(&whole, &states)
                };
                let (d_states, d_weights) = pass(f.as_ref(), &weights, input, &Local);
                let (shared_states, shared_weights) =
                    shared(f.as_ref(), &weights, &whole, &states, |v| (v * 7 + 3) % 5 % 2);
                let bits = |m: &Matrix<f64>| -> Vec<u64> {
                    m.as_slice().iter().map(|x| x.to_bits()).collect()
                };
                assert_eq!(bits(&d_states), bits(&shared_states), "{f:?}, seed {seed}");
                for (a, b) in d_weights.iter().zip(&shared_weights) {
                    assert!((a - b).abs() < 1e-12 * a.abs().max(1.0), "{f:?}: {a} and {b}");
                }
            }
        }
    }
}
