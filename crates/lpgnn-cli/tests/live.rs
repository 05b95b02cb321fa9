//! `--live`: who is answered, what is sent, and that nobody delays training.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// A training that serves a page; it is killed if a test fails.
struct Training {
    child: Child,
    address: String,
    token: String,
    said: BufReader<std::process::ChildStderr>,
}

impl Training {
    /// `lpgnn ARGUMENTS --live` in a folder.
    fn start(folder: &Path, arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_lpgnn"))
            .args(arguments)
            .arg("--live")
            .current_dir(folder)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.starts_with("live page at ") {
            line.clear();
            assert!(said.read_line(&mut line).unwrap() > 0, "it ended without an address");
        }
        let url = line.trim().strip_prefix("live page at http://").unwrap();
        let (address, token) = url.split_once("/?token=").unwrap();
        assert!(address.starts_with("127.0.0.1:"), "{address}");
        Self { child, address: address.into(), token: token.into(), said }
    }

    fn send(&self, method: &str, target: &str, host: &str, more: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        write!(stream, "{method} {target} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n").unwrap();
        stream
    }

    fn status(&self, method: &str, target: &str, host: &str, more: &str) -> u16 {
        let mut text = String::new();
        self.send(method, target, host, more).read_to_string(&mut text).unwrap();
        text.split(' ').nth(1).unwrap().parse().unwrap()
    }

    /// A target with the token.
    fn known(&self, path: &str) -> String {
        format!("{path}?token={}", self.token)
    }

    fn events(&self) -> Events {
        let stream = self.send("GET", &self.known("/events"), &self.address, "");
        Events(BufReader::new(stream))
    }

    fn stop(&self) {
        assert_eq!(self.status("POST", &self.known("/stop"), &self.address, ""), 202);
    }

    /// How it ends, and the rest of what it says.
    fn wait(mut self) -> (ExitStatus, String) {
        let mut rest = String::new();
        self.said.read_to_string(&mut rest).unwrap();
        (self.child.wait().unwrap(), rest)
    }
}

impl Drop for Training {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Server-sent events.
struct Events(BufReader<TcpStream>);

impl Iterator for Events {
    type Item = (String, Value);

    fn next(&mut self) -> Option<Self::Item> {
        let (mut name, mut line) = (String::new(), String::new());
        loop {
            line.clear();
            if self.0.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            if let Some(event) = line.strip_prefix("event: ") {
                event.trim().clone_into(&mut name);
            } else if let Some(data) = line.strip_prefix("data: ") {
                return Some((name, serde_json::from_str(data).unwrap()));
            }
        }
    }
}

/// Until somebody stops it.
const LONG: [&str; 8] =
    ["train", "clique", "--epochs", "1000000", "--patience", "none", "--out", "run"];

fn epochs_of(history: &Value) -> Vec<u64> {
    history["epoch"].as_array().unwrap().iter().map(|epoch| epoch.as_u64().unwrap()).collect()
}

#[test]
fn strangers_are_refused() {
    let place = tempfile::tempdir().unwrap();
    let training = Training::start(place.path(), &LONG);
    let own = &training.address;
    for path in ["/", "/events", "/stop"] {
        let method = if path == "/stop" { "POST" } else { "GET" };
        let known = training.known(path);
        assert_eq!(training.status(method, path, own, ""), 403, "{path} without a token");
        let wrong = format!("{path}?token={}", "0".repeat(32));
        assert_eq!(training.status(method, &wrong, own, ""), 403, "{path} with a wrong token");
        let rebound = format!("evil.example:{}", own.split(':').nth(1).unwrap());
        assert_eq!(training.status(method, &known, &rebound, ""), 403, "{path} by another name");
        let origin = "Origin: http://evil.example\r\n";
        assert_eq!(training.status(method, &known, own, origin), 403, "{path} from another page");
    }
    assert_eq!(training.status("GET", &training.known("/"), own, ""), 200);
    assert_eq!(training.status("GET", &training.known("/stop"), own, ""), 405);
    assert_eq!(training.status("GET", &training.known("/record.json"), own, ""), 404);
    assert!(training.events().next().is_some(), "nobody has stopped it");
}

#[test]
fn epochs_are_sent_in_order_and_stopping_is_as_by_ctrl_c() {
    let place = tempfile::tempdir().unwrap();
    let training = Training::start(place.path(), &LONG);
    let mut events = training.events();
    let (kind, data) = events.next().unwrap();
    assert_eq!((&kind[..], &data["title"]), ("data", &"clique".into()));
    let mut seen = vec![];
    for (kind, data) in events.by_ref() {
        match &kind[..] {
            "data" => {
                seen = data["runs"]
                    .as_array()
                    .unwrap()
                    .last()
                    .map_or(vec![], |run| epochs_of(&run["history"]));
            }
            "epochs" => seen.extend(epochs_of(&data[0]["history"])),
            kind => panic!("{kind}"),
        }
        if seen.len() > 50 {
            break;
        }
    }
    assert!(seen.is_sorted_by(|a, b| a < b) && seen[0] == 1, "{seen:?}");
    training.stop();
    // Again: what would end the program if it were a second Ctrl-C.
    training.stop();
    let rest: Vec<(String, Value)> = events.collect();
    let [.., (report, data), (end, last)] = &rest[..] else { panic!("{rest:?}") };
    assert_eq!((&report[..], &end[..]), ("data", "end"));
    assert!(data["runs"][0]["items"].is_object(), "at last it is the report on the run");
    assert_eq!(last["text"], "Training has ended: stopped on request.");
    let (status, said) = training.wait();
    assert_eq!(status.code(), Some(130), "{said}");
    assert!(said.contains("stopping after this epoch"), "{said}");
    assert!(place.path().join("run/checkpoint.safetensors").exists());
}

#[test]
fn a_reader_that_takes_nothing_delays_nothing() {
    let place = tempfile::tempdir().unwrap();
    let training = Training::start(place.path(), &LONG);
    // They never read.
    let idle: Vec<TcpStream> = (0..20)
        .map(|_| training.send("GET", &training.known("/events"), &training.address, ""))
        .collect();
    let epochs = || {
        let metrics = std::fs::read_to_string(place.path().join("run/metrics.jsonl"));
        metrics.unwrap_or_default().lines().count()
    };
    let begun = Instant::now();
    while epochs() < 500 {
        assert!(begun.elapsed() < Duration::from_secs(60), "{} epochs", epochs());
        std::thread::sleep(Duration::from_millis(20));
    }
    training.stop();
    let asked = Instant::now();
    let (status, said) = training.wait();
    assert_eq!(status.code(), Some(130), "{said}");
    assert!(asked.elapsed() < Duration::from_secs(20), "it waited for readers");
    drop(idle);
}

#[test]
fn a_page_needs_its_address_to_be_told() {
    let run = |arguments: &[&str]| {
        let place = tempfile::tempdir().unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_lpgnn"))
            .args(["train", "clique", "--epochs", "2", "--out", "run"])
            .args(arguments)
            .current_dir(place.path())
            .output()
            .unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, said) = run(&["--live", "--quiet"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("--quiet"), "{said}");
    let (code, said) = run(&["--live=nowhere"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("a port or an address such as 127.0.0.1:8000 is expected"), "{said}");
    let (code, said) = run(&["--live"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(!said.contains("warning"), "{said}");
    let (code, said) = run(&["--live=0.0.0.0:0"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("warning: other machines can reach the live page"), "{said}");
}
