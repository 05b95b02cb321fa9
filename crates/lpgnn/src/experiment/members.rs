use crate::data::{Dataset, Split};
use crate::graph::Level;

/// The rows of targets that members of a split have: nodes of a graph, where whole graphs are divided
/// and nodes have the targets.
pub(super) fn rows(dataset: &Dataset, split: &Split, task: Level, members: &[usize]) -> Vec<usize> {
    let starts = dataset.node_starts();
    if (split.level, task) == (Level::Graph, Level::Node) {
        members.iter().flat_map(|&graph| starts[graph]..starts[graph + 1]).collect()
    } else {
        members.to_vec()
    }
}
