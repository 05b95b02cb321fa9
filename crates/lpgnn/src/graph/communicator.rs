//! Processes that work together: what they have to be able to tell each other, and nothing else.

use std::borrow::Cow;
use std::fmt::Debug;
use std::ops::Range;

use crate::Scalar;

/// The processes of one job, called ranks as in MPI.
///
/// All ranks run the same program on the same data and come to the same operations in the same order; every rank calls
/// from one thread at a time. Sizes are known on both sides, so that nothing is sent but numbers.
///
/// The feature `mpi` has one for MPI; tests have one for threads.
pub trait Communicator: Debug + Send + Sync {
    /// The number of this process, from 0.
    fn rank(&self) -> usize;

    /// How many processes there are.
    fn ranks(&self) -> usize;

    /// Sends bytes to other ranks, and fills each of `receives` with what that rank sends here. Between two ranks,
    /// there is at most one message in each direction.
    fn exchange(&self, sends: &[(usize, &[u8])], receives: &mut [(usize, &mut [u8])]);

    /// Fills each of `receives` with the rows that that rank sends here, while `meanwhile` does something else: it is called once,
    /// and calls what it is given now and then, so that rows get on. Between two ranks, there are at most rows of one table in each
    /// direction.
    ///
    /// By default rows are all written, and then sent, when `meanwhile` has ended.
    fn exchange_rows(
        &self,
        sends: &[Outgoing<'_>],
        receives: &mut [Incoming<'_>],
        meanwhile: &mut dyn FnMut(&mut dyn FnMut()),
    ) {
        meanwhile(&mut || {});
        let written = sends.iter().map(|send| match send.rows {
            OutgoingRows::There(rows) => (send.to, Cow::Borrowed(rows)),
            OutgoingRows::Written(count, write) => {
                let mut rows = vec![0; count * send.size];
                write(0..count, &mut rows);
                (send.to, Cow::Owned(rows))
            }
        });
        let written: Vec<(usize, Cow<'_, [u8]>)> = written.collect();
        let sends: Vec<(usize, &[u8])> =
            written.iter().map(|(to, bytes)| (*to, &bytes[..])).collect();
        let places = receives.iter_mut().map(|place| (place.from, &mut *place.bytes));
        self.exchange(&sends, &mut places.collect::<Vec<_>>());
    }

    /// Starts to send bytes to other ranks, and to receive so many from some. What has been received is had later, from
    /// [`Pending::finish`], and ranks can do anything else until then, other exchanges too. All ranks start theirs in the same order.
    ///
    /// By default it is all done at once.
    fn start_exchange(
        &self,
        sends: Vec<(usize, Vec<u8>)>,
        receives: &[(usize, usize)],
    ) -> Box<dyn Pending> {
        let sends: Vec<(usize, &[u8])> =
            sends.iter().map(|(to, bytes)| (*to, &bytes[..])).collect();
        let mut received: Vec<Vec<u8>> =
            receives.iter().map(|(_, length)| vec![0; *length]).collect();
        let from = receives.iter().map(|(from, _)| *from);
        let mut places: Vec<(usize, &mut [u8])> =
            from.zip(received.iter_mut().map(|bytes| &mut bytes[..])).collect();
        self.exchange(&sends, &mut places);
        Box::new(Received(received))
    }

    /// Fills `all` on all ranks. The bytes of rank `r` end at `ends[r]`, and start where those of the rank before it
    /// end; its own are there before.
    fn all_gather(&self, all: &mut [u8], ends: &[usize]);

    /// Ends the processes of all ranks with this exit code.
    fn abort(&self, code: i32) -> !;
}

/// Rows for another rank.
#[derive(Debug)]
pub struct Outgoing<'a> {
    /// Who receives them.
    pub to: usize,
    /// Bytes of each.
    pub size: usize,
    /// The rows.
    pub rows: OutgoingRows<'a>,
}

/// Rows that are sent.
#[derive(Clone, Copy)]
pub enum OutgoingRows<'a> {
    /// They lie one after the other.
    There(&'a [u8]),
    /// So many rows, some of which are written when they are sent: so they are never all there twice.
    Written(usize, &'a (dyn Fn(Range<usize>, &mut [u8]) + Sync)),
}

impl Debug for OutgoingRows<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::There(bytes) => write!(f, "{} bytes", bytes.len()),
            Self::Written(rows, _) => write!(f, "{rows} rows"),
        }
    }
}

/// A place for the rows of another rank.
#[derive(Debug)]
pub struct Incoming<'a> {
    /// Who sends them.
    pub from: usize,
    /// Bytes of each.
    pub size: usize,
    /// All of them.
    pub bytes: &'a mut [u8],
}

/// An exchange that has been started.
pub trait Pending: Debug + Send {
    /// Lets it go on: whoever is busy with something else calls this now and then.
    fn poll(&mut self) {}

    /// Waits for its end: what every rank has sent, in the order in which they were named.
    fn finish(self: Box<Self>) -> Vec<Vec<u8>>;
}

/// What is there already.
#[derive(Debug)]
pub(super) struct Received(pub(super) Vec<Vec<u8>>);

impl Pending for Received {
    fn finish(self: Box<Self>) -> Vec<Vec<u8>> {
        self.0
    }
}

/// A process that has no others.
#[derive(Clone, Copy, Debug, Default)]
pub struct Alone;

impl Communicator for Alone {
    fn rank(&self) -> usize {
        0
    }

    fn ranks(&self) -> usize {
        1
    }

    fn exchange(&self, _: &[(usize, &[u8])], _: &mut [(usize, &mut [u8])]) {}

    fn all_gather(&self, _: &mut [u8], _: &[usize]) {}

    fn abort(&self, code: i32) -> ! {
        std::process::exit(code)
    }
}

impl dyn Communicator + '_ {
    /// A number of every rank, in their order.
    pub fn all(&self, own: f64) -> Vec<f64> {
        let mut all = vec![0.0; self.ranks()];
        all[self.rank()] = own;
        let ends: Vec<usize> = (1..=self.ranks()).collect();
        self.gather(&mut all, &ends);
        all
    }

    /// Whether it holds on any rank.
    pub fn any(&self, own: bool) -> bool {
        self.all(f64::from(u8::from(own))).iter().any(|&x| x > 0.0)
    }

    /// [`all_gather`](Communicator::all_gather) of numbers, of which `ends` counts.
    pub(crate) fn gather<S: Scalar>(&self, all: &mut [S], ends: &[usize]) {
        let ends: Vec<usize> = ends.iter().map(|&end| end * size_of::<S>()).collect();
        self.all_gather(bytes_mut(all), &ends);
    }
}

/// The bytes of numbers.
pub(super) fn bytes<S: Scalar>(numbers: &[S]) -> &[u8] {
    // SAFETY: a scalar is `f32` or `f64`, which have no padding; the length is that of the same memory.
    unsafe { std::slice::from_raw_parts(numbers.as_ptr().cast(), size_of_val(numbers)) }
}

/// The same, to be changed.
pub(super) fn bytes_mut<S: Scalar>(numbers: &mut [S]) -> &mut [u8] {
    // SAFETY: as above, and all bits are those of some number.
    unsafe { std::slice::from_raw_parts_mut(numbers.as_mut_ptr().cast(), size_of_val(numbers)) }
}
