//! Every instruction set computes what the definitions say.

use std::process::Command;

use lpgnn::kernels::{instruction_set, instruction_sets};

/// The tests whose outcome depends on kernels, and that take seconds.
const TESTS: [&str; 4] = ["laws::", "gradients::", "golden::", "solvers::"];

#[test]
fn laws_hold_on_every_instruction_set() {
    // The one in use is that of all other tests.
    for set in instruction_sets().filter(|&set| set != instruction_set()) {
        let output = Command::new(std::env::current_exe().expect("this program has a path"))
            .args(TESTS)
            .env("LPGNN_SIMD", set)
            .output()
            .expect("this program starts");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "on {set}:\n{said}");
    }
}
