use rand::RngExt;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;

/// An undirected graph under construction: for any two nodes, whether an edge joins them.
#[derive(Clone, Debug)]
pub(super) struct Drawing {
    nodes: usize,
    edges: Vec<bool>,
}

impl Drawing {
    /// Nodes without edges.
    pub(super) fn new(nodes: usize) -> Self {
        Self { nodes, edges: vec![false; nodes * nodes] }
    }

    pub(super) fn nodes(&self) -> usize {
        self.nodes
    }

    pub(super) fn join(&mut self, u: usize, v: usize) {
        self.edges[u * self.nodes + v] = true;
        self.edges[v * self.nodes + u] = true;
    }

    pub(super) fn has(&self, u: usize, v: usize) -> bool {
        self.edges[u * self.nodes + v]
    }

    pub(super) fn neighbours(&self, v: usize) -> impl Iterator<Item = usize> + '_ {
        (0..self.nodes).filter(move |&u| self.has(v, u))
    }

    /// Joins any two nodes with probability `density`, unless both are `fixed`, and then connects the
    /// components, each to an earlier one.
    pub(super) fn scribble(&mut self, density: f64, fixed: &[bool], random: &mut ChaCha8Rng) {
        for v in 0..self.nodes {
            for u in 0..v {
                if !(fixed[u] && fixed[v]) && random.random_bool(density) {
                    self.join(u, v);
                }
            }
        }
        let components = self.components();
        let mut before = components[0].clone();
        for component in &components[1..] {
            if let (Some(&u), Some(&v)) = (before.choose(random), component.choose(random)) {
                self.join(u, v);
            }
            before.extend(component);
        }
    }

    /// The connected components, by their first node.
    pub(super) fn components(&self) -> Vec<Vec<usize>> {
        let mut seen = vec![false; self.nodes];
        let mut components = vec![];
        for start in 0..self.nodes {
            if std::mem::replace(&mut seen[start], true) {
                continue;
            }
            let mut component = vec![start];
            let mut next = 0;
            while next < component.len() {
                for u in self.neighbours(component[next]) {
                    if !std::mem::replace(&mut seen[u], true) {
                        component.push(u);
                    }
                }
                next += 1;
            }
            components.push(component);
        }
        components
    }

    /// Both directions of every edge, sorted.
    #[allow(clippy::cast_possible_truncation, reason = "a drawing has far fewer than 2³² nodes")]
    pub(super) fn edges(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        (0..self.nodes).flat_map(|v| self.neighbours(v).map(move |u| (v as u32, u as u32)))
    }
}
