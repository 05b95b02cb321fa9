//! The order of an update, in two plans that compute the same.
//!
//! *Tiles*: where graphs are small, a few of them at a time go all the way, projection, pairs,
//! upstream and back, while everything they touch is in cache; nothing is kept over all nodes.
//!
//! *Phases*: a graph that is larger than a group has neighbours in other groups. Projections of
//! all nodes come first, then pairs by target, then sums by source along the twins.

use std::ops::Range;

use super::edges::{self, Counts, Table};
use super::fused;
use super::{A, Aggregation, ArcNetwork, B, BIAS, C, D, E, F};
use crate::activation::{Activation, activate};
use crate::graph::{GraphBatch, Neighbours};
use crate::network::{Activations, Layer, Stack, sum_rows};
use crate::numeric::{
    Factors, Finish, LANES, Packed, Scratch, Spare, padded, product, transposed_product,
};
use crate::transition::{
    Gradients, Input, LabelWeights, NodeRows, Tally, Upstream, for_each_group, split_rows,
};
use crate::{Matrix, Scalar};

/// Nodes of a tile, but for wide rows: those of a tile fit the second-level cache, all tables of them.
fn tile_nodes(width: usize) -> usize {
    ((1 << 14) / width.max(1)).clamp(64, 256)
}

/// Pairs that are worked on at a time, unless one node has more; they fit beside a tile.
fn block_pairs(width: usize) -> usize {
    ((1 << 13) / width.max(1)).clamp(96, 512)
}

/// Slopes of pairs that are kept at most; they fit beside a tile.
const KEPT: usize = 1 << 16;

/// The weights of `h`, packed once for all rows.
struct Prepared<'w, S: Scalar> {
    a: StateWeights<S>,
    c: StateWeights<S>,
    b: Option<LabelWeights<S>>,
    d: Option<LabelWeights<S>>,
    /// `E` and `F`.
    arc: Option<[LabelWeights<S>; 2]>,
    bias: Vec<S>,
    /// The layers after the first that are applied per pair.
    stack: Stack<S>,
    /// The last layer, when it is applied per node.
    last: Option<Layer<S>>,
    /// Its bias, as a matrix of one row.
    last_bias: Packed<S>,
    roots: Spare<'w, S>,
    network: &'w ArcNetwork,
    input: Input<'w, S>,
    scratch: &'w Scratch<S>,
}

/// The rows of the first layer that multiply a state, for both directions; none where `h` does not
/// read it, so that its products are zero.
struct StateWeights<S> {
    block: usize,
    forward: Packed<S>,
    backward: Packed<S>,
}

impl ArcNetwork {
    pub(super) fn run_forward<S: Scalar>(
        &self,
        weights: &[S],
        input: Input<'_, S>,
        image: &mut Matrix<S>,
        scratch: &Scratch<S>,
    ) {
        let prepared = Prepared::new(self, weights, input, scratch);
        let ranges = input.batch.groups().ranges();
        let rows = split_rows(image.as_mut_slice(), self.state, ranges);
        let mut groups: Vec<_> = ranges.iter().cloned().zip(rows).collect();
        if input.batch.groups().whole_graphs() {
            for_each_group(&mut groups, |(range, image)| {
                for tile in tiles(input.batch, range.clone(), prepared.first()) {
                    let rows = &mut image[(tile.start - range.start) * self.state..]
                        [..tile.len() * self.state];
                    let (p, q) = prepared.project(tile.clone());
                    prepared.forward_blocks(tile.clone(), tile.start, &p, &q, rows);
                }
            });
        } else {
            let (p, q) = prepared.project_all();
            for_each_group(&mut groups, |(range, image)| {
                prepared.forward_blocks(range.clone(), 0, &p, &q, image);
            });
        }
    }

    pub(super) fn run_pass<S: Scalar>(
        &self,
        weights: &[S],
        input: Input<'_, S>,
        upstream: &dyn Upstream<S>,
        d_multipliers: &mut Matrix<S>,
        gradients: Gradients<'_, S>,
        scratch: &Scratch<S>,
    ) -> Tally {
        let prepared = Prepared::new(self, weights, input, scratch);
        let ranges = input.batch.groups().ranges();
        let multiplier = d_multipliers.cols();
        let mut multipliers =
            split_rows(d_multipliers.as_mut_slice(), multiplier, ranges).into_iter();
        let mut states =
            split_rows(gradients.states.as_mut_slice(), self.state, ranges).into_iter();
        let mut labels = gradients
            .labels
            .map(|labels| split_rows(labels.as_mut_slice(), self.label, ranges).into_iter());
        let partial = if gradients.weights.is_some() { self.layout.padded_len() } else { 0 };
        let mut groups: Vec<Group<'_, S>> = ranges
            .iter()
            .map(|range| Group {
                nodes: range.clone(),
                d_states: states.next().unwrap_or_default(),
                d_multipliers: multipliers.next().unwrap_or_default(),
                d_labels: labels.as_mut().and_then(Iterator::next),
                partial: scratch.zeros(partial),
                tally: Tally::default(),
            })
            .collect();
        if input.batch.groups().whole_graphs() {
            for_each_group(&mut groups, |group| {
                for tile in tiles(input.batch, group.nodes.clone(), prepared.first()) {
                    prepared.tile(tile, upstream, group);
                }
            });
        } else {
            prepared.phases(upstream, &mut groups);
        }
        if let Some(d_weights) = gradients.weights {
            self.layout.fold(&groups.iter().map(|group| &group.partial[..]), d_weights);
        }
        groups.iter().fold(Tally::default(), |all, group| all.and(group.tally))
    }
}

/// What the nodes of a group contribute to, and no other group touches.
struct Group<'a, S: Scalar> {
    nodes: Range<usize>,
    d_states: &'a mut [S],
    d_multipliers: &'a mut [S],
    d_labels: Option<&'a mut [S]>,
    /// Partial weight gradients, padded; empty when they are not wanted.
    partial: Spare<'a, S>,
    tally: Tally,
}

impl<S: Scalar> Group<'_, S> {
    /// The rows of `nodes` among the rows of the group.
    fn rows(&self, nodes: &Range<usize>, width: usize) -> Range<usize> {
        (nodes.start - self.nodes.start) * width..(nodes.end - self.nodes.start) * width
    }
}

/// Where `∂𝓛/∂` of the first layer's sums goes, on its way to the sources.
enum Sources<'a, S> {
    /// Added to the rows of the sources, which start at this node.
    Add(&'a mut [S], usize),
    /// Kept per pair, from this pair on, for the sum by source.
    Keep(&'a mut [S], usize),
}

impl<'w, S: Scalar> Prepared<'w, S> {
    fn new(
        network: &'w ArcNetwork,
        weights: &[S],
        input: Input<'w, S>,
        scratch: &'w Scratch<S>,
    ) -> Self {
        let layout = &network.layout;
        let width = network.layers[0].0;
        let state = |block| {
            let (matrix, rows) = (layout.of(block, weights), layout.rows(block));
            let backward = if rows > 0 {
                Packed::transposed(matrix, width, rows)
            } else {
                Packed::new(&[], 0, network.state)
            };
            StateWeights { block, forward: Packed::new(matrix, rows, width), backward }
        };
        let label = |block| {
            (layout.rows(block) > 0)
                .then(|| LabelWeights::new(layout, block, weights, input.labels))
        };
        let arc = |block| LabelWeights::for_arcs(layout, block, weights);
        let layer = |k: usize| {
            Layer::new(layout, ArcNetwork::matrix_of_layer(k), network.layers[k].1, weights)
        };
        let per_pair = network.layers_per_pair();
        let neighbours = input.batch.neighbours();
        let mut roots = scratch.take(0);
        if network.aggregation == Aggregation::NormalizedSum {
            drop(roots);
            roots = scratch.take(input.batch.nodes());
            for (v, root) in roots.iter_mut().enumerate() {
                *root = S::ONE / S::of(neighbours.degree(v).max(1) as f64).sqrt();
            }
        }
        let last = network.last_per_node().then(|| layer(per_pair));
        let last_bias = last.as_ref().map(|last| &last.bias[..network.state]);
        let last_bias = last_bias.map(|bias| Packed::new(bias, 1, network.state));
        Self {
            a: state(A),
            c: state(C),
            b: label(B),
            d: label(D),
            arc: (layout.rows(E) > 0).then(|| [arc(E), arc(F)]),
            bias: layout.padded_copy(BIAS, weights),
            stack: Stack { layers: (1..per_pair).map(layer).collect() },
            last,
            last_bias: last_bias.unwrap_or_default(),
            roots,
            network,
            input,
            scratch,
        }
    }

    fn neighbours(&self) -> &'w Neighbours {
        self.input.batch.neighbours()
    }

    fn counts(&self) -> Counts<'_, S> {
        Counts { mean: self.network.aggregation == Aggregation::Mean, roots: &self.roots }
    }

    /// Padded width of the first layer.
    fn first(&self) -> usize {
        padded(self.network.layers[0].0)
    }

    /// Padded width of what is aggregated.
    fn aggregated(&self) -> usize {
        padded(self.network.layers[self.network.layers_per_pair() - 1].0)
    }

    fn activation(&self, layer: usize) -> Activation {
        self.network.layers[layer].1
    }

    fn states(&self, nodes: &Range<usize>) -> &'w [S] {
        let width = self.network.state;
        &self.input.states.as_slice()[nodes.start * width..nodes.end * width]
    }

    /// `p_u = A x_u + B l_u` and `q_v = C x_v + D l_v + b` of some nodes.
    fn project(&self, nodes: Range<usize>) -> (Spare<'w, S>, Spare<'w, S>) {
        let mut p = self.scratch.take(nodes.len() * self.first());
        let mut q = self.scratch.take(nodes.len() * self.first());
        self.project_into(nodes, &mut p, &mut q);
        (p, q)
    }

    fn project_into(&self, nodes: Range<usize>, p: &mut [S], q: &mut [S]) {
        let (x, state, width) = (self.states(&nodes), self.network.state, self.first());
        let q_start = Finish::Activate(Activation::Identity, &self.bias);
        for (y, x_weights, l_weights, finish) in
            [(p, &self.a, &self.b, Finish::Set), (q, &self.c, &self.d, q_start)]
        {
            let x = Factors { a: x, stride: state, b: &x_weights.forward };
            let l = l_weights.as_ref().and_then(|l| l.factors(self.input.labels, nodes.start));
            if let Some(l) = l {
                product(nodes.len(), &[x, l], y, width, finish);
            } else {
                product(nodes.len(), &[x], y, width, finish);
                if let Some(l_weights) = l_weights {
                    l_weights.add(self.input.labels, nodes.clone(), y);
                }
            }
        }
    }

    /// The projections of all nodes.
    fn project_all(&self) -> (Spare<'w, S>, Spare<'w, S>) {
        let (nodes, width) = (self.input.batch.nodes(), self.first());
        let ranges = self.input.batch.groups().ranges();
        let mut p = self.scratch.take(nodes * width);
        let mut q = self.scratch.take(nodes * width);
        let rows =
            split_rows(&mut p, width, ranges).into_iter().zip(split_rows(&mut q, width, ranges));
        let mut groups: Vec<_> = ranges.iter().cloned().zip(rows).collect();
        for_each_group(&mut groups, |(range, (p, q))| {
            for tile in tiles_of(range.clone(), width) {
                let rows = (tile.start - range.start) * width..(tile.end - range.start) * width;
                self.project_into(tile, &mut p[rows.clone()], &mut q[rows]);
            }
        });
        (p, q)
    }

    /// `f_a` of `nodes`, block by block; `base` is the first node of `p` and `q`.
    fn forward_blocks(&self, nodes: Range<usize>, base: usize, p: &[S], q: &[S], image: &mut [S]) {
        for block in blocks(self.neighbours(), nodes.clone(), self.first()) {
            let state = self.network.state;
            let rows = &mut image[(block.start - nodes.start) * state..][..block.len() * state];
            if self.is_fused() {
                let mut sums = self.scratch.take(block.len() * self.first());
                let mut slopes = self.scratch.take(block.len() * self.first());
                let (p, q) = (self.table(p, base), self.table(q, base));
                let (counts, activation) = (self.counts(), self.activation(0));
                let neighbours = self.neighbours();
                fused::sums(
                    neighbours,
                    block.clone(),
                    counts,
                    activation,
                    p,
                    q,
                    &mut sums,
                    &mut slopes,
                    &mut [],
                );
                self.after_sum(block, &sums, rows);
            } else {
                self.forward(block, base, p, q, rows);
            }
        }
    }

    fn table<'t>(&self, rows: &'t [S], base: usize) -> Table<'t, S> {
        Table { rows, base, width: self.first() }
    }

    /// `f_a` of a block of nodes, and what its derivative will need.
    fn forward(
        &self,
        nodes: Range<usize>,
        base: usize,
        p: &[S],
        q: &[S],
        image: &mut [S],
    ) -> Trace<'w, S> {
        let (neighbours, width) = (self.neighbours(), self.first());
        let pairs = pairs(neighbours, &nodes);
        let (p, q) = (self.table(p, base), self.table(q, base));
        let mut t = self.scratch.take(pairs.len() * width);
        if let Some(arc) = &self.arc {
            edges::gather(neighbours, nodes.clone(), p, q, Activation::Identity, &mut t);
            let labels = self.input.batch.arc_labels().view();
            for (weights, arcs) in arc.iter().zip([neighbours.outgoing(), neighbours.incoming()]) {
                weights.add_arcs(labels, &arcs[pairs.clone()], &mut t);
            }
            activate(self.activation(0), &[S::ZERO; LANES], &mut t);
        } else {
            edges::gather(neighbours, nodes.clone(), p, q, self.activation(0), &mut t);
        }
        let above = self.stack.forward(pairs.len(), &t, width, None, self.scratch);

        let aggregated = self.aggregated();
        let mut sums = self.scratch.take(nodes.len() * aggregated);
        let last = above.last().map_or(&t[..], |y| &y.value[..]);
        if self.network.aggregation == Aggregation::Max {
            edges::maximum(neighbours, nodes.clone(), aggregated, last, &mut sums);
        } else {
            edges::sum(neighbours, nodes.clone(), self.counts(), aggregated, last, &mut sums);
        }
        self.after_sum(nodes, &sums, image);
        Trace { t, above, sums }
    }

    /// `f_v = W s_v + (Σ count) b`, or the aggregate itself where no layer is left.
    fn after_sum(&self, nodes: Range<usize>, sums: &[S], image: &mut [S]) {
        let (aggregated, state) = (self.aggregated(), self.network.state);
        let Some(layer) = &self.last else {
            return copy_rows(sums, aggregated, image, state);
        };
        let totals = self.totals(nodes.clone());
        let bias = Factors { a: &totals, stride: 1, b: &self.last_bias };
        let factors = [layer.forward(sums, aggregated), bias];
        product(nodes.len(), &factors, image, state, Finish::Set);
    }

    /// How often a bias behind the sum counts, of some nodes.
    fn totals(&self, nodes: Range<usize>) -> Spare<'w, S> {
        let mut totals = self.scratch.take(nodes.len());
        for (total, v) in totals.iter_mut().zip(nodes) {
            *total = self.counts().total(self.neighbours(), v);
        }
        totals
    }

    /// The way back, from `∂𝓛/∂f` to `∂𝓛/∂s`.
    fn before_sum(
        &self,
        nodes: Range<usize>,
        sums: &[S],
        d_image: &[S],
        partial: Option<&mut [S]>,
        d_sums: &mut [S],
    ) {
        let (aggregated, state) = (self.aggregated(), self.network.state);
        let Some(layer) = &self.last else {
            return widen_rows(d_image, state, d_sums, aggregated);
        };
        let factors = layer.backward(d_image, state);
        product(nodes.len(), &[factors], d_sums, aggregated, Finish::Set);
        if let Some(partial) = partial {
            let layout = &self.network.layout;
            let mut d_f = self.scratch.take(nodes.len() * padded(state));
            widen_rows(d_image, state, &mut d_f, padded(state));
            let d_w = layout.partial(layer.matrix_block(), partial);
            transposed_product(nodes.len(), sums, aggregated, layer.inputs, &d_f, state, d_w);
            let d_b = layout.partial(layer.bias_block(), partial);
            let totals = self.totals(nodes.clone());
            transposed_product(nodes.len(), &totals, 1, 1, &d_f, state, d_b);
        }
    }

    /// Whether the values of pairs need not be stored, see [`fused`].
    fn is_fused(&self) -> bool {
        self.stack.layers.is_empty()
            && self.arc.is_none()
            && self.network.aggregation != Aggregation::Max
    }

    /// `f_a` of some nodes, and back to `∂𝓛/∂q` and to `d`, what goes to the sources.
    fn fused_pass(
        &self,
        nodes: Range<usize>,
        (p, q): (Table<'_, S>, Table<'_, S>),
        upstream: &dyn Upstream<S>,
        group: &mut Group<'_, S>,
        d: &mut [S],
        d_q: &mut [S],
        kept: &mut [S],
    ) {
        let (neighbours, counts, state) = (self.neighbours(), self.counts(), self.network.state);
        let mut sums = self.scratch.take(nodes.len() * self.first());
        let mut image = self.scratch.take(nodes.len() * state);
        let mut d_image = self.scratch.take(nodes.len() * state);
        let activation = self.activation(0);
        fused::sums(neighbours, nodes.clone(), counts, activation, p, q, &mut sums, d_q, kept);
        self.after_sum(nodes.clone(), &sums, &mut image);
        self.ask(nodes.clone(), &image, upstream, group, &mut d_image);
        let partial = (!group.partial.is_empty()).then_some(&mut group.partial[..]);
        self.before_sum(nodes.clone(), &sums, &d_image, partial, d);
        fused::to_targets(neighbours, nodes, counts, self.first(), d, d_q);
    }

    /// The way back through a block of nodes, from `∂𝓛/∂f_a` to `∂𝓛/∂q` and the sources.
    fn backward(
        &self,
        nodes: Range<usize>,
        trace: &Trace<'_, S>,
        d_image: &[S],
        mut partial: Option<&mut [S]>,
        d_q: &mut [S],
        sources: &mut Sources<'_, S>,
    ) {
        let (neighbours, layout) = (self.neighbours(), &self.network.layout);
        let (pairs, width) = (pairs(neighbours, &nodes), self.first());
        let aggregated = self.aggregated();

        // ∂𝓛/∂ of the aggregate
        let mut d_sums = self.scratch.take(nodes.len() * aggregated);
        self.before_sum(nodes.clone(), &trace.sums, d_image, partial.as_deref_mut(), &mut d_sums);

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
            self.stack.backward(
                layout,
                pairs.len(),
                &trace.t,
                width,
                &trace.above,
                d,
                None,
                partial.as_deref_mut(),
                Some((d_first, Finish::Slope(self.activation(0), &trace.t))),
                self.scratch,
            );
        }
        edges::sum_by_target(neighbours, nodes.clone(), width, d_first, d_q);
        if let (Some(arc), Some(partial)) = (&self.arc, partial) {
            let labels = self.input.batch.arc_labels().view();
            for (weights, arcs) in arc.iter().zip([neighbours.outgoing(), neighbours.incoming()]) {
                weights.gradient_arcs(layout, labels, &arcs[pairs.clone()], d_first, partial);
            }
        }
        if let Sources::Add(d_p, base) = sources {
            edges::add_by_source(neighbours, nodes, *base, width, &own, d_p);
        }
    }

    /// `∂𝓛/∂` of the last sums of every pair, from `∂𝓛/∂` of the aggregate.
    fn spread(&self, nodes: Range<usize>, trace: &Trace<'_, S>, d_sums: &[S], d: &mut [S]) {
        let (neighbours, aggregated) = (self.neighbours(), self.aggregated());
        let last = trace.above.last().map_or(&trace.t[..], |y| &y.value[..]);
        let activation = self.activation(self.network.layers_per_pair() - 1);
        if self.network.aggregation == Aggregation::Max {
            let at = (&trace.sums[..], d_sums);
            edges::spread_to_maximum(neighbours, nodes, activation, aggregated, at, last, d);
        } else {
            let counts = self.counts();
            edges::spread(neighbours, nodes, counts, activation, aggregated, d_sums, last, d);
        }
    }

    /// The gradients behind the projections: of the first layer's weights, of states, of labels.
    fn project_back(&self, nodes: &Range<usize>, d_p: &[S], d_q: &[S], group: &mut Group<'_, S>) {
        let (layout, state, width) = (&self.network.layout, self.network.state, self.first());
        let rows = group.rows(nodes, state);
        let d_states = &mut group.d_states[rows];
        let factors = [(&self.a, d_p), (&self.c, d_q)].map(|(w, d)| Factors {
            a: d,
            stride: width,
            b: &w.backward,
        });
        product(nodes.len(), &factors, d_states, state, Finish::Add);
        let rows = group.rows(nodes, self.network.label);
        if let Some(d_labels) = &mut group.d_labels {
            for (weights, d) in [(&self.b, d_p), (&self.d, d_q)] {
                if let Some(w) = weights {
                    w.back(d, &mut d_labels[rows.clone()]);
                }
            }
        }
        if !group.partial.is_empty() {
            for (w, d) in [(&self.a, d_p), (&self.c, d_q)] {
                let d_w = layout.partial(w.block, &mut group.partial);
                let (rows, columns) = (layout.rows(w.block), layout.columns(w.block));
                transposed_product(nodes.len(), self.states(nodes), state, rows, d, columns, d_w);
            }
            for (weights, d) in [(&self.b, d_p), (&self.d, d_q)] {
                if let Some(w) = weights {
                    w.gradient(layout, self.input.labels, nodes.clone(), d, &mut group.partial);
                }
            }
            sum_rows(d_q, layout.partial(BIAS, &mut group.partial));
        }
    }

    /// Asks upstream for `∂𝓛/∂f_a` of a block.
    fn ask(
        &self,
        nodes: Range<usize>,
        image: &[S],
        upstream: &dyn Upstream<S>,
        group: &mut Group<'_, S>,
        d_image: &mut [S],
    ) {
        let multiplier = group.d_multipliers.len() / group.nodes.len().max(1);
        let (states, multipliers) =
            (group.rows(&nodes, self.network.state), group.rows(&nodes, multiplier));
        let rows = NodeRows {
            d_image,
            d_states: &mut group.d_states[states],
            d_multipliers: &mut group.d_multipliers[multipliers],
        };
        group.tally = group.tally.and(upstream.upstream(nodes, image, rows));
    }

    /// A tile: some whole graphs, all the way.
    fn tile(&self, tile: Range<usize>, upstream: &dyn Upstream<S>, group: &mut Group<'_, S>) {
        let (state, width) = (self.network.state, self.first());
        let (p, q) = self.project(tile.clone());
        let mut d_q = self.scratch.take(tile.len() * width);
        if self.is_fused() {
            let mut d = self.scratch.take(tile.len() * width);
            let mut d_p = self.scratch.take(tile.len() * width);
            let (p, q) = (self.table(&p, tile.start), self.table(&q, tile.start));
            let (neighbours, nodes) = (self.neighbours(), tile.clone());
            let slopes = pairs(neighbours, &nodes).len() * width;
            let mut kept = self.scratch.take(if slopes <= KEPT { slopes } else { 0 });
            self.fused_pass(nodes.clone(), (p, q), upstream, group, &mut d, &mut d_q, &mut kept);
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
            let mut image = self.scratch.take(block.len() * state);
            let mut d_image = self.scratch.take(block.len() * state);
            let trace = self.forward(block.clone(), tile.start, &p, &q, &mut image);
            self.ask(block.clone(), &image, upstream, group, &mut d_image);
            let rows = (block.start - tile.start) * width..(block.end - tile.start) * width;
            let partial = (!group.partial.is_empty()).then_some(&mut group.partial[..]);
            let mut sources = Sources::Add(&mut d_p, tile.start);
            self.backward(block, &trace, &d_image, partial, &mut d_q[rows], &mut sources);
        }
        self.project_back(&tile, &d_p, &d_q, group);
    }

    /// All groups, phase by phase.
    fn phases(&self, upstream: &dyn Upstream<S>, groups: &mut [Group<'_, S>]) {
        let (nodes, width) = (self.input.batch.nodes(), self.first());
        let (p, q) = self.project_all();
        let mut d_q = self.scratch.take(nodes * width);
        if self.is_fused() {
            let mut d = self.scratch.take(nodes * width);
            let (p, q) = (self.table(&p, 0), self.table(&q, 0));
            self.fused_phase((p, q), upstream, groups, &mut d, &mut d_q);
            let (neighbours, counts) = (self.neighbours(), self.counts());
            let (d, activation) = (self.table(&d, 0), self.activation(0));
            self.back_by_source(groups, &mut d_q, |tile, d_p| {
                fused::to_sources(neighbours, tile, counts, activation, p, q, d, d_p);
            });
        } else {
            let mut kept = self.scratch.take(self.neighbours().len() * width);
            self.pair_phase((&p, &q), upstream, groups, &mut kept, &mut d_q);
            drop((p, q));
            self.back_by_source(groups, &mut d_q, |tile, d_p| {
                edges::sum_by_source(self.neighbours(), tile, width, &kept, d_p);
            });
        }
    }

    /// All targets, with what goes to their sources kept per target.
    fn fused_phase(
        &self,
        tables: (Table<'_, S>, Table<'_, S>),
        upstream: &dyn Upstream<S>,
        groups: &mut [Group<'_, S>],
        d: &mut [S],
        d_q: &mut [S],
    ) {
        let (ranges, width) = (self.input.batch.groups().ranges(), self.first());
        let rows = split_rows(d, width, ranges).into_iter().zip(split_rows(d_q, width, ranges));
        let mut work: Vec<_> = groups.iter_mut().zip(rows).collect();
        for_each_group(&mut work, |(group, (d, d_q))| {
            for tile in tiles_of(group.nodes.clone(), width) {
                let rows = group.rows(&tile, width);
                let (d, d_q) = (&mut d[rows.clone()], &mut d_q[rows]);
                self.fused_pass(tile, tables, upstream, group, d, d_q, &mut []);
            }
        });
    }

    /// All targets, with what goes to their sources kept per pair.
    fn pair_phase(
        &self,
        (p, q): (&[S], &[S]),
        upstream: &dyn Upstream<S>,
        groups: &mut [Group<'_, S>],
        kept: &mut [S],
        d_q: &mut [S],
    ) {
        let (state, width, neighbours) = (self.network.state, self.first(), self.neighbours());
        let ranges = self.input.batch.groups().ranges();
        let pair_ranges: Vec<_> = ranges.iter().map(|range| pairs(neighbours, range)).collect();
        let rows =
            split_rows(d_q, width, ranges).into_iter().zip(split_rows(kept, width, &pair_ranges));
        let mut work: Vec<_> = groups.iter_mut().zip(rows).collect();
        for_each_group(&mut work, |(group, (d_q, kept))| {
            let from = pairs(neighbours, &group.nodes).start;
            for block in blocks(neighbours, group.nodes.clone(), width) {
                let mut image = self.scratch.take(block.len() * state);
                let mut d_image = self.scratch.take(block.len() * state);
                let trace = self.forward(block.clone(), 0, p, q, &mut image);
                self.ask(block.clone(), &image, upstream, group, &mut d_image);
                let rows = group.rows(&block, width);
                let partial = (!group.partial.is_empty()).then_some(&mut group.partial[..]);
                let mut sources = Sources::Keep(kept, from);
                self.backward(block, &trace, &d_image, partial, &mut d_q[rows], &mut sources);
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
        let (ranges, width) = (self.input.batch.groups().ranges(), self.first());
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

/// What the derivative of a block needs.
struct Trace<'a, S: Scalar> {
    /// The first layer's activations, one row per pair.
    t: Spare<'a, S>,
    /// The activations of the layers above that are applied per pair.
    above: Vec<Activations<'a, S>>,
    /// The aggregate, one row per node.
    sums: Spare<'a, S>,
}

fn pairs(neighbours: &Neighbours, nodes: &Range<usize>) -> Range<usize> {
    neighbours.starts()[nodes.start] as usize..neighbours.starts()[nodes.end] as usize
}

/// `nodes`, a tile of rows of this width at a time, whatever their graphs.
fn tiles_of(nodes: Range<usize>, width: usize) -> impl Iterator<Item = Range<usize>> {
    let (end, size) = (nodes.end, tile_nodes(width));
    nodes.step_by(size).map(move |start| start..(start + size).min(end))
}

/// Whole graphs of `nodes`, about a tile at a time.
fn tiles<S: Scalar>(
    batch: &GraphBatch<S>,
    nodes: Range<usize>,
    width: usize,
) -> impl Iterator<Item = Range<usize>> + '_ {
    let (starts, size) = (batch.node_starts(), tile_nodes(width));
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
fn blocks(
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

/// Rows of `from` without their padding.
fn copy_rows<S: Scalar>(from: &[S], from_stride: usize, to: &mut [S], to_stride: usize) {
    if to_stride > 0 {
        for (to, from) in to.chunks_exact_mut(to_stride).zip(from.chunks_exact(from_stride)) {
            to.copy_from_slice(&from[..to_stride]);
        }
    }
}

/// Rows of `from`, padded with zeros.
pub(in crate::transition) fn widen_rows<S: Scalar>(
    from: &[S],
    from_stride: usize,
    to: &mut [S],
    to_stride: usize,
) {
    if from_stride > 0 {
        for (to, from) in to.chunks_exact_mut(to_stride).zip(from.chunks_exact(from_stride)) {
            to[..from_stride].copy_from_slice(from);
            to[from_stride..].fill(S::ZERO);
        }
    }
}
