//! The page of promises: every test that it names exists.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::collections::HashSet;
use std::fs;
use std::path::Path;

/// The names of all tests in the files below a folder, of Rust and of Python.
fn tests(folder: &Path, found: &mut HashSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            tests(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs" || end == "py") {
            let text = fs::read_to_string(&path).unwrap();
            // Other attributes may stand between the one of a test and its function.
            let rust = text.split("#[test]").skip(1).filter_map(|rest| rest.split("fn ").nth(1));
            let python = text.split("def test_").skip(1).map(|rest| format!("test_{rest}"));
            let name = |text: &str| text.split('(').next().unwrap_or_default().to_owned();
            found.extend(rust.map(name));
            found.extend(python.map(|text| name(&text)));
        }
    }
}

#[test]
fn every_promise_names_tests_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut known = HashSet::new();
    for part in ["lpgnn/src", "lpgnn/tests", "lpgnn-cli/src", "lpgnn-cli/tests", "lpgnn-python"] {
        tests(&root.join("crates").join(part), &mut known);
    }
    let page = fs::read_to_string(root.join("docs/src/promises.md")).unwrap();
    let mut promises = 0;
    for line in page.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| promise"))
    {
        let held_by = line.rsplit('|').nth(1).unwrap();
        let named: Vec<&str> = held_by.split('`').skip(1).step_by(2).collect();
        assert!(!named.is_empty(), "no test holds “{line}”");
        for name in named {
            assert!(known.contains(name), "{name} is not a test, but is to hold “{line}”");
        }
        promises += 1;
    }
    assert!(promises > 25, "only {promises} promises were found");
}
