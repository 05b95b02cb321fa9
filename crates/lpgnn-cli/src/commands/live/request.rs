use lpgnn::live::Name;

/// What a line asks for.
pub(super) enum Request {
    /// A change, or what is meant to be one.
    Event,
    Query(Query),
}

/// A question, which changes nothing.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(tag = "op", rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum Query {
    /// The prediction of a node or graph.
    Predict {
        #[serde(default)]
        node: Option<Name>,
        #[serde(default)]
        graph: Option<Name>,
    },
    /// What the prediction of a node rests on.
    Explain {
        node: Name,
        #[serde(default)]
        graph: Option<Name>,
    },
    /// How large the graph is, and how good.
    Stats,
    /// A checksum of everything that events have made of the graph.
    Digest,
}

impl Request {
    /// `{"op": "predict", "node": 17}`, or in words: `predict node 17`.
    pub(super) fn of(line: &str) -> Self {
        if let Ok(query) = serde_json::from_str(line) {
            return Self::Query(query);
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let query = match words[..] {
            ["predict", "node", node] => Query::Predict { node: Some(node.into()), graph: None },
            ["predict", "graph", graph] => Query::Predict { node: None, graph: Some(graph.into()) },
            ["explain", "node", node] => Query::Explain { node: node.into(), graph: None },
            ["stats"] => Query::Stats,
            ["digest"] => Query::Digest,
            _ => return Self::Event,
        };
        Self::Query(query)
    }
}
