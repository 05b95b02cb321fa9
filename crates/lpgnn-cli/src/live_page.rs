//! The page that shows training while it runs.
//!
//! Training puts epochs into a channel, and goes on without them if it is full. A thread collects them into a report, from
//! which every connection takes what it has not sent yet: a browser that is slow or gone delays its own connection and
//! nothing else, and is told everything when it comes back.

use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use std::{io, mem};

use lpgnn::experiment::crossval::FoldRecord;
use lpgnn::experiment::run::{EpochMetrics, Progress, Run, RunObserver};
use lpgnn::experiment::search::RankedTrial;
use lpgnn::experiment::{ExperimentObserver, TrialName, TrialObserver};
use lpgnn::report::{LiveReport, Report, Seen};
use lpgnn::run::RunConfig;
use lpgnn::train::EpochReport;

use crate::http::{Answer, EventStream, Request, Server, reachable};
use crate::interrupt;

/// Messages that wait to be collected; training does not wait for them.
const MOST_WAITING: usize = 4096;
/// How often messages are collected, and sent on.
const INTERVAL: Duration = Duration::from_millis(100);
/// How often a connection is tried that nothing is sent on.
const PING: Duration = Duration::from_secs(5);
/// How long the program waits at the end for browsers to be told.
const FAREWELL: Duration = Duration::from_millis(1500);

/// A page in the browser.
pub(crate) struct LivePage {
    server: Server,
    shared: Arc<Shared>,
    messages: SyncSender<Message>,
    collector: Option<JoinHandle<()>>,
    /// Trainings so far.
    begun: AtomicUsize,
}

/// What training tells.
enum Message {
    Begin {
        id: usize,
        name: String,
        epochs: (usize, usize),
        config: Box<RunConfig>,
    },
    Before(usize, Vec<EpochMetrics>),
    Epoch(usize, Box<EpochMetrics>),
    Done(usize),
    Fold(Box<FoldRecord>),
    Ranked(Box<RankedTrial>),
    /// The page ends.
    End,
}

/// What connections read.
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    report: Option<LiveReport>,
    /// Why all is over.
    over: Option<String>,
    /// Connections that take events.
    readers: usize,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LivePage {
    /// Serves the page at an address.
    ///
    /// # Errors
    ///
    /// When nothing can listen there.
    pub(crate) fn start(
        address: SocketAddr,
        report: impl FnOnce(&str) -> LiveReport,
    ) -> anyhow::Result<Self> {
        let state = Mutex::new(State { report: None, over: None, readers: 0 });
        let shared = Arc::new(Shared { state, changed: Condvar::new() });
        let routes = shared.clone();
        let server = Server::start(address, 0, Arc::new(move |request| answer(&routes, request)))?;
        shared.state().report = Some(report(server.token()));
        let (messages, received) = sync_channel(MOST_WAITING);
        let to_collect = shared.clone();
        let collector = thread::Builder::new()
            .name("live-page".into())
            .spawn(move || collect(&received, &to_collect))?;
        let begun = AtomicUsize::new(0);
        Ok(Self { server, shared, messages, collector: Some(collector), begun })
    }

    /// What to open in a browser.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/?token={}", reachable(self.server.address()), self.server.token())
    }

    /// Shows a run.
    ///
    /// # Errors
    ///
    /// When the epochs of a run that is resumed cannot be read.
    pub(crate) fn run(&self, run: &Run<'_>) -> Result<Shown<'_>, lpgnn::Error> {
        let (at, config) = (run.epoch(), run.config());
        let path = run.folder().path();
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        let shown = self.begin(name, (at, config.training.epochs), config);
        if at > 0 {
            let mut before = run.folder().metrics()?;
            before.retain(|epoch| epoch.report.epoch <= at);
            self.tell(Message::Before(shown.id, before));
        }
        Ok(shown)
    }

    /// Shows trials that have settings in common.
    pub(crate) fn trials<'a>(&'a self, config: &'a RunConfig) -> ShownTrials<'a> {
        ShownTrials { page: self, config }
    }

    fn begin(&self, name: String, epochs: (usize, usize), config: &RunConfig) -> Shown<'_> {
        let id = self.begun.fetch_add(1, Ordering::Relaxed);
        self.tell(Message::Begin { id, name, epochs, config: Box::new(config.clone()) });
        Shown { page: self, id, begun: Instant::now() }
    }

    /// Never waits: what there is no room for is not shown.
    fn tell(&self, message: Message) {
        let _ = self.messages.try_send(message);
    }

    /// Shows the report on a folder, and why it is the end.
    pub(crate) fn end(mut self, folder: &Path, reason: &str) {
        // What cannot be read is not shown.
        self.close(Report::of(&[folder]).ok(), &format!("Training has ended: {reason}."));
    }

    fn close(&mut self, report: Option<Report>, text: &str) {
        let Some(collector) = self.collector.take() else { return };
        // Here it may wait: there is nothing left to do.
        let _ = self.messages.send(Message::End);
        let _ = collector.join();
        let mut state = self.shared.state();
        if let (Some(live), Some(report)) = (&mut state.report, report) {
            live.end(report);
        }
        state.over = Some(text.to_owned());
        self.shared.changed.notify_all();
        let all_told = |state: &mut State| state.readers > 0;
        drop(self.shared.changed.wait_timeout_while(state, FAREWELL, all_told));
    }
}

impl Drop for LivePage {
    fn drop(&mut self) {
        self.close(None, "Training has ended.");
    }
}

/// Puts what training tells into the report, a few times a second: whoever waited for every message would have to be
/// woken by training.
fn collect(messages: &Receiver<Message>, shared: &Shared) {
    loop {
        thread::sleep(INTERVAL);
        let mut state = shared.state();
        let Some(report) = &mut state.report else { continue };
        let ended = loop {
            match messages.try_recv() {
                Ok(Message::Begin { id, name, epochs, config }) => {
                    report.begin(id, &name, epochs, &config);
                }
                Ok(Message::Before(id, epochs)) => report.before(id, &epochs),
                Ok(Message::Epoch(id, metrics)) => report.epoch(id, &metrics),
                Ok(Message::Done(id)) => report.done(id),
                Ok(Message::Fold(fold)) => report.fold(*fold),
                Ok(Message::Ranked(trial)) => report.ranked(*trial),
                Ok(Message::End) | Err(TryRecvError::Disconnected) => break true,
                Err(TryRecvError::Empty) => break false,
            }
        };
        drop(state);
        shared.changed.notify_all();
        if ended {
            return;
        }
    }
}

fn answer(shared: &Arc<Shared>, request: &Request) -> Answer {
    match (&request.method[..], &request.path[..]) {
        ("GET", "/") => match shared.state().report.as_ref().map(LiveReport::html) {
            Some(Ok(html)) => Answer::Whole(200, "text/html; charset=utf-8", html.into_bytes()),
            Some(Err(error)) => Answer::text(500, &error.to_string()),
            None => Answer::text(503, "the page is not ready yet"),
        },
        ("GET", "/events") => {
            let shared = shared.clone();
            Answer::Events(Box::new(move |stream| send(&shared, stream)))
        }
        ("POST", "/stop") => {
            interrupt::ask();
            Answer::text(202, "stopping after this epoch")
        }
        (_, "/" | "/events" | "/stop") => Answer::text(405, "this method is not allowed here"),
        _ => Answer::text(404, "there is no such page"),
    }
}

/// Sends everything, and then what is new, until all is over or the browser is gone.
fn send(shared: &Shared, stream: &mut EventStream) -> io::Result<()> {
    shared.state().readers += 1;
    let sent = send_all(shared, stream);
    shared.state().readers -= 1;
    shared.changed.notify_all();
    sent
}

fn send_all(shared: &Shared, stream: &mut EventStream) -> io::Result<()> {
    let (mut seen, mut sent) = (Seen::default(), Instant::now());
    loop {
        // Nothing is written while others wait for the state.
        let (news, over) = {
            let state = shared.state();
            let news = state.report.as_ref().map(|report| report.news(&mut seen));
            let news = news.transpose().map_err(io::Error::other)?.flatten();
            if news.is_none() && state.over.is_none() {
                drop(shared.changed.wait_timeout(state, PING));
                (None, None)
            } else {
                (news, state.over.clone())
            }
        };
        if let Some((event, json)) = &news {
            stream.send(event, json)?;
        } else if let Some(text) = over {
            return stream.send("end", &serde_json::json!({ "text": text }).to_string());
        } else if sent.elapsed() >= PING {
            stream.ping()?;
        } else {
            continue;
        }
        sent = Instant::now();
        thread::sleep(INTERVAL);
    }
}

/// A training on the page.
pub(crate) struct Shown<'a> {
    page: &'a LivePage,
    id: usize,
    begun: Instant,
}

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        self.page.tell(Message::Done(self.id));
    }
}

impl RunObserver for Shown<'_> {
    fn epoch(&mut self, progress: &Progress<'_>) -> ControlFlow<()> {
        self.page.tell(Message::Epoch(self.id, Box::new(progress.metrics.clone())));
        ControlFlow::Continue(())
    }
}

impl TrialObserver for Shown<'_> {
    fn epoch(&mut self, report: &EpochReport) -> ControlFlow<()> {
        let seconds = mem::replace(&mut self.begun, Instant::now()).elapsed().as_secs_f64();
        let metrics = EpochMetrics { report: report.clone(), seconds };
        self.page.tell(Message::Epoch(self.id, Box::new(metrics)));
        ControlFlow::Continue(())
    }
}

/// Trials on the page.
pub(crate) struct ShownTrials<'a> {
    page: &'a LivePage,
    config: &'a RunConfig,
}

impl ExperimentObserver for ShownTrials<'_> {
    fn trial(&self, name: TrialName, at: usize, until: usize) -> Box<dyn TrialObserver + '_> {
        Box::new(self.page.begin(name.to_string(), (at, until), self.config))
    }

    fn fold(&self, fold: &FoldRecord) {
        self.page.tell(Message::Fold(Box::new(fold.clone())));
    }

    fn ranked(&self, trial: &RankedTrial) {
        self.page.tell(Message::Ranked(Box::new(trial.clone())));
    }
}
