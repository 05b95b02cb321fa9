//! An order of nodes in which neighbours are near each other, by METIS.

use metis::option::Seed;
use metis::{Graph, Idx};

use super::Dataset;
use crate::Error;
use crate::graph::Neighbours;

/// Nodes of a graph below which it is not worth being cut.
const SMALL: usize = 1000;

/// An order of nodes that lists the parts of every large graph one after the other.
///
/// Parts are those of recursive bisection, so that those with near numbers are near each other in the graph as well: any
/// number of ranks, each with a run of nodes, has few neighbours elsewhere.
///
/// # Errors
///
/// [`Error::TooLarge`], or what METIS says.
pub fn partition(dataset: &Dataset, parts: usize) -> Result<Vec<usize>, Error> {
    let (starts, edges) = (dataset.node_starts(), dataset.edges());
    let neighbours = Neighbours::along(dataset.nodes(), edges)?;
    let mut order: Vec<usize> = (0..dataset.nodes()).collect();
    for graph in starts.windows(2) {
        let nodes = graph[0]..graph[1];
        if nodes.len() >= SMALL.max(2 * parts) {
            let part = parts_of(&neighbours, nodes.clone(), parts)?;
            order[nodes].sort_by_key(|&v| (part[v - graph[0]], v));
        }
    }
    Ok(order)
}

/// How many edges lead from one of `ranks` runs of nodes to another, if all have as many nodes.
pub fn cut(dataset: &Dataset, ranks: usize) -> usize {
    let of = |v: u32| v as usize * ranks / dataset.nodes().max(1);
    dataset.edges().iter().filter(|&&(u, v)| of(u) != of(v)).count()
}

/// The part of every node of a graph.
fn parts_of(
    neighbours: &Neighbours,
    nodes: std::ops::Range<usize>,
    parts: usize,
) -> Result<Vec<Idx>, Error> {
    let number = |x: usize| Idx::try_from(x).map_err(|_| Error::TooLarge);
    let (mut starts, mut list) = (vec![0], vec![]);
    for v in nodes.clone() {
        for &u in neighbours.of(v).iter().filter(|&&u| u as usize != v) {
            list.push(number(u as usize - nodes.start)?);
        }
        starts.push(number(list.len())?);
    }
    let mut part = vec![0; nodes.len()];
    let problem = |said: String| {
        Error::Mismatch(format!("METIS cannot cut a graph into {parts} parts: {said}"))
    };
    Graph::new(1, number(parts)?, &starts, &list)
        .map_err(|error| problem(error.to_string()))?
        .set_option(Seed(1))
        .part_recursive(&mut part)
        .map_err(|error| problem(error.to_string()))?;
    Ok(part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::generate::CommunitiesConfig;

    #[test]
    fn parts_cut_fewer_edges_than_blocks_for_any_number_of_ranks() {
        let before =
            CommunitiesConfig { nodes: 3000, mixing: 0.02, ..CommunitiesConfig::default() };
        let before = before.generate(1).unwrap();
        let order = partition(&before, 16).unwrap();
        let after = before.reordered(&order).unwrap();
        for ranks in [2, 3, 4, 7] {
            let (blocks, parts) = (cut(&before, ranks), cut(&after, ranks));
            assert!(3 * parts < 2 * blocks, "{ranks} ranks: {parts} of {blocks}");
        }
    }
}
