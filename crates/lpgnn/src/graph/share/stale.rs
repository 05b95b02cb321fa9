//! Ghosts that are one update old, so that nobody waits for them.

use std::sync::{Mutex, PoisonError};

use crate::graph::communicator::{Pending, Received};

/// What the exchanges of the update before have brought, or will.
///
/// The `k`-th exchange of an update sends what is there now, and takes what the `k`-th exchange of the update before was sent. In the
/// first update, and where the one before had fewer exchanges, it waits for what is sent now.
#[derive(Debug, Default)]
pub(super) struct Stale(Mutex<Calls>);

#[derive(Debug, Default)]
struct Calls {
    /// The next exchange of this update; none while ghosts are exact.
    next: Option<usize>,
    /// With the length of its rows.
    started: Vec<(usize, Box<dyn Pending>)>,
}

impl Stale {
    /// From now on exchanges are those of a new update; or exact.
    pub(super) fn set(&self, on: bool) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).next = on.then_some(0);
    }

    /// Waits for all that is under way, and forgets it.
    pub(super) fn forget(&self) {
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        calls.started.drain(..).for_each(|(_, pending)| _ = pending.finish());
    }

    /// Lets what is under way go on.
    pub(super) fn poll(&self) {
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        calls.started.iter_mut().for_each(|(_, pending)| pending.poll());
    }

    /// What is taken in place of what `start` brings; none where ghosts are exact.
    pub(super) fn swap(
        &self,
        width: usize,
        start: impl FnOnce() -> Box<dyn Pending>,
    ) -> Option<Vec<Vec<u8>>> {
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let call = calls.next?;
        calls.next = Some(call + 1);
        let started = start();
        match calls.started.get_mut(call) {
            Some((of, before)) if *of == width => Some(std::mem::replace(before, started).finish()),
            found => {
                let received = started.finish();
                let kept: (usize, Box<dyn Pending>) = (width, Box::new(Received(received.clone())));
                match found {
                    Some(other) => _ = std::mem::replace(other, kept).1.finish(),
                    None => calls.started.push(kept),
                }
                Some(received)
            }
        }
    }
}
