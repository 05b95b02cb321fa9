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

use super::{Pending, Topology};
use crate::Scalar;

/// Fills the rows of ghosts from the processes that own them.
pub trait Exchange<S: Scalar = f32>: Debug + Sync {
    /// Sets the ghost rows of a table of nodes, which has [`rows`](Topology::rows) rows of `width` entries.
    fn gather_nodes(&self, topology: &Topology, width: usize, rows: &mut [S]);

    /// Starts to set the ghost rows of a table of nodes, and does not wait for them: until [`finish_nodes`](Self::finish_nodes),
    /// own rows stay as they are, and ghost rows are not read. What has been started first is finished first.
    ///
    /// By default nothing is started, and all is done at the end.
    fn start_nodes(&self, topology: &Topology, width: usize, rows: &[S]) -> Coming {
        let _ = (topology, width, rows);
        None
    }

    /// Waits for ghost rows, and sets them.
    fn finish_nodes(&self, coming: Coming, topology: &Topology, width: usize, rows: &mut [S]) {
        drop(coming);
        self.gather_nodes(topology, width, rows);
    }

    /// Sets the ghost rows of a table of pairs, which has [`pair_rows`](Topology::pair_rows) rows.
    fn gather_pairs(&self, topology: &Topology, width: usize, rows: &mut [S]);
}

/// Rows on their way, if any are.
pub type Coming = Option<Box<dyn Pending>>;

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
    fn gather_nodes(&self, _: &Topology, _: usize, _: &mut [S]) {}
    fn gather_pairs(&self, _: &Topology, _: usize, _: &mut [S]) {}
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
