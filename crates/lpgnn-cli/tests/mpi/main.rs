//! `mpirun -n N lpgnn …` is the same as `lpgnn …`, bit for bit; a process that dies ends the job, which can be resumed.
//!
//! Run by `make test-mpi`. Every kind of work is killed four times; `LPGNN_CRASHES=20` makes it as many as told.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod parts;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const LPGNN: &str = env!("CARGO_BIN_EXE_lpgnn");

/// `lpgnn` on so many ranks; on one, without MPI.
fn lpgnn(folder: &Path, ranks: usize, arguments: &[&str]) -> Command {
    let mut command = if ranks == 1 {
        Command::new(LPGNN)
    } else {
        let mut mpirun = Command::new("mpirun");
        // Tests run as root in containers, on fewer processors than there are ranks.
        mpirun.args(["--allow-run-as-root", "--oversubscribe", "-n", &ranks.to_string(), LPGNN]);
        mpirun
    };
    command.current_dir(folder).args(arguments).arg("--threads=1").env("LPGNN_CACHE", "no-cache");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn run(folder: &Path, ranks: usize, arguments: &[&str]) -> Output {
    lpgnn(folder, ranks, arguments).output().unwrap()
}

/// What it prints; it has to succeed.
fn succeed(folder: &Path, ranks: usize, arguments: &[&str]) -> String {
    let output = run(folder, ranks, arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{ranks} ranks, {arguments:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

/// The model and the metrics of a run, without how long each epoch took.
fn result(run: &Path) -> (Vec<u8>, Vec<serde_json::Value>) {
    let text = std::fs::read_to_string(run.join("metrics.jsonl")).unwrap();
    let epoch = |line: &str| {
        let mut epoch: serde_json::Value = serde_json::from_str(line).unwrap();
        epoch["seconds"].take();
        epoch
    };
    let model = std::fs::read(run.join("model.safetensors")).unwrap();
    (model, text.lines().map(epoch).collect())
}

/// Trains on one rank and on each of `ranks`, and compares all bits.
fn same(place: &Path, ranks: &[usize], data: &str, settings: &[&str]) {
    let train = |ranks: usize| -> PathBuf {
        let out = format!("--out=run-{ranks}");
        let arguments = [&["train", data, "--epochs=4", "--eval-every=2", "--force"], settings];
        let mut arguments = arguments.concat();
        arguments.extend(["--no-baseline", &out]);
        let folder = place.join(format!("run-{ranks}"));
        assert_eq!(succeed(place, ranks, &arguments).trim(), format!("run-{ranks}"));
        folder
    };
    let expected = result(&train(1));
    for &ranks in ranks {
        assert!(result(&train(ranks)) == expected, "{ranks} ranks, {data}, {settings:?}");
    }
}

const SOLVERS: [&str; 6] =
    ["bdmm", "one-shot", "implicit", "unrolled", "sse", "augmented-lagrangian"];

#[test]
fn every_solver_ends_with_the_same_bits() {
    let place = tempfile::tempdir().unwrap();
    for (number, solver) in SOLVERS.iter().enumerate() {
        let solver = format!("--set=training.solver.kind={solver}");
        // One large graph, and many small ones; all numbers of ranks in turn.
        let (one, other) = (2 + number % 3, 2 + (number + 1) % 3);
        same(place.path(), &[one], "communities", &[&solver]);
        same(place.path(), &[other], "clique", &[&solver]);
    }
}

#[test]
fn every_transition_ends_with_the_same_bits() {
    let place = tempfile::tempdir().unwrap();
    let transitions =
        ["gnn-sum", "gnn-mean", "gnn-normalized", "gin", "gcn-mean", "gcn", "sage-max"];
    for (number, transition) in transitions.iter().enumerate() {
        let transition = format!("--set=model.transition={transition}");
        same(place.path(), &[2 + number % 3], "communities", &[&transition]);
    }
    same(place.path(), &[2, 3, 4], "communities", &["--set=model.layers=2"]);
    same(place.path(), &[2, 4], "clique", &["--batch-size=30", "--set=model.dropout=0.2"]);
}

#[test]
fn predictions_and_evaluations_are_those_of_one_process() {
    let place = tempfile::tempdir().unwrap();
    for data in ["communities", "clique"] {
        let out = ["--force", "--out=trained"];
        let train = ["train", data, "--epochs=5", "--no-baseline"];
        succeed(place.path(), 1, &[&train[..], &out].concat());
        for command in ["predict", "evaluate", "states"] {
            let alone = succeed(place.path(), 1, &[command, "trained", data]);
            let together = succeed(place.path(), 3, &[command, "trained", data]);
            assert_eq!(together, alone, "{command} {data}");
        }
    }
}

#[test]
fn an_error_is_told_once() {
    let place = tempfile::tempdir().unwrap();
    for arguments in [
        &["train", "no-such-data"][..],
        &["train", "clique", "--set=training.epochs=none"],
        &["train", "--resume", "nothing"],
        &["predict", "nothing", "clique"],
        &["train", "--no-such-flag"],
    ] {
        let output = run(place.path(), 3, arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{arguments:?}");
        assert_eq!(said.matches("error: ").count(), 1, "{arguments:?}: {said}");
    }
}

#[test]
fn a_full_disk_ends_the_job_with_a_sentence() {
    let place = tempfile::tempdir().unwrap();
    // A file where the folder of the run would be.
    std::fs::write(place.path().join("taken"), "").unwrap();
    let output = run(place.path(), 2, &["train", "clique", "--epochs=2", "--out=taken/run"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("error: "), "{said}");
}

const KILLED: [&str; 8] = [
    "train",
    "communities",
    "--epochs=1500",
    "--eval-every=100",
    "--set=training.patience=none",
    "--checkpoint-epochs=5",
    "--no-baseline",
    "--out=killed",
];

/// How often something is killed: a few times, unless `LPGNN_CRASHES` says otherwise.
fn kills() -> usize {
    std::env::var("LPGNN_CRASHES").ok().and_then(|text| text.parse().ok()).unwrap_or(4)
}

/// The processes that another one has started.
fn children(parent: u32) -> Vec<i32> {
    let mut found = vec![];
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(id) = entry.file_name().to_string_lossy().parse::<i32>() else { continue };
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        // The name, in brackets, may have any character.
        let parent_of = stat.rsplit_once(')').and_then(|(_, rest)| rest.split(' ').nth(2));
        if parent_of == Some(parent.to_string().as_str()) {
            found.push(id);
        }
    }
    found.sort_unstable();
    found
}

/// Waits until it ends, but not for ever; how long it took.
fn wait(child: &mut Child, longest: Duration) -> Option<Duration> {
    let begun = Instant::now();
    while begun.elapsed() < longest {
        if child.try_wait().unwrap().is_some() {
            return Some(begun.elapsed());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    None
}

#[test]
fn a_rank_that_dies_ends_the_job_which_resumes_to_the_same_bits() {
    let place = tempfile::tempdir().unwrap();
    let mut alone = KILLED;
    alone[7] = "--out=alone";
    let begun = Instant::now();
    succeed(place.path(), 1, &alone);
    let longest = u64::try_from(begun.elapsed().as_millis()).unwrap() / 2;
    let expected = result(&place.path().join("alone"));
    let mut moment: u64 = 0x9e37_79b9_7f4a_7c15;
    let (mut killed, mut arguments) = (0, KILLED.to_vec());
    while killed < kills() {
        let ranks = 2 + killed % 3;
        let mut job = lpgnn(place.path(), ranks, &arguments).spawn().unwrap();
        moment = moment.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        std::thread::sleep(Duration::from_millis(400 + (moment >> 40) % longest.max(1)));
        let processes = children(job.id());
        let victim = processes.get(killed % processes.len().max(1));
        if let (Some(&victim), None) = (victim, job.try_wait().unwrap()) {
            let _ = Command::new("kill").args(["-9", &victim.to_string()]).status();
            killed += 1;
        }
        let ended = wait(&mut job, Duration::from_secs(20));
        assert!(ended.is_some(), "the job goes on without one of its {ranks} ranks");
        if place.path().join("killed/config.toml").exists() {
            arguments =
                vec!["train", "--resume", "killed", "--checkpoint-epochs=5", "--no-baseline"];
        }
        if place.path().join("killed/record.json").exists() {
            // It has finished before it could be killed.
            if killed > 0 {
                break;
            }
            std::fs::remove_dir_all(place.path().join("killed")).unwrap();
            arguments = KILLED.to_vec();
        }
    }
    assert!(killed > 0, "nothing was killed in time");
    succeed(place.path(), 3, &arguments);
    assert!(result(&place.path().join("killed")) == expected, "killed {killed} times");
}
