use lpgnn::data::Split;

use super::*;
use crate::npz::{integers, npy, npz, reals, with_masks, with_matrices};

type Arrays = Vec<(&'static str, Vec<u8>)>;

fn file(arrays: &Arrays) -> (TempDir, std::path::PathBuf) {
    let folder = folder(&[]);
    let path = folder.path().join("g.npz");
    std::fs::write(&path, npz(arrays)).unwrap();
    (folder, path)
}

/// The same arrays with one replaced or, if it is empty, removed.
fn with(mut arrays: Arrays, name: &'static str, content: Vec<u8>) -> Arrays {
    arrays.retain(|(own, _)| *own != name);
    if !content.is_empty() {
        arrays.push((name, content));
    }
    arrays
}

#[test]
fn edges_with_masks_are_an_undirected_graph() {
    let (_folder, path) = file(&with_masks());
    assert_eq!(Format::recognise(&path).unwrap(), Format::Npz);
    let found = good(&path);
    assert_eq!((found.name(), found.graphs(), found.nodes()), ("g", 1, 3));
    assert_eq!(found.edges(), [(0, 1), (1, 0), (2, 2)]);
    assert_eq!(
        classes(found.node_targets()),
        (vec!["4".into(), "7".into()], vec![0, NO_TARGET, 1])
    );
    assert_eq!(found.node_features().values().row(2), [-1.0, 3.0]);
    let level = Level::Node;
    let first = Split { level, train: vec![0], val: vec![], test: vec![2] };
    assert_eq!(found.split(), Some(&first));
    let second = Split { level, train: vec![1, 2], val: vec![], test: vec![0] };
    assert_eq!(Split::read_folds(&path, level, 3).unwrap(), [first, second]);
    let error = Split::read_folds(&path, level, 4).unwrap_err().to_string();
    assert!(error.ends_with("has 3 entries per split, but node_labels has 4 nodes"), "{error}");
}

#[test]
fn a_wide_table_that_is_mostly_zero_is_sparse() {
    let mut row = vec![0.0; 3 * 300];
    row[299] = 2.0;
    let wide = with(with_masks(), "node_features.npy", reals("(3, 300)", &row));
    let (_folder, path) = file(&wide);
    let found = good(&path);
    let sparse = found.node_features().sparse().unwrap();
    assert_eq!((sparse.width(), sparse.row(0)), (300, (&[299][..], &[2.0][..])));
    assert_eq!(found.node_features().values().cols(), 0);
}

#[test]
fn matrices_are_edges_and_sparse_features() {
    let (_folder, path) = file(&with_matrices());
    assert_eq!(Format::recognise(&path).unwrap(), Format::Npz);
    let found = good(&path);
    // An entry that is stored as zero is no edge, and rows need not be sorted.
    assert_eq!(found.edges(), [(0, 0), (0, 2)]);
    assert_eq!(found.edge_features().value_names().to_vec(), ["weight"]);
    assert_eq!(found.edge_features().values().as_slice(), [0.5, 1.0]);
    let sparse = found.node_features().sparse().unwrap();
    assert_eq!((sparse.width(), sparse.row(0)), (5, (&[0, 4][..], &[2.0, 1.0][..])));
    let split = Split { level: Level::Node, train: vec![2], val: vec![0], test: vec![1] };
    assert_eq!(found.split(), Some(&split));
    assert_eq!(Split::read_folds(&path, Level::Node, 3).unwrap(), [split]);

    // The shape may be that of the matrix as well as that of its transpose.
    let upright = with(with_matrices(), "attr_shape.npy", integers("(2,)", &[3, 5]));
    let (_folder, path) = file(&upright);
    assert_eq!(good(&path), found);
}

#[test]
fn real_labels_are_values() {
    let real = with(with_masks(), "node_labels.npy", reals("(3,)", &[0.5, f32::NAN, 2.0]));
    let (_folder, path) = file(&real);
    let found = good(&path);
    assert!(matches!(found.node_targets(), Some(TargetColumn::Values { .. })));
    assert!(!found.node_targets().unwrap().is_known(1));
}

#[test]
fn what_does_not_fit_is_told_with_the_array() {
    let masks = |name, content| with(with_masks(), name, content);
    let matrices = |name, content| with(with_matrices(), name, content);
    for (arrays, message) in [
        (
            masks("edges.npy", vec![]),
            "g.npz: has neither the array edges, of a graph with node_labels and node_features, nor \
             adj_indptr, of one with labels and the matrices adj and attr",
        ),
        (masks("node_labels.npy", vec![]), "g.npz/node_labels.npy: does not exist"),
        (
            masks("edges.npy", integers("(1, 2)", &[0, 3])),
            "g.npz/edges.npy: names node 3, but node_labels has 3 nodes, counted from 0",
        ),
        (
            masks("edges.npy", integers("(1, 3)", &[0, 1, 2])),
            "g.npz/edges.npy: is 1 × 3, but a row for each edge, of two nodes, is expected",
        ),
        (
            masks("edges.npy", reals("(1, 2)", &[0.0, 1.0])),
            "g.npz/edges.npy: has entries of the type “<f4”, not integers",
        ),
        (
            masks("node_features.npy", reals("(1, 2)", &[0.0, 1.0])),
            "g.npz/node_features.npy: has 1 row, but node_labels has 3 nodes",
        ),
        (
            masks("node_features.npy", reals("(3,)", &[0.0, f32::NAN, 1.0])),
            "g.npz/node_features.npy: has NaN in row 1, column 0, counted from 0, but a finite \
             number is expected",
        ),
        (
            masks("node_features.npy", npy("|O", "False", "(3,)", &[0; 24])),
            "g.npz/node_features.npy, byte 10: has entries of the type “|O”, not numbers",
        ),
        (
            masks("node_labels.npy", integers("(3, 2)", &[0; 6])),
            "g.npz/node_labels.npy: has 2 columns where one class per node is expected",
        ),
        (
            with(
                masks("train_masks.npy", vec![]),
                "train_mask.npy",
                npy("|b1", "False", "(3,)", &[1, 0, 0]),
            ),
            "g.npz/train_mask.npy: would be left out: a split is called train_masks, val_masks and test_masks, or \
             train_idx, val_idx and test_idx",
        ),
        (
            masks("test_masks.npy", npy("|b1", "False", "(2, 3)", &[1; 6])),
            "g.npz: the split names node 0 twice",
        ),
        (
            masks("val_masks.npy", npy("|b1", "False", "(3,)", &[0; 3])),
            "g.npz/train_masks.npy: has 2 splits, but val_masks has 1 and test_masks 2",
        ),
        (masks("val_masks.npy", vec![]), "g.npz/val_masks.npy: does not exist"),
        (
            matrices("adj_shape.npy", integers("(2,)", &[3, 4])),
            "g.npz/adj_shape.npy: is 3 × 4, but labels has 3 nodes",
        ),
        (
            matrices("adj_shape.npy", integers("(3,)", &[3, 3, 3])),
            "g.npz/adj_shape.npy: is not the shape of a matrix: two numbers are expected",
        ),
        (
            matrices("adj_indptr.npy", integers("(4,)", &[0, 2, 1, 3])),
            "g.npz/adj_indptr.npy: does not lead from 0 to the 3 entries of adj_indices, in as many \
             steps as adj_shape has rows and with as many entries in adj_data",
        ),
        (
            matrices("adj_indices.npy", integers("(3,)", &[2, 3, 1])),
            "g.npz/adj_indices.npy: names column 3, but adj_shape has 3 of them",
        ),
        (
            matrices("attr_indices.npy", integers("(3,)", &[2, 2, 1])),
            "g.npz/attr_indices.npy: has the same column twice in row 0",
        ),
        (
            matrices("attr_shape.npy", integers("(2,)", &[3, 99_999_999])),
            "g.npz/attr_shape.npy: has 99999999 columns, but at most 16777216 are expected",
        ),
        (
            matrices("train_idx.npy", integers("(1,)", &[-1])),
            "g.npz/train_idx.npy: names node -1, but labels has 3 nodes, counted from 0",
        ),
        (matrices("attr_data.npy", vec![]), "g.npz/attr_data.npy: does not exist"),
    ] {
        let (folder, path) = file(&arrays);
        assert_eq!(refusal(folder.path(), &path), message);
    }
}

#[test]
fn an_array_that_was_changed_is_noticed() {
    let (folder, path) = file(&with_masks());
    let options =
        zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    let mut writer = zip::ZipWriter::new(std::io::Cursor::new(vec![]));
    for (name, content) in with_masks() {
        writer.start_file(name, options).unwrap();
        writer.write_all(&content).unwrap();
    }
    let mut bytes = writer.finish().unwrap().into_inner();
    // One bit of a feature that is stored as it is.
    let place = bytes.windows(4).position(|four| four == 0.5_f32.to_le_bytes()).unwrap();
    bytes[place] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let message = refusal(folder.path(), &path);
    assert!(message.starts_with("g.npz/node_features.npy: cannot be unpacked: "), "{message}");
}
