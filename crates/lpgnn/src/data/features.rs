use std::borrow::Cow;
use std::cmp::Ordering;

use super::ColumnNames;
use crate::graph::{NO_TARGET, SparseRows};
use crate::{Error, Matrix};

/// Features of nodes or edges as they are in files, column by column.
///
/// Every row may have categories (an atom's symbol), real values, and a sparse row of real values;
/// any of the three may be absent.
#[derive(Clone, Debug, PartialEq)]
pub struct FeatureColumns {
    rows: usize,
    categories: Vec<Categories>,
    value_names: ColumnNames,
    values: Matrix<f32>,
    sparse: Option<SparseRows<f32>>,
}

impl FeatureColumns {
    /// No features for `rows` nodes or edges.
    pub fn none(rows: usize) -> Self {
        Self {
            rows,
            categories: vec![],
            value_names: ColumnNames::default(),
            values: Matrix::zeros(rows, 0),
            sparse: None,
        }
    }

    /// The same with an additional categorical column.
    ///
    /// # Errors
    ///
    /// [`Error::RowCount`]; [`Error::Mismatch`] if a row has no category.
    pub fn with_categories(mut self, categories: Categories) -> Result<Self, Error> {
        self.check_rows("a column of categories", categories.codes.len())?;
        if let Some(row) = categories.codes.iter().position(|&code| code == NO_TARGET) {
            return Err(Error::Mismatch(format!("row {row} has no {}", categories.name)));
        }
        self.categories.push(categories);
        Ok(self)
    }

    /// The same with real values, one column per name.
    ///
    /// # Errors
    ///
    /// [`Error::RowCount`]; [`Error::NotFinite`], naming the first row and column.
    pub fn with_values(
        mut self,
        names: impl Into<ColumnNames>,
        values: Matrix<f32>,
    ) -> Result<Self, Error> {
        let names = names.into();
        self.check_rows("the real features", values.rows())?;
        if names.len() != values.cols() {
            return Err(Error::RaggedRows { row: 0, expected: names.len(), found: values.cols() });
        }
        if let Some(i) = values.as_slice().iter().position(|x| !x.is_finite()) {
            return Err(Error::NotFinite {
                what: "the real features",
                row: i / values.cols(),
                column: i % values.cols(),
                value: f64::from(values.as_slice()[i]),
            });
        }
        (self.value_names, self.values) = (names, values);
        Ok(self)
    }

    /// The same with a sparse row of real values per node or edge.
    ///
    /// # Errors
    ///
    /// [`Error::RowCount`].
    pub fn with_sparse(mut self, sparse: SparseRows<f32>) -> Result<Self, Error> {
        self.check_rows("the sparse features", sparse.rows())?;
        self.sparse = Some(sparse);
        Ok(self)
    }

    fn check_rows(&self, what: &'static str, found: usize) -> Result<(), Error> {
        if found == self.rows {
            Ok(())
        } else {
            Err(Error::RowCount { what, expected: self.rows, found })
        }
    }

    /// The number of nodes or edges.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Whether there are no features.
    pub fn is_empty(&self) -> bool {
        self.categories.is_empty() && self.values.cols() == 0 && self.sparse.is_none()
    }

    /// The categorical columns.
    pub fn categories(&self) -> &[Categories] {
        &self.categories
    }

    /// The real values, one column per name.
    pub fn values(&self) -> &Matrix<f32> {
        &self.values
    }

    /// The names of the columns of [`values`](Self::values).
    pub fn value_names(&self) -> &ColumnNames {
        &self.value_names
    }

    /// The sparse rows.
    pub fn sparse(&self) -> Option<&SparseRows<f32>> {
        self.sparse.as_ref()
    }

    /// These rows followed by those of `other`.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`] if `other` has different columns.
    pub fn join(&self, other: &Self) -> Result<Self, Error> {
        let names = |features: &Self| -> Vec<String> {
            features.categories.iter().map(|column| column.name.clone()).collect()
        };
        let (mine, theirs) = (names(self), names(other));
        if mine != theirs || self.value_names != other.value_names {
            return Err(Error::Mismatch(format!(
                "one has the columns ({}), the other ({})",
                self.list_columns(),
                other.list_columns()
            )));
        }
        let rows = self.rows + other.rows;
        let columns = self.categories.iter().zip(&other.categories);
        let values = [self.values.as_slice(), other.values.as_slice()].concat();
        Ok(Self {
            rows,
            categories: columns.map(|(a, b)| a.join(b)).collect(),
            value_names: self.value_names.clone(),
            values: Matrix::from_entries(rows, self.value_names.len(), values)?,
            sparse: match (&self.sparse, &other.sparse) {
                (Some(a), Some(b)) => Some(a.join(b)),
                (None, None) => None,
                _ => return Err(Error::Mismatch("one has sparse features, the other none".into())),
            },
        })
    }

    /// The names of the first columns, for messages.
    fn list_columns(&self) -> String {
        const MOST: usize = 20;
        let categories = self.categories.iter().map(|column| column.name.clone());
        let values = self.value_names.iter().map(Cow::into_owned);
        let mut names: Vec<String> = categories.chain(values).take(MOST + 1).collect();
        if names.len() > MOST {
            names[MOST] = "…".into();
        }
        names.join(", ")
    }

    /// The rows with these indices, in this order.
    pub fn select(&self, rows: &[usize]) -> Self {
        Self {
            rows: rows.len(),
            categories: self.categories.iter().map(|column| column.select(rows)).collect(),
            value_names: self.value_names.clone(),
            values: self.values.select(rows.iter().copied()),
            sparse: self.sparse.as_ref().map(|sparse| sparse.select(rows.iter().copied())),
        }
    }

    /// Whether two rows are equal, bit by bit.
    pub(super) fn same_rows(&self, a: usize, b: usize) -> bool {
        let same = |x: &[f32], y: &[f32]| x.iter().zip(y).all(|(x, y)| x.to_bits() == y.to_bits());
        self.categories.iter().all(|column| column.codes[a] == column.codes[b])
            && same(self.values.row(a), self.values.row(b))
            && self.sparse.as_ref().is_none_or(|sparse| {
                sparse.row(a).0 == sparse.row(b).0 && same(sparse.row(a).1, sparse.row(b).1)
            })
    }
}

/// A categorical column: a feature of nodes or edges, or classes.
///
/// The distinct values are sorted, numbers by size and before words, so that the same file always
/// gives the same codes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Categories {
    name: String,
    values: Vec<String>,
    codes: Vec<u32>,
}

impl Categories {
    /// A column of integers.
    pub fn from_integers(name: impl Into<String>, column: &[i64]) -> Self {
        let mut values = column.to_vec();
        values.sort_unstable();
        values.dedup();
        // Every value is in the list.
        let codes =
            column.iter().map(|x| values.binary_search(x).map_or(NO_TARGET, code)).collect();
        Self { name: name.into(), values: values.iter().map(i64::to_string).collect(), codes }
    }

    /// A column of words or numbers. An empty string is [`NO_TARGET`].
    pub fn from_text<T: AsRef<str>>(name: impl Into<String>, column: &[T]) -> Self {
        let mut values: Vec<&str> =
            column.iter().map(AsRef::as_ref).filter(|text| !text.is_empty()).collect();
        values.sort_unstable_by(|a, b| compare(a, b));
        values.dedup();
        let codes = column
            .iter()
            .map(|text| values.binary_search_by(|value| compare(value, text.as_ref())))
            .map(|place| place.map_or(NO_TARGET, code))
            .collect();
        let values = values.into_iter().map(str::to_owned).collect();
        Self { name: name.into(), values, codes }
    }

    /// A column from the list of its values and, per row, an index into it or [`NO_TARGET`].
    ///
    /// # Errors
    ///
    /// [`Error::ColumnOutOfRange`], naming the first row whose index is out of range.
    pub fn from_codes(
        name: impl Into<String>,
        values: Vec<String>,
        codes: Vec<u32>,
    ) -> Result<Self, Error> {
        let wrong = |&code: &u32| code != NO_TARGET && code as usize >= values.len();
        if let Some(row) = codes.iter().position(wrong) {
            return Err(Error::ColumnOutOfRange {
                what: "a column of categories",
                row,
                column: codes[row] as usize,
                width: values.len(),
            });
        }
        Ok(Self { name: name.into(), values, codes })
    }

    /// Name of the column.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The distinct values, sorted.
    pub fn values(&self) -> &[String] {
        &self.values
    }

    /// For every row, the index of its value in [`values`](Self::values), or [`NO_TARGET`].
    pub fn codes(&self) -> &[u32] {
        &self.codes
    }

    /// The value of a row; none if it is unknown.
    pub fn value(&self, row: usize) -> Option<&str> {
        self.values.get(self.codes[row] as usize).map(String::as_str)
    }

    /// How many rows have each value.
    pub fn counts(&self) -> Vec<usize> {
        let mut counts = vec![0; self.values.len()];
        for &code in self.codes.iter().filter(|&&code| code != NO_TARGET) {
            counts[code as usize] += 1;
        }
        counts
    }

    /// These rows followed by those of `other`, with the values of both.
    pub(super) fn join(&self, other: &Self) -> Self {
        let mut values = [&self.values[..], &other.values[..]].concat();
        values.sort_unstable_by(|a, b| compare(a, b));
        values.dedup();
        let place = |value: &String| values.binary_search_by(|v| compare(v, value));
        let renumber = |column: &Self| {
            let places: Vec<u32> =
                column.values.iter().map(|v| place(v).map_or(NO_TARGET, code)).collect();
            column
                .codes
                .iter()
                .map(|&code| places.get(code as usize).copied().unwrap_or(NO_TARGET))
                .collect::<Vec<u32>>()
        };
        let codes = [renumber(self), renumber(other)].concat();
        Self { name: self.name.clone(), values, codes }
    }

    /// The rows with these indices, in this order.
    pub(super) fn select(&self, rows: &[usize]) -> Self {
        Self {
            name: self.name.clone(),
            values: self.values.clone(),
            codes: rows.iter().map(|&row| self.codes[row]).collect(),
        }
    }
}

/// Numbers by size, then words.
fn compare(a: &str, b: &str) -> Ordering {
    let key = |text: &str| {
        let number = text.parse::<f64>().ok().filter(|x| x.is_finite());
        (number.is_none(), number.unwrap_or(0.0))
    };
    let ((a_word, a_number), (b_word, b_number)) = (key(a), key(b));
    a_word.cmp(&b_word).then(a_number.total_cmp(&b_number)).then(a.cmp(b))
}

fn code(place: usize) -> u32 {
    u32::try_from(place).expect("a column has fewer than 2³² values")
}
