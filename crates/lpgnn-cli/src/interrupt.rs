use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;

static ASKED: AtomicBool = AtomicBool::new(false);
/// Shows a line to the user.
type Answer = Box<dyn Fn(&str) + Send>;
/// Shows the answer to the first Ctrl-C.
static ANSWER: Mutex<Option<Answer>> = Mutex::new(None);

/// The exit code that shells report for a process interrupted by Ctrl-C: the work is incomplete,
/// but nothing has failed.
pub(crate) const STOPPED: u8 = 130;

/// The work was interrupted by the user. Completed work is kept; the message says how to continue.
#[derive(Debug)]
pub(crate) struct Stopped(pub(crate) String);

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Stopped {}

/// From now on, Ctrl-C or SIGTERM makes [`asked`] true, which `answer` tells the user at once; a second
/// one exits immediately.
pub(crate) fn listen(answer: impl Fn(&str) + Send + 'static) -> anyhow::Result<()> {
    static LISTENING: AtomicBool = AtomicBool::new(false);
    if let Ok(mut place) = ANSWER.lock() {
        *place = Some(Box::new(answer));
    }
    if LISTENING.swap(true, Ordering::Relaxed) {
        return Ok(());
    }
    ctrlc::set_handler(|| {
        if ASKED.swap(true, Ordering::Relaxed) {
            std::process::exit(i32::from(STOPPED));
        }
        tell();
    })
    .context("cannot install a handler for Ctrl-C")
}

/// Asks to stop as a first Ctrl-C does, however often.
pub(crate) fn ask() {
    if !ASKED.swap(true, Ordering::Relaxed) {
        tell();
    }
}

fn tell() {
    // On a thread of its own: a terminal that takes no text must not keep a second Ctrl-C waiting.
    std::thread::spawn(|| {
        if let Ok(answer) = ANSWER.lock()
            && let Some(answer) = &*answer
        {
            answer("stopping after this epoch; press Ctrl-C again to stop now");
        }
    });
}

/// Whether the user asked to stop.
pub(crate) fn asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}
