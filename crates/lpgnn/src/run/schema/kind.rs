use std::fmt;

use serde_json::Value;

use super::SettingInfo;

/// What values a setting takes.
///
/// It is displayed as a noun without an article, as in `positive integer`.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// An integer, both bounds included.
    Integer {
        /// The smallest.
        min: Option<i64>,
        /// The largest.
        max: Option<i64>,
    },
    /// A finite number.
    Number(Interval),
    /// `true` or `false`.
    Boolean,
    /// Any text.
    Text,
    /// One of these names. A choice that has settings is written as a table: `{ name = { … } }`.
    Word(Vec<Choice>),
    /// One of these names, which decides on other settings beside it, in the same section.
    Tag(Vec<Choice>),
    /// A list of values of one kind.
    List(Box<Kind>),
    /// A section: settings by their names.
    Section(Vec<SettingInfo>),
    /// Anything: the schema does not know.
    Any,
}

/// A name that can be chosen.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The name.
    pub name: String,
    /// What it is.
    pub meaning: String,
    /// The settings that there are when it is chosen.
    pub settings: Vec<SettingInfo>,
}

/// An interval of numbers; a bound that is open is not part of it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Interval {
    /// The lower bound, and whether it is open.
    pub low: Option<(f64, bool)>,
    /// The upper bound, and whether it is open.
    pub high: Option<(f64, bool)>,
}

impl Interval {
    /// Whether `x` is in it.
    pub fn contains(self, x: f64) -> bool {
        let above = self.low.is_none_or(|(low, open)| if open { x > low } else { x >= low });
        let below = self.high.is_none_or(|(high, open)| if open { x < high } else { x <= high });
        above && below
    }
}

impl Kind {
    /// Whether it has this value. A section has none, and `none` is none.
    pub fn admits(&self, value: &Value) -> bool {
        match self {
            Self::Integer { min, max } => value.as_i64().is_some_and(|value| {
                min.is_none_or(|min| value >= min) && max.is_none_or(|max| value <= max)
            }),
            Self::Number(interval) => value.as_f64().is_some_and(|x| interval.contains(x)),
            Self::Boolean => value.is_boolean(),
            Self::Text => value.is_string(),
            Self::Tag(choices) => choices.iter().any(|choice| *value == *choice.name),
            Self::Word(choices) => {
                choices.iter().any(|choice| choice.settings.is_empty() && *value == *choice.name)
            }
            Self::List(kind) => {
                value.as_array().is_some_and(|values| values.iter().all(|value| kind.admits(value)))
            }
            Self::Section(_) => false,
            Self::Any => true,
        }
    }

    /// The names that can be chosen, if it has any.
    pub fn choices(&self) -> &[Choice] {
        match self {
            Self::Word(choices) | Self::Tag(choices) => choices,
            _ => &[],
        }
    }

    /// With an article, as a message needs it.
    pub(super) fn expected(&self) -> String {
        let noun = self.to_string();
        match self {
            Self::Word(_) | Self::Tag(_) | Self::Boolean => noun,
            _ if noun.starts_with(['a', 'e', 'i', 'o', 'u']) => format!("an {noun}"),
            _ => format!("a {noun}"),
        }
    }
}

impl Choice {
    /// How it is written: its name, or a table with its settings.
    pub(super) fn syntax(&self) -> String {
        if self.settings.is_empty() {
            return self.name.clone();
        }
        let keys: Vec<&str> = self.settings.iter().map(SettingInfo::key).collect();
        format!("{{ {} = {{ {} }} }}", self.name, keys.join(", "))
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer { min: None, max: None } => f.write_str("integer"),
            Self::Integer { min: Some(0), max: None } => f.write_str("non-negative integer"),
            Self::Integer { min: Some(1), max: None } => f.write_str("positive integer"),
            Self::Integer { min: Some(min), max: None } => write!(f, "integer of at least {min}"),
            Self::Integer { min: None, max: Some(max) } => write!(f, "integer of at most {max}"),
            // Larger ones do not fit into TOML.
            Self::Integer { min: Some(0), max: Some(i64::MAX) } => {
                f.write_str("non-negative integer below 2⁶³")
            }
            Self::Integer { min: Some(min), max: Some(max) } => {
                write!(f, "integer from {min} to {max}")
            }
            Self::Number(interval) => write!(f, "{interval}"),
            Self::Boolean => f.write_str("true or false"),
            Self::Text => f.write_str("string"),
            Self::Word(choices) => one_of(f, choices.iter().map(Choice::syntax)),
            Self::Tag(choices) => one_of(f, choices.iter().map(|choice| choice.name.clone())),
            Self::List(kind) => {
                let noun = kind.to_string();
                let plural = noun.replacen("integer", "integers", 1);
                write!(f, "list of {}", plural.replacen("number", "numbers", 1))
            }
            Self::Section(_) => f.write_str("section"),
            Self::Any => f.write_str("value"),
        }
    }
}

fn one_of(f: &mut fmt::Formatter<'_>, names: impl Iterator<Item = String>) -> fmt::Result {
    let names: Vec<String> = names.collect();
    write!(f, "one of {}", names.join(", "))
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let zero = |bound: f64| bound.abs() < f64::MIN_POSITIVE;
        match (self.low, self.high) {
            (None, None) => f.write_str("number"),
            (Some((low, true)), None) if zero(low) => f.write_str("positive number"),
            (Some((low, false)), None) if zero(low) => f.write_str("non-negative number"),
            (low, high) => {
                let (left, low) = low.map_or(('(', f64::NEG_INFINITY), |(low, open)| {
                    (if open { '(' } else { '[' }, low)
                });
                let (right, high) = high.map_or((')', f64::INFINITY), |(high, open)| {
                    (if open { ')' } else { ']' }, high)
                });
                write!(f, "number in {left}{low}, {high}{right}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn bounds_are_part_of_an_interval_unless_it_is_open() {
        let share = Kind::Number(Interval { low: Some((0.0, false)), high: Some((1.0, true)) });
        assert_eq!(share.expected(), "a number in [0, 1)");
        let admitted = [json!(0), json!(0.5), json!(1), json!(-0.1), json!("0.5")];
        assert_eq!(admitted.map(|value| share.admits(&value)), [true, true, false, false, false]);
    }

    #[test]
    fn integers_are_no_fractions_and_keep_their_bounds() {
        let units = Kind::Integer { min: Some(1), max: Some(8) };
        assert_eq!(units.expected(), "an integer from 1 to 8");
        let admitted = [json!(0), json!(1), json!(8), json!(9), json!(2.0), json!(u64::MAX)];
        let expected = [false, true, true, false, false, false];
        assert_eq!(admitted.map(|value| units.admits(&value)), expected);
        let list = Kind::List(Box::new(units));
        assert_eq!(list.expected(), "a list of integers from 1 to 8");
        assert!(list.admits(&json!([1, 8])) && !list.admits(&json!([1, 9])));
    }
}
