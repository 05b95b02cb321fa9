//! A communicator that counts what goes through it, and how long this process is in it.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use lpgnn::graph::{Communicator, Incoming, Outgoing};

/// What a process has received so far, and the seconds in which it has done nothing else.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    /// Rows of neighbours.
    pub(crate) row_bytes: usize,
    pub(crate) row_messages: usize,
    pub(crate) row_seconds: f64,
    /// Partial sums, gradients of weights and single numbers.
    pub(crate) other_bytes: usize,
    pub(crate) other_messages: usize,
    pub(crate) other_seconds: f64,
}

impl Counts {
    /// What has been added since.
    pub(crate) fn since(&self, before: &Self) -> Self {
        Self {
            row_bytes: self.row_bytes - before.row_bytes,
            row_messages: self.row_messages - before.row_messages,
            row_seconds: self.row_seconds - before.row_seconds,
            other_bytes: self.other_bytes - before.other_bytes,
            other_messages: self.other_messages - before.other_messages,
            other_seconds: self.other_seconds - before.other_seconds,
        }
    }
}

/// Passes everything on to another communicator.
#[derive(Debug)]
pub(crate) struct Counted {
    of: Arc<dyn Communicator>,
    /// Whether everything that is started is waited for at once.
    waits: bool,
    counts: Mutex<Counts>,
}

impl Counted {
    pub(crate) fn new(of: Arc<dyn Communicator>, waits: bool) -> Self {
        Self { of, waits, counts: Mutex::default() }
    }

    pub(crate) fn counts(&self) -> Counts {
        *self.counts.lock().unwrap()
    }

    fn count_other<R>(&self, bytes: usize, messages: usize, work: impl FnOnce() -> R) -> R {
        let begin = Instant::now();
        let result = work();
        let mut counts = self.counts.lock().unwrap();
        counts.other_seconds += begin.elapsed().as_secs_f64();
        counts.other_bytes += bytes;
        counts.other_messages += messages;
        result
    }
}

impl Communicator for Counted {
    fn rank(&self) -> usize {
        self.of.rank()
    }

    fn ranks(&self) -> usize {
        self.of.ranks()
    }

    fn exchange(&self, sends: &[(usize, &[u8])], receives: &mut [(usize, &mut [u8])]) {
        let bytes = receives.iter().map(|(_, bytes)| bytes.len()).sum();
        self.count_other(bytes, receives.len(), || self.of.exchange(sends, receives));
    }

    /// Rows of neighbours, and nothing else. What goes on meanwhile is not counted, but for what rows take of it.
    fn exchange_rows(
        &self,
        sends: &[Outgoing<'_>],
        receives: &mut [Incoming<'_>],
        meanwhile: &mut dyn FnMut(&mut dyn FnMut()),
    ) {
        let bytes: usize = receives.iter().map(|place| place.bytes.len()).sum();
        let messages = receives.len();
        let (begin, mut other) = (Instant::now(), Duration::ZERO);
        let mut work = |poll: &mut dyn FnMut()| {
            let (begin, mut rows) = (Instant::now(), Duration::ZERO);
            meanwhile(&mut || {
                let begin = Instant::now();
                poll();
                rows += begin.elapsed();
            });
            other += begin.elapsed().saturating_sub(rows);
        };
        if self.waits {
            self.of.exchange_rows(sends, receives, &mut |_| {});
            work(&mut || {});
        } else {
            self.of.exchange_rows(sends, receives, &mut work);
        }
        let mut counts = self.counts.lock().unwrap();
        counts.row_seconds += begin.elapsed().saturating_sub(other).as_secs_f64();
        counts.row_bytes += bytes;
        counts.row_messages += messages;
    }

    fn all_gather(&self, all: &mut [u8], ends: &[usize]) {
        let rank = self.rank();
        let own = ends[rank] - if rank > 0 { ends[rank - 1] } else { 0 };
        let (bytes, messages) = (all.len() - own, self.ranks() - 1);
        self.count_other(bytes, messages, || self.of.all_gather(all, ends));
    }

    fn abort(&self, code: i32) -> ! {
        self.of.abort(code)
    }
}
