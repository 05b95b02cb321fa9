//! Arrays as `numpy.save` writes them: a table of numbers next to a CSV file.

use std::io::{BufReader, Read, Seek};
use std::path::Path;

use super::text::{self, quote};
use super::unpack::read_error;
use crate::{Error, Matrix, Place, memory};

/// A matrix of finite numbers from an array of one or two dimensions, of integers, booleans or
/// real numbers, in rows or in columns.
///
/// The format: `\x93NUMPY`, two bytes of version, the length of the header (two bytes in version 1,
/// four in later ones), the header `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }`,
/// and the entries.
pub(super) fn read(path: &Path) -> Result<Matrix<f32>, Error> {
    let file = text::open(path)?;
    let size = file
        .metadata()
        .map_err(|source| Error::Io { action: "read", path: path.to_owned(), source })?
        .len();
    let mut file = BufReader::new(file);
    let header = header(path, &mut file)?;
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
    let there = file.stream_position().map_or(0, |start| size.saturating_sub(start));
    let expected = rows.checked_mul(cols).and_then(|count| count.checked_mul(number.size));
    if expected.and_then(|expected| u64::try_from(expected).ok()) != Some(there) {
        return Err(Place::file(path).error(format!(
            "announces {rows} × {cols} entries of {} bytes, but has {there} bytes of them",
            number.size,
        )));
    }
    let what = format_args!("an array of {rows} × {cols} in {}", path.display());
    memory::require(memory::bytes_of::<f32>(&[rows, cols]), what)?;
    let mut matrix = Matrix::zeros(rows, cols);
    let mut entry = [0; 8];
    let entry = &mut entry[..number.size];
    for i in 0..rows * cols {
        let (row, col) = if header.fortran { (i % rows, i / rows) } else { (i / cols, i % cols) };
        file.read_exact(entry).map_err(|error| read_error(path, error))?;
        let x = number.value(entry);
        #[allow(clippy::cast_possible_truncation, reason = "features are kept in single precision")]
        let single = x as f32;
        if !single.is_finite() {
            return Err(Place::file(path).error(format!(
                "has {x} in row {row}, column {col}, counted from 0, but a finite number is expected"
            )));
        }
        matrix.row_mut(row)[col] = single;
    }
    Ok(matrix)
}

/// The bytes of the header; what follows are the entries.
fn header(path: &Path, file: &mut impl Read) -> Result<Vec<u8>, Error> {
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
    let length = match (start.get(6), &bytes(2)?[..]) {
        (Some(1), &[a, b]) => u64::from(u16::from_le_bytes([a, b])),
        (Some(2 | 3), &[a, b]) => match bytes(2)?[..] {
            [c, d] => u64::from(u32::from_le_bytes([a, b, c, d])),
            _ => return Err(Place::byte(path, 10).error("is the end of the file")),
        },
        _ => return Err(Place::byte(path, 6).error("is not the version 1, 2 or 3 of the format")),
    };
    bytes(length)
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
        let mut bytes = [0; 8];
        bytes[..self.size].copy_from_slice(entry);
        if self.big {
            bytes[..self.size].reverse();
        }
        let [a, b, c, d, ..] = bytes;
        match (self.kind, self.size) {
            (b'f', 4) => f64::from(f32::from_le_bytes([a, b, c, d])),
            (b'f', _) => f64::from_le_bytes(bytes),
            (b'i', size) => {
                // The sign is extended by shifting it down from the top.
                let unused = 64 - 8 * size;
                ((i64::from_le_bytes(bytes) << unused) >> unused) as f64
            }
            _ => u64::from_le_bytes(bytes) as f64,
        }
    }
}
