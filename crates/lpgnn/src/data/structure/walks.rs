use std::ops::Range;

use super::Budget;
use crate::Matrix;
use crate::graph::{Neighbours, Topology};
use crate::transition::{for_each_group, split_rows};

/// The probabilities that a random walk of 2, 3, …, `longest` steps ends where it began, a row per node.
///
/// ```text
/// p_t(v) = (P^t)_vv      P_uw = 1/de[u] for w ∈ ne[u]
/// ```
///
/// A walk there and its way back are as likely up to the degrees of their ends, `de[u] P^b_uv = de[v] P^b_vu`, so that
/// half the steps are enough: `p_{a+b}(v) = Σ_u P^a_vu P^b_vu de[v]/de[u]`. A node without neighbours never leaves, and
/// has zeros.
pub(super) fn returns(topology: &Topology, longest: usize, budget: &Budget) -> Matrix<f32> {
    let neighbours = topology.neighbours();
    let mut all = Matrix::zeros(topology.nodes(), longest - 1);
    let graphs: Vec<_> = (0..topology.graphs()).map(|graph| topology.nodes_of(graph)).collect();
    let rows = split_rows(all.as_mut_slice(), longest - 1, &graphs);
    let mut graphs: Vec<_> = graphs.into_iter().zip(rows).collect();
    for_each_group(&mut graphs, |(nodes, rows)| {
        for (v, row) in nodes.clone().zip(rows.chunks_exact_mut(longest - 1)) {
            if !neighbours.is_isolated(v) && !of_node(neighbours, nodes, v, row, budget) {
                return;
            }
        }
    });
    all
}

/// Those of one node; whether the budget lasted.
#[allow(clippy::cast_possible_truncation, reason = "features are kept in single precision")]
fn of_node(
    neighbours: &Neighbours,
    nodes: &Range<usize>,
    v: usize,
    row: &mut [f32],
    budget: &Budget,
) -> bool {
    let degree = |u: usize| neighbours.degree(u) as f64;
    let mut now = Spread::at(v - nodes.start, nodes.len());
    let mut lasts = true;
    let longest = row.len() + 1;
    // next = P^half e_v, now = P^(half − 1) e_v.
    for half in 1..=longest.div_ceil(2) {
        let mut next = Spread::nowhere(nodes.len());
        for &u in &now.support {
            let share = now.mass[u] / degree(nodes.start + u);
            for &w in neighbours.of(nodes.start + u) {
                next.add(w as usize - nodes.start, share);
            }
        }
        lasts = lasts && budget.spend(nodes.len() + next.support.len());
        let meet = |a: &Spread, b: &Spread| {
            let at = |&u: &usize| a.mass[u] * b.mass[u] / degree(nodes.start + u);
            b.support.iter().map(at).sum::<f64>() * degree(v)
        };
        if half > 1 {
            row[2 * half - 3] = meet(&now, &next) as f32;
        }
        if 2 * half <= longest {
            row[2 * half - 2] = meet(&next, &next) as f32;
        }
        now = next;
    }
    lasts
}

/// Where a walk can be, and how probably.
struct Spread {
    mass: Vec<f64>,
    /// The nodes that it can be at.
    support: Vec<usize>,
}

impl Spread {
    fn nowhere(nodes: usize) -> Self {
        Self { mass: vec![0.0; nodes], support: vec![] }
    }

    fn at(node: usize, nodes: usize) -> Self {
        let mut here = Self::nowhere(nodes);
        here.add(node, 1.0);
        here
    }

    fn add(&mut self, node: usize, mass: f64) {
        if self.mass[node] == 0.0 {
            self.support.push(node);
        }
        self.mass[node] += mass;
    }
}
