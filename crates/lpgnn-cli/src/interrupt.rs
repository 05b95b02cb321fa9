use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;

static ASKED: AtomicBool = AtomicBool::new(false);

/// As a shell says it of a process that Ctrl-C has ended: what was asked for is not done, and
/// nothing has failed.
pub(crate) const STOPPED: u8 = 130;

/// The work ended because somebody wanted it to. What is done is kept; the sentence tells how to go
/// on.
#[derive(Debug)]
pub(crate) struct Stopped(pub(crate) String);

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Stopped {}

/// From now on Ctrl-C, or a request to terminate, is a wish that [`asked`] tells of; a second one
/// ends the program at once.
pub(crate) fn listen() -> anyhow::Result<()> {
    static LISTENING: AtomicBool = AtomicBool::new(false);
    if LISTENING.swap(true, Ordering::Relaxed) {
        return Ok(());
    }
    ctrlc::set_handler(|| {
        if ASKED.swap(true, Ordering::Relaxed) {
            std::process::exit(i32::from(STOPPED));
        }
    })
    .context("cannot listen to Ctrl-C")
}

/// Whether somebody wants the work to end.
pub(crate) fn asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}
