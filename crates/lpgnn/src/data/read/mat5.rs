//! MATLAB level 5 files: what is needed of numeric arrays, sparse matrices and structs.
//!
//! A file is a header of 128 bytes and then elements, each a tag (type and length) and data. A
//! variable is an element of type matrix, often inside a compressed one, and has elements of its
//! own: flags, dimensions, name, and the data of its class. Memory is allocated only for bytes that
//! exist, not for what a tag claims.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::read::ZlibDecoder;

use super::text::{self, quote};
use super::unpack::{self, Bounded, Guarded, read_error};
use crate::{Error, Place, memory};

/// A file, its variables unpacked but not parsed yet.
pub(super) struct MatFile {
    path: PathBuf,
    order: Order,
    variables: Vec<Packet>,
}

/// The content of a matrix element.
struct Packet {
    /// Where in the file it starts.
    place: u64,
    bytes: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    Little,
    Big,
}

const HEADER: u64 = 128;
/// Element types.
const MATRIX: u32 = 14;
const COMPRESSED: u32 = 15;
/// How deep structs may be nested; the authors' are 3 deep.
const DEPTH: usize = 16;

impl MatFile {
    /// # Errors
    ///
    /// [`Error::Input`], naming the byte, if the file is malformed.
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        let file = text::open(path)?;
        let io = |source| Error::Io { action: "read", path: path.to_owned(), source };
        let size = file.metadata().map_err(io)?.len();
        let mut file = BufReader::new(file);
        let order = read_header(path, &mut file)?;
        let mut found = Self { path: path.to_owned(), order, variables: vec![] };
        let mut left = unpack::limit(size);
        let mut place = HEADER;
        while place < size {
            let mut tag = [0; 8];
            if size - place < 8 {
                return Err(Place::byte(path, place).error("is the middle of a tag of 8 bytes"));
            }
            file.read_exact(&mut tag).map_err(|error| read_error(path, error))?;
            let (kind, length) = (order.u32(&tag[..4]), u64::from(order.u32(&tag[4..])));
            if kind >> 16 != 0 {
                // A small element: its data are in the tag.
                place += 8;
                continue;
            }
            if length > size - place - 8 {
                let rest = size - place - 8;
                return Err(Place::byte(path, place)
                    .error(format!("declares {length} bytes, but {rest} follow")));
            }
            let mut content = (&mut file).take(length);
            match kind {
                MATRIX => {
                    let what = format_args!("reading {}", path.display());
                    memory::require(length, what)?;
                    let mut bytes = vec![];
                    content.read_to_end(&mut bytes).map_err(|error| read_error(path, error))?;
                    found.variables.push(Packet { place, bytes });
                }
                COMPRESSED => found.inflate(&mut content, place, &mut left)?,
                _ => {}
            }
            std::io::copy(&mut content, &mut std::io::sink())
                .map_err(|error| read_error(path, error))?;
            place += 8 + length;
        }
        Ok(found)
    }

    /// Unpacks a compressed element, and keeps it if it is a variable.
    fn inflate(
        &mut self,
        content: &mut std::io::Take<&mut BufReader<File>>,
        place: u64,
        left: &mut u64,
    ) -> Result<(), Error> {
        let here = |problem: String| Place::byte(&self.path, place).error(problem);
        let damaged = |error: std::io::Error| match error.downcast() {
            Ok(error) => error,
            Err(error) => here(format!("starts data that cannot be unpacked: {error}")),
        };
        let source = Bounded::new(ZlibDecoder::new(content), left);
        let mut unpacked = Guarded::new(&self.path, source);
        let mut tag = [0; 8];
        unpacked.read_exact(&mut tag).map_err(damaged)?;
        let (kind, length) = (self.order.u32(&tag[..4]), self.order.u32(&tag[4..]));
        if kind != MATRIX {
            return Ok(());
        }
        let mut bytes = vec![];
        unpacked.take(u64::from(length)).read_to_end(&mut bytes).map_err(damaged)?;
        if bytes.len() < length as usize {
            return Err(here(format!(
                "starts data that declare {length} bytes but unpack to {}",
                bytes.len()
            )));
        }
        self.variables.push(Packet { place, bytes });
        Ok(())
    }

    /// Names and values of the variables.
    pub(super) fn variables(&self) -> Result<Vec<(String, Value<'_>)>, Error> {
        self.variables
            .iter()
            .map(|packet| {
                let place = Place::byte(&self.path, packet.place);
                Cursor { bytes: &packet.bytes, order: self.order, place: &place }.matrix(0)
            })
            .collect()
    }
}

/// Checks the header and determines the byte order.
fn read_header(path: &Path, file: &mut BufReader<File>) -> Result<Order, Error> {
    let mut header = vec![];
    file.take(HEADER).read_to_end(&mut header).map_err(|error| read_error(path, error))?;
    if header.starts_with(b"MATLAB 7.3") {
        return Err(Place::file(path)
            .error("is a MATLAB 7.3 file, but level 5 is expected: save it with the option -v7"));
    }
    if !header.starts_with(b"MATLAB 5.0") {
        return Err(Place::byte(path, 0).error("does not start with “MATLAB 5.0”"));
    }
    match header.get(124..128) {
        Some([.., b'I', b'M']) => Ok(Order::Little),
        Some([.., b'M', b'I']) => Ok(Order::Big),
        _ => Err(Place::byte(path, 126).error("should be the mark “IM” or “MI” of a MATLAB file")),
    }
}

impl Order {
    fn number<const N: usize>(self, bytes: &[u8]) -> [u8; N] {
        let mut number = [0; N];
        number.copy_from_slice(&bytes[..N]);
        if self == Self::Big {
            number.reverse();
        }
        number
    }

    fn u32(self, bytes: &[u8]) -> u32 {
        u32::from_le_bytes(self.number(bytes))
    }
}

/// The value of a variable or of a field.
#[derive(Debug)]
pub(super) enum Value<'a> {
    /// A full numeric matrix, column by column.
    Dense { rows: usize, cols: usize, numbers: Numbers<'a> },
    /// A sparse one, column by column.
    Sparse(Sparse<'a>),
    /// Names and values of the fields of a struct.
    Struct(Vec<(String, Value<'a>)>),
    /// Text, cells, objects, arrays of three dimensions: nothing that describes graphs.
    Other,
}

impl Value<'_> {
    /// A field of a struct.
    pub(super) fn field(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Struct(fields) => {
                fields.iter().find(|(field, _)| field == name).map(|(_, value)| value)
            }
            _ => None,
        }
    }
}

/// Numbers as they are stored.
#[derive(Clone, Copy)]
pub(super) struct Numbers<'a> {
    kind: Kind,
    order: Order,
    bytes: &'a [u8],
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    F32,
    F64,
    I64,
    U64,
}

impl std::fmt::Debug for Numbers<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {:?}", self.len(), self.kind)
    }
}

impl<'a> Numbers<'a> {
    fn new(kind: u32, order: Order, bytes: &'a [u8]) -> Option<Self> {
        let kind = match kind {
            1 => Kind::I8,
            2 => Kind::U8,
            3 => Kind::I16,
            4 => Kind::U16,
            5 => Kind::I32,
            6 => Kind::U32,
            7 => Kind::F32,
            9 => Kind::F64,
            12 => Kind::I64,
            13 => Kind::U64,
            _ => return None,
        };
        Some(Self { kind, order, bytes })
    }

    fn size(self) -> usize {
        match self.kind {
            Kind::I8 | Kind::U8 => 1,
            Kind::I16 | Kind::U16 => 2,
            Kind::I32 | Kind::U32 | Kind::F32 => 4,
            Kind::F64 | Kind::I64 | Kind::U64 => 8,
        }
    }

    /// The number of entries.
    pub(super) fn len(self) -> usize {
        self.bytes.len() / self.size()
    }

    /// All of them.
    pub(super) fn iter(self) -> impl Iterator<Item = f64> + 'a {
        self.bytes.chunks_exact(self.size()).map(move |x| match self.kind {
            Kind::I8 => f64::from(i8::from_le_bytes(self.order.number(x))),
            Kind::U8 => f64::from(u8::from_le_bytes(self.order.number(x))),
            Kind::I16 => f64::from(i16::from_le_bytes(self.order.number(x))),
            Kind::U16 => f64::from(u16::from_le_bytes(self.order.number(x))),
            Kind::I32 => f64::from(i32::from_le_bytes(self.order.number(x))),
            Kind::U32 => f64::from(u32::from_le_bytes(self.order.number(x))),
            Kind::F32 => f64::from(f32::from_le_bytes(self.order.number(x))),
            Kind::F64 => f64::from_le_bytes(self.order.number(x)),
            Kind::I64 => i64::from_le_bytes(self.order.number(x)) as f64,
            Kind::U64 => u64::from_le_bytes(self.order.number(x)) as f64,
        })
    }
}

/// Compressed columns: those of column `j` are at `starts[j]..starts[j + 1]` of rows and values.
#[derive(Debug)]
pub(super) struct Sparse<'a> {
    pub(super) rows: usize,
    pub(super) cols: usize,
    row_of: Numbers<'a>,
    starts: Numbers<'a>,
    values: Numbers<'a>,
}

/// Row, column and value of some entries of a matrix.
pub(super) type Entries = Vec<(usize, usize, f64)>;

impl Sparse<'_> {
    /// Every stored entry; none if the parts are inconsistent.
    pub(super) fn entries(&self) -> Option<Entries> {
        let starts: Vec<usize> = self.starts.iter().map(dimension).collect::<Option<_>>()?;
        let rows: Vec<usize> = self.row_of.iter().map(dimension).collect::<Option<_>>()?;
        let stored = *starts.last()?;
        let sound = Some(starts.len()) == self.cols.checked_add(1)
            && starts[0] == 0
            && starts.is_sorted()
            && stored <= rows.len()
            && stored <= self.values.len()
            && rows[..stored].iter().all(|&row| row < self.rows);
        if !sound {
            return None;
        }
        let column_of =
            starts.windows(2).enumerate().flat_map(|(j, w)| (w[0]..w[1]).map(move |_| j));
        let entries = rows.iter().zip(column_of).zip(self.values.iter());
        Some(entries.map(|((&row, column), value)| (row, column, value)).collect())
    }
}

/// A place in the content of a variable.
struct Cursor<'a, 'p> {
    bytes: &'a [u8],
    order: Order,
    /// Where the variable starts, for messages.
    place: &'p Place,
}

/// Classes of arrays.
const STRUCT: u32 = 2;
const SPARSE: u32 = 5;
const NUMERIC: std::ops::RangeInclusive<u32> = 6..=15;

impl<'a> Cursor<'a, '_> {
    fn error(&self, problem: impl Into<String>) -> Error {
        let problem: String = problem.into();
        self.place.clone().error(format!("starts a variable that {problem}"))
    }

    /// Type and data of the next element.
    fn element(&mut self) -> Result<(u32, &'a [u8]), Error> {
        let cut = || self.error("ends too early");
        let tag = self.bytes.get(..8).ok_or_else(cut)?;
        let (kind, length) = (self.order.u32(tag), self.order.u32(&tag[4..]) as usize);
        if kind >> 16 != 0 {
            let data = tag[4..].get(..(kind >> 16) as usize).ok_or_else(cut)?;
            self.bytes = &self.bytes[8..];
            return Ok((kind & 0xffff, data));
        }
        let data = self.bytes[8..].get(..length).ok_or_else(cut)?;
        // The next one starts at a multiple of 8.
        let end = 8 + length.next_multiple_of(8);
        self.bytes = self.bytes.get(end..).unwrap_or(&[]);
        Ok((kind, data))
    }

    fn numbers(&mut self, what: &str) -> Result<Numbers<'a>, Error> {
        let (kind, data) = self.element()?;
        Numbers::new(kind, self.order, data)
            .ok_or_else(|| self.error(format!("has {what} of the unknown type {kind}")))
    }

    /// Name and value of the matrix whose content this is.
    fn matrix(&mut self, depth: usize) -> Result<(String, Value<'a>), Error> {
        // An empty field has no content at all.
        if self.bytes.is_empty() {
            return Ok((String::new(), Value::Other));
        }
        let (_, flags) = self.element()?;
        let class = self.order.u32(flags.get(..4).ok_or_else(|| self.error("has no flags"))?);
        let class = class & 0xff;
        let dims: Option<Vec<usize>> = self.numbers("dimensions")?.iter().map(dimension).collect();
        let dims = dims.ok_or_else(|| self.error("has a negative dimension"))?;
        let (_, name) = self.element()?;
        let name = String::from_utf8_lossy(name).into_owned();
        let value = match dims[..] {
            [rows, cols] if NUMERIC.contains(&class) => {
                let numbers = self.numbers("numbers")?;
                if rows.checked_mul(cols) != Some(numbers.len()) {
                    let found = numbers.len();
                    let problem = format!("claims {rows} × {cols} numbers and has {found}");
                    return Err(self.error(problem));
                }
                Value::Dense { rows, cols, numbers }
            }
            [rows, cols] if class == SPARSE => Value::Sparse(Sparse {
                rows,
                cols,
                row_of: self.numbers("rows")?,
                starts: self.numbers("columns")?,
                values: self.numbers("values")?,
            }),
            [1, 1] if class == STRUCT => self.fields(depth)?,
            _ => Value::Other,
        };
        Ok((name, value))
    }

    fn fields(&mut self, depth: usize) -> Result<Value<'a>, Error> {
        if depth == DEPTH {
            return Err(self.error(format!("is nested more than {DEPTH} deep")));
        }
        let length = self.numbers("the length of names")?.iter().next().and_then(dimension);
        let (_, names) = self.element()?;
        let length = length
            .filter(|&length| length > 0 && names.len() % length == 0)
            .ok_or_else(|| self.error("has names of fields of no length"))?;
        let mut fields = vec![];
        for name in names.chunks_exact(length) {
            let name = name.split(|&byte| byte == 0).next().unwrap_or(name);
            let (kind, content) = self.element()?;
            if kind != MATRIX {
                let problem = format!("has the field {} of the type {kind}", quote(name));
                return Err(self.error(problem));
            }
            let mut inside = Cursor { bytes: content, order: self.order, place: self.place };
            let (_, value) = inside.matrix(depth + 1)?;
            fields.push((String::from_utf8_lossy(name).into_owned(), value));
        }
        Ok(Value::Struct(fields))
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked before")]
fn dimension(x: f64) -> Option<usize> {
    (x >= 0.0 && x <= f64::from(u32::MAX) && x.fract() == 0.0).then_some(x as usize)
}
