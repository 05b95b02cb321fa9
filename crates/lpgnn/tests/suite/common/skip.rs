//! Tests that need what is not on every machine: public data sets, golden values of other programs,
//! valgrind.
//!
//! They pass when it is missing, but not silently: they say so on stderr, past the capture of the test
//! harness, and in the file that `LPGNN_SKIPPED` names, which `make test` prints at the end.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

/// A file or folder of shared data, below the folder that `LPGNN_SHARED` names or else `shared` next
/// to the checkout; none, and the test counts as skipped, if it does not exist.
pub fn shared(path: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("LPGNN_SHARED").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        PathBuf::from,
    );
    let found = folder.join(path);
    if !found.exists() {
        skip(&format!("{path} is missing in the folder of shared data (LPGNN_SHARED)"));
        return None;
    }
    Some(found)
}

/// Reports that the current test, or a part of it, is skipped.
pub fn skip(reason: &str) {
    // nextest runs every test in a process of its own, whose only thread has no name of a test.
    let name = std::env::var("NEXTEST_TEST_NAME")
        .ok()
        .or_else(|| std::thread::current().name().map(str::to_owned))
        .unwrap_or_default();
    let line = format!("skipped: {name}: {reason}\n");
    // In one piece: other tests write at the same time.
    let _ = std::io::stderr().write_all(line.as_bytes());
    if let Some(path) = std::env::var_os("LPGNN_SKIPPED") {
        let file = OpenOptions::new().create(true).append(true).open(&path);
        file.and_then(|mut file| file.write_all(line.as_bytes()))
            .unwrap_or_else(|error| panic!("cannot write {}: {error}", path.display()));
    }
}
