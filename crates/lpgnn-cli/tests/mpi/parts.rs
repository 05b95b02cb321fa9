//! A graph in parts, of which every process has its own.

use std::path::Path;
use std::time::{Duration, Instant};

use super::{KILLED, kill_ranks, lpgnn, ranks_of, result, run, succeed};

/// A graph of so many nodes in `place/parts`.
fn generate(place: &Path, nodes: usize) {
    let nodes = format!("--nodes={nodes}");
    let arguments =
        ["data", "generate", "large", &nodes, "--community=200", "--parts=12", "--out=parts"];
    succeed(place, 1, &arguments);
}

const TRAIN: [&str; 5] =
    ["train", "parts", "--epochs=4", "--eval-every=2", "--checkpoint-epochs=1"];

#[test]
fn training_prediction_and_evaluation_are_those_of_one_process() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    generate(place, 3000);
    for ranks in [1, 2, 3, 4] {
        let out = format!("--out=run-{ranks}");
        succeed(place, ranks, &[&TRAIN[..], &[&out]].concat());
        assert!(
            result(&place.join(format!("run-{ranks}"))) == result(&place.join("run-1")),
            "{ranks} ranks"
        );
    }
    for command in
        [&["predict"][..], &["evaluate", "--split=test"], &["states"], &["predict", "--as=jsonl"]]
    {
        let arguments = [command, &["run-1", "parts"]].concat();
        let alone = succeed(place, 1, &arguments);
        assert!(alone.len() > 100, "{alone}");
        assert!(succeed(place, 3, &arguments) == alone, "{command:?}");
    }
    succeed(place, 2, &["states", "run-2", "parts", "--out=states.npy"]);
    let bytes = std::fs::metadata(place.join("states.npy")).unwrap().len();
    assert_eq!(bytes, 128 + 3000 * 10 * 4);
}

/// Rows of a table that are more than one message: some of the nodes of another rank, and all of them.
#[test]
fn rows_of_many_messages_arrive_where_they_belong() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let wide = ["--set=model.hidden-dims=[256]", "--no-baseline"];
    for mixing in ["--mixing=0.3", "--mixing=1"] {
        let graph = ["--nodes=8000", "--degree=8", "--parts=4", mixing, "--out=parts", "--force"];
        succeed(place, 1, &[&["data", "generate", "large"], &graph[..]].concat());
        for ranks in [1, 2, 3] {
            let out = format!("--out=run-{ranks}");
            let train = ["train", "parts", "--epochs=1", "--force", &out];
            succeed(place, ranks, &[&train[..], &wide[..]].concat());
            assert!(
                result(&place.join(format!("run-{ranks}"))) == result(&place.join("run-1")),
                "{mixing}, {ranks} ranks"
            );
        }
    }
}

#[test]
fn a_data_set_is_cut_by_metis_and_predicted_in_its_own_order() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    succeed(place, 1, &["data", "generate", "communities", "--nodes=1200", "--out=whole"]);
    succeed(place, 1, &["data", "partition", "whole", "--parts=6", "--out=parts"]);
    succeed(place, 2, &[&TRAIN[..], &["--out=run"]].concat());
    let names = |text: &str| -> Vec<String> {
        text.lines().map(|line| line.split(',').take(2).collect::<Vec<_>>().join(",")).collect()
    };
    let (whole, parts) = (
        succeed(place, 1, &["predict", "run", "whole"]),
        succeed(place, 3, &["predict", "run", "parts"]),
    );
    assert_eq!(names(&whole), names(&parts));
    let classes = |text: &str| -> Vec<String> {
        text.lines().skip(1).map(|line| line.split(',').nth(2).unwrap().to_owned()).collect()
    };
    let pairs = classes(&whole).into_iter().zip(classes(&parts));
    let same = pairs.filter(|(a, b)| a == b).count();
    assert!(same >= 1195, "{same} of 1200 predictions are the same");
}

#[test]
fn the_wrong_number_of_parts_is_told_once() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let arguments =
        ["data", "generate", "large", "--nodes=900", "--community=100", "--parts=2", "--out=parts"];
    succeed(place, 1, &arguments);
    let output = run(place, 3, &TRAIN);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert_eq!(said.matches("error: ").count(), 1, "{said}");
    assert!(said.contains("parts has 2 parts, but 3 processes are to share it"), "{said}");
}

/// The most memory that any process of a job has had, in kilobytes.
fn peak(place: &Path, ranks: usize) -> u64 {
    let mut job = lpgnn(place, ranks, &["train", "parts", "--epochs=2", "--force", "--out=run"])
        .spawn()
        .unwrap();
    let mut most = 0;
    while job.try_wait().unwrap().is_none() {
        let processes = if ranks == 1 { vec![job.id()] } else { ranks_of(job.id()) };
        for process in processes {
            let status =
                std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
            // Memory of its own: pages of files that are mapped can be had again from the files.
            let own = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
            let kilobytes =
                own.and_then(|text| text.trim().trim_end_matches(" kB").parse::<u64>().ok());
            most = most.max(kilobytes.unwrap_or(0));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(job.wait().unwrap().success());
    assert!(most > 0, "no process was seen");
    most
}

#[test]
fn the_memory_of_a_rank_is_about_its_part() {
    let place = tempfile::tempdir().unwrap();
    // What a process needs for a small graph, it needs for any.
    let [small, large] = [10_000, 120_000].map(|nodes| {
        let nodes = format!("--nodes={nodes}");
        let graph = ["--community=999", "--mixing=0", "--parts=12", "--out=parts", "--force"];
        succeed(place.path(), 1, &[&["data", "generate", "large", &nodes], &graph[..]].concat());
        [peak(place.path(), 1), peak(place.path(), 4)]
    });
    let (alone, of_four) = (large[0] - small[0], large[1] - small[1]);
    assert!(20 * of_four < 9 * alone, "{of_four} kB more of one of four, {alone} kB of one");
}

#[test]
fn a_rank_that_dies_while_parts_are_trained_leaves_a_whole_checkpoint() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    generate(place, 2000);
    let mut begin = KILLED;
    (begin[1], begin[2], begin[5]) = ("parts", "--epochs=300", "--checkpoint-epochs=1");
    let mut alone = begin;
    alone[7] = "--out=alone";
    let begun = Instant::now();
    succeed(place, 1, &alone);
    let longest = u64::try_from(begun.elapsed().as_millis()).unwrap() / 2;
    let expected = result(&place.join("alone"));
    let again = ["train", "--resume", "killed", "--checkpoint-epochs=1", "--no-baseline"];
    kill_ranks(place, &begin, &again, longest, || {
        assert!(result(&place.join("killed")) == expected);
    });
}

#[test]
fn staleness_over_mpi_trains_and_is_the_same_every_time() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    generate(place, 2000);
    for out in ["--out=a", "--out=b"] {
        let stale = ["--set=training.staleness=1", "--force", out];
        succeed(place, 3, &[&TRAIN[..], &stale].concat());
    }
    assert!(result(&place.join("a")) == result(&place.join("b")));
    succeed(place, 3, &[&TRAIN[..], &["--out=exact"]].concat());
    assert!(result(&place.join("a")) != result(&place.join("exact")), "nothing was late");
}
