use std::io::Write as _;

use lpgnn::data::Split;

use super::*;

/// Two molecules, with categories of atoms and bonds.
const MOLECULES: &[(&str, &str)] = &[
    ("raw/num-node-list.csv", "2\n3\n"),
    ("raw/num-edge-list.csv", "1\n2\n"),
    ("raw/edge.csv", "0,1\n0,1\n1,2\n"),
    ("raw/node-feat.csv", "5,0\n6,0\n5,1\n7,0\n5,0\n"),
    ("raw/edge-feat.csv", "0\n1\n2\n"),
    ("raw/graph-label.csv", "0\n1\n"),
    ("split/scaffold/train.csv", "1\n"),
    ("split/scaffold/valid.csv", ""),
    ("split/scaffold/test.csv", "0\n"),
    ("mapping/mol.csv", "smiles\nCO\n"),
];

/// One graph whose nodes are classified.
const PAPERS: &[(&str, &str)] = &[
    ("raw/num-node-list.csv", "3\n"),
    ("raw/num-edge-list.csv", "2\n"),
    ("raw/edge.csv", "0,1\n2,0\n"),
    ("raw/node-feat.csv", "0.5,1\n-1.5,2\n0,3\n"),
    ("raw/node-label.csv", "4\nnan\n9\n"),
    ("raw/node_year.csv", "1999\n2000\n2001\n"),
    ("dataset.toml", "directed = true\nname = \"papers\"\n"),
];

#[test]
fn integers_are_categories_and_every_edge_has_two_directions() {
    let folder = folder(MOLECULES);
    assert_eq!(Format::recognise(folder.path()).unwrap(), Format::Ogb);
    let found = good(folder.path());
    assert_eq!(found.node_starts(), [0, 2, 5]);
    assert_eq!(found.edges(), [(0, 1), (1, 0), (2, 3), (3, 2), (3, 4), (4, 3)]);
    let atoms = found.node_features().categories();
    assert_eq!((atoms[0].name(), atoms[0].codes()), ("node feature 1", &[0, 1, 0, 2, 0][..]));
    assert_eq!(atoms[1].values(), ["0", "1"]);
    assert_eq!(found.edge_features().categories()[0].codes(), [0, 0, 1, 1, 2, 2]);
    assert_eq!(classes(found.graph_targets()), (vec!["0".into(), "1".into()], vec![0, 1]));
    let split = Split { level: Level::Graph, train: vec![1], val: vec![], test: vec![0] };
    assert_eq!(found.split(), Some(&split));
    // Its folder `raw` is the same data set.
    assert_eq!(good(&folder.path().join("raw")), found);
}

#[test]
fn real_numbers_are_values_and_nodes_have_labels() {
    let folder = folder(PAPERS);
    let found = good(folder.path());
    assert_eq!((found.name(), found.edges()), ("papers", &[(0, 1), (2, 0)][..]));
    assert_eq!(found.node_features().values().row(1), [-1.5, 2.0]);
    assert!(found.node_features().categories().is_empty());
    assert_eq!(
        classes(found.node_targets()),
        (vec!["4".into(), "9".into()], vec![0, NO_TARGET, 1])
    );
}

#[test]
fn several_labels_are_values_with_gaps() {
    let folder =
        folder(&changed(MOLECULES, &[("raw/graph-label.csv", Some("0.0,,1\n1.5,nan,0\n"))]));
    let found = good(folder.path());
    let Some(TargetColumn::Values { names, values }) = found.graph_targets() else { panic!() };
    assert_eq!(names, &["graph label 1", "graph label 2", "graph label 3"]);
    assert_eq!((values.row(0)[0], values.row(1)[0], values.row(0)[2]), (0.0, 1.5, 1.0));
    assert!(values.row(0)[1].is_nan() && values.row(1)[1].is_nan());
    // As pandas writes a column in which one value is unknown.
    let alone = changed(MOLECULES, &[("raw/graph-label.csv", Some("\"\"\n1.0\n"))]);
    let folder = super::folder(&alone);
    let found = good(folder.path());
    assert_eq!(classes(found.graph_targets()), (vec!["1".into()], vec![NO_TARGET, 0]));
}

#[test]
fn files_may_be_gzipped() {
    let plain = folder(MOLECULES);
    let packed = folder(&[]);
    for (name, content) in MOLECULES {
        let path = packed.path().join(format!("{name}.gz"));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut encoder = flate2::write::GzEncoder::new(vec![], flate2::Compression::fast());
        encoder.write_all(content.as_bytes()).unwrap();
        std::fs::write(path, encoder.finish().unwrap()).unwrap();
    }
    assert_eq!(Format::recognise(packed.path()).unwrap(), Format::Ogb);
    let (plain, packed) = (good(plain.path()), good(packed.path()));
    assert_eq!(plain.edges(), packed.edges());
    assert_eq!(plain.node_features(), packed.node_features());
    assert_eq!(plain.split(), packed.split());
}

#[test]
fn what_does_not_fit_is_told_with_file_and_line() {
    let many = "1000000000\n3\n";
    let bare =
        changed(MOLECULES, &[("raw/node-feat.csv", None), ("raw/num-node-list.csv", Some(many))]);
    let folder = folder(&bare);
    assert_eq!(
        refusal(folder.path(), folder.path()),
        "raw/num-node-list.csv: declares 1000000003 nodes, but there is neither node-feat.csv nor \
         node-label.csv, and there are only 3 edges"
    );
    for (name, content, message) in [
        (
            "raw/num-edge-list.csv",
            None,
            "raw/num-edge-list.csv: does not exist, and no num-edge-list.csv.gz either",
        ),
        (
            "raw/num-edge-list.csv",
            Some("3\n"),
            "raw/num-edge-list.csv: has 1 graph, but num-node-list.csv has 2",
        ),
        ("raw/num-node-list.csv", Some("0\n0\n"), "raw/num-node-list.csv: has no nodes"),
        (
            "raw/num-node-list.csv",
            Some("2\n-3\n"),
            "raw/num-node-list.csv, line 2: has -3, but a size is expected",
        ),
        (
            "raw/num-node-list.csv",
            Some("2\nx\n"),
            "raw/num-node-list.csv, line 2: has “x”, not an integer",
        ),
        (
            "raw/num-node-list.csv",
            Some("2\n4294967295\n"),
            "a batch has at most 2³² − 2 nodes and neighbours",
        ),
        (
            "raw/edge.csv",
            Some("0,1\n0,1\n"),
            "raw/edge.csv: ends after 2 rows, but num-edge-list.csv has 3 edges",
        ),
        (
            "raw/edge.csv",
            Some("0,1\n0,1\n1,2\n1,1\n"),
            "raw/edge.csv, line 4: is a row too many: num-edge-list.csv has 3 edges",
        ),
        (
            "raw/edge.csv",
            Some("0,2\n0,1\n1,2\n"),
            "raw/edge.csv, line 1: names node 2, but graph 0 has 2 nodes, counted from 0",
        ),
        (
            "raw/edge.csv",
            Some("0\n0\n1\n"),
            "raw/edge.csv, line 1: has 1 field where two nodes are expected",
        ),
        (
            "raw/edge.csv",
            Some("0,1\n0,1,2\n1,2\n"),
            "raw/edge.csv, line 2: has 3 fields, but the first line has 2",
        ),
        (
            "raw/node-feat.csv",
            Some("5\n6\n"),
            "raw/node-feat.csv: ends after 2 rows, but num-node-list.csv has 5 nodes",
        ),
        (
            "raw/node-feat.csv",
            Some("5\n6\n\"\"\n7\n8\n"),
            "raw/node-feat.csv: has no number in row 2, counted from 0",
        ),
        (
            "raw/node-feat.csv",
            Some("5\n6\nx\n7\n8\n"),
            "raw/node-feat.csv, line 3: has “x”, not a number",
        ),
        (
            "raw/graph-label.csv",
            Some("1\n2\n3\n"),
            "raw/graph-label.csv, line 3: is a row too many: num-node-list.csv has 2 graphs",
        ),
        (
            "split/scaffold/train.csv",
            Some("2\n"),
            "split/scaffold/train.csv, line 1: names graph 2, but num-node-list.csv has 2 graphs, counted from 0",
        ),
        ("split/scaffold/train.csv", Some("0\n"), "split: the split names graph 0 twice"),
        (
            "split/scaffold/valid.csv",
            None,
            "split/scaffold/valid.csv: does not exist, and no valid.csv.gz either",
        ),
        (
            "split/random/train.csv",
            Some("0\n"),
            "split: has the folders “random” and “scaffold”, but one split is expected",
        ),
    ] {
        let folder = super::folder(&changed(MOLECULES, &[(name, content)]));
        assert_eq!(refusal(folder.path(), folder.path()), message);
    }
}
