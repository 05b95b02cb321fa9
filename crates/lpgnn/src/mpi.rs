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

use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ::mpi::datatype::PartitionMut;
use ::mpi::environment::Universe;
use ::mpi::request::{Request, StaticScope};
use ::mpi::topology::SimpleCommunicator;
use ::mpi::traits::{Communicator as _, CommunicatorCollectives, Destination, Source};
use ::mpi::{Count, Rank, Threading};

use crate::Error;
use crate::graph::{Communicator, Incoming, Outgoing, OutgoingRows, Pending};

/// All processes of an MPI job.
///
/// MPI ends when it is dropped.
pub struct Mpi {
    rank: usize,
    ranks: usize,
    ranks_here: usize,
    /// For rows on their way, from exchange to exchange.
    spare: Mutex<Vec<Vec<u8>>>,
    _universe: Universe,
}

/// What launchers tell the processes that they start.
const LAUNCHED: [&str; 4] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMI_RANK", "PMIX_RANK"];

/// Bytes of a message at most: MPI counts with 32 bits.
const MESSAGE: usize = 1 << 30;

/// Bytes of rows that are sent at a time; and how many times as much is on its way to a rank where rows have to be written.
const PIECE: usize = 1 << 21;
const PIECES: usize = 2;

/// The rows of a piece.
fn rows_of_piece(size: usize) -> usize {
    (PIECE / size.max(1)).max(1)
}

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
        Ok((ranks > 1).then_some(Self {
            rank,
            ranks,
            ranks_here,
            spare: Mutex::default(),
            _universe: universe,
        }))
    }

    fn spare(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// Rows are received where they belong.
    fn exchange_rows(
        &self,
        sends: &[Outgoing<'_>],
        receives: &mut [Incoming<'_>],
        meanwhile: &mut dyn FnMut(&mut dyn FnMut()),
    ) {
        let world = SimpleCommunicator::world();
        ::mpi::request::scope(|scope| {
            let mut incoming = vec![];
            for Incoming { from, size, bytes } in receives.iter_mut() {
                let source = world.process_at_rank(count(*from));
                for piece in bytes.chunks_mut((rows_of_piece(*size) * *size).max(1)) {
                    incoming.push(source.immediate_receive_into(scope, piece));
                }
            }
            let mut outgoing = vec![];
            for send in sends {
                let OutgoingRows::There(rows) = send.rows else { continue };
                let target = world.process_at_rank(count(send.to));
                for piece in rows.chunks((rows_of_piece(send.size) * send.size).max(1)) {
                    outgoing.push(target.immediate_send(scope, piece));
                }
            }
            let mut sending = Sending::new(sends, std::mem::take(&mut *self.spare()));
            // While rows are on their way, their memory must not go.
            let ends_with_job = EndsWithJob;
            sending.go_on();
            meanwhile(&mut || sending.go_on());
            *self.spare() = sending.finish();
            incoming.into_iter().for_each(|request| _ = request.wait());
            outgoing.into_iter().for_each(|request| _ = request.wait());
            std::mem::forget(ends_with_job);
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

/// A process that panics while others may write to its memory ends, and the job with it.
struct EndsWithJob;

impl Drop for EndsWithJob {
    fn drop(&mut self) {
        SimpleCommunicator::world().abort(PANICKED)
    }
}

/// The exit code of a program that panics.
const PANICKED: i32 = 101;

/// Rows that are written and sent piece by piece, some to every rank at a time.
struct Sending<'a> {
    rows: Vec<SendingTo<'a>>,
    spare: Vec<Vec<u8>>,
}

struct SendingTo<'a> {
    to: usize,
    size: usize,
    rows: usize,
    write: &'a (dyn Fn(Range<usize>, &mut [u8]) + Sync),
    /// The first row that has not been sent.
    next: usize,
    /// Pieces on their way, in the order in which they were sent, with their memory.
    on_their_way: VecDeque<(Request<'static, [u8]>, Vec<u8>)>,
}

impl<'a> Sending<'a> {
    fn new(sends: &'a [Outgoing<'a>], spare: Vec<Vec<u8>>) -> Self {
        let to = |&Outgoing { to, size, rows }: &Outgoing<'a>| match rows {
            // Nobody waits for rows without bytes.
            OutgoingRows::Written(rows, write) if size > 0 => {
                Some(SendingTo { to, size, rows, write, next: 0, on_their_way: VecDeque::new() })
            }
            _ => None,
        };
        Self { rows: sends.iter().filter_map(to).collect(), spare }
    }

    /// Sends what there is room for, without waiting; and lets all messages get on.
    fn go_on(&mut self) {
        get_on();
        for to in &mut self.rows {
            while let Some((request, memory)) = to.on_their_way.pop_front() {
                match request.test() {
                    Ok(_) => self.spare.push(memory),
                    Err(request) => {
                        to.on_their_way.push_front((request, memory));
                        break;
                    }
                }
            }
            while to.on_their_way.len() < PIECES && to.next < to.rows {
                to.send(self.spare.pop().unwrap_or_default());
            }
        }
    }

    /// Waits until all have been sent; what memory there is for others.
    fn finish(mut self) -> Vec<Vec<u8>> {
        while let Some(to) = self.rows.iter_mut().find(|to| !to.on_their_way.is_empty()) {
            if let Some((request, memory)) = to.on_their_way.pop_front() {
                request.wait();
                self.spare.push(memory);
            }
            self.go_on();
        }
        self.spare
    }
}

impl SendingTo<'_> {
    /// Sends the next piece.
    fn send(&mut self, mut memory: Vec<u8>) {
        let Self { to, size, rows, write, .. } = *self;
        let piece = self.next..rows.min(self.next + rows_of_piece(size));
        let length = piece.len() * size;
        if memory.len() < length {
            memory.resize(length, 0);
        }
        self.next = piece.end;
        write(piece, &mut memory[..length]);
        // SAFETY: the memory stays where it is and unchanged until the request is complete: it is kept with it, and is
        // used again only then. A panic in between ends the process, see `EndsWithJob`.
        let message: &'static [u8] = unsafe { std::slice::from_raw_parts(memory.as_ptr(), length) };
        let world = SimpleCommunicator::world();
        let target = world.process_at_rank(count(to));
        self.on_their_way.push_back((target.immediate_send(StaticScope, message), memory));
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
    fn poll(&mut self) {
        get_on();
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

/// MPI moves large messages only while it is called; which call it is does not matter.
fn get_on() {
    let _ = SimpleCommunicator::world().any_process().immediate_probe();
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
