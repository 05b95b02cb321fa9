use super::Budget;
use super::counts::{Shape, Tally};

/// Counts the cliques of a graph.
///
/// A clique is found once, in the order of its nodes: it grows by common neighbours that are larger than all its
/// nodes. Its last node is not visited but counted, since every such neighbour is one.
pub(super) fn count(tally: &mut Tally<'_>, budget: &Budget) {
    let cliques = || tally.kinds.iter().enumerate().filter(|(_, kind)| kind.0 == Shape::Clique);
    let Some((first_kind, &(_, smallest))) = cliques().next() else { return };
    let largest = smallest + cliques().count() - 1;
    let nodes = tally.range.clone();
    let mut search = Search { tally, budget, first_kind, smallest, largest, clique: vec![] };
    for v in nodes {
        let larger: Vec<usize> =
            search.tally.others(v).map(|(u, _)| u).filter(|&u| u > v).collect();
        if !search.grow(v, &larger) {
            return;
        }
    }
}

struct Search<'s, 't> {
    tally: &'s mut Tally<'t>,
    budget: &'s Budget,
    first_kind: usize,
    smallest: usize,
    largest: usize,
    clique: Vec<usize>,
}

impl Search<'_, '_> {
    /// Whether the budget lasted for the cliques that have the nodes so far, `v`, and some of the `common` neighbours.
    fn grow(&mut self, v: usize, common: &[usize]) -> bool {
        self.clique.push(v);
        let mut lasts = self.budget.spend(1 + common.len());
        if self.clique.len() + 1 >= self.smallest {
            self.found(common);
        }
        if self.clique.len() + 1 < self.largest {
            for (i, &u) in common.iter().enumerate() {
                let rest = self.neighbours_among(&common[i + 1..], u);
                lasts = lasts && self.grow(u, &rest);
            }
        }
        self.clique.pop();
        lasts
    }

    /// Those of `nodes`, which are in order, that are neighbours of `u`.
    fn neighbours_among(&self, nodes: &[usize], u: usize) -> Vec<usize> {
        let of_u = self.tally.neighbours.of(u);
        nodes.iter().copied().filter(|&w| entry(of_u, w).is_some()).collect()
    }

    /// The clique with each of these nodes.
    #[allow(clippy::cast_possible_truncation, reason = "a node is numbered with 32 bits")]
    fn found(&mut self, last: &[usize]) {
        let kind = self.first_kind + self.clique.len() + 1 - self.smallest;
        for (i, &v) in self.clique.iter().enumerate() {
            self.tally.node(kind, v, last.len() as u32);
            if self.tally.with_pairs() {
                let (start, of_v) =
                    (self.tally.neighbours.range(v).start, self.tally.neighbours.of(v));
                let within = self.clique[i + 1..].iter().map(|u| (u, last.len() as u32));
                for (&u, by) in within.chain(last.iter().map(|u| (u, 1))) {
                    let place = entry(of_v, u).expect("the nodes of a clique are neighbours");
                    self.tally.pair(kind, start + place, by);
                }
            }
        }
        last.iter().for_each(|&u| self.tally.node(kind, u, 1));
    }
}

/// Where `u` is in a list of neighbours.
fn entry(neighbours: &[u32], u: usize) -> Option<usize> {
    neighbours.binary_search_by(|&w| (w as usize).cmp(&u)).ok()
}
