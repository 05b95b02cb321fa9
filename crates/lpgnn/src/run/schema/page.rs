//! The page of settings in the book.

use std::fmt::{self, Write};

use super::{Choice, Kind, Schema, SettingInfo};

impl Schema {
    /// All settings by section, with what they mean, as Markdown.
    pub fn to_markdown(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.sections.iter().try_for_each(|info| write_section(&mut text, info));
        text
    }
}

/// Its settings; what every choice among them brings; and the sections in it, each of them once,
/// however many choices bring it.
fn write_section(text: &mut String, info: &SettingInfo) -> fmt::Result {
    let Kind::Section(settings) = &info.kind else { return Ok(()) };
    writeln!(text, "\n## `[{}]`\n\n{}", info.path, said(info))?;
    let mut within = write_settings(text, settings)?;
    for tag in settings {
        let Kind::Tag(choices) = &tag.kind else { continue };
        for choice in choices.iter().filter(|choice| !choice.settings.is_empty()) {
            writeln!(text, "\n### With `{} = \"{}\"`", tag.key(), choice.name)?;
            for section in write_settings(text, &choice.settings)? {
                if !within.contains(&section) {
                    within.push(section);
                }
            }
        }
    }
    within.into_iter().try_for_each(|info| write_section(text, info))
}

/// A table of settings and the choices that they have; returns the sections among them.
fn write_settings<'a>(
    text: &mut String,
    settings: &'a [SettingInfo],
) -> Result<Vec<&'a SettingInfo>, fmt::Error> {
    let (sections, settings): (Vec<&SettingInfo>, Vec<&SettingInfo>) =
        settings.iter().partition(|info| matches!(info.kind, Kind::Section(_)));
    if !settings.is_empty() {
        writeln!(text, "\n| setting | value | default | meaning |\n|---|---|---|---|")?;
    }
    for info in &settings {
        let flag = info.flag.as_ref().map_or_else(String::new, |flag| format!(", `--{flag}`"));
        let none = if info.optional { " or none" } else { "" };
        let value = match info.kind {
            Kind::Word(_) | Kind::Tag(_) => format!("one of the names below{none}"),
            _ => format!("{}{none}", info.kind),
        };
        let row = [format!("`{}`{flag}", info.key()), value, info.default_text(), said(info)];
        writeln!(text, "| {} |", row.map(|cell| cell.replace('|', "\\|")).join(" | "))?;
    }
    write_choices(text, &settings)?;
    Ok(sections)
}

/// The names that can be chosen, once for all settings that have the same.
fn write_choices(text: &mut String, settings: &[&SettingInfo]) -> fmt::Result {
    for (i, info) in settings.iter().enumerate() {
        let choices = info.kind.choices();
        let same = |other: &&&SettingInfo| other.kind.choices() == choices;
        if choices.is_empty() || settings[..i].iter().any(|other| same(&other)) {
            continue;
        }
        let keys = settings[i..].iter().filter(same).map(|info| format!("`{}`", info.key()));
        writeln!(text, "\n{}:\n", keys.collect::<Vec<_>>().join(", "))?;
        for choice in choices {
            let name = match info.kind {
                Kind::Word(_) => Choice::syntax(choice),
                _ => choice.name.clone(),
            };
            writeln!(text, "- `{name}`: {}", choice.meaning)?;
        }
    }
    Ok(())
}

fn said(info: &SettingInfo) -> String {
    format!("{} {}", info.meaning, info.detail).trim().to_owned()
}
