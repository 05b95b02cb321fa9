use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::unpack::{Guarded, read_error};
use crate::{Error, Place, input};

/// The lines of a text, read block by block: memory is one block, or the longest line.
///
/// Lines end with LF or CR LF, which is optional for the last one. A byte order mark is skipped.
pub(super) struct Lines<'a> {
    source: Box<dyn Read + 'a>,
    path: PathBuf,
    buffer: Vec<u8>,
    /// What has been read but not returned yet: `buffer[next..filled]`.
    next: usize,
    filled: usize,
    ended: bool,
    /// The current line.
    line: std::ops::Range<usize>,
    number: u64,
}

const BLOCK: usize = 1 << 18;

impl<'a> Lines<'a> {
    /// The lines of a file.
    ///
    /// # Errors
    ///
    /// [`Error::Input`] if it does not exist or is not a file.
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        Ok(Self::new(path, open(path)?))
    }

    /// The lines of a text that messages refer to as `path`.
    pub(super) fn new(path: &Path, source: impl Read + 'a) -> Self {
        Self {
            source: Box::new(Guarded::new(path, source)),
            path: path.to_owned(),
            buffer: vec![0; BLOCK],
            next: 0,
            filled: 0,
            ended: false,
            line: 0..0,
            number: 0,
        }
    }

    /// How messages refer to the text.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The next line, blank or not.
    pub(super) fn next_line(&mut self) -> Result<Option<Line<'_>>, Error> {
        Ok(if self.advance()? { Some(self.current()) } else { None })
    }

    /// The next line of a table with one row per line. Blank lines are allowed only at the
    /// end: in between they would shift all following rows.
    pub(super) fn next_row(&mut self) -> Result<Option<Line<'_>>, Error> {
        let mut blank = None;
        while self.advance()? {
            if self.current().is_blank() {
                blank = blank.or(Some(self.number));
            } else if let Some(number) = blank {
                return Err(Place::line(&self.path, number).error("is blank, but rows follow"));
            } else {
                return Ok(Some(self.current()));
            }
        }
        Ok(None)
    }

    /// The next row as exactly as many integers as `row` is long, described as `what` in messages; false
    /// if there is none.
    #[inline]
    pub(super) fn next_integers(&mut self, row: &mut [i64], what: &str) -> Result<bool, Error> {
        if let Some(length) = scan_integers(&self.buffer[self.next..self.filled], row) {
            self.line = self.next..self.next + length - 1;
            self.next += length;
            self.number += 1;
            return Ok(true);
        }
        match self.next_row()? {
            Some(line) => line.integers(row, what).map(|()| true),
            None => Ok(false),
        }
    }

    /// The error for a `problem` in the current line.
    #[cold]
    pub(super) fn error(&self, problem: impl Into<String>) -> Error {
        self.current().error(problem)
    }

    fn current(&self) -> Line<'_> {
        Line { text: &self.buffer[self.line.clone()], path: &self.path, number: self.number }
    }

    /// Advances to the next line; false if there is none.
    fn advance(&mut self) -> Result<bool, Error> {
        let mut searched = self.next;
        loop {
            if let Some(found) = memchr::memchr(b'\n', &self.buffer[searched..self.filled]) {
                let end = searched + found;
                self.set_line(end);
                self.next = end + 1;
                return Ok(true);
            }
            if self.ended {
                let more = self.next < self.filled;
                self.set_line(self.filled);
                self.next = self.filled;
                return Ok(more);
            }
            let pending = self.filled - self.next;
            self.fill()?;
            searched = self.next + pending;
        }
    }

    fn set_line(&mut self, mut end: usize) {
        if end > self.next && self.buffer[end - 1] == b'\r' {
            end -= 1;
        }
        self.line = self.next..end;
        self.number += 1;
        if self.number == 1 && self.buffer[self.line.clone()].starts_with(b"\xef\xbb\xbf") {
            self.line.start += 3;
        }
    }

    /// Reads more data; the buffer is doubled if a line is longer.
    fn fill(&mut self) -> Result<(), Error> {
        self.buffer.copy_within(self.next..self.filled, 0);
        self.filled -= self.next;
        self.next = 0;
        if self.filled == self.buffer.len() {
            self.buffer.resize(2 * self.filled, 0);
        }
        match self.source.read(&mut self.buffer[self.filled..]) {
            Ok(0) => self.ended = true,
            Ok(read) => self.filled += read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(read_error(&self.path, error)),
        }
        Ok(())
    }
}

/// Opens a regular file.
///
/// # Errors
///
/// [`Error::Input`] if it does not exist or is not a file; [`Error::Io`].
pub(super) fn open(path: &Path) -> Result<File, Error> {
    input::open(path).map_err(|error| match error {
        Error::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
            Place::file(path).error("does not exist")
        }
        error => error,
    })
}

/// A line and its position.
#[derive(Clone, Copy)]
pub(super) struct Line<'a> {
    text: &'a [u8],
    path: &'a Path,
    /// Counted from 1.
    pub(super) number: u64,
}

impl<'a> Line<'a> {
    /// The error for a `problem` in this line.
    #[cold]
    pub(super) fn error(&self, problem: impl Into<String>) -> Error {
        Place::line(self.path, self.number).error(problem)
    }

    pub(super) fn is_blank(&self) -> bool {
        self.text.iter().all(u8::is_ascii_whitespace)
    }

    /// The fields of the line, separated by commas or blanks.
    pub(super) fn fields(self) -> Fields<'a> {
        Fields { rest: self.text, after_comma: false, line: self }
    }

    /// Exactly as many integers as `row` is long, described as `what` in messages.
    pub(super) fn integers(self, row: &mut [i64], what: &str) -> Result<(), Error> {
        let mut fields = self.fields();
        let expected = row.len();
        for (i, x) in row.iter_mut().enumerate() {
            *x = fields.next_integer()?.ok_or_else(|| {
                self.error(format!("has {} where {what} is expected", counted(i, "number")))
            })?;
        }
        if fields.next()?.is_some() {
            return Err(self.error(format!(
                "has more than {} where {what} is expected",
                counted(expected, "number")
            )));
        }
        Ok(())
    }
}

/// Reads integers in their most common form, `12, -3` and a line feed, in one pass over the bytes,
/// and returns the length of the line. None only means that the slow path has to be taken.
#[inline]
fn scan_integers(text: &[u8], row: &mut [i64]) -> Option<usize> {
    let mut i = 0;
    for (field, x) in row.iter_mut().enumerate() {
        if field > 0 {
            if *text.get(i)? != b',' {
                return None;
            }
            i += 1;
            if *text.get(i)? == b' ' {
                i += 1;
            }
        }
        let negative = *text.get(i)? == b'-';
        i += usize::from(negative);
        let start = i;
        let mut magnitude = 0_i64;
        loop {
            let digit = text.get(i)?.wrapping_sub(b'0');
            if digit > 9 {
                break;
            }
            // 18 digits cannot overflow; when there are more, the result is not used.
            magnitude = magnitude.wrapping_mul(10).wrapping_add(i64::from(digit));
            i += 1;
        }
        if i == start || i - start > 18 {
            return None;
        }
        *x = if negative { -magnitude } else { magnitude };
    }
    (*text.get(i)? == b'\n').then_some(i + 1)
}

/// The fields of a line from left to right.
pub(super) struct Fields<'a> {
    rest: &'a [u8],
    after_comma: bool,
    line: Line<'a>,
}

impl<'a> Fields<'a> {
    /// The next field. Fields are separated by commas or blanks; an empty field between two commas is
    /// an error.
    #[inline]
    pub(super) fn next(&mut self) -> Result<Option<&'a [u8]>, Error> {
        let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r');
        let skip = |text: &'a [u8]| {
            let start = text.iter().position(|byte| !blank(byte)).unwrap_or(text.len());
            &text[start..]
        };
        let text = skip(self.rest);
        let end = text.iter().position(|byte| blank(byte) || *byte == b',').unwrap_or(text.len());
        let (field, rest) = text.split_at(end);
        if field.is_empty() && (self.after_comma || !rest.is_empty()) {
            return Err(self.line.error("has a comma without a number next to it"));
        }
        let rest = skip(rest);
        self.after_comma = rest.first() == Some(&b',');
        self.rest = if self.after_comma { &rest[1..] } else { rest };
        Ok((!field.is_empty()).then_some(field))
    }

    /// The next field as an integer.
    #[inline]
    pub(super) fn next_integer(&mut self) -> Result<Option<i64>, Error> {
        match self.next()? {
            None => Ok(None),
            Some(field) => match integer(field) {
                Some(x) => Ok(Some(x)),
                None => Err(self.line.error(format!("has {}, not an integer", quote(field)))),
            },
        }
    }

    /// The next field as a finite number.
    #[inline]
    pub(super) fn next_real(&mut self) -> Result<Option<f32>, Error> {
        match self.next()? {
            None => Ok(None),
            Some(field) => {
                real(field).map(Some).map_err(|problem| self.line.error(format!("has {problem}")))
            }
        }
    }
}

/// An integer; also one that is written as a real number: `3.0`, `1e0`.
#[inline]
pub(super) fn integer(field: &[u8]) -> Option<i64> {
    let (negative, digits) = match field {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] | digits => (false, digits),
    };
    // 18 digits cannot overflow.
    if digits.is_empty() || digits.len() > 18 || !digits.iter().all(u8::is_ascii_digit) {
        return unusual_integer(field);
    }
    let x = digits.iter().fold(0, |x, digit| x * 10 + i64::from(digit - b'0'));
    Some(if negative { -x } else { x })
}

#[cold]
#[allow(clippy::cast_possible_truncation, reason = "below 2⁵³ a real number may be an integer")]
fn unusual_integer(field: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(field).ok()?;
    text.parse().ok().or_else(|| {
        let x: f64 = text.parse().ok()?;
        (x.abs() < 9e15 && x.fract() == 0.0).then_some(x as i64)
    })
}

/// A finite number. The error is part of a sentence: `“x”, not a number`.
///
/// # Errors
///
/// If it is not a number, NaN, infinite or too large for single precision.
#[inline]
#[allow(clippy::cast_possible_truncation, reason = "features are kept in single precision")]
pub(super) fn real(field: &[u8]) -> Result<f32, String> {
    wide(field).map(|x| x as f32)
}

/// The same in double precision.
///
/// # Errors
///
/// Those of [`real`].
#[inline]
#[allow(clippy::cast_possible_truncation, reason = "features are kept in single precision")]
pub(super) fn wide(field: &[u8]) -> Result<f64, String> {
    let parsed = std::str::from_utf8(field).ok().and_then(|text| text.parse::<f64>().ok());
    match parsed {
        Some(x) if (x as f32).is_finite() => Ok(x),
        Some(x) if x.is_finite() => Err(format!("{}, too large a number", quote(field))),
        Some(_) => Err(format!("{}, but a finite number is expected", quote(field))),
        None => Err(format!("{}, not a number", quote(field))),
    }
}

/// A piece of a file, quoted for a message: short, and on one line.
pub(super) fn quote(piece: &[u8]) -> String {
    let text = String::from_utf8_lossy(piece);
    let mut quoted: String = text.chars().take(40).flat_map(char::escape_debug).collect();
    if text.chars().nth(40).is_some() {
        quoted.push('…');
    }
    format!("“{quoted}”")
}

/// `1 node`, `2 nodes`
pub(super) fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Lines<'_> {
        Lines::new(Path::new("x.txt"), text.as_bytes())
    }

    #[test]
    fn lines_end_in_lf_or_cr_lf_or_with_the_file() {
        for text in ["1,2\n 3 , 4", "1,2\r\n3\t4\r\n\r\n", "\u{feff}1, 2\n3, 4\n\n  \n"] {
            let mut lines = lines(text);
            let mut pairs = vec![];
            let mut pair = [0; 2];
            while lines.next_integers(&mut pair, "a pair").unwrap() {
                pairs.push(pair);
            }
            assert_eq!(pairs, [[1, 2], [3, 4]], "{text:?}");
        }
    }

    #[test]
    fn a_line_longer_than_a_block_is_one_line() {
        let text = format!("{}\n7\n", " 1".repeat(BLOCK));
        let mut lines = lines(&text);
        let mut fields = lines.next_row().unwrap().unwrap().fields();
        let mut count = 0;
        while fields.next_integer().unwrap().is_some() {
            count += 1;
        }
        assert_eq!(count, BLOCK);
        let mut number = [0];
        assert!(lines.next_integers(&mut number, "a number").unwrap());
        assert_eq!(number, [7]);
        assert!(!lines.next_integers(&mut number, "a number").unwrap());
    }

    #[test]
    fn the_fast_way_and_the_careful_way_agree() {
        let pieces = ["1", "-", "23", ",", " ", "\r", "\n", "x", ".0", "999999999999999999", "9"];
        let mut state = 1_u64;
        for _ in 0..20_000 {
            let mut text = String::new();
            for _ in 0..6 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                text.push_str(pieces[(state >> 33) as usize % pieces.len()]);
            }
            let mut fast = [0; 2];
            if let Some(length) = scan_integers(text.as_bytes(), &mut fast) {
                let mut careful = [0; 2];
                let mut lines = lines(&text);
                lines.next_row().unwrap().unwrap().integers(&mut careful, "a pair").unwrap();
                assert_eq!((fast, length), (careful, lines.next), "{text:?}");
            }
        }
    }

    #[test]
    fn integers_are_read_in_every_spelling() {
        for (text, expected) in [
            ("7", Some(7)),
            ("-12", Some(-12)),
            ("+3", Some(3)),
            ("3.0", Some(3)),
            ("1.000000e+00", Some(1)),
            ("9223372036854775807", Some(i64::MAX)),
            ("99999999999999999999", None),
            ("1.5", None),
            ("-", None),
            ("", None),
            ("nan", None),
            ("1e300", None),
        ] {
            assert_eq!(integer(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_finite_number_is_named() {
        for (text, message) in [
            ("x\ty", "x.txt, line 1: has “x”, not a number"),
            ("1 NaN", "x.txt, line 1: has “NaN”, but a finite number is expected"),
            ("1, -inf", "x.txt, line 1: has “-inf”, but a finite number is expected"),
            ("1, 1e300", "x.txt, line 1: has “1e300”, too large a number"),
            ("1,,2", "x.txt, line 1: has a comma without a number next to it"),
            ("1,2,", "x.txt, line 1: has a comma without a number next to it"),
            (",1", "x.txt, line 1: has a comma without a number next to it"),
        ] {
            let mut lines = lines(text);
            let mut fields = lines.next_row().unwrap().unwrap().fields();
            let error = loop {
                match fields.next_real() {
                    Ok(Some(_)) => {}
                    Ok(None) => panic!("{text} was read"),
                    Err(error) => break error,
                }
            };
            assert_eq!(error.to_string(), message);
        }
    }
}
