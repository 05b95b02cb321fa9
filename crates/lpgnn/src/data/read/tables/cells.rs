//! Columns as they are read cell by cell: features, targets, a split.

use std::path::{Path, PathBuf};

use super::super::column::WordColumn;
use super::super::rounding::Rounding;
use super::super::text::{quote, wide};
use super::super::{TEST, TRAIN, VAL};
use super::lookalike;
use super::table::{Column, Kind, Role, Row, place_of};
use crate::data::{ColumnNames, FeatureColumns, Level, Split, TargetColumn};
use crate::{Error, Matrix, Place};

/// The columns of a table that are features.
pub(super) struct Collected {
    columns: Vec<(usize, String, Cells)>,
    rows: usize,
}

/// Numbers, and what their precision does to them.
type Values = (Vec<f32>, Rounding);

/// The cells of a feature: real values or categories, as the header says or else as the first row
/// suggests.
pub(super) enum Cells {
    Undecided,
    Values(Values),
    /// And whether the first row alone suggests it.
    Words(WordColumn, bool),
}

impl Collected {
    pub(super) fn new(columns: &[Column]) -> Self {
        let features = columns
            .iter()
            .enumerate()
            .filter(|(_, column)| column.role == Role::Feature)
            .map(|(place, column)| {
                let cells = match column.kind {
                    None => Cells::Undecided,
                    Some(Kind::Values) => Cells::Values((vec![], Rounding::new())),
                    Some(Kind::Words) => Cells::Words(WordColumn::default(), false),
                };
                (place, column.name.clone(), cells)
            })
            .collect();
        Self { columns: features, rows: 0 }
    }

    pub(super) fn push(&mut self, row: &Row<'_>) -> Result<(), Error> {
        for (place, name, cells) in &mut self.columns {
            let cell = row.bytes(*place);
            if cell.is_empty() {
                let problem = "is empty, but a feature has a value in every row";
                return Err(row.column_error(*place, problem));
            }
            if matches!(cells, Cells::Undecided) {
                let number =
                    std::str::from_utf8(cell).is_ok_and(|text| text.parse::<f64>().is_ok());
                *cells = if number {
                    Cells::Values((vec![], Rounding::new()))
                } else {
                    Cells::Words(WordColumn::default(), true)
                };
            }
            match cells {
                Cells::Values((values, rounding)) => {
                    let x = wide(cell).map_err(|problem| {
                        let advice = if problem.ends_with("not a number") {
                            format!(
                                " as in the first row: if it holds words, call it {name}:category"
                            )
                        } else {
                            String::new()
                        };
                        row.column_error(*place, format!("has {problem}{advice}"))
                    })?;
                    values.push(rounding.round(x));
                }
                Cells::Words(words, _) => words.push(row.text(*place)?)?,
                Cells::Undecided => {}
            }
        }
        self.rows += 1;
        Ok(())
    }

    /// The features of the table at `path`, followed by those in `array`, called `{name} 1` and so on.
    pub(super) fn finish(
        self,
        path: &Path,
        name: &str,
        array: Matrix<f32>,
    ) -> Result<FeatureColumns, Error> {
        let mut features = FeatureColumns::none(self.rows);
        let (mut names, mut values) = (vec![], vec![]);
        for (_, name, cells) in self.columns {
            match cells {
                Cells::Words(words, guessed) => {
                    if guessed {
                        check_words(path, &name, &words)?;
                    }
                    features = features.with_categories(words.finish(name)?)?;
                }
                Cells::Values((column, rounding)) => {
                    rounding.check().map_err(|problem| {
                        let column = quote(name.as_bytes());
                        Place::file(path).error(format!("column {column} {problem}"))
                    })?;
                    names.push(name);
                    values.push(column);
                }
                // There is no row.
                Cells::Undecided => {}
            }
        }
        if values.is_empty() {
            let names = ColumnNames::default().and_numbered(name, array.cols());
            return features.with_values(names, array);
        }
        let names = ColumnNames::from(names).and_numbered(name, array.cols());
        let mut entries = Vec::with_capacity(self.rows * names.len());
        for row in 0..self.rows {
            entries.extend(values.iter().map(|column| column[row]));
            entries.extend_from_slice(array.row(row));
        }
        let values = Matrix::from_entries(self.rows, names.len(), entries)?;
        features.with_values(names, values)
    }
}

/// That the first row is not the only one that suggests words: `NA` above numbers is a value that is missing.
///
/// Nor that they are numbers or dates as spreadsheets write them.
fn check_words(path: &Path, name: &str, words: &WordColumn) -> Result<(), Error> {
    if let Some((word, what)) = lookalike::meant(words.values()) {
        let (column, word) = (quote(name.as_bytes()), quote(word.as_bytes()));
        return Err(Place::file(path).error(format!(
            "column {column} has {word}, {what}; if these are categories, call it {name}:category"
        )));
    }
    let Some((first, others)) = words.values().split_first() else { return Ok(()) };
    if others.is_empty() || others.iter().any(|word| word.parse::<f64>().is_err()) {
        return Ok(());
    }
    let (column, first) = (quote(name.as_bytes()), quote(first.as_bytes()));
    Err(Place::file(path).error(format!(
        "column {column} begins with {first}, but all its other values are numbers: if these are categories, \
         call it {name}:category"
    )))
}

/// The column `y`, if there is one.
///
/// Words and integers are classes; numbers of which at least one has a fraction are real values; an
/// empty cell is an unknown target.
pub(super) struct Targets {
    column: Option<(usize, Option<Kind>)>,
    cells: WordColumn,
    /// The values of the distinct cells; NaN if not a number.
    values: Vec<f32>,
    rounding: Rounding,
    word: Option<Cell>,
    fraction: Option<Cell>,
}

/// The first cell of its kind, for messages.
pub(super) struct Cell {
    path: PathBuf,
    line: u64,
    text: String,
}

impl Targets {
    pub(super) fn new(columns: &[Column]) -> Self {
        let column = place_of(columns, Role::Y).map(|place| (place, columns[place].kind));
        let cells = WordColumn::default();
        let rounding = Rounding::new();
        Self { column, cells, values: vec![], rounding, word: None, fraction: None }
    }

    pub(super) fn push(&mut self, row: &Row<'_>) -> Result<(), Error> {
        let Some((place, kind)) = self.column else { return Ok(()) };
        let text = row.text(place)?;
        self.cells.push(text)?;
        if self.cells.values().len() == self.values.len() {
            return Ok(());
        }
        // A new value.
        let cell =
            || Cell { path: row.table.to_owned(), line: row.line, text: quote(text.as_bytes()) };
        match (text.parse::<f64>().is_ok(), wide(text.as_bytes())) {
            (true, Err(problem)) if kind != Some(Kind::Words) => {
                return Err(row.column_error(place, format!("has {problem}")));
            }
            (true, value) => {
                self.values.push(value.map_or(f32::NAN, |x| self.rounding.round(x)));
                if self.fraction.is_none() && text.parse::<i64>().is_err() {
                    self.fraction = Some(cell());
                }
            }
            (false, _) => {
                self.values.push(f32::NAN);
                if self.word.is_none() {
                    self.word = Some(cell());
                }
            }
        }
        Ok(())
    }

    pub(super) fn finish(self, path: &Path, name: &str) -> Result<Option<TargetColumn>, Error> {
        let Some((_, kind)) = self.column else { return Ok(None) };
        let real = match (kind, &self.word, &self.fraction) {
            (Some(Kind::Values), Some(word), _) => {
                let problem = format!("has the target {}, not a number", word.text);
                return Err(Place::line(&word.path, word.line).error(problem));
            }
            (None, Some(word), Some(fraction)) => {
                return Err(Place::line(&word.path, word.line).error(format!(
                    "has the target {}, but line {} has {}: call the column y:class or y:value",
                    word.text, fraction.line, fraction.text
                )));
            }
            (Some(kind), ..) => kind == Kind::Values,
            (None, _, fraction) => fraction.is_some(),
        };
        if let Some((word, what)) = lookalike::meant(self.cells.values()).filter(|_| kind.is_none())
        {
            let word = quote(word.as_bytes());
            return Err(Place::file(path).error(format!(
                "column “y” has {word}, {what}; if these are classes, call it y:class"
            )));
        }
        if !real {
            return Ok(Some(TargetColumn::Classes(self.cells.finish(name)?)));
        }
        let unlike = |problem| Place::file(path).error(format!("column “y” {problem}"));
        self.rounding.check().map_err(unlike)?;
        let value = |&code: &u32| self.values.get(code as usize).copied().unwrap_or(f32::NAN);
        let values: Vec<f32> = self.cells.codes().iter().map(value).collect();
        let values = Matrix::from_entries(values.len(), 1, values)?;
        Ok(Some(TargetColumn::Values { names: vec![name.to_owned()], values }))
    }
}

/// The column `split`, if there is one.
pub(super) struct Splits {
    column: Option<usize>,
    members: [Vec<usize>; 3],
}

impl Splits {
    pub(super) fn new(columns: &[Column]) -> Self {
        Self { column: place_of(columns, Role::Split), members: Default::default() }
    }

    pub(super) fn push(&mut self, row: &Row<'_>, number: usize) -> Result<(), Error> {
        let Some(place) = self.column else { return Ok(()) };
        let cell = row.text(place)?;
        let is_named = |names: &&[&str]| names.iter().any(|name| name.eq_ignore_ascii_case(cell));
        match [TRAIN, VAL, TEST].iter().position(is_named) {
            Some(split) => self.members[split].push(number),
            None if cell.is_empty() => {}
            None => {
                let problem = format!("has {}, not train, val or test", quote(cell.as_bytes()));
                return Err(row.column_error(place, problem));
            }
        }
        Ok(())
    }

    /// The split; `place_of` is the index of each row's node or graph.
    pub(super) fn finish(self, level: Level, place_of: Option<&[usize]>) -> Option<Split> {
        self.column?;
        let [train, val, test] = self.members.map(|rows| match place_of {
            None => rows,
            Some(place_of) => {
                let mut places: Vec<usize> = rows.into_iter().map(|row| place_of[row]).collect();
                places.sort_unstable();
                places
            }
        });
        Some(Split { level, train, val, test })
    }
}
