//! Runs, cross-validations and searches survive anything: killed at any moment and continued, they
//! end with the same bits.
//!
//! Each test kills four times; `LPGNN_CRASHES=200` makes it as many as told.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod killed_experiments;
mod killed_live;
mod killed_run;
mod stopped;

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

fn lpgnn(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lpgnn"));
    command.current_dir(folder).args(arguments).env("LPGNN_CACHE", "no-cache");
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

fn run(folder: &Path, arguments: &[&str]) -> (bool, String) {
    let output = lpgnn(folder, arguments).output().unwrap();
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// How often something is killed: a few times, unless `LPGNN_CRASHES` says otherwise.
fn kills() -> usize {
    std::env::var("LPGNN_CRASHES").ok().and_then(|text| text.parse().ok()).unwrap_or(4)
}

/// A small generator of moments, so that they are many and no two alike.
struct Moments(u64);

impl Moments {
    fn new() -> Self {
        Self(0x9e37_79b9_7f4a_7c15)
    }

    /// A number of milliseconds below this one.
    fn below(&mut self, milliseconds: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) % milliseconds.max(1)
    }
}

/// Whether the child was still at work.
fn kill_after(child: &mut Child, milliseconds: u64) -> bool {
    std::thread::sleep(Duration::from_millis(milliseconds));
    let at_work = child.try_wait().unwrap().is_none();
    let _ = child.kill();
    let _ = child.wait();
    at_work
}
