use std::cmp::Ordering;

use serde_json::{Value, json};

use super::RunConfig;
use crate::Error;
use crate::constraint::ConstraintFunction;
use crate::inference::{Inference, RelaxOptions};
use crate::train::SolverConfig;

/// A value for one setting, and where it came from.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    origin: String,
    path: String,
    value: Value,
}

/// Settings whose value may be `none`.
const OPTIONAL: [&str; 7] = [
    "data.format",
    "training.batch-size",
    "training.lipschitz",
    "training.patience",
    "training.solver.state-lr-half-life",
    "training.solver.weights.lr-half-life",
    "training.inference.fall-back",
];

/// Settings that decide which others there are beside them.
const TAGS: [&str; 3] = ["training.solver.kind", "training.inference.method", "model.constraint.g"];

impl Setting {
    /// `path`, as in `training.solver.weights.lr`, is to have this value.
    pub fn new(origin: &str, path: &str, value: impl Into<Value>) -> Self {
        Self { origin: origin.to_owned(), path: path.to_owned(), value: value.into() }
    }

    /// From `section.key=value`, where the value is TOML; a word needs no quotes.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] when there is no `=`.
    pub fn parse(origin: &str, text: &str) -> Result<Self, Error> {
        let Some((path, value)) = text.split_once('=') else {
            let problem = format!("“{text}” is not of the form section.key=value");
            return Err(Error::Config { origin: origin.to_owned(), problem });
        };
        let (path, value) = (path.trim(), value.trim());
        let parsed: Result<toml::Table, _> = toml::from_str(&format!("value = {value}"));
        let value = match parsed {
            Ok(mut table) if table.len() == 1 => table.remove("value").map_or(Value::Null, to_json),
            _ => Value::String(value.trim_matches('"').to_owned()),
        };
        Ok(Self::new(origin, path, value))
    }

    /// Which setting it is.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Its value.
    pub fn value(&self) -> &Value {
        &self.value
    }

    fn error(&self, problem: impl Into<String>) -> Error {
        Error::Config { origin: self.origin.clone(), problem: problem.into() }
    }

    /// That the value is of another kind than is expected, which the parser says in its own words.
    fn unfit(&self, error: &serde_json::Error) -> Error {
        let (Self { path, value, .. }, said) = (self, error.to_string());
        let Some((_, expected)) = said.rsplit_once(", expected ") else {
            return self.error(format!("{path} is {value}: {said}"));
        };
        let expected = match expected {
            "f64" | "f32" => "a number",
            "usize" | "u64" | "u32" => "a whole number that is not negative",
            "a boolean" => "true or false",
            "a string" => "a word",
            other => other,
        };
        self.error(format!("{path} is {value}, but {expected} is expected"))
    }
}

/// All settings of a TOML file; `origin` is how it is called.
///
/// # Errors
///
/// [`Error::Config`] when it is no TOML.
pub fn settings_of_toml(origin: &str, text: &str) -> Result<Vec<Setting>, Error> {
    let table: toml::Table = toml::from_str(text).map_err(|error| {
        let line = error.span().map_or(1, |span| 1 + text[..span.start].matches('\n').count());
        let problem = format!("line {line}: {}", error.message().trim_end());
        Error::Config { origin: origin.to_owned(), problem }
    })?;
    let mut settings = vec![];
    flatten(origin, "", to_json(toml::Value::Table(table)), &mut settings);
    Ok(settings)
}

/// All settings of nested tables, whose keys may be paths too; null is `none`.
///
/// # Errors
///
/// [`Error::Config`] when it is no table.
pub fn settings_of_json(origin: &str, value: Value) -> Result<Vec<Setting>, Error> {
    if !value.is_object() {
        let problem = format!("{value} is no table of settings");
        return Err(Error::Config { origin: origin.to_owned(), problem });
    }
    let mut settings = vec![];
    flatten(origin, "", value, &mut settings);
    for setting in &mut settings {
        if setting.value.is_null() {
            setting.value = "none".into();
        }
    }
    Ok(settings)
}

fn flatten(origin: &str, path: &str, value: Value, settings: &mut Vec<Setting>) {
    match value {
        Value::Object(entries) if !path.ends_with(".dual-rule") && free_form(path).is_none() => {
            for (key, value) in entries {
                let dot = if path.is_empty() { "" } else { "." };
                flatten(origin, &format!("{path}{dot}{key}"), value, settings);
            }
        }
        value => settings.push(Setting::new(origin, path, value)),
    }
}

fn to_json(value: toml::Value) -> Value {
    match value {
        toml::Value::String(text) => Value::String(text),
        toml::Value::Integer(number) => number.into(),
        // TOML knows infinities, JSON and we do not: as words they are refused by name.
        toml::Value::Float(number) if !number.is_finite() => Value::String(number.to_string()),
        toml::Value::Float(number) => number.into(),
        toml::Value::Boolean(flag) => flag.into(),
        toml::Value::Datetime(time) => Value::String(time.to_string()),
        toml::Value::Array(values) => values.into_iter().map(to_json).collect(),
        toml::Value::Table(table) => {
            Value::Object(table.into_iter().map(|(key, value)| (key, to_json(value))).collect())
        }
    }
}

impl RunConfig {
    /// The same with these settings, of which the last counts where there are several.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] for a setting that does not exist, with the nearest that does, or whose
    /// value is of another kind.
    pub fn with(&self, settings: &[Setting]) -> Result<Self, Error> {
        let mut value = self.to_value();
        let mut config = self.clone();
        // Tags first, since they decide what else there is; of those, only the last counts.
        let last = |tag: &&str| settings.iter().rfind(|setting| setting.path == **tag);
        let tags = TAGS.iter().filter_map(last);
        let others = settings.iter().filter(|setting| !TAGS.contains(&setting.path.as_str()));
        for setting in tags.chain(others) {
            put(&mut value, setting)?;
            config =
                serde_json::from_value(value.clone()).map_err(|error| setting.unfit(&error))?;
        }
        Ok(config)
    }
}

fn put(config: &mut Value, setting: &Setting) -> Result<(), Error> {
    if TAGS.contains(&setting.path.as_str()) {
        return put_tag(config, setting);
    }
    if let Some((table, option)) = free_form(&setting.path) {
        config["model"][table][option] = setting.value.clone();
        return Ok(());
    }
    let known = config.clone();
    let mut place = config;
    let mut path = String::new();
    for key in setting.path.split('.') {
        let dot = if path.is_empty() { "" } else { "." };
        path = format!("{path}{dot}{key}");
        if path.starts_with("training.inference.fall-back.") && place.is_null() {
            *place = json!(RelaxOptions::default());
        }
        place = place
            .as_object_mut()
            .and_then(|table| table.get_mut(key))
            .ok_or_else(|| setting.error(unknown(&setting.path, &known)))?;
    }
    if place.is_object() && !setting.path.ends_with(".dual-rule") && !may_be_none(setting) {
        return Err(setting.error(format!("{path} is a section, not a setting")));
    }
    *place = if may_be_none(setting) { Value::Null } else { setting.value.clone() };
    Ok(())
}

/// The table and the key of an option of a function that is not built in: its own to interpret.
fn free_form(path: &str) -> Option<(&str, &str)> {
    let (table, option) = path.strip_prefix("model.")?.split_once('.')?;
    matches!(table, "transition-options" | "readout-options").then_some((table, option))
}

fn may_be_none(setting: &Setting) -> bool {
    setting.value == "none" && OPTIONAL.contains(&setting.path.as_str())
}

/// A tag that changes brings the defaults of what it names.
fn put_tag(config: &mut Value, setting: &Setting) -> Result<(), Error> {
    let (table, tag) = setting.path.rsplit_once('.').unwrap_or_default();
    let pointer = format!("/{}", table.replace('.', "/"));
    let Some(place) = config.pointer_mut(&pointer) else { return Ok(()) };
    if place[tag] == setting.value {
        return Ok(());
    }
    let chosen = json!({ tag: setting.value });
    let defaults = match tag {
        "kind" => serde_json::from_value::<SolverConfig>(chosen).map(|solver| json!(solver)),
        "method" => serde_json::from_value::<Inference>(chosen).map(|inference| json!(inference)),
        _ => {
            // Only some have an ε.
            let tube = json!({ tag: setting.value, "epsilon": 0.01 });
            let insensitive = setting.value.as_str().is_some_and(|g| g.ends_with("-eps"));
            serde_json::from_value::<ConstraintFunction>(if insensitive { tube } else { chosen })
                .map(|constraint| json!(constraint))
        }
    };
    *place = defaults.map_err(|error| setting.unfit(&error))?;
    Ok(())
}

/// That there is no such setting, and which may have been meant.
fn unknown(path: &str, known: &Value) -> String {
    let mut paths = vec![];
    list(known, "", &mut paths);
    let key = |path: &str| path.rsplit('.').next().unwrap_or(path).to_owned();
    let score = |candidate: &String| {
        let whole = strsim::normalized_damerau_levenshtein(path, candidate);
        let last = strsim::normalized_damerau_levenshtein(&key(path), &key(candidate));
        // The right key in the wrong section is more likely meant than the reverse.
        whole.max(if last > 0.6 { 0.9 * last + 0.1 * whole } else { 0.0 })
    };
    let best = paths
        .iter()
        .map(|candidate| (score(candidate), candidate))
        .max_by(|a, b| a.0.partial_cmp(&b.0).unwrap_or(Ordering::Equal));
    match best {
        Some((score, nearest)) if score > 0.6 => {
            format!("{path} is no setting; did you mean {nearest}?")
        }
        _ => format!("{path} is no setting; `lpgnn config` shows all"),
    }
}

fn list(value: &Value, path: &str, paths: &mut Vec<String>) {
    match value {
        Value::Object(entries) => {
            for (key, value) in entries {
                let dot = if path.is_empty() { "" } else { "." };
                list(value, &format!("{path}{dot}{key}"), paths);
            }
        }
        _ => paths.push(path.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(texts: &[&str]) -> Result<RunConfig, String> {
        let settings: Vec<Setting> =
            texts.iter().map(|text| Setting::parse("--set", text).unwrap()).collect();
        RunConfig::default().with(&settings).map_err(|error| error.to_string())
    }

    #[test]
    fn an_unknown_setting_suggests_the_nearest() {
        let said = |text| set(&[text]).unwrap_err();
        assert_eq!(
            said("training.epoch=3"),
            "--set: training.epoch is no setting; did you mean training.epochs?"
        );
        assert_eq!(said("epochs=3"), "--set: epochs is no setting; did you mean training.epochs?");
        assert_eq!(
            said("training.lr=3"),
            "--set: training.lr is no setting; did you mean training.solver.weights.lr?"
        );
        assert_eq!(said("zzz=3"), "--set: zzz is no setting; `lpgnn config` shows all");
        assert_eq!(said("model=3"), "--set: model is a section, not a setting");
    }

    #[test]
    fn a_value_of_another_kind_names_its_setting() {
        let said = |text| set(&[text]).unwrap_err();
        let whole = "but a whole number that is not negative is expected";
        assert_eq!(
            said("training.epochs=many"),
            format!("--set: training.epochs is \"many\", {whole}")
        );
        assert_eq!(said("training.epochs=-3"), format!("--set: training.epochs is -3, {whole}"));
        assert_eq!(
            said("training.lipschitz=high"),
            "--set: training.lipschitz is \"high\", but a number is expected"
        );
        assert_eq!(
            said("training.solver.kind=magic"),
            "--set: training.solver.kind is \"magic\", but one of `bdmm`, `one-shot`, `implicit`, \
             `unrolled`, `sse`, `augmented-lagrangian` is expected"
        );
        assert!(set(&["training.epochs=none"]).is_err());
    }

    #[test]
    fn another_solver_brings_its_own_settings() {
        let config = set(&["training.solver.state-lr=0.5", "training.solver.kind=bdmm"]).unwrap();
        let SolverConfig::Bdmm(bdmm) = config.training.solver else { panic!("it was asked for") };
        assert!((bdmm.state_lr - 0.5).abs() < 1e-12);
        let said = set(&["training.solver.state-lr=0.5"]).unwrap_err();
        assert!(said.contains("is no setting"), "{said}");
    }

    #[test]
    fn none_switches_off_and_a_tube_gets_a_width() {
        let config = set(&["training.lipschitz=none", "model.constraint.g=abs-eps"]).unwrap();
        assert_eq!(config.training.lipschitz, None);
        assert_eq!(
            config.model.constraint,
            ConstraintFunction::AbsoluteInsensitive { epsilon: 0.01 }
        );
        let config = set(&["training.inference.fall-back=none"]).unwrap();
        let Inference::FixedPoint(converge) = config.training.inference else {
            panic!("the default")
        };
        assert_eq!(converge.fall_back, None);
    }

    #[test]
    fn broken_toml_names_the_line() {
        let said = settings_of_toml("run.toml", "[model]\nstate = \n").unwrap_err().to_string();
        assert!(said.starts_with("run.toml: line 2: "), "{said}");
    }
}
