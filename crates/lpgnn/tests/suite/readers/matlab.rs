use super::*;
use crate::mat::{dense, file, sparse, structure};

/// Two graphs of two nodes, as the fields of a set.
fn set() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("connMatrix", sparse("", 4, 4, &[(1, 0, 1.0), (0, 1, 1.0), (2, 3, 1.0)])),
        ("nodeLabels", dense("", 2, 4, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])),
        ("targets", dense("", 1, 4, &[-1.0, 1.0, 1.0, -1.0])),
        ("maskMatrix", sparse("", 4, 4, &[(0, 0, 1.0), (1, 1, 1.0), (3, 3, 1.0)])),
    ]
}

fn data_set(config: &[(&str, Vec<u8>)], train: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let test = [set(), vec![("graphNum", dense("", 1, 1, &[2.0]))]].concat();
    structure(
        "dataSet",
        &[
            ("config", structure("", config)),
            ("trainSet", structure("", train)),
            ("testSet", structure("", &test)),
        ],
    )
}

#[test]
fn a_struct_of_sets_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.mat");
    let variable = data_set(&[("graphDim", dense("", 1, 1, &[2.0]))], &set());
    for compress in [false, true] {
        std::fs::write(&path, file(std::slice::from_ref(&variable), compress)).unwrap();
        assert_eq!(Format::recognise(&path).unwrap(), Format::Matlab);
        let found = good(&path);
        assert_eq!(found.node_starts(), [0, 2, 4, 6, 8]);
        assert_eq!(found.edges(), [(0, 1), (1, 0), (2, 3), (4, 5), (5, 4), (6, 7)]);
        assert_eq!(found.node_features().values().row(1), [3.0, 4.0]);
        assert_eq!(classes(found.node_targets()).1[..4], [0, 1, NO_TARGET, 0]);
        let split = found.split().unwrap();
        assert_eq!(
            (&split.train[..], &split.val[..], &split.test[..]),
            (&[0, 1][..], &[][..], &[2, 3][..])
        );
        assert!(found.edge_features().is_empty());
    }
}

#[test]
fn without_a_size_graphs_are_the_smallest_blocks() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, variable: Vec<u8>| {
        std::fs::write(folder.path().join(name), file(&[variable], true)).unwrap();
    };
    write("conmattrain.mat", sparse("c", 6, 6, &[(0, 1, 1.0), (5, 4, 2.0)]));
    write("nodelabtrain.mat", dense("l", 1, 6, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]));
    write("tartrain.mat", dense("t", 1, 6, &[0.0, 0.5, 0.0, 1.0, 0.0, 0.0]));
    let found = good(folder.path());
    assert_eq!(found.node_starts(), [0, 2, 4, 6]);
    assert_eq!(found.edge_features().values().as_slice(), [1.0, 2.0]);
    assert!(matches!(found.node_targets(), Some(TargetColumn::Values { .. })));

    // The test part joins the third node of a graph, so graphs have three.
    write("conmattest.mat", dense("c", 3, 3, &[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0]));
    write("nodelabtest.mat", dense("l", 1, 3, &[1.0, 2.0, 3.0]));
    write("tartest.mat", dense("t", 1, 3, &[0.5, 0.0, 0.0]));
    write("conmattrain.mat", sparse("c", 6, 6, &[(0, 1, 1.0), (5, 4, 1.0)]));
    let found = good(&folder.path().join("nodelabtest.mat"));
    assert_eq!(found.node_starts(), [0, 3, 6, 9]);
    assert_eq!(found.edges(), [(0, 1), (5, 4), (6, 8)]);

    std::fs::remove_file(folder.path().join("tartest.mat")).unwrap();
    assert_eq!(refusal(folder.path(), folder.path()), "tartest.mat: does not exist");
}

#[test]
fn what_does_not_fit_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.mat");
    let two = || vec![("graphDim", dense("", 1, 1, &[2.0]))];
    let with = |name: &'static str, value: Vec<u8>| {
        let mut fields = set();
        fields.retain(|field| field.0 != name);
        fields.push((name, value));
        data_set(&two(), &fields)
    };
    let without = |name: &str| {
        let mut fields = set();
        fields.retain(|field| field.0 != name);
        data_set(&two(), &fields)
    };
    for (variable, message) in [
        (
            dense("x", 1, 1, &[1.0]),
            "x.mat: has no struct dataSet, and is not called like conmattrain.mat, nodelabtrain.mat or tartrain.mat",
        ),
        (
            structure("dataSet", &[]),
            "x.mat: has a dataSet with none of trainSet, validationSet and testSet",
        ),
        (without("targets"), "x.mat: has no trainSet.targets"),
        (
            data_set(&[("graphDim", dense("", 1, 1, &[3.0]))], &set()),
            "x.mat: has a trainSet.connMatrix of 4 nodes, which cannot be graphs of 3 nodes each",
        ),
        (
            data_set(&[("graphDim", dense("", 1, 1, &[0.0]))], &set()),
            "x.mat: has a config.graphDim that is not a number of nodes",
        ),
        (
            data_set(&[("graphDim", dense("", 1, 1, &[1.0]))], &set()),
            "x.mat: has a trainSet.connMatrix that joins a node of graph 2 to a node of graph 1, where graphs have 1 nodes each",
        ),
        (
            with("connMatrix", sparse("", 4, 3, &[])),
            "x.mat: has a trainSet.connMatrix that is 4 × 3, but a square matrix is expected",
        ),
        (
            with("connMatrix", sparse("", 0, 0, &[])),
            "x.mat: has a trainSet.connMatrix that has no nodes",
        ),
        (
            with("connMatrix", sparse("", 4, 4, &[(4, 0, 1.0)])),
            "x.mat: has a trainSet.connMatrix that has row or column indices that are out of range",
        ),
        (
            with("connMatrix", structure("", &[])),
            "x.mat: has a trainSet.connMatrix that is not a matrix of numbers",
        ),
        (
            with("nodeLabels", dense("", 4, 2, &[0.0; 8])),
            "x.mat: has a trainSet.nodeLabels that is 4 × 2, but one column for each of the 4 nodes is expected",
        ),
        (
            with("nodeLabels", dense("", 1, 4, &[0.0, f64::NAN, 0.0, 0.0])),
            "x.mat: has a trainSet.nodeLabels that has the entry NaN, but finite numbers are expected",
        ),
        (
            with("maskMatrix", sparse("", 3, 3, &[])),
            "x.mat: has a trainSet.maskMatrix that is 3 × 3, but 4 × 4 is expected",
        ),
    ] {
        std::fs::write(&path, file(&[variable], false)).unwrap();
        assert_eq!(refusal(folder.path(), &path), message);
    }
}

#[test]
fn a_file_that_is_not_what_it_claims_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.mat");
    let refuse = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        let options = ReadOptions { format: Some(Format::Matlab) };
        let error = read(&path, &options).unwrap_err().to_string();
        error.replace(&format!("{}/", folder.path().display()), "")
    };
    let whole = file(&[data_set(&[], &set())], false);
    assert_eq!(
        refuse(&whole[..100]),
        "x.mat, byte 126: should be the mark “IM” or “MI” of a MATLAB file"
    );
    assert_eq!(refuse(&whole[..130]), "x.mat, byte 128: is the middle of a tag of 8 bytes");
    let rest = whole.len() - 136;
    assert_eq!(
        refuse(&whole[..whole.len() - 8]),
        format!("x.mat, byte 128: declares {rest} bytes, but {} follow", rest - 8)
    );
    assert_eq!(
        refuse(b"MATLAB 7.3 MAT-file"),
        "x.mat: is a MATLAB 7.3 file, but level 5 is expected: save it with the option -v7"
    );
    assert_eq!(refuse(b"hello"), "x.mat, byte 0: does not start with “MATLAB 5.0”");

    // The largest claims a tag and the dimensions of a matrix can make: 4 GB, 2³¹ × 2³¹.
    let mut claim = whole.clone();
    claim[132..136].copy_from_slice(&u32::MAX.to_le_bytes());
    assert_eq!(
        refuse(&claim),
        format!("x.mat, byte 128: declares 4294967295 bytes, but {rest} follow")
    );
    let mut vast = dense("x", 1, 1, &[1.0]);
    let dims = vast.windows(8).position(|w| w == [1, 0, 0, 0, 1, 0, 0, 0]).unwrap();
    vast[dims..dims + 8].copy_from_slice(&[255, 255, 255, 127, 255, 255, 255, 127]);
    assert_eq!(
        refuse(&file(&[vast], false)),
        "x.mat, byte 128: starts a variable that claims 2147483647 × 2147483647 numbers and has 1"
    );

    // 64 MB of zeros in 64 kB.
    let zeros = dense("x", 1, 8 << 20, &vec![0.0; 8 << 20]);
    assert_eq!(
        refuse(&file(&[zeros], true)),
        "x.mat, byte 128: starts data that cannot be unpacked: it would be more than 100 times as \
         large and more than 32 MiB"
    );
}
