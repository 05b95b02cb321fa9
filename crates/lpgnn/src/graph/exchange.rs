//! The two seams along which several processes can share one update.
//!
//! ```text
//! project → exchange → pairs → constraint → exchange → back → reduce
//! ```
//!
//! A process computes the rows of the nodes it owns. Before the loop over pairs it needs the projections of
//! neighbours that others own, and before the way back what the constraint made of them: both are rows *gathered*
//! from their owners, never sums that several processes contribute to. So every sum over neighbours is taken by
//! one process in the order of its neighbours, and has the same bits for any number of processes. Sums over all
//! nodes are taken over groups that the data fix, in their order.

use std::fmt::Debug;

use super::Topology;
use crate::Scalar;

/// Fills the rows of ghosts from the processes that own them.
pub trait Exchange<S: Scalar = f32>: Debug + Sync {
    /// Sets the ghost rows of a table of nodes, given its [`nodes`](Topology::nodes) own rows; all have `width` entries, and there are
    /// [`rows`](Topology::rows) of both.
    fn gather_nodes(&self, topology: &Topology, width: usize, own: &[S], ghosts: &mut [S]);

    /// The same while `meanwhile` does what needs no ghosts. It is called once, and calls what it is given now and then, so that rows get on.
    ///
    /// By default all that is done afterwards.
    fn gather_nodes_while(
        &self,
        topology: &Topology,
        width: usize,
        own: &[S],
        ghosts: &mut [S],
        meanwhile: &mut dyn FnMut(&mut dyn FnMut()),
    ) {
        meanwhile(&mut || {});
        self.gather_nodes(topology, width, own, ghosts);
    }

    /// Sets the ghost rows of a table of pairs, which has [`pair_rows`](Topology::pair_rows) rows of both.
    fn gather_pairs(&self, topology: &Topology, width: usize, own: &[S], ghosts: &mut [S]);
}

/// Adds up what groups of nodes contribute, over all processes and always in the order of the groups.
pub trait Reduce<S: Scalar = f32>: Debug + Sync {
    /// The sum of the partial sums of the groups of all processes, each of `length` numbers; none where `own` are all
    /// there are.
    fn sum(&self, own: &[&[S]], length: usize) -> Option<Vec<S>>;

    /// Numbers of the groups of all processes, `per_group` each, in the order of groups; none where `own` are all.
    fn totals(&self, own: &[f64], per_group: usize) -> Option<Vec<f64>>;

    /// Lets every process add to the same values, one after the other.
    fn in_turn(&self, values: &mut [S], add: &mut dyn FnMut(&mut [S]));
}

/// One process that owns all nodes: there is nothing to fill and nothing to add.
#[derive(Clone, Copy, Debug, Default)]
pub struct Local;

impl<S: Scalar> Exchange<S> for Local {
    fn gather_nodes(&self, _: &Topology, _: usize, _: &[S], _: &mut [S]) {}
    fn gather_pairs(&self, _: &Topology, _: usize, _: &[S], _: &mut [S]) {}
}

impl<S: Scalar> Reduce<S> for Local {
    fn sum(&self, _: &[&[S]], _: usize) -> Option<Vec<S>> {
        None
    }

    fn totals(&self, _: &[f64], _: usize) -> Option<Vec<f64>> {
        None
    }

    fn in_turn(&self, values: &mut [S], add: &mut dyn FnMut(&mut [S])) {
        add(values);
    }
}
