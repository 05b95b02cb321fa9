//! Arrays as `numpy.save` writes them, for tests.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::io::Write;

/// An array, as in an `.npy` file.
pub(crate) fn npy(descr: &str, fortran: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let header =
        format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend(u16::try_from(header.len()).unwrap().to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    bytes
}

pub(crate) fn integers(shape: &str, entries: &[i64]) -> Vec<u8> {
    npy("<i8", "False", shape, &entries.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>())
}

pub(crate) fn reals(shape: &str, entries: &[f32]) -> Vec<u8> {
    npy("<f4", "False", shape, &entries.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>())
}

/// A zip file of arrays, which may be packed.
pub(crate) fn npz<T: AsRef<str>>(arrays: &[(T, Vec<u8>)]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(std::io::Cursor::new(vec![]));
    for (name, content) in arrays {
        writer.start_file(name.as_ref(), zip::write::SimpleFileOptions::default()).unwrap();
        writer.write_all(content).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// Three nodes with a list of edges, a table of features and two splits.
pub(crate) fn with_masks() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("edges.npy", integers("(2, 2)", &[0, 1, 2, 2])),
        ("node_labels.npy", integers("(3,)", &[4, -1, 7])),
        ("node_features.npy", reals("(3, 2)", &[0.5, 1.0, 2.0, 0.0, -1.0, 3.0])),
        // In columns: the first split trains on node 0, the second on nodes 1 and 2.
        ("train_masks.npy", npy("|b1", "True", "(2, 3)", &[1, 0, 0, 1, 0, 1])),
        ("val_masks.npy", npy("|b1", "False", "(2, 3)", &[0, 0, 0, 0, 0, 0])),
        ("test_masks.npy", npy("|b1", "False", "(2, 3)", &[0, 0, 1, 1, 0, 0])),
    ]
}

/// The same graph as sparse matrices, directed and with weights.
pub(crate) fn with_matrices() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("adj_data.npy", reals("(3,)", &[1.0, 0.5, 0.0])),
        ("adj_indices.npy", integers("(3,)", &[2, 0, 1])),
        ("adj_indptr.npy", integers("(4,)", &[0, 2, 2, 3])),
        ("adj_shape.npy", integers("(2,)", &[3, 3])),
        ("attr_data.npy", reals("(3,)", &[1.0, 2.0, 3.0])),
        ("attr_indices.npy", integers("(3,)", &[4, 0, 1])),
        ("attr_indptr.npy", integers("(4,)", &[0, 2, 3, 3])),
        ("attr_shape.npy", integers("(2,)", &[5, 3])),
        ("labels.npy", integers("(3,)", &[0, 1, 0])),
        ("train_idx.npy", integers("(1,)", &[2])),
        ("val_idx.npy", integers("(1,)", &[0])),
        ("test_idx.npy", integers("(1,)", &[1])),
    ]
}
