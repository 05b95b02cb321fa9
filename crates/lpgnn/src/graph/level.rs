use super::{GraphBatch, Targets};
use crate::Scalar;

/// Nodes or graphs: what is predicted, split or read out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// Every node, of one graph or many.
    Node,
    /// Every graph as a whole.
    Graph,
}

impl Level {
    /// `node` or `graph`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Node => "node",
            Self::Graph => "graph",
        }
    }

    /// `nodes` or `graphs`, for sentences.
    pub fn plural(self) -> &'static str {
        match self {
            Self::Node => "nodes",
            Self::Graph => "graphs",
        }
    }

    /// How many of them a batch has.
    pub fn rows<S: Scalar>(self, batch: &GraphBatch<S>) -> usize {
        match self {
            Self::Node => batch.nodes(),
            Self::Graph => batch.graphs(),
        }
    }

    /// Their targets in a batch.
    pub fn targets_of<S: Scalar>(self, batch: &GraphBatch<S>) -> &Targets<S> {
        match self {
            Self::Node => batch.node_targets(),
            Self::Graph => batch.graph_targets(),
        }
    }
}
