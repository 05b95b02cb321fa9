use std::collections::VecDeque;

use super::Report;
use super::crossval::CrossvalPage;
use super::history::History;
use super::page::page;
use super::run::text;
use super::search::SearchPage;
use crate::Error;
use crate::evaluate::Protocol;
use crate::experiment::crossval::{CrossvalReport, FoldRecord};
use crate::experiment::run::EpochMetrics;
use crate::experiment::search::{RankedTrial, SearchRecord};
use crate::experiment::{Versions, today};
use crate::run::{RunConfig, Schema};

/// A report on training that is under way.
///
/// A reader has [seen](Seen) some of it, and is told [what is new](LiveReport::news) as an event of two kinds: `data`,
/// everything; and `epochs`, what is to be added to it.
#[derive(Debug)]
pub struct LiveReport {
    title: String,
    /// What the page gives back to its server.
    token: String,
    /// Trainings, of which the oldest that are done go.
    runs: VecDeque<LiveRun>,
    folds: Vec<FoldRecord>,
    ranked: Vec<RankedTrial>,
    protocol: Option<Protocol>,
    /// The settings of the newest.
    config: RunConfig,
    /// What it has become.
    end: Option<Report>,
    /// Counts what is more than epochs that are added.
    changes: u64,
}

/// A training that is under way.
#[derive(Debug, serde::Serialize)]
struct LiveRun {
    #[serde(skip)]
    id: usize,
    name: String,
    live: bool,
    done: bool,
    /// The epoch up to which it trains.
    until: usize,
    transition: String,
    solver: String,
    settings: Vec<(String, String)>,
    history: History,
}

/// What the page is made of.
#[derive(serde::Serialize)]
#[serde(untagged)]
#[allow(clippy::large_enum_variant, reason = "there is one at a time")]
enum Data<'a> {
    Running {
        title: &'a str,
        subtitle: String,
        live: Server<'a>,
        runs: &'a VecDeque<LiveRun>,
        crossval: Option<CrossvalPage>,
        search: Option<SearchPage>,
    },
    Ended {
        #[serde(flatten)]
        report: &'a Report,
        live: Server<'a>,
    },
}

#[derive(serde::Serialize)]
struct Server<'a> {
    token: &'a str,
}

/// The newest epochs of a run, by its place.
#[derive(serde::Serialize)]
struct Tail {
    run: usize,
    history: History,
}

/// What a reader has seen of a [`LiveReport`].
#[derive(Clone, Debug, Default)]
pub struct Seen {
    changes: Option<u64>,
    /// Epochs of every run.
    epochs: Vec<usize>,
}

/// Trainings that are shown at a time.
const MOST_RUNS: usize = 8;

impl LiveReport {
    /// A page of this title without anything yet, which gives `token` back to its server.
    pub fn new(title: impl Into<String>, token: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            token: token.into(),
            runs: VecDeque::new(),
            folds: vec![],
            ranked: vec![],
            protocol: None,
            config: RunConfig::default(),
            end: None,
            changes: 0,
        }
    }

    /// The same of a cross-validation by a protocol.
    #[must_use]
    pub fn with_protocol(mut self, protocol: Protocol) -> Self {
        self.protocol = Some(protocol);
        self
    }

    /// A training begins behind epoch `at`, to train up to epoch `until`; `id` is how it is called from now on.
    pub fn begin(
        &mut self,
        id: usize,
        name: &str,
        (at, until): (usize, usize),
        config: &RunConfig,
    ) {
        self.changes += 1;
        let before = self.runs.iter().position(|run| run.name == name);
        let before = before.and_then(|place| self.runs.remove(place));
        let history = before.filter(|_| at > 0).map(|run| run.history).unwrap_or_default();
        while self.runs.len() >= MOST_RUNS {
            let Some(place) = self.runs.iter().position(|run| run.done) else { break };
            self.runs.remove(place);
        }
        self.config = config.clone();
        let settings = Schema::of_runs().values(config);
        self.runs.push_back(LiveRun {
            id,
            name: name.to_owned(),
            live: true,
            done: false,
            until,
            transition: format!(
                "{}, states of {}",
                config.model.transition, config.model.state_dim
            ),
            solver: config.training.solver.name().into(),
            settings: settings.iter().map(|(info, of)| (info.path.clone(), text(of))).collect(),
            history,
        });
    }

    /// The epochs of a training before it was resumed.
    pub fn before(&mut self, id: usize, epochs: &[EpochMetrics]) {
        self.changes += 1;
        if let Some(run) = self.runs.iter_mut().find(|run| run.id == id) {
            run.history = History::new(epochs);
        }
    }

    /// An epoch of a training is done.
    pub fn epoch(&mut self, id: usize, metrics: &EpochMetrics) {
        let Some(run) = self.runs.iter_mut().find(|run| run.id == id) else { return };
        run.history.push(metrics);
        if run.history.thin() {
            self.changes += 1;
        }
    }

    /// A training is over.
    pub fn done(&mut self, id: usize) {
        self.changes += 1;
        self.runs.iter_mut().filter(|run| run.id == id).for_each(|run| run.done = true);
    }

    /// A fold of a cross-validation is done.
    pub fn fold(&mut self, fold: FoldRecord) {
        self.changes += 1;
        self.folds.push(fold);
        self.folds.sort_by_key(|fold| fold.name.number);
    }

    /// A trial of a search has come to the end of a round.
    pub fn ranked(&mut self, trial: RankedTrial) {
        self.changes += 1;
        self.ranked.retain(|other| other.trial != trial.trial);
        self.ranked.push(trial);
        // As a search does: those that came farther are first.
        let order = |trial: &RankedTrial| (trial.epochs, trial.value());
        self.ranked.sort_by(|a, b| {
            let (a, b) = (order(a), order(b));
            b.0.cmp(&a.0).then(b.1.total_cmp(&a.1))
        });
    }

    /// All is done, and this is the report on it.
    pub fn end(&mut self, report: Report) {
        self.changes += 1;
        self.end = Some(report);
    }

    /// The page, with everything so far in it.
    ///
    /// # Errors
    ///
    /// As for [`Report::html`].
    pub fn html(&self) -> Result<String, Error> {
        page(&self.data()).map_err(|error| not_json(&error))
    }

    /// What a reader has not seen, as the kind and the JSON of an event; none if there is nothing.
    ///
    /// # Errors
    ///
    /// As for [`Report::html`].
    pub fn news(&self, seen: &mut Seen) -> Result<Option<(&'static str, String)>, Error> {
        let epochs: Vec<usize> = self.runs.iter().map(|run| run.history.len()).collect();
        let json = if seen.changes != Some(self.changes) {
            Some(("data", serde_json::to_string(&self.data())))
        } else if seen.epochs != epochs {
            let tails: Vec<Tail> = (self.runs.iter().zip(&seen.epochs).enumerate())
                .filter(|(_, (run, seen))| run.history.len() > **seen)
                .map(|(place, (run, &seen))| Tail { run: place, history: run.history.tail(seen) })
                .collect();
            Some(("epochs", serde_json::to_string(&tails)))
        } else {
            None
        };
        *seen = Seen { changes: Some(self.changes), epochs };
        json.map(|(kind, json)| Ok((kind, json.map_err(|error| not_json(&error))?))).transpose()
    }

    fn data(&self) -> Data<'_> {
        let live = Server { token: &self.token };
        match &self.end {
            Some(report) => Data::Ended { report, live },
            None => Data::Running {
                title: &self.title,
                subtitle: format!("lpgnn {}, {}", Versions::here().library, today()),
                live,
                runs: &self.runs,
                crossval: self.crossval(),
                search: self.search(),
            },
        }
    }

    fn crossval(&self) -> Option<CrossvalPage> {
        let protocol = self.protocol.filter(|_| !self.folds.is_empty())?;
        let report = CrossvalReport::new(&self.title, protocol, 0, &self.folds).ok()?;
        Some(CrossvalPage::new(report, self.folds.clone()))
    }

    fn search(&self) -> Option<SearchPage> {
        let best = self.ranked.first()?;
        let record = SearchRecord {
            metric: best.result.metric,
            trial: best.trial,
            val: best.result.val_value,
            test_of_the_winner: None,
            complete: true,
            ranked: self.ranked.clone(),
        };
        Some(SearchPage::new(&self.config, &record))
    }
}

fn not_json(error: &serde_json::Error) -> Error {
    Error::Mismatch(format!("a report is not JSON: {error}"))
}
