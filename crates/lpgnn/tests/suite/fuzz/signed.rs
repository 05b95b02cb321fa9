//! Models and checkpoints without their checksum, so that what is behind it can be damaged too.

use std::collections::{BTreeMap, HashMap};

use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use sha2::{Digest, Sha256};

/// A description, and arrays by name.
#[derive(Clone, Debug)]
pub(crate) struct Contents {
    /// What the arrays are, as JSON.
    pub(crate) about: String,
    pub(crate) arrays: BTreeMap<String, Array>,
}

#[derive(Clone, Debug)]
pub(crate) struct Array {
    pub(crate) dtype: Dtype,
    pub(crate) shape: Vec<usize>,
    pub(crate) bytes: Vec<u8>,
}

impl Contents {
    /// The contents of a model or a checkpoint, whatever its checksum.
    pub(crate) fn read(file: &[u8]) -> Option<Self> {
        let (_, header) = SafeTensors::read_metadata(file).ok()?;
        let signed = header.metadata().as_ref()?.get("lpgnn")?;
        let signed: serde_json::Value = serde_json::from_str(signed).ok()?;
        let tensors = SafeTensors::deserialize(file).ok()?;
        let array = |(name, view): (&str, TensorView<'_>)| {
            let (dtype, shape) = (view.dtype(), view.shape().to_vec());
            (name.to_owned(), Array { dtype, shape, bytes: view.data().to_vec() })
        };
        Some(Self {
            about: signed["about"].as_str()?.to_owned(),
            arrays: tensors.iter().map(array).collect(),
        })
    }

    /// A file with the right checksum; none if an array has not as many bytes as its shape asks for.
    pub(crate) fn write(&self) -> Option<Vec<u8>> {
        let about = &self.about;
        let mut hash = Sha256::new();
        hash.update((about.len() as u64).to_le_bytes());
        hash.update(about);
        let mut views = vec![];
        for (name, Array { dtype, shape, bytes }) in &self.arrays {
            hash.update(format!("{name:?} {dtype:?} {shape:?}"));
            hash.update(bytes);
            views.push((name.as_str(), TensorView::new(*dtype, shape.clone(), bytes).ok()?));
        }
        let hex = |text: String, byte: &u8| text + &format!("{byte:02x}");
        let sha256 = hash.finalize().iter().fold(String::new(), hex);
        let signed = serde_json::json!({ "about": about, "sha256": sha256 });
        let metadata = HashMap::from([("lpgnn".to_owned(), signed.to_string())]);
        safetensors::serialize(views, Some(metadata)).ok()
    }
}
