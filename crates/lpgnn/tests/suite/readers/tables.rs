use super::*;
use crate::npz::npy;

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
    let page = include_str!("../../../../../docs/src/formats.md");
    let files = files_of(page);
    assert_eq!(
        files.iter().map(|file| file.0).collect::<Vec<_>>(),
        ["nodes.csv", "edges.csv", "graphs.csv", "gin.txt", "graphs.json"]
    );
    let folder = folder(&files);
    assert_eq!(Format::recognise(folder.path()).unwrap(), Format::Tables);
    let found = good(folder.path());
    assert_eq!((found.graphs(), found.nodes(), found.edges().len()), (2, 8, 12));
    let [element, number] = found.node_features().categories() else { panic!() };
    assert_eq!(
        (element.name(), element.values()),
        ("element", &["C", "H", "O"].map(String::from)[..])
    );
    assert_eq!(
        (number.name(), number.values()),
        ("number", &["1", "6", "8"].map(String::from)[..])
    );
    assert_eq!(found.node_features().value_names().to_vec(), ["charge"]);
    assert_eq!(found.edge_features().value_names().to_vec(), ["length"]);
    assert_eq!(found.edge_features().values().row(11), [1.09]);
    let Some(TargetColumn::Values { values, .. }) = found.graph_targets() else { panic!() };
    assert_eq!(values.as_slice(), [373.1, 111.7]);
    let split = found.split().unwrap();
    assert_eq!(
        (split.level, &split.train[..], &split.test[..]),
        (Level::Graph, &[0][..], &[1][..])
    );

    assert_eq!(good(&folder.path().join("gin.txt")).edges().len(), 4);
    let json = good(&folder.path().join("graphs.json"));
    assert_eq!((json.graphs(), json.nodes(), json.edges().len()), (2, 4, 4));
    assert_eq!(json.node_features().value_names().to_vec(), ["charge"]);
    assert_eq!(classes(json.graph_targets()).0, ["gas", "liquid"]);
}

const FILES: &[(&str, &str)] = &[
    (
        "nodes.csv",
        "graph,id,x,colour,y,split\nb,1,0.5,red,yes,train\na,1,1,blue,,\nb,2,-2,red,no,test\n",
    ),
    ("edges.csv", "graph,target,source,weight\nb,1,2,0.5\na,1,1,2\n"),
    ("dataset.toml", "directed = true\n"),
];

#[test]
fn rows_of_a_graph_need_not_stand_together() {
    let found = good(folder(FILES).path());
    assert_eq!(found.node_starts(), [0, 2, 3]);
    assert_eq!(found.edges(), [(1, 0), (2, 2)]);
    assert_eq!(found.node_features().values().as_slice(), [0.5, -2.0, 1.0]);
    assert_eq!(found.node_features().categories()[0].codes(), [1, 1, 0]);
    assert_eq!(found.edge_features().values().as_slice(), [0.5, 2.0]);
    assert_eq!(
        classes(found.node_targets()),
        (vec!["no".into(), "yes".into()], vec![1, 0, NO_TARGET])
    );
    let split = found.split().unwrap();
    assert_eq!((split.level, &split.train[..], &split.test[..]), (Level::Node, &[0][..], &[1][..]));
}

#[test]
fn nodes_without_an_id_are_counted_from_zero() {
    let one = folder(&[("nodes.csv", "x\n1\n2\n3\n"), ("edges.csv", "source,target\n0,2\n1,1\n")]);
    let found = good(one.path());
    assert_eq!((found.graphs(), found.nodes()), (1, 3));
    assert_eq!(found.edges(), [(0, 2), (1, 1), (2, 0)]);
}

#[test]
fn a_row_is_both_directions_unless_the_edges_are_directed() {
    let nodes = ("nodes.csv", "id\na\nb\n");
    let edges = ("edges.csv", "source,target,kind\nb,a,bond\na,a,loop\n");
    for (description, expected) in [
        (None, &[(0, 0), (0, 1), (1, 0)][..]),
        (Some("directed = false\n"), &[(0, 0), (0, 1), (1, 0)]),
        (Some("directed = true\n"), &[(0, 0), (1, 0)]),
    ] {
        let mut files = vec![nodes, edges];
        files.extend(description.map(|text| ("dataset.toml", text)));
        let found = good(folder(&files).path());
        assert_eq!(found.edges(), expected, "{description:?}");
        let kinds = &found.edge_features().categories()[0];
        let kind = |&(u, v): &(u32, u32)| Some(if u == v { "loop" } else { "bond" });
        for (row, edge) in found.edges().iter().enumerate() {
            assert_eq!(kinds.value(row), kind(edge), "{description:?}");
        }
        assert_eq!(found.duplicates(), 0);
    }
}

#[test]
fn a_description_may_name_the_data_set() {
    let mut files = FILES.to_vec();
    files[2] = ("dataset.toml", "name = \"Two graphs\"\n");
    assert_eq!(good(folder(&files).path()).name(), "Two graphs");
}

#[test]
fn special_columns_are_recognised_in_upper_and_lower_case() {
    let files = [
        ("nodes.csv", "Graph,ID,x:VALUE,Y:Class,Split\ng,u,1,1,train\ng,v,2,0,validation\n"),
        ("edges.csv", "SOURCE,Target\nu,v\n"),
    ];
    let found = good(folder(&files).path());
    assert_eq!(found.node_features().value_names().to_vec(), ["x"]);
    assert_eq!(classes(found.node_targets()).1, [1, 0]);
    let split = found.split().unwrap();
    assert_eq!((&split.train[..], &split.val[..]), (&[0][..], &[1][..]));
    let twice = folder(&[("nodes.csv", "id,ID\na,b\n"), files[1]]);
    assert_eq!(refusal(twice.path(), twice.path()), "nodes.csv, line 1: has two columns “id”");
}

#[test]
fn what_would_be_misread_is_refused() {
    let edges = ("edges.csv", "source,target\n0,1\n");
    for (nodes, expected) in [
        (
            "a,y\nNA,p\n0.5,q\n1.5,p\n",
            "nodes.csv: column “a” begins with “NA”, but all its other values are numbers: if these are categories, \
             call it a:category",
        ),
        (
            "t,y\n1700000000,p\n1700000001,q\n1700000003,p\n",
            "nodes.csv: column “t” has values from 1700000000.0 to 1700000003.0, which single precision cannot \
             distinguish: subtract a constant or multiply by one",
        ),
        (
            "a,y:value\n1,1e-60\n2,\n3,2e-60\n",
            "nodes.csv: column “y” has values from 1e-60 to 2e-60, which single precision cannot distinguish: \
             subtract a constant or multiply by one",
        ),
        (
            "a,y\n\"1,100.5\",p\n900,q\n",
            "nodes.csv: column “a” has “1,100.5”, a number as a spreadsheet shows it: write it with a decimal point and \
             nothing else; if these are categories, call it a:category",
        ),
        (
            "a,y\n31.5.2024,p\n1.6.2024,q\n",
            "nodes.csv: column “a” has “31.5.2024”, a date: write a number, for instance of days; if these are \
             categories, call it a:category",
        ),
        (
            "a,y\n1,\"0,5\"\n2,\"1,5\"\n",
            "nodes.csv: column “y” has “0,5”, a number as a spreadsheet shows it: write it with a decimal point and \
             nothing else; if these are classes, call it y:class",
        ),
        (
            "Node_ID,y\n1,p\n0,q\n",
            "nodes.csv, line 1: has the column “Node_ID”, which would be a feature: call it id if it names the nodes; \
             if it is one, call it Node_ID:category or Node_ID:value",
        ),
        (
            "graph_id,y\n1,p\n0,q\n",
            "nodes.csv, line 1: has the column “graph_id”, which would be a feature: call it graph if it names the \
             graphs; if it is one, call it graph_id:category or graph_id:value",
        ),
        (
            "x,y,train_mask\n1,p,True\n0,q,False\n",
            "nodes.csv, line 1: has the column “train_mask”, which would be a feature: a split is one column split \
             with train, val or test; if it is one, call it train_mask:category or train_mask:value",
        ),
    ] {
        let folder = folder(&[("nodes.csv", nodes), edges]);
        assert_eq!(refusal(folder.path(), folder.path()), expected);
    }
    for nodes in [
        "a:category\n12 %\n13 %\n",
        "a,y:class\n1,\"0,5\"\n2,\"1,5\"\n",
        "id,node:value,graph_id:category\n0,1,1\n1,1,1\n",
        "a\n12 %\nnone\n",
        "a:category\nNA\n0.5\n1.5\n",
        "a\nNA\n0.5\nx\n",
        "a\nNA\nNA\nNA\n",
        "a\n0.1\n0.1\n0.1\n",
    ] {
        good(folder(&[("nodes.csv", nodes), edges]).path());
    }
}

#[test]
fn a_space_of_any_kind_around_a_name_is_none() {
    let nodes = ("nodes.csv", "x,y,\u{a0}split\u{a0}\n1,p,train\n2,q,test\n");
    let found = good(folder(&[nodes, ("edges.csv", "source,target\n0,1\n")]).path());
    assert_eq!(found.split().unwrap().train, [0]);
    assert!(found.node_features().categories().is_empty());
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_is_not_left_out_because_of_capitals() {
    let graphs = ("Graphs.csv", "graph,y\nb,1\na,0\n");
    let folder = folder(&[FILES, &[graphs]].concat());
    assert_eq!(
        refusal(folder.path(), folder.path()),
        "Graphs.csv: would be left out, because the file is called graphs.csv in this format"
    );
}

#[test]
fn ids_that_are_unique_need_no_graph() {
    let found = good(
        folder(&[
            ("nodes.csv", "id,graph\nu,1\nv,1\nw,2\n"),
            ("edges.csv", "source,target\nv,u\nw,w\n"),
            ("graphs.csv", "graph,y\n2,1\n0,0\n1,1\n"),
        ])
        .path(),
    );
    assert_eq!(found.node_starts(), [0, 1, 1, 3]);
    assert_eq!(found.edges(), [(0, 0), (1, 2), (2, 1)]);
    assert_eq!(classes(found.graph_targets()).1, [1, 0, 1]);
}

#[test]
fn targets_with_a_fraction_are_real_values_and_a_header_decides_otherwise() {
    let nodes = |header: &str, cells: [&str; 3]| {
        let text = format!("x,{header}\n1,{}\n1,{}\n1,{}\n", cells[0], cells[1], cells[2]);
        let folder = folder(&[("nodes.csv", &text), ("edges.csv", "source,target\n")]);
        load(folder.path()).map(|found| found.node_targets().cloned().unwrap())
    };
    let real = |cells, header| {
        let Ok(TargetColumn::Values { values, .. }) = nodes(header, cells) else { panic!() };
        values.into_entries()
    };
    let words = |cells, header| classes(Some(&nodes(header, cells).unwrap())).0;
    assert_eq!(real(["1", "2.5", "-3"], "y"), [1.0, 2.5, -3.0]);
    assert!(real(["1", "", "-3"], "y:value")[1].is_nan());
    assert_eq!(words(["10", "", "9"], "y"), ["9", "10"]);
    assert_eq!(words(["1.5", "a", "2"], "y:class"), ["1.5", "2", "a"]);
    let message = nodes("y", ["1.5", "2", "n/a"]).unwrap_err().to_string();
    assert!(
        message.ends_with("nodes.csv, line 4: has the target “n/a”, but line 2 has “1.5”: call the column y:class or y:value"),
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
    std::fs::write(packed.path().join("dataset.toml"), FILES[2].1).unwrap();
    for (name, text) in &FILES[..2] {
        std::fs::write(packed.path().join(format!("{name}.gz")), gzip(text.as_bytes())).unwrap();
    }
    let found = good(packed.path());
    assert_eq!(found.edges(), expected.edges());
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

#[test]
fn arrays_beside_a_table_are_features() {
    let folder = folder(FILES);
    let f8 = |x: f64| x.to_le_bytes();
    let data: Vec<u8> = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0].into_iter().flat_map(f8).collect();
    let nodes = folder.path().join("nodes.npy");
    std::fs::write(&nodes, npy("<f8", "False", "(3, 2)", &data)).unwrap();
    std::fs::write(folder.path().join("edges.npy"), npy(">i2", "False", "(2,)", &[255, 255, 1, 0]))
        .unwrap();
    let found = good(folder.path());
    assert_eq!(
        found.node_features().value_names().to_vec(),
        ["x", "node feature 1", "node feature 2"]
    );
    // Rows of the array follow those of the file, and nodes their graphs.
    assert_eq!(
        found.node_features().values().as_slice(),
        [0.5, 1.0, 2.0, -2.0, 5.0, 6.0, 1.0, 3.0, 4.0]
    );
    assert_eq!(found.edge_features().values().as_slice(), [0.5, -1.0, 2.0, 256.0]);

    std::fs::write(&nodes, npy("<f8", "True", "(3, 2)", &data)).unwrap();
    assert_eq!(good(folder.path()).node_features().values().row(0), [0.5, 1.0, 4.0]);

    for (array, message) in [
        (npy("<f8", "False", "(2, 3)", &data), "nodes.npy: has 2 rows, but nodes.csv has 3"),
        (
            npy("<f8", "False", "(3, 3)", &data),
            "nodes.npy: declares 3 × 3 entries of 8 bytes, but has 48 bytes of them",
        ),
        (
            npy("<f8", "False", "(3, 1)", &data),
            "nodes.npy: declares 3 × 1 entries of 8 bytes, but has 48 bytes of them",
        ),
        (
            npy("<f8", "False", "(99999999999, 99999999)", &data),
            "nodes.npy: declares 99999999999 × 99999999 entries of 8 bytes, but has 48 bytes of them",
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
            "nodes.csv, line 4: has 2 fields, but the first line has 3",
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
        ("nodes.csv", Some("graph,id,x,x\na,1,2,3\n"), "nodes.csv, line 1: has two columns “x”"),
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
            "nodes.csv, line 2: column “split” has “dev”, not train, val or test",
        ),
        (
            "nodes.csv",
            Some("id\n1\n2\n"),
            "edges.csv, line 1: has a column graph, but nodes.csv has none",
        ),
        (
            "nodes.csv",
            Some("\u{feff}id;x\n1;2\n"),
            "nodes.csv, line 1: has the one column “id;x”: separate columns by commas",
        ),
        (
            "nodes.csv",
            Some(",graph,id\n0,a,1\n"),
            "nodes.csv, line 1: has a column without a name, such as an index that was written too",
        ),
        ("edges.csv", None, "edges.csv: does not exist, and no edges.csv.gz either"),
        (
            "edges.csv",
            Some("graph,source,target,y\n"),
            "edges.csv, line 1: has the column “y”, but only these have a meaning here: graph, source, target, features",
        ),
        (
            "edges.csv",
            Some("graph,source\n"),
            "edges.csv, line 1: needs the columns source and target, the nodes that an edge joins",
        ),
        (
            "edges.csv",
            Some("graph,From,To\n"),
            "edges.csv, line 1: needs the columns source and target, the nodes that an edge joins: rename from to source and to to target",
        ),
        (
            "edges.csv",
            Some("graph;source;target\n"),
            "edges.csv, line 1: has the one column “graph;source;target”: separate columns by commas",
        ),
        (
            "edges.csv",
            Some("graph,source,target\nb,1,3\n"),
            "edges.csv, line 2: column “target” names “3”, which is not a node of nodes.csv",
        ),
        (
            "edges.csv",
            Some("graph,source,target\na,1,2\n"),
            "edges.csv, line 2: column “target” names “2”, a node of another graph",
        ),
        (
            "edges.csv",
            Some("graph,source,target\nc,1,2\n"),
            "edges.csv, line 2: column “graph” names “c”, which is not a graph of nodes.csv",
        ),
        (
            "edges.csv",
            Some("source,target\n1,2\n"),
            "edges.csv, line 2: column “source” names “1”, a node of several graphs: add a column graph",
        ),
        (
            "dataset.toml",
            Some("directed = false\n\nundirected = true\n"),
            "dataset.toml, line 3: unknown field `undirected`, expected `name` or `directed`",
        ),
        (
            "nodes.csv",
            Some("graph,id,target\na,1,yes\n"),
            "nodes.csv, line 1: has the column “target”, which only edges.csv may have: what is to be predicted is called y",
        ),
        (
            "graphs.csv",
            Some("graph,target:class\na,1\n"),
            "graphs.csv, line 1: has the column “target:class”, which only edges.csv may have: what is to be predicted is called y",
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
            "graphs.csv, line 1: has the column “size”, but only these have a meaning here: graph, y, split",
        ),
        ("graphs.csv", Some("y\na\n"), "graphs.csv, line 1: has no column graph"),
        (
            "graphs.csv",
            Some("graph,split\na,train\nb,test\n"),
            "nodes.csv: has a column split, and so has graphs.csv: split one or the other",
        ),
    ];
    for &(file, content, message) in cases {
        let folder = folder(&changed(FILES, &[(file, content)]));
        assert_eq!(refusal(folder.path(), folder.path()), message);
    }
    let between =
        folder(&[("nodes.csv", "id,graph\nu,1\nw,2\n"), ("edges.csv", "source,target\nu,w\n")]);
    assert_eq!(
        refusal(between.path(), between.path()),
        "edges.csv, line 2: joins nodes of two graphs"
    );
    let counted = folder(&[("nodes.csv", "graph\n1\n2\n"), ("edges.csv", "source,target\n0,0\n")]);
    assert_eq!(
        refusal(counted.path(), counted.path()),
        "edges.csv, line 1: has no column graph, and nodes.csv has no column id that would identify the graph"
    );
    let beyond = folder(&[("nodes.csv", "x\n1\n2\n"), ("edges.csv", "source,target\n0,2\n")]);
    assert_eq!(
        refusal(beyond.path(), beyond.path()),
        "edges.csv, line 2: column “target” names “2”, but without a column id the 2 nodes of the \
         graph are counted from 0"
    );
}
