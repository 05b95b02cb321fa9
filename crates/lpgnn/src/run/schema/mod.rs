//! The schema of settings: what there is to set, derived from the types that hold the values.
//!
//! The doc comment of a field is the meaning of its setting, an enum's variants are its choices, and
//! attributes beside the field say the rest:
//!
//! | attribute | declares |
//! |---|---|
//! | `#[schemars(range(min = 1))]`, `extend("exclusiveMinimum" = 0)` | which numbers are allowed |
//! | `#[schemars(extend("x-flag" = "lr"))]` | its flag on the command line, and its argument in Python |
//! | `#[schemars(extend("x-data-default" = "…"))]` | how its default depends on the data |
//!
//! From the schema come the comments of `config.toml`, the flags, Python's arguments, the page of
//! settings in the book, the JSON schema, and the messages about settings that cannot be used.

mod apply;
mod derive;
mod json;
mod kind;
mod page;
mod write;

pub use kind::{Choice, Interval, Kind};

use std::sync::LazyLock;

use serde_json::Value;

use super::{RunConfig, Setting};
use crate::error::Origin;

/// Everything that can be set.
///
/// ```
/// use lpgnn::run::Schema;
///
/// let epochs = Schema::of_runs().setting("training.epochs").ok_or("it is a setting")?;
/// assert_eq!(epochs.meaning, "Passes over the training data.");
/// assert_eq!(epochs.kind.to_string(), "positive integer");
/// assert_eq!(epochs.flag.as_deref(), Some("epochs"));
/// # Ok::<(), &str>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Schema {
    sections: Vec<SettingInfo>,
}

/// What is to be known about one setting, or about a section of them.
#[derive(Clone, Debug, PartialEq)]
pub struct SettingInfo {
    /// Its full name, as in `training.solver.weights.lr`.
    pub path: String,
    /// What it is, in one sentence.
    pub meaning: String,
    /// What else there is to say; may be empty.
    pub detail: String,
    /// What values it takes.
    pub kind: Kind,
    /// Whether it may be `none`.
    pub optional: bool,
    /// Its value unless it is set, where null is `none`; without one it must be set.
    pub default: Option<Value>,
    /// How the default depends on the data, where it does.
    pub depends_on: Option<String>,
    /// The name of its flag and, with underscores, of its argument in Python.
    pub flag: Option<String>,
}

/// A choice that brings a setting into being: the path of the setting that decides, and its value.
type Condition<'a> = (&'a str, &'a str);

impl Schema {
    /// The settings of a run.
    pub fn of_runs() -> &'static Self {
        static SCHEMA: LazyLock<Schema> = LazyLock::new(Schema::of::<RunConfig>);
        &SCHEMA
    }

    /// The settings that a type holds.
    pub fn of<T: schemars::JsonSchema>() -> Self {
        Self { sections: derive::sections::<T>() }
    }

    /// The outermost sections; the others are within.
    pub fn sections(&self) -> &[SettingInfo] {
        &self.sections
    }

    /// All settings that have a value of their own, including those that only some choices bring,
    /// in the order of the file.
    pub fn settings(&self) -> Vec<&SettingInfo> {
        let mut found: Vec<&SettingInfo> = vec![];
        self.each(&mut |info, _| {
            let section = matches!(info.kind, Kind::Section(_));
            if !section && found.iter().all(|known| known.path != info.path) {
                found.push(info);
            }
        });
        found
    }

    /// The setting with this path.
    pub fn setting(&self, path: &str) -> Option<&SettingInfo> {
        self.settings().into_iter().find(|info| info.path == path)
    }

    /// The settings that have a flag.
    pub fn flags(&self) -> Vec<&SettingInfo> {
        self.settings().into_iter().filter(|info| info.flag.is_some()).collect()
    }

    /// Every setting of a configuration, with its value: of those that only some choices bring, the
    /// ones that there are.
    ///
    /// ```
    /// use lpgnn::run::{RunConfig, Schema};
    ///
    /// let config = RunConfig::default();
    /// let values = Schema::of_runs().values(&config);
    /// let changed = values.iter().filter(|(info, value)| info.default.as_ref() != Some(value));
    /// assert_eq!(changed.count(), 0);
    /// ```
    pub fn values<T: serde::Serialize>(&self, config: &T) -> Vec<(&SettingInfo, Value)> {
        fn walk<'a>(
            settings: &'a [SettingInfo],
            values: &Value,
            found: &mut Vec<(&'a SettingInfo, Value)>,
        ) {
            for info in in_effect(settings, values) {
                match (&info.kind, &values[info.key()]) {
                    (Kind::Section(settings), within @ Value::Object(_)) => {
                        walk(settings, within, found);
                    }
                    (_, value) => found.push((info, value.clone())),
                }
            }
        }
        let mut found = vec![];
        let values = serde_json::to_value(config).unwrap_or_default();
        walk(&self.sections, &values, &mut found);
        found
    }

    /// Adds a choice to the setting with this path, as a registry of functions does for those of a
    /// user; whether there is such a setting to choose.
    pub fn add_choice(&mut self, path: &str, choice: Choice) -> bool {
        fn find<'a>(settings: &'a mut [SettingInfo], path: &str) -> Option<&'a mut Vec<Choice>> {
            settings.iter_mut().find_map(|info| match (info.path == path, &mut info.kind) {
                (true, Kind::Word(choices) | Kind::Tag(choices)) => Some(choices),
                (_, Kind::Section(settings)) => find(settings, path),
                (_, Kind::Tag(choices)) => {
                    choices.iter_mut().find_map(|choice| find(&mut choice.settings, path))
                }
                _ => None,
            })
        }
        let choices = find(&mut self.sections, path);
        choices.map(|choices| choices.push(choice)).is_some()
    }

    /// Visits all sections and settings, with the choices that bring them.
    fn each<'a>(&'a self, visit: &mut dyn FnMut(&'a SettingInfo, &[Condition<'a>])) {
        fn walk<'a>(
            settings: &'a [SettingInfo],
            when: &mut Vec<Condition<'a>>,
            visit: &mut dyn FnMut(&'a SettingInfo, &[Condition<'a>]),
        ) {
            for info in settings {
                visit(info, when);
                match &info.kind {
                    Kind::Section(settings) => walk(settings, when, visit),
                    Kind::Tag(choices) => {
                        for choice in choices {
                            when.push((&info.path, &choice.name));
                            walk(&choice.settings, when, visit);
                            when.pop();
                        }
                    }
                    _ => {}
                }
            }
        }
        walk(&self.sections, &mut vec![], visit);
    }
}

impl SettingInfo {
    /// The last part of its path: its name in its section.
    pub fn key(&self) -> &str {
        self.path.rsplit('.').next().unwrap_or(&self.path)
    }

    /// Its default in words: how it depends on the data, or the value.
    pub fn default_text(&self) -> String {
        match (&self.depends_on, &self.default) {
            (Some(depends_on), _) => depends_on.clone(),
            (None, Some(value)) => write::toml_value(value).replace('"', ""),
            (None, None) => "must be set".into(),
        }
    }

    /// The setting with the value `text`, as given to a flag: lists
    /// need no brackets, words no quotes.
    pub fn read(&self, origin: impl Into<Origin>, text: &str) -> Setting {
        let (origin, text) = (origin.into(), text.trim());
        match self.kind {
            Kind::Word(_) | Kind::Tag(_) | Kind::Text => Setting::new(origin, &self.path, text),
            Kind::List(_) if !text.starts_with('[') && text != "none" => {
                Setting::of_text(origin, &self.path, &format!("[{text}]"))
            }
            _ => Setting::of_text(origin, &self.path, text),
        }
    }
}

/// The settings of a section whose values are these: also those that its choices bring.
fn in_effect<'a>(settings: &'a [SettingInfo], values: &Value) -> Vec<&'a SettingInfo> {
    let mut found = vec![];
    for info in settings {
        found.push(info);
        if let Kind::Tag(choices) = &info.kind {
            let chosen = choices.iter().find(|choice| values[info.key()] == *choice.name);
            found.extend(chosen.iter().flat_map(|choice| &choice.settings));
        }
    }
    found
}
