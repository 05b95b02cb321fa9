//! The schema of settings: its page in the book and its JSON schema say what there is.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::Path;

use lpgnn::run::{Kind, RunConfig, Schema};
use serde_json::Value;

/// What follows this line is generated.
const MARK: &str = "<!-- Generated from the declarations of the settings. -->\n";

#[test]
fn the_page_of_settings_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/settings.md");
    let Ok(page) = std::fs::read_to_string(&path) else {
        // A packaged crate comes without the book.
        println!("skipped: there is no {}", path.display());
        return;
    };
    let (head, before) = page.split_once(MARK).unwrap();
    let now = Schema::of_runs().to_markdown();
    if std::env::var_os("LPGNN_SETTINGS").is_some_and(|value| value == "record") {
        std::fs::write(&path, format!("{head}{MARK}{now}")).unwrap();
        return;
    }
    let stale = before.lines().zip(now.lines()).find(|(before, now)| before != now);
    assert!(
        before == now,
        "docs/src/settings.md is not what the declarations say; `make settings` writes it anew: {stale:?}"
    );
}

/// Whether `value` is valid, as far as our schemas go.
fn is_valid(schema: &Value, value: &Value) -> bool {
    let bound =
        |key: &str, holds: fn(f64, f64) -> bool| match (schema[key].as_f64(), value.as_f64()) {
            (Some(bound), Some(x)) => holds(x, bound),
            _ => true,
        };
    let kind = match schema["type"].as_str() {
        Some("object") => value.as_object().is_some_and(|entries| {
            entries.iter().all(|(key, value)| {
                schema["properties"].get(key).is_some_and(|schema| is_valid(schema, value))
            })
        }),
        Some("array") => {
            value.as_array().is_some_and(|all| all.iter().all(|of| is_valid(&schema["items"], of)))
        }
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("number") => value.is_number(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        _ => true,
    };
    let alternatives = schema["anyOf"].as_array();
    kind && alternatives.is_none_or(|all| all.iter().any(|schema| is_valid(schema, value)))
        && schema.get("const").is_none_or(|constant| constant == value)
        && bound("minimum", |x, bound| x >= bound)
        && bound("maximum", |x, bound| x <= bound)
        && bound("exclusiveMinimum", |x, bound| x > bound)
        && bound("exclusiveMaximum", |x, bound| x < bound)
}

#[test]
fn the_json_schema_takes_what_the_reader_takes() {
    let schema = Schema::of_runs().to_json_schema("settings");
    let whole = toml::from_str::<Value>(&RunConfig::default().to_toml()).unwrap();
    assert!(is_valid(&schema, &whole));
    for (text, reads) in [
        ("", true),
        ("training.epochs = 3", true),
        ("training.epochs = 0", false),
        ("training.epochs = \"many\"", false),
        ("training.batch-size = \"none\"", true),
        ("training.seed = \"none\"", false),
        ("training.solver.weights.lr = 0.1", true),
        ("training.solver.weights.lr = 0.0", false),
        ("training.solver = { kind = \"bdmm\", state-lr = 0.1 }", true),
        ("training.solver = { kind = \"one-shot\", state-lr = 0.1 }", false),
        ("training.solver = { kind = \"magic\" }", false),
        ("training.inference.fall-back = \"none\"", true),
        ("model.hidden-dims = [3, 4]", true),
        ("model.hidden-dims = [3, 0]", false),
        ("model.dropout = 1.0", false),
        ("modl.dropout = 0.0", false),
    ] {
        let value = toml::from_str::<Value>(text).unwrap();
        assert_eq!(RunConfig::from_toml("test", text).is_ok(), reads, "{text}");
        assert_eq!(is_valid(&schema, &value), reads, "{text}");
    }
}

#[test]
fn a_flag_is_the_last_part_of_a_path_and_takes_lists_and_words_as_they_are() {
    let schema = Schema::of_runs();
    let flags = schema.flags();
    for (i, info) in flags.iter().enumerate() {
        let twice = flags[..i].iter().any(|other| other.flag == info.flag);
        assert!(!twice, "two settings have the flag of {}", info.path);
    }
    let read = |path: &str, text: &str| schema.setting(path).unwrap().read("--flag", text);
    assert_eq!(read("model.hidden-dims", "50,20").value(), &serde_json::json!([50, 20]));
    assert_eq!(read("model.hidden-dims", "[]").value(), &serde_json::json!([]));
    assert_eq!(read("training.solver.kind", "true").value(), "true");
    assert_eq!(read("training.batch-size", "none").value(), "none");
    assert!(matches!(schema.setting("training.solver.kind").unwrap().kind, Kind::Tag(_)));
}
