//! The order of an update, in two plans that compute the same.
//!
//! *Tiles*: where graphs are small, a few of them at a time go all the way, projection, pairs,
//! upstream and back, while everything they touch is in cache; nothing is kept over all nodes.
//!
//! *Phases*: a graph that is larger than a group has neighbours in other groups. Projections of
//! all nodes come first, then pairs by target, then sums by source along the twins. Rows of other processes are on their way
//! meanwhile: see [`interior`](super::interior).

use std::ops::Range;

use super::EdgeNetwork;
use super::block::Sources;
use super::fused;
use super::kernels::{self, GhostsFirst, Table};
use super::prepared::Prepared;
use super::tiles::{blocks, pairs, tiles, tiles_of};
use crate::numeric::{Scratch, Spare};
use crate::transition::{
    Gradients, Input, Kept, Upstream, for_each_group, for_each_group_until, split_rows,
};
use crate::{Matrix, Scalar};

/// Numbers in the projections of all nodes up to which they are kept for the pass that follows.
const PROJECTIONS: usize = 1 << 18;
/// Slopes of pairs that are kept at most; they fit beside a tile.
const KEPT: usize = 1 << 16;

impl EdgeNetwork {
    /// With `keep`, projections are kept if a pass that follows finds them in cache.
    pub(super) fn run_forward<'s, S: Scalar>(
        &self,
        weights: &[S],
        input: Input<'_, S>,
        f_x: &mut Matrix<S>,
        scratch: &'s Scratch<S>,
        keep: bool,
    ) -> Kept<'s, S> {
        let prepared = Prepared::new(self, weights, input, scratch);
        let (ranges, width) = (input.topology.groups().ranges(), prepared.first());
        let rows = split_rows(f_x.as_mut_slice(), self.state_dim, ranges);
        let mut groups: Vec<_> = ranges.iter().cloned().zip(rows).collect();
        let whole_graphs = input.topology.groups().whole_graphs();
        let room = input.topology.nodes() * width;
        if keep && whole_graphs && room <= PROJECTIONS {
            let mut kept = [scratch.take(room), scratch.take(room)];
            let [p, q] = kept.each_mut().map(|rows| split_rows(rows, width, ranges).into_iter());
            let mut groups: Vec<_> = groups.into_iter().zip(p.zip(q)).collect();
            for_each_group(&mut groups, |((range, f_x), (p, q))| {
                for tile in tiles(input.topology, range.clone(), width) {
                    let rows = |width: usize| {
                        (tile.start - range.start) * width..(tile.end - range.start) * width
                    };
                    let (p, q) = (&mut p[rows(width)], &mut q[rows(width)]);
                    prepared.project_into(tile.clone(), p, q);
                    let f_x = &mut f_x[rows(self.state_dim)];
                    let tables = (prepared.table(p, tile.start), prepared.table(q, tile.start));
                    prepared.forward_blocks(tile.clone(), tables, f_x);
                }
            });
            drop(groups);
            return Kept { projections: Some(kept), f_x: None };
        }
        if whole_graphs {
            for_each_group(&mut groups, |(range, f_x)| {
                for tile in tiles(input.topology, range.clone(), prepared.first()) {
                    let rows = &mut f_x[(tile.start - range.start) * self.state_dim..]
                        [..tile.len() * self.state_dim];
                    let (p, q) = prepared.project(tile.clone());
                    let tables = (prepared.table(&p, tile.start), prepared.table(&q, tile.start));
                    prepared.forward_blocks(tile.clone(), tables, rows);
                }
            });
        } else {
            prepared.forward_phases(&mut groups);
        }
        Kept::default()
    }

    pub(super) fn run_pass<S: Scalar>(
        &self,
        kept: &Kept<'_, S>,
        weights: &[S],
        input: Input<'_, S>,
        upstream: &mut [&mut dyn Upstream<S>],
        gradients: Gradients<'_, S>,
        scratch: &Scratch<S>,
    ) {
        let prepared = Prepared::new(self, weights, input, scratch);
        let ranges = input.topology.groups().ranges();
        let mut states =
            split_rows(gradients.states.as_mut_slice(), self.state_dim, ranges).into_iter();
        let mut features = gradients
            .features
            .map(|features| split_rows(features.as_mut_slice(), self.feature, ranges).into_iter());
        let wanted = gradients.weights.is_some();
        let partial = if wanted { prepared.partial_layout().padded_len() } else { 0 };
        let keep = wanted && prepared.is_wide();
        let room = |nodes: usize| scratch.take(nodes * prepared.first());
        let mut groups: Vec<Group<'_, S>> = ranges
            .iter()
            .zip(upstream)
            .map(|(range, upstream)| Group {
                nodes: range.clone(),
                d_states: states.next().unwrap_or_default(),
                d_features: features.as_mut().and_then(Iterator::next),
                partial: scratch.zeros(partial),
                kept: keep.then(|| [room(range.len()), room(range.len())]),
                f_x: kept.f_x.map(|f_x| {
                    &f_x.as_slice()[range.start * self.state_dim..range.end * self.state_dim]
                }),
                upstream: &mut **upstream,
            })
            .collect();
        if input.topology.groups().whole_graphs() {
            for_each_group(&mut groups, |group| {
                for tile in tiles(input.topology, group.nodes.clone(), prepared.first()) {
                    prepared.tile(tile, kept, group);
                }
            });
        } else {
            prepared.phases(&mut groups);
        }
        if let Some(d_weights) = gradients.weights {
            let partials: Vec<&[S]> = groups.iter().map(|group| &group.partial[..]).collect();
            prepared.partial_layout().reduce(gradients.reduce, &partials, d_weights);
            if keep {
                gradients.reduce.in_turn(d_weights, &mut |d| prepared.kept_gradients(&groups, d));
            }
        }
    }
}

/// What the nodes of a group contribute to, and no other group touches.
pub(super) struct Group<'a, S: Scalar> {
    pub(super) nodes: Range<usize>,
    pub(super) d_states: &'a mut [S],
    pub(super) d_features: Option<&'a mut [S]>,
    /// Partial weight gradients, padded; empty when they are not wanted.
    pub(super) partial: Spare<'a, S>,
    /// `∂𝓛/∂p` and `∂𝓛/∂q`, if they are needed at the end.
    pub(super) kept: Option<[Spare<'a, S>; 2]>,
    /// `f_a`, if it is known.
    pub(super) f_x: Option<&'a [S]>,
    pub(super) upstream: &'a mut dyn Upstream<S>,
}

impl<S: Scalar> Group<'_, S> {
    /// The rows of `nodes` among the rows of the group.
    pub(super) fn rows(&self, nodes: &Range<usize>, width: usize) -> Range<usize> {
        (nodes.start - self.nodes.start) * width..(nodes.end - self.nodes.start) * width
    }
}

impl<S: Scalar> Prepared<'_, S> {
    /// `f_a` of the nodes of all groups: first of those that need no ghosts.
    fn forward_phases(&self, groups: &mut [(Range<usize>, &mut [S])]) {
        let (topology, exchange, width) = (self.input.topology, self.input.exchange, self.first());
        let own = topology.nodes() * width;
        let mut p = self.scratch.take(topology.rows() * width);
        let mut q = self.scratch.take(own);
        self.project_all(&mut p[..own], &mut q);
        let some = |interior: bool, p: &[S], (range, f_x): &mut (Range<usize>, &mut [S])| {
            for nodes in topology.pieces_that(interior, range.clone()) {
                let state = self.network.state_dim;
                let rows = (nodes.start - range.start) * state..(nodes.end - range.start) * state;
                self.forward_blocks(nodes, (self.table(p, 0), self.table(&q, 0)), &mut f_x[rows]);
            }
        };
        let (p_own, ghosts) = p.split_at_mut(own);
        exchange.gather_nodes_while(topology, width, p_own, ghosts, &mut |poll| {
            for_each_group_until(poll, groups, |group| some(true, p_own, group));
        });
        for_each_group(groups, |group| some(false, &p, group));
    }

    /// The projections of own nodes.
    fn project_all(&self, p: &mut [S], q: &mut [S]) {
        let (ranges, width) = (self.input.topology.groups().ranges(), self.first());
        let rows = split_rows(p, width, ranges).into_iter().zip(split_rows(q, width, ranges));
        let mut groups: Vec<_> = ranges.iter().cloned().zip(rows).collect();
        for_each_group(&mut groups, |(range, (p, q))| {
            for tile in tiles_of(range.clone(), width) {
                let rows = (tile.start - range.start) * width..(tile.end - range.start) * width;
                self.project_into(tile, &mut p[rows.clone()], &mut q[rows]);
            }
        });
    }

    /// A tile: some whole graphs, all the way.
    fn tile(&self, tile: Range<usize>, kept: &Kept<'_, S>, group: &mut Group<'_, S>) {
        let (state, width) = (self.network.state_dim, self.first());
        let own = kept.projections.is_none().then(|| self.project(tile.clone()));
        let (p, q): (&[S], &[S]) = match (&own, &kept.projections) {
            (Some((p, q)), _) => (p, q),
            (None, Some([p, q])) => {
                let rows = tile.start * width..tile.end * width;
                (&p[rows.clone()], &q[rows])
            }
            (None, None) => unreachable!("projections are made unless they are kept"),
        };
        let mut d_q = self.scratch.take(tile.len() * width);
        if self.is_fused() {
            let mut d = self.scratch.take(tile.len() * width);
            let mut d_p = self.scratch.take(tile.len() * width);
            let (p, q) = (self.table(p, tile.start), self.table(q, tile.start));
            let (neighbours, nodes) = (self.neighbours(), tile.clone());
            let slopes = pairs(neighbours, &nodes).len() * width;
            let mut kept = self.scratch.take(if slopes <= KEPT { slopes } else { 0 });
            self.fused_pass(nodes.clone(), (p, q), group, &mut d, &mut d_q, &mut kept);
            let d = self.table(&d, nodes.start);
            if kept.is_empty() {
                let (counts, activation) = (self.counts(), self.activation(0));
                fused::to_sources(neighbours, nodes, counts, activation, p, q, d, &mut d_p);
            } else {
                fused::kept_to_sources(neighbours, nodes, &kept, d, &mut d_p);
            }
            return self.project_back(&tile, &d_p, &d_q, group);
        }
        let mut d_p = self.scratch.zeros(tile.len() * width);
        for block in blocks(self.neighbours(), tile.clone(), width) {
            let mut f_x = self.scratch.take(block.len() * state);
            let mut d_f = self.scratch.take(block.len() * state);
            let tables = (self.table(p, tile.start), self.table(q, tile.start));
            let trace = self.forward(block.clone(), tables, &mut f_x);
            self.ask(block.clone(), &f_x, group, &mut d_f);
            let rows = (block.start - tile.start) * width..(block.end - tile.start) * width;
            let partial = (!group.partial.is_empty()).then_some(&mut group.partial[..]);
            let mut sources = Sources::Add(&mut d_p, tile.start);
            self.backward(block, &trace, &d_f, partial, &mut d_q[rows], &mut sources);
        }
        self.project_back(&tile, &d_p, &d_q, group);
    }

    /// All groups, phase by phase.
    fn phases(&self, groups: &mut [Group<'_, S>]) {
        if self.is_fused() { self.fused_phases(groups) } else { self.pair_phases(groups) }
    }

    /// All groups, with what goes to sources kept per target.
    fn fused_phases(&self, groups: &mut [Group<'_, S>]) {
        let (topology, exchange, width) = (self.input.topology, self.input.exchange, self.first());
        let (own, all) = (topology.nodes() * width, topology.rows() * width);
        // p of own nodes and of ghosts, and behind them d of own nodes: d of ghosts takes the place of their p, which nobody needs any more.
        let mut p_and_d = self.scratch.take(all + own);
        let mut q = self.scratch.take(all);
        let mut d_q = self.scratch.take(own);
        self.project_all(&mut p_and_d[..own], &mut q[..own]);

        let (p, d) = p_and_d.split_at_mut(all);
        let (p_own, p_ghosts) = p.split_at_mut(own);
        exchange.gather_nodes_while(topology, width, p_own, p_ghosts, &mut |poll| {
            self.interior_sums((p_own, &q), poll, d, &mut d_q);
        });
        let (q_own, q_ghosts) = q.split_at_mut(own);
        exchange.gather_nodes_while(topology, width, q_own, q_ghosts, &mut |poll| {
            let tables = (self.table(p, 0), self.table(q_own, 0));
            self.fused_phase(tables, groups, poll, d, &mut d_q);
        });
        let (p, d) = p_and_d.split_at_mut(own);
        let (d_ghosts, d_own) = d.split_at_mut(all - own);
        exchange.gather_nodes_while(topology, width, d_own, d_ghosts, &mut |poll| {
            self.interior_sources(p, &q, poll, d_own);
        });
        let d = GhostsFirst::new(self.table(&p_and_d[own..], 0), topology.nodes());
        let (p, q) = (self.table(&p_and_d[..own], 0), self.table(&q, 0));
        self.back_by_source(groups, &mut d_q, |tile, d_p| {
            self.other_sources(tile, (p, q, d), d_p);
        });
    }

    /// All groups, with what goes to sources kept per pair.
    fn pair_phases(&self, groups: &mut [Group<'_, S>]) {
        let (topology, exchange, width) = (self.input.topology, self.input.exchange, self.first());
        let own = topology.nodes() * width;
        let mut p = self.scratch.take(topology.rows() * width);
        let mut q = self.scratch.take(own);
        self.project_all(&mut p[..own], &mut q);
        let (p_own, p_ghosts) = p.split_at_mut(own);
        exchange.gather_nodes(topology, width, p_own, p_ghosts);
        let mut kept = self.scratch.take(topology.pair_rows() * width);
        let mut d_q = self.scratch.take(own);
        let (kept_own, kept_ghosts) = kept.split_at_mut(self.neighbours().len() * width);
        self.pair_phase((&p, &q), groups, kept_own, &mut d_q);
        drop((p, q));
        exchange.gather_pairs(topology, width, kept_own, kept_ghosts);
        self.back_by_source(groups, &mut d_q, |tile, d_p| {
            kernels::sum_by_source(self.neighbours(), tile, width, &kept, d_p);
        });
    }

    /// All targets, with what goes to their sources kept per target.
    fn fused_phase(
        &self,
        tables: (Table<'_, S>, Table<'_, S>),
        groups: &mut [Group<'_, S>],
        poll: &mut dyn FnMut(),
        d: &mut [S],
        d_q: &mut [S],
    ) {
        let (ranges, width) = (self.input.topology.groups().ranges(), self.first());
        let rows = split_rows(d, width, ranges).into_iter().zip(split_rows(d_q, width, ranges));
        let mut work: Vec<_> = groups.iter_mut().zip(rows).collect();
        for_each_group_until(poll, &mut work, |(group, (d, d_q))| {
            for tile in tiles_of(group.nodes.clone(), width) {
                let rows = group.rows(&tile, width);
                let (d, d_q) = (&mut d[rows.clone()], &mut d_q[rows]);
                self.fused_pass(tile, tables, group, d, d_q, &mut []);
            }
        });
    }

    /// All targets, with what goes to their sources kept per pair.
    fn pair_phase(
        &self,
        (p, q): (&[S], &[S]),
        groups: &mut [Group<'_, S>],
        kept: &mut [S],
        d_q: &mut [S],
    ) {
        let (state, width, neighbours) = (self.network.state_dim, self.first(), self.neighbours());
        let ranges = self.input.topology.groups().ranges();
        let pair_ranges: Vec<_> = ranges.iter().map(|range| pairs(neighbours, range)).collect();
        let rows =
            split_rows(d_q, width, ranges).into_iter().zip(split_rows(kept, width, &pair_ranges));
        let mut work: Vec<_> = groups.iter_mut().zip(rows).collect();
        for_each_group(&mut work, |(group, (d_q, kept))| {
            let from = pairs(neighbours, &group.nodes).start;
            for block in blocks(neighbours, group.nodes.clone(), width) {
                let mut f_x = self.scratch.take(block.len() * state);
                let mut d_f = self.scratch.take(block.len() * state);
                let tables = (self.table(p, 0), self.table(q, 0));
                let trace = self.forward(block.clone(), tables, &mut f_x);
                self.ask(block.clone(), &f_x, group, &mut d_f);
                let rows = group.rows(&block, width);
                let partial = (!group.partial.is_empty()).then_some(&mut group.partial[..]);
                let mut sources = Sources::Keep(kept, from);
                self.backward(block, &trace, &d_f, partial, &mut d_q[rows], &mut sources);
            }
        });
    }

    /// All sources: `sum` sets `∂𝓛/∂p` of some nodes, and what is behind the projections follows.
    fn back_by_source(
        &self,
        groups: &mut [Group<'_, S>],
        d_q: &mut [S],
        sum: impl Fn(Range<usize>, &mut [S]) + Sync + Send,
    ) {
        let (ranges, width) = (self.input.topology.groups().ranges(), self.first());
        let mut work: Vec<_> = groups.iter_mut().zip(split_rows(d_q, width, ranges)).collect();
        for_each_group(&mut work, |(group, d_q)| {
            for tile in tiles_of(group.nodes.clone(), width) {
                let mut d_p = self.scratch.take(tile.len() * width);
                sum(tile.clone(), &mut d_p);
                let rows = group.rows(&tile, width);
                self.project_back(&tile, &d_p, &d_q[rows], group);
            }
        });
    }
}
