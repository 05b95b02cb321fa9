//! Settings laid over a configuration: one tree, walked along the schema, which knows what belongs
//! where, and read once.

use std::cmp::Ordering;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{Choice, Condition, Kind, Schema, SettingInfo, in_effect};
use crate::Error;
use crate::run::Setting;

/// What was asked for, by section; the last one counts.
enum Asked<'s> {
    Value(Given<'s>),
    Section(Vec<(String, Asked<'s>)>),
}

/// A given value. Its path is longer than that of the setting, if that was a table.
#[derive(Clone)]
struct Given<'s> {
    setting: &'s Setting,
    path: String,
    value: &'s Value,
}

/// Why a value was not taken.
enum Refusal<'s, 'a> {
    Unknown(Given<'s>),
    IsSection(Given<'s>),
    Unfit(Given<'s>, &'a SettingInfo),
    Lacks(Given<'s>, &'a SettingInfo),
}

impl Schema {
    /// The same configuration with these settings, of which the last counts where there are several.
    /// A choice that changes brings the defaults of its own settings.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] for a setting that does not exist, with the nearest that does, or whose
    /// value is of another kind; it tells where the setting was made.
    pub fn apply<T: Serialize + DeserializeOwned>(
        &self,
        base: &T,
        settings: &[Setting],
    ) -> Result<T, Error> {
        let mut asked = Asked::Section(vec![]);
        for setting in settings {
            asked.put(setting.path(), setting, "", setting.value());
        }
        // What serde cannot write it cannot read, and says so below.
        let mut values = serde_json::to_value(base).unwrap_or_default();
        if let Asked::Section(entries) = &asked {
            merge_section(&self.sections, &mut values, entries)
                .map_err(|refusal| self.error(refusal, &values))?;
        }
        serde_json::from_value(values).map_err(|error| Error::Config {
            origin: "settings".into(),
            problem: format!("they do not fit each other: {error}"),
        })
    }

    fn error(&self, refusal: Refusal<'_, '_>, values: &Value) -> Error {
        let (given, problem) = match refusal {
            Refusal::Unknown(given) => {
                let problem = self.unknown(&given.path, values);
                (given, problem)
            }
            Refusal::IsSection(given) => {
                let problem = format!("{} is a section, not a setting", given.path);
                (given, problem)
            }
            Refusal::Unfit(given, info) => {
                let value = match given.value {
                    Value::Null => "none".to_owned(),
                    value => value.to_string(),
                };
                let or_none = if info.optional { " or none" } else { "" };
                let expected = info.kind.expected();
                let problem =
                    format!("{} is {value}, but {expected}{or_none} is expected", info.path);
                (given, problem)
            }
            Refusal::Lacks(given, info) => {
                let expected = info.kind.expected();
                let problem = format!("{} is missing: {expected} is expected", info.path);
                (given, problem)
            }
        };
        Error::Config { origin: given.setting.origin().clone(), problem }
    }

    /// That there is no such setting, and which may have been meant.
    fn unknown(&self, path: &str, values: &Value) -> String {
        let mut conditions: Vec<Condition<'_>> = vec![];
        self.each(&mut |info, when| {
            if info.path == path {
                conditions.extend(when.last());
            }
        });
        if let Some(&(tag, _)) = conditions.first() {
            let names: Vec<&str> = conditions.iter().map(|(_, name)| *name).collect();
            let chosen = values.pointer(&format!("/{}", tag.replace('.', "/")));
            let chosen = chosen.and_then(Value::as_str).unwrap_or("none");
            let names = names.join(" or ");
            return format!("{path} is a setting only if {tag} is {names}, but it is {chosen}");
        }
        let known = self.values(values);
        match nearest(path, known.iter().map(|(info, _)| info.path.as_str())) {
            Some(nearest) => format!("{path} is not a setting; did you mean {nearest}?"),
            None => format!("{path} is not a setting; `lpgnn config` shows all"),
        }
    }
}

impl<'s> Asked<'s> {
    fn put(&mut self, path: &str, setting: &'s Setting, above: &str, value: &'s Value) {
        if path.is_empty() {
            match value {
                Value::Object(entries) => {
                    entries.iter().for_each(|(key, value)| self.put(key, setting, above, value));
                }
                _ => *self = Self::Value(Given { setting, path: above.to_owned(), value }),
            }
            return;
        }
        if let Self::Value(_) = self {
            *self = Self::Section(vec![]);
        }
        let Self::Section(entries) = self else { return };
        let (key, rest) = path.split_once('.').unwrap_or((path, ""));
        let place = entries.iter().position(|(known, _)| known == key).unwrap_or_else(|| {
            entries.push((key.to_owned(), Self::Section(vec![])));
            entries.len() - 1
        });
        let above = if above.is_empty() { key.to_owned() } else { format!("{above}.{key}") };
        entries[place].1.put(rest, setting, &above, value);
    }

    /// The first value in it; an empty section has none.
    fn first(&self) -> Option<Given<'s>> {
        match self {
            Self::Value(given) => Some(given.clone()),
            Self::Section(entries) => entries.iter().find_map(|(_, asked)| asked.first()),
        }
    }

    fn to_value(&self) -> Value {
        match self {
            Self::Value(given) => given.value.clone(),
            Self::Section(entries) => {
                let entry = |(key, asked): &(String, Asked<'_>)| (key.clone(), asked.to_value());
                Value::Object(entries.iter().map(entry).collect())
            }
        }
    }
}

fn merge_section<'s, 'a>(
    settings: &'a [SettingInfo],
    values: &mut Value,
    asked: &[(String, Asked<'s>)],
) -> Result<(), Refusal<'s, 'a>> {
    // Tags first, since they decide what else there is.
    let of = |info: &SettingInfo| asked.iter().find(|(key, _)| key == info.key());
    for info in settings {
        if let (Kind::Tag(choices), Some((_, asked))) = (&info.kind, of(info)) {
            choose(info, choices, values, asked)?;
        }
    }
    for (key, asked) in asked {
        match in_effect(settings, values).into_iter().find(|info| info.key() == key) {
            Some(info) if matches!(info.kind, Kind::Tag(_)) => {}
            Some(info) => merge(info, &mut values[key], asked)?,
            None => asked.first().map_or(Ok(()), |given| Err(Refusal::Unknown(given)))?,
        }
    }
    let lacking = |info: &&SettingInfo| values.get(info.key()).is_none();
    let given = asked.iter().find_map(|(_, asked)| asked.first());
    match (in_effect(settings, values).into_iter().find(lacking), given) {
        (Some(info), Some(given)) => Err(Refusal::Lacks(given, info)),
        _ => Ok(()),
    }
}

/// Another choice brings the defaults of its settings in place of those of the one before.
fn choose<'s, 'a>(
    tag: &'a SettingInfo,
    choices: &'a [Choice],
    values: &mut Value,
    asked: &Asked<'s>,
) -> Result<(), Refusal<'s, 'a>> {
    let given = match asked {
        Asked::Value(given) => given,
        Asked::Section(_) => {
            return asked.first().map_or(Ok(()), |given| Err(Refusal::Unknown(given)));
        }
    };
    let Some(chosen) = choices.iter().find(|choice| *given.value == *choice.name) else {
        return Err(Refusal::Unfit(given.clone(), tag));
    };
    let Some(entries) = values.as_object_mut() else { return Ok(()) };
    if entries.get(tag.key()) != Some(given.value) {
        for info in choices.iter().flat_map(|choice| &choice.settings) {
            entries.remove(info.key());
        }
        entries.insert(tag.key().to_owned(), given.value.clone());
        entries.extend(defaults(&chosen.settings));
    }
    Ok(())
}

fn defaults(settings: &[SettingInfo]) -> Map<String, Value> {
    let entry = |info: &SettingInfo| Some((info.key().to_owned(), info.default.clone()?));
    settings.iter().filter_map(entry).collect()
}

fn merge<'s, 'a>(
    info: &'a SettingInfo,
    place: &mut Value,
    asked: &Asked<'s>,
) -> Result<(), Refusal<'s, 'a>> {
    match (&info.kind, asked) {
        (_, Asked::Value(given)) if info.optional && is_none(given.value) => *place = Value::Null,
        (Kind::Any, _) => *place = asked.to_value(),
        (Kind::Section(settings), Asked::Section(entries)) => {
            if !place.is_object() {
                *place = Value::Object(defaults(settings));
            }
            merge_section(settings, place, entries)?;
        }
        (Kind::Section(_), Asked::Value(given)) => return Err(Refusal::IsSection(given.clone())),
        (Kind::Word(choices), Asked::Section(entries)) => merge_variant(choices, place, entries)?,
        (kind, Asked::Value(given)) if kind.admits(given.value) => *place = given.value.clone(),
        (_, Asked::Value(given)) => return Err(Refusal::Unfit(given.clone(), info)),
        (_, Asked::Section(_)) => {
            return asked.first().map_or(Ok(()), |given| Err(Refusal::Unknown(given)));
        }
    }
    Ok(())
}

/// `{ name = { … } }`, in place of whatever was chosen before.
fn merge_variant<'s, 'a>(
    choices: &'a [Choice],
    place: &mut Value,
    asked: &[(String, Asked<'s>)],
) -> Result<(), Refusal<'s, 'a>> {
    for (name, asked) in asked {
        let chosen =
            choices.iter().find(|choice| choice.name == *name && !choice.settings.is_empty());
        match (chosen, asked) {
            (Some(choice), Asked::Section(entries)) => {
                if place.get(name).is_none() {
                    let settings = Value::Object(defaults(&choice.settings));
                    *place = Value::Object([(name.clone(), settings)].into_iter().collect());
                }
                merge_section(&choice.settings, &mut place[name], entries)?;
            }
            (Some(_), Asked::Value(given)) => return Err(Refusal::IsSection(given.clone())),
            (None, _) => asked.first().map_or(Ok(()), |given| Err(Refusal::Unknown(given)))?,
        }
    }
    Ok(())
}

/// JSON and Python have a value for it, TOML has not.
fn is_none(value: &Value) -> bool {
    value.is_null() || value == "none"
}

/// The most similar name, as a suggestion.
fn nearest<'a>(path: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let key = |path: &str| path.rsplit('.').next().unwrap_or(path).to_owned();
    let score = |candidate: &str| {
        let whole = strsim::normalized_damerau_levenshtein(path, candidate);
        let last = strsim::normalized_damerau_levenshtein(&key(path), &key(candidate));
        // The right key in the wrong section is more likely meant than the reverse.
        whole.max(if last > 0.6 { 0.9 * last + 0.1 * whole } else { 0.0 })
    };
    let scored = known.map(|candidate| (score(candidate), candidate));
    let best = scored.max_by(|a, b| a.0.partial_cmp(&b.0).unwrap_or(Ordering::Equal));
    best.filter(|(score, _)| *score > 0.6).map(|(_, nearest)| nearest)
}
