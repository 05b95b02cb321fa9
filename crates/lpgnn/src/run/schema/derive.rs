//! The schema of a type, from what `schemars` derives of its declaration.

use schemars::generate::SchemaSettings;
use serde_json::Value;

use super::{Choice, Interval, Kind, SettingInfo};

/// The fields of `T`, which are sections and settings.
pub(super) fn sections<T: schemars::JsonSchema>() -> Vec<SettingInfo> {
    // The contract of serialisation requires every field, so that `required` has their order.
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let generator = settings.with(|settings| settings.inline_subschemas = true).into_generator();
    fields("", generator.into_root_schema_for::<T>().as_value())
}

/// The settings of an object, in the order of its declaration.
fn fields(path: &str, object: &Value) -> Vec<SettingInfo> {
    let keys = object["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    keys.map(|key| setting(&join(path, key), &object["properties"][key])).collect()
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

fn setting(path: &str, schema: &Value) -> SettingInfo {
    let text = |key: &str| schema[key].as_str().map(ToOwned::to_owned);
    let (meaning, detail) = paragraphs(schema);
    // Of what may be null, the other alternative says what it is.
    let alternatives = schema["anyOf"].as_array();
    let other = alternatives.and_then(|all| all.iter().find(|one| one["type"] != "null"));
    let (depends_on, flag) = (text("x-data-default"), text("x-flag"));
    let mut info = SettingInfo {
        path: path.to_owned(),
        meaning,
        detail,
        kind: kind(path, other.unwrap_or(schema)),
        optional: other.is_some() || types(schema).contains(&"null"),
        default: schema.get("default").cloned(),
        depends_on,
        flag,
    };
    // What is said of a section with a tag is said of its tag.
    if let Kind::Section(settings) = &mut info.kind
        && let [tag] = settings.as_mut_slice()
        && matches!(tag.kind, Kind::Tag(_))
    {
        tag.default = info.default.as_ref().and_then(|default| default.get(tag.key())).cloned();
        (tag.depends_on, tag.flag) = (info.depends_on.take(), info.flag.take());
        tag.meaning.clone_from(&info.meaning);
    }
    info
}

/// The first paragraph of a doc comment, and the others.
fn paragraphs(schema: &Value) -> (String, String) {
    let text = schema["description"].as_str().unwrap_or_default();
    let (first, rest) = text.split_once("\n\n").unwrap_or((text, ""));
    (first.replace('\n', " "), rest.replace('\n', " "))
}

/// Its types, of which there are two if one is null.
fn types(schema: &Value) -> Vec<&str> {
    match &schema["type"] {
        Value::String(one) => vec![one],
        Value::Array(all) => all.iter().filter_map(Value::as_str).collect(),
        _ => vec![],
    }
}

fn kind(path: &str, schema: &Value) -> Kind {
    if let Some(variants) = schema["oneOf"].as_array() {
        return variants_kind(path, variants);
    }
    if let Some(names) = schema["enum"].as_array() {
        return Kind::Word(names.iter().filter_map(|name| word(name, "")).collect());
    }
    match types(schema).first() {
        Some(&"integer") => {
            Kind::Integer { min: schema["minimum"].as_i64(), max: schema["maximum"].as_i64() }
        }
        Some(&"number") => Kind::Number(Interval {
            low: bound(schema, "minimum", "exclusiveMinimum"),
            high: bound(schema, "maximum", "exclusiveMaximum"),
        }),
        Some(&"boolean") => Kind::Boolean,
        Some(&"string") => Kind::Text,
        Some(&"array") => Kind::List(Box::new(kind(path, &schema["items"]))),
        Some(&"object") => Kind::Section(fields(path, schema)),
        _ => Kind::Any,
    }
}

fn bound(schema: &Value, closed: &str, open: &str) -> Option<(f64, bool)> {
    let open = schema[open].as_f64().map(|bound| (bound, true));
    open.or_else(|| schema[closed].as_f64().map(|bound| (bound, false)))
}

/// An enum: words; or a section with a tag, if all variants have a constant property of one name.
fn variants_kind(path: &str, variants: &[Value]) -> Kind {
    let tag = |variant: &Value| {
        let properties = variant["properties"].as_object()?;
        properties.iter().find(|(_, of)| of["const"].is_string()).map(|(key, _)| key.clone())
    };
    let tags: Option<Vec<String>> = variants.iter().map(tag).collect();
    match tags.as_deref() {
        Some([key, others @ ..]) if others.iter().all(|other| other == key) => {
            let choice = |variant: &Value| {
                let mut choice = word(&variant["properties"][key]["const"], &meaning(variant))?;
                choice.settings = fields(path, variant);
                choice.settings.retain(|info| info.key() != key);
                Some(choice)
            };
            let choices = variants.iter().filter_map(choice).collect();
            let mut tag = setting(&join(path, key), &Value::Null);
            tag.kind = Kind::Tag(choices);
            Kind::Section(vec![tag])
        }
        _ => Kind::Word(variants.iter().flat_map(|variant| words(path, variant)).collect()),
    }
}

/// The names of a variant: of one that says something, its own; of those that do not, all.
fn words(path: &str, variant: &Value) -> Vec<Choice> {
    if let Some(names) = variant["enum"].as_array() {
        return names.iter().filter_map(|name| word(name, "")).collect();
    }
    if let Some(fields_of) = variant["properties"].as_object() {
        let choice = |(name, object): (&String, &Value)| Choice {
            name: name.clone(),
            meaning: meaning(variant),
            settings: fields(&join(path, name), object),
        };
        return fields_of.iter().map(choice).collect();
    }
    word(&variant["const"], &meaning(variant)).into_iter().collect()
}

fn word(name: &Value, meaning: &str) -> Option<Choice> {
    let name = name.as_str()?.to_owned();
    Some(Choice { name, meaning: meaning.to_owned(), settings: vec![] })
}

fn meaning(schema: &Value) -> String {
    paragraphs(schema).0
}

#[cfg(test)]
mod tests {
    use super::super::Schema;
    use super::*;

    #[derive(serde::Serialize, Default, schemars::JsonSchema)]
    #[serde(default, rename_all = "kebab-case")]
    struct Outer {
        /// Comes
        /// first.
        ///
        /// And more.
        z_first: Option<u32>,
        /// Which.
        #[schemars(extend("x-flag" = "which", "x-data-default" = "large for large data"))]
        a: Tagged,
        /// A rule.
        rule: Rule,
    }

    #[derive(serde::Serialize, schemars::JsonSchema)]
    #[serde(tag = "kind", rename_all = "kebab-case")]
    #[allow(dead_code, reason = "only its declaration is looked at")]
    enum Tagged {
        /// None of them.
        Nothing,
        /// One.
        One {
            /// Its size.
            size: f64,
        },
    }

    impl Default for Tagged {
        fn default() -> Self {
            Self::One { size: 1.0 }
        }
    }

    #[derive(serde::Serialize, Default, schemars::JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    #[allow(dead_code, reason = "only its declaration is looked at")]
    enum Rule {
        /// Plain.
        #[default]
        Plain,
        /// Fancy.
        Fancy {
            /// How.
            how: bool,
        },
    }

    #[test]
    fn fields_keep_their_order_and_say_what_is_beside_them() {
        let schema = Schema::of::<Outer>();
        let paths: Vec<&str> = schema.settings().iter().map(|info| info.path.as_str()).collect();
        assert_eq!(paths, ["z-first", "a.kind", "a.size", "rule"]);
        let first = schema.setting("z-first").unwrap();
        assert_eq!((first.meaning.as_str(), first.detail.as_str()), ("Comes first.", "And more."));
        assert_eq!((first.optional, &first.default), (true, &Some(Value::Null)));
        let tag = schema.setting("a.kind").unwrap();
        assert_eq!((tag.flag.as_deref(), tag.meaning.as_str()), (Some("which"), "Which."));
        assert_eq!(tag.default_text(), "large for large data");
        assert_eq!(tag.default, Some("one".into()));
        assert_eq!(tag.kind.to_string(), "one of nothing, one");
        let rule = schema.setting("rule").unwrap();
        assert_eq!(rule.kind.to_string(), "one of plain, { fancy = { how } }");
    }

    #[test]
    fn choices_are_data_that_can_be_added() {
        let mut schema = Schema::of::<Outer>();
        let choice = Choice { name: "mine".into(), meaning: "My own.".into(), settings: vec![] };
        assert!(schema.add_choice("a.kind", choice.clone()));
        assert!(!schema.add_choice("z-first", choice));
        let tag = schema.setting("a.kind").unwrap();
        assert_eq!(tag.kind.to_string(), "one of nothing, one, mine");
    }
}
