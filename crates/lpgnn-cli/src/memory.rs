//! The memory limit of the program: checked by the library before it allocates, enforced by the
//! operating system for what is not, and told in a sentence by the allocator.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::OnceLock;

/// Sets the limit, or leaves the default if none is given.
pub(crate) fn limit_to(bytes: Option<u64>) {
    if let Some(bytes) = bytes {
        lpgnn::memory::set_limit(bytes);
    }
    let limit = lpgnn::memory::limit();
    // The message is made now: when memory has run out, there is none for it.
    let _ = SENTENCE.set(format!(
        "error: out of memory: the limit is {} MiB, set by --max-memory\n",
        limit >> 20
    ));
    enforce(limit);
}

/// What threads and libraries take that holds no data.
#[cfg(target_os = "linux")]
const OVERHEAD: u64 = 64 << 20;
/// The stack of a thread, which counts as memory whether it is used or not.
#[cfg(target_os = "linux")]
const STACK: u64 = 2 << 20;

/// Asks the operating system to refuse more, as `ulimit -d` does. If it does not, checks have to do.
#[cfg(target_os = "linux")]
fn enforce(limit: u64) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let threads = rayon::current_num_threads() as u64;
    let limit = limit.saturating_add(OVERHEAD).saturating_add(threads.saturating_mul(STACK));
    let before = getrlimit(Resource::Data);
    if before.current.is_none_or(|current| limit < current) {
        let _ = setrlimit(Resource::Data, Rlimit { current: Some(limit), ..before });
    }
}

#[cfg(not(target_os = "linux"))]
fn enforce(_: u64) {}

static SENTENCE: OnceLock<String> = OnceLock::new();

/// The allocator of the system, but out of memory is a sentence and exit code 1 instead of an abort.
struct Allocator;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

// SAFETY: everything is passed on to the system's allocator unchanged; a null pointer either ends
// the process or is returned as it is.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract, which is the same.
        some(unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        some(unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above.
        some(unsafe { System.realloc(pointer, layout, size) })
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// The pointer, if it is one; otherwise this is the end.
#[inline]
fn some(pointer: *mut u8) -> *mut u8 {
    if pointer.is_null() {
        out_of_memory();
    }
    pointer
}

#[cold]
fn out_of_memory() {
    #[cfg(unix)]
    {
        use std::cell::Cell;
        use std::sync::atomic::{AtomicBool, Ordering};
        thread_local! { static ENDS: Cell<bool> = const { Cell::new(false) }; }
        static ENDING: AtomicBool = AtomicBool::new(false);
        if !ENDING.swap(true, Ordering::Relaxed) {
            ENDS.set(true);
            let sentence = SENTENCE.get().map_or("error: out of memory\n", String::as_str);
            let _ = rustix::io::write(rustix::stdio::stderr(), sentence.as_bytes());
            std::process::exit(i32::from(crate::FAILED));
        }
        // Ending may allocate too; then the pointer is null, and the program aborts. Other threads wait for the
        // end: a null pointer would make them abort before it.
        while !ENDS.get() {
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
    }
}
