use crate::{Error, Scalar};

/// A dense matrix, row by row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Matrix<S = f32> {
    rows: usize,
    cols: usize,
    entries: Vec<S>,
}

impl<S: Scalar> Matrix<S> {
    /// All zero.
    pub fn zeros(rows: usize, cols: usize) -> Self {
        Self { rows, cols, entries: vec![S::ZERO; rows * cols] }
    }

    /// Another shape, with whatever entries; room that is there is kept.
    pub(crate) fn reshape(&mut self, rows: usize, cols: usize) {
        (self.rows, self.cols) = (rows, cols);
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
        Ok(Self { rows: rows.len(), cols, entries: rows.concat() })
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
        Ok(Self { rows, cols, entries })
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
        &self.entries[i * self.cols..(i + 1) * self.cols]
    }

    /// Row `i`, to be changed.
    pub fn row_mut(&mut self, i: usize) -> &mut [S] {
        &mut self.entries[i * self.cols..(i + 1) * self.cols]
    }

    /// All entries, row by row.
    pub fn as_slice(&self) -> &[S] {
        &self.entries
    }

    /// All entries, row by row, to be changed.
    pub fn as_mut_slice(&mut self) -> &mut [S] {
        &mut self.entries
    }

    /// The entries themselves, row by row.
    pub fn into_entries(self) -> Vec<S> {
        self.entries
    }

    /// The rows with these numbers, in this order.
    pub fn select(&self, rows: impl Iterator<Item = usize>) -> Self {
        let mut entries = Vec::with_capacity(rows.size_hint().0 * self.cols);
        let mut count = 0;
        for row in rows {
            entries.extend_from_slice(self.row(row));
            count += 1;
        }
        Self { rows: count, cols: self.cols, entries }
    }

    /// The same matrix in another precision.
    pub fn convert<T: Scalar>(&self) -> Matrix<T> {
        let entries = self.entries.iter().map(|&x| T::of(x.f64())).collect();
        Matrix { rows: self.rows, cols: self.cols, entries }
    }
}
