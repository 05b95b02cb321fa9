//! A block of nodes with its pairs of neighbours: `f_a`, and the way back through it.

use std::ops::Range;

use super::kernels::{self, EdgeRows, Table};
use super::pass::Group;
use super::prepared::Prepared;
use super::tiles::{blocks, pairs, tile_nodes, tiles_of};
use super::{Aggregation, fused};
use crate::Scalar;
use crate::activation::{Activation, activate};
use crate::graph::FeaturesView;
use crate::network::{Activations, Passed};
use crate::numeric::{Finish, Spare};

/// Where `∂𝓛/∂` of the first layer's sums goes, on its way to the sources.
pub(super) enum Sources<'a, S> {
    /// Added to the rows of the sources, which start at this node.
    Add(&'a mut [S], usize),
    /// Kept per pair, from this pair on, for the sum by source.
    Keep(&'a mut [S], usize),
}

/// What the derivative of a block needs.
pub(super) struct Trace<'a, S: Scalar> {
    /// The first layer's activations, one row per pair.
    t: Spare<'a, S>,
    /// The activations of the layers above that are applied per pair.
    above: Vec<Activations<'a, S>>,
    /// The aggregate, one row per node.
    sums: Spare<'a, S>,
}

impl<'w, S: Scalar> Prepared<'w, S> {
    /// How many numbers of room [`forward_blocks_in`](Self::forward_blocks_in) needs for so many nodes.
    pub(super) fn room_for_sums(&self, nodes: usize) -> usize {
        if self.is_fused() { nodes.min(tile_nodes(self.first())) * self.first() } else { 0 }
    }

    /// `f_a` of `nodes`, block by block, from their `p` and `q`.
    pub(super) fn forward_blocks(
        &self,
        nodes: Range<usize>,
        tables: (Table<'_, S>, Table<'_, S>),
        f_x: &mut [S],
    ) {
        let mut sums = self.scratch.take(self.room_for_sums(nodes.len()));
        self.forward_blocks_in(&mut sums, nodes, tables, f_x);
    }

    /// The same in [room](Self::room_for_sums) that is lent for it.
    pub(super) fn forward_blocks_in(
        &self,
        sums: &mut [S],
        nodes: Range<usize>,
        (p, q): (Table<'_, S>, Table<'_, S>),
        f_x: &mut [S],
    ) {
        let (state, width) = (self.network.state_dim, self.first());
        let own = |block: &Range<usize>| {
            (block.start - nodes.start) * state..(block.end - nodes.start) * state
        };
        if !self.is_fused() {
            for block in blocks(self.neighbours(), nodes.clone(), width) {
                let rows = &mut f_x[own(&block)];
                self.forward(block, (p, q), rows);
            }
            return;
        }
        // Of pairs nothing is stored, so that it does not matter how many there are.
        for block in tiles_of(nodes.clone(), width) {
            let (counts, activation) = (self.counts(), self.activation(0));
            let (neighbours, sums) = (self.neighbours(), &mut sums[..block.len() * width]);
            fused::values(neighbours, block.clone(), counts, activation, (p, q), sums);
            let rows = &mut f_x[own(&block)];
            self.after_sum(block, sums, rows);
        }
    }

    /// `f_a` of a block of nodes, and what its derivative will need.
    pub(super) fn forward(
        &self,
        nodes: Range<usize>,
        (p, q): (Table<'_, S>, Table<'_, S>),
        f_x: &mut [S],
    ) -> Trace<'w, S> {
        let (neighbours, width) = (self.neighbours(), self.first());
        let pairs = pairs(neighbours, &nodes);
        let mut t = self.scratch.take(pairs.len() * width);
        let (activation, features) = (self.activation(0), self.input.edge_features);
        let directions = [neighbours.outgoing(), neighbours.incoming()];
        match (&self.edge, features) {
            (None, _) => kernels::gather(neighbours, nodes.clone(), p, q, [], activation, &mut t),
            (Some(edge), FeaturesView::OneHot(one_hot)) => {
                let columns = one_hot.columns();
                let rows = |i: usize| EdgeRows {
                    edges: directions[i],
                    columns,
                    rows: edge[i].padded_rows(),
                };
                let rows = [rows(0), rows(1)];
                kernels::gather(neighbours, nodes.clone(), p, q, rows, activation, &mut t);
            }
            (Some(edge), _) => {
                kernels::gather(neighbours, nodes.clone(), p, q, [], Activation::Identity, &mut t);
                for (weights, edges) in edge.iter().zip(directions) {
                    weights.add_edges(features, &edges[pairs.clone()], &mut t);
                }
                activate(activation, &mut t);
            }
        }
        let above = self.stack.forward(pairs.len(), &t, width, None, self.scratch);

        let aggregated = self.aggregated();
        let mut sums = self.scratch.take(nodes.len() * aggregated);
        let last = above.last().map_or(&t[..], |y| &y.value[..]);
        if self.network.aggregation == Aggregation::Max {
            kernels::maximum(neighbours, nodes.clone(), aggregated, last, &mut sums);
            for v in self.zero_nodes(nodes.clone()) {
                sums[(v - nodes.start) * aggregated..][..aggregated].fill(S::ZERO);
            }
        } else {
            kernels::sum(neighbours, nodes.clone(), self.counts(), aggregated, last, &mut sums);
        }
        self.after_sum(nodes, &sums, f_x);
        Trace { t, above, sums }
    }

    /// The way back through a block of nodes, from `∂𝓛/∂f_a` to `∂𝓛/∂q` and the sources.
    pub(super) fn backward(
        &self,
        nodes: Range<usize>,
        trace: &Trace<'_, S>,
        d_f: &[S],
        mut partial: Option<&mut [S]>,
        d_q: &mut [S],
        sources: &mut Sources<'_, S>,
    ) {
        let (neighbours, layout) = (self.neighbours(), self.partial_layout());
        let (pairs, width) = (pairs(neighbours, &nodes), self.first());
        let aggregated = self.aggregated();

        // ∂𝓛/∂ of the aggregate
        let mut d_sums = self.scratch.take(nodes.len() * aggregated);
        self.before_sum(nodes.clone(), &trace.sums, d_f, partial.as_deref_mut(), &mut d_sums);

        // ∂𝓛/∂ of the first layer's sums, where they are kept if they are
        let mut own = self.scratch.take(match sources {
            Sources::Add(..) => pairs.len() * width,
            Sources::Keep(..) => 0,
        });
        let d_first = match sources {
            Sources::Add(..) => &mut own[..],
            Sources::Keep(kept, from) => {
                &mut kept[(pairs.start - *from) * width..(pairs.end - *from) * width]
            }
        };
        if self.stack.layers.is_empty() {
            self.spread(nodes.clone(), trace, &d_sums, d_first);
        } else {
            let mut d = self.scratch.take(pairs.len() * aggregated);
            self.spread(nodes.clone(), trace, &d_sums, &mut d);
            let (rows, outputs) = (pairs.len(), &trace.above[..]);
            self.stack.backward(
                layout,
                &Passed { rows, z: &trace.t, z_stride: width, outputs, dropout: None },
                d,
                partial.as_deref_mut(),
                Some((d_first, Finish::Slope(self.activation(0), &trace.t))),
                self.scratch,
            );
        }
        kernels::sum_by_target(neighbours, nodes.clone(), width, d_first, d_q);
        if let (Some(edge), Some(partial)) = (&self.edge, partial) {
            let features = self.input.edge_features;
            for (weights, edges) in edge.iter().zip([neighbours.outgoing(), neighbours.incoming()])
            {
                weights.gradient_edges(layout, features, &edges[pairs.clone()], d_first, partial);
            }
        }
        if let Sources::Add(d_p, base) = sources {
            kernels::add_by_source(neighbours, nodes, *base, width, &own, d_p);
        }
    }

    /// `∂𝓛/∂` of the last sums of every pair, from `∂𝓛/∂` of the aggregate.
    fn spread(&self, nodes: Range<usize>, trace: &Trace<'_, S>, d_sums: &[S], d: &mut [S]) {
        let (neighbours, aggregated) = (self.neighbours(), self.aggregated());
        let last = trace.above.last().map_or(&trace.t[..], |y| &y.value[..]);
        let activation = self.activation(self.network.layers_per_pair() - 1);
        if self.network.aggregation == Aggregation::Max {
            let at = (&trace.sums[..], d_sums);
            let first = neighbours.range(nodes.start).start;
            kernels::spread_to_maximum(
                neighbours,
                nodes.clone(),
                activation,
                aggregated,
                at,
                last,
                d,
            );
            for v in self.zero_nodes(nodes) {
                let pair = neighbours.range(v).start - first;
                d[pair * aggregated..][..aggregated].fill(S::ZERO);
            }
        } else {
            let counts = self.counts();
            kernels::spread(neighbours, nodes, counts, activation, aggregated, d_sums, last, d);
        }
    }

    /// Those of `nodes` whose state is 0 because they have no neighbours.
    fn zero_nodes(&self, nodes: Range<usize>) -> impl Iterator<Item = usize> + '_ {
        let roots = self.roots.get(nodes.clone()).unwrap_or_default();
        nodes.zip(roots).filter(|(_, root)| **root <= S::ZERO).map(|(v, _)| v)
    }

    /// `f_a` of some nodes, and back to `∂𝓛/∂q` and to `d`, what goes to the sources.
    pub(super) fn fused_pass(
        &self,
        nodes: Range<usize>,
        (p, q): (Table<'_, S>, Table<'_, S>),
        group: &mut Group<'_, S>,
        d: &mut [S],
        d_q: &mut [S],
        kept: &mut [S],
    ) {
        let (neighbours, counts, state) =
            (self.neighbours(), self.counts(), self.network.state_dim);
        let mut sums = self.scratch.take(nodes.len() * self.first());
        let mut d_f = self.scratch.take(nodes.len() * state);
        if self.input.topology.ghosts().interior.is_empty() {
            self.sums(nodes.clone(), (p, q), &mut sums, d_q, kept);
        } else {
            self.other_sums(nodes.clone(), (p, q), d, (&mut sums, d_q));
        }
        if let Some(f_x) = group.f_x {
            let rows = group.rows(&nodes, state);
            self.ask(nodes.clone(), &f_x[rows], group, &mut d_f);
        } else {
            let mut f_x = self.scratch.take(nodes.len() * state);
            self.after_sum(nodes.clone(), &sums, &mut f_x);
            self.ask(nodes.clone(), &f_x, group, &mut d_f);
        }
        let partial = (!group.partial.is_empty()).then_some(&mut group.partial[..]);
        self.before_sum(nodes.clone(), &sums, &d_f, partial, d);
        fused::to_targets(neighbours, nodes, counts, self.first(), d, d_q);
    }

    /// Asks upstream for `∂𝓛/∂f_a` of a block.
    pub(super) fn ask(
        &self,
        nodes: Range<usize>,
        f_x: &[S],
        group: &mut Group<'_, S>,
        d_f: &mut [S],
    ) {
        let states = group.rows(&nodes, self.network.state_dim);
        group.upstream.derive(nodes, f_x, d_f, &mut group.d_states[states]);
    }
}
