use super::Budget;
use super::counts::{Shape, Tally};

/// Counts the rings of a graph.
///
/// A ring of `n` nodes is found once, as a path `p_0, p_1, …, p_{n−1}` from its smallest node `p_0`, in the direction
/// with `p_1 < p_{n−1}`. A path is extended only by nodes that are no neighbours of its inner ones: what is left are
/// paths without chords, of which there are few in sparse graphs.
pub(super) fn count(tally: &mut Tally<'_>, budget: &Budget) {
    let sizes = tally.kinds.iter().filter(|(shape, _)| *shape == Shape::Ring);
    let Some(largest) = sizes.map(|(_, size)| *size).max() else { return };
    let nodes = tally.range.clone();
    let (first, count) = (nodes.start, nodes.len());
    let mut search = Search {
        tally,
        budget,
        largest,
        first,
        to_root: vec![None; count],
        beside: vec![0; count],
        path: vec![],
        entries: vec![],
    };
    for root in nodes {
        if !search.from(root) {
            return;
        }
    }
}

struct Search<'s, 't> {
    tally: &'s mut Tally<'t>,
    budget: &'s Budget,
    largest: usize,
    /// The first node of the graph, which has place 0 in the tables.
    first: usize,
    /// The entry of a pair of the root and this neighbour of it.
    to_root: Vec<Option<usize>>,
    /// How many inner nodes of the path have this neighbour.
    beside: Vec<u32>,
    path: Vec<usize>,
    /// Of the pairs of consecutive nodes.
    entries: Vec<usize>,
}

impl Search<'_, '_> {
    /// Whether the budget lasted for the rings with this smallest node.
    fn from(&mut self, root: usize) -> bool {
        let around: Vec<_> = self.tally.others(root).collect();
        around.iter().for_each(|&(u, entry)| self.to_root[u - self.first] = Some(entry));
        self.path.push(root);
        let lasts = around.iter().filter(|&&(u, _)| u > root).all(|&(u, entry)| {
            self.entries.push(entry);
            let lasts = self.extend(u);
            self.entries.pop();
            lasts
        });
        self.path.pop();
        around.iter().for_each(|&(u, _)| self.to_root[u - self.first] = None);
        lasts
    }

    /// The same with the path that `last` extends.
    fn extend(&mut self, last: usize) -> bool {
        self.path.push(last);
        let around: Vec<_> = self.tally.others(last).collect();
        let mut lasts = self.budget.spend(around.len());
        let (root, second) = (self.path[0], self.path[1]);
        let mut further = vec![];
        for &(next, entry) in &around {
            if next <= root || self.beside[next - self.first] > 0 {
                continue;
            }
            match self.to_root[next - self.first] {
                Some(closing) if next > second => self.found(next, entry, closing),
                Some(_) => (),
                None => further.push((next, entry)),
            }
        }
        // With one more node and the one that closes it.
        if self.path.len() + 2 <= self.largest {
            around.iter().for_each(|&(u, _)| self.beside[u - self.first] += 1);
            for (next, entry) in further {
                self.entries.push(entry);
                lasts = lasts && self.extend(next);
                self.entries.pop();
            }
            around.iter().for_each(|&(u, _)| self.beside[u - self.first] -= 1);
        }
        self.path.pop();
        lasts
    }

    /// The path and this node, with the entries that join it to the last one and to the root.
    fn found(&mut self, node: usize, entry: usize, closing: usize) {
        let kind = self.path.len() - 2;
        for &v in self.path.iter().chain([&node]) {
            self.tally.node(kind, v, 1);
        }
        for &entry in self.entries.iter().chain([&entry, &closing]) {
            self.tally.pair(kind, entry, 1);
        }
    }
}
