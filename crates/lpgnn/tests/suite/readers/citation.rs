use super::*;

const FILES: &[(&str, &str)] = &[
    ("edges.txt", "0 1\n2 2\n1\t2\n"),
    ("features.txt", "4:1 0:0.5\n\n2:1\n"),
    ("labels.txt", "3\n-1\n5\n"),
    ("train_idx.txt", "2\n"),
    ("val_idx.txt", ""),
    ("test_idx.txt", "0\n"),
];

#[test]
fn a_folder_is_one_graph() {
    let folder = folder(FILES);
    assert_eq!(Format::recognise(folder.path()).unwrap(), Format::Citation);
    let found = good(folder.path());
    assert_eq!((found.graphs(), found.nodes()), (1, 3));
    assert_eq!(found.edges(), [(0, 1), (1, 0), (1, 2), (2, 1), (2, 2)]);
    assert_eq!(
        classes(found.node_targets()),
        (vec!["3".into(), "5".into()], vec![0, NO_TARGET, 1])
    );
    let sparse = found.node_features().sparse().unwrap();
    assert_eq!((sparse.width(), sparse.row(0)), (5, (&[0, 4][..], &[0.5, 1.0][..])));
    assert!(sparse.row(1).0.is_empty());
    let split = found.split().unwrap();
    assert_eq!((split.level, &split.train[..], &split.test[..]), (Level::Node, &[2][..], &[0][..]));
}

#[test]
fn what_does_not_fit_is_told_with_file_and_line() {
    let cases: &[(&str, Option<&str>, &str)] = &[
        (
            "edges.txt",
            Some("0 3\n"),
            "edges.txt, line 1: names node 3, but labels.txt has 3 nodes, counted from 0",
        ),
        (
            "edges.txt",
            Some("0 -1\n"),
            "edges.txt, line 1: names node -1, but labels.txt has 3 nodes, counted from 0",
        ),
        (
            "features.txt",
            Some("1:1\n2:1\n"),
            "features.txt: ends after 2 rows, but labels.txt has 3 nodes",
        ),
        (
            "features.txt",
            Some("\n\n\n\n1:1\n"),
            "features.txt, line 5: is a row too many: labels.txt has 3 nodes",
        ),
        (
            "features.txt",
            Some("1\n\n\n"),
            "features.txt, line 1: has “1”, not index:value with an index from 0 below 16777216",
        ),
        (
            "features.txt",
            Some("-1:1\n\n\n"),
            "features.txt, line 1: has “-1:1”, not index:value with an index from 0 below 16777216",
        ),
        (
            "features.txt",
            Some("99999999999:1\n\n\n"),
            "features.txt, line 1: has “99999999999:1”, not index:value with an index from 0 below 16777216",
        ),
        (
            "features.txt",
            Some("1:inf\n\n\n"),
            "features.txt, line 1: has “inf”, but a finite number is expected",
        ),
        ("features.txt", Some("1:1 1:2\n\n\n"), "features.txt, line 1: has index 1 twice"),
        ("features.txt", None, "features.txt: does not exist"),
        ("labels.txt", Some("\n"), "labels.txt: has no nodes"),
        ("labels.txt", None, "labels.txt: does not exist"),
        (
            "train_idx.txt",
            Some("3\n"),
            "train_idx.txt, line 1: names node 3, but labels.txt has 3 nodes, counted from 0",
        ),
        ("test_idx.txt", Some("0\n2\n"), "test_idx.txt, line 2: names node 2 for the second time"),
        ("val_idx.txt", None, "val_idx.txt: does not exist"),
    ];
    for &(file, content, message) in cases {
        let folder = folder(&changed(FILES, &[(file, content)]));
        assert_eq!(refusal(folder.path(), folder.path()), message);
    }
}
