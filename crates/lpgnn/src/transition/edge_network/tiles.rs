//! How many nodes and pairs are worked on at a time.

use std::ops::Range;

use crate::graph::{Neighbours, Topology};

/// Nodes of a tile, but for wide rows: those of a tile fit the second-level cache, all tables of them.
pub(super) fn tile_nodes(width: usize) -> usize {
    ((1 << 14) / width.max(1)).clamp(64, 256)
}

/// Pairs that are worked on at a time, unless one node has more; they fit beside a tile.
fn block_pairs(width: usize) -> usize {
    ((1 << 13) / width.max(1)).clamp(96, 512)
}

pub(super) fn pairs(neighbours: &Neighbours, nodes: &Range<usize>) -> Range<usize> {
    neighbours.starts()[nodes.start] as usize..neighbours.starts()[nodes.end] as usize
}

/// The pairs of every one of `nodes`.
#[inline(always)]
pub(super) fn pairs_of_each(
    neighbours: &Neighbours,
    nodes: Range<usize>,
) -> impl Iterator<Item = (usize, Range<usize>)> + '_ {
    let ends = neighbours.starts()[nodes.start..=nodes.end].windows(2);
    nodes.zip(ends).map(|(v, ends)| (v, ends[0] as usize..ends[1] as usize))
}

/// `nodes`, a tile of rows of this width at a time, whatever their graphs.
pub(super) fn tiles_of(nodes: Range<usize>, width: usize) -> impl Iterator<Item = Range<usize>> {
    let (end, size) = (nodes.end, tile_nodes(width));
    nodes.step_by(size).map(move |start| start..(start + size).min(end))
}

/// Whole graphs of `nodes`, about a tile at a time.
pub(super) fn tiles(
    topology: &Topology,
    nodes: Range<usize>,
    width: usize,
) -> impl Iterator<Item = Range<usize>> + '_ {
    let (starts, size) = (topology.node_starts(), tile_nodes(width));
    let mut start = nodes.start;
    std::iter::from_fn(move || {
        if start >= nodes.end {
            return None;
        }
        // The last graph that begins within reach, but one graph at least.
        let reach = starts.partition_point(|&first| first <= start + size) - 1;
        let next = starts.partition_point(|&first| first <= start);
        let end = starts[reach.max(next).min(starts.len() - 1)].min(nodes.end);
        let tile = start..end;
        start = end;
        Some(tile)
    })
}

/// Nodes of `nodes` in blocks of some pairs with rows of this width, one node at least.
pub(super) fn blocks(
    neighbours: &Neighbours,
    nodes: Range<usize>,
    width: usize,
) -> impl Iterator<Item = Range<usize>> + '_ {
    let (starts, pairs) = (neighbours.starts(), block_pairs(width));
    let mut start = nodes.start;
    std::iter::from_fn(move || {
        if start >= nodes.end {
            return None;
        }
        let limit = starts[start] as usize + pairs;
        let within = starts[start + 1..=nodes.end].partition_point(|&end| end as usize <= limit);
        let end = start + within.clamp(1, tile_nodes(width));
        let block = start..end.min(nodes.end);
        start = block.end;
        Some(block)
    })
}
