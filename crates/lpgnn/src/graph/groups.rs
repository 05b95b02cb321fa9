use std::ops::Range;

/// The nodes of a batch in groups of about equal work, for threads to share.
///
/// A group depends on the batch alone. Every sum over nodes is the sum over groups, in their
/// order, of sums within a group: so results are the same bits whatever the number of threads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Groups {
    ranges: Vec<Range<usize>>,
    whole_graphs: bool,
}

/// Nodes and neighbours below which a group is not worth a thread.
const LEAST_WORK: usize = 768;
/// Groups of a batch that one machine trains on, at most: some per thread of a large machine, so that all threads finish at about the same time. Every
/// group has a partial gradient of its own, and all of them are added up at the end.
pub(crate) const MOST_GROUPS: usize = 256;

/// Of a graph with so much more to do that threads of many machines share it: the work of a group, and groups at most.
const LARGE_WORK: usize = 1 << 16;
const MOST_LARGE_GROUPS: usize = 4096;

/// How many groups so much work is cut into.
fn count(work: usize) -> usize {
    let small = (work / LEAST_WORK).clamp(1, MOST_GROUPS);
    small.max((work / LARGE_WORK).min(MOST_LARGE_GROUPS))
}

impl Groups {
    /// Groups of a batch with these first nodes of graphs and first neighbours of nodes.
    pub(super) fn new(node_starts: &[usize], neighbour_starts: &[u32]) -> Self {
        let nodes = neighbour_starts.len() - 1;
        let work = nodes + neighbour_starts[nodes] as usize;
        let groups = count(work);
        Self::of_work(node_starts, neighbour_starts, work.div_ceil(groups).max(1))
    }

    /// Groups of one graph that is cut wherever groups end, however small it is.
    pub(super) fn cut_graphs(neighbour_starts: &[u32]) -> Self {
        let nodes = neighbour_starts.len() - 1;
        let work = nodes + neighbour_starts[nodes] as usize;
        let groups = count(work);
        let work_before = |node: usize| node + neighbour_starts[node] as usize;
        let ranges = cut(0..=nodes, work.div_ceil(groups).max(1), work_before);
        Self { ranges, whole_graphs: false }
    }

    /// Groups of a graph in parts, which are cut wherever a part ends; `work` is that of all parts, of this process and of others.
    pub(super) fn of_parts(
        parts: impl Iterator<Item = Range<usize>>,
        neighbour_starts: &[u32],
        work: usize,
    ) -> Self {
        let groups = count(work);
        let target = work.div_ceil(groups).max(1);
        let mut ranges = vec![];
        for part in parts {
            let work_before =
                |node: usize| part.start + node + neighbour_starts[part.start + node] as usize;
            let own = cut(0..=part.len(), target, work_before);
            ranges.extend(own.into_iter().map(|r| part.start + r.start..part.start + r.end));
        }
        Self { ranges, whole_graphs: false }
    }

    /// Groups of about `target` nodes and neighbours.
    pub(super) fn of_work(node_starts: &[usize], neighbour_starts: &[u32], target: usize) -> Self {
        let nodes = neighbour_starts.len() - 1;
        let work_before = |node: usize| node + neighbour_starts[node] as usize;
        let graph_work =
            node_starts.windows(2).map(|w| work_before(w[1]) - work_before(w[0])).max();
        // Where no graph is much larger than a group, no graph need be cut.
        let whole_graphs = graph_work.unwrap_or(0) <= 4 * target;
        let ranges = if whole_graphs {
            cut(node_starts.iter().copied(), target, work_before)
        } else {
            cut(0..=nodes, target, work_before)
        };
        Self { ranges, whole_graphs }
    }

    /// Some of the groups, which follow each other; their nodes are numbered from 0.
    pub(super) fn run(&self, groups: Range<usize>) -> Self {
        let ranges = &self.ranges[groups];
        let first = ranges.first().map_or(0, |range| range.start);
        let moved = |range: &Range<usize>| range.start - first..range.end - first;
        Self { ranges: ranges.iter().map(moved).collect(), whole_graphs: self.whole_graphs }
    }

    /// The nodes of every group; groups follow each other without gaps.
    pub fn ranges(&self) -> &[Range<usize>] {
        &self.ranges
    }

    /// Whether every graph lies in one group, so that a group has no neighbours outside.
    pub fn whole_graphs(&self) -> bool {
        self.whole_graphs
    }
}

/// Ranges between some of the `boundaries`, each of at least `target` work but the last.
fn cut(
    boundaries: impl Iterator<Item = usize>,
    target: usize,
    work_before: impl Fn(usize) -> usize,
) -> Vec<Range<usize>> {
    let (mut ranges, mut start, mut end) = (vec![], 0, 0);
    for boundary in boundaries {
        end = boundary;
        if work_before(boundary) - work_before(start) >= target {
            ranges.push(start..boundary);
            start = boundary;
        }
    }
    if start < end || ranges.is_empty() {
        ranges.push(start..end);
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hundred_million_edges_are_cut_into_groups_for_many_ranks() {
        assert_eq!([0, 700, 7680, 1 << 20, 1 << 24].map(count), [1, 1, 10, 256, 256]);
        assert_eq!([210_000_000, 1 << 40].map(count), [3204, 4096]);
    }
}
