use std::io::Write;
use std::path::Path;
use std::time::Instant;

use lpgnn::evaluate::probabilities;
use lpgnn::live::{LiveData, LiveOptions, NamedEvent, NamedPrediction, Prediction};
use lpgnn::run::SavedModel;
use lpgnn::shortened;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::journal::Journal;
use super::request::Query;
use super::{NO_TEXT, TOO_LONG};

/// A live graph, with the journal that keeps it.
pub(super) struct Session {
    data: LiveData,
    classes: Option<Vec<String>>,
    value_names: Vec<String>,
    journal: Option<Journal>,
}

impl Session {
    pub(super) fn new(data: LiveData, model: &SavedModel) -> Self {
        Self {
            data,
            classes: model.classes().map(<[String]>::to_vec),
            value_names: model.value_names.clone(),
            journal: None,
        }
    }

    /// The graph that a journal holds; the one that `start` makes if it is empty.
    pub(super) fn recover(
        folder: &Path,
        every: u64,
        model: &SavedModel,
        options: &LiveOptions,
        start: impl FnOnce() -> anyhow::Result<LiveData>,
    ) -> anyhow::Result<Self> {
        let (journal, data, batches) = Journal::open(folder, every, model, options, start)?;
        let mut session = Self::new(data, model);
        for batch in batches {
            session.change(&batch.lines().map(str::to_owned).collect::<Vec<_>>());
        }
        session.journal = Some(journal);
        Ok(session)
    }

    pub(super) fn data(&self) -> &LiveData {
        &self.data
    }

    /// Applies some lines together: errors, then changed predictions, then an acknowledgement of all of them.
    pub(super) fn apply(&mut self, lines: &[String], out: &mut impl Write) -> anyhow::Result<()> {
        let start = Instant::now();
        if let Some(journal) = &mut self.journal {
            journal.append(lines)?;
        }
        let (answers, mut last) = self.change(lines);
        let latency = u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX);
        last.insert("latency_us".into(), json!(latency));
        for answer in answers {
            writeln!(out, "{}", Value::Object(answer))?;
        }
        writeln!(out, "{}", Value::Object(last))?;
        if let Some(journal) = &mut self.journal {
            journal.rotate(&self.data)?;
        }
        Ok(())
    }

    fn change(&mut self, lines: &[String]) -> (Vec<Map<String, Value>>, Map<String, Value>) {
        let before = self.data.events();
        let (mut events, mut places, mut errors) = (vec![], vec![], vec![]);
        for (place, line) in lines.iter().enumerate() {
            match serde_json::from_str::<NamedEvent>(line) {
                Ok(event) => {
                    events.push(event);
                    places.push(place);
                }
                Err(error) => {
                    errors.push((place, not_an_event(line, &error)));
                    self.data.skip();
                }
            }
        }
        let report = self.data.apply(&events);
        errors.extend(report.errors.iter().map(|(i, error)| (places[*i], error.to_string())));
        errors.sort_by_key(|(place, _)| *place);
        let number = |place: usize| before + place as u64 + 1;
        let last = number(lines.len().saturating_sub(1));
        let mut answers: Vec<Map<String, Value>> = errors
            .into_iter()
            .map(|(place, error)| {
                map([("event", json!(number(place))), ("error", json!(shortened(&error)))])
            })
            .collect();
        for changed in &report.changed {
            let mut answer = map([("event", json!(last))]);
            answer.extend(self.prediction(changed));
            answers.push(answer);
        }
        let done = map([
            ("event", json!(last)),
            ("events", json!(lines.len())),
            ("touched", json!(report.touched)),
            ("evaluated", json!(report.evaluated)),
            ("bound", json!(rounded(report.bound))),
        ]);
        (answers, done)
    }

    pub(super) fn answer(&self, query: &Query, out: &mut impl Write) -> anyhow::Result<()> {
        let answer = match query {
            Query::Predict { node, graph } => {
                let found = self.data.predict(graph.as_ref(), node.as_ref());
                ("predict", found.map(|found| self.prediction(&found)))
            }
            Query::Explain { node, graph } => {
                let found = self.data.explain(graph.as_ref(), node);
                let explained = found.map(|(explanation, neighbours)| {
                    let residuals: Vec<f64> =
                        explanation.residuals.iter().map(|&x| rounded(x)).collect();
                    let neighbours: Vec<Value> = neighbours
                        .iter()
                        .map(|(node, moved)| json!({"node": node, "without": rounded(*moved)}))
                        .collect();
                    let mut answer = map([("node", json!(node))]);
                    answer.extend(self.outputs(&explanation.prediction));
                    answer.insert("residuals".into(), json!(residuals));
                    answer.insert("neighbours".into(), json!(neighbours));
                    answer
                });
                ("explain", explained)
            }
            Query::Stats => {
                let graph = self.data.graph();
                let stats = map([
                    ("events", json!(self.data.events())),
                    ("nodes", json!(graph.nodes())),
                    ("edges", json!(graph.edges())),
                    ("graphs", json!(graph.graphs())),
                    ("bound", json!(rounded(graph.bound()))),
                    ("lipschitz", json!(rounded(graph.lipschitz()))),
                    ("bytes", json!(graph.bytes())),
                ]);
                ("stats", Ok(stats))
            }
            Query::Digest => {
                let digest = Sha256::digest(self.data.save());
                let hex = |byte: &u8| {
                    [byte >> 4, byte & 15].map(|half| char::from_digit(half.into(), 16))
                };
                let text: String = digest.iter().flat_map(hex).flatten().collect();
                let events = json!(self.data.events());
                ("digest", Ok(map([("events", events), ("sha256", json!(text))])))
            }
        };
        let mut line = map([("query", json!(answer.0))]);
        match answer.1 {
            Ok(found) => line.extend(found),
            Err(error) => {
                line.insert("error".into(), json!(shortened(&error.to_string())));
            }
        }
        writeln!(out, "{}", Value::Object(line))?;
        out.flush()?;
        Ok(())
    }

    /// Answers a query that cannot be understood.
    pub(super) fn refuse(query: &str, error: &str, out: &mut impl Write) -> anyhow::Result<()> {
        let line = map([("query", json!(query)), ("error", json!(shortened(error)))]);
        writeln!(out, "{}", Value::Object(line))?;
        out.flush()?;
        Ok(())
    }

    fn prediction(&self, found: &NamedPrediction) -> Map<String, Value> {
        let mut answer = Map::new();
        if self.data.graph().graphs() > 1 || found.node.is_none() {
            answer.insert("graph".into(), json!(found.graph));
        }
        if let Some(node) = &found.node {
            answer.insert("node".into(), json!(node));
        }
        answer.extend(self.outputs(&found.prediction));
        answer
    }

    fn outputs(&self, found: &Prediction) -> Map<String, Value> {
        let mut answer = Map::new();
        if let Some(classes) = &self.classes {
            let class = found.class.and_then(|class| classes.get(class));
            answer.insert("class".into(), json!(class));
            let shares = probabilities(&found.outputs);
            let shares = classes.iter().cloned().zip(shares.iter().map(|p| json!(rounded(*p))));
            answer.insert("probabilities".into(), Value::Object(shares.collect()));
            answer.insert("final".into(), json!(found.is_final));
        } else {
            let values = found.outputs.iter().map(|x| json!(x));
            answer.extend(self.value_names.iter().cloned().zip(values));
        }
        answer.insert("bound".into(), json!(rounded(found.bound)));
        answer
    }
}

fn map<const N: usize>(entries: [(&str, Value); N]) -> Map<String, Value> {
    entries.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// To four significant digits.
fn rounded(x: f64) -> f64 {
    format!("{x:.3e}").parse().unwrap_or(x)
}

fn not_an_event(line: &str, error: &serde_json::Error) -> String {
    if [NO_TEXT, TOO_LONG].contains(&line) {
        return format!("it is {line}");
    }
    if line.trim_start().starts_with('{') {
        return format!("the line is not an event: {error}");
    }
    "the line is neither an event, which is a JSON object, nor a query: predict, explain, stats or digest".into()
}
