use std::fmt;
use std::str::FromStr;

use rand_chacha::ChaCha8Rng;

use super::drawing::Drawing;
use super::integer_feature;
use crate::Error;

/// A small graph `S` with node features that has to be found in larger ones.
///
/// As text: the features of its nodes, then its edges, with nodes counted from 0.
///
/// ```
/// # use lpgnn::data::generate::Pattern;
/// let path: Pattern = "1,8 8,4 6,1; 0-1 1-2".parse()?;
/// assert_eq!(path.nodes(), 3);
/// assert_eq!(path.to_string(), "1,8 8,4 6,1; 0-1 1-2");
/// # Ok::<(), lpgnn::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pattern {
    features: Vec<Vec<u32>>,
    edges: Vec<(usize, usize)>,
}

/// Which [`Pattern`] has to be found.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PatternChoice {
    /// A random one, drawn from the seed: connected, with this many nodes.
    Random(usize),
    /// This one.
    Given(Pattern),
}

impl Pattern {
    /// A pattern from the features of its nodes and its edges.
    ///
    /// # Errors
    ///
    /// [`Error::Option`] if there are no nodes, or an edge is a self-loop or refers to a node that does
    /// not exist; [`Error::RaggedRows`] if features differ in length.
    pub fn new(features: Vec<Vec<u32>>, mut edges: Vec<(usize, usize)>) -> Result<Self, Error> {
        let wrong = |value: String, expected: String| Error::Option {
            option: "pattern",
            value: format!("“{value}”"),
            expected,
        };
        let Some(first) = features.first() else {
            return Err(wrong(String::new(), "a pattern has at least one node".into()));
        };
        let expected = first.len();
        if let Some(row) = features.iter().position(|feature| feature.len() != expected) {
            return Err(Error::RaggedRows { row, expected, found: features[row].len() });
        }
        for &(u, v) in &edges {
            if u == v || u.max(v) >= features.len() {
                let expected =
                    format!("an edge joins two different nodes of 0 to {}", features.len() - 1);
                return Err(wrong(format!("{u}-{v}"), expected));
            }
        }
        for edge in &mut edges {
            *edge = (edge.0.min(edge.1), edge.0.max(edge.1));
        }
        edges.sort_unstable();
        edges.dedup();
        Ok(Self { features, edges })
    }

    /// A random connected pattern.
    pub(super) fn random(
        nodes: usize,
        density: f64,
        width: usize,
        largest: u32,
        random: &mut ChaCha8Rng,
    ) -> Self {
        let features = (0..nodes).map(|_| integer_feature(width, largest, random)).collect();
        let mut drawing = Drawing::new(nodes);
        drawing.scribble(density, &vec![false; nodes], random);
        let edges =
            drawing.edges().filter(|(u, v)| u < v).map(|(u, v)| (u as usize, v as usize)).collect();
        Self { features, edges }
    }

    /// The number of nodes.
    pub fn nodes(&self) -> usize {
        self.features.len()
    }

    /// The features of its nodes.
    pub fn features(&self) -> &[Vec<u32>] {
        &self.features
    }

    /// Its edges `(u, v)`, each once with `u < v`.
    pub fn edges(&self) -> &[(usize, usize)] {
        &self.edges
    }

    /// The nodes of a graph that belong to any occurrence of the pattern.
    ///
    /// An occurrence maps the nodes of the pattern to distinct nodes of the graph with the same features,
    /// and every edge of the pattern to an edge. The graph may have more edges
    /// between these nodes: occurrences are subgraphs, not necessarily induced ones.
    pub(super) fn occurrences(&self, drawing: &Drawing, features: &[Vec<u32>]) -> Vec<bool> {
        let mut found = vec![false; drawing.nodes()];
        let orders: Vec<Vec<usize>> = (0..self.nodes()).map(|start| self.order(start)).collect();
        for v in 0..drawing.nodes() {
            // One occurrence that contains v is enough; enumerating all could take forever.
            for order in &orders {
                if found[v] {
                    break;
                }
                let mut search = Search { pattern: self, drawing, features, order, image: vec![] };
                if search.place(v) {
                    search.image.iter().for_each(|&node| found[node] = true);
                }
            }
        }
        found
    }

    /// The nodes from `start` on, each adjacent to an earlier one if possible.
    fn order(&self, start: usize) -> Vec<usize> {
        let mut order = vec![start];
        while order.len() < self.nodes() {
            let left = || (0..self.nodes()).filter(|node| !order.contains(node));
            let near = left().find(|&node| order.iter().any(|&other| self.has(node, other)));
            order.extend(near.or_else(|| left().next()));
        }
        order
    }

    fn has(&self, u: usize, v: usize) -> bool {
        self.edges.binary_search(&(u.min(v), u.max(v))).is_ok()
    }
}

/// A search for one occurrence, pattern node after pattern node in `order`.
struct Search<'a> {
    pattern: &'a Pattern,
    drawing: &'a Drawing,
    features: &'a [Vec<u32>],
    order: &'a [usize],
    /// The images of the first nodes of `order`.
    image: Vec<usize>,
}

impl Search<'_> {
    /// Maps the next pattern node to `v`, and then all others if possible.
    fn place(&mut self, v: usize) -> bool {
        let depth = self.image.len();
        let node = self.order[depth];
        let fits = self.features[v] == self.pattern.features[node]
            && self.order.iter().zip(&self.image).all(|(&other, &u)| {
                u != v && (!self.pattern.has(node, other) || self.drawing.has(v, u))
            });
        if !fits {
            return false;
        }
        self.image.push(v);
        if self.image.len() == self.order.len()
            || (0..self.drawing.nodes()).any(|next| self.place(next))
        {
            return true;
        }
        self.image.truncate(depth);
        false
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let feature =
            |feature: &Vec<u32>| feature.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        let features: Vec<String> = self.features.iter().map(feature).collect();
        let edges: Vec<String> = self.edges.iter().map(|(u, v)| format!("{u}-{v}")).collect();
        write!(f, "{}; {}", features.join(" "), edges.join(" "))
    }
}

impl FromStr for Pattern {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = || Error::Option {
            option: "pattern",
            value: format!("“{text}”"),
            expected: "a pattern is written like 1,8 8,4 6,1; 0-1 1-2: features, then edges".into(),
        };
        let (features, edges) = text.split_once(';').ok_or_else(wrong)?;
        let features = features
            .split_whitespace()
            .map(|feature| feature.split(',').map(str::parse).collect::<Result<_, _>>())
            .collect::<Result<_, _>>()
            .map_err(|_| wrong())?;
        let edges = edges
            .split_whitespace()
            .map(|edge| {
                let (u, v) = edge.split_once('-')?;
                Some((u.parse().ok()?, v.parse().ok()?))
            })
            .collect::<Option<_>>()
            .ok_or_else(wrong)?;
        Self::new(features, edges)
    }
}

impl TryFrom<String> for Pattern {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        text.parse()
    }
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> Self {
        pattern.to_string()
    }
}
