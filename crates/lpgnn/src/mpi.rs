//! Ranks that MPI connects.
//!
//! ```no_run
//! # use lpgnn::{mpi::Mpi, train::TrainingData};
//! # fn of(data: TrainingData) -> Result<TrainingData, lpgnn::Error> {
//! let data = match Mpi::start()? {
//!     Some(communicator) => data.shared_by(&communicator),
//!     None => data,
//! };
//! # Ok(data) }
//! ```

use std::fmt;
use std::sync::Arc;

use ::mpi::datatype::PartitionMut;
use ::mpi::environment::Universe;
use ::mpi::request::{Request, StaticScope};
use ::mpi::topology::SimpleCommunicator;
use ::mpi::traits::{Communicator as _, CommunicatorCollectives, Destination, Source};
use ::mpi::{Count, Rank, Threading};

use crate::Error;
use crate::graph::{Communicator, Pending};

/// All processes of an MPI job.
///
/// MPI ends when it is dropped.
pub struct Mpi {
    rank: usize,
    ranks: usize,
    ranks_here: usize,
    _universe: Universe,
}

/// What launchers tell the processes that they start.
const LAUNCHED: [&str; 4] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMI_RANK", "PMIX_RANK"];

/// Bytes of a message at most: MPI counts with 32 bits.
const MESSAGE: usize = 1 << 30;

impl Mpi {
    /// Connects the processes that `mpirun` or `srun` has started; none where this one was started alone.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`] when MPI has been started before, or cannot be called by a process with threads.
    pub fn start() -> Result<Option<Arc<dyn Communicator>>, Error> {
        Ok(Self::connect()?.map(|mpi| Arc::new(mpi) as Arc<dyn Communicator>))
    }

    /// The same, as itself.
    ///
    /// # Errors
    ///
    /// Those of [`start`](Self::start).
    pub fn connect() -> Result<Option<Self>, Error> {
        if LAUNCHED.iter().all(|name| std::env::var_os(name).is_none()) {
            return Ok(None);
        }
        let Some((universe, threading)) = ::mpi::initialize_with_threading(Threading::Serialized)
        else {
            return Err(Error::Mismatch("MPI is already initialised in this process".into()));
        };
        if threading < Threading::Serialized {
            let problem = "this MPI library does not support multi-threaded processes";
            return Err(Error::Mismatch(problem.into()));
        }
        let world = universe.world();
        let (rank, ranks) = (index(world.rank()), index(world.size()));
        let ranks_here = index(world.split_shared(0).size());
        Ok((ranks > 1).then_some(Self { rank, ranks, ranks_here, _universe: universe }))
    }

    /// How many ranks share the processors of this machine.
    pub fn ranks_here(&self) -> usize {
        self.ranks_here
    }
}

impl fmt::Debug for Mpi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {} of {}", self.rank, self.ranks)
    }
}

impl Communicator for Mpi {
    fn rank(&self) -> usize {
        self.rank
    }

    fn ranks(&self) -> usize {
        self.ranks
    }

    fn exchange(&self, sends: &[(usize, &[u8])], receives: &mut [(usize, &mut [u8])]) {
        let world = SimpleCommunicator::world();
        ::mpi::request::scope(|scope| {
            let mut incoming = vec![];
            for (from, bytes) in receives.iter_mut() {
                for message in bytes.chunks_mut(MESSAGE) {
                    let source = world.process_at_rank(count(*from));
                    incoming.push(source.immediate_receive_into(scope, message));
                }
            }
            let mut outgoing = vec![];
            for (to, bytes) in sends {
                for message in bytes.chunks(MESSAGE) {
                    outgoing.push(world.process_at_rank(count(*to)).immediate_send(scope, message));
                }
            }
            incoming.into_iter().for_each(|request| _ = request.wait());
            outgoing.into_iter().for_each(|request| _ = request.wait());
        });
    }

    fn start_exchange(
        &self,
        sends: Vec<(usize, Vec<u8>)>,
        receives: &[(usize, usize)],
    ) -> Box<dyn Pending> {
        let world = SimpleCommunicator::world();
        let mut started = Started { outgoing: vec![], incoming: vec![], lengths: vec![] };
        for &(from, length) in receives {
            started.lengths.push(length.div_ceil(MESSAGE));
            for start in (0..length).step_by(MESSAGE) {
                let bytes = Box::leak(vec![0; MESSAGE.min(length - start)].into_boxed_slice());
                let source = world.process_at_rank(count(from));
                started.incoming.push(source.immediate_receive_into(StaticScope, bytes));
            }
        }
        for (to, mut bytes) in sends {
            while !bytes.is_empty() {
                // No copy is made of what is one message, as nearly everything is.
                let rest = bytes.split_off(MESSAGE.min(bytes.len()));
                let message: &'static [u8] = Box::leak(bytes.into_boxed_slice());
                let target = world.process_at_rank(count(to));
                started.outgoing.push(target.immediate_send(StaticScope, message));
                bytes = rest;
            }
        }
        Box::new(started)
    }

    fn all_gather(&self, all: &mut [u8], ends: &[usize]) {
        let starts: Vec<usize> = std::iter::once(0).chain(ends.iter().copied()).collect();
        let own = all[starts[self.rank]..ends[self.rank]].to_vec();
        if all.len() > MESSAGE {
            let others = || (0..self.ranks).filter(|&other| other != self.rank);
            let sends: Vec<(usize, &[u8])> = others().map(|to| (to, &own[..])).collect();
            let mut receives: Vec<(usize, &mut [u8])> = vec![];
            let mut rest = all;
            for rank in 0..self.ranks {
                let (bytes, behind) = rest.split_at_mut(ends[rank] - starts[rank]);
                rest = behind;
                if rank != self.rank {
                    receives.push((rank, bytes));
                }
            }
            return self.exchange(&sends, &mut receives);
        }
        let counts: Vec<Count> = ends.iter().zip(&starts).map(|(e, s)| count(e - s)).collect();
        let starts: Vec<Count> = starts[..self.ranks].iter().map(|&start| count(start)).collect();
        let mut parts = PartitionMut::new(all, counts, starts);
        SimpleCommunicator::world().all_gather_varcount_into(&own[..], &mut parts);
    }

    fn abort(&self, code: i32) -> ! {
        SimpleCommunicator::world().abort(code)
    }
}

/// Messages on their way. Their memory is leaked while MPI may use it.
struct Started {
    outgoing: Vec<Request<'static, [u8]>>,
    incoming: Vec<Request<'static, [u8]>>,
    /// How many messages come from each rank.
    lengths: Vec<usize>,
}

// SAFETY: MPI may be called by any thread, as long as it is one at a time that has all of it; and `Communicator` is called from one.
unsafe impl Send for Started {}

impl fmt::Debug for Started {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} messages on their way", self.incoming.len() + self.outgoing.len())
    }
}

impl Pending for Started {
    /// MPI moves large messages only while it is called; which call it is does not matter.
    fn poll(&mut self) {
        let _ = SimpleCommunicator::world().any_process().immediate_probe();
    }

    fn finish(mut self: Box<Self>) -> Vec<Vec<u8>> {
        let mut messages = std::mem::take(&mut self.incoming).into_iter().map(taken);
        let received = self.lengths.iter().map(|&count| {
            if count == 1 {
                return messages.next().unwrap_or_default();
            }
            messages.by_ref().take(count).collect::<Vec<_>>().concat()
        });
        let received = received.collect();
        std::mem::take(&mut self.outgoing).into_iter().for_each(|request| _ = taken(request));
        received
    }
}

/// What nobody waits for stays where it is: a rank that ends early does not wait for others.
impl Drop for Started {
    fn drop(&mut self) {
        let requests = [&mut self.incoming, &mut self.outgoing].map(std::mem::take);
        requests.into_iter().flatten().for_each(std::mem::forget);
    }
}

/// The memory of a message that has arrived or is sent.
fn taken(request: Request<'static, [u8]>) -> Vec<u8> {
    let bytes = request.wait_for_data();
    // SAFETY: all requests of `Started` are made with memory that was leaked from a box for them alone; MPI does not use it any
    // more, and the only reference to it was the one in the request, which is gone.
    unsafe { Box::from_raw(std::ptr::from_ref(bytes).cast_mut()) }.into_vec()
}

/// A number of MPI, which is not negative.
#[allow(clippy::cast_sign_loss, reason = "ranks and sizes are not negative")]
fn index(number: Rank) -> usize {
    number as usize
}

/// A number for MPI.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "below 2³¹, see MESSAGE"
)]
fn count(number: usize) -> Count {
    number as Count
}
