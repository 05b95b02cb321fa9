use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The names of columns of real values: some that are listed, then some that are only numbered.
///
/// A file may have millions of columns without names; numbered ones take no memory.
///
/// ```
/// use lpgnn::data::ColumnNames;
///
/// let names = ColumnNames::from(vec!["age".to_owned()]).and_numbered("feature", 2);
/// assert_eq!(names.to_vec(), ["age", "feature 1", "feature 2"]);
/// assert_eq!(ColumnNames::default().and_numbered("feature", 1).to_vec(), ["feature"]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct ColumnNames {
    listed: Vec<String>,
    base: String,
    numbered: usize,
}

impl ColumnNames {
    /// The same and behind them `count` more: `base`, or `base 1`, `base 2`, … if there are several.
    ///
    /// What was numbered before is listed from now on.
    #[must_use]
    pub fn and_numbered(self, base: &str, count: usize) -> Self {
        let listed = if self.numbered == 0 { self.listed } else { self.to_vec() };
        Self { listed, base: base.to_owned(), numbered: count }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.listed.len() + self.numbered
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = Cow<'_, str>> {
        let numbered = (1..=self.numbered).map(|i| match self.numbered {
            1 => Cow::Borrowed(&self.base[..]),
            _ => Cow::Owned(format!("{} {i}", self.base)),
        });
        self.listed.iter().map(|name| Cow::Borrowed(&name[..])).chain(numbered)
    }

    /// The index of a name.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.iter().position(|own| own == name)
    }

    /// All of them, written out.
    pub fn to_vec(&self) -> Vec<String> {
        self.iter().map(Cow::into_owned).collect()
    }
}

impl From<Vec<String>> for ColumnNames {
    fn from(listed: Vec<String>) -> Self {
        Self { listed, base: String::new(), numbered: 0 }
    }
}

/// By the names, however they are kept.
impl PartialEq for ColumnNames {
    fn eq(&self, other: &Self) -> bool {
        let same = self.listed == other.listed
            && self.base == other.base
            && self.numbered == other.numbered;
        same || (self.len() == other.len() && self.iter().eq(other.iter()))
    }
}

/// As a list.
impl Serialize for ColumnNames {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for ColumnNames {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::<String>::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_equal_however_they_are_kept() {
        let numbered = ColumnNames::default().and_numbered("x", 3);
        let listed = ColumnNames::from(numbered.to_vec());
        assert_eq!(numbered, listed);
        assert_eq!(serde_json::to_string(&numbered).unwrap(), r#"["x 1","x 2","x 3"]"#);
        assert_eq!(
            serde_json::from_str::<ColumnNames>(r#"["x 1","x 2","x 3"]"#).unwrap(),
            numbered
        );
        assert_ne!(numbered, ColumnNames::default().and_numbered("x", 4));
        assert_ne!(numbered, ColumnNames::default().and_numbered("y", 3));
        assert_eq!(numbered.position("x 3"), Some(2));
        let more = numbered.and_numbered("y", 1);
        assert_eq!(more.to_vec(), ["x 1", "x 2", "x 3", "y"]);
    }
}
