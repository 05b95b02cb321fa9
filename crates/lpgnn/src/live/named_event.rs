//! Events as they are written in JSON, with names in place of numbers.

use std::fmt;

use super::Columns;

/// The name of a node or graph, or its number in data without names. `17` and `"17"` are the same.
#[derive(
    Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(from = "NameOrNumber", into = "NameOrNumber")]
pub struct Name(String);

#[derive(serde::Serialize, serde::Deserialize)]
#[serde(
    untagged,
    expecting = "the name of a node or graph is expected, text or a non-negative integer"
)]
enum NameOrNumber {
    Number(u64),
    Name(String),
}

impl From<NameOrNumber> for Name {
    fn from(name: NameOrNumber) -> Self {
        match name {
            NameOrNumber::Number(number) => Self(number.to_string()),
            NameOrNumber::Name(name) => Self(name),
        }
    }
}

impl From<Name> for NameOrNumber {
    fn from(Name(name): Name) -> Self {
        match name.parse::<u64>() {
            Ok(number) if number.to_string() == name => Self::Number(number),
            _ => Self::Name(name),
        }
    }
}

impl From<&str> for Name {
    fn from(name: &str) -> Self {
        Self(name.to_owned())
    }
}

impl From<usize> for Name {
    fn from(number: usize) -> Self {
        Self(number.to_string())
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A change of a data set.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(tag = "op", rename_all = "kebab-case", deny_unknown_fields)]
pub enum NamedEvent {
    /// A new edge.
    AddEdge {
        /// The node it leaves.
        source: Name,
        /// The node it enters.
        target: Name,
        /// The graph of both; not needed where there is one.
        #[serde(default)]
        graph: Option<Name>,
        /// Whether there is to be one in the other direction too.
        #[serde(default)]
        undirected: bool,
        /// Its columns.
        #[serde(default)]
        features: Columns,
    },
    /// An edge goes.
    RemoveEdge {
        /// The node it leaves.
        source: Name,
        /// The node it enters.
        target: Name,
        /// The graph of both.
        #[serde(default)]
        graph: Option<Name>,
        /// Whether the one in the other direction goes too.
        #[serde(default)]
        undirected: bool,
    },
    /// New features of an edge.
    UpdateEdge {
        /// The node it leaves.
        source: Name,
        /// The node it enters.
        target: Name,
        /// The graph of both.
        #[serde(default)]
        graph: Option<Name>,
        /// Whether the one in the other direction gets them too.
        #[serde(default)]
        undirected: bool,
        /// Its columns.
        features: Columns,
    },
    /// A new node, without edges.
    AddNode {
        /// Its name.
        node: Name,
        /// Its graph.
        #[serde(default)]
        graph: Option<Name>,
        /// Its columns.
        #[serde(default)]
        features: Columns,
    },
    /// A node goes, with all its edges.
    RemoveNode {
        /// Which.
        node: Name,
        /// Its graph.
        #[serde(default)]
        graph: Option<Name>,
    },
    /// New features of a node.
    UpdateNode {
        /// Which.
        node: Name,
        /// Its graph.
        #[serde(default)]
        graph: Option<Name>,
        /// Its columns.
        features: Columns,
    },
}
