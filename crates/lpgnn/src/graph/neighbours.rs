use crate::Error;

/// No arc: the label of an arc in a direction in which there is none.
pub const NO_ARC: u32 = u32::MAX;

/// The neighbours `ne[v]` of every node: its parents and its children, each once, in order.
///
/// `u ∈ ne[v]` exactly when `v ∈ ne[u]`, so every entry has a twin, and the same table serves the
/// sums over the neighbours of a node and those over the nodes of which it is a neighbour.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Neighbours {
    pub(super) starts: Vec<u32>,
    pub(super) nodes: Vec<u32>,
    pub(super) twins: Vec<u32>,
    /// The arcs `(v, u)` and `(u, v)` of every entry; empty when arcs have no labels.
    pub(super) outgoing: Vec<u32>,
    pub(super) incoming: Vec<u32>,
}

impl Neighbours {
    /// The neighbours along `arcs`, which are sorted, without duplicates and between `nodes` nodes.
    pub(super) fn new(nodes: usize, arcs: &[(u32, u32)], with_arcs: bool) -> Result<Self, Error> {
        // An entry is numbered with 32 bits, and an arc makes at most two.
        if nodes >= u32::MAX as usize || arcs.len() >= (u32::MAX / 2) as usize {
            return Err(Error::TooLarge);
        }
        let children = starts(nodes, arcs.iter().map(|&(source, _)| source));
        let parents = starts(nodes, arcs.iter().map(|&(_, target)| target));
        // Sources come in order, so each list of parents does too.
        let mut parent_arcs = vec![0_u32; arcs.len()];
        let mut next = parents.clone();
        for (arc, &(_, target)) in (0_u32..).zip(arcs) {
            parent_arcs[next[target as usize] as usize] = arc;
            next[target as usize] += 1;
        }

        let mut all = Self::default();
        all.starts.reserve(nodes + 1);
        all.nodes.reserve(arcs.len());
        all.starts.push(0);
        for v in 0..nodes {
            let mut out = (children[v]..children[v + 1]).peekable();
            let mut inward = parent_arcs[parents[v] as usize..parents[v + 1] as usize]
                .iter()
                .copied()
                .peekable();
            loop {
                let child = out.peek().map(|&arc| arcs[arc as usize].1);
                let parent = inward.peek().map(|&arc| arcs[arc as usize].0);
                let Some(u) = child.into_iter().chain(parent).min() else { break };
                let outgoing = out.next_if(|_| child == Some(u)).unwrap_or(NO_ARC);
                let incoming = inward.next_if(|_| parent == Some(u)).unwrap_or(NO_ARC);
                all.nodes.push(u);
                if with_arcs {
                    all.outgoing.push(outgoing);
                    all.incoming.push(incoming);
                }
            }
            #[allow(
                clippy::cast_possible_truncation,
                reason = "at most twice the arcs, see above"
            )]
            all.starts.push(all.nodes.len() as u32);
        }
        all.twins = all.pair_up();
        Ok(all)
    }

    /// The place of `(u, v)` for every `(v, u)`: both lists are in order, so one sweep finds it.
    fn pair_up(&self) -> Vec<u32> {
        let mut next = self.starts.clone();
        self.nodes
            .iter()
            .map(|&u| {
                let twin = next[u as usize];
                next[u as usize] += 1;
                twin
            })
            .collect()
    }

    /// How many pairs `(v, u)` with `u ∈ ne[v]` there are.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether no node has a neighbour.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Where the neighbours of every node start, and where the last ones end.
    pub fn starts(&self) -> &[u32] {
        &self.starts
    }

    /// The entries of `v`: places in [`nodes`](Self::nodes).
    #[inline]
    pub fn range(&self, v: usize) -> std::ops::Range<usize> {
        self.starts[v] as usize..self.starts[v + 1] as usize
    }

    /// `ne[v]`
    #[inline]
    pub fn of(&self, v: usize) -> &[u32] {
        &self.nodes[self.range(v)]
    }

    /// `de[v]`, the number of neighbours.
    #[inline]
    pub fn degree(&self, v: usize) -> usize {
        self.range(v).len()
    }

    /// The neighbours of all nodes, one list after the other.
    pub fn nodes(&self) -> &[u32] {
        &self.nodes
    }

    /// For the entry that says `u ∈ ne[v]`, the one that says `v ∈ ne[u]`.
    pub fn twins(&self) -> &[u32] {
        &self.twins
    }

    /// For every entry `u ∈ ne[v]`, the arc `(v, u)` or [`NO_ARC`]. Empty when arcs have no labels.
    pub fn outgoing(&self) -> &[u32] {
        &self.outgoing
    }

    /// For every entry `u ∈ ne[v]`, the arc `(u, v)` or [`NO_ARC`]. Empty when arcs have no labels.
    pub fn incoming(&self) -> &[u32] {
        &self.incoming
    }

    /// The largest degree, 0 without nodes.
    pub fn largest_degree(&self) -> usize {
        self.starts.windows(2).map(|w| (w[1] - w[0]) as usize).max().unwrap_or(0)
    }
}

/// Where the group of every node starts when its members are laid out in order, and the end.
fn starts(nodes: usize, members: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut starts = vec![0_u32; nodes + 1];
    for node in members {
        starts[node as usize + 1] += 1;
    }
    for node in 0..nodes {
        starts[node + 1] += starts[node];
    }
    starts
}
