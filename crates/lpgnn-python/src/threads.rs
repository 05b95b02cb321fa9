use std::process;

use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::error::Error;

/// Threads for a single call, as many as there are processors if 0: threads that outlive a call would
/// be missing in a process that Python forks, which would wait for them forever.
pub(crate) fn pool(threads: usize) -> PyResult<ThreadPool> {
    let pool = ThreadPoolBuilder::new().num_threads(threads).build();
    pool.map_err(|error| Error::new_err(format!("cannot start {threads} threads: {error}")))
}

/// Threads for many short calls. A process that Python forks lacks them, and starts its own.
pub(crate) struct KeptPool {
    threads: usize,
    /// And the process that they belong to.
    pool: Option<(u32, ThreadPool)>,
}

impl KeptPool {
    pub(crate) fn new(threads: usize) -> Self {
        Self { threads, pool: None }
    }

    pub(crate) fn get(&mut self) -> PyResult<&ThreadPool> {
        self.forget_foreign();
        if self.pool.is_none() {
            self.pool = Some((process::id(), pool(self.threads)?));
        }
        let (_, pool) = self.pool.as_ref().expect("it has just been set");
        Ok(pool)
    }

    /// Whoever ends threads of another process waits for them.
    fn forget_foreign(&mut self) {
        if let Some((_, pool)) = self.pool.take_if(|(owner, _)| *owner != process::id()) {
            std::mem::forget(pool);
        }
    }
}

impl Drop for KeptPool {
    fn drop(&mut self) {
        self.forget_foreign();
    }
}
