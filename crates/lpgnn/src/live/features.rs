use super::slots::Slots;
use super::{EventError, Sink, Source};
use crate::graph::{Features, FeaturesView, OneHot, SparseRows};
use crate::numeric::prefetch;
use crate::{Error, Matrix};

/// One feature per node or edge, each of which can change.
#[derive(Clone, Debug)]
pub(super) enum FeatureTable {
    Dense { width: usize, values: Vec<f32> },
    OneHot { width: usize, columns: Vec<u32> },
    Sparse { width: usize, rows: Slots<(u32, f32)> },
}

impl FeatureTable {
    pub(super) fn new(features: &Features<f32>) -> Self {
        let width = features.width();
        match features {
            Features::Dense(matrix) => Self::Dense { width, values: matrix.as_slice().to_vec() },
            Features::OneHot(hot) => Self::OneHot { width, columns: hot.columns().to_vec() },
            Features::Sparse(sparse) => {
                let mut rows = Slots::default();
                rows.reserve(sparse.stored(), sparse.rows());
                for row in 0..sparse.rows() {
                    let (columns, values) = sparse.row(row);
                    rows.push(columns.iter().copied().zip(values.iter().copied()));
                }
                Self::Sparse { width, rows }
            }
        }
    }

    pub(super) fn width(&self) -> usize {
        match self {
            Self::Dense { width, .. } | Self::OneHot { width, .. } | Self::Sparse { width, .. } => {
                *width
            }
        }
    }

    /// Number of rows; not known where they have no columns.
    pub(super) fn rows(&self) -> usize {
        match self {
            Self::Dense { width, values } => values.len() / (*width).max(1),
            Self::OneHot { columns, .. } => columns.len(),
            Self::Sparse { rows, .. } => rows.lists(),
        }
    }

    /// The entries of a row that are stored.
    pub(super) fn entries(&self, row: usize) -> Vec<(u32, f32)> {
        match self {
            Self::Dense { width, values } => {
                (0..).zip(values[row * width..][..*width].iter().copied()).collect()
            }
            Self::OneHot { columns, .. } => vec![(columns[row], 1.0)],
            Self::Sparse { rows, .. } => rows.of(row).to_vec(),
        }
    }

    /// These rows, as the read-out reads them.
    pub(super) fn select(&self, rows: &[u32]) -> Features<f32> {
        match self {
            Self::Dense { width, values } => {
                let mut matrix = Matrix::zeros(rows.len(), *width);
                for (to, &row) in rows.iter().enumerate() {
                    let from = &values[row as usize * width..][..*width];
                    matrix.row_mut(to).copy_from_slice(from);
                }
                Features::Dense(matrix)
            }
            Self::OneHot { width, columns } => {
                let columns = rows.iter().map(|&row| columns[row as usize]).collect();
                Features::OneHot(OneHot::new(*width, columns).expect("columns were checked"))
            }
            Self::Sparse { width, rows: from } => {
                let none = SparseRows::new(*width, vec![0], vec![], vec![]);
                let mut sparse = none.expect("there are no rows");
                rows.iter().for_each(|&row| sparse.push_row(from.of(row as usize).iter().copied()));
                Features::Sparse(sparse)
            }
        }
    }

    /// A row will soon be read.
    pub(super) fn call_for(&self, row: usize) {
        match self {
            Self::Dense { width, values } => prefetch(values, row * width),
            Self::OneHot { columns, .. } => prefetch(columns, row),
            Self::Sparse { rows, .. } => rows.call_for(row),
        }
    }

    /// All columns of a row.
    pub(super) fn dense(&self, row: usize) -> Vec<f32> {
        let mut dense = vec![0.0; self.width()];
        self.entries(row).iter().for_each(|&(column, value)| dense[column as usize] += value);
        dense
    }

    /// Features of the form that [`gather`](Self::gather) fills.
    pub(super) fn empty(&self) -> Features<f64> {
        match self {
            Self::Dense { width, .. } => Features::Dense(Matrix::zeros(0, *width)),
            Self::OneHot { width, .. } => {
                Features::OneHot(OneHot::new(*width, vec![]).expect("no column is out of range"))
            }
            Self::Sparse { width, .. } => Features::Sparse(
                SparseRows::new(*width, vec![0], vec![], vec![]).expect("there are no rows"),
            ),
        }
    }

    /// Fills `to` with these rows.
    pub(super) fn gather(&self, rows: &[u32], to: &mut Features<f64>) {
        match (self, to) {
            (Self::Dense { width, values }, Features::Dense(matrix)) => {
                matrix.reshape(rows.len(), *width);
                if *width > 0 {
                    let to = matrix.as_mut_slice().chunks_exact_mut(*width);
                    for (to, &row) in to.zip(rows) {
                        widen(&values[row as usize * width..][..*width], to);
                    }
                }
            }
            (Self::OneHot { columns, .. }, Features::OneHot(hot)) => {
                let to = hot.columns_mut();
                to.clear();
                to.extend(rows.iter().map(|&row| columns[row as usize]));
            }
            (Self::Sparse { rows: from, .. }, Features::Sparse(sparse)) => {
                sparse.clear();
                for &row in rows {
                    sparse.push_row(from.of(row as usize).iter().map(|&(i, x)| (i, f64::from(x))));
                }
            }
            _ => unreachable!("a table fills features of its own form"),
        }
    }

    /// Checks a feature that is to become a row: one row, of the same width and form, and finite.
    ///
    /// Sparse and dense ones stand for each other, and one-hot ones for both.
    pub(super) fn check(
        &self,
        what: &'static str,
        feature: FeaturesView<'_, f32>,
    ) -> Result<Row, EventError> {
        let (expected, found) = (self.width(), feature.width());
        if feature.rows() != 1 || found != expected {
            return Err(EventError::Width { what, expected, found });
        }
        let mut entries: Vec<(u32, f32)> = vec![];
        for (column, value) in feature.entries(0) {
            if !value.is_finite() {
                return Err(EventError::NotFinite { what, column, value: f64::from(value) });
            }
            #[allow(clippy::cast_possible_truncation, reason = "columns of features have 32 bits")]
            entries.push((column as u32, value));
        }
        let one = matches!(&entries[..], [(_, value)] if value.to_bits() == 1.0_f32.to_bits());
        if matches!(self, Self::OneHot { .. }) && !one {
            let set: Vec<_> = entries.iter().filter(|(_, value)| *value != 0.0).copied().collect();
            let [(_, value)] = set[..] else { return Err(EventError::NotOneHot { what }) };
            if value.to_bits() != 1.0_f32.to_bits() {
                return Err(EventError::NotOneHot { what });
            }
            entries = set;
        }
        Ok(Row(entries))
    }

    /// `‖l − m‖₂` of a row and what would replace it, rounded up.
    pub(super) fn distance(&self, row: usize, new: &Row) -> f64 {
        let mut all: Vec<(u32, f64)> = self
            .entries(row)
            .iter()
            .map(|&(column, value)| (column, -f64::from(value)))
            .chain(new.0.iter().map(|&(column, value)| (column, f64::from(value))))
            .collect();
        all.sort_by_key(|&(column, _)| column);
        let by_column = all.chunk_by(|a, b| a.0 == b.0);
        let squares: f64 =
            by_column.map(|same| same.iter().map(|x| x.1).sum::<f64>().powi(2)).sum();
        squares.sqrt() * (1.0 + 1e-9)
    }

    /// Sets a row that exists, or appends one.
    pub(super) fn set(&mut self, row: usize, new: &Row) {
        match self {
            Self::Dense { width, values } => {
                if values.len() < (row + 1) * *width {
                    values.resize((row + 1) * *width, 0.0);
                }
                let to = &mut values[row * *width..][..*width];
                to.fill(0.0);
                new.0.iter().for_each(|&(column, value)| to[column as usize] += value);
            }
            Self::OneHot { columns, .. } => {
                if columns.len() <= row {
                    columns.resize(row + 1, 0);
                }
                columns[row] = new.0.first().map_or(0, |&(column, _)| column);
            }
            Self::Sparse { rows, .. } => {
                while rows.lists() <= row {
                    rows.push(std::iter::empty());
                }
                rows.set(row, &new.0);
            }
        }
    }

    /// Bytes that it takes.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Dense { values, .. } => values.capacity() * size_of::<f32>(),
            Self::OneHot { columns, .. } => columns.capacity() * size_of::<u32>(),
            Self::Sparse { rows, .. } => rows.bytes(),
        }
    }

    pub(super) fn save(&self, rows: usize, to: &mut Sink) {
        let form = match self {
            Self::Dense { .. } => 0_u64,
            Self::OneHot { .. } => 1,
            Self::Sparse { .. } => 2,
        };
        to.number(form);
        to.number(self.width() as u64);
        to.number(rows as u64);
        for row in 0..rows {
            match self {
                Self::Dense { width, values } => to.reals(&values[row * width..][..*width]),
                Self::OneHot { columns, .. } => to.integers(&columns[row..=row]),
                Self::Sparse { rows, .. } => {
                    let (columns, values): (Vec<u32>, Vec<f32>) =
                        rows.of(row).iter().copied().unzip();
                    to.number(columns.len() as u64);
                    to.integers(&columns);
                    to.reals(&values);
                }
            }
        }
    }

    pub(super) fn load(from: &mut Source<'_>) -> Result<Self, Error> {
        let (form, width, rows) = (from.number()?, from.length()?, from.length()?);
        let in_range = |columns: &[u32]| columns.iter().all(|&column| (column as usize) < width);
        Ok(match form {
            0 => Self::Dense { width, values: from.reals(rows.saturating_mul(width))? },
            1 => {
                let columns = from.integers(rows)?;
                if !in_range(&columns) {
                    return Err(Source::damaged());
                }
                Self::OneHot { width, columns }
            }
            2 => {
                let mut lists = Slots::default();
                for _ in 0..rows {
                    let count = from.length()?;
                    let (columns, values) = (from.integers(count)?, from.reals(count)?);
                    if !in_range(&columns) {
                        return Err(Source::damaged());
                    }
                    lists.push(columns.into_iter().zip(values));
                }
                Self::Sparse { width, rows: lists }
            }
            _ => return Err(Source::damaged()),
        })
    }
}

/// The same numbers in double precision.
#[inline]
pub(super) fn widen(from: &[f32], to: &mut [f64]) {
    to.iter_mut().zip(from).for_each(|(to, &x)| *to = f64::from(x));
}

/// A checked feature.
#[derive(Clone, Debug, Default)]
pub(super) struct Row(Vec<(u32, f32)>);

impl Row {
    /// `‖l‖₂`, rounded up.
    pub(super) fn size(&self) -> f64 {
        let squares: f64 = self.0.iter().map(|(_, x)| f64::from(*x).powi(2)).sum();
        // Sparse rows may name a column twice.
        let count = self.0.len() as f64;
        let repeated = self.0.windows(2).any(|pair| pair[0].0 == pair[1].0);
        squares.sqrt() * (1.0 + 1e-9) * if repeated { count.sqrt() } else { 1.0 }
    }

    /// Entries that are stored.
    pub(super) fn terms(&self) -> usize {
        self.0.len()
    }
}

/// The row of a table, as a checked feature.
impl From<Vec<(u32, f32)>> for Row {
    fn from(entries: Vec<(u32, f32)>) -> Self {
        Self(entries)
    }
}
