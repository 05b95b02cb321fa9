//! Attributes as columns: features of nodes and edges, targets.
//!
//! The rule is that of the Python package: real numbers are values; texts, `true` and `false` are
//! categories; integers are a category up to 20 distinct values, otherwise values, and so are lists of at
//! least 32 integers. As targets, all but real numbers are classes.

use std::collections::{HashMap, HashSet};

use super::super::column::{COLUMNS, IntegerColumn, WordColumn, numbered};
use super::super::rounding::Rounding;
use super::super::text::quote;
use super::record::{Cell, Record};
use crate::data::{Categories, FeatureColumns, TargetColumn};
use crate::{Error, Matrix};

/// Integers with more distinct values are not a category.
const FEW_VALUES: usize = 20;
/// Lists of so many integers are not categories.
const TABLE: usize = 32;

/// Features: the first node or edge says which there are, and all others have the same.
#[derive(Default)]
pub(super) struct Attributes {
    rows: usize,
    /// Whether values may be unknown.
    gaps: bool,
    places: HashMap<Box<str>, usize>,
    columns: Vec<Column>,
}

impl Attributes {
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Adds a node or an edge; attributes with an `own` meaning are no features.
    ///
    /// # Errors
    ///
    /// What is wrong, as the end of a sentence.
    pub(super) fn add(
        &mut self,
        record: &Record,
        own: impl Fn(&str) -> bool,
    ) -> Result<(), String> {
        let mut found = 0;
        for (name, cell) in record.iter().filter(|(name, _)| !own(name)) {
            let place = match self.places.get(name) {
                Some(&place) => place,
                None if own(&name.to_ascii_lowercase()) => return Err(capital(name)),
                None if self.rows == 0 && self.columns.len() < COLUMNS => {
                    self.places.insert(name.into(), self.columns.len());
                    self.columns.push(Column::new(name, self.gaps));
                    self.columns.len() - 1
                }
                None if self.rows == 0 => {
                    return Err(format!("has more than {COLUMNS} attributes"));
                }
                None => return Err(format!("has {}, but those before it do not", quoted(name))),
            };
            let column = &mut self.columns[place];
            if column.rows > self.rows {
                return Err(format!("has {} twice", quoted(name)));
            }
            if !self.gaps && cell.is_unknown() {
                return Err(format!(
                    "has no value of {}, but a feature has one everywhere",
                    quoted(name)
                ));
            }
            column.push(Some(cell).filter(|cell| !cell.is_unknown()))?;
            found += 1;
        }
        if found < self.columns.len() {
            let missing = self.columns.iter().find(|column| column.rows == self.rows);
            let name = missing.map_or("", |column| &column.name);
            return Err(format!("has no {}, but those before it do", quoted(name)));
        }
        self.rows += 1;
        Ok(())
    }

    pub(super) fn finish(self) -> Result<FeatureColumns, Error> {
        let rows = self.rows;
        let mut features = FeatureColumns::none(rows);
        let (mut names, mut values): (Vec<String>, Vec<Vec<f32>>) = (vec![], vec![]);
        for column in self.columns {
            let (name, width) = (column.name.into_string(), column.width);
            match column.cells {
                Cells::Unknown => {}
                Cells::Booleans(words) | Cells::Words(words) => {
                    features = features.with_categories(words.finish(name)?)?;
                }
                Cells::Numbers(numbers) => {
                    let width = width.unwrap_or(1);
                    let whole = width < TABLE && numbers.whole;
                    if names.len() + width > COLUMNS {
                        let problem = format!("has more than {COLUMNS} columns of features");
                        return Err(Error::Mismatch(problem));
                    }
                    for (at, name) in list_names(&name, width).into_iter().enumerate() {
                        let own = numbers.entries.iter().skip(at).step_by(width);
                        if let Some(codes) = category(whole, own.clone()) {
                            let codes = Categories::from_integers(name, &codes);
                            features = features.with_categories(codes)?;
                        } else {
                            values.push(rounded(&name, own.copied())?);
                            names.push(name);
                        }
                    }
                }
            }
        }
        let mut entries = Vec::with_capacity(rows * names.len());
        for row in 0..rows {
            entries.extend(values.iter().map(|column| column[row]));
        }
        let values = Matrix::from_entries(rows, names.len(), entries)?;
        features.with_values(names, values)
    }
}

/// `x`, or `x0`, `x1`, … for the entries of lists.
fn list_names(name: &str, width: usize) -> Vec<String> {
    match width {
        1 => vec![name.to_owned()],
        _ => (0..width).map(|at| format!("{name}{at}")).collect(),
    }
}

/// Integers of few distinct values; none if they are numbers.
#[allow(clippy::cast_possible_truncation, reason = "they are integers")]
fn category<'a>(whole: bool, column: impl Iterator<Item = &'a f64>) -> Option<Vec<i64>> {
    if !whole {
        return None;
    }
    let mut distinct = HashSet::new();
    let mut codes = vec![];
    for &x in column {
        distinct.insert(x as i64);
        if distinct.len() > FEW_VALUES {
            return None;
        }
        codes.push(x as i64);
    }
    Some(codes)
}

/// What is wrong with a name that would have a meaning without its capital letters.
pub(super) fn capital(name: &str) -> String {
    format!("has {}, which is to be called {}", quoted(name), quoted(&name.to_ascii_lowercase()))
}

/// A column in single precision.
fn rounded(name: &str, column: impl Iterator<Item = f64>) -> Result<Vec<f32>, Error> {
    let mut rounding = Rounding::new();
    let values = column.map(|x| rounding.round(x)).collect();
    let unlike = |problem| Error::Mismatch(format!("{} {problem}", quoted(name)));
    rounding.check().map_err(unlike)?;
    Ok(values)
}

/// The target `y`, which may be missing, or several called `y.NAME`, as `Dataset.to_networkx` writes
/// them in Python.
pub(super) struct Targets {
    rows: usize,
    alone: Option<Column>,
    several: Attributes,
}

impl Default for Targets {
    fn default() -> Self {
        let several = Attributes { gaps: true, ..Attributes::default() };
        Self { rows: 0, alone: None, several }
    }
}

impl Targets {
    /// Whether this is the name of one.
    pub(super) fn is_one(name: &str) -> bool {
        name == "y" || name.starts_with("y.")
    }

    /// Adds the targets of a node or graph.
    ///
    /// # Errors
    ///
    /// What is wrong, as the end of a sentence.
    pub(super) fn add(&mut self, record: &Record) -> Result<(), String> {
        let cell = record.get("y").filter(|cell| !cell.is_unknown());
        if cell.is_some() && self.alone.is_none() {
            self.alone = Some(Column { rows: self.rows, ..Column::new("y", true) });
        }
        if let Some(column) = &mut self.alone {
            column.push(cell)?;
        }
        self.several.add(record, |name| !name.starts_with("y."))?;
        self.rows += 1;
        Ok(())
    }

    pub(super) fn finish(self, name: &str) -> Result<Option<TargetColumn>, Error> {
        let several = self.several.columns;
        let Some(column) = self.alone else {
            return if several.is_empty() {
                Ok(None)
            } else {
                joined(self.rows, several).map(Some)
            };
        };
        if let Some(other) = several.first() {
            let problem = format!("has the targets y and {}: keep one or the other", other.name);
            return Err(Error::Mismatch(problem));
        }
        let rows = column.rows;
        match column.cells {
            Cells::Unknown => Ok(None),
            Cells::Booleans(words) | Cells::Words(words) => {
                Ok(Some(TargetColumn::Classes(words.finish(name)?)))
            }
            Cells::Numbers(numbers) if numbers.whole && column.width.is_none() => {
                let mut classes = IntegerColumn::new();
                for &x in &numbers.entries {
                    #[allow(clippy::cast_possible_truncation, reason = "they are integers")]
                    if x.is_nan() { classes.push_unknown() } else { classes.push(x as i64)? }
                }
                Ok(Some(TargetColumn::Classes(classes.finish(name)?)))
            }
            Cells::Numbers(numbers) => {
                let width = column.width.unwrap_or(1);
                if width > COLUMNS {
                    let problem = format!("has more than {COLUMNS} columns of targets");
                    return Err(Error::Mismatch(problem));
                }
                let columns = (0..width)
                    .map(|at| rounded("y", numbers.entries.iter().skip(at).step_by(width).copied()))
                    .collect::<Result<Vec<_>, _>>()?;
                let values =
                    (0..rows).flat_map(|row| columns.iter().map(move |column| column[row]));
                let values = Matrix::from_entries(rows, width, values.collect())?;
                Ok(Some(TargetColumn::Values { names: numbered(name, width), values }))
            }
        }
    }
}

/// The targets `y.NAME` as one table.
fn joined(rows: usize, columns: Vec<Column>) -> Result<TargetColumn, Error> {
    let (mut names, mut tables) = (vec![], vec![]);
    for column in columns {
        match column.cells {
            Cells::Numbers(numbers) if column.width.is_none() => {
                tables.push(rounded(&column.name, numbers.entries.into_iter())?);
                names.push(column.name.trim_start_matches("y.").to_owned());
            }
            _ => {
                let problem = format!("has the target {}, which is not a number", column.name);
                return Err(Error::Mismatch(problem));
            }
        }
    }
    let entries = (0..rows).flat_map(|row| tables.iter().map(move |table| table[row]));
    let values = Matrix::from_entries(rows, names.len(), entries.collect())?;
    Ok(TargetColumn::Values { names, values })
}

/// The values of an attribute.
struct Column {
    name: Box<str>,
    rows: usize,
    /// Whether entries of lists may be unknown.
    gaps: bool,
    /// The length of its lists; none if they are not lists.
    width: Option<usize>,
    cells: Cells,
}

enum Cells {
    /// All of them so far.
    Unknown,
    Booleans(WordColumn),
    Words(WordColumn),
    Numbers(Numbers),
}

/// Numbers, NaN if unknown.
struct Numbers {
    entries: Vec<f64>,
    /// Whether all are integers.
    whole: bool,
}

impl Cells {
    fn name(&self) -> &'static str {
        match self {
            Self::Unknown => "nothing",
            Self::Booleans(_) => "booleans",
            Self::Words(_) => "texts",
            Self::Numbers(_) => "numbers",
        }
    }
}

impl Column {
    fn new(name: &str, gaps: bool) -> Self {
        Self { name: name.into(), rows: 0, gaps, width: None, cells: Cells::Unknown }
    }

    /// Adds a value, or an unknown one.
    fn push(&mut self, cell: Option<&Cell>) -> Result<(), String> {
        if let (Some(cell), Cells::Unknown) = (cell, &self.cells) {
            self.cells = self.start(cell)?;
        }
        let width = if let Some(Cell::List(list)) = cell { Some(list.len()) } else { None };
        match (&mut self.cells, cell) {
            (Cells::Unknown, _) => {}
            (Cells::Booleans(words) | Cells::Words(words), None) => {
                words.push("").map_err(|error| error.to_string())?;
            }
            (Cells::Booleans(words), Some(Cell::Boolean(x))) => {
                // As Python writes them.
                let word = if *x { "True" } else { "False" };
                words.push(word).map_err(|error| error.to_string())?;
            }
            (Cells::Words(words), Some(Cell::Text(text))) => {
                words.push(text).map_err(|error| error.to_string())?;
            }
            (Cells::Numbers(_), None) if self.width > Some(GAP) => return Err(self.gap()),
            (Cells::Numbers(numbers), None) => {
                let unknown = std::iter::repeat_n(f64::NAN, self.width.unwrap_or(1));
                numbers.entries.extend(unknown);
            }
            (Cells::Numbers(numbers), Some(cell)) if width == self.width => {
                let list = if let Cell::List(list) = cell {
                    &list[..]
                } else {
                    std::slice::from_ref(cell)
                };
                for cell in list {
                    numbers
                        .push(cell, self.gaps)
                        .map_err(|wrong| format!("has {cell} as {}{wrong}", quoted(&self.name)))?;
                }
            }
            (cells, Some(cell)) => {
                let what = match self.width {
                    Some(width) => format!("lists of {width} numbers"),
                    None => cells.name().to_owned(),
                };
                return Err(format!(
                    "has {cell} as {}, where those before it have {what}",
                    quoted(&self.name)
                ));
            }
        }
        self.rows += 1;
        Ok(())
    }

    /// The form of the first value that is known; all before it are not.
    fn start(&mut self, cell: &Cell) -> Result<Cells, String> {
        let words = || {
            let mut words = WordColumn::default();
            // Nothing is no new word, so there cannot be too many.
            (0..self.rows).for_each(|_| drop(words.push("")));
            words
        };
        match cell {
            Cell::Boolean(_) => Ok(Cells::Booleans(words())),
            Cell::Text(_) => Ok(Cells::Words(words())),
            cell => {
                self.width = if let Cell::List(list) = cell { Some(list.len()) } else { None };
                if self.rows > 0 && self.width > Some(GAP) {
                    return Err(self.gap());
                }
                let entries = vec![f64::NAN; self.rows * self.width.unwrap_or(1)];
                Ok(Cells::Numbers(Numbers { entries, whole: true }))
            }
        }
    }

    /// A list that is missing costs as much as one that is there.
    fn gap(&self) -> String {
        let (name, width) = (quoted(&self.name), self.width.unwrap_or(1));
        format!(
            "has {name} or has none, but lists of {width} numbers are everywhere or, in place of unknown numbers, have null"
        )
    }
}

/// Lists up to this length may be missing as a whole.
const GAP: usize = 16;

/// Integers below are exact in double precision.
const EXACT: u64 = 1 << 53;

impl Numbers {
    /// # Errors
    ///
    /// The end of a sentence.
    fn push(&mut self, cell: &Cell, gaps: bool) -> Result<(), &'static str> {
        let x = match cell {
            Cell::Integer(x) => {
                self.whole &= x.unsigned_abs() < EXACT;
                *x as f64
            }
            Cell::Real(x) => {
                self.whole = false;
                *x
            }
            Cell::Null if gaps => {
                self.entries.push(f64::NAN);
                return Ok(());
            }
            _ => return Err(" where a number is expected"),
        };
        #[allow(clippy::cast_possible_truncation, reason = "features are kept in single precision")]
        if !(x as f32).is_finite() {
            return Err(", too large a number");
        }
        self.entries.push(x);
        Ok(())
    }
}

fn quoted(name: &str) -> String {
    quote(name.as_bytes())
}
