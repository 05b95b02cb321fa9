//! `mpirun -n N lpgnn …` is the same as `lpgnn …`, bit for bit; a process that dies ends the job, which can be resumed.
//!
//! Run by `make test-mpi`. Every kind of work is killed four times; `LPGNN_CRASHES=20` makes it as many as told.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod parts;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

const LPGNN: &str = env!("CARGO_BIN_EXE_lpgnn");

/// `lpgnn` on so many ranks; on one, without MPI.
fn lpgnn(folder: &Path, ranks: usize, arguments: &[&str]) -> Command {
    let mut command = if ranks == 1 {
        Command::new(LPGNN)
    } else {
        let mut mpirun = mpirun();
        mpirun.args(["-n", &ranks.to_string(), LPGNN]);
        mpirun
    };
    command.current_dir(folder).args(arguments).arg("--threads=1").env("LPGNN_CACHE", "no-cache");
    // Jobs that begin and end at the same time would get in each other's way in a common folder.
    command.env("TMPDIR", folder);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn mpirun() -> Command {
    let mut mpirun = Command::new("mpirun");
    if is_open_mpi() {
        // Tests run as root in containers, on fewer processors than there are ranks.
        mpirun.args(["--allow-run-as-root", "--oversubscribe"]);
    }
    mpirun
}

/// Otherwise, it is MPICH.
fn is_open_mpi() -> bool {
    let version = Command::new("mpirun").arg("--version").output().unwrap();
    String::from_utf8_lossy(&version.stdout).contains("Open MPI")
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
        &["crossval", "no-such-data"],
        &["crossval", "clique", "--folds=0"],
        &["crossval", "clique", "--shard=1/2", "--out=x"],
        &["search", "clique", "--space=nothing"],
        &["reproduce", "--dir=nothing"],
    ] {
        let output = run(place.path(), 3, arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{arguments:?}");
        assert_eq!(said.matches("error: ").count(), 1, "{arguments:?}: {said}");
    }
}

/// A command that is given to `mpirun`: of several ranks, those that `odd` starts are another program.
fn of_ranks(folder: &Path, odd: &str, odd_is_first: bool, arguments: &[&str]) -> Command {
    let mut mpirun = mpirun();
    // Ranks of MPICH share memory by files, unless they seem to be on different machines; and here files may not grow. Then UCX
    // connects them, by memory that is no file. (By TCP, it sometimes does not end: a rank waits in `MPI_Finalize` for one that waits for it.)
    mpirun.envs([("MPIR_CVAR_NOLOCAL", "1"), ("UCX_TLS", "sysv,self")]);
    for (number, is_odd) in [odd_is_first, !odd_is_first].into_iter().enumerate() {
        mpirun.args([":", "-n", "1"].iter().skip(usize::from(number == 0)));
        if is_odd {
            mpirun.args(["sh", "-c", odd, "sh"]);
        }
        mpirun.arg(LPGNN).args(arguments).arg("--threads=1");
    }
    mpirun.current_dir(folder).env("LPGNN_CACHE", "no-cache").env("TMPDIR", folder);
    mpirun.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    mpirun
}

/// No file may grow beyond a block: to the program it is as if its disk were full.
const FULL: &str = "trap '' XFSZ; ulimit -f 1; exec \"$@\"";

#[test]
fn a_full_disk_ends_the_job_with_a_sentence_and_nothing_is_lost() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let train = |out: &'static str| ["train", "communities", "--no-baseline", "--epochs=3", out];
    succeed(place, 1, &train("--out=alone"));
    succeed(place, 1, &["train", "--resume", "alone", "--epochs=6", "--no-baseline"]);
    succeed(place, 2, &train("--out=run"));
    let model = std::fs::read(place.join("run/model.safetensors")).unwrap();
    let resume = ["train", "--resume", "run", "--epochs=6", "--no-baseline"];
    let output = of_ranks(place, FULL, true, &resume).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{said}");
    assert_eq!(said.matches("error: ").count(), 1, "{said}");
    assert!(said.contains("File too large"), "{said}");
    assert!(std::fs::read(place.join("run/model.safetensors")).unwrap() == model);
    succeed(place, 3, &resume);
    let model = |run: &str| std::fs::read(place.join(run).join("model.safetensors")).unwrap();
    assert!(model("run") == model("alone"));
}

#[test]
fn a_full_disk_of_one_rank_ends_a_cross_validation_which_continues() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let out = |out: &'static str| [&CROSSVAL[..], &[out]].concat();
    succeed(place, 1, &out("--out=alone"));
    let output = of_ranks(place, FULL, false, &out("--out=shared")).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{said}");
    assert_eq!(said.matches("error: ").count(), 1, "{said}");
    assert!(said.contains("error: cannot write shared/fold-"), "{said}");
    succeed(place, 2, &out("--out=shared"));
    assert_eq!(results(&place.join("shared")), results(&place.join("alone")));
}

#[test]
fn a_rank_that_is_late_is_waited_for() {
    let place = tempfile::tempdir().unwrap();
    let train = |out: &'static str| ["train", "communities", "--epochs=3", "--no-baseline", out];
    succeed(place.path(), 1, &train("--out=alone"));
    let late = "sleep 2; exec \"$@\"";
    let output = of_ranks(place.path(), late, false, &train("--out=late")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(result(&place.path().join("late")) == result(&place.path().join("alone")));
}

const CROSSVAL: [&str; 6] = [
    "crossval",
    "clique",
    "--folds=5",
    "--protocol=nested",
    "--epochs=25",
    "--set=model.dropout=0.2",
];

const SEARCH: [&str; 5] =
    ["search", "clique", "--space=space.toml", "--epochs=45", "--min-epochs=5"];

const SPACE: &str = "[values]\n\"model.state-dim\" = [2, 4, 8]\n\"model.dropout\" = [0.0, 0.3]\n";

/// All files of results in a folder, without how long they took.
fn results(folder: &Path) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        if entry.path().extension().is_some_and(|end| end == "json") {
            let text = std::fs::read_to_string(entry.path()).unwrap();
            let mut document: Value = serde_json::from_str(&text).unwrap();
            forget_seconds(&mut document);
            found.insert(name, document);
        }
    }
    found
}

fn forget_seconds(document: &mut Value) {
    match document {
        Value::Object(entries) => {
            entries.remove("seconds");
            entries.values_mut().for_each(forget_seconds);
        }
        Value::Array(items) => items.iter_mut().for_each(forget_seconds),
        _ => {}
    }
}

#[test]
fn folds_and_trials_are_shared_out_to_ranks() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    std::fs::write(place.join("space.toml"), SPACE).unwrap();
    for (command, name) in [(&CROSSVAL[..], "clique-cv"), (&SEARCH, "clique-search")] {
        // The first rank finds a free folder, and tells the others.
        let alone = succeed(place, 1, command);
        let together = succeed(place, 3, &[command, &["--tensorboard=events"]].concat());
        assert_eq!(together, alone, "{command:?}");
        let folder = |number: usize| place.join("runs").join(format!("{name}-{number}"));
        assert_eq!(results(&folder(2)), results(&folder(1)), "{command:?}");
        assert!(!folder(3).exists());
        // Every rank that trains something begins a file of events: nothing was done twice.
        let trials = std::fs::read_dir(place.join("events").join(format!("{name}-2"))).unwrap();
        let files = trials.map(|trial| std::fs::read_dir(trial.unwrap().path()).unwrap().count());
        let rounds = if command[0] == "crossval" { 5 } else { 6 + 2 + 1 };
        assert_eq!(files.sum::<usize>(), rounds, "{command:?}");
    }
    let collect = [&CROSSVAL[..], &["--out=runs/clique-cv-2", "--collect"]].concat();
    succeed(place, 3, &collect);
}

const ROW: &str = r#"
[experiment]
title = "The karate club"
table = "nodes"
row = "one-shot"
column = "karate"
protocol = "best-mean-epoch"
folds = 4
[data]
source = "karate"
[training]
epochs = 20
"#;

#[test]
fn rows_are_shared_out_to_ranks() {
    let place = tempfile::tempdir().unwrap();
    let recorded = |ranks: usize| {
        let folder = place.path().join(format!("ranks-{ranks}"));
        let rows = folder.join("experiments/nodes");
        std::fs::create_dir_all(&rows).unwrap();
        std::fs::write(rows.join("folds.toml"), ROW).unwrap();
        let seeds =
            ROW.replace("best-mean-epoch", "split").replace("folds = 4", "seeds = [5, 6, 7]");
        std::fs::write(rows.join("seeds.toml"), seeds).unwrap();
        let printed = succeed(&folder, ranks, &["reproduce"]);
        succeed(&folder, ranks, &["reproduce", "--again"]);
        succeed(&folder, ranks, &["reproduce", "--quick"]);
        succeed(&folder, ranks, &["reproduce", "--report=check"]);
        (printed, results(&folder.join("experiments/results/nodes")))
    };
    assert_eq!(recorded(3), recorded(1));
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

/// The ranks of a job: its processes may be children of `mpirun`, or of a process that it starts on every host.
fn ranks_of(job: u32) -> Vec<u32> {
    let is_rank = |id: &u32| {
        let name = std::fs::read_to_string(format!("/proc/{id}/comm")).unwrap_or_default();
        name.trim_end() == "lpgnn"
    };
    let children = children(job);
    let grandchildren = children.iter().flat_map(|&child| self::children(child));
    children.iter().copied().chain(grandchildren).filter(is_rank).collect()
}

/// The processes that another one has started.
fn children(parent: u32) -> Vec<u32> {
    let mut found = vec![];
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(id) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
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

/// Kills a rank of jobs with the arguments `begin`, which go on with `again`, until enough were killed; those that come to their
/// end have to end with what `finished` expects.
fn kill_ranks(place: &Path, begin: &[&str], again: &[&str], longest: u64, finished: impl Fn()) {
    let mut moment: u64 = 0x9e37_79b9_7f4a_7c15;
    let (mut killed, mut jobs) = (0, 0);
    while killed < kills() {
        let ranks = 2 + killed % 3;
        let begun =
            place.join("killed/plan.json").exists() || place.join("killed/config.toml").exists();
        let mut job = lpgnn(place, ranks, if begun { again } else { begin }).spawn().unwrap();
        moment = moment.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        std::thread::sleep(Duration::from_millis(400 + (moment >> 40) % longest.max(1)));
        let processes = ranks_of(job.id());
        let victim = processes.get(killed % processes.len().max(1));
        let hit = match (victim, job.try_wait().unwrap()) {
            (Some(victim), None) => {
                Command::new("kill").args(["-9", &victim.to_string()]).status().unwrap().success()
            }
            _ => false,
        };
        killed += usize::from(hit);
        // A job that lost nobody takes its time, on a busy machine more than it takes alone.
        let ended = wait(&mut job, Duration::from_secs(if hit { 20 } else { 600 }));
        assert!(ended.is_some(), "the job goes on, {ranks} ranks, of which one was killed: {hit}");
        let output = job.wait_with_output().unwrap();
        // MPICH tells to stdout that a rank was killed.
        let said = String::from_utf8_lossy(&[output.stderr, output.stdout].concat()).into_owned();
        if output.status.success() {
            finished();
            std::fs::remove_dir_all(place.join("killed")).unwrap();
        } else {
            let told = ["signal 9", "EXIT CODE: 9"].iter().any(|told| said.contains(told));
            assert!(hit && told, "{said}");
            assert!(!said.contains("panicked"), "{said}");
        }
        jobs += 1;
        assert!(jobs < 20 * kills(), "it cannot be killed in time");
    }
    if place.join("killed").exists() {
        succeed(place, 3, again);
        finished();
    }
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
    let again = ["train", "--resume", "killed", "--checkpoint-epochs=5", "--no-baseline"];
    kill_ranks(place.path(), &KILLED, &again, longest, || {
        assert!(result(&place.path().join("killed")) == expected);
    });
}

#[test]
fn a_rank_that_dies_ends_a_cross_validation_which_continues_to_the_same_result() {
    let place = tempfile::tempdir().unwrap();
    let crossval = |out: &'static str| {
        let mut arguments = CROSSVAL.to_vec();
        arguments[4] = "--epochs=150";
        arguments.push(out);
        arguments
    };
    let begun = Instant::now();
    succeed(place.path(), 1, &crossval("--out=alone"));
    let longest = u64::try_from(begun.elapsed().as_millis()).unwrap() / 2;
    let expected = results(&place.path().join("alone"));
    let killed = crossval("--out=killed");
    kill_ranks(place.path(), &killed, &killed, longest, || {
        assert_eq!(results(&place.path().join("killed")), expected);
    });
}
