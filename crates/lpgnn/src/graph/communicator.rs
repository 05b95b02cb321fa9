//! Processes that work together: what they have to be able to tell each other, and nothing else.

use std::fmt::Debug;

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

    /// Starts to send bytes to other ranks, and to receive so many from some. What has been received is had later, from
    /// [`Pending::finish`], and ranks can do anything else until then. All ranks start theirs in the same order.
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
