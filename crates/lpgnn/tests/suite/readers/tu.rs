use super::*;

/// Three graphs, the second of which has no nodes.
const FILES: &[(&str, &str)] = &[
    ("T_A.txt", "2, 1\n1 ,2\n1,2\n3,3\n 4,  3 \n\n"),
    ("T_graph_indicator.txt", "1\r\n1\r\n3\r\n3\r\n"),
    ("T_graph_labels.txt", "-1\n7\n-1\n"),
    ("T_node_labels.txt", "5, 0\n-3, 0\n5, 1\n5, 2\n"),
    ("T_node_attributes.txt", " 0.5, 1e2\n1,2\n3,4\n5,-6.25"),
    ("T_edge_labels.txt", "1\n2\n2\n3\n4\n"),
    ("T_edge_attributes.txt", "1.5\n2.5\n2.5\n3.5\n4.5\n"),
    ("T_node_targets.txt", "1\n-1\n-1\n1\n"),
];

#[test]
fn every_file_of_a_folder_is_read() {
    let folder = folder(FILES);
    assert_eq!(Format::recognise(folder.path()).unwrap(), Format::Tu);
    let found = good(folder.path());
    assert_eq!(found.name(), "T");
    assert_eq!(found.node_starts(), [0, 2, 2, 4]);
    assert_eq!(found.edges(), [(0, 1), (1, 0), (2, 2), (3, 2)]);
    assert_eq!((found.duplicates(), found.conflicts()), (1, 0));
    assert_eq!(classes(found.graph_targets()), (vec!["-1".into(), "7".into()], vec![0, 1, 0]));
    assert_eq!(classes(found.node_targets()).1, [1, 0, 0, 1]);
    let nodes = found.node_features();
    assert_eq!(nodes.categories()[0].values(), ["-3", "5"]);
    assert_eq!(nodes.categories()[1].name(), "node label 2");
    assert_eq!(nodes.values().row(3), [5.0, -6.25]);
    let edges = found.edge_features();
    assert_eq!(edges.categories()[0].value(0), Some("2"));
    assert_eq!(edges.values().as_slice(), [2.5, 1.5, 3.5, 4.5]);
}

#[test]
fn of_an_edge_that_is_listed_twice_the_first_counts() {
    let labels = ("T_edge_labels.txt", Some("1\n2\n9\n3\n4\n"));
    let found = good(folder(&changed(FILES, &[labels])).path());
    assert_eq!((found.duplicates(), found.conflicts()), (1, 1));
    assert_eq!(found.edge_features().categories()[0].value(0), Some("2"));
}

#[test]
fn two_files_are_enough() {
    let found = good(folder(&[("X_A.txt", ""), ("X_graph_indicator.txt", "1\n2\n")]).path());
    assert_eq!((found.graphs(), found.edges().len()), (2, 0));
    assert!(found.node_features().is_empty() && found.graph_targets().is_none());
}

#[test]
fn graph_attributes_are_real_targets_where_there_are_no_classes() {
    let attributes = ("T_graph_attributes.txt", Some("0.5, 1\n1.5, 2\n-2, 3\n"));
    let regression = changed(FILES, &[attributes, ("T_graph_labels.txt", None)]);
    let found = good(folder(&regression).path());
    let values = Matrix::from_rows(&[vec![0.5, 1.0], vec![1.5, 2.0], vec![-2.0, 3.0]]).unwrap();
    let names = vec!["graph attribute 1".into(), "graph attribute 2".into()];
    assert_eq!(found.graph_targets(), Some(&TargetColumn::Values { names, values }));
    let both = good(folder(&changed(FILES, &[attributes])).path());
    assert!(matches!(both.graph_targets(), Some(TargetColumn::Classes(_))));
}

#[test]
fn folders_train_valid_and_test_make_a_split() {
    let parts = folder(&[
        ("train/P_A.txt", "1,2\n"),
        ("train/P_graph_indicator.txt", "1\n1\n2\n"),
        ("train/P_node_labels.txt", "7\n9\n9\n"),
        ("val/P_A.txt", "1,1\n"),
        ("val/P_graph_indicator.txt", "1\n"),
        ("val/P_node_labels.txt", "8\n"),
        ("test/P_A.txt", ""),
        ("test/P_graph_indicator.txt", "1\n"),
        ("test/P_node_labels.txt", "7\n"),
    ]);
    let found = good(parts.path());
    assert_eq!(found.node_starts(), [0, 2, 3, 4, 5]);
    assert_eq!(found.edges(), [(0, 1), (3, 3)]);
    assert_eq!(found.node_features().categories()[0].values(), ["7", "8", "9"]);
    assert_eq!(found.node_features().categories()[0].codes(), [0, 2, 2, 1, 0]);
    let split = found.split().unwrap();
    assert_eq!(
        (&split.train[..], &split.val[..], &split.test[..]),
        (&[0, 1][..], &[2][..], &[3][..])
    );

    std::fs::remove_file(parts.path().join("test/P_node_labels.txt")).unwrap();
    assert_eq!(
        refusal(parts.path(), parts.path()),
        "test: cannot be joined with the splits before it: the node features differ: one has the \
         columns (node label), the other ()"
    );
}

#[test]
fn what_does_not_fit_is_told_with_file_and_line() {
    let cases: &[(&str, Option<&str>, &str)] = &[
        (
            "T_A.txt",
            Some("1,2\n1,5\n"),
            "T_A.txt, line 2: names node 5, but T_graph_indicator.txt has 4 nodes",
        ),
        ("T_A.txt", Some("0,2\n"), "T_A.txt, line 1: names node 0, but nodes are counted from 1"),
        (
            "T_A.txt",
            Some("-9223372036854775808,2\n"),
            "T_A.txt, line 1: names node -9223372036854775808, but nodes are counted from 1",
        ),
        (
            "T_A.txt",
            Some("1,2\n1\n"),
            "T_A.txt, line 2: has 1 number where a pair of nodes is expected",
        ),
        (
            "T_A.txt",
            Some("1,2,3\n"),
            "T_A.txt, line 1: has more than 2 numbers where a pair of nodes is expected",
        ),
        ("T_A.txt", Some("1,x\n"), "T_A.txt, line 1: has “x”, not an integer"),
        ("T_A.txt", Some("1,2\n\n2,1\n"), "T_A.txt, line 2: is blank, but rows follow"),
        ("T_A.txt", None, "T_A.txt: does not exist, but every TU data set has this file"),
        (
            "T_graph_indicator.txt",
            Some("1\n3\n1\n1\n"),
            "T_graph_indicator.txt, line 3: steps back from graph 3 to graph 1",
        ),
        (
            "T_graph_indicator.txt",
            Some("1\n4\n"),
            "T_graph_indicator.txt, line 2: names graph 4, but T_graph_labels.txt has 3 graphs",
        ),
        (
            "T_graph_indicator.txt",
            Some("0\n"),
            "T_graph_indicator.txt, line 1: names graph 0, but graphs are counted from 1",
        ),
        ("T_graph_indicator.txt", Some("\n"), "T_graph_indicator.txt: has no nodes"),
        (
            "T_graph_labels.txt",
            Some(""),
            "T_graph_indicator.txt, line 1: names graph 1, but T_graph_labels.txt has 0 graphs",
        ),
        (
            "T_graph_labels.txt",
            Some("1.5\n"),
            "T_graph_labels.txt, line 1: has “1.5”, not an integer",
        ),
        (
            "T_graph_labels.txt",
            Some("1, 2\n"),
            "T_graph_labels.txt, line 1: has 2 numbers where a class is expected",
        ),
        (
            "T_node_labels.txt",
            Some("1\n2\n3\n"),
            "T_node_labels.txt: ends after 3 rows, but T_graph_indicator.txt has 4 nodes",
        ),
        (
            "T_node_labels.txt",
            Some("1\n2\n3\n4\n5\n"),
            "T_node_labels.txt, line 5: is a row too many: T_graph_indicator.txt has 4 nodes",
        ),
        (
            "T_node_labels.txt",
            Some("1\n2, 3\n"),
            "T_node_labels.txt, line 2: has more than 1 number where a row of 1 is expected",
        ),
        (
            "T_node_attributes.txt",
            Some("1\n2\nNaN\n4\n"),
            "T_node_attributes.txt, line 3: has “NaN”, but a finite number is expected",
        ),
        (
            "T_node_attributes.txt",
            Some("1\n-inf\n"),
            "T_node_attributes.txt, line 2: has “-inf”, but a finite number is expected",
        ),
        (
            "T_node_attributes.txt",
            Some("1,2\n3\n"),
            "T_node_attributes.txt, line 2: has 1 number, not 2",
        ),
        (
            "T_edge_labels.txt",
            Some("1\n"),
            "T_edge_labels.txt: ends after 1 row, but T_A.txt has 5 edges",
        ),
    ];
    for &(file, content, message) in cases {
        let folder = folder(&changed(FILES, &[(file, content)]));
        assert_eq!(refusal(folder.path(), folder.path()), message);
    }
    let between = [("T_A.txt", Some("1,2\n2,3\n"))];
    let between = folder(&changed(&FILES[..3], &between));
    assert_eq!(
        refusal(between.path(), between.path()),
        "T_A.txt, line 2: joins a node of graph 1 to a node of graph 3"
    );
    let skipping = folder(&[("T_A.txt", ""), ("T_graph_indicator.txt", "1\n1000000000000\n")]);
    assert_eq!(
        refusal(skipping.path(), skipping.path()),
        "T_graph_indicator.txt, line 2: steps from graph 1 to graph 1000000000000, but without \
         a file of graph labels no graph may be empty"
    );
    let directory = folder(&changed(FILES, &[("T_A.txt", None), ("T_A.txt/x", Some(""))]));
    assert_eq!(
        refusal(directory.path(), directory.path()),
        "T_A.txt: is a directory, but a file is expected"
    );
}

fn zip(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(std::io::Cursor::new(vec![]));
    let options = zip::write::SimpleFileOptions::default();
    for (name, content) in entries {
        writer.start_file(*name, options).unwrap();
        writer.write_all(content).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn zip_of(prefix: &str) -> Vec<u8> {
    let mut entries: Vec<(String, &[u8])> =
        FILES.iter().map(|(name, text)| (format!("{prefix}{name}"), text.as_bytes())).collect();
    // What published archives hold besides.
    entries.push((format!("{prefix}README.txt"), b"About T"));
    entries.push((format!("__MACOSX/{prefix}._T_A.txt"), b"\0\x05\x16\x07"));
    zip(&entries.iter().map(|(name, text)| (name.as_str(), *text)).collect::<Vec<_>>())
}

#[test]
fn a_zip_file_is_the_folder() {
    let expected = good(folder(FILES).path());
    let place = tempfile::tempdir().unwrap();
    for prefix in ["", "T/", "a/b/", "../../etc/", "/", "C:\\x\\"] {
        let path = place.path().join("anything.bin");
        std::fs::write(&path, zip_of(prefix)).unwrap();
        assert_eq!(good(&path), expected, "{prefix}");
    }
    // Whatever entries are called, nothing is written.
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1);
}

#[test]
fn a_hostile_zip_file_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("x.zip");
    let whole = zip_of("T/");
    for cut in [whole.len() - 1, whole.len() / 2, 10] {
        std::fs::write(&path, &whole[..cut]).unwrap();
        let message = refusal(place.path(), &path);
        assert!(message.starts_with("x.zip: cannot be read as a zip file: "), "{message}");
    }

    let bomb = "1\n".repeat(20 << 20);
    let bomb = zip(&[("B_A.txt", b""), ("B_graph_indicator.txt", bomb.as_bytes())]);
    assert!(bomb.len() < 320_000, "{}", bomb.len());
    std::fs::write(&path, bomb).unwrap();
    assert_eq!(
        refusal(place.path(), &path),
        "x.zip/B_graph_indicator.txt: cannot be unpacked: it would be more than 100 times as \
         large and more than 32 MiB"
    );

    std::fs::write(&path, zip(&[("readme.md", b"nothing")])).unwrap();
    assert_eq!(
        refusal(place.path(), &path),
        "x.zip: contains no TU data set: there is no file NAME_A.txt or NAME_graph_indicator.txt"
    );
}

#[test]
fn a_zip_file_with_an_entry_twice_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("x.zip");
    let mut twice = zip(&[
        ("T/T_A.txt", b"1, 2\n"),
        ("T/T_graph_indicator.txt", b"1\n1\n"),
        ("T/T_B.txt", b"2, 1\n"),
    ]);
    let name = b"T/T_B.txt";
    for at in 0..twice.len() - name.len() {
        if twice[at..].starts_with(name) {
            twice[at + 4] = b'A';
        }
    }
    std::fs::write(&path, twice).unwrap();
    assert_eq!(refusal(place.path(), &path), "x.zip: has the entry “T/T_A.txt” twice");
}

#[test]
fn a_zip_file_that_lies_about_its_size_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("x.zip");
    let text = "1\n".repeat(20 << 20);
    let mut bomb = zip(&[("B_A.txt", b""), ("B_graph_indicator.txt", text.as_bytes())]);
    // Wherever the true size stands, write 2.
    let size = u32::try_from(text.len()).unwrap().to_le_bytes();
    for i in 0..bomb.len() - 4 {
        if bomb[i..i + 4] == size {
            bomb[i..i + 4].copy_from_slice(&2_u32.to_le_bytes());
        }
    }
    std::fs::write(&path, bomb).unwrap();
    let message = refusal(place.path(), &path);
    assert!(message.starts_with("x.zip/B_graph_indicator.txt: cannot be unpacked: "), "{message}");
}

#[test]
fn a_zip_file_that_announces_very_many_entries_is_refused() {
    // An empty archive in 64-bit form: record, locator, end.
    let mut bytes = b"PK\x06\x06".to_vec();
    bytes.extend(44_u64.to_le_bytes());
    bytes.extend([45, 0, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    for number in [1_u64 << 40, 1 << 40, 1 << 60, 1 << 61] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend(b"PK\x06\x07\0\0\0\0");
    bytes.extend(0_u64.to_le_bytes());
    bytes.extend([1, 0, 0, 0]);
    bytes.extend(b"PK\x05\x06\0\0\0\0");
    bytes.extend([0xff; 12]);
    bytes.extend([0, 0]);
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("x.zip");
    std::fs::write(&path, bytes).unwrap();
    let options = ReadOptions { format: Some(Format::Tu) };
    let message = read(&path, &options).expect_err("there is nothing in it").to_string();
    assert!(message.contains("x.zip: cannot be "), "{message}");
}
