use std::fmt::Write;

use lpgnn::run::RunConfig;

use crate::summary::tell_value;
use crate::trial::Trial;

/// A finished trial of a round.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Ranked {
    /// Its number, from 1.
    pub(super) trial: usize,
    pub(super) epochs: usize,
    /// What it has changed.
    pub(super) settings: Vec<(String, String)>,
    pub(super) result: Trial,
}

/// What was found: only the validation part has decided.
#[derive(Debug, serde::Serialize)]
pub(super) struct Found {
    pub(super) trial: usize,
    pub(super) val: Option<f64>,
    /// The winner on the test part, which nobody has looked at before.
    pub(super) test_of_the_winner: Option<f64>,
    pub(super) ranked: Vec<Ranked>,
}

impl Ranked {
    /// What trials are ranked by; one without a number comes last.
    pub(super) fn value(&self) -> f64 {
        self.result.val_value.filter(|value| !value.is_nan()).unwrap_or(f64::NEG_INFINITY)
    }

    pub(super) fn line(&self) -> String {
        let value = number(self.result.val_value);
        format!("trial {:>4}: val {value} after {} epochs", self.trial, self.epochs)
    }
}

/// What a trial has changed.
pub(super) fn differences(
    base: &RunConfig,
    trial: &RunConfig,
) -> anyhow::Result<Vec<(String, String)>> {
    fn compare(
        path: &str,
        a: &serde_json::Value,
        b: &serde_json::Value,
        found: &mut Vec<(String, String)>,
    ) {
        match b {
            serde_json::Value::Object(entries) => {
                for (key, value) in entries {
                    let dot = if path.is_empty() { "" } else { "." };
                    compare(&format!("{path}{dot}{key}"), &a[key], value, found);
                }
            }
            _ if a == b => {}
            serde_json::Value::String(text) => found.push((path.to_owned(), text.clone())),
            value => found.push((path.to_owned(), value.to_string())),
        }
    }
    let mut found = vec![];
    compare("", &serde_json::to_value(base)?, &serde_json::to_value(trial)?, &mut found);
    Ok(found)
}

fn number(value: Option<f64>) -> String {
    value.map_or_else(|| "-".into(), tell_value)
}

/// As `rate=0.01`; a number that was drawn has many digits, of which a few will do.
fn short((path, value): &(String, String)) -> String {
    let key = path.rsplit('.').next().unwrap_or(path);
    match value.parse::<f64>() {
        Ok(number) if value.len() > 8 => format!("{key}={number:.2e}"),
        _ => format!("{key}={value}"),
    }
}

impl Found {
    /// The first ten, and the winner.
    pub(super) fn text(&self) -> Result<String, std::fmt::Error> {
        let mut text = format!("{:>5}  {:>6}  {:>7}  settings\n", "trial", "epochs", "val");
        for done in self.ranked.iter().take(10) {
            let settings: Vec<String> = done.settings.iter().map(short).collect();
            let line = format!(
                "{:>5}  {:>6}  {:>7}  {}",
                done.trial,
                done.epochs,
                number(done.result.val_value),
                settings.join(" ")
            );
            writeln!(text, "{}", line.trim_end())?;
        }
        let Self { trial, val, test_of_the_winner: test, .. } = self;
        let (val, test) = (number(*val), number(*test));
        writeln!(text, "winner: trial {trial}, val {val}; test, looked at once: {test}")?;
        Ok(text)
    }
}
