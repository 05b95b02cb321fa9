//! The order of an update, in two plans that compute the same.
//!
//! *Tiles*: where graphs are small, a few of them at a time go all the way, projection, pairs,
//! upstream and back, while everything they touch is in cache; nothing is kept over all nodes.
//!
//! *Phases*: a graph that is larger than a group has neighbours in other groups. Projections of
//! all nodes come first, then pairs by target, then sums by source along the twins.

use std::ops::Range;

use super::edges::{self, Counts, Table};
use super::{A, Aggregation, ArcNetwork, B, BIAS, C, D, E, F};
use crate::activation::{Activation, activate};
use crate::graph::{GraphBatch, Neighbours};
use crate::network::{Activations, Layer, Stack, sum_rows};
use crate::numeric::{Packed, Scratch, Spare, Store, padded, product, transposed_product};
use crate::transition::{
    Gradients, Input, LabelWeights, NodeRows, Tally, Upstream, for_each_group, split_rows,
};
use crate::{Matrix, Scalar};

/// Nodes of a tile: its rows of a hundred units or so fit the second-level cache.
const TILE_NODES: usize = 256;
/// Pairs that are worked on at a time, unless one node has more.
const BLOCK_PAIRS: usize = 512;

/// The weights of `h`, packed once for all rows.
struct Prepared<'w, S: Scalar> {
    a: Option<StateWeights<S>>,
    c: Option<StateWeights<S>>,
    b: Option<LabelWeights<S>>,
    d: Option<LabelWeights<S>>,
    /// `E` and `F`.
    arc: Option<[LabelWeights<S>; 2]>,
    bias: Vec<S>,
    /// The layers after the first that are applied per pair.
    stack: Stack<S>,
    /// The last layer, when it is applied per node.
    last: Option<Layer<S>>,
    roots: Spare<'w, S>,
    network: &'w ArcNetwork,
    input: Input<'w, S>,
    scratch: &'w Scratch<S>,
}

/// The rows of the first layer that multiply a state, for both directions.
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
                for tile in tiles(input.batch, range.clone()) {
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
                for tile in tiles(input.batch, group.nodes.clone()) {
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
            (layout.rows(block) > 0).then(|| {
                let (matrix, rows) = (layout.of(block, weights), layout.rows(block));
                StateWeights {
                    block,
                    forward: Packed::new(matrix, rows, width),
                    backward: Packed::transposed(matrix, width, rows),
                }
            })
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
        Self {
            a: state(A),
            c: state(C),
            b: label(B),
            d: label(D),
            arc: (layout.rows(E) > 0).then(|| [arc(E), arc(F)]),
            bias: layout.padded_copy(BIAS, weights),
            stack: Stack { layers: (1..per_pair).map(layer).collect() },
            last: network.last_per_node().then(|| layer(per_pair)),
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
        p.fill(S::ZERO);
        if width > 0 {
            q.chunks_exact_mut(width).for_each(|row| row.copy_from_slice(&self.bias));
        }
        if let Some(a) = &self.a {
            product(nodes.len(), x, state, &a.forward, p, width, Store::Add);
        }
        if let Some(c) = &self.c {
            product(nodes.len(), x, state, &c.forward, q, width, Store::Add);
        }
        if let Some(b) = &self.b {
            b.add(self.input.labels, nodes.clone(), p);
        }
        if let Some(d) = &self.d {
            d.add(self.input.labels, nodes, q);
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
        for_each_group(&mut groups, |(range, (p, q))| self.project_into(range.clone(), p, q));
        (p, q)
    }

    /// `f_a` of `nodes`, block by block; `base` is the first node of `p` and `q`.
    fn forward_blocks(&self, nodes: Range<usize>, base: usize, p: &[S], q: &[S], image: &mut [S]) {
        for block in blocks(self.neighbours(), nodes.clone()) {
            let state = self.network.state;
            let rows = &mut image[(block.start - nodes.start) * state..][..block.len() * state];
            self.forward(block, base, p, q, rows);
        }
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
        let (p, q) = (Table { rows: p, base, width }, Table { rows: q, base, width });
        let mut t = self.scratch.take(pairs.len() * width);
        if let Some(arc) = &self.arc {
            edges::gather(neighbours, nodes.clone(), p, q, Activation::Identity, &mut t);
            let labels = self.input.batch.arc_labels().view();
            for (weights, arcs) in arc.iter().zip([neighbours.outgoing(), neighbours.incoming()]) {
                weights.add_arcs(labels, &arcs[pairs.clone()], &mut t);
            }
            if width > 0 {
                let none = vec![S::ZERO; width];
                activate(self.activation(0), &none, &mut t);
            }
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
        match &self.last {
            None => copy_rows(&sums, aggregated, image, self.network.state),
            // f_v = W Σ t + (Σ count) b
            Some(layer) => {
                let mut y = self.scratch.take(nodes.len() * padded(layer.outputs));
                layer.multiply(nodes.len(), &sums, aggregated, &mut y, Store::Set);
                for (v, y) in nodes.zip(y.chunks_exact_mut(padded(layer.outputs))) {
                    let total = self.counts().total(neighbours, v);
                    for (y, &b) in y.iter_mut().zip(&layer.bias) {
                        *y += total * b;
                    }
                }
                copy_rows(&y, padded(layer.outputs), image, self.network.state);
            }
        }
        Trace { t, above, sums }
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
        let (state, aggregated) = (self.network.state, self.aggregated());

        // ∂𝓛/∂ of the aggregate
        let mut d_sums = self.scratch.take(nodes.len() * aggregated);
        let mut d_f = self.scratch.take(nodes.len() * padded(state));
        widen_rows(d_image, state, &mut d_f, padded(state));
        match &self.last {
            None => d_sums.copy_from_slice(&d_f),
            Some(layer) => {
                layer.multiply_back(nodes.len(), &d_f, &mut d_sums, aggregated, Store::Set);
                if let Some(partial) = partial.as_deref_mut() {
                    let d_w = layout.partial(layer.matrix_block(), partial);
                    let (rows, inputs) = (nodes.len(), layer.inputs);
                    transposed_product(rows, &trace.sums, aggregated, inputs, &d_f, state, d_w);
                    let d_b = layout.partial(layer.bias_block(), partial);
                    for (v, d_f) in nodes.clone().zip(d_f.chunks_exact(padded(state))) {
                        let total = self.counts().total(neighbours, v);
                        for (d_b, &d) in d_b.iter_mut().zip(d_f) {
                            *d_b += total * d;
                        }
                    }
                }
            }
        }

        // ∂𝓛/∂ of the value of every pair, after the slope of the layer that made it
        let last = trace.above.last().map_or(&trace.t[..], |y| &y.value[..]);
        let mut d = self.scratch.take(pairs.len() * aggregated);
        let activation = self.activation(self.network.layers_per_pair() - 1);
        if self.network.aggregation == Aggregation::Max {
            let at = (&trace.sums[..], &d_sums[..]);
            edges::spread_to_maximum(
                neighbours,
                nodes.clone(),
                activation,
                aggregated,
                at,
                last,
                &mut d,
            );
        } else {
            let counts = self.counts();
            edges::spread(
                neighbours,
                nodes.clone(),
                counts,
                activation,
                aggregated,
                &d_sums,
                last,
                &mut d,
            );
        }

        // ∂𝓛/∂ of the first layer's sums
        if !self.stack.layers.is_empty() {
            let mut d_first = self.scratch.take(pairs.len() * width);
            self.stack.backward(
                layout,
                pairs.len(),
                &trace.t,
                width,
                &trace.above,
                d,
                None,
                partial.as_deref_mut(),
                Some((&mut d_first, Store::Set)),
                self.scratch,
            );
            crate::activation::differentiate(self.activation(0), &trace.t, &mut d_first);
            d = d_first;
        }
        if let (Some(arc), Some(partial)) = (&self.arc, partial) {
            let labels = self.input.batch.arc_labels().view();
            for (weights, arcs) in arc.iter().zip([neighbours.outgoing(), neighbours.incoming()]) {
                weights.gradient_arcs(layout, labels, &arcs[pairs.clone()], &d, partial);
            }
        }
        edges::sum_by_target(neighbours, nodes.clone(), width, &d, d_q);
        match sources {
            Sources::Add(d_p, base) => {
                edges::add_by_source(neighbours, nodes, *base, width, &d, d_p);
            }
            Sources::Keep(kept, from) => {
                kept[(pairs.start - *from) * width..(pairs.end - *from) * width]
                    .copy_from_slice(&d);
            }
        }
    }

    /// The gradients behind the projections: of the first layer's weights, of states, of labels.
    fn project_back(&self, nodes: &Range<usize>, d_p: &[S], d_q: &[S], group: &mut Group<'_, S>) {
        let (layout, state, width) = (&self.network.layout, self.network.state, self.first());
        let rows = group.rows(nodes, state);
        let d_states = &mut group.d_states[rows];
        for (weights, d) in [(&self.a, d_p), (&self.c, d_q)] {
            if let Some(w) = weights {
                product(nodes.len(), d, width, &w.backward, d_states, state, Store::Add);
            }
        }
        let rows = group.rows(nodes, self.network.label);
        if let Some(d_labels) = &mut group.d_labels {
            for (weights, d) in [(&self.b, d_p), (&self.d, d_q)] {
                if let Some(w) = weights {
                    w.back(d, &mut d_labels[rows.clone()]);
                }
            }
        }
        if !group.partial.is_empty() {
            for (weights, d) in [(&self.a, d_p), (&self.c, d_q)] {
                if let Some(w) = weights {
                    let d_w = layout.partial(w.block, &mut group.partial);
                    let (x, columns) = (self.states(nodes), layout.columns(w.block));
                    transposed_product(nodes.len(), x, state, state, d, columns, d_w);
                }
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
        let mut d_p = self.scratch.zeros(tile.len() * width);
        let mut d_q = self.scratch.take(tile.len() * width);
        for block in blocks(self.neighbours(), tile.clone()) {
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
        let (state, width) = (self.network.state, self.first());
        let neighbours = self.neighbours();
        let ranges = self.input.batch.groups().ranges();
        let (p, q) = self.project_all();
        let mut d_q = self.scratch.take(self.input.batch.nodes() * width);
        let mut kept = self.scratch.take(neighbours.len() * width);

        let pair_ranges: Vec<_> = ranges.iter().map(|range| pairs(neighbours, range)).collect();
        let mut work: Vec<_> = groups
            .iter_mut()
            .zip(split_rows(&mut d_q, width, ranges))
            .zip(split_rows(&mut kept, width, &pair_ranges))
            .collect();
        for_each_group(&mut work, |((group, d_q), kept)| {
            let first = group.nodes.start;
            let from = pairs(neighbours, &group.nodes).start;
            for block in blocks(neighbours, group.nodes.clone()) {
                let mut image = self.scratch.take(block.len() * state);
                let mut d_image = self.scratch.take(block.len() * state);
                let trace = self.forward(block.clone(), 0, &p, &q, &mut image);
                self.ask(block.clone(), &image, upstream, group, &mut d_image);
                let rows = (block.start - first) * width..(block.end - first) * width;
                let partial = (!group.partial.is_empty()).then_some(&mut group.partial[..]);
                let mut sources = Sources::Keep(kept, from);
                self.backward(block, &trace, &d_image, partial, &mut d_q[rows], &mut sources);
            }
        });
        drop((work, p, q));

        let mut work: Vec<_> = groups.iter_mut().zip(split_rows(&mut d_q, width, ranges)).collect();
        for_each_group(&mut work, |(group, d_q)| {
            let nodes = group.nodes.clone();
            for tile in (nodes.start..nodes.end).step_by(TILE_NODES) {
                let tile = tile..(tile + TILE_NODES).min(nodes.end);
                let mut d_p = self.scratch.take(tile.len() * width);
                edges::sum_by_source(neighbours, tile.clone(), width, &kept, &mut d_p);
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

/// Whole graphs of `nodes`, about [`TILE_NODES`] nodes at a time.
fn tiles<S: Scalar>(
    batch: &GraphBatch<S>,
    nodes: Range<usize>,
) -> impl Iterator<Item = Range<usize>> + '_ {
    let starts = batch.node_starts();
    let mut start = nodes.start;
    std::iter::from_fn(move || {
        if start >= nodes.end {
            return None;
        }
        // The last graph that begins within reach, but one graph at least.
        let reach = starts.partition_point(|&first| first <= start + TILE_NODES) - 1;
        let next = starts.partition_point(|&first| first <= start);
        let end = starts[reach.max(next).min(starts.len() - 1)].min(nodes.end);
        let tile = start..end;
        start = end;
        Some(tile)
    })
}

/// Nodes of `nodes` in blocks of about [`BLOCK_PAIRS`] pairs, one node at least.
fn blocks(neighbours: &Neighbours, nodes: Range<usize>) -> impl Iterator<Item = Range<usize>> + '_ {
    let starts = neighbours.starts();
    let mut start = nodes.start;
    std::iter::from_fn(move || {
        if start >= nodes.end {
            return None;
        }
        let limit = starts[start] as usize + BLOCK_PAIRS;
        let within = starts[start + 1..=nodes.end].partition_point(|&end| end as usize <= limit);
        let end = start + within.clamp(1, TILE_NODES);
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
