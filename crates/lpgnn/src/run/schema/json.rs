//! The schema as JSON Schema, for editors and other programs that check files of settings.

use serde_json::{Map, Value, json};

use super::{Choice, Kind, Schema, SettingInfo};

impl Schema {
    /// The JSON schema of a file of settings, which need not be complete.
    pub fn to_json_schema(&self, title: &str) -> Value {
        let mut schema = section(&self.sections);
        schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
        schema["title"] = title.into();
        schema
    }
}

/// An object with these settings; with a tag, one of several objects.
fn section(settings: &[SettingInfo]) -> Value {
    let tag = settings.iter().find_map(|info| match &info.kind {
        Kind::Tag(choices) => Some((info, choices)),
        _ => None,
    });
    let Some((tag, choices)) = tag else { return object(settings.iter()) };
    let variant = |choice: &Choice| {
        let mut variant = object(settings.iter().chain(&choice.settings));
        variant["description"] = choice.meaning.as_str().into();
        variant["properties"][tag.key()]["const"] = choice.name.as_str().into();
        variant
    };
    // Not oneOf: a file that does not name its choice may fit several.
    json!({ "anyOf": choices.iter().map(variant).collect::<Vec<_>>() })
}

fn object<'a>(settings: impl Iterator<Item = &'a SettingInfo>) -> Value {
    let properties: Map<String, Value> =
        settings.map(|info| (info.key().to_owned(), property(info))).collect();
    json!({ "type": "object", "properties": properties, "additionalProperties": false })
}

fn property(info: &SettingInfo) -> Value {
    let mut property = kind(&info.kind);
    if info.optional {
        property = json!({ "anyOf": [property, { "const": "none" }] });
    }
    let mut description = format!("{} {}", info.meaning, info.detail).trim().to_owned();
    if let Some(depends_on) = &info.depends_on {
        description = format!("{description} Default: {depends_on}.");
    } else if let (Some(default), false) = (&info.default, matches!(info.kind, Kind::Section(_))) {
        property["default"] = if default.is_null() { "none".into() } else { default.clone() };
    }
    property["description"] = description.into();
    property
}

fn kind(kind: &Kind) -> Value {
    match kind {
        Kind::Integer { min, max } => bounded("integer", [("minimum", *min), ("maximum", *max)]),
        Kind::Number(interval) => {
            let closed = |(bound, open): (f64, bool)| (!open).then_some(bound);
            let open = |(bound, open): (f64, bool)| open.then_some(bound);
            let (low, high) = (interval.low, interval.high);
            bounded(
                "number",
                [
                    ("minimum", low.and_then(closed)),
                    ("exclusiveMinimum", low.and_then(open)),
                    ("maximum", high.and_then(closed)),
                    ("exclusiveMaximum", high.and_then(open)),
                ],
            )
        }
        Kind::Boolean => json!({ "type": "boolean" }),
        // The names of a tag are in the alternatives of its section.
        Kind::Text | Kind::Tag(_) => json!({ "type": "string" }),
        Kind::Word(choices) => {
            json!({ "anyOf": choices.iter().map(word).collect::<Vec<_>>() })
        }
        Kind::List(of) => json!({ "type": "array", "items": self::kind(of) }),
        Kind::Section(settings) => section(settings),
        Kind::Any => json!({}),
    }
}

fn bounded<T: Into<Value>, const N: usize>(kind: &str, bounds: [(&str, Option<T>); N]) -> Value {
    let mut schema = json!({ "type": kind });
    for (key, bound) in bounds {
        if let Some(bound) = bound {
            schema[key] = bound.into();
        }
    }
    schema
}

fn word(choice: &Choice) -> Value {
    if choice.settings.is_empty() {
        return json!({ "const": choice.name, "description": choice.meaning });
    }
    let mut settings = object(choice.settings.iter());
    settings["required"] = choice.settings.iter().map(SettingInfo::key).collect();
    json!({
        "type": "object",
        "description": choice.meaning,
        "properties": { choice.name.as_str(): settings },
        "required": [choice.name],
        "additionalProperties": false,
    })
}
