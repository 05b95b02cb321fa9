//! An update takes no more instructions than recorded.
//!
//! Time depends on the machine and on who else uses it; the number of instructions hardly does.
//! Valgrind counts them: this test starts itself under it, once for few updates and once for more,
//! and the difference is what the updates between take.
//!
//! The figures are in `benchmarks/instructions.toml`; `make instructions` records them anew, for two
//! profiles. That of the tests spares `make test` a build of its own; its assertions about double
//! the count. `cargo test --release --test suite instructions::` counts what users run. Another compiler or
//! processor gives other figures, which are told and not judged.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(clippy::print_stdout, reason = "a test that is skipped says so")]

#[path = "../../benches/support/mod.rs"]
mod support;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::skip;
use support::training::evaluate_often;
use support::updates::{Options, train};
use support::workload::Workload;

/// A case, its workload, whether `h` has tanh on its output, its solver.
const CASES: [(&str, &str, bool, &str); 4] = [
    ("a, tanh output, bdmm", "a", true, "bdmm"),
    ("a, linear output, one-shot", "a", false, "one-shot"),
    ("b_tiny, tanh output, bdmm", "b_tiny", true, "bdmm"),
    ("b_tiny, linear output, bdmm", "b_tiny", false, "bdmm"),
];

/// What is counted besides updates, on `b_tiny` by a stack of four layers.
const WHOLE: [&str; 2] = ["b_tiny, evaluation", "b_tiny, prediction"];

/// Growth that fails.
const TOLERANCE: f64 = 0.05;

/// Updates before counting starts, and updates that are counted.
const UPDATES: [u64; 2] = [1, 2];

/// Which part of the file is ours.
const PROFILE: &str = if cfg!(debug_assertions) { "test" } else { "release" };

/// `benchmarks/instructions.toml`: a record per profile.
type File = BTreeMap<String, Record>;

#[derive(serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Record {
    rustc: String,
    /// Which instructions the processor has that kernels choose by.
    processor: String,
    /// Instructions per update.
    instructions: BTreeMap<String, u64>,
}

#[test]
fn an_update_takes_no_more_instructions_than_recorded() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        skip("valgrind is not installed, so instructions are not counted");
        return;
    }
    let mut found =
        Record { rustc: rustc(), processor: processor(), instructions: BTreeMap::new() };
    for name in CASES.iter().map(|(name, ..)| *name).chain(WHOLE) {
        let [few, more] = [UPDATES[0], UPDATES[0] + UPDATES[1]].map(|count| count_all(name, count));
        found.instructions.insert(name.into(), (more - few) / UPDATES[1]);
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benchmarks/instructions.toml");
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let mut file: File = toml::from_str(&text).unwrap();
    if std::env::var_os("LPGNN_INSTRUCTIONS").is_some_and(|value| value == "record") {
        file.insert(PROFILE.into(), found);
        let head = "# Instructions per update, by profile; written by `make instructions`.\n\n";
        std::fs::write(&path, format!("{head}{}", toml::to_string(&file).unwrap())).unwrap();
        println!("recorded in {}", path.display());
    } else if let Some(recorded) = file.get(PROFILE) {
        compare(&found, recorded);
    } else {
        // A packaged crate comes without the file.
        skip(&format!("{} has no figures for the profile {PROFILE}", path.display()));
    }
}

/// Fails if a case has grown, on the compiler and processor the figures were recorded with.
fn compare(found: &Record, recorded: &Record) {
    let same = found.rustc == recorded.rustc && found.processor == recorded.processor;
    if !same {
        println!(
            "recorded with {} on {}, now {} on {}: told, not judged",
            recorded.rustc, recorded.processor, found.rustc, found.processor
        );
    }
    let mut grown = vec![];
    for (name, &now) in &found.instructions {
        let Some(&before) = recorded.instructions.get(name) else {
            grown.push(format!("{name}: not recorded"));
            continue;
        };
        let change = now as f64 / before as f64 - 1.0;
        let line = format!("{name}: {now}, recorded {before}, {:+.1} %", 100.0 * change);
        println!("{line}");
        if change > TOLERANCE {
            grown.push(line);
        } else if change < -TOLERANCE {
            println!("  fewer than recorded: `make instructions` keeps it so");
        }
    }
    assert!(
        !same || grown.is_empty(),
        "instructions per update have grown; if that is worth it, `make instructions` records them:\n{}",
        grown.join("\n")
    );
}

/// Instructions of a process that makes so many updates, by valgrind.
fn count_all(case: &str, updates: u64) -> u64 {
    let mut command = Command::new("valgrind");
    command
        .args(["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "instructions::updates_to_be_counted", "--ignored", "--test-threads=1"])
        .env("LPGNN_COUNT", format!("{case}={updates}"));
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    // ==1234== I   refs:      1,234,567
    let line = said.lines().find(|line| line.contains("refs:")).unwrap_or_else(|| panic!("{said}"));
    let digits = line.split_once("refs:").unwrap().1;
    digits.chars().filter(char::is_ascii_digit).collect::<String>().parse().unwrap()
}

/// What runs under valgrind.
#[test]
#[ignore = "the test above runs it, under valgrind"]
fn updates_to_be_counted() {
    let Ok(order) = std::env::var("LPGNN_COUNT") else { return };
    let (case, updates) = order.split_once('=').unwrap();
    // All work on this thread: threads that look for work would be counted too.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build().unwrap();
    if WHOLE.contains(&case) {
        let (workload, count) = (Workload::generate("b_tiny"), updates.parse().unwrap());
        return pool.install(|| evaluate_often(&workload, case == WHOLE[1], count));
    }
    let (_, workload, tanh, solver) = CASES.into_iter().find(|(name, ..)| *name == case).unwrap();
    let workload = Workload::generate(workload);
    let options = Options { tanh, solver: solver.into(), transition: "gnn-sum".into() };
    pool.install(|| {
        train(&workload, &options, None, |training| {
            for _ in 0..updates.parse().unwrap() {
                training.step();
            }
        });
    });
}

fn rustc() -> String {
    let rustc = std::env::var_os("RUSTC").map_or_else(|| PathBuf::from("rustc"), PathBuf::from);
    // In the folder of the crate, where a toolchain may have been chosen.
    let output =
        Command::new(rustc).arg("--version").current_dir(env!("CARGO_MANIFEST_DIR")).output();
    output.map_or("unknown".into(), |output| String::from_utf8_lossy(&output.stdout).trim().into())
}

fn processor() -> String {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        return "x86_64 with avx2 and fma".into();
    }
    std::env::consts::ARCH.into()
}
