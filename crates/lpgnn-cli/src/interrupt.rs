use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;

static ASKED: AtomicBool = AtomicBool::new(false);

/// From now on Ctrl-C, or a request to terminate, is a wish that [`asked`] tells of; a second one
/// ends the program at once.
pub(crate) fn listen() -> anyhow::Result<()> {
    static LISTENING: AtomicBool = AtomicBool::new(false);
    if LISTENING.swap(true, Ordering::Relaxed) {
        return Ok(());
    }
    ctrlc::set_handler(|| {
        if ASKED.swap(true, Ordering::Relaxed) {
            // As a shell says it of a process that Ctrl-C has ended.
            std::process::exit(130);
        }
    })
    .context("cannot listen to Ctrl-C")
}

/// Whether somebody wants the work to end.
pub(crate) fn asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}
