use lpgnn::data::Split;

use super::*;

fn file(text: &str) -> (TempDir, std::path::PathBuf) {
    let folder = folder(&[("g.json", text)]);
    let path = folder.path().join("g.json");
    (folder, path)
}

const WATER: &str = r#"{"directed": false, "multigraph": false,
 "graph": {"name": "water", "y": 373.1, "split": "train", "source": {"lab": [1, 2]}},
 "nodes": [{"id": "O", "element": "O", "charge": -0.83, "ring": false, "number": 8},
           {"id": "H1", "element": "H", "charge": 0.415, "ring": false, "number": 1},
           {"id": 7, "element": "H", "charge": 1, "ring": true, "number": 1}],
 "edges": [{"source": "O", "target": "H1", "length": 0.96}, {"source": 7, "target": "O", "length": 1}]}"#;

const METHANE: &str = r#"{"directed": true, "graph": {"name": "methane", "y": null},
 "nodes": [{"number": 6, "ring": false, "charge": 0.5, "element": "C", "id": 0}], "links": []}"#;

#[test]
fn a_graph_of_networkx_is_read() {
    let (_folder, path) = file(&format!("[{WATER},\n{METHANE}]"));
    assert_eq!(Format::recognise(&path).unwrap(), Format::NodeLink);
    let found = good(&path);
    assert_eq!((found.name(), found.node_starts()), ("g", &[0, 3, 4][..]));
    assert_eq!(found.edges(), [(0, 1), (0, 2), (1, 0), (2, 0)]);
    assert_eq!(found.edge_features().values().as_slice(), [0.96, 1.0, 0.96, 1.0]);
    let features = found.node_features();
    let names: Vec<&str> =
        features.categories().iter().map(lpgnn::data::Categories::name).collect();
    assert_eq!(names, ["element", "ring", "number"]);
    assert_eq!(features.categories()[1].values(), ["False", "True"]);
    assert_eq!(features.categories()[2].values(), ["1", "6", "8"]);
    assert_eq!(features.value_names().to_vec(), ["charge"]);
    assert_eq!(features.values().as_slice(), [-0.83, 0.415, 1.0, 0.5]);
    assert!(found.reads_all());
    let Some(TargetColumn::Values { values, .. }) = found.graph_targets() else { panic!() };
    assert!(values.row(0)[0] > 373.0 && values.row(1)[0].is_nan());
    let split = Split { level: Level::Graph, train: vec![0], val: vec![], test: vec![] };
    assert_eq!(found.split(), Some(&split));
    assert_eq!((found.graph_name(1), found.node_name(1)), (Some("methane"), Some("H1")));

    // One after the other, as in JSON lines, is the same.
    let (_folder, path) = file(&format!("{WATER}\n{METHANE}\n"));
    let again = good(&path).with_split(None).unwrap();
    // An unknown value is not equal to itself.
    assert_eq!(format!("{again:?}"), format!("{:?}", found.with_split(None).unwrap()));
}

#[test]
fn what_would_be_misread_is_refused() {
    for (text, expected) in [
        (
            r#"{"nodes": [{"id": 0, "Split": "train"}], "links": []}"#,
            "g.json: graph 0, node 0 has “Split”, which is to be called “split”",
        ),
        (
            r#"{"nodes": [{"id": 0, "Y.a": 1.5}], "links": []}"#,
            "g.json: graph 0, node 0 has “Y.a”, which is to be called “y.a”",
        ),
        (
            r#"{"graph": {"Y": 1}, "nodes": [{"id": 0}], "links": []}"#,
            "g.json, line 1: is not node-link JSON: has “Y”, which is to be called “y”",
        ),
        (
            r#"{"nodes": [{"id": 0, "t": 1700000000.5}, {"id": 1, "t": 1700000001}], "links": []}"#,
            "g.json: “t” has values from 1700000000.5 to 1700000001.0, which single precision cannot distinguish: \
             subtract a constant or multiply by one",
        ),
        (
            r#"{"nodes": [{"id": 0, "y": [1, 1e-60]}, {"id": 1, "y": [2, 2e-60]}], "links": []}"#,
            "g.json: “y” has values from 1e-60 to 2e-60, which single precision cannot distinguish: subtract a \
             constant or multiply by one",
        ),
    ] {
        let (folder, path) = file(text);
        assert_eq!(refusal(folder.path(), &path), expected);
    }
}

#[test]
fn nodes_without_ids_are_counted() {
    let (_folder, path) = file(
        r#"{"nodes": [{"y": "a", "split": "train"}, {"y": null}, {"split": "valid", "y": "b"}],
            "links": [{"source": 2, "target": 0}, {"source": 2, "target": 2}]}"#,
    );
    let found = good(&path);
    assert_eq!(found.edges(), [(0, 2), (2, 0), (2, 2)]);
    assert_eq!(
        classes(found.node_targets()),
        (vec!["a".into(), "b".into()], vec![0, NO_TARGET, 1])
    );
    let split = Split { level: Level::Node, train: vec![0], val: vec![2], test: vec![] };
    assert_eq!(found.split(), Some(&split));
    assert!(!found.has_names() && found.node_features().is_empty());
}

#[test]
fn ids_may_be_pairs_and_parallel_edges_count_once() {
    let (_folder, path) = file(
        r#"{"directed": true, "multigraph": true, "nodes": [{"id": [0, 0]}, {"id": [0, 1]}, {"id": "1"}, {"id": 1}],
            "edges": [{"source": [0, 1], "target": [0, 0], "key": 0, "w": 1.5},
                      {"source": [0, 1], "target": [0, 0], "key": 1, "w": 2.5},
                      {"source": 1, "target": "1", "key": 0, "w": 3.5}]}"#,
    );
    let found = good(&path);
    assert_eq!(found.edges(), [(1, 0), (3, 2)]);
    assert_eq!(found.edge_features().value_names().to_vec(), ["w"]);
    assert_eq!(found.edge_features().values().as_slice(), [1.5, 3.5]);
    assert_eq!((found.node_name(1), found.duplicates()), (Some("[0, 1]"), 1));
}

#[test]
fn lists_are_columns_and_many_integers_are_numbers() {
    let node = |i: usize| {
        let wide: Vec<String> = (0..32).map(|at| ((at + i) % 2).to_string()).collect();
        format!(
            r#"{{"x": [{i}, 0.5], "pair": [1, {i}], "many": {i}, "wide": [{}], "y": [{i}, null_]}}"#,
            wide.join(",")
        )
        .replace("null_", "0.25")
    };
    let nodes: Vec<String> = (0..21).map(node).collect();
    let (_folder, path) = file(&format!("{{\"nodes\": [{}]}}", nodes.join(",")));
    let found = good(&path);
    let features = found.node_features();
    // A list is one table: if one number is real, all are.
    let names = features.value_names().to_vec();
    assert_eq!(names[..4], ["x0", "x1", "pair1", "many"]);
    assert_eq!((names.len(), &names[4][..]), (4 + 32, "wide0"));
    assert_eq!(features.categories()[0].name(), "pair0");
    assert_eq!(features.values().row(20)[..4], [20.0, 0.5, 20.0, 20.0]);
    let Some(TargetColumn::Values { names, values }) = found.node_targets() else { panic!() };
    assert_eq!(names, &["node target 1", "node target 2"]);
    assert_eq!(values.row(20), [20.0, 0.25]);
}

#[test]
fn targets_with_names_are_no_features() {
    let (_folder, path) = file(
        r#"[{"graph": {"y.gap": 0.5, "y.dipole": null}, "nodes": [{"x": 1}]},
            {"graph": {"y.dipole": 2, "y.gap": 1}, "nodes": [{"x": 2}]}]"#,
    );
    let found = good(&path);
    let Some(TargetColumn::Values { names, values }) = found.graph_targets() else { panic!() };
    assert_eq!(names, &["gap", "dipole"]);
    assert_eq!((values.row(0)[0], values.row(1)), (0.5, &[1.0, 2.0][..]));
    assert!(values.row(0)[1].is_nan());
}

#[test]
fn what_does_not_fit_is_told() {
    let nodes = r#""nodes": [{"id": "a", "c": 1}, {"id": "b", "c": 2}]"#;
    for (text, message) in [
        ("", "g.json, line 1: is not node-link JSON: EOF while parsing a value"),
        (
            "3",
            "g.json, line 1: is not node-link JSON: invalid type: integer `3`, expected a graph with nodes and edges, or a list of them",
        ),
        ("[]", "g.json: has no nodes"),
        ("{}", "g.json: graph 0 has no list “nodes”"),
        (
            "{\"nodes\": [{\"c\": {}}]}",
            "g.json, line 1: is not node-link JSON: invalid type: map, expected a number, a text, true or false, null, or a list of numbers",
        ),
        ("{\"nodes\": [{\"c\":\n 1,}]}", "g.json, line 2: is not node-link JSON: trailing comma"),
        (
            "{\"nodes\": [], \"edges\": [], \"links\": []}",
            "g.json, line 1: is not node-link JSON: a graph has two lists of edges",
        ),
        (
            &format!("{{{nodes}, \"edges\": [{{\"source\": \"a\", \"target\": \"c\"}}]}}"),
            "g.json: graph 0, edge 0 names “c”, which is not the id of a node",
        ),
        (
            &format!("{{{nodes}, \"edges\": [{{\"from\": \"a\", \"to\": \"c\"}}]}}"),
            "g.json: graph 0, edge 0 has no “source”: rename “from”",
        ),
        (
            "{\"nodes\": [{}], \"edges\": [{\"source\": 0, \"target\": 1}]}",
            "g.json: graph 0, edge 0 names 1, but without ids the 1 node are counted from 0",
        ),
        (
            "{\"nodes\": [{\"id\": 1}, {\"id\": 1}]}",
            "g.json: graph 0, node 1 has the id “1”, as another node has",
        ),
        (
            "{\"nodes\": [{\"id\": 1}, {}]}",
            "g.json: graph 0, node 1 has an id or has none, other than the nodes before it",
        ),
        (
            "{\"nodes\": [{\"id\": null}]}",
            "g.json: graph 0, node 0 has the id null, but a number, a text or a short list of numbers is expected",
        ),
        (
            "{\"nodes\": [{\"c\": 1}, {}]}",
            "g.json: graph 0, node 1 has no “c”, but those before it do",
        ),
        (
            "{\"nodes\": [{\"c\": 1}, {\"c\": 1, \"d\": 2}]}",
            "g.json: graph 0, node 1 has “d”, but those before it do not",
        ),
        ("{\"nodes\": [{\"c\": 1, \"c\": 2}]}", "g.json: graph 0, node 0 has “c” twice"),
        (
            "{\"nodes\": [{\"c\": null}]}",
            "g.json: graph 0, node 0 has no value of “c”, but a feature has one everywhere",
        ),
        (
            "{\"nodes\": [{\"c\": 1}, {\"c\": \"x\"}]}",
            "g.json: graph 0, node 1 has “x” as “c” where a number is expected",
        ),
        (
            "{\"nodes\": [{\"c\": \"x\"}, {\"c\": 1}]}",
            "g.json: graph 0, node 1 has 1 as “c”, where those before it have texts",
        ),
        (
            "{\"nodes\": [{\"c\": [1, 2]}, {\"c\": [1]}]}",
            "g.json: graph 0, node 1 has [1] as “c”, where those before it have lists of 2 numbers",
        ),
        (
            "{\"nodes\": [{\"c\": 1e300}]}",
            "g.json: graph 0, node 0 has 1e300 as “c”, too large a number",
        ),
        (
            "{\"nodes\": [{\"split\": \"all\"}]}",
            "g.json: graph 0, node 0 has the split “all”, not train, val or test",
        ),
        (
            "{\"graph\": {\"split\": \"val\"}, \"nodes\": [{\"split\": \"val\"}]}",
            "g.json: has the attribute split of nodes and of graphs: split one or the other",
        ),
        (
            "{\"nodes\": [{\"y\": 1, \"y.b\": 2}]}",
            "g.json: has the targets y and y.b: keep one or the other",
        ),
        ("{\"nodes\": [{\"y.b\": \"x\"}]}", "g.json: has the target y.b, which is not a number"),
    ] {
        let (folder, path) = file(text);
        let error = read(&path, &ReadOptions { format: Some(Format::NodeLink) }).unwrap_err();
        let message_found = error.to_string().replace(&format!("{}/", folder.path().display()), "");
        assert_eq!(message_found, message, "{text}");
    }
}
