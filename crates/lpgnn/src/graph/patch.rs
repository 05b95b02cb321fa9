use super::{Groups, Neighbours, Topology};

/// A few nodes of a graph with their neighbours, as a topology: the nodes are owned, and every entry of their lists of
/// neighbours is a ghost of its own.
///
/// It is filled again and again without being allocated again.
#[derive(Clone, Debug)]
pub(crate) struct Patch {
    topology: Topology,
}

impl Default for Patch {
    fn default() -> Self {
        let (node_starts, edge_starts) = (vec![0, 0], vec![0, 0]);
        let neighbours = Neighbours::empty();
        let groups = Groups::new(&[0], neighbours.starts());
        let ghosts = super::Ghosts::default();
        let share = None;
        Self { topology: Topology { node_starts, edge_starts, neighbours, groups, ghosts, share } }
    }
}

impl Patch {
    /// Empties it, for `nodes` nodes to come.
    pub(crate) fn start(&mut self, nodes: usize) {
        let Topology { node_starts, edge_starts, neighbours, ghosts, .. } = &mut self.topology;
        (node_starts[1], edge_starts[1]) = (nodes, 0);
        neighbours.starts.truncate(1);
        neighbours.nodes.clear();
        neighbours.outgoing.clear();
        neighbours.incoming.clear();
        neighbours.isolated.clear();
        ghosts.degrees.clear();
    }

    /// The next neighbour of the node that comes next; its row is behind all others. Edges are numbered by whoever
    /// has their features.
    #[allow(clippy::cast_possible_truncation, reason = "a patch is small")]
    pub(crate) fn push_neighbour(&mut self, degree: usize, edges: Option<[u32; 2]>) {
        let Topology { node_starts, neighbours, ghosts, .. } = &mut self.topology;
        neighbours.nodes.push((node_starts[1] + ghosts.degrees.len()) as u32);
        ghosts.degrees.push(degree as u32);
        if let Some([outgoing, incoming]) = edges {
            neighbours.outgoing.push(outgoing);
            neighbours.incoming.push(incoming);
        }
    }

    /// Ends the list of neighbours of a node; one without any is its own, along no edge.
    #[allow(clippy::cast_possible_truncation, reason = "a patch is small")]
    pub(crate) fn end_node(&mut self, with_edges: bool) {
        let neighbours = &mut self.topology.neighbours;
        let v = neighbours.starts.len() - 1;
        if neighbours.nodes.len() == neighbours.starts[v] as usize {
            neighbours.push_isolated(v as u32, with_edges);
        }
        neighbours.starts.push(neighbours.nodes.len() as u32);
    }

    /// The nodes so far.
    pub(crate) fn topology(&self) -> &Topology {
        &self.topology
    }
}
