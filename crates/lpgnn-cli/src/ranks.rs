//! The other processes of a job that `mpirun` or `srun` has started, if there are any. The first one, rank 0, speaks and
//! writes; the others follow it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lpgnn::graph::{Alone, Communicator};

static JOB: Mutex<Option<Arc<dyn Communicator>>> = Mutex::new(None);
/// Whether all ranks know that one of them has failed, and end by themselves.
static AGREED: AtomicBool = AtomicBool::new(false);

/// How long a rank that fails lets the first one speak, which mostly fails for the same reason.
const PATIENCE: Duration = Duration::from_secs(2);

/// Another rank has failed, and says why.
#[derive(Debug)]
pub(crate) struct ElsewhereFailed;

impl fmt::Display for ElsewhereFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("another process of the job has failed")
    }
}

impl std::error::Error for ElsewhereFailed {}

/// Meets the other processes of the job; returns how many share this machine.
#[cfg(feature = "mpi")]
pub(crate) fn meet() -> anyhow::Result<usize> {
    let Some(mpi) = lpgnn::mpi::Mpi::connect()? else { return Ok(1) };
    let here = mpi.ranks_here();
    if mpi.rank() > 0 {
        let nowhere = std::fs::OpenOptions::new().write(true).open("/dev/null")?;
        rustix::stdio::dup2_stdout(nowhere)?;
    }
    *JOB.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(mpi));
    Ok(here)
}

/// Without MPI, there are none; but somebody may think so.
#[cfg(not(feature = "mpi"))]
#[allow(clippy::unnecessary_wraps, reason = "it fails with the feature mpi")]
pub(crate) fn meet() -> anyhow::Result<usize> {
    Ok(1)
}

/// Refuses to be one of several processes that do not know of each other, and would write to the same files.
///
/// # Errors
///
/// When `mpirun` has started several, and this program was built without MPI.
pub(crate) fn refuse_strangers() -> anyhow::Result<()> {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<usize>().ok());
    let launched = number("OMPI_COMM_WORLD_SIZE").or_else(|| number("PMI_SIZE")).unwrap_or(1);
    if launched > 1 && communicator().is_none() {
        anyhow::bail!(
            "{launched} processes were started together, but this lpgnn was built without MPI; build it with \
             `--features mpi`"
        );
    }
    Ok(())
}

/// The ranks of this job; none where this process is alone.
pub(crate) fn communicator() -> Option<Arc<dyn Communicator>> {
    JOB.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// The same; where this process is alone, it is the only one.
pub(crate) fn or_alone() -> Arc<dyn Communicator> {
    communicator().unwrap_or_else(|| Arc::new(Alone))
}

/// The path that the first rank has, on all of them.
pub(crate) fn path_of_first(own: &Path) -> PathBuf {
    let Some(job) = communicator() else { return own.to_owned() };
    let text = text_of_first(&own.to_string_lossy());
    // What is no text cannot be told to others, but is right here.
    if job.rank() == 0 { own.to_owned() } else { PathBuf::from(text) }
}

/// Whether this process leaves speaking and writing to another.
pub(crate) fn follows() -> bool {
    communicator().is_some_and(|job| job.rank() > 0)
}

/// The result of what all ranks do alike before they work together. Where it is an error on any of them, all end, and the
/// first of these says why.
///
/// # Errors
///
/// That of `result`, or [`ElsewhereFailed`].
pub(crate) fn agree<T, E: Into<anyhow::Error>>(result: Result<T, E>) -> anyhow::Result<T> {
    let result = result.map_err(Into::into);
    let Some(job) = communicator() else { return result };
    // Who has failed because another one has does not speak.
    let elsewhere = |error: &anyhow::Error| {
        matches!(error.downcast_ref(), Some(lpgnn::Error::Elsewhere))
            || error.is::<ElsewhereFailed>()
    };
    let own = result.as_ref().err().map_or(0.0, |error| if elsewhere(error) { 0.5 } else { 1.0 });
    let failed = job.all(own);
    if failed.iter().all(|&failed| failed <= 0.0) {
        return result;
    }
    AGREED.store(true, Ordering::Relaxed);
    let first = failed.iter().position(|&failed| failed >= 1.0);
    if first == Some(job.rank()) { result } else { Err(ElsewhereFailed.into()) }
}

/// A text that the first rank has, on all of them.
pub(crate) fn text_of_first(text: &str) -> String {
    let Some(job) = communicator() else { return text.to_owned() };
    let mut length = (text.len() as u64).to_le_bytes();
    // What all have comes from the first one: the others add nothing.
    job.all_gather(&mut length, &vec![size_of::<u64>(); job.ranks()]);
    let length = usize::try_from(u64::from_le_bytes(length)).unwrap_or(0);
    let mut bytes = if job.rank() == 0 { text.as_bytes().to_vec() } else { vec![0; length] };
    job.all_gather(&mut bytes, &vec![length; job.ranks()]);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Before an error is told: where other ranks may not know of it, the first one speaks first.
pub(crate) fn before_error() {
    if follows() && !AGREED.load(Ordering::Relaxed) {
        std::thread::sleep(PATIENCE);
    }
}

/// The first rank does alone what is to be done: the others have ended.
pub(crate) fn leave() {
    drop(JOB.lock().unwrap_or_else(PoisonError::into_inner).take());
}

/// Ends this process; and the others with it, if it has failed and they do not know.
pub(crate) fn end(code: u8, failed: bool) -> ExitCode {
    let job = JOB.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(job) = job.filter(|_| failed && !AGREED.load(Ordering::Relaxed)) {
        job.abort(i32::from(code));
    }
    ExitCode::from(code)
}

/// The number of threads of this process, one of `ranks` on its machine; none for one per processor.
///
/// Processes that may use the same processors share them; those that a launcher has given processors of their own do not.
pub(crate) fn threads_of_one(ranks: usize) -> Option<usize> {
    let job = communicator()?;
    let own = processors();
    let like = job.all(own.unwrap_or(f64::NAN)).into_iter().filter(|&of| Some(of) == own).count();
    let sharing = if own.is_some() { like } else { ranks };
    Some((std::thread::available_parallelism().ok()?.get() / sharing).max(1))
}

/// A number for the processors of this machine that this process may use.
fn processors() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    let machine = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    // FNV-1a; of its 64 bits, those that a floating-point number holds exactly.
    let hash = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let bits = machine.bytes().chain(allowed.bytes()).fold(0xcbf2_9ce4_8422_2325, hash);
    Some((bits >> 11) as f64)
}
