use crate::network::Dropout;
use crate::{Error, Matrix, Scalar};

/// One feature per node or edge, as rows of a matrix that is stored in the form that costs least.
///
/// A one-hot or sparse matrix is never made dense: a product with it is a sum of gathered rows.
#[derive(Clone, Debug, PartialEq)]
pub enum Features<S = f32> {
    /// Real features, all of them stored.
    Dense(Matrix<S>),
    /// One column is `1`, the others are `0`.
    OneHot(OneHot),
    /// Few columns differ from `0`.
    Sparse(SparseRows<S>),
}

impl<S: Scalar> Features<S> {
    /// Features of no columns, for `rows` nodes or edges that have none.
    pub fn none(rows: usize) -> Self {
        Self::Dense(Matrix::zeros(rows, 0))
    }

    /// The same features, borrowed.
    pub fn view(&self) -> FeaturesView<'_, S> {
        match self {
            Self::Dense(matrix) => FeaturesView::Dense(matrix),
            Self::OneHot(one_hot) => FeaturesView::OneHot(one_hot),
            Self::Sparse(sparse) => FeaturesView::Sparse(sparse),
        }
    }

    /// How many nodes or edges have a feature.
    pub fn rows(&self) -> usize {
        self.view().rows()
    }

    /// Length of a feature.
    pub fn width(&self) -> usize {
        self.view().width()
    }

    /// The columns of row `i` that are stored, with their values.
    pub fn entries(&self, i: usize) -> impl Iterator<Item = (usize, S)> + '_ {
        self.view().entries(i)
    }

    /// The rows with these numbers, in this order.
    pub fn select(&self, rows: impl Iterator<Item = usize>) -> Self {
        match self {
            Self::Dense(matrix) => Self::Dense(matrix.select(rows)),
            Self::OneHot(one_hot) => Self::OneHot(OneHot {
                width: one_hot.width,
                columns: rows.map(|row| one_hot.columns[row]).collect(),
            }),
            Self::Sparse(sparse) => Self::Sparse(sparse.select(rows)),
        }
    }

    /// The same features with some of their entries left out, each with probability `rate`, and the
    /// others `1 / (1 − rate)` times as large. Which ones follows from `seed`.
    #[must_use]
    pub fn with_dropout(&self, rate: f64, seed: u64) -> Self {
        self.with_dropout_from(0, rate, seed)
    }

    /// The same of rows that are preceded by `first` others.
    pub(crate) fn with_dropout_from(&self, first: usize, rate: f64, seed: u64) -> Self {
        let drop = Dropout { rate, seed, first };
        match self {
            Self::Dense(matrix) => {
                let mut matrix = matrix.clone();
                drop.apply(0, matrix.cols(), matrix.as_mut_slice());
                Self::Dense(matrix)
            }
            Self::Sparse(rows) => Self::Sparse(rows.clone().with_dropout(drop)),
            Self::OneHot(one_hot) => {
                let starts = (0..=one_hot.columns.len()).collect();
                let (width, columns) = (one_hot.width, one_hot.columns.clone());
                let values = vec![S::ONE; columns.len()];
                Self::Sparse(SparseRows { width, starts, columns, values }.with_dropout(drop))
            }
        }
    }

    /// # Errors
    ///
    /// [`Error::NotFinite`], naming the first place of an infinite number or NaN.
    pub(crate) fn check_finite(&self, what: &'static str) -> Result<(), Error> {
        let Self::Dense(matrix) = self else { return Ok(()) };
        let found = matrix.as_slice().iter().position(|x| !x.is_finite());
        found.map_or(Ok(()), |i| {
            let (row, column) = (i / matrix.cols(), i % matrix.cols());
            Err(Error::NotFinite { what, row, column, value: matrix.as_slice()[i].f64() })
        })
    }

    /// The rows of all `parts`, one part after the other.
    ///
    /// # Errors
    ///
    /// [`Error::Mismatch`] when widths or forms differ.
    pub fn concatenate<'a>(parts: impl Iterator<Item = &'a Self>) -> Result<Self, Error> {
        let mut parts = parts.filter(|part| part.rows() > 0);
        let Some(first) = parts.next() else { return Ok(Self::none(0)) };
        let mut all = first.clone();
        for part in parts {
            if part.width() != all.width() {
                return Err(Error::Mismatch(format!(
                    "one graph has features of {} components, another of {}",
                    all.width(),
                    part.width()
                )));
            }
            match (&mut all, part) {
                (Self::Dense(all), Self::Dense(part)) => {
                    let (rows, cols) = (all.rows() + part.rows(), part.cols());
                    let mut entries = std::mem::take(all).into_entries();
                    entries.extend_from_slice(part.as_slice());
                    *all = Matrix::from_entries(rows, cols, entries)?;
                }
                (Self::OneHot(all), Self::OneHot(part)) => {
                    all.columns.extend_from_slice(&part.columns);
                }
                (Self::Sparse(all), Self::Sparse(part)) => all.append(part),
                _ => {
                    return Err(Error::Mismatch(
                        "the features of one graph are dense, one-hot or sparse where those of \
                         another are not"
                            .into(),
                    ));
                }
            }
        }
        Ok(all)
    }
}

/// Borrowed [`Features`]: those of a batch, or the states of the layer below.
#[derive(Debug)]
pub enum FeaturesView<'a, S = f32> {
    /// See [`Features::Dense`].
    Dense(&'a Matrix<S>),
    /// See [`Features::OneHot`].
    OneHot(&'a OneHot),
    /// See [`Features::Sparse`].
    Sparse(&'a SparseRows<S>),
}

impl<S> Clone for FeaturesView<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<S> Copy for FeaturesView<'_, S> {}

impl<'a, S: Scalar> FeaturesView<'a, S> {
    /// How many nodes or edges have a feature.
    pub fn rows(self) -> usize {
        match self {
            Self::Dense(matrix) => matrix.rows(),
            Self::OneHot(one_hot) => one_hot.columns.len(),
            Self::Sparse(sparse) => sparse.rows(),
        }
    }

    /// Length of a feature.
    pub fn width(self) -> usize {
        match self {
            Self::Dense(matrix) => matrix.cols(),
            Self::OneHot(one_hot) => one_hot.width,
            Self::Sparse(sparse) => sparse.width,
        }
    }

    /// The columns of row `i` that are stored, with their values.
    pub fn entries(self, i: usize) -> impl Iterator<Item = (usize, S)> + 'a {
        let (dense, hot, sparse) = match self {
            Self::Dense(matrix) => (Some(matrix.row(i)), None, None),
            Self::OneHot(one_hot) => (None, Some(one_hot.column(i)), None),
            Self::Sparse(rows) => (None, None, Some(rows.row(i))),
        };
        let dense = dense.into_iter().flatten().copied().enumerate();
        let hot = hot.into_iter().map(|column| (column, S::ONE));
        let sparse = sparse.into_iter().flat_map(|(columns, values)| {
            columns.iter().zip(values).map(|(&column, &value)| (column as usize, value))
        });
        dense.chain(hot).chain(sparse)
    }
}

/// Features of which one column is `1` and the others are `0`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OneHot {
    width: usize,
    columns: Vec<u32>,
}

impl OneHot {
    /// One-hot features of `width` components from the column that is `1`, one per row.
    ///
    /// # Errors
    ///
    /// [`Error::ColumnOutOfRange`], naming the first row with a column that does not exist.
    pub fn new(width: usize, columns: Vec<u32>) -> Result<Self, Error> {
        if let Some(row) = columns.iter().position(|&column| column as usize >= width) {
            let column = columns[row] as usize;
            return Err(Error::ColumnOutOfRange { what: "a one-hot feature", row, column, width });
        }
        Ok(Self { width, columns })
    }

    /// The column of row `i` that is `1`.
    #[inline]
    pub fn column(&self, i: usize) -> usize {
        self.columns[i] as usize
    }

    /// The column that is `1`, for every row.
    pub fn columns(&self) -> &[u32] {
        &self.columns
    }

    /// The same, to be changed by whoever keeps columns below the width.
    pub(crate) fn columns_mut(&mut self) -> &mut Vec<u32> {
        &mut self.columns
    }
}

/// Features of which few columns differ from `0`, in compressed rows.
#[derive(Clone, Debug, PartialEq)]
pub struct SparseRows<S = f32> {
    width: usize,
    starts: Vec<usize>,
    columns: Vec<u32>,
    values: Vec<S>,
}

impl<S: Scalar> SparseRows<S> {
    /// Sparse features of `width` components. Row `i` is at `starts[i]..starts[i + 1]` of `columns`
    /// and `values`.
    ///
    /// # Errors
    ///
    /// [`Error::ColumnOutOfRange`], [`Error::NotFinite`], or [`Error::RowCount`] when `starts`
    /// does not lead from 0 to the end without stepping back.
    pub fn new(
        width: usize,
        starts: Vec<usize>,
        columns: Vec<u32>,
        values: Vec<S>,
    ) -> Result<Self, Error> {
        let sound = starts.first() == Some(&0)
            && starts.last() == Some(&columns.len())
            && starts.is_sorted();
        if !sound || values.len() != columns.len() {
            return Err(Error::RowCount {
                what: "a sparse matrix",
                expected: columns.len(),
                found: values.len(),
            });
        }
        let rows = Self { width, starts, columns, values };
        for row in 0..rows.rows() {
            for (&column, &value) in rows.row(row).0.iter().zip(rows.row(row).1) {
                let (what, column) = ("a sparse feature", column as usize);
                if column >= width {
                    return Err(Error::ColumnOutOfRange { what, row, column, width });
                }
                if !value.is_finite() {
                    return Err(Error::NotFinite { what, row, column, value: value.f64() });
                }
            }
        }
        Ok(rows)
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.starts.len() - 1
    }

    /// Length of a row, zeros included.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Columns and values of row `i`.
    #[inline]
    pub fn row(&self, i: usize) -> (&[u32], &[S]) {
        let range = self.starts[i]..self.starts[i + 1];
        (&self.columns[range.clone()], &self.values[range])
    }

    /// Forgets all rows.
    pub(crate) fn clear(&mut self) {
        self.starts.truncate(1);
        self.columns.clear();
        self.values.clear();
    }

    /// Appends a row of columns below the width.
    pub(crate) fn push_row(&mut self, entries: impl Iterator<Item = (u32, S)>) {
        for (column, value) in entries {
            self.columns.push(column);
            self.values.push(value);
        }
        self.starts.push(self.columns.len());
    }

    /// How many entries are stored, over all rows.
    pub fn stored(&self) -> usize {
        self.columns.len()
    }

    /// The rows with these numbers, in this order.
    pub fn select(&self, rows: impl Iterator<Item = usize>) -> Self {
        let mut selected =
            Self { width: self.width, starts: vec![0], columns: vec![], values: vec![] };
        for row in rows {
            let (columns, values) = self.row(row);
            selected.columns.extend_from_slice(columns);
            selected.values.extend_from_slice(values);
            selected.starts.push(selected.columns.len());
        }
        selected
    }

    /// The rows of a matrix, without their zeros.
    ///
    /// # Errors
    ///
    /// [`Error::TooLarge`] for more columns than can be numbered; those of [`new`](Self::new).
    pub fn of_dense(matrix: &Matrix<S>) -> Result<Self, Error> {
        let (mut starts, mut columns, mut values) = (vec![0], vec![], vec![]);
        for row in 0..matrix.rows() {
            for (column, &value) in matrix.row(row).iter().enumerate() {
                if value != S::ZERO {
                    columns.push(u32::try_from(column).map_err(|_| Error::TooLarge)?);
                    values.push(value);
                }
            }
            starts.push(columns.len());
        }
        Self::new(matrix.cols(), starts, columns, values)
    }

    /// The rows with their zeros.
    pub fn to_dense(&self) -> Matrix<S> {
        let mut matrix = Matrix::zeros(self.rows(), self.width);
        let rows = matrix.as_mut_slice().chunks_exact_mut(self.width.max(1));
        for (row, dense) in rows.enumerate() {
            let (columns, values) = self.row(row);
            for (&column, &value) in columns.iter().zip(values) {
                // A place that is named twice holds the sum, as in every product.
                dense[column as usize] += value;
            }
        }
        matrix
    }

    /// The same rows in another precision.
    pub fn convert<T: Scalar>(&self) -> SparseRows<T> {
        SparseRows {
            width: self.width,
            starts: self.starts.clone(),
            columns: self.columns.clone(),
            values: self.values.iter().map(|&x| T::of(x.f64())).collect(),
        }
    }

    /// The same rows, each divided by the sum of its absolute values; a row of zeros stays.
    #[must_use]
    pub fn row_normalized(mut self) -> Self {
        for ends in self.starts.windows(2) {
            let row = &mut self.values[ends[0]..ends[1]];
            let sum: f64 = row.iter().map(|x| x.f64().abs()).sum();
            if sum > 0.0 {
                row.iter_mut().for_each(|x| *x = S::of(x.f64() / sum));
            }
        }
        self
    }

    fn with_dropout(mut self, drop: Dropout) -> Self {
        let mut kept = 0;
        for row in 0..self.rows() {
            let range = std::mem::replace(&mut self.starts[row], kept)..self.starts[row + 1];
            for i in range {
                let (column, mut value) = (self.columns[i], self.values[i]);
                drop.apply_at(drop.first + row, column.into(), &mut value);
                if value != S::ZERO {
                    (self.columns[kept], self.values[kept]) = (column, value);
                    kept += 1;
                }
            }
        }
        let rows = self.rows();
        self.starts[rows] = kept;
        self.columns.truncate(kept);
        self.values.truncate(kept);
        self
    }

    /// These rows, and below them those of `other`; as wide as the wider.
    pub fn join(&self, other: &Self) -> Self {
        let mut joined = self.clone();
        joined.width = self.width.max(other.width);
        joined.append(other);
        joined
    }

    fn append(&mut self, other: &Self) {
        let shift = self.columns.len();
        self.starts.extend(other.starts[1..].iter().map(|start| start + shift));
        self.columns.extend_from_slice(&other.columns);
        self.values.extend_from_slice(&other.values);
    }
}
