use super::*;

fn file(text: &str) -> (TempDir, std::path::PathBuf) {
    let folder = folder(&[("g.txt", text)]);
    let path = folder.path().join("g.txt");
    (folder, path)
}

#[test]
fn graphs_are_read_with_and_without_attributes() {
    let (_folder, path) = file("3\n2 5\n0 1 1\n3 1 0\n0 -2\n1 5\n3 1 0\n");
    assert_eq!(Format::recognise(&path).unwrap(), Format::Gin);
    let found = good(&path);
    assert_eq!(found.name(), "g");
    assert_eq!(found.node_starts(), [0, 2, 2, 3]);
    assert_eq!(found.edges(), [(0, 1), (1, 0), (2, 2)]);
    assert_eq!(classes(found.graph_targets()), (vec!["-2".into(), "5".into()], vec![1, 0, 1]));
    let tags = &found.node_features().categories()[0];
    assert_eq!((tags.name(), tags.codes()), ("node label", &[0, 1, 1][..]));
    assert_eq!(found.node_features().values().cols(), 0);

    let (_folder, path) = file("1\n2 0\n0 1 1 0.5 7\n0 0 -1 2e1\n");
    let found = good(&path);
    assert_eq!(found.edges(), [(0, 1)]);
    assert_eq!(found.node_features().values().as_slice(), [0.5, 7.0, -1.0, 20.0]);
}

#[test]
fn what_does_not_fit_is_told_with_file_and_line() {
    for (text, message) in [
        ("", "g.txt: is empty, but a number of graphs is expected"),
        ("2\n1 0\n0 0\n", "g.txt: ends after graph 1 of the 2 that line 1 declares"),
        ("1\n2 0\n0 0\n", "g.txt: ends after node 1 of the 2 of graph 1"),
        (
            "1\n999999999999999999 0\n0 0\n",
            "g.txt: ends after node 1 of the 999999999999999999 of graph 1",
        ),
        ("-1\n", "g.txt, line 1: declares -1 graphs"),
        ("1\n-1 0\n", "g.txt, line 2: declares that a graph has -1 nodes"),
        ("1\n1 0\n0 -1\n", "g.txt, line 3: declares -1 neighbours"),
        (
            "1\n1 0\n0 1 1\n",
            "g.txt, line 3: names neighbour 1, but the graph has 1 node, counted from 0",
        ),
        ("1\n1 0\n0 2 0\n", "g.txt, line 3: declares 2 neighbours and lists 1"),
        ("1\n1 0\n0\n", "g.txt, line 3: has one number where a node's tag and degree are expected"),
        ("1\n1 0\n0 0 nan\n", "g.txt, line 3: has “nan”, but a finite number is expected"),
        (
            "1\n2 0\n0 0 1\n0 0\n",
            "g.txt, line 4: has 0 numbers after the neighbours, but the first node has 1",
        ),
        ("1\n1 0\n0 0\n0 0\n", "g.txt, line 4: follows graph 1, the last that line 1 declares"),
        ("1\n0 0\n", "g.txt: has no nodes"),
        ("0\n", "g.txt: has no nodes"),
    ] {
        let (folder, path) = file(text);
        let error = read(&path, &ReadOptions { format: Some(Format::Gin) }).unwrap_err();
        assert_eq!(
            error.to_string().replace(&format!("{}/", folder.path().display()), ""),
            message
        );
    }
}
