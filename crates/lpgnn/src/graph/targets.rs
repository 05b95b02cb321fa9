use super::Share;
use crate::{Error, Matrix, Scalar};

/// The class of a node or graph whose class is unknown.
pub const NO_TARGET: u32 = u32::MAX;

/// What is to be predicted, one row per node or per graph.
#[derive(Clone, Debug, PartialEq)]
pub enum Targets<S = f32> {
    /// Nothing is known, for this many nodes or graphs.
    None(usize),
    /// A class, or [`NO_TARGET`].
    Classes {
        /// How many classes there are.
        classes: usize,
        /// The class of every row.
        class: Vec<u32>,
    },
    /// Real values; NaN where one is not known.
    Values(Matrix<S>),
}

impl<S: Scalar> Targets<S> {
    /// Classes below `classes`, or [`NO_TARGET`].
    ///
    /// # Errors
    ///
    /// [`Error::ColumnOutOfRange`], naming the first row whose class does not exist.
    pub fn classes(classes: usize, class: Vec<u32>) -> Result<Self, Error> {
        let targets = Self::Classes { classes, class };
        targets.check_classes()?;
        Ok(targets)
    }

    /// How many nodes or graphs there are, with a target or without.
    pub fn rows(&self) -> usize {
        match self {
            Self::None(rows) => *rows,
            Self::Classes { class, .. } => class.len(),
            Self::Values(values) => values.rows(),
        }
    }

    /// How many numbers an output must have to predict this: classes, or real values.
    pub fn width(&self) -> usize {
        match self {
            Self::None(_) => 0,
            Self::Classes { classes, .. } => *classes,
            Self::Values(values) => values.cols(),
        }
    }

    /// Whether row `i` has a target; of several values, at least one.
    pub fn is_known(&self, i: usize) -> bool {
        match self {
            Self::None(_) => false,
            Self::Classes { class, .. } => class[i] != NO_TARGET,
            Self::Values(values) => values.row(i).iter().any(|x| x.is_finite()),
        }
    }

    /// The rows with these numbers, in this order.
    pub fn select(&self, rows: impl Iterator<Item = usize>) -> Self {
        match self {
            Self::None(_) => Self::None(rows.count()),
            Self::Classes { classes, class } => {
                Self::Classes { classes: *classes, class: rows.map(|row| class[row]).collect() }
            }
            Self::Values(values) => Self::Values(values.select(rows)),
        }
    }

    /// Those of all ranks which share a graph in parts, one after the other.
    pub(crate) fn concatenated(&self, share: &Share) -> Self {
        match self {
            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "they are counts"
            )]
            Self::None(rows) => {
                Self::None(share.concatenate(&[*rows as f64]).iter().sum::<f64>() as usize)
            }
            Self::Classes { classes, class } => {
                let own: Vec<f64> = class.iter().map(|&class| f64::from(class)).collect();
                #[allow(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "they had 32 bits"
                )]
                let class = share.concatenate(&own).into_iter().map(|class| class as u32).collect();
                Self::Classes { classes: *classes, class }
            }
            Self::Values(values) => Self::Values(share.concatenate_rows(values)),
        }
    }

    /// # Errors
    ///
    /// [`Error::ColumnOutOfRange`], naming the first row whose class does not exist.
    pub(crate) fn check_classes(&self) -> Result<(), Error> {
        let Self::Classes { classes, class } = self else { return Ok(()) };
        let wrong = |&c: &u32| c != NO_TARGET && c as usize >= *classes;
        class.iter().position(wrong).map_or(Ok(()), |row| {
            let (column, width) = (class[row] as usize, *classes);
            Err(Error::ColumnOutOfRange { what: "the targets", row, column, width })
        })
    }

    pub(crate) fn check_rows(&self, what: &'static str, expected: usize) -> Result<(), Error> {
        if self.rows() == expected {
            Ok(())
        } else {
            Err(Error::RowCount { what, expected, found: self.rows() })
        }
    }

    /// The rows of all `parts`, one part after the other. A part without targets counts as
    /// unlabelled; parts of different kinds are a mismatch.
    pub(crate) fn concatenate<'a>(parts: impl Iterator<Item = &'a Self>) -> Result<Self, Error> {
        let mut all = Self::None(0);
        for part in parts {
            all = match (all, part) {
                (Self::None(a), Self::None(b)) => Self::None(a + b),
                (Self::None(a), other) => other.after_unknown(a),
                (mut known, Self::None(b)) => {
                    known.append_unknown(*b);
                    known
                }
                (
                    Self::Classes { classes: a, class: mut first },
                    Self::Classes { classes: b, class },
                ) => {
                    first.extend_from_slice(class);
                    Self::Classes { classes: a.max(*b), class: first }
                }
                (Self::Values(a), Self::Values(b)) if a.cols() == b.cols() => {
                    let (rows, cols) = (a.rows() + b.rows(), a.cols());
                    let mut entries = a.into_entries();
                    entries.extend_from_slice(b.as_slice());
                    Self::Values(Matrix::from_entries(rows, cols, entries)?)
                }
                _ => {
                    return Err(Error::Mismatch(
                        "some targets are classes where others are real values, or of another \
                         length"
                            .into(),
                    ));
                }
            };
        }
        Ok(all)
    }

    fn after_unknown(&self, rows: usize) -> Self {
        let mut unknown = match self {
            Self::None(_) => Self::None(0),
            Self::Classes { classes, .. } => Self::Classes { classes: *classes, class: vec![] },
            Self::Values(values) => Self::Values(Matrix::zeros(0, values.cols())),
        };
        unknown.append_unknown(rows);
        match (unknown, self) {
            (Self::Classes { classes, mut class }, Self::Classes { class: known, .. }) => {
                class.extend_from_slice(known);
                Self::Classes { classes, class }
            }
            (Self::Values(first), Self::Values(known)) => {
                let rows = first.rows() + known.rows();
                let mut entries = first.into_entries();
                entries.extend_from_slice(known.as_slice());
                let all = Matrix::from_entries(rows, known.cols(), entries);
                Self::Values(all.expect("both parts have the columns of `known`"))
            }
            (unknown, _) => unknown,
        }
    }

    fn append_unknown(&mut self, more: usize) {
        match self {
            Self::None(rows) => *rows += more,
            Self::Classes { class, .. } => class.resize(class.len() + more, NO_TARGET),
            Self::Values(values) => {
                let (rows, cols) = (values.rows() + more, values.cols());
                let mut entries = std::mem::take(values).into_entries();
                entries.resize(rows * cols, S::of(f64::NAN));
                *values = Matrix::from_entries(rows, cols, entries).expect("resized to fit");
            }
        }
    }
}
