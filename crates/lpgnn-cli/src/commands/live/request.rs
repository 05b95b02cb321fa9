use lpgnn::live::Name;

/// What a line asks for.
pub(super) enum Request {
    /// A change, or what is meant to be one.
    Event,
    Query(Query),
    /// A question that cannot be understood: which, and why.
    Unclear(&'static str, String),
}

/// The questions there are.
const QUERIES: [&str; 4] = ["predict", "explain", "stats", "digest"];

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
        if line.starts_with('{') {
            return Self::of_json(line);
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let query = match words[..] {
            ["predict", "node", node] => Query::Predict { node: Some(node.into()), graph: None },
            ["predict", "graph", graph] => Query::Predict { node: None, graph: Some(graph.into()) },
            ["explain", "node", node] => Query::Explain { node: node.into(), graph: None },
            ["stats"] => Query::Stats,
            ["digest"] => Query::Digest,
            _ => {
                let known = QUERIES.into_iter().find(|query| words.first() == Some(query));
                return known.map_or(Self::Event, |query| {
                    let expected = match query {
                        "predict" => "`predict node NAME` or `predict graph NAME`",
                        "explain" => "`explain node NAME`",
                        query => query,
                    };
                    Self::Unclear(
                        query,
                        format!("the query is “{line}”, but {expected} is expected"),
                    )
                });
            }
        };
        Self::Query(query)
    }

    fn of_json(line: &str) -> Self {
        #[derive(serde::Deserialize)]
        struct Op {
            op: String,
        }
        let Ok(Op { op }) = serde_json::from_str(line) else { return Self::Event };
        let Some(query) = QUERIES.into_iter().find(|query| *query == op) else {
            return Self::Event;
        };
        match serde_json::from_str(line) {
            Ok(found) => Self::Query(found),
            Err(error) => Self::Unclear(query, format!("the line is not a query: {error}")),
        }
    }
}
