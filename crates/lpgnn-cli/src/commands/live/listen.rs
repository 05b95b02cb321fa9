//! Events over HTTP instead of standard input.

use std::net::SocketAddr;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex};

use anyhow::bail;

use super::session::Session;
use super::{MOST_LINE, process};
use crate::console::Console;
use crate::http::{Answer, Request, Server, reachable};

/// Serves until an event cannot be written down, or the process is ended.
///
/// A `POST` of lines to `/` is answered with lines, as on standard input; `GET /stats` is the query of this name. Requests are
/// answered one after the other, in the order in which they come.
pub(super) fn listen(
    address: SocketAddr,
    session: Session,
    batch: usize,
    console: &Console,
) -> anyhow::Result<()> {
    if console.is_quiet() {
        bail!(lpgnn::Error::Option {
            option: "--listen",
            value: address.to_string(),
            expected: "without --quiet, which would hide the token required by requests".into(),
        });
    }
    let (failed, failure) = sync_channel(1);
    let session = Arc::new(Mutex::new(session));
    let routes = move |request: &Request| answer(&session, request, batch, &failed);
    let most_body = usize::try_from(MOST_LINE).unwrap_or(usize::MAX);
    let server = Server::start(address, most_body, Arc::new(routes))?;
    let url = format!("http://{}/?token={}", reachable(server.address()), server.token());
    console.say(format_args!("listening at {url}"));
    if !address.ip().is_loopback() {
        console.say(
            "warning: other machines can reach this graph; it is not encrypted, and anyone who sees its address \
             can read and change it",
        );
    }
    // The routes hold the sender for as long as the server is there.
    Err(failure.recv()?)
}

fn answer(
    session: &Mutex<Session>,
    request: &Request,
    batch: usize,
    failed: &SyncSender<anyhow::Error>,
) -> Answer {
    let lines = match (&request.method[..], &request.path[..]) {
        ("POST", "/") => match std::str::from_utf8(&request.body) {
            Ok(lines) => lines,
            Err(_) => return Answer::text(400, "the body is not UTF-8"),
        },
        ("GET", "/stats") => "stats",
        (_, "/" | "/stats") => return Answer::text(405, "this method is not allowed here"),
        _ => return Answer::text(404, "there is no such page: POST events to /, or GET /stats"),
    };
    // Another request may have failed halfway: then nothing is known of the graph any more.
    let Ok(mut session) = session.lock() else {
        return Answer::text(503, "the graph is no longer served");
    };
    let mut answers = vec![];
    match process(&mut session, lines.lines(), batch, &mut answers) {
        Ok(()) => Answer::Whole(200, "application/x-ndjson", answers),
        Err(error) => {
            let answer = Answer::text(500, &format!("{error:#}"));
            // The first one ends the program.
            let _ = failed.try_send(error);
            answer
        }
    }
}
