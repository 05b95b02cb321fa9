use crate::graph::Features;

/// A change of a graph.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A new edge.
    AddEdge {
        /// The node it leaves.
        source: usize,
        /// The node it enters.
        target: usize,
        /// One row; of no columns where edges have no features.
        features: Features<f32>,
    },
    /// An edge goes.
    RemoveEdge {
        /// The node it leaves.
        source: usize,
        /// The node it enters.
        target: usize,
    },
    /// New features of an edge.
    UpdateEdge {
        /// The node it leaves.
        source: usize,
        /// The node it enters.
        target: usize,
        /// One row.
        features: Features<f32>,
    },
    /// A new node, without edges. Its number is the smallest that no node has.
    AddNode {
        /// The graph it belongs to.
        graph: usize,
        /// One row.
        features: Features<f32>,
    },
    /// A node goes, with all its edges. Its number may be given to a node that is added later.
    RemoveNode {
        /// Which.
        node: usize,
    },
    /// New features of a node.
    UpdateNode {
        /// Which.
        node: usize,
        /// One row.
        features: Features<f32>,
    },
}

impl Event {
    /// A new edge without features.
    pub fn add_edge(source: usize, target: usize) -> Self {
        Self::AddEdge { source, target, features: Features::none(1) }
    }

    /// An edge goes.
    pub fn remove_edge(source: usize, target: usize) -> Self {
        Self::RemoveEdge { source, target }
    }
}

/// Why a change was refused; the graph is as if it had not been asked for.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum EventError {
    /// There is no such node.
    #[error("there is no node {node}")]
    UnknownNode {
        /// The node that was named.
        node: usize,
    },
    /// There is no such graph.
    #[error("there is no graph {graph}, but {graphs} graphs are numbered from 0")]
    UnknownGraph {
        /// The graph that was named.
        graph: usize,
        /// How many there are.
        graphs: usize,
    },
    /// There is no such edge.
    #[error("there is no edge from node {source_node} to node {target}")]
    UnknownEdge {
        /// Where it would start.
        source_node: usize,
        /// Where it would end.
        target: usize,
    },
    /// The edge is there already.
    #[error("there is an edge from node {source_node} to node {target} already")]
    DuplicateEdge {
        /// Where it starts.
        source_node: usize,
        /// Where it ends.
        target: usize,
    },
    /// An edge would join two graphs.
    #[error(
        "node {source_node} is in graph {source_graph}, but node {target} is in graph {target_graph}"
    )]
    BetweenGraphs {
        /// Where it would start.
        source_node: usize,
        /// The graph of that node.
        source_graph: usize,
        /// Where it would end.
        target: usize,
        /// The graph of that node.
        target_graph: usize,
    },
    /// Features of another length.
    #[error("{what} has {found} features where {expected} were expected")]
    Width {
        /// A node or an edge.
        what: &'static str,
        /// The model's.
        expected: usize,
        /// Those of the event.
        found: usize,
    },
    /// A feature is infinite or NaN.
    #[error("feature {column} of {what} is {value}, but a finite number is expected")]
    NotFinite {
        /// A node or an edge.
        what: &'static str,
        /// Which feature.
        column: usize,
        /// Its value.
        value: f64,
    },
    /// Features that are not one-hot where all others are.
    #[error("the features of {what} are not one-hot, as those of all others are")]
    NotOneHot {
        /// A node or an edge.
        what: &'static str,
    },
    /// The transition would no longer contract by as much as the bound needs.
    #[error(
        "node {node} would have {degree} neighbours and f_a a Lipschitz bound of {lipschitz:.3} there, \
         but at most {limit:.3} is expected"
    )]
    Lipschitz {
        /// At which node.
        node: usize,
        /// Its degree.
        degree: usize,
        /// The bound there.
        lipschitz: f64,
        /// The limit that the graph is kept to.
        limit: f64,
    },
    /// Single precision could no longer tell whether predictions are within the tolerance.
    #[error(
        "{what} is so large that rounding errors alone would exceed the tolerance: the bound would be {bound:.1e}"
    )]
    Rounding {
        /// What is too large.
        what: &'static str,
        /// What could be promised.
        bound: f64,
    },
    /// Nodes have 30 bits, and neighbours 32.
    #[error("a live graph has at most 2³⁰ nodes and 2³² neighbours")]
    TooLarge,
}
