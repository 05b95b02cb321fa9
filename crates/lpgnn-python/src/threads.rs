use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::error::Error;

/// Threads for a single call, as many as there are processors if 0: threads that outlive a call would
/// be missing in a process that Python forks, which would wait for them forever.
pub(crate) fn pool(threads: usize) -> PyResult<ThreadPool> {
    let pool = ThreadPoolBuilder::new().num_threads(threads).build();
    pool.map_err(|error| Error::new_err(format!("cannot start {threads} threads: {error}")))
}
