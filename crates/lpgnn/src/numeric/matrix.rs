use std::fmt;
use std::sync::Arc;

use crate::{Error, Scalar};

/// A dense matrix, row by row.
///
/// Its entries may lie in a file that is mapped into memory, until they are changed.
#[derive(Clone, Debug, Default)]
pub struct Matrix<S = f32> {
    rows: usize,
    cols: usize,
    /// Empty where the entries are in a file.
    entries: Vec<S>,
    file: Option<FileEntries<S>>,
}

/// Entries that somebody else holds.
#[derive(Clone)]
struct FileEntries<S>(Arc<dyn AsRef<[S]> + Send + Sync>);

impl<S> fmt::Debug for FileEntries<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} entries in a file", self.0.as_ref().as_ref().len())
    }
}

impl<S: PartialEq> PartialEq for Matrix<S> {
    fn eq(&self, other: &Self) -> bool {
        (self.rows, self.cols) == (other.rows, other.cols) && self.entries() == other.entries()
    }
}

impl<S> Matrix<S> {
    /// Wherever they are.
    #[inline]
    fn entries(&self) -> &[S] {
        match &self.file {
            None => &self.entries,
            Some(file) => file.0.as_ref().as_ref(),
        }
    }
}

impl<S: Scalar> Matrix<S> {
    /// All zero.
    pub fn zeros(rows: usize, cols: usize) -> Self {
        Self { rows, cols, entries: vec![S::ZERO; rows * cols], file: None }
    }

    /// One whose entries lie in a file.
    pub(crate) fn mapped(
        rows: usize,
        cols: usize,
        entries: Arc<dyn AsRef<[S]> + Send + Sync>,
    ) -> Self {
        assert_eq!(entries.as_ref().as_ref().len(), rows * cols, "as many entries as there are");
        Self { rows, cols, entries: vec![], file: Some(FileEntries(entries)) }
    }

    /// The entries, in memory from now on.
    fn own(&mut self) -> &mut Vec<S> {
        if let Some(file) = self.file.take() {
            self.entries = file.0.as_ref().as_ref().to_vec();
        }
        &mut self.entries
    }

    /// Another shape, with whatever entries; room that is there is kept.
    pub(crate) fn reshape(&mut self, rows: usize, cols: usize) {
        (self.rows, self.cols) = (rows, cols);
        self.file = None;
        self.entries.resize(rows * cols, S::ZERO);
    }

    /// How many entries there is room for.
    pub(crate) fn room(&self) -> usize {
        self.entries.capacity()
    }

    /// A matrix from its rows.
    ///
    /// # Errors
    ///
    /// [`Error::RaggedRows`] when a row is not as long as the first.
    pub fn from_rows(rows: &[Vec<S>]) -> Result<Self, Error> {
        let cols = rows.first().map_or(0, Vec::len);
        if let Some((row, found)) =
            rows.iter().map(Vec::len).enumerate().find(|&(_, len)| len != cols)
        {
            return Err(Error::RaggedRows { row, expected: cols, found });
        }
        Ok(Self { rows: rows.len(), cols, entries: rows.concat(), file: None })
    }

    /// A matrix from its entries, row by row.
    ///
    /// # Errors
    ///
    /// [`Error::EntryCount`] when there are not `rows · cols` entries.
    pub fn from_entries(rows: usize, cols: usize, entries: Vec<S>) -> Result<Self, Error> {
        if Some(entries.len()) != rows.checked_mul(cols) {
            return Err(Error::EntryCount { rows, cols, found: entries.len() });
        }
        Ok(Self { rows, cols, entries, file: None })
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Row `i`.
    pub fn row(&self, i: usize) -> &[S] {
        &self.as_slice()[i * self.cols..(i + 1) * self.cols]
    }

    /// Row `i`, to be changed.
    pub fn row_mut(&mut self, i: usize) -> &mut [S] {
        let cols = self.cols;
        &mut self.own()[i * cols..(i + 1) * cols]
    }

    /// All entries, row by row.
    pub fn as_slice(&self) -> &[S] {
        self.entries()
    }

    /// All entries, row by row, to be changed.
    pub fn as_mut_slice(&mut self) -> &mut [S] {
        self.own()
    }

    /// The entries themselves, row by row.
    pub fn into_entries(mut self) -> Vec<S> {
        std::mem::take(self.own())
    }

    /// The rows with these numbers, in this order.
    pub fn select(&self, rows: impl Iterator<Item = usize>) -> Self {
        let mut entries = Vec::with_capacity(rows.size_hint().0 * self.cols);
        let mut count = 0;
        for row in rows {
            entries.extend_from_slice(self.row(row));
            count += 1;
        }
        Self { rows: count, cols: self.cols, entries, file: None }
    }

    /// The same matrix in another precision.
    pub fn convert<T: Scalar>(&self) -> Matrix<T> {
        let entries = self.as_slice().iter().map(|&x| T::of(x.f64())).collect();
        Matrix { rows: self.rows, cols: self.cols, entries, file: None }
    }
}
