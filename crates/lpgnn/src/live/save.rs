//! Numbers to bytes and back, to the same bits.

use crate::Error;

/// Bytes that are written.
#[derive(Debug, Default)]
pub(super) struct Sink(pub(super) Vec<u8>);

impl Sink {
    pub(super) fn number(&mut self, x: u64) {
        self.0.extend(x.to_le_bytes());
    }

    pub(super) fn real(&mut self, x: f64) {
        self.number(x.to_bits());
    }

    pub(super) fn integers(&mut self, all: &[u32]) {
        all.iter().for_each(|x| self.0.extend(x.to_le_bytes()));
    }

    pub(super) fn reals(&mut self, all: &[f32]) {
        all.iter().for_each(|x| self.0.extend(x.to_le_bytes()));
    }
}

/// Bytes that are read.
#[derive(Debug)]
pub(super) struct Source<'a>(pub(super) &'a [u8]);

impl Source<'_> {
    pub(super) fn damaged() -> Error {
        Error::Mismatch("the saved graph is damaged, or belongs to another model".into())
    }

    fn take(&mut self, len: usize) -> Result<&[u8], Error> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or_else(Self::damaged)?;
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn number(&mut self) -> Result<u64, Error> {
        let bytes = self.take(8)?;
        Ok(u64::from_le_bytes(bytes.try_into().expect("eight bytes were taken")))
    }

    /// A number of things that follow, each of at least a byte or none at all.
    pub(super) fn length(&mut self) -> Result<usize, Error> {
        usize::try_from(self.number()?).map_err(|_| Self::damaged())
    }

    pub(super) fn real(&mut self) -> Result<f64, Error> {
        Ok(f64::from_bits(self.number()?))
    }

    pub(super) fn integers(&mut self, count: usize) -> Result<Vec<u32>, Error> {
        let bytes = self.take(count.checked_mul(4).ok_or_else(Self::damaged)?)?;
        Ok(bytes.as_chunks().0.iter().map(|x| u32::from_le_bytes(*x)).collect())
    }

    pub(super) fn reals(&mut self, count: usize) -> Result<Vec<f32>, Error> {
        let bytes = self.take(count.checked_mul(4).ok_or_else(Self::damaged)?)?;
        Ok(bytes.as_chunks().0.iter().map(|x| f32::from_le_bytes(*x)).collect())
    }
}
