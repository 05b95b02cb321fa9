use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use safetensors::{Dtype, SafeTensors, View};
use sha2::{Digest, Sha256};

use super::fingerprint::hex;
use crate::{Error, Matrix, Place, memory};

/// Named arrays and a description of them, in one safetensors file with a checksum.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Bundle {
    /// What the arrays are, as JSON.
    pub(super) about: serde_json::Value,
    arrays: BTreeMap<String, Array>,
}

#[derive(Clone, Debug, PartialEq)]
struct Array {
    dtype: Dtype,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

/// Where the description lies among the metadata of the file.
const KEY: &str = "lpgnn";

impl Bundle {
    /// With no arrays yet.
    pub(super) fn new(about: serde_json::Value) -> Self {
        Self { about, arrays: BTreeMap::new() }
    }

    pub(super) fn insert(&mut self, name: impl Into<String>, shape: Vec<usize>, values: &[f32]) {
        let bytes = values.iter().flat_map(|x| x.to_le_bytes()).collect();
        self.arrays.insert(name.into(), Array { dtype: Dtype::F32, shape, bytes });
    }

    pub(super) fn insert_matrix(&mut self, name: impl Into<String>, matrix: &Matrix<f32>) {
        self.insert(name, vec![matrix.rows(), matrix.cols()], matrix.as_slice());
    }

    pub(super) fn insert_f64(&mut self, name: impl Into<String>, values: &[f64]) {
        let bytes = values.iter().flat_map(|x| x.to_le_bytes()).collect();
        let shape = vec![values.len()];
        self.arrays.insert(name.into(), Array { dtype: Dtype::F64, shape, bytes });
    }

    /// Of nodes or graphs, which are numbered with 32 bits.
    pub(super) fn insert_indices(&mut self, name: impl Into<String>, indices: &[usize]) {
        let number = |&index: &usize| u32::try_from(index).unwrap_or(u32::MAX).to_le_bytes();
        let bytes = indices.iter().flat_map(number).collect();
        let shape = vec![indices.len()];
        self.arrays.insert(name.into(), Array { dtype: Dtype::U32, shape, bytes });
    }

    /// The numbers of an array, taken out; they must have this shape.
    pub(super) fn take(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>, String> {
        let array = self.array(name, Dtype::F32, shape)?;
        let (numbers, _) = array.bytes.as_chunks();
        Ok(numbers.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect())
    }

    pub(super) fn take_f64(&mut self, name: &str, count: usize) -> Result<Vec<f64>, String> {
        let array = self.array(name, Dtype::F64, &[count])?;
        let (numbers, _) = array.bytes.as_chunks();
        Ok(numbers.iter().map(|&bytes| f64::from_le_bytes(bytes)).collect())
    }

    /// A list of any length.
    pub(super) fn take_indices(&mut self, name: &str) -> Result<Vec<usize>, String> {
        let count = self.arrays.get(name).map_or(0, |array| array.shape.iter().product());
        let array = self.array(name, Dtype::U32, &[count])?;
        let (numbers, _) = array.bytes.as_chunks();
        Ok(numbers.iter().map(|&bytes| u32::from_le_bytes(bytes) as usize).collect())
    }

    pub(super) fn take_matrix(
        &mut self,
        name: &str,
        rows: usize,
        cols: usize,
    ) -> Result<Matrix<f32>, String> {
        let entries = self.take(name, &[rows, cols])?;
        Matrix::from_entries(rows, cols, entries).map_err(|error| error.to_string())
    }

    /// The names of the arrays that have not been taken out.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.arrays.keys().map(String::as_str)
    }

    fn array(&mut self, name: &str, dtype: Dtype, shape: &[usize]) -> Result<Array, String> {
        let array = self.arrays.remove(name).ok_or_else(|| format!("has no array {name}"))?;
        if array.dtype == dtype && array.shape == shape {
            Ok(array)
        } else {
            Err(format!(
                "has an array {name} of {:?} {:?} where {dtype:?} {shape:?} was expected",
                array.dtype, array.shape
            ))
        }
    }

    pub(super) fn to_bytes(&self) -> Result<Vec<u8>, String> {
        let text = self.about.to_string();
        let signed = serde_json::json!({ "about": text, "sha256": self.checksum(&text) });
        let metadata = HashMap::from([(KEY.to_owned(), signed.to_string())]);
        let arrays = self.arrays.iter().map(|(name, array)| (name.as_str(), array));
        safetensors::serialize(arrays, Some(metadata)).map_err(|error| error.to_string())
    }

    /// # Errors
    ///
    /// What is wrong with the bytes, to go behind the name of the file.
    pub(super) fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        #[derive(serde::Deserialize)]
        struct Signed {
            about: String,
            sha256: String,
        }
        let broken = |error: &dyn std::fmt::Display| format!("is not a safetensors file: {error}");
        // Small numbers of a JSON text take some 30 bytes each once they are read.
        let header = bytes.first_chunk().map_or(0, |length| u64::from_le_bytes(*length));
        let header = header.min(bytes.len() as u64);
        memory::require(header.saturating_mul(32), "reading its header")
            .map_err(|error| format!("cannot be used: {error}"))?;
        let (_, header) = SafeTensors::read_metadata(bytes).map_err(|error| broken(&error))?;
        let file = SafeTensors::deserialize(bytes).map_err(|error| broken(&error))?;
        let signed = header.metadata().as_ref().and_then(|metadata| metadata.get(KEY));
        let signed = signed.ok_or("is a safetensors file, but not one of lpgnn")?;
        let Signed { about, sha256 } = serde_json::from_str(signed)
            .map_err(|error| format!("has a broken description: {error}"))?;
        let arrays = file
            .iter()
            .map(|(name, view)| {
                let (dtype, shape) = (view.dtype(), view.shape().to_vec());
                (name.to_owned(), Array { dtype, shape, bytes: view.data().to_vec() })
            })
            .collect();
        let mut bundle = Self { about: serde_json::Value::Null, arrays };
        if bundle.checksum(&about) != sha256 {
            return Err("is damaged: its checksum does not match".into());
        }
        bundle.about = serde_json::from_str(&about)
            .map_err(|error| format!("has a broken description: {error}"))?;
        Ok(bundle)
    }

    /// Of the description and of every array with its name, type and shape.
    fn checksum(&self, about: &str) -> String {
        let mut hash = Sha256::new();
        hash.update((about.len() as u64).to_le_bytes());
        hash.update(about);
        for (name, array) in &self.arrays {
            hash.update(format!("{name:?} {:?} {:?}", array.dtype, array.shape));
            hash.update(&array.bytes);
        }
        hex(&hash.finalize())
    }

    /// # Errors
    ///
    /// [`Error::Io`], [`Error::Input`] with what is wrong with the file.
    pub(super) fn read(path: &Path) -> Result<Self, Error> {
        let bytes = crate::input::read_file(path)?;
        Self::from_bytes(&bytes).map_err(|problem| Place::file(path).error(problem))
    }

    /// # Errors
    ///
    /// [`Error::Io`]
    pub(super) fn write(&self, path: &Path) -> Result<(), Error> {
        let bytes = self.to_bytes().map_err(|problem| Place::file(path).error(problem))?;
        super::write_file(path, &bytes)
    }
}

impl View for &Array {
    fn dtype(&self) -> Dtype {
        self.dtype
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(&self.bytes)
    }

    fn data_len(&self) -> usize {
        self.bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_bit_by_bit() {
        let mut bundle = Bundle::new(serde_json::json!({ "epoch": 3 }));
        bundle.insert("w", vec![2, 1], &[0.1, f32::NAN]);
        bundle.insert("nothing", vec![0, 7], &[]);
        bundle.insert_f64("best", &[0.1, f64::INFINITY]);
        let bytes = bundle.to_bytes().unwrap();
        assert_eq!(bytes, bundle.to_bytes().unwrap());
        let mut again = Bundle::from_bytes(&bytes).unwrap();
        assert_eq!(again, bundle);
        assert!(again.take("w", &[1, 2]).unwrap_err().contains("was expected"));
        let best = again.take_f64("best", 2).unwrap();
        assert_eq!(best[0].to_bits(), 0.1_f64.to_bits());
        assert!(again.take_f64("best", 2).is_err(), "it was taken out");
    }

    #[test]
    fn a_changed_bit_is_noticed() {
        let mut bundle = Bundle::new(serde_json::json!({ "epoch": 3 }));
        bundle.insert("w", vec![3], &[1.0, 2.0, 3.0]);
        let bytes = bundle.to_bytes().unwrap();
        for bit in 0..bytes.len() * 8 {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            let read = Bundle::from_bytes(&changed);
            assert!(read.is_err() || read == Ok(bundle.clone()), "bit {bit}");
        }
    }
}
