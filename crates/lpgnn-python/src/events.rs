use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use rayon::ThreadPool;
use serde::Serialize;

use crate::error::{Error, exception};

/// How often Python is asked whether Ctrl-C was pressed.
const INTERVAL: Duration = Duration::from_millis(50);

/// Something that happened, as JSON, and where the answer whether to go on is expected.
struct Event {
    json: String,
    answer: Sender<bool>,
}

/// On the side of the work: tells Python what happens, and is told whether to go on.
pub(crate) struct Reporter<'a> {
    /// None if nobody listens.
    events: Option<Sender<Event>>,
    /// Gone when the work is done.
    _alive: Sender<Event>,
    stop: &'a AtomicBool,
}

impl Reporter<'_> {
    /// Whether the work is to stop.
    pub(crate) fn stops(&self) -> ControlFlow<()> {
        if self.stop.load(Ordering::Relaxed) {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }

    /// Waits for the answer, so that what is to stop stops there.
    pub(crate) fn tell(&self, event: &impl Serialize) -> ControlFlow<()> {
        if self.stop.load(Ordering::Relaxed) {
            return ControlFlow::Break(());
        }
        let Some(events) = &self.events else { return ControlFlow::Continue(()) };
        let (answer, answered) = channel();
        // What is told here is always JSON, and whoever does not listen any more gives no answer.
        let heard = serde_json::to_string(event)
            .is_ok_and(|json| events.send(Event { json, answer }).is_ok());
        if heard && answered.recv().unwrap_or(false) {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    }
}

/// What work has led to, and the `KeyboardInterrupt` that ended it early.
pub(crate) type Outcome<T> = (T, Option<PyErr>);

/// Works on threads of a pool while the calling thread listens: only there does Python notice Ctrl-C, and
/// only there are Python functions called. An exception stops the work.
#[allow(clippy::needless_pass_by_value, reason = "arguments from Python arrive by value")]
pub(crate) fn work<T: Send>(
    py: Python<'_>,
    pool: &ThreadPool,
    on_event: Option<Py<PyAny>>,
    work: impl FnOnce(&Reporter<'_>) -> Result<T, lpgnn::Error> + Send,
) -> PyResult<Outcome<T>> {
    let (sender, events) = channel();
    let stop = AtomicBool::new(false);
    let reporter = Reporter {
        events: on_event.is_some().then(|| sender.clone()),
        _alive: sender,
        stop: &stop,
    };
    let (worked, heard) = py.detach(|| {
        thread::scope(|scope| {
            let working = scope.spawn(move || pool.install(|| work(&reporter)));
            let heard = listen(events, on_event.as_ref());
            stop.store(true, Ordering::Relaxed);
            (working.join(), heard)
        })
    });
    // Somebody may have pressed Ctrl-C in the meantime.
    let heard = heard.and_then(|()| py.check_signals());
    let interrupt = match heard {
        Err(error) if error.is_instance_of::<PyKeyboardInterrupt>(py) => Some(error),
        heard => {
            heard?;
            None
        }
    };
    match worked.map_err(|_| Error::new_err("the computation panicked"))? {
        Ok(done) => Ok((done, interrupt)),
        Err(error) => Err(interrupt.unwrap_or_else(|| exception(error))),
    }
}

/// Until the work ends or Python raises an exception.
#[allow(
    clippy::needless_pass_by_value,
    reason = "whoever waits for an answer is told when it is dropped"
)]
fn listen(events: Receiver<Event>, on_event: Option<&Py<PyAny>>) -> PyResult<()> {
    let mut asked = Instant::now();
    loop {
        match (events.recv_timeout(INTERVAL), on_event) {
            (Ok(event), Some(on_event)) => {
                let call = |py: Python<'_>| on_event.bind(py).call1((&event.json,))?.extract();
                // The work may be over.
                let _ = event.answer.send(Python::attach(call)?);
            }
            (Ok(_) | Err(RecvTimeoutError::Timeout), _) => {}
            (Err(RecvTimeoutError::Disconnected), _) => return Ok(()),
        }
        if asked.elapsed() >= INTERVAL {
            #[allow(clippy::redundant_closure_for_method_calls, reason = "of any lifetime")]
            Python::attach(|py| py.check_signals())?;
            asked = Instant::now();
        }
    }
}
