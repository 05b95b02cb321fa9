//! What is done while rows of ghosts are on their way: everything about nodes that have none among their neighbours.
//!
//! ```text
//! project │ p →  s_v, g_v of interior v │ q →  s_v, g_v of the others, d_v of all │ d →  ∂𝓛/∂p_u of interior u │ ∂𝓛/∂p_u of the others
//! ```
//!
//! An arrow is an exchange that starts, and the next stroke is where it is waited for. Only sums by source need `q` of ghosts. A row is computed from the same numbers in the same order whenever it is, and sums over rows are
//! taken afterwards: so the bits are those of one process. No other table is needed: `s`, `g` and `∂𝓛/∂p` wait in rows of `d`,
//! of `∂𝓛/∂q` and of `p` that nobody needs meanwhile.

use std::ops::Range;

use super::fused;
use super::kernels::{GhostsFirst, Table};
use super::prepared::Prepared;
use super::tiles::tiles_of;
use crate::Scalar;
use crate::transition::{for_each_group_until, split_rows};

impl<S: Scalar> Prepared<'_, S> {
    /// `s_v` and `g_v` of interior nodes, to their rows of `s` and `g`.
    pub(super) fn interior_sums(
        &self,
        (p, q): (&[S], &[S]),
        poll: &mut dyn FnMut(),
        s: &mut [S],
        g: &mut [S],
    ) {
        let (topology, width) = (self.input.topology, self.first());
        let ranges = topology.groups().ranges();
        let (p, q) = (self.table(p, 0), self.table(q, 0));
        let rows = split_rows(s, width, ranges).into_iter().zip(split_rows(g, width, ranges));
        let mut groups: Vec<_> = ranges.iter().zip(rows).collect();
        for_each_group_until(poll, &mut groups, |(range, (s, g))| {
            for nodes in topology.pieces_that(true, range.start..range.end) {
                let rows = (nodes.start - range.start) * width..(nodes.end - range.start) * width;
                self.sums(nodes, (p, q), &mut s[rows.clone()], &mut g[rows], &mut []);
            }
        });
    }

    /// `s_v` and `g_v` of `nodes`; those of interior ones are in `early` and in `g` already.
    pub(super) fn other_sums(
        &self,
        nodes: Range<usize>,
        tables: (Table<'_, S>, Table<'_, S>),
        early: &[S],
        (s, g): (&mut [S], &mut [S]),
    ) {
        let width = self.first();
        for (interior, piece) in self.input.topology.pieces(nodes.clone()) {
            let rows = (piece.start - nodes.start) * width..(piece.end - nodes.start) * width;
            if interior {
                s[rows.clone()].copy_from_slice(&early[rows]);
            } else {
                self.sums(piece, tables, &mut s[rows.clone()], &mut g[rows], &mut []);
            }
        }
    }

    pub(super) fn sums(
        &self,
        nodes: Range<usize>,
        (p, q): (Table<'_, S>, Table<'_, S>),
        s: &mut [S],
        g: &mut [S],
        kept: &mut [S],
    ) {
        let (counts, activation) = (self.counts(), self.activation(0));
        fused::sums(self.neighbours(), nodes, counts, activation, p, q, s, g, kept);
    }

    /// `∂𝓛/∂p_u` of interior nodes, in place of `p_u`; `d` is of own nodes.
    pub(super) fn interior_sources(&self, p: &mut [S], q: &[S], poll: &mut dyn FnMut(), d: &[S]) {
        let (topology, width) = (self.input.topology, self.first());
        let ranges = topology.groups().ranges();
        let (q, d) = (self.table(q, 0), GhostsFirst::new(self.table(d, 0), topology.nodes()));
        let mut groups: Vec<_> = ranges.iter().zip(split_rows(p, width, ranges)).collect();
        for_each_group_until(poll, &mut groups, |(range, p)| {
            for piece in topology.pieces_that(true, range.start..range.end) {
                for nodes in tiles_of(piece, width) {
                    let first = (nodes.start - range.start) * width;
                    let rows = &mut p[first..][..nodes.len() * width];
                    let mut own = self.scratch.take(rows.len());
                    own.copy_from_slice(rows);
                    let own = self.table(&own, nodes.start);
                    self.to_sources(nodes, (own, q, d), rows);
                }
            }
        });
    }

    /// `∂𝓛/∂p_u` of `nodes`; that of interior ones is in the place of `p_u`.
    pub(super) fn other_sources(
        &self,
        nodes: Range<usize>,
        tables: (Table<'_, S>, Table<'_, S>, GhostsFirst<'_, S>),
        d_p: &mut [S],
    ) {
        let width = self.first();
        for (interior, piece) in self.input.topology.pieces(nodes.clone()) {
            let rows = &mut d_p[(piece.start - nodes.start) * width..][..piece.len() * width];
            if interior {
                rows.copy_from_slice(&tables.0.rows[piece.start * width..piece.end * width]);
            } else {
                self.to_sources(piece, tables, rows);
            }
        }
    }

    fn to_sources(
        &self,
        nodes: Range<usize>,
        (p, q, d): (Table<'_, S>, Table<'_, S>, GhostsFirst<'_, S>),
        d_p: &mut [S],
    ) {
        let (counts, activation) = (self.counts(), self.activation(0));
        fused::to_sources(self.neighbours(), nodes, counts, activation, p, q, d, d_p);
    }
}
