use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::{Moments, kills, run};

/// The program with its input open; it answers every line.
struct Live {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Live {
    fn start(folder: &Path, journal: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lpgnn"));
        command.current_dir(folder).env("LPGNN_CACHE", "no-cache");
        command.args(["live", "model", "karate", "--tol", "0.01", "--quiet"]).args(journal);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    fn send(&mut self, line: &str) {
        // A process that was killed takes nothing any more.
        let _ = writeln!(self.child.stdin.as_mut().unwrap(), "{line}");
    }

    /// The next line that says `what`.
    fn answer(&mut self, what: &str) -> Option<serde_json::Value> {
        loop {
            let line = self.lines.next()?.ok()?;
            let value: serde_json::Value = serde_json::from_str(&line).ok()?;
            if value.get(what).is_some() {
                return Some(value);
            }
        }
    }

    fn ask(&mut self, query: &str) -> serde_json::Value {
        self.send(query);
        self.answer("query").unwrap()
    }
}

/// Edges of a club that come and go, some lines that are no events, and new members.
fn events() -> Vec<String> {
    let mut moments = Moments::new();
    (0..400)
        .map(|number| {
            let (u, v) = (moments.below(34), moments.below(34));
            match moments.below(10) {
                0..4 => {
                    format!(r#"{{"op":"add-edge","source":{u},"target":{v},"undirected":true}}"#)
                }
                4..8 => format!(r#"{{"op":"remove-edge","source":{u},"target":{v}}}"#),
                8 => format!(r#"{{"op":"remove-node","node":{}}}"#, 100 + number),
                _ => "nonsense".to_owned(),
            }
        })
        .collect()
}

#[test]
fn a_killed_live_graph_recovers_to_the_same_bits() {
    let folder = tempfile::tempdir().unwrap();
    let train = ["train", "karate", "--epochs", "20", "--out", "model", "--quiet"];
    let (done, error) = run(folder.path(), &train);
    assert!(done, "{error}");
    let events = events();
    let mut whole = Live::start(folder.path(), &[]);
    events.iter().for_each(|event| whole.send(event));
    let expected = whole.ask("digest");
    assert_eq!(expected["events"], 400);

    let journal = ["--journal", "journal", "--snapshot-every", "90"];
    let mut moments = Moments::new();
    let (mut killed, mut acknowledged) = (0, 0);
    while killed < kills() {
        let mut live = Live::start(folder.path(), &journal);
        let events_there = live.ask("stats")["events"].as_u64().unwrap();
        assert!(events_there >= acknowledged, "{events_there} of {acknowledged}");
        acknowledged = events_there;
        let enough = acknowledged + 1 + moments.below(2 * 400 / kills().max(1) as u64 + 1);
        for event in events.iter().skip(usize::try_from(acknowledged).unwrap()) {
            live.send(event);
            let Some(answer) = live.answer("latency_us") else { break };
            acknowledged = answer["event"].as_u64().unwrap();
            if acknowledged >= enough {
                break;
            }
        }
        // Some more are on their way, and nobody waits for them.
        for event in events.iter().skip(usize::try_from(acknowledged).unwrap()).take(20) {
            live.send(event);
        }
        std::thread::sleep(Duration::from_micros(50 * moments.below(40)));
        live.child.kill().unwrap();
        live.child.wait().unwrap();
        killed += 1;
    }
    let mut live = Live::start(folder.path(), &journal);
    let there = live.ask("stats")["events"].as_u64().unwrap();
    assert!(there >= acknowledged, "{there} of {acknowledged}");
    for event in events.iter().skip(usize::try_from(there).unwrap()) {
        live.send(event);
    }
    assert_eq!(live.ask("digest"), expected);
    live.child.kill().unwrap();
    live.child.wait().unwrap();
    whole.child.kill().unwrap();
    whole.child.wait().unwrap();
}
