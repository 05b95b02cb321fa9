//! Arrays as `numpy.save` writes them.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use super::text::{self, quote};
use super::unpack::read_error;
use crate::{Error, Matrix, Place, memory};

/// A matrix of finite numbers from the file at `path`: a table of numbers next to a CSV file.
pub(super) fn read(path: &Path) -> Result<Matrix<f32>, Error> {
    let file = text::open(path)?;
    let size = file
        .metadata()
        .map_err(|source| Error::Io { action: "read", path: path.to_owned(), source })?
        .len();
    Array::open(path, BufReader::new(file), size)?.finite_matrix()
}

/// Where the entries of an array start, and what they are.
pub(in crate::data) struct Layout {
    pub(in crate::data) descr: String,
    pub(in crate::data) fortran: bool,
    /// Rows and columns; an array of one dimension is a column.
    pub(in crate::data) shape: [usize; 2],
    /// Bytes before the first entry.
    pub(in crate::data) start: u64,
}

/// That of the array in a file of `size` bytes.
///
/// # Errors
///
/// [`Error::Input`] if it is not an array of numbers, or does not fit the size.
pub(in crate::data) fn layout(path: &Path, file: &File, size: u64) -> Result<Layout, Error> {
    let array = Array::open(path, BufReader::new(file), size)?;
    let bytes = array.rows * array.cols * array.number.size;
    let start = size - bytes as u64;
    Ok(Layout { shape: array.shape(), descr: array.descr, fortran: array.fortran, start })
}

/// An array of one or two dimensions, of integers, booleans or real numbers, in rows or in columns.
/// Its header has been read; its entries are what follows.
///
/// The format: `\x93NUMPY`, two bytes of version, the length of the header (two bytes in version 1,
/// four in later ones), the header `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }`,
/// and the entries.
pub(super) struct Array<R> {
    path: PathBuf,
    source: R,
    descr: String,
    number: Number,
    fortran: bool,
    rows: usize,
    cols: usize,
}

impl<R: Read> Array<R> {
    /// Reads the header of an array of `size` bytes in all, which messages call `path`.
    ///
    /// # Errors
    ///
    /// [`Error::Input`] if it is not an array of numbers, or does not fit the size.
    pub(super) fn open(path: &Path, mut source: R, size: u64) -> Result<Self, Error> {
        let (start, header) = header(path, &mut source)?;
        let header = Header::parse(&header).ok_or_else(|| {
            Place::byte(path, 10).error(format!(
                "has the header {}, but one with descr, fortran_order and a shape of one or two \
                 dimensions is expected",
                quote(&header)
            ))
        })?;
        let number = header.number.ok_or_else(|| {
            Place::byte(path, 10)
                .error(format!("has entries of the type {}, not numbers", quote(header.descr)))
        })?;
        let (rows, cols) = (header.rows, header.cols);
        let there = size.saturating_sub(start);
        let expected = rows.checked_mul(cols).and_then(|count| count.checked_mul(number.size));
        if expected.and_then(|expected| u64::try_from(expected).ok()) != Some(there) {
            return Err(Place::file(path).error(format!(
                "declares {rows} × {cols} entries of {} bytes, but has {there} bytes of them",
                number.size,
            )));
        }
        let descr = String::from_utf8_lossy(header.descr).into_owned();
        let (path, fortran) = (path.to_owned(), header.fortran);
        Ok(Self { path, source, descr, number, fortran, rows, cols })
    }

    /// How messages call it.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Its shape; an array of one dimension is a column.
    pub(super) fn shape(&self) -> [usize; 2] {
        [self.rows, self.cols]
    }

    /// Whether its entries are integers or booleans.
    pub(super) fn is_whole(&self) -> bool {
        self.number.kind != b'f'
    }

    /// Its entries in single precision, row by row.
    ///
    /// # Errors
    ///
    /// [`Error::Input`] that names the first entry that is not finite; [`Error::Memory`].
    pub(super) fn finite_matrix(self) -> Result<Matrix<f32>, Error> {
        let path = self.path.clone();
        let matrix = self.matrix()?;
        match matrix.as_slice().iter().position(|x| !x.is_finite()) {
            None => Ok(matrix),
            Some(i) => Err(Place::file(&path).error(format!(
                "has {} in row {}, column {}, counted from 0, but a finite number is expected",
                matrix.as_slice()[i],
                i / matrix.cols(),
                i % matrix.cols()
            ))),
        }
    }

    /// The same, with entries that are not finite.
    #[allow(clippy::cast_possible_truncation, reason = "features are kept in single precision")]
    pub(super) fn matrix(self) -> Result<Matrix<f32>, Error> {
        let (rows, cols, fortran) = (self.rows, self.cols, self.fortran);
        let entries = self.entries(|number, entry| number.value(entry) as f32)?;
        if !fortran {
            return Matrix::from_entries(rows, cols, entries);
        }
        let mut matrix = Matrix::zeros(rows, cols);
        for (i, x) in entries.into_iter().enumerate() {
            matrix.row_mut(i % rows)[i / rows] = x;
        }
        Ok(matrix)
    }

    /// Its entries as integers, row by row.
    ///
    /// # Errors
    ///
    /// [`Error::Input`] if they are real numbers; [`Error::Memory`].
    pub(super) fn integers(self) -> Result<Vec<i64>, Error> {
        if !self.is_whole() {
            let problem = format!("has entries of the type “{}”, not integers", self.descr);
            return Err(Place::file(&self.path).error(problem));
        }
        let (rows, cols, fortran) = (self.rows, self.cols, self.fortran);
        let entries = self.entries(Number::integer)?;
        if !fortran || rows == 1 || cols == 1 {
            return Ok(entries);
        }
        let place = |i: usize| (i % cols) * rows + i / cols;
        Ok((0..entries.len()).map(|i| entries[place(i)]).collect())
    }

    /// Its entries as they are stored.
    fn entries<T>(mut self, value: impl Fn(Number, &[u8]) -> T) -> Result<Vec<T>, Error> {
        let (rows, cols, size) = (self.rows, self.cols, self.number.size);
        let what = format_args!("an array of {rows} × {cols} in {}", self.path.display());
        // Columns are written as rows into a second array.
        let copies = 1 + usize::from(self.fortran);
        memory::require(memory::bytes_of::<T>(&[rows, cols, copies]), what)?;
        let mut left = rows * cols;
        // The size of an entry of an archive is only claimed: memory follows what is there.
        let mut entries = Vec::with_capacity(left.min(BLOCK));
        let mut block = vec![0; left.min(BLOCK) * size];
        while left > 0 {
            let block = &mut block[..left.min(BLOCK) * size];
            self.source.read_exact(block).map_err(|error| read_error(&self.path, error))?;
            entries.extend(block.chunks_exact(size).map(|entry| value(self.number, entry)));
            left -= block.len() / size;
        }
        // At its end, an archive compares the checksum of what was read.
        let more = self.source.read(&mut [0]).map_err(|error| read_error(&self.path, error))?;
        if more > 0 {
            return Err(Place::file(&self.path).error("continues after its last entry"));
        }
        entries.shrink_to_fit();
        Ok(entries)
    }
}

/// How many entries are read at once.
const BLOCK: usize = 1 << 14;

/// Where the entries start, and the bytes of the header before them.
fn header(path: &Path, file: &mut impl Read) -> Result<(u64, Vec<u8>), Error> {
    let mut bytes = |count: u64| {
        let mut found = vec![];
        file.by_ref()
            .take(count)
            .read_to_end(&mut found)
            .map_err(|error| read_error(path, error))?;
        Ok::<_, Error>(found)
    };
    let start = bytes(8)?;
    if !start.starts_with(b"\x93NUMPY") {
        return Err(Place::byte(path, 0).error("does not start like a file of NumPy"));
    }
    let (before, length) = match (start.get(6), &bytes(2)?[..]) {
        (Some(1), &[a, b]) => (10, u64::from(u16::from_le_bytes([a, b]))),
        (Some(2 | 3), &[a, b]) => match bytes(2)?[..] {
            [c, d] => (12, u64::from(u32::from_le_bytes([a, b, c, d]))),
            _ => return Err(Place::byte(path, 10).error("is the end of the file")),
        },
        _ => return Err(Place::byte(path, 6).error("is not the version 1, 2 or 3 of the format")),
    };
    Ok((before + length, bytes(length)?))
}

struct Header<'a> {
    descr: &'a [u8],
    number: Option<Number>,
    fortran: bool,
    rows: usize,
    cols: usize,
}

impl<'a> Header<'a> {
    fn parse(header: &'a [u8]) -> Option<Self> {
        let text = std::str::from_utf8(header).ok()?;
        let after = |key: &str| {
            let (_, rest) = text.split_once(&format!("'{key}':"))?;
            Some(rest.trim_start())
        };
        let descr = after("descr")?.strip_prefix('\'')?.split('\'').next()?;
        let fortran = after("fortran_order")?.starts_with("True");
        let (shape, _) = after("shape")?.strip_prefix('(')?.split_once(')')?;
        let dims: Option<Vec<usize>> = shape
            .split(',')
            .map(str::trim)
            .filter(|dim| !dim.is_empty())
            .map(|dim| dim.trim_end_matches('L').parse().ok())
            .collect();
        let (rows, cols) = match dims?[..] {
            [rows] => (rows, 1),
            [rows, cols] => (rows, cols),
            _ => return None,
        };
        let number = Number::parse(descr);
        Some(Self { descr: descr.as_bytes(), number, fortran, rows, cols })
    }
}

/// How an entry is stored.
#[derive(Clone, Copy)]
struct Number {
    kind: u8,
    size: usize,
    big: bool,
}

impl Number {
    /// `<f4`, `|b1`, `>i8`
    fn parse(descr: &str) -> Option<Self> {
        let [order @ (b'<' | b'>' | b'|' | b'='), kind, size] = *descr.as_bytes() else {
            return None;
        };
        let size = usize::from(size.checked_sub(b'0')?);
        let known =
            matches!((kind, size), (b'f', 4 | 8) | (b'i' | b'u', 1 | 2 | 4 | 8) | (b'b', 1));
        known.then_some(Self { kind, size, big: order == b'>' })
    }

    fn value(self, entry: &[u8]) -> f64 {
        let bytes = self.bytes(entry);
        let [a, b, c, d, ..] = bytes;
        match (self.kind, self.size) {
            (b'f', 4) => f64::from(f32::from_le_bytes([a, b, c, d])),
            (b'f', _) => f64::from_le_bytes(bytes),
            (b'i', _) => self.integer(entry) as f64,
            _ => u64::from_le_bytes(bytes) as f64,
        }
    }

    /// An integer or a boolean; one above 2⁶³ − 1 counts as that.
    fn integer(self, entry: &[u8]) -> i64 {
        let bytes = self.bytes(entry);
        if self.kind != b'i' {
            return i64::try_from(u64::from_le_bytes(bytes)).unwrap_or(i64::MAX);
        }
        // The sign is extended by shifting it down from the top.
        let unused = 64 - 8 * self.size;
        (i64::from_le_bytes(bytes) << unused) >> unused
    }

    /// The bytes of an entry, the lowest first.
    fn bytes(self, entry: &[u8]) -> [u8; 8] {
        let mut bytes = [0; 8];
        bytes[..self.size].copy_from_slice(entry);
        if self.big {
            bytes[..self.size].reverse();
        }
        bytes
    }
}
