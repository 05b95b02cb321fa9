//! `lpgnn data fetch` against a server on loopback.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::io::{BufRead, BufReader, Cursor, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Answers requests for `/NAME.zip` with a small set, and for `/SLOW.zip` with half of it and then
/// nothing. The address, and a message when half of the slow one is sent.
fn serve() -> (String, mpsc::Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let sender = sender.clone();
            // The other side may hang up whenever it likes.
            thread::spawn(move || reply(stream.unwrap(), &sender).ok());
        }
    });
    (url, receiver)
}

fn reply(mut stream: TcpStream, half_sent: &mpsc::Sender<()>) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let request = lines.next().unwrap()?;
    while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
    let name = request.split(['/', '.']).nth(1).unwrap().to_owned();
    if name == "GONE" {
        return stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
    }
    let file = archive(&name);
    write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", file.len())?;
    if name == "SLOW" {
        stream.write_all(&file[..file.len() / 2])?;
        half_sent.send(()).unwrap();
        thread::sleep(Duration::from_secs(60));
        return Ok(());
    }
    stream.write_all(&file)
}

fn archive(name: &str) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(Cursor::new(vec![]));
    for (suffix, text) in [
        ("A", "1, 2\n2, 1\n3, 4\n4, 3\n"),
        ("graph_indicator", "1\n1\n2\n2\n"),
        ("graph_features", "1\n-1\n"),
    ] {
        let options = zip::write::SimpleFileOptions::default();
        zip.start_file(format!("{name}/{name}_{suffix}.txt"), options).unwrap();
        zip.write_all(text.as_bytes()).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

fn lpgnn(cache: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lpgnn"));
    command.args(arguments).env("LPGNN_CACHE", cache).env_remove("LPGNN_MIRROR");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn text(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (text(&output.stdout), text(&output.stderr))
}

#[test]
fn what_is_fetched_is_here_and_can_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("new/cache");
    let (url, _half) = serve();
    let output =
        lpgnn(&cache, &["data", "fetch", "ONE", "TWO", "--mirror", &url]).output().unwrap();
    let (stdout, stderr) = text(&output);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    let paths = [cache.join("ONE.zip"), cache.join("TWO.zip")];
    assert_eq!(stdout, format!("{}\n{}\n", paths[0].display(), paths[1].display()));
    assert!(stderr.contains(&format!("ONE: downloading {url}/ONE.zip\n")), "{stderr}");
    assert!(stderr.contains(", sha256 "), "{stderr}");

    let (stdout, _) = text(&lpgnn(&cache, &["data", "list"]).output().unwrap());
    assert!(stdout.contains(&format!("  TWO              {}\n", paths[1].display())), "{stdout}");
    let (stdout, _) = text(&lpgnn(&cache, &["data", "info", "ONE"]).output().unwrap());
    assert!(stdout.starts_with("ONE (tu)\n\ngraphs                 2\n"), "{stdout}");
}

#[test]
fn the_mirror_may_be_set_by_the_environment_and_silence_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let (url, _half) = serve();
    let mut command = lpgnn(folder.path(), &["--quiet", "data", "fetch", "ONE", "--json"]);
    let output = command.env("LPGNN_MIRROR", url).output().unwrap();
    let (stdout, stderr) = text(&output);
    assert_eq!((output.status.code(), stderr.as_str()), (Some(0), ""));
    let fetched: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(fetched[0]["name"], "ONE");
    assert_eq!(fetched[0]["bytes"], archive("ONE").len());
    assert_eq!(fetched[0]["path"], folder.path().join("ONE.zip").to_str().unwrap());
}

#[test]
fn one_failure_does_not_keep_the_others_away() {
    let folder = tempfile::tempdir().unwrap();
    let (url, _half) = serve();
    let arguments = ["data", "fetch", "GONE", "ONE", "--mirror", &url];
    let output = lpgnn(folder.path(), &arguments).output().unwrap();
    let (stdout, stderr) = text(&output);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(stdout, format!("{}\n", folder.path().join("ONE.zip").display()));
    assert!(stderr.contains("error: cannot fetch "), "{stderr}");
    assert!(stderr.contains("404 Not Found"), "{stderr}");
    assert!(stderr.contains(&folder.path().join("GONE.zip").display().to_string()), "{stderr}");
}

#[test]
fn an_interrupted_download_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let (url, half) = serve();
    let arguments = ["data", "fetch", "SLOW", "--mirror", &url];
    let mut child = lpgnn(folder.path(), &arguments).spawn().unwrap();
    half.recv_timeout(Duration::from_secs(20)).unwrap();
    thread::sleep(Duration::from_millis(100));
    // As hard as can be: the program has no chance to clean up.
    child.kill().unwrap();
    child.wait().unwrap();
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_silent_server_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let (url, _half) = serve();
    let arguments =
        ["data", "fetch", "SLOW", "--mirror", &url, "--timeout", "0.2", "--attempts", "1"];
    let output = lpgnn(folder.path(), &arguments).output().unwrap();
    let (stdout, stderr) = text(&output);
    assert_eq!((output.status.code(), stdout.as_str()), (Some(1), ""));
    assert!(stderr.contains("the server is silent after "), "{stderr}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn whoever_has_read_enough_may_hang_up() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = lpgnn(folder.path(), &["data", "list", "--json"]).spawn().unwrap();
    drop(child.stdout.take());
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!((child.wait().unwrap().code(), said.as_str()), (Some(0), ""));
}
