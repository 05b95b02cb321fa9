//! A cross-validation and a search that are killed at any moment, also one of several processes that work on them.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use super::{Moments, kill_after, kills, lpgnn, run};

const CROSSVAL: [&str; 7] = [
    "crossval",
    "clique",
    "--folds=3",
    "--protocol=nested",
    "--epochs=60",
    "--batch-size=30",
    "--set=model.dropout=0.2",
];

#[test]
fn a_killed_cross_validation_continues_to_the_same_result() {
    survives_kills(&[&CROSSVAL[..], &["--threads=2"]].concat());
}

#[test]
fn killed_shards_of_a_cross_validation_continue_to_the_same_result() {
    shards_survive_kills(&[&CROSSVAL[..], &["--threads=1"]].concat());
}

#[test]
fn a_killed_search_continues_to_the_same_result() {
    with_space(|arguments| survives_kills(&[arguments, &["--threads=2"]].concat()));
}

#[test]
fn killed_shards_of_a_search_continue_to_the_same_result() {
    with_space(|arguments| shards_survive_kills(&[arguments, &["--threads=1"]].concat()));
}

fn with_space(test: impl Fn(&[&str])) {
    let space = "method = \"random\"\n[values]\n\
                 \"training.solver.weights.lr\" = { low = 0.001, high = 0.1, log = true }\n\
                 \"model.dropout\" = [0.0, 0.2]\n";
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("space.toml");
    std::fs::write(&file, space).unwrap();
    let space = format!("--space={}", file.display());
    let budget = ["--budget=6", "--min-epochs=5"];
    let arguments = [&["search", "clique", "--epochs=45", "--batch-size=30", &space], &budget[..]];
    test(&arguments.concat());
}

/// How many milliseconds the command takes when nobody kills it, and what it leaves in its folder.
fn left_alone(place: &Path, command: &[&str]) -> (u64, BTreeMap<String, String>) {
    let begun = Instant::now();
    let (done, said) = run(place, &[command, &["--out=whole"]].concat());
    assert!(done, "{said}");
    let longest = u64::try_from(begun.elapsed().as_millis()).unwrap();
    (longest, contents(&place.join("whole")))
}

/// Kills the command again and again, runs it to its end, and compares its folder with that of a
/// command that was left alone.
fn survives_kills(command: &[&str]) {
    let place = tempfile::tempdir().unwrap();
    let (longest, expected) = left_alone(place.path(), command);
    let mut moments = Moments::new();
    let (mut killed, mut folder) = (0, 0);
    while killed < kills() {
        folder += 1;
        let name = format!("killed-{folder}");
        let out = format!("--out={name}");
        let arguments = [command, &[out.as_str()]].concat();
        let mut here = 0;
        // Killed up to four times before it may finish.
        while here < 4 {
            let mut child = lpgnn(place.path(), &arguments).spawn().unwrap();
            if moments.below(2) == 0 {
                interrupt_after(&mut child, moments.below(longest));
            }
            if !kill_after(&mut child, moments.below(longest / 2)) {
                break;
            }
            here += 1;
        }
        killed += here;
        let (done, said) = run(place.path(), &arguments);
        assert!(done, "{name}, killed {here} times: {said}");
        compare(&contents(&place.path().join(&name)), &expected, &name);
        assert!(folder < 20 * kills(), "it cannot be killed in time");
    }
}

/// Runs three shards at the same time, kills one of them again and again, and starts it anew; the result is compared with that
/// of a process that did all.
fn shards_survive_kills(command: &[&str]) {
    let place = tempfile::tempdir().unwrap();
    let (longest, expected) = left_alone(place.path(), command);
    let mut moments = Moments::new();
    let (mut killed, mut folder) = (0, 0);
    while killed < kills() {
        folder += 1;
        let name = format!("killed-{folder}");
        let out = format!("--out={name}");
        let spawn = |shard: &str| {
            lpgnn(place.path(), &[command, &[out.as_str(), shard]].concat()).spawn().unwrap()
        };
        let mut shards =
            ["--shard=1/3", "--shard=2/3", "--shard=3/3"].map(|shard| (shard, spawn(shard)));
        for _ in 0..4 {
            let (shard, child) = &mut shards[usize::try_from(moments.below(3)).unwrap()];
            if kill_after(child, moments.below(longest / 3)) {
                killed += 1;
                *child = spawn(shard);
            }
        }
        for (shard, child) in shards {
            let output = child.wait_with_output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{shard}: {said}");
        }
        let (done, said) = run(place.path(), &[command, &[out.as_str(), "--collect"]].concat());
        assert!(done, "{name}: {said}");
        compare(&contents(&place.path().join(&name)), &expected, &name);
        assert!(folder < 20 * kills(), "it cannot be killed in time");
    }
}

fn compare(found: &BTreeMap<String, String>, expected: &BTreeMap<String, String>, name: &str) {
    assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>(), "{name}");
    for (file, content) in expected {
        assert!(&found[file] == content, "{name}/{file} is another");
    }
}

/// Ctrl-C makes it write its checkpoints: a kill that follows may hit it while it does.
fn interrupt_after(child: &mut std::process::Child, milliseconds: u64) {
    std::thread::sleep(std::time::Duration::from_millis(milliseconds));
    if cfg!(unix) && child.try_wait().unwrap().is_none() {
        let id = child.id().to_string();
        let _ = std::process::Command::new("kill").args(["-INT", &id]).status();
    }
}

/// All files of a folder, but for temporary ones; results without how long they took.
fn contents(folder: &Path) -> BTreeMap<String, String> {
    let ends = |path: &Path, with: &str| path.extension().is_some_and(|end| end == with);
    let entries = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
    let files = entries.map(|entry| (entry.file_name().into_string().unwrap(), entry.path()));
    let kept =
        files.filter(|(name, path)| name != ".lock" && !ends(path, "lock") && !ends(path, "part"));
    kept.map(|(name, path)| {
        let bytes = std::fs::read(&path).unwrap();
        let content = match serde_json::from_slice::<serde_json::Value>(&bytes) {
            Ok(mut document) if ends(&path, "json") => {
                forget_seconds(&mut document);
                document.to_string()
            }
            _ => format!("{bytes:?}"),
        };
        (name, content)
    })
    .collect()
}

fn forget_seconds(document: &mut serde_json::Value) {
    match document {
        serde_json::Value::Object(entries) => {
            entries.remove("seconds");
            entries.values_mut().for_each(forget_seconds);
        }
        serde_json::Value::Array(items) => items.iter_mut().for_each(forget_seconds),
        _ => {}
    }
}
