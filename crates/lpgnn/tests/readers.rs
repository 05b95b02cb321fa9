//! Every reader on files that the tests make themselves: what it reads, and what it refuses.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::io::Write;
use std::path::Path;

use lpgnn::data::{Dataset, Format, Level, ReadOptions, TargetColumn, read};
use lpgnn::graph::UNLABELLED;
use lpgnn::{Error, Matrix};
use tempfile::TempDir;

#[path = "support/mat.rs"]
mod mat;

/// A folder with these files.
fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    folder
}

fn load(path: &Path) -> Result<Dataset, Error> {
    read(path, &ReadOptions::default())
}

fn good(path: &Path) -> Dataset {
    load(path).unwrap_or_else(|error| panic!("{error}"))
}

/// The message for a folder that cannot be read, without the path of the folder.
fn refusal(folder: &Path, path: &Path) -> String {
    let error = load(path).expect_err("this cannot be read").to_string();
    assert!(!error.contains('\n'), "{error}");
    error
        .replace(&format!("{}/", folder.display()), "")
        .replace(&format!("{}", folder.display()), "DIR")
}

/// The same files with some replaced, removed (`None`) or added.
fn changed<'a>(
    files: &[(&'a str, &'a str)],
    changes: &[(&'a str, Option<&'a str>)],
) -> Vec<(&'a str, &'a str)> {
    let mut all: Vec<_> = files
        .iter()
        .filter(|(name, _)| !changes.iter().any(|(changed, _)| name == changed))
        .copied()
        .collect();
    all.extend(changes.iter().filter_map(|&(name, content)| Some((name, content?))));
    all
}

fn classes(targets: Option<&TargetColumn>) -> (Vec<String>, Vec<u32>) {
    match targets {
        Some(TargetColumn::Classes(classes)) => {
            (classes.values().to_vec(), classes.codes().to_vec())
        }
        other => panic!("{other:?}"),
    }
}

mod tu {
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
        assert_eq!(found.arcs(), [(0, 1), (1, 0), (2, 2), (3, 2)]);
        assert_eq!((found.duplicates(), found.conflicts()), (1, 0));
        assert_eq!(classes(found.graph_targets()), (vec!["-1".into(), "7".into()], vec![0, 1, 0]));
        assert_eq!(classes(found.node_targets()).1, [1, 0, 0, 1]);
        let nodes = found.node_features();
        assert_eq!(nodes.categories()[0].values(), ["-3", "5"]);
        assert_eq!(nodes.categories()[1].name(), "node label 2");
        assert_eq!(nodes.values().row(3), [5.0, -6.25]);
        let arcs = found.arc_features();
        assert_eq!(arcs.categories()[0].value(0), Some("2"));
        assert_eq!(arcs.values().as_slice(), [2.5, 1.5, 3.5, 4.5]);
    }

    #[test]
    fn two_files_are_enough() {
        let found = good(folder(&[("X_A.txt", ""), ("X_graph_indicator.txt", "1\n2\n")]).path());
        assert_eq!((found.graphs(), found.arcs().len()), (2, 0));
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
            ("valid/P_A.txt", "1,1\n"),
            ("valid/P_graph_indicator.txt", "1\n"),
            ("valid/P_node_labels.txt", "8\n"),
            ("test/P_A.txt", ""),
            ("test/P_graph_indicator.txt", "1\n"),
            ("test/P_node_labels.txt", "7\n"),
        ]);
        let found = good(parts.path());
        assert_eq!(found.node_starts(), [0, 2, 3, 4, 5]);
        assert_eq!(found.arcs(), [(0, 1), (3, 3)]);
        assert_eq!(found.node_features().categories()[0].values(), ["7", "8", "9"]);
        assert_eq!(found.node_features().categories()[0].codes(), [0, 2, 2, 1, 0]);
        let split = found.split().unwrap();
        assert_eq!(
            (&split.train[..], &split.valid[..], &split.test[..]),
            (&[0, 1][..], &[2][..], &[3][..])
        );

        std::fs::remove_file(parts.path().join("test/P_node_labels.txt")).unwrap();
        assert_eq!(
            refusal(parts.path(), parts.path()),
            "test: does not go with the parts before it: the node features differ: one has the \
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
            (
                "T_A.txt",
                Some("0,2\n"),
                "T_A.txt, line 1: names node 0, but nodes are counted from 1",
            ),
            (
                "T_A.txt",
                Some("-9223372036854775808,2\n"),
                "T_A.txt, line 1: names node -9223372036854775808, but nodes are counted from 1",
            ),
            (
                "T_A.txt",
                Some("1,2\n1\n"),
                "T_A.txt, line 2: has 1 numbers where a pair of nodes is expected",
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
                "T_node_labels.txt, line 2: has more than 1 numbers",
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
                "T_node_attributes.txt, line 2: has 1 numbers, not 2",
            ),
            (
                "T_edge_labels.txt",
                Some("1\n"),
                "T_edge_labels.txt: ends after 1 rows, but T_A.txt has 5 arcs",
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
        let entries: Vec<(String, &[u8])> =
            FILES.iter().map(|(name, text)| (format!("{prefix}{name}"), text.as_bytes())).collect();
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
            "x.zip: holds no TU data set: there is no file NAME_A.txt or NAME_graph_indicator.txt"
        );
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
        assert!(
            message.starts_with("x.zip/B_graph_indicator.txt: cannot be unpacked: "),
            "{message}"
        );
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
}

mod gin {
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
        assert_eq!(found.arcs(), [(0, 1), (1, 0), (2, 2)]);
        assert_eq!(classes(found.graph_targets()), (vec!["-2".into(), "5".into()], vec![1, 0, 1]));
        let tags = &found.node_features().categories()[0];
        assert_eq!((tags.name(), tags.codes()), ("node label", &[0, 1, 1][..]));
        assert_eq!(found.node_features().values().cols(), 0);

        let (_folder, path) = file("1\n2 0\n0 1 1 0.5 7\n0 0 -1 2e1\n");
        let found = good(&path);
        assert_eq!(found.arcs(), [(0, 1)]);
        assert_eq!(found.node_features().values().as_slice(), [0.5, 7.0, -1.0, 20.0]);
    }

    #[test]
    fn what_does_not_fit_is_told_with_file_and_line() {
        for (text, message) in [
            ("", "g.txt: is empty, but a number of graphs is expected"),
            ("2\n1 0\n0 0\n", "g.txt: ends after 1 graphs, but its first line says 2"),
            ("1\n2 0\n0 0\n", "g.txt: ends after 1 of the 2 nodes of graph 1"),
            (
                "1\n999999999999999999 0\n0 0\n",
                "g.txt: ends after 1 of the 999999999999999999 nodes of graph 1",
            ),
            ("-1\n", "g.txt, line 1: announces -1 graphs"),
            ("1\n-1 0\n", "g.txt, line 2: says that a graph has -1 nodes"),
            ("1\n1 0\n0 -1\n", "g.txt, line 3: announces -1 neighbours"),
            (
                "1\n1 0\n0 1 1\n",
                "g.txt, line 3: names neighbour 1, but the graph has 1 nodes, counted from 0",
            ),
            ("1\n1 0\n0 2 0\n", "g.txt, line 3: lists 1 neighbours where it announces 2"),
            (
                "1\n1 0\n0\n",
                "g.txt, line 3: has one number where a node's tag and degree are expected",
            ),
            ("1\n1 0\n0 0 nan\n", "g.txt, line 3: has “nan”, but a finite number is expected"),
            (
                "1\n2 0\n0 0 1\n0 0\n",
                "g.txt, line 4: has 0 numbers behind the neighbours, where the first node has 1",
            ),
            (
                "1\n1 0\n0 0\n0 0\n",
                "g.txt, line 4: follows the last of the 1 graphs that line 1 announces",
            ),
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
}

mod citation {
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
        assert_eq!(found.arcs(), [(0, 1), (1, 0), (1, 2), (2, 1), (2, 2)]);
        assert_eq!(
            classes(found.node_targets()),
            (vec!["3".into(), "5".into()], vec![0, UNLABELLED, 1])
        );
        let sparse = found.node_features().sparse().unwrap();
        assert_eq!((sparse.width(), sparse.row(0)), (5, (&[0, 4][..], &[0.5, 1.0][..])));
        assert!(sparse.row(1).0.is_empty());
        let split = found.split().unwrap();
        assert_eq!(
            (split.level, &split.train[..], &split.test[..]),
            (Level::Node, &[2][..], &[0][..])
        );
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
                "features.txt, line 1: has “1”, not index:value with an index from 0",
            ),
            (
                "features.txt",
                Some("-1:1\n\n\n"),
                "features.txt, line 1: has “-1:1”, not index:value with an index from 0",
            ),
            (
                "features.txt",
                Some("99999999999:1\n\n\n"),
                "features.txt, line 1: has “99999999999:1”, not index:value with an index from 0",
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
            (
                "test_idx.txt",
                Some("0\n2\n"),
                "test_idx.txt, line 2: names node 2 for the second time",
            ),
            ("val_idx.txt", None, "val_idx.txt: does not exist"),
        ];
        for &(file, content, message) in cases {
            let folder = folder(&changed(FILES, &[(file, content)]));
            assert_eq!(refusal(folder.path(), folder.path()), message);
        }
    }
}

mod tables {
    use super::*;

    /// The files of a page: the fenced blocks whose language is followed by a name.
    fn files_of(page: &str) -> Vec<(&str, &str)> {
        page.split("\n```")
            .filter_map(|block| {
                let (info, content) = block.split_once('\n')?;
                let (_, name) = info.split_once(' ')?;
                Some((name, content)).filter(|(name, _)| name.contains('.') && !name.contains(' '))
            })
            .collect()
    }

    #[test]
    fn the_example_of_the_documentation_is_read_as_it_says() {
        let page = include_str!("../../../docs/src/formats.md");
        let files = files_of(page);
        assert_eq!(
            files.iter().map(|file| file.0).collect::<Vec<_>>(),
            ["nodes.csv", "ties.csv", "graphs.csv", "gin.txt"]
        );
        let folder = folder(&files);
        assert_eq!(Format::recognise(folder.path()).unwrap(), Format::Tables);
        let found = good(folder.path());
        assert_eq!((found.graphs(), found.nodes(), found.arcs().len()), (2, 8, 12));
        let [element, number] = found.node_features().categories() else { panic!() };
        assert_eq!(
            (element.name(), element.values()),
            ("element", &["C", "H", "O"].map(String::from)[..])
        );
        assert_eq!(
            (number.name(), number.values()),
            ("number", &["1", "6", "8"].map(String::from)[..])
        );
        assert_eq!(found.node_features().value_names(), ["charge"]);
        assert_eq!(found.arc_features().value_names(), ["length"]);
        assert_eq!(found.arc_features().values().row(11), [1.09]);
        let Some(TargetColumn::Values { values, .. }) = found.graph_targets() else { panic!() };
        assert_eq!(values.as_slice(), [373.1, 111.7]);
        let split = found.split().unwrap();
        assert_eq!(
            (split.level, &split.train[..], &split.test[..]),
            (Level::Graph, &[0][..], &[1][..])
        );

        assert_eq!(good(&folder.path().join("gin.txt")).arcs().len(), 4);
    }

    const FILES: &[(&str, &str)] = &[
        (
            "nodes.csv",
            "graph,id,x,colour,target,split\nb,1,0.5,red,yes,train\na,1,1,blue,,\nb,2,-2,red,no,test\n",
        ),
        ("arcs.csv", "graph,to,from,weight\nb,1,2,0.5\na,1,1,2\n"),
    ];

    #[test]
    fn rows_of_a_graph_need_not_stand_together() {
        let found = good(folder(FILES).path());
        assert_eq!(found.node_starts(), [0, 2, 3]);
        assert_eq!(found.arcs(), [(1, 0), (2, 2)]);
        assert_eq!(found.node_features().values().as_slice(), [0.5, -2.0, 1.0]);
        assert_eq!(found.node_features().categories()[0].codes(), [1, 1, 0]);
        assert_eq!(found.arc_features().values().as_slice(), [0.5, 2.0]);
        assert_eq!(
            classes(found.node_targets()),
            (vec!["no".into(), "yes".into()], vec![1, 0, UNLABELLED])
        );
        let split = found.split().unwrap();
        assert_eq!(
            (split.level, &split.train[..], &split.test[..]),
            (Level::Node, &[0][..], &[1][..])
        );
    }

    #[test]
    fn nodes_without_an_id_are_counted_from_zero() {
        let one = folder(&[("nodes.csv", "x\n1\n2\n3\n"), ("ties.csv", "from,to\n0,2\n1,1\n")]);
        let found = good(one.path());
        assert_eq!((found.graphs(), found.nodes()), (1, 3));
        assert_eq!(found.arcs(), [(0, 2), (1, 1), (2, 0)]);
    }

    #[test]
    fn ids_that_are_unique_need_no_graph() {
        let found = good(
            folder(&[
                ("nodes.csv", "id,graph\nu,1\nv,1\nw,2\n"),
                ("arcs.csv", "from,to\nv,u\nw,w\n"),
                ("graphs.csv", "graph,target\n2,1\n0,0\n1,1\n"),
            ])
            .path(),
        );
        assert_eq!(found.node_starts(), [0, 1, 1, 3]);
        assert_eq!(found.arcs(), [(0, 0), (2, 1)]);
        assert_eq!(classes(found.graph_targets()).1, [1, 0, 1]);
    }

    #[test]
    fn targets_with_a_fraction_are_real_values_and_a_header_decides_otherwise() {
        let nodes = |header: &str, cells: [&str; 3]| {
            let text = format!("x,{header}\n1,{}\n1,{}\n1,{}\n", cells[0], cells[1], cells[2]);
            let folder = folder(&[("nodes.csv", &text), ("arcs.csv", "from,to\n")]);
            load(folder.path()).map(|found| found.node_targets().cloned().unwrap())
        };
        let real = |cells, header| {
            let Ok(TargetColumn::Values { values, .. }) = nodes(header, cells) else { panic!() };
            values.into_entries()
        };
        let words = |cells, header| classes(Some(&nodes(header, cells).unwrap())).0;
        assert_eq!(real(["1", "2.5", "-3"], "target"), [1.0, 2.5, -3.0]);
        assert!(real(["1", "", "-3"], "target:value")[1].is_nan());
        assert_eq!(words(["10", "", "9"], "target"), ["9", "10"]);
        assert_eq!(words(["1.5", "a", "2"], "target:class"), ["1.5", "2", "a"]);
        let message = nodes("target", ["1.5", "2", "n/a"]).unwrap_err().to_string();
        assert!(
            message.ends_with("nodes.csv, line 4: has the target “n/a”, but line 2 has “1.5”: call the column target:class or target:value"),
            "{message}"
        );
    }

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(vec![], flate2::Compression::best());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn tables_may_be_gzipped() {
        let expected = good(folder(FILES).path());
        let packed = tempfile::tempdir().unwrap();
        for (name, text) in FILES {
            std::fs::write(packed.path().join(format!("{name}.gz")), gzip(text.as_bytes()))
                .unwrap();
        }
        let found = good(packed.path());
        assert_eq!(found.arcs(), expected.arcs());
        assert_eq!(found.node_features(), expected.node_features());

        let path = packed.path().join("nodes.csv.gz");
        std::fs::write(&path, gzip("1\n".repeat(20 << 20).as_bytes())).unwrap();
        assert_eq!(
            refusal(packed.path(), packed.path()),
            "nodes.csv.gz: cannot be unpacked: it would be more than 100 times as large and more \
             than 32 MiB"
        );
        let whole = gzip(FILES[0].1.as_bytes());
        std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
        let message = refusal(packed.path(), packed.path());
        assert!(message.starts_with("nodes.csv.gz: cannot be unpacked: "), "{message}");
    }

    fn npy(descr: &str, fortran: &str, shape: &str, data: &[u8]) -> Vec<u8> {
        let header =
            format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}\n");
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend(u16::try_from(header.len()).unwrap().to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.extend(data);
        bytes
    }

    #[test]
    fn arrays_beside_a_table_are_features() {
        let folder = folder(FILES);
        let f8 = |x: f64| x.to_le_bytes();
        let data: Vec<u8> = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0].into_iter().flat_map(f8).collect();
        let nodes = folder.path().join("nodes.npy");
        std::fs::write(&nodes, npy("<f8", "False", "(3, 2)", &data)).unwrap();
        std::fs::write(
            folder.path().join("arcs.npy"),
            npy(">i2", "False", "(2,)", &[255, 255, 1, 0]),
        )
        .unwrap();
        let found = good(folder.path());
        assert_eq!(found.node_features().value_names(), ["x", "node feature 1", "node feature 2"]);
        // Rows of the array follow those of the file, and nodes their graphs.
        assert_eq!(
            found.node_features().values().as_slice(),
            [0.5, 1.0, 2.0, -2.0, 5.0, 6.0, 1.0, 3.0, 4.0]
        );
        assert_eq!(found.arc_features().values().as_slice(), [0.5, -1.0, 2.0, 256.0]);

        std::fs::write(&nodes, npy("<f8", "True", "(3, 2)", &data)).unwrap();
        assert_eq!(good(folder.path()).node_features().values().row(0), [0.5, 1.0, 4.0]);

        for (array, message) in [
            (npy("<f8", "False", "(2, 3)", &data), "nodes.npy: has 2 rows, but nodes.csv has 3"),
            (
                npy("<f8", "False", "(3, 3)", &data),
                "nodes.npy: announces 3 × 3 entries of 8 bytes, but has 48 bytes of them",
            ),
            (
                npy("<f8", "False", "(3, 1)", &data),
                "nodes.npy: announces 3 × 1 entries of 8 bytes, but has more bytes of them",
            ),
            (
                npy("<f8", "False", "(99999999999, 99999999)", &data),
                "nodes.npy: announces 99999999999 × 99999999 entries of 8 bytes, but has 48 bytes of them",
            ),
            (
                npy("|O", "False", "(3, 2)", &data),
                "nodes.npy, byte 10: has entries of the type “|O”, not numbers",
            ),
            (
                npy("<f4", "False", "(3,)", &[0, 0, 0, 0, 0, 0, 192, 127, 0, 0, 0, 0]),
                "nodes.npy: has NaN in row 1, column 0, counted from 0, but a finite number is expected",
            ),
            (b"hello".to_vec(), "nodes.npy, byte 0: does not start like a file of NumPy"),
        ] {
            std::fs::write(&nodes, array).unwrap();
            assert_eq!(refusal(folder.path(), folder.path()), message);
        }
    }

    #[test]
    fn what_does_not_fit_is_told_with_file_and_line() {
        let cases: &[(&str, Option<&str>, &str)] = &[
            ("nodes.csv", Some("id,graph\n"), "nodes.csv: has no nodes"),
            ("nodes.csv", Some(""), "nodes.csv: has no nodes"),
            (
                "nodes.csv",
                Some("graph,id,x\na,1,2\nb,1,2\nb,2\n"),
                "nodes.csv, line 4: has 2 fields, but the header has 3",
            ),
            (
                "nodes.csv",
                Some("graph,id,x\na,1,2\nb,1,z\nb,2,1\n"),
                "nodes.csv, line 3: column “x” has “z”, not a number as in the first row: if it holds words, call it x:category",
            ),
            (
                "nodes.csv",
                Some("graph,id,x\na,1,2\nb,1,NaN\nb,2,1\n"),
                "nodes.csv, line 3: column “x” has “NaN”, but a finite number is expected",
            ),
            (
                "nodes.csv",
                Some("graph,id,x\na,1,2\nb,1,\nb,2,1\n"),
                "nodes.csv, line 3: column “x” is empty, but a feature has a value in every row",
            ),
            (
                "nodes.csv",
                Some("graph,id,x:value\na,1,red\n"),
                "nodes.csv, line 2: column “x:value” has “red”, not a number as in the first row: if it holds words, call it x:category",
            ),
            (
                "nodes.csv",
                Some("graph,id,x,x\na,1,2,3\n"),
                "nodes.csv, line 1: has two columns “x”",
            ),
            (
                "nodes.csv",
                Some("graph,id\na,1\nb,1\nb,1\n"),
                "nodes.csv, line 4: gives the id “1” to a second node of its graph",
            ),
            (
                "nodes.csv",
                Some("graph,id\na,1\n,1\n"),
                "nodes.csv, line 3: column “graph” is empty, but a name is expected",
            ),
            (
                "nodes.csv",
                Some("graph,id,split\na,1,dev\n"),
                "nodes.csv, line 2: column “split” has “dev”, not train, valid or test",
            ),
            (
                "nodes.csv",
                Some("id\n1\n2\n"),
                "arcs.csv, line 1: has a column graph, but nodes.csv has none",
            ),
            (
                "arcs.csv",
                None,
                "arcs.csv: does not exist, and no arcs.csv.gz, ties.csv or ties.csv.gz either",
            ),
            (
                "arcs.csv",
                Some("graph,source,target\n"),
                "arcs.csv, line 1: has the column “target”, but only graph, from, to, features may occur",
            ),
            (
                "arcs.csv",
                Some("graph,from\n"),
                "arcs.csv, line 1: has no columns from and to, but an arc goes from a node to a node",
            ),
            (
                "arcs.csv",
                Some("graph,from,to\nb,1,3\n"),
                "arcs.csv, line 2: column “to” names “3”, which is no node of nodes.csv",
            ),
            (
                "arcs.csv",
                Some("graph,from,to\na,1,2\n"),
                "arcs.csv, line 2: column “to” names “2”, a node of another graph",
            ),
            (
                "arcs.csv",
                Some("graph,from,to\nc,1,2\n"),
                "arcs.csv, line 2: column “graph” names “c”, which is no graph of nodes.csv",
            ),
            (
                "arcs.csv",
                Some("from,to\n1,2\n"),
                "arcs.csv, line 2: column “from” names “1”, a node of several graphs: a column graph is needed",
            ),
            (
                "ties.csv",
                Some("graph,from,to\n"),
                "ties.csv: stands beside arcs.csv: only one is read",
            ),
            (
                "graphs.csv",
                Some("graph\na\n"),
                "nodes.csv, line 2: column “graph” names “b”, which is not in graphs.csv",
            ),
            (
                "graphs.csv",
                Some("graph\na\nb\na\n"),
                "graphs.csv, line 4: column “graph” names “a” for the second time",
            ),
            (
                "graphs.csv",
                Some("graph,size\na,1\n"),
                "graphs.csv, line 1: has the column “size”, but only graph, target, split may occur",
            ),
            ("graphs.csv", Some("target\na\n"), "graphs.csv, line 1: has no column graph"),
            (
                "graphs.csv",
                Some("graph,split\na,train\nb,test\n"),
                "nodes.csv: has a column split, and so has graphs.csv: only one may be divided",
            ),
        ];
        for &(file, content, message) in cases {
            let folder = folder(&changed(FILES, &[(file, content)]));
            assert_eq!(refusal(folder.path(), folder.path()), message);
        }
        let between =
            folder(&[("nodes.csv", "id,graph\nu,1\nw,2\n"), ("arcs.csv", "from,to\nu,w\n")]);
        assert_eq!(
            refusal(between.path(), between.path()),
            "arcs.csv, line 2: joins nodes of two graphs"
        );
        let counted = folder(&[("nodes.csv", "graph\n1\n2\n"), ("arcs.csv", "from,to\n0,0\n")]);
        assert_eq!(
            refusal(counted.path(), counted.path()),
            "arcs.csv, line 1: has no column graph, and the nodes have neither an id to tell theirs"
        );
        let beyond = folder(&[("nodes.csv", "x\n1\n2\n"), ("arcs.csv", "from,to\n0,2\n")]);
        assert_eq!(
            refusal(beyond.path(), beyond.path()),
            "arcs.csv, line 2: column “to” names “2”: without a column id the 2 nodes of the graph \
             are counted from 0"
        );
    }
}

mod matlab {
    use super::mat::{dense, file, sparse, structure};
    use super::*;

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
            std::fs::write(&path, file(&[variable.clone()], compress)).unwrap();
            assert_eq!(Format::recognise(&path).unwrap(), Format::Matlab);
            let found = good(&path);
            assert_eq!(found.node_starts(), [0, 2, 4, 6, 8]);
            assert_eq!(found.arcs(), [(0, 1), (1, 0), (2, 3), (4, 5), (5, 4), (6, 7)]);
            assert_eq!(found.node_features().values().row(1), [3.0, 4.0]);
            assert_eq!(classes(found.node_targets()).1[..4], [0, 1, UNLABELLED, 0]);
            let split = found.split().unwrap();
            assert_eq!(
                (&split.train[..], &split.valid[..], &split.test[..]),
                (&[0, 1][..], &[][..], &[2, 3][..])
            );
            assert!(found.arc_features().is_empty());
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
        assert_eq!(found.arc_features().values().as_slice(), [1.0, 2.0]);
        assert!(matches!(found.node_targets(), Some(TargetColumn::Values { .. })));

        // The test part joins the third node of a graph, so graphs have three.
        write("conmattest.mat", dense("c", 3, 3, &[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0]));
        write("nodelabtest.mat", dense("l", 1, 3, &[1.0, 2.0, 3.0]));
        write("tartest.mat", dense("t", 1, 3, &[0.5, 0.0, 0.0]));
        write("conmattrain.mat", sparse("c", 6, 6, &[(0, 1, 1.0), (5, 4, 1.0)]));
        let found = good(&folder.path().join("nodelabtest.mat"));
        assert_eq!(found.node_starts(), [0, 3, 6, 9]);
        assert_eq!(found.arcs(), [(0, 1), (5, 4), (6, 8)]);

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
                "x.mat: has a trainSet.connMatrix of 4 nodes, which are no graphs of 3 nodes each",
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
                "x.mat: has a trainSet.connMatrix that has rows or columns outside of itself",
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
            format!("x.mat, byte 128: announces {rest} bytes, but {} follow", rest - 8)
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
            format!("x.mat, byte 128: announces 4294967295 bytes, but {rest} follow")
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
            "x.mat, byte 128: starts what cannot be unpacked: it would be more than 100 times as \
             large and more than 32 MiB"
        );
    }
}

mod recognition {
    use super::*;

    #[test]
    fn what_is_not_recognised_is_told() {
        let empty = folder(&[]);
        assert_eq!(
            refusal(empty.path(), empty.path()),
            "DIR: holds no graphs that are recognised: it has neither NAME_A.txt (tu), \
             conmattrain.mat (matlab), edges.txt with labels.txt (citation), nodes.csv (tables), \
             nor a folder train with NAME_A.txt"
        );
        assert_eq!(refusal(empty.path(), &empty.path().join("x")), "x: does not exist");
        let text = folder(&[("x", "hello\n")]);
        assert_eq!(
            refusal(text.path(), &text.path().join("x")),
            "x: is no file of graphs that is recognised: it starts neither like a zip file (tu), a \
             MATLAB 5.0 file (matlab), nor with a number of graphs and then a number of nodes and a \
             label (gin)"
        );
        let both = folder(&[("nodes.csv", ""), ("X_A.txt", "")]);
        assert_eq!(
            refusal(both.path(), both.path()),
            "DIR: has the files of the formats tu and tables: tell which is meant"
        );
    }

    #[test]
    fn a_format_is_called_by_its_name() {
        for format in Format::ALL {
            assert_eq!(format.as_str().parse::<Format>().unwrap(), format);
        }
        assert_eq!(
            "csv".parse::<Format>().unwrap_err().to_string(),
            "format is csv, but it is one of tu, gin, matlab, citation, tables"
        );
    }
}
