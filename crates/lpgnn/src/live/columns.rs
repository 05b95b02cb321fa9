//! Features of nodes and edges as they are in files, with their names.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserializer, Error as _, MapAccess, Visitor};

use crate::data::{Categories, FeatureColumns};
use crate::graph::SparseRows;
use crate::{Error, Matrix};

/// The features of a node or edge: columns by their names, or real values in order.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(
    untagged,
    expecting = "features are expected as an object with every column once and a number or text each, as an array of values, or as an array of pairs"
)]
pub enum Columns {
    /// Text is a category, a number is a category or a real value as the model reads it.
    Named(#[serde(deserialize_with = "distinct")] BTreeMap<String, Cell>),
    /// All real values.
    Values(Vec<f32>),
    /// Columns with the values that are not zero.
    Sparse(Vec<(u32, f32)>),
}

/// A category or a real value.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(untagged)]
pub enum Cell {
    /// A real value.
    Value(f64),
    /// A category.
    Category(String),
}

impl Default for Columns {
    fn default() -> Self {
        Self::Named(BTreeMap::new())
    }
}

impl Columns {
    /// As a table of one row, for an encoding that reads `width` columns.
    pub(super) fn table(&self, width: usize) -> Result<FeatureColumns, Error> {
        let mut table = FeatureColumns::none(1);
        match self {
            Self::Named(cells) => {
                let (mut names, mut values) = (vec![], vec![]);
                for (name, cell) in cells {
                    match cell {
                        Cell::Category(value) => {
                            table = table.with_categories(Categories::from_text(name, &[value]))?;
                        }
                        Cell::Value(value) => {
                            names.push(name.clone());
                            values.push(single(name, *value)?);
                        }
                    }
                }
                let values = Matrix::from_entries(1, names.len(), values)?;
                table.with_values(names, values)
            }
            Self::Values(values) => {
                let rows = Matrix::from_entries(1, values.len(), values.clone())?;
                table.with_sparse(SparseRows::of_dense(&rows)?)
            }
            Self::Sparse(entries) => {
                let (columns, values): (Vec<u32>, Vec<f32>) = entries.iter().copied().unzip();
                table.with_sparse(SparseRows::new(width, vec![0, columns.len()], columns, values)?)
            }
        }
    }
}

/// A number in single precision. A whole one that becomes another is probably a number of something, which it would be mistaken for.
#[allow(
    clippy::cast_possible_truncation,
    clippy::float_cmp,
    reason = "whether it is the same is the question"
)]
fn single(name: &str, value: f64) -> Result<f32, Error> {
    let single = value as f32;
    if value.fract() == 0.0 && single.is_finite() && f64::from(single) != value {
        return Err(Error::Mismatch(format!(
            "{name} is {value}, which would become {single} in single precision; a category may be text"
        )));
    }
    Ok(single)
}

/// Columns of which none comes twice.
fn distinct<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, Cell>, D::Error> {
    struct Distinct;
    impl<'de> Visitor<'de> for Distinct {
        type Value = BTreeMap<String, Cell>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object with every column once")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut all = BTreeMap::new();
            while let Some((name, cell)) = map.next_entry::<String, Cell>()? {
                if all.insert(name, cell).is_some() {
                    return Err(A::Error::custom("a column comes twice"));
                }
            }
            Ok(all)
        }
    }
    from.deserialize_map(Distinct)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_comes_once_and_a_whole_number_stays_what_it_is() {
        let read = |text: &str| serde_json::from_str::<Columns>(text);
        let error = read(r#"{"x": 1, "y": 2, "x": 3}"#).unwrap_err().to_string();
        assert!(error.contains("an object with every column once"), "{error}");
        assert_eq!(read("[1, 0.5]").unwrap(), Columns::Values(vec![1.0, 0.5]));
        let table = |text: &str| read(text).unwrap().table(2);
        let row = |text: &str| table(text).unwrap().values().as_slice().to_vec();
        assert_eq!(row(r#"{"x": 16777216, "y": 0.1}"#), [16_777_216.0, 0.1]);
        let error = table(r#"{"x": 16777217, "y": 0}"#).unwrap_err().to_string();
        assert!(error.starts_with("x is 16777217, which would become 16777216"), "{error}");
        assert!(table(r#"{"x": 1e39}"#).is_err());
    }
}
