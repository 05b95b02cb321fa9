//! Groups of encoded columns, and how they are computed.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use super::UnseenCategories;
use super::structure::{encode_counts, encode_returns};
use crate::data::ColumnNames;
use crate::data::features::{Categories, FeatureColumns};
use crate::data::structure::{Shape, Structure};
use crate::graph::{Features, OneHot, SparseRows};
use crate::{Error, Matrix, Scalar, memory};

/// A group of encoded columns.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub(super) enum Part {
    /// One-hot: a column per category, and one for [other](UnseenCategories::Other) ones.
    OneHot {
        column: String,
        values: Vec<String>,
        #[serde(default)]
        unseen: UnseenCategories,
    },
    /// Real values: `(x − mean) · scale`.
    Values { names: ColumnNames, mean: Vec<f32>, scale: Vec<f32> },
    /// Sparse real values: as they are, or every row divided by its sum.
    Sparse {
        width: usize,
        #[serde(default)]
        row_normalize: bool,
    },
    /// One-hot: a column per degree `0..=largest`; larger degrees count as `largest`.
    Degree { largest: usize },
    /// One column that is `1`.
    Constant,
    /// One-hot: a column per [bin](structure::bin) of how many of these shapes go through a row; larger ones count as `largest`.
    Count { shape: Shape, size: usize, largest: u32 },
    /// `(p − mean) · scale` of the probabilities that a random walk of 2, 3, … steps is back.
    Returns { mean: Vec<f32>, scale: Vec<f32> },
}

/// `rows` are those of the training data.
pub(super) fn categories(
    features: &FeatureColumns,
    unseen: UnseenCategories,
    rows: &[usize],
) -> Vec<Part> {
    let part = |column: &Categories| {
        let mut counts = vec![0_usize; column.values().len()];
        rows.iter().for_each(|&row| counts[column.codes()[row] as usize] += 1);
        // What is seen once looks like what is unseen, so that the column for both is trained.
        let kept =
            |&(_, &count): &(&String, &usize)| unseen != UnseenCategories::Other || count > 1;
        let values = column.values().iter().zip(&counts).filter(kept);
        Part::OneHot {
            column: column.name().to_owned(),
            values: values.map(|(value, _)| value.clone()).collect(),
            unseen,
        }
    };
    features.categories().iter().map(part).collect()
}

/// The columns that none of the parts reads.
pub(super) fn unread(parts: &[Part], what: &str, features: &FeatureColumns) -> Vec<String> {
    let mut read = HashSet::new();
    for part in parts {
        match part {
            Part::OneHot { column, .. } => {
                read.insert(Cow::Borrowed(&column[..]));
            }
            Part::Values { names, .. } => read.extend(names.iter()),
            Part::Sparse { width, .. } => {
                if features.sparse().is_none() && features.value_names().len() == *width {
                    read.extend(features.value_names().iter());
                }
            }
            Part::Count { .. } | Part::Returns { .. } => {}
            // It was not to read any.
            Part::Degree { .. } | Part::Constant => return vec![],
        }
    }
    let words = features.categories().iter().map(|column| Cow::Borrowed(column.name()));
    let names = words.chain(features.value_names().iter());
    names.filter(|name| !read.contains(name)).map(|name| format!("{what} feature {name}")).collect()
}

/// With `rows`, values are standardised to mean 0 and standard deviation 1 over these rows.
pub(super) fn values(
    features: &FeatureColumns,
    rows: Option<&[usize]>,
    row_normalize: bool,
) -> Vec<Part> {
    let mut parts = vec![];
    let matrix = features.values();
    if matrix.cols() > 0 {
        let names = features.value_names().clone();
        let (mean, scale) = match rows {
            Some(rows) => {
                (0..matrix.cols()).map(|column| mean_and_scale(matrix, rows, column)).unzip()
            }
            None => (vec![0.0; matrix.cols()], vec![1.0; matrix.cols()]),
        };
        parts.push(Part::Values { names, mean, scale });
    }
    if let Some(sparse) = features.sparse() {
        parts.push(Part::Sparse { width: sparse.width(), row_normalize });
    }
    parts
}

/// The shift and scale that give a column mean 0 and standard deviation 1 over some rows.
///
/// A constant column becomes 1: networks whose inputs are all zero would not learn.
#[allow(clippy::cast_possible_truncation, reason = "features are kept in single precision")]
pub(super) fn mean_and_scale(matrix: &Matrix<f32>, rows: &[usize], column: usize) -> (f32, f32) {
    let count = rows.len().max(1) as f64;
    let entries = || rows.iter().map(|&row| f64::from(matrix.row(row)[column]));
    let mean = entries().sum::<f64>() / count;
    let std = (entries().map(|x| (x - mean).powi(2)).sum::<f64>() / count).sqrt();
    // Below single-precision rounding, the standard deviation of a constant column is noise.
    let constant = std <= 1e-6 * mean.abs() || std == 0.0;
    if constant { ((mean - 1.0) as f32, 1.0) } else { (mean as f32, (1.0 / std) as f32) }
}

impl Part {
    pub(super) fn width(&self) -> usize {
        match self {
            Self::OneHot { values, unseen, .. } => {
                values.len() + usize::from(*unseen == UnseenCategories::Other)
            }
            Self::Values { names, .. } => names.len(),
            Self::Sparse { width, .. } => *width,
            Self::Degree { largest } => largest + 1,
            Self::Constant => 1,
            Self::Count { largest, .. } => *largest as usize + 1,
            Self::Returns { mean, .. } => mean.len(),
        }
    }

    pub(super) fn describe(&self) -> String {
        match self {
            Self::OneHot { column, values, .. } => format!("{column} ({} values)", values.len()),
            Self::Values { names, .. } => format!("{} real values", names.len()),
            Self::Sparse { width, .. } => format!("{width} sparse values"),
            Self::Degree { largest } => format!("degree up to {largest}"),
            Self::Constant => "the constant 1".to_owned(),
            Self::Count { shape: Shape::Ring, size, .. } => format!("rings of {size}"),
            Self::Count { shape: Shape::Clique, size, .. } => format!("cliques of {size}"),
            Self::Returns { mean, .. } => format!("{} return probabilities", mean.len()),
        }
    }
}

/// The features of all rows; a single group keeps its own form, several become sparse rows.
pub(super) fn encode<S: Scalar>(
    parts: &[Part],
    what: &'static str,
    features: &FeatureColumns,
    structure: &Structure,
) -> Result<Features<S>, Error> {
    let rows = features.rows();
    check_memory::<S>(parts, what, features)?;
    let columns: Vec<Features<S>> = parts
        .iter()
        .map(|part| part_features(part, what, features, structure))
        .collect::<Result<_, _>>()?;
    match <[_; 1]>::try_from(columns) {
        Ok([only]) => Ok(only),
        Err(columns) if columns.is_empty() => Ok(Features::none(rows)),
        Err(columns) => {
            let mut shift = 0;
            let shifts: Vec<usize> = columns
                .iter()
                .map(|part| {
                    shift += part.width();
                    shift - part.width()
                })
                .collect();
            let (mut starts, mut places, mut entries) = (vec![0], vec![], vec![]);
            for row in 0..rows {
                for (part, shift) in columns.iter().zip(&shifts) {
                    for (column, value) in part.entries(row) {
                        places.push(u32::try_from(column + shift).map_err(|_| Error::TooLarge)?);
                        entries.push(value);
                    }
                }
                starts.push(places.len());
            }
            Ok(Features::Sparse(SparseRows::new(shift, starts, places, entries)?))
        }
    }
}

/// # Errors
///
/// [`Error::Memory`] if there is no room for the encoded features.
fn check_memory<S>(
    parts: &[Part],
    what: &'static str,
    features: &FeatureColumns,
) -> Result<(), Error> {
    let rows = features.rows();
    let stored = |part: &Part| match (part, features.sparse()) {
        (Part::Values { names, .. }, _) => rows.saturating_mul(names.len()),
        (Part::Sparse { .. }, Some(sparse)) => sparse.stored(),
        (Part::Sparse { width, .. }, None) => rows.saturating_mul(*width),
        (Part::Returns { mean, .. }, _) => rows.saturating_mul(mean.len()),
        _ => rows,
    };
    let stored = parts.iter().map(stored).fold(0_usize, usize::saturating_add);
    // Of several groups, each is made before they are joined; sparse entries have a column.
    let copies = if parts.len() > 1 { 2 } else { 1 };
    let bytes = memory::bytes_of::<(S, u32)>(&[stored, copies]);
    memory::require(bytes, format_args!("encoding the features of {rows} {what}s"))
}

fn part_features<S: Scalar>(
    part: &Part,
    what: &'static str,
    features: &FeatureColumns,
    structure: &Structure,
) -> Result<Features<S>, Error> {
    let rows = features.rows();
    if rows == 0 {
        // Nothing is in any column, and data without rows have none.
        return Ok(Features::Dense(Matrix::zeros(0, part.width())));
    }
    match part {
        Part::OneHot { column, values, unseen } => one_hot(column, values, *unseen, what, features),
        Part::Values { names, mean, scale } => {
            let found = real_columns(features, names).ok_or_else(|| {
                Error::Mismatch(format!(
                    "the {what}s have {}, the model reads {}",
                    list(features.value_names()),
                    list(names)
                ))
            })?;
            let entries = found
                .as_slice()
                .iter()
                .zip(mean.iter().zip(scale).cycle())
                .map(|(&x, (&mean, &scale))| {
                    S::of((f64::from(x) - f64::from(mean)) * f64::from(scale))
                })
                .collect();
            Ok(Features::Dense(Matrix::from_entries(rows, names.len(), entries)?))
        }
        Part::Sparse { width, row_normalize } => {
            let found = match features.sparse() {
                Some(sparse) => Cow::Borrowed(sparse),
                None => Cow::Owned(SparseRows::of_dense(features.values())?),
            };
            if found.width() != *width {
                return Err(Error::Mismatch(format!(
                    "the {what}s have {} real values, the model reads {width}",
                    found.width()
                )));
            }
            let rows = found.convert();
            Ok(Features::Sparse(if *row_normalize { rows.row_normalized() } else { rows }))
        }
        Part::Degree { largest } => {
            let cut = u32::try_from(*largest).map_err(|_| Error::TooLarge)?;
            let columns = structure.degrees.iter().map(|&degree| degree.min(cut)).collect();
            Ok(Features::OneHot(OneHot::new(largest + 1, columns)?))
        }
        Part::Constant => Ok(Features::OneHot(OneHot::new(1, vec![0; rows])?)),
        Part::Count { shape, size, largest } => {
            let found = if what == "edge" { &structure.edges } else { &structure.nodes };
            encode_counts(found, (*shape, *size), *largest)
        }
        Part::Returns { mean, scale } => encode_returns(&structure.returns, mean, scale),
    }
}

/// A category column, one-hot in the order of `values`.
fn one_hot<S: Scalar>(
    column: &String,
    values: &[String],
    unseen: UnseenCategories,
    what: &'static str,
    features: &FeatureColumns,
) -> Result<Features<S>, Error> {
    let whole = whole_numbers(features, column);
    let found = features.categories().iter().find(|c| c.name() == column);
    let found = found.or(whole.as_ref()).ok_or_else(|| {
        let real = features.value_names().position(column).is_some();
        Error::Mismatch(if real {
            format!("column {column} of the {what}s has fractions, the model reads categories")
        } else {
            format!("the {what}s have no column “{column}”, which the model reads")
        })
    })?;
    let places: HashMap<&str, u32> = values.iter().map(String::as_str).zip(0..).collect();
    let translate: Vec<Option<u32>> =
        found.values().iter().map(|value| places.get(value.as_str()).copied()).collect();
    let columns = || found.codes().iter().map(|&code| translate[code as usize]);
    let row = columns().position(|place| place.is_none());
    match (unseen, row) {
        (UnseenCategories::Error, Some(row)) => Err(Error::UnknownCategory {
            what,
            row,
            graph: String::new(),
            column: column.clone(),
            value: found.value(row).unwrap_or_default().to_owned(),
            known: few(values),
        }),
        (UnseenCategories::Ignore, Some(_)) => {
            let mut starts = vec![0];
            starts.extend(columns().scan(0, |end, place| {
                *end += usize::from(place.is_some());
                Some(*end)
            }));
            let places: Vec<u32> = columns().flatten().collect();
            let ones = vec![S::ONE; places.len()];
            Ok(Features::Sparse(SparseRows::new(values.len(), starts, places, ones)?))
        }
        (unseen, _) => {
            let width = values.len() + usize::from(unseen == UnseenCategories::Other);
            let other = u32::try_from(values.len()).map_err(|_| Error::TooLarge)?;
            let columns = columns().map(|place| place.unwrap_or(other)).collect();
            Ok(Features::OneHot(OneHot::new(width, columns)?))
        }
    }
}

/// The first of some values, for a message.
fn few(values: &[String]) -> String {
    const FEW: usize = 12;
    let more =
        if values.len() > FEW { format!(", … ({} in all)", values.len()) } else { String::new() };
    format!("{}{more}", values[..values.len().min(FEW)].join(", "))
}

/// These real-valued columns, in this order, wherever the features have them: among the real values, as
/// categories that are numbers, or as sparse rows, which have no names. None if one is missing; others
/// are not read.
fn real_columns<'a>(
    features: &'a FeatureColumns,
    names: &ColumnNames,
) -> Option<Cow<'a, Matrix<f32>>> {
    let (own, values) = (features.value_names(), features.values());
    if own == names {
        return Some(Cow::Borrowed(values));
    }
    if let (Some(sparse), true) = (features.sparse(), own.is_empty()) {
        return (sparse.width() == names.len()).then(|| Cow::Owned(sparse.to_dense()));
    }
    let places: HashMap<_, usize> = own.iter().zip(0..).collect();
    let column = |name: Cow<'_, str>| -> Option<Vec<f32>> {
        if let Some(&place) = places.get(&name) {
            return Some((0..values.rows()).map(|row| values.row(row)[place]).collect());
        }
        let words = features.categories().iter().find(|words| words.name() == name)?;
        let number = |word: &String| word.parse().ok().filter(|number: &f32| number.is_finite());
        let numbers: Vec<f32> = words.values().iter().map(number).collect::<Option<_>>()?;
        Some(words.codes().iter().map(|&code| numbers[code as usize]).collect())
    };
    let columns: Vec<Vec<f32>> = names.iter().map(column).collect::<Option<_>>()?;
    let entries =
        (0..features.rows()).flat_map(|row| columns.iter().map(move |column| column[row]));
    Matrix::from_entries(features.rows(), names.len(), entries.collect()).ok().map(Cow::Owned)
}

/// A column of real values as categories, if they are integers.
fn whole_numbers(features: &FeatureColumns, name: &str) -> Option<Categories> {
    let place = features.value_names().position(name)?;
    let numbers: Vec<i64> = (0..features.rows())
        .map(|row| {
            let number = features.values().row(row)[place];
            #[allow(clippy::cast_possible_truncation, reason = "it is whole and small")]
            (number.fract() == 0.0 && number.abs() < 1e9).then_some(number as i64)
        })
        .collect::<Option<_>>()?;
    Some(Categories::from_integers(name, &numbers))
}

/// The number and names of real-valued columns, in a few words.
fn list(names: &ColumnNames) -> String {
    let first = |count| names.iter().take(count).collect::<Vec<_>>().join(", ");
    match names.len() {
        0 => "no real values".to_owned(),
        1 => format!("the real value {}", first(1)),
        count if count > 8 => {
            let last = names.iter().last().unwrap_or_default();
            format!("{count} real values ({}, … {last})", first(2))
        }
        count => format!("{count} real values ({})", first(count)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_words_become_shares() {
        let rows = SparseRows::new(3, vec![0, 2, 2, 3], vec![0, 2, 1], vec![1.0, 3.0, -2.0]);
        let features = FeatureColumns::none(3).with_sparse(rows.unwrap()).unwrap();
        let features = |row_normalize| {
            let part = values(&features, None, row_normalize);
            let features: Features<f32> =
                encode(&part, "node", &features, &Structure::of_degree(0)).unwrap();
            (0..3).map(|row| features.entries(row).collect::<Vec<_>>()).collect::<Vec<_>>()
        };
        assert_eq!(features(false), [vec![(0, 1.0), (2, 3.0)], vec![], vec![(1, -2.0)]]);
        assert_eq!(features(true), [vec![(0, 0.25), (2, 0.75)], vec![], vec![(1, -1.0)]]);
    }

    fn read(parts: &[Part], features: &FeatureColumns) -> Result<Vec<Vec<(usize, f32)>>, String> {
        let features: Features<f32> =
            encode(parts, "node", features, &Structure::of_degree(0)).map_err(|e| e.to_string())?;
        Ok((0..features.rows()).map(|row| features.entries(row).collect()).collect())
    }

    #[test]
    fn columns_are_found_by_name_in_whatever_form_they_come() {
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        let real = |own: &[&str], entries: &[f32]| {
            let matrix = Matrix::from_entries(2, own.len(), entries.to_vec()).unwrap();
            FeatureColumns::none(2).with_values(names(own), matrix).unwrap()
        };
        let part = [Part::Values {
            names: names(&["a", "b"]).into(),
            mean: vec![0.0; 2],
            scale: vec![1.0; 2],
        }];
        let expected = Ok(vec![vec![(0, 1.0), (1, 5.0)], vec![(0, 3.0), (1, 7.0)]]);
        assert_eq!(read(&part, &real(&["a", "b"], &[1.0, 5.0, 3.0, 7.0])), expected);
        assert_eq!(read(&part, &real(&["b", "a"], &[5.0, 1.0, 7.0, 3.0])), expected);
        let words = Categories::from_integers("b", &[5, 7]);
        let mixed = real(&["a"], &[1.0, 3.0]).with_categories(words).unwrap();
        assert_eq!(read(&part, &mixed), expected);
        let sparse = SparseRows::new(2, vec![0, 2, 4], vec![0, 1, 0, 1], vec![1.0, 5.0, 3.0, 7.0]);
        let sparse = FeatureColumns::none(2).with_sparse(sparse.unwrap()).unwrap();
        assert_eq!(read(&part, &sparse), expected);
        // And the other way round.
        let part_of_words = [Part::Sparse { width: 2, row_normalize: false }];
        assert_eq!(read(&part_of_words, &real(&["a", "b"], &[1.0, 5.0, 3.0, 7.0])), expected);
        let values = names(&["3", "1"]);
        let part_of_classes =
            [Part::OneHot { column: "a".into(), values, unseen: UnseenCategories::Error }];
        let whole = Ok(vec![vec![(1, 1.0)], vec![(0, 1.0)]]);
        assert_eq!(read(&part_of_classes, &real(&["a"], &[1.0, 3.0])), whole);

        let missing = "the nodes have the real value a, the model reads 2 real values (a, b)";
        assert_eq!(read(&part, &real(&["a"], &[1.0, 3.0])), Err(missing.into()));
        let more = real(&["a", "b", "c"], &[1.0, 5.0, 9.0, 3.0, 7.0, 9.0]);
        assert_eq!(read(&part, &more), expected);
        assert_eq!(unread(&part, "node", &more), ["node feature c"]);
        let fractions = "column a of the nodes has fractions, the model reads categories";
        assert_eq!(read(&part_of_classes, &real(&["a"], &[1.5, 3.0])), Err(fractions.into()));
    }

    #[test]
    fn unseen_categories_are_an_error_nothing_or_others() {
        let words = |words: &[&str]| {
            let column = Categories::from_text("atom", words);
            FeatureColumns::none(words.len()).with_categories(column).unwrap()
        };
        let (known, new) = (words(&["C", "C", "O", "N", "O"]), words(&["O", "Xe", "N"]));
        let fit = |unseen| categories(&known, unseen, &[0, 1, 2, 3, 4]);
        let error = read(&fit(UnseenCategories::Error), &new).unwrap_err();
        let expected = "has atom “Xe”, which is none of the known values: C, N, O";
        assert!(error.starts_with("node 1 ") && error.ends_with(expected), "{error}");
        let ignored = Ok(vec![vec![(2, 1.0)], vec![], vec![(1, 1.0)]]);
        assert_eq!(read(&fit(UnseenCategories::Ignore), &new), ignored);
        // N was seen once: it shares a column with what was not seen.
        let other = fit(UnseenCategories::Other);
        let expected = Ok(vec![vec![(1, 1.0)], vec![(2, 1.0)], vec![(2, 1.0)]]);
        assert_eq!((other[0].width(), read(&other, &new)), (3, expected));
    }

    #[test]
    fn no_rows_fit_any_columns() {
        let parts = [
            Part::OneHot {
                column: "bond".into(),
                values: vec!["1".into(), "2".into()],
                unseen: UnseenCategories::Error,
            },
            Part::Values {
                names: vec!["length".to_owned()].into(),
                mean: vec![0.0],
                scale: vec![1.0],
            },
        ];
        let none: Features<f32> =
            encode(&parts, "edge", &FeatureColumns::none(0), &Structure::of_degree(0)).unwrap();
        assert_eq!((none.rows(), none.width()), (0, 3));
    }
}
