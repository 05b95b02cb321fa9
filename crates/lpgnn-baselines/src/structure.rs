//! One graph by itself, as features of its structure see it.

use lpgnn::Scalar;
use lpgnn::graph::GraphBatch;

/// The neighbours of every node, numbered within the graph, and a label of every node that says whether two have the
/// same features.
#[derive(Debug)]
pub(crate) struct Structure {
    starts: Vec<usize>,
    neighbours: Vec<u32>,
    labels: Vec<u64>,
}

impl Structure {
    /// That of a graph of a batch. A node without an edge has no neighbours here.
    pub(crate) fn of<S: Scalar>(batch: &GraphBatch<S>, graph: usize) -> Self {
        let (nodes, features) = (batch.nodes_of(graph), batch.node_features());
        let first = nodes.start;
        let (mut starts, mut neighbours, mut labels) = (vec![0], vec![], vec![]);
        for v in nodes {
            if !batch.neighbours().is_isolated(v) {
                #[allow(clippy::cast_possible_truncation, reason = "a 32-bit number minus another")]
                let local = |&u: &u32| (u as usize - first) as u32;
                neighbours.extend(batch.neighbours().of(v).iter().map(local));
            }
            starts.push(neighbours.len());
            // Dense features store zeros, sparse ones do not; both are to have the same label.
            let stored = features.entries(v).filter(|(_, value)| value.f64().abs() > 0.0);
            let label = |hash, (column, value): (usize, S)| {
                mix(mix(hash, column as u64), value.f64().to_bits())
            };
            labels.push(stored.fold(0, label));
        }
        Self { starts, neighbours, labels }
    }

    /// How many nodes it has.
    pub(crate) fn nodes(&self) -> usize {
        self.labels.len()
    }

    /// The neighbours of a node.
    pub(crate) fn neighbours(&self, v: usize) -> &[u32] {
        &self.neighbours[self.starts[v]..self.starts[v + 1]]
    }

    /// The labels of all nodes.
    pub(crate) fn labels(&self) -> &[u64] {
        &self.labels
    }

    /// A number that graphs share which are the same, node by node.
    pub(crate) fn key(&self) -> [u64; 2] {
        let all = |seed| {
            let hash = self.starts.iter().fold(seed, |hash, &start| mix(hash, start as u64));
            let hash = self.neighbours.iter().fold(hash, |hash, &u| mix(hash, u64::from(u)));
            self.labels.iter().fold(hash, |hash, &label| mix(hash, label))
        };
        [all(1), all(2)]
    }
}

/// A hash of two numbers, in which they play different parts: `splitmix64` of what becomes of them.
pub(crate) fn mix(a: u64, b: u64) -> u64 {
    let mut z = a.rotate_left(23) ^ b.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = z.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
