use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::Error;

/// Does `work` for `0..count` in parallel, each item on one thread.
///
/// Ends early when an item fails, which is the error, or when `stop` says so; what has begun is
/// finished. Returns whether it was not stopped.
///
/// # Errors
///
/// The first error of an item, [`Error::Threads`].
pub fn each<E: From<Error> + Send>(
    count: usize,
    stop: &(dyn Fn() -> bool + Sync),
    work: impl Fn(usize) -> Result<(), E> + Sync,
) -> Result<bool, E> {
    let (next, failure) = (AtomicUsize::new(0), Mutex::new(None));
    let failed = |error| {
        if let Ok(mut failure) = failure.lock() {
            failure.get_or_insert(error);
        }
        next.store(count, Ordering::Relaxed);
    };
    let threads = rayon::current_num_threads().min(count);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let single = rayon::ThreadPoolBuilder::new().num_threads(1).build();
                let single = match single {
                    Ok(single) => single,
                    Err(error) => return failed(Error::Threads(error.to_string()).into()),
                };
                while !stop() {
                    let item = next.fetch_add(1, Ordering::Relaxed);
                    if item >= count {
                        break;
                    }
                    // Its own pool of one: what is parallel within does not wait for the others.
                    if let Err(error) = single.install(|| work(item)) {
                        failed(error);
                    }
                }
            });
        }
    });
    match failure.into_inner().ok().flatten() {
        Some(error) => Err(error),
        None => Ok(!stop()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_done_once_and_an_error_ends_it() {
        let sum = AtomicUsize::new(0);
        let add = |item| {
            sum.fetch_add(item, Ordering::Relaxed);
            Ok::<_, Error>(())
        };
        assert!(each(100, &|| false, add).unwrap());
        assert!(!each(100, &|| true, add).unwrap());
        assert_eq!(sum.into_inner(), 4950);
        let fail = |item| if item == 3 { Err(Error::NoGraphs) } else { Ok(()) };
        assert!(matches!(each(100, &|| false, fail), Err(Error::NoGraphs)));
    }
}
