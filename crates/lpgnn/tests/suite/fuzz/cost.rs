//! What a call costs: the memory it holds at most, and the time it takes.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The cost of one call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    /// Bytes that this thread held at most, beyond those that it held before.
    pub(super) memory: usize,
    pub(super) time: Duration,
}

/// What the call returns and costs; none if it panics.
pub(super) fn measure<T>(call: impl FnOnce() -> T) -> (Option<T>, Cost) {
    let before = NOW.get();
    MOST.set(before);
    let start = Instant::now();
    let value = catch_unwind(AssertUnwindSafe(call)).ok();
    let memory = usize::try_from(MOST.get() - before).unwrap_or(0);
    (value, Cost { memory, time: start.elapsed() })
}

/// Ends the process, naming the input, when one call does not end: what hangs cannot be measured.
pub(super) struct Watchdog(&'static Mutex<Option<(String, Instant)>>);

/// A call that takes longer than this hangs.
const HANGS: Duration = Duration::from_secs(60);

impl Watchdog {
    #[allow(clippy::print_stderr, reason = "there is no other way to say it")]
    pub(super) fn new() -> Self {
        let under_way = Box::leak(Box::new(Mutex::new(None::<(String, Instant)>)));
        let watched: &'static Mutex<_> = under_way;
        std::thread::spawn(move || {
            loop {
                std::thread::sleep(Duration::from_secs(1));
                let now = watched.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some((input, start)) = &*now
                    && start.elapsed() > HANGS
                {
                    eprintln!("{input}: it does not end");
                    std::process::abort();
                }
            }
        });
        Self(watched)
    }

    /// `input` is what is tried now.
    pub(super) fn watch(&self, input: String) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((input, Instant::now()));
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// Counts what each thread has allocated, at present and at most.
struct Counting;

thread_local! {
    static NOW: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
}

fn count(change: isize) {
    // When a thread ends, its counters go before its last allocations.
    let _ = NOW.try_with(|now| {
        now.set(now.get() + change);
        let _ = MOST.try_with(|most| most.set(most.get().max(now.get())));
    });
}

// SAFETY: every method hands its arguments to the system's allocator as they are.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size().cast_signed());
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count(-layout.size().cast_signed());
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size().cast_signed());
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size.cast_signed() - layout.size().cast_signed());
        // SAFETY: the caller keeps the contract of `realloc`.
        unsafe { System.realloc(block, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;
