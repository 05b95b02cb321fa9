#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "graphs here are small"
)]

use std::collections::BTreeSet;

use super::counts::count;
use super::walks::returns;
use super::*;
use crate::numeric::uniform;

/// Random graphs in one topology, with edges of one direction or both, and some loops. Half of them are dense, the
/// others a ring with few chords: among dense ones are no rings of six.
fn graphs(seed: u64) -> (Topology, Vec<(u32, u32)>) {
    let mut draw = uniform(seed);
    let (mut starts, mut edges) = (vec![0], BTreeSet::new());
    for graph in 0..6 {
        let first = *starts.last().expect("there is one");
        let nodes = 1 + (8.0 * draw()) as usize;
        let is_ring = graph % 2 == 0 && nodes > 2;
        let density = if is_ring { 0.05 * draw() } else { draw() };
        for u in 0..nodes {
            if is_ring {
                edges.insert(((first + u) as u32, (first + (u + 1) % nodes) as u32));
            }
            for v in 0..nodes {
                if draw() < if u == v { 0.2 } else { density } {
                    edges.insert(((first + u) as u32, (first + v) as u32));
                }
            }
        }
        starts.push(first + nodes);
    }
    let edges: Vec<(u32, u32)> = edges.into_iter().collect();
    (Topology::new(starts, &edges, true).unwrap(), edges)
}

/// Whether two different nodes are joined.
fn joined(topology: &Topology, u: usize, v: usize) -> bool {
    u != v && topology.neighbours().of(u).contains(&(v as u32))
}

/// All sets of nodes of a graph of this shape and size: of a ring, every node has two neighbours in the set and the
/// set holds together; of a clique, all others.
fn sets(topology: &Topology, graph: usize, (shape, size): (Shape, usize)) -> Vec<Vec<usize>> {
    let nodes: Vec<usize> = topology.nodes_of(graph).collect();
    let chosen = (0_u32..1 << nodes.len()).filter(|set| set.count_ones() as usize == size);
    let members = |set: u32| -> Vec<usize> {
        nodes.iter().enumerate().filter(|(i, _)| set >> i & 1 == 1).map(|(_, v)| *v).collect()
    };
    let fits = |set: &Vec<usize>| {
        let degree = |v: usize| set.iter().filter(|&&u| joined(topology, u, v)).count();
        let wanted = if shape == Shape::Ring { 2 } else { size - 1 };
        // From the first node everything is reached: of two triangles, one is not.
        let mut reached = vec![set[0]];
        for _ in set {
            let more = set.iter().filter(|v| reached.iter().any(|u| joined(topology, *u, **v)));
            let more: Vec<usize> = more.copied().filter(|v| !reached.contains(v)).collect();
            reached.extend(more);
        }
        set.iter().all(|&v| degree(v) == wanted) && reached.len() == size
    };
    chosen.map(members).filter(fits).collect()
}

#[test]
fn counts_are_those_of_all_sets_of_nodes() {
    let options = StructureOptions { rings: 6, cliques: 5, walks: 0, edges: true };
    let mut seen = [0_usize; 7];
    for seed in 0..80 {
        let (topology, edges) = graphs(seed);
        let (nodes, pairs) = count(&topology, &options.kinds(), true, &Budget::new(u64::MAX));
        for (kind, &what) in options.kinds().iter().enumerate() {
            let sets: Vec<_> =
                (0..topology.graphs()).flat_map(|g| sets(&topology, g, what)).collect();
            seen[kind] += sets.len();
            let expected = |v: usize| sets.iter().filter(|set| set.contains(&v)).count();
            let found: Vec<usize> = nodes.of(what).unwrap().map(|count| count as usize).collect();
            let all: Vec<usize> = (0..topology.nodes()).map(expected).collect();
            assert_eq!(found, all, "{what:?} of nodes, seed {seed}");
            // Two nodes of a ring that are neighbours are so along the ring: it has no chords.
            let through = |&(u, v): &(u32, u32)| {
                let ends = [u as usize, v as usize];
                let has = |set: &&Vec<usize>| u != v && ends.iter().all(|end| set.contains(end));
                sets.iter().filter(has).count()
            };
            let found: Vec<usize> = pairs.of(what).unwrap().map(|count| count as usize).collect();
            let all: Vec<usize> = edges.iter().map(through).collect();
            assert_eq!(found, all, "{what:?} of edges, seed {seed}");
        }
    }
    assert!(seen.iter().all(|&sets| sets > 10), "the graphs have too few of some: {seen:?}");
}

#[test]
fn return_probabilities_are_the_diagonals_of_powers() {
    for seed in 0..20 {
        let (topology, _) = graphs(seed);
        let neighbours = topology.neighbours();
        for longest in [2, 3, 7, 8] {
            let found = returns(&topology, longest, &Budget::new(u64::MAX));
            for v in 0..topology.nodes() {
                let mut spread = vec![0.0; topology.nodes()];
                spread[v] = 1.0;
                for steps in 1..=longest {
                    let mut next = vec![0.0; topology.nodes()];
                    for (u, mass) in spread.iter().enumerate().filter(|(_, mass)| **mass > 0.0) {
                        for &w in neighbours.of(u) {
                            next[w as usize] += mass / neighbours.degree(u) as f64;
                        }
                    }
                    spread = next;
                    if steps > 1 {
                        let expected = if neighbours.is_isolated(v) { 0.0 } else { spread[v] };
                        let error = (f64::from(found.row(v)[steps - 2]) - expected).abs();
                        assert!(
                            error < 1e-6,
                            "{steps} of {longest} steps from {v}, seed {seed}: {error:e}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn columns_are_shared_by_doublings() {
    assert_eq!([0, 1, 7, 8, 15, 16, 31, 32].map(bin), [0, 1, 7, 8, 8, 9, 9, 10]);
    assert_eq!(bin(u32::MAX), 36);
}

#[test]
fn a_search_ends_with_its_budget() {
    let nodes = 60_u32;
    let all = (0..nodes).flat_map(|u| (0..nodes).filter(move |&v| u != v).map(move |v| (u, v)));
    let topology = Topology::new(vec![0, nodes as usize], &all.collect::<Vec<_>>(), true).unwrap();
    let budget = Budget::new(10_000);
    let options = StructureOptions { rings: 6, cliques: 5, ..StructureOptions::default() };
    count(&topology, &options.kinds(), true, &budget);
    let error = budget.check("rings and cliques", "features.structure.rings").unwrap_err();
    assert!(error.to_string().contains("more than 10000 steps"), "{error}");
    // It ends there, not after the five million cliques.
    assert!(budget.spent.load(Ordering::Relaxed) < 100_000, "{budget:?}");
}
