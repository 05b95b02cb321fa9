//! Configurations as TOML, with a comment on every setting.

use std::fmt::Write;

use serde::Serialize;
use serde_json::Value;

use super::{Choice, Kind, Schema, SettingInfo, in_effect};

/// Where comments start.
const COMMENTS: usize = 29;

impl Schema {
    /// All values of a configuration, with what they mean.
    pub fn to_toml<T: Serialize>(&self, config: &T) -> String {
        let mut text = String::new();
        let values = serde_json::to_value(config).unwrap_or_default();
        write_settings(&mut text, &self.sections, &values);
        text
    }
}

fn write_settings(text: &mut String, settings: &[SettingInfo], values: &Value) {
    let (sections, settings): (Vec<&SettingInfo>, Vec<&SettingInfo>) = in_effect(settings, values)
        .into_iter()
        .partition(|info| matches!(info.kind, Kind::Section(_)) && values[info.key()].is_object());
    for info in settings {
        let line = format!("{} = {}", info.key(), toml_value(&values[info.key()]));
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{line:<COMMENTS$} # {}", comment(info));
    }
    for info in sections {
        let Kind::Section(settings) = &info.kind else { continue };
        let space = if text.is_empty() { "" } else { "\n" };
        let _ = writeln!(text, "{space}# {}\n[{}]", plain(&info.meaning), info.path);
        write_settings(text, settings, &values[info.key()]);
    }
}

/// What it is, and what can be chosen.
fn comment(info: &SettingInfo) -> String {
    let meaning = plain(&info.meaning);
    let meaning = meaning.trim_end_matches('.');
    let names = |name: fn(&Choice) -> String| {
        info.kind.choices().iter().map(name).collect::<Vec<_>>().join(", ")
    };
    match info.kind {
        // What it is stands above its section.
        Kind::Tag(_) => names(|choice| choice.name.clone()),
        Kind::Word(_) => format!("{meaning} [{}]", names(Choice::syntax)),
        _ => meaning.to_owned(),
    }
}

/// Without the marks of Markdown.
fn plain(text: &str) -> String {
    text.replace('`', "")
}

/// A value as TOML, in which `none` is a word.
pub(super) fn toml_value(value: &Value) -> String {
    match value {
        Value::Null => "\"none\"".into(),
        Value::String(text) => toml::Value::String(text.clone()).to_string(),
        Value::Array(values) => {
            format!("[{}]", values.iter().map(toml_value).collect::<Vec<_>>().join(", "))
        }
        Value::Object(entries) if entries.is_empty() => "{}".into(),
        Value::Object(entries) => {
            let entries: Vec<String> = entries
                .iter()
                .map(|(key, value)| format!("{key} = {}", toml_value(value)))
                .collect();
            format!("{{ {} }}", entries.join(", "))
        }
        Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}
