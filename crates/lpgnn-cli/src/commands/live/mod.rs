//! Events in, changed predictions out, a JSON object per line.

mod journal;
mod listen;
mod request;
mod session;

use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread;

use anyhow::Context;
use clap::Args;
use lpgnn::data::Format;
use lpgnn::live::{LiveData, LiveOptions};

use super::data::read_format;
use super::model::read_model;
use super::settings::load;
use super::views::address;
use crate::console::Console;
use crate::count::{count, positive};
use journal::has_snapshot;
use request::Request;
use session::Session;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// A run folder or a model file.
    #[arg(value_name = "MODEL")]
    model: PathBuf,

    /// The initial graphs: a file or folder, or the name of a built-in or downloaded data set.
    #[arg(value_name = "DATA")]
    data: String,

    /// The format of DATA [default: recognised by content].
    #[arg(long, value_parser = read_format())]
    format: Option<Format>,

    /// Largest distance of any state from its fixed point.
    #[arg(long, default_value_t = 1e-3, allow_negative_numbers = true)]
    tol: f64,

    /// Tighten the tolerance, down to this value, where the predicted class could still change [default: none].
    #[arg(long, value_name = "TOL", allow_negative_numbers = true)]
    final_tol: Option<f64>,

    /// Largest Lipschitz bound of the transition that events may cause [default: halfway between that of DATA and 1,
    /// at least 0.95].
    #[arg(long, value_name = "L")]
    lipschitz: Option<f64>,

    /// Maximum number of pending events per batch.
    #[arg(long, value_name = "N", default_value = "1", value_parser = positive)]
    batch: NonZeroUsize,

    /// Maximum number of queued lines; reading pauses while the queue is full.
    #[arg(long, value_name = "N", default_value = "1024", value_parser = count::<MOST_QUEUED>)]
    queue: NonZeroUsize,

    /// Receive events over HTTP, at ADDRESS or at a port of this machine, instead of from standard input.
    #[arg(
        long, value_name = "ADDRESS", num_args = 0..=1, require_equals = true,
        default_missing_value = "127.0.0.1:0", value_parser = address, conflicts_with = "queue"
    )]
    listen: Option<SocketAddr>,

    /// Journal folder, with which acknowledged events survive a crash; if it holds a graph, that graph continues.
    #[arg(long, value_name = "DIR")]
    journal: Option<PathBuf>,

    /// Number of events after which a snapshot of the graph replaces the journal.
    #[arg(long, value_name = "N", default_value = "10000", value_parser = positive, requires = "journal")]
    snapshot_every: NonZeroUsize,
}

/// Lines that may wait: each takes memory before it is read.
const MOST_QUEUED: usize = 1 << 20;

pub(super) fn run(arguments: &Arguments, console: &Console) -> anyhow::Result<()> {
    let model = read_model(&arguments.model)?;
    let options = LiveOptions {
        tol: arguments.tol,
        final_tol: arguments.final_tol,
        lipschitz: arguments.lipschitz,
        ..LiveOptions::default()
    };
    let start = || -> anyhow::Result<LiveData> {
        let (_, dataset) = load(&arguments.data, arguments.format)?;
        let unfit = || format!("{} cannot be kept live", dataset.name());
        LiveData::new(&model, &dataset, &options).with_context(unfit)
    };
    let mut session = match &arguments.journal {
        None => Session::new(start()?, &model),
        Some(folder) => {
            let every = arguments.snapshot_every.get() as u64;
            let kept = has_snapshot(folder);
            let session = Session::recover(folder, every, &model, &options, start)?;
            if kept {
                console.say(format_args!(
                    "the graph is read from {}; {} is not read",
                    folder.display(),
                    arguments.data
                ));
            }
            session
        }
    };
    console.say(format_args!(
        "live: nodes {}, edges {}, graphs {}; states within {:.1e} of their fixed point; {} events so far",
        session.data().graph().nodes(),
        session.data().graph().edges(),
        session.data().graph().graphs(),
        session.data().graph().bound(),
        session.data().events(),
    ));
    if let Some(address) = arguments.listen {
        return listen::listen(address, session, arguments.batch.get(), console);
    }
    let (sender, receiver) = sync_channel(arguments.queue.get());
    thread::Builder::new().name("events".into()).spawn(move || read(&sender))?;
    serve(&mut session, &receiver, arguments.batch.get())
}

/// Largest line.
const MOST_LINE: u64 = 1 << 24;

/// A line, or why there is none.
type Line = io::Result<String>;

/// Reads lines as fast as they are taken.
fn read(lines: &SyncSender<Line>) {
    let mut input = BufReader::new(io::stdin());
    loop {
        let line = match read_line(&mut input) {
            Ok(None) => return,
            Ok(Some(line)) => Ok(line),
            Err(error) => Err(error),
        };
        let failed = line.is_err();
        if lines.send(line).is_err() || failed {
            return;
        }
    }
}

/// What stands for lines that are no text, or too long to be looked at: no event, which is what the answer and the journal say.
const NO_TEXT: &str = "a line that is not UTF-8";
const TOO_LONG: &str = "a line of more than 16 MB";

/// The next line; none at the end.
fn read_line(input: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut line = vec![];
    if input.by_ref().take(MOST_LINE).read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    if line.len() as u64 == MOST_LINE && !line.ends_with(b"\n") {
        // Its rest is not another line.
        let mut rest = vec![];
        while input.by_ref().take(1 << 16).read_until(b'\n', &mut rest)? > 0
            && !rest.ends_with(b"\n")
        {
            rest.clear();
        }
        return Ok(Some(TOO_LONG.to_owned()));
    }
    Ok(Some(
        String::from_utf8(line).map_or_else(|_| NO_TEXT.to_owned(), |line| line.trim().to_owned()),
    ))
}

/// Applies the events among some lines, up to a batch of them together, and answers the queries.
fn process<'a>(
    session: &mut Session,
    lines: impl Iterator<Item = &'a str>,
    batch: usize,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    let mut events: Vec<String> = vec![];
    for line in lines.map(str::trim).filter(|line| !line.is_empty()) {
        let request = Request::of(line);
        let is_query = !matches!(request, Request::Event);
        if !events.is_empty() && (is_query || events.len() >= batch) {
            session.apply(&events, out)?;
            events.clear();
        }
        match request {
            Request::Query(query) => session.answer(&query, out)?,
            Request::Unclear(query, error) => Session::refuse(query, &error, out)?,
            Request::Event => events.push(line.to_owned()),
        }
    }
    if events.is_empty() { Ok(()) } else { session.apply(&events, out) }
}

/// Takes what waits, up to a batch of events or a query, and answers it; waits only when there is nothing to do.
fn serve(session: &mut Session, lines: &Receiver<Line>, batch: usize) -> anyhow::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    let mut events: Vec<String> = vec![];
    loop {
        let mut next = lines.try_recv();
        if events.is_empty() && matches!(next, Err(TryRecvError::Empty)) {
            out.flush()?;
            next = lines.recv().map_err(|_| TryRecvError::Disconnected);
        }
        let line = next.ok().transpose().context("cannot read events")?;
        let at_end = line.is_none();
        let mut query = None;
        match line.filter(|line| !line.is_empty()).map(|line| (Request::of(&line), line)) {
            Some((Request::Event, line)) => events.push(line),
            Some((request, _)) => query = Some(request),
            None if !at_end => continue,
            None => {}
        }
        if events.len() >= batch || at_end || query.is_some() {
            if !events.is_empty() {
                session.apply(&events, &mut out)?;
                events.clear();
            } else if at_end {
                break;
            }
        }
        match query {
            Some(Request::Query(query)) => session.answer(&query, &mut out)?,
            Some(Request::Unclear(query, error)) => Session::refuse(query, &error, &mut out)?,
            Some(Request::Event) | None => {}
        }
    }
    out.flush()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_whole_text_or_none() {
        let mut input = b" {} \ncaf\xe9\n".to_vec();
        input.extend(vec![b' '; usize::try_from(MOST_LINE).unwrap() + 70_000]);
        input.extend(b"{\"op\": \"stats\"}\nlast");
        let mut input = BufReader::new(&input[..]);
        let mut next = || read_line(&mut input).unwrap();
        assert_eq!(next().as_deref(), Some("{}"));
        assert_eq!(next().as_deref(), Some(NO_TEXT));
        assert_eq!(next().as_deref(), Some(TOO_LONG));
        assert_eq!(next().as_deref(), Some("last"));
        assert_eq!(next(), None);
    }
}
