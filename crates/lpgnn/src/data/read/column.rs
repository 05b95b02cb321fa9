use std::collections::HashMap;

use super::text::{Lines, counted};
use crate::data::Categories;
use crate::graph::NO_TARGET;
use crate::{Error, Matrix, Place};

/// A categorical column of integers, coded in order of appearance: four bytes per row.
pub(super) struct IntegerColumn {
    codes: Vec<u32>,
    /// The distinct values, in order of appearance.
    values: Vec<i64>,
    known: HashMap<i64, u32>,
    /// The codes of `−NEAR..NEAR` again, for speed, if there are enough rows for it to pay off.
    near: Vec<u32>,
}

const NEAR: i64 = 512;
const NEAR_ROWS: usize = 1024;

/// The maximum number of columns of a table: each costs some hundred bytes before it has a row.
pub(in crate::data) const COLUMNS: usize = 1 << 16;

impl IntegerColumn {
    pub(super) fn new() -> Self {
        Self { codes: vec![], values: vec![], known: HashMap::new(), near: vec![] }
    }

    /// # Errors
    ///
    /// [`Error::TooLarge`] at the 2³²-th distinct value.
    #[inline]
    pub(super) fn push(&mut self, x: i64) -> Result<(), Error> {
        let near = usize::try_from(x.saturating_add(NEAR)).ok();
        let code = match near.and_then(|place| self.near.get(place)) {
            Some(&code) if code != NO_TARGET => code,
            _ => self.code(x)?,
        };
        self.codes.push(code);
        Ok(())
    }

    /// A row without a value.
    pub(super) fn push_unknown(&mut self) {
        self.codes.push(NO_TARGET);
    }

    fn code(&mut self, x: i64) -> Result<u32, Error> {
        let code = if let Some(&code) = self.known.get(&x) {
            code
        } else {
            let code = u32::try_from(self.values.len()).map_err(|_| Error::TooLarge)?;
            if code == NO_TARGET {
                return Err(Error::TooLarge);
            }
            self.values.push(x);
            self.known.insert(x, code);
            code
        };
        // Not before: a file may have very many columns of one row each.
        if self.codes.len() >= NEAR_ROWS
            && let Ok(place) = usize::try_from(x.saturating_add(NEAR))
            && place < NEAR_ROWS
        {
            self.near.resize(NEAR_ROWS, NO_TARGET);
            self.near[place] = code;
        }
        Ok(code)
    }

    /// The column, with its values sorted.
    pub(super) fn finish(self, name: impl Into<String>) -> Result<Categories, Error> {
        let order = Categories::from_integers("", &self.values);
        recode(name, &order, self.codes)
    }
}

/// A categorical column of words, coded in order of appearance; an empty word is an unknown value.
#[derive(Default)]
pub(super) struct WordColumn {
    codes: Vec<u32>,
    values: Vec<Box<str>>,
    known: HashMap<Box<str>, u32>,
}

impl WordColumn {
    /// # Errors
    ///
    /// [`Error::TooLarge`] at the 2³²-th distinct value.
    pub(super) fn push(&mut self, word: &str) -> Result<(), Error> {
        let code = if word.is_empty() {
            NO_TARGET
        } else if let Some(&code) = self.known.get(word) {
            code
        } else {
            let code = u32::try_from(self.values.len()).map_err(|_| Error::TooLarge)?;
            self.values.push(word.into());
            self.known.insert(word.into(), code);
            code
        };
        self.codes.push(code);
        Ok(())
    }

    /// The distinct words, in order of appearance.
    pub(super) fn values(&self) -> &[Box<str>] {
        &self.values
    }

    /// For every row, the index of its word in [`values`](Self::values), or [`NO_TARGET`].
    pub(super) fn codes(&self) -> &[u32] {
        &self.codes
    }

    /// The indices of the words in [`values`](Self::values).
    pub(super) fn into_known(self) -> HashMap<Box<str>, u32> {
        self.known
    }

    /// The column, with its values sorted.
    pub(super) fn finish(self, name: impl Into<String>) -> Result<Categories, Error> {
        let order = Categories::from_text("", &self.values);
        recode(name, &order, self.codes)
    }
}

/// The column whose codes are indices into the list that `order` has sorted.
fn recode(
    name: impl Into<String>,
    order: &Categories,
    mut codes: Vec<u32>,
) -> Result<Categories, Error> {
    for code in codes.iter_mut().filter(|code| **code != NO_TARGET) {
        *code = order.codes()[*code as usize];
    }
    codes.shrink_to_fit();
    Categories::from_codes(name, order.values().to_vec(), codes)
}

/// The number of rows that a file must have, and why.
pub(super) struct Rows {
    /// The number.
    pub(super) count: usize,
    /// `MUTAG_graph_indicator.txt has 3371 nodes`.
    pub(super) because: String,
}

impl Rows {
    /// As many rows as `file` has of `noun`.
    pub(super) fn new(count: usize, noun: &str, file: &str) -> Self {
        Self { count, because: format!("{file} has {}", counted(count, noun)) }
    }

    /// # Errors
    ///
    /// [`Error::Input`] if row `row` of `lines`, counted from 0, is one too many.
    #[inline]
    fn check_more(rows: Option<&Self>, row: usize, lines: &Lines<'_>) -> Result<(), Error> {
        match rows {
            Some(rows) if row >= rows.count => Err(Place::line(lines.path(), row as u64 + 1)
                .error(format!("is a row too many: {}", rows.because))),
            _ => Ok(()),
        }
    }

    /// # Errors
    ///
    /// [`Error::Input`] if `lines` ended after too few rows.
    fn check_end(rows: Option<&Self>, found: usize, lines: &Lines<'_>) -> Result<(), Error> {
        match rows {
            Some(rows) if found < rows.count => Err(Place::file(lines.path()).error(format!(
                "ends after {}, but {}",
                counted(found, "row"),
                rows.because
            ))),
            _ => Ok(()),
        }
    }
}

/// All lines as rows of categorical integers, one column or more.
///
/// # Errors
///
/// [`Error::Input`], naming the line.
pub(super) fn integer_columns(
    lines: &mut Lines<'_>,
    rows: Option<&Rows>,
) -> Result<Vec<IntegerColumn>, Error> {
    // The first row determines the number of columns.
    let mut values = vec![];
    if let Some(line) = lines.next_row()? {
        let mut fields = line.fields();
        while let Some(x) = fields.next_integer()? {
            values.push(x);
        }
        if values.len() > COLUMNS {
            return Err(line.error(format!("has more than {COLUMNS} columns of categories")));
        }
    }
    let mut columns: Vec<IntegerColumn> = values.iter().map(|_| IntegerColumn::new()).collect();
    let (mut row, mut more) = (0, !values.is_empty());
    let what = format!("a row of {}", values.len());
    while more {
        Rows::check_more(rows, row, lines)?;
        for (column, &x) in columns.iter_mut().zip(&values) {
            column.push(x)?;
        }
        row += 1;
        more = lines.next_integers(&mut values, &what)?;
    }
    Rows::check_end(rows, row, lines)?;
    Ok(columns)
}

/// All lines as rows of a matrix of finite numbers.
///
/// # Errors
///
/// [`Error::Input`], naming the line.
pub(super) fn real_matrix(
    lines: &mut Lines<'_>,
    rows: Option<&Rows>,
) -> Result<Matrix<f32>, Error> {
    let (mut entries, mut width, mut row) = (vec![], 0, 0);
    while let Some(line) = lines.next_row()? {
        let start = entries.len();
        let mut fields = line.fields();
        while let Some(x) = fields.next_real()? {
            entries.push(x);
        }
        let found = entries.len() - start;
        if row == 0 {
            width = found;
        } else if found != width {
            return Err(line.error(format!("has {}, not {width}", counted(found, "number"))));
        }
        Rows::check_more(rows, row, lines)?;
        row += 1;
    }
    Rows::check_end(rows, row, lines)?;
    entries.shrink_to_fit();
    Matrix::from_entries(row, width, entries)
}

/// `node label`, or `node label 1`, `node label 2`, … if there are several.
pub(super) fn numbered(name: &str, count: usize) -> Vec<String> {
    match count {
        1 => vec![name.to_owned()],
        _ => (1..=count).map(|i| format!("{name} {i}")).collect(),
    }
}
