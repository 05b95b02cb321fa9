//! Tolerances of single nodes.
//!
//! A node at level `i` is to be within `tol κ^{−i}` of its fixed point, and neighbours are a level apart at most. In the norm
//! that divides errors by these tolerances, those of neighbours count `κ` times as much, so that `f_a` contracts by
//! `κ a + c` where it contracted by `a + c`. Levels rise where a class is not final, and around it as far as they have to.

use std::collections::VecDeque;

use super::LiveGraph;

/// The level of every node, where there are any.
#[derive(Clone, Debug)]
pub(super) struct Levels {
    /// `κ`; 1 where all nodes have the same tolerance.
    pub(super) ratio: f64,
    pub(super) most: u8,
    pub(super) of: Vec<u8>,
    /// What the decision of every node or graph needs.
    pub(super) needs: Vec<u8>,
    /// `κ^{−i}`
    shares: Vec<f64>,
}

/// Levels are never farther apart than this.
const LARGEST_RATIO: f64 = 2.0;

impl Levels {
    /// One tolerance for all.
    pub(super) fn none() -> Self {
        Self::of_ratio(1.0, 0, 0, 0)
    }

    /// From `tol` down to `tol / range`, for a transition that contracts by `contraction`: half of what is left to 1 goes
    /// into `κ`.
    pub(super) fn new(range: f64, contraction: f64, nodes: usize, rows: usize) -> Self {
        let ratio = (0.5 * (1.0 + contraction) / contraction.max(0.1)).min(LARGEST_RATIO);
        let most = (range.ln() / ratio.ln()).ceil().clamp(1.0, 250.0);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most 250")]
        let most = most as u8;
        // The last level is the smallest tolerance exactly, unless it is out of reach.
        let ratio = ratio.min(range.powf(1.0 / f64::from(most)));
        Self::of_ratio(ratio, most, nodes, rows)
    }

    pub(super) fn of_ratio(ratio: f64, most: u8, nodes: usize, rows: usize) -> Self {
        let shares = (0..=i32::from(most)).map(|level| ratio.powi(-level)).collect();
        let there = usize::from(most > 0);
        Self { ratio, most, of: vec![0; there * nodes], needs: vec![0; there * rows], shares }
    }

    /// `κ^{−i}` of a node.
    #[inline]
    pub(super) fn share(&self, v: usize) -> f64 {
        self.of.get(v).map_or(1.0, |&level| self.shares[level as usize])
    }

    /// The same of a graph, all nodes of which have at least this level.
    pub(super) fn share_of_row(&self, row: usize) -> f64 {
        self.needs.get(row).map_or(1.0, |&level| self.shares[level as usize])
    }

    /// How many levels lie between errors of which one is `times` as large as the other, rounded up.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is clamped")]
    pub(super) fn between(&self, times: f64) -> u8 {
        (times.ln() / self.ratio.ln()).ceil().clamp(0.0, f64::from(self.most)) as u8
    }

    pub(super) fn bytes(&self) -> usize {
        self.of.capacity() + self.needs.capacity()
    }
}

impl LiveGraph {
    /// What the decision of a node or graph needs from now on. A level rises at once, and the levels around it; it sinks
    /// for as far as its neighbours allow, node by node.
    pub(super) fn set_need(&mut self, row: usize, level: u8) {
        self.note_need(row, level);
        if let Some(members) = &self.members {
            let nodes: Vec<usize> = members.of(row).iter().map(|&v| v as usize).collect();
            nodes.into_iter().for_each(|v| self.set_level(v, level));
        } else {
            self.set_level(row, level);
        }
    }

    fn set_level(&mut self, v: usize, need: u8) {
        let around = self.adjacency.of(v).iter().map(|link| self.levels.of[link.node()]);
        let level = need.max(around.max().unwrap_or(0).saturating_sub(1));
        if level < self.levels.of[v] {
            self.move_to_level(v, level);
            (0..self.layers.len()).for_each(|layer| self.queue(layer, v));
        } else {
            self.raise_level(v, level);
        }
    }

    /// A node has at least this level, and what is around it follows.
    pub(super) fn raise_level(&mut self, v: usize, level: u8) {
        let mut waiting = VecDeque::from([(v, level)]);
        while let Some((v, level)) = waiting.pop_front() {
            if self.levels.of[v] >= level {
                continue;
            }
            self.move_to_level(v, level);
            (0..self.layers.len()).for_each(|layer| self.queue(layer, v));
            waiting.extend(self.adjacency.of(v).iter().map(|link| (link.node(), level - 1)));
        }
    }

    /// Nodes that an edge has joined are a level apart at most.
    pub(super) fn join_levels(&mut self, u: usize, v: usize) {
        if self.levels.most > 0 {
            let [of_u, of_v] = [u, v].map(|v| self.levels.of[v]);
            self.raise_level(u, of_v.saturating_sub(1));
            self.raise_level(v, of_u.saturating_sub(1));
        }
    }
}
