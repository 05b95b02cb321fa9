//! Fetching, against a server on loopback that misbehaves on purpose.
#![cfg(feature = "fetch")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::io::{BufRead, BufReader, Cursor, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::thread;
use std::time::Duration;

use lpgnn::Error;
use lpgnn::data::{Cache, FetchEvent, FetchOptions, Fetched, ReadOptions, fetch, resolve};

/// What the server does with a connection.
enum Answer {
    Status(&'static str),
    File(Vec<u8>),
    /// Says how long the file is and sends only so many bytes of it.
    Truncated(Vec<u8>, usize),
    /// Sends the same and then nothing, without an end.
    Stalled(Vec<u8>, usize),
    /// Sends a byte now and then, so that it is never silent for long.
    Dripping(Vec<u8>),
    /// Sends bytes for as long as somebody takes them, and does not say how many.
    Endless,
    Redirect(String),
}

/// Gives one answer to each connection, and then accepts no more. The address of its folder.
fn serve(answers: Vec<Answer>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/sets", listener.local_addr().unwrap());
    thread::spawn(move || {
        for answer in answers {
            let (stream, _) = listener.accept().unwrap();
            // The other side may hang up whenever it has seen enough.
            thread::spawn(move || reply(stream, answer).ok());
        }
    });
    url
}

fn reply(mut stream: TcpStream, answer: Answer) -> std::io::Result<()> {
    let mut request = BufReader::new(stream.try_clone()?).lines();
    while request.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
    let head = |length: usize| {
        format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n")
    };
    match answer {
        Answer::Status(status) => {
            write!(stream, "HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        }
        Answer::File(file) => {
            stream.write_all(head(file.len()).as_bytes())?;
            stream.write_all(&file)
        }
        Answer::Truncated(file, bytes) => {
            stream.write_all(head(file.len()).as_bytes())?;
            stream.write_all(&file[..bytes])
        }
        Answer::Stalled(file, bytes) => {
            stream.write_all(head(file.len()).as_bytes())?;
            stream.write_all(&file[..bytes])?;
            stream.flush()?;
            thread::sleep(Duration::from_secs(60));
            Ok(())
        }
        Answer::Dripping(file) => {
            stream.write_all(head(file.len()).as_bytes())?;
            for byte in file {
                stream.write_all(&[byte])?;
                thread::sleep(Duration::from_millis(100));
            }
            Ok(())
        }
        Answer::Endless => {
            stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")?;
            loop {
                stream.write_all(&[0; 4096])?;
            }
        }
        Answer::Redirect(url) => write!(
            stream,
            "HTTP/1.1 302 Found\r\nLocation: {url}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        ),
    }
}

/// Two small graphs, as the collection would publish them under `name`.
fn archive(name: &str) -> Vec<u8> {
    zip_of(&[
        (&format!("{name}/{name}_A.txt"), "1, 2\n2, 1\n3, 4\n4, 3\n"),
        (&format!("{name}/{name}_graph_indicator.txt"), "1\n1\n2\n2\n"),
        (&format!("{name}/{name}_graph_labels.txt"), "1\n-1\n"),
    ])
}

fn zip_of(files: &[(&str, &str)]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(Cursor::new(vec![]));
    for (name, text) in files {
        zip.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
        zip.write_all(text.as_bytes()).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

struct Attempt {
    result: Result<Fetched, Error>,
    retries: Vec<String>,
    folder: tempfile::TempDir,
}

impl Attempt {
    fn at(base_url: String) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = FetchOptions {
            base_url,
            patience: Duration::from_millis(300),
            max_time: Duration::from_secs(5),
            attempts: 3,
            pause: Duration::from_millis(1),
            largest: 1 << 20,
        };
        let mut retries = vec![];
        let result = fetch("TINY", &Cache::at(folder.path()), &options, &mut |event| {
            if let FetchEvent::Retrying { problem, .. } = event {
                retries.push(problem.to_owned());
            }
        });
        Self { result, retries, folder }
    }

    fn of(answers: Vec<Answer>) -> Self {
        Self::at(serve(answers))
    }

    /// The message, with names in place of what differs from run to run.
    fn said(&self) -> String {
        assert!(is_empty(self.folder.path()), "something is left behind");
        let text = self.result.as_ref().unwrap_err().to_string();
        let text = text.replace(&self.folder.path().display().to_string(), "CACHE");
        match (text.find("127.0.0.1:"), text.find("/sets")) {
            (Some(start), Some(end)) => format!("{}SERVER{}", &text[..start], &text[end..]),
            _ => text,
        }
    }
}

fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).unwrap().next().is_none()
}

const BY_HAND: &str = "a copy from elsewhere can be put at CACHE/TINY.zip";

#[test]
fn what_is_fetched_can_be_read_by_its_name_and_is_not_fetched_again() {
    let file = archive("TINY");
    let size = file.len() as u64;
    let attempt = Attempt::of(vec![Answer::File(file.clone())]);
    let fetched = attempt.result.unwrap();
    assert_eq!((fetched.name.as_str(), fetched.bytes), ("TINY", size));
    assert_eq!(fetched.sha256.len(), 64);
    assert_eq!(fs::read(&fetched.path).unwrap(), file);
    assert_eq!(fs::read_dir(attempt.folder.path()).unwrap().count(), 1);

    let cache = Cache::at(attempt.folder.path());
    let dataset = resolve("TINY", &ReadOptions::default(), &cache).unwrap();
    assert_eq!((dataset.name(), dataset.graphs(), dataset.nodes()), ("TINY", 2, 4));

    let nowhere = FetchOptions { base_url: "http://127.0.0.1:1".into(), ..FetchOptions::default() };
    let again = fetch("TINY", &cache, &nowhere, &mut |event| panic!("{event:?}")).unwrap();
    assert_eq!(again, fetched);
}

#[test]
fn progress_tells_the_bytes_and_their_total() {
    let folder = tempfile::tempdir().unwrap();
    let file = archive("TINY");
    let size = file.len() as u64;
    let base_url = serve(vec![Answer::File(file)]);
    let options = FetchOptions { base_url, ..FetchOptions::default() };
    let mut last = None;
    fetch("TINY", &Cache::at(folder.path()), &options, &mut |event| {
        if let FetchEvent::Received { bytes, total } = event {
            last = Some((bytes, total));
        }
    })
    .unwrap();
    assert_eq!(last, Some((size, Some(size))));
}

#[test]
fn a_redirection_is_followed() {
    let elsewhere = serve(vec![Answer::File(archive("TINY"))]);
    let attempt = Attempt::of(vec![Answer::Redirect(format!("{elsewhere}/there.zip"))]);
    assert!(attempt.result.is_ok(), "{:?}", attempt.result);
}

#[test]
fn a_missing_file_is_not_asked_for_twice() {
    let attempt = Attempt::of(vec![Answer::Status("404 Not Found")]);
    assert_eq!(
        attempt.said(),
        format!(
            "cannot fetch http://SERVER/sets/TINY.zip: the server answers 404 Not Found; {BY_HAND}"
        )
    );
    assert_eq!(attempt.retries, [""; 0]);
}

#[test]
fn a_near_miss_gets_a_suggestion() {
    let folder = tempfile::tempdir().unwrap();
    let base_url = serve(vec![Answer::Status("404 Not Found")]);
    let options = FetchOptions { base_url, ..FetchOptions::default() };
    let error = fetch("Mutag", &Cache::at(folder.path()), &options, &mut |_| {}).unwrap_err();
    assert!(error.to_string().contains("; did you mean MUTAG?"), "{error}");
}

#[test]
fn a_busy_server_is_asked_again() {
    let attempt = Attempt::of(vec![
        Answer::Status("503 Service Unavailable"),
        Answer::Status("429 Too Many Requests"),
        Answer::File(archive("TINY")),
    ]);
    assert!(attempt.result.is_ok(), "{:?}", attempt.result);
    assert_eq!(
        attempt.retries,
        ["the server answers 503 Service Unavailable", "the server answers 429 Too Many Requests"]
    );
}

#[test]
fn a_busy_server_is_left_alone_in_the_end() {
    let busy = || Answer::Status("503 Service Unavailable");
    let attempt = Attempt::of(vec![busy(), busy(), busy()]);
    assert!(attempt.said().contains("the server answers 503 Service Unavailable"));
    assert_eq!(attempt.retries.len(), 2);
}

#[test]
fn a_truncated_file_is_noticed_and_fetched_again() {
    let file = archive("TINY");
    let attempt =
        Attempt::of(vec![Answer::Truncated(file.clone(), 100), Answer::File(file.clone())]);
    assert!(attempt.result.is_ok(), "{:?}", attempt.result);
    assert_eq!(attempt.retries.len(), 1);
    assert!(attempt.retries[0].contains("ended"), "{:?}", attempt.retries);

    let truncated = || Answer::Truncated(file.clone(), 100);
    let attempt = Attempt::of(vec![truncated(), truncated(), truncated()]);
    assert!(attempt.said().contains("after 100"), "{}", attempt.said());
}

#[test]
fn a_silent_server_is_given_up() {
    let file = archive("TINY");
    let stalled = || Answer::Stalled(file.clone(), 50);
    let attempt = Attempt::of(vec![stalled(), stalled(), stalled()]);
    assert_eq!(
        attempt.said(),
        format!(
            "cannot fetch http://SERVER/sets/TINY.zip: the server is silent after 50 bytes; \
             {BY_HAND}"
        )
    );
    assert_eq!(attempt.retries.len(), 2);
}

#[test]
fn a_server_that_is_never_silent_and_never_done_is_given_up() {
    let attempt = Attempt::of(vec![Answer::Dripping(archive("TINY"))]);
    assert_eq!(
        attempt.said(),
        format!("cannot fetch http://SERVER/sets/TINY.zip: it takes more than 5 s; {BY_HAND}")
    );
    assert_eq!(attempt.retries.len(), 0);
}

#[test]
fn without_a_network_the_message_says_what_to_do() {
    // Nobody listens there: the port was free a moment ago.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let attempt = Attempt::at(format!("http://127.0.0.1:{port}/sets"));
    assert_eq!(
        attempt.said(),
        format!("cannot fetch http://SERVER/sets/TINY.zip: the connection was refused; {BY_HAND}")
    );
}

#[test]
fn a_file_without_end_is_cut_off() {
    let attempt = Attempt::of(vec![Answer::Endless]);
    assert!(attempt.said().contains("it has more than 1048576 bytes"), "{}", attempt.said());
    assert_eq!(attempt.retries, [""; 0]);
}

#[test]
fn a_file_that_is_no_data_set_is_not_kept() {
    let page = b"<html>Please log in</html>".to_vec();
    let attempt = Attempt::of(vec![Answer::File(page)]);
    assert!(attempt.said().starts_with("http://SERVER/sets/TINY.zip: "), "{}", attempt.said());

    let attempt = Attempt::of(vec![Answer::File(zip_of(&[("readme.txt", "hello")]))]);
    assert!(attempt.said().contains("contains no TU data set"), "{}", attempt.said());

    let attempt = Attempt::of(vec![Answer::File(zip_of(&[
        ("TINY/TINY_A.txt", "1, 2\n2, 7\n"),
        ("TINY/TINY_graph_indicator.txt", "1\n1\n"),
    ]))]);
    assert!(
        attempt.said().starts_with("http://SERVER/sets/TINY.zip/TINY/TINY_A.txt, line 2: "),
        "{}",
        attempt.said()
    );
}

#[test]
fn a_name_leads_nowhere_else() {
    let cache = Cache::at("never-made");
    for name in ["../TINY", "a/b", "", "a b"] {
        let result = fetch(name, &cache, &FetchOptions::default(), &mut |_| {});
        assert!(matches!(result, Err(Error::Option { option: "name", .. })), "{name}");
    }
    assert!(!Path::new("never-made").exists());
}

#[test]
fn a_cache_that_cannot_be_made_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let cache = Cache::at(file.join("cache"));
    let error = fetch("TINY", &cache, &FetchOptions::default(), &mut |_| {}).unwrap_err();
    assert!(error.to_string().starts_with("cannot create "), "{error}");
}
