//! An order of nodes in which neighbours are near each other, by METIS, and where it is cut.

#[cfg(feature = "mpi")]
use metis::option::Seed;
#[cfg(feature = "mpi")]
use metis::{Graph, Idx};

use super::Dataset;
#[cfg(feature = "mpi")]
use crate::Error;
#[cfg(feature = "mpi")]
use crate::graph::Neighbours;

#[cfg(feature = "mpi")]
/// Nodes of a graph below which it is not worth being cut.
const SMALL: usize = 1000;

/// An order of the nodes of a data set, and where parts start in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// The node in every place.
    pub order: Vec<usize>,
    /// The first place of every part, in order; a graph that is not cut is a part.
    pub starts: Vec<usize>,
}

/// An order of nodes that lists the parts of every large graph one after the other.
///
/// Parts are those of recursive bisection, so that those with near numbers are near each other in the graph as well: any
/// number of ranks, each with a run of nodes, has few neighbours elsewhere.
///
/// # Errors
///
/// [`Error::TooLarge`], or what METIS says.
#[cfg(feature = "mpi")]
pub fn partition(dataset: &Dataset, parts: usize) -> Result<Partition, Error> {
    let (starts, edges) = (dataset.node_starts(), dataset.edges());
    let neighbours = Neighbours::along(dataset.nodes(), edges)?;
    let mut order: Vec<usize> = (0..dataset.nodes()).collect();
    let mut first_places = vec![];
    for graph in starts.windows(2) {
        let nodes = graph[0]..graph[1];
        if nodes.len() >= SMALL.max(2 * parts) {
            let part = parts_of(&neighbours, nodes.clone(), parts)?;
            order[nodes.clone()].sort_by_key(|&v| (part[v - graph[0]], v));
            let of = |place: usize| part[order[place] - graph[0]];
            let first = |&place: &usize| place == graph[0] || of(place) != of(place - 1);
            first_places.extend(nodes.filter(first));
        } else {
            first_places.extend(blocks(nodes, parts));
        }
    }
    Ok(Partition { order, starts: first_places })
}

/// Where so many blocks of about as many nodes start.
fn blocks(nodes: std::ops::Range<usize>, parts: usize) -> impl Iterator<Item = usize> {
    let parts = parts.clamp(1, nodes.len().max(1));
    (0..parts).map(move |part| nodes.start + part * nodes.len() / parts)
}

/// The nodes in the order in which they are, in parts of about as many nodes of every graph.
pub fn blocks_of(dataset: &Dataset, parts: usize) -> Partition {
    let graphs = dataset.node_starts().windows(2);
    Partition {
        order: (0..dataset.nodes()).collect(),
        starts: graphs.flat_map(|graph| blocks(graph[0]..graph[1], parts)).collect(),
    }
}

/// How many edges lead from one of `ranks` runs of nodes to another, if all have as many nodes.
pub fn cut(dataset: &Dataset, ranks: usize) -> usize {
    let of = |v: u32| v as usize * ranks / dataset.nodes().max(1);
    dataset.edges().iter().filter(|&&(u, v)| of(u) != of(v)).count()
}

/// The part of every node of a graph.
#[cfg(feature = "mpi")]
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

#[cfg(all(test, feature = "mpi"))]
mod tests {
    use super::*;
    use crate::data::generate::CommunitiesConfig;

    #[test]
    fn parts_cut_fewer_edges_than_blocks_for_any_number_of_ranks() {
        let before =
            CommunitiesConfig { nodes: 3000, mixing: 0.02, ..CommunitiesConfig::default() };
        let before = before.generate(1).unwrap();
        let order = partition(&before, 16).unwrap().order;
        let after = before.reordered(&order).unwrap();
        for ranks in [2, 3, 4, 7] {
            let (blocks, parts) = (cut(&before, ranks), cut(&after, ranks));
            assert!(3 * parts < 2 * blocks, "{ranks} ranks: {parts} of {blocks}");
        }
    }
}
