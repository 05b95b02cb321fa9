//! `lpgnn live --listen`: events and queries over HTTP.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

/// A live graph that listens; it is killed if a test fails.
struct Listening {
    child: Child,
    address: String,
    token: String,
}

impl Listening {
    fn start(folder: &Path, more: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_lpgnn"))
            .args(["live", "model", "karate", "--tol=0.01", "--listen"])
            .args(more)
            .current_dir(folder)
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let said = BufReader::new(child.stderr.take().unwrap());
        let url = said
            .lines()
            .find_map(|line| line.unwrap().strip_prefix("listening at http://").map(str::to_owned));
        let url = url.expect("it says where it listens");
        let (address, token) = url.split_once("/?token=").unwrap();
        assert!(address.starts_with("127.0.0.1:"), "{address}");
        Self { child, address: address.into(), token: token.into() }
    }

    /// The status, and the body.
    fn send(&self, method: &str, target: &str, token: &str, body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let (host, length) = (&self.address, body.len());
        write!(
            stream,
            "{method} {target} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let status = text.split(' ').nth(1).unwrap().parse().unwrap();
        (status, text.split_once("\r\n\r\n").unwrap().1.to_owned())
    }

    fn post(&self, lines: &str) -> Vec<Value> {
        let (status, body) = self.send("POST", "/", &self.token, lines);
        assert_eq!(status, 200, "{body}");
        body.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn train(folder: &Path) {
    let done = Command::new(env!("CARGO_BIN_EXE_lpgnn"))
        .args(["train", "karate", "--epochs=20", "--out=model", "--quiet"])
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

const EDGE: &str = r#"{"op": "add-edge", "source": 9, "target": 17, "undirected": true}"#;

#[test]
fn events_and_queries_come_over_http() {
    let place = tempfile::tempdir().unwrap();
    train(place.path());
    let live = Listening::start(place.path(), &[]);
    let answers = live.post(&format!("{EDGE}\nnonsense\n\npredict node 9\n"));
    let last = answers.last().unwrap();
    assert_eq!(last["query"], "predict");
    assert!(last["class"].is_string() && last["bound"].as_f64().unwrap() > 0.0, "{last}");
    let error = answers.iter().find(|answer| answer["error"].is_string()).unwrap();
    assert_eq!(error["event"], 2);
    assert!(answers.iter().any(|answer| answer["event"] == 1 && answer["touched"].is_u64()));
    let (status, stats) = live.send("GET", "/stats", &live.token, "");
    let stats: Value = serde_json::from_str(&stats).unwrap();
    assert_eq!((status, &stats["events"], &stats["edges"]), (200, &2.into(), &158.into()));
}

#[test]
fn a_query_that_cannot_be_understood_is_no_event() {
    let place = tempfile::tempdir().unwrap();
    train(place.path());
    let live = Listening::start(place.path(), &[]);
    let answers =
        live.post("predict node\n{\"op\": \"explain\", \"nod\": 3}\nstats please\nstats\n");
    let errors: Vec<&str> = answers.iter().filter_map(|answer| answer["error"].as_str()).collect();
    assert_eq!(
        errors[0],
        "the query is “predict node”, but `predict node NAME` or `predict graph NAME` is expected"
    );
    assert!(errors[1].contains("unknown field `nod`"), "{}", errors[1]);
    assert_eq!((errors.len(), &answers[1]["query"]), (3, &"explain".into()));
    assert_eq!(answers[3]["events"], 0);
    let unknown = r#"{"op": "update-node", "node": 3, "features": {"member": "nobody"}}"#;
    let error = live.post(unknown)[0]["error"].as_str().unwrap().to_owned();
    assert!(error.starts_with("the node has member “nobody”, which is none of"), "{error}");
}

#[test]
fn whoever_does_not_know_the_token_changes_nothing() {
    let place = tempfile::tempdir().unwrap();
    train(place.path());
    let live = Listening::start(place.path(), &[]);
    assert_eq!(live.send("POST", "/", "0000", EDGE).0, 403);
    assert_eq!(live.send("GET", "/", &live.token, "").0, 405);
    assert_eq!(live.send("GET", "/elsewhere", &live.token, "").0, 404);
    assert_eq!(live.post("stats")[0]["events"], 0);
}

#[test]
fn what_was_acknowledged_over_http_survives_a_kill() {
    let place = tempfile::tempdir().unwrap();
    train(place.path());
    let journal = ["--journal=journal"];
    let live = Listening::start(place.path(), &journal);
    live.post(EDGE);
    let digest = live.post("digest")[0].clone();
    drop(live);
    let again = Listening::start(place.path(), &journal);
    assert_eq!(again.post("digest")[0], digest);
}
