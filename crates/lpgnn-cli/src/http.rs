//! An HTTP/1.1 server for a few routes on this machine: a thread per connection, one request each.
//!
//! Before a request is answered it has to show that it does not come from a page somewhere else: its `Host` is an
//! address of this machine and no name that somebody else's DNS server may point here, its `Origin`, if it has one, is
//! that same host, and it knows the token.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;

/// How long a client may take to send its request, or to take any more of the answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Largest request line and headers.
const MOST_HEAD: usize = 16 << 10;
/// Connections at a time; a browser opens six.
const MOST_CONNECTIONS: usize = 64;

/// A server that answers until it is dropped.
pub(crate) struct Server {
    address: SocketAddr,
    token: String,
    stopped: Arc<AtomicBool>,
}

/// A request that has passed all checks.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// Without the query.
    pub(crate) path: String,
    query: String,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

/// What writes server-sent events.
pub(crate) type SendEvents = Box<dyn FnOnce(&mut EventStream) -> io::Result<()> + Send>;

/// What a request is answered with.
pub(crate) enum Answer {
    /// A status, a content type and a body.
    Whole(u16, &'static str, Vec<u8>),
    /// Server-sent events, until the function returns.
    Events(SendEvents),
}

impl Answer {
    /// A line of text.
    pub(crate) fn text(status: u16, text: &str) -> Self {
        Self::Whole(status, "text/plain; charset=utf-8", format!("{text}\n").into_bytes())
    }
}

/// Routes: what a request is answered with.
pub(crate) type Routes = Arc<dyn Fn(&Request) -> Answer + Send + Sync>;

/// What requests are checked against.
#[derive(Clone)]
struct Gate {
    address: SocketAddr,
    token: String,
    /// Largest body.
    most_body: usize,
}

impl Server {
    /// Listens at an address, whose port may be 0 for any free one, for bodies up to a size.
    ///
    /// # Errors
    ///
    /// Those of the operating system.
    pub(crate) fn start(
        address: SocketAddr,
        most_body: usize,
        routes: Routes,
    ) -> anyhow::Result<Self> {
        let cannot = || format!("cannot listen at {address}");
        let listener = TcpListener::bind(address).with_context(cannot)?;
        let address = listener.local_addr().with_context(cannot)?;
        let (token, stopped) = (new_token()?, Arc::new(AtomicBool::new(false)));
        let (gate, stop) = (Gate { address, token: token.clone(), most_body }, stopped.clone());
        let accept = move || accept(&listener, &gate, &stop, &routes);
        thread::Builder::new().name("http".into()).spawn(accept).with_context(cannot)?;
        Ok(Self { address, token, stopped })
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// What a request has to know, as `?token=` or as `Authorization: Bearer`.
    pub(crate) fn token(&self) -> &str {
        &self.token
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
        // It waits for a connection. If it cannot be told, it ends with the process.
        let _ = TcpStream::connect_timeout(&reachable(self.address), PATIENCE);
    }
}

/// The address at which this machine reaches a server of its own.
pub(crate) fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// 128 random bits, in hexadecimal.
fn new_token() -> anyhow::Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).context("cannot get random numbers for a token")?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}

fn accept(listener: &TcpListener, gate: &Gate, stopped: &AtomicBool, routes: &Routes) {
    let open = Arc::new(AtomicUsize::new(0));
    for stream in listener.incoming() {
        if stopped.load(Ordering::Relaxed) {
            return;
        }
        // One that is gone before it was accepted is none.
        let Ok(stream) = stream else { continue };
        if open.fetch_add(1, Ordering::Relaxed) >= MOST_CONNECTIONS {
            open.fetch_sub(1, Ordering::Relaxed);
            continue;
        }
        let (gate, routes, counted) = (gate.clone(), routes.clone(), open.clone());
        let serve = move || {
            // A client that goes away while it is answered is no problem of ours.
            let _ = serve(stream, &gate, &routes);
            counted.fetch_sub(1, Ordering::Relaxed);
        };
        if thread::Builder::new().name("http-client".into()).spawn(serve).is_err() {
            open.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

fn serve(mut stream: TcpStream, gate: &Gate, routes: &Routes) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    match read(&mut stream, gate)? {
        Ok(request) => respond(&mut stream, routes(&request)),
        Err((status, problem)) => {
            respond(&mut stream, Answer::text(status, problem))?;
            drain(stream)
        }
    }
}

/// Reads some of what a refused client still sends: otherwise it may not see the answer.
fn drain(mut stream: TcpStream) -> io::Result<()> {
    stream.shutdown(Shutdown::Write)?;
    let (begun, mut part, mut rest) = (Instant::now(), [0; 4096], MOST_HEAD);
    while rest > 0 && begun.elapsed() < PATIENCE {
        match stream.read(&mut part)? {
            0 => break,
            count => rest = rest.saturating_sub(count),
        }
    }
    Ok(())
}

impl Gate {
    /// Why a request is refused.
    fn refusal(&self, request: &Request) -> Option<&'static str> {
        let host = request.header("host").unwrap_or_default();
        if !self.is_ours(host) {
            return Some("the host of the request is not an address of this server");
        }
        let foreign = |origin: &str| {
            origin.strip_prefix("http://").is_none_or(|host_of| !host_of.eq_ignore_ascii_case(host))
        };
        if request.header("origin").is_some_and(foreign) {
            return Some("the request comes from a page of another origin");
        }
        let given = request.query("token").or_else(|| {
            request.header("authorization").and_then(|value| value.strip_prefix("Bearer "))
        });
        (!given.is_some_and(|given| same(given, &self.token)))
            .then_some("the token is missing or wrong: open the address that the program printed")
    }

    /// Whether a `Host` names an address that this server listens at: no name but localhost, which no DNS
    /// server is asked for.
    fn is_ours(&self, host: &str) -> bool {
        let listens = self.address.ip();
        let loopback = listens.is_loopback() || listens.is_unspecified();
        if let Some(port) = host.strip_prefix("localhost") {
            let port = port.strip_prefix(':').and_then(|port| port.parse().ok()).unwrap_or(80);
            return loopback && port == self.address.port();
        }
        let with_port = host.parse::<SocketAddr>().ok();
        let without = || Some(SocketAddr::new(host.trim_matches(['[', ']']).parse().ok()?, 80));
        with_port.or_else(without).is_some_and(|named| {
            named.port() == self.address.port()
                && (named.ip() == listens
                    || listens.is_unspecified()
                    || (listens.is_loopback() && named.ip().is_loopback()))
        })
    }
}

/// In a time that does not tell how much of it is right.
fn same(given: &str, token: &str) -> bool {
    let (given, token) = (given.as_bytes(), token.as_bytes());
    let differ = given.iter().zip(token).fold(0, |all, (a, b)| all | (a ^ b));
    given.len() == token.len() && differ == 0
}

impl Request {
    /// A header; of several of the same name, the first.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| &value[..])
    }

    /// A value in the query, as it was sent.
    pub(crate) fn query(&self, name: &str) -> Option<&str> {
        let pairs = self.query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.into_iter().find(|(key, _)| *key == name).map(|(_, value)| value)
    }

    fn parse(head: &str) -> Option<Self> {
        let mut lines = head.split("\r\n");
        let mut words = lines.next()?.split(' ');
        let (method, target) = (words.next()?.to_owned(), words.next()?);
        words.next().filter(|version| version.starts_with("HTTP/1."))?;
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let headers = lines
            .filter(|line| !line.is_empty())
            .map(|line| {
                let (name, value) = line.split_once(':')?;
                Some((name.to_owned(), value.trim().to_owned()))
            })
            .collect::<Option<_>>()?;
        let (path, query) = (path.to_owned(), query.to_owned());
        path.starts_with('/').then_some(Self { method, path, query, headers, body: vec![] })
    }
}

/// A request, or the status and the sentence it is refused with.
type Parsed = Result<Request, (u16, &'static str)>;

/// Reads the head of a request, and its body only if the gate lets it in.
fn read(stream: &mut TcpStream, gate: &Gate) -> io::Result<Parsed> {
    let (begun, mut bytes) = (Instant::now(), Vec::with_capacity(1 << 10));
    let end = loop {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
        if end.unwrap_or(bytes.len()) > MOST_HEAD {
            return Ok(Err((431, "the headers are too long")));
        }
        if let Some(end) = end {
            break end;
        }
        more(stream, &mut bytes, begun)?;
    };
    let head = std::str::from_utf8(&bytes[..end]).ok().and_then(Request::parse);
    let Some(mut request) = head else { return Ok(Err((400, "this is not an HTTP/1.1 request"))) };
    if let Some(problem) = gate.refusal(&request) {
        return Ok(Err((403, problem)));
    }
    if request.header("transfer-encoding").is_some() {
        return Ok(Err((411, "a body needs a Content-Length")));
    }
    let length = match request.header("content-length").map(str::parse::<usize>) {
        None => 0,
        Some(Ok(length)) if length <= gate.most_body => length,
        Some(Ok(_)) => return Ok(Err((413, "the body is too long"))),
        Some(Err(_)) => return Ok(Err((400, "Content-Length is not a number"))),
    };
    if request.header("expect").is_some_and(|what| what.eq_ignore_ascii_case("100-continue")) {
        stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
    }
    let mut body = bytes.split_off(end + 4);
    while body.len() < length {
        more(stream, &mut body, begun)?;
    }
    body.truncate(length);
    request.body = body;
    Ok(Ok(request))
}

/// Reads what has come, unless the request takes too long.
fn more(stream: &mut TcpStream, bytes: &mut Vec<u8>, begun: Instant) -> io::Result<()> {
    let mut part = [0; 4096];
    let count = stream.read(&mut part)?;
    if count == 0 || begun.elapsed() > PATIENCE {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    bytes.extend_from_slice(&part[..count]);
    Ok(())
}

fn respond(stream: &mut TcpStream, answer: Answer) -> io::Result<()> {
    // The address has a token in it, which no other server is told.
    let head = |status: u16, kind: &str| {
        format!(
            "HTTP/1.1 {status} {}\r\nContent-Type: {kind}\r\nConnection: close\r\nCache-Control: no-store\r\n\
             Referrer-Policy: no-referrer\r\nX-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY\r\n",
            reason(status)
        )
    };
    match answer {
        Answer::Whole(status, kind, body) => {
            let head = format!("{}Content-Length: {}\r\n\r\n", head(status, kind), body.len());
            stream.write_all(head.as_bytes())?;
            stream.write_all(&body)?;
            stream.flush()
        }
        Answer::Events(send) => {
            stream.write_all(format!("{}\r\n", head(200, "text/event-stream")).as_bytes())?;
            send(&mut EventStream(stream.try_clone()?))
        }
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        202 => "Accepted",
        204 => "No Content",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        409 => "Conflict",
        411 => "Length Required",
        413 => "Content Too Large",
        422 => "Unprocessable Content",
        431 => "Request Header Fields Too Large",
        503 => "Service Unavailable",
        _ => "Internal Server Error",
    }
}

/// A connection that takes server-sent events.
pub(crate) struct EventStream(TcpStream);

impl EventStream {
    /// Sends an event, whose data are one line.
    ///
    /// # Errors
    ///
    /// When the client is gone, or has taken nothing for a while.
    pub(crate) fn send(&mut self, event: &str, data: &str) -> io::Result<()> {
        debug_assert!(!data.contains(['\n', '\r']), "JSON without line breaks is expected");
        self.0.write_all(format!("event: {event}\ndata: {data}\n\n").as_bytes())
    }

    /// Finds out whether the client is still there.
    ///
    /// # Errors
    ///
    /// As for [`send`](Self::send).
    pub(crate) fn ping(&mut self) -> io::Result<()> {
        self.0.write_all(b":\n\n")
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use super::*;

    fn server(address: &str) -> Server {
        let routes: Routes = Arc::new(|request| match &request.path[..] {
            "/" => Answer::text(200, "here"),
            "/echo" => Answer::Whole(200, "text/plain", request.body.clone()),
            _ => Answer::text(404, "nothing"),
        });
        Server::start(address.parse().unwrap(), 100, routes).unwrap()
    }

    /// The status and the whole answer to a request.
    fn ask(server: &Server, request: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        (text.split(' ').nth(1).unwrap().parse().unwrap(), text)
    }

    fn get(server: &Server, target: &str, host: &str, more: &str) -> u16 {
        ask(server, &format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n")).0
    }

    #[test]
    fn only_who_knows_the_token_is_answered() {
        let server = server("127.0.0.1:0");
        let (host, token) = (server.address().to_string(), server.token());
        assert_eq!(token.len(), 32);
        assert_eq!(get(&server, &format!("/?token={token}"), &host, ""), 200);
        let bearer = format!("Authorization: Bearer {token}\r\n");
        assert_eq!(get(&server, "/", &host, &bearer), 200);
        for target in ["/", "/?token=", "/?token=0", &format!("/?token={token}0"), "/?Token=x"] {
            assert_eq!(get(&server, target, &host, ""), 403, "{target}");
        }
        assert_eq!(get(&server, &format!("/other?token={token}"), &host, ""), 404);
    }

    #[test]
    fn names_that_a_dns_server_may_point_here_are_refused() {
        let server = server("127.0.0.1:0");
        let (port, token) = (server.address().port(), server.token());
        let target = format!("/?token={token}");
        for host in ["127.0.0.1", "localhost", "[::1]"] {
            assert_eq!(get(&server, &target, &format!("{host}:{port}"), ""), 200, "{host}");
            assert_eq!(get(&server, &target, host, ""), 403, "{host} without its port");
        }
        for host in ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "10.0.0.1"]
        {
            assert_eq!(get(&server, &target, &format!("{host}:{port}"), ""), 403, "{host}");
        }
        // A stranger is refused before its body is waited for.
        let foreign = "POST / HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 90\r\n\r\n";
        assert_eq!(ask(&server, foreign).0, 403);
        let without = format!("GET {target} HTTP/1.1\r\n\r\n");
        assert_eq!(ask(&server, &without).0, 403);
    }

    #[test]
    fn pages_of_other_origins_are_refused() {
        let server = server("127.0.0.1:0");
        let (host, target) = (server.address().to_string(), format!("/?token={}", server.token()));
        let with = |origin: &str| get(&server, &target, &host, &format!("Origin: {origin}\r\n"));
        assert_eq!(with(&format!("http://{host}")), 200);
        for origin in
            ["http://evil.example", &format!("https://{host}"), "null", "http://127.0.0.1:1"]
        {
            assert_eq!(with(origin), 403, "{origin}");
        }
    }

    #[test]
    fn damaged_and_oversized_requests_get_a_status() {
        let server = server("127.0.0.1:0");
        let (host, token) = (server.address().to_string(), server.token());
        assert_eq!(ask(&server, "nonsense\r\n\r\n").0, 400);
        assert_eq!(ask(&server, "GET / HTTP/1.1\r\nno colon\r\n\r\n").0, 400);
        assert_eq!(ask(&server, "GET nowhere HTTP/1.1\r\nHost: x\r\n\r\n").0, 400);
        let post = |more: &str, body: &str| {
            ask(
                &server,
                &format!("POST /echo?token={token} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n{body}"),
            )
        };
        assert_eq!(post("Content-Length: 101\r\n", "").0, 413);
        assert_eq!(post("Content-Length: many\r\n", "").0, 400);
        assert_eq!(post("Transfer-Encoding: chunked\r\n", "").0, 411);
        let (status, text) = post("Content-Length: 5\r\nExpect: 100-continue\r\n", "hello");
        assert_eq!(status, 100, "{text}");
        assert!(text.contains("HTTP/1.1 200 OK"), "{text}");
        let (status, text) = post("Content-Length: 5\r\n", "hello");
        assert_eq!(status, 200);
        assert!(text.ends_with("\r\n\r\nhello"), "{text}");
        let long = format!("GET / HTTP/1.1\r\nHost: {}\r\n\r\n", "x".repeat(MOST_HEAD));
        assert_eq!(ask(&server, &long).0, 431);
    }
}
