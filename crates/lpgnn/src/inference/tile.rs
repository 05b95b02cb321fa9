//! A few small graphs, iterated to their fixed point while all that they touch is in cache.

use std::ops::Range;

use super::FixedPointOptions;
use super::anderson::{Anderson, Chunks, plain_step};
use super::chunks::share_out;
use super::layer::Converged;
use crate::graph::GraphBatch;
use crate::numeric::{Scratch, largest_difference};
use crate::transition::{Iteration, for_each_group, split_rows};
use crate::{Matrix, Scalar};

/// `f_x ← f_a(X)` of all nodes.
pub(super) fn apply_everywhere<S: Scalar>(
    iteration: &dyn Iteration<S>,
    x: &Matrix<S>,
    f_x: &mut Matrix<S>,
    scratch: &Scratch<S>,
) {
    let (tiles, width) = (iteration.tiles(), x.cols());
    let rows = split_rows(f_x.as_mut_slice(), width, &tiles);
    let mut tiles: Vec<_> = tiles.into_iter().zip(rows).collect();
    for_each_group(&mut tiles, |(nodes, f_x)| {
        let x = &x.as_slice()[nodes.start * width..nodes.end * width];
        let mut room = scratch.take(iteration.room(nodes.len()));
        iteration.apply(nodes.clone(), x, f_x, &mut room);
    });
}

/// Iterates all graphs from the states that `all` has, tile by tile, until they are within `tol` or `max_iter` is
/// reached; `tell` is called once for every iteration that any of them has done.
pub(super) fn converge_tiles<S: Scalar>(
    iteration: &dyn Iteration<S>,
    batch: &GraphBatch<S>,
    all: &mut Converged<S>,
    options: &FixedPointOptions,
    scratch: &Scratch<S>,
    tell: &mut dyn FnMut(),
) {
    let mut told = 0;
    let mut tell_until = |iterations: usize| {
        (told..iterations).for_each(|_| tell());
        told = told.max(iterations);
    };
    let to_its_end = |tile: &mut Tile<'_, S>, tell: &mut dyn FnMut(usize)| {
        tile.converge(iteration, options, scratch, tell);
    };
    let mut tiles = Tile::all(iteration, batch, all);
    let elsewhere = |tile: &mut Tile<'_, S>| to_its_end(tile, &mut |_| ());
    share_out(&mut tiles, elsewhere, |tile| to_its_end(tile, &mut tell_until));
    tell_until(all.counts.iter().copied().max().unwrap_or(0));
}

/// Some whole graphs and their rows of all results.
struct Tile<'a, S> {
    nodes: Range<usize>,
    /// The first node of every graph, and the end of the last.
    starts: &'a [usize],
    width: usize,
    /// Where it starts, then where it ends.
    states: &'a mut [S],
    f_x: &'a mut [S],
    residuals: &'a mut [f64],
    counts: &'a mut [usize],
}

/// A graph that has not converged.
struct Moving<S> {
    /// Its place in the tile.
    graph: usize,
    nodes: Range<usize>,
    past: Anderson<S>,
}

impl<'a, S: Scalar> Tile<'a, S> {
    fn all(
        iteration: &dyn Iteration<S>,
        batch: &'a GraphBatch<S>,
        all: &'a mut Converged<S>,
    ) -> Vec<Self> {
        let (starts, width) = (batch.node_starts(), all.states.cols());
        let mut ranges = iteration.tiles();
        if ranges.is_empty() {
            ranges.push(0..0);
        }
        let states = split_rows(all.states.as_mut_slice(), width, &ranges);
        let f_x = split_rows(all.f_x.as_mut_slice(), width, &ranges);
        let (mut residuals, mut counts) = (&mut all.residuals[..], &mut all.counts[..]);
        let (mut first, mut tiles) = (0, vec![]);
        for ((nodes, states), f_x) in ranges.into_iter().zip(states).zip(f_x) {
            // Graphs without nodes at its end are in it.
            let end = starts.partition_point(|&start| start <= nodes.end) - 1;
            let (starts, graphs) = (&starts[first..=end], end - first);
            first = end;
            let residuals = residuals.split_off_mut(..graphs).unwrap_or_default();
            let counts = counts.split_off_mut(..graphs).unwrap_or_default();
            tiles.push(Self { nodes, starts, width, states, f_x, residuals, counts });
        }
        tiles
    }

    fn converge(
        &mut self,
        iteration: &dyn Iteration<S>,
        options: &FixedPointOptions,
        scratch: &Scratch<S>,
        tell: &mut dyn FnMut(usize),
    ) {
        let mut room = scratch.take(iteration.room(self.nodes.len()));
        let (mut x, mut f) = (scratch.take(self.states.len()), scratch.take(self.states.len()));
        x.copy_from_slice(self.states);
        let graphs = self.starts.windows(2).enumerate();
        let mut moving: Vec<Moving<S>> = graphs
            .map(|(graph, ends)| Moving {
                graph,
                nodes: ends[0]..ends[1],
                past: Anderson::new(options.window),
            })
            .collect();
        for number in 1..=options.max_iter {
            self.apply(iteration, &moving, &x, &mut f, &mut room);
            tell(number);
            moving.retain_mut(|graph| !self.step(graph, &mut x, &mut f, options));
            if moving.is_empty() {
                return;
            }
            std::mem::swap(&mut x, &mut f);
        }
        // Their states have moved since `f_a` was applied.
        self.apply(iteration, &moving, &x, &mut f, &mut room);
        for Moving { graph, nodes, .. } in moving {
            let rows = self.rows(&nodes);
            self.residuals[graph] = largest_difference(&x[rows.clone()], &f[rows]).f64();
            self.keep(&nodes, &x, &f);
        }
    }

    /// `f ← f_a(x)` of graphs, as many as lie beside each other at a time.
    fn apply(
        &self,
        iteration: &dyn Iteration<S>,
        moving: &[Moving<S>],
        x: &[S],
        f: &mut [S],
        room: &mut [S],
    ) {
        for run in moving.chunk_by(|one, next| one.nodes.end == next.nodes.start) {
            let nodes = run[0].nodes.start..run[run.len() - 1].nodes.end;
            let rows = self.rows(&nodes);
            iteration.apply(nodes, &x[rows.clone()], &mut f[rows], room);
        }
    }

    /// Whether a graph has converged; unless it has, its next iterate takes the place of `f_a(x)`.
    fn step(
        &mut self,
        Moving { graph, nodes, past }: &mut Moving<S>,
        x: &mut [S],
        f: &mut [S],
        options: &FixedPointOptions,
    ) -> bool {
        let rows = self.rows(nodes);
        let (own_x, own_f) = (&mut x[rows.clone()], &mut f[rows]);
        let residual = largest_difference(own_x, own_f).f64();
        self.counts[*graph] += 1;
        self.residuals[*graph] = residual;
        if residual <= options.tol {
            self.keep(nodes, x, f);
            return true;
        }
        let beta = S::of(options.beta);
        if !past.is_plain(residual) {
            past.advance(own_x, own_f, beta, &Chunks::even(own_f.len()));
            own_f.copy_from_slice(own_x);
        } else if beta < S::ONE {
            plain_step(own_x, own_f, beta);
            own_f.copy_from_slice(own_x);
        }
        false
    }

    fn keep(&mut self, nodes: &Range<usize>, x: &[S], f: &[S]) {
        let rows = self.rows(nodes);
        self.states[rows.clone()].copy_from_slice(&x[rows.clone()]);
        self.f_x[rows.clone()].copy_from_slice(&f[rows]);
    }

    /// Where the rows of nodes are among those of the tile.
    fn rows(&self, nodes: &Range<usize>) -> Range<usize> {
        (nodes.start - self.nodes.start) * self.width..(nodes.end - self.nodes.start) * self.width
    }
}
