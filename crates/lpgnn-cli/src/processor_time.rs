/// Seconds that the processor has worked for this thread, where the operating system tells; else
/// those that have passed.
pub(crate) fn processor_seconds() -> f64 {
    #[cfg(unix)]
    {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        time.tv_sec as f64 + 1e-9 * time.tv_nsec as f64
    }
    #[cfg(not(unix))]
    {
        use std::time::{SystemTime, UNIX_EPOCH};
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_takes_time() {
        let begun = processor_seconds();
        while processor_seconds() - begun < 1e-3 {}
        assert!(processor_seconds() > begun);
    }
}
