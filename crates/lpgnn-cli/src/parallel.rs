use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Context;

use crate::interrupt;

/// Does `work` for `0..count`, on as many threads as there are to be, each item on one of them.
///
/// Ends early when an item fails, which is the error, or when somebody wants it to; what has begun
/// is finished. Returns whether all is done.
pub(crate) fn each(
    count: usize,
    work: impl Fn(usize) -> anyhow::Result<()> + Sync,
) -> anyhow::Result<bool> {
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
                let single = match single.context("cannot start threads") {
                    Ok(single) => single,
                    Err(error) => return failed(error),
                };
                while !interrupt::asked() {
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
        None => Ok(!interrupt::asked()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_done_once_and_an_error_ends_it() {
        let sum = AtomicUsize::new(0);
        let all = each(100, |item| {
            sum.fetch_add(item, Ordering::Relaxed);
            Ok(())
        });
        assert!(all.unwrap());
        assert_eq!(sum.into_inner(), 4950);
        let error = each(100, |item| if item == 3 { anyhow::bail!("three") } else { Ok(()) });
        assert_eq!(error.unwrap_err().to_string(), "three");
    }
}
