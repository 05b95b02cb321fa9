//! Arrays in files of `NumPy`, of which some rows are mapped into memory.

use std::fs::File;
use std::io::{BufWriter, Seek, Write};
use std::marker::PhantomData;
use std::ops::Range;
use std::path::{Path, PathBuf};

use memmap2::{Mmap, MmapOptions};

use crate::data::read::npy_layout;
use crate::{Error, Place};

/// A type of which every pattern of bits is a value, stored as `NumPy` stores it.
///
/// # Safety
///
/// It has no padding, and any bytes are one.
pub(crate) unsafe trait Entry: Copy + Send + Sync + 'static {
    /// As `NumPy` calls it.
    const DESCR: &'static str;
}

// SAFETY: an integer.
unsafe impl Entry for u8 {
    const DESCR: &'static str = "|u1";
}
// SAFETY: an integer.
unsafe impl Entry for u32 {
    const DESCR: &'static str = "<u4";
}
// SAFETY: an integer.
unsafe impl Entry for u64 {
    const DESCR: &'static str = "<u8";
}
// SAFETY: all bits are those of some number.
unsafe impl Entry for f32 {
    const DESCR: &'static str = "<f4";
}

/// Entries of a file that are read when they are used, and need no memory that the system could not use for something else.
#[derive(Debug)]
pub(crate) struct Mapped<T> {
    /// None where there are no entries, since nothing cannot be mapped.
    map: Option<Mmap>,
    entry: PhantomData<T>,
}

impl<T: Entry> Mapped<T> {
    /// Some rows of an array of `shape` rows and columns; a range beyond its end is an error.
    ///
    /// # Errors
    ///
    /// [`Error::Io`]; [`Error::Input`] when it is not an array of this type and shape.
    pub(crate) fn open(path: &Path, shape: [usize; 2], rows: Range<usize>) -> Result<Self, Error> {
        if cfg!(target_endian = "big") {
            let problem = "cannot be mapped into the memory of a big-endian machine";
            return Err(Place::file(path).error(problem));
        }
        let file = crate::input::open(path)?;
        let io = |source| Error::Io { action: "read", path: path.to_owned(), source };
        let size = file.metadata().map_err(io)?.len();
        let layout = npy_layout(path, &file, size)?;
        let [expected, width] = shape;
        if layout.descr != T::DESCR || layout.fortran || layout.shape != shape {
            let [found, columns] = layout.shape;
            return Err(Place::file(path).error(format!(
                "has {found} × {columns} entries of the type {}{}, but {expected} × {width} of the type {} are expected",
                layout.descr,
                if layout.fortran { " by columns" } else { "" },
                T::DESCR
            )));
        }
        let row = width * size_of::<T>();
        if rows.end > expected || !layout.start.is_multiple_of(align_of::<T>() as u64) {
            return Err(Place::file(path).error("has no such rows, or rows that are not aligned"));
        }
        if rows.is_empty() || row == 0 {
            return Ok(Self { map: None, entry: PhantomData });
        }
        let mut options = MmapOptions::new();
        options.offset(layout.start + (rows.start * row) as u64).len(rows.len() * row);
        // SAFETY: the file is as long as its header says, which `npy_layout` has checked. Whoever changes it while it is mapped
        // changes numbers here, as with any file that is read twice: all bytes are numbers, and what is used as an index is checked
        // where it is used, so that a wrong one panics at worst. To cut the file short ends the process, as it does in NumPy.
        let map = unsafe { options.map(&file) }.map_err(io)?;
        Ok(Self { map: Some(map), entry: PhantomData })
    }

    /// All rows of an array, and its shape.
    ///
    /// # Errors
    ///
    /// Those of [`open`](Self::open).
    pub(super) fn open_all(path: &Path) -> Result<(Self, [usize; 2]), Error> {
        let file = crate::input::open(path)?;
        let io = |source| Error::Io { action: "read", path: path.to_owned(), source };
        let shape = npy_layout(path, &file, file.metadata().map_err(io)?.len())?.shape;
        Ok((Self::open(path, shape, 0..shape[0])?, shape))
    }

    pub(crate) fn as_slice(&self) -> &[T] {
        let Some(map) = &self.map else { return &[] };
        // SAFETY: a whole number of entries; mapped from a multiple of their size behind a header whose length is one too, on pages
        // that are aligned for any of them; and all bytes are entries.
        unsafe { std::slice::from_raw_parts(map.as_ptr().cast(), map.len() / size_of::<T>()) }
    }
}

impl AsRef<[f32]> for Mapped<f32> {
    fn as_ref(&self) -> &[f32] {
        self.as_slice()
    }
}

/// The bytes before the first entry.
const HEADER: usize = 128;

/// An array that is written entry by entry.
pub(super) struct ArrayWriter<T> {
    path: PathBuf,
    file: BufWriter<File>,
    /// Entries so far.
    count: usize,
    entry: PhantomData<T>,
}

impl<T: Entry> ArrayWriter<T> {
    pub(super) fn create(path: PathBuf) -> Result<Self, Error> {
        let create = || {
            let mut file = BufWriter::with_capacity(1 << 20, File::create_new(&path)?);
            file.write_all(&[0; HEADER])?;
            Ok(file)
        };
        let file =
            create().map_err(|source| Error::Io { action: "write", path: path.clone(), source })?;
        Ok(Self { path, file, count: 0, entry: PhantomData })
    }

    pub(super) fn push(&mut self, entries: &[T]) -> Result<(), Error> {
        // SAFETY: entries have no padding, and the length is that of the same memory.
        let bytes =
            unsafe { std::slice::from_raw_parts(entries.as_ptr().cast(), size_of_val(entries)) };
        self.count += entries.len();
        self.file.write_all(bytes).map_err(|source| self.error(source))
    }

    /// Writes the header of an array of rows of so many entries; none for one dimension.
    pub(super) fn finish(mut self, width: Option<usize>) -> Result<(), Error> {
        let shape = match width {
            None => format!("({},)", self.count),
            Some(width) => format!("({}, {width})", self.count.checked_div(width).unwrap_or(0)),
        };
        let text =
            format!("{{'descr': '{}', 'fortran_order': False, 'shape': {shape}, }}", T::DESCR);
        let mut header = b"\x93NUMPY\x01\x00".to_vec();
        header.extend(u16::try_from(HEADER - 10).unwrap_or(0).to_le_bytes());
        header.extend(text.as_bytes());
        header.resize(HEADER - 1, b' ');
        header.push(b'\n');
        let mut write = || {
            self.file.flush()?;
            self.file.rewind()?;
            self.file.write_all(&header)?;
            self.file.flush()?;
            self.file.get_ref().sync_all()
        };
        write().map_err(|source| self.error(source))
    }

    fn error(&self, source: std::io::Error) -> Error {
        Error::Io { action: "write", path: self.path.clone(), source }
    }
}
